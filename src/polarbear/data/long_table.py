"""From a long table to the arrays of ``Runs``: one row per thing seen of a run, in any order.

This is where what a table leaves open is decided: which rows belong to one run, which of them
are improvements, and until when a run was watched. What cannot be decided is an error that names
its place; what can be, but changes the answer, is a ``DataWarning``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from polarbear.data.columns import Columns, Labels, and_more, columns_of, is_whole
from polarbear.data.lacking import (
    REPETITION_COLUMNS,
    count_incomplete,
    lacking,
    list_gaps,
    name_columns,
    repetition_like,
    spell_call,
)
from polarbear.data.names import Codes, renumber_names
from polarbear.data.trajectories import Flat, Floats, Ints, improvements
from polarbear.errors import DataError, warn


@dataclass(frozen=True)
class ColumnNaming:
    """Which column plays which part; ``None`` where the usual names are tried.

    ``missing`` says what to do with rows that lack a time or a value: "error" or "drop".
    """

    algorithm: str = "algorithm"
    instance: str | Sequence[str] = "instance"
    repetition: str | None = None
    time: str = "time"
    value: str = "value"
    until: str | float | None = None
    status: str | None = None
    missing: str = "error"

    def instance_columns(self) -> list[str]:
        """The columns that make an instance, one or several."""
        several = isinstance(self.instance, list | tuple)
        parts = list(self.instance) if several else [cast(str, self.instance)]
        if not parts:
            raise DataError("instance=() names no column")
        return parts

    def identity(self) -> list[tuple[str, str]]:
        """The columns that say which run a row is of, with the part each plays."""
        parts = [("algorithm", self.algorithm)]
        parts += [("instance", name) for name in self.instance_columns()]
        return parts + ([("repetition", self.repetition)] if self.repetition else [])


UNTIL_RULES = ("last", "instance")
MISSING_RULES = ("error", "drop")


def check_frame_complete(
    frame: object, function: str, direction: str | None, options: Mapping[str, Any]
) -> None:
    """Refuse a data frame that lacks columns or a direction, with all that it lacks at once.

    ``options`` are those of :meth:`Runs.from_frame`; the message tells to call ``function``.
    """
    columns = columns_of(frame)
    naming = ColumnNaming(**{name: value for name, value in options.items() if name != "clock"})
    roles = [*naming.identity(), ("time", naming.time), ("value", naming.value)]
    why = lacking(columns, roles)
    if not why and direction is not None:
        return
    gaps, more = list_gaps(direction, naming.missing, count_incomplete(columns, roles))
    more = {**name_columns(columns, roles), **more}
    given = dict(options) if direction is None else {**options, "direction": direction}
    call = spell_call(function, "frame", given, more)
    raise DataError("; ".join(filter(None, [why, *gaps])) + call)


class Table(NamedTuple):
    """The fields of ``Runs``, in its canonical order."""

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


def long_table(
    columns: Columns,
    naming: ColumnNaming,
    sign: float,
    statuses: Sequence[str],
    *,
    surely_runs: bool,
) -> Table:
    """Read a long table; ``sign`` turns values into costs, ``statuses`` are the known endings.

    ``surely_runs`` says that rows of one identity are surely of one run.
    """
    runs = _identify(columns, naming)
    time, value = columns.numbers(naming.time), columns.numbers(naming.value)
    _refuse(np.isinf(time), columns, naming.time, "a time must be finite")
    _refuse(time < 0, columns, naming.time, "a time cannot be negative")
    stated = _stated_until(columns, naming, runs, time)
    status = _statuses(columns, naming, runs, statuses)
    cut = status == statuses.index("cut")
    kept = _complete(columns, naming, runs, time, value, ~cut[runs.row], sign)
    cost = value if sign > 0 else -value
    if not kept.all():
        runs, time, cost = runs._replace(row=runs.row[kept]), time[kept], cost[kept]
    flat = improvements(runs.row, time, cost, len(runs.algorithm))
    _warn_of_direction(runs, flat, time, cost, "minimize" if sign > 0 else "maximize")
    if not surely_runs:
        _warn_of_merged_runs(runs, flat.clash, time, columns, naming)
    until = _deduced_until(runs, flat, naming.until, cut) if stated is None else stated
    return Table(
        runs.algorithms,
        runs.instances,
        runs.algorithm,
        runs.instance,
        runs.repetition,
        until,
        status,
        flat.offset,
        flat.time,
        flat.cost if sign > 0 else -flat.cost,
    )


class _Identified(NamedTuple):
    """Which run each row belongs to, and who each run is."""

    row: NDArray[np.int32]
    algorithms: tuple[str, ...]
    instances: tuple[str, ...]
    algorithm: Codes
    instance: Codes
    repetition: NDArray[np.int64]

    def name(self, run: int) -> str:
        algorithm = self.algorithms[self.algorithm[run]]
        return f"algorithm {algorithm!r} on instance {self.instances[self.instance[run]]!r}"


def _identify(columns: Columns, naming: ColumnNaming) -> _Identified:
    _require(columns, *naming.identity(), ("time", naming.time), ("value", naming.value))
    algorithm, algorithms = renumber_names(*columns.labels(naming.algorithm))
    instance, instances = renumber_names(*_joined(columns, naming.instance_columns()))
    repetition, repetitions = _repetitions(columns, naming, len(algorithm))
    # Runs are numbered by instance, then algorithm, then repetition.
    pair_of_row, pairs = number_pairs(instance, algorithm, len(algorithms))
    row, runs = number_pairs(pair_of_row, repetition, len(repetitions))
    return _Identified(
        row,
        algorithms,
        instances,
        pairs[1][runs[0]].astype(np.int32),
        pairs[0][runs[0]].astype(np.int32),
        repetitions[runs[1]],
    )


def _require(columns: Columns, *parts: tuple[str, str]) -> None:
    if why := lacking(columns, parts):
        raise DataError(why)


def _joined(columns: Columns, parts: Sequence[str]) -> Labels:
    """One column of names, or several joined to one, as in 'function=3, dimension=10'."""
    codes, names = columns.labels(parts[0])
    if len(parts) == 1:
        return Labels(codes, names)
    names = [f"{parts[0]}={name}" for name in names]
    for part in parts[1:]:
        next_codes, next_names = columns.labels(part)
        codes, (old, new) = number_pairs(codes, next_codes, len(next_names))
        names = [f"{names[i]}, {part}={next_names[j]}" for i, j in zip(old, new, strict=True)]
    return Labels(codes, names)


def number_pairs(
    major: Ints, minor: Ints, n_minor: int
) -> tuple[NDArray[np.int32], tuple[Ints, Ints]]:
    """Number the pairs (major, minor) that occur, in their order; also which pairs these are.

    >>> number, (major, minor) = number_pairs(np.array([7, 2, 7]), np.array([0, 1, 0]), 2)
    >>> number.tolist(), major.tolist(), minor.tolist()
    ([1, 0, 1], [2, 7], [1, 0])
    """
    key = major.astype(np.int64) * n_minor + minor
    size = int(key.max(initial=-1)) + 1
    if size > max(4 * len(key), 1 << 22):
        used, number = np.unique(key, return_inverse=True)
    else:  # a table of what occurs is linear in the rows, where it is not too large
        seen = np.zeros(size, dtype=bool)
        seen[key] = True
        used, number = np.flatnonzero(seen), (np.cumsum(seen, dtype=np.int32) - 1)[key]
    return number.astype(np.int32, copy=False), np.divmod(used, max(n_minor, 1))


def repetition_column(columns: Columns, naming: ColumnNaming) -> str | None:
    """The column that tells repetitions apart, as named or by its usual name."""
    return naming.repetition or next(
        (name for name in REPETITION_COLUMNS if name in columns.names), None
    )


def _repetitions(
    columns: Columns, naming: ColumnNaming, rows: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    column = repetition_column(columns, naming)
    if column is None:
        return np.zeros(rows, dtype=np.int32), np.zeros(min(rows, 1), dtype=np.int64)
    codes, names = columns.labels(column)
    try:
        # Through text, because a 64-bit seed does not fit a float.
        if not all(map(is_whole, names)):
            raise ValueError
        numbers = np.array([int(name) for name in names], dtype=np.int64)
    except (ValueError, OverflowError):
        odd = next(i for i, name in enumerate(names) if not _is_int64(name))
        row = int(np.flatnonzero(codes == odd)[0])
        raise DataError(
            f"column {column!r}, {columns.where(row)}: {names[odd]!r} is not a whole number of "
            "64 bits; number the repetitions of an instance 0, 1, 2, ... or give their seeds"
        ) from None
    used, place = np.unique(numbers, return_inverse=True)
    return place.astype(np.int32)[codes], used


def _is_int64(name: str) -> bool:
    return is_whole(name) and -(1 << 63) <= int(name) < 1 << 63


def _refuse(bad: NDArray[np.bool_], columns: Columns, name: str, why: str) -> None:
    if bad.any():
        others = and_more(int(bad.sum()))
        raise DataError(f"column {name!r}, {columns.where(int(np.argmax(bad)))}: {why}{others}")


def _complete(
    columns: Columns,
    naming: ColumnNaming,
    runs: _Identified,
    time: Floats,
    value: Floats,
    failed: NDArray[np.bool_],
    sign: float,
) -> NDArray[np.bool_]:
    """The rows to keep. Rows of runs that failed need no value; others that lack one are refused.

    With ``missing="drop"`` they are left out. A run keeps one row at least, so that a run without
    any value is still there: ``time`` and ``value`` are filled in such rows.
    """
    if naming.missing not in MISSING_RULES:
        raise DataError(f"missing={naming.missing!r}: expected 'error' or 'drop'")
    never = np.inf * sign
    nothing = np.isnan(value) & failed
    value[nothing] = never
    time[nothing & np.isnan(time)] = 0.0
    gone = np.isnan(time) | np.isnan(value)
    if naming.missing == "error":
        hint = "drop the row, or all such rows with missing='drop'"
        _refuse_missing(columns, naming.time, "time", time, hint)
        none = f"write {never:g} for none yet; a run with a status such as 'crashed' needs no value"
        _refuse_missing(columns, naming.value, "value", value, f"{hint}, or {none}")
        return ~gone
    n = len(runs.algorithm)
    lost = np.bincount(runs.row[~gone], minlength=n) == 0
    latest = np.zeros(n)
    np.maximum.at(latest, runs.row, np.nan_to_num(time))
    rows = np.full(n, -1)
    rows[runs.row] = np.arange(len(gone))  # a row of each run
    rows = rows[lost]
    time[rows], value[rows], gone[rows] = latest[lost], never, False
    return ~gone


def _refuse_missing(columns: Columns, name: str, part: str, numbers: Floats, hint: str) -> None:
    gone = np.isnan(numbers)
    if gone.any():
        cell = columns.cell(name, int(np.argmax(gone))).strip()
        why = f"{cell} is not a {part}" if cell else "the cell is empty"
        _refuse(gone, columns, name, f"{why}; {hint}")


def _per_run(rows: NDArray[Any], runs: _Identified, columns: Columns, name: str) -> NDArray[Any]:
    """A column that must say the same thing in every row of a run, once per run."""
    values = np.empty(len(runs.algorithm), dtype=rows.dtype)
    values[runs.row] = rows
    _refuse(rows != values[runs.row], columns, name, "differs from another row of the same run")
    return values


def _stated_until(
    columns: Columns, naming: ColumnNaming, runs: _Identified, time: Floats
) -> Floats | None:
    """The end of watching as the table or the caller says it, if either does."""
    until = naming.until
    if (isinstance(until, str) and until in UNTIL_RULES) or (
        until is None and "until" not in columns.names
    ):
        return None
    if until is None or isinstance(until, str):
        column = until or "until"
        _require(columns, ("until", column))
        rows = columns.numbers(column)
        _refuse_missing(columns, column, "time", rows, "write until when the run was watched")
        _refuse(~np.isfinite(rows), columns, column, "until must be a finite time")
        stated = _per_run(rows, runs, columns, column)
    elif isinstance(until, Real) and np.isfinite(float(until)):
        stated = np.full(len(runs.algorithm), float(until))
    else:
        raise DataError(
            f"until={until!r}: expected a column's name, a finite time, 'last' or 'instance'"
        )
    late = time > stated[runs.row]
    if late.any():
        row = int(np.argmax(late))
        raise DataError(
            f"column {naming.time!r}, {columns.where(row)}: {time[row]:g} is after the time until "
            f"which the run was watched, {stated[runs.row[row]]:g}; drop the row or correct until"
        )
    return stated


def _statuses(
    columns: Columns, naming: ColumnNaming, runs: _Identified, statuses: Sequence[str]
) -> NDArray[np.int8]:
    column = naming.status or "status"
    if naming.status is None and column not in columns.names:
        return np.full(len(runs.algorithm), statuses.index("cut"), dtype=np.int8)
    _require(columns, ("status", column))
    codes, names = columns.labels(column)
    known = np.array([statuses.index(n) if n in statuses else -1 for n in names], dtype=np.int8)
    rows = known[codes]
    if np.any(rows < 0):
        row = int(np.argmax(rows < 0))
        found = f"{names[codes[row]]!r} is not one of {', '.join(statuses)}"
        raise DataError(f"column {column!r}, {columns.where(row)}: {found}")
    return _per_run(rows, runs, columns, column)


def _deduced_until(runs: _Identified, flat: Flat, rule: object, cut: NDArray[np.bool_]) -> Floats:
    """The end of watching from the rows alone.

    A table of everything that was seen ends where watching ended. A table of improvements only
    does not say when watching ended: a run that found its best early was watched as long as the
    others. Which of the two a table is shows in whether all its rows are improvements. It makes a
    difference to runs that were cut: others keep what they have.
    """
    latest = np.full(len(runs.instances), -np.inf)
    np.maximum.at(latest, runs.instance, flat.last)
    until = (
        flat.last if rule == "last" or (rule is None and flat.observed) else latest[runs.instance]
    )
    differs = cut & (flat.last != latest[runs.instance])
    if rule is None and differs.any():
        run = int(np.argmax(differs))
        taken = "its last row, because the table also has rows that improve nothing"
        if not flat.observed:
            taken = "the latest time on the instance, because all rows are improvements"
        warn(
            f"the table does not say until when each run was watched: the last row of "
            f"{runs.name(run)} is at {flat.last[run]:g}, others there go on to "
            f"{latest[runs.instance[run]]:g}. Taken for each run: {taken}. "
            "Say it with a column 'until', or until='last', until='instance' or until=1e5"
        )
    return until


def _warn_of_direction(
    runs: _Identified, flat: Flat, time: Floats, cost: Floats, direction: str
) -> None:
    """Runs that find their best at once and then get worse and worse were read upside down."""
    n, rows = len(runs.algorithm), len(time)
    if rows < 3 * n or len(flat.time) > n:
        return
    better = len(improvements(runs.row, time, -cost, n).time)
    if better > 0.9 * rows:
        warn(
            f"no row improves on the first one of its run, and {better:,} of {rows:,} would if the "
            f"direction were the other one: is direction={direction!r} right?"
        )


def _warn_of_merged_runs(
    runs: _Identified, clash: int, time: Floats, columns: Columns, naming: ColumnNaming
) -> None:
    """Several runs taken for one show in values that differ at one time, or in time going back."""
    same, back = runs.row[1:] == runs.row[:-1], time[1:] < time[:-1]
    what = "has two different values at one time"
    # Runs one after another go back only where one ends; rows in no order go back half the time.
    together = int(np.sum(same))
    some = 0 < np.sum(back & same) < 0.5 * together - np.sqrt(together)
    if clash < 0 and some and 2 * together > len(same):
        clash, what = int(runs.row[np.argmax(back & same)]), "goes back in time from row to row"
    if clash >= 0:
        told = repetition_column(columns, naming)
        apart = f"the column {told!r} does not tell them" if told else "no column tells them"
        other = None if told else repetition_like(map(str, columns.names))
        warn(
            f"{runs.name(clash)} {what}; taken as one run. If these are several runs, {apart} "
            f"apart: name the one that does with repetition={other or '...'!r}, or those that make "
            "an instance with instance=('...', '...')"
        )
