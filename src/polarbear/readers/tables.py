"""Tables in files: long tables in CSV and Parquet, and wide CSV with one column per time."""

import bisect
import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from polarbear.data.columns import Columns, MappingColumns
from polarbear.data.names import listing
from polarbear.data.parquet import ParquetColumns
from polarbear.data.run import Direction
from polarbear.data.runs import Runs
from polarbear.data.table import Naming
from polarbear.errors import DataError, require
from polarbear.readers.source import Refused, Source, naming

_TIME = re.compile(r"(?:t|time)?[ _=]?([0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?)", re.IGNORECASE)


def read_long_csv(
    source: Source,
    *,
    direction: Direction | None = None,
    clock: str = "time",
    **columns: Any,
) -> Runs:
    """CSV with a row per thing seen of a run, as :meth:`Runs.from_frame` takes it."""
    table, parts = csv_columns(source), Naming(**columns)
    _need(table, parts, parts.time, parts.value)
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

    A run is watched until its last cell that is not empty.
    """
    table, parts = csv_columns(source), Naming(algorithm, instance, repetition, until="until")
    _need(table, parts)
    times = {name: float(found[1]) for name in table.names if (found := _TIME.fullmatch(name))}
    if not times:
        raise Refused("no column is named like a time (100, t=100, time_100)")
    direction = _stated(direction)
    never = "inf" if direction == "minimize" else "-inf"
    labels = [name for name in table.names if name not in times]
    long: dict[str, list[Any]] = {name: [] for name in (*labels, "time", "value", "until")}
    places: list[tuple[int, str]] = []
    for row in range(len(table.table[algorithm])):
        cells = {name: table.table[name][row].strip() for name in times}
        seen = {name: cell for name, cell in cells.items() if cell} or {"": never}
        for name, cell in seen.items():
            for label in labels:
                long[label].append(table.table[label][row])
            long["time"].append(times.get(name, 0.0))
            long["value"].append(cell)
            long["until"].append(max(times.get(other, 0.0) for other in seen))
            places.append((row, name))

    def where(cell: int) -> str:
        row, name = places[cell]
        return f"{table.where(row)}, under {name!r}"

    cells = MappingColumns(long, where)
    return Runs.from_columns(cells, parts, direction=direction, clock=clock)


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
        _need(table, parts, parts.time, parts.value)
        file = source.handle(name)
        with naming(name), reading_parquet():
            found.append(Runs.from_parquet(file, direction=direction, clock=clock, **columns))
    return found[0] if len(found) == 1 else Runs.concat(found)


def csv_columns(source: Source) -> MappingColumns:
    """All CSV files of a source as one table of texts; they must have the same columns."""
    names = source.ending(".csv", ".tsv")
    if not names:
        raise Refused("no file ends in .csv or .tsv")
    header: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    starts: list[int] = []
    for name in names:
        with naming(name):
            own, separator, text = _open_csv(source, name)
            header = header or own
            if sorted(header) != sorted(own):
                raise DataError(f"its columns are {listing(own)}; in {names[0]}, {listing(header)}")
            order = [own.index(column) for column in header]
            starts.append(len(rows))
            for line, row in _rows(text, separator, len(header)):
                rows.append([row[i] for i in order])
                lines.append(line)

    def where(row: int) -> str:
        return f"{names[bisect.bisect_right(starts, row) - 1]}, line {lines[row]}"

    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in header]
    return MappingColumns(dict(zip(header, columns, strict=True)), where)


def _open_csv(source: Source, name: str) -> tuple[list[str], str, list[str]]:
    """The names of the columns, what separates them, and all lines."""
    text = source.lines(name)
    separator = max(",;\t", key=text[0].count)
    header = [cell.strip() for _, row in _rows(["", text[0]], separator, None) for cell in row]
    if len(header) < 3:
        raise Refused(f"the first line of {name} does not name three columns")
    twice = next((cell for i, cell in enumerate(header) if cell in header[:i]), None)
    if twice is not None:
        raise DataError(f"line 1: two columns are named {twice!r}")
    return header, separator, text


def _rows(
    text: Sequence[str], separator: str, width: int | None
) -> Iterator[tuple[int, list[str]]]:
    """The rows after the first line, with the numbers of their lines."""
    rows = csv.reader((f"{line}\n" for line in text), delimiter=separator, strict=True)
    try:
        next(rows, None)
        for row in rows:
            if row and width is not None and len(row) != width:
                found = f"{len(row)} cells where the first line has {width}"
                raise DataError(f"line {rows.line_num}: {found}")
            if row:
                yield rows.line_num, row
    except csv.Error as error:
        raise DataError(f"line {rows.line_num}: {error}") from None


def parquet_columns(source: Source) -> Iterator[tuple[str, ParquetColumns]]:
    """The Parquet files of a source, by name."""
    names = source.ending(".parquet", ".pq")
    if not names:
        raise Refused("no file ends in .parquet or .pq")
    for name in names:
        with naming(name), reading_parquet():
            columns = ParquetColumns(source.handle(name))
        yield name, columns


@contextmanager
def reading_parquet() -> Iterator[None]:
    """Turn what pyarrow raises on damaged files into one error."""
    arrow = require("pyarrow", extra="parquet")
    try:
        yield
    except (arrow.ArrowException, OSError, MemoryError, OverflowError, UnicodeError) as error:
        raise DataError(f"damaged Parquet file: {error}") from None


def _stated(direction: Direction | None) -> Direction:
    """The direction, where only the caller can know it."""
    if direction is None:
        raise DataError("the file does not say it: pass direction='minimize' or 'maximize'")
    return direction


def _need(columns: Columns, parts: Naming, *others: str) -> None:
    instance = [parts.instance] if isinstance(parts.instance, str) else parts.instance
    for name in (parts.algorithm, *instance, *others):
        if name not in columns.names:
            raise Refused(f"no column {name!r} among {listing(columns.names)}")
