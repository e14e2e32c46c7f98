"""The tables of a store, the interface of its database, and errors about its writer."""

import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from polarbear.errors import StoreError
from polarbear.store.rows import Head, describe_holder, encode_holder

FORMAT = 1
"""The number of the present set of tables; raise it whenever ``TABLES`` changes."""

TABLES = {
    "head": "id {integer} PRIMARY KEY CHECK (id = 1), "
    "epoch {integer} NOT NULL, last {integer} NOT NULL, holder {blob} NOT NULL, "
    "crc {integer} NOT NULL",
    "names": "id {integer} PRIMARY KEY, name {blob} NOT NULL UNIQUE, crc {integer} NOT NULL",
    "events": "seq {integer} PRIMARY KEY, kind {text} NOT NULL, body {blob} NOT NULL, "
    "crc {integer} NOT NULL",
    "runs": "seq {integer} PRIMARY KEY, kind {integer} NOT NULL, algorithm {integer} NOT NULL, "
    "instance {integer} NOT NULL, repetition {integer} NOT NULL, status {integer} NOT NULL, "
    "until {real} NOT NULL, improvements {integer} NOT NULL, crc {integer} NOT NULL, "
    "UNIQUE (algorithm, instance, repetition)",
    "counts": "algorithm {integer} NOT NULL, status {integer} NOT NULL, "
    "number {integer} NOT NULL, crc {integer} NOT NULL, PRIMARY KEY (algorithm, status)",
    "trajectories": "seq {integer} PRIMARY KEY, data {blob} NOT NULL, crc {integer} NOT NULL",
    "remarks": "seq {integer} NOT NULL, body {blob} NOT NULL, crc {integer} NOT NULL, "
    "PRIMARY KEY (seq, crc)",
    "status": "id {integer} PRIMARY KEY CHECK (id = 1), seq {integer} NOT NULL, "
    "body {blob} NOT NULL, crc {integer} NOT NULL",
    "snapshot": "part {integer} PRIMARY KEY, seq {integer} NOT NULL, "
    "body {blob} NOT NULL, crc {integer} NOT NULL",
}
"""The number ``seq`` orders the events of all tables: 1, 2, 3, ... without a gap."""


class Statement(NamedTuple):
    """An SQL statement with question marks, to be executed once for each row."""

    sql: str
    rows: Sequence[Sequence[Any]]


class Conflict(Exception):  # noqa: N818 (it is caught, never shown)
    """Raised if a run with the same id is stored already; nothing was written then."""


class Database(Protocol):
    """The interface of a database: read rows, write rows, and lock out other writers."""

    name: str
    """The address of the store, for messages."""
    head: Head
    """The head after the last write; if read-only, the head when the store was opened."""
    read_only: bool

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute an SQL query, and return all of its rows."""
        ...

    def write(self, statements: Sequence[Statement], last: int) -> None:
        """Execute all SQL statements or none, durably; ``last`` is the number of the last event.

        Raises ``Conflict`` if a run is stored already. After any other error the statements may
        have been executed or not; ``refresh`` finds out.
        """
        ...

    def refresh(self) -> None:
        """Read the head row again; raise an error if another process has become the writer."""
        ...

    def size(self) -> int:
        """Return the size of the store in bytes."""
        ...

    def close(self) -> None:
        """Close the database, and release the lock of the writer."""
        ...


HEAD = "SELECT epoch, last, holder, crc FROM head"
TAKE_OVER = "UPDATE head SET epoch = ?, last = ?, holder = ?, crc = ?"


def advance_head(old: Head, new: Head) -> Statement:
    """Return the SQL statement that replaces the head row, unless another process did so."""
    sql = "UPDATE head SET last = ?, crc = ? WHERE epoch = ? AND last = ?"
    return Statement(sql, [(new.last, new.crc, old.epoch, old.last)])


def replaced_writer_error(name: str, head: Head) -> StoreError:
    """Return the error for a writer whose place another process has taken."""
    return StoreError(
        f"{name}: another coordinator has taken over ({describe_holder(head.holder)}), "
        "and the last events of this one were not stored; stop this one"
    )


def second_writer_error(name: str, holder: bytes) -> StoreError:
    """Return the error for a process that opens a store which has a writer already."""
    return StoreError(
        f"{name} is being written to by {describe_holder(holder)}; only one process can write at "
        "a time; to read meanwhile, pass read_only=True"
    )


def encode_this_process() -> bytes:
    """Return this process, encoded as the writer of a store."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return encode_holder(socket.gethostname(), os.getpid(), now)
