"""``Snapshots``: the latest report and status of a store that another process writes."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from polarbear.data.rankings import Rankings
from polarbear.inference.posterior import Posterior
from polarbear.live.pace import Pace
from polarbear.live.status_document import describe_race_now, get_stage, read_cells
from polarbear.racing.model import Model
from polarbear.racing.race import Race
from polarbear.reporting.content import make_document
from polarbear.reporting.page import render_document
from polarbear.store.opening import open_store
from polarbear.store.postgres import DEFAULT_RACE
from polarbear.store.restoring import restore_race

MIN_INTERVAL_SECONDS = 1.0
"""The least time between two reports, and between two statuses."""

MAX_CPU_SHARE = 0.2
"""The share of one core that each of both may use; the rest is for the race."""


MAX_ROUNDS_KEPT = 60
"""The most rounds whose leaders are kept; of more, every second one is forgotten."""

T = TypeVar("T")


class Latest(Generic[T]):
    """The latest result of a function, safe for several threads.

    The function is called again after ``MIN_INTERVAL_SECONDS``, or later if it takes long: then the
    interval grows with its time, so that at most ``MAX_CPU_SHARE`` is used.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._making = threading.Lock()
        self._last: tuple[T] | None = None
        self._next = 0.0

    def get(self) -> T:
        """Return the latest result; raise the error of the function, if it raised one."""
        last = self._last
        if last is not None and time.monotonic() < self._next:
            return last[0]
        # While a result is made, other threads get the previous one; only for the first they wait.
        if not self._making.acquire(blocking=last is None):
            return last[0] if last else self.get()
        try:
            if self._last is None or time.monotonic() >= self._next:
                self._last = (self._call(),)
            return self._last[0]
        finally:
            self._making.release()

    def _call(self) -> T:
        start = time.monotonic()
        try:
            return self._make()
        finally:
            end = time.monotonic()
            self._next = end + max(MIN_INTERVAL_SECONDS, (end - start) * (1 / MAX_CPU_SHARE - 1))


@dataclass(frozen=True)
class Snapshot:
    """The report of a store after a number of events: its data and its page."""

    events: int
    data: bytes
    page: bytes


class _Round(NamedTuple):
    """Who led after a round, at each time, and how surely."""

    runs: int
    leaders: list[str]
    probability: list[float]


class Snapshots:
    """The latest report and status of a store that another process writes.

    1. The store is opened for reading and closed again, which does not block its writer.
    2. The posterior is fitted again only after a new decision of the race.
    3. The status takes a few rows, so that a page can ask for it every second.
    """

    def __init__(self, store: str, *, title: str | None = None) -> None:
        self._store, self._title = store, title
        self._reports: Latest[Snapshot] = Latest(lambda: self._make())
        self._statuses: Latest[bytes] = Latest(self._make_status)
        self._last: Snapshot | None = None
        self._fitted: tuple[Any, Posterior] | None = None
        self._model = Model()
        self._rounds: dict[int, _Round] = {}
        self._pace = Pace()
        self._last_event: tuple[int, float | None] | None = None

    @property
    def name(self) -> str:
        """The name of the store without its path, because browsers need not know the path."""
        return _name_of_store(self._store)

    def latest(self) -> Snapshot:
        """Return the latest report; raise an error if the store cannot be read."""
        return self._reports.get()

    def status(self) -> bytes:
        """Return the latest status as JSON; raise an error if the store cannot be read."""
        return self._statuses.get()

    def _make(self) -> Snapshot:
        """Return a new report, or the last one if the store has no new events."""
        with open_store(self._store, read_only=True) as store:
            events = store.n_events
            if self._last is not None and self._last.events == events:
                return self._last
            started = store.started()
            self._model = started.model
            question = replace(started.question, fit=self._fit)
            race = restore_race(store, question=question)
            content = make_document(race, title=self._title or f"Race {self.name}")
        content["stage"] = get_stage(race.status)
        content["rounds"] = self._list_rounds(race, content["algorithms"])
        data = json.dumps(content, allow_nan=False).encode()
        self._last = Snapshot(events, data, render_document(content, live=True).encode())
        return self._last

    def _make_status(self) -> bytes:
        """Return the status of the race as it is now."""
        with open_store(self._store, read_only=True) as store:
            status, events = store.status(), store.n_events
            cells = read_cells(store, status)
        self._pace.record(time.monotonic(), status.n_runs)
        if self._last_event is None or self._last_event[0] != events:
            first = self._last_event is None
            self._last_event = events, _find_last_writing(self._store) if first else time.time()
        when = self._last_event[1]
        quiet = None if when is None else max(time.time() - when, 0.0)
        now = describe_race_now(status, self._pace, quiet=quiet, cells=cells)
        return json.dumps(now, allow_nan=False).encode()

    def _list_rounds(self, race: Race, names: Sequence[str]) -> list[dict[str, Any]]:
        """Keep who leads after this round; return this for the rounds that were seen."""
        posterior = race.posterior if race.rounds else None
        if posterior is not None:
            best = posterior.prob_best()
            leader = best.argmax(axis=1)
            self._rounds[race.rounds] = _Round(
                race.status.n_runs,
                [posterior.algorithms[code] for code in leader],
                best.max(axis=1).round(3).tolist(),
            )
        if len(self._rounds) > MAX_ROUNDS_KEPT:
            for number in [*self._rounds][1:-1:2]:
                del self._rounds[number]
        code = {name: k for k, name in enumerate(names)}
        return [
            {
                "round": number,
                "runs": one.runs,
                "leader": [code[name] for name in one.leaders],
                "probability": one.probability,
            }
            for number, one in self._rounds.items()
            if code.keys() >= {*one.leaders}
        ]

    def _fit(self, rankings: Rankings, /, *, seed: int) -> Posterior:
        """Return the posterior of rankings as the race fits it; cached for each round."""
        # A withdrawal changes the rankings of the same round.
        key = seed, rankings.algorithms, rankings.instances, rankings.position.tobytes()
        if self._fitted is None or self._fitted[0] != key:
            self._fitted = key, self._model.make_fit()(rankings, seed=seed)
        return self._fitted[1]


def _find_last_writing(store: str) -> float | None:
    """Return when the file of a store was last written; None if there is no file."""
    files = [Path(f"{store}{suffix}") for suffix in ("", "-wal")]
    # A reader makes an empty log beside the file, whose date says nothing about the race.
    facts = [file.stat() for file in files if file.exists()]
    return max((fact.st_mtime for fact in facts if fact.st_size), default=None)


def _name_of_store(name: str) -> str:
    """Return the name of a store without its path, user and password.

    >>> _name_of_store("/home/ann/night.db"), _name_of_store("postgresql://host/races#night")
    ('night.db', 'night')
    >>> _name_of_store("postgresql://ann:secret@host/races")
    'polarbear'
    """
    return unquote(urlsplit(name).fragment) or DEFAULT_RACE if "://" in name else Path(name).name
