"""``Rankings``: the order of the runs on each instance at each time of a grid, made by ``rank``.

A *comparison* is a set of runs of different algorithms on one instance, one run each; its order at
a time is one ranking. Repetitions on an instance make several comparisons of that instance.
Instances are the independent units of evidence: the comparisons of one instance share its weight,
and its rankings at different times are not independent of each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import floor
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import format_count, format_list, format_range, name_point, render_card
from polarbear.data import grid
from polarbear.data.instance_data import InstanceData, WithInstanceData, join_parts, take_instances
from polarbear.data.levels import check_one_value
from polarbear.data.long_table import number_pairs
from polarbear.data.names import Codes, find_indices, natural_sort_key
from polarbear.data.positions import (
    UNKNOWN,
    Positions,
    check_tolerances,
    compute_positions,
    keep_top,
)
from polarbear.data.run import Status
from polarbear.data.run_ends import RunEnds, count_ends
from polarbear.data.run_pairs import assign_slots, find_pairs
from polarbear.data.runs import Runs, check_runs
from polarbear.data.targets import Targets, censor, find_hitting_times
from polarbear.data.trajectories import Floats, Ints, evaluate_costs, gather_trajectories
from polarbear.errors import DataError

Ties = Literal["unordered", "averaged", "partial"]

_CHUNK_CELLS = 1 << 21
"""The number of (time, run) cells in memory at once."""


@dataclass(frozen=True, eq=False, repr=False)
class Rankings(WithInstanceData):
    """The positions of runs within comparisons of the same instance, at each time of a grid.

    Made by :func:`rank`. Entries are runs, those of one comparison next to each other.

    Attributes
    ----------
    algorithms, instances
        The names.
    times
        The grid.
    position
        Shape (times, entries): the number of runs of its comparison that are ahead of an entry.
        0 is first, tied runs have equal positions, and -1 means not known at that time.
    algorithm
        Shape (entries,): the index of each entry's algorithm.
    offset
        Comparison c owns the entries ``offset[c]:offset[c + 1]``.
    instance
        Shape (comparisons,): the index of each comparison's instance.
    weight
        Shape (comparisons,): the weight of each comparison. By default 1 per instance in total.
    clock
        The unit of the times.
    ties
        What a tie says to the likelihood, as in :func:`rank`.
    instance_data
        Attributes of the instances by name, as in :class:`Runs`.
    order_by
        What runs are ordered by, if it is not their best value so far; results state it.
    status
        Shape (entries,): how each run ended, as in :attr:`Runs.ended`; -1 of an entry that repeats
        a run. None if it is not known, as for rankings that were not made of runs.
    if_cut
        The same comparisons with unstated ends of runs read as cut instead of finished, if the
        order differs.
    behind_top
        Shape (times, entries): whether an entry is only known to be behind the first ``top`` of its
        comparison, so that nothing is said of its order with others there. None without ``top``.
    first_time
        The time from which half of the runs have a value, if the times were chosen and begin
        later; results state it.

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
    ties: Ties = "unordered"
    instance_data: InstanceData = field(default_factory=dict)
    order_by: str = ""
    status: NDArray[np.int8] | None = None
    if_cut: Rankings | None = None
    behind_top: NDArray[np.bool_] | None = None
    first_time: float | None = None

    @property
    def start_note(self) -> str:
        """A sentence if the chosen times begin after the first values; else empty."""
        if self.first_time is None:
            return ""
        return grid.describe_start(float(self.times[0]), self.first_time, self.clock)

    def order(self, instance: str, time: float) -> list[list[tuple[str, ...]]]:
        """Return an instance's rankings at a time, best first: one for each of its comparisons.

        Algorithms in one tuple are tied; algorithms that are not known then are left out.

        >>> runs = Runs.from_frame(
        ...     {"algorithm": ["a", "b", "c"], "instance": [1, 1, 1], "time": [1, 1, 1],
        ...      "value": [2, 1, 2]}, direction="minimize")
        >>> rank(runs).order("1", 1)
        [[('b',), ('a', 'c')]]
        """
        (wanted,) = find_indices([instance], self.instances, "instance")
        row = self._find_time(time)
        rankings: list[list[tuple[str, ...]]] = []
        for c in np.flatnonzero(self.instance == wanted):
            part = slice(self.offset[c], self.offset[c + 1])
            groups: dict[int, list[str]] = {}
            for position, code in zip(self.position[row, part], self.algorithm[part], strict=True):
                if position != UNKNOWN:
                    groups.setdefault(int(position), []).append(self.algorithms[code])
            rankings.append([tuple(groups[position]) for position in sorted(groups)])
        return rankings

    def win_rate(self, a: str, b: str) -> Floats:
        """Return at each time the weighted share of instances on which ``a`` beat ``b``.

        Ties count half. ``nan`` at times at which no instance has both.

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
        position_a, position_b = self.position[:, at_a[in_a]], self.position[:, at_b[in_b]]
        weight = self.weight[both] * ((position_a != UNKNOWN) & (position_b != UNKNOWN))
        won = weight * ((position_a < position_b) + 0.5 * (position_a == position_b))
        instance = self.instance[both]
        total = np.bincount(self.instance, self.weight, minlength=len(self.instances))
        wins, weights = np.zeros((2, len(self.times)))
        for t in range(len(self.times)):
            # Each instance counts in full, with the mean over those of its comparisons known then.
            known = np.bincount(instance, weight[t], minlength=len(total))
            won_there = np.bincount(instance, won[t], minlength=len(total))
            has_both = known > 0
            wins[t] = (won_there[has_both] / known[has_both]) @ total[has_both]
            weights[t] = total[has_both].sum()
        with np.errstate(invalid="ignore"):
            return wins / weights

    def take(self, instances: ArrayLike) -> Rankings:
        """Return the rankings of instances given by index; a repeated index makes a new instance.

        >>> runs = Runs.from_frame(
        ...     {"algorithm": ["a", "b"] * 2, "instance": ["x", "x", "y", "y"], "time": [1] * 4,
        ...      "value": [2, 1, 5, 6]}, direction="minimize")
        >>> rank(runs).take([1, 1]).instances
        ('y', 'y (2)')
        """
        picked = np.asarray(instances)
        picked = picked if picked.dtype == bool else picked.astype(np.intp)
        chosen = np.arange(len(self.instances))[picked]
        order = np.argsort(self.instance, kind="stable")
        first = np.searchsorted(self.instance[order], chosen)
        n_comparisons = np.searchsorted(self.instance[order], chosen, side="right") - first
        comparison = order[_concatenate_ranges(first, n_comparisons)]
        size = np.diff(self.offset)[comparison]
        entry = _concatenate_ranges(self.offset[comparison], size)
        copies: Counter[int] = Counter()
        names = []
        for code in chosen.tolist():
            copies[code] += 1
            suffix = f" ({copies[code]})" if copies[code] > 1 else ""
            names.append(f"{self.instances[code]}{suffix}")
        return replace(
            self,
            instances=tuple(names),
            position=self.position[:, entry],
            algorithm=self.algorithm[entry],
            offset=np.concatenate([[0], np.cumsum(size)]),
            instance=np.repeat(np.arange(len(chosen), dtype=np.int32), n_comparisons),
            weight=self.weight[comparison],
            instance_data=take_instances(self.instance_data, chosen),
            status=None if self.status is None else self.status[entry],
            if_cut=None if self.if_cut is None else self.if_cut.take(instances),
            behind_top=None if self.behind_top is None else self.behind_top[:, entry],
        )

    def among(self, algorithms: Collection[str]) -> Rankings:
        """Return the rankings among selected algorithms, without the runs of all others.

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
            # The entries behind a removed one, in its comparison, move up by one position.
            removed = np.flatnonzero(self.algorithm == code)
            size = np.diff(self.offset)[comparison[removed]]
            entry = _concatenate_ranges(self.offset[comparison[removed]], size)
            ahead = np.repeat(self.position[:, removed], size, axis=1)
            position[:, entry] -= (ahead != UNKNOWN) & (ahead < self.position[:, entry])
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
            instance_data=take_instances(self.instance_data, instance),
            status=None if self.status is None else self.status[stays],
            if_cut=None if self.if_cut is None else self.if_cut.among(algorithms),
            behind_top=None if self.behind_top is None else self.behind_top[:, stays],
        )

    def join(self, other: Rankings) -> Rankings:
        """Return these rankings together with those of other instances at the same times.

        An instance that is in both would count twice: join its runs with :meth:`Runs.concat`, and
        rank these.

        >>> def ranked(instance):
        ...     table = {"algorithm": ["a", "b"], "instance": [instance] * 2, "time": [1] * 2,
        ...              "value": [2, 1]}
        ...     return rank(Runs.from_frame(table, direction="minimize"))
        >>> ranked("x").join(ranked("y")).instances
        ('x', 'y')
        """
        _check_joinable(self, other)
        names = tuple(sorted({*self.algorithms, *other.algorithms}, key=natural_sort_key))
        kind = np.promote_types(self.position.dtype, other.position.dtype)
        n, n_both = len(self.instances), len(self.instances) + len(other.instances)
        parts = [
            (part, find_indices(part.algorithms, names, "algorithm")) for part in (self, other)
        ]
        if_cut, statuses = None, [part.status for part in (self, other) if part.status is not None]
        if self.if_cut is not None or other.if_cut is not None:
            if_cut = (self.if_cut or self).join(other.if_cut or other)
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
            instance_data=join_parts(
                [(range(n), self.instance_data), (range(n, n_both), other.instance_data)],
                range(n_both),
            ),
            status=np.concatenate(statuses) if len(statuses) == 2 else None,
            if_cut=if_cut,
            order_by=self.order_by or other.order_by,
            behind_top=_join_behind_top(self, other),
        )

    def count_ends(self) -> tuple[RunEnds, ...]:
        """Return how the runs of each algorithm ended; empty if that is not known.

        >>> runs = Runs.from_frame(
        ...     {"algorithm": ["a", "b"], "instance": [1, 1], "time": [1, 1], "value": [2, 1],
        ...      "status": ["crashed", "finished"]}, direction="minimize")
        >>> [one.counts for one in rank(runs).count_ends()]
        [{'crashed': 1}, {'finished': 1}]
        """
        if self.status is None:
            return ()
        parts = self.algorithm, self.status, self.offset, self.instance, self.position[-1]
        return count_ends(self.algorithms, *parts)

    def __str__(self) -> str:
        known = self.position != UNKNOWN
        times = f"at {format_range(self.times[0], self.times[-1], self.clock)}"
        if len(self.times) > 1:
            times = times.replace("at", f"at {len(self.times)} {name_point(self.clock)}s from", 1)
        return (
            f"{format_count(len(self.instance), 'comparison')} of "
            f"{format_count(len(self.algorithms), 'algorithm')} on "
            f"{format_count(len(self.instances), 'instance')}\n"
            f"  algorithms  {format_list(self.algorithms)}\n"
            f"  rankings    {times}\n"
            f"  known       {floor(100 * known.mean()) if known.size else 0}% of positions"
            + (f"\n  ordered by  {self.order_by}" if self.order_by else "")
            + (f"\n{self.start_note}" if self.start_note else "")
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows: list[list[str]] = []
        for code, name in enumerate(self.algorithms):
            position = self.position[:, self.algorithm == code]
            known = position != UNKNOWN
            n_known, n_first = np.count_nonzero(known), np.count_nonzero(position == 0)
            share = f"{floor(100 * known.mean()) if known.size else 0} %"
            first = f"{100 * n_first / n_known:.0f} %" if n_known else ""
            rows.append([name, f"{position.shape[1]:,}", share, first])
        head = ["algorithm", "comparisons", "positions known", "in first place"]
        return render_card(str(self), head, rows)

    def _find_time(self, time: float) -> int:
        row = int(np.argmin(np.abs(self.times - time)))
        if not np.isclose(self.times[row], time, rtol=1e-6, atol=0.0):
            raise DataError(
                f"{time:g} is not a time of the grid: the nearest is {self.times[row]:.7g}; "
                "rank(runs, times) compares at other times"
            )
        return row


def select_times(rankings: Rankings, rows: ArrayLike) -> Rankings:
    """Return rankings at a selection of their times, given by index or mask."""
    rows, rest = np.asarray(rows), rankings.behind_top
    return replace(
        rankings,
        times=rankings.times[rows],
        position=rankings.position[rows],
        behind_top=None if rest is None else rest[rows],
        if_cut=None if rankings.if_cut is None else select_times(rankings.if_cut, rows),
    )


def _check_joinable(first: Rankings, second: Rankings) -> None:
    """Raise ``DataError`` unless rankings are of different instances, compared in the same way."""
    if not np.array_equal(first.times, second.times):
        grids = [format_list([f"{time:.6g}" for time in one.times]) for one in (first, second)]
        raise DataError(
            f"cannot join rankings at different times, {grids[0]} and {grids[1]}: pass the same "
            "times to both calls, rank(runs, times)"
        )
    if first.ties == "partial" and first.algorithms != second.algorithms:
        raise DataError("cannot join partial orders of different algorithms: join the archives")
    for what in ("clock", "ties", "order_by"):
        mine, theirs = getattr(first, what), getattr(second, what)
        # Runs are ordered by feasibility only if some solution violates a constraint.
        if mine != theirs and not (what == "order_by" and "" in (mine, theirs)):
            raise DataError(
                f"cannot join rankings with {what}={mine!r} and {what}={theirs!r}: rank both alike"
            )
    if doubled := {*first.instances} & {*second.instances}:
        names = format_list(sorted(doubled, key=natural_sort_key))
        raise DataError(
            f"cannot join rankings that have the same instances, which would count twice: {names}; "
            "rank(Runs.concat([a, b])) compares all of their runs"
        )


def _join_behind_top(*parts: Rankings) -> NDArray[np.bool_] | None:
    """Return ``behind_top`` of the entries of all parts, one part after another."""
    if all(part.behind_top is None for part in parts):
        return None
    masks = (
        np.zeros(p.position.shape, bool) if p.behind_top is None else p.behind_top for p in parts
    )
    return np.concatenate([*masks], axis=1)


def _concatenate_ranges(start: Ints, length: Ints) -> Ints:
    """Return the integers of the ranges start[i] .. start[i] + length[i], one after another."""
    before = np.cumsum(length) - length
    return np.arange(length.sum()) + np.repeat(start - before, length)


def rank(
    runs: Runs,
    times: ArrayLike | None = None,
    *,
    targets: Targets | None = None,
    abs_tol: float = 0.0,
    rel_tol: float = 0.0,
    weights: Mapping[str, float] | None = None,
    ties: Ties = "unordered",
    top: int | None = None,
    unit: Literal["instance", "run"] = "instance",
) -> Rankings:
    """Rank the runs of each instance at each time of a grid, or at each target.

    Parameters
    ----------
    runs
        The runs to compare.
    times
        The grid; by default :func:`polarbear.grid.from_runs` chooses one. Two numbers are two
        times; a range of 20 times is ``polarbear.grid.log(100, 1500, 20)``.
    targets
        Rank runs by when they reach targets, such as those of :func:`polarbear.targets.from_runs`;
        runs that do not reach one tie for its last place. Difficulties take the place of times.
    abs_tol, rel_tol
        A run is tied with the best of its group if their values differ by no more than
        ``max(abs_tol, rel_tol * the larger magnitude)``. By default only equal values tie.
    weights
        The weight of each instance, by name; 1 where not named.
    ties
        What a tie says about the order of the tied algorithms. "unordered": nothing, as any order
        is possible. "averaged", as in the paper: the mean log-likelihood of all orders, which
        draws tied algorithms together and makes the posterior too cautious about them.
    top
        Use only the order of the first ``top`` algorithms. All others share the next place, and
        nothing is said of their order, however ties are treated.
    unit
        The independent unit of evidence. "instance": the repetitions of an instance share its
        weight, and conclusions are about instances like these. "run": every repetition counts in
        full, and conclusions are about new runs on these very instances.

    Notes
    -----
    Repetitions with the same number are compared with each other. Where most numbers on an instance
    differ (as seeds do), the first is compared with the first, and so on. With instances as units,
    an algorithm that has no run for a comparison takes part with its other runs in turn, so that
    the instance has the same weight for all algorithms. With runs as units it is left out.

    Returns
    -------
    Rankings
        The position of each run at each time.

    Raises
    ------
    DataError
        If times do not increase, or an instance of ``weights`` has no run.

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
    check_ties(ties)
    if unit not in ("instance", "run"):
        raise DataError(f"unit must be 'instance' or 'run', not {unit!r}")
    check_runs(runs, "rank")
    if (abs_tol or rel_tol) and runs.levels is not None:
        check_one_value(runs, "a tolerance")
    first_time = None
    if targets is not None:
        if times is not None:
            raise DataError("runs are ranked at times or at targets: leave out one")
        times = targets.difficulty
    elif times is None:
        times, first_time = grid.from_runs(runs), grid.find_first_time(runs)
    elif np.ndim(times) == 0:
        raise DataError(
            "expected a list of times; grid.from_runs(runs, n) chooses n times", times=times
        )
    times = grid.check_times(times)
    if top is not None and not (isinstance(top, int) and top >= 1):
        raise DataError("expected a whole number of at least 1", top=top)
    comparisons = form_comparisons(runs, in_turn=unit == "instance")
    weight = _instance_weights(runs, weights)[comparisons.instance]
    instances, instance, data = runs.instances, comparisons.instance, runs.instance_data
    if unit == "instance":
        weight = weight / np.bincount(instance)[instance]
    else:
        names = [runs.instances[code] for code in instance]
        instances = tuple(
            f"{name}, comparison {k}" for name, k in zip(names, comparisons.slot, strict=True)
        )
        data = take_instances(data, instance)
        instance = np.arange(len(instance), dtype=np.int32)
    options = (comparisons, times, targets, (abs_tol, rel_tol), top)
    position = _rank_entries(runs, *options)
    rankings = Rankings(
        algorithms=runs.algorithms,
        instances=instances,
        times=times,
        position=position,
        algorithm=runs.algorithm[comparisons.run],
        offset=comparisons.offset,
        instance=instance,
        weight=weight,
        clock=runs.clock if targets is None else targets.unit,
        ties=ties,
        instance_data=data,
        order_by=runs.order_by,
        status=np.where(comparisons.repeats, np.int8(-1), runs.ended[comparisons.run]),
        behind_top=None if top is None else position >= top,
        first_time=first_time if first_time is not None and first_time < times[0] else None,
    )
    if Status.UNSTATED not in runs.count_statuses():
        return rankings
    other = _rank_entries(runs.read_as("cut"), *options)
    if np.array_equal(other, position):
        return rankings
    behind_top = None if top is None else other >= top
    return replace(rankings, if_cut=replace(rankings, position=other, behind_top=behind_top))


def check_ties(ties: str) -> None:
    """Raise ``DataError`` unless ``ties`` is the name of a treatment of ties."""
    if ties not in ("unordered", "averaged"):
        raise DataError("expected 'unordered' or 'averaged'", ties=ties)


class _Comparisons(NamedTuple):
    """Comparisons of one run per algorithm as flat arrays, one comparison after another."""

    run: Ints  # (entries,): the run that each entry is
    offset: NDArray[np.int64]  # (C + 1,): comparison c owns entries offset[c]:offset[c + 1]
    instance: Codes  # (C,)
    slot: Ints  # (C,): the index of the comparison among those of its instance
    repeats: NDArray[np.bool_]  # (entries,): whether the run stands in for a missing one


def form_comparisons(runs: Runs, *, in_turn: bool) -> _Comparisons:
    """Group runs into comparisons: one run per algorithm, all on the same instance.

    An instance has a number of slots, one comparison each, and every run has its slot. With
    ``in_turn``, an algorithm that has no run for a slot fills it with its other runs in turn;
    otherwise it does not take part in that comparison.
    """
    pairs = find_pairs(runs.instance, runs.algorithm)
    slot_of_run, n_slots = assign_slots(pairs, runs.repetition)

    # One cell for each slot of each pair, pair by pair. A run fills the cell of its own slot.
    n_cells = n_slots[pairs.instance]
    first_cell = np.cumsum(n_cells) - n_cells
    pair = np.repeat(np.arange(len(n_cells)), n_cells)
    slot = np.arange(len(pair)) - first_cell[pair]
    own_cell = first_cell[pairs.of_run] + slot_of_run
    is_empty = np.ones(len(pair), dtype=bool)
    is_empty[own_cell] = False

    # The k-th empty cell of a pair takes its k-th run, starting again after the last one.
    n_empty_before = np.cumsum(is_empty) - is_empty
    k = n_empty_before - n_empty_before[first_cell[pair]]
    run = pairs.first_run[pair] + k % pairs.n_runs[pair]
    run[own_cell] = np.arange(len(runs))
    if not in_turn:
        run, slot, is_empty = run[~is_empty], slot[~is_empty], is_empty[~is_empty]

    order = np.lexsort((runs.algorithm[run], slot, runs.instance[run]))
    run, slot = run[order], slot[order]
    n_slots_at_most = int(slot.max(initial=0)) + 1
    comparison, (instance, own_slot) = number_pairs(runs.instance[run], slot, n_slots_at_most)
    size = np.bincount(comparison, minlength=len(instance))
    offset = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    return _Comparisons(
        run=run,
        offset=offset,
        instance=instance.astype(np.int32),
        slot=own_slot,
        repeats=is_empty[order],
    )


def _instance_weights(runs: Runs, weights: Mapping[str, float] | None) -> Floats:
    all_weights = np.ones(len(runs.instances))
    if weights is not None and not isinstance(weights, Mapping):
        raise DataError(
            "weights must be a mapping from names of instances to numbers, "
            f"got {type(weights).__name__}"
        )
    if weights:
        all_weights[find_indices(weights, runs.instances, "instance")] = list(weights.values())
        bad = ~(np.isfinite(all_weights) & (all_weights >= 0))
        if bad.any():
            name, weight = runs.instances[int(np.argmax(bad))], all_weights[bad][0]
            raise DataError(f"weight of instance {name!r}: expected a number >= 0, got {weight}")
    return all_weights


def _rank_entries(
    runs: Runs,
    comparisons: _Comparisons,
    times: Floats,
    targets: Targets | None,
    tolerances: tuple[float, float],
    top: int | None,
) -> Positions:
    """Return the position of each run in its comparison, at all times or targets (times, runs)."""
    entry_run, offset = comparisons.run, comparisons.offset
    sizes = np.diff(offset)
    kind = np.min_scalar_type(-int(sizes.max(initial=1)))  # the smallest signed integers
    position = np.empty((len(times), len(entry_run)), dtype=kind)
    cost, cut = runs.cost, runs.cut
    hits = None if targets is None else find_hitting_times(runs, targets)
    for first, last in _split_comparisons(offset, _CHUNK_CELLS // len(times)):
        chosen = entry_run[offset[first] : offset[last]]
        if hits is not None:
            costs = hits[:, chosen]
        else:
            rows = gather_trajectories(runs.offset, runs.time, cost, chosen)
            costs = evaluate_costs(*rows, times)
            costs[(times[:, None] > runs.until[chosen]) & cut[chosen]] = np.nan
        for size in np.unique(sizes[first:last]):
            starts = offset[first:last][sizes[first:last] == size]
            cells = starts[:, None] + np.arange(size)
            compared, run = costs[:, cells - offset[first]], entry_run[cells]
            if hits is not None:
                compared = censor(compared, runs.until[run], cut[run])
            ranked = compute_positions(compared, *tolerances)
            position[:, cells] = ranked if top is None else keep_top(ranked, top)
    return position


def _split_comparisons(offset: NDArray[np.int64], entries: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of comparisons with at most ``entries`` runs, or of a single comparison."""
    first, n = 0, len(offset) - 1
    while first < n:
        last = int(np.searchsorted(offset, offset[first] + entries, side="right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last
