"""The posterior given hyperparameters: its mode by Newton and the Gaussian around it.

Given hyperparameters the log-posterior is concave, so damped Newton finds its mode. ``dense`` works
with the whitened coefficients of any Gaussian prior; ``chain`` with the states of a Markov one,
whose precision is banded, so that its cost is linear in the number of times.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import (
    cho_solve_banded,
    cholesky,
    cholesky_banded,
    get_lapack_funcs,
    solve_banded,
    solve_triangular,
)

from polarbear.engines.skew import Skew
from polarbear.errors import FitError
from polarbear.likelihood.choices import Choices
from polarbear.priors.base import Chain, helmert

Floats = NDArray[np.float64]

DECREMENT = 1e-10
"""Newton stops when a further step would gain less than half of this."""

MOST_STEPS = 100


@dataclass(frozen=True)
class Conditional:
    """A Gaussian approximation of the posterior of utilities, given hyperparameters.

    It is standard normal in coordinates called noise, of shape (draws, blocks, size). Blocks do
    not know of each other: the times of an independent prior, or a single block for all.
    """

    evidence: float  # log of the integral, by Laplace
    mean: Floats  # (T, n)
    find_covariance: Callable[[], Floats]  # (T, n, n), at each time; not all are needed
    shape: tuple[int, int]  # blocks, size
    place: Callable[
        [Floats], tuple[Floats, Floats]
    ]  # noise -> utilities (D, T, n), log-ratios (D, B)
    slope: Callable[[Floats], Floats]  # noise -> gradient of the log-posterior: (D, B, size)
    state: Floats  # the mode, for the same method to start from
    decrement: float
    skew: Skew | None = None  # directions in which to draw from something else than a Gaussian

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the utilities at each time: (T, n, n)."""
        return self.find_covariance()

    def draw(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """Utilities drawn from the approximation, and the log-ratios of posterior to it."""
        return self.place(rng.standard_normal((size, *self.shape)))


class _Newton(NamedTuple):
    state: Floats
    value: float
    decrement: float


def climb(
    state: Floats,
    value: Callable[[Floats], float],
    step: Callable[[Floats], tuple[Floats, float]],
) -> _Newton:
    """Damped Newton on a concave function; ``step`` gives the Newton step and its decrement."""
    at, decrement = value(state), np.inf
    for _ in range(MOST_STEPS):
        direction, decrement = step(state)
        if decrement < DECREMENT:
            return _Newton(state, at, decrement)
        size = 1.0
        while True:
            there = value(state + size * direction)
            if there >= at + 1e-4 * size * decrement:
                break
            size /= 2
            if size < 1e-8:  # rounding: nothing left to gain
                return _Newton(state, at, decrement)
        state, at = state + size * direction, there
    raise FitError(f"Newton did not converge in {MOST_STEPS} steps (decrement {decrement:.2g})")


def remainder(data: Choices, mode: Floats) -> Callable[[Floats], Floats]:
    """What a second-order expansion around the mode (T, n) leaves of the log-likelihood.

    The prior is Gaussian and the approximation matches it and the likelihood to second order, so
    this is the log-ratio of posterior to approximation: utilities (D, T, n) -> (D, T).
    """
    light = data.single()
    number = np.float64 if light is data else np.float32
    near: Any = mode[None].astype(number)
    top = light.value(near)[0]
    slope, half_bend = data.gradient(mode), 0.5 * data.curvature(mode)
    slope, half_bend = slope.astype(number), half_bend.astype(number)

    def beyond(mu: Any) -> Floats:
        mu = mu.astype(number, copy=False)
        away = mu - near
        bent = (away.swapaxes(0, 1) @ half_bend).swapaxes(0, 1) - slope
        left = light.value(mu) - top + np.einsum("dtn,dtn->dt", bent, away)
        return left.astype(np.float64)

    return beyond


def dense(data: Choices, factor: Floats, n: int, start: Floats | None) -> Conditional:
    """Laplace in whitened coefficients z (K, n - 1): mu = factor @ z @ helmert(n).T.

    ``start`` is a mode found with other hyperparameters: (T, n - 1), or the states of a chain.
    """
    left, spread = _principal(factor)
    factor = left * spread
    n_times, k = factor.shape
    basis = helmert(n)
    q = n - 1
    outer = (factor[:, :, None] * factor[:, None, :]).reshape(n_times, k * k)
    begin = np.zeros(k * q)
    if start is not None:
        shrink = spread / (spread**2 + 1e-2 * spread[0] ** 2)
        begin = (shrink[:, None] * (left.T @ start.reshape(n_times, -1)[:, :q])).ravel()

    def utilities(z: Floats) -> Floats:
        return factor @ z.reshape(*z.shape[:-1], k, q) @ basis.T

    def value(z: Floats) -> float:
        return float(data.value(utilities(z)).sum() - 0.5 * z @ z)

    def root(z: Floats) -> Floats:
        seen = basis.T @ data.curvature(utilities(z)) @ basis
        precision = (outer.T @ seen.reshape(n_times, q * q)).reshape(k, k, q, q)
        precision = precision.swapaxes(1, 2).reshape(k * q, k * q)
        precision[np.diag_indices(k * q)] += 1.0
        return cholesky(precision, lower=True, overwrite_a=True, check_finite=False)

    def step(z: Floats) -> tuple[Floats, float]:
        slope = (factor.T @ (data.gradient(utilities(z)) @ basis)).ravel() - z
        lower = root(z)
        half = solve_triangular(lower, slope, lower=True, check_finite=False)
        direction = solve_triangular(lower, half, lower=True, trans=1, check_finite=False)
        return direction, float(half @ half)

    found = climb(begin, value, step)
    lower = root(found.state)
    log_det = 2 * np.log(np.diag(lower)).sum()
    mean = utilities(found.state)

    @cache
    def inverse() -> Floats:
        return solve_triangular(lower, np.eye(k * q), lower=True, check_finite=False)

    @cache
    def beyond() -> Callable[[Floats], Floats]:
        return remainder(data, mean)

    def covariance() -> Floats:
        half = (inverse() @ np.kron(factor, np.eye(q)).T).reshape(-1, n_times, q).transpose(1, 2, 0)
        return basis @ (half @ half.swapaxes(1, 2)) @ basis.T

    def place(noise: Floats) -> tuple[Floats, Floats]:
        mu = utilities(found.state + noise[:, 0] @ inverse())
        return mu, beyond()(mu).sum(axis=-1, keepdims=True)

    def slope(noise: Floats) -> Floats:
        z = found.state + noise[:, 0] @ inverse()
        pull = (factor.T @ (data.gradient(utilities(z)) @ basis)).reshape(len(z), -1) - z
        return (pull @ inverse().T)[:, None]

    return Conditional(
        found.value - 0.5 * log_det,
        mean,
        covariance,
        (1, k * q),
        place,
        slope,
        mean @ basis,
        found.decrement,
    )


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


def chain(data: Choices, prior: Chain, n: int, start: Floats | None) -> Conditional:
    """Laplace in the states x (T, s, n - 1) of a Markov prior, with banded algebra.

    ``start`` is a mode found with other hyperparameters, with or without derivatives.
    """
    n_times, s, q = len(prior.move) + 1, len(prior.start), n - 1
    block, size = s * q, n_times * s * q
    basis = helmert(n)
    band = _prior_band(prior, q)
    log_det_prior = -q * (
        np.linalg.slogdet(prior.start)[1] + np.linalg.slogdet(prior.noise)[1].sum()
    )
    first = (np.arange(n_times)[:, None] * block + np.arange(q)).ravel()

    def utilities(x: Floats) -> Floats:
        return x.reshape(*x.shape[:-1], n_times, block)[..., :q] @ basis.T

    def value(x: Floats) -> float:
        return float(data.value(utilities(x)).sum() - 0.5 * x @ _times(band, x))

    def root(x: Floats) -> Floats:
        precision = band.copy()
        seen = basis.T @ data.curvature(utilities(x)) @ basis
        for i in range(q):
            for j in range(i + 1):
                precision[i - j, j::block] += seen[:, i, j]
        return cholesky_banded(precision, lower=True, check_finite=False)

    def step(x: Floats) -> tuple[Floats, float]:
        slope = -_times(band, x)
        slope[first] += (data.gradient(utilities(x)) @ basis).ravel()
        direction = cho_solve_banded((root(x), True), slope, check_finite=False)
        return direction, float(slope @ direction)

    begin = np.zeros((n_times, block))
    if start is not None:
        start = start.reshape(n_times, -1)[:, :block]
        begin[:, : start.shape[1]] = start
    found = climb(begin.ravel(), value, step)
    lower = root(found.state)
    log_det = 2 * np.log(lower[0]).sum()
    mean = utilities(found.state)

    @cache
    def upper() -> Floats:
        return _upper(lower)

    @cache
    def beyond() -> Callable[[Floats], Floats]:
        return remainder(data, mean)

    def covariance() -> Floats:
        return basis @ _marginals(lower, n_times, block)[:, :q, :q] @ basis.T

    def states(noise: Floats) -> Floats:
        away = solve_banded((0, len(lower) - 1), upper(), noise[:, 0].T, check_finite=False)
        return found.state + away.T

    def place(noise: Floats) -> tuple[Floats, Floats]:
        mu = utilities(states(noise))
        return mu, beyond()(mu).sum(axis=-1, keepdims=True)

    def slope(noise: Floats) -> Floats:
        x = states(noise)
        pull = -_times(band, x.T)
        pull[first] += (data.gradient(utilities(x)) @ basis).reshape(len(x), -1).T
        return solve_banded((len(lower) - 1, 0), lower, pull).T[:, None]

    evidence = found.value + 0.5 * log_det_prior - 0.5 * log_det
    return Conditional(
        evidence, mean, covariance, (1, size), place, slope, found.state, found.decrement
    )


def _prior_band(prior: Chain, q: int) -> Floats:
    """Lower band of the precision of a chain of states, each entry for q processes."""
    n_times, s = len(prior.move) + 1, len(prior.start)
    gain = _inverse(prior.noise)
    diagonal = np.zeros((n_times, s, s))
    diagonal[0] += np.linalg.inv(prior.start)
    diagonal[1:] += gain
    diagonal[:-1] += np.swapaxes(prior.move, 1, 2) @ gain @ prior.move
    below = -gain @ prior.move
    block = s * q
    band = np.zeros((2 * block if n_times > 1 else block, n_times * block))
    for i, j, k in product(range(s), range(s), range(q)):
        row, column = i * q + k, j * q + k
        if row >= column:
            band[row - column, column::block] = diagonal[:, i, j]
        if n_times > 1:
            band[block + row - column, column : (n_times - 1) * block : block] = below[:, i, j]
    return band


def _inverse(covariance: Floats) -> Floats:
    """Inverses of covariances whose entries differ by orders of magnitude."""
    size = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    both = size[..., :, None] * size[..., None, :]
    return np.linalg.inv(covariance / both) / both


def _times(band: Floats, x: Floats) -> Floats:
    """A symmetric banded matrix, given by its lower band, times a vector or matrix."""
    shape = (-1, *(1,) * (x.ndim - 1))
    result = band[0].reshape(shape) * x
    for k in np.flatnonzero(np.abs(band).max(axis=1))[1:]:
        values = band[k, :-k].reshape(shape)
        result[k:] += values * x[:-k]
        result[:-k] += values * x[k:]
    return result


def _upper(lower: Floats) -> Floats:
    """The transpose of a lower banded matrix, in the layout for upper ones."""
    width, size = lower.shape
    upper = np.zeros_like(lower)
    for k in range(width):
        upper[width - 1 - k, k:] = lower[k, : size - k]
    return upper


def _marginals(lower: Floats, n_times: int, block: int) -> Floats:
    """Diagonal blocks of the inverse of a block tridiagonal matrix, from its Cholesky factor."""
    width = len(lower)
    diagonal, below = np.zeros((n_times, block, block)), np.zeros((n_times, block, block))
    for column in range(block):
        values = lower[:, column::block]
        for k in range(width):
            row = column + k
            if row < block:
                diagonal[:, row, column] = values[k]
            elif row < 2 * block:
                below[:, row - block, column] = values[k]
    inverse = np.linalg.inv(diagonal)
    pull = below @ inverse
    covariance = np.swapaxes(inverse, 1, 2) @ inverse
    for t in range(n_times - 2, -1, -1):
        covariance[t] += pull[t].T @ covariance[t + 1] @ pull[t]
    return covariance
