"""Tables in files: long tables in CSV and Parquet, and wide CSV with one column per time."""

import bisect
import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from polarbear.data.columns import Columns, MappingColumns
from polarbear.data.lacking import NAMED_LIKE_A_TIME, lacking
from polarbear.data.names import listing
from polarbear.data.parquet import ParquetColumns
from polarbear.data.run import NO_DIRECTION, Direction
from polarbear.data.runs import Runs
from polarbear.data.table import Naming, repetition_column
from polarbear.errors import DataError
from polarbear.readers.source import NearlyRefused, Refused, Source, naming

# No column of a user is called like this.
_TIME_OF, _VALUE_OF, _UNTIL_OF = "\0time", "\0value", "\0until"


def read_long_csv(
    source: Source,
    *,
    direction: Direction | None = None,
    clock: str = "time",
    **columns: Any,
) -> Runs:
    """CSV with a row per thing seen of a run, as :meth:`Runs.from_frame` takes it."""
    table, parts = csv_columns(source), Naming(**columns)
    if len(_times(table)) > 1 and {parts.time, parts.value}.isdisjoint(table.names):
        given = [f"{name}=" for name in ("time", "value", "until") if columns.get(name) is not None]
        why = f"it has a column per time ({listing(list(_times(table)), 4)})"
        if given and not source.forced:
            raise NearlyRefused(f"{why}, which are read as they are: leave out {', '.join(given)}")
        raise Refused(f"{why}, which is format='wide'")
    _need(table, parts, ("time", parts.time), ("value", parts.value))
    return Runs.from_columns(table, parts, direction=_stated(direction), clock=clock)


def read_wide_csv(
    source: Source,
    *,
    direction: Direction | None = None,
    algorithm: str = "algorithm",
    instance: str | Sequence[str] = "instance",
    repetition: str | None = None,
    clock: str = "time",
) -> Runs:
    """CSV with a row per run and a column per time, named 100, t=100 or time_100.

    Where a cell is empty nothing was recorded: before the first value there is none yet, between
    two the former stands. A run is watched until its last cell that is not empty, or until what
    a column "until" says.
    """
    table, parts = csv_columns(source), Naming(algorithm, instance, repetition)
    times = _times(table)
    if not times:
        raise Refused("no column is named like a time (100, t=100, time_100)")
    _need(table, parts)
    if len(set(times.values())) < len(times):
        raise DataError(f"{source.label}: two columns stand for one time: {listing(list(times))}")
    direction = _stated(direction)
    never = "inf" if direction == "minimize" else "-inf"
    labels = {name: [] for name in table.names if name not in times}
    ends = table.table.get("until", [])
    long: dict[str, list[Any]] = {_TIME_OF: [], _VALUE_OF: [], _UNTIL_OF: []}
    places: list[tuple[int, str]] = []
    for row in range(len(table.table[algorithm])):
        cells = {name: table.table[name][row] for name in times}
        seen = {name: cell for name, cell in cells.items() if cell} or {"": never}
        until = (row < len(ends) and ends[row]) or max(times.get(name, 0.0) for name in seen)
        for name, cell in seen.items():
            long[_TIME_OF].append(times.get(name, 0.0))
            long[_VALUE_OF].append(cell)
            long[_UNTIL_OF].append(until)
            places.append((row, name))
        for name, column in labels.items():
            column.extend([table.table[name][row]] * len(seen))

    def where(cell: int) -> str:
        row, name = places[cell]
        return f"{table.where(row)}, under {name!r}"

    _refuse_merged_rows(table, parts)
    parts = Naming(algorithm, instance, repetition, _TIME_OF, _VALUE_OF, _UNTIL_OF)
    cells = MappingColumns({**labels, **long}, where)
    return Runs.from_columns(cells, parts, direction=direction, clock=clock)


def _refuse_merged_rows(table: MappingColumns, parts: Naming) -> None:
    """Each row is a run, so two rows that name the same run lack a column that tells them apart."""
    repetition = repetition_column(table, parts)
    columns = [parts.algorithm, *parts.instance_columns(), *([repetition] if repetition else [])]
    seen: dict[tuple[str, ...], int] = {}
    for row, key in enumerate(zip(*(table.table[name] for name in columns), strict=True)):
        if key in seen:
            raise DataError(
                f"{table.where(seen[key])} and {table.where(row)} are both {', '.join(key)}: name "
                "the column that tells them apart with repetition='...' or instance=('...', '...')"
            )
        seen[key] = row


def read_long_parquet(
    source: Source,
    *,
    direction: Direction | None = None,
    clock: str | None = None,
    **columns: Any,
) -> Runs:
    """Parquet with a row per thing seen of a run, or as :meth:`Runs.to_parquet` writes it."""
    parts, found = Naming(**columns), []
    for name, table in parquet_columns(source):
        with naming(name):
            _need(table, parts, ("time", parts.time), ("value", parts.value))
            runs = Runs.from_parquet(table, direction=direction, clock=clock, **columns)
        found.append(runs)
    return found[0] if len(found) == 1 else Runs.concat(found)


def csv_columns(source: Source) -> MappingColumns:
    """All CSV files of a source as one table of texts; they must have the same columns."""
    if "csv" not in source.memo:
        try:
            source.memo["csv"] = _csv_columns(source)
        except Refused as why:
            source.memo["csv"] = why
    found = source.memo["csv"]
    if isinstance(found, Refused):
        raise found
    return found


def _csv_columns(source: Source) -> MappingColumns:
    names = source.ending(".csv", ".tsv")
    if not names:
        raise Refused("no file ends in .csv or .tsv")
    header: list[str] = []
    columns: list[list[str]] = []
    starts: list[int] = []
    for name in names:
        with naming(name):
            own, rows = _read_csv(source, name)
        header, columns = header or own, columns or [[] for _ in own]
        if sorted(header) != sorted(own):
            raise Refused(
                f"the columns of {name} are {listing(own)}; in {names[0]}, {listing(header)}"
            )
        starts.append(len(columns[0]))
        for column, cells in zip(own, zip(*rows, strict=True), strict=bool(rows)):
            columns[header.index(column)] += map(str.strip, cells)

    def where(row: int) -> str:
        file = bisect.bisect_right(starts, row) - 1
        return f"{names[file]}, line {_line(source, names[file], row - starts[file])}"

    return MappingColumns(dict(zip(header, columns, strict=True)), where)


def _read_csv(source: Source, name: str) -> tuple[list[str], list[list[str]]]:
    """The names of the columns, and the rows that are not blank."""
    reader = _csv_reader(source, name)
    try:
        header, *rows = [row for row in reader if row] or [[]]
    except csv.Error as error:
        raise DataError(f"line {reader.line_num}: {error}") from None
    header = [cell.strip() for cell in header]
    if len(header) < 3:
        raise Refused(f"the first line of {name} does not name three columns")
    twice = next((cell for i, cell in enumerate(header) if cell in header[:i]), None)
    if twice is not None:
        raise DataError(f"line 1: two columns are named {twice!r}")
    if set(map(len, rows)) - {len(header)}:
        odd = next(i for i, row in enumerate(rows) if len(row) != len(header))
        found = f"{len(rows[odd])} cells where the first line has {len(header)}"
        raise DataError(f"line {_line(source, name, odd)}: {found}")
    return header, rows


def _line(source: Source, name: str, row: int) -> int:
    """The line on which a row ends. Lines are only counted for a message: a cell may span some."""
    reader = _csv_reader(source, name)
    lines = (reader.line_num for cells in reader if cells)
    return next(line for i, line in enumerate(lines) if i == row + 1)


def _csv_reader(source: Source, name: str) -> Any:
    text = source.text(name)
    first = text.lstrip("\n").split("\n", 1)[0]
    separator = max(",;\t", key=first.count)
    return csv.reader(io.StringIO(text), delimiter=separator, strict=True)


def parquet_columns(source: Source) -> Iterator[tuple[str, ParquetColumns]]:
    """The Parquet files of a source, by name."""
    names = source.ending(".parquet", ".pq")
    if not names:
        raise Refused("no file ends in .parquet or .pq")
    for name in names:
        with naming(name):
            columns = ParquetColumns(source.handle(name))
        yield name, columns


def _stated(direction: Direction | None) -> Direction:
    """The direction, where only the caller can know it."""
    if direction is None:
        raise DataError(NO_DIRECTION)
    return direction


def _times(table: MappingColumns) -> dict[str, float]:
    """The columns that are named like a time, and these times."""
    named = {name: NAMED_LIKE_A_TIME.fullmatch(name) for name in table.names}
    return {name: float(found[1]) for name, found in named.items() if found}


def _need(columns: Columns, parts: Naming, *others: tuple[str, str]) -> None:
    if why := lacking(columns, (*parts.identity(), *others)):
        raise NearlyRefused(why)


def need(columns: Columns, *names: str) -> None:
    """Refuse a table that lacks a column of a known format."""
    for name in names:
        if name not in columns.names:
            raise Refused(f"no column {name!r} among {listing(columns.names)}")
