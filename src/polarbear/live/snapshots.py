"""``Snapshots``: the latest report of a store, made again when the store has new events."""

import json
import threading
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from polarbear.data.rankings import Rankings
from polarbear.inference.posterior import Posterior
from polarbear.racing.model import Model
from polarbear.racing.race import Race
from polarbear.reporting.content import make_document
from polarbear.reporting.page import render_document
from polarbear.store.opening import open_store
from polarbear.store.postgres import DEFAULT_RACE

MIN_INTERVAL_SECONDS = 1.0
"""The least time between two readings of the store."""

MAX_CPU_SHARE = 0.2
"""The share of one core that reports may use; the rest is for the race."""


@dataclass(frozen=True)
class Snapshot:
    """The report of a store after a number of events: its data and its page."""

    events: int
    data: bytes
    page: bytes


class Snapshots:
    """The latest report of a store that another process writes; safe for several threads.

    1. The store is opened for reading and closed again, which does not block its writer.
    2. The posterior is fitted again only after a new decision of the race.
    3. The interval grows with the time that a report takes: at most ``MAX_CPU_SHARE`` is used.
    """

    def __init__(self, store: str, *, title: str | None = None) -> None:
        self._store, self._title = store, title
        self._making = threading.Lock()
        self._last: Snapshot | None = None
        self._next = 0.0
        self._fitted: tuple[Any, Posterior] | None = None
        self._model = Model()

    @property
    def name(self) -> str:
        """The name of the store without its path, because browsers need not know the path."""
        return _name_of_store(self._store)

    def latest(self) -> Snapshot:
        """Return the latest report; raise an error if the store cannot be read."""
        last = self._last
        if last is not None and time.monotonic() < self._next:
            return last
        # While a report is made, other threads get the previous one; only for the first they wait.
        if not self._making.acquire(blocking=last is None):
            return last or self.latest()
        try:
            if self._last is None or time.monotonic() >= self._next:
                self._last = self._make()
            return self._last
        finally:
            self._making.release()

    def _make(self) -> Snapshot:
        """Return a new report, or the last one if the store has no new events."""
        start = time.monotonic()
        try:
            with open_store(self._store, read_only=True) as store:
                events = store.n_events
                if self._last is not None and self._last.events == events:
                    return self._last
                started = store.started()
                self._model = started.model
                question = replace(started.question, fit=self._fit)
                race = Race.from_events(store.read(arrays=True), question=question)
            content = make_document(race, title=self._title or f"Race {self.name}")
            content["last_event"] = _format_last_event(self._store, first=self._last is None)
            data = json.dumps(content, allow_nan=False).encode()
            return Snapshot(events, data, render_document(content, live=True).encode())
        finally:
            end = time.monotonic()
            self._next = end + max(MIN_INTERVAL_SECONDS, (end - start) * (1 / MAX_CPU_SHARE - 1))

    def _fit(self, rankings: Rankings, /, *, seed: int) -> Posterior:
        """Return the posterior of rankings as the race fits it; cached for each round."""
        key = (seed, rankings.algorithms)
        if self._fitted is None or self._fitted[0] != key:
            self._fitted = key, self._model.make_fit()(rankings, seed=seed)
        return self._fitted[1]


def _format_last_event(store: str, *, first: bool) -> str:
    """Return when the last event came, as text in UTC.

    It is the present time if the server noticed the event, since it looks every second. Of events
    from before its start, it is the time at which the file was written; "" if there is no file.
    """
    when = time.time()
    if first:
        files = [Path(f"{store}{suffix}") for suffix in ("", "-wal")]
        # A reader makes an empty log beside the file, whose date says nothing about the race.
        facts = [file.stat() for file in files if file.exists()]
        written = [fact.st_mtime for fact in facts if fact.st_size]
        if not written:
            return ""
        when = max(written)
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _name_of_store(name: str) -> str:
    """Return the name of a store without its path, user and password.

    >>> _name_of_store("/home/ann/night.db"), _name_of_store("postgresql://host/races#night")
    ('night.db', 'night')
    >>> _name_of_store("postgresql://ann:secret@host/races")
    'polarbear'
    """
    return unquote(urlsplit(name).fragment) or DEFAULT_RACE if "://" in name else Path(name).name
