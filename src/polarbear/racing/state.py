"""``State``: everything that the next step of a race depends on; ``apply`` alone changes it.

1. An algorithm is either racing, eliminated or removed.
2. A pair of racing algorithms is *open* at the times at which its relation is not known. It closes
   time by time and stays closed, until one of the two comes back or the question changes.
3. *Wanted* runs are those that were requested and have not arrived. A round is decided when all
   of its runs have arrived, from the runs requested up to that round. Plans depend only on
   decisions and requests, so the order in which runs arrive has no effect.
4. The first run with a given id counts; later ones with the same id are ignored.
5. A requested run is charged up to its horizon, and after its round for the time that it took. An
   extension is charged from its start, or for what it adds in a replay.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from polarbear.data.names import natural_sort_key
from polarbear.data.run import FAILED, Direction, Run, Status
from polarbear.racing.budget import Budget
from polarbear.racing.decisions import Assessed, Eliminated, Forecast, Pair
from polarbear.racing.events import (
    Added,
    Asked,
    Continued,
    Decided,
    Ended,
    Event,
    Extended,
    Failed,
    Hosted,
    Identified,
    Imported,
    Offered,
    Removed,
    Report,
    Started,
    Superseded,
    Told,
    Withdrawn,
)
from polarbear.racing.extended_runs import map_extensions
from polarbear.racing.failures import Reasons, add_failure, withdraw_failures
from polarbear.racing.jobs import Job, RunId, derive_seed, key_of
from polarbear.racing.ledger import Limit, Spent, Trial, has_value
from polarbear.racing.model import Model
from polarbear.racing.questions.question import Entries, Question, View
from polarbear.racing.run_sets import PairSet, RunIdSet


class PendingRun(NamedTuple):
    """A requested run whose round is undecided, with its result once it has arrived.

    ``before`` is the time until which the algorithm had been observed on the instance when this
    run was requested. ``until`` and ``status`` are None until the run arrives.
    """

    horizon: float
    before: float = 0.0
    until: float | None = None
    status: Status | None = None
    has_value: bool = False

    @property
    def failed(self) -> bool:
        """Whether the run has arrived, and failed."""
        return self.status in FAILED


class DecisionInput(NamedTuple):
    """The runs that a decision uses: those of some algorithms, up to and including a round."""

    round: int
    algorithms: tuple[str, ...]


@dataclass
class State:
    """The state of a race: algorithms, undecided pairs, instances, runs, costs and decisions."""

    seed: int
    times: tuple[float, ...]
    direction: Direction
    clock: str
    endless: bool
    question: Question
    budget: Budget
    batch: int
    model: Model = field(default_factory=Model)
    continues: bool = False  # an extended run continues, and costs what is added

    racing: set[str] = field(default_factory=set)
    eliminated: dict[str, Eliminated] = field(default_factory=dict)
    removed: dict[str, str] = field(default_factory=dict)  # algorithm: reason
    assessed: dict[str, Assessed] = field(default_factory=dict)  # at the last decision
    chosen: tuple[str, ...] = ()  # by the preference, at the last decision
    screened: bool = False  # the last decision used a screening fit with few draws
    open: dict[Pair, int] = field(default_factory=dict)  # bit t is set: unknown at time t
    need: dict[Pair, float] = field(default_factory=dict)  # expected further instances
    horizons: dict[str, float] = field(default_factory=dict)  # of the algorithms to run next
    given_up: bool = False  # the instances left are not expected to settle any pair
    forecast: Forecast | None = None
    entries: Entries = field(default_factory=Entries)

    pool: dict[str, None] = field(default_factory=dict)  # unused instances, in drawing order
    used: dict[str, int] = field(default_factory=dict)  # used instance: its place in `order`
    order: list[str] = field(default_factory=list)  # used instances, in order of use
    # By instance and algorithm: the time until which the algorithm was or will be observed.
    observed_until: dict[str, dict[str, float]] = field(default_factory=dict)
    backlog: dict[str, int] = field(default_factory=dict)  # instances used before it joined
    next_cached: Counter[str] = field(default_factory=Counter)  # place in `order` to consider next

    arrived: RunIdSet = field(default_factory=RunIdSet)  # including withdrawn runs
    n_runs: Counter[str] = field(default_factory=Counter)  # by algorithm, without withdrawn runs
    failed: RunIdSet = field(default_factory=RunIdSet)  # by their status, or with a reason
    n_answered: int = 0  # requested runs that arrived
    answered_time: float = 0.0  # their total time
    wanted: dict[RunId, Job] = field(default_factory=dict)
    ever_requested: RunIdSet = field(default_factory=RunIdSet)  # including cancelled runs
    limits: dict[str, Limit] = field(default_factory=dict)
    on_trial: dict[str, Trial] = field(default_factory=dict)  # newcomers in their first batch
    requested_by: dict[str, Spent] = field(default_factory=dict)  # requested runs, by algorithm
    requested_runs: int = 0
    requested_time: float = 0.0
    # The runs of each round that is not decided yet.
    pending_rounds: dict[int, dict[RunId, PendingRun]] = field(default_factory=dict)
    asked: int = 0  # number of rounds requested
    superseded: RunIdSet = field(default_factory=RunIdSet)  # retried after a failure, or cancelled
    withdrawn: RunIdSet = field(default_factory=RunIdSet)  # arrived, and excluded from then on
    dropped: set[str] = field(default_factory=set)  # instances excluded from further runs
    failed_out: set[str] = field(default_factory=set)  # removed after too many failed runs
    extends: dict[RunId, int] = field(default_factory=dict)  # the repetition that a run extends
    not_extendable: PairSet = field(default_factory=PairSet)  # algorithm, instance
    failures: Counter[str] = field(default_factory=Counter)  # failed runs of decided rounds

    workers: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)  # details: number
    identity: Identified = field(default_factory=Identified)  # fingerprints behind the names
    reasons: Reasons = field(default_factory=dict)  # why runs failed, by algorithm
    ended: str | None = None  # why the race requests no further runs

    round: int = 0  # number of decisions
    n_rounds: int = 0  # the same without decisions made again with all draws
    news: bool = False  # something changed that no decision has used yet
    decision_input: DecisionInput | None = None  # of the last decision

    @property
    def spent(self) -> Spent:
        """The number of runs that were made, and their total time."""
        return Spent(self.n_answered, self.answered_time)

    @property
    def requested(self) -> Spent:
        """The number of all requested runs and their total time, on which limits are set."""
        return Spent(self.requested_runs, self.requested_time)

    @property
    def left(self) -> int | None:
        """The number of unused instances; None if instances are generated without end."""
        return None if self.endless else len(self.pool)

    @property
    def current(self) -> int:
        """The number of the round that is decided next."""
        return min(self.pending_rounds, default=self.asked)

    @property
    def complete(self) -> bool:
        """Whether all runs of the current round have arrived."""
        return not any(key in self.wanted for key in self.pending_rounds.get(self.current, ()))

    def view(self) -> View:
        """Return what the question may know of the race when a round is decided."""
        weights = [weight for _, weight in self.model.weights]
        members = self.present()
        return View(
            members=members,
            times=self.times,
            open=self.open,
            batch=self.batch,
            budget=self.budget,
            entries=self.entries,
            heaviest=max([1.0, *weights]) if weights else None,
            exhausted=frozenset(name for name in members if self.has_reached_limit(name)),
            n_used=len(self.order),
            n_unused=float("inf") if self.endless else len(self.pool),
        )

    @property
    def n_algorithms(self) -> int:
        """The number of all algorithms: racing, eliminated and removed."""
        return len(self.racing) + len(self.eliminated) + len(self.removed)

    @property
    def resolved(self) -> bool:
        """Whether the relation of each pair of algorithms is decided with sufficient certainty."""
        return not self.open and not self.news and self.obstacle is None

    @property
    def obstacle(self) -> str | None:
        """Why nothing can be decided, such as a baseline that does not race; None if it can."""
        return self.question.find_obstacle(self.racing, self.removed)

    @property
    def instances(self) -> set[str]:
        """The used and unused instances of the race, without dropped ones."""
        return {*self.pool, *self.used} - self.dropped

    def round_of(self, key: RunId) -> int:
        """Return the number of the first round whose decision uses a run that arrives now."""
        rounds = [round_ for round_, pending in self.pending_rounds.items() if key in pending]
        return rounds[0] if rounds else self.current

    def failing(self) -> Counter[str]:
        """Count each algorithm's failed runs, in decided rounds and in the current one."""
        now = self.pending_rounds.get(self.current, {})
        return self.failures + Counter(key.algorithm for key, run in now.items() if run.failed)

    def present(self) -> tuple[str, ...]:
        """Return the racing algorithms in their canonical order."""
        return tuple(sorted(self.racing, key=natural_sort_key))

    def rated(self) -> tuple[str, ...]:
        """Return the algorithms that a decision's posterior includes, in their canonical order."""
        if not self.question.rates_eliminated:
            return self.present()
        return tuple(sorted({*self.racing, *self.eliminated}, key=natural_sort_key))

    def charged_from(self, extends: int | None, before: float) -> float:
        """Return the time from which a run is charged, observed ``before`` until that time."""
        return before if self.continues and extends is not None else 0.0

    def has_reached_limit(self, algorithm: str) -> bool:
        """Return whether an algorithm's own limits allow no further run, however short."""
        runs, time = self.requested_by.get(algorithm, Spent(0, 0.0))
        limit = self.limits.get(algorithm, Limit())
        return not limit.allows(Spent(runs + 1, time + self.times[0]))

    def rivals(self) -> dict[str, dict[str, int]]:
        """Return the undecided rivals of each algorithm, and the undecided times of each pair.

        The algorithms are in canonical order, and times are bits.
        """
        rivals: dict[str, dict[str, int]] = {}
        for (a, b), times in self.open.items():
            rivals.setdefault(a, {})[b] = times
            rivals.setdefault(b, {})[a] = times
        return {name: rivals[name] for name in self.present() if name in rivals}


def start_state(event: Started) -> State:
    """Return the state of a race that has just started."""
    return State(
        event.seed,
        event.times,
        event.direction,
        event.clock,
        event.endless,
        event.question,
        event.budget,
        event.budget.batch[0],
        event.model,
        event.continues,
    )


def apply(state: State, event: Event) -> None:
    """Change the state by an event; no other function changes a state."""
    if isinstance(event, Told):  # first, because there are most of these
        _receive(state, event.run)
        return
    if not isinstance(event, Report):
        state.ended = None
    match event:
        case Started():
            raise ValueError("an event Started can only be the first event of a race")
        case Extended(question, budget):
            _extend(state, question, budget)
        case Identified():
            state.identity = state.identity.updated(event)
        case Offered(instances):
            fresh = {*state.pool, *instances} - state.used.keys()
            state.dropped.difference_update(instances)
            # Sort by a number that depends on the name alone, so that the drawing order does not
            # depend on the order of offers.
            order = sorted(fresh, key=lambda name: (derive_seed(state.seed, ["draw", name]), name))
            state.pool = dict.fromkeys(order)
        case Added(algorithm, max_runs, max_time, trial):
            _enter(state, algorithm)
            state.on_trial |= {algorithm: Trial()} if trial else {}
            state.limits[algorithm] = Limit(max_runs, max_time)
            state.failures[algorithm] = 0
            if state.question.focuses:  # the paper's batch rule ignores entries
                state.batch = state.budget.batch[0]
        case Removed(algorithm, why):
            _remove(state, algorithm, why)
        case Asked(jobs):
            state.asked = max(state.asked, event.round + 1)
            state.extends |= map_extensions(jobs)
            for job in jobs:
                _add_pending_run(state, job, event.round)
            state.news = True
        case Imported(run):
            _receive(state, run)
            state.news = True
        case Continued(key, extends):
            state.extends[key] = extends
        case Superseded(key):
            _cancel_pending_runs(state, [key], -1)
            state.superseded.add(key)
        case Hosted(worker, _, details):
            if details:
                state.workers[tuple(details.items())] = worker
        case Withdrawn():
            _withdraw(state, event)
        case Failed():
            add_failure(state.reasons, event)
            state.failed.add(event.key)
        case Ended(why):
            state.ended = why
        case Decided():
            _decide(state, event)


def _enter(state: State, algorithm: str) -> None:
    """Let an algorithm take part in the race, with its relation to all others undecided."""
    fresh = state.question.undecided({*state.racing, algorithm}, len(state.times))
    state.open |= {names: times for names, times in fresh.items() if algorithm in names}
    came_back = state.eliminated.pop(algorithm, None) or algorithm in state.removed
    state.removed.pop(algorithm, None)
    state.failed_out.discard(algorithm)
    state.racing.add(algorithm)
    state.backlog[algorithm] = len(state.order)
    state.entries.add(algorithm, state.racing, is_late=state.round > 0)
    _clear_forecasts(state)
    state.next_cached[algorithm] = 0
    # An algorithm that returns is assessed on its earlier runs before it runs again.
    state.news |= bool(came_back)


def _leave(state: State, algorithm: str, current: int) -> None:
    """End an algorithm's part in the race: drop its undecided pairs and cancel its pending runs."""
    state.racing.discard(algorithm)
    state.open = {names: times for names, times in state.open.items() if algorithm not in names}
    state.horizons.pop(algorithm, None)
    state.on_trial.pop(algorithm, None)
    keys = [
        key
        for pending in state.pending_rounds.values()
        for key in pending
        if key.algorithm == algorithm
    ]
    _cancel_pending_runs(state, keys, current)


def _remove(state: State, algorithm: str, why: str) -> None:
    """Remove an algorithm; those that it eliminated return, because its runs count no more."""
    # The statuses of the others were assessed relative to this algorithm.
    state.news |= algorithm in state.racing and bool(state.assessed)
    most = state.budget.failures
    if most is not None and state.failing()[algorithm] > most:
        state.failed_out.add(algorithm)
    _leave(state, algorithm, state.current)
    state.eliminated.pop(algorithm, None)
    state.removed[algorithm] = why
    for name in [name for name, one in state.eliminated.items() if one.by == algorithm]:
        _enter(state, name)


def _cancel_pending_runs(state: State, keys: list[RunId], current: int) -> None:
    """Cancel pending runs; those of rounds after ``current`` will affect no decision.

    Runs of rounds after ``current`` never count, because a decision must not depend on which of
    them have arrived. Runs of the current round count, whether they arrive earlier or later.
    """
    for round_, pending in list(state.pending_rounds.items()):
        for key in [key for key in keys if key in pending]:
            run = pending.pop(key)
            state.wanted.pop(key, None)
            _restore_observed_until(state, key, run)
            if round_ > current:
                state.superseded.add(key)
            elif run.status is not None:
                _settle_run(state, key, run)
        if not pending:
            del state.pending_rounds[round_]


def _extend(state: State, question: Question, budget: Budget) -> None:
    """Change the question or the budget, and open the pairs that may be decided differently."""
    before, state.question, state.budget = state.question, question, budget
    state.batch = budget.batch[0]
    if question == before:
        return
    for name, eliminated in list(state.eliminated.items()):
        if not question.keeps_elimination(before, eliminated.probability):
            _enter(state, name)
    _reopen(state)


def _reopen(state: State) -> None:
    """Make all pairs of racing algorithms undecided at all times."""
    state.open = state.question.undecided(state.racing, len(state.times))
    _clear_forecasts(state)
    state.need.clear()
    state.next_cached.clear()  # instances that were uninformative may be informative now
    state.news = state.n_runs.total() > 0


def _withdraw(state: State, event: Withdrawn) -> None:
    """Exclude withdrawn runs, and make all pairs of algorithms undecided again.

    A fit uses all runs together, so any decision may depend on the excluded ones. Eliminated
    algorithms return; those that the other runs eliminate are eliminated again before any new run.
    """
    pairs = set(event.pairs)
    keys = [key for runs in state.pending_rounds.values() for key in runs if key[:2] in pairs]
    _cancel_pending_runs(state, keys, -1)
    excluded = {key for key in state.arrived if key[:2] in pairs}
    state.n_runs -= Counter(key.algorithm for key in excluded - state.withdrawn)
    state.withdrawn |= excluded
    state.failed -= excluded
    state.superseded |= excluded
    state.not_extendable -= pairs
    for algorithm, instance in pairs:
        state.observed_until.get(instance, {}).pop(algorithm, None)
        state.failures[algorithm] = 0
    withdraw_failures(state.reasons, pairs)
    # A solver without counted runs may be replaced by other code under the same name.
    solvers = {
        name: fingerprints
        for name, fingerprints in state.identity.solvers.items()
        if state.n_runs[name]
    }
    state.identity = replace(state.identity, solvers=solvers)
    if not state.endless:
        state.dropped.update(event.instances)
    for instance in event.instances:
        state.pool.pop(instance, None)
    returning = state.failed_out & {algorithm for algorithm, _ in pairs}
    for name in [*state.eliminated, *sorted(returning, key=natural_sort_key)]:
        _enter(state, name)
    _reopen(state)


def _clear_forecasts(state: State) -> None:
    """Discard forecasts and statuses, because the undecided pairs have changed."""
    state.horizons.clear()
    state.given_up = False
    state.forecast = None
    state.assessed.clear()


def _add_pending_run(state: State, job: Job, round_: int) -> None:
    """Add a requested run to its round, and charge its time up to its planned end."""
    _mark_used(state, job.instance)
    pending, key = state.pending_rounds.setdefault(round_, {}), job.key
    observed = state.observed_until[job.instance]
    before = observed.get(job.algorithm, 0.0)
    earlier = (key._replace(repetition=k) for k in reversed(range(job.repetition)))
    retried = next((one for one in earlier if one in pending), None) if job.repetition else None
    if retried is not None:  # it failed, and this run replaces it
        failed = pending.pop(retried)
        before = failed.before
        state.superseded.add(retried)
        state.requested_time += (failed.until or 0.0) - failed.horizon
    state.wanted[key] = job
    state.ever_requested.add(key)
    state.requested_runs += 1
    cost = job.horizon - state.charged_from(job.extends, before)
    state.requested_time += cost
    runs, time = state.requested_by.get(job.algorithm, Spent(0, 0.0))
    state.requested_by[job.algorithm] = Spent(runs + 1, time + cost)
    pending[key] = PendingRun(job.horizon, before)
    observed[job.algorithm] = job.horizon
    following = state.used[job.instance] + 1
    state.next_cached[job.algorithm] = max(state.next_cached[job.algorithm], following)


def _receive(state: State, run: Run) -> None:
    """Add a run that has arrived, requested or imported, to the state."""
    key = key_of(run)
    pending = next((runs for runs in state.pending_rounds.values() if key in runs), {})
    if key not in state.arrived:
        state.arrived.add(key)
        state.n_runs[key.algorithm] += 1
        if key in state.ever_requested:
            before = pending[key].before if key in pending else 0.0
            state.n_answered += 1
            state.answered_time += run.until - state.charged_from(state.extends.get(key), before)
        if run.status in FAILED:
            state.failed.add(key)
    state.wanted.pop(key, None)
    if key in pending:
        result = {"until": run.until, "status": run.status, "has_value": has_value(run)}
        pending[key] = pending[key]._replace(**result)
    elif key not in state.superseded:
        _mark_used(state, run.instance)
        _raise_observed_until(state, key, run.until, run.status)


def _settle_run(state: State, key: RunId, run: PendingRun) -> None:
    """Charge a run of a decided round for its actual time, and count it if it failed."""
    if run.until is None or run.status is None:
        raise ValueError(
            "this round cannot be decided: some of its runs have not arrived; pass them to tell()"
        )
    state.requested_time += run.until - run.horizon
    state.failures[key.algorithm] += run.failed
    trial = state.on_trial.pop(key.algorithm, None)
    if trial is not None and trial.n_runs + 1 < state.budget.batch[0]:
        state.on_trial[key.algorithm] = trial.after(run.has_value and not run.failed)
    if run.until < run.horizon:
        state.not_extendable.add((key.algorithm, key.instance))
    _raise_observed_until(state, key, run.until, run.status)


def _raise_observed_until(state: State, key: RunId, until: float, status: Status) -> None:
    """Record that an algorithm was observed on an instance until a later time than before.

    A run that was not cut has ended, so nothing later can be observed: the time is infinite.
    """
    until = until if status == Status.CUT else float("inf")
    observed = state.observed_until[key.instance]
    observed[key.algorithm] = max(until, observed.get(key.algorithm, 0.0))


def _restore_observed_until(state: State, key: RunId, run: PendingRun) -> None:
    """Reset until when an algorithm was observed to its value before a cancelled request."""
    observed = state.observed_until[key.instance]
    observed.pop(key.algorithm, None)
    if run.before:
        observed[key.algorithm] = run.before


def _mark_used(state: State, instance: str) -> None:
    """Move an instance from the unused to the used ones, unless it was used before."""
    if instance not in state.used:
        state.pool.pop(instance, None)
        state.used[instance] = len(state.order)
        state.order.append(instance)
        state.observed_until[instance] = {}


def _decide(state: State, event: Decided) -> None:
    """Apply a decision to the state: eliminations, undecided pairs, forecasts, next batch size."""
    state.decision_input = DecisionInput(event.round, state.rated())
    state.n_rounds += not state.screened or state.news or event.round in state.pending_rounds
    state.asked = max(state.asked, event.round + 1)  # runs that arrive later are of the next round
    for key, run in state.pending_rounds.pop(event.round, {}).items():
        _restore_observed_until(state, key, run)
        _settle_run(state, key, run)
    decision = event.decision
    for elimination in decision.eliminated:
        _leave(state, elimination.algorithm, event.round)
        state.eliminated[elimination.algorithm] = elimination
    state.open = {(pair.first, pair.second): pair.times for pair in decision.open}
    state.need = {(pair.first, pair.second): pair.need for pair in decision.open}
    state.horizons, state.given_up = dict(decision.horizons), decision.given_up
    state.forecast = decision.forecast
    state.screened, state.chosen = event.screening, decision.chosen
    if decision.assessed or not decision.problems:
        state.assessed = {status.algorithm: status for status in decision.assessed}
    state.batch = decision.batch
    state.round += 1
    if not state.open:
        keys = [key for pending in state.pending_rounds.values() for key in pending]
        _cancel_pending_runs(state, keys, event.round)
    state.news = bool(state.pending_rounds)
