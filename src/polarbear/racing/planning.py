"""Plan the runs of the next round: instances, algorithms and horizons, within the limits.

An algorithm with open pairs first runs on instances on which others have run, because one run is
then compared with all of theirs. This concerns algorithms that joined late, and those whose pairs
are open again. New instances follow. When all instances are used, runs that ended before the open
times are extended. The paper's allocation uses new instances only, and used ones for algorithms
that joined late.
"""

from bisect import bisect_right
from collections.abc import Collection
from itertools import count, groupby, islice, takewhile
from typing import NamedTuple

from polarbear.racing.events import NO_INSTANCES, Asked
from polarbear.racing.jobs import Job, RunId, job
from polarbear.racing.ledger import Limit, Spent
from polarbear.racing.state import State


class PlannedRun(NamedTuple):
    """A run to request: its id, its planned end, and the repetition that it extends, if any.

    ``before``: the time until which an extended run was observed.
    """

    key: RunId
    horizon: float
    extends: int | None = None
    before: float = 0.0


def plan(state: State) -> Asked | str:
    """Return the runs of the next round, or the reason why the race requests none.

    An algorithm that has reached its own limits does not run, and its open pairs cause no runs.
    """
    if not state.pairs.open:
        return "resolved"
    names = list(state.members.present())
    while rivals := state.pairs.rivals(names):
        runs = _plan_used(state, rivals) or _plan_new(state, rivals)
        if not runs and state.setup.question.focuses:
            runs = _plan_extensions(state, rivals)
        if not runs:
            return NO_INSTANCES
        asked = _cut_to_limits(state, runs, state.progress.n_asked)
        if not isinstance(asked, _Exhausted):
            return asked
        names.remove(asked.algorithm)
    return "limits of candidates"


class _Exhausted(NamedTuple):
    """An algorithm whose own limits do not allow a further run."""

    algorithm: str


def plan_retries(state: State, failed: Collection[RunId] = ()) -> Asked | None:
    """Return retries of the runs that failed in this round; None if there are none to make.

    ``failed``: runs that failed as well, but have not been told.
    """
    pending = state.progress.pending.get(state.progress.current, {})
    retries, extends = state.setup.budget.retries, state.ledger.extends
    again = [
        PlannedRun(
            key=_next_key(state, *key[:2], key.repetition + 1),
            horizon=run.horizon,
            extends=extends.get(key),
            before=run.before,
        )
        for key, run in pending.items()
        if (run.failed or key in failed) and _count_attempts(state, key) < retries
    ]
    runs = _by_instance(state, again)
    asked = _cut_to_limits(state, runs, state.progress.current) if runs else None
    return asked if isinstance(asked, Asked) else None


def _count_attempts(state: State, key: RunId) -> int:
    """Return how many attempts at a run failed or were cancelled before."""
    earlier = (key._replace(repetition=k) for k in reversed(range(key.repetition)))
    replaced, withdrawn = state.ledger.superseded, state.ledger.withdrawn
    return sum(1 for _ in takewhile(lambda k: k in replaced and k not in withdrawn, earlier))


def _plan_used(state: State, rivals: dict[str, dict[str, int]]) -> list[PlannedRun]:
    """Return runs on used instances on which an algorithm has no run, but a rival has.

    By the paper's rule, these are instances that were used before the algorithm joined: the others
    wait, and run on new instances only.
    """
    focuses, pool, last = state.setup.question.focuses, state.pool, _last_open(state, rivals)
    runs: list[PlannedRun] = []
    for name, others in rivals.items():
        end = len(pool.order) if focuses else pool.backlog.get(name, 0)
        places = range(pool.next_cached[name], end)
        candidates = (
            PlannedRun(_next_key(state, name, instance), horizon)
            for instance in map(pool.order.__getitem__, places)
            if name not in pool.observed_until[instance]
            and instance not in pool.dropped
            and (
                horizon := _informative_horizon(state, instance, others) if focuses else last[name]
            )
            is not None
        )
        runs += islice(candidates, _choose_batch(state, name))
    return _by_instance(state, runs)


def _choose_batch(state: State, name: str) -> int:
    """Return the largest number of runs that an algorithm makes in the next round."""
    trial = state.members.on_trial.get(name)
    if trial is None:
        return state.pairs.batch
    return trial.choose_batch(state.setup.budget.batch[0], state.setup.budget.failures)


def _by_instance(state: State, runs: list[PlannedRun]) -> list[PlannedRun]:
    """Return the runs sorted by the order in which their instances were first used."""
    return sorted(runs, key=lambda run: (state.pool.used[run.key.instance], run.key))


def _informative_horizon(state: State, instance: str, others: dict[str, int]) -> float | None:
    """Return the last undecided time until which a rival was run on an instance, or None."""
    observed = state.pool.observed_until[instance]
    seen = {rival: bisect_right(state.setup.times, observed.get(rival, -1.0)) for rival in others}
    undecided = [times & ((1 << seen[rival]) - 1) for rival, times in others.items()]
    return max((_last_time(state, times) for times in undecided if times), default=None)


def _plan_new(state: State, rivals: dict[str, dict[str, int]]) -> list[PlannedRun]:
    """Return runs on the next batch of unused instances, for algorithms with undecided pairs.

    They run until the last open time. Without new instances, those are used on which only other
    algorithms have run.
    """
    until = _last_open(state, rivals)
    if state.setup.endless:
        numbers = map(str, count(len(state.pool.order) + 1))
        new = (name for name in numbers if name not in state.pool.used)
    elif not state.setup.question.focuses:
        new = state.pool.unused
    else:
        new = state.pool.unused or (
            instance
            for instance in state.pool.order
            if instance not in state.pool.dropped
            and state.pool.observed_until[instance].keys().isdisjoint(until)
        )
    batch = {name: _choose_batch(state, name) for name in until}
    return [
        PlannedRun(_next_key(state, name, instance), until[name])
        for k, instance in enumerate(islice(new, max(batch.values(), default=0)))
        for name in until
        if k < batch[name]
    ]


def _plan_extensions(state: State, rivals: dict[str, dict[str, int]]) -> list[PlannedRun]:
    """Return extensions of runs that ended before the last undecided time, on some instances."""
    until = _last_open(state, rivals)
    pending = {key[:2] for runs in state.progress.pending.values() for key in runs}
    extensions: list[PlannedRun] = []
    batch = state.pairs.batch
    for instance in state.pool.order:
        if instance in state.pool.dropped:
            continue
        observed = state.pool.observed_until[instance]
        short = {
            name
            for name, horizon in until.items()
            if 0 < observed.get(name, 0) < horizon
            and (name, instance) not in pending
            and (name, instance) not in state.pool.not_extendable
        }
        # An extension is compared only with rivals that are extended too, or ran for longer.
        names = [
            name
            for name in until
            if name in short
            and any(
                rival in short or observed.get(rival, 0) > observed[name] for rival in rivals[name]
            )
        ]
        extensions += (_extend_run(state, name, instance, until[name]) for name in names)
        batch -= bool(names)
        if not batch:
            break
    return extensions


def _extend_run(state: State, algorithm: str, instance: str, horizon: float) -> PlannedRun:
    """Return an extension of an algorithm's latest run; a new run if that one was imported."""
    key = _next_key(state, algorithm, instance)
    before = key._replace(repetition=key.repetition - 1)
    if before not in state.ledger.arrived:
        return PlannedRun(key, horizon)
    observed = state.pool.observed_until[instance][algorithm]
    return PlannedRun(key, horizon, state.ledger.extends.get(before, before.repetition), observed)


def _last_open(state: State, rivals: dict[str, dict[str, int]]) -> dict[str, float]:
    """Return for each algorithm the last time at which its relation to a rival is undecided."""
    return {name: _last_time(state, max(others.values())) for name, others in rivals.items()}


def _last_time(state: State, times: int) -> float:
    """Return the last time of the race whose bit is set in the number ``times``."""
    return state.setup.times[times.bit_length() - 1]


def _next_key(state: State, algorithm: str, instance: str, repetition: int = 0) -> RunId:
    """Return the id of the next run of an algorithm on an instance, from a repetition number on."""
    key = RunId(algorithm, instance, repetition)
    while key in state.ledger.arrived or key in state.ledger.superseded:
        key = key._replace(repetition=key.repetition + 1)
    return key


def _cut_to_limits(
    state: State, planned: list[PlannedRun], round_: int
) -> "Asked | str | _Exhausted":
    """Keep planned runs of as many complete instances as fit; if none fits, return the limit.

    Only whole instances are useful: a run without those of its rivals compares nothing.
    """
    budget, requested = state.setup.budget, state.ledger.requested
    jobs: list[Job] = []
    requested_by = dict(state.ledger.requested_by)
    exceeded: str | _Exhausted | None = None
    for _, group in groupby(planned, key=lambda run: run.key.instance):
        runs = list(group)
        for run in runs:
            name = run.key.algorithm
            cost = run.horizon - state.charged_from(run.extends, run.before)
            requested = requested.plus(cost)
            requested_by[name] = requested_by.get(name, Spent()).plus(cost)
            if not state.members.limits.get(name, Limit()).allows(requested_by[name]):
                exceeded = exceeded or _Exhausted(name)
        if not Limit(budget.runs, None).allows(requested):
            exceeded = exceeded or "budget of runs spent"
        if not Limit(None, budget.time).allows(requested):
            exceeded = exceeded or "budget of time spent"
        if exceeded:
            return Asked(tuple(jobs), round_) if jobs else exceeded
        jobs += [job(state.setup.seed, *run[:3]) for run in runs]
    return Asked(tuple(jobs), round_)
