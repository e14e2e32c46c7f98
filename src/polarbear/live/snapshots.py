"""``Snapshots``: the report of a race from its store, made anew when there is something new."""

import json
import threading
import time
from dataclasses import dataclass
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

LEAST = 1.0
"""Seconds between two looks at the store."""

SHARE = 0.2
"""Of one core, so much may go into making reports: the race is to have the rest."""


@dataclass(frozen=True)
class Snapshot:
    """A race after a number of events: the data of the report, and the page itself."""

    events: int
    data: bytes
    page: bytes


class Snapshots:
    """The latest report of a store that somebody else writes; for any number of threads.

    1. The store is opened for reading, looked at, and closed again: nobody waits for this.
    2. A posterior is made when the race has decided something, and else kept.
    3. What took long to make is not made again soon, so that no more than ``SHARE`` goes into it.
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
        """What people call the store: browsers need not know where it is."""
        return _short(self._store)

    def latest(self) -> Snapshot:
        """The report as of now, or as of a moment ago; an error if the store cannot be read."""
        last = self._last
        if last is not None and time.monotonic() < self._next:
            return last
        # Whoever comes while it is made takes the one before; the first ones have to wait.
        if not self._making.acquire(blocking=last is None):
            return last or self.latest()
        try:
            if self._last is None or time.monotonic() >= self._next:
                self._last = self._made()
            return self._last
        finally:
            self._making.release()

    def _made(self) -> Snapshot:
        start = time.monotonic()
        try:
            with open_store(self._store, read_only=True) as store:
                events = store.n_events
                if self._last is not None and self._last.events == events:
                    return self._last
                self._model = store.model
                race = Race.from_events(store.read(arrays=True), fit=self._fit)
            content = make_document(race, title=self._title or f"Race {self.name}")
            data = json.dumps(content, allow_nan=False).encode()
            return Snapshot(events, data, render_document(content, live=True).encode())
        finally:
            end = time.monotonic()
            self._next = end + max(LEAST, (end - start) * (1 / SHARE - 1))

    def _fit(self, rankings: Rankings, /, *, seed: int) -> Posterior:
        """As the race fits; a seed stands for a round, so the same is not fitted twice."""
        key = (seed, rankings.algorithms)
        if self._fitted is None or self._fitted[0] != key:
            self._fitted = key, self._model.make_fit()(rankings, seed=seed)
        return self._fitted[1]


def _short(name: str) -> str:
    """The name of a store without its place, user and password.

    >>> _short("/home/ann/night.db"), _short("postgresql://host/races#night")
    ('night.db', 'night')
    >>> _short("postgresql://ann:secret@host/races")
    'polarbear'
    """
    return unquote(urlsplit(name).fragment) or DEFAULT_RACE if "://" in name else Path(name).name
