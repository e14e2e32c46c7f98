"""From rows to events: every number accounted for, and what is wrong said of the number."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polarbear._text import format_count, format_list
from polarbear.errors import StoreError
from polarbear.racing.events import Event, Started
from polarbear.store.codec import Head, check_run_event, decode_event, decode_run_row

SMALL = "SELECT seq, kind, body, crc FROM events WHERE seq BETWEEN ? AND ?"
KIND = "SELECT seq, kind, body, crc FROM events WHERE kind = ?"
RUN = (
    "SELECT r.seq, r.kind, r.algorithm, r.instance, r.repetition, r.status, r.until, "
    "r.improvements, r.crc, t.data, t.crc FROM runs r LEFT JOIN trajectories t ON t.seq = r.seq "
)
RUNS = RUN + "WHERE r.seq BETWEEN ? AND ?"

Rows = Iterable[tuple[Any, ...]]


def decoded(
    low: int,
    high: int,
    small: Rows,
    runs: Rows,
    names: Mapping[int, str],
    seed: int | None,
    *,
    arrays: bool = False,
) -> tuple[dict[int, Event], dict[int, str]]:
    """The events with these numbers, in order, and what is wrong with those that are not there.

    ``seed`` is the one of the race. ``arrays``: times and values of runs become arrays.
    """
    found: dict[int, Event | str] = {row[0]: decode_event(row, seed) for row in small}
    for row in runs:
        packed = decode_run_row(row, names)
        twice = row[0] in found
        event = packed if isinstance(packed, str) else check_run_event(packed, arrays=arrays)
        found[row[0]] = "is there twice" if twice else event
    events: dict[int, Event] = {}
    damage: dict[int, str] = {}
    for seq in range(low, high + 1):
        event = found.get(seq, "is missing")
        if isinstance(event, str):
            damage[seq] = event
        elif isinstance(event, Started) != (seq == 1):
            damage[seq] = "is out of place: a race starts once"
        else:
            events[seq] = event
    return events, damage


def seed_of(rows: Sequence[Sequence[Any]]) -> int | None:
    """The seed of the race whose first event is in these rows, if it is there and sound."""
    first = decode_event(rows[0], None) if rows else None
    return first.seed if isinstance(first, Started) else None


def head_of(rows: Sequence[Sequence[Any]], name: str) -> Head:
    """The head that rows of a query begin with; an error if there is none, or it is damaged."""
    head = Head(*rows[0][:4]) if rows else None
    if head is None or not head.is_intact:
        raise StoreError(
            f"{name}: the row that says how far the store goes is damaged; {advice(name)}"
        )
    return head


def advice(name: str) -> str:
    """What to do about damage."""
    if name.startswith("postgres"):
        return "restore it from a backup of the server"
    return f"`polarbear salvage {name} repaired.db` copies what is sound"


def said(name: str, damage: Mapping[int, str]) -> str:
    """Which rows are damaged, for people."""
    first = [f"event {seq} {what}" for seq, what in damage.items()]
    rows = format_count(len(damage), "damaged row")
    return f"{name}: {rows}: {format_list(first, 4)}; {advice(name)}"
