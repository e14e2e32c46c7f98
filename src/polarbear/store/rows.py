"""Conversion of events to rows of a database, and back.

A run is a row of numbers and, in another table, its trajectory as :mod:`polarbear.data.run` encodes
it; so runs are counted without reading trajectories. Every other event is the line of JSON that
:mod:`polarbear.racing.events` makes of it, which states its version.

Every row ends with a checksum of its content and its number, which reveals a row that was damaged
or moved. The checksum protects against accidents only, so whatever is read is validated as well,
and nothing in a row is ever executed.
"""

import json
from collections.abc import Mapping, Sequence
from struct import Struct, error
from typing import Any, NamedTuple
from zlib import crc32

from polarbear.data.run import (
    IMPROVEMENT_BYTES,
    STATUS_CODES,
    EncodedRun,
    check_run,
    decode_run,
    encode_run,
)
from polarbear.errors import DataError
from polarbear.racing.events import Event, Imported, Started, Told, from_json, to_json
from polarbear.racing.jobs import RunId, key_of

STATUS_OF_CODE = {code: status for status, code in STATUS_CODES.items()}
RUN_EVENTS: Mapping[int, type[Told] | type[Imported]] = {0: Told, 1: Imported}
"""The kinds of events that bring a run, by their number in the table ``runs``."""

_NUMBER = Struct("<q")
_SIZE = Struct("<qq")
_RUN = Struct("<qqqqqqdq")
_COUNT = Struct("<qqq")
_HEAD = Struct("<qq")


Rows = Sequence[Sequence[Any]]


class StoredEvent(NamedTuple):
    """An event in the form in which it is stored, for types of events that contain no run."""

    kind: str
    body: bytes


class StoredRun(NamedTuple):
    """An event with a run in stored form; ``kind`` is the index of its type in ``RUN_EVENTS``."""

    kind: int
    run: EncodedRun

    @property
    def key(self) -> RunId:
        """Return the id of the run: algorithm, instance and repetition."""
        return key_of(self.run)

    def event(self, *, arrays: bool = False) -> Told | Imported:
        """Decode the event without checking its run; ``arrays`` is passed to ``decode_run``."""
        return RUN_EVENTS[self.kind](decode_run(self.run, arrays=arrays))


class Head(NamedTuple):
    """The single table row with the number of the last event and the process that may write."""

    epoch: int
    last: int
    holder: bytes
    crc: int

    @classmethod
    def of(cls, epoch: int, last: int, holder: bytes) -> "Head":
        """Return the head row with its checksum, for a last event and a writing process."""
        return cls(epoch, last, holder, crc32(holder, crc32(_HEAD.pack(epoch, last))))

    @property
    def is_intact(self) -> bool:
        """Whether the checksum of this table row matches its content."""
        try:
            return self == Head.of(*self[:3])
        except (error, TypeError, OverflowError):  # not even numbers and bytes
            return False


def encode_event(event: Event) -> StoredEvent | StoredRun:
    """Encode an event; raise an error if it is not an event, or its run is invalid."""
    if isinstance(event, Told | Imported):
        return StoredRun(0 if isinstance(event, Told) else 1, encode_run(check_run(event.run)))
    if isinstance(event, Event):
        return StoredEvent(type(event).__name__.lower(), to_json(event).encode())
    raise DataError(f"expected an event of a race to store, got {event!r}")


def is_start(stored: StoredEvent | StoredRun) -> bool:
    """Return whether an encoded event is the one that starts a race."""
    return isinstance(stored, StoredEvent) and stored.kind == Started.__name__.lower()


# Rows to be written


def event_row(seq: int, event: StoredEvent) -> tuple[Any, ...]:
    """Return an encoded event as a row of the table ``events``."""
    return seq, event.kind, event.body, _checksum(seq, event.kind.encode(), event.body)


def run_row(seq: int, stored: StoredRun, ids: Mapping[str, int]) -> tuple[Any, ...]:
    """Return an encoded run as a row of the table ``runs``; ``ids`` maps names to their numbers."""
    run = stored.run
    fields = (
        seq,
        stored.kind,
        ids[run.algorithm],
        ids[run.instance],
        run.repetition,
        STATUS_CODES[run.status],
        run.until,
        run.n_improvements,
    )
    return *fields, crc32(_RUN.pack(*fields))


def count_row(algorithm: int, status: int, number: int) -> tuple[int, int, int, int]:
    """Return a number of runs, by algorithm and status, as a row of the table ``counts``."""
    fields = algorithm, status, number
    return *fields, crc32(_COUNT.pack(*fields))


def blob_row(number: int, data: bytes) -> tuple[int, bytes, int]:
    """Return numbered bytes as a row of the table ``trajectories``, ``names`` or ``remarks``."""
    return number, data, _checksum(number, data)


# Rows that were read


def decode_name(number: int, data: object, crc: object) -> str | None:
    """Return the name in a row of the table ``names``, or None if the row is damaged."""
    if not isinstance(data, bytes) or _checksum(number, data) != crc:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def decode_event(row: Sequence[Any]) -> Event | str:
    """Return the event in a row of the table ``events``, or a text on the row's defect."""
    seq, kind, body, crc = row
    if not isinstance(kind, str) or not isinstance(body, bytes):
        return "is damaged"
    if _checksum(seq, kind.encode(errors="replace"), body) != crc:
        return "is damaged"
    try:
        event = from_json(body.decode())
    except (DataError, UnicodeDecodeError, RecursionError) as problem:
        return f"is not an event: {problem}"
    same = type(event).__name__.lower() == kind and not isinstance(event, Told | Imported)
    return event if same else f"is not the event {kind!r} that it claims to be"


def decode_run_row(row: Sequence[Any], names: Mapping[int, str]) -> StoredRun | str:
    """Return the run in a row with its trajectory, or a text on the row's defect."""
    stored = decode_run_facts(row[:9], names)
    data, data_crc = row[9:]
    if isinstance(stored, str):
        return stored
    if not isinstance(data, bytes) or _checksum(row[0], data) != data_crc:
        return "has lost its trajectory, or it is damaged"
    if len(data) != IMPROVEMENT_BYTES * row[7]:
        return "is not a run"
    return stored._replace(run=stored.run._replace(trajectory=data))


def decode_run_facts(row: Sequence[Any], names: Mapping[int, str]) -> StoredRun | str:
    """Return the run in a row without its trajectory, or a text on the row's defect.

    If the run has any value, zeros stand for its first improvement.
    """
    *fields, crc = row
    try:
        intact = crc32(_RUN.pack(*fields)) == crc
    except (error, TypeError, OverflowError):  # not even numbers
        intact = False
    if not intact:
        return "is damaged"
    _, kind, algorithm, instance, repetition, code, until, n_improvements = fields
    if algorithm not in names or instance not in names:
        return "has lost a name, or it is damaged"
    if code not in STATUS_OF_CODE or kind not in RUN_EVENTS:
        return "is not a run"
    status = STATUS_OF_CODE[code]
    run = EncodedRun(
        algorithm=names[algorithm],
        instance=names[instance],
        repetition=repetition,
        until=until,
        status=status,
        trajectory=bytes(IMPROVEMENT_BYTES if n_improvements else 0),
    )
    return StoredRun(kind, run)


def check_run_event(stored: StoredRun, *, arrays: bool = False) -> Told | Imported | str:
    """Return the event of an encoded run, or a text on the run's defect."""
    event = stored.event(arrays=arrays)
    try:
        check_run(event.run)
    except DataError as problem:
        return f"is not a run: {problem}"
    return event


def are_intact(events: Rows, runs: Rows, trajectories: Rows) -> bool:
    """Return whether the checksums of all rows of these tables match."""
    pack_run, pack_size = _RUN.pack, _SIZE.pack
    try:
        return (
            all(crc == _checksum(seq, kind.encode(), body) for seq, kind, body, crc in events)
            and all(crc32(pack_run(*row[:8])) == row[8] for row in runs)
            and all(
                crc32(data, crc32(pack_size(seq, len(data)))) == crc
                for seq, data, crc in trajectories
            )
        )
    except (error, TypeError, AttributeError, ValueError, OverflowError):
        return False


def _checksum(number: int, *parts: bytes) -> int:
    try:
        crc = crc32(_NUMBER.pack(number))
    except error:  # not even a number
        return -1
    for part in parts:
        # Each part with its length, so that nothing moves from one to the next unseen.
        crc = crc32(part, crc32(_NUMBER.pack(len(part)), crc))
    return crc


def encode_holder(host: str, pid: int, since: str) -> bytes:
    """Encode the process that may write to a store: its host, its id and its start."""
    return json.dumps({"host": host, "pid": pid, "since": since}).encode()


def describe_holder(holder: bytes) -> str:
    """Return a description of the process that may write to a store."""
    try:
        process = json.loads(holder)
        return f"process {process['pid']} on {process['host']}, since {process['since']}"
    except (ValueError, KeyError, TypeError):
        return "an unknown process"
