"""Weighted posterior draws: resampling, transposing, moments and moment matching."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

MIN_DRAWS_PER_ALGORITHM = 20
"""Draws per algorithm from which their covariance can be matched, not only their mean."""

TILE_SHAPE = (256, 112)
"""Rows and columns that are transposed at a time."""


def systematic_resample(
    weight: NDArray[Any], draws: int | None = None, offset: float = 0.5
) -> NDArray[np.intp]:
    """Return draw indices from systematic resampling by weights, by default one per weight.

    Index i is drawn once for each of the points (k + offset) / draws, k = 0, 1, ..., that falls
    into its interval of the cumulated weights (Kitagawa 1996).

    >>> systematic_resample(np.array([0.5, 0.25, 0.25, 0.0]))
    array([0, 0, 1, 2])
    """
    cumulated = np.cumsum(weight, dtype=np.float64)
    draws = len(weight) if draws is None else draws
    points = (np.arange(draws) + offset) / draws * cumulated[-1]
    return np.minimum(np.searchsorted(cumulated, points), len(weight) - 1)


def transpose_in_tiles(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the transpose of a matrix as a contiguous copy.

    Tiles that fit into the processor's cache make it several times faster than a plain copy.
    """
    size, width = rows.shape
    transposed = np.empty((width, size), dtype=rows.dtype)
    height, breadth = TILE_SHAPE
    for k in range(0, width, breadth):
        for i in range(0, size, height):
            transposed[k : k + breadth, i : i + height] = rows[i : i + height, k : k + breadth].T
    return transposed


def iterate_times(draws: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the draws of each time as a contiguous array (algorithms, draws).

    >>> [at_time.tolist() for at_time in iterate_times(np.arange(8).reshape(2, 2, 2))]
    [[[0, 4], [1, 5]], [[2, 6], [3, 7]]]
    """
    size, n_times, n = draws.shape
    step = max(1, TILE_SHAPE[1] // n)
    for t in range(0, n_times, step):
        chunk = draws[:, t : t + step].reshape(size, -1)
        yield from transpose_in_tiles(chunk).reshape(-1, n, size)


def find_distinct_times(draws: NDArray[Any]) -> NDArray[np.intp]:
    """Return the indices of the times at which draws differ from those of the time before.

    >>> find_distinct_times(np.array([[[1], [1], [2]], [[3], [3], [3]]]))
    array([0, 2])
    """
    differs = np.append(True, np.any(draws[0, 1:] != draws[0, :-1], axis=1))
    for t in np.flatnonzero(~differs):  # equal in the first draw: compare the others
        differs[t] = not np.array_equal(draws[:, t], draws[:, t - 1])
    return np.flatnonzero(differs)


def normalised_weights(weight: NDArray[Any], t: int) -> Floats:
    """Return the weights of all draws at time t, scaled to sum to 1."""
    share = weight[:, t if weight.shape[1] > 1 else 0].astype(np.float64)
    return share / share.sum()


class Moments(NamedTuple):
    """Mean (times, algorithms) and covariance (times, algorithms, algorithms) of utilities."""

    mean: Floats
    covariance: Floats


def compute_moments(draws: NDArray[Any], weight: NDArray[Any] | None = None) -> Moments:
    """Return the moments of draws (draws, times, algorithms), by default with equal weights."""
    size, n_times, n = draws.shape
    weight = np.ones((size, 1)) if weight is None else weight.reshape(size, -1)
    mean, covariance = np.empty((n_times, n)), np.empty((n_times, n, n))
    for t, single in enumerate(iterate_times(draws)):  # one time fits into the processor's cache
        at_time = single.astype(np.float64)
        share = normalised_weights(weight, t)
        mean[t] = at_time @ share
        at_time -= mean[t][:, None]
        covariance[t] = (at_time * share) @ at_time.T
    return Moments(mean, covariance)


def match_moments(draws: Singles, current: Moments, target: Moments) -> Singles:
    """Map draws affinely at each time, so that their moments become the target moments.

    With current covariance C and target covariance S the symmetric matrix
    C^-1/2 (C^1/2 S C^1/2)^1/2 C^-1/2 moves the draws least: it is the optimal transport between
    Gaussians (Olkin and Pukelsheim 1982). With fewer than 20 draws for each algorithm only the
    mean is moved.
    """
    deviation = draws - current.mean.astype(np.float32)
    if len(draws) >= MIN_DRAWS_PER_ALGORITHM * draws.shape[2]:
        transport = moment_transport(current, target).astype(np.float32)
        deviation = (deviation.swapaxes(0, 1) @ transport).swapaxes(0, 1)
    return deviation + target.mean.astype(np.float32)


def moment_transport(current: Moments, target: Moments) -> Floats:
    """Return at each time the matrix by which deviations get the target covariance."""
    root, inverse_root = _symmetric_roots(current.covariance)
    middle, _ = _symmetric_roots(root @ target.covariance @ root)
    return inverse_root @ middle @ inverse_root


def _symmetric_roots(covariance: Floats) -> tuple[Floats, Floats]:
    """Return symmetric square roots of covariances, one for each time, and their pseudo-inverses.

    Utilities sum to zero, so the covariances are singular.
    """
    eigenvalue, direction = np.linalg.eigh(covariance)
    sd = np.sqrt(np.maximum(eigenvalue, 0.0))
    least = 1e-6 * sd[:, -1:]
    inverse = np.where(sd > least, 1 / np.maximum(sd, least + 1e-300), 0.0)
    transposed = direction.swapaxes(1, 2)
    return (direction * sd[:, None]) @ transposed, (direction * inverse[:, None]) @ transposed
