"""Events as rows and back: small, checked, and nothing in them is ever executed.

A run is a row of numbers and, in another table, its improvements as plain numbers of 8 bytes; so
what counts runs does not read trajectories. Every other event is the line of JSON that
:mod:`polarbear.racing.events` makes of it, which says its version.

Every row ends with a checksum of all that is in it and of its place, so that a damaged row, and one
that was put elsewhere, is known for what it is. The checksum is against accidents; against
strangers everything that is read is looked at again, as if a user had typed it.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf, isfinite
from struct import Struct, error
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from polarbear.data.run import Run, Status, check
from polarbear.errors import DataError
from polarbear.racing.events import (
    Event,
    Imported,
    Started,
    Told,
    from_json,
    plain_run,
    to_json,
)
from polarbear.racing.jobs import Key

CODES: Mapping[Status, int] = {
    Status.CUT: 0,
    Status.FINISHED: 1,
    Status.OUT_OF_TIME: 2,
    Status.OUT_OF_MEMORY: 3,
    Status.CRASHED: 4,
    Status.KILLED: 5,
}
"""Numbers in files, which therefore never change."""

STATUS_OF = {code: status for status, code in CODES.items()}
KINDS: Mapping[int, type[Told] | type[Imported]] = {0: Told, 1: Imported}

_PLACE = Struct("<q")
_RUN = Struct("<qqqqqqdq")
_COUNT = Struct("<qqq")
_HEAD = Struct("<qq")
_NUMBER = 8


@lru_cache(maxsize=4096)
def _shape(improvements: int) -> Struct:
    return Struct(f"<{2 * improvements}d")


class Small(NamedTuple):
    """An event other than a run, packed."""

    kind: str
    body: bytes


class Found(NamedTuple):
    """A run, packed: told (0) or imported (1)."""

    kind: int
    key: Key
    status: int
    until: float
    improvements: int
    data: bytes

    def same(self, other: "Found") -> bool:
        """Whether both say the same of a run, told or imported."""
        return self[1:] == other[1:]

    def event(self) -> Told | Imported:
        """The event that this is."""
        return self._event(_shape(self.improvements).unpack(self.data))

    def light_event(self) -> Told | Imported:
        """The same with arrays, which take less memory and cannot be compared by ==."""
        return self._event(np.frombuffer(self.data, dtype="<f8"))

    def _event(self, numbers: Any) -> Told | Imported:
        time, value = numbers[: self.improvements], numbers[self.improvements :]
        algorithm, instance, repetition = self.key
        run = Run(algorithm, instance, time, value, self.until, repetition, STATUS_OF[self.status])
        return KINDS[self.kind](run)


class Head(NamedTuple):
    """The one row that says how far a store goes, and whose it is."""

    epoch: int
    last: int
    holder: bytes
    crc: int

    @classmethod
    def of(cls, epoch: int, last: int, holder: bytes) -> "Head":
        """A head with its checksum."""
        return cls(epoch, last, holder, crc32(holder, crc32(_HEAD.pack(epoch, last))))

    @property
    def sound(self) -> bool:
        """Whether nothing in it has changed since it was written."""
        try:
            return self == Head.of(*self[:3])
        except (error, TypeError, OverflowError):  # not even numbers and bytes
            return False


def pack(event: Event) -> Small | Found:
    """An event as it is stored; an error if it is none."""
    if isinstance(event, Told | Imported):
        run = _plain(event.run)
        time: Any = run.time
        value: Any = run.value
        key = Key(run.algorithm, run.instance, run.repetition)
        data = _shape(len(time)).pack(*time, *value)
        kind = 0 if isinstance(event, Told) else 1
        return Found(kind, key, CODES[run.status], run.until, len(time), data)
    if isinstance(event, Event):
        return Small(type(event).__name__.lower(), to_json(event).encode())
    raise DataError(f"a store takes events of a race, not {event!r}")


def started(packed: Small | Found) -> bool:
    """Whether this is the event that a race begins with."""
    return isinstance(packed, Small) and packed.kind == Started.__name__.lower()


def line(found: Found) -> bytes:
    """A run as a line of JSON."""
    return to_json(found.event()).encode()


# Rows to be written


def small_row(seq: int, small: Small) -> tuple[Any, ...]:
    """A row of the table ``events``."""
    return seq, small.kind, small.body, _crc(seq, small.kind.encode(), small.body)


def run_row(seq: int, found: Found, ids: Mapping[str, int]) -> tuple[Any, ...]:
    """A row of the table ``runs``."""
    key = found.key
    fields = (
        seq,
        found.kind,
        ids[key.algorithm],
        ids[key.instance],
        key.repetition,
        found.status,
        found.until,
        found.improvements,
    )
    return *fields, crc32(_RUN.pack(*fields))


def count_row(algorithm: int, status: int, number: int) -> tuple[int, int, int, int]:
    """A row of the table ``counts``."""
    fields = algorithm, status, number
    return *fields, crc32(_COUNT.pack(*fields))


def blob_row(place: int, data: bytes) -> tuple[int, bytes, int]:
    """A row of the tables ``trajectories`` and ``names``."""
    return place, data, _crc(place, data)


# Rows that were read


def name_of(place: int, data: object, crc: object) -> str | None:
    """The name in a row; none if the row is damaged."""
    if not isinstance(data, bytes) or _crc(place, data) != crc:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def small_event(row: Sequence[Any], seed: int | None) -> Event | str:
    """The event of a row of the table ``events``, or what is wrong with it.

    ``seed``: of the race; events of the first version need it.
    """
    seq, kind, body, crc = row
    if not isinstance(kind, str) or not isinstance(body, bytes):
        return "is damaged"
    if _crc(seq, kind.encode(errors="replace"), body) != crc:
        return "is damaged"
    try:
        event = from_json(body.decode(), seed=seed)
    except (DataError, UnicodeDecodeError, RecursionError) as problem:
        return f"is not an event: {problem}"
    same = type(event).__name__.lower() == kind and not isinstance(event, Told | Imported)
    return event if same else f"is not the event {kind!r} that it claims to be"


def found_in(row: Sequence[Any], names: Mapping[int, str]) -> Found | str:
    """The run in a row of ``runs`` joined with ``trajectories``, or what is wrong with it."""
    seq, kind, algorithm, instance, repetition, status, until, improvements = row[:8]
    crc, data, data_crc = row[8:]
    try:
        sound = crc32(_RUN.pack(*row[:8])) == crc
    except (error, TypeError, OverflowError):  # not even numbers
        sound = False
    if not sound:
        return "is damaged"
    if not isinstance(data, bytes) or _crc(seq, data) != data_crc:
        return "has lost its trajectory, or it is damaged"
    if algorithm not in names or instance not in names:
        return "has lost a name, or it is damaged"
    if len(data) != 2 * _NUMBER * improvements or status not in STATUS_OF or kind not in KINDS:
        return "is not a run"
    key = Key(names[algorithm], names[instance], repetition)
    return Found(kind, key, status, until, improvements, data)


def run_event(found: Found) -> Told | Imported | str:
    """The event of a run, or what is wrong with it."""
    event = found.event()
    return event if _plausible(event.run) else _judged(event)


def light_run_event(found: Found) -> Told | Imported | str:
    """The same with arrays."""
    event = found.light_event()
    time = np.asarray(event.run.time)
    total = np.asarray(event.run.value).sum()
    within = 0 <= time.min(initial=0.0) <= time.max(initial=0.0) <= found.until < inf
    named = found.key.algorithm and found.key.instance
    return event if named and within and total == total else _judged(event)


def _judged(event: Told | Imported) -> Told | Imported | str:
    try:
        check(event.run)
    except DataError as problem:
        return f"is not a run: {problem}"
    return event


def _plain(run: Run) -> Run:
    """``plain_run``, without the work where a race has done it already."""
    time: Any = run.time
    value: Any = run.value
    try:
        done = (
            type(time) is type(value) is tuple
            and len(time) == len(value)
            and type(run.algorithm) is type(run.instance) is str
            and type(run.until) is float
            and type(run.repetition) is int
            and not abs(run.repetition) >> 63
            and isinstance(run.status, Status)
            and _plausible(run)
        )
    except TypeError:
        done = False
    return run if done else plain_run(run)


def _plausible(run: Run) -> bool:
    """Whether a run of plain numbers is surely one; what is doubtful is looked at more slowly."""
    time: Any = run.time
    value: Any = run.value
    total = sum(value)
    return (
        bool(run.algorithm and run.instance)
        and total == total  # not nan
        and isfinite(sum(time))
        and min(time, default=0.0) >= 0
        and max(time, default=0.0) <= run.until < inf
    )


def _crc(place: int, *parts: bytes) -> int:
    try:
        crc = crc32(_PLACE.pack(place))
    except error:  # not even a number
        return -1
    for part in parts:
        # Each part with its length, so that nothing moves from one to the next unseen.
        crc = crc32(part, crc32(_PLACE.pack(len(part)), crc))
    return crc


def holder_line(host: str, pid: int, since: str) -> bytes:
    """Who holds a store, as a line."""
    return json.dumps({"host": host, "pid": pid, "since": since}).encode()


def holder_words(holder: bytes) -> str:
    """The same for people."""
    try:
        found = json.loads(holder)
        return f"process {found['pid']} on {found['host']}, since {found['since']}"
    except (ValueError, KeyError, TypeError):
        return "somebody"
