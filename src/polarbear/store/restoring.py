"""``restore_race``: the race in a store, from its snapshot if there is one, or from all events."""

import gc
from collections.abc import Collection
from functools import partial
from itertools import chain
from struct import error
from typing import TypeVar

from polarbear.data.run import Run
from polarbear.errors import StoreError
from polarbear.racing.events import UNREADABLE
from polarbear.racing.questions.question import Question
from polarbear.racing.race import Race
from polarbear.racing.snapshot import StoredRuns
from polarbear.store.log import Store
from polarbear.store.opening import open_store

R = TypeVar("R", bound=Race)


def restore_race(store: Store, *, question: Question | None = None, kind: type[R] = Race) -> R:
    """Restore the race in a store, in the state after its last event.

    It is the race that ``Race.from_events(store.read())`` returns, but its events stay in the
    store, and so do the trajectories of its runs until they are needed. All rows are read once,
    with their checksums. ``question`` is as in :meth:`Race.from_events`; ``kind``: the class.

    >>> from polarbear import open_store
    >>> with open_store(":memory:") as store:
    ...     store.append(Race(["CSA", "RS"], [10, 100], direction="minimize").events)
    ...     restore_race(store).pareto
    ('CSA', 'RS')
    """
    last, snapshot = store.verify()
    load, collects = partial(_load_runs, store, last), gc.isenabled()
    gc.disable()  # what is made for each run stays, so looking for garbage is an eighth of the time
    try:
        if snapshot is not None:
            events = chain(store.read_facts(1), store.read_facts(last, after=snapshot.last))
            stored = StoredRuns(load, snapshot.data)
            try:
                return kind.from_events(events, question=question, stored=stored)
            except StoreError:
                raise
            except (*UNREADABLE, error):  # a snapshot that cannot be read is not used
                pass
        events = store.read_facts(last)
        return kind.from_events(events, question=question, stored=StoredRuns(load))
    finally:
        if collects:
            gc.enable()


def _load_runs(store: Store, last: int, instances: Collection[str]) -> list[Run]:
    """Return the runs on some instances up to an event, also after the store was closed."""
    if not store.is_closed:
        return list(store.runs_on(instances, last=last))
    with open_store(store.name, read_only=True) as again:
        return list(again.runs_on(instances, last=last))
