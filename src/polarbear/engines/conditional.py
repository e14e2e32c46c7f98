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

from polarbear.engines.skew import Skew, per_block
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
        bent = per_block(away, half_bend) - slope
        left = light.value(mu) - top + np.einsum("dtn,dtn->dt", bent, away)
        return left.astype(np.float64)

    return beyond


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
    found = climb(begin, white.value, white.step)
    lower = white.root(found.state)
    log_det = 2 * np.log(np.diag(lower)).sum()
    mean, size = white.utilities(found.state), len(begin)

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

    def place(noise: Floats) -> tuple[Floats, Floats]:
        mu = white.utilities(found.state + noise[:, 0] @ inverse())
        return mu, beyond()(mu).sum(axis=-1, keepdims=True)

    def slope(noise: Floats) -> Floats:
        return (white.slope(found.state + noise[:, 0] @ inverse()) @ inverse().T)[:, None]

    evidence, state = found.value - 0.5 * log_det, mean @ white.basis
    shape = (1, size)
    return Conditional(evidence, mean, covariance, shape, place, slope, state, found.decrement)


class _Whitened:
    """The log-posterior of coefficients z that are standard normal before the data."""

    def __init__(self, data: Choices, factor: Floats, n: int) -> None:
        self.data, self.factor, self.basis = data, factor, helmert(n)
        self.shape = (factor.shape[1], n - 1)
        self.outer = (factor[:, :, None] * factor[:, None, :]).reshape(len(factor), -1)

    def utilities(self, z: Floats) -> Floats:
        return self.factor @ z.reshape(*z.shape[:-1], *self.shape) @ self.basis.T

    def value(self, z: Floats) -> float:
        return float(self.data.value(self.utilities(z)).sum() - 0.5 * z @ z)

    def slope(self, z: Floats) -> Floats:
        pull = self.data.gradient(self.utilities(z)) @ self.basis
        return (self.factor.T @ pull).reshape(z.shape) - z

    def root(self, z: Floats) -> Floats:
        """The Cholesky factor of the curvature."""
        k, q = self.shape
        seen = self.basis.T @ self.data.curvature(self.utilities(z)) @ self.basis
        precision = (self.outer.T @ seen.reshape(-1, q * q)).reshape(k, k, q, q)
        precision = precision.swapaxes(1, 2).reshape(k * q, k * q)
        precision[np.diag_indices(k * q)] += 1.0
        return cholesky(precision, lower=True, overwrite_a=True, check_finite=False)

    def step(self, z: Floats) -> tuple[Floats, float]:
        """Newton's step, and its decrement."""
        lower = self.root(z)
        half = solve_triangular(lower, self.slope(z), lower=True, check_finite=False)
        direction = solve_triangular(lower, half, lower=True, trans=1, check_finite=False)
        return direction, float(half @ half)


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
    markov = _States(data, prior, n)
    n_times, block, q = markov.n_times, markov.block, n - 1
    begin = np.zeros((n_times, block))
    if start is not None:
        start = start.reshape(n_times, -1)[:, :block]
        begin[:, : start.shape[1]] = start
    found = climb(begin.ravel(), markov.value, markov.step)
    lower = markov.root(found.state)
    log_det = 2 * np.log(lower[0]).sum()
    mean = markov.utilities(found.state)

    @cache
    def upper() -> Floats:
        return _upper(lower)

    @cache
    def beyond() -> Callable[[Floats], Floats]:
        return remainder(data, mean)

    def covariance() -> Floats:
        return markov.basis @ _marginals(lower, n_times, block)[:, :q, :q] @ markov.basis.T

    def states(noise: Floats) -> Floats:
        away = solve_banded((0, len(lower) - 1), upper(), noise[:, 0].T, check_finite=False)
        return found.state + away.T

    def place(noise: Floats) -> tuple[Floats, Floats]:
        mu = markov.utilities(states(noise))
        return mu, beyond()(mu).sum(axis=-1, keepdims=True)

    def slope(noise: Floats) -> Floats:
        pull = markov.slope(states(noise))
        return solve_banded((len(lower) - 1, 0), lower, pull.T).T[:, None]

    evidence = found.value + 0.5 * markov.log_det - 0.5 * log_det
    shape, state = (1, begin.size), found.state
    return Conditional(evidence, mean, covariance, shape, place, slope, state, found.decrement)


class _States:
    """The log-posterior of the states x of a chain, value before derivatives, time by time."""

    def __init__(self, data: Choices, prior: Chain, n: int) -> None:
        self.data, self.basis, self.q = data, helmert(n), n - 1
        self.n_times, self.block = len(prior.move) + 1, len(prior.start) * (n - 1)
        self.band = _prior_band(prior, n - 1)
        each = np.linalg.slogdet(prior.start)[1] + np.linalg.slogdet(prior.noise)[1].sum()
        self.log_det = -self.q * each
        self.first = (np.arange(self.n_times)[:, None] * self.block + np.arange(self.q)).ravel()

    def utilities(self, x: Floats) -> Floats:
        values = x.reshape(*x.shape[:-1], self.n_times, self.block)[..., : self.q]
        return values @ self.basis.T

    def value(self, x: Floats) -> float:
        return float(self.data.value(self.utilities(x)).sum() - 0.5 * x @ _times(self.band, x))

    def slope(self, x: Floats) -> Floats:
        pull = self.data.gradient(self.utilities(x)) @ self.basis
        slope = -_times(self.band, x.T).T
        slope[..., self.first] += pull.reshape(*x.shape[:-1], -1)
        return slope

    def root(self, x: Floats) -> Floats:
        """The Cholesky factor of the curvature, as a band."""
        precision = self.band.copy()
        seen = self.basis.T @ self.data.curvature(self.utilities(x)) @ self.basis
        for i in range(self.q):
            for j in range(i + 1):
                precision[i - j, j :: self.block] += seen[:, i, j]
        return cholesky_banded(precision, lower=True, check_finite=False)

    def step(self, x: Floats) -> tuple[Floats, float]:
        """Newton's step, and its decrement."""
        slope = self.slope(x)
        direction = cho_solve_banded((self.root(x), True), slope, check_finite=False)
        return direction, float(slope @ direction)


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
