"""The posterior given hyperparameters, in the whitened coefficients of any Gaussian prior."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, get_lapack_funcs, solve_triangular

from polarbear.inference.laplace.conditional import Conditional, Step, damped_newton, remainder
from polarbear.inference.plackett_luce.likelihood import Choices
from polarbear.priors.base import helmert

Floats = NDArray[np.float64]


def dense(data: Choices, factor: Floats, n: int, start: Floats | None) -> Conditional:
    """Laplace in whitened coefficients z (K, n - 1): mu = factor @ z @ helmert(n).T.

    ``start`` is a mode found with other hyperparameters: (T, n - 1), or the states of a chain.
    """
    left, spread = _principal(factor)
    white = _Whitened(data, left * spread, n)
    n_times, q = len(left), n - 1
    begin = np.zeros(len(spread) * q)
    if start is not None:
        shrink = spread / (spread**2 + 1e-2 * spread[0] ** 2)
        begin = (shrink[:, None] * (left.T @ start.reshape(n_times, -1)[:, :q])).ravel()
    top = damped_newton(begin[None], white.value, white.step)
    mode = top.state[0]
    lower = white.root(mode)
    log_det = 2 * np.log(np.diag(lower)).sum()
    mean, size = white.utilities(mode), len(begin)

    @cache
    def inverse() -> Floats:
        return solve_triangular(lower, np.eye(size), lower=True, check_finite=False)

    @cache
    def beyond() -> Callable[[Floats], Floats]:
        return remainder(data, mean)

    def covariance() -> Floats:
        half = (inverse() @ np.kron(white.factor, np.eye(q)).T).reshape(-1, n_times, q)
        half = half.transpose(1, 2, 0)
        return white.basis @ (half @ half.swapaxes(1, 2)) @ white.basis.T

    def place(noise: Floats) -> Floats:
        return white.utilities(mode + noise[:, 0] @ inverse())

    def slope(noise: Floats) -> Floats:
        return unseen(white.slope(mode + noise[:, 0] @ inverse())[:, None])

    def unseen(noise: Floats) -> Floats:
        return noise @ inverse().T  # coefficients are standard normal before the data

    return Conditional(
        evidence=float(top.value[0]) - 0.5 * log_det,
        mean=mean,
        find_covariance=covariance,
        shape=(1, size),
        place=place,
        ratio=lambda _, mu: beyond()(mu).sum(axis=-1, keepdims=True),
        slope=slope,
        pull=lambda slope: unseen(white.back(slope)[:, None]),
        unseen=unseen,
        state=mean @ white.basis,
        decrement=top.decrement,
    )


class _Whitened:
    """The log-posterior of coefficients z that are standard normal before the data."""

    def __init__(self, data: Choices, factor: Floats, n: int) -> None:
        self.data, self.factor, self.basis = data, factor, helmert(n)
        self.shape = (factor.shape[1], n - 1)
        self.outer = (factor[:, :, None] * factor[:, None, :]).reshape(len(factor), -1)

    def utilities(self, z: Floats) -> Floats:
        return self.factor @ z.reshape(*z.shape[:-1], *self.shape) @ self.basis.T

    def value(self, z: Floats) -> Floats:
        """The log-posterior of the only block: (1, size) -> (1,)."""
        return np.array([self.data.value(self.utilities(z[0])).sum() - 0.5 * z[0] @ z[0]])

    def slope(self, z: Floats) -> Floats:
        return self.back(self.data.gradient(self.utilities(z))) - z

    def back(self, slope: Floats) -> Floats:
        """Slopes by utilities (..., T, n) as slopes by coefficients."""
        return (self.factor.T @ (slope @ self.basis)).reshape(*slope.shape[:-2], -1)

    def root(self, z: Floats) -> Floats:
        """The Cholesky factor of the curvature."""
        k, q = self.shape
        seen = self.basis.T @ self.data.curvature(self.utilities(z)) @ self.basis
        precision = (self.outer.T @ seen.reshape(-1, q * q)).reshape(k, k, q, q)
        precision = precision.swapaxes(1, 2).reshape(k * q, k * q)
        precision[np.diag_indices(k * q)] += 1.0
        return cholesky(precision, lower=True, overwrite_a=True, check_finite=False)

    def step(self, z: Floats) -> Step:
        """Newton's step for the only block (1, size)."""
        lower = self.root(z[0])
        half = solve_triangular(lower, self.slope(z[0]), lower=True, check_finite=False)
        direction = solve_triangular(lower, half, lower=True, trans=1, check_finite=False)[None]
        reach = np.ptp(self.utilities(direction), axis=-1).max(axis=-1)
        return Step(direction, np.array([half @ half]), reach)


def _principal(factor: Floats) -> tuple[Floats, Floats]:
    """Principal directions (T, K) and standard deviations (K,) of the covariance of a factor.

    Coefficients of next to no variance cost as much as others: what is left out has less than a
    millionth of the largest variance.
    """
    left, spread, _ = np.linalg.svd(_narrow(factor), full_matrices=False)
    kept = spread > 1e-3 * spread[0]
    return left[:, kept], spread[kept]


def _narrow(factor: Floats) -> Floats:
    """A factor of the same covariance with few columns, if it has few of consequence."""
    if factor.shape[1] <= 64:
        return factor
    covariance = factor @ factor.T
    (pivoted,) = get_lapack_funcs(["pstrf"], [covariance])
    root, pivot, rank, _ = pivoted(covariance, lower=1, tol=1e-8 * covariance.diagonal().max())
    narrow = np.empty((len(root), rank))
    narrow[pivot - 1] = np.tril(root)[:, :rank]
    return narrow
