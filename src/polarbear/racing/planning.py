"""What to run next: the next instances, who runs on them and until when, within the limits.

Whoever is in doubt runs on instances that others have run on already before anybody runs on new
ones: there one run is compared with all of them. A newcomer starts with these, and so does one that
was settled for a while and is in doubt again.
"""

from itertools import count, groupby, islice

from polarbear.racing.events import Asked
from polarbear.racing.jobs import Job, Key, job
from polarbear.racing.state import State

Wish = tuple[Key, float]

NO_INSTANCES = "no instances left"


def plan(state: State) -> Asked | str:
    """The runs of the next round, or why there is none."""
    rivals = state.rivals()
    if not rivals:
        return "resolved"
    wishes = _cached(state, rivals) or _fresh(state, rivals)
    if not wishes:
        return NO_INSTANCES
    return _afford(state, wishes, state.asked)


def again(state: State) -> Asked | None:
    """Runs that failed in this round, to be tried once more."""
    now = state.out.get(state.current, {})
    failed = [
        key for key, run in now.items() if run.failed and key.repetition < state.rules.retries
    ]
    failed.sort(key=lambda key: (state.used[key.instance], key))
    wishes = [(key._replace(repetition=key.repetition + 1), now[key].horizon) for key in failed]
    found = _afford(state, wishes, state.current) if wishes else None
    return found if isinstance(found, Asked) else None


def _cached(state: State, rivals: dict[str, dict[str, int]]) -> list[Wish]:
    """The next batch of instances that others have run on, for each that has not."""
    wishes: list[Wish] = []
    for name, others in rivals.items():
        ahead = range(state.cursor[name], len(state.order))
        found = (
            (_next_key(state, name, instance), worth)
            for instance in map(state.order.__getitem__, ahead)
            if name not in state.known[instance]
            and (worth := _worth(state, instance, others)) is not None
        )
        wishes += islice(found, state.batch)
    return sorted(wishes, key=lambda wish: (state.used[wish[0].instance], wish[0]))


def _worth(state: State, instance: str, others: dict[str, int]) -> float | None:
    """Until when a run on an instance would tell something about open pairs, if it would."""
    known = state.known[instance]
    until = [
        min(_last(state, times), known[rival]) for rival, times in others.items() if rival in known
    ]
    worth = max(until, default=-1.0)
    return worth if worth >= state.times[0] else None


def _fresh(state: State, rivals: dict[str, dict[str, int]]) -> list[Wish]:
    """New instances for whoever was chosen, or for all in doubt until their last open time.

    If there are none left, those that are new to all of these: only others have run there.
    """
    until = state.horizons or {
        name: _last(state, max(others.values())) for name, others in rivals.items()
    }
    if state.endless:
        numbers = map(str, count(len(state.order) + 1))
        new = (name for name in numbers if name not in state.used)
    else:
        new = state.pool or (
            instance for instance in state.order if state.known[instance].keys().isdisjoint(until)
        )
    instances = islice(new, state.batch)
    return [
        (_next_key(state, name, instance), until[name]) for instance in instances for name in until
    ]


def _last(state: State, times: int) -> float:
    """The last of the times whose bits are set."""
    return state.times[times.bit_length() - 1]


def _next_key(state: State, algorithm: str, instance: str) -> Key:
    key = Key(algorithm, instance, 0)
    while key in state.told or key in state.superseded:
        key = key._replace(repetition=key.repetition + 1)
    return key


def _afford(state: State, wishes: list[Wish], round_: int) -> Asked | str:
    """As many whole instances as the limits allow: half a comparison tells nothing."""
    rules, (runs, time) = state.rules, state.spent
    jobs: list[Job] = []
    for _, group in groupby(wishes, key=lambda wish: wish[0].instance):
        batch = list(group)
        runs += len(batch)
        time += sum(horizon for _, horizon in batch)
        if rules.max_runs is not None and runs > rules.max_runs:
            return Asked(tuple(jobs), round_) if jobs else "max_runs"
        if rules.max_time is not None and time > rules.max_time:
            return Asked(tuple(jobs), round_) if jobs else "max_time"
        jobs += [job(state.seed, key, horizon) for key, horizon in batch]
    return Asked(tuple(jobs), round_)
