"""A store in one SQLite file.

1. Every commit is on the disk before it returns: a write-ahead log with ``synchronous=FULL``.
2. A file may come from an untrusted source. It is refused before use unless its tables are exactly
   those of a store, because a trigger in it would run with the next row.
3. A new file gets its name when it is complete, so a crash never leaves an empty store.
4. A writer locks a file beside the store. A store with two names (hard links) would have two locks
   and two logs, so it is only read. The epoch in the head also stops an earlier writer that
   has lost its lock.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from polarbear.errors import StoreError
from polarbear.store.database import (
    FORMAT,
    HEAD,
    TABLES,
    TAKE_OVER,
    Conflict,
    Statement,
    advance_head,
    encode_this_process,
    replaced_writer_error,
    second_writer_error,
)
from polarbear.store.rows import Head
from polarbear.store.writer_lock import WriterLock, find_network_file_system, refuse_network

APPLICATION = 0x504F4C42
"""The application id in the header of the file, which the command ``file`` shows."""

MEMORY = ":memory:"
_TYPES = {"integer": "INTEGER", "blob": "BLOB", "text": "TEXT", "real": "REAL"}
_EXPLANATIONS = {
    sqlite3.SQLITE_FULL: "the disk is full, and the last events were not stored; free some space "
    "and repeat the call",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written; make sure that there is space left, "
    "and repeat the call",
    sqlite3.SQLITE_READONLY: "the file or its folder may not be written to",
    sqlite3.SQLITE_CANTOPEN: "the file, or its folder, cannot be opened",
    sqlite3.SQLITE_BUSY: "another program keeps the file locked",
    sqlite3.SQLITE_NOTADB: "this is not a store of a race, or its beginning is damaged",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; `polarbear repair` copies what is intact",
}


class SQLite:
    """Reads and writes the rows of a store in an SQLite file, or in memory."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.name = str(path)
        self.read_only = read_only
        # A link leads to the same store, so the lock is beside the file itself.
        self._path = None if self.name == MEMORY else Path(path).resolve()
        self._file: tuple[int, int] | None = None
        self._lock: WriterLock | None = None
        if sqlite3.sqlite_version_info < (3, 37):
            raise StoreError(
                f"SQLite {sqlite3.sqlite_version} is too old: install a Python with SQLite 3.37 or "
                "newer"
            )
        try:
            if self._path is not None and not read_only:
                self._prepare(self._path)
            self._connection = self._connect()
            self._file = self._identity()
            self.head = self._read_head()
            if not read_only:
                self._take_over()
        except BaseException:
            self.close()
            raise

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute an SQL query, and return all of its rows."""
        with translate_errors(self.name):
            return self._connection.execute(sql, values).fetchall()

    def write(self, statements: Sequence[Statement], last: int) -> None:
        """Execute all SQL statements or none, durably."""
        self._check_there()
        new = Head.of(self.head.epoch, last, self.head.holder)
        with translate_errors(self.name), self._transaction() as connection:
            sql, rows = advance_head(self.head, new)
            if connection.execute(sql, rows[0]).rowcount != 1:
                raise replaced_writer_error(self.name, Head(*connection.execute(HEAD).fetchone()))
            for statement in statements:
                connection.executemany(*statement)
        self.head = new

    def refresh(self) -> None:
        """Read the head row again; raise an error if another process has become the writer."""
        head = Head(*self.query(HEAD)[0])
        if head.epoch != self.head.epoch:
            raise replaced_writer_error(self.name, head)
        self.head = head

    def size(self) -> int:
        """Return the size of the file and its write-ahead log in bytes."""
        if self._path is None:
            return 0
        wal = beside(self._path, "-wal")
        return self._path.stat().st_size + (wal.stat().st_size if wal.exists() else 0)

    def close(self) -> None:
        """Close the file and release the writer's lock."""
        connection = self.__dict__.pop("_connection", None)
        if connection is not None:
            with suppress(sqlite3.Error):  # committed rows are safe all the same
                connection.close()
        if self._lock is not None:
            self._lock.release()

    def _identity(self) -> tuple[int, int] | None:
        """Return the device and inode of the file; None if the file does not exist."""
        try:
            about = self._path.stat() if self._path else None
        except OSError:
            about = None
        return about and (about.st_dev, about.st_ino)

    def _check_there(self) -> None:
        """Raise an error if the file was deleted or replaced, because writes would be lost."""
        if self._identity() != self._file:
            raise StoreError(
                f"{self.name} was deleted or replaced while it was in use, and the last events "
                "were not stored; put the file back, or begin with another store"
            )

    def _prepare(self, path: Path) -> None:
        """Become the writer of the file, and create it if it does not exist."""
        if not path.parent.is_dir():
            raise StoreError(f"{path}: there is no folder {path.parent}")
        refuse_network(path)
        if path.exists() and (n_names := path.stat().st_nlink) > 1:
            raise StoreError(
                f"{self.name} is one of {n_names} names of a file (hard links). Log and lock of a "
                "store are beside its name, so two names would destroy it: delete the others "
                f"(find FOLDER -samefile {self.name}), or write to a copy made by `polarbear "
                "backup`"
            )
        try:
            self._lock = WriterLock(beside(path, "-lock"))
        except BlockingIOError:
            holder = b""
            with suppress(StoreError, sqlite3.Error):
                reader = SQLite(path, read_only=True)
                holder = reader.head.holder
                reader.close()
            raise second_writer_error(self.name, holder) from None
        except OSError as error:
            raise StoreError(
                f"{path}: the lock file beside it cannot be created ({error}); use a folder with "
                "write permission"
            ) from None
        if not path.exists():
            with translate_errors(self.name):
                create(path)

    def _connect(self) -> sqlite3.Connection:
        path = self._path
        if path is None:
            connection = sqlite3.connect(MEMORY, isolation_level=None, check_same_thread=False)
            build(connection)
        else:
            connection = connect(path, read_only=self.read_only)
        return connection

    def _read_head(self) -> Head:
        """Return the head row of the store; raise an error if the file is not a store."""
        check(self._connection, self.name)
        rows = self.query(HEAD)
        if len(rows) != 1 or not Head(*rows[0]).is_intact:
            raise StoreError(
                f"{self.name}: the row with the number of the last event is damaged; "
                f"`polarbear repair {self.name} repaired.db` copies what is intact"
            )
        return Head(*rows[0])

    def _take_over(self) -> None:
        """Become the only writer of the store: any earlier writer fails from now on."""
        with translate_errors(self.name), self._transaction() as connection:
            old = Head(*connection.execute(HEAD).fetchone())
            self.head = Head.of(old.epoch + 1, old.last, encode_this_process())
            connection.execute(TAKE_OVER, self.head)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def beside(path: Path, ending: str) -> Path:
    """Return the path of an auxiliary file of a store: the store's path with another ending."""
    return path.with_name(path.name + ending)


def connect(path: Path, *, read_only: bool, damaged: bool = False) -> sqlite3.Connection:
    """Connect to an existing SQLite file, with protection against malicious content.

    ``damaged``: also read a file that is shorter than its header states; write nothing.
    """
    if not path.exists():
        raise StoreError(f"{path}: there is no such file")
    if path.is_dir():
        raise StoreError(f"{path} is a folder: expected the path of a file")
    if path.stat().st_size == 0:
        raise StoreError(f"{path} is empty, so it is not a store; delete it to begin a new one")
    mode = "ro" if read_only else "rw"
    if read_only and not beside(path, "-wal").exists():
        # Without a writer there is no shared memory, so SQLite need not write beside the file.
        if find_network_file_system(path) or not os.access(path.parent, os.W_OK):
            mode += "&immutable=1"
    elif read_only:
        refuse_network(path)
    with translate_errors(str(path)):
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode={mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=10,
        )
    # Text that cannot be decoded is left for the checksum to find.
    connection.text_factory = lambda data: data.decode(errors="replace")
    with translate_errors(str(path)):
        try:
            if damaged:  # first, because other statements refuse a damaged file
                connection.execute("PRAGMA writable_schema = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA cache_size = -65536")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone is not durable
            return connection
        except BaseException:
            connection.close()
            raise


def create(path: Path) -> None:
    """Create an empty store under a temporary name, and rename it when it is complete."""
    new = beside(path, "-new")
    for leftover in (new, beside(new, "-wal"), beside(new, "-shm"), beside(new, "-journal")):
        leftover.unlink(missing_ok=True)
    connection = sqlite3.connect(new, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        build(connection)
    finally:
        connection.close()
    new.replace(path)
    if os.name == "nt":  # Windows cannot open a folder
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def build(connection: sqlite3.Connection) -> None:
    """Create the tables of a store and its head row."""
    connection.execute("BEGIN")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns.format(**_TYPES)}) STRICT")
    connection.execute("INSERT INTO head VALUES (1, ?, ?, ?, ?)", Head.of(0, 0, b""))
    connection.execute("COMMIT")


def check(connection: sqlite3.Connection, name: str) -> None:
    """Raise an error if a file is not a store of this format, with exactly its tables."""
    with translate_errors(name):
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION:
            raise StoreError(f"{name} is an SQLite file of another program, not a store of a race")
        if version > FORMAT:
            raise StoreError(newer_format(name, version))
        schema = set(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))
    if schema == _schema():
        return
    foreign = sorted(schema - _schema(), key=str)
    what = f"a {foreign[0][0]} {foreign[0][1]!r} that no store has" if foreign else "too few tables"
    raise StoreError(f"{name} is not a store, or was changed by another program: it holds {what}")


def newer_format(name: str, version: int) -> str:
    """Return the message for a store that a later version of PolarBear wrote."""
    return (
        f"{name} has format {version}, but this program knows formats up to {FORMAT}: "
        "upgrade PolarBear to read it"
    )


@cache
def _schema() -> frozenset[tuple[Any, ...]]:
    connection = sqlite3.connect(MEMORY, isolation_level=None)
    build(connection)
    schema = frozenset(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))
    connection.close()
    return schema


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Raise SQLite exceptions inside ``with`` as ``StoreError`` or ``Conflict``."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise Conflict(str(error)) from None
    except (sqlite3.Error, UnicodeError, OSError) as error:
        code = getattr(error, "sqlite_errorcode", None)
        why = _EXPLANATIONS.get(code & 0xFF, "") if code is not None else ""
        raise StoreError(f"{name}: {why or 'SQLite failed'} ({error})") from None
