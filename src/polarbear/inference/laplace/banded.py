"""The posterior given hyperparameters, where its precision is a band: cost is linear in times.

``chain`` works with the states of a Markov prior, ``local`` with coefficients each of which only
matters for a while, as those of splines.
"""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.sparse import csr_array

from polarbear.inference.laplace.conditional import Conditional, Step, damped_newton, remainder
from polarbear.inference.plackett_luce.likelihood import Choices
from polarbear.priors.base import Chain, helmert

Floats = NDArray[np.float64]

NARROW = 4
"""A factor counts as local if the whole is at least this many times wider than its rows."""

LEAST_BLOCK = 32
"""Products of smaller blocks take as long."""


class _Problem(Protocol):
    """The log-posterior of a vector x that is Gaussian before the data, with a banded precision."""

    data: Choices
    basis: Floats  # (n, n - 1)
    band: Floats  # the lower band of the precision before the data
    log_det: float  # of that

    def values(self, x: Floats) -> Floats:
        """The coordinates (..., T, n - 1) of utilities in the basis."""
        ...

    def back(self, pull: Floats) -> Floats:
        """What a slope (..., T, n - 1) in those coordinates is for x."""
        ...

    def seen(self, curvature: Floats) -> Floats:
        """What curvatures (T, n - 1, n - 1) in those coordinates are for x: a lower band."""
        ...

    def covariance(self, lower: Floats) -> Floats:
        """Covariances (T, n - 1, n - 1) of those coordinates, from the Cholesky factor for x."""
        ...

    def state(self, x: Floats) -> Floats:
        """What to keep of a mode for another to start from."""
        ...


def chain(data: Choices, prior: Chain, n: int, start: Floats | None) -> Conditional:
    """Laplace in the states x (T, s, n - 1) of a Markov prior.

    ``start`` is a mode found with other hyperparameters, with or without derivatives.
    """
    problem = _States(data, prior, n)
    begin = np.zeros((problem.n_times, problem.block))
    if start is not None:
        start = start.reshape(problem.n_times, -1)[:, : problem.block]
        begin[:, : start.shape[1]] = start
    return _banded(problem, begin.ravel())


def local(data: Choices, factor: Floats, n: int, start: Floats | None) -> Conditional | None:
    """Laplace in whitened coefficients z (K, n - 1), if each row of the factor has few entries.

    ``start`` is a mode found with other hyperparameters: (T, n - 1).
    """
    width = _width(factor)
    if width * NARROW > factor.shape[1]:
        return None
    problem = _Coefficients(data, factor, width, n)
    begin = np.zeros(problem.band.shape[1])
    if start is not None:
        # Least squares, with just enough of a ridge for coefficients that no time sees.
        square = problem.seen(np.repeat(np.eye(n - 1)[None], len(factor), axis=0))
        square[0] += 1e-8 * square[0].max()
        root = cholesky_banded(square, lower=True, check_finite=False)
        begin = cho_solve_banded((root, True), problem.back(start.reshape(len(factor), -1)))
    return _banded(problem, begin)


def _banded(problem: _Problem, begin: Floats) -> Conditional:
    data, basis = problem.data, problem.basis
    rows = np.flatnonzero(np.abs(problem.band).max(axis=1))  # most may be empty

    def utilities(x: Floats) -> Floats:
        return problem.values(x) @ basis.T

    def value(x: Floats) -> Floats:
        prior = x[0] @ _times(problem.band, rows, x[0])
        return np.array([data.value(utilities(x[0])).sum() - 0.5 * prior])

    def slope(x: Floats) -> Floats:
        pull = problem.back(data.gradient(utilities(x)) @ basis)
        return pull - _times(problem.band, rows, x)

    def root(x: Floats) -> Floats:
        seen = problem.seen(basis.T @ data.curvature(utilities(x)) @ basis)
        return cholesky_banded(problem.band + seen, lower=True, check_finite=False)

    def step(x: Floats) -> Step:
        pull = slope(x[0])
        direction = cho_solve_banded((root(x[0]), True), pull, check_finite=False)[None]
        reach = np.ptp(utilities(direction), axis=-1).max(axis=-1)
        return Step(direction, direction @ pull, reach)

    top = damped_newton(begin[None], value, step)
    mode = top.state[0]
    lower, mean = root(mode), utilities(mode)
    evidence = float(top.value[0]) + 0.5 * problem.log_det - np.log(lower[0]).sum()

    @cache
    def solver() -> _Root:
        return _Root(lower)

    @cache
    def beyond() -> Callable[[Floats], Floats]:
        return remainder(data, mean)

    def away(noise: Floats) -> Floats:
        return mode + solver().solve(noise[:, 0])

    def back(slope: Floats) -> Floats:
        return solver().solve_transposed(slope)[:, None]

    @cache
    def prior_root() -> Floats:
        return cholesky_banded(problem.band, lower=True)

    return Conditional(
        evidence=evidence,
        mean=mean,
        find_covariance=lambda: basis @ problem.covariance(lower) @ basis.T,
        shape=(1, begin.size),
        place=lambda noise: utilities(away(noise)),
        ratio=lambda _, mu: beyond()(mu).sum(axis=-1, keepdims=True),
        slope=lambda noise: back(slope(away(noise))),
        pull=lambda slope: back(problem.back(slope @ basis)),
        unseen=lambda noise: back(_lower_times(prior_root(), noise[:, 0])),
        state=problem.state(mode),
        decrement=top.decrement,
    )


class _States:
    """The states x of a chain, value before derivatives, time by time."""

    def __init__(self, data: Choices, prior: Chain, n: int) -> None:
        self.data, self.basis, self.q = data, helmert(n), n - 1
        self.n_times, self.block = len(prior.move) + 1, len(prior.start) * (n - 1)
        self.band = _prior_band(prior, n - 1)
        each = np.linalg.slogdet(prior.start)[1] + np.linalg.slogdet(prior.noise)[1].sum()
        self.log_det = -self.q * float(each)

    def values(self, x: Floats) -> Floats:
        return x.reshape(*x.shape[:-1], self.n_times, self.block)[..., : self.q]

    def back(self, pull: Floats) -> Floats:
        whole = np.zeros((*pull.shape[:-1], self.block))
        whole[..., : self.q] = pull
        return whole.reshape(*pull.shape[:-2], -1)

    def seen(self, curvature: Floats) -> Floats:
        band = np.zeros_like(self.band)
        for i in range(self.q):
            for j in range(i + 1):
                band[i - j, j :: self.block] = curvature[:, i, j]
        return band

    def covariance(self, lower: Floats) -> Floats:
        return _marginals(lower, self.block)[:, : self.q, : self.q]

    def state(self, x: Floats) -> Floats:
        return x


class _Coefficients:
    """Whitened coefficients x (K, n - 1), of which each row of a factor (T, K) sees a few."""

    def __init__(self, data: Choices, factor: Floats, width: int, n: int) -> None:
        self.data, self.basis = data, helmert(n)
        (n_times, k), q = factor.shape, n - 1
        self.shape, self.n_times = (k, q), n_times
        self.band = np.zeros((width * q, k * q))
        self.band[0] = 1.0
        self.log_det = 0.0
        self.factor = csr_array(factor)
        self.transposed = csr_array(factor.T)
        # Products of the entries of a row, pairs so many columns apart after each other.
        pairs = np.zeros((width, k, n_times))
        for m in range(width):
            pairs[m, : k - m] = (factor[:, m:] * factor[:, : k - m]).T
        self.pairs = csr_array(pairs.reshape(width * k, n_times))
        m, column, i, j = np.ogrid[:width, :k, :q, :q]
        row = np.broadcast_to(m * q + i - j, (width, k, q, q))
        self.kept = row >= 0
        place = row * (k * q) + column * q + j
        self.place = place[self.kept]

    def values(self, x: Floats) -> Floats:
        values = _apply(self.factor, x.reshape(-1, *self.shape))
        return values.reshape(*x.shape[:-1], *values.shape[1:])

    def back(self, pull: Floats) -> Floats:
        whole = _apply(self.transposed, pull.reshape(-1, *pull.shape[-2:]))
        return whole.reshape(*pull.shape[:-2], -1)

    def seen(self, curvature: Floats) -> Floats:
        blocks = self.pairs @ curvature.reshape(self.n_times, -1)
        band = np.zeros_like(self.band)
        band.ravel()[self.place] = blocks.reshape(self.kept.shape)[self.kept]
        return band

    def covariance(self, lower: Floats) -> Floats:
        q = self.shape[1]
        onto = np.kron(self.factor.toarray(), np.eye(q))
        half = _Root(lower).solve_transposed(onto).reshape(self.n_times, q, -1)
        return half @ half.swapaxes(1, 2)

    def state(self, x: Floats) -> Floats:
        return self.values(x)


def _width(factor: Floats) -> int:
    """How many columns the entries of a row span, at most."""
    some = factor != 0
    last = factor.shape[1] - some[:, ::-1].argmax(axis=1)
    return int((last - some.argmax(axis=1)).max())


def _apply(matrix: csr_array, x: Floats) -> Floats:
    """A sparse matrix (i, j) times each of some matrices: (D, j, q) -> (D, i, q)."""
    draws, _, q = x.shape
    rows = x.transpose(1, 0, 2).reshape(x.shape[1], -1)
    return (matrix @ rows).reshape(-1, draws, q).transpose(1, 0, 2)


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


def _times(band: Floats, rows: NDArray[np.intp], x: Floats) -> Floats:
    """A symmetric matrix, given by some rows of its lower band, times vectors (..., size)."""
    result = band[0] * x
    for k in rows[1:]:
        values = band[k, :-k]
        result[..., k:] += values * x[..., :-k]
        result[..., :-k] += values * x[..., k:]
    return result


def _lower_times(lower: Floats, x: Floats) -> Floats:
    """A lower banded matrix times vectors (..., size)."""
    result = lower[0] * x
    for k in range(1, min(lower.shape)):
        result[..., k:] += lower[k, :-k] * x[..., :-k]
    return result


class _Root:
    """A lower banded matrix L in blocks, to be solved for many rows at the speed of products."""

    def __init__(self, lower: Floats) -> None:
        self.size = lower.shape[1]
        diagonal, self.below = _blocks(lower, max(LEAST_BLOCK, len(lower)))
        self.inverse = np.linalg.inv(diagonal)

    def solve(self, right: Floats) -> Floats:
        """Rows x with x L = right: (rows, size)."""
        x, block = right.copy(), self.inverse.shape[1]
        for k in reversed(range(len(self.inverse))):
            here, after = slice(k * block, (k + 1) * block), slice((k + 1) * block, None)
            if k + 1 < len(self.inverse):
                late = x[:, after][:, :block]
                x[:, here] -= late @ self.below[k, : late.shape[1]]
            width = x[:, here].shape[1]
            x[:, here] = x[:, here] @ self.inverse[k, :width, :width]
        return x

    def solve_transposed(self, right: Floats) -> Floats:
        """Rows x with x L' = right: (rows, size)."""
        x, block = right.copy(), self.inverse.shape[1]
        for k in range(len(self.inverse)):
            here = slice(k * block, (k + 1) * block)
            width = x[:, here].shape[1]
            if k:
                x[:, here] -= x[:, (k - 1) * block : k * block] @ self.below[k - 1, :width].T
            x[:, here] = x[:, here] @ self.inverse[k, :width, :width].T
        return x


def _blocks(lower: Floats, block: int) -> tuple[Floats, Floats]:
    """Diagonal blocks of a lower banded matrix, and those below each, filled up with ones.

    The matrix has no entries beyond those.
    """
    width, size = lower.shape
    number = -(-size // block)
    padded = np.zeros((width, number * block))
    padded[:, :size] = lower
    padded[0, size:] = 1.0
    both = np.zeros((number, 2 * block, block))
    for column in range(block):
        reach = min(width, 2 * block - column)
        both[:, column : column + reach, column] = padded[:reach, column::block].T
    return both[:, :block], both[:, block:]


def _marginals(lower: Floats, block: int) -> Floats:
    """Diagonal blocks of the inverse of a block tridiagonal matrix, from its Cholesky factor."""
    diagonal, below = _blocks(lower, block)
    inverse = np.linalg.inv(diagonal)
    pull = below @ inverse
    covariance = np.swapaxes(inverse, 1, 2) @ inverse
    for t in range(len(covariance) - 2, -1, -1):
        covariance[t] += pull[t].T @ covariance[t + 1] @ pull[t]
    return covariance
