"""``Overview``: where a race stands, from its store, without reading a trajectory."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from polarbear._text import escape_text, format_count, format_list, format_unit
from polarbear.data.names import natural_sort_key
from polarbear.data.run import Direction, Status
from polarbear.errors import StoreError
from polarbear.inference.algorithm_status import AlgorithmStatus
from polarbear.racing.events import (
    Asked,
    Eliminated,
    Ended,
    Event,
    Failed,
    Started,
    Superseded,
    fitting_in,
)
from polarbear.racing.failures import Reasons, add_failure, describe_failures
from polarbear.racing.jobs import Key
from polarbear.racing.standing import statuses_of
from polarbear.racing.state import State, apply, begin
from polarbear.store.codec import STATUS_OF_CODE, decode_event, decode_name, describe_holder
from polarbear.store.counting import read_counts
from polarbear.store.database import Database
from polarbear.store.withdrawing import count_withdrawn, read_withdrawn

_NOBODY = b'"eliminated": []'


MAX_FAILURES = 5_000
"""The number of failures that are looked at, the last ones."""

MAX_STATUS_LINES = 20


@dataclass(frozen=True)
class Overview:
    """Where a race stands.

    Attributes
    ----------
    name
        Of the store.
    direction, clock, times
        What the race is about; ``times`` is how many there are.
    error_bound
        What the certainty of the race bounds, in a few words.
    model
        How the race makes posteriors, in words.
    racing, eliminated, removed
        Who takes part, who is out (by whom, how surely), who left.
    statuses
        The status of every algorithm at the last decision.
    ended
        For each algorithm, how many of its runs ended how.
    rounds, open, wanted
        How often the race has decided, how many pairs are not settled, and how many runs of the
        present round are not in yet.
    withdrawn
        How many runs were withdrawn: they are in the store, and are not counted.
    end, failures
        Why the race ended, if it has; why runs failed, by algorithm.
    events, last
        How many events there are, and of what kind the last one is.
    remarks
        How many runs were refused because the same run was there with another outcome.
    epoch, holder
        How often the store was opened for writing, and by whom last.
    size
        In bytes.

    Examples
    --------
    >>> from polarbear import Race, open_store
    >>> with open_store(":memory:") as store:
    ...     store.append(Race(["a", "b"], [1, 2], direction="minimize").events)
    ...     status = store.status()
    >>> status.racing, status.n_runs, status.events
    (('a', 'b'), 0, 3)
    """

    name: str
    direction: Direction
    clock: str
    times: int
    model: str
    error_bound: str
    racing: tuple[str, ...]
    eliminated: Mapping[str, Eliminated]
    removed: tuple[str, ...]
    statuses: tuple[AlgorithmStatus, ...]
    ended: Mapping[str, Mapping[Status, int]]
    rounds: int
    open: int
    wanted: int
    withdrawn: int
    end: str | None
    failures: Mapping[str, str]
    events: int
    last: str
    remarks: int
    epoch: int
    holder: str
    size: int

    @property
    def n_runs(self) -> int:
        """The number of runs made; one that was extended or made again counts each time."""
        return sum(sum(own.values()) for own in self.ended.values())

    def __str__(self) -> str:
        unit = f" of {format_unit(self.clock)}" if format_unit(self.clock) else ""
        out = [
            f"{escape_text(e.algorithm)} by {escape_text(e.by)}" for e in self.eliminated.values()
        ]
        done = f"{format_count(self.n_runs, 'run')} made, {format_count(self.rounds, 'round')}"
        lines = [
            f"{self.name}: {done}, {self.direction} at {format_count(self.times, 'time')}{unit}",
            f"  model       {escape_text(self.model)}",
            f"  racing      {format_list(self.racing)}",
            f"  eliminated  {format_list(out)}",
            f"  error       {self.error_bound}",
        ]
        if self.rounds:
            lines += [
                f"  {escape_text(one.algorithm)}: {one.brief()}" for one in self._candidates()
            ]
        if self.removed:
            lines.append(f"  removed     {format_list(self.removed)}")
        lines += [
            (
                f"  open        {format_count(self.open, 'pair')}, "
                f"{format_count(self.wanted, 'run')} wanted"
            ),
            *([f"  ended       {escape_text(self.end)}"] if self.end else []),
            *(
                f"  failed      {escape_text(f'{name}: {why}')}"
                for name, why in self.failures.items()
            ),
            f"  last event  {self.events:,}: {self.last}",
            f"  last writer {self.holder} (epoch {self.epoch})",
            f"  size        {self.size / 1e6:,.1f} MB",
        ]
        if self.withdrawn:
            lines.append(
                f"  withdrawn   {format_count(self.withdrawn, 'run')}, which are not counted"
            )
        if self.remarks:
            lines.append(
                f"  remarks     {format_count(self.remarks, 'run')} came twice with different "
                "outcomes"
            )
        return "\n".join([*lines, *self._table()])

    __repr__ = __str__

    def _candidates(self) -> list[AlgorithmStatus]:
        """The status of the first candidates, of whom there may be hundreds."""
        return [one for one in self.statuses if one.is_candidate][:MAX_STATUS_LINES]

    def _table(self) -> list[str]:
        seen = {status for own in self.ended.values() for status in own}
        columns = [status for status in Status if status in seen]
        if not columns:
            return []
        wide = max(len("runs"), *(len(escape_text(name)) for name in self.ended))
        rows = [f"  {'runs':{wide}}" + "".join(f"  {status:>13}" for status in columns)]
        for name, own in self.ended.items():
            numbers = "".join(f"  {own.get(status, 0):>13,}" for status in columns)
            rows.append(f"  {escape_text(name):{wide}}{numbers}")
        return rows


def overview(database: Database) -> Overview:
    """Where the race in a database stands."""
    head, counts = read_counts(database)
    gone = read_withdrawn(database)
    state, since = _state(database, head.last, gone)
    uncounted = count_withdrawn(database, gone)
    names = _Names(database)
    found: dict[str, dict[Status, int]] = {}
    for (algorithm, status), number in counts.items():
        number -= uncounted[algorithm, status]
        if number:
            found.setdefault(names[algorithm], {})[STATUS_OF_CODE[status]] = number
    told = "SELECT algorithm, instance, repetition FROM runs WHERE seq > ? AND seq <= ?"
    later = database.query(told, since, head.last) if state.wanted else ()
    for algorithm, instance, repetition in later:
        state.wanted.pop(Key(names[algorithm], names[instance], repetition), None)
    replaced = "SELECT seq, kind, body, crc FROM events WHERE kind = 'superseded' AND seq <= ?"
    for event in _events(database.name, database.query(replaced, head.last), None).values():
        if isinstance(event, Superseded):
            state.wanted.pop(event.key, None)
    last = database.query("SELECT kind FROM events WHERE seq = ?", head.last)
    return Overview(
        database.name,
        state.direction,
        state.clock,
        len(state.times),
        str(state.model),
        state.rules.error_bound,
        state.present(),
        dict(state.eliminated),
        tuple(sorted(state.removed, key=natural_sort_key)),
        tuple(statuses_of(state)),
        {name: found[name] for name in sorted(found, key=natural_sort_key)},
        state.round,
        len(state.open),
        len(state.wanted),
        uncounted.total(),
        _end(database, head.last),
        _failures(database, head.last, gone, found, state.eliminated),
        head.last,
        str(last[0][0]) if last else "a run",
        int(database.query("SELECT count(*) FROM remarks")[0][0]),
        head.epoch,
        describe_holder(head.holder),
        database.size(),
    )


def _end(database: Database, last: int) -> str | None:
    """Why the race ended, if nothing happened to it since."""
    sql = (
        "SELECT seq, kind, body, crc FROM events WHERE seq <= ? "
        "AND kind NOT IN ('failed', 'hosted', 'identified') ORDER BY seq DESC LIMIT 1"
    )
    events = _events(database.name, database.query(sql, last), None, kind="ended")
    return next((event.why for event in events.values() if isinstance(event, Ended)), None)


def _failures(
    database: Database,
    last: int,
    gone: Mapping[tuple[str, str], int],
    ended: Mapping[str, Mapping[Status, int]],
    eliminated: Collection[str],
) -> dict[str, str]:
    """Why runs failed, by algorithm, among the last failures that count."""
    sql = (
        "SELECT seq, kind, body, crc FROM events WHERE kind = 'failed' AND seq <= ? "
        "ORDER BY seq DESC LIMIT ?"
    )
    failed = _events(database.name, database.query(sql, last, MAX_FAILURES), None)
    reasons: Reasons = {}
    for seq, event in reversed(failed.items()):
        if isinstance(event, Failed) and seq > gone.get(event.key[:2], 0):
            add_failure(reasons, event)
    n_runs = {name: sum(own.values()) for name, own in ended.items()}
    return describe_failures(reasons, n_runs, eliminated)


class _Names(dict[int, str]):
    """Names that are looked up when they are needed: there may be one for every instance."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __missing__(self, place: int) -> str:
        rows = self._database.query("SELECT id, name, crc FROM names WHERE id = ?", place)
        name = decode_name(*rows[0]) if rows else None
        if name is None:
            raise StoreError(f"{self._database.name}: name {place} is damaged")
        self[place] = name
        return name


def _state(database: Database, last: int, gone: Mapping[tuple[str, str], int]) -> tuple[State, int]:
    """The race without its runs, and a number of an event: what is wanted was asked for later."""
    who = (
        "SELECT seq, kind, body, crc FROM events WHERE seq <= ? "
        "AND kind IN ('started', 'extended', 'added', 'removed', 'withdrawn', 'decided') "
        "ORDER BY seq"
    )
    rows = database.query(who, last)
    rounds = [row[0] for row in rows if row[1] == "decided"]
    # Of decisions that eliminated nobody only the last one matters, and there are thousands.
    idle = {row[0] for row in rows if _NOBODY in row[2]} & set(rounds[:-1])
    events = _events(database.name, [row for row in rows if row[0] not in idle], None)
    asked = "SELECT seq, kind, body, crc FROM events WHERE kind = 'asked' AND seq BETWEEN ? AND ?"
    first = events.pop(1, None)
    if not isinstance(first, Started):
        raise StoreError(f"{database.name} holds no race yet")
    state = begin(first)
    for _, event in sorted(events.items()):
        with fitting_in(event):
            apply(state, event)
    state.round = len(rounds)
    # Rounds that overlap were asked for before decisions that did not wait for them.
    since = ([0] * (state.rules.overlap + 1) + rounds)[-1 - state.rules.overlap]
    jobs_since = database.query(asked, since, last) if state.open else []
    for seq, event in _events(database.name, jobs_since, state.seed).items():
        if isinstance(event, Asked) and (state.basis is None or event.round > state.basis.round):
            with fitting_in(event):
                jobs = tuple(
                    job
                    for job in event.jobs
                    if job.algorithm in state.racing and seq > gone.get(job.key[:2], 0)
                )
                apply(state, Asked(jobs, event.round))
    return state, since


def _events(
    name: str, rows: list[tuple[Any, ...]], seed: int | None, kind: str | None = None
) -> dict[int, Event]:
    found: dict[int, Event] = {}
    for row in (row for row in rows if kind in (None, row[1])):
        event = decode_event(row, seed)
        if isinstance(event, str):
            raise StoreError(f"{name}: event {row[0]} {event}")
        found[row[0]] = event
    return found
