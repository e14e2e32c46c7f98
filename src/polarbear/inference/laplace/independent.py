"""The Laplace approximation with a Dirichlet prior at each time, for all times at once.

In log-utilities a Dirichlet prior acts as data: alpha choices of each algorithm from all of them.
The log-posterior is concave, and times are independent.
"""

from copy import copy
from functools import cached_property
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from polarbear.errors import FitError
from polarbear.inference.laplace.conditional import (
    CONVERGED_DECREMENT,
    MAX_DECREMENT,
    MAX_DENSE_ALGORITHMS,
    ConditionalGaussian,
    Mode,
    NewtonStep,
    damped_newton,
)
from polarbear.inference.laplace.skew import (
    MAX_SEARCHED_DIRECTIONS,
    MAX_SKEW_DIRECTIONS,
    find_skew,
    multiply_blocks,
)
from polarbear.inference.plackett_luce.likelihood import Likelihood
from polarbear.inference.plackett_luce.ranking_likelihood import RankingLikelihood
from polarbear.priors.base import helmert_basis

Floats = NDArray[np.float64]

MAX_MM_STEPS, MM_TOLERANCE = 60, 1e-5
"""Steps of the MM algorithm before Newton steps, if those have large matrices, and the change of
log-utilities at which they end."""

MAX_SKEW_TERMS = 3_000_000
"""Terms of the likelihood up to which directions of skewness are searched."""

MAX_SINGLE_RANGE = 80.0
"""The range of utilities up to which their exponentials do not vanish in single precision."""

SKEW_SHIFTS, SKEW_SHIFT_PAIRS = 2, 16
"""How often skewed draws of many algorithms are shifted, each time by a mean over draw pairs."""

SHIFT_PAIRS = 8
"""Pairs of draws from which the distance of mean and mode is estimated."""


def fit_independent(
    likelihood: Likelihood,
    alpha: float,
    n_times: int,
    n: int,
    start: Floats | None = None,
    *,
    precise: bool = True,
) -> "IndependentGaussian":
    """Fit the Laplace approximation at each time, with the prior Dirichlet(alpha, ..., alpha).

    ``start`` (T, n) are utilities to start from, such as those of an earlier fit. If not
    ``precise``, the mode may be off by a hundredth of a posterior standard deviation, and skewness
    is not searched.
    """
    posterior = _DirichletPosterior(likelihood, alpha, n)
    tolerance = CONVERGED_DECREMENT if precise else MAX_DECREMENT
    try:
        mode = _find_mode(posterior, np.zeros((n_times, n)) if start is None else start, tolerance)
    except (FitError, np.linalg.LinAlgError):
        if start is None:
            raise
        mode = _find_mode(posterior, np.zeros((n_times, n)), tolerance)
    return IndependentGaussian(posterior, mode, find_skewness=precise)


class IndependentGaussian(ConditionalGaussian):
    """Gaussian approximations of the posterior, one at each time, independent of each other."""

    def __init__(
        self, posterior: "_DirichletPosterior", mode: Mode, *, find_skewness: bool = True
    ) -> None:
        n = posterior.n
        lower = np.linalg.cholesky(posterior.curvature(mode.state))
        posterior.latest = None
        log_det = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        log_det += posterior.coordinates.log_det
        inverse = np.asarray(np.linalg.inv(lower), dtype=np.float64)
        evidence = mode.value + 0.5 * (n - 1) * log(2 * np.pi) - 0.5 * log_det
        self.log_evidence = float(evidence.sum())
        self.mean = self.warm_start = mode.state
        self.shape = (len(mode.state), n - 1)
        self.decrement = mode.decrement
        self._posterior = posterior
        self._noise_to_utilities = posterior.coordinates.expand(inverse)  # (T, n - 1, n)
        self._gradient_to_noise = np.swapaxes(inverse, 1, 2)
        if find_skewness and posterior.likelihood.n_terms <= MAX_SKEW_TERMS:
            self.skew = find_skew(
                lambda direction: posterior.third_derivative(
                    self.mean, direction @ self._noise_to_utilities
                ),
                _propose_skewed(self.mean, self._noise_to_utilities),
                self._noise_to_utilities,
            )
            if n - 1 > MAX_SEARCHED_DIRECTIONS:
                for seed in range(SKEW_SHIFTS):
                    self.mean = self.mean + self._find_skewed_shift(seed)

    def _find_skewed_shift(self, seed: int) -> Floats:
        """Return the shift of utilities (T, n) that brings the skewed draws near the posterior.

        It is the mean of the gradient of the log-ratio of both densities, as in
        :meth:`shift_to_mean`. Shifting the logarithm of a gamma variable changes its rate: that of
        an algorithm that never won depends on the others, whose ratings are uncertain.
        """
        if self.skew is None:
            return np.zeros_like(self.mean)
        half = np.random.default_rng(seed).standard_normal((SKEW_SHIFT_PAIRS, *self.shape))
        skewed = self.skew.transform(np.concatenate([half, -half]))
        gradient = self.gradient(skewed.noise) - self.skew.compute_score(skewed)
        gradient *= np.abs(self.skew.third_derivative).max(axis=1, keepdims=True) > 0
        shift = gradient.mean(axis=0, keepdims=True)
        return multiply_blocks(shift, self._noise_to_utilities)[0]

    def _compute_covariance(self) -> Floats:
        return self._noise_to_utilities.swapaxes(1, 2) @ self._noise_to_utilities

    def to_utilities(self, noise: Floats) -> Floats:
        """Map standard normal variables at each time to utilities (draws, times, algorithms)."""
        return self.mean + multiply_blocks(noise, self._noise_to_utilities)

    def noise_to_utilities(self) -> Floats:
        """Return the matrices (times, size, algorithms) of the linear part of that map."""
        return self._noise_to_utilities

    def log_ratio(self, noise: Floats, utilities: Any) -> Floats:
        """Return log(posterior / approximation) of each draw and time, up to a constant."""
        fast, top, dtype = self._fast_posterior
        gain = fast.value(utilities.astype(dtype)) - top
        return gain + 0.5 * np.einsum("...i,...i->...", noise, noise)

    @cached_property
    def _fast_posterior(self) -> tuple["_DirichletPosterior", Floats, Any]:
        """The posterior in single precision where it suffices, its value at the mode, its type.

        The value at the mode is rounded like those of draws.
        """
        likelihood = self._posterior.likelihood
        fast = likelihood.to_single_precision()
        dtype = np.float64 if fast is likelihood else np.float32
        posterior = _DirichletPosterior(fast, self._posterior.alpha, self._posterior.n)
        at_mode: Any = self.warm_start[None].astype(dtype)
        return posterior, posterior.value(at_mode)[0], dtype

    def gradient(self, noise: Floats) -> Floats:
        """Return the gradient of the log-posterior with respect to the standardised variables."""
        posterior, utilities = self._posterior, self.to_utilities(noise)
        if np.ptp(utilities) < MAX_SINGLE_RANGE:
            # HMC corrects rounding by its acceptance test.
            posterior, _, dtype = self._fast_posterior
            utilities = utilities.astype(dtype)
        return multiply_blocks(posterior.gradient(utilities), self._gradient_to_noise)

    def gradient_to_noise(self, gradient: Floats) -> Floats:
        """Convert gradients with respect to utilities to those for standardised variables."""
        return multiply_blocks(
            self._posterior.coordinates.restrict(gradient), self._gradient_to_noise
        )

    def shift_to_mean(self, rng: np.random.Generator) -> "IndependentGaussian":
        """Return the Gaussian with its mean moved from the mode towards the posterior mean.

        By Stein's identity E[z r(z)] = E[grad r(z)] for noise z. With r the log-ratio of posterior
        to Gaussian, this is to first order the mean of z under the posterior. It is estimated from
        pairs of draws of opposite sign, whose linear terms cancel. Unlike importance weights its
        error does not grow with the number of algorithms.
        """
        half = rng.standard_normal((SHIFT_PAIRS, *self.shape))
        total: Floats = np.zeros(self.shape)
        for one in half:
            total += self.gradient(one[None])[0] + self.gradient(-one[None])[0]
        shifted = copy(self)
        shift = total[None] / (2 * SHIFT_PAIRS)
        shifted.mean = self.mean + multiply_blocks(shift, self._noise_to_utilities)[0]
        return shifted


class _Helmert:
    """Orthonormal coordinates of centred utilities, by the Helmert basis."""

    log_det = 0.0

    def __init__(self, n: int) -> None:
        self.basis = helmert_basis(n)

    def restrict(self, gradient: Floats) -> Floats:
        """Return the gradient with respect to the coordinates."""
        return gradient @ self.basis

    def restrict_curvature(self, curvature: Floats) -> Floats:
        """Return the curvature with respect to the coordinates."""
        return self.basis.T @ curvature @ self.basis

    def expand(self, coordinates: Floats) -> Floats:
        """Return the centred utilities of coordinates (..., n - 1)."""
        return coordinates @ self.basis.T


class _Differences:
    """Differences of utilities to the last algorithm: coordinates without matrix products.

    The curvature of the last algorithm follows from the others, because its rows sum to zero. The
    determinant is that of orthonormal coordinates divided by n.
    """

    def __init__(self, n: int) -> None:
        self.log_det = log(n)

    def restrict(self, gradient: Floats) -> Floats:
        """Return the gradient with respect to the coordinates."""
        return gradient[..., :-1] - gradient.mean(axis=-1, keepdims=True)

    def restrict_curvature(self, curvature: Floats) -> Floats:
        """Return the curvature with respect to the coordinates."""
        return curvature[:, :-1, :-1]

    def expand(self, coordinates: Floats) -> Floats:
        """Return the centred utilities of coordinates (..., n - 1)."""
        utilities = np.zeros((*coordinates.shape[:-1], coordinates.shape[-1] + 1))
        utilities[..., :-1] = coordinates
        utilities -= utilities.mean(axis=-1, keepdims=True)
        return utilities


class _DirichletPosterior:
    """The log-posterior of utilities at each time under a Dirichlet prior.

    Gradient and curvature are by coordinates (T, n - 1) of centred utilities.
    """

    def __init__(self, likelihood: Likelihood, alpha: float, n: int) -> None:
        self.likelihood, self.alpha, self.n = likelihood, alpha, n
        self.coordinates = _Helmert(n) if n <= MAX_DENSE_ALGORITHMS else _Differences(n)
        # Density of the coordinates: theta = softmax(mu) has the Jacobian sqrt(n) prod theta.
        self.latest: tuple[Floats, Floats] | None = None  # where the curvature is known, and it
        self.normaliser = lgamma(n * alpha) - n * lgamma(alpha) + 0.5 * log(n)

    def value(self, mu: Floats) -> Floats:
        ones = np.ones(self.n, dtype=mu.dtype)  # products are faster than sums of a few
        prior = self.alpha * (mu @ ones - self.n * _log_sum_exp(mu, ones)) + self.normaliser
        return self.likelihood.value(mu) + prior

    def gradient(self, mu: Floats) -> Floats:
        return self.coordinates.restrict(self.utility_gradient(mu))

    def utility_gradient(self, mu: Floats) -> Floats:
        prior = self.alpha * (1 - self.n * np.exp(_log_softmax(mu)))
        return self.likelihood.gradient(mu) + prior

    def curvature(self, mu: Floats) -> Floats:
        if self.latest is not None and np.array_equal(self.latest[0], mu):
            return self.latest[1]
        theta = np.exp(_log_softmax(mu))
        whole = self.likelihood.curvature(mu)
        step = 1 if self.n > MAX_DENSE_ALGORITHMS else len(theta)  # large matrices time by time
        for start in range(0, len(theta), step):
            some = slice(start, start + step)
            row = self.n * self.alpha * theta[some]
            whole[some] -= row[:, :, None] * theta[some, None, :]
            whole[some, range(self.n), range(self.n)] += row
        restricted = self.coordinates.restrict_curvature(whole)
        self.latest = (mu.copy(), restricted)
        return restricted

    def third_derivative(self, mode: Floats, line: Floats) -> Floats:
        """Return third derivatives of the log-posterior along lines through the mode of each time.

        With slope s along a line and s(0) = 0 at the mode: (s(h) + s(-h)) / h^2.
        """
        h, lines = 0.3, line.swapaxes(0, 1)
        ends = np.concatenate([mode + h * lines, mode - h * lines])
        slope = self.utility_gradient(ends)
        up, down = np.sum(slope * np.concatenate([lines, lines]), axis=-1).reshape(2, -1, len(mode))
        return ((up + down) / h**2).T


def _find_mode(posterior: _DirichletPosterior, start: Floats, tolerance: float) -> Mode:
    """Return the posterior mode at each time, by damped Newton steps."""
    if posterior.n > MAX_DENSE_ALGORITHMS and isinstance(posterior.likelihood, RankingLikelihood):
        start = _minorise_maximise(posterior, posterior.likelihood.wins, start)

    def step(mu: Floats) -> NewtonStep:
        curvature = posterior.curvature(mu)  # first, as the gradient is then known in part
        gradient = posterior.gradient(mu)
        along = _solve(curvature, gradient)
        direction = posterior.coordinates.expand(along)
        return NewtonStep(direction, np.sum(gradient * along, axis=1), np.ptp(direction, axis=1))

    centred = start - start.mean(axis=1, keepdims=True)
    return damped_newton(centred, posterior.value, step, tolerance)


def _minorise_maximise(posterior: _DirichletPosterior, wins: Floats, mu: Floats) -> Floats:
    """Return utilities after some steps of the MM algorithm (Hunter 2004), which cost a gradient.

    Each step multiplies a rating by the number of its choices divided by their expected number;
    the Dirichlet prior adds alpha choices from all algorithms.
    """
    chosen = wins + posterior.alpha
    for _ in range(MAX_MM_STEPS):
        expected = np.maximum(chosen - posterior.utility_gradient(mu), 1e-300)
        change = np.log(chosen / expected)
        mu = mu + change
        mu = mu - mu.mean(axis=1, keepdims=True)
        if np.ptp(change, axis=1).max() < MM_TOLERANCE:
            break
    return mu


def _solve(matrices: Floats, vectors: Floats) -> Floats:
    """Solve a system of linear equations for each time; by Cholesky factors if they are large."""
    if matrices.shape[1] < MAX_DENSE_ALGORITHMS:
        solved = np.linalg.solve(matrices, vectors[..., None])[..., 0]
        return np.asarray(solved, dtype=np.float64)
    pairs = zip(matrices, vectors, strict=True)
    return np.stack([cho_solve(cho_factor(matrix), vector) for matrix, vector in pairs])


def _propose_skewed(mode: Floats, noise_to_utilities: Floats) -> Floats:
    """Return directions (times, directions, size) along which the posterior may be skewed.

    If an algorithm always beats the next one, their gap has a long tail. With many algorithms, each
    that never beats another has one of its own. Of very many, those at both ends are returned.
    """
    order = np.argsort(mode, axis=1)
    if mode.shape[1] > MAX_SKEW_DIRECTIONS:
        most = 3 * MAX_SKEW_DIRECTIONS // 4
        order = np.concatenate([order[:, :most], order[:, most - MAX_SKEW_DIRECTIONS :]], axis=1)
    own = np.take_along_axis(noise_to_utilities, order[:, None, :], axis=2).swapaxes(1, 2)
    return np.diff(own, axis=1) if mode.shape[1] - 1 <= MAX_SEARCHED_DIRECTIONS else own


def _log_sum_exp(mu: Floats, ones: Floats) -> Floats:
    """Return log sum exp(mu) over algorithms; large utilities are shifted to avoid overflow."""
    top = mu.max(axis=-1) if np.abs(mu).max(initial=0.0) > 80 else 0.0
    return np.log(np.exp(mu - np.expand_dims(top, -1)) @ ones) + top


def _log_softmax(mu: Floats) -> Floats:
    """Return the logarithms of the ratings that utilities imply."""
    mu = mu - mu.max(axis=-1, keepdims=True)
    return mu - np.log(np.exp(mu).sum(axis=-1, keepdims=True))
