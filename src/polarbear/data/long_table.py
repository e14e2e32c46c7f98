"""Conversion of a long table, one row per observation of a run, to the arrays of ``Runs``.

This module decides what a table leaves open: which rows belong to one run, which rows are
improvements, and until when a run was observed. What cannot be decided raises ``DataError`` with
its row. An assumption that changes the answer is a ``DataWarning``.
"""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from polarbear.data.columns import Columns
from polarbear.data.levels import Levels, encode_levels, encode_violations
from polarbear.data.missing_columns import (
    REPETITION_COLUMNS,
    count_incomplete,
    describe_gaps,
    describe_missing_columns,
    guess_repetition_column,
    suggest_call,
    suggest_columns,
)
from polarbear.data.names import Codes, renumber_names
from polarbear.data.run import STATUSES, Direction, Directions, Status, sign_of
from polarbear.data.table import Labels, Table, format_other_cells, is_whole_number, to_table
from polarbear.data.trajectories import FlatTrajectories, Floats, Ints, extract_improvements
from polarbear.errors import Argument, DataError, Text, join_texts, warn

UNTIL_RULES = ("last", "instance")
MISSING_RULES = ("error", "drop")


def check_frame_complete(frame: object, options: Mapping[str, Any]) -> None:
    """Raise ``DataError`` with a list of what a data frame lacks: columns and the direction.

    ``options`` are those of :meth:`Runs.from_frame`. The message ends with a call of ``read`` that
    supplies what is missing.
    """
    table, direction = to_table(frame), options.get("direction")
    others = ("direction", "clock")
    columns = Columns(**{name: value for name, value in options.items() if name not in others})
    roles = [*columns.list_identity_columns(), *columns.list_number_columns()]
    missing = describe_missing_columns(table, roles)
    if not missing and direction is not None:
        return
    gaps, arguments = describe_gaps(direction, columns.missing, count_incomplete(table, roles))
    arguments = {**suggest_columns(table, roles), **arguments}
    reasons = join_texts("; ", [missing, *gaps] if missing else gaps)
    raise DataError(reasons, suggest_call("frame", options, arguments))


class RunArrays(NamedTuple):
    """The arrays of a ``Runs`` object, sorted in its order."""

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


def read_long_table(
    table: Table,
    columns: Columns,
    direction: Directions,
    *,
    surely_runs: bool,
) -> tuple[RunArrays, Direction, Levels | None]:
    """Read a long table into run arrays, with their direction and the levels of their values.

    With ``surely_runs``, rows of one identity are certainly one run.
    """
    runs = _identify_runs(table, columns)
    time = table.read_numbers(columns.time)
    value, own_direction, levels = _read_values(table, columns, direction)
    sign = sign_of(own_direction)
    _refuse_cells(np.isinf(time), table, columns.time, "a time must be finite")
    _refuse_cells(time < 0, table, columns.time, "a time cannot be negative")
    stated = _read_until(table, columns, runs, time)
    status = _read_statuses(table, columns, runs)
    is_open = np.isin(status, [STATUSES.index("cut"), STATUSES.index("unstated")])
    kept = _select_complete_rows(table, columns, runs, time, value, ~is_open[runs.row], sign)
    cost = value if sign > 0 else -value
    choice = None if columns.chosen_by is None else sign * table.read_numbers(columns.chosen_by)
    if not kept.all():
        runs, time, cost = runs._replace(row=runs.row[kept]), time[kept], cost[kept]
        choice = None if choice is None else choice[kept]
    flat = _extract_rows(runs, time, cost, choice, columns.best_so_far)
    if columns.best_so_far and choice is None:
        _warn_if_wrong_direction(runs, flat, time, cost, own_direction)
    if not surely_runs:
        _warn_if_runs_merged(runs, flat.conflicting_run, time, table, columns)
    until = _deduce_until(runs, flat, columns.until, is_open) if stated is None else stated
    value = flat.cost if sign > 0 else -flat.cost
    arrays = RunArrays(
        *runs[1:], until=until, status=status, offset=flat.offset, time=flat.time, value=value
    )
    return arrays, own_direction, levels


def read_points(
    table: Table, columns: Columns
) -> tuple[RunArrays, NDArray[np.int32], Floats, Floats]:
    """Read a table of points with several objectives: runs without values, and rows of points.

    Return the runs, and for each row its run, its time and its point (rows, objectives).
    """
    runs = _identify_runs(table, columns)
    time, n = table.read_numbers(columns.time), len(runs.algorithm)
    names = columns.list_value_columns()
    points = np.stack([table.read_numbers(name) for name in names], axis=1)
    for name, numbers in ((columns.time, time), *zip(names, points.T, strict=True)):
        _refuse_cells(~np.isfinite(numbers), table, name, "expected a finite number")
    _refuse_cells(time < 0, table, columns.time, "a time cannot be negative")
    until = _read_until(table, columns, runs, time)
    if until is None:
        last, latest = np.zeros(n), np.zeros(len(runs.instances))
        np.maximum.at(last, runs.row, time)
        np.maximum.at(latest, runs.instance, last)
        until = last if columns.until == "last" else latest[runs.instance]
    status = _read_statuses(table, columns, runs)
    offset = np.zeros(n + 1, dtype=np.int64)
    arrays = RunArrays(
        *runs[1:], until=until, status=status, offset=offset, time=np.zeros(0), value=np.zeros(0)
    )
    return arrays, runs.row, time, points


def _read_values(
    table: Table, columns: Columns, direction: Directions
) -> tuple[Floats, Direction, Levels | None]:
    """Return one value of each row, its direction, and the levels it stands for, if any."""
    names = columns.list_value_columns()
    if len(names) > 1:
        if columns.violation or columns.chosen_by or not columns.best_so_far:
            raise DataError(
                "several value columns are levels, which have no violation=, chosen_by= or "
                "best_so_far=; put the violation first: value=('violation', 'objective')"
            )
        matrix = np.stack([table.read_numbers(name) for name in names], axis=1)
        places, levels = encode_levels(names, direction, matrix)
        return places, "minimize", levels
    own = cast(Direction, direction)
    sign, value = sign_of(own), table.read_numbers(names[0])
    if columns.violation is not None:
        violation = table.read_numbers(columns.violation)
        bad = np.isnan(violation) | (violation < 0)
        why = "a violation must be a number of at least 0, where 0 means feasible"
        _refuse_cells(bad, table, columns.violation, why)
        value = sign * encode_violations(np.where(violation > 0, 0.0, sign * value), violation)
    return value, own, None


def _extract_rows(
    runs: "_RunIdentities", time: Floats, cost: Floats, choice: Floats | None, best_so_far: bool
) -> FlatTrajectories:
    """Extract the rows that count: improvements of the cost, or of the choice, or all changes."""
    n = len(runs.algorithm)
    if choice is None:
        return extract_improvements(runs.row, time, cost, n, best_so_far=best_so_far)
    if np.isnan(choice).any():
        raise DataError("chosen_by: every row needs a number to choose by")
    # Rows are numbered by choice, the earlier first, so that the number leads back to the row.
    order = np.lexsort((np.arange(len(time)), time, choice))
    place = np.empty(len(order))
    place[order] = np.arange(len(order))
    flat = extract_improvements(runs.row, time, place, n)
    return flat._replace(cost=cost[order[flat.cost.astype(np.int64)]], conflicting_run=-1)


class _RunIdentities(NamedTuple):
    """The run number of each row, and the algorithm, instance and repetition of each run."""

    row: NDArray[np.int32]
    algorithms: tuple[str, ...]
    instances: tuple[str, ...]
    algorithm: Codes
    instance: Codes
    repetition: NDArray[np.int64]

    def describe_run(self, run: int) -> str:
        algorithm = self.algorithms[self.algorithm[run]]
        return f"algorithm {algorithm!r} on instance {self.instances[self.instance[run]]!r}"


def _identify_runs(table: Table, columns: Columns) -> _RunIdentities:
    _require_columns(table, *columns.list_identity_columns(), *columns.list_number_columns())
    algorithm, algorithms = renumber_names(*table.read_labels(columns.algorithm))
    instance, instances = renumber_names(*_join_columns(table, columns.list_instance_columns()))
    repetition, repetitions = _read_repetitions(table, columns, len(algorithm))
    # Runs are numbered by instance, then algorithm, then repetition.
    pair_of_row, pairs = number_pairs(instance, algorithm, len(algorithms))
    row, runs = number_pairs(pair_of_row, repetition, len(repetitions))
    return _RunIdentities(
        row=row,
        algorithms=algorithms,
        instances=instances,
        algorithm=pairs[1][runs[0]].astype(np.int32),
        instance=pairs[0][runs[0]].astype(np.int32),
        repetition=repetitions[runs[1]],
    )


def _require_columns(table: Table, *roles: tuple[str, str]) -> None:
    if missing := describe_missing_columns(table, roles):
        raise DataError(missing)


def _join_columns(table: Table, parts: Sequence[str]) -> Labels:
    """Read names from one column, or join several, as in 'function=3, dimension=10'."""
    codes, names = table.read_labels(parts[0])
    if len(parts) == 1:
        return Labels(codes, names)
    names = [f"{parts[0]}={name}" for name in names]
    for part in parts[1:]:
        next_codes, next_names = table.read_labels(part)
        codes, (old, new) = number_pairs(codes, next_codes, len(next_names))
        names = [f"{names[i]}, {part}={next_names[j]}" for i, j in zip(old, new, strict=True)]
    return Labels(codes, names)


def number_pairs(
    major: Ints, minor: Ints, n_minor: int
) -> tuple[NDArray[np.int32], tuple[Ints, Ints]]:
    """Number the distinct pairs (major, minor) in sorted order; return numbers and sorted pairs.

    >>> number, (major, minor) = number_pairs(np.array([7, 2, 7]), np.array([0, 1, 0]), 2)
    >>> number.tolist(), major.tolist(), minor.tolist()
    ([1, 0, 1], [2, 7], [1, 0])
    """
    key = major.astype(np.int64) * n_minor + minor
    size = int(key.max(initial=-1)) + 1
    if size > max(4 * len(key), 1 << 22):
        used, number = np.unique(key, return_inverse=True)
    else:  # marking the keys that occur takes linear time, where the marks fit in memory
        occurs = np.zeros(size, dtype=bool)
        occurs[key] = True
        used, number = np.flatnonzero(occurs), (np.cumsum(occurs, dtype=np.int32) - 1)[key]
    return number.astype(np.int32, copy=False), np.divmod(used, max(n_minor, 1))


def find_repetition_column(table: Table, columns: Columns) -> str | None:
    """Return the name of the column that numbers repetitions, given or by a usual name."""
    return columns.repetition or next(
        (name for name in REPETITION_COLUMNS if name in table.names), None
    )


def _read_repetitions(
    table: Table, columns: Columns, rows: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    column = find_repetition_column(table, columns)
    if column is None:
        return np.zeros(rows, dtype=np.int32), np.zeros(min(rows, 1), dtype=np.int64)
    codes, names = table.read_labels(column)
    try:
        # Through text, because a 64-bit seed does not fit a float.
        if not all(map(is_whole_number, names)):
            raise ValueError
        numbers = np.array([int(name) for name in names], dtype=np.int64)
    except (ValueError, OverflowError):
        bad = next(i for i, name in enumerate(names) if not _is_int64(name))
        row = int(np.flatnonzero(codes == bad)[0])
        raise DataError(
            f"column {column!r}, {table.describe_row(row)}: {names[bad]!r} is not a whole number "
            "of 64 bits; number the repetitions of an instance 0, 1, 2, ... or give their seeds"
        ) from None
    used, index = np.unique(numbers, return_inverse=True)
    return index.astype(np.int32)[codes], used


def _is_int64(name: str) -> bool:
    return is_whole_number(name) and -(1 << 63) <= int(name) < 1 << 63


def _refuse_cells(bad: NDArray[np.bool_], table: Table, name: str, *why: Text) -> None:
    if bad.any():
        row = table.describe_row(int(np.argmax(bad)))
        others = format_other_cells(int(bad.sum()))
        raise DataError(f"column {name!r}, {row}: ", why, others)


def _select_complete_rows(
    table: Table,
    columns: Columns,
    runs: _RunIdentities,
    time: Floats,
    value: Floats,
    failed: NDArray[np.bool_],
    sign: float,
) -> NDArray[np.bool_]:
    """Return a mask of the rows with a time and a value; failed runs need no value.

    Other incomplete rows raise ``DataError``, or are left out with ``missing="drop"``. A run
    keeps at least one row, so that a run without any value stays: its ``time`` and ``value`` are
    filled in.
    """
    if columns.missing not in MISSING_RULES:
        raise DataError("expected 'error' or 'drop'", missing=columns.missing)
    worst = np.inf * sign
    failed_without_value = np.isnan(value) & failed
    value[failed_without_value] = worst
    time[failed_without_value & np.isnan(time)] = 0.0
    complete = ~(np.isnan(time) | np.isnan(value))
    if columns.missing == "error":
        hint = ("drop the row, or all such rows with ", Argument("missing", "drop"))
        _refuse_missing_numbers(table, columns.time, "time", time, hint)
        none = f"write {worst:g} for none yet; a run with a status such as 'crashed' needs no value"
        for name in columns.list_value_columns() if np.isnan(value).any() else ():
            lacking = np.where(np.isnan(value), table.read_numbers(name), 0.0)
            _refuse_missing_numbers(table, name, "value", lacking, (hint, ", or ", none))
        return complete
    n = len(runs.algorithm)
    without_rows = np.bincount(runs.row[complete], minlength=n) == 0
    latest = np.zeros(n)
    np.maximum.at(latest, runs.row, np.nan_to_num(time))
    any_row = np.full(n, -1)
    any_row[runs.row] = np.arange(len(complete))
    rows = any_row[without_rows]
    time[rows], value[rows], complete[rows] = latest[without_rows], worst, True
    return complete


def _refuse_missing_numbers(
    table: Table, name: str, part: str, numbers: Floats, hint: Text
) -> None:
    gone = np.isnan(numbers)
    if gone.any():
        cell = table.format_cell(name, int(np.argmax(gone))).strip()
        why = f"{cell} is not a {part}" if cell else "the cell is empty"
        _refuse_cells(gone, table, name, f"{why}; ", hint)


def _reduce_to_runs(
    rows: NDArray[Any], runs: _RunIdentities, table: Table, name: str
) -> NDArray[Any]:
    """Return one value per run from a column that must be equal in all rows of a run."""
    values = np.empty(len(runs.algorithm), dtype=rows.dtype)
    values[runs.row] = rows
    _refuse_cells(rows != values[runs.row], table, name, "differs from another row of the same run")
    return values


def _read_until(
    table: Table, columns: Columns, runs: _RunIdentities, time: Floats
) -> Floats | None:
    """Return the end of observation of each run, if the table or the caller gives it, else None."""
    until = columns.until
    if (isinstance(until, str) and until in UNTIL_RULES) or (
        until is None and "until" not in table.names
    ):
        return None
    if until is None or isinstance(until, str):
        column = until or "until"
        _require_columns(table, ("until", column))
        rows = table.read_numbers(column)
        hint = "write until when the run was observed"
        _refuse_missing_numbers(table, column, "time", rows, hint)
        _refuse_cells(~np.isfinite(rows), table, column, "until must be a finite time")
        stated = _reduce_to_runs(rows, runs, table, column)
    elif isinstance(until, Real) and np.isfinite(float(until)):
        stated = np.full(len(runs.algorithm), float(until))
    else:
        raise DataError(
            "expected the name of a column, a finite time, 'last' or 'instance'", until=until
        )
    late = time > stated[runs.row]
    if late.any():
        row = int(np.argmax(late))
        raise DataError(
            f"column {columns.time!r}, {table.describe_row(row)}: {time[row]:g} is after the end "
            f"of the run, until={stated[runs.row[row]]:g}; drop the row or correct until"
        )
    return stated


def _read_statuses(table: Table, columns: Columns, runs: _RunIdentities) -> NDArray[np.int8]:
    column = columns.status or "status"
    if columns.status is None and column not in table.names:
        return np.full(len(runs.algorithm), STATUSES.index("unstated"), dtype=np.int8)
    _require_columns(table, ("status", column))
    codes, names = table.read_labels(column, may_be_empty=True)
    stated = [name or Status.UNSTATED for name in names]
    known = np.array([STATUSES.index(n) if n in STATUSES else -1 for n in stated], dtype=np.int8)
    rows = known[codes]
    if np.any(rows < 0):
        row = int(np.argmax(rows < 0))
        raise DataError(
            f"column {column!r}, {table.describe_row(row)}: {names[codes[row]]!r} is not one of "
            f"{', '.join(STATUSES)}"
        )
    return _reduce_to_runs(rows, runs, table, column)


def _deduce_until(
    runs: _RunIdentities, flat: FlatTrajectories, rule: object, is_open: NDArray[np.bool_]
) -> Floats:
    """Deduce the end of observation of each run from its rows, because it is not given.

    A table of all observations ends where observation ended. A table of improvements only does
    not say so: a run that found its best early was observed as long as the others. A table whose
    rows are all improvements is taken for the second kind, with a warning where it matters. It
    matters for runs that may have been cut: others keep their value after their end.
    """
    latest = np.full(len(runs.instances), -np.inf)
    np.maximum.at(latest, runs.instance, flat.last)
    until = (
        flat.last
        if rule == "last" or (rule is None and flat.has_non_improving)
        else latest[runs.instance]
    )
    differs = is_open & (flat.last != latest[runs.instance])
    if rule is None and not flat.has_non_improving and differs.any():
        run = int(np.argmax(differs))
        assumed = "the latest time on the instance, because all rows are improvements"
        warn(
            f"the table does not say until when each run was observed: the last row of "
            f"{runs.describe_run(run)} is at {flat.last[run]:g}, others there go on to "
            f"{latest[runs.instance[run]]:g}. Assumed for each run: {assumed}. "
            "Say it with a column 'until', or ",
            Argument("until", "last"),
            ", ",
            Argument("until", "instance"),
            " or ",
            Argument("until", 100_000),
        )
    return until


def _warn_if_wrong_direction(
    runs: _RunIdentities, flat: FlatTrajectories, time: Floats, cost: Floats, direction: str
) -> None:
    """Warn if values only get worse within runs, so that the direction seems to be wrong."""
    n, rows = len(runs.algorithm), len(time)
    if rows < 3 * n or len(flat.time) > n:
        return
    better = len(extract_improvements(runs.row, time, -cost, n).time)
    if better > 0.9 * rows:
        warn(
            f"no row improves on the first one of its run, and {better:,} of {rows:,} would if the "
            "direction were the other one: is ",
            Argument("direction", direction),
            " right?",
        )


def _warn_if_runs_merged(
    runs: _RunIdentities, run: int, time: Floats, table: Table, columns: Columns
) -> None:
    """Warn if several runs seem merged: two values at one time, or times that decrease.

    ``run`` is one with two different values at one time, or -1 if there is none.
    """
    order = np.argsort(runs.row, kind="stable")  # the rows of each run, in their order
    row, time = runs.row[order], time[order]
    same_run, decreases = row[1:] == row[:-1], time[1:] < time[:-1]
    problem = "has two different values at one time"
    # In runs written one after another, times decrease only where a run ends; in shuffled rows,
    # half of the times do.
    n_same = int(np.sum(same_run))
    is_some = 0 < np.sum(decreases & same_run) < 0.5 * n_same - np.sqrt(n_same)
    if run < 0 and is_some and 2 * n_same > len(same_run):
        run = int(row[np.argmax(decreases & same_run)])
        problem = "goes back in time from row to row"
    if run >= 0:
        column = find_repetition_column(table, columns)
        why = f"the column {column!r} does not" if column else "no column does"
        guess = None if column else guess_repetition_column(map(str, table.names))
        warn(
            f"{runs.describe_run(run)} {problem}; taken as one run. If these are several runs, a "
            f"column must distinguish them, and {why}: name it with ",
            Argument("repetition", guess or "..."),
            ", or name the columns that make an instance with ",
            Argument("instance", ("...", "...")),
        )
