"""``Rankings``: who was ahead of whom, on each instance, at each time of a grid.

A *comparison* is a set of runs of different algorithms on one instance, one run each: who is ahead
in it at a time is one ranking. Repetitions on an instance make several comparisons of that one
instance. Instances are the independent units of evidence: the comparisons of one instance share
its weight, and its rankings at different times are not independent of each other.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import floor
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import format_count, format_list, format_range
from polarbear.data import grid
from polarbear.data.frozen import FrozenRecord
from polarbear.data.long_table import number_pairs
from polarbear.data.names import Codes, find_indices, natural_sort_key
from polarbear.data.runs import Runs, check_runs
from polarbear.data.trajectories import Floats, Ints, costs_at, gather
from polarbear.errors import DataError

Positions = NDArray[np.signedinteger]

UNKNOWN = -1
"""The position of a run that is not known at a time."""

SMALL = 16
"""The most runs in a comparison that are counted rather than sorted."""

SLACK = 1e-9
"""Tolerances are this much wider, so that 1.1 and 1.0 tie at 0.1 in spite of rounding."""

_CELLS_AT_ONCE = 1 << 21
"""How many (time, run) cells are worked on at once: bounds memory, whatever the number of runs."""


@dataclass(frozen=True, eq=False, repr=False)
class Rankings(FrozenRecord):
    """Positions of runs within their comparisons, at each time of a grid.

    Made by :func:`rank`. Entries are runs, those of one comparison next to each other.

    Attributes
    ----------
    algorithms, instances
        The names.
    times
        The grid.
    position
        Shape (times, entries): how many runs of its comparison are ahead of an entry, so 0 is
        first and tied runs are equal; -1 where the run is not known at that time.
    algorithm
        For each entry, which algorithm it is of.
    offset
        Comparison c owns the entries ``offset[c]:offset[c + 1]``.
    instance
        For each comparison, which instance it belongs to.
    weight
        For each comparison, how much it counts. By default 1 per instance in total.
    clock
        What the times count.

    Examples
    --------
    >>> runs = Runs.from_frame(
    ...     {"algorithm": ["a", "b"] * 2, "instance": ["x", "x", "y", "y"], "time": [1] * 4,
    ...      "value": [2, 1, 5, 6]}, direction="minimize")
    >>> rankings = rank(runs)
    >>> rankings.order("x", 1), rankings.win_rate("a", "b")
    ([[('b',), ('a',)]], array([0.5]))
    """

    algorithms: tuple[str, ...]
    instances: tuple[str, ...]
    times: Floats
    position: Positions
    algorithm: Codes
    offset: NDArray[np.int64]
    instance: Codes
    weight: Floats
    clock: str = "time"

    def order(self, instance: str, time: float) -> list[list[tuple[str, ...]]]:
        """The rankings of an instance at a time of the grid: one per comparison, best first.

        Algorithms in one tuple are tied; algorithms not known there are left out.

        >>> runs = Runs.from_frame(
        ...     {"algorithm": ["a", "b", "c"], "instance": [1, 1, 1], "time": [1, 1, 1],
        ...      "value": [2, 1, 2]}, direction="minimize")
        >>> rank(runs).order("1", 1)
        [[('b',), ('a', 'c')]]
        """
        (wanted,) = find_indices([instance], self.instances, "instance")
        row = self._time(time)
        found: list[list[tuple[str, ...]]] = []
        for c in np.flatnonzero(self.instance == wanted):
            part = slice(self.offset[c], self.offset[c + 1])
            groups: dict[int, list[str]] = {}
            for position, code in zip(self.position[row, part], self.algorithm[part], strict=True):
                if position != UNKNOWN:
                    groups.setdefault(int(position), []).append(self.algorithms[code])
            found.append([tuple(groups[position]) for position in sorted(groups)])
        return found

    def win_rate(self, a: str, b: str) -> Floats:
        """How often ``a`` was ahead of ``b`` at each time: a plain weighted count, ties half.

        ``nan`` at times at which the two were never known together.

        >>> runs = Runs.from_frame(
        ...     {"algorithm": ["a", "b", "a", "b"], "instance": [1, 1, 2, 2], "time": [1, 1, 1, 1],
        ...      "value": [2, 1, 5, 5]}, direction="minimize")
        >>> rank(runs).win_rate("a", "b")
        array([0.25])
        """
        first, second = find_indices([a, b], self.algorithms, "algorithm")
        comparison = np.repeat(np.arange(len(self.instance)), np.diff(self.offset))
        at_a, at_b = (np.flatnonzero(self.algorithm == code) for code in (first, second))
        both, in_a, in_b = np.intersect1d(
            comparison[at_a], comparison[at_b], assume_unique=True, return_indices=True
        )
        mine, theirs = self.position[:, at_a[in_a]], self.position[:, at_b[in_b]]
        weight = self.weight[both] * ((mine != UNKNOWN) & (theirs != UNKNOWN))
        won = weight * ((mine < theirs) + 0.5 * (mine == theirs))
        instance = self.instance[both]
        total = np.bincount(self.instance, self.weight, minlength=len(self.instances))
        rate = np.zeros((2, len(self.times)))
        for t in range(len(self.times)):
            # Each instance counts in full, with the mean over those of its comparisons known then.
            known = np.bincount(instance, weight[t], minlength=len(total))
            wins = np.bincount(instance, won[t], minlength=len(total))
            seen = known > 0
            rate[:, t] = (wins[seen] / known[seen]) @ total[seen], total[seen].sum()
        with np.errstate(invalid="ignore"):
            return rate[0] / rate[1]

    def take(self, instances: ArrayLike) -> "Rankings":
        """The rankings of some instances, by number; those taken again count as new instances.

        >>> runs = Runs.from_frame(
        ...     {"algorithm": ["a", "b"] * 2, "instance": ["x", "x", "y", "y"], "time": [1] * 4,
        ...      "value": [2, 1, 5, 6]}, direction="minimize")
        >>> rank(runs).take([1, 1]).instances
        ('y', 'y (2)')
        """
        chosen = np.asarray(instances, dtype=np.intp)
        order = np.argsort(self.instance, kind="stable")
        first = np.searchsorted(self.instance[order], chosen)
        number = np.searchsorted(self.instance[order], chosen, side="right") - first
        comparison = order[_ranges(first, number)]
        length = np.diff(self.offset)[comparison]
        entry = _ranges(self.offset[comparison], length)
        seen: Counter[int] = Counter()
        names = []
        for code in chosen.tolist():
            seen[code] += 1
            again = f" ({seen[code]})" if seen[code] > 1 else ""
            names.append(f"{self.instances[code]}{again}")
        return replace(
            self,
            instances=tuple(names),
            position=self.position[:, entry],
            algorithm=self.algorithm[entry],
            offset=np.concatenate([[0], np.cumsum(length)]),
            instance=np.repeat(np.arange(len(chosen), dtype=np.int32), number),
            weight=self.weight[comparison],
        )

    def among(self, algorithms: Collection[str]) -> "Rankings":
        """The rankings of some algorithms, as if the others had not taken part.

        >>> runs = Runs.from_frame(
        ...     {"algorithm": ["a", "b", "c"], "instance": [1] * 3, "time": [1] * 3,
        ...      "value": [3, 2, 1]}, direction="minimize")
        >>> rank(runs).among(["a", "b"]).order("1", 1)
        [[('b',), ('a',)]]
        """
        kept = np.zeros(len(self.algorithms), dtype=bool)
        kept[find_indices(algorithms, self.algorithms, "algorithm")] = True
        comparison = np.repeat(np.arange(len(self.instance)), np.diff(self.offset))
        position = self.position.copy()
        for code in np.flatnonzero(~kept).tolist():
            entry = np.flatnonzero(self.algorithm == code)
            size = np.diff(self.offset)[comparison[entry]]
            theirs = _ranges(self.offset[comparison[entry]], size)
            gone = np.repeat(self.position[:, entry], size, axis=1)
            position[:, theirs] -= (gone != UNKNOWN) & (gone < self.position[:, theirs])
        stays = kept[self.algorithm]
        size = np.bincount(comparison[stays], minlength=len(self.instance))
        instance, codes = np.unique(self.instance[size > 0], return_inverse=True)
        return replace(
            self,
            instances=tuple(self.instances[code] for code in instance),
            instance=codes.astype(np.int32),
            weight=self.weight[size > 0],
            algorithms=tuple(self.algorithms[code] for code in np.flatnonzero(kept)),
            position=position[:, stays],
            algorithm=(np.cumsum(kept) - 1).astype(np.int32)[self.algorithm[stays]],
            offset=np.concatenate([[0], np.cumsum(size[size > 0])]),
        )

    def join(self, other: "Rankings") -> "Rankings":
        """These rankings, and those of other instances at the same times.

        >>> def ranked(instance):
        ...     table = {"algorithm": ["a", "b"], "instance": [instance] * 2, "time": [1] * 2,
        ...              "value": [2, 1]}
        ...     return rank(Runs.from_frame(table, direction="minimize"))
        >>> ranked("x").join(ranked("y")).instances
        ('x', 'y')
        """
        names = tuple(sorted({*self.algorithms, *other.algorithms}, key=natural_sort_key))
        kind = np.promote_types(self.position.dtype, other.position.dtype)
        parts = [
            (part, find_indices(part.algorithms, names, "algorithm")) for part in (self, other)
        ]
        return replace(
            self,
            algorithms=names,
            instances=self.instances + other.instances,
            position=np.concatenate([self.position, other.position], axis=1, dtype=kind),
            algorithm=np.concatenate(
                [code[part.algorithm] for part, code in parts], dtype=np.int32
            ),
            offset=np.concatenate([self.offset, self.offset[-1] + other.offset[1:]]),
            instance=np.concatenate([self.instance, len(self.instances) + other.instance]),
            weight=np.concatenate([self.weight, other.weight]),
        )

    def __str__(self) -> str:
        known = self.position != UNKNOWN
        grid = f"at {format_range(self.times[0], self.times[-1], self.clock)}"
        if len(self.times) > 1:
            grid = grid.replace("at", f"at {len(self.times)} times from", 1)
        return (
            f"{format_count(len(self.instance), 'comparison')} of "
            f"{format_count(len(self.algorithms), 'algorithm')} on "
            f"{format_count(len(self.instances), 'instance')}\n"
            f"  algorithms  {format_list(self.algorithms)}\n"
            f"  rankings    {grid}\n"
            f"  known       {floor(100 * known.mean()) if known.size else 0}% of positions"
        )

    __repr__ = __str__

    def _time(self, time: float) -> int:
        row = int(np.argmin(np.abs(self.times - time)))
        if not np.isclose(self.times[row], time, rtol=1e-6, atol=0.0):
            raise DataError(
                f"{time:g} is not a time of the grid; the nearest is {self.times[row]:.7g}, "
                "and rank(runs, times) asks at any times"
            )
        return row


def _ranges(start: Ints, length: Ints) -> Ints:
    """Concatenate the ranges start[i] .. start[i] + length[i]."""
    before = np.cumsum(length) - length
    return np.arange(length.sum()) + np.repeat(start - before, length)


def rank(
    runs: Runs,
    times: ArrayLike | None = None,
    *,
    abs_tol: float = 0.0,
    rel_tol: float = 0.0,
    weights: Mapping[str, float] | None = None,
    unit: Literal["instance", "run"] = "instance",
) -> Rankings:
    """Rank the runs of each instance at each time.

    Parameters
    ----------
    runs
        What happened.
    times
        The grid; by default :func:`polarbear.grid.from_runs` chooses one. Two numbers are two
        times; a range of 20 times is ``polarbear.grid.log(100, 1500, 20)``.
    abs_tol, rel_tol
        A run is tied with the best of its group if their values differ by no more than
        ``max(abs_tol, rel_tol * the larger magnitude)``. By default only equal values tie.
    weights
        How much each instance counts, by name; 1 where not named.
    unit
        What is independent. "instance": the repetitions of an instance share its weight, and
        conclusions are about instances like these. "run": every repetition counts in full, and
        conclusions are about new runs on these very instances.

    Notes
    -----
    Repetitions with the same number are compared with each other. Where most numbers on an instance
    differ (as seeds do), the first is compared with the first, and so on. With instances as units
    an algorithm that has no run for a comparison takes part with its runs in turn, so that the
    instance counts as much for it as for the others; with runs as units it is left out.

    Examples
    --------
    >>> import polarbear as pb
    >>> runs = pb.Runs.from_frame(
    ...     {"algorithm": ["a", "a", "b"], "instance": ["i", "i", "i"], "time": [1, 9, 2],
    ...      "value": [5.0, 1.0, 3.0]}, direction="minimize", until=10)
    >>> rankings = pb.rank(runs, [1, 5, 10])
    >>> [rankings.order("i", t) for t in rankings.times]
    [[[('a',), ('b',)]], [[('b',), ('a',)]], [[('a',), ('b',)]]]
    """
    check_tolerances(abs_tol, rel_tol)
    if unit not in ("instance", "run"):
        raise DataError(f"unit must be 'instance' or 'run', not {unit!r}")
    check_runs(runs, "rank")
    if times is None:
        times = grid.from_runs(runs)
    elif np.ndim(times) == 0:
        raise DataError(
            f"times={times!r}: expected a list of times; grid.from_runs(runs, n) chooses n of them"
        )
    times = grid.check_times(times)
    comparisons = _compare(runs, in_turn=unit == "instance")
    weight = _weights(runs, weights)[comparisons.instance]
    instances, instance = runs.instances, comparisons.instance
    if unit == "instance":
        weight = weight / np.bincount(instance)[instance]
    else:
        names = [runs.instances[code] for code in instance]
        instances = tuple(
            f"{name}, comparison {k}" for name, k in zip(names, comparisons.slot, strict=True)
        )
        instance = np.arange(len(instance), dtype=np.int32)
    return Rankings(
        runs.algorithms,
        instances,
        times,
        _positions(runs, comparisons, times, abs_tol, rel_tol),
        runs.algorithm[comparisons.entry],
        comparisons.offset,
        instance,
        weight,
        runs.clock,
    )


def check_tolerances(abs_tol: float, rel_tol: float) -> None:
    """Refuse tolerances that are negative, or by which everything would tie."""
    if not (0 <= abs_tol < np.inf and 0 <= rel_tol < 1):
        raise DataError("tolerances must be 0 <= abs_tol < inf and 0 <= rel_tol < 1")


class _Comparisons(NamedTuple):
    entry: Ints  # the runs, comparison by comparison
    offset: NDArray[np.int64]
    instance: Codes
    slot: Ints  # which of its instance's comparisons it is


def _compare(runs: Runs, *, in_turn: bool) -> _Comparisons:
    """Sort runs into comparisons of one run per algorithm.

    ``in_turn``: an algorithm that lacks a run for a comparison of its instance takes part with its
    runs in turn, rather than not at all.
    """
    # Runs are sorted by instance, algorithm, repetition: a pair is an algorithm on an instance.
    opens = np.ones(len(runs), dtype=bool)
    opens[1:] = (np.diff(runs.instance) != 0) | (np.diff(runs.algorithm) != 0)
    pair, start = np.cumsum(opens) - 1, np.flatnonzero(opens)
    size = np.diff(np.append(start, len(runs)))
    number, numbers = _numbered(runs)
    places = np.zeros(len(runs.instances), dtype=np.int64)
    np.maximum.at(places, runs.instance[start], size)
    # Numbers that hardly any two algorithms share (as with seeds) tell nothing: places will do.
    shared = numbers < np.bincount(runs.instance, minlength=len(numbers))
    by_number = shared & (numbers <= 2 * places)
    slots = np.where(by_number, numbers, places)

    # One entry for each pair and slot; a run has its own slot, and the others go round.
    repeat = slots[runs.instance[start]]
    first = np.concatenate([[0], np.cumsum(repeat)])
    of_pair = np.repeat(np.arange(len(start)), repeat)
    slot = np.arange(first[-1]) - first[of_pair]
    place = np.arange(len(runs)) - start[pair]
    own = first[pair] + np.where(by_number[runs.instance], number, place)
    free = np.ones(first[-1], dtype=bool)
    free[own] = False
    before = np.concatenate([[0], np.cumsum(free)])
    turn = before[:-1] - before[first[of_pair]]
    entry = start[of_pair] + turn % size[of_pair]
    entry[own] = np.arange(len(runs))
    if not in_turn:
        entry, slot = entry[~free], slot[~free]

    instance = runs.instance[entry]
    order = np.lexsort((runs.algorithm[entry], slot, instance))
    entry, slot, instance = entry[order], slot[order], instance[order]
    comparison, (of_instance, of_slot) = number_pairs(instance, slot, int(slot.max(initial=0)) + 1)
    offset = np.concatenate([[0], np.cumsum(np.bincount(comparison, minlength=len(of_slot)))])
    return _Comparisons(entry, offset.astype(np.int64), of_instance.astype(np.int32), of_slot)


def _numbered(runs: Runs) -> tuple[Ints, Ints]:
    """Which of the numbers on its instance each run has, and how many numbers an instance has."""
    order = np.lexsort((runs.repetition, runs.instance))
    instance, repetition = runs.instance[order], runs.repetition[order]
    index = np.arange(len(runs))
    new_instance, new_number = np.ones((2, len(runs)), dtype=bool)
    new_instance[1:] = instance[1:] != instance[:-1]
    new_number[1:] = new_instance[1:] | (repetition[1:] != repetition[:-1])
    counted = np.cumsum(new_number)
    number = np.empty(len(runs), dtype=np.int64)
    number[order] = counted - counted[np.maximum.accumulate(np.where(new_instance, index, 0))]
    most = np.zeros(len(runs.instances), dtype=np.int64)
    np.maximum.at(most, runs.instance, number + 1)
    return number, most


def _weights(runs: Runs, weights: Mapping[str, float] | None) -> Floats:
    all_weights = np.ones(len(runs.instances))
    if weights is not None and not isinstance(weights, Mapping):
        raise DataError("weights must be a mapping from names of instances to numbers")
    if weights:
        all_weights[find_indices(weights, runs.instances, "instance")] = list(weights.values())
        bad = ~(np.isfinite(all_weights) & (all_weights >= 0))
        if bad.any():
            name, weight = runs.instances[int(np.argmax(bad))], all_weights[bad][0]
            raise DataError(f"weight {weight} of instance {name!r} is not a number >= 0")
    return all_weights


def _positions(
    runs: Runs, comparisons: _Comparisons, times: Floats, abs_tol: float, rel_tol: float
) -> Positions:
    entry, offset = comparisons.entry, comparisons.offset
    sizes = np.diff(offset)
    largest = int(sizes.max(initial=0))
    kind = np.int8 if largest < 128 else np.int16 if largest < 1 << 15 else np.int32
    position = np.empty((len(times), len(entry)), dtype=kind)
    cost, cut = runs.cost, runs.cut
    for first, last in _chunks(offset, _CELLS_AT_ONCE // len(times)):
        chosen = entry[offset[first] : offset[last]]
        costs = costs_at(*gather(runs.offset, runs.time, cost, chosen), times)
        costs[(times[:, None] > runs.until[chosen]) & cut[chosen]] = np.nan
        for size in np.unique(sizes[first:last]):
            starts = offset[first:last][sizes[first:last] == size]
            cells = starts[:, None] + np.arange(size)
            ranked = compute_positions(costs[:, cells - offset[first]], abs_tol, rel_tol)
            position[:, cells] = ranked
    return position


def _chunks(offset: NDArray[np.int64], entries: int) -> Iterator[tuple[int, int]]:
    """Ranges of comparisons with about this number of entries, at least one comparison each."""
    first, n = 0, len(offset) - 1
    while first < n:
        last = int(np.searchsorted(offset, offset[first] + entries, side="right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last


def compute_positions(costs: Floats, abs_tol: float = 0.0, rel_tol: float = 0.0) -> Positions:
    """Positions along the last axis: how many are ahead; tied ones are equal; nan is unknown.

    >>> compute_positions(np.array([3.0, 1.0, np.nan, 3.0, np.inf]))
    array([ 1,  0, -1,  1,  3], dtype=int8)
    >>> compute_positions(np.array([1.0, 1.4, 1.8]), abs_tol=0.5)
    array([0, 0, 2])
    """
    size = costs.shape[-1]
    if size <= SMALL and abs_tol == 0 and rel_tol == 0:
        # Counting is several times faster than sorting where there is little to sort.
        ahead = np.zeros(costs.shape, dtype=np.int8)
        for place in range(size):
            ahead += costs[..., place, None] < costs
        return np.where(np.isnan(costs), np.int8(UNKNOWN), ahead)
    order = np.argsort(costs, axis=-1)
    ranked = np.take_along_axis(costs, order, axis=-1)
    leads = np.ones(costs.shape, dtype=bool)  # whether it opens a new group of tied runs
    if abs_tol == 0 and rel_tol == 0:
        leads[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
    else:
        leader = ranked[..., 0].copy()
        for place in range(1, size):
            follower = ranked[..., place]
            leads[..., place] = ~_close(leader, follower, abs_tol, rel_tol)
            leader = np.where(leads[..., place], follower, leader)
    ahead = np.maximum.accumulate(np.where(leads, np.arange(size), 0), axis=-1)
    ahead[np.isnan(ranked)] = UNKNOWN
    position = np.empty_like(ahead)
    np.put_along_axis(position, order, ahead, axis=-1)
    return position


def _close(a: Floats, b: Floats, abs_tol: float, rel_tol: float) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):
        tolerance = np.maximum(abs_tol, rel_tol * np.maximum(np.abs(a), np.abs(b)))
        tolerance = tolerance * (1 + SLACK)
        return (a == b) | ((np.abs(a - b) <= tolerance) & np.isfinite(a) & np.isfinite(b))
