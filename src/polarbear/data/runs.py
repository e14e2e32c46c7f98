"""``Runs``: best-so-far trajectories of many runs; what one run means is said in ``run.py``."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import format_count, format_list, format_range
from polarbear.data import parquet
from polarbear.data.columns import Columns, Labels, columns_of, write_csv
from polarbear.data.frozen import FrozenRecord
from polarbear.data.long_table import ColumnNaming, long_table
from polarbear.data.names import Codes, find_indices, renumber_names
from polarbear.data.records import columns_of_records, incomplete, labels_of
from polarbear.data.run import NO_DIRECTION, STATUSES, Direction, Run, Status, check, sign_of
from polarbear.data.trajectories import Floats, Ints, costs_at, improvements
from polarbear.errors import DataError, require

BACKENDS = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True, eq=False, repr=False)
class Runs(FrozenRecord):
    """Best-so-far trajectories of runs of several algorithms on several instances.

    Make one with :meth:`from_frame`, :meth:`from_records`, :meth:`from_parquet` or
    :func:`polarbear.read`. Whatever the order of the input, the content is in one canonical
    order: names sorted naturally, runs by instance, then algorithm, then repetition.

    Attributes
    ----------
    algorithms, instances
        The names.
    algorithm, instance
        For each run, which of the names is its.
    repetition
        For each run, the number (or seed) that tells repetitions on one instance apart.
    until
        For each run, until when it was watched.
    status
        For each run, how it ended, as a number into ``tuple(Status)``.
    offset, time, value
        The improvements: run r owns ``time[offset[r]:offset[r + 1]]`` and the same of ``value``.
    direction
        ``"minimize"`` or ``"maximize"``.
    clock
        What ``time`` counts, for labels and sentences: "evaluations", "seconds", ...

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

    # Making

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        direction: Direction,
        algorithm: str = "algorithm",
        instance: str | Sequence[str] = "instance",
        repetition: str | None = None,
        time: str = "time",
        value: str = "value",
        until: str | float | None = None,
        status: str | None = None,
        missing: str = "error",
        clock: str = "time",
    ) -> Self:
        """Runs from a long table: one row per thing seen of a run, in any order.

        Parameters
        ----------
        frame
            A data frame of any library (pandas, polars, pyarrow, ...), or a mapping of column
            names to values.
        direction
            Whether small ("minimize") or large ("maximize") values are good.
        algorithm, instance, repetition, time, value, status
            The names of the columns. Several columns can make an instance:
            ``instance=("function", "dimension")``. Without ``repetition`` a column "repetition"
            or "seed" is taken if there is one; without ``status`` a column "status" (see
            :class:`Status`), else all runs count as cut.
        until
            Until when each run was watched: the name of a column, one number for all runs,
            "last" (until its last row), or "instance" (until the latest row on its instance).
            By default a column "until" if there is one; else "last" if some rows improve
            nothing and "instance" if all do, with a warning where this makes a difference.
        missing
            Rows that lack a time or a value are refused ("error"), or left out ("drop"). A run
            without any other row stays. A run that failed, by its status, may lack its value.
        clock
            What time counts: "evaluations", "seconds", ...
        """
        naming = ColumnNaming(algorithm, instance, repetition, time, value, until, status, missing)
        return cls.from_columns(columns_of(frame), naming, direction=direction, clock=clock)

    @classmethod
    def from_columns(
        cls,
        columns: Columns,
        naming: ColumnNaming,
        *,
        direction: Direction,
        clock: str = "time",
        surely_runs: bool = False,
    ) -> Self:
        """Runs from the columns of a long table, for readers of files.

        ``surely_runs``: rows of one algorithm, instance and repetition are surely of one run, so
        that no warning is due where they look like several.

        >>> table = {"algorithm": ["a"], "instance": ["x"], "time": [1], "value": [2.0]}
        >>> len(Runs.from_columns(columns_of(table), ColumnNaming(until=9), direction="minimize"))
        1
        """
        sign = sign_of(direction)
        table = long_table(columns, naming, sign, STATUSES, surely_runs=surely_runs)
        return cls(*table, direction, clock)

    @classmethod
    def from_records(
        cls, records: Iterable[Run], *, direction: Direction, clock: str = "time"
    ) -> Self:
        """Runs from single :class:`Run` records.

        >>> record = Run("RS", "sphere", time=[1, 7], value=[3.0, 2.0], until=10)
        >>> Runs.from_records([record], direction="minimize").at([8])
        array([[2.]])
        """
        records = list(records)
        odd = next((r for r in records if not isinstance(r, Run)), None)
        if odd is not None:
            raise DataError(f"expected a list of Run records, found {type(odd).__name__}")
        try:
            columns = columns_of_records(records)
        except (TypeError, ValueError, OverflowError):
            for record in records:
                check(record)
            raise
        return cls._assemble(*columns, direction=direction, clock=clock)

    @classmethod
    def concat(cls, parts: Iterable["Runs"]) -> Self:
        """All runs of several ``Runs``; the same run in two of them is an error.

        >>> parts = [Runs.from_records([Run(name, "x", [1], [2.0], 9)], direction="minimize")
        ...          for name in ("a", "b")]
        >>> Runs.concat(parts).algorithms
        ('a', 'b')
        """
        parts = list(parts)
        if not parts or not all(isinstance(part, Runs) for part in parts):
            raise DataError("expected a list of at least one Runs to concatenate")
        directions: set[Direction] = {part.direction for part in parts}
        clocks = {part.clock for part in parts if part.clock != "time"} or {"time"}
        if len(directions) > 1 or len(clocks) > 1:
            raise DataError(
                f"cannot concatenate runs that {' and '.join(sorted(directions))}, "
                f"with times in {' and '.join(sorted(clocks))}"
            )
        starts = np.cumsum([0, *(len(part) for part in parts)])
        return cls._assemble(
            labels_of(part.algorithms[code] for part in parts for code in part.algorithm),
            labels_of(part.instances[code] for part in parts for code in part.instance),
            np.concatenate([part.repetition for part in parts]),
            np.concatenate([part.until for part in parts]),
            np.concatenate([part.status for part in parts]),
            np.concatenate(
                [part._run_of_row() + start for part, start in zip(parts, starts, strict=False)]
            ),
            np.concatenate([part.time for part in parts]),
            np.concatenate([part.value for part in parts]),
            directions.pop(),
            clocks.pop(),
        )

    @classmethod
    def _assemble(
        cls,
        algorithm: Labels,
        instance: Labels,
        repetition: NDArray[np.int64],
        until: Floats,
        status: NDArray[np.int8],
        run_of_row: Ints,
        time: Floats,
        value: Floats,
        direction: Direction,
        clock: str,
    ) -> Self:
        """Bring runs and their rows into canonical order."""
        sign = sign_of(direction)
        algorithm_codes, algorithms = renumber_names(*algorithm)
        instance_codes, instances = renumber_names(*instance)
        order = np.lexsort((repetition, algorithm_codes, instance_codes))
        identity = np.stack([instance_codes, algorithm_codes, repetition])[:, order]
        same = np.flatnonzero((identity[:, 1:] == identity[:, :-1]).all(axis=0))
        if len(same):
            i, a, r = identity[:, same[0]]
            raise DataError(
                f"repetition {r} of algorithm {algorithms[a]!r} on instance {instances[i]!r} "
                "occurs twice; number the repetitions of an instance"
            )
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        flat = improvements(place[run_of_row], time, sign * value, len(order))
        return cls(
            algorithms,
            instances,
            algorithm_codes[order],
            instance_codes[order],
            repetition[order],
            until[order],
            status[order],
            flat.offset,
            flat.time,
            sign * flat.cost,
            direction,
            clock,
        )

    # Asking

    def __len__(self) -> int:
        return len(self.until)

    def __getitem__(self, run: int) -> Run:
        run = index(run)
        if not -len(self) <= run < len(self):
            raise IndexError(f"there is no run {run} among {len(self)}")
        run %= len(self)
        part = slice(self.offset[run], self.offset[run + 1])
        return Run(
            self.algorithms[self.algorithm[run]],
            self.instances[self.instance[run]],
            self.time[part],
            self.value[part],
            float(self.until[run]),
            int(self.repetition[run]),
            STATUSES[self.status[run]],
        )

    def __iter__(self) -> Iterator[Run]:
        return (self[run] for run in range(len(self)))

    @property
    def worst(self) -> float:
        """The value that stands for "no value yet": ``inf`` when minimising, else ``-inf``."""
        return sign_of(self.direction) * np.inf

    @property
    def cost(self) -> Floats:
        """The values with small ones good, whatever the direction."""
        return self.value if self.direction == "minimize" else -self.value

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Whether each run was cut, so that nothing is known of it after ``until``."""
        return self.status == STATUSES.index(Status.CUT)

    def known(self, times: ArrayLike) -> NDArray[np.bool_]:
        """Whether each run's best so far is known at each time: shape (runs, times).

        >>> Runs.from_records([Run("a", "x", [1], [2.0], 9)], direction="minimize").known([5, 10])
        array([[ True, False]])
        """
        times = _times(times)
        return (times[None, :] <= self.until[:, None]) | ~self.cut[:, None]

    def at(self, times: ArrayLike) -> Floats:
        """Best so far of each run at each time: shape (runs, times).

        ``nan`` where the run is unknown (it was cut before), :attr:`worst` where it has no
        value yet. Times may come in any order.
        """
        times = _times(times)
        grid, place = np.unique(times, return_inverse=True)
        cost = costs_at(self.offset, self.time, self.cost, grid).T[:, place]
        return np.where(self.known(times), sign_of(self.direction) * cost, np.nan)

    def filter(
        self,
        *,
        algorithms: Iterable[str] | None = None,
        instances: Iterable[str] | None = None,
        where: ArrayLike | None = None,
    ) -> Self:
        """The runs of these algorithms, on these instances, and where a mask over runs is true.

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
                raise DataError(f"where must be a boolean mask over the {len(self)} runs")
            keep &= mask
        rows = keep[self._run_of_row()]
        number = np.cumsum(keep) - 1
        return self._assemble(
            Labels(self.algorithm[keep], self.algorithms),
            Labels(self.instance[keep], self.instances),
            self.repetition[keep],
            self.until[keep],
            self.status[keep],
            number[self._run_of_row()[rows]],
            self.time[rows],
            self.value[rows],
            self.direction,
            self.clock,
        )

    def fewer(self) -> list[str]:
        """Which algorithms have not run on all instances, or less often than others, in words.

        >>> runs = [Run(a, i, [1], [2.0], 9) for a, i in ("ax", "ay", "bx")]
        >>> Runs.from_records(runs, direction="minimize").fewer()
        ['b ran on 1 of 2 instances']
        """
        return incomplete(self.algorithms, self.algorithm, self.instance, len(self.instances))

    def without_value(self) -> list[str]:
        """The runs without any value, such as those that crashed early, in words.

        >>> run = Run("a", "x", [], [], until=0, repetition=3, status=Status.CRASHED)
        >>> Runs.from_records([run], direction="minimize").without_value()
        ['a on x (repetition 3, crashed)']
        """
        empty = np.flatnonzero(np.diff(self.offset) == 0).tolist()
        return [run.name(with_status=True) for run in map(self.__getitem__, empty)]

    # Tables

    def columns(self) -> dict[str, Labels | NDArray[Any]]:
        """The long table: a row per improvement, and one row for a run that has none.

        The row of a run without a value has the value :attr:`worst`, so nothing is lost and
        :meth:`from_frame` gives the same ``Runs`` back.

        >>> runs = Runs.from_records([Run("a", "x", [1, 3], [2.0, 1.0], 9)], direction="minimize")
        >>> runs.columns()["value"], runs.columns()["until"]
        (array([2., 1.]), array([9., 9.]))
        """
        rows = np.maximum(np.diff(self.offset), 1)
        run = np.repeat(np.arange(len(self)), rows)
        time, value = np.zeros(len(run)), np.full(len(run), self.worst)
        filled = np.repeat(np.diff(self.offset) > 0, rows)
        time[filled], value[filled] = self.time, self.value
        names = [str(status) for status in STATUSES]
        return {
            "algorithm": Labels(self.algorithm[run], self.algorithms),
            "instance": Labels(self.instance[run], self.instances),
            "repetition": self.repetition[run],
            "time": time,
            "value": value,
            "until": self.until[run],
            "status": Labels(self.status[run].astype(np.int32), names),
        }

    def to_frame(self, backend: Any = "pandas") -> Any:
        """The long table as a data frame of ``backend``: "pandas", "polars" or "pyarrow".

        >>> runs = Runs.from_records([Run("a", "x", [1, 3], [2.0, 1.0], 9)], direction="minimize")
        >>> runs.to_frame("pyarrow").column_names
        ['algorithm', 'instance', 'repetition', 'time', 'value', 'until', 'status']
        """
        import narwhals

        if backend not in BACKENDS:
            raise DataError(f"backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
        require(backend)
        texts = {k: v.texts() if isinstance(v, Labels) else v for k, v in self.columns().items()}
        return narwhals.from_dict(texts, backend=backend).to_native()

    def to_parquet(self, path: Any) -> None:
        """Write the long table with direction and clock, for :meth:`from_parquet` and others.

        >>> import io
        >>> runs = Runs.from_records([Run("a", "x", [1, 3], [2.0, 1.0], 9)], direction="minimize")
        >>> file = io.BytesIO()                       # or a path
        >>> runs.to_parquet(file)
        >>> Runs.from_parquet(file) == runs
        True
        """
        about = {"direction": self.direction, "clock": self.clock}
        parquet.write(path, self.columns(), about)

    def to_csv(self, path: Any) -> None:
        """Write the long table as CSV. Read it with the direction, which CSV has no place for.

        >>> import sys                                # sys.stdout, or a path
        >>> runs = Runs.from_records([Run("a", "x", [1], [2.0], 9)], direction="minimize")
        >>> runs.to_csv(sys.stdout)
        algorithm,instance,repetition,time,value,until,status
        a,x,0,1.0,2.0,9.0,cut
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
        """Runs from a Parquet file with a long table, by its path or opened already.

        A file written by :meth:`to_parquet` knows its direction and clock. For others give
        ``direction``, and the names of columns as in :meth:`from_frame`.
        """
        opened = isinstance(path, parquet.ParquetColumns)
        file = path if opened else parquet.ParquetColumns(path)
        told = cast(Direction | None, file.about.get("direction"))
        if direction and told and direction != told:
            raise DataError(f"the file says {told}, but direction={direction!r} was asked for")
        direction = direction or told
        if direction is None:
            raise DataError(NO_DIRECTION)
        clock = clock or str(file.about.get("clock", "time"))
        return cls.from_columns(file, ColumnNaming(**columns), direction=direction, clock=clock)

    def __str__(self) -> str:
        algorithms = format_count(len(self.algorithms), "algorithm")
        instances = format_count(len(self.instances), "instance")
        head = f"{format_count(len(self), 'run')}: {algorithms} on {instances}, {self.direction}"
        if not len(self):
            return head
        found, first = (
            format_count(len(self.time), "improvement"),
            float(self.time.min(initial=np.inf)),
        )
        ended = Counter(STATUSES[code] for code in self.status.tolist()).most_common()
        watched = format_range(first if len(self.time) else 0.0, self.until.max(), self.clock)
        fewer, empty = self.fewer(), self.without_value()
        return (
            f"{head}\n"
            f"  algorithms  {format_list(self.algorithms)}\n"
            f"  time        {watched}, {found}\n"
            f"  ended       {', '.join(f'{n:,} {status}' for status, n in ended)}"
            + (f"\n  no value    {format_list(empty, 4)}" if empty else "")
            + (f"\n  incomplete  {format_list(fewer, 4)}" if fewer else "")
        )

    __repr__ = __str__

    def _run_of_row(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self)), np.diff(self.offset))


def _times(times: ArrayLike) -> Floats:
    found = np.atleast_1d(np.asarray(times, dtype=np.float64))
    if found.ndim > 1 or np.isnan(found).any():
        raise DataError("expected a time or a list of times")
    return found


def check_runs(found: object, verb: str) -> None:
    """Refuse what is not runs, and say how runs are made of it."""
    if isinstance(found, Runs):
        return
    how = "read it first with read(...)"
    if isinstance(found, Mapping) or hasattr(found, "columns"):
        how = "make them with Runs.from_frame(frame, direction='minimize')"
    raise DataError(f"{verb} takes Runs, not {type(found).__name__}: {how}")
