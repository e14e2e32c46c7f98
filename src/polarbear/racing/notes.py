"""Events from arguments: entries of algorithms, withdrawals of runs, and who made them.

Names that the caller of a race gives are looked up here: algorithms and the baseline.
"""

from collections.abc import Iterable
from numbers import Real

from polarbear.data.names import check_name, natural_sort_key, suggest_name, to_name
from polarbear.data.runs import Runs
from polarbear.errors import DataError
from polarbear.racing.events import Added, Event, Hosted, Imported, Told, Withdrawn
from polarbear.racing.extended_runs import effective_runs
from polarbear.racing.jobs import RunId, key_of
from polarbear.racing.state import State


def find_algorithm(state: State, algorithm: str) -> str:
    """Return an algorithm's name; raise an error if it is not in this race."""
    name = to_name(algorithm)
    names = [*state.members.racing, *state.members.eliminated, *state.members.removed]
    if name not in names:
        raise DataError(f"no algorithm named {name!r} in this race; {suggest_name(name, names)}")
    return name


def make_entry(
    state: State, algorithm: str, max_runs: int | None, max_time: float | None, trial: bool
) -> Added:
    """Return the event that adds an algorithm; raise an error if it is not a new name."""
    for limit, value in (("max_runs", max_runs), ("max_time", max_time)):
        if value is not None and (not isinstance(value, Real) or float(value) < 0):
            raise DataError(f"{limit}={value!r}: expected a number of at least 0, or None")
    name = check_name(to_name(algorithm))
    if not name:
        raise DataError("the name of an algorithm must not be empty")
    if name in state.members.racing:
        raise DataError(f"{name!r} is racing already, so it cannot be added")
    return Added(name, max_runs, max_time, trial)


def collect_runs(events: Iterable[Event], state: State) -> Runs:
    """Return the runs of a race that decisions use; a run and its extensions are one run."""
    arrived = (event.run for event in events if isinstance(event, Told | Imported))
    runs = (run for run in arrived if key_of(run) not in state.ledger.withdrawn)
    effective = effective_runs(runs, state.ledger.extends)
    return Runs.from_records(effective, direction=state.setup.direction, clock=state.setup.clock)


def make_withdrawal(
    state: State,
    algorithm: str | None,
    instance: str | None,
    pairs: Iterable[tuple[str, str]] | None,
    why: str,
    at: str,
) -> Withdrawn | None:
    """Return the event that withdraws the selected runs; None if no decision would use them.

    If an instance is given alone, the event also excludes it from further runs.
    """
    if algorithm is None and instance is None and pairs is None:
        raise DataError("the runs to withdraw are not given: pass algorithm=, instance= or pairs=")
    if instance is not None and instance not in {*state.pool.unused, *state.pool.used}:
        suggestion = suggest_name(instance, sorted(state.pool.names, key=natural_sort_key))
        raise DataError(f"no instance named {instance!r} in this race; {suggestion}")
    selected = None if pairs is None else set(pairs)
    withdrawn = {
        (key.algorithm, key.instance)
        for key in state.ledger.arrived - state.ledger.withdrawn
        if algorithm in (None, key.algorithm)
        and instance in (None, key.instance)
        and (selected is None or key[:2] in selected)
    }
    is_alone = instance is not None and algorithm is None and selected is None
    dropped = (instance,) if is_alone and instance and instance not in state.pool.dropped else ()
    if not withdrawn and not dropped:
        return None
    return Withdrawn(tuple(sorted(withdrawn)), why, at, dropped)


def make_attribution(
    state: State, runs: Iterable[RunId], worker: Iterable[tuple[str, str]]
) -> Hosted:
    """Return the event that records which worker process made these runs.

    The first event of a worker also holds its details.

    >>> from polarbear import Race
    >>> race = Race(["a", "b"], [1], direction="minimize")
    >>> keys = [job.key for job in race.ask()]
    >>> for key in keys[:2]:
    ...     race.record(make_attribution(race.state, [key], [("host", "node-7")]))
    >>> [(event.worker, event.details) for event in race.events[-2:]]
    [(1, {'host': 'node-7'}), (1, {})]
    """
    details = tuple(worker)
    number = state.ledger.workers.get(details)
    if number is not None:
        return Hosted(number, tuple(runs))
    return Hosted(len(state.ledger.workers) + 1, tuple(runs), dict(details))
