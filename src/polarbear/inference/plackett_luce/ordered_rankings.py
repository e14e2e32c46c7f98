"""Rankings sorted best first, subsets of tied groups, and exponentials of utilities."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import comb
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from polarbear.data.names import NumberedNames
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
    """Rankings of equal length, best first, unknown algorithms last (rankings, length)."""

    time: Ints  # (rankings,): the index of the time
    algorithm: Ints
    known: NDArray[np.bool_]
    is_ordered: NDArray[np.bool_]  # known, and not only known to be behind the first ``top``
    group_size: Ints  # the size of the group of ties that begins here, else 0; 0 if not ordered
    weight: Floats  # (rankings,)
    comparison: Ints  # (rankings,): index of the comparison; of one of them if several are merged


class _Rows(NamedTuple):
    """Rankings of equal length as they are stored: algorithms with their positions."""

    time: Ints  # (rankings,)
    algorithm: Ints  # (rankings, length)
    position: Ints  # (rankings, length)
    behind_top: NDArray[np.bool_]  # (rankings, length)
    weight: Floats  # (rankings,)
    comparison: Ints  # (rankings,)

    def take(self, rows: Any) -> "_Rows":
        """Return some of the rankings, given by index or slice."""
        return _Rows(*(cast(Any, values)[rows] for values in self))

    def merge_equal(self) -> "_Rows":
        """Return the distinct rankings of each time, with the sums of their weights."""
        length = self.algorithm.shape[1]
        code = self.algorithm * np.int32(length + 1) + np.int32(1) + self.position
        if self.behind_top.any():
            code = 2 * code + self.behind_top
        first, same = find_equal_rows(self.time, code)
        if len(first) == len(same):
            return self
        weight = np.bincount(same, self.weight, minlength=len(first)).astype(np.float64)
        return self.take(first)._replace(weight=weight)


def iterate_sorted_rankings(rankings: Rankings, *, merge: bool = False) -> Iterator[SortedRankings]:
    """Yield rankings of two or more algorithms in parts of equal length, sorted best first.

    With ``merge``, equal rankings at the same time are counted once, with the sum of their weights.
    """
    for rows in _iterate_rows(rankings, merge=merge):
        if rows.algorithm.shape[1] > 1:
            yield _sort_best_first(rows)


def merge_comparisons(rankings: Rankings) -> Rankings:
    """Return rankings at one time with equal comparisons counted once, by the sum of weights.

    >>> from polarbear.simulation import rank_costs
    >>> merge_comparisons(rank_costs(np.array([[[1.0, 2.0], [2.0, 1.0], [3.0, 4.0]]]))).weight
    array([2., 1.])
    """
    parts = list(_iterate_rows(rankings, merge=True))
    sizes = [np.full(len(rows.time), rows.algorithm.shape[1]) for rows in parts]
    n_merged = sum(len(rows.time) for rows in parts)
    names: Any = NumberedNames("comparison", n_merged)
    rest = [rows.behind_top.ravel() for rows in parts]
    return replace(
        rankings,
        instances=names,
        position=np.concatenate([rows.position.ravel() for rows in parts])[None],
        algorithm=np.concatenate([rows.algorithm.ravel() for rows in parts]),
        offset=np.concatenate([[0], np.cumsum(np.concatenate(sizes))]),
        instance=np.arange(n_merged, dtype=np.int32),
        weight=np.concatenate([rows.weight for rows in parts]),
        instance_data={},
        behind_top=None if rankings.behind_top is None else np.concatenate(rest)[None],
    )


def _iterate_rows(rankings: Rankings, *, merge: bool) -> Iterator[_Rows]:
    """Yield the rankings in parts of equal length and bounded size, with ``merge`` counted once."""
    lengths = np.diff(rankings.offset)
    for length in np.flatnonzero(np.bincount(lengths)).tolist():
        of_length = np.flatnonzero(lengths == length)
        parts = (
            _collect_rows(rankings, of_length[some], length, merge)
            for some in bounded_slices(len(of_length), length * len(rankings.times))
        )
        if merge:
            fields: Any = map(np.concatenate, zip(*parts, strict=True))
            joined = _Rows(*fields).merge_equal()
            slices = bounded_slices(len(joined.time), length)
            parts = (joined.take(some) for some in slices)
        yield from parts


def _collect_rows(rankings: Rankings, comparison: Ints, length: int, merge: bool) -> _Rows:
    """Return the rankings of comparisons of equal length at all times, time by time."""
    n_times, first, last = len(rankings.times), comparison[0], comparison[-1]
    if last - first + 1 == len(comparison):  # their entries are neighbours: no copy is needed
        entry: Any = slice(rankings.offset[first], rankings.offset[last + 1])
    else:
        entry = (rankings.offset[comparison][:, None] + np.arange(length)).ravel()
    algorithm = np.broadcast_to(rankings.algorithm[entry], (n_times, len(comparison) * length))
    rest = np.broadcast_to(np.False_, algorithm.shape)
    rest = rest if rankings.behind_top is None else rankings.behind_top[:, entry]
    rows = _Rows(
        time=np.repeat(np.arange(n_times), len(comparison)),
        algorithm=algorithm.reshape(-1, length),
        position=rankings.position[:, entry].reshape(-1, length),
        behind_top=rest.reshape(-1, length),
        weight=np.tile(rankings.weight[comparison], n_times),
        comparison=np.tile(comparison, n_times),
    )
    return rows.merge_equal() if merge else rows


def _sort_best_first(rows: _Rows) -> SortedRankings:
    """Sort the algorithms of each ranking by position, and find the groups of tied ones."""
    length = rows.algorithm.shape[1]
    position = rows.position.astype(np.int64)
    position[position == UNKNOWN] = length
    order = np.argsort(position, axis=-1, kind="stable")
    position = np.take_along_axis(position, order, axis=-1)
    known = position < length
    # A position counts the algorithms ahead, so a group starts where it equals the place.
    starts_group = position == np.arange(length)
    is_ordered = known
    if rows.behind_top.any():
        is_ordered = known & ~np.take_along_axis(rows.behind_top, order, axis=-1)
    return SortedRankings(
        time=rows.time,
        algorithm=np.take_along_axis(rows.algorithm, order, axis=-1),
        known=known,
        is_ordered=is_ordered,
        group_size=np.where(is_ordered, _group_sizes(known, starts_group), 0),
        weight=rows.weight,
        comparison=rows.comparison,
    )


def find_equal_rows(time: Ints, code: Ints) -> tuple[Ints, Ints]:
    """Return one index for each distinct row (time, code), increasing in time, and each row's.

    ``code`` (rows, length) are whole numbers from 0. Rows are compared by a key of 64 bits: exact
    if it holds all numbers of a row, else a hash. Hashed rows are then compared in full; if two
    different ones have the same key, none are taken as equal.

    >>> find_equal_rows(np.zeros(3, dtype=int), np.array([[1, 2], [0, 1], [1, 2]]))
    (array([1, 0]), array([1, 0, 1]))
    """
    n_rows, length = code.shape
    base = int(code.max(initial=0)) + 1
    n_keys = (int(time.max(initial=0)) + 1) * base**length
    if n_keys <= 4 * n_rows:  # count without sorting
        key = _exact_keys(time, code, base)
        first = np.full(n_keys, -1)
        first[key[::-1]] = np.arange(n_rows - 1, -1, -1)
        used = first >= 0
        return first[used], (np.cumsum(used) - 1)[key]
    if n_keys < 1 << 63:
        _, first, same = np.unique(
            _exact_keys(time, code, base), return_index=True, return_inverse=True
        )
        return first, same
    factors = np.random.default_rng(0).integers(1, 1 << 63, length, dtype=np.uint64) | np.uint64(1)
    key = code.astype(np.uint64) @ factors
    # The time stands in the highest bits, so that distinct rows stay sorted by time.
    bits = np.uint64(max(1, int(time.max(initial=0)).bit_length()))
    key = (key >> bits) | (time.astype(np.uint64) << (np.uint64(64) - bits))
    _, first, same = np.unique(key, return_index=True, return_inverse=True)
    if len(first) < n_rows and not np.array_equal(code[first][same], code):
        return np.arange(n_rows), np.arange(n_rows)
    return first, same


def _exact_keys(time: Ints, code: Ints, base: int) -> Ints:
    """Return for each row the number whose digits in a base are its time and its codes."""
    key = time.astype(np.int64)
    for column in code.T:
        key *= base
        key += column
    return key


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
    # All rotations of an order give every algorithm every place equally often.
    orders = np.stack([(order + k) % size for order in sample_orders(size) for k in range(size)])
    member = (orders[:, None, :] >= np.arange(size)[None, :, None]).reshape(-1, size)
    return TieSubsets(member.astype(np.float64), np.full(len(member), 1.0 / len(orders)))


@cache
def sample_orders(size: int) -> Ints:
    """Return the place of each member of a tied group in random orders (orders, group size)."""
    rng = np.random.default_rng(size)
    return np.stack([rng.permutation(size) for _ in range(SAMPLED_ORDERS)])


def sum_over_pairs(rate: Floats, subsets: TieSubsets) -> Floats:
    """Return for each pair of a group's members the sum of rates of the subsets with both.

    ``rate`` is (groups, subsets), and the result (groups, group size, group size). The subsets of
    sampled orders are the arcs of a circle: with all rotations, those that hold the places a and b
    are found from sums along the circle, without going through pairs for each subset.

    >>> subsets = tie_subsets(EXACT_TIES + 1)
    >>> rate = np.random.default_rng(0).random((1, len(subsets.weight)))
    >>> literal = (rate[:, None, :] * subsets.member.T) @ subsets.member
    >>> bool(np.allclose(sum_over_pairs(rate, subsets), literal))
    True
    """
    size = subsets.member.shape[1]
    if size <= EXACT_TIES:
        return (rate[:, None, :] * subsets.member.T) @ subsets.member
    place = sample_orders(size)
    a, b = np.ogrid[:size, :size]
    # The sets of a rotation r are nested: that with place v has all sets of places up to v.
    nested = np.cumsum(rate.reshape(len(rate), -1, size, size), axis=-1)
    before = np.zeros((*nested.shape[:-1], size + 1))
    np.cumsum(nested[..., (b - a) % size, b], axis=-1, out=before[..., 1:])
    # Place b comes d after a on the circle. The earlier one is a, or b where it begins anew.
    d = (b - a) % size
    both = before[..., a, size - d] + before[..., b, d]
    order = np.arange(len(place))[:, None, None]
    return both[:, order, place[:, :, None], place[:, None, :]].sum(axis=1)


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
