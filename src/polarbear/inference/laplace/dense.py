"""The Laplace approximation in whitened coefficients, for any Gaussian prior."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, get_lapack_funcs, solve_triangular

from polarbear.inference.laplace.conditional import (
    ConditionalGaussian,
    Mode,
    NewtonStep,
    damped_newton,
    likelihood_remainder,
)
from polarbear.inference.plackett_luce.likelihood import Likelihood
from polarbear.priors.base import helmert_basis

Floats = NDArray[np.float64]


def fit_dense(
    likelihood: Likelihood, factor: Floats, n: int, start: Floats | None
) -> "DenseGaussian":
    """Fit the Laplace approximation to the whitened coefficients of any Gaussian prior.

    ``start`` is a mode for other hyperparameters: (T, n - 1), or the states of a Markov prior.
    """
    direction, sd = _principal_components(factor)
    posterior = _WhitenedPosterior(likelihood, direction * sd, n)
    begin = np.zeros(len(sd) * (n - 1))
    if start is not None:
        ridge = sd / (sd**2 + 1e-2 * sd[0] ** 2)
        values = start.reshape(len(direction), -1)[:, : n - 1]
        begin = (ridge[:, None] * (direction.T @ values)).ravel()
    return DenseGaussian(posterior, damped_newton(begin[None], posterior.value, posterior.step))


class DenseGaussian(ConditionalGaussian):
    """The Gaussian around the posterior mode of all whitened coefficients together."""

    def __init__(self, posterior: "_WhitenedPosterior", mode: Mode) -> None:
        self._posterior, self._mode = posterior, mode.state[0]
        self._lower = posterior.precision_root(self._mode)
        log_det = 2 * np.log(np.diag(self._lower)).sum()
        self.log_evidence = float(mode.value[0]) - 0.5 * log_det
        self.mean = posterior.utilities(self._mode)
        self.shape = (1, len(self._mode))
        self.warm_start = self.mean @ posterior.basis
        self.decrement = mode.decrement

    @cached_property
    def _inverse(self) -> Floats:
        identity = np.eye(len(self._mode))
        return solve_triangular(self._lower, identity, lower=True, check_finite=False)

    @cached_property
    def _remainder(self) -> Callable[[Floats], Floats]:
        return likelihood_remainder(self._posterior.likelihood, self.mean)

    def _compute_covariance(self) -> Floats:
        basis, q = self._posterior.basis, self._posterior.shape[1]
        onto = np.kron(self._posterior.factor, np.eye(q))
        half = (self._inverse @ onto.T).reshape(-1, len(self.mean), q).transpose(1, 2, 0)
        return basis @ (half @ half.swapaxes(1, 2)) @ basis.T

    def to_utilities(self, noise: Floats) -> Floats:
        """Map standard normal variables (draws, 1, size) to utilities, one set for each draw."""
        return self._posterior.utilities(self._mode + noise[:, 0] @ self._inverse)

    def log_ratio(self, noise: Floats, utilities: Floats) -> Floats:  # noqa: ARG002
        """Return log(posterior / approximation) of each draw, up to a constant (draws, 1)."""
        return self._remainder(utilities).sum(axis=-1, keepdims=True)

    def gradient(self, noise: Floats) -> Floats:
        """Return the gradient of the log-posterior with respect to the standardised variables."""
        gradient = self._posterior.gradient(self._mode + noise[:, 0] @ self._inverse)
        return self.prior_to_noise(gradient[:, None])

    def gradient_to_noise(self, gradient: Floats) -> Floats:
        """Convert gradients with respect to utilities to those for standardised variables."""
        return self.prior_to_noise(self._posterior.pull_back(gradient)[:, None])

    def prior_to_noise(self, normal: Floats) -> Floats:
        """Map standard normal variables to the prior's part of noise with sandwich covariance."""
        return normal @ self._inverse.T


class _WhitenedPosterior:
    """The log-posterior of whitened coefficients, which are standard normal a priori."""

    def __init__(self, likelihood: Likelihood, factor: Floats, n: int) -> None:
        self.likelihood, self.factor, self.basis = likelihood, factor, helmert_basis(n)
        self.shape = (factor.shape[1], n - 1)
        self.outer = (factor[:, :, None] * factor[:, None, :]).reshape(len(factor), -1)

    def utilities(self, z: Floats) -> Floats:
        return self.factor @ z.reshape(*z.shape[:-1], *self.shape) @ self.basis.T

    def value(self, z: Floats) -> Floats:
        """Return the log-posterior of a vector of whitened coefficients, as an array (1,)."""
        return np.array([self.likelihood.value(self.utilities(z[0])).sum() - 0.5 * z[0] @ z[0]])

    def gradient(self, z: Floats) -> Floats:
        return self.pull_back(self.likelihood.gradient(self.utilities(z))) - z

    def pull_back(self, gradient: Floats) -> Floats:
        """Map gradients with respect to utilities to gradients with respect to coefficients."""
        return (self.factor.T @ (gradient @ self.basis)).reshape(*gradient.shape[:-2], -1)

    def precision_root(self, z: Floats) -> Floats:
        """Return the Cholesky factor L of the posterior precision."""
        k, q = self.shape
        curvature = self.basis.T @ self.likelihood.curvature(self.utilities(z)) @ self.basis
        precision = (self.outer.T @ curvature.reshape(-1, q * q)).reshape(k, k, q, q)
        precision = precision.swapaxes(1, 2).reshape(k * q, k * q)
        precision[np.diag_indices(k * q)] += 1.0
        return cholesky(precision, lower=True, overwrite_a=True, check_finite=False)

    def step(self, z: Floats) -> NewtonStep:
        """Return the Newton step for a vector of whitened coefficients (1, size)."""
        lower = self.precision_root(z[0])
        half = solve_triangular(lower, self.gradient(z[0]), lower=True, check_finite=False)
        direction = solve_triangular(lower, half, lower=True, trans=1, check_finite=False)[None]
        utility_range = np.ptp(self.utilities(direction), axis=-1).max(axis=-1)
        return NewtonStep(direction, np.array([half @ half]), utility_range)


def _principal_components(factor: Floats) -> tuple[Floats, Floats]:
    """Return the principal directions of factor @ factor.T, and their standard deviations.

    Components below a millionth of the largest variance are left out, to save time.
    """
    direction, sd, _ = np.linalg.svd(_reduce_columns(factor), full_matrices=False)
    kept = sd > 1e-3 * sd[0]
    return direction[:, kept], sd[kept]


def _reduce_columns(factor: Floats) -> Floats:
    """Return a factor of nearly the same covariance with fewer columns, by pivoted Cholesky."""
    if factor.shape[1] <= 64:
        return factor
    covariance = factor @ factor.T
    (pivoted_cholesky,) = get_lapack_funcs(["pstrf"], [covariance])
    tolerance = 1e-8 * covariance.diagonal().max()
    root, pivot, rank, _ = pivoted_cholesky(covariance, lower=1, tol=tolerance)
    reduced = np.empty((len(root), rank))
    reduced[pivot - 1] = np.tril(root)[:, :rank]
    return reduced
