"""The fast engine: nested Laplace, certified and corrected by importance sampling.

Given hyperparameters the posterior is log-concave and nearly Gaussian; its evidence weighs the
points of a small grid over them, and the posterior is the mixture. Draws of the mixture, weighted
by importance, certify and correct it, and are moved by Hamiltonian Monte Carlo where the
certificate fails.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.errors import DataError
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.draws import even, matched, moments
from polarbear.inference.laplace.banded import chain, local
from polarbear.inference.laplace.cluster_robust import (
    Spread,
    doubt_at_times,
    instance_scores,
    sandwich,
    together,
)
from polarbear.inference.laplace.conditional import MAX_DECREMENT, Conditional
from polarbear.inference.laplace.dense import dense
from polarbear.inference.laplace.hypergrid import integrate
from polarbear.inference.laplace.independent import independent
from polarbear.inference.laplace.mixture import (
    FORGOTTEN,
    KEEP,
    Chains,
    Company,
    Parts,
    Sample,
    evidence_left,
    move,
    respread,
    shares,
    shifts,
    weigh,
    weighed,
)
from polarbear.inference.pair_probabilities import Mixture
from polarbear.inference.plackett_luce.likelihood import Choices, choices
from polarbear.inference.posterior import Evidence, Posterior
from polarbear.inference.psis import ENOUGH
from polarbear.inference.threads import one_thread
from polarbear.priors.base import helmert, unit_times
from polarbear.priors.dirichlet import Independent
from polarbear.priors.hyper import Hyper
from polarbear.priors.prior import Prior

Floats = NDArray[np.float64]
At = Callable[[Mapping[str, float], Conditional | None], Conditional]

FEW, MANY, MOST = 1000, 6000, 16_000
"""How many draws: few where times are independent, there is much data to go through for each draw,
and the weights leave little to correct."""

CHEAP = 1e7
"""Terms of the likelihood up to which draws are not spared."""

PRECISE, USABLE = 0.006, 0.009
"""The standard error of a probability, at worst, below which there are enough draws, and above
which weights are no use. Less is wrong in the end, for corrections are shrunk by their noise."""

WORK = 1e9
"""Terms of the likelihood beyond which no more draws are made to be more precise."""

KERNEL = 0.45
"""How far draws of hyperparameters are spread around the points of the grid, in its steps."""

EDGE = 0.01
"""The mass that may lie beyond the grid of hyperparameters."""


def laplace(
    rankings: Rankings,
    prior: Prior,
    *,
    seed: int = 0,
    evidence: Evidence = "instances",
    start: Posterior | None = None,
    draws: int | None = None,
) -> Posterior:
    """Fit by nested Laplace.

    Parameters
    ----------
    rankings, prior, seed
        What to fit. The same seed gives the same draws.
    evidence
        What is new evidence: "instances", or "rankings" at every time, as in the paper.
    start
        An earlier posterior to start from, of some of the same algorithms and times.
    draws
        How many draws; by default from 1000 to 16,000, as many as it takes to be precise.
    """
    if draws is not None and not (isinstance(draws, int | np.integer) and draws >= 100):
        raise DataError(f"draws={draws!r}: expected a whole number of at least 100")
    with one_thread():
        rng = np.random.default_rng(seed)
        once = evidence == "instances" and len(rankings.times) > 1
        model = _model(rankings, prior, start)
        found, sample, moved = _fitted(rankings, prior, model, start, draws, rng, once)
        diagnostics, mixture = _diagnostics(found, sample, moved), None
        if once and found.components[0].shape[0] == 1:
            sample = _spread_by_instances(rankings, model.data, found, sample, rng)
        else:
            mixture = _mixture(found, sample, moved)
        return Posterior(
            rankings.algorithms,
            rankings.times,
            sample.utilities.astype(np.float32),
            sample.weight.astype(np.float32),
            mixture,
            _hyper_draws(found, sample.component[even(sample.weight.mean(axis=1))], rng),
            diagnostics,
            repr(prior),
            "laplace",
            rankings.clock,
            independent=_independent(found) and not once,
            evidence=evidence,
            instances=len(np.unique(rankings.instance[rankings.weight > 0])),
        )


def _fitted(
    rankings: Rankings,
    prior: Prior,
    model: "Model",
    start: Posterior | None,
    draws: int | None,
    rng: np.random.Generator,
    once: bool,
) -> tuple["Approximation", Sample, "_Moved | None"]:
    """Draws that are certified; ``once``: those of independent times go together."""
    found = _approximate(model, start, None)
    found = _together(rankings, found, rng) if once else found
    sample = _drawn(found, model.terms, draws, rng)
    if _off_the_grid(found, sample) > EDGE:
        # Laplace's evidence is so far off that the grid lies in the wrong place.
        found = _approximate(model, start, int(rng.integers(2**63)))
        found = _together(rankings, found, rng) if once else found
        sample = _drawn(found, model.terms, draws, rng)
    failed = ~(sample.k <= ENOUGH)
    if model.terms * MOST <= WORK:  # else the weights are right but the draws few: it is said
        failed |= ~(_errors(sample) <= USABLE)
    if not failed.any():
        return found, sample, None
    if len(failed) > 1:
        sample, moved = _moved_times(rankings, prior, found, sample, failed, rng)
    else:
        chains = max(1, len(sample.component) // KEEP)
        share = shares(sample.component, sample.weight, len(found.components))
        moved = move(
            found.parts, sample, rng, share=share, chains=chains, keep=KEEP, jump=bool(found.hyper)
        )
        alike = np.full((len(moved.component), 1), 1 / len(moved.component))
        sample = Sample(moved.component, sample.noise, moved.utilities, alike, sample.k, None)
        failed = np.ones(len(rankings.times), dtype=bool)
    return found, sample, _Moved(failed, moved)


class Model(NamedTuple):
    """The hyperparameters, and the posterior given them, started from another if there is one."""

    hypers: Mapping[str, Hyper]
    at: At
    data: Choices

    @property
    def terms(self) -> int:
        """Of the likelihood: what one draw costs."""
        return self.data.terms


class Approximation(NamedTuple):
    """Gaussians at the points of a grid over hyperparameters."""

    parts: Parts
    hyper: Mapping[str, Floats]  # the value of each at each point
    edge: float
    cell: Floats  # the steps of the grid, in logarithms
    rim: NDArray[np.bool_]  # which points have a neighbour that was left out

    @property
    def components(self) -> Sequence[Conditional]:
        """The Gaussians."""
        return self.parts.components


class _Moved(NamedTuple):
    times: NDArray[np.bool_]
    chains: Chains


def _model(rankings: Rankings, prior: Prior, start: Posterior | None) -> Model:
    data = choices(rankings)
    n_times, n = len(rankings.times), len(rankings.algorithms)
    begin = np.zeros((n_times, n)) if start is None else _utilities(start, rankings)
    if isinstance(prior, Independent):

        def at(hyper: Mapping[str, float], warm: Conditional | None) -> Conditional:
            alpha, first = prior.concentration(hyper, n), begin if warm is None else warm.mean
            return independent(data, alpha, n_times, n, first)

        return Model(prior.hypers(), at, data)

    times = unit_times(rankings.times, prior.warp)
    mode = begin @ helmert(n)

    def gaussian(hyper: Mapping[str, float], warm: Conditional | None) -> Conditional:
        states, first = prior.chain(times, hyper), mode if warm is None else warm.state
        if states is not None:
            try:
                return chain(data, states, n, first)
            except np.linalg.LinAlgError:
                pass  # times too close for this length: the chain drowned in rounding
        factor = prior.factor(times, hyper)
        return local(data, factor, n, first) or dense(data, factor, n, first)

    return Model(prior.hypers(), gaussian, data)


def _utilities(start: Posterior, rankings: Rankings) -> Floats:
    """Mean utilities of an earlier posterior, for the algorithms and times of these rankings."""
    mean = start.utilities.mean(axis=0, dtype=np.float64)
    row = np.minimum(np.searchsorted(start.times, rankings.times), len(start.times) - 1)
    column = {name: k for k, name in enumerate(start.algorithms)}
    found = np.zeros((len(rankings.times), len(rankings.algorithms)))
    for k, name in enumerate(rankings.algorithms):
        if name in column:
            found[:, k] = mean[row, column[name]]
    return found - found.mean(axis=1, keepdims=True)


def _approximate(model: Model, start: Posterior | None, pilot: int | None) -> Approximation:
    """Lay the grid over the hyperparameters, by Laplace's evidence or by one that is corrected.

    ``pilot`` is the seed of the draws that correct it, the same for all points.
    """
    hypers = model.hypers
    if not hypers:
        only = Parts([model.at({}, None)], np.ones(1), np.zeros(1), np.zeros((1, 0)))
        return Approximation(only, {}, 0.0, np.empty((0, 0)), np.zeros(1, dtype=bool))

    def log_density(u: Floats, warm: _Point | None) -> tuple[float, _Point]:
        values = dict(zip(hypers, np.exp(u), strict=True))
        found = model.at(values, None if warm is None else warm.conditional)
        weight = sum(h.log_density(x) for h, x in zip(hypers.values(), u, strict=True))
        left = 0.0
        if pilot is not None:
            left = float(evidence_left(found, np.random.default_rng(pilot)).sum())
        return found.evidence + weight + left, _Point(found, left)

    earlier = {} if start is None else start.hyper
    first = [
        float(np.log(earlier[name]).mean() if name in earlier else np.log(hyper.quantile(0.5)))
        for name, hyper in hypers.items()
    ]
    grid = integrate(log_density, first)
    values = np.exp(grid.point).T
    named = dict(zip(hypers, values, strict=True))
    components = [point.conditional for point in grid.found]
    corrected = np.array([point.corrected for point in grid.found])
    parts = Parts(components, grid.weight, corrected, grid.point)
    return Approximation(parts, named, grid.edge, grid.cell, grid.rim)


class _Point(NamedTuple):
    conditional: Conditional
    corrected: float


def _scores(rankings: Rankings, found: Approximation, rng: np.random.Generator) -> Floats:
    """Scores of instances, at the mean over the grid: one pass over the data serves all of it."""
    modes = np.stack([one.mean for one in found.components])
    mean = np.tensordot(found.parts.chance / found.parts.chance.sum(), modes, 1)
    return instance_scores(rankings, mean, rng)


def _together(rankings: Rankings, found: Approximation, rng: np.random.Generator) -> Approximation:
    """Let the noise of independent times go together as the scores of instances do."""
    if found.components[0].shape[0] == 1:
        return found
    scores, doubt = _scores(rankings, found, rng), doubt_at_times(rankings)
    spreads = [together(one, scores, doubt) for one in found.components]
    return found._replace(parts=found.parts._replace(spreads=spreads))


def _spread_by_instances(
    rankings: Rankings,
    data: Choices,
    found: Approximation,
    sample: Sample,
    rng: np.random.Generator,
) -> Sample:
    """Draws as far apart as instances, not times, make them; centred and shaped like the sample."""
    scores, doubt = _scores(rankings, found, rng), doubt_at_times(rankings)
    used = np.unique(sample.component)
    spreads = {g: sandwich(found.components[g], data, scores, doubt) for g in used.tolist()}
    all_of_them = [spreads.get(g, Spread(0, np.asarray)) for g in range(len(found.components))]
    parts = found.parts._replace(spreads=all_of_them)
    even_component = np.sort(sample.component[even(sample.weight[:, 0])])
    wide = respread(parts, even_component, rng)
    chance = np.bincount(even_component, minlength=len(found.components))[used]
    chance = chance / chance.sum()
    modes = np.stack([found.components[g].mean for g in used])
    around = np.stack([found.components[g].covariance for g in used])
    plain = moments(modes, chance)
    plain = plain._replace(covariance=plain.covariance + np.tensordot(chance, around, 1))
    utilities = matched(wide, plain, moments(sample.utilities, sample.weight[:, 0]))
    alike = np.full((len(utilities), 1), 1 / len(utilities))
    return sample._replace(component=even_component, utilities=utilities, weight=alike)


def _off_the_grid(found: Approximation, sample: Sample) -> float:
    """How much of the mass, as the draws weigh it, lies at the rim of the grid."""
    share = shares(sample.component, sample.weight, len(found.components))
    return float(share[found.rim].sum() / share.sum())


def _drawn(found: Approximation, terms: int, draws: int | None, rng: np.random.Generator) -> Sample:
    """As many weighted draws as it takes for the correction to be precise."""
    if draws is not None:
        return weigh(found.parts, draws, rng)
    # Where times hang together, statements about all of them at once can only count draws.
    alone = _independent(found) and not found.parts.spreads
    alone |= len(found.components[0].mean) == 1
    few = FEW if alone or terms * MANY > WORK else MANY
    few = max(few, min(MANY, int(CHEAP / max(1, terms))))
    sample = weigh(found.parts, few, rng)
    for more in (MANY, MOST):
        enough = _errors(sample).max() <= PRECISE and sample.k.max() <= ENOUGH
        if enough or terms * more > WORK:
            break
        if more > len(sample.component):
            sample = weigh(found.parts, more, rng)
    return sample


def _independent(found: Approximation) -> bool:
    """Whether times do not know of each other at all, not even through a hyperparameter."""
    return found.components[0].shape[0] > 1 and len(found.components) == 1


def _errors(sample: Sample) -> Floats:
    """The standard error of a probability that weights correct, at worst: one for each block."""
    spread = np.sum(sample.weight**2, axis=0) - 1 / len(sample.weight)
    return 0.5 * np.sqrt(np.maximum(spread, 0.0))


def _moved_times(
    rankings: Rankings,
    prior: Prior,
    found: Approximation,
    sample: Sample,
    failed: NDArray[np.bool_],
    rng: np.random.Generator,
) -> tuple[Sample, Chains]:
    """Replace the draws at the times whose weights fail; times do not know of each other."""
    part = replace(rankings, times=rankings.times[failed], position=rankings.position[failed])
    model = _model(part, prior, None)
    there = [
        model.at({name: float(values[g]) for name, values in found.hyper.items()}, None)
        for g in range(len(found.components))
    ]
    those = sample._replace(noise=sample.noise[:, failed], weight=sample.weight[:, failed])
    parts = found.parts._replace(components=there)
    # What the times with sound weights say of the hyperparameters, if there are any.
    sound = sample.weight if failed.all() else sample.weight[:, ~failed]
    share = shares(sample.component, sound, len(there))
    chains = -(-len(sample.weight) // 4)
    spreads = found.parts.spreads
    company = Company(failed, sample, spreads) if spreads else None
    moved = move(parts, those, rng, share=share, chains=chains, keep=4, jump=False, company=company)
    # Draws are sorted by component, so that those of one row have one at all times.
    order = np.argsort(moved.component, kind="stable")[: len(sample.weight)]
    if company is not None:
        noise = np.zeros_like(sample.noise)
        noise[:, ~failed] = moved.company[order]
        shift = shifts(found.parts, rng)
        k = sample.k
        sample = weighed(found.parts, moved.component[order], noise, shift)._replace(k=k)
    utilities, weight = sample.utilities.copy(), sample.weight.copy()
    utilities[:, failed] = moved.utilities[order]
    weight[:, failed] = 1 / len(weight)
    return sample._replace(utilities=utilities, weight=weight), moved


def _hyper_draws(
    found: Approximation, component: NDArray[np.intp], rng: np.random.Generator
) -> dict[str, Floats]:
    """Hyperparameters of draws, spread smoothly over what the points of the grid stand for.

    A kernel is added, and the points are drawn together so that the spread stays the same.
    """
    if not found.hyper:
        return {}
    point = np.log(np.stack(list(found.hyper.values()), axis=1))[component]
    mean = point.mean(axis=0)
    steps = np.linalg.solve(found.cell, (point - mean).T).T
    together = np.sqrt(np.maximum(1 - KERNEL**2 / np.maximum(steps.var(axis=0), 1e-12), 0.0))
    steps = together * steps + KERNEL * rng.standard_normal(steps.shape)
    drawn = np.exp(mean + steps @ found.cell.T)
    return dict(zip(found.hyper, drawn.T, strict=True))


def _mixture(found: Approximation, sample: Sample, moved: _Moved | None) -> Mixture | None:
    """The Gaussians that the draws are of, unless all of them were moved."""
    n_times = len(found.components[0].mean)
    holds = np.ones(n_times, dtype=bool) if moved is None else ~moved.times
    if not holds.any():
        return None
    used, count = np.unique(sample.component, return_counts=True)
    return Mixture(
        count / count.sum(),
        np.stack([found.components[g].mean for g in used]),
        np.stack([found.components[g].covariance for g in used]),
        holds,
        np.zeros((1, 1, 1), np.float32) if sample.bent is None else sample.bent,
    )


def _diagnostics(found: Approximation, sample: Sample, moved: _Moved | None) -> Diagnostics:
    decrement = max(component.decrement for component in found.components)
    measured = {"k-hat": float(sample.k.max()), "error": float(_errors(sample).max())}
    measured["Newton decrement"] = decrement
    problems, notes = [], []
    if found.hyper:
        beyond = max(found.edge, _off_the_grid(found, sample))
        measured["hyper-grid edge"] = beyond
        if not beyond <= 2 * EDGE:
            problems.append(f"{beyond:.0%} of the hyperparameters may lie beyond the grid")
    error = measured["error"]
    if moved is None and error > USABLE:
        effective = int(1 / np.max(np.sum(sample.weight**2, axis=0)))
        said = f"the draws are worth only {effective} (standard error {error:.3f}): ask for more"
        (problems if error > 0.02 else notes).append(said)
    if not decrement <= MAX_DECREMENT:
        problems.append("Newton's method stopped before the mode")
    if moved is not None:
        measured |= {"acceptance": moved.chains.acceptance, "memory": moved.chains.memory}
        times = f"at {moved.times.sum()} of {len(moved.times)} times"
        notes.append(f"weights were not enough {times}: draws there were moved by HMC")
        if not (moved.chains.acceptance >= 0.4 and moved.chains.memory <= FORGOTTEN):
            problems.append("importance weights fail and HMC did not mix: use method='nuts'")
    return Diagnostics(measured, tuple(problems), tuple(notes))
