"""``merge``: the runs of races at several sites in one store."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from os import PathLike
from typing import NamedTuple

from polarbear.data.names import count, natural
from polarbear.errors import StoreError
from polarbear.racing.events import Added, Event, Imported, Offered, Removed, Started, Told
from polarbear.store.log import CHUNK, Remark, Store
from polarbear.store.opening import open_store

Where = str | PathLike[str]


class Merged(NamedTuple):
    """What a merge added.

    ``conflicts``: the runs that were there already with another outcome, and were left out.

    >>> print(Merged(12, 3, ()))
    12 runs added, 3 runs known already, 0 of them with another outcome
    """

    runs: int
    known: int
    conflicts: tuple[Remark, ...]

    def __str__(self) -> str:
        return (
            f"{count(self.runs, 'run')} added, {count(self.known, 'run')} known already, "
            f"{len(self.conflicts):,} of them with another outcome"
        )


def merge(sources: Iterable[Where], target: Where) -> Merged:
    """Put the runs of several stores into one, as runs that were there before it asked.

    The races must have the same times, direction and clock. A run (algorithm, instance,
    repetition) counts once; if two sites report it differently, the first one stays and the other
    is a conflict. Merging twice is merging once.

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
        if not into.n_events:
            into.append([_started(stores[0])])
        before, there = into.n_events, len(into.remarks())
        into.append(came := [*_who(into, stores), *_offers(into, stores)])
        given = sum(_copy(source, into) for source in stores)
        added = into.n_events - before - len(came)
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
    for name in sorted((present | gone) - here, key=natural):
        yield Added(name)
        if name in gone:
            yield Removed(name, "removed at every site")


def _offers(into: Store, stores: list[Store]) -> list[Event]:
    """The instances that are offered somewhere, and not here yet."""

    def offered(store: Store) -> set[str]:
        return {name for event in store.of_kind(Offered) for name in event.instances}

    new = set().union(*map(offered, stores)) - offered(into)
    return [Offered(tuple(sorted(new, key=natural)))] if new else []


def _copy(source: Store, into: Store) -> int:
    """Copy the runs; how many there are."""
    given = 0
    runs = _runs(source)
    while some := list(islice(runs, CHUNK)):
        into.append(some)
        given += len(some)
    return given


def _runs(source: Store) -> Iterator[Event]:
    last = source.retried()
    for event in source.read():
        match event:
            case Told(run):
                # Of a run that was tried again only the last attempt counts, as in its race.
                if run.repetition == last.get((run.algorithm, run.instance), 0):
                    yield Imported(run._replace(repetition=0))
            case Imported():
                yield event
