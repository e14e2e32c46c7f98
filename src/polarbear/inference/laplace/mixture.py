"""Weighted draws from a mixture of Gaussian approximations over a grid of hyperparameters.

Draws of the mixture get importance weights, whose Pareto k-hat tells whether they are reliable.
Otherwise the draws are moved by Hamiltonian Monte Carlo, in the coordinates in which the
approximation is standard normal.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from polarbear.inference.draws import (
    MIN_DRAWS_PER_ALGORITHM,
    Moments,
    compute_moments,
    match_moments,
    moment_transport,
    systematic_resample,
)
from polarbear.inference.laplace.cluster_robust import NoiseTransform
from polarbear.inference.laplace.conditional import ConditionalGaussian
from polarbear.inference.laplace.hmc import Target, adjust_step, hmc_sweep
from polarbear.inference.psis import smooth_weights

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.intp]

PILOT_DRAWS = 200
"""The number of draws, the same for all components, that correct the evidence of each."""

MAX_DRAWS_AT_ONCE = 500
"""The most draws transformed at once, which bounds memory."""

MIN_BURN_IN, MAX_BURN_IN = 10, 60
"""Sweeps of burn-in: the least, and the most."""

KEPT_SWEEPS = 16
"""The number of sweeps whose states are kept."""

MAX_START_CORRELATION = 0.1
"""Burn-in ends when no coordinate has a larger correlation with its starting value."""


class GridMixture(NamedTuple):
    """A mixture of Gaussian approximations, one for each grid point of the hyperparameters."""

    components: Sequence[ConditionalGaussian]
    probability: Floats  # (G,): unnormalised
    log_correction: Floats  # (G,): the correction of the log-evidence within the probability
    noise_transforms: Sequence[NoiseTransform] = ()  # of each component; () for independent noise


class ImportanceSample(NamedTuple):
    """Draws of utilities with an importance weight for each draw and independent block of times."""

    component: Ints  # (D,): increasing
    noise: Singles  # (D, B, size)
    utilities: Singles  # (D, T, n)
    weight: Floats  # (D, B), each block summing to 1
    k_hat: Floats  # (B,)
    skew_shift: Singles | None  # (D, T, n): change of utilities by the skew transformation


def sample_mixture(mixture: GridMixture, draws: int, rng: np.random.Generator) -> ImportanceSample:
    """Draw utilities from the mixture and compute their importance weights."""
    components = mixture.components
    log_shift = compute_log_shifts(mixture, rng)
    component = allocate_draws(mixture.probability, draws)
    n_blocks, size = components[0].shape[0], max(c.shape[1] for c in components)
    noise = np.empty((draws, n_blocks, size), dtype=np.float32)
    for g, rows in _iterate_components(component):
        _fill_noise(noise[rows], mixture, g, rng)
    return importance_sample(mixture, component, noise, log_shift)


def importance_sample(
    mixture: GridMixture, component: Ints, noise: Singles, log_shift: Floats
) -> ImportanceSample:
    """Map standardised variables, sorted by mixture component, to weighted draws of utilities."""
    components = mixture.components
    utilities = np.empty((len(noise), *components[0].mean.shape), dtype=np.float32)
    log_ratio = np.empty(noise.shape[:2])
    has_skew = any(one.skew is not None for one in components)
    skew_shift = np.zeros_like(utilities) if has_skew else None
    for g, rows in _iterate_components(component):
        mapped = _map_noise(components[g], noise[rows].astype(np.float64))
        utilities[rows], log_ratio[rows] = mapped.utilities, mapped.log_ratio
        if skew_shift is not None:
            skew_shift[rows] = mapped.skew_shift
    log_ratio += log_shift[component]
    weight, k_hat = smooth_weights(log_ratio)
    return ImportanceSample(
        component=component,
        noise=noise,
        utilities=utilities,
        weight=weight,
        k_hat=k_hat,
        skew_shift=skew_shift,
    )


def resample_noise(mixture: GridMixture, component: Ints, rng: np.random.Generator) -> Singles:
    """Return new utilities, from fresh random numbers, for draws sorted by mixture component."""
    mean = mixture.components[0].mean
    utilities = np.empty((len(component), *mean.shape), dtype=np.float32)
    for g, rows in _iterate_components(component):
        one = mixture.components[g]
        noise = np.empty((rows.stop - rows.start, *one.shape))
        _fill_noise(noise, mixture, g, rng)
        utilities[rows] = one.to_utilities(noise)
    return utilities


def draw_curves(
    mixture: GridMixture, sample: ImportanceSample, draws: int, rng: np.random.Generator
) -> Singles:
    """Return equally weighted draws of a mixture of one component, more than were weighted.

    They are those of the sample and further ones, mapped so that the moments of the unweighted
    sample become those of the weighted one.
    """
    (one,) = mixture.components
    size = len(sample.noise)
    current, target = (compute_moments(sample.utilities, w) for w in (None, sample.weight))
    utilities = np.empty((draws, *one.mean.shape), dtype=np.float32)
    utilities[:size] = match_moments(sample.utilities, current, target)
    _fill_curves(utilities[size:], mixture, *compose_with_moments(one, current, target, size), rng)
    return utilities


def _fill_curves(
    utilities: Singles,
    mixture: GridMixture,
    to_curves: Singles,
    mean: Singles,
    rng: np.random.Generator,
) -> None:
    """Fill an array (draws, times, algorithms) with draws of a mixture of one component.

    ``to_curves`` (times, size, algorithms) maps noise to differences from ``mean`` (times, 1,
    algorithms). Draws are pairs of opposite sign, as in a sample.
    """
    (one,) = mixture.components
    for start in range(0, len(utilities), MAX_DRAWS_AT_ONCE):
        rows = utilities[start : start + MAX_DRAWS_AT_ONCE]
        noise = _draw_noise(mixture, 0, (-(-len(rows) // 2), *one.shape), rng, np.float32)
        if one.skew is not None:
            noise = np.concatenate([noise, -noise])[: len(rows)]
            noise = one.skew.transform(noise).noise.astype(np.float32)
        away = noise.swapaxes(0, 1) @ to_curves
        half = away.shape[1]
        rows[:half] = (mean + away).swapaxes(0, 1)
        rows[half:] = (mean - away)[:, : len(rows) - half].swapaxes(0, 1)


def compose_with_moments(
    one: ConditionalGaussian, current: Moments, target: Moments, size: int
) -> tuple[Singles, Singles]:
    """Return the map from noise to utilities with other moments: matrices and means per time.

    It is :meth:`ConditionalGaussian.to_utilities` followed by :func:`match_moments`.
    """
    mean = one.mean
    matrices = one.noise_to_utilities()
    shift = mean - current.mean
    if size >= MIN_DRAWS_PER_ALGORITHM * mean.shape[1]:
        transport = moment_transport(current, target)
        matrices, shift = matrices @ transport, (shift[:, None] @ transport)[:, 0]
    return matrices.astype(np.float32), (target.mean + shift)[:, None].astype(np.float32)


def _draw_noise(
    mixture: GridMixture, g: int, shape: tuple[int, ...], rng: np.random.Generator, dtype: Any
) -> NDArray[Any]:
    """Draw standard normal variables (draws, blocks, size) of a component, correlated if given."""
    if mixture.noise_transforms:
        correlate = mixture.noise_transforms[g]
        return correlate.transform(rng.standard_normal((shape[0], correlate.n_inputs), dtype))
    return rng.standard_normal(shape, dtype)


def _fill_noise(
    noise: NDArray[Any], mixture: GridMixture, g: int, rng: np.random.Generator
) -> None:
    """Fill an array (draws, blocks, size) with pairs of normal variables of opposite sign."""
    half = -(-len(noise) // 2)
    drawn = _draw_noise(mixture, g, (half, *noise.shape[1:]), rng, np.float64)
    noise[:half] = drawn
    np.negative(drawn[: len(noise) - half], out=noise[half:], casting="same_kind")


class _MappedNoise(NamedTuple):
    """Utilities of draws, and the log(posterior / proposal density) of each draw and block."""

    utilities: Floats  # (D, T, n)
    log_ratio: Floats  # (D, B)
    skew_shift: Floats | float  # (D, T, n), or 0


def _map_noise(one: ConditionalGaussian, noise: Floats) -> _MappedNoise:
    """Map standard normal variables to utilities, with the skew transformation if there is one."""
    if one.skew is None:
        noise = noise[..., : one.shape[1]]
        utilities = one.to_utilities(noise)
        return _MappedNoise(utilities, one.log_ratio(noise, utilities), 0.0)
    skewed = one.skew.transform(noise)
    utilities = one.to_utilities(skewed.noise)
    log_ratio = one.log_ratio(skewed.noise, utilities) + skewed.log_ratio
    return _MappedNoise(utilities, log_ratio, skewed.utility_shift)


def _map_mixed_noise(
    components: Sequence[ConditionalGaussian], component: Ints, noise: Floats
) -> tuple[Floats, Floats]:
    """Return utilities and log(posterior / proposal) of draws from several mixture components."""
    utilities = np.empty((len(noise), *components[0].mean.shape))
    log_ratio = np.empty(noise.shape[:2])
    for g in np.unique(component):
        mine = component == g
        utilities[mine], log_ratio[mine] = _map_noise(components[g], noise[mine])[:2]
    return utilities, log_ratio


def allocate_draws(probability: Floats, draws: int) -> Ints:
    """Return a mixture component for each draw, in proportion to the components' probabilities.

    >>> allocate_draws(np.array([0.5, 0.25, 0.25]), 4)
    array([0, 0, 1, 2])
    """
    ends = np.round(np.cumsum(probability) / np.sum(probability) * draws).astype(np.intp)
    return np.repeat(np.arange(len(probability)), np.diff(ends, prepend=0))


def evidence_correction(component: ConditionalGaussian, rng: np.random.Generator) -> Floats:
    """Estimate log(marginal likelihood / its Laplace approximation) by importance sampling."""
    noise = rng.standard_normal((PILOT_DRAWS, *component.shape))
    return logsumexp(_map_noise(component, noise).log_ratio, axis=0) - np.log(PILOT_DRAWS)


def compute_log_shifts(mixture: GridMixture, rng: np.random.Generator) -> Floats:
    """Return shifts of log weights (components, blocks), so that each block has its own weights.

    Given hyperparameters blocks are independent. A draw of one block should therefore not carry the
    ratios of the other blocks, only their evidence for its component. That evidence is corrected
    with draws that are the same for all components, so that most of the noise cancels. With a
    single block, or a single component, the ratios contain it already.
    """
    components, n_blocks = mixture.components, mixture.components[0].shape[0]
    shift = np.repeat(-mixture.log_correction[:, None], n_blocks, axis=1)
    if len(components) > 1 and n_blocks > 1:
        seed = int(rng.integers(2**63))
        for g, component in enumerate(components):
            own = evidence_correction(component, np.random.default_rng(seed))
            shift[g] += own.sum() - own
    return shift - shift.max()


def _iterate_components(component: Ints) -> Iterator[tuple[int, slice]]:
    """Yield each mixture component with slices of its draws, which are sorted by component."""
    ends = np.flatnonzero(np.diff(component, prepend=-1, append=-1))
    for start, stop in pairwise(ends):
        for begin in range(start, stop, MAX_DRAWS_AT_ONCE):
            yield int(component[start]), slice(begin, min(begin + MAX_DRAWS_AT_ONCE, stop))


class CoupledBlocks(NamedTuple):
    """Blocks of times fitted apart; their draws stay correlated if HMC moves only some of them.

    The others are standard normal. They rotate by the same angle with the same momentum, which
    leaves the normal distribution and the correlation with the moved blocks unchanged.
    """

    is_moved: NDArray[np.bool_]  # (B,)
    sample: ImportanceSample
    noise_transforms: Sequence[NoiseTransform]

    def draw_momentum(self, component: Ints, rng: np.random.Generator) -> Floats:
        """Draw a momentum for HMC with the correlation that the standardised variables have."""
        momentum = np.empty((len(component), *self.sample.noise.shape[1:]))
        for g in np.unique(component):
            mine = np.flatnonzero(component == g)
            correlate = self.noise_transforms[g]
            normal = rng.standard_normal((len(mine), correlate.n_inputs))
            momentum[mine] = correlate.transform(normal)
        return momentum

    def select_draws(self, share: Floats, draws: int) -> tuple[Ints, Floats]:
        """Select draws from each component by its share; return their components and noise."""
        sample = self.sample
        available = np.bincount(sample.component, minlength=len(share))
        component = allocate_draws(share * (available > 0), draws)
        first = np.searchsorted(sample.component, component)
        wanted = np.bincount(component, minlength=len(share))
        offset = np.concatenate(
            [np.arange(k) * m // max(k, 1) for k, m in zip(wanted, available, strict=True)]
        )
        return component, sample.noise[first + offset].astype(np.float64)


class HmcDraws(NamedTuple):
    """Draws of equal weight that were moved by HMC."""

    component: Ints
    utilities: Singles
    acceptance: float
    start_correlation: float  # the largest of a coordinate with its starting value
    coupled_noise: Singles  # (D, blocks, size): noise of the coupled blocks that were not moved


def move_by_hmc(
    mixture: GridMixture,
    sample: ImportanceSample,
    rng: np.random.Generator,
    *,
    share: Floats,
    n_chains: int,
    n_kept: int,
    coupled: CoupledBlocks | None = None,
) -> HmcDraws:
    """Move draws by HMC until they are independent of their start; keep the last ``n_kept`` sweeps.

    ``share`` (G,) is the share of draws in each component, in which they stay.
    """
    if coupled is None:
        component, noise = resample_blocks(sample, share, n_chains, rng)
    else:
        component, noise = coupled.select_draws(share, n_chains)
    chains = _Chains(mixture, component, noise, rng, coupled)
    step, start_correlation = _burn_in(chains)
    kept, acceptance = [], []
    for _ in range(n_kept):
        acceptance.append(chains.sweep(step))
        utilities, _ = _map_mixed_noise(mixture.components, chains.component, chains.noise)
        utilities, still = utilities.astype(np.float32), chains.still_noise.astype(np.float32)
        kept.append((chains.component, utilities, still))
    component, utilities, still = (np.concatenate(values) for values in zip(*kept, strict=True))
    return HmcDraws(
        component=component,
        utilities=utilities,
        acceptance=float(np.mean(acceptance)),
        start_correlation=start_correlation,
        coupled_noise=still,
    )


def _burn_in(chains: "_Chains") -> tuple[float, float]:
    """Sweep until the chains are independent of their start; return step size and correlation."""
    start, step, correlation = chains.noise, 1.2 * chains.noise.shape[-1] ** -0.25, 1.0
    for k in range(MAX_BURN_IN):
        acceptance = chains.sweep(step)
        step = adjust_step(step, acceptance, *chains.acceptance_range)
        correlation = _max_start_correlation(start, chains.noise)
        if k >= MIN_BURN_IN and correlation <= MAX_START_CORRELATION:
            break
    return step, correlation


class _Chains:
    """The states of many HMC chains: standardised variables and a mixture component each.

    Of coupled blocks, those that are not moved stay standard normal.
    """

    def __init__(
        self,
        mixture: GridMixture,
        component: Ints,
        noise: Floats,
        rng: np.random.Generator,
        coupled: CoupledBlocks | None,
    ) -> None:
        moved = np.ones(noise.shape[1], dtype=bool) if coupled is None else coupled.is_moved
        self.component, self.rng, self.coupled = component, rng, coupled
        self.noise, self.still_noise = noise[:, moved], noise[:, ~moved]
        self.target = _build_target(mixture.components, component)
        # A rejected proposal desynchronises coupled blocks, so rejections must be rare.
        self.acceptance_range = (0.7, 0.9) if moved.all() else (0.95, 0.99)

    def sweep(self, step: float) -> float:
        """Move all chains once; return the mean acceptance probability of the proposals."""
        moved = still = None
        if self.coupled is not None:
            momentum = self.coupled.draw_momentum(self.component, self.rng)
            moved, still = momentum[:, self.coupled.is_moved], momentum[:, ~self.coupled.is_moved]
        self.noise, acceptance, path = hmc_sweep(self.target, self.noise, step, self.rng, moved)
        if still is not None:  # of a standard normal, Hamilton's equations are a rotation
            self.still_noise = np.cos(path) * self.still_noise + np.sin(path) * still
        return acceptance


def _build_target(components: Sequence[ConditionalGaussian], component: Ints) -> Target:
    """Return the posterior density of draws' standardised variables, given their components."""

    def log_density(noise: Floats) -> Floats:
        log_ratio = _map_mixed_noise(components, component, noise)[1]
        return log_ratio - 0.5 * np.sum(noise**2, axis=-1)

    return Target(log_density, lambda noise: _compute_gradient(components, component, noise))


def component_shares(component: Ints, weight: Floats, n_components: int) -> Floats:
    """Return the share of each mixture component in weighted draws."""
    return np.bincount(component, weight.mean(axis=1), minlength=n_components).astype(np.float64)


def resample_blocks(
    sample: ImportanceSample, share: Floats, draws: int, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Resample each block of times separately by its weights, within each mixture component.

    Returns components (draws,) and noise (draws, B, size) of equal weight.
    """
    available = np.bincount(sample.component, minlength=len(share)) > 0
    component = allocate_draws(share * available, draws)
    _, n_blocks, size = sample.noise.shape
    noise = np.empty((draws, n_blocks, size))
    for g in np.unique(component):
        mine, rows = np.flatnonzero(component == g), np.flatnonzero(sample.component == g)
        for b in range(n_blocks):
            index = systematic_resample(sample.weight[rows, b], len(mine), rng.random())
            noise[mine, b] = sample.noise[rng.permutation(rows[index]), b]
    return component, noise


def _compute_gradient(
    components: Sequence[ConditionalGaussian], component: Ints, noise: Floats
) -> Floats:
    """Return the gradient of the log-posterior for draws from several mixture components."""
    gradient = -noise  # coordinates that a component does not have are standard normal
    for g in np.unique(component):
        mine, one = component == g, components[g]
        if one.skew is None:
            gradient[mine, :, : one.shape[1]] = one.gradient(noise[mine][..., : one.shape[1]])
        else:
            skewed = one.skew.transform(noise[mine])
            gradient[mine] = one.skew.pull_back_gradient(skewed, one.gradient(skewed.noise))
    return gradient


def _max_start_correlation(before: Floats, after: Floats) -> float:
    """Return the largest correlation of a coordinate with its start, minus the value by chance.

    Of K noise correlations over D draws the largest is about sqrt(2 log(2 K) / D), which is
    subtracted. Coordinates that do not vary have the correlation 1.
    """
    if np.any(np.ptp(after, axis=0) == 0) or np.any(np.ptp(before, axis=0) == 0):
        return 1.0
    before, after = before - before.mean(axis=0), after - after.mean(axis=0)
    scale = np.sqrt(np.sum(before**2, axis=0) * np.sum(after**2, axis=0))
    from_noise = np.sqrt(2 * np.log(2 * scale.size) / len(before))
    return float(np.max(np.abs(np.sum(before * after, axis=0) / scale)) - from_noise)
