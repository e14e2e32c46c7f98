"""``merge``: combine the runs of several stores in one store."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from polarbear._text import format_count
from polarbear.data.names import natural_sort_key
from polarbear.data.run import FAILED, Run, Status
from polarbear.errors import StoreError
from polarbear.racing.events import (
    Added,
    Continued,
    Event,
    Failed,
    Hosted,
    Identified,
    Imported,
    Offered,
    Removed,
    Superseded,
    Told,
    Withdrawn,
)
from polarbear.racing.extended_runs import effective_runs
from polarbear.racing.jobs import RunId, key_of
from polarbear.store.log import CHUNK, ConflictingRun, Store
from polarbear.store.opening import open_store
from polarbear.store.race_status import replay_state

StorePath = str | PathLike[str]
Details = tuple[tuple[str, str], ...]


class Merged(NamedTuple):
    """The result of a merge: the numbers of runs added, and of runs stored before.

    ``runs``: runs that are new, or extend stored ones. ``known``: runs that were stored already.
    ``conflicts``: runs among these with a different outcome, which were refused.

    >>> print(Merged(12, 3, ()))
    12 runs added, 3 runs known already, 0 of them with another outcome
    """

    runs: int
    known: int
    conflicts: tuple[ConflictingRun, ...]

    def __str__(self) -> str:
        return (
            f"{format_count(self.runs, 'run')} added, {format_count(self.known, 'run')} known "
            f"already, {len(self.conflicts):,} of them with another outcome"
        )


def merge(sources: Iterable[StorePath], target: StorePath) -> Merged:
    """Copy the runs of several stores into one store.

    The races must have the same times, direction and clock. A run (algorithm, instance,
    repetition) counts once, until the latest time at which any store observed it. If two stores
    disagree on a run, the first one stays and the other is a conflict. A second merge of the same
    stores adds nothing.

    Parameters
    ----------
    sources
        The stores to read; other processes may write to them meanwhile.
    target
        A new store, which gets the seed and the rules of the first source, or the store of a race.
        Algorithms of any source take part in it, and the next ``ask`` decides with all runs.

    Examples
    --------
    >>> import tempfile
    >>> from polarbear import Race
    >>> folder = tempfile.TemporaryDirectory()
    >>> sites = [f"{folder.name}/site-{k}.db" for k in (1, 2)]
    >>> for site, names in zip(sites, (["a", "b"], ["b", "c"])):
    ...     with open_store(site) as store:
    ...         store.append(Race(names, [1, 2], direction="minimize").events)
    >>> print(merge(sites, f"{folder.name}/all.db"))
    0 runs added, 0 runs known already, 0 of them with another outcome
    >>> with open_store(f"{folder.name}/all.db") as store:
    ...     Race.from_events(store.read()).pareto
    ('a', 'b', 'c')
    >>> folder.cleanup()
    """
    with ExitStack() as stack:
        stores = [stack.enter_context(open_store(where, read_only=True)) for where in sources]
        if not stores:
            raise StoreError("merge needs at least one source: pass the stores to copy runs from")
        into = stack.enter_context(open_store(target))
        _check_comparable([*([into] if into.n_events else []), *stores])
        identity = _new_identity(into, stores)
        if not into.n_events:
            into.append([stores[0].started()])
        n_conflicts = len(into.conflicts())
        members, offers = _new_members(into, stores), _new_offers(into, stores)
        into.append([*members, *offers, *identity])
        attempts = _SiteAttempts(into)
        copied = (_copy_runs(store, into, attempts) for store in stores)
        given, added = map(sum, zip(*copied, strict=True))
        return Merged(added, given - added, tuple(into.conflicts()[n_conflicts:]))


def _check_comparable(stores: list[Store]) -> None:
    """Raise an error if the runs of these stores cannot be compared with each other."""
    first, *others = ((store.name, store.started()) for store in stores)
    for name, start in others:
        for what in ("times", "direction", "clock", "endless"):
            if getattr(start, what) != getattr(first[1], what):
                raise StoreError(
                    f"{name} cannot be merged with {first[0]}: their {what} differ "
                    f"({_shorten(getattr(start, what))} and {_shorten(getattr(first[1], what))})"
                )
        if start.endless and start.seed != first[1].seed:
            raise StoreError(
                f"{name} cannot be merged with {first[0]}: their instances are made from the seeds "
                f"of the races, which differ ({start.seed} and {first[1].seed})"
            )


def _new_identity(into: Store, stores: list[Store]) -> list[Identified]:
    """Return fingerprints that the store ``into`` lacks; raise an error if an instance differs."""
    known = into.origins().identity if into.n_events else Identified()
    merged, where = known, dict.fromkeys(known.instances, into.name)
    for store in stores:
        own = store.origins().identity
        for name, content in own.instances.items():
            before = merged.instances.get(name) or content
            if before != content and before.startswith("file:"):
                raise StoreError(
                    f"{store.name} cannot be merged with {where[name]}: instance {name!r} is a "
                    "file with another content there"
                )
        where = {**dict.fromkeys(own.instances, store.name), **where}
        merged = own.updated(merged)  # what was known first stays
    new: dict[str, Any] = {
        part: {k: v for k, v in getattr(merged, part).items() if k not in getattr(known, part)}
        for part in ("instances", "solvers", "limits", "aliases")
    }
    return [Identified(**new)] if any(new.values()) else []


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _new_members(into: Store, stores: list[Store]) -> Iterator[Event]:
    """Yield events that add the algorithms which the store ``into`` lacks.

    One that was removed in all stores stays removed.
    """
    own = into.status()
    here = {*own.pareto, *own.eliminated, *own.removed}
    seen = [store.status() for store in stores]
    present = {name for site in seen for name in (*site.pareto, *site.eliminated)}
    gone = {name for site in seen for name in site.removed} - present
    for name in sorted((present | gone) - here, key=natural_sort_key):
        yield Added(name)
        if name in gone:
            yield Removed(name, "removed at every site")


def _new_offers(into: Store, stores: list[Store]) -> list[Event]:
    """Return the event that adds the instances which the store ``into`` lacks."""

    def offered(store: Store) -> set[str]:
        return {name for event in store.of_kind(Offered) for name in event.instances}

    def dropped(store: Store) -> set[str]:
        if not store.of_kind(Withdrawn):  # which takes no time, as a replay of all runs does
            return set()
        return replay_state(store._database, store.n_events).pool.dropped

    new = set().union(*(offered(one) - dropped(one) for one in stores)) - offered(into)
    return [Offered(tuple(sorted(new, key=natural_sort_key)))] if new else []


def _copy_runs(source: Store, into: Store, attempts: "_SiteAttempts") -> tuple[int, int]:
    """Copy runs; return the number of runs in the source, and of those that were new.

    ``attempts``: those of the store ``into``.
    """
    given = added = 0
    runs, notes = _read_counting_runs(source), _RunNotes(source, into)
    while chunk := list(islice(runs, CHUNK)):
        events, conflicts = _compare(chunk, into, attempts)
        into.append([*events, *notes.of([e.run for e in events if isinstance(e, Imported)])])
        into.add_conflicts(conflicts)
        given += len(chunk)
        added += sum(isinstance(event, Imported) for event in events)
    return given, added


class _RunNotes:
    """The reasons why runs of a store failed, and the processes that made its runs."""

    def __init__(self, source: Store, into: Store) -> None:
        self._failed = {(*event.key[:2], event.status): event for event in source.of_kind(Failed)}
        origins = source.origins()
        workers = {number: tuple(own.items()) for number, own in origins.workers.items()}
        self._made_by = {key[:2]: workers[n] for key, n in origins.worker_of.items()}
        there = into.origins().workers
        self._numbers: dict[Details, int] = {tuple(own.items()): n for n, own in there.items()}

    def of(self, runs: Iterable[Run]) -> Iterator[Event]:
        """Yield failure and worker events of these runs, with the target's worker numbers."""
        made: defaultdict[Details, list[RunId]] = defaultdict(list)
        for run in runs:
            failed = self._failed.get((run.algorithm, run.instance, run.status))
            if failed is not None:
                yield Failed(key_of(run), run.status, failed.why, failed.output)
            worker = self._made_by.get((run.algorithm, run.instance))
            if worker is not None:
                made[worker].append(key_of(run))
        for worker, keys in made.items():
            is_new = worker not in self._numbers
            number = self._numbers.setdefault(worker, max(self._numbers.values(), default=0) + 1)
            yield Hosted(number, tuple(keys), dict(worker) if is_new else {})


class _SiteAttempts:
    """Which runs of a store extend or replace which other runs, or count no more."""

    def __init__(self, store: Store) -> None:
        ledger = replay_state(store._database, store.n_events).ledger
        self.extends, self.superseded = ledger.extends, ledger.superseded
        replaced = store.of_kind(Superseded)
        self._last = {event.key._replace(repetition=event.by) for event in replaced}
        again = (key for key in ledger.ever_requested if key.repetition)
        self.pairs = {key[:2] for key in (*again, *self.superseded, *self._last)}
        """The pairs (algorithm, instance) with several attempts, or one that does not count."""

    def counting(self, events: Iterable[Told | Imported]) -> dict[int, Run]:
        """Return the runs of an algorithm on an instance that decisions use, by repetition number.

        Of the runs that the race asked for, only the last attempt counts, as number 0. Imported
        runs have numbers of their own. The runs have the repetition of their first attempt.
        """
        made = {key_of(event.run): event for event in events}
        extends = {key: self.extends[key] for key in made if key in self.extends}
        asked = {key for key, event in made.items() if isinstance(event, Told)} | self._last
        first = {key._replace(repetition=extends.get(key, key.repetition)) for key in asked}
        kept = (e.run for key, e in made.items() if key not in self.superseded)
        runs = {run.repetition: run for run in effective_runs(kept, extends)}
        tried = {k: run for k, run in runs.items() if key_of(run) in first}
        loaded = {k: run for k, run in runs.items() if k not in tried}
        if not tried:
            return loaded
        last = max(tried)
        return {**loaded, last if 0 in loaded else 0: tried[last]}


def _read_counting_runs(source: Store) -> Iterator[Run]:
    """Yield each run of a store that decisions use, once, with its number among repetitions."""
    attempts = _SiteAttempts(source)
    several: defaultdict[tuple[str, str], list[Told | Imported]] = defaultdict(list)
    for event in source.read():
        if isinstance(event, Told | Imported):
            pair = event.run.algorithm, event.run.instance
            if pair in attempts.pairs:
                several[pair].append(event)
            else:
                yield event.run
    for own in several.values():
        for number, run in attempts.counting(own).items():
            yield run._replace(repetition=number)


def _compare(
    runs: list[Run], into: Store, attempts: _SiteAttempts
) -> tuple[list[Event], list[ConflictingRun]]:
    """Return the events that runs add to a store, and the runs that differ from stored ones."""
    instances: defaultdict[str, set[str]] = defaultdict(set)
    for run in runs:
        instances[run.algorithm].add(run.instance)
    stored: defaultdict[tuple[str, str], dict[RunId, tuple[int, Told | Imported]]] = defaultdict(
        dict
    )
    for algorithm, names in instances.items():
        for key, (seq, stored_run) in into.attempts(algorithm, names).items():
            stored[key[0], key[1]][key] = seq, stored_run.event()
    events: list[Event] = []
    conflicts: list[ConflictingRun] = []
    for run in runs:
        own = stored[run.algorithm, run.instance]
        known = attempts.counting(event for _, event in own.values())
        number = run.repetition
        if number not in known and key_of(run) in own:  # an attempt at another run has this number
            number = next((k for k, other in known.items() if _agree(other, run)), -1)
        earlier = known.get(number)
        free = 1 + max((key.repetition for key in own), default=-1)
        if earlier is None:
            events.append(Imported(run if number >= 0 else run._replace(repetition=free)))
        elif not _agree(earlier, run):
            seq = max(seq for seq, event in own.values() if event.run.until == earlier.until)
            conflicts.append(ConflictingRun(seq, Imported(run)))
        elif run.until > earlier.until or earlier.status == Status.CUT != run.status:
            link = Continued(key_of(run)._replace(repetition=free), earlier.repetition)
            attempts.extends[link.key] = link.extends
            events += [link, Imported(run._replace(repetition=free))]
    return events, conflicts


def _agree(one: Run, other: Run) -> bool:
    """Return whether two records of a run are equal up to the time that both observed.

    One of two sites that share a race may have needed to observe a run for longer.
    """
    shorter, longer = sorted((one, other), key=lambda run: run.until)
    time, value = np.asarray(longer.time), np.asarray(longer.value)
    common = np.searchsorted(time, shorter.until, side="right")
    same = bool(
        np.array_equal(shorter.time, time[:common])
        and np.array_equal(shorter.value, value[:common])
    )
    statuses = shorter.status, longer.status
    if shorter.until == longer.until:
        return same and (Status.CUT in statuses or shorter.status == longer.status)
    # An extension may fail before the earlier end, so the time of a failure is not compared.
    failed = shorter.status == longer.status and shorter.status in FAILED
    return same and (shorter.status == Status.CUT or failed)
