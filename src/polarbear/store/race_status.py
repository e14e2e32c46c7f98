"""The status of a race in a store: written with each decision, read without any trajectory.

The row ``status`` holds the status after an event. Runs and failures that came later change numbers
alone, which are read from the counts of runs. If the row is missing, or the race has gone on
without it, the events are replayed, with runs but without their trajectories.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from polarbear._text import escape_text, format_count, format_unit
from polarbear.data.names import natural_sort_key
from polarbear.data.run import FAILED, Status
from polarbear.errors import StoreError
from polarbear.racing.events import UNREADABLE, Failed, Started, explain_misfit
from polarbear.racing.failures import Reasons, add_failure, describe_failures
from polarbear.racing.ledger import Spent
from polarbear.racing.state import State, apply, start_state
from polarbear.racing.status import RaceStatus
from polarbear.store.counting import read_counts
from polarbear.store.database import Database, Statement
from polarbear.store.reading import advise_repair, read_without_trajectories
from polarbear.store.rows import (
    STATUS_OF_CODE,
    blob_row,
    decode_event,
    decode_name,
    describe_holder,
)
from polarbear.store.withdrawing import count_withdrawn, read_withdrawn

REPORTS = frozenset({"failed", "hosted", "identified"})
"""Kinds of events that a status outlasts; so it does runs that were asked for."""


@dataclass(frozen=True)
class StoreFacts:
    """Facts about a store and its runs, which complete the status of its race.

    Attributes
    ----------
    name
        The file, or the URL without user and password.
    run_statuses
        The number of runs of each algorithm by run status, without withdrawn runs.
    n_conflicts
        The number of refused runs: the same run is stored with another outcome.
    n_events, last_event
        The number of events, and the kind of the last one.
    epoch, holder
        How often the store was opened for writing, and the process that did so last.
    n_bytes
        The size of the store.
    """

    name: str
    run_statuses: Mapping[str, Mapping[Status, int]]
    n_conflicts: int
    n_events: int
    last_event: str
    epoch: int
    holder: str
    n_bytes: int


@dataclass(frozen=True, repr=False)
class StoreStatus(RaceStatus):
    """The status of the race in a store, with facts about the store."""

    store: StoreFacts = field(kw_only=True)

    def _list_facts(self) -> Iterator[tuple[str, str]]:
        yield from super()._list_facts()
        store, clock = self.store, self.setup.clock
        unit = f" of {format_unit(clock)}" if format_unit(clock) else ""
        times = f"{self.setup.direction} at {format_count(len(self.setup.times), 'time')}{unit}"
        yield (
            "store",
            f"{escape_text(store.name)}: {format_count(self.n_runs, 'run')} made, {times}",
        )
        yield "model", escape_text(str(self.setup.model))
        pairs, runs = (
            format_count(self.counts.open_pairs, "pair"),
            format_count(self.n_wanted, "run"),
        )
        yield "open", f"{pairs}, {runs} wanted"
        yield "last event", f"{store.n_events:,}: {store.last_event}"
        yield "last writer", f"{store.holder} (epoch {store.epoch})"
        yield "size", f"{store.n_bytes / 1e6:,.1f} MB"
        if store.n_conflicts:
            refused = format_count(store.n_conflicts, "run")
            yield "remarks", f"{refused} came twice with different outcomes"

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *_render_run_table(self.store.run_statuses)])

    __repr__ = __str__


def keep_status(status: RaceStatus | None, last: int) -> Statement:
    """Return the SQL statement that stores a status; it changes nothing if the status is None."""
    sql = (
        "INSERT INTO status VALUES (1, ?, ?, ?) ON CONFLICT (id) "
        "DO UPDATE SET seq = excluded.seq, body = excluded.body, crc = excluded.crc"
    )
    if status is None:
        return Statement(sql, [])
    body = json.dumps(status.to_dict(), allow_nan=False).encode()
    return Statement(sql, [blob_row(last, body)])


def read_status(database: Database) -> StoreStatus:
    """Return the status of the race in a database, with facts about the store."""
    # The row first: what is written meanwhile is then later than the row, and not the reverse.
    rows = database.query("SELECT seq, body, crc FROM status")
    head, counts = read_counts(database)
    names = _Names(database)
    kept = _kept_status(rows[0]) if rows else None
    status = None if kept is None else _updated(database, names, *kept, head.last)
    if status is None:
        status = RaceStatus.of(replay_state(database, head.last))
    gone = read_withdrawn(database) if status.counts.withdrawn else {}
    uncounted = count_withdrawn(database, gone)
    statuses: dict[str, dict[Status, int]] = {}
    for (algorithm, code), number in (counts - uncounted).items():
        statuses.setdefault(names[algorithm], {})[STATUS_OF_CODE[code]] = number
    last = database.query("SELECT kind FROM events WHERE seq = ?", head.last)
    facts = StoreFacts(
        name=database.name,
        run_statuses={name: statuses[name] for name in sorted(statuses, key=natural_sort_key)},
        n_conflicts=int(database.query("SELECT count(*) FROM remarks")[0][0]),
        n_events=head.last,
        last_event=str(last[0][0]) if last else "a run",
        epoch=head.epoch,
        holder=describe_holder(head.holder),
        n_bytes=database.size(),
    )
    made = {name: sum(own.values()) for name, own in facts.run_statuses.items()}
    runs = status.runs._replace(made=made)
    return StoreStatus(**vars(replace(status, runs=runs)), store=facts)


def _kept_status(row: tuple[Any, ...]) -> tuple[int, RaceStatus] | None:
    """Return the event number and status in a table row; None if damaged or of another version."""
    seq, body, crc = row
    try:
        if blob_row(seq, body)[2] != crc:
            return None
        return seq, RaceStatus.from_dict(json.loads(body))
    except UNREADABLE:
        return None


def _updated(
    database: Database, names: "_Names", seq: int, status: RaceStatus, last: int
) -> RaceStatus | None:
    """Return a stored status with later runs added; None if other events came later."""
    sql = "SELECT seq, kind, body, crc FROM events WHERE seq > ? AND seq <= ?"
    later = database.query(sql, seq, last)
    sql = (
        "SELECT algorithm, kind, count(*), sum(until), status FROM runs "
        "WHERE seq > ? AND seq <= ? GROUP BY algorithm, kind, status"
    )
    rows = database.query(sql, seq, last)
    imported = any(row[1] == 1 for row in rows)
    if seq > last or imported or not {row[1] for row in later} <= REPORTS:
        return None
    told: Counter[str] = Counter()
    failed = Counter(status.runs.failed)
    for algorithm, _, number, _, code in rows:
        told[names[algorithm]] += number
        failed[names[algorithm]] += number if STATUS_OF_CODE[code] in FAILED else 0
    answered = told & Counter(status.runs.wanted)
    reasons: Reasons = {}
    why = status.runs.why
    if any(row[1] == "failed" for row in later):
        if status.counts.withdrawn:
            return None
        sql = "SELECT seq, kind, body, crc FROM events WHERE kind = 'failed' AND seq <= ?"
        for row in database.query(f"{sql} ORDER BY seq", last):
            event = decode_event(row)
            if isinstance(event, Failed):
                add_failure(reasons, event)
                failed[event.key.algorithm] += row[0] > seq and event.status not in FAILED
        why = describe_failures(reasons, told + Counter(status.runs.made), status.eliminated)
    spent = Spent(
        status.spent.runs + told.total(), status.spent.time + sum(float(row[3]) for row in rows)
    )
    since_decision = status.counts.since_decision + answered.total()
    runs = status.runs._replace(
        wanted=dict(Counter(status.runs.wanted) - answered),
        failed={name: number for name, number in failed.items() if number},
        why=why,
    )
    counts = status.counts._replace(since_decision=since_decision)
    return replace(status, runs=runs, counts=counts, spent=spent)


def replay_state(database: Database, last: int) -> State:
    """Return the state of the race after all events, with runs that lack trajectories."""
    state: State | None = None
    for event in read_without_trajectories(database, last):
        if state is not None:
            with explain_misfit(event):
                apply(state, event)
        elif isinstance(event, Started):
            state = start_state(event)
        else:
            break
    if state is None:
        raise StoreError(f"{database.name} holds no race yet: start one with this store")
    return state


class _Names(dict[int, str]):
    """Names by number, read from the database only when needed, as there may be very many."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __missing__(self, place: int) -> str:
        rows = self._database.query("SELECT id, name, crc FROM names WHERE id = ?", place)
        name = decode_name(*rows[0]) if rows else None
        if name is None:
            raise StoreError(
                f"{self._database.name}: the stored name with number {place} is damaged; "
                f"{advise_repair(self._database.name)}"
            )
        self[place] = name
        return name


def _render_run_table(statuses: Mapping[str, Mapping[Status, int]]) -> list[str]:
    """Return the lines of a table with the number of runs by algorithm and run status."""
    present = {status for counts in statuses.values() for status in counts}
    columns = [status for status in Status if status in present]
    if not columns:
        return []
    width = max(len("runs"), *(len(escape_text(name)) for name in statuses))
    rows = [f"  {'runs':{width}}" + "".join(f"  {status:>13}" for status in columns)]
    for name, counts in statuses.items():
        numbers = "".join(f"  {counts.get(status, 0):>13,}" for status in columns)
        rows.append(f"  {escape_text(name):{width}}{numbers}")
    return rows
