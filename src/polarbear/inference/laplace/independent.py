"""The Laplace approximation with a Dirichlet prior at each time, for all times at once.

In log-utilities a Dirichlet prior acts as data: alpha choices of each algorithm from all of them.
The log-posterior is concave, and times are independent.
"""

from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.errors import FitError
from polarbear.inference.laplace.conditional import (
    ConditionalGaussian,
    Mode,
    NewtonStep,
    damped_newton,
)
from polarbear.inference.laplace.skew import MAX_SKEW_DIRECTIONS, find_skew, multiply_blocks
from polarbear.inference.plackett_luce.likelihood import Likelihood
from polarbear.priors.base import helmert_basis

Floats = NDArray[np.float64]


def fit_independent(
    likelihood: Likelihood, alpha: float, n_times: int, n: int, start: Floats | None = None
) -> "IndependentGaussian":
    """Fit the Laplace approximation at each time, with the prior Dirichlet(alpha, ..., alpha).

    ``start`` (T, n) are utilities to start from, such as those of an earlier fit.
    """
    posterior = _DirichletPosterior(likelihood, alpha, n)
    try:
        mode = _find_mode(posterior, np.zeros((n_times, n)) if start is None else start)
    except (FitError, np.linalg.LinAlgError):
        if start is None:
            raise
        mode = _find_mode(posterior, np.zeros((n_times, n)))
    return IndependentGaussian(posterior, mode)


class IndependentGaussian(ConditionalGaussian):
    """Gaussian approximations of the posterior, one at each time, independent of each other."""

    def __init__(self, posterior: "_DirichletPosterior", mode: Mode) -> None:
        n = posterior.n
        lower = np.linalg.cholesky(posterior.curvature(mode.state))
        inverse = np.linalg.inv(lower)
        log_det = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        evidence = mode.value + 0.5 * (n - 1) * log(2 * np.pi) - 0.5 * log_det
        self.log_evidence = float(evidence.sum())
        self.mean = self.warm_start = mode.state
        self.shape = (len(mode.state), n - 1)
        self.decrement = mode.decrement
        self._posterior = posterior
        self._noise_to_utilities = inverse @ posterior.basis.T  # (T, n - 1, n)
        self._gradient_to_noise = np.swapaxes(inverse, 1, 2)
        self.skew = find_skew(
            lambda direction: posterior.third_derivative(
                self.mean, direction @ self._noise_to_utilities
            ),
            _neighbour_gaps(self.mean, self._noise_to_utilities),
            self._noise_to_utilities,
        )
        # Single precision where it suffices: the value at the mode is rounded like the others.
        fast = posterior.likelihood.to_single_precision()
        self._dtype = np.float64 if fast is posterior.likelihood else np.float32
        self._fast_posterior = _DirichletPosterior(fast, posterior.alpha, n)
        at_mode: Any = self.mean[None].astype(self._dtype)
        self._top = self._fast_posterior.value(at_mode)[0]

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
        gain = self._fast_posterior.value(utilities.astype(self._dtype)) - self._top
        return gain + 0.5 * np.einsum("...i,...i->...", noise, noise)

    def gradient(self, noise: Floats) -> Floats:
        """Return the gradient of the log-posterior with respect to the standardised variables."""
        gradient = self._posterior.gradient(self.to_utilities(noise))
        return multiply_blocks(gradient, self._gradient_to_noise)

    def gradient_to_noise(self, gradient: Floats) -> Floats:
        """Convert gradients with respect to utilities to those for standardised variables."""
        return multiply_blocks(gradient @ self._posterior.basis, self._gradient_to_noise)


class _DirichletPosterior:
    """The log-posterior of utilities at each time under a Dirichlet prior.

    Gradient and curvature are by coordinates (T, n - 1) in the Helmert basis.
    """

    def __init__(self, likelihood: Likelihood, alpha: float, n: int) -> None:
        self.likelihood, self.alpha, self.n = likelihood, alpha, n
        self.basis = helmert_basis(n)
        # Density of the coordinates: theta = softmax(mu) has the Jacobian sqrt(n) prod theta.
        self.normaliser = lgamma(n * alpha) - n * lgamma(alpha) + 0.5 * log(n)

    def value(self, mu: Floats) -> Floats:
        ones = np.ones(self.n, dtype=mu.dtype)  # products are faster than sums of a few
        prior = self.alpha * (mu @ ones - self.n * _log_sum_exp(mu, ones)) + self.normaliser
        return self.likelihood.value(mu) + prior

    def gradient(self, mu: Floats) -> Floats:
        prior = self.alpha * (1 - self.n * np.exp(_log_softmax(mu)))
        return (self.likelihood.gradient(mu) + prior) @ self.basis

    def curvature(self, mu: Floats) -> Floats:
        theta = np.exp(_log_softmax(mu))
        prior = -theta[:, :, None] * theta[:, None, :]
        prior[:, range(self.n), range(self.n)] += theta
        whole = self.likelihood.curvature(mu) + self.n * self.alpha * prior
        return self.basis.T @ whole @ self.basis

    def third_derivative(self, mode: Floats, line: Floats) -> Floats:
        """Return third derivatives of the log-posterior along lines through the mode of each time.

        With slope s along a line and s(0) = 0 at the mode: (s(h) + s(-h)) / h^2.
        """
        h, lines = 0.3, line.swapaxes(0, 1)
        ends = np.concatenate([mode + h * lines, mode - h * lines])
        slope = self.gradient(ends) @ self.basis.T
        up, down = np.sum(slope * np.concatenate([lines, lines]), axis=-1).reshape(2, -1, len(mode))
        return ((up + down) / h**2).T


def _find_mode(posterior: _DirichletPosterior, start: Floats) -> Mode:
    """Return the posterior mode at each time, by damped Newton steps."""

    def step(mu: Floats) -> NewtonStep:
        gradient = posterior.gradient(mu)
        along = np.linalg.solve(posterior.curvature(mu), gradient[..., None])[..., 0]
        direction = along @ posterior.basis.T
        return NewtonStep(direction, np.sum(gradient * along, axis=1), np.ptp(direction, axis=1))

    return damped_newton(start - start.mean(axis=1, keepdims=True), posterior.value, step)


def _neighbour_gaps(mode: Floats, noise_to_utilities: Floats) -> Floats:
    """Return the directions of utility gaps between algorithms that are neighbours at the mode.

    If an algorithm always beats the next one, their gap has a long tail. With many algorithms only
    gaps at both ends of the order are returned.
    """
    order = np.argsort(mode, axis=1)
    sorted_columns = np.take_along_axis(noise_to_utilities, order[:, None, :], axis=2)
    gaps = np.diff(sorted_columns, axis=2).swapaxes(1, 2)
    if gaps.shape[1] > MAX_SKEW_DIRECTIONS:
        half = MAX_SKEW_DIRECTIONS // 2
        gaps = np.concatenate([gaps[:, :half], gaps[:, -half:]], axis=1)
    return gaps


def _log_sum_exp(mu: Floats, ones: Floats) -> Floats:
    """Return log sum exp(mu) over algorithms; large utilities are shifted to avoid overflow."""
    top = mu.max(axis=-1) if np.abs(mu).max(initial=0.0) > 80 else 0.0
    return np.log(np.exp(mu - np.expand_dims(top, -1)) @ ones) + top


def _log_softmax(mu: Floats) -> Floats:
    """Return the logarithms of the ratings that utilities imply."""
    mu = mu - mu.max(axis=-1, keepdims=True)
    return mu - np.log(np.exp(mu).sum(axis=-1, keepdims=True))
