"""Events about runs that were told: which do not count any more, and which process made them."""

from collections.abc import Iterable

from polarbear.data.names import natural_sort_key, suggest_name
from polarbear.errors import DataError
from polarbear.racing.events import Hosted, Withdrawn
from polarbear.racing.jobs import RunId
from polarbear.racing.state import State


def withdrawal(
    state: State,
    algorithm: str | None,
    instance: str | None,
    pairs: Iterable[tuple[str, str]] | None,
    why: str,
    at: str,
) -> Withdrawn | None:
    """The event that withdraws these runs; None if there is nothing to withdraw.

    Of an instance by itself the event says that it is not to be run on again.
    """
    if algorithm is None and instance is None and pairs is None:
        raise DataError("withdraw which runs? pass algorithm=, instance= or pairs=")
    if instance is not None and instance not in {*state.pool, *state.used}:
        meant = suggest_name(instance, sorted(state.instances, key=natural_sort_key))
        raise DataError(f"no instance named {instance!r} in this race; {meant}")
    wanted = None if pairs is None else set(pairs)
    gone = {
        (key.algorithm, key.instance)
        for key in state.told - state.withdrawn
        if algorithm in (None, key.algorithm)
        and instance in (None, key.instance)
        and (wanted is None or key[:2] in wanted)
    }
    alone = instance is not None and algorithm is None and wanted is None
    dropped = (instance,) if alone and instance and instance not in state.dropped else ()
    return Withdrawn(tuple(sorted(gone)), why, at, dropped) if gone or dropped else None


def attribution(state: State, runs: Iterable[RunId], worker: Iterable[tuple[str, str]]) -> Hosted:
    """The event that says which worker process made runs; with its details the first time.

    >>> from polarbear import Race
    >>> race = Race(["a", "b"], [1], direction="minimize")
    >>> keys = [job.key for job in race.ask()]
    >>> for key in keys[:2]:
    ...     race.record(attribution(race.state, [key], [("host", "node-7")]))
    >>> [(event.worker, event.details) for event in race.events[-2:]]
    [(1, {'host': 'node-7'}), (1, {})]
    """
    details = tuple(worker)
    number = state.workers.get(details)
    if number is not None:
        return Hosted(number, tuple(runs))
    return Hosted(len(state.workers) + 1, tuple(runs), dict(details))
