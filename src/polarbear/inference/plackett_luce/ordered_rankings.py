"""Rankings sorted best first, subsets of tied groups, and exponentials of utilities."""

from collections.abc import Iterator
from functools import cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

EXACT_TIES = 12
"""The largest tied group of which all subsets are counted; larger ones use sampled orders."""

SAMPLED_ORDERS = 20
"""The number of random orders, each in all its rotations, that represent a larger tied group."""

MAX_SINGLE_PRECISION_CHOICES = 10_000.0
"""Up to this many choices at a time, single precision errs in the log-likelihood by below 0.001."""

_MAX_CELLS = 1 << 21


class SortedRankings(NamedTuple):
    """Rankings of equal length, best first, unknown algorithms last (times, rankings, length)."""

    algorithm: Ints
    known: NDArray[np.bool_]
    starts_group: NDArray[np.bool_]  # whether a group of tied algorithms begins at this place
    group_size: Ints  # the size of the group that begins here, else 0
    weight: Floats  # (rankings,)
    comparison: Ints  # (rankings,): index of the comparison in the rankings


def iterate_sorted_rankings(rankings: Rankings) -> Iterator[SortedRankings]:
    """Yield rankings of two or more algorithms in parts of equal length, sorted best first."""
    lengths = np.diff(rankings.offset)
    for length in np.unique(lengths[lengths > 1]):
        of_length = np.flatnonzero(lengths == length)
        for rows in bounded_slices(len(of_length), length * len(rankings.times)):
            comparison = of_length[rows]
            entry = rankings.offset[comparison][:, None] + np.arange(length)
            position = rankings.position[:, entry].astype(np.int64)
            position[position == UNKNOWN] = length
            order = np.argsort(position, axis=-1, kind="stable")
            position = np.take_along_axis(position, order, axis=-1)
            algorithm = rankings.algorithm[entry][np.arange(len(comparison))[:, None], order]
            known = position < length
            # A position counts the algorithms ahead, so a group starts where it equals the place.
            starts_group = position == np.arange(length)
            yield SortedRankings(
                algorithm,
                known,
                starts_group,
                _group_sizes(known, starts_group),
                rankings.weight[comparison],
                comparison,
            )


def _group_sizes(known: NDArray[np.bool_], starts_group: NDArray[np.bool_]) -> Ints:
    """Return at each place of rankings the size of the tied group that starts there, else 0."""
    size = np.zeros(known.shape, dtype=np.int64)
    group_end = known.sum(axis=-1)
    for place in range(known.shape[-1] - 1, -1, -1):
        starts = starts_group[..., place]
        size[..., place] = np.where(starts, group_end - place, 0)
        group_end = np.where(starts, place, group_end)
    return size


class TieSubsets(NamedTuple):
    """The nonempty subsets of a tied group, each with its weight in the likelihood."""

    member: Floats  # (subsets, group size): 1 for members, else 0
    weight: Floats


@cache
def tie_subsets(size: int) -> TieSubsets:
    """Return the subsets of a tied group, each with the share of orders that choose from it.

    An m-subset of a group of size k has the weight 1 / C(k, m).

    >>> member, weight = tie_subsets(2)
    >>> member.tolist(), weight.tolist()
    ([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0.5, 0.5, 1.0])
    """
    if size <= EXACT_TIES:
        code = np.arange(1, 1 << size)
        member = (code[:, None] >> np.arange(size) & 1).astype(np.float64)
        weight = np.array([1.0 / comb(size, m) for m in range(1, size + 1)])
        return TieSubsets(member, weight[member.sum(axis=1).astype(int) - 1])
    rng = np.random.default_rng(size)
    # All rotations of an order give every algorithm every place equally often.
    base = [rng.permutation(size) for _ in range(SAMPLED_ORDERS)]
    orders = np.stack([(order + k) % size for order in base for k in range(size)])
    member = (orders[:, None, :] >= np.arange(size)[None, :, None]).reshape(-1, size)
    return TieSubsets(member.astype(np.float64), np.full(len(member), 1.0 / len(orders)))


def subtract_maximum(mu: Floats) -> Floats:
    """Shift utilities to a maximum of 0, and clip them at -300 so that exp(2 utility) is not 0."""
    return np.maximum(mu - mu.max(axis=-1, keepdims=True), -300.0)


def exponentiate_utilities(mu: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return utilities, shifted if exp would overflow, and exp of them with draws as last axis."""
    if np.ptp(mu) > 80.0:  # a smaller range fits even into single precision
        mu = np.maximum(subtract_maximum(mu), -80.0) if mu.itemsize < 8 else subtract_maximum(mu)
    return mu, np.exp(np.ascontiguousarray(mu.transpose(1, 2, 0)))


def suffix_sums(values: NDArray[Any]) -> NDArray[Any]:
    """Return the sums of values from each place to the end, and a final 0 for the empty sum."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1), dtype=values.dtype)
    sums[..., :-1] = np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
    return sums


def bounded_slices(n_rows: int, cells_per_row: int) -> Iterator[slice]:
    """Yield consecutive slices of rows, each with a bounded number of cells."""
    step = max(1, _MAX_CELLS // max(1, cells_per_row))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))
