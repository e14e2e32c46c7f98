"""Decoding of a range of events from the rows of several tables, with damaged rows described."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from polarbear._text import format_count, format_list
from polarbear.errors import StoreError
from polarbear.racing.events import Event, Started
from polarbear.store.database import Database
from polarbear.store.rows import (
    Head,
    check_run_event,
    decode_event,
    decode_name,
    decode_run_facts,
    decode_run_row,
)

EVENTS = "SELECT seq, kind, body, crc FROM events WHERE seq BETWEEN ? AND ? ORDER BY seq"
EVENTS_OF_KIND = "SELECT seq, kind, body, crc FROM events WHERE kind = ?"
RUN = (
    "SELECT r.seq, r.kind, r.algorithm, r.instance, r.repetition, r.status, r.until, "
    "r.improvements, r.crc, t.data, t.crc FROM runs r LEFT JOIN trajectories t ON t.seq = r.seq "
)
RUNS = RUN + "WHERE r.seq BETWEEN ? AND ? ORDER BY r.seq"

RUN_FACTS = (
    "SELECT seq, kind, algorithm, instance, repetition, status, until, improvements, crc "
    "FROM runs WHERE seq BETWEEN ? AND ? ORDER BY seq"
)

FACTS_CHUNK = 10_000
"""The number of events that are read at a time without trajectories."""

Rows = Iterable[tuple[Any, ...]]


def decode_rows(
    low: int,
    high: int,
    event_rows: Rows,
    run_rows: Rows,
    names: Mapping[int, str],
    *,
    arrays: bool = False,
) -> tuple[dict[int, Event], dict[int, str]]:
    """Return the intact events from ``low`` to ``high`` by number, and the defects of the others.

    ``arrays``: times and values of runs become arrays.
    """
    decoded: dict[int, Event | str] = {row[0]: decode_event(row) for row in event_rows}
    for row in run_rows:
        stored = decode_run_row(row, names)
        is_duplicate = row[0] in decoded
        event = stored if isinstance(stored, str) else check_run_event(stored, arrays=arrays)
        decoded[row[0]] = "is there twice" if is_duplicate else event
    events: dict[int, Event] = {}
    damage: dict[int, str] = {}
    for seq in range(low, high + 1):
        event = decoded.get(seq, "is missing")
        if isinstance(event, str):
            damage[seq] = event
        elif isinstance(event, Started) != (seq == 1):
            damage[seq] = "is out of place: only the first event may start the race"
        else:
            events[seq] = event
    return events, damage


def read_without_trajectories(database: Database, last: int, after: int = 0) -> Iterator[Event]:
    """Yield the events after a number up to another, with runs that lack their trajectories."""
    rows = database.query("SELECT id, name, crc FROM names")
    names = {row[0]: name for row in rows if (name := decode_name(*row)) is not None}
    for low in range(after + 1, last + 1, FACTS_CHUNK):
        high = min(low + FACTS_CHUNK - 1, last)
        events: dict[int, Event | str] = {
            row[0]: decode_event(row) for row in database.query(EVENTS, low, high)
        }
        for row in database.query(RUN_FACTS, low, high):
            stored = decode_run_facts(row, names)
            events[row[0]] = stored if isinstance(stored, str) else stored.event()
        for seq in range(low, high + 1):
            event = events.get(seq, "is missing")
            if isinstance(event, str):
                raise StoreError(describe_damage(database.name, {seq: event}))
            yield event


def read_head(rows: Sequence[Sequence[Any]], name: str) -> Head:
    """Return the head from the first columns of a row; raise an error if it is damaged."""
    head = Head(*rows[0][:4]) if rows else None
    if head is None or not head.is_intact:
        raise StoreError(
            f"{name}: the row with the number of the last event is damaged; {advise_repair(name)}"
        )
    return head


def advise_repair(name: str) -> str:
    """Return a sentence on how to repair a damaged store."""
    if name.startswith("postgres"):
        return "restore it from a backup of the server"
    return f"`polarbear repair {name} repaired.db` copies what is intact"


def describe_damage(name: str, damage: Mapping[int, str]) -> str:
    """Return a message that lists the damaged events of a store, and how to repair it."""
    first = [f"event {seq} {what}" for seq, what in damage.items()]
    rows = format_count(len(damage), "damaged row")
    return f"{name}: {rows}: {format_list(first, 4)}; {advise_repair(name)}"
