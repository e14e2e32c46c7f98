"""The Laplace approximation given hyperparameters: the posterior mode and the Gaussian around it.

Given hyperparameters the log-posterior is concave, so damped Newton steps reach its mode. Three
kinds of linear algebra implement it: ``dense.py`` for any Gaussian prior, ``banded.py`` for priors
with a banded precision, and ``independent.py`` for priors under which times are independent.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.errors import FitError
from polarbear.inference.laplace.skew import SkewTransform, multiply_blocks
from polarbear.inference.plackett_luce.likelihood import Likelihood

Floats = NDArray[np.float64]

CONVERGED_DECREMENT = 1e-10
"""A block is at its mode when a further Newton step would gain less than half of this."""

MAX_DECREMENT = 1e-4
"""Decrements up to this are accepted where rounding allows no better."""

RELATIVE_ROUNDING = 1e-13
"""Differences of log-densities below this, relative to their size, are rounding errors."""

MAX_DENSE_ALGORITHMS = 150
"""With more algorithms, products and decompositions of n x n matrices are avoided."""

MAX_NEWTON_STEPS = 100


class ConditionalGaussian(ABC):
    """A Gaussian approximation of the posterior of utilities, given hyperparameters.

    In coordinates called noise, of shape (draws, blocks, size), it is standard normal. With a
    posterior precision P = L L' of the parameters x and their mode m, noise is L' (x - m). Blocks
    are independent: one for each time under an independent prior, else a single one.

    Attributes
    ----------
    log_evidence
        Laplace's approximation of the logarithm of the integral over x.
    mean
        The utilities at the mode (T, n).
    shape
        The number of blocks, and the size of each.
    warm_start
        The mode in the form that the same method accepts as a start.
    decrement
        The largest Newton decrement over the blocks.
    skew
        The directions along which noise is skewed, if any.
    """

    log_evidence: float
    mean: Floats
    shape: tuple[int, int]
    warm_start: Floats
    decrement: float
    skew: SkewTransform | None = None

    @cached_property
    def covariance(self) -> Floats:
        """The covariance matrix of the utilities at each time (times, algorithms, algorithms)."""
        return self._compute_covariance()

    @abstractmethod
    def _compute_covariance(self) -> Floats:
        """Return the covariance matrix of the utilities at each time."""

    @abstractmethod
    def to_utilities(self, noise: Floats) -> Floats:
        """Map standard normal variables (draws, blocks, size) to the utilities of each draw."""

    @abstractmethod
    def log_ratio(self, noise: Floats, utilities: Floats) -> Floats:
        """Return log(posterior / approximation) of each draw and block, up to a constant."""

    @abstractmethod
    def gradient(self, noise: Floats) -> Floats:
        """Return the gradient of the log-posterior with respect to the standardised variables."""

    @abstractmethod
    def gradient_to_noise(self, gradient: Floats) -> Floats:
        """Convert gradients with respect to utilities to those for standardised variables."""

    def noise_to_utilities(self) -> Floats:
        """Return the matrices (times, size, algorithms) that map noise to utilities at each time.

        For Gaussians that are independent at each time.
        """
        raise FitError("noise of one time is needed, but here all times have their noise together")

    def shift_to_mean(self, rng: np.random.Generator) -> "ConditionalGaussian":  # noqa: ARG002
        """Return the Gaussian with its mean moved from the mode towards the posterior mean."""
        raise FitError("the mean is moved only for Gaussians that are independent at each time")

    def prior_to_noise(self, normal: Floats) -> Floats:  # noqa: ARG002
        """Map standard normal variables to the prior's part of noise with sandwich covariance.

        It is L^-1 Q^1/2 z with prior precision Q and posterior precision L L'.
        """
        raise FitError(
            "the sandwich covariance needs a prior that correlates times, but here times are "
            "independent"
        )

    def draw(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """Draw utilities from the approximation; return them and log(posterior / approximation)."""
        noise = rng.standard_normal((size, *self.shape))
        utilities = self.to_utilities(noise)
        return utilities, self.log_ratio(noise, utilities)


class NewtonStep(NamedTuple):
    """A Newton step for each independent block of parameters."""

    direction: Floats  # (B, size)
    decrement: Floats  # (B,): g' H^-1 g, twice the gain of the quadratic model
    utility_range: Floats  # (B,): the largest range over algorithms of the change in utilities


class Mode(NamedTuple):
    """The point at which a log-density is largest, for each independent block of parameters."""

    state: Floats  # (B, size)
    value: Floats  # (B,)
    decrement: float  # the largest of all blocks


def damped_newton(
    state: Floats,
    value: Callable[[Floats], Floats],
    step: Callable[[Floats], NewtonStep],
    tolerance: float = CONVERGED_DECREMENT,
) -> Mode:
    """Maximise the log-posterior of each block of ``state`` (blocks, size) by damped Newton steps.

    Blocks are independent: each has its own step size, and stops by itself when the decrement is
    below ``tolerance``. A full step is taken
    where it gains a quarter of the decrement. A difference within ``RELATIVE_ROUNDING`` counts as a
    gain, so that rounding cannot stall the steps. Otherwise the step size is log(1 + r) / r, with r
    the range of the change in utilities. It always gains: along a line the third derivative of a
    Plackett-Luce log-likelihood is at most r times its curvature, so the slope after a share s of
    the step is at least decrement * (1 - (exp(r s) - 1) / r), which is positive up to that size
    (generalised self-concordance, Sun and Tran-Dinh 2019). A Gaussian prior has no third
    derivative, and a Dirichlet prior is a Plackett-Luce likelihood.
    """
    current = value(state)
    previous, stopped = np.full(len(current), np.inf), np.zeros(len(current), dtype=bool)
    for _ in range(MAX_NEWTON_STEPS):
        direction, decrement, utility_range = step(state)
        if not np.all(decrement > -CONVERGED_DECREMENT):
            raise np.linalg.LinAlgError(
                "the curvature of the log-posterior is not positive definite; try another prior, "
                "or method='nuts'"
            )
        # Near the mode a step squares the error. One that does not even halve it is rounding.
        stopped |= (decrement < MAX_DECREMENT) & ~(decrement < 0.5 * previous)
        stopped |= decrement < tolerance
        previous = decrement
        if stopped.all():
            break
        full = value(state + direction)
        gains = full >= current + 0.25 * decrement - RELATIVE_ROUNDING * (1 + np.abs(current))
        damped = np.log1p(utility_range) / np.maximum(utility_range, 1e-300)
        size = np.where(gains, 1.0, damped)
        state = np.where(stopped[:, None], state, state + size[:, None] * direction)
        current = np.where(stopped, current, full) if (gains | stopped).all() else value(state)
    largest = float(previous.max(initial=0.0))
    if not largest <= MAX_DECREMENT:
        raise FitError(
            f"Newton's method did not converge in {MAX_NEWTON_STEPS} steps "
            f"(decrement {largest:.2g}); try another prior, or method='nuts'"
        )
    return Mode(state, current, largest)


def approximate_utilities(rankings: Rankings) -> Floats:
    """Return utilities (times, algorithms) near the mode, from the mean positions of algorithms.

    With p the mean share of a comparison's algorithms that are ahead, a
    utility is -1.5 log(p / (1 - p)). The factor saves most Newton steps: with 7 algorithms three
    of eight. Partial orders have no positions, and start from 0.

    >>> from polarbear.simulation import rank_costs
    >>> approximate_utilities(rank_costs(np.array([[[1.0, 2.0, 3.0]] * 9]))).round(1)
    array([[ 2.1, -0. , -2.1]])
    """
    n, size = len(rankings.algorithms), np.diff(rankings.offset)
    utilities = np.zeros((len(rankings.times), n))
    if rankings.ties == "partial":
        return utilities
    comparison = np.repeat(np.arange(len(size)), size)
    weight = rankings.weight[comparison]
    for row, position in zip(utilities, rankings.position, strict=True):
        known = position != UNKNOWN
        n_known = np.bincount(comparison, known, minlength=len(size))[comparison]
        share = np.where(known, (position + 0.5) / np.maximum(n_known, 1), 0.0)
        ahead, total = (np.bincount(rankings.algorithm, weight * x, n) for x in (share, known))
        p = (ahead + 0.5) / (total + 1)
        row[:] = -1.5 * np.log(p / (1 - p))
    return utilities - utilities.mean(axis=1, keepdims=True)


def likelihood_remainder(likelihood: Likelihood, mode: Floats) -> Callable[[Floats], Floats]:
    """Return the remainder of the log-likelihood after its second-order expansion at the mode.

    The result maps utilities (D, T, n) to remainders (D, T). A Gaussian prior is expanded exactly,
    so the sum of the remainders over times is the log-ratio of posterior to approximation.
    """
    fast = likelihood.to_single_precision()
    dtype = np.float64 if fast is likelihood else np.float32
    centre: Any = mode[None].astype(dtype)
    top = fast.value(centre)[0]
    gradient, half_curvature = likelihood.gradient(mode), 0.5 * likelihood.curvature(mode)
    gradient, half_curvature = gradient.astype(dtype), half_curvature.astype(dtype)

    def remainder(mu: Any) -> Floats:
        mu = mu.astype(dtype, copy=False)
        away = mu - centre
        slope = multiply_blocks(away, half_curvature) - gradient
        rest = fast.value(mu) - top + np.einsum("dtn,dtn->dt", slope, away)
        return rest.astype(np.float64)

    return remainder
