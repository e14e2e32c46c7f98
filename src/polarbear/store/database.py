"""What a store needs of a database, its tables, and who may write."""

import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from polarbear.errors import StoreError
from polarbear.store.codec import Head, describe_holder, encode_holder

FORMAT = 1
"""Of the tables. Raise it with a step in ``sqlite.UPGRADES`` whenever they change."""

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
}
"""One number, ``seq``, orders all events, whichever table they are in: 1, 2, 3, ... without gap."""


class Statement(NamedTuple):
    """One statement, with question marks, for all of these rows."""

    sql: str
    rows: Sequence[Sequence[Any]]


class Conflict(Exception):  # noqa: N818 (it is caught, never shown)
    """A run is there already, and nothing was written."""


class Database(Protocol):
    """Rows in and out; how it locks, reconnects and fails is its own business."""

    name: str
    """For messages."""
    head: Head
    """As this writer has left it; of a reader, as it was when it was opened."""
    read_only: bool

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of one query."""
        ...

    def write(self, statements: Sequence[Statement], last: int) -> None:
        """All of it or nothing, durable on return; the store then goes as far as ``last``.

        ``Conflict`` if a run is there already. After any other error it is not known whether it
        was written; ``refresh`` finds out.
        """
        ...

    def refresh(self) -> None:
        """Read again how far the store goes; an error if somebody else writes to it now."""
        ...

    def size(self) -> int:
        """How many bytes it takes."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


HEAD = "SELECT epoch, last, holder, crc FROM head"
TAKE_OVER = "UPDATE head SET epoch = ?, last = ?, holder = ?, crc = ?"


def fence(old: Head, new: Head) -> Statement:
    """Move the head on, if nobody else has done so since; one row is changed, or none."""
    sql = "UPDATE head SET last = ?, crc = ? WHERE epoch = ? AND last = ?"
    return Statement(sql, [(new.last, new.crc, old.epoch, old.last)])


def superseded(name: str, head: Head) -> StoreError:
    """What a writer is told that has been replaced."""
    return StoreError(
        f"{name}: another coordinator has taken over ({describe_holder(head.holder)}), "
        "and nothing of this was stored; stop this one"
    )


def occupied(name: str, holder: bytes) -> StoreError:
    """What a second writer is told."""
    return StoreError(
        f"{name} is being written to by {describe_holder(holder)}; there can be one coordinator at "
        "a time (read_only=True reads meanwhile)"
    )


def me() -> bytes:
    """Who holds a store that this process holds."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return encode_holder(socket.gethostname(), os.getpid(), now)
