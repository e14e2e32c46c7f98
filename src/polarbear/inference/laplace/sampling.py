"""Draws from the grid of Gaussian approximations, with as many importance weights as needed."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.inference.laplace.conditional import ConditionalGaussian
from polarbear.inference.laplace.independent import IndependentGaussian
from polarbear.inference.laplace.mixture import (
    GridMixture,
    ImportanceSample,
    component_shares,
    resample_noise,
    sample_mixture,
)
from polarbear.inference.psis import MAX_K_HAT

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MIN_DRAWS, USUAL_DRAWS, MAX_DRAWS = 1000, 6000, 16_000
"""Numbers of draws. The least is for independent times with large data and even weights."""

CHEAP_TERMS = 1e7
"""Terms of the likelihood over all draws up to which more draws cost little."""

SMALL_TERMS = 80
"""Terms of a likelihood so small that all draws get weights."""

CHEAP_WEIGHTED_TERMS = 3e5
"""Terms over all draws up to which more weights cost little, beside draws without weights."""

TARGET_STANDARD_ERROR, MAX_STANDARD_ERROR = 0.006, 0.009
"""Standard errors of a corrected probability: below the first there are enough draws, above the
second weights are not used. The final error is smaller, as corrections are shrunk by their noise.
"""

MAX_TRUSTED_ERROR = 0.02
"""The standard error of a probability above which a posterior is not trusted."""

MAX_WEIGHTED_TERMS = 4e9
"""Terms of the likelihood over the least number of draws beyond which draws have no weights."""

MAX_TERMS = 1e9
"""Terms of the likelihood over all draws beyond which no draws are added for precision."""

MAX_DOUBTFUL_SHARE = 0.1
"""Up to this share of times, a k-hat above its limit is measured again with more draws."""


class GridApproximation(NamedTuple):
    """Gaussian approximations of the posterior, one for each grid point of the hyperparameters."""

    mixture: GridMixture
    hyper: Mapping[str, Floats]  # the value of each hyperparameter at each point
    boundary_mass: float
    steps: Floats  # the steps of the grid as columns, in logarithms
    is_boundary: Bools  # (G,): whether a neighbour of the point is left out

    @property
    def components(self) -> Sequence[ConditionalGaussian]:
        """The Gaussian approximation at each grid point of the hyperparameters."""
        return self.mixture.components


def unreliable_blocks(sample: ImportanceSample, n_terms: int) -> Bools:
    """Return a mask of the independent blocks of times with unreliable importance weights."""
    # For larger data, draws that are somewhat too few are only reported.
    is_small = n_terms * MAX_DRAWS <= MAX_TERMS
    limit = MAX_STANDARD_ERROR if is_small else MAX_TRUSTED_ERROR
    return ~((sample.k_hat <= MAX_K_HAT) & (standard_errors(sample) <= limit))


def equal_weights(draws: int) -> Floats:
    """Return equal weights (draws, 1) that sum to 1."""
    return np.full((draws, 1), 1 / draws)


def boundary_share(grid: GridApproximation, sample: ImportanceSample) -> float:
    """Return the weighted share of draws from the edge of the grid of hyperparameters."""
    share = component_shares(sample.component, sample.weight, len(grid.components))
    return float(share[grid.is_boundary].sum() / share.sum())


def sample_until_precise(
    grid: GridApproximation,
    n_terms: int,
    draws: int | None,
    rng: np.random.Generator,
    measure_k_hat: Callable[[Bools], Floats],
) -> ImportanceSample:
    """Draw from the mixture, with more draws until the importance weights are precise enough.

    Of many times the k-hat of a few exceeds the limit by chance. It is measured again there, with
    more draws (``measure_k_hat``), so that not all times need them.
    """
    if draws is not None:
        return sample_mixture(grid.mixture, draws, rng)
    # Where times are correlated, joint statements over all times can only count draws.
    has_correlated_times = not has_independent_times(grid) or grid.mixture.noise_transforms
    needs_few = not has_correlated_times or len(grid.components[0].mean) == 1
    size = MIN_DRAWS if needs_few or n_terms * USUAL_DRAWS > MAX_TERMS else USUAL_DRAWS
    cheap = CHEAP_TERMS
    if count_curves(grid, n_terms):
        size, cheap = MIN_DRAWS, CHEAP_WEIGHTED_TERMS
    size = max(size, min(USUAL_DRAWS, int(cheap / max(1, n_terms))))
    sample = sample_mixture(grid.mixture, size, rng)
    doubtful = sample.k_hat > MAX_K_HAT
    if has_single_gaussian(grid) and 0 < doubtful.mean() <= MAX_DOUBTFUL_SHARE:
        k_hat = sample.k_hat.copy()
        k_hat[doubtful] = measure_k_hat(doubtful)
        sample = sample._replace(k_hat=k_hat)
    for more in (USUAL_DRAWS, MAX_DRAWS):
        is_precise = standard_errors(sample).max() <= TARGET_STANDARD_ERROR
        if (is_precise and sample.k_hat.max() <= MAX_K_HAT) or n_terms * more > MAX_TERMS:
            break
        if more > len(sample.component):
            sample = sample_mixture(grid.mixture, more, rng)
    return sample


def shift_to_mean(grid: GridApproximation, rng: np.random.Generator) -> GridApproximation:
    """Move the only Gaussian of a grid from the mode towards the posterior mean."""
    (one,) = grid.components
    return grid._replace(mixture=grid.mixture._replace(components=[one.shift_to_mean(rng)]))


def has_single_gaussian(grid: GridApproximation) -> bool:
    """Return whether there is one Gaussian at each time: no hyperparameters, independent times."""
    return len(grid.components) == 1 and isinstance(grid.components[0], IndependentGaussian)


def sample_without_weights(
    grid: GridApproximation, draws: int, rng: np.random.Generator
) -> tuple[GridApproximation, ImportanceSample]:
    """Draw from a Gaussian at the posterior mean, for data too large for importance weights."""
    grid = shift_to_mean(grid, rng)
    (one,) = grid.components
    component = np.zeros(draws, dtype=np.intp)
    utilities = resample_noise(grid.mixture, component, rng)
    no_noise = np.empty((draws, one.shape[0], 0), dtype=np.float32)
    k_hat = np.zeros(one.shape[0])
    sample = ImportanceSample(
        component=component,
        noise=no_noise,
        utilities=utilities,
        weight=equal_weights(draws),
        k_hat=k_hat,
        skew_shift=None,
    )
    return grid, sample


def count_curves(grid: GridApproximation, n_terms: int) -> int:
    """Return how many draws a posterior has beside those with weights; 0 if all have weights.

    Times must be correlated by a copula, or be a single one, and have one Gaussian each.
    """
    has_copula, n_times = bool(grid.mixture.noise_transforms), len(grid.components[0].mean)
    is_suited = has_single_gaussian(grid) and (has_copula or n_times == 1)
    if n_terms <= SMALL_TERMS or not is_suited:
        return 0
    return USUAL_DRAWS if n_terms * USUAL_DRAWS <= MAX_TERMS else MIN_DRAWS


def has_independent_times(grid: GridApproximation) -> bool:
    """Return whether the utilities at different times are independent a posteriori."""
    return grid.components[0].shape[0] > 1 and len(grid.components) == 1


def standard_errors(sample: ImportanceSample) -> Floats:
    """Return for each block of times the largest standard error of a weighted probability.

    With weights w it is sqrt(sum w^2 - 1/D) / 2, that of a probability of one half.
    """
    excess = np.sum(sample.weight**2, axis=0) - 1 / len(sample.weight)
    return 0.5 * np.sqrt(np.maximum(excess, 0.0))
