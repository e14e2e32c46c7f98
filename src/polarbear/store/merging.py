"""``merge``: the runs of races at several sites in one store."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from polarbear._text import format_count
from polarbear.data.names import natural_sort_key
from polarbear.data.run import Run, Status
from polarbear.errors import StoreError
from polarbear.racing.events import (
    Added,
    Asked,
    Continued,
    Event,
    Failed,
    Hosted,
    Identified,
    Imported,
    Offered,
    Removed,
    Started,
    Superseded,
    Told,
)
from polarbear.racing.extended_runs import effective_runs, extensions
from polarbear.racing.jobs import Key, key_of
from polarbear.racing.state import FAILED
from polarbear.store.log import CHUNK, Remark, Store
from polarbear.store.opening import open_store

Where = str | PathLike[str]
Details = tuple[tuple[str, str], ...]


class Merged(NamedTuple):
    """What a merge added.

    ``runs``: how many runs were added, or are known for longer now. ``conflicts``: the runs that
    were there already with another outcome, and were left out.

    >>> print(Merged(12, 3, ()))
    12 runs added, 3 runs known already, 0 of them with another outcome
    """

    runs: int
    known: int
    conflicts: tuple[Remark, ...]

    def __str__(self) -> str:
        return (
            f"{format_count(self.runs, 'run')} added, {format_count(self.known, 'run')} known "
            f"already, {len(self.conflicts):,} of them with another outcome"
        )


def merge(sources: Iterable[Where], target: Where) -> Merged:
    """Put the runs of several stores into one, as runs that were there before it asked.

    The races must have the same times, direction and clock. A run (algorithm, instance,
    repetition) counts once, as long as any site has watched it; if two sites report it
    differently, the first one stays and the other is a conflict. Merging twice is merging once.

    Parameters
    ----------
    sources
        The stores to read; they may be in use.
    target
        A new store, which takes seed and rules of the first source, or the store of a race. Who
        takes part at any site takes part in it, and the next ``ask`` decides by all runs.

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
            raise StoreError("there is nothing to merge")
        into = stack.enter_context(open_store(target))
        _check([*([into] if into.n_events else []), *stores])
        identity = _identity(into, stores)
        if not into.n_events:
            into.append([_started(stores[0])])
        there = len(into.remarks())
        into.append([*_who(into, stores), *_offers(into, stores), *identity])
        given, added = map(sum, zip(*(_copy(source, into) for source in stores), strict=True))
        return Merged(added, given - added, tuple(into.remarks()[there:]))


def _check(stores: list[Store]) -> None:
    """Refuse races whose runs cannot be compared."""
    first, *others = ((store.name, _started(store)) for store in stores)
    for name, begun in others:
        for what in ("times", "direction", "clock", "endless"):
            if getattr(begun, what) != getattr(first[1], what):
                raise StoreError(
                    f"{name} cannot be merged with {first[0]}: their {what} differ "
                    f"({_short(getattr(begun, what))} and {_short(getattr(first[1], what))})"
                )
        if begun.endless and begun.seed != first[1].seed:
            raise StoreError(
                f"{name} cannot be merged with {first[0]}: their instances are made from the seeds "
                f"of the races, which differ ({begun.seed} and {first[1].seed})"
            )


def _identity(into: Store, stores: list[Store]) -> list[Identified]:
    """What names stand for somewhere, and is not known here; sites must mean the same files."""
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


def _short(value: object) -> str:
    said = repr(value)
    return said if len(said) <= 40 else f"{said[:37]}..."


def _started(store: Store) -> Started:
    first = next(store.read(), None)
    if not isinstance(first, Started):
        raise StoreError(f"{store.name} holds no race yet")
    return first


def _who(into: Store, stores: list[Store]) -> Iterator[Event]:
    """Those who take part somewhere, and not here yet; who left everywhere, leaves here too."""
    own = into.status()
    here = {*own.racing, *own.eliminated, *own.removed}
    seen = [store.status() for store in stores]
    present = {name for site in seen for name in (*site.racing, *site.eliminated)}
    gone = {name for site in seen for name in site.removed} - present
    for name in sorted((present | gone) - here, key=natural_sort_key):
        yield Added(name)
        if name in gone:
            yield Removed(name, "removed at every site")


def _offers(into: Store, stores: list[Store]) -> list[Event]:
    """The instances that are offered somewhere, and not here yet."""

    def offered(store: Store) -> set[str]:
        return {name for event in store.of_kind(Offered) for name in event.instances}

    new = set().union(*map(offered, stores)) - offered(into)
    return [Offered(tuple(sorted(new, key=natural_sort_key)))] if new else []


def _copy(source: Store, into: Store) -> tuple[int, int]:
    """Copy the runs: how many there are, and how many of them told something new."""
    given = added = 0
    known, runs, notes = _Attempts(into), _counting_runs(source), _Notes(source, into)
    while some := list(islice(runs, CHUNK)):
        events, refused = _compare(some, into, known)
        into.append([*events, *notes.of([e.run for e in events if isinstance(e, Imported)])])
        into.add_remarks(refused)
        given += len(some)
        added += sum(isinstance(event, Imported) for event in events)
    return given, added


class _Notes:
    """What a site knows about its runs: why they failed, and which process made them."""

    def __init__(self, source: Store, into: Store) -> None:
        self._failed = {(*event.key[:2], event.status): event for event in source.of_kind(Failed)}
        origins = source.origins()
        workers = {number: tuple(own.items()) for number, own in origins.workers.items()}
        self._made_by = {key[:2]: workers[n] for key, n in origins.worker_of.items()}
        there = into.origins().workers
        self._numbers: dict[Details, int] = {tuple(own.items()): n for n, own in there.items()}

    def of(self, runs: Iterable[Run]) -> Iterator[Event]:
        """The events about these runs, under the numbers of the target."""
        made: defaultdict[Details, list[Key]] = defaultdict(list)
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


class _Attempts:
    """What a store says about several attempts at one run."""

    def __init__(self, store: Store) -> None:
        jobs = [job for event in store.of_kind(Asked) for job in event.jobs if job.repetition]
        replaced = store.of_kind(Superseded)
        links = {event.key: event.extends for event in store.of_kind(Continued)}
        self.extends = extensions(jobs) | links
        self.superseded = {event.key for event in replaced}
        self._last = {event.key._replace(repetition=event.by) for event in replaced}
        self.pairs = {key[:2] for key in (*(job.key for job in jobs), *self._last)}
        """Algorithms and instances with more than one attempt."""

    def counting(self, events: Iterable[Told | Imported]) -> dict[int, Run]:
        """Of all runs of an algorithm on an instance, those that count, by their number.

        Of runs that the race asked for only the last attempt counts, as number 0; runs that were
        loaded have numbers of their own. The runs have the repetition of their first attempt.
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


def _counting_runs(source: Store) -> Iterator[Run]:
    """The runs of a store that count, each once, with the number that it counts under."""
    attempts = _Attempts(source)
    several: defaultdict[tuple[str, str], list[Told | Imported]] = defaultdict(list)
    gone = source.withdrawn()
    for seq, event in enumerate(source.read(), 1):
        if isinstance(event, Told | Imported):
            pair = event.run.algorithm, event.run.instance
            if seq < gone.get(pair, 0):
                continue
            if pair in attempts.pairs:
                several[pair].append(event)
            else:
                yield event.run
    for own in several.values():
        for number, run in attempts.counting(own).items():
            yield run._replace(repetition=number)


def _compare(runs: list[Run], into: Store, attempts: _Attempts) -> tuple[list[Event], list[Remark]]:
    """What these runs add to a store, and those that contradict what is there."""
    instances: defaultdict[str, set[str]] = defaultdict(set)
    for run in runs:
        instances[run.algorithm].add(run.instance)
    there: defaultdict[tuple[str, str], dict[Key, tuple[int, Told | Imported]]] = defaultdict(dict)
    for algorithm, some in instances.items():
        for key, (seq, packed) in into.attempts(algorithm, some).items():
            there[key[0], key[1]][key] = seq, packed.event()
    events: list[Event] = []
    refused: list[Remark] = []
    for run in runs:
        own = there[run.algorithm, run.instance]
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
            refused.append(Remark(seq, Imported(run)))
        elif run.until > earlier.until or earlier.status == Status.CUT != run.status:
            link = Continued(key_of(run)._replace(repetition=free), earlier.repetition)
            attempts.extends[link.key] = link.extends
            events += [link, Imported(run._replace(repetition=free))]
    return events, refused


def _agree(one: Run, other: Run) -> bool:
    """Whether two reports of a run say the same, as long as both watched it.

    Where a race is split over sites, one of them may have needed to see more of a run.
    """
    brief, whole = sorted((one, other), key=lambda run: run.until)
    time, value = np.asarray(whole.time), np.asarray(whole.value)
    seen = np.searchsorted(time, brief.until, side="right")
    same = np.array_equal(brief.time, time[:seen]) and np.array_equal(brief.value, value[:seen])
    if brief.until == whole.until:
        return same and (Status.CUT in (brief.status, whole.status) or brief.status == whole.status)
    # An extension may fail before the end of what was known: the time of a failure says little.
    failed = brief.status == whole.status and brief.status in FAILED
    return same and (brief.status == Status.CUT or failed)
