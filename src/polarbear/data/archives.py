"""``Archives``: the nondominated points of runs over time, for several objectives.

A ranking needs an order of the runs at each time, and sets of points have no order of their own.
``Archives`` are ordered in one of three ways:

* ``scalarise``: random weights make one value of each point; the best so far counts. The default.
* ``indicator`` and ``hypervolume``: a number for each set, which needs a reference point.
* ``dominance``: one set is ahead if it dominates the other; other pairs are not ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any, Self
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import format_count, format_list
from polarbear.data import grid
from polarbear.data.columns import Columns
from polarbear.data.frozen import FrozenRecord
from polarbear.data.long_table import read_points
from polarbear.data.names import to_name
from polarbear.data.partial_rankings import PartialRankings
from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import form_comparisons
from polarbear.data.records import RunColumns
from polarbear.data.run import STATUSES, Direction, Directions, Run, Status, sign_of
from polarbear.data.run_pairs import assign_slots, find_pairs
from polarbear.data.runs import Runs
from polarbear.data.table import Labels, to_table
from polarbear.errors import DataError, require

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

WEIGHTS = 16
"""The default number of scalarisations of each instance."""

GRID_TIMES = 20
"""The default number of times at which an indicator is computed."""


@dataclass(frozen=True, eq=False, repr=False)
class Archives(FrozenRecord):
    """The nondominated points of runs over time, for problems with several objectives.

    Make them with :meth:`from_frame` or :func:`polarbear.readers.read_archives`. Then order the
    runs: :meth:`scalarise` and :meth:`hypervolume` return ``Runs``, :meth:`dominance` rankings.

    Attributes
    ----------
    runs
        The runs without values: their names, repetitions, ends and clock.
    offset, time
        Run r found its points at the times ``time[offset[r]:offset[r + 1]]``.
    points
        Shape (points, objectives): costs of the points, of which less is better. Each was not
        dominated by earlier points of its run.
    objectives, signs
        The names of the objectives; 1 for each of which less is better, else -1.

    Examples
    --------
    >>> import polarbear as pb
    >>> archives = pb.readers.Archives.from_frame(
    ...     {"algorithm": ["a", "a", "b"], "instance": [1, 1, 1], "time": [1, 2, 1],
    ...      "f1": [1.0, 3.0, 4.0], "f2": [5.0, 2.0, 2.0]},
    ...     objectives=("f1", "f2"), direction="minimize", until=9)
    >>> print(archives)
    2 runs: 2 algorithms on 1 instance, 3 points with the objectives f1, f2
    >>> archives.dominance([1, 2]).order("1", 2)
    [[('a',), ('b',)]]
    >>> archives.scalarise(4).instances, len(archives.scalarise(4))
    (('1',), 8)
    """

    runs: Runs
    offset: NDArray[np.int64]
    time: Floats
    points: Floats
    objectives: tuple[str, ...]
    signs: Floats

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        objectives: Sequence[str],
        direction: Directions,
        clock: str = "time",
        **columns: Any,
    ) -> Self:
        """Make archives from a long table: one row per point of a run, in any order.

        ``objectives`` are columns with values, ``direction`` one for all or one for each. Other
        ``columns`` are fields of :class:`polarbear.readers.Columns`. Without ``until``, runs were
        observed until the latest row on their instance.
        """
        if isinstance(objectives, str):
            raise DataError("expected the names of several columns", objectives=objectives)
        signs = _find_signs(objectives, direction)
        named = Columns(value=tuple(objectives), **columns)
        arrays, run, time, points = read_points(to_table(frame), named)
        runs = Runs(*arrays, "minimize", clock)
        return cls._from_points(runs, run, time, points, objectives, signs)

    @classmethod
    def from_records(
        cls,
        records: Iterable[Run],
        *,
        objectives: Sequence[str],
        direction: Directions,
        clock: str = "time",
    ) -> Self:
        """Make archives from :class:`Run` records whose values are points, a tuple for each time.

        >>> import polarbear as pb
        >>> run = pb.Run("a", "i", time=[1, 2], value=[(3.0, 1.0), (2.0, 2.0)], until=5)
        >>> len(pb.readers.Archives.from_records([run], objectives="fg", direction="minimize").time)
        2
        """
        names, listed = tuple(objectives), list(records)
        signs = _find_signs(names, direction)
        runs = Runs.from_records(
            [one._replace(time=[], value=[]) for one in listed], direction="minimize", clock=clock
        )
        keys = zip(runs.algorithm, runs.instance, runs.repetition, strict=True)
        index = {
            (runs.algorithms[a], runs.instances[i], int(k)): r for r, (a, i, k) in enumerate(keys)
        }
        found = [
            index[to_name(one.algorithm), to_name(one.instance), int(one.repetition)]
            for one in listed
        ]
        times = [np.asarray(one.time, dtype=np.float64) for one in listed]
        values = [np.asarray(one.value, np.float64).reshape(-1, len(names)) for one in listed]
        run = np.repeat(found, [len(time) for time in times])
        time, points = np.concatenate(times), np.concatenate(values)
        if not (np.isfinite(points).all() and (time <= runs.until[run]).all()):
            raise DataError("expected finite points, at times until the end of their run")
        return cls._from_points(runs, run, time, points, names, signs)

    @classmethod
    def _from_points(
        cls,
        runs: Runs,
        run: ArrayLike,
        time: ArrayLike,
        values: ArrayLike,
        names: Sequence[str],
        signs: Floats,
    ) -> Self:
        """Make archives from runs and points in any order; ``run`` is the run of each point."""
        run, time = np.asarray(run, dtype=np.int64), np.asarray(time, dtype=np.float64)
        points = signs * np.asarray(values, dtype=np.float64).reshape(len(run), len(names))
        order = np.lexsort((points.sum(axis=1), time, run))
        run, time, points = run[order], time[order], points[order]
        bounds = np.searchsorted(run, np.arange(len(runs) + 1))
        kept = np.concatenate(
            [np.empty(0, dtype=np.int64)]
            + [first + _find_improvements(points[first:last]) for first, last in pairwise(bounds)]
        )
        offset = np.searchsorted(run[kept], np.arange(len(runs) + 1))
        return cls(
            runs=runs,
            offset=offset,
            time=time[kept],
            points=points[kept],
            objectives=tuple(names),
            signs=signs,
        )

    def __len__(self) -> int:
        return len(self.runs)

    def __str__(self) -> str:
        algorithms = format_count(len(self.runs.algorithms), "algorithm")
        instances = format_count(len(self.runs.instances), "instance")
        return (
            f"{format_count(len(self), 'run')}: {algorithms} on {instances}, "
            f"{format_count(len(self.time), 'point')} with the objectives "
            f"{format_list(self.objectives)}"
        )

    __repr__ = __str__

    def scalarise(self, weights: int = WEIGHTS, seed: int = 0) -> Runs:
        """Return runs whose values are random scalarisations of their points.

        Each instance draws ``weights`` vectors w, equal for all runs. The value of a point is
        max_j w_j r_j, with r_j the rank of its objective j among all points of the instance. A
        vector becomes a repetition; :func:`polarbear.fit` finds out how much they tell. A set that
        dominates another one is never behind it. A monotone transformation of an objective
        changes nothing, and no reference point is needed. Ranks depend on all runs that take part.

        >>> import polarbear as pb
        >>> table = {"algorithm": ["a", "b"], "instance": [1, 1], "time": [1, 1], "f1": [1, 2],
        ...          "f2": [1, 3]}
        >>> archives = pb.readers.Archives.from_frame(
        ...     table, objectives=("f1", "f2"), direction="minimize")
        >>> pb.rank(archives.scalarise(2), [1]).win_rate("a", "b")
        array([1.])
        """
        if not (isinstance(weights, int) and weights >= 1):
            raise DataError("expected a whole number of at least 1", weights=weights)
        run = self._run_of_point()
        values = np.empty((weights, len(run)))
        for code, name in enumerate(self.runs.instances):
            mine = np.flatnonzero(self.runs.instance[run] == code)
            ranks = (
                np.stack(
                    [np.unique(column, return_inverse=True)[1] for column in self.points[mine].T],
                    axis=1,
                )
                + 1.0
            )
            rng = np.random.default_rng([seed, crc32(name.encode())])
            drawn = rng.dirichlet(np.ones(len(self.objectives)), weights)
            values[:, mine] = (drawn[:, None, :] * ranks).max(axis=2)
        text = f"{weights} random scalarisations of the ranks of {format_list(self.objectives)}"
        return self._make_views([(self.time, run, row) for row in values], "minimize", text)

    def indicator(
        self,
        measure: Callable[[Floats, str], float],
        times: ArrayLike | None = None,
        *,
        direction: Direction = "maximize",
        name: str = "an indicator",
    ) -> Runs:
        """Return runs whose value at each time is an indicator of the points found until then.

        ``measure`` gets the costs of the nondominated points (points, objectives) and the name of
        the instance. The indicator should not get worse when points are added.

        >>> import polarbear as pb
        >>> run = pb.Run("a", "i", time=[1, 2], value=[(3.0, 1.0), (2.0, 2.0)], until=5)
        >>> archives = Archives.from_records([run], objectives="fg", direction="minimize")
        >>> archives.indicator(lambda points, instance: len(points), [1, 2]).at([1, 2])
        array([[1., 2.]])
        """
        return self._measure_views([measure], times, direction, name)

    def hypervolume(
        self,
        factors: float | Sequence[float] = 1.1,
        times: ArrayLike | None = None,
        *,
        reference: Mapping[str, ArrayLike] | None = None,
    ) -> Runs:
        """Return runs whose values are hypervolumes (needs moocore); the reference point decides.

        ``reference`` has a point for each instance. Without it, the point is ``factors`` times the
        way from the ideal to the nadir point of all points of the instance. Several factors are
        several views of each run, which share the weight of the instance.

        >>> import polarbear as pb
        >>> table = {"algorithm": ["a", "b", "b"], "instance": [1] * 3, "time": [1] * 3,
        ...          "f1": [1, 0, 2], "f2": [1, 2, 0]}
        >>> archives = pb.readers.Archives.from_frame(
        ...     table, objectives=("f1", "f2"), direction="minimize")
        >>> archives.hypervolume(reference={"1": [3, 3]}, times=[1]).at([1]).ravel()
        array([4., 5.])
        """
        require("moocore")
        import moocore

        find_corners = cache(self._find_corners)
        several = [factors] if isinstance(factors, int | float) else list(factors)

        def make_measure(factor: float) -> Callable[[Floats, str], float]:
            def measure(points: Floats, name: str) -> float:
                if reference is None:
                    ideal, nadir = find_corners(name)
                    point = ideal + factor * (nadir - ideal)
                else:
                    point = self.signs * np.asarray(reference[name], dtype=np.float64)
                inside = points[(points < point).all(axis=1)]
                return float(moocore.hypervolume(inside, ref=point)) if len(inside) else 0.0

            return measure

        if reference is not None:
            missing = [name for name in self.runs.instances if name not in reference]
            if missing:
                raise DataError(f"no reference point for instance {missing[0]!r}")
            several, name = [1.0], "hypervolume with given reference points"
        else:
            name = f"hypervolume, reference at {format_list([f'{f:g}' for f in several])} of nadir"
        return self._measure_views([make_measure(f) for f in several], times, "maximize", name)

    def dominance(self, times: ArrayLike) -> PartialRankings:
        """Return rankings in which a run is ahead of another one if its points dominate all others.

        A set dominates another one if each point of the other is equal to or worse than one of its
        points, and not the other way round. Pairs without dominance are not ordered.
        """
        when = grid.check_times(times)
        if len(self.runs.algorithms) > PartialRankings.MAX_ALGORITHMS:
            raise DataError(f"at most {PartialRankings.MAX_ALGORITHMS} algorithms can be compared")
        comparisons = form_comparisons(self.runs, in_turn=True)
        position = np.zeros((len(when), len(comparisons.run)), dtype=np.int64)
        algorithm = self.runs.algorithm[comparisons.run]
        known = self.runs.known(when).T
        for first, last in zip(comparisons.offset[:-1], comparisons.offset[1:], strict=True):
            chosen = comparisons.run[first:last]
            covers = _find_coverage([self._points_of(r) for r in chosen], when)
            for a, b in np.ndindex(len(chosen), len(chosen)):
                ahead = covers[:, a, b] & ~covers[:, b, a] & known[:, chosen[a]]
                position[:, first + b] |= np.where(ahead, 1 << int(algorithm[first + a]), 0)
            position[:, first:last][~known[:, chosen]] = UNKNOWN
        count = np.bincount(comparisons.instance)[comparisons.instance]
        return PartialRankings(
            algorithms=self.runs.algorithms,
            instances=self.runs.instances,
            times=when,
            position=position,
            algorithm=algorithm,
            offset=comparisons.offset,
            instance=comparisons.instance,
            weight=1.0 / count,
            clock=self.runs.clock,
            ties="partial",
            instance_data=self.runs.instance_data,
            order_by=f"set dominance of {format_list(self.objectives)}",
        )

    def _run_of_point(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self)), np.diff(self.offset))

    def _points_of(self, run: int) -> tuple[Floats, Floats]:
        """Return the times and costs of the points of a run."""
        part = slice(self.offset[run], self.offset[run + 1])
        return self.time[part], self.points[part]

    def _find_corners(self, instance: str) -> tuple[Floats, Floats]:
        """Return the ideal and the nadir point of all points of an instance."""
        code = self.runs.instances.index(instance)
        points = self.points[self.runs.instance[self._run_of_point()] == code]
        front = points[_find_nondominated(points)]
        return front.min(axis=0), front.max(axis=0)

    def _measure_views(
        self,
        measures: Sequence[Callable[[Floats, str], float]],
        times: ArrayLike | None,
        direction: Direction,
        text: str,
    ) -> Runs:
        """Return runs with a view for each measure, computed at some times."""
        if times is None:
            stop = float(self.runs.until.max())
            start = max(float(self.time.min(initial=stop)), stop * 1e-6)
            times = grid.log(start, stop, GRID_TIMES) if start < stop else [stop]
        when = grid.check_times(times)
        views: list[tuple[list[float], list[int], list[float]]] = [([], [], []) for _ in measures]
        for run in range(len(self)):
            found, points = self._points_of(run)
            name = self.runs.instances[self.runs.instance[run]]
            until = self.runs.until[run]
            own = np.union1d(when[when <= until], min(until, when[-1]))  # what was found last stays
            n_points = np.searchsorted(found, own, side="right")
            last = 0
            for time, n in zip(own, n_points, strict=True):
                if n > last:
                    front = points[:n][_find_nondominated(points[:n])]
                    for measure, (t, r, v) in zip(measures, views, strict=True):
                        t.append(float(time))
                        r.append(run)
                        v.append(measure(front, name))
                last = n
        return self._make_views(
            [(np.array(t), np.array(r, dtype=np.int64), np.array(v)) for t, r, v in views],
            direction,
            text,
        )

    def _make_views(
        self, views: Sequence[tuple[Floats, Any, Floats]], direction: Direction, text: str
    ) -> Runs:
        """Return runs with a repetition for each view (times, runs and values of its rows)."""
        runs, k = self.runs, len(views)
        # Copies of a few runs that end together would look like a limit of their algorithm.
        finished, unstated = map(STATUSES.index, (Status.FINISHED, Status.UNSTATED))
        ended = np.where(runs.ended == unstated, np.int8(finished), runs.ended)
        slot, _ = assign_slots(find_pairs(runs.instance, runs.algorithm), runs.repetition)
        columns = RunColumns(
            algorithm=Labels(np.tile(runs.algorithm, k), runs.algorithms),
            instance=Labels(np.tile(runs.instance, k), runs.instances),
            repetition=np.concatenate([slot * k + view for view in range(k)]).astype(np.int64),
            until=np.tile(runs.until, k),
            status=np.tile(ended, k),
            run_of_row=np.concatenate(
                [run + view * len(runs) for view, (_, run, _) in enumerate(views)]
            ),
            time=np.concatenate([time for time, _, _ in views]),
            value=np.concatenate([value for _, _, value in views]),
        )
        made = Runs._assemble(columns, direction, runs.clock)
        return replace(made, stated_order=text, instance_data=runs.instance_data)


def _find_signs(objectives: Sequence[str], direction: Directions) -> Floats:
    if len(objectives) < 2:
        raise DataError("expected at least two names", objectives=objectives)
    own: Any = [direction] * len(objectives) if isinstance(direction, str) else list(direction)
    if len(own) != len(objectives):
        raise DataError("expected one direction, or one per objective", direction=direction)
    return np.array([sign_of(one) for one in own])


def _find_improvements(points: Floats) -> NDArray[np.int64]:
    """Return which points are not equal to or dominated by an earlier one."""
    kept: list[int] = []
    archive = np.empty_like(points)
    for row, point in enumerate(points):
        if not (archive[: len(kept)] <= point).all(axis=1).any():
            archive[len(kept)] = point
            kept.append(row)
    return np.array(kept, dtype=np.int64)


def _find_nondominated(points: Floats) -> Bools:
    """Return whether no other point is at least as good in all objectives, and better in one."""
    is_kept = np.ones(len(points), dtype=bool)
    for row, point in enumerate(points):
        if is_kept[row]:
            is_kept &= ~((points >= point).all(axis=1) & (points > point).any(axis=1))
    return is_kept


def _find_coverage(found: Iterable[tuple[Floats, Floats]], times: Floats) -> Bools:
    """Return whether run a covers run b at each time (times, a, b): has a point for each of b's."""
    archives = list(found)
    n = len(archives)
    covers = np.zeros((len(times), n, n), dtype=bool)
    for a, b in np.ndindex(n, n):
        (time_a, points_a), (time_b, points_b) = archives[a], archives[b]
        # When is the point of b first matched by one of a?
        is_matched = (points_a[:, None, :] <= points_b[None, :, :]).all(axis=2)
        matched = np.where(is_matched, time_a[:, None], np.inf).min(axis=0, initial=np.inf)
        for t, time in enumerate(times):
            own = time_b <= time
            covers[t, a, b] = (matched[own] <= time).all() and bool((time_a <= time).any())
    return covers
