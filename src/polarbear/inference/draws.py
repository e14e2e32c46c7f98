"""Draws of curves: how to make them weigh the same, and how to move them to other moments."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

TILE = (256, 112)
"""Rows and columns that are exchanged at once."""


def even(weight: NDArray[Any], draws: int | None = None, offset: float = 0.5) -> NDArray[np.intp]:
    """Which draws to take, some of them more than once, so that all weigh the same.

    Systematic resampling, by default of as many draws as there are.

    >>> even(np.array([0.5, 0.25, 0.25, 0.0]))
    array([0, 0, 1, 2])
    """
    edges = np.cumsum(weight, dtype=np.float64)
    draws = len(weight) if draws is None else draws
    places = (np.arange(draws) + offset) / draws * edges[-1]
    return np.minimum(np.searchsorted(edges, places), len(weight) - 1)


def turned(rows: NDArray[Any]) -> NDArray[Any]:
    """A matrix with rows and columns exchanged, as an array of its own.

    In tiles that fit into the processor's cache, which is several times faster than as a whole.
    """
    size, width = rows.shape
    found = np.empty((width, size), dtype=rows.dtype)
    for k in range(0, width, TILE[1]):
        for i in range(0, size, TILE[0]):
            found[k : k + TILE[1], i : i + TILE[0]] = rows[i : i + TILE[0], k : k + TILE[1]].T
    return found


def by_time(draws: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Draws (D, T, n) at each time, those of an algorithm side by side: (n, D).

    >>> [at.tolist() for at in by_time(np.arange(8).reshape(2, 2, 2))]
    [[[0, 4], [1, 5]], [[2, 6], [3, 7]]]
    """
    size, n_times, n = draws.shape
    step = max(1, TILE[1] // n)
    for t in range(0, n_times, step):
        yield from turned(draws[:, t : t + step].reshape(size, -1)).reshape(-1, n, size)


def share_at(weight: NDArray[Any], t: int) -> Floats:
    """Weights (D, T), or (D, 1) for all times, at a time, summing to 1."""
    share = weight[:, t if weight.shape[1] > 1 else 0].astype(np.float64)
    return share / share.sum()


class Moments(NamedTuple):
    """Mean (T, n) and covariance (T, n, n) at each time."""

    mean: Floats
    covariance: Floats


def moments(draws: NDArray[Any], weight: NDArray[Any] | None = None) -> Moments:
    """Of draws (D, T, n), that weigh the same or by (D,), or at each time by (D, T)."""
    size, n_times, n = draws.shape
    weight = np.ones((size, 1)) if weight is None else weight.reshape(size, -1)
    mean, covariance = np.empty((n_times, n)), np.empty((n_times, n, n))
    for t, single in enumerate(by_time(draws)):  # a time fits into the processor's cache
        at = single.astype(np.float64)
        share = share_at(weight, t)
        mean[t] = at @ share
        at -= mean[t][:, None]
        covariance[t] = (at * share) @ at.T
    return Moments(mean, covariance)


def matched(draws: Singles, have: Moments, want: Moments) -> Singles:
    """Draws (D, T, n) moved, all of a time alike, from the moments they have to others.

    By the symmetric matrix that moves them least. With too few draws for so many algorithms only
    the mean is moved.
    """
    away = draws - have.mean.astype(np.float32)
    if len(draws) >= 20 * draws.shape[2]:
        root, back = _roots(have.covariance)
        middle, _ = _roots(root @ want.covariance @ root)
        move = (back @ middle @ back).astype(np.float32)
        away = (away.swapaxes(0, 1) @ move).swapaxes(0, 1)
    return np.add(want.mean, away, dtype=np.float32)


def _roots(covariance: Floats) -> tuple[Floats, Floats]:
    """Symmetric roots of covariances, and their pseudo-inverses: utilities sum to zero."""
    size, direction = np.linalg.eigh(covariance)
    size = np.sqrt(np.maximum(size, 0.0))
    least = 1e-6 * size[:, -1:]
    inverse = np.where(size > least, 1 / np.maximum(size, least + 1e-300), 0.0)
    turned = direction.swapaxes(1, 2)
    return (direction * size[:, None]) @ turned, (direction * inverse[:, None]) @ turned
