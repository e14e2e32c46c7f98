"""What to run next: the next instances, who runs on them and until when, within the limits.

Whoever is in doubt runs on instances that others have run on already before anybody runs on new
ones: there one run is compared with all of them. A newcomer starts with these, and so does one that
was settled for a while and is in doubt again. When instances are used up, runs that ended before
the times in doubt are made again for longer. The paper's allocation has new instances only, and
used ones for newcomers.
"""

from collections.abc import Iterator
from itertools import count, groupby, islice, takewhile
from typing import NamedTuple

from polarbear.racing.events import NO_INSTANCES, Asked
from polarbear.racing.jobs import Job, RunId, job
from polarbear.racing.state import Limit, Spent, State


class PlannedRun(NamedTuple):
    """A run, its horizon, and the repetition that it extends, if it does."""

    key: RunId
    horizon: float
    extends: int | None = None


LONGER = 4
"""A run that is made again is so many times as long: the shorter ones cost little beside it."""


CANDIDATE_LIMITS = "limits of candidates"


def plan(state: State) -> Asked | str:
    """The runs of the next round, or why there is none.

    An algorithm that reached its own limits runs no more, and its rivals do not run for its sake.
    """
    if not state.open:
        return "resolved"
    exhausted: set[str] = set()
    while True:
        rivals = _rivals_without(state, exhausted)
        if not rivals:
            return CANDIDATE_LIMITS
        planned = _plan(state, rivals)
        if isinstance(planned, _Exhausted):
            exhausted.add(planned.algorithm)
        else:
            return planned


class _Exhausted(NamedTuple):
    """An algorithm cannot run once more within its own limits."""

    algorithm: str


def _rivals_without(state: State, exhausted: set[str]) -> dict[str, dict[str, int]]:
    """Return the rivals of each algorithm with an open pair, without some algorithms."""
    kept = {
        name: {rival: times for rival, times in rivals.items() if rival not in exhausted}
        for name, rivals in state.rivals().items()
        if name not in exhausted
    }
    return {name: rivals for name, rivals in kept.items() if rivals}


def _plan(state: State, rivals: dict[str, dict[str, int]]) -> "Asked | str | _Exhausted":
    if state.rules.allocation == "paper":
        wishes = _catching_up(state, rivals) or _fresh(state, rivals)
    else:
        wishes = _cached(state, rivals) or _fresh(state, rivals) or _longer(state, rivals)
    if not wishes:
        return NO_INSTANCES
    return _afford(state, wishes, state.asked)


def again(state: State) -> Asked | None:
    """Runs that failed in this round, to be tried once more."""
    now = state.pending_rounds.get(state.current, {})
    failed = [
        key for key, run in now.items() if run.failed and _tries(state, key) < state.rules.retries
    ]
    failed.sort(key=lambda key: (state.used[key.instance], key))
    wishes = [
        PlannedRun(_after(state, key), now[key].horizon, state.extends.get(key)) for key in failed
    ]
    asked = _afford(state, wishes, state.current) if wishes else None
    return asked if isinstance(asked, Asked) else None


def _tries(state: State, key: RunId) -> int:
    """How often a run was asked for before, and did not count."""
    earlier = (key._replace(repetition=k) for k in reversed(range(key.repetition)))
    replaced, withdrawn = state.superseded, state.withdrawn
    return sum(1 for _ in takewhile(lambda k: k in replaced and k not in withdrawn, earlier))


def _cached(state: State, rivals: dict[str, dict[str, int]]) -> list[PlannedRun]:
    """The next batch of instances that others have run on, for each that has not."""
    wishes: list[PlannedRun] = []
    for name, others in rivals.items():
        ahead = range(state.next_cached[name], len(state.order))
        found = (
            PlannedRun(_next_key(state, name, instance), worth)
            for instance in map(state.order.__getitem__, ahead)
            if name not in state.observed_until[instance]
            and (worth := _worth(state, instance, others)) is not None
        )
        wishes += islice(found, state.batch)
    return sorted(wishes, key=lambda wish: (state.used[wish.key.instance], wish.key))


def _catching_up(state: State, rivals: dict[str, dict[str, int]]) -> list[PlannedRun]:
    """Return the next batch of used instances for each algorithm that joined after their use.

    The paper's rule: others wait meanwhile, and run on new instances only.
    """
    last = _last_open(state, rivals)
    wishes = [
        PlannedRun(_next_key(state, name, instance), last[name])
        for name in rivals
        for instance in islice(_unseen(state, name), state.batch)
    ]
    return sorted(wishes, key=lambda wish: (state.used[wish.key.instance], wish.key))


def _unseen(state: State, name: str) -> Iterator[str]:
    """The instances used before an algorithm joined on which it has not run."""
    before = state.order[state.next_cached[name] : state.backlog.get(name, 0)]
    return (instance for instance in before if name not in state.observed_until[instance])


def _worth(state: State, instance: str, others: dict[str, int]) -> float | None:
    """Until when a run on an instance would tell something about open pairs, if it would."""
    known = state.observed_until[instance]
    until = [
        min(_last(state, times), known[rival]) for rival, times in others.items() if rival in known
    ]
    worth = max(until, default=-1.0)
    return worth if worth >= state.times[0] else None


def _fresh(state: State, rivals: dict[str, dict[str, int]]) -> list[PlannedRun]:
    """New instances for whoever was chosen, or for all in doubt until their last open time.

    If there are none left, those that are new to all of these: only others have run there.
    """
    last = _last_open(state, rivals)
    until = state.horizons if state.horizons and state.horizons.keys() <= last.keys() else last
    if state.endless:
        numbers = map(str, count(len(state.order) + 1))
        new = (name for name in numbers if name not in state.used)
    elif state.rules.allocation == "paper":
        new = state.pool
    else:
        new = state.pool or (
            instance
            for instance in state.order
            if instance not in state.dropped
            and state.observed_until[instance].keys().isdisjoint(until)
        )
    instances = islice(new, state.batch)
    return [
        PlannedRun(_next_key(state, name, instance), until[name])
        for instance in instances
        for name in until
    ]


def _longer(state: State, rivals: dict[str, dict[str, int]]) -> list[PlannedRun]:
    """Runs that ended too early, again, on instances in the order of their use.

    Those that may still settle something, if that was decided.
    """
    if state.given_up:
        return []
    last = _last_open(state, rivals)
    wanted = state.horizons or last
    until = {name: horizon for name, horizon in wanted.items() if name in last}
    out = {
        key[:2] for tickets in state.pending_rounds.values() for key in tickets
    } | state.not_extendable
    found: list[PlannedRun] = []
    batch = state.batch
    for instance in state.order:
        known = state.observed_until[instance]
        short = {
            name
            for name, horizon in until.items()
            if 0 < known.get(name, 0) < horizon and (name, instance) not in out
        }
        # Alone on the rest of an instance it would be compared with nobody.
        names = [
            name
            for name in until
            if name in short
            and any(r in short or known.get(r, 0) > known[name] for r in rivals[name])
        ]
        for name in names:
            horizon = max(until[name], min(LONGER * known[name], last[name]))
            found.append(_again_longer(state, name, instance, horizon))
        batch -= bool(names)
        if not batch:
            break
    return found


def _again_longer(state: State, algorithm: str, instance: str, horizon: float) -> PlannedRun:
    key = _next_key(state, algorithm, instance)
    before = key._replace(repetition=key.repetition - 1)
    if before not in state.told:  # what is known was loaded, with numbers of its own
        return PlannedRun(key, horizon)
    return PlannedRun(key, horizon, state.extends.get(before, before.repetition))


def _last_open(state: State, rivals: dict[str, dict[str, int]]) -> dict[str, float]:
    """The last time at which each is in doubt."""
    return {name: _last(state, max(others.values())) for name, others in rivals.items()}


def _last(state: State, times: int) -> float:
    """The last of the times whose bits are set."""
    return state.times[times.bit_length() - 1]


def _next_key(state: State, algorithm: str, instance: str) -> RunId:
    return _unused(state, RunId(algorithm, instance, 0))


def _after(state: State, key: RunId) -> RunId:
    """The next attempt at a run; other runs may have been loaded under the number after it."""
    return _unused(state, key._replace(repetition=key.repetition + 1))


def _unused(state: State, key: RunId) -> RunId:
    while key in state.told or key in state.superseded:
        key = key._replace(repetition=key.repetition + 1)
    return key


def _afford(state: State, wishes: list[PlannedRun], round_: int) -> "Asked | str | _Exhausted":
    """As many whole instances as the limits allow: half a comparison tells nothing."""
    rules, (runs, time) = state.rules, state.spent
    jobs: list[Job] = []
    spent_on = dict(state.spent_on)
    for _, group in groupby(wishes, key=lambda wish: wish.key.instance):
        batch = list(group)
        for wish in batch:
            name = wish.key.algorithm
            own_runs, own_time = spent_on.get(name, (0, 0.0))
            spent_on[name] = Spent(own_runs + 1, own_time + wish.horizon)
            if not state.limits.get(name, Limit()).allows(spent_on[name]):
                return Asked(tuple(jobs), round_) if jobs else _Exhausted(name)
        runs += len(batch)
        time += sum(wish.horizon for wish in batch)
        if rules.max_runs is not None and runs > rules.max_runs:
            return Asked(tuple(jobs), round_) if jobs else "max_runs"
        if rules.max_time is not None and time > rules.max_time:
            return Asked(tuple(jobs), round_) if jobs else "max_time"
        jobs += [job(state.seed, *wish) for wish in batch]
    return Asked(tuple(jobs), round_)
