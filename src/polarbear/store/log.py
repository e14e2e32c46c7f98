"""``Store``: the durable log of the events of a race.

1. ``append`` returns when its events are durable, all of them or none.
2. ``read`` yields every event once, in the order in which they were appended. A run (algorithm,
   instance, repetition) is stored once: the first one stays, and a later one with different content
   is kept apart as a ``ConflictingRun``.
3. A store holds one race. Its first event is ``Started``, and there is no other such event.
4. Every row is read with its checksum, and a gap in the numbers of events is damage.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

from polarbear.data.run import STATUS_CODES, Run, Status
from polarbear.data.runs import Runs
from polarbear.errors import DataError, StoreError
from polarbear.racing.events import (
    Event,
    Hosted,
    Identified,
    Imported,
    Started,
    Told,
    Withdrawn,
    from_json,
    to_json,
)
from polarbear.racing.jobs import RunId
from polarbear.racing.model import Model
from polarbear.racing.status import RaceStatus
from polarbear.store.counting import Counts, add_counts, read_counts
from polarbear.store.database import HEAD, Conflict, Database, Statement
from polarbear.store.origins import Origins
from polarbear.store.race_snapshot import (
    EventHash,
    KeptSnapshot,
    is_due,
    read_snapshot,
    write_snapshot,
)
from polarbear.store.race_status import StoreStatus, keep_status, read_status, replay_state
from polarbear.store.reading import (
    EVENTS,
    EVENTS_OF_KIND,
    RUN,
    RUNS,
    advise_repair,
    decode_rows,
    describe_damage,
    read_head,
    read_without_trajectories,
)
from polarbear.store.rows import (
    Head,
    StoredEvent,
    StoredRun,
    blob_row,
    check_run_event,
    decode_event,
    decode_name,
    decode_run_row,
    encode_event,
    event_row,
    is_start,
    run_row,
)
from polarbear.store.withdrawing import read_withdrawn

E = TypeVar("E", bound=Event)

CHUNK = 1024
"""The number of events read at once: no reader holds a transaction, or much memory, for long."""


class ConflictingRun(NamedTuple):
    """A duplicate run that differs from the stored run; the stored run is kept.

    ``event``: the number of the event that was kept. ``refused``: the event that was not.

    >>> from polarbear import Race, open_store
    >>> race = Race(["a", "b"], [1], direction="minimize")
    >>> job, *_ = race.ask()
    >>> with open_store(":memory:") as store:
    ...     store.append([*race.events, Told(job.run((1.0,), (7.0,)))])
    ...     store.append([Told(job.run((1.0,), (8.0,)))])       # the same run, another outcome
    ...     [conflict.refused.run.value for conflict in store.conflicts()]
    [(8.0,)]
    """

    event: int
    refused: Told | Imported


class Store:
    """The events of a race in a database; opened by :func:`polarbear.open_store`.

    Examples
    --------
    >>> from polarbear import Race, open_store
    >>> race = Race(["CSA", "RS"], [10, 100], direction="minimize")
    >>> with open_store(":memory:") as store:
    ...     store.append(race.events)
    ...     list(store.read()) == race.events, store.n_events
    (True, 3)
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._uncertain: list[StoredEvent | StoredRun] = []
        try:
            self._ids: dict[str, int] = {}
            self._counts = Counts()
            self._hash = EventHash()  # of the events in the last snapshot
            if not database.read_only:
                self._read_names_and_counts()
        except BaseException:
            database.close()
            raise

    def append(self, events: "Iterable[Event]", *, status: RaceStatus | None = None) -> None:
        """Store events durably: all of them or none.

        A run that is stored already is not stored again. After an error the same call may be made
        again. ``status``: of the race after these events, kept in the same transaction. With it,
        :meth:`status` need not replay the events.
        """
        batch = [encode_event(event) for event in events]
        with self._lock:
            self._check_usable()
            if self._database.read_only:
                raise StoreError(
                    f"{self.name} was opened for reading only: open it without read_only=True"
                )
            if not batch:
                return
            fresh = self._drop_written(batch)
            try:
                try:
                    self._write(fresh, [], status)
                except Conflict:
                    self._write(*self._split_conflicts(fresh), status)
            except Conflict:
                raise StoreError(
                    f"{self.name}: an index is damaged; {advise_repair(self.name)}"
                ) from None
            except StoreError:
                self._uncertain = fresh
                raise

    def read(self, *, arrays: bool = False, after: int = 0) -> "Iterator[Event]":
        """Yield all events after a number in order, up to the last one at the time of the call.

        ``arrays``: times and values of runs are arrays instead of tuples, which take less than half
        of the memory. A race accepts such events, but ``==`` cannot compare them.
        """
        last = self.head().last
        names = self._names()
        for low in range(after + 1, last + 1, CHUNK):
            high = min(low + CHUNK - 1, last)
            event_rows, run_rows = (self._query(sql, low, high) for sql in (EVENTS, RUNS))
            events, damage = decode_rows(low, high, event_rows, run_rows, names, arrays=arrays)
            if damage:
                raise StoreError(describe_damage(self.name, damage))
            yield from events.values()

    def runs(self) -> Runs:
        """Return all runs as :class:`polarbear.Runs`; possible while the race is running.

        A run and its extensions are one run.
        """
        first = self.started()
        kept = self.effective_runs()
        parts: list[Runs] = []
        while (chunk := list(islice(kept, 64 * CHUNK))) or not parts:
            parts.append(Runs.from_records(chunk, direction=first.direction, clock=first.clock))
        return Runs.concat(parts)

    @property
    def times(self) -> tuple[float, ...]:
        """Return the times at which the race compares algorithms."""
        return self.started().times

    @property
    def model(self) -> Model:
        """Return the model with which the race makes posteriors."""
        return self.started().model

    def accept_changes(self) -> None:
        """Let the next call resume with other solvers, instances or limits under the same names.

        The changes are recorded. By default such a call is refused, because runs of different
        programs would have one name.
        """
        if self.n_events:
            self.append([Identified(accepts_changes=True)])

    def conflicts(self) -> list[ConflictingRun]:
        """Return the duplicate runs that were refused because they differ from the stored ones."""
        conflicts: list[ConflictingRun] = []
        for seq, body, crc in self._query("SELECT seq, body, crc FROM remarks ORDER BY seq, crc"):
            if blob_row(seq, body)[2] != crc:
                raise StoreError(f"{self.name}: the stored conflict with event {seq} is damaged")
            event = from_json(body.decode(errors="replace"))
            if not isinstance(event, Told | Imported):
                raise StoreError(
                    f"{self.name} is damaged: an entry stored as a run is not a run (event {seq})"
                )
            conflicts.append(ConflictingRun(seq, event))
        return conflicts

    def status(self) -> StoreStatus:
        """Return the status of the race, without reading trajectories.

        It is the status that was kept with the last decision, with the numbers of runs that came
        in since. The events are replayed if there is none.
        """
        with self._lock:
            self._check_usable()
            return read_status(self._database)

    def origins(self) -> Origins:
        """Return which solvers, limits, hosts and software versions made the runs."""
        return Origins.of(self.of_kind(Identified), self.of_kind(Hosted), self.of_kind(Withdrawn))

    @property
    def name(self) -> str:
        """Return the address of the store, without a password."""
        return self._database.name

    @property
    def is_closed(self) -> bool:
        """Return whether the store was closed."""
        return self._closed

    @property
    def n_events(self) -> int:
        """Return the number of stored events."""
        return self.head().last

    @property
    def n_instances(self) -> int:
        """Return the number of instances that have runs which were not withdrawn or replaced."""
        withdrawn_at = self.withdrawn()
        if not withdrawn_at:
            return int(self._query("SELECT count(DISTINCT instance) FROM runs")[0][0])
        names = self._names()
        rows = self._query("SELECT algorithm, instance, max(seq) FROM runs GROUP BY 1, 2")
        return len({i for a, i, last in rows if last > withdrawn_at.get((names[a], names[i]), 0)})

    def close(self) -> None:
        """Close the store, so that another process may write; a second call has no effect."""
        if os.getpid() == self._process:  # a forked child leaves the store to its parent
            self._closed = True
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<store of a race: {self.name}>"

    def started(self) -> Started:
        """Return the first event: the times, direction, clock, question and model of the race."""
        first = next(self.read(), None)
        if not isinstance(first, Started):
            raise StoreError(f"{self.name} holds no race yet: start one with this store")
        return first

    # For the package

    def head(self) -> Head:
        """Return the head row: the number of the last event, and the writing process."""
        return read_head(self._query(HEAD), self.name)

    def of_kind(self, kind: type[E]) -> list[E]:
        """Return all events of one type, for types of events that contain no runs."""
        rows = self._query(f"{EVENTS_OF_KIND} ORDER BY seq", kind.__name__.lower())
        events = {row[0]: decode_event(row) for row in rows}
        damage = {seq: event for seq, event in events.items() if isinstance(event, str)}
        if damage:
            raise StoreError(describe_damage(self.name, damage))
        return [event for event in events.values() if isinstance(event, kind)]

    def effective_runs(self) -> Iterator[Run]:
        """Yield each run that decisions use, once; runs that were extended come last."""
        events = self.read(arrays=True)
        next(events, None)  # this fixes the last event to read, before the state is read
        ledger = replay_state(self._database, self.n_events).ledger
        runs = (event.run for event in events if isinstance(event, Told | Imported))
        yield from ledger.counted(runs)

    def withdrawn(self) -> dict[tuple[str, str], int]:
        """Map (algorithm, instance) to an event number; runs before this event are withdrawn."""
        with self._lock:
            self._check_usable()
            return read_withdrawn(self._database)

    def pairs(self, since: int = 0, status: Status | None = None) -> set[tuple[str, str]]:
        """Return pairs (algorithm, instance) with runs since an event, of one status if given."""
        names = self._names()
        sql = "SELECT DISTINCT algorithm, instance FROM runs WHERE seq >= ?"
        rows = (
            self._query(sql, since)
            if status is None
            else self._query(f"{sql} AND status = ?", since, STATUS_CODES[status])
        )
        return {(names[a], names[i]) for a, i in rows if {a, i} <= names.keys()}

    def attempts(
        self, algorithm: str, instances: Iterable[str]
    ) -> dict[RunId, tuple[int, StoredRun]]:
        """Return the runs of an algorithm on some instances, with their event numbers."""
        ids = {self._ids[name]: name for name in (algorithm, *instances) if name in self._ids}
        if self._ids.get(algorithm) is None:
            return {}
        marks = ", ".join("?" * len(ids))
        where = f"WHERE r.algorithm = ? AND r.instance IN ({marks})"
        stored: dict[RunId, tuple[int, StoredRun]] = {}
        for row in self._query(RUN + where, self._ids[algorithm], *ids):
            run = decode_run_row(row, ids)
            if isinstance(run, str):
                raise StoreError(describe_damage(self.name, {row[0]: run}))
            stored[run.key] = row[0], run
        return stored

    def runs_on(self, instances: Collection[str], *, last: int) -> Iterator[Run]:
        """Yield the runs on some instances, with arrays, up to the event number ``last``."""
        names = self._names()
        algorithms = [row[0] for row in self._query("SELECT DISTINCT algorithm FROM counts")]
        numbers = [number for number, name in names.items() if name in instances]
        marks = (", ".join("?" * len(ids)) for ids in (algorithms, numbers))
        where = "WHERE r.algorithm IN ({}) AND r.instance IN ({}) AND r.seq <= ?".format(*marks)
        for row in self._query(RUN + where, *algorithms, *numbers, last) if numbers else ():
            stored = decode_run_row(row, names)
            event = stored if isinstance(stored, str) else check_run_event(stored, arrays=True)
            if isinstance(event, str):
                raise StoreError(describe_damage(self.name, {row[0]: event}))
            yield event.run

    def verify(self) -> tuple[int, KeptSnapshot | None]:
        """Read all events once; return the number of the last one, and a snapshot if there is one.

        Raises an error if a row is damaged. A snapshot of other events is not returned.
        """
        with self._lock:
            self._check_usable()
            snapshot, last = read_snapshot(self._database), self.head().last
            (n_names,) = self._query("SELECT count(*) FROM names")[0]
            hashed = EventHash()
            if snapshot is not None:
                hashed.extend(self._database, snapshot.n_names, snapshot.last, check=False)
            if snapshot is None or hashed.text != snapshot.events or snapshot.last > last:
                snapshot, hashed = None, EventHash()
            self._hash = hashed.copy()
            if not hashed.extend(self._database, n_names, last):
                deque(self.read(arrays=True), maxlen=0)  # it raises an error that names the damage
            return last, snapshot

    def hash_events(self, last: int) -> str:
        """Return a hash of the first events, which is the same in every intact copy of a store."""
        names = "SELECT coalesce(max(algorithm), 0), coalesce(max(instance), 0) FROM runs"
        n_names = max(self._query(f"{names} WHERE seq <= ?", last)[0])
        with self._lock:
            hashed = EventHash()
            intact = hashed.extend(self._database, n_names, last)
        if not intact:
            raise StoreError(f"{self.name} is damaged; {advise_repair(self.name)}")
        return hashed.text

    def read_facts(self, last: int, *, after: int = 0) -> "Iterator[Event]":
        """Yield events in order, with runs that lack their trajectories."""
        with self._lock:
            self._check_usable()
            yield from read_without_trajectories(self._database, last, after)

    def keep_snapshot(self, encode: Callable[[], bytes]) -> None:
        """Replace the snapshot, if one is due; ``encode`` returns that of the race as it is now."""
        with self._lock:
            self._check_usable()
            last = self._database.head.last
            if not is_due(last, self._hash.last):
                return
            if self._hash.extend(self._database, len(self._ids), last):
                self._database.write(write_snapshot(encode(), self._hash), last)

    def add_conflicts(self, conflicts: Iterable[ConflictingRun]) -> None:
        """Store duplicate runs that differ from the stored ones."""
        with self._lock:
            self._check_usable()
            self._write([], [blob_row(event, to_json(run).encode()) for event, run in conflicts])

    # Inside

    def _query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            self._check_usable()
            return self._database.query(sql, *values)

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreError(f"{self.name} was closed: open it again")
        if os.getpid() != self._process:
            raise StoreError(
                f"{self.name} was opened by the parent of this process: open it in this process as "
                "well"
            )

    def _drop_written(self, batch: list[StoredEvent | StoredRun]) -> list[StoredEvent | StoredRun]:
        """Return the events that are not stored yet, as a failed write may have been committed."""
        uncertain, self._uncertain = self._uncertain, []
        if not uncertain:
            return batch
        before = self._database.head.last
        try:
            self._database.refresh()
        except StoreError:
            self._uncertain = uncertain
            raise
        self._read_names_and_counts()
        written = self._database.head.last > before
        same = batch[: len(uncertain)] == uncertain
        return batch[len(uncertain) :] if written and same else batch

    def _read_names_and_counts(self) -> None:
        """Read the number of each stored name, and how many runs there are by status."""
        ids = {name: number for number, name in self._names().items()}
        rows = self._query("SELECT count(*) FROM names")[0][0]
        if sorted(ids.values()) != list(range(1, rows + 1)):
            raise StoreError(
                f"{self.name}: the stored names are damaged; {advise_repair(self.name)}"
            )
        self._ids, self._counts = ids, read_counts(self._database)[1]

    def _names(self) -> dict[int, str]:
        names: dict[int, str] = {}
        for row in self._query("SELECT id, name, crc FROM names"):
            name = decode_name(*row)
            if name is not None:  # a run with a damaged name is reported as damaged itself
                names[row[0]] = name
        return names

    def _write(
        self,
        batch: Sequence[StoredEvent | StoredRun],
        conflicts: Sequence[tuple[Any, ...]],
        status: RaceStatus | None = None,
    ) -> None:
        """Write events, conflicting runs and the status in one transaction."""
        if not batch and not conflicts:
            return
        last = self._database.head.last
        for seq, stored in enumerate(batch, last + 1):
            if is_start(stored) != (seq == 1):
                if seq == 1:
                    raise DataError(f"{self.name} needs an event Started as its first event")
                raise DataError(f"{self.name} holds a race already: use one store for each race")
        ids, new = self._number_names(batch)
        events, runs, trajectories = [], [], []
        for seq, stored in enumerate(batch, last + 1):
            if isinstance(stored, StoredEvent):
                events.append(event_row(seq, stored))
            else:
                runs.append(run_row(seq, stored, ids))
                trajectories.append(blob_row(seq, stored.run.trajectory))
        counts, update = add_counts(self._counts, runs)
        statements = [
            Statement("INSERT INTO names VALUES (?, ?, ?)", new),
            Statement("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", runs),
            update,
            Statement("INSERT INTO trajectories VALUES (?, ?, ?)", trajectories),
            Statement("INSERT INTO events VALUES (?, ?, ?, ?)", events),
            Statement("INSERT INTO remarks VALUES (?, ?, ?) ON CONFLICT DO NOTHING", conflicts),
            keep_status(status, last + len(batch)),
        ]
        self._database.write([s for s in statements if s.rows], last + len(batch))
        self._ids.update({row[1].decode(): row[0] for row in new})
        self._counts += counts

    def _number_names(
        self, batch: Sequence[StoredEvent | StoredRun]
    ) -> tuple[dict[str, int], list[tuple[int, bytes, int]]]:
        """Return the numbers of all names in these runs, and table rows for new names."""
        ids: dict[str, int] = {}
        new: list[tuple[int, bytes, int]] = []
        for stored in batch:
            for name in stored.run[:2] if isinstance(stored, StoredRun) else ():
                if name not in ids:
                    number = self._ids.get(name)
                    if number is None:
                        number = len(self._ids) + len(new) + 1
                        new.append(blob_row(number, name.encode()))
                    ids[name] = number
        return ids, new

    def _split_conflicts(
        self, batch: Sequence[StoredEvent | StoredRun]
    ) -> tuple[list[StoredEvent | StoredRun], list[tuple[Any, ...]]]:
        """Return the new events, and rows for duplicate runs that differ from stored ones."""
        fresh: list[StoredEvent | StoredRun] = []
        seen: dict[RunId, tuple[int, StoredRun]] = {}
        conflicts: list[tuple[Any, ...]] = []
        for stored in batch:
            if isinstance(stored, StoredRun):
                first = seen.get(stored.key) or self._find_run(stored.key)
                if first is not None:
                    if first[1].run != stored.run:
                        conflicts.append(blob_row(first[0], to_json(stored.event()).encode()))
                    continue
                seen[stored.key] = (self._database.head.last + len(fresh) + 1, stored)
            fresh.append(stored)
        return fresh, conflicts

    def _find_run(self, key: RunId) -> tuple[int, StoredRun] | None:
        """Return the event number and content of a stored run; None if it is not stored."""
        return self.attempts(key.algorithm, [key.instance]).get(key)
