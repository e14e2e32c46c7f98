"""``Store``: the events of a race, kept.

1. ``append`` returns when its events are durable, all of them or none.
2. ``read`` gives them in the order in which they were appended, and never more than once: a run
   (algorithm, instance, repetition) is there once, whatever is appended. The first one stays; one
   that says something else is kept beside it as a remark.
3. A store holds one race. Its first event is that it started, and there is no other such event.
4. Nothing is read without its checksum; a gap in the numbers of events is damage too.
"""

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Self, TypeVar

from polarbear.data.run import STATUS_CODES, Run, Status
from polarbear.data.runs import Runs
from polarbear.errors import DataError, StoreError
from polarbear.racing.events import (
    Asked,
    Continued,
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
from polarbear.racing.extended_runs import effective_runs, extensions
from polarbear.racing.jobs import Key
from polarbear.racing.model import Model
from polarbear.store.codec import (
    Head,
    StoredEvent,
    StoredRun,
    blob_row,
    decode_event,
    decode_name,
    decode_run_row,
    encode_event,
    event_row,
    is_start,
    run_row,
)
from polarbear.store.counting import Counts, added, counted
from polarbear.store.database import HEAD, Conflict, Database, Statement
from polarbear.store.origins import Origins
from polarbear.store.overview import Overview, overview
from polarbear.store.reading import KIND, RUN, RUNS, SMALL, advice, decoded, head_of, said, seed_of
from polarbear.store.withdrawing import withdrawn

E = TypeVar("E", bound=Event)

CHUNK = 1024
"""The number of events read at once: no reader holds a transaction, or much memory, for long."""


class Remark(NamedTuple):
    """A run that was appended when another one was there already that says something else.

    ``event``: the number of the event that was kept.

    >>> from polarbear import Race, open_store
    >>> race = Race(["a", "b"], [1], direction="minimize")
    >>> job, *_ = race.ask()
    >>> with open_store(":memory:") as store:
    ...     store.append([*race.events, Told(job.run((1.0,), (7.0,)))])
    ...     store.append([Told(job.run((1.0,), (8.0,)))])       # the same run, another outcome
    ...     [remark.refused.run.value for remark in store.remarks()]
    [(8.0,)]
    """

    event: int
    refused: Told | Imported


class Store:
    """The events of a race in a database. Made by :func:`polarbear.open_store`.

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
        self._doubtful: list[StoredEvent | StoredRun] = []
        try:
            self._ids: dict[str, int] = {}
            self._counts = Counts()
            if not database.read_only:
                self._know()
        except BaseException:
            database.close()
            raise

    def append(self, events: Iterable[Event]) -> None:
        """Keep these events: durable before this returns, all of them or none.

        A run that is there already is not stored again. If this fails, the same call may be made
        again.
        """
        batch = [encode_event(event) for event in events]
        with self._lock:
            self._check_usable()
            if self._database.read_only:
                raise StoreError(f"{self.name} was opened for reading only")
            if not batch:
                return
            fresh = self._without_doubtful(batch)
            try:
                try:
                    self._write(fresh, [])
                except Conflict:
                    self._write(*self._sifted(fresh))
            except Conflict:
                raise StoreError(f"{self.name}: an index is damaged; {advice(self.name)}") from None
            except StoreError:
                self._doubtful = fresh
                raise

    def read(self, *, arrays: bool = False) -> Iterator[Event]:
        """All events in order, as they are when the reading starts.

        ``arrays``: times and values of runs as arrays instead of tuples, which take less than half
        of the memory; such events go into a race like others, but ``==`` cannot compare them.
        """
        last = self.head().last
        names, seed = self._names(), self._seed()
        for low in range(1, last + 1, CHUNK):
            high = min(low + CHUNK - 1, last)
            small, runs = (self._query(sql, low, high) for sql in (SMALL, RUNS))
            events, damage = decoded(low, high, small, runs, names, seed, arrays=arrays)
            if damage:
                raise StoreError(said(self.name, damage))
            yield from events.values()

    def runs(self) -> Runs:
        """All runs as :class:`polarbear.Runs`, also while the race runs.

        One that was extended is one run, as long as it was watched.
        """
        first = self._started()
        kept = self.effective_runs()
        parts: list[Runs] = []
        while (some := list(islice(kept, 64 * CHUNK))) or not parts:
            parts.append(Runs.from_records(some, direction=first.direction, clock=first.clock))
        return Runs.concat(parts)

    @property
    def times(self) -> tuple[float, ...]:
        """The times of the race."""
        return self._started().times

    @property
    def model(self) -> Model:
        """How the race makes posteriors; the default one if that was not recorded."""
        return self._started().model or Model()

    def remarks(self) -> list[Remark]:
        """The runs that were refused because another one was first and differs."""
        found: list[Remark] = []
        for seq, body, crc in self._query("SELECT seq, body, crc FROM remarks ORDER BY seq, crc"):
            if blob_row(seq, body)[2] != crc:
                raise StoreError(f"{self.name}: a remark about event {seq} is damaged")
            event = from_json(body.decode(errors="replace"))
            if not isinstance(event, Told | Imported):
                raise StoreError(f"{self.name}: a remark about event {seq} is not about a run")
            found.append(Remark(seq, event))
        return found

    def status(self) -> Overview:
        """Where the race stands, without reading trajectories."""
        with self._lock:
            self._check_usable()
            return overview(self._database)

    def origins(self) -> Origins:
        """By what programs, under what limits, where and with what software runs were made."""
        return Origins.of(self.of_kind(Identified), self.of_kind(Hosted), self.of_kind(Withdrawn))

    @property
    def name(self) -> str:
        """Where it is."""
        return self._database.name

    @property
    def n_events(self) -> int:
        """How many events there are."""
        return self.head().last

    @property
    def n_instances(self) -> int:
        """On how many instances there are runs that count."""
        gone = self.withdrawn()
        if not gone:
            return int(self._query("SELECT count(DISTINCT instance) FROM runs")[0][0])
        names = self._names()
        rows = self._query("SELECT algorithm, instance, max(seq) FROM runs GROUP BY 1, 2")
        return len({i for a, i, last in rows if last > gone.get((names[a], names[i]), 0)})

    def close(self) -> None:
        """Let others write; closing twice is closing once."""
        if os.getpid() == self._process:  # a child of the process leaves its parent's alone
            self._closed = True
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<store of a race: {self.name}>"

    def _started(self) -> Started:
        first = next(self.read(), None)
        if not isinstance(first, Started):
            raise StoreError(f"{self.name} holds no race yet")
        return first

    # For others of this package

    def head(self) -> Head:
        """How far the store goes, and whose it is."""
        return head_of(self._query(HEAD), self.name)

    def of_kind(self, kind: type[E]) -> list[E]:
        """The events of one kind other than runs."""
        found = self._query(f"{KIND} ORDER BY seq", kind.__name__.lower())
        seed = self._seed()
        events = {row[0]: decode_event(row, seed) for row in found}
        damage = {seq: event for seq, event in events.items() if isinstance(event, str)}
        if damage:
            raise StoreError(said(self.name, damage))
        return [event for event in events.values() if isinstance(event, kind)]

    def extends(self) -> dict[Key, int]:
        """Map each extension to the repetition that it extends."""
        jobs = (job for event in self.of_kind(Asked) for job in event.jobs)
        links = {event.key: event.extends for event in self.of_kind(Continued)}
        return extensions(jobs) | links

    def effective_runs(self) -> Iterator[Run]:
        """The runs one by one, those that were extended at the end."""
        events = self.read(arrays=True)
        next(events, None)  # the race started; how far to read is settled, before jobs are read
        gone = self.withdrawn()
        runs = (
            event.run
            for seq, event in enumerate(events, 2)
            if isinstance(event, Told | Imported)
            and seq > gone.get((event.run.algorithm, event.run.instance), 0)
        )
        yield from effective_runs(runs, self.extends())

    def withdrawn(self) -> dict[tuple[str, str], int]:
        """Map algorithms and instances to the event before which their runs do not count."""
        with self._lock:
            self._check_usable()
            return withdrawn(self._database)

    def pairs(self, since: int = 0, status: Status | None = None) -> set[tuple[str, str]]:
        """Algorithms and instances with a run from an event on, that ended so."""
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
    ) -> dict[Key, tuple[int, StoredRun]]:
        """The runs of an algorithm on some instances, with the numbers of their events."""
        ids = {self._ids[name]: name for name in (algorithm, *instances) if name in self._ids}
        if self._ids.get(algorithm) is None:
            return {}
        marks = ", ".join("?" * len(ids))
        where = f"WHERE r.algorithm = ? AND r.instance IN ({marks})"
        packed: dict[Key, tuple[int, StoredRun]] = {}
        for row in self._query(RUN + where, self._ids[algorithm], *ids):
            run = decode_run_row(row, ids)
            if isinstance(run, str):
                raise StoreError(said(self.name, {row[0]: run}))
            packed[run.key] = row[0], run
        return packed

    def add_remarks(self, refused: Iterable[Remark]) -> None:
        """Keep runs that contradict those that are there, beside them."""
        with self._lock:
            self._check_usable()
            self._write([], [blob_row(event, to_json(run).encode()) for event, run in refused])

    # Inside

    def _seed(self) -> int | None:
        return seed_of(self._query(SMALL, 1, 1))

    def _query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            self._check_usable()
            return self._database.query(sql, *values)

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreError(f"{self.name} was closed")
        if os.getpid() != self._process:
            raise StoreError(
                f"{self.name} was opened by another process (this one is its child); open it here"
            )

    def _without_doubtful(
        self, batch: list[StoredEvent | StoredRun]
    ) -> list[StoredEvent | StoredRun]:
        """What is left to write, if the last attempt failed and may have been written after all."""
        doubtful, self._doubtful = self._doubtful, []
        if not doubtful:
            return batch
        before = self._database.head.last
        try:
            self._database.refresh()
        except StoreError:
            self._doubtful = doubtful
            raise
        self._know()
        written = self._database.head.last > before
        same = batch[: len(doubtful)] == doubtful
        return batch[len(doubtful) :] if written and same else batch

    def _know(self) -> None:
        """What a writer must know: the number of each name, and how many runs there are."""
        ids = {name: place for place, name in self._names().items()}
        rows = self._query("SELECT count(*) FROM names")[0][0]
        if sorted(ids.values()) != list(range(1, rows + 1)):
            raise StoreError(f"{self.name}: the names are damaged; {advice(self.name)}")
        self._ids, self._counts = ids, counted(self._database)[1]

    def _names(self) -> dict[int, str]:
        names: dict[int, str] = {}
        for row in self._query("SELECT id, name, crc FROM names"):
            name = decode_name(*row)
            if name is not None:  # a damaged one is missed by the runs that have it
                names[row[0]] = name
        return names

    def _write(
        self, batch: Sequence[StoredEvent | StoredRun], remarks: Sequence[tuple[Any, ...]]
    ) -> None:
        """Everything in one transaction."""
        if not batch and not remarks:
            return
        last = self._database.head.last
        for seq, packed in enumerate(batch, last + 1):
            if is_start(packed) != (seq == 1):
                what = "begins with a race that started" if seq == 1 else "holds a race already"
                raise DataError(f"{self.name} {what}; one store for each race")
        ids, new = self._interned(batch)
        small, runs, data = [], [], []
        for seq, packed in enumerate(batch, last + 1):
            if isinstance(packed, StoredEvent):
                small.append(event_row(seq, packed))
            else:
                runs.append(run_row(seq, packed, ids))
                data.append(blob_row(seq, packed.run.trajectory))
        counts, keep = added(self._counts, runs)
        statements = [
            Statement("INSERT INTO names VALUES (?, ?, ?)", new),
            Statement("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", runs),
            keep,
            Statement("INSERT INTO trajectories VALUES (?, ?, ?)", data),
            Statement("INSERT INTO events VALUES (?, ?, ?, ?)", small),
            Statement("INSERT INTO remarks VALUES (?, ?, ?) ON CONFLICT DO NOTHING", remarks),
        ]
        self._database.write([s for s in statements if s.rows], last + len(batch))
        self._ids.update({row[1].decode(): row[0] for row in new})
        self._counts += counts

    def _interned(
        self, batch: Sequence[StoredEvent | StoredRun]
    ) -> tuple[dict[str, int], list[tuple[int, bytes, int]]]:
        """The numbers of all names of these runs, and rows for those that are new."""
        ids: dict[str, int] = {}
        new: list[tuple[int, bytes, int]] = []
        for packed in batch:
            for name in packed.run[:2] if isinstance(packed, StoredRun) else ():
                if name not in ids:
                    known = self._ids.get(name)
                    if known is None:
                        known = len(self._ids) + len(new) + 1
                        new.append(blob_row(known, name.encode()))
                    ids[name] = known
        return ids, new

    def _sifted(
        self, batch: Sequence[StoredEvent | StoredRun]
    ) -> tuple[list[StoredEvent | StoredRun], list[tuple[Any, ...]]]:
        """Without the runs that are there already, and remarks about those that differ."""
        fresh: list[StoredEvent | StoredRun] = []
        seen: dict[Any, tuple[int, StoredRun]] = {}
        remarks: list[tuple[Any, ...]] = []
        for packed in batch:
            if isinstance(packed, StoredRun):
                first = seen.get(packed.key) or self._stored(packed)
                if first is not None:
                    if first[1].run != packed.run:
                        remarks.append(blob_row(first[0], to_json(packed.event()).encode()))
                    continue
                seen[packed.key] = (self._database.head.last + len(fresh) + 1, packed)
            fresh.append(packed)
        return fresh, remarks

    def _stored(self, found: StoredRun) -> tuple[int, StoredRun] | None:
        """The number and the content of the run with the same key."""
        algorithm, instance, _ = found.key
        return self.attempts(algorithm, [instance]).get(found.key)
