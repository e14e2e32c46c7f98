"""The fast engine: nested Laplace approximations, checked and corrected by importance sampling.

Given hyperparameters the posterior is log-concave and nearly Gaussian. The evidence of the Laplace
approximation weights the points of a small grid over the hyperparameters, and the posterior is the
mixture (INLA: Rue, Martino and Chopin 2009). Importance weights of draws from the mixture correct
it, and their k-hat diagnoses it. Where the weights are unreliable, the draws are moved by
Hamiltonian Monte Carlo.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings, select_times
from polarbear.errors import DataError
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.draws import compute_moments, match_moments, systematic_resample
from polarbear.inference.laplace.cluster_robust import (
    NoiseTransform,
    compute_instance_scores,
    copula_noise,
    sandwich_noise,
    shrinkage_at_times,
)
from polarbear.inference.laplace.conditional import MAX_DECREMENT, ConditionalGaussian
from polarbear.inference.laplace.hypergrid import build_hypergrid, draw_hyperparameters
from polarbear.inference.laplace.independent import IndependentGaussian
from polarbear.inference.laplace.mixture import (
    KEPT_SWEEPS,
    MAX_START_CORRELATION,
    CoupledBlocks,
    GridMixture,
    HmcDraws,
    ImportanceSample,
    component_shares,
    compute_log_shifts,
    draw_curves,
    evidence_correction,
    importance_sample,
    move_by_hmc,
    resample_noise,
    sample_mixture,
)
from polarbear.inference.laplace.ranking_model import RankingModel, build_model
from polarbear.inference.laplace.repeated_times import merge_equal_times, repeat_times
from polarbear.inference.laplace.repetitions import AdjustedLikelihood
from polarbear.inference.laplace.sampling import (
    MAX_STANDARD_ERROR,
    MAX_TRUSTED_ERROR,
    MAX_WEIGHTED_TERMS,
    MIN_DRAWS,
    USUAL_DRAWS,
    GridApproximation,
    boundary_share,
    count_curves,
    equal_weights,
    has_independent_times,
    has_single_gaussian,
    sample_until_precise,
    sample_without_weights,
    shift_to_mean,
    standard_errors,
    unreliable_blocks,
)
from polarbear.inference.pair_probabilities import Mixture
from polarbear.inference.plackett_luce.likelihood import Likelihood
from polarbear.inference.posterior import Evidence, Posterior
from polarbear.inference.threads import one_thread
from polarbear.priors.dirichlet import IndependentPrior
from polarbear.priors.prior import Prior

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MAX_BOUNDARY_MASS = 0.01
"""The most mass that may lie at the boundary of the grid of hyperparameters."""

KEPT_SWEEPS_AT_TIMES = 4
"""Sweeps whose states are kept where only the draws at some times are moved."""


def fit_laplace(
    rankings: Rankings,
    prior: Prior,
    *,
    seed: int = 0,
    evidence: Evidence = "instances",
    start: Posterior | None = None,
    draws: int | None = None,
    curves: bool = True,
) -> Posterior:
    """Fit the posterior by nested Laplace approximations.

    Parameters
    ----------
    rankings, prior, seed
        The data, the prior and the seed. The same seed gives the same draws.
    evidence
        The units of evidence: "instances", or "rankings" at every time, as in the paper.
    start
        An earlier posterior to start from, of some of the same algorithms and times.
    draws
        The number of draws; by default from 1000 to 16,000, as precision requires.
    curves
        Whether a posterior with few weighted draws has more of equal weight.
    """
    if draws is not None and not (isinstance(draws, int | np.integer) and draws >= 100):
        raise DataError("expected a whole number of at least 100", draws=draws)
    by_instance = evidence == "instances" and len(rankings.times) > 1
    if by_instance and isinstance(prior, IndependentPrior) and not prior.hypers():
        part, source = merge_equal_times(rankings)
        if part is not rankings:
            posterior = fit_laplace(part, prior, seed=seed, start=start, draws=draws, curves=curves)
            return repeat_times(posterior, rankings.times, source)
    with one_thread():
        rng = np.random.default_rng(seed)
        model = build_model(rankings, prior, start, adjusted=evidence == "instances")
        grid, sample, moved = _fit_draws(rankings, prior, model, start, draws, rng, by_instance)
        diagnostics, mixture = _diagnose(grid, sample, moved), None
        if by_instance and grid.components[0].shape[0] == 1:
            sample = _apply_sandwich(rankings, model.likelihood, grid, sample, rng)
        else:
            mixture = _closed_form_mixture(grid, sample, moved)
        size = count_curves(grid, model.n_terms) if curves and draws is None else 0
        more = None
        if moved is None and size > len(sample.component):
            more = draw_curves(grid.mixture, sample, size, rng)
        resampled = systematic_resample(sample.weight.mean(axis=1))
        return Posterior(
            algorithms=rankings.algorithms,
            times=rankings.times,
            draws=sample.utilities.astype(np.float32),
            weight=sample.weight.astype(np.float32),
            mixture=mixture,
            hyper=draw_hyperparameters(grid.hyper, grid.steps, sample.component[resampled], rng),
            diagnostics=diagnostics,
            prior=repr(prior),
            method="laplace",
            clock=rankings.clock,
            independent=has_independent_times(grid) and not by_instance,
            evidence=evidence,
            instances=int(np.count_nonzero(np.bincount(rankings.instance[rankings.weight > 0]))),
            curves=more,
        )


def estimate_utilities(rankings: Rankings, prior: Prior) -> Floats:
    """Return the posterior mode of utilities (times, algorithms), without draws.

    With hyperparameters it is the mean of the modes over their grid. It takes a small part of the
    time of :func:`fit_laplace`, and has no uncertainty.
    """
    with one_thread():
        model = build_model(rankings, prior, None, adjusted=False)
        return _average_modes(_approximate(model, None, None))


class _HmcCorrection(NamedTuple):
    """Draws moved by HMC, and the times at which they replace the weighted draws."""

    times: Bools  # (T,): where draws were moved
    draws: HmcDraws


class _Fit(NamedTuple):
    """The Gaussian approximations, their draws, and the correction of the draws by HMC, if any."""

    grid: GridApproximation
    sample: ImportanceSample
    moved: _HmcCorrection | None = None


def _fit_draws(
    rankings: Rankings,
    prior: Prior,
    model: RankingModel,
    start: Posterior | None,
    draws: int | None,
    rng: np.random.Generator,
    by_instance: bool,
) -> _Fit:
    """Return posterior draws with importance weights, moved by HMC where weights are unreliable."""

    def approximate_and_sample(pilot_seed: int | None) -> _Fit:
        grid = _approximate(model, start, pilot_seed)
        if by_instance:
            grid = _correlate_times(rankings, model.likelihood, grid, rng)
        if count_curves(grid, model.n_terms) and model.n_terms * MIN_DRAWS > MAX_WEIGHTED_TERMS:
            return _Fit(*sample_without_weights(grid, draws or MIN_DRAWS, rng))
        return _Fit(grid, draw_sample(grid))

    def draw_sample(grid: GridApproximation) -> ImportanceSample:
        def measure_k_hat(times: Bools) -> Floats:
            part = _restrict_mixture(rankings, prior, model, grid, times)
            return sample_mixture(part._replace(noise_transforms=()), USUAL_DRAWS, rng).k_hat

        return sample_until_precise(grid, model.n_terms, draws, rng, measure_k_hat)

    fit = approximate_and_sample(None)
    if boundary_share(fit.grid, fit.sample) > MAX_BOUNDARY_MASS:
        # Laplace's evidence is inaccurate, and the grid lies in the wrong place: correct it.
        fit = approximate_and_sample(int(rng.integers(2**63)))
    unreliable = unreliable_blocks(fit.sample, model.n_terms)
    if unreliable.tolist() == [True] and has_single_gaussian(fit.grid):
        # With many algorithms even a small distance of mode and mean makes weights uneven.
        grid = shift_to_mean(fit.grid, rng)
        fit = _Fit(grid, draw_sample(grid))
        unreliable = unreliable_blocks(fit.sample, model.n_terms)
    if not unreliable.any():
        return fit
    if len(unreliable) > 1:
        return _move_times(rankings, prior, model, fit, unreliable, rng)
    return _move_all(fit, len(rankings.times), rng)


class _GridFit(NamedTuple):
    """The approximation at one grid point, and the correction of its log marginal likelihood."""

    conditional: ConditionalGaussian
    log_correction: float


def _approximate(
    model: RankingModel, start: Posterior | None, pilot_seed: int | None
) -> GridApproximation:
    """Build the grid of hyperparameters by their marginal likelihood, and fit at each point.

    ``pilot_seed`` is the seed of the draws that correct the evidence, the same for all points.
    """
    hypers = model.hypers
    if not hypers:
        only = GridMixture([model.fit({}, None)], np.ones(1), np.zeros(1))
        return GridApproximation(
            mixture=only,
            hyper={},
            boundary_mass=0.0,
            steps=np.empty((0, 0)),
            is_boundary=np.zeros(1, dtype=bool),
        )

    def log_density(u: Floats, warm: _GridFit | None) -> tuple[float, _GridFit]:
        values = dict(zip(hypers, np.exp(u), strict=True))
        conditional = model.fit(values, None if warm is None else warm.conditional)
        log_prior = sum(h.log_density(x) for h, x in zip(hypers.values(), u, strict=True))
        correction = 0.0
        if pilot_seed is not None:
            rng = np.random.default_rng(pilot_seed)
            correction = float(evidence_correction(conditional, rng).sum())
        log_posterior = conditional.log_evidence + log_prior + correction
        return log_posterior, _GridFit(conditional, correction)

    earlier = {} if start is None else start.hyper
    first = [
        float(np.log(earlier[name]).mean() if name in earlier else np.log(hyper.quantile(0.5)))
        for name, hyper in hypers.items()
    ]
    grid = build_hypergrid(log_density, first)
    mixture = GridMixture(
        [fit.conditional for fit in grid.fits],
        grid.weight,
        np.array([fit.log_correction for fit in grid.fits]),
    )
    values = dict(zip(hypers, np.exp(grid.point).T, strict=True))
    return GridApproximation(
        mixture=mixture,
        hyper=values,
        boundary_mass=grid.boundary_mass,
        steps=grid.steps,
        is_boundary=grid.is_boundary,
    )


def _scores_at_mean(
    rankings: Rankings, likelihood: Likelihood, grid: GridApproximation, rng: np.random.Generator
) -> Floats:
    """Return each instance's gradient of the log-likelihood, at the mean utilities of the grid."""
    scores = compute_instance_scores(rankings, _average_modes(grid), rng)
    is_adjusted = isinstance(likelihood, AdjustedLikelihood)
    return likelihood.scale_scores(scores) if is_adjusted else scores


def _average_modes(grid: GridApproximation) -> Floats:
    """Return the mean of the modes over the grid of hyperparameters (times, algorithms)."""
    # The mean of independent times may be shifted from the mode, for the sake of its draws.
    modes = np.stack(
        [
            one.warm_start if isinstance(one, IndependentGaussian) else one.mean
            for one in grid.components
        ]
    )
    probability = grid.mixture.probability
    return np.asarray(np.tensordot(probability / probability.sum(), modes, 1), dtype=np.float64)


def _correlate_times(
    rankings: Rankings, likelihood: Likelihood, grid: GridApproximation, rng: np.random.Generator
) -> GridApproximation:
    """Give draws their autocorrelation over time by a copula, if the prior has none."""
    if grid.components[0].shape[0] == 1:
        return grid
    scores = _scores_at_mean(rankings, likelihood, grid, rng)
    shrinkage = shrinkage_at_times(rankings)
    transforms = [copula_noise(one, scores, shrinkage) for one in grid.components]
    return grid._replace(mixture=grid.mixture._replace(noise_transforms=transforms))


def _apply_sandwich(
    rankings: Rankings,
    likelihood: Likelihood,
    grid: GridApproximation,
    sample: ImportanceSample,
    rng: np.random.Generator,
) -> ImportanceSample:
    """Replace the draws by draws that have the sandwich covariance.

    The affine map that takes the moments of the Gaussian mixture to those of the weighted sample is
    applied to them as well, so that the importance weights' correction is kept.
    """
    scores = _scores_at_mean(rankings, likelihood, grid, rng)
    shrinkage = shrinkage_at_times(rankings)
    used = np.unique(sample.component)
    transforms = [NoiseTransform(0, np.asarray)] * len(grid.components)
    for g in used.tolist():
        transforms[g] = sandwich_noise(grid.components[g], likelihood, scores, shrinkage)
    mixture = grid.mixture._replace(noise_transforms=transforms)
    component = np.sort(sample.component[systematic_resample(sample.weight[:, 0])])
    wide = resample_noise(mixture, component, rng)
    share = np.bincount(component, minlength=len(grid.components))[used]
    share = share / share.sum()
    between = compute_moments(np.stack([grid.components[g].mean for g in used]), share)
    within = np.stack([grid.components[g].covariance for g in used])
    gaussian = between._replace(covariance=between.covariance + np.tensordot(share, within, 1))
    utilities = match_moments(
        wide, gaussian, compute_moments(sample.utilities, sample.weight[:, 0])
    )
    return sample._replace(
        component=component, utilities=utilities, weight=equal_weights(len(utilities))
    )


def _move_all(fit: _Fit, n_times: int, rng: np.random.Generator) -> _Fit:
    """Move all draws by HMC, for priors under which all times form one block."""
    grid, sample = fit.grid, fit.sample
    draws = move_by_hmc(
        grid.mixture,
        sample,
        rng,
        share=component_shares(sample.component, sample.weight, len(grid.components)),
        n_chains=max(1, len(sample.component) // KEPT_SWEEPS),
        n_kept=KEPT_SWEEPS,
    )
    weight = equal_weights(len(draws.component))
    moved = ImportanceSample(
        component=draws.component,
        noise=sample.noise,
        utilities=draws.utilities,
        weight=weight,
        k_hat=sample.k_hat,
        skew_shift=None,
    )
    return _Fit(grid, moved, _HmcCorrection(np.ones(n_times, dtype=bool), draws))


def _move_times(
    rankings: Rankings,
    prior: Prior,
    model: RankingModel,
    fit: _Fit,
    unreliable: Bools,
    rng: np.random.Generator,
) -> _Fit:
    """Move the draws at unreliable times by HMC, for priors under which times are independent.

    Hyperparameters keep the distribution that the reliable times give them.
    """
    grid, sample = fit.grid, fit.sample
    transforms = grid.mixture.noise_transforms
    coupled = CoupledBlocks(unreliable, sample, transforms) if transforms else None
    reliable_weight = sample.weight if unreliable.all() else sample.weight[:, ~unreliable]
    draws = move_by_hmc(
        _restrict_mixture(rankings, prior, model, grid, unreliable),
        sample._replace(noise=sample.noise[:, unreliable], weight=sample.weight[:, unreliable]),
        rng,
        share=component_shares(sample.component, reliable_weight, len(grid.components)),
        n_chains=-(-len(sample.weight) // KEPT_SWEEPS_AT_TIMES),
        n_kept=KEPT_SWEEPS_AT_TIMES,
        coupled=coupled,
    )
    # Sorted by component like the sample, so that a draw has one component at all times.
    order = np.argsort(draws.component, kind="stable")[: len(sample.weight)]
    if coupled is not None:
        # The reliable times were rotated along with the moved ones: weight them anew.
        noise = np.zeros_like(sample.noise)
        noise[:, ~unreliable] = draws.coupled_noise[order]
        log_shift = compute_log_shifts(grid.mixture, rng)
        rotated = importance_sample(grid.mixture, draws.component[order], noise, log_shift)
        sample = rotated._replace(k_hat=sample.k_hat)
    utilities, weight = sample.utilities.copy(), sample.weight.copy()
    utilities[:, unreliable] = draws.utilities[order]
    weight[:, unreliable] = 1 / len(weight)
    moved = sample._replace(utilities=utilities, weight=weight)
    return _Fit(grid, moved, _HmcCorrection(unreliable, draws))


def _restrict_mixture(
    rankings: Rankings, prior: Prior, model: RankingModel, grid: GridApproximation, times: Bools
) -> GridMixture:
    """Return the mixture at selected times only, with the same hyperparameters."""
    part = select_times(rankings, times)
    adjusted = isinstance(model.likelihood, AdjustedLikelihood)
    restricted = build_model(part, prior, None, adjusted=adjusted)
    components = [
        restricted.fit({name: float(values[g]) for name, values in grid.hyper.items()}, None)
        for g in range(len(grid.components))
    ]
    return grid.mixture._replace(components=components)


def _closed_form_mixture(
    grid: GridApproximation, sample: ImportanceSample, moved: _HmcCorrection | None
) -> Mixture | None:
    """Return the Gaussian mixture behind the draws; None if HMC moved all of the draws."""
    n_times = len(grid.components[0].mean)
    holds = np.ones(n_times, dtype=bool) if moved is None else ~moved.times
    if not holds.any():
        return None
    used, count = np.unique(sample.component, return_counts=True)
    return Mixture(
        weight=count / count.sum(),
        mean=np.stack([grid.components[g].mean for g in used]),
        covariance=np.stack([grid.components[g].covariance for g in used]),
        holds=holds,
        bent=np.zeros((1, 1, 1), np.float32) if sample.skew_shift is None else sample.skew_shift,
    )


def _diagnose(
    grid: GridApproximation, sample: ImportanceSample, moved: _HmcCorrection | None
) -> Diagnostics:
    """Return the diagnostics of the fit."""
    decrement = max(component.decrement for component in grid.components)
    error = float(standard_errors(sample).max())
    measured = {"k-hat": float(sample.k_hat.max()), "error": error, "Newton decrement": decrement}
    problems, notes = [], []
    if not sample.noise.size:
        del measured["k-hat"], measured["error"]
        notes.append("large data: Gaussians at the posterior means, without importance weights")
    if grid.hyper:
        beyond = max(grid.boundary_mass, boundary_share(grid, sample))
        measured["hyper-grid edge"] = beyond
        if not beyond <= 2 * MAX_BOUNDARY_MASS:
            problems.append(f"{beyond:.0%} of the hyperparameters may lie beyond the grid")
    if moved is None and error > MAX_STANDARD_ERROR:
        effective = int(1 / np.max(np.sum(sample.weight**2, axis=0)))
        message = f"the draws are worth only {effective} (standard error {error:.3f}): ask for more"
        (problems if error > MAX_TRUSTED_ERROR else notes).append(message)
    if not decrement <= MAX_DECREMENT:
        problems.append("Newton's method stopped before the mode")
    if moved is not None:
        acceptance, memory = moved.draws.acceptance, moved.draws.start_correlation
        measured |= {"acceptance": acceptance, "memory": memory}
        times = f"at {moved.times.sum()} of {len(moved.times)} times"
        notes.append(f"weights were not enough {times}: draws there were moved by HMC")
        if not (acceptance >= 0.4 and memory <= MAX_START_CORRELATION):
            problems.append("importance weights fail and HMC did not mix: use method='nuts'")
    return Diagnostics(measured, tuple(problems), tuple(notes))
