"""Rankings sorted best first, and the sets from which tied algorithms are chosen."""

from collections.abc import Iterator
from functools import cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import UNKNOWN, Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

EXACT_TIES = 12
"""The most tied algorithms of which all subsets are counted; of more, those of sampled orders."""

SAMPLED_ORDERS = 20
"""The number of random orders, each in all its rotations, that stand for a larger tied group."""

PRECISE_ENOUGH = 10_000.0
"""The most choices at a time for which single precision gets the log-likelihood right to 0.001."""

_CELLS_AT_ONCE = 1 << 21


class Part(NamedTuple):
    """Rankings of one length, best first, those not known last: shapes (T, rankings, length)."""

    algorithm: Ints
    known: NDArray[np.bool_]
    opens: NDArray[np.bool_]  # whether a group of tied algorithms begins here
    size: Ints  # how many are in the group that begins here
    weight: Floats
    comparison: Ints  # (rankings,): which they are


def sorted_parts(rankings: Rankings) -> Iterator[Part]:
    """All rankings of two algorithms or more, those of one length together."""
    lengths = np.diff(rankings.offset)
    for length in np.unique(lengths[lengths > 1]):
        comparisons = np.flatnonzero(lengths == length)
        for rows in slices(len(comparisons), length * len(rankings.times)):
            some = comparisons[rows]
            entry = rankings.offset[some][:, None] + np.arange(length)
            position = rankings.position[:, entry].astype(np.int64)
            position[position == UNKNOWN] = length
            order = np.argsort(position, axis=-1, kind="stable")
            position = np.take_along_axis(position, order, axis=-1)
            algorithm = rankings.algorithm[entry][np.arange(len(some))[:, None], order]
            known = position < length
            # A position counts those ahead, so a group opens where it equals the place.
            opens = position == np.arange(length)
            size = np.zeros(position.shape, dtype=np.int64)
            end = known.sum(axis=-1)
            for place in range(length - 1, -1, -1):
                size[..., place] = np.where(opens[..., place], end - place, 0)
                end = np.where(opens[..., place], place, end)
            yield Part(algorithm, known, opens, size, rankings.weight[some], some)


class Subsets(NamedTuple):
    """Nonempty subsets of a tied group of a size, and how much each weighs."""

    member: Floats  # (subsets, size)
    weight: Floats


@cache
def subsets(size: int) -> Subsets:
    """From which subsets of a tied group somebody is chosen, in the mean over all orders.

    >>> member, weight = subsets(2)
    >>> member.tolist(), weight.tolist()
    ([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.5, 0.5, 1.0])
    """
    if size <= EXACT_TIES:
        number = np.arange(1, 1 << size)
        member = (number[:, None] >> np.arange(size) & 1).astype(np.float64)
        weight = np.array([1.0 / comb(size, m) for m in range(1, size + 1)])
        return Subsets(member, weight[member.sum(axis=1).astype(int) - 1])
    rng = np.random.default_rng(size)
    # All rotations of an order give every algorithm every place equally often.
    base = [rng.permutation(size) for _ in range(SAMPLED_ORDERS)]
    orders = np.stack([(order + k) % size for order in base for k in range(size)])
    member = (orders[:, None, :] >= np.arange(size)[None, :, None]).reshape(-1, size)
    return Subsets(member.astype(np.float64), np.full(len(member), 1.0 / len(orders)))


def centred(mu: Floats) -> Floats:
    """Utilities below their largest, cut at -300, so that no square of exp(mu) underflows."""
    return np.maximum(mu - mu.max(axis=-1, keepdims=True), -300.0)


def exponentials(mu: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Utilities (draws, T, n) within the range of their precision, and exp(mu) as (T, n, draws)."""
    if np.ptp(mu) > 80.0:  # else no exponential is out of the range even of single precision
        mu = np.maximum(centred(mu), -80.0) if mu.itemsize < 8 else centred(mu)
    return mu, np.exp(np.ascontiguousarray(mu.transpose(1, 2, 0)))


def tails(values: NDArray[Any]) -> NDArray[Any]:
    """Sums from each place to the end, and the empty sum behind it."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1), dtype=values.dtype)
    sums[..., :-1] = np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
    return sums


def slices(rows: int, cells_per_row: int) -> Iterator[slice]:
    """Ranges of rows with a bounded number of cells."""
    step = max(1, _CELLS_AT_ONCE // max(1, cells_per_row))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
