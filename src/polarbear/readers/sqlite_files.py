"""SQLite databases of other programs, opened for reading from files and from archives."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from polarbear.errors import DataError
from polarbear.readers.source import Source, wrap_archive_errors

SIGNATURE = b"SQLite format 3\0"
_JOURNAL_MODE_BYTES = slice(18, 20)


def read_start(source: Source, file: str, size: int) -> bytes:
    """Return the first bytes of a file, to detect its format; the file is not marked as used."""
    was_used = file in source.used
    with wrap_archive_errors(file):
        handle = source.handle(file)
        with handle.open("rb") if isinstance(handle, Path) else handle as opened:
            start = opened.read(size)
    if not was_used:
        source.used.discard(file)
    return start


@contextmanager
def open_database(source: Source, file: str) -> Iterator[sqlite3.Connection]:
    """Open a database for reading; errors of SQLite become ``DataError`` with the file's name."""
    try:
        handle = source.handle(file)
        if isinstance(handle, Path):
            path = quote(str(handle.absolute()))
            connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        else:
            content = bytearray(handle.read())
            # A database in memory has no write-ahead log, which these two bytes would ask for.
            content[_JOURNAL_MODE_BYTES] = b"\1\1"
            connection = sqlite3.connect(":memory:")
            connection.deserialize(bytes(content))
        with closing(connection):
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
            yield connection
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: the database cannot be read: {error}") from None


def list_tables(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """Map the tables of a database to their columns; views and virtual tables are left out."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    plain = [
        name
        for name, sql in rows
        if isinstance(name, str) and str(sql).upper().startswith("CREATE TABLE")
    ]
    return {
        name: {
            str(row[1]) for row in connection.execute("SELECT * FROM pragma_table_info(?)", (name,))
        }
        for name in plain
    }


def find_missing_columns(
    tables: Mapping[str, set[str]], required: Mapping[str, Sequence[str]]
) -> list[str]:
    """List the required tables and columns that a database lacks.

    >>> find_missing_columns({"runs": {"id"}}, {"runs": ["id", "status"], "tags": ["key"]})
    ['runs.status', 'tags.key']
    """
    return [
        f"{table}.{column}"
        for table, columns in required.items()
        for column in columns
        if column not in tables.get(table, set())
    ]
