"""``Runs``: the best-so-far trajectories of many runs; ``run.py`` defines a single run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import index
from typing import Any, Self, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import format_count, format_list, format_range, render_card
from polarbear.data import parquet
from polarbear.data.columns import ColumnOptions, Columns
from polarbear.data.instance_data import (
    InstanceData,
    describe_instance_data,
    join_parts,
    to_json,
)
from polarbear.data.levels import Levels, WithLevels, encode_records, join_levels
from polarbear.data.long_table import (
    read_long_table,
)
from polarbear.data.names import Codes, find_indices, renumber_names, to_name
from polarbear.data.records import RunColumns, describe_incomplete, encode_names, to_run_columns
from polarbear.data.run import (
    NO_DIRECTION,
    STATUSES,
    Direction,
    Directions,
    Run,
    Status,
    check_run,
    opposite_of,
    sign_of,
)
from polarbear.data.run_ends import Ended, RunEnds, decide_ends, describe_unstated, format_counts
from polarbear.data.run_pairs import find_comparisons
from polarbear.data.side_by_side import join_side_by_side
from polarbear.data.table import Labels, Table, make_frame, to_table, write_csv
from polarbear.data.trajectories import Floats, evaluate_costs, extract_improvements
from polarbear.errors import DataError

HOW_READ = "read as finished; say ended='finished' or ended='cut'"
"""What is done with ends that nothing states, and how to say how runs ended."""

Names = str | Sequence[str]
"""The name of a column, or several."""

MAX_LISTED_RUNS = 4
"""A summary lists up to this many runs without a value, and counts more of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Runs(WithLevels):
    """The best-so-far trajectories of runs of several algorithms on several instances.

    Make one with :meth:`from_frame`, :meth:`from_records`, :meth:`from_parquet` or
    :func:`polarbear.read`. The order of the input does not matter: names are in natural order,
    and runs are sorted by instance, then algorithm, then repetition.

    Attributes
    ----------
    algorithms, instances
        The names.
    algorithm, instance
        Shape (runs,): the index of each run's algorithm, and of its instance.
    repetition
        Shape (runs,): the number (or seed) that distinguishes repetitions on one instance.
    until
        Shape (runs,): the time until which each run was observed.
    status
        Shape (runs,): how each run ended as its source says, as an index into ``tuple(Status)``.
        :attr:`ended` also has what the data decide.
    offset, time, value
        The improvements: run r owns ``time[offset[r]:offset[r + 1]]`` and the same of ``value``.
    direction
        ``"minimize"`` or ``"maximize"``.
    clock
        The unit of ``time``, for labels and sentences: "evaluations", "seconds", ...
    bounds
        The bounds on the optimum that the runs proved, where known: ``Runs`` of the opposite
        direction with a trajectory for each of these runs, in the same order. Tables and files
        do not store them.
    instance_data
        Attributes of the instances by name, each of shape (instances,): classes as texts and
        features as numbers. Added by :meth:`with_instance_data`.
    best_so_far
        Whether a run has its best value so far at each time, else its latest one.
    levels
        The levels of the values, if these are tuples: ``value`` is then the place in their table.
    stated_order
        The order in words, if values are made from something else, such as several objectives.

    Examples
    --------
    >>> runs = Runs.from_frame(
    ...     {"algorithm": ["CSA", "CSA", "RS"], "instance": [1, 1, 1],
    ...      "time": [10, 80, 10], "value": [4.0, 0.5, 3.0]},
    ...     direction="minimize", until=100, clock="evaluations")
    >>> print(runs)
    2 runs: 2 algorithms on 1 instance, minimize
      algorithms  CSA, RS
      time        10 to 100 evaluations, 3 improvements
      ended       2 cut
    >>> runs.at([50, 90, 200])
    array([[4. , 0.5, nan],
           [3. , 3. , nan]])
    """

    algorithms: tuple[str, ...]
    instances: tuple[str, ...]
    algorithm: Codes
    instance: Codes
    repetition: NDArray[np.int64]
    until: Floats
    status: NDArray[np.int8]
    offset: NDArray[np.int64]
    time: Floats
    value: Floats
    direction: Direction
    clock: str = "time"
    bounds: Runs | None = None
    instance_data: InstanceData = field(default_factory=dict)
    best_so_far: bool = True
    levels: Levels | None = None
    stated_order: str = ""
    ends_decided: bool = False  # as in runs of which these are a part

    # Making

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        direction: Directions,
        clock: str = "time",
        ended: Ended | None = None,
        **columns: Unpack[ColumnOptions],
    ) -> Self:
        """Make runs from a long table: one row per observation of a run, in any order.

        Parameters
        ----------
        frame
            A data frame of any library (pandas, polars, pyarrow, ...), or a mapping of column
            names to values.
        direction
            Whether small ("minimize") or large ("maximize") values are good.
        ended
            How runs ended whose status is not stated: "cut" (unknown after their end), or
            "finished" (by themselves, with their last value for ever). By default the data decide
            what they can: see :attr:`ended`.
        clock
            The unit of time: "evaluations", "seconds", ...
        columns
            The names of the columns, and how rows are read: fields of
            :class:`polarbear.readers.Columns`, such as ``time="evals"`` or ``missing="drop"``.
        """
        table = to_table(frame)
        runs = cls.from_table(table, Columns(**columns), direction=direction, clock=clock)
        return runs if ended is None else runs.read_as(ended)

    @classmethod
    def from_table(
        cls,
        table: Table,
        columns: Columns,
        *,
        direction: Directions,
        clock: str = "time",
        surely_runs: bool = False,
    ) -> Self:
        """Make runs from the columns of a long table, for readers of files.

        With ``surely_runs``, rows of one algorithm, instance and repetition are certainly one run,
        so there is no warning where they look like several.

        >>> table = {"algorithm": ["a"], "instance": ["x"], "time": [1], "value": [2.0]}
        >>> len(Runs.from_table(to_table(table), Columns(until=9), direction="minimize"))
        1
        """
        arrays, own_direction, levels = read_long_table(
            table, columns, direction, surely_runs=surely_runs
        )
        best_so_far = columns.best_so_far and columns.chosen_by is None
        runs = cls(*arrays, own_direction, clock, best_so_far=best_so_far)
        return runs._with_levels(levels)

    @classmethod
    def from_records(
        cls,
        records: Iterable[Run],
        *,
        direction: Directions,
        clock: str = "time",
        bounds: Iterable[Run] | None = None,
        best_so_far: bool = True,
        levels: Sequence[str] = (),
    ) -> Self:
        """Make runs from single :class:`Run` records, with a record of each run's bounds if given.

        With ``levels``, the names of the levels, each value of a record or a bound is a tuple.

        >>> record = Run("RS", "sphere", time=[1, 7], value=[3.0, 2.0], until=10)
        >>> Runs.from_records([record], direction="minimize").at([8])
        array([[2.]])

        A lower bound is a trajectory that is maximised:

        >>> bound = record._replace(time=[0, 5], value=[0.5, 1.0])
        >>> runs = Runs.from_records([record], direction="minimize", bounds=[bound])
        >>> runs.bounds.direction, runs.bounds.at([4])
        ('maximize', array([[0.5]]))
        """
        records = list(records)
        other = next((r for r in records if not isinstance(r, Run)), None)
        if other is not None:
            raise DataError(f"expected a list of Run records, got {type(other).__name__}")
        own, table = cast(Direction, direction), None
        if levels:
            (records, table), own = encode_records(records, levels, direction), "minimize"
        try:
            columns = to_run_columns(records)
        except (TypeError, ValueError, OverflowError):
            for record in records:
                check_run(record)
            raise
        runs = cls._assemble(columns, own, clock, best_so_far)._with_levels(table)
        if bounds is None:
            return runs
        other_way = opposite_of(own) if table is None else table.opposite().directions
        opposite = cls.from_records(bounds, direction=other_way, clock=clock, levels=levels)
        if not runs._has_keys_of(opposite):
            raise DataError("bounds must have one record for each run, with the same names")
        return replace(runs, bounds=opposite)

    @classmethod
    def concat(cls, parts: Iterable[Runs]) -> Self:
        """Join several ``Runs``; raise ``DataError`` if a run occurs in two of them.

        >>> parts = [Runs.from_records([Run(name, "x", [1], [2.0], 9)], direction="minimize")
        ...          for name in ("a", "b")]
        >>> Runs.concat(parts).algorithms
        ('a', 'b')
        """
        parts = list(parts)
        if not parts or not all(isinstance(part, Runs) for part in parts):
            raise DataError("expected a list of at least one Runs object to concatenate")
        directions: set[Direction] = {part.direction for part in parts}
        clocks = {part.clock for part in parts if part.clock != "time"} or {"time"}
        if len(directions) > 1 or len(clocks) > 1:
            raise DataError(
                "cannot concatenate runs of different directions or clocks, got "
                f"{' and '.join(sorted(directions))}, {' and '.join(sorted(clocks))}"
            )
        values, levels = [part.value for part in parts], None
        if len({(part.best_so_far, part.levels is None) for part in parts}) > 1:
            raise DataError("cannot concatenate best values so far with others, or with levels")
        orders = {part.stated_order or "the value of each run" for part in parts}
        if len(orders) > 1:
            raise DataError(
                f"cannot concatenate runs that are ordered by {' and by '.join(sorted(orders))}: "
                "give the values of all parts the same meaning first"
            )
        if parts[0].levels is not None:
            values, levels = join_levels([(cast(Levels, p.levels), p.value) for p in parts])
        starts = np.cumsum([0, *(len(part) for part in parts)])
        decided = any(part.ends_decided for part in parts)
        columns = RunColumns(
            algorithm=encode_names(
                part.algorithms[code] for part in parts for code in part.algorithm
            ),
            instance=encode_names(part.instances[code] for part in parts for code in part.instance),
            repetition=np.concatenate([part.repetition for part in parts]),
            until=np.concatenate([part.until for part in parts]),
            status=np.concatenate([part.ended if decided else part.status for part in parts]),
            run_of_row=np.concatenate(
                [part._run_of_row() + start for part, start in zip(parts, starts, strict=False)]
            ),
            time=np.concatenate([part.time for part in parts]),
            value=np.concatenate(values),
        )
        best_so_far = parts[0].best_so_far
        runs = cls._assemble(columns, directions.pop(), clocks.pop(), best_so_far)
        runs = replace(runs._with_data_of(parts)._with_levels(levels), ends_decided=decided)
        if all(part.bounds is None for part in parts):
            return runs
        bounds = [part._without_values() if part.bounds is None else part.bounds for part in parts]
        return replace(runs, bounds=cls.concat(bounds))

    @classmethod
    def _assemble(
        cls, columns: RunColumns, direction: Direction, clock: str, best_so_far: bool = True
    ) -> Self:
        """Make runs from arrays of runs and rows in any order; keep only rows that improve."""
        sign = sign_of(direction)
        algorithm_codes, algorithms = renumber_names(*columns.algorithm)
        instance_codes, instances = renumber_names(*columns.instance)
        order = np.lexsort((columns.repetition, algorithm_codes, instance_codes))
        identity = np.stack([instance_codes, algorithm_codes, columns.repetition])[:, order]
        duplicates = np.flatnonzero((identity[:, 1:] == identity[:, :-1]).all(axis=0))
        if len(duplicates):
            i, a, r = identity[:, duplicates[0]]
            raise DataError(
                f"repetition {r} of algorithm {algorithms[a]!r} on instance {instances[i]!r} "
                "occurs twice; number the repetitions of an instance"
            )
        new_index = np.empty(len(order), dtype=np.int64)
        new_index[order] = np.arange(len(order))
        flat = extract_improvements(
            new_index[columns.run_of_row],
            columns.time,
            sign * columns.value,
            len(order),
            best_so_far=best_so_far,
        )
        return cls(
            algorithms=algorithms,
            instances=instances,
            algorithm=algorithm_codes[order],
            instance=instance_codes[order],
            repetition=columns.repetition[order],
            until=columns.until[order],
            status=columns.status[order],
            offset=flat.offset,
            time=flat.time,
            value=sign * flat.cost,
            direction=direction,
            clock=clock,
            best_so_far=best_so_far,
        )

    # Asking

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Runs):
            return NotImplemented
        # What counts is how runs ended, not whether their source or the data say it.
        mine, theirs = (
            replace(runs, status=runs.ended, ends_decided=True) for runs in (self, other)
        )
        return super(Runs, mine).__eq__(theirs)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.until)

    def __getitem__(self, run: int) -> Run:
        run = index(run)
        if not -len(self) <= run < len(self):
            raise IndexError(f"there is no run {run}: the {len(self)} runs are numbered from 0")
        run %= len(self)
        part = slice(self.offset[run], self.offset[run + 1])
        return Run(
            algorithm=self.algorithms[self.algorithm[run]],
            instance=self.instances[self.instance[run]],
            time=self.time[part],
            value=self.value[part],
            until=float(self.until[run]),
            repetition=int(self.repetition[run]),
            status=STATUSES[self.ended[run]],
        )

    def __iter__(self) -> Iterator[Run]:
        return (self[run] for run in range(len(self)))

    @property
    def worst(self) -> float:
        """The value that means "no value yet": ``inf`` when minimising, else ``-inf``."""
        return sign_of(self.direction) * np.inf

    @property
    def cost(self) -> Floats:
        """The value of each improvement as a cost, of which less is better."""
        return self.value if self.direction == "minimize" else -self.value

    @cached_property
    def ended(self) -> NDArray[np.int8]:
        """How each run ended, as an index into ``tuple(Status)``; the data decide unstated ends.

        Runs that end together were cut. A run that ends before the others, and whose end nothing
        explains, stays "unstated": it is read as finished, and :func:`fit` also reads it as cut.

        >>> runs = [Run("a", i, [1], [2.0], 9) for i in "xyz"]
        >>> runs += [Run("b", i, [1], [2.0], n) for i, n in zip("xyz", (2, 5, 9))]
        >>> print(Runs.from_records(runs, direction="minimize"))
        6 runs: 2 algorithms on 3 instances, minimize
          algorithms  a, b
          time        1 to 9, 6 improvements
          ended       4 cut, 2 unstated
          unstated    2 of 3 runs of b end before the others, and nothing says why: read as
                      finished; say ended='finished' or ended='cut'
        """
        if self.ends_decided:
            return self.status
        return decide_ends(self.status, self.until, self.algorithm, self.instance)

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Whether each run was cut, so that its best value after ``until`` is unknown."""
        return self.ended == STATUSES.index(Status.CUT)

    def with_portfolio(self, members: Sequence[str], name: str | None = None) -> Self:
        """Return these runs and those of a portfolio: several algorithms run side by side.

        The portfolio is one more algorithm, which has the best value of its members at each time,
        on the instances and repetitions that all of them ran. Compare it only with portfolios of
        the same size, or read it as the gain of so many machines.

        >>> runs = Runs.from_records([Run("a", "x", [1], [5.0], 9), Run("b", "x", [3], [4.0], 9)],
        ...                          direction="minimize")
        >>> runs.with_portfolio(["a", "b"]).algorithms
        ('a', 'a + b', 'b')
        """
        members = [*map(to_name, members)]
        if not members:
            raise DataError("expected at least one algorithm", members=members)
        find_indices(members, self.algorithms, "algorithm")
        name = " + ".join(members) if name is None else name
        if name in self.algorithms:
            raise DataError(f"name={name!r} is an algorithm of these runs already: pass another")
        if self.levels is not None:
            raise DataError("a portfolio needs runs with one value")
        check_best_so_far(self, "a portfolio")
        joined = [
            join_side_by_side([own[who] for who in members], name, self.direction)._replace(
                repetition=repetition
            )
            for repetition, own in find_comparisons(replace(self, status=self.ended))
            if own.keys() >= set(members)
        ]
        more = type(self).from_records(joined, direction=self.direction, clock=self.clock)
        if self.bounds is not None and joined:
            bounds = self.bounds.with_portfolio(members, name).filter(algorithms=[name])
            more = replace(more, bounds=bounds)
        return type(self).concat([self, more])

    def read_as(self, ended: Ended) -> Self:
        """Return these runs with the ends that nothing states read as "cut" or as "finished".

        >>> runs = Runs.from_records([Run("a", "x", [1], [2.0], 9)], direction="minimize")
        >>> runs.read_as("finished")[0].status
        <Status.FINISHED: 'finished'>
        """
        if ended not in ("cut", "finished"):
            raise DataError("expected 'cut' or 'finished'", ended=ended)
        unstated = self.status == STATUSES.index(Status.UNSTATED)
        code = np.int8(STATUSES.index(Status(ended)))
        bounds = None if self.bounds is None else self.bounds.read_as(ended)
        return replace(self, status=np.where(unstated, code, self.status), bounds=bounds)

    def known(self, times: ArrayLike) -> NDArray[np.bool_]:
        """Return whether the best value so far of each run is known at each time (runs, times).

        >>> Runs.from_records([Run("a", "x", [1], [2.0], 9)], direction="minimize").known([5, 10])
        array([[ True, False]])
        """
        times = _to_times(times)
        return (times[None, :] <= self.until[:, None]) | ~self.cut[:, None]

    def at(self, times: ArrayLike) -> Floats:
        """Return the best value so far of each run at each time (runs, times).

        ``nan`` where the run is not known (it was cut before), :attr:`worst` where it has no
        value yet. Times may be in any order.
        """
        times = _to_times(times)
        grid, column = np.unique(times, return_inverse=True)
        cost = evaluate_costs(self.offset, self.time, self.cost, grid).T[:, column]
        return np.where(self.known(times), sign_of(self.direction) * cost, np.nan)

    def filter(
        self,
        *,
        algorithms: Iterable[str] | None = None,
        instances: Iterable[str] | None = None,
        where: ArrayLike | None = None,
    ) -> Self:
        """Select the runs of these algorithms, on these instances, and where a run mask is true.

        >>> runs = Runs.from_frame({"algorithm": ["a", "b"], "instance": [1, 1], "time": [1, 1],
        ...                         "value": [2, 3]}, direction="minimize")
        >>> runs.filter(algorithms=["b"]).algorithms
        ('b',)
        """
        keep = np.ones(len(self), dtype=bool)
        if algorithms is not None:
            keep &= np.isin(self.algorithm, find_indices(algorithms, self.algorithms, "algorithm"))
        if instances is not None:
            keep &= np.isin(self.instance, find_indices(instances, self.instances, "instance"))
        if where is not None:
            mask = np.asarray(where)
            if mask.shape != keep.shape or mask.dtype != bool:
                raise DataError(
                    f"where must be a boolean mask over the {len(self)} runs, "
                    f"got {mask.dtype} of shape {mask.shape}"
                )
            keep &= mask
        rows = keep[self._run_of_row()]
        new_index = np.cumsum(keep) - 1
        columns = RunColumns(
            algorithm=Labels(self.algorithm[keep], self.algorithms),
            instance=Labels(self.instance[keep], self.instances),
            repetition=self.repetition[keep],
            until=self.until[keep],
            status=self.ended[keep],  # decided by all runs, not by those that are left
            run_of_row=new_index[self._run_of_row()[rows]],
            time=self.time[rows],
            value=self.value[rows],
        )
        runs = self._assemble(columns, self.direction, self.clock, self.best_so_far)
        runs = runs._with_data_of([self])._with_levels(self.levels)
        if self.bounds is not None:
            runs = replace(runs, bounds=self.bounds.filter(where=keep))
        return replace(runs, ends_decided=True)

    def count_statuses(self) -> dict[str, int]:
        """Return the number of runs that ended in each way, the most frequent first.

        >>> run = Run("a", "x", [1], [2.0], until=9)
        >>> Runs.from_records([run], direction="minimize").count_statuses()
        {'cut': 1}
        """
        return _count_statuses(self.ended)

    def fewer(self) -> list[str]:
        """List algorithms that lack instances or have fewer runs than others, with numbers.

        >>> runs = [Run(a, i, [1], [2.0], 9) for a, i in ("ax", "ay", "bx")]
        >>> Runs.from_records(runs, direction="minimize").fewer()
        ['b ran on 1 of 2 instances']
        """
        return describe_incomplete(
            self.algorithms, self.algorithm, self.instance, len(self.instances)
        )

    def without_value(self) -> list[str]:
        """List the runs that have no value, such as those that crashed early.

        >>> run = Run("a", "x", [], [], until=0, repetition=3, status=Status.CRASHED)
        >>> Runs.from_records([run], direction="minimize").without_value()
        ['a on x (repetition 3, crashed)']
        """
        empty = np.flatnonzero(np.diff(self.offset) == 0).tolist()
        return [run.name(with_status=True) for run in map(self.__getitem__, empty)]

    # Tables

    def columns(self) -> dict[str, Labels | NDArray[Any]]:
        """Return the long table: a row per improvement, and one per run without improvements.

        The row of a run without a value has the value :attr:`worst`, so that :meth:`from_frame`
        makes the same ``Runs`` of the table.

        >>> import polarbear as pb
        >>> run = pb.Run("a", "x", [1, 3], [2.0, 1.0], until=9)
        >>> runs = pb.Runs.from_records([run], direction="minimize")
        >>> runs.columns()["value"], runs.columns()["until"]
        (array([2., 1.]), array([9., 9.]))
        """
        rows = np.maximum(np.diff(self.offset), 1)
        run = np.repeat(np.arange(len(self)), rows)
        time, value = np.zeros(len(run)), np.full(len(run), self.worst)
        has_value = np.repeat(np.diff(self.offset) > 0, rows)
        time[has_value], value[has_value] = self.time, self.value
        names = [str(status) for status in STATUSES]
        values: dict[str, NDArray[Any]] = {"value": value}
        if self.levels is not None:
            table = np.concatenate([self.levels.table, [self.levels.worst]])
            row = np.where(has_value, value, len(table) - 1).astype(np.int64)
            values = dict(zip(self.levels.names, table[row].T, strict=True))
        return {
            "algorithm": Labels(self.algorithm[run], self.algorithms),
            "instance": Labels(self.instance[run], self.instances),
            "repetition": self.repetition[run],
            "time": time,
            **values,
            "until": self.until[run],
            "status": Labels(self.status[run].astype(np.int32), names),
        }

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return the long table as a data frame of "pandas", "polars" or "pyarrow".

        >>> import polarbear as pb
        >>> run = pb.Run("a", "x", [1, 3], [2.0, 1.0], until=9)
        >>> runs = pb.Runs.from_records([run], direction="minimize")
        >>> runs.to_frame("pyarrow").column_names
        ['algorithm', 'instance', 'repetition', 'time', 'value', 'until', 'status']
        """
        return make_frame(self.columns(), backend)

    def to_parquet(self, path: Any) -> None:
        """Write the long table, its direction, its clock and the instance data to a Parquet file.

        >>> import io
        >>> import polarbear as pb
        >>> run = pb.Run("a", "x", [1, 3], [2.0, 1.0], until=9)
        >>> runs = pb.Runs.from_records([run], direction="minimize")
        >>> file = io.BytesIO()                       # or a path
        >>> runs.to_parquet(file)
        >>> pb.Runs.from_parquet(file) == runs
        True
        """
        about: dict[str, Any] = {"direction": self.direction, "clock": self.clock}
        if self.levels is not None:
            about |= {"direction": self.levels.directions, "value": self.levels.names}
        if not self.best_so_far:
            about["best_so_far"] = False
        if self.ends_decided:
            about["ends_decided"] = True
        if self.stated_order:
            about["stated_order"] = self.stated_order
        if self.instance_data:
            about["instance_data"] = to_json(self.instances, self.instance_data)
        parquet.write_parquet(path, self.columns(), about)

    def to_csv(self, path: Any) -> None:
        """Write the long table as CSV, which does not store the direction and the clock.

        Names are written as they are, also those that a spreadsheet would take for formulas.

        >>> import sys                                # sys.stdout, or a path
        >>> import polarbear as pb
        >>> runs = pb.Runs.from_records([pb.Run("a", "x", [1], [2.0], 9)], direction="minimize")
        >>> runs.to_csv(sys.stdout)
        algorithm,instance,repetition,time,value,until,status
        a,x,0,1.0,2.0,9.0,unstated
        """
        write_csv(path, self.columns())

    @classmethod
    def from_parquet(
        cls,
        path: Any,
        *,
        direction: Direction | None = None,
        clock: str | None = None,
        **columns: Any,
    ) -> Self:
        """Make runs from a Parquet file with a long table, given as a path or an open file.

        A file written by :meth:`to_parquet` stores its direction and clock. For others give
        ``direction``, and ``columns`` as in :meth:`from_frame`.
        """
        is_open = isinstance(path, parquet.ParquetTable)
        file = path if is_open else parquet.ParquetTable(path)
        stored = cast(Direction | None, file.metadata.get("direction"))
        for name in {"value", "best_so_far"} & file.metadata.keys():
            columns.setdefault(name, file.metadata[name])
        if direction and stored and direction != stored:
            raise DataError(
                f"the file was written with direction={stored!r}; leave the argument out",
                direction=direction,
            )
        direction = direction or stored
        if direction is None:
            raise DataError(NO_DIRECTION)
        clock = clock or str(file.metadata.get("clock", "time"))
        runs = cls.from_table(file, Columns(**columns), direction=direction, clock=clock)
        order, decided = map(file.metadata.get, ("stated_order", "ends_decided"))
        runs = replace(runs, stated_order=str(order or ""), ends_decided=bool(decided))
        data = file.metadata.get("instance_data")
        return runs.with_instance_data(data) if isinstance(data, dict) else runs

    def __str__(self) -> str:
        algorithms = format_count(len(self.algorithms), "algorithm")
        instances = format_count(len(self.instances), "instance")
        goal = self.direction if self.levels is None else str(self.levels)
        head = f"{format_count(len(self), 'run')}: {algorithms} on {instances}, {goal}"
        if not self.best_so_far:
            head += ", latest values"
        if not len(self):
            return head
        improvements = format_count(len(self.time), "improvement")
        first = float(self.time.min(initial=np.inf))
        unstated = describe_unstated(self._count_ends())
        observed = format_range(first if len(self.time) else 0.0, self.until.max(), self.clock)
        fewer, empty = self.fewer(), self._describe_without_value()
        known = describe_instance_data(self.instance_data)
        order = self.order_by if self.levels is None and self.best_so_far else ""
        return (
            f"{head}\n"
            f"  algorithms  {format_list(self.algorithms)}\n"
            + (f"  ordered by  {order}\n" if order else "")
            + f"  time        {observed}, {improvements}\n"
            f"  ended       {format_counts(self.count_statuses())}"
            + (f"\n  unstated    {unstated}: {HOW_READ}" if unstated else "")
            + (f"\n  no value    {empty}" if empty else "")
            + (f"\n  incomplete  {format_list(fewer, 4)}" if fewer else "")
            + (f"\n  instances   {known}" if known else "")
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows: list[list[str]] = []
        for name, one in zip(self.algorithms, self._count_ends(), strict=True):
            rows.append([name, f"{one.n_runs:,}", f"{one.instances:,}", format_counts(one.counts)])
        return render_card(str(self), ["algorithm", "runs", "instances", "ended"], rows)

    def _describe_without_value(self) -> str:
        """Return which runs have no value; of more than four, how many and how they ended."""
        is_empty = np.diff(self.offset) == 0
        if np.count_nonzero(is_empty) <= MAX_LISTED_RUNS:
            return format_list(self.without_value()) if is_empty.any() else ""
        how = format_counts(_count_statuses(self.ended[is_empty]))
        return f"{np.count_nonzero(is_empty):,} of {format_count(len(self), 'run')} ({how})"

    def _count_ends(self) -> list[RunEnds]:
        """Return how the runs of each algorithm ended."""
        ends: list[RunEnds] = []
        for code, name in enumerate(self.algorithms):
            own = self.algorithm == code
            n_instances = len(np.unique(self.instance[own]))
            ends.append(RunEnds(name, n_instances, _count_statuses(self.ended[own])))
        return ends

    def _with_levels(self, levels: Levels | None) -> Self:
        """Return these runs with levels, of which only the tuples that occur are kept."""
        if levels is None:
            return self
        used, places = np.unique(self.value, return_inverse=True)
        kept = replace(levels, table=levels.table[used.astype(np.int64)])
        return replace(self, value=places.astype(np.float64), levels=kept)

    def _keep_rows(self, kept: NDArray[np.bool_]) -> Self:
        """Return the same runs with some of their improvements."""
        length = np.bincount(self._run_of_row()[kept], minlength=len(self))
        offset = np.concatenate([[0], np.cumsum(length)])
        return replace(self, offset=offset, time=self.time[kept], value=self.value[kept])

    def _run_of_row(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self)), np.diff(self.offset))

    def _with_data_of(self, parts: Sequence[Runs]) -> Self:
        """Return these runs with the instance data of the runs that they were copied from."""
        data = join_parts([(p.instances, p.instance_data) for p in parts], self.instances)
        return replace(self, instance_data=data, stated_order=parts[0].stated_order)

    def _has_keys_of(self, other: Runs) -> bool:
        """Whether two ``Runs`` have the same algorithms, instances and repetitions."""
        return (self.algorithms, self.instances) == (other.algorithms, other.instances) and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("algorithm", "instance", "repetition")
        )

    def _without_values(self) -> Runs:
        """Return runs without values in the opposite direction, which stand for unknown bounds."""
        none = np.zeros(0)
        offset = np.zeros(len(self) + 1, dtype=np.int64)
        empty = replace(self, offset=offset, time=none, value=none, stated_order="")
        if self.levels is not None:
            return replace(empty, levels=self.levels.opposite())
        return replace(empty, direction=opposite_of(self.direction))


def _count_statuses(status: NDArray[np.int8]) -> dict[str, int]:
    return {str(STATUSES[code]): n for code, n in Counter(status.tolist()).most_common()}


def _to_times(times: ArrayLike) -> Floats:
    array = np.atleast_1d(np.asarray(times, dtype=np.float64))
    if array.ndim > 1 or np.isnan(array).any():
        raise DataError(f"expected a time or a list of times, got {str(times)[:40]}")
    return array


def check_runs(data: object, verb: str) -> None:
    """Raise ``DataError`` unless the data are ``Runs``; the message says how to make them."""
    if isinstance(data, Runs):
        return
    how = "read it first with read(...)"
    if isinstance(data, Mapping) or hasattr(data, "columns"):
        how = "make them with Runs.from_frame(frame, direction='minimize')"
    raise DataError(f"{verb} takes Runs, not {type(data).__name__}: {how}")


def check_best_so_far(runs: Runs, verb: str) -> None:
    """Raise ``DataError`` if the latest values of runs count, and not the best so far."""
    if not runs.best_so_far:
        raise DataError(f"{verb} needs runs whose best value so far counts, not their latest one")
