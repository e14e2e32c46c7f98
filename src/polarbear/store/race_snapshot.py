"""The snapshot of a race in its store, which saves a resume the replay of most events.

A snapshot is what follows from the events up to one of them (``racing.snapshot``). It is written
after a decision, once the number of events has grown by ``GROWTH`` since the last one. A resume
reads all rows once, so that any damage is noticed as before, and replays the events after it.

The snapshot is used only if all of this holds. In any other case all events are replayed.

1. Its own rows are complete, and its checksum matches.
2. It was made by the same source code.
3. It was made from exactly these events. It holds a hash of their rows and of the names, and the
   rows that are there now must have the same hash.
"""

import json
from copy import copy
from functools import cache
from hashlib import blake2b
from itertools import starmap
from pathlib import Path
from struct import Struct, error
from typing import NamedTuple, Self
from zlib import crc32

from polarbear.racing.events import UNREADABLE
from polarbear.store.database import Database, Statement
from polarbear.store.reading import EVENTS, RUN_FACTS
from polarbear.store.rows import Rows, are_intact, blob_row

GROWTH = 0.05
"""A snapshot is replaced when the number of events has grown by this share."""

MIN_EVENTS = 2000
"""The number of events after which a snapshot is worth its rows."""

CHUNK = 1024
"""The number of events that are verified at a time."""

PART_BYTES = 1 << 24
"""The size of the rows into which a snapshot is divided."""

_SIZE = Struct("<q")
_BLOB = Struct("<qqq")
_RUN = Struct("<qqqqqqdqq")
_TABLES = {
    "names": "SELECT id, name, crc FROM names WHERE id BETWEEN ? AND ? ORDER BY id",
    "events": EVENTS,
    "runs": RUN_FACTS,
    "trajectories": "SELECT seq, data, crc FROM trajectories WHERE seq BETWEEN ? AND ? "
    "ORDER BY seq",
}


class EventHash:
    """A hash of the first names and events of a store, which can be extended by later ones.

    It does not depend on the steps in which it was extended.
    """

    def __init__(self) -> None:
        self.last = self.n_names = 0
        self._hashes = {table: blake2b(digest_size=16) for table in _TABLES}
        self._data = 0  # the checksum of all trajectories, one after the other

    @property
    def text(self) -> str:
        """The hash as text."""
        return ".".join([*(own.hexdigest() for own in self._hashes.values()), f"{self._data:x}"])

    def copy(self) -> Self:
        """Return a copy that can be extended without changing this one."""
        other = copy(self)
        other._hashes = {table: own.copy() for table, own in self._hashes.items()}
        return other

    def extend(self, database: Database, n_names: int, last: int, *, check: bool = True) -> bool:
        """Read and add the rows up to a name and an event; return whether all are there.

        ``check``: the checksums of all rows must match, too.
        """
        names = database.query(_TABLES["names"], self.n_names + 1, n_names)
        try:
            self._add_blobs("names", names)
            self.n_names += len(names)
            while self.last < last:
                high = min(self.last + CHUNK, last)
                rows = {
                    table: database.query(sql, self.last + 1, high)
                    for table, sql in _TABLES.items()
                    if table != "names"
                }
                n_events, n_runs, n_trajectories = map(len, rows.values())
                if n_events + n_runs != high - self.last or n_runs != n_trajectories:
                    return False
                if check and not are_intact(**rows):
                    return False
                self._add_blobs("events", rows["events"])
                self._hashes["runs"].update(b"".join(starmap(_RUN.pack, rows["runs"])))
                self._add_blobs("trajectories", rows["trajectories"])
                self.last = high
        except (*UNREADABLE, error):  # a row has other types
            return False
        return (self.n_names, self.last) == (n_names, last)

    def _add_blobs(self, table: str, rows: Rows) -> None:
        """Add rows that hold bytes, and end with their checksum."""
        sizes = [_BLOB.pack(row[0], len(row[-2]), row[-1]) for row in rows]
        if table == "trajectories":  # there is much of it, and this is faster
            self._data = crc32(b"".join([row[-2] for row in rows]), self._data)
        elif table == "events":
            sizes = [size + row[1].encode() + row[2] for size, row in zip(sizes, rows, strict=True)]
        else:
            sizes = [size + row[1] for size, row in zip(sizes, rows, strict=True)]
        self._hashes[table].update(b"".join(sizes))


class KeptSnapshot(NamedTuple):
    """A snapshot, the number of the last event that it includes, and the hash of the events."""

    last: int
    n_names: int
    events: str
    data: bytes


def is_due(last: int, before: int) -> bool:
    """Return whether a snapshot is due after an event, given that of the snapshot before."""
    return last - before >= max(MIN_EVENTS, GROWTH * before)


def write_snapshot(data: bytes, events: EventHash) -> list[Statement]:
    """Return the SQL statements that replace the snapshot of a store."""
    facts = (events.last, events.n_names, events.text, _hash(data), fingerprint_code())
    head = json.dumps(facts).encode()
    body = _SIZE.pack(len(head)) + head + data
    parts = range(0, len(body), PART_BYTES)
    rows = [blob_row(k, body[low : low + PART_BYTES]) for k, low in enumerate(parts)]
    return [
        Statement("DELETE FROM snapshot", [()]),
        Statement(
            "INSERT INTO snapshot VALUES (?, ?, ?, ?)",
            [(part, events.last, bytes_, crc) for part, bytes_, crc in rows],
        ),
    ]


def read_snapshot(database: Database) -> KeptSnapshot | None:
    """Return the snapshot of a store; None if there is none, it is damaged or of other code."""
    rows = database.query("SELECT part, seq, body, crc FROM snapshot ORDER BY part")
    try:
        body = b"".join(row[2] for row in rows)
        size = _SIZE.unpack_from(body)[0]
        start = _SIZE.size + size
        last, n_names, events, own_hash, code = json.loads(body[_SIZE.size : start])
        data = body[start:]
        intact = (
            all(row[1] == last and blob_row(row[0], row[2])[2] == row[3] for row in rows)
            and own_hash == _hash(data)
            and code == fingerprint_code() != ""
        )
        return KeptSnapshot(int(last), int(n_names), str(events), data) if intact else None
    except (*UNREADABLE, error):
        return None


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


@cache
def fingerprint_code() -> str:
    """Return a hash of the source code on which snapshots depend; empty if there is no source."""
    try:
        return _hash(b"".join(path.read_bytes() for path in list_code()))
    except OSError:  # the package is in an archive
        return ""


def list_code() -> list[Path]:
    """Return the files with the source code on which snapshots depend."""
    package = Path(__file__).parents[1]
    rooms = sorted(path for room in ("data", "racing") for path in (package / room).rglob("*.py"))
    return [package / "__init__.py", package / "inference" / "verdicts.py", *rooms]
