"""``repair_store``: copy the intact events of a damaged store.

The events before the first damage are copied unchanged. Jobs and decisions after it may depend on
lost events, so they are dropped and the race decides again. Runs after the damage are kept as
imported runs, and algorithms that were added or removed stay so. Several attempts at one run remain
one run: the links between them, which jobs held, are kept as events.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from polarbear._text import format_count, format_list
from polarbear.data.run import Status
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
from polarbear.racing.jobs import RunId, key_of
from polarbear.store.database import FORMAT, HEAD
from polarbear.store.log import CHUNK, Store
from polarbear.store.reading import EVENTS, RUNS, decode_rows
from polarbear.store.rows import Head, decode_name
from polarbear.store.sqlite import (
    APPLICATION,
    SQLite,
    beside,
    connect,
    newer_format,
    translate_errors,
)

Read = Callable[[int, int], list[tuple[Any, ...]]]


class RepairSummary(NamedTuple):
    """The result of a repair: the numbers of events copied and kept, and the lost events.

    ``copied``: events before the first damage, unchanged. ``kept``: events after it: runs,
    additions and removals. ``lost``: the number of each lost event, and the reason.

    >>> print(RepairSummary(12, 0, {}))
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


def repair_store(
    source: str | PathLike[str],
    target: str | PathLike[str],
    *,
    like: str | PathLike[str] | None = None,
) -> RepairSummary:
    """Copy all intact events of a store to a new store.

    The source is only read; it may be truncated. If the first event is lost (times, direction,
    question), ``like`` is a store of the same race that has it: an older copy, or a new race with
    the same arguments.

    >>> import tempfile
    >>> from polarbear import Race, open_store
    >>> folder = tempfile.TemporaryDirectory()
    >>> with open_store(f"{folder.name}/race.db") as store:
    ...     store.append(Race(["a", "b"], [1, 2], direction="minimize").events)
    >>> print(repair_store(f"{folder.name}/race.db", f"{folder.name}/repaired.db"))
    3 events copied, nothing is lost
    >>> folder.cleanup()
    """
    old, new = Path(source), Path(target)
    if new.exists():
        raise StoreError(f"{new} exists already: name a new file for the repaired store")
    with closing(_open_damaged(old)) as connection:

        def rows(sql: str) -> Read:
            def read(low: int, high: int) -> list[tuple[Any, ...]]:
                with translate_errors(str(old)):
                    result = connection.execute(sql, (low, high)).fetchall()
                # The file may hold another table of this name.
                return [row for row in result if type(row[0]) is int]

            return read

        max_rows = max(old.stat().st_size // 8, 1)  # no row is smaller than 8 bytes
        read_names = rows("SELECT id, name, crc FROM names WHERE id BETWEEN ? AND ?")
        intact = _read_around_damage(read_names, 1, max_rows)
        names = {row[0]: name for row in intact if (name := decode_name(*row)) is not None}
        last = _find_last_event(connection, max_rows)
        try:
            with Store(SQLite(new)) as store:
                return _copy_events(store, rows(EVENTS), rows(RUNS), last, names, like)
        except StoreError:
            for made in (new, beside(new, "-lock")):
                made.unlink(missing_ok=True)
            raise


def _copy_events(
    store: Store,
    read_events: Read,
    read_runs: Read,
    last: int,
    names: Mapping[int, str],
    like: str | PathLike[str] | None,
) -> RepairSummary:
    """Append intact events to a new store; those after the first damage as far as possible."""
    lost: dict[int, str] = {}
    copied = kept = 0
    present: dict[str, bool] = {}  # whether an algorithm takes part
    attempts = _Attempts()
    for low in range(1, last + 1, CHUNK):
        high = min(low + CHUNK - 1, last)
        event_rows = _read_around_damage(read_events, low, high)
        run_rows = _read_around_damage(read_runs, low, high)
        events, damage = decode_rows(low, high, event_rows, run_rows, names)
        if 1 in damage:
            if like is None:
                raise StoreError(
                    f"the first event of the race {damage[1]}, and a race cannot be restored "
                    "without it: "
                    "name another store of the same race with `--like STORE` (in Python: like=...)"
                )
            store.append([_read_start(like)])
        lost |= damage
        first = min(lost, default=last + 1)
        before = [event for seq, event in events.items() if seq < first]
        for event in before:
            _update_present(event, present)
            attempts.note(event)
        after = [
            kept_event
            for seq, event in events.items()
            if seq > first
            for kept_event in _convert(event, present, attempts)
        ]
        store.append([*before, *after])
        copied, kept = copied + len(before), kept + len(after)
    return RepairSummary(copied, kept, lost)


def _read_start(like: str | PathLike[str]) -> Started:
    """Return the first event of another store of the same race."""
    with Store(SQLite(Path(like), read_only=True)) as store:
        first = next(store.read(), None)
    if not isinstance(first, Started):
        raise StoreError(
            f"like={like}: this store holds no race; name one that holds the same race"
        )
    return first


def _convert(event: Event, present: dict[str, bool], attempts: "_Attempts") -> list[Event]:
    """Return the events to store in place of an event that follows the first damaged one."""
    links = attempts.links(event)
    attempts.note(event)
    match event:
        case Started() | Asked() | Decided() | Ended():
            return []
        case Told(run) | Imported(run):
            added = [] if run.algorithm in present else [Added(run.algorithm)]
            present.setdefault(run.algorithm, True)
            return [*added, *links, Imported(run)]
        case Added(algorithm) if present.get(algorithm):
            return []  # its elimination was dropped, so it need not come back
    _update_present(event, present)
    return [event]


class _Attempt(NamedTuple):
    """The last run of an algorithm on an instance, and which run it extends."""

    key: RunId
    first: int
    status: Status
    told: bool


class _Attempts:
    """Which runs extend or replace others, by recorded jobs, or by the runs if jobs are lost."""

    def __init__(self) -> None:
        self._jobs: dict[RunId, int | None] = {}
        self._last: dict[tuple[str, str], _Attempt] = {}

    def note(self, event: Event) -> None:
        """Record what an event tells about which run repeats or extends an earlier one."""
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
        """Return events which state that a run extends or replaces others, if its job is lost."""
        if not isinstance(event, Told):
            return []
        key = key_of(event.run)
        extends, before = self._extends(key), self._last.get((key[0], key[1]))
        if extends is not None:
            return [Continued(key, extends)]
        if before is None and key.repetition:  # the attempt before this one is lost
            return [Superseded(key._replace(repetition=key.repetition - 1), key.repetition)]
        return [Superseded(before.key, key.repetition)] if before and before.told else []

    def _extends(self, key: RunId) -> int | None:
        """Return the number of the repetition that a run extends; None if it extends none."""
        before = self._last.get((key[0], key[1]))
        if key in self._jobs or before is None or not key.repetition:
            return self._jobs.get(key)
        # A run is extended if it was cut. An extension that failed is made again as the same run,
        # any other run with another seed.
        again = before.status == Status.CUT or before.first != before.key.repetition
        return before.first if again else None


def _update_present(event: Event, present: dict[str, bool]) -> None:
    """Update which algorithms take part in the race by an event."""
    match event:
        case Added(algorithm):
            present[algorithm] = True
        case Removed(algorithm):
            present[algorithm] = False
        case Decided(decision=decision):
            present.update((one.algorithm, False) for one in decision.eliminated)


def _open_damaged(path: Path) -> sqlite3.Connection:
    """Open a file that may be damaged; raise an error if it is no store of this program."""
    connection = connect(path, read_only=True, damaged=True)
    try:
        with translate_errors(str(path)):
            foreign = "SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')"
            if connection.execute(foreign).fetchone()[0]:
                raise StoreError(f"{path} is not a store: it holds triggers or views")
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
            if ours and version > FORMAT:
                raise StoreError(newer_format(str(path), version))
        return connection
    except BaseException:
        connection.close()
        raise


def _find_last_event(connection: sqlite3.Connection, max_rows: int) -> int:
    """Return the number of the last event, or an upper bound if the head row is damaged."""
    try:
        head = Head(*connection.execute(HEAD).fetchone())
        if head.is_intact:
            return min(head.last, max_rows)
    except (sqlite3.Error, TypeError):
        pass
    try:
        sql = "SELECT max(seq) FROM (SELECT seq FROM events UNION ALL SELECT seq FROM runs)"
        return min(connection.execute(sql).fetchone()[0] or 0, max_rows)
    except sqlite3.Error:
        return max_rows


def _read_around_damage(read: Read, low: int, high: int) -> Iterator[tuple[Any, ...]]:
    """Yield all readable rows of a range, halving it where reading fails."""
    try:
        yield from read(low, high)
    except StoreError:
        if low < high:
            middle = (low + high) // 2
            yield from _read_around_damage(read, low, middle)
            yield from _read_around_damage(read, middle + 1, high)
