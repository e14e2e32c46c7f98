"""Readers of tables: long tables in CSV and Parquet, and wide CSV with one column per time."""

import bisect
import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from polarbear._text import format_count, format_list
from polarbear.data.columns import Columns
from polarbear.data.long_table import find_repetition_column
from polarbear.data.missing_columns import (
    REPETITION_COLUMNS,
    TIME_COLUMN,
    count_incomplete,
    describe_gaps,
    describe_missing_columns,
    describe_wide_layout,
    guess_columns,
    suggest_columns,
)
from polarbear.data.parquet import ParquetTable
from polarbear.data.run import STATUSES, Direction, Status
from polarbear.data.runs import Runs
from polarbear.data.table import MappingTable, Table, is_missing
from polarbear.errors import Argument, DataError, Text, join_texts, warn
from polarbear.readers.paths import parse_paths, propose_pattern
from polarbear.readers.source import Refused, RefusedIncomplete, Source, prefix_errors

Aliases = Mapping[str, str | Sequence[str]]

# No column of a user has such a name.
_LONG_TIME, _LONG_VALUE, _LONG_UNTIL = "\0time", "\0value", "\0until"


def read_long_csv(
    source: Source,
    *,
    direction: Direction | None = None,
    clock: str = "time",
    names: str | None = None,
    columns: Aliases | None = None,
    **parts: Any,
) -> Runs:
    """Read CSV files with a row for each observation of a run, as :meth:`Runs.from_frame` does.

    ``names`` gives the meaning of the parts of a path, as in
    ``"{algorithm}/{instance}_s{repetition}.csv"``: each becomes a column. ``columns`` has aliases
    of columns, for files that have other names for them.
    """
    files, naming = read_csv(source, names, columns), Columns(**parts)
    table = files.columns
    timed = list(_find_time_columns(table))
    if len(timed) > 1 and {naming.time, *naming.list_value_columns()}.isdisjoint(table.names):
        names_of = ("time", "value", "until")
        given = [Argument(name, parts[name]) for name in names_of if parts.get(name) is not None]
        why = f"it has a column per time ({format_list(timed, 4)})"
        if given and not source.forced:
            said = f"{why}, which are read as they are: leave out "
            raise RefusedIncomplete((said, join_texts(", ", given)))
        raise Refused(f"{why}, which is ", Argument("format", "wide"))
    direction = files.require_complete(naming, direction, *naming.list_number_columns())
    table, naming = files.with_empty_files(naming)
    return Runs.from_table(table, naming, direction=direction, clock=clock)


def read_wide_csv(
    source: Source,
    *,
    direction: Direction | None = None,
    algorithm: str = "algorithm",
    instance: str | Sequence[str] = "instance",
    repetition: str | None = None,
    missing: Literal["error", "drop"] = "error",
    clock: str = "time",
    names: str | None = None,
    columns: Aliases | None = None,
) -> Runs:
    """Read CSV files with a row per run and a column per time, named 100, t=100 or time_100.

    An empty cell means that nothing new was recorded: the previous value stands. A run was
    observed until its last cell that is not empty, or until the time in a column "until".
    ``names`` and ``columns`` are as for long tables.
    """
    files, parts = read_csv(source, names, columns), Columns(algorithm, instance, repetition)
    table, times = files.columns, _find_time_columns(files.columns)
    if not times:
        raise Refused("no column is named like a time (100, t=100, time_100)")
    direction = files.require_complete(parts, direction)
    for header, file in files.headers.items():
        if partial := next(
            (name for name in _parse_time_columns(header) if name not in times), None
        ):
            raise Refused(f"{file} has a column {partial!r} that not all files have")
    if len(set(times.values())) < len(times):
        raise DataError(
            f"{source.label}: two columns are for the same time, remove one: "
            f"{format_list(list(times))}"
        )
    never = "inf" if direction == "minimize" else "-inf"
    labels = {name: [] for name in table.names if name not in times}
    ends = table.table.get("until", [])
    long: dict[str, list[Any]] = {_LONG_TIME: [], _LONG_VALUE: [], _LONG_UNTIL: []}
    places: list[tuple[int, str]] = []
    for row in range(len(table.table[algorithm])):
        cells = {name: table.table[name][row] for name in times}
        seen = {name: cell for name, cell in cells.items() if not is_missing(cell)} or {"": never}
        until = (row < len(ends) and ends[row]) or max(times.get(name, 0.0) for name in seen)
        for name, cell in seen.items():
            long[_LONG_TIME].append(times.get(name, 0.0))
            long[_LONG_VALUE].append(cell)
            long[_LONG_UNTIL].append(until)
            places.append((row, name))
        for name, column in labels.items():
            column.extend([table.table[name][row]] * len(seen))

    def where(cell: int) -> str:
        row, name = places[cell]
        return f"{table.describe_row(row)}, under {name!r}"

    refuse_merged_rows(table, parts)
    parts = Columns(
        algorithm=algorithm,
        instance=instance,
        repetition=repetition,
        time=_LONG_TIME,
        value=_LONG_VALUE,
        until=_LONG_UNTIL,
        missing=missing,
    )
    cells = MappingTable({**labels, **long}, where)
    return Runs.from_table(cells, parts, direction=direction, clock=clock)


def refuse_merged_rows(table: MappingTable, parts: Columns) -> None:
    """Raise ``DataError`` if two rows name the same run, since each row is a run."""
    repetition = find_repetition_column(table, parts)
    columns = [
        parts.algorithm,
        *parts.list_instance_columns(),
        *([repetition] if repetition else []),
    ]
    seen: dict[tuple[str, ...], int] = {}
    for row, key in enumerate(zip(*(table.table[name] for name in columns), strict=True)):
        if key in seen:
            raise DataError(
                f"{table.describe_row(seen[key])} and {table.describe_row(row)} are both "
                f"{', '.join(key)}: if a column tells them apart, pass its name as ",
                Argument("repetition", "..."),
                ", or add it to ",
                Argument("instance", ("...", "...")),
            )
        seen[key] = row


def read_long_parquet(
    source: Source,
    *,
    direction: Direction | None = None,
    clock: str | None = None,
    names: str | None = None,
    columns: Aliases | None = None,
    **parts: Any,
) -> Runs:
    """Read Parquet files with a row for each observation of a run."""
    naming, read, states_ends = Columns(**parts), [], []
    aliases = _normalise_aliases(columns)
    for name, table, fields in open_parquet_files(source, names):
        with prefix_errors(name):
            table.amend_columns(
                _find_renames(table.names, aliases), _check_fields(fields, table.names)
            )
            stored = table.metadata.get("value", naming.value)
            columns_of = replace(naming, value=stored if "value" not in parts else naming.value)
            roles = (*naming.list_identity_columns(), *columns_of.list_number_columns())
            known_direction = direction or table.metadata.get("direction")
            if (why := describe_missing_columns(table, roles)) or known_direction is None:
                incomplete = count_incomplete(table, roles)
                gaps, more = describe_gaps(known_direction, naming.missing, incomplete)
                arguments = suggest_columns(table, roles)
                raise RefusedIncomplete(
                    join_texts("; ", [why, *gaps] if why else gaps), {**arguments, **more}
                )
            read.append(Runs.from_parquet(table, direction=direction, clock=clock, **parts))
            # A table of all observations ends where observation ended.
            is_stated = naming.until is not None or "until" in table.names
            states_ends.append(is_stated or table.n_rows > len(read[-1].time))
            if not len(read[-1]):
                warn(f"{name} has no rows: nothing says which run it is")
    if len(read) == 1:
        return read[0]
    runs = Runs.concat(read)
    longest = np.zeros(len(runs.instances))
    np.maximum.at(longest, runs.instance, runs.until)
    is_open = np.isin(runs.status, [STATUSES.index(Status.CUT), STATUSES.index(Status.UNSTATED)])
    differ = not all(states_ends) and np.any(is_open & (runs.until < longest[runs.instance]))
    if parts.get("until") == "instance" or differ:
        raise DataError(
            "several Parquet files do not say until when each run was observed: if it is the last "
            "row of the run, pass ",
            Argument("until", "last"),
            "; or give a time, or join the files into one",
        )
    return runs


class CsvTable(NamedTuple):
    """All CSV files of a source as one table of text cells, with the columns common to all."""

    columns: MappingTable
    headers: dict[tuple[str, ...], str]  # the columns of files, and the first file that has them
    without_rows: dict[str, dict[str, str]]  # files with no more than a header, and their fields
    files: list[str]
    fields: frozenset[str]  # the columns that paths give
    cells: list[dict[str, Sequence[str]]]  # of each file with columns

    def require_complete(
        self, naming: Columns, direction: Direction | None, *others: tuple[str, str]
    ) -> Direction:
        """Return the direction; raise ``RefusedIncomplete`` if any argument or column is missing.

        Columns that matter must be in all files or in none.
        """
        why, arguments = self._describe_missing([*naming.list_identity_columns(), *others])
        if why or direction is None:
            n_incomplete = sum(count_incomplete(MappingTable(own), others) for own in self.cells)
            gaps, more = describe_gaps(direction, naming.missing, n_incomplete)
            reasons = join_texts("; ", [why, *gaps] if why else gaps)
            raise RefusedIncomplete(reasons, {**arguments, **more})
        optional = (naming.repetition, naming.until, naming.status, *REPETITION_COLUMNS)
        for name in (*optional, "until", "status"):
            lack = [file for header, file in self.headers.items() if name not in header]
            have = [file for header, file in self.headers.items() if name in header]
            if have and lack and name not in self.columns.names:
                raise DataError(
                    f"{lack[0]} has no column {name!r}, which {have[0]} has; add it to all files"
                )
        return direction

    def _describe_missing(self, roles: Sequence[tuple[str, str]]) -> tuple[Text, dict[str, Any]]:
        """Describe the columns that files lack, and suggest arguments that name them."""
        present = set(self.columns.names)
        gone = [(part, name) for part, name in roles if name not in present]
        if not gone:
            return "", {}
        nowhere = [part for part, name in gone if not any(name in own for own in self.headers)]
        unnamed = [part for part in ("algorithm", "instance") if part in nowhere]
        pattern = None
        if unnamed and not self.fields and len(self.files) > 1:
            pattern = propose_pattern(self.files, unnamed)
        if len(self.headers) == 1 and pattern is None:
            has_hint = not self.fields and unnamed and len(self.files) > 1
            why = describe_missing_columns(self.columns, roles)
            layout = describe_wide_layout(self.columns, [part for part, _ in gone])
            hint = ("; or ", _PATH_HINT) if has_hint else ""
            return (why, hint), {} if layout else suggest_columns(self.columns, roles)
        first, *others = ([c for c in own if c not in self.fields] for own in self.headers)
        file, *other_files = self.headers.values()
        columns = f"the columns of {file} are {format_list(first)}"
        if others:  # show the one that has least in common with the first
            shared = [len(set(first).intersection(other)) for other in others]
            least = shared.index(min(shared))
            columns = f"the columns of {other_files[least]} are {format_list(others[least])}"
            columns += f"; in {file}, {format_list(first)}"
        arguments: dict[str, Any] = {"names": pattern} if pattern else {}
        arguments |= _suggest_aliases(
            self.headers, [each for each in gone if each[0] not in unnamed]
        )
        advice: list[Text] = [Argument(name, value) for name, value in arguments.items()]
        if unnamed and not pattern:
            advice.append(("or ", _PATH_HINT))
        swap = ""
        if pattern and len(unnamed) == 2:
            swap = " ({algorithm} and {instance} the other way round, if that is what they are)"
        return (f"{columns}; pass ", join_texts(", ", advice), swap), arguments

    def with_empty_files(self, naming: Columns) -> tuple[MappingTable, Columns]:
        """Add a row for each file that has none: a run that crashed before its first value."""
        old = len(self.columns.table[naming.time])
        if not self.without_rows or not (old or self.fields):
            return self.columns, naming
        listed = format_list(list(self.without_rows), 4)
        several = format_count(len(self.without_rows), "file")
        identity = {name for _, name in naming.list_identity_columns()}
        if not all(identity <= fields.keys() for fields in self.without_rows.values()):
            warn(
                f"{several} without rows left out ({listed}): nothing says which runs they are; "
                "pass ",
                _PATH_PATTERN,
                " if their paths do, or write a row with an empty value and status 'crashed'",
            )
            return self.columns, naming
        warn(
            f"{several} without rows ({listed}): read as crashed before the first value; delete a "
            "file that is no run"
        )
        status = naming.status or "status"
        table = {status: [str(Status.UNSTATED)] * old, **self.columns.table}
        blank = {naming.time: "0", status: str(Status.CRASHED)}
        if naming.until in table or (naming.until is None and "until" in table):
            blank[str(naming.until or "until")] = "0"
        for name, cells in table.items():
            own = [fields.get(name, blank.get(name, "")) for fields in self.without_rows.values()]
            table[name] = [*cells, *own]
        files = list(self.without_rows)

        def where(row: int) -> str:
            return self.columns.describe_row(row) if row < old else files[row - old]

        return MappingTable(table, where), replace(naming, status=status)


_PATH_PATTERN = Argument("names", "{algorithm}/{instance}.csv")
_PATH_HINT = ("say what a file's path means with ", _PATH_PATTERN)


def _suggest_aliases(
    headers: Mapping[tuple[str, ...], str], gone: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """Suggest arguments that tell in which column of each file a missing column may be found."""
    if not gone:
        return {}
    others: dict[str, dict[str, None]] = {name: {} for _, name in gone}
    for header in headers:
        here = [(part, name) for part, name in gone if name not in header]
        guesses = guess_columns(here, header)
        for part, name in here:
            others[name][guesses.get(part, "...")] = None
    if len(headers) == 1:
        return {part: next(iter(others[name])) for part, name in gone}
    return {"columns": {name: list(guesses) for name, guesses in others.items()}}


def read_csv_columns(source: Source) -> MappingTable:
    """Read all CSV files of a source as one table of texts; all must have the same columns."""
    files = read_csv(source)
    (first, file), *others = files.headers.items()
    for header, other in others:
        if sorted(header) != sorted(first):
            raise Refused(
                f"the columns of {other} are {format_list(header)}; in {file}, {format_list(first)}"
            )
    return files.columns


def read_csv(source: Source, names: str | None = None, aliases: Aliases | None = None) -> CsvTable:
    """Read all CSV files of a source; columns may come from paths or have alternative names."""
    if "csv" not in source.memo:
        try:
            source.memo["csv"] = _read_csv_files(source, names, _normalise_aliases(aliases))
        except Refused as why:
            source.memo["csv"] = why
    files = source.memo["csv"]
    is_refused = isinstance(files, Refused)
    source.used.update(source.ending(".csv", ".tsv") if is_refused else files.files)
    if is_refused:
        raise files
    return files


def _read_csv_files(source: Source, names: str | None, aliases: Aliases) -> CsvTable:
    files = list(source.files) if source.forced and names else source.ending(".csv", ".tsv")
    if not files:
        raise Refused("no file ends in .csv or .tsv")
    fields_of = {name: {} for name in files} if names is None else parse_paths(source, files, names)
    files, starts, n_rows = [], [], 0
    cells: list[dict[str, Sequence[str]]] = []
    headers: dict[tuple[str, ...], str] = {}
    without_rows: dict[str, dict[str, str]] = {}
    for name, fields in fields_of.items():
        with prefix_errors(name):
            header, rows = _read_csv_file(source, name)
            own = _find_renames(header, aliases)
            header = [own.get(column, column) for column in header]
            _check_fields(fields, header)
        if not rows:
            without_rows[name] = fields
        if not header:
            continue
        constant = {field: [text] * len(rows) for field, text in fields.items()}
        # Column by column: to zip all rows would hold the interpreter for seconds.
        own_cells = {column: [row[k] for row in rows] for k, column in enumerate(header)}
        cells.append({**(own_cells if rows else {}), **constant})
        headers.setdefault((*header, *fields), name)
        files.append(name)
        starts.append(n_rows)
        n_rows += len(rows)
    if not headers:
        raise Refused(f"{format_list(list(without_rows), 4)}: the file is empty")
    everywhere = set.intersection(*(set(header) for header in headers))
    common = [column for column in next(iter(headers)) if column in everywhere]
    if "status" not in everywhere and any("status" in header for header in headers):
        common.append("status")  # where a file says nothing, how its runs ended is not stated
    table: dict[str, list[str]] = {
        column: [
            cell.strip()
            for own in cells
            for cell in own.get(column) or [""] * max(map(len, own.values()), default=0)
        ]
        for column in common
    }

    def where(row: int) -> str:
        file = bisect.bisect_right(starts, row) - 1
        return f"{files[file]}, line {_find_line(source, files[file], row - starts[file])}"

    columns = MappingTable(table, where)
    fields = frozenset(field for own in fields_of.values() for field in own)
    return CsvTable(
        columns=columns,
        headers=headers,
        without_rows=without_rows,
        files=list(fields_of),
        fields=fields,
        cells=cells,
    )


def _find_renames(names: Sequence[str], aliases: Aliases) -> dict[str, str]:
    """Map the columns of a file to the standard names for which they are alternative names."""
    present = set(names)
    column_of = {
        next((other for other in others if other in present), None): column
        for column, others in aliases.items()
        if column not in present
    }
    return {other: column for other, column in column_of.items() if other is not None}


def _normalise_aliases(columns: Aliases | None) -> Aliases:
    """Convert the alternative names of each column to a list."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise DataError("expected a mapping, such as {'time': ['evals', 'fe']}", columns=columns)
    return {
        str(column): [others] if isinstance(others, str) else list(map(str, others))
        for column, others in columns.items()
    }


def _check_fields(fields: dict[str, str], header: Sequence[str]) -> dict[str, str]:
    """Return the values found in a file's path; raise ``DataError`` if a column has such a name."""
    for field in fields:
        if field in header:
            raise DataError(
                f"{field!r} is a column of the file, and also a field of names=: replace "
                f"{{{field}}} by * in names="
            )
    return fields


def _read_csv_file(source: Source, name: str) -> tuple[list[str], list[list[str]]]:
    """Read the column names of a CSV file, and the rows that are not blank."""
    reader = _open_csv(source, name)
    try:
        header, *rows = [row for row in reader if row] or [[]]
    except csv.Error as error:
        raise DataError(f"line {reader.line_num}: {error}") from None
    header = [cell.strip() for cell in header]
    if len(header) == 1:
        raise Refused(f"the first line of {name} names one column only")
    if len(set(header)) < len(header):
        twice = next(cell for cell, n in Counter(header).items() if n > 1)
        raise DataError(f"line 1: two columns are named {twice!r}: rename one")
    if set(map(len, rows)) - {len(header)}:
        bad = next(i for i, row in enumerate(rows) if len(row) != len(header))
        problem = f"{len(rows[bad])} cells where the first line has {len(header)}"
        raise DataError(f"line {_find_line(source, name, bad)}: {problem}")
    return header, rows


def _find_line(source: Source, name: str, row: int) -> int:
    """Return the line on which a row ends, for messages, since a cell may span several lines."""
    reader = _open_csv(source, name)
    lines = (reader.line_num for cells in reader if cells)
    return next(line for i, line in enumerate(lines) if i == row + 1)


def _open_csv(source: Source, name: str) -> Any:
    text = source.text(name)
    first = text.lstrip("\n").split("\n", 1)[0]
    separator = max(",;\t", key=first.count)
    return csv.reader(io.StringIO(text), delimiter=separator, strict=True)


def open_parquet_files(
    source: Source, names: str | None = None
) -> Iterator[tuple[str, ParquetTable, dict[str, str]]]:
    """Open the Parquet files of a source; yield file name, columns, and fields of the path."""
    files = source.ending(".parquet", ".pq")
    if not files:
        raise Refused("no file ends in .parquet or .pq")
    fields_of = {name: {} for name in files} if names is None else parse_paths(source, files, names)
    for name, fields in fields_of.items():
        with prefix_errors(name):
            columns = ParquetTable(source.handle(name))
        yield name, columns, fields


def _find_time_columns(table: MappingTable) -> dict[str, float]:
    """Map the columns whose names are times, such as t=100, to these times."""
    return _parse_time_columns(table.names)


def _parse_time_columns(names: Sequence[str]) -> dict[str, float]:
    matches = {name: TIME_COLUMN.fullmatch(name) for name in names}
    return {name: float(match[1]) for name, match in matches.items() if match}


def require_columns(columns: Table, *names: str) -> None:
    """Raise ``Refused`` if a table lacks one of the columns."""
    for name in names:
        if name not in columns.names:
            raise Refused(f"no column {name!r} among {format_list(columns.names)}")
