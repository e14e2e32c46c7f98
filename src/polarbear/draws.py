"""Draws of curves: how to make them weigh the same, and how to move them to other moments."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


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


class Moments(NamedTuple):
    """Mean (T, n) and covariance (T, n, n) at each time."""

    mean: Floats
    covariance: Floats


def moments(draws: NDArray[Any], weight: NDArray[Any] | None = None) -> Moments:
    """Of draws (D, T, n), that weigh the same or by (D,), or at each time by (D, T)."""
    if weight is None:
        weight = np.ones(len(draws))
    share = np.broadcast_to(weight.reshape(len(draws), -1), draws.shape[:2]).astype(np.float64)
    share = share / share.sum(axis=0)
    mean = np.einsum("dt,dtn->tn", share, draws)
    away = (draws - mean).transpose(1, 2, 0)
    return Moments(mean, (away * share.T[:, None, :]) @ away.swapaxes(1, 2))


def matched(draws: Singles, have: Moments, want: Moments) -> Singles:
    """Draws (D, T, n) moved, all of a time alike, from the moments they have to others.

    By the symmetric matrix that moves them least. With too few draws for so many algorithms only
    the mean is moved.
    """
    away = (draws - have.mean).astype(np.float32)
    if len(draws) >= 20 * draws.shape[2]:
        root, back = _roots(have.covariance)
        middle, _ = _roots(root @ want.covariance @ root)
        move = (back @ middle @ back).astype(np.float32)
        away = (away.swapaxes(0, 1) @ move).swapaxes(0, 1)
    return (want.mean + away).astype(np.float32)


def _roots(covariance: Floats) -> tuple[Floats, Floats]:
    """Symmetric roots of covariances, and their pseudo-inverses: utilities sum to zero."""
    size, direction = np.linalg.eigh(covariance)
    size = np.sqrt(np.maximum(size, 0.0))
    least = 1e-6 * size[:, -1:]
    inverse = np.where(size > least, 1 / np.maximum(size, least + 1e-300), 0.0)
    turned = direction.swapaxes(1, 2)
    return (direction * size[:, None]) @ turned, (direction * inverse[:, None]) @ turned
