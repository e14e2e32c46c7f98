"""``salvage``: a sound store from a damaged file, or one of an earlier format.

Until the first damage the events are copied as they are. After it, what the race asked and decided
cannot be relied on, for it may rest on what is lost; but what was found is as true as before. So
runs are kept as runs that were there already, and who takes part is kept; the race decides anew.
Several attempts at one run stay one run: what the jobs said about them is kept as events.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from polarbear._text import format_count, format_list
from polarbear.data.run import IMPROVEMENT_BYTES, Status
from polarbear.errors import StoreError
from polarbear.racing.events import (
    Added,
    Asked,
    Continued,
    Decided,
    Ended,
    Event,
    Imported,
    Removed,
    Started,
    Superseded,
    Told,
)
from polarbear.racing.jobs import Key, key_of
from polarbear.store.carving import carve, is_truncated
from polarbear.store.codec import Head, decode_name
from polarbear.store.database import FORMAT, HEAD
from polarbear.store.log import CHUNK, Store
from polarbear.store.reading import RUNS, SMALL, decoded, seed_of
from polarbear.store.sqlite import (
    APPLICATION,
    MEMORY,
    UPGRADES,
    SQLite,
    beside,
    connect,
    failing,
    newer_format,
)

Read = Callable[[int, int], list[tuple[Any, ...]]]


class Salvaged(NamedTuple):
    """What became of a damaged store.

    ``copied``: how many events are as they were; ``kept``: how many runs and changes of who takes
    part are from after the first damage; ``lost``: the numbers of events that are lost, and why.

    >>> print(Salvaged(12, 0, {}))
    12 events copied, nothing is lost
    """

    copied: int
    kept: int
    lost: Mapping[int, str]

    def __str__(self) -> str:
        if not self.lost:
            return f"{format_count(self.copied, 'event')} copied, nothing is lost"
        first = [f"event {seq} {why}" for seq, why in self.lost.items()]
        return (
            f"{format_count(self.copied, 'event')} copied, {format_count(self.kept, 'event')} kept "
            f"of those after the damage\n  lost  {format_list(first, 6)}"
        )


def salvage(
    source: str | PathLike[str],
    target: str | PathLike[str],
    *,
    like: str | PathLike[str] | None = None,
) -> Salvaged:
    """Copy what is sound in a store to a new one, in the present format.

    The source is read only; also what is left of a file that was cut off is read. If the very
    first event is lost (times, direction, rules), ``like`` is a store of the same race to take it
    from: an older copy, or a new race with the same arguments.

    >>> import tempfile
    >>> from polarbear import Race, open_store
    >>> folder = tempfile.TemporaryDirectory()
    >>> with open_store(f"{folder.name}/race.db") as store:
    ...     store.append(Race(["a", "b"], [1, 2], direction="minimize").events)
    >>> print(salvage(f"{folder.name}/race.db", f"{folder.name}/repaired.db"))
    3 events copied, nothing is lost
    >>> folder.cleanup()
    """
    old, new = Path(source), Path(target)
    if new.exists():
        raise StoreError(f"{new} is there already; salvage makes a new store")
    with closing(_opened(old)) as connection:

        def rows(sql: str) -> Read:
            def read(low: int, high: int) -> list[tuple[Any, ...]]:
                with failing(str(old)):
                    found = connection.execute(sql, (low, high)).fetchall()
                return [row for row in found if type(row[0]) is int]  # whoever made the table

            return read

        most = max(old.stat().st_size // 8, 1)  # no row is smaller
        carved = _Carved(old)
        found = _around(rows("SELECT id, name, crc FROM names WHERE id BETWEEN ? AND ?"), 1, most)
        names = {row[0]: name for row in found if (name := decode_name(*row)) is not None}
        names = carved.names | names
        last = max(_last(connection, most), carved.last)
        try:
            with Store(SQLite(new)) as store:
                small = carved.beside(rows(SMALL), carved.small)
                runs = carved.beside(rows(RUNS), carved.runs)
                return _copied(store, small, runs, last, names, like)
        except StoreError:
            for made in (new, beside(new, "-lock")):
                made.unlink(missing_ok=True)
            raise


class _Carved:
    """Rows of a truncated file that its pages hold; none of a file that is whole."""

    def __init__(self, path: Path) -> None:
        self.small: dict[int, tuple[Any, ...]] = {}
        self.names: dict[int, str] = {}
        self.runs: dict[int, tuple[Any, ...]] = {}
        blobs: dict[int, list[tuple[Any, ...]]] = {}
        for rowid, row in carve(path) if is_truncated(path) else ():
            match row:
                case [None, str(), bytes(), int()]:
                    self.small[rowid] = rowid, *row[1:]
                case [None, bytes() as data, int() as crc]:
                    blobs.setdefault(rowid, []).append((data, crc))
                    name = decode_name(rowid, data, crc)
                    if name:
                        self.names[rowid] = name
                case [None, *_, int()] if len(row) == 9:
                    self.runs[rowid] = rowid, *row[1:6], *_as_real(row[6]), *row[7:]
                case _:
                    pass
        for seq, row in self.runs.items():
            # Names have the same columns as trajectories, and perhaps the same number.
            fitting = (b for b in blobs.get(seq, ()) if len(b[0]) == IMPROVEMENT_BYTES * row[7])
            self.runs[seq] = *row, *next(fitting, (None, None))
        self.last = max((*self.small, *self.runs), default=0)

    def beside(self, read: Read, carved: Mapping[int, tuple[Any, ...]]) -> Read:
        """Read rows, and those that were carved where there are none."""
        if not carved:
            return read

        def both(low: int, high: int) -> list[tuple[Any, ...]]:
            rows = {row[0]: row for row in _around(read, low, high)}
            rows = {k: row for k, row in rows.items() if None not in row or k not in carved}
            more = [carved[k] for k in carved if low <= k <= high and k not in rows]
            return [*more, *rows.values()]

        return both


def _as_real(value: Any) -> tuple[Any]:
    """SQLite keeps whole numbers of real columns as integers."""
    return (float(value) if isinstance(value, int) else value,)


def _copied(
    store: Store,
    small: Read,
    runs: Read,
    last: int,
    names: Mapping[int, str],
    like: str | PathLike[str] | None,
) -> Salvaged:
    lost: dict[int, str] = {}
    copied = kept = 0
    known: set[str] = set()
    attempts = _Attempts()
    seed = seed_of(list(_around(small, 1, 1)))
    for low in range(1, last + 1, CHUNK):
        high = min(low + CHUNK - 1, last)
        some, found = (_around(read, low, high) for read in (small, runs))
        events, damage = decoded(low, high, some, found, names, seed)
        if 1 in damage:
            if like is None:
                raise StoreError(
                    f"the event that a race begins with {damage[1]}, and runs alone are no race: "
                    "name a store of the same race to take it from with `--like STORE` "
                    "(in Python: like=...)"
                )
            store.append([_first_event(like)])
        lost |= damage
        first = min(lost, default=last + 1)
        before = [event for seq, event in events.items() if seq < first]
        for event in before:
            _note(event, known)
            attempts.note(event)
        after = [own for s in events if s > first for own in _mended(events[s], known, attempts)]
        store.append([*before, *after])
        copied, kept = copied + len(before), kept + len(after)
    return Salvaged(copied, kept, lost)


def _first_event(like: str | PathLike[str]) -> Started:
    with Store(SQLite(Path(like), read_only=True)) as store:
        first = next(store.read(), None)
    if not isinstance(first, Started):
        raise StoreError(f"{like} holds no race yet")
    return first


def _mended(event: Event, known: set[str], attempts: "_Attempts") -> list[Event]:
    """What is kept of an event after the damage."""
    links = attempts.links(event)
    attempts.note(event)
    match event:
        case Started() | Asked() | Decided() | Ended():
            return []
        case Told(run) | Imported(run):
            came = [] if run.algorithm in known else [Added(run.algorithm)]
            known.add(run.algorithm)
            return [*came, *links, Imported(run)]
        case Added(algorithm) if algorithm in known:
            return []  # who came back is still there, for nobody was eliminated
    _note(event, known)
    return [event]


class _Attempt(NamedTuple):
    """The last attempt at a run of an algorithm on an instance."""

    key: Key
    first: int
    status: Status
    told: bool


class _Attempts:
    """Which runs are further attempts at others, as jobs say, or as runs show if jobs are lost."""

    def __init__(self) -> None:
        self._jobs: dict[Key, int | None] = {}
        self._last: dict[tuple[str, str], _Attempt] = {}

    def note(self, event: Event) -> None:
        """Keep track of an event."""
        match event:
            case Asked(jobs):
                self._jobs |= {job.key: job.extends for job in jobs if job.repetition}
            case Continued(key, extends):
                self._jobs[key] = extends
            case Told(run) | Imported(run):
                key, told = key_of(run), isinstance(event, Told)
                extends = self._extends(key) if told else self._jobs.get(key)
                first = key.repetition if extends is None else extends
                self._last[key[0], key[1]] = _Attempt(key, first, run.status, told)
            case _:
                pass

    def links(self, event: Event) -> list[Event]:
        """What has to be said of a run that was told, if it is no longer said by its job."""
        if not isinstance(event, Told):
            return []
        key = key_of(event.run)
        extends, before = self._extends(key), self._last.get((key[0], key[1]))
        if extends is not None:
            return [Continued(key, extends)]
        if before is None and key.repetition:  # the attempt before this one is lost
            return [Superseded(key._replace(repetition=key.repetition - 1), key.repetition)]
        return [Superseded(before.key, key.repetition)] if before and before.told else []

    def _extends(self, key: Key) -> int | None:
        """The repetition that a run extends, if it does."""
        before = self._last.get((key[0], key[1]))
        if key in self._jobs or before is None or not key.repetition:
            return self._jobs.get(key)
        # A run is extended if it was cut. An extension that failed is made again as the same run,
        # any other run with another seed.
        again = before.status == Status.CUT or before.first != before.key.repetition
        return before.first if again else None


def _note(event: Event, known: set[str]) -> None:
    """Keep track of who takes part."""
    match event:
        case Added(algorithm):
            known.add(algorithm)
        case Removed(algorithm):
            known.discard(algorithm)
        case Decided(eliminated=eliminated):
            known.difference_update(found.algorithm for found in eliminated)


def _opened(path: Path) -> sqlite3.Connection:
    """A connection that reads whatever can be read; of an earlier format, a copy in this one."""
    connection = connect(path, read_only=True, damaged=True)
    try:
        with failing(str(path)):
            strange = "SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')"
            if connection.execute(strange).fetchone()[0]:
                raise StoreError(f"{path} holds triggers or views: it is not a store")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
            if ours and version > FORMAT:
                raise StoreError(newer_format(str(path), version))
            if ours and version in UPGRADES:
                copy = sqlite3.connect(MEMORY, isolation_level=None)
                connection.backup(copy)
                connection.close()
                connection = copy
                for step in range(version, FORMAT):
                    for statement in UPGRADES[step]:
                        connection.execute(statement)
        return connection
    except BaseException:
        connection.close()
        raise


def _last(connection: sqlite3.Connection, most: int) -> int:
    """How far the store goes, or could go."""
    try:
        head = Head(*connection.execute(HEAD).fetchone())
        if head.is_intact:
            return min(head.last, most)
    except (sqlite3.Error, TypeError):
        pass
    try:
        sql = "SELECT max(seq) FROM (SELECT seq FROM events UNION ALL SELECT seq FROM runs)"
        return min(connection.execute(sql).fetchone()[0] or 0, most)
    except sqlite3.Error:
        return most


def _around(read: Read, low: int, high: int) -> Iterator[tuple[Any, ...]]:
    """All rows between that can be read: where reading fails, each half by itself."""
    try:
        yield from read(low, high)
    except StoreError:
        if low < high:
            middle = (low + high) // 2
            yield from _around(read, low, middle)
            yield from _around(read, middle + 1, high)
