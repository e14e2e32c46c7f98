"""Where a race stands, and the one function that changes it.

1. A name is racing, eliminated or removed, and nothing else.
2. A pair of racing algorithms is *open* at the times at which its relation is not known. It closes
   time by time and stays closed, until one of the two comes back or the rules change.
3. What is *wanted* are the runs asked for that are still out, round by round. A round is decided
   when all of its runs are in, by what was asked for until then and nothing later; and what is
   planned only knows what was decided and what was asked for. So nothing depends on the order in
   which runs come in, although rounds may overlap.
4. The first run told with a key counts; there is no second one.
5. Whatever was asked for counts as spent: until its horizon, and once its round is decided, as
   long as it took.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from polarbear.data.names import natural_sort_key
from polarbear.data.run import Direction, Run, Status
from polarbear.data.runs import Runs
from polarbear.inference.e_values import multiplicity
from polarbear.racing.events import (
    Added,
    Asked,
    Assessed,
    Continued,
    Decided,
    Eliminated,
    Ended,
    Event,
    Extended,
    Failed,
    Forecast,
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
from polarbear.racing.extended_runs import effective_runs, extensions
from polarbear.racing.failures import Reasons, add_failure, withdraw_failures
from polarbear.racing.jobs import Job, RunId, derive_seed, key_of
from polarbear.racing.model import Model
from polarbear.racing.rules import Rules
from polarbear.selection.preferences import Weights

FAILED = frozenset({Status.CRASHED, Status.KILLED, Status.OUT_OF_MEMORY})
"""How a run ends that failed; one that was out of time did what it could."""

Pair = tuple[str, str]


class Spent(NamedTuple):
    """How many runs, and how long they took together."""

    runs: int
    time: float


class Limit(NamedTuple):
    """How much may be spent on the runs of an algorithm; None: as much as on the others."""

    max_runs: int | None = None
    max_time: float | None = None

    def allows(self, spent: Spent) -> bool:
        """Whether so much may be spent."""
        few = self.max_runs is None or spent.runs <= self.max_runs
        return few and (self.max_time is None or spent.time <= self.max_time)


class PendingRun(NamedTuple):
    """A run of a round that is not decided: its horizon, and once it is told, how it went.

    ``before``: until when the algorithm was known on the instance when this was asked for.
    """

    horizon: float
    before: float = 0.0
    until: float | None = None
    status: Status | None = None

    @property
    def failed(self) -> bool:
        """Whether it was told and failed."""
        return self.status in FAILED


class DecisionInput(NamedTuple):
    """What a decision rests on: runs that count up to a round, of these algorithms."""

    round: int
    algorithms: tuple[str, ...]


@dataclass
class State:
    """Everything that the next step of a race depends on."""

    seed: int
    times: tuple[float, ...]
    direction: Direction
    clock: str
    endless: bool
    rules: Rules
    batch: int
    model: Model = field(default_factory=Model)

    racing: set[str] = field(default_factory=set)
    eliminated: dict[str, Eliminated] = field(default_factory=dict)
    removed: dict[str, str] = field(default_factory=dict)  # and why
    assessed: dict[str, Assessed] = field(default_factory=dict)  # at the last decision
    chosen: tuple[str, ...] = ()  # for a preference, at the last decision
    screened: bool = False  # the last decision rests on few draws
    open: dict[Pair, int] = field(default_factory=dict)  # bit t: not known at time t
    need: dict[Pair, float] = field(default_factory=dict)  # how many more instances, about
    horizons: dict[str, float] = field(default_factory=dict)  # who runs next, if that was decided
    given_up: bool = False  # nothing that instances allow is expected to settle any pair
    outlook: Forecast | None = None
    entries: dict[str, list[int]] = field(default_factory=dict)  # 0 at the start, then 1, 2, ...
    latest_entry: int = 0
    met_at_entry: dict[str, frozenset[str]] = field(default_factory=dict)  # of newcomers

    pool: dict[str, None] = field(default_factory=dict)  # instances to come, in their order
    used: dict[str, int] = field(default_factory=dict)  # instances that were run on: which it was
    order: list[str] = field(default_factory=list)  # the same, in order of use
    # By instance and algorithm: the time until which its runs show how it stands.
    observed_until: dict[str, dict[str, float]] = field(default_factory=dict)
    backlog: dict[str, int] = field(default_factory=dict)  # instances used before it joined
    next_cached: Counter[str] = field(default_factory=Counter)  # where to go on in `order`

    told: set[RunId] = field(default_factory=set)
    n_runs: Counter[str] = field(default_factory=Counter)  # told and not withdrawn, by algorithm
    n_answered: int = 0  # told and asked for
    wanted: dict[RunId, Job] = field(default_factory=dict)
    ever_requested: set[RunId] = field(default_factory=set)  # asked for, ever
    limits: dict[str, Limit] = field(default_factory=dict)
    spent_on: dict[str, Spent] = field(default_factory=dict)  # what was asked for, by algorithm
    spent_runs: int = 0
    spent_time: float = 0.0
    # The runs of each round that is not decided yet.
    pending_rounds: dict[int, dict[RunId, PendingRun]] = field(default_factory=dict)
    asked: int = 0  # rounds asked for
    superseded: set[RunId] = field(default_factory=set)  # failed and asked for again, or cancelled
    withdrawn: set[RunId] = field(default_factory=set)  # told, and not to be counted any more
    dropped: set[str] = field(default_factory=set)  # instances that are not to be run on
    failed_out: set[str] = field(default_factory=set)  # removed, for too many of its runs failed
    extends: dict[RunId, int] = field(default_factory=dict)  # which repetition a run extends
    not_extendable: set[Pair] = field(default_factory=set)  # algorithm, instance: known no longer
    failures: Counter[str] = field(default_factory=Counter)  # runs that failed for good

    workers: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)  # by details
    identity: Identified = field(default_factory=Identified)  # what names stand for
    reasons: Reasons = field(default_factory=dict)  # why runs failed, by algorithm
    ended: str | None = None  # why nothing is asked for any more

    round: int = 0  # how often it was decided
    news: bool = False  # there is something that no decision has taken into account
    basis: DecisionInput | None = None

    @property
    def spent(self) -> Spent:
        """What the runs asked for have cost."""
        return Spent(self.spent_runs, self.spent_time)

    @property
    def left(self) -> int | None:
        """How many instances nobody has run on. None: there is always one more."""
        return None if self.endless else len(self.pool)

    @property
    def current(self) -> int:
        """The round that is decided next; those before it are."""
        return min(self.pending_rounds, default=self.asked)

    @property
    def complete(self) -> bool:
        """Whether all runs of the current round are in."""
        return not any(key in self.wanted for key in self.pending_rounds.get(self.current, ()))

    @property
    def initial(self) -> frozenset[str]:
        """The algorithms that entered before anything was decided."""
        return frozenset(name for name, numbers in self.entries.items() if numbers[0] == 0)

    def multiplicities(self, names: Sequence[str]) -> list[list[float]]:
        """Return K (1 - certainty) of the e-values with which row eliminates column.

        Over all rivals that an algorithm ever meets the reciprocals sum to at most 1; for error
        control of the whole race, so they do over all algorithms as well.
        """
        initial, whole = self.initial, self.rules.error_control == "whole_race"

        def factor(rival: str, algorithm: str) -> float:
            first = self.entries[algorithm][0]
            met = self.met_at_entry[algorithm] if first else initial - {algorithm}
            # Each later entry has a number of its own, so no two rivals have the same one.
            later = 0
            if rival not in met and rival != algorithm:
                later = min(number - first for number in self.entries[rival] if number > first)
            among = multiplicity(len(initial), first) if whole else 1.0
            return multiplicity(len(met), later) * among

        return [[factor(rival, algorithm) for algorithm in names] for rival in names]

    @property
    def heaviest(self) -> float:
        """The largest weight that an instance of the race can have."""
        return max([1.0, *(weight for _, weight in self.model.weights)])

    @property
    def asked_times(self) -> int:
        """The times that the race is about, as bits: all, or those that a preference counts."""
        preference = self.rules.preference
        if isinstance(preference, Weights):
            return sum(1 << t for t, weight in enumerate(preference.values) if weight > 0)
        return (1 << len(self.times)) - 1

    @property
    def n_algorithms(self) -> int:
        """How many there are: who is racing, who is out and who has left."""
        return len(self.racing) + len(self.eliminated) + len(self.removed)

    @property
    def resolved(self) -> bool:
        """Whether the relation of every pair is known, as far as the rules ask for it."""
        return not self.open and not self.news

    @property
    def instances(self) -> set[str]:
        """The instances that may be run on, or were."""
        return {*self.pool, *self.used} - self.dropped

    def round_of(self, key: RunId) -> int:
        """From which round on a run counts that is told now."""
        rounds = [round_ for round_, tickets in self.pending_rounds.items() if key in tickets]
        return rounds[0] if rounds else self.current

    def failing(self) -> Counter[str]:
        """Runs that failed for good, with those of the current round."""
        now = self.pending_rounds.get(self.current, {})
        return self.failures + Counter(key.algorithm for key, run in now.items() if run.failed)

    def present(self) -> tuple[str, ...]:
        """Who is racing, in canonical order."""
        return tuple(sorted(self.racing, key=natural_sort_key))

    def rated(self) -> tuple[str, ...]:
        """Return the algorithms that the posterior of a decision rates, in canonical order."""
        if self.rules.posterior_over == "candidates":
            return self.present()
        return tuple(sorted({*self.racing, *self.eliminated}, key=natural_sort_key))

    def rivals(self) -> dict[str, dict[str, int]]:
        """Of each algorithm with an open pair, in canonical order: with whom, at which times."""
        found: dict[str, dict[str, int]] = {}
        for (a, b), times in self.open.items():
            found.setdefault(a, {})[b] = times
            found.setdefault(b, {})[a] = times
        return {name: found[name] for name in self.present() if name in found}


def begin(event: Started) -> State:
    """The state of a race that begins."""
    return State(
        event.seed,
        event.times,
        event.direction,
        event.clock,
        event.endless,
        event.rules,
        event.rules.batch[0],
        event.model or Model(),
    )


def apply(state: State, event: Event) -> None:
    """Change the state by an event: there is no other way to change it."""
    if not isinstance(event, Report):
        state.ended = None
    match event:
        case Started():
            raise ValueError("a race starts once")
        case Extended(rules):
            _extend(state, rules)
        case Identified():
            state.identity = state.identity.updated(event)
        case Offered(instances):
            fresh = {*state.pool, *instances} - state.used.keys()
            state.dropped.difference_update(instances)
            # By a number that only depends on the name: the same draw however they are offered.
            drawn = sorted(fresh, key=lambda name: (derive_seed(state.seed, ["draw", name]), name))
            state.pool = dict.fromkeys(drawn)
        case Added(algorithm, max_runs, max_time):
            _enter(state, algorithm)
            state.limits[algorithm] = Limit(max_runs, max_time)
            state.failures[algorithm] = 0
            if state.rules.allocation != "paper":  # the paper's batch rule knows no newcomers
                state.batch = state.rules.batch[0]
        case Removed(algorithm, why):
            # What was said of the others was said beside this one.
            state.news |= algorithm in state.racing and bool(state.assessed)
            most = state.rules.max_failures
            if most is not None and state.failing()[algorithm] > most:
                state.failed_out.add(algorithm)
            _leave(state, algorithm, state.current)
            state.eliminated.pop(algorithm, None)
            state.removed[algorithm] = why
        case Asked(jobs):
            state.asked = max(state.asked, event.round + 1)
            state.extends |= extensions(jobs)
            for job in jobs:
                _ask(state, job, event.round)
            state.news = True
        case Told(run):
            _receive(state, run)
        case Imported(run):
            _receive(state, run)
            state.news = True
        case Continued(key, extends):
            state.extends[key] = extends
        case Superseded(key):
            _cancel(state, [key], -1)
            state.superseded.add(key)
        case Hosted(worker, _, details):
            if details:
                state.workers[tuple(details.items())] = worker
        case Withdrawn():
            _withdraw(state, event)
        case Failed():
            add_failure(state.reasons, event)
        case Ended(why):
            state.ended = why
        case Decided():
            _decide(state, event)


def pair(a: str, b: str) -> Pair:
    """Two names in canonical order."""
    return (a, b) if natural_sort_key(a) < natural_sort_key(b) else (b, a)


def _enter(state: State, algorithm: str) -> None:
    everything = state.asked_times
    for rival in state.racing:
        state.open[pair(algorithm, rival)] = everything
    came_back = state.eliminated.pop(algorithm, None) or algorithm in state.removed
    state.removed.pop(algorithm, None)
    state.failed_out.discard(algorithm)
    state.racing.add(algorithm)
    state.backlog[algorithm] = len(state.order)
    numbers = state.entries.setdefault(algorithm, [])
    if state.round and not numbers:
        state.met_at_entry[algorithm] = frozenset(state.racing - {algorithm})
    state.latest_entry += bool(state.round)
    numbers.append(state.latest_entry)
    _look_again(state)
    state.next_cached[algorithm] = 0
    # Whoever comes back is judged by what it has shown already before it runs again.
    state.news |= bool(came_back)


def _leave(state: State, algorithm: str, now: int) -> None:
    state.racing.discard(algorithm)
    state.open = {names: times for names, times in state.open.items() if algorithm not in names}
    state.horizons.pop(algorithm, None)
    keys = [
        key for out in state.pending_rounds.values() for key in out if key.algorithm == algorithm
    ]
    _cancel(state, keys, now)


def _cancel(state: State, keys: list[RunId], now: int) -> None:
    """Nobody waits for these any more.

    Those of rounds after ``now`` may have been told or not, which nothing may depend on: they do
    not count. Of the round of now what was told counts, and what is told later does as well.
    """
    for round_, tickets in list(state.pending_rounds.items()):
        for key in [key for key in keys if key in tickets]:
            ticket = tickets.pop(key)
            state.wanted.pop(key, None)
            _unknow(state, key, ticket)
            if round_ > now:
                state.superseded.add(key)
            elif ticket.status is not None:
                _close(state, key, ticket)
        if not tickets:
            del state.pending_rounds[round_]


def _extend(state: State, rules: Rules) -> None:
    """Ask all questions again that the new rules may answer otherwise."""
    before, state.rules = state.rules, rules
    state.batch = rules.batch[0]
    if rules.questions == before.questions:
        return
    other = rules.error_control != before.error_control or rules.certainty > before.certainty
    for name, eliminated in list(state.eliminated.items()):
        by_posterior = rules.error_control == before.error_control == "per_look"
        if ((eliminated.probability or 0.0) < rules.certainty) if by_posterior else other:
            _enter(state, name)
    _reopen(state)


def _reopen(state: State) -> None:
    """Ask about all pairs at all times again."""
    everything = state.asked_times
    names = state.present()
    state.open = {(a, b): everything for k, a in enumerate(names) for b in names[k + 1 :]}
    _look_again(state)
    state.need.clear()
    state.next_cached.clear()  # instances that told nothing may do so now
    state.news = state.n_runs.total() > 0


def _withdraw(state: State, event: Withdrawn) -> None:
    """Take runs out of account, and decide again whatever they may have decided.

    A fit takes all runs together, so any decision may rest on them. Eliminated algorithms come
    back; those that the other runs still eliminate are out again before anything is run.
    """
    pairs = set(event.pairs)
    pending = [
        key for tickets in state.pending_rounds.values() for key in tickets if key[:2] in pairs
    ]
    _cancel(state, pending, -1)
    keys = {key for key in state.told if key[:2] in pairs}
    state.n_runs -= Counter(key.algorithm for key in keys - state.withdrawn)
    state.withdrawn |= keys
    state.superseded |= keys
    state.not_extendable -= pairs
    for algorithm, instance in pairs:
        state.observed_until.get(instance, {}).pop(algorithm, None)
        state.failures[algorithm] = 0
    withdraw_failures(state.reasons, pairs)
    # Where no run of a solver counts any more, other code may come under its name.
    solvers = {name: own for name, own in state.identity.solvers.items() if state.n_runs[name]}
    state.identity = replace(state.identity, solvers=solvers)
    if not state.endless:
        state.dropped.update(event.instances)
    for instance in event.instances:
        state.pool.pop(instance, None)
    back = state.failed_out & {algorithm for algorithm, _ in pairs}
    for name in [*state.eliminated, *sorted(back, key=natural_sort_key)]:
        _enter(state, name)
    _reopen(state)


def _look_again(state: State) -> None:
    """What was thought to lie ahead was about other questions."""
    state.horizons.clear()
    state.given_up = False
    state.outlook = None
    state.assessed.clear()


def _ask(state: State, job: Job, round_: int) -> None:
    _use(state, job.instance)
    tickets = state.pending_rounds.setdefault(round_, {})
    known = state.observed_until[job.instance].get(job.algorithm, 0.0)
    earlier = (job.key._replace(repetition=k) for k in reversed(range(job.repetition)))
    before = next((key for key in earlier if key in tickets), None)
    if before is not None:  # it failed, and does not count if this one comes in
        failed = tickets.pop(before)
        known = failed.before
        state.superseded.add(before)
        state.spent_time += (failed.until or 0.0) - failed.horizon
    state.wanted[job.key] = job
    state.ever_requested.add(job.key)
    state.spent_runs += 1
    state.spent_time += job.horizon
    runs, spent = state.spent_on.get(job.algorithm, Spent(0, 0.0))
    state.spent_on[job.algorithm] = Spent(runs + 1, spent + job.horizon)
    tickets[job.key] = PendingRun(job.horizon, known)
    state.observed_until[job.instance][job.algorithm] = job.horizon
    behind = state.used[job.instance] + 1
    state.next_cached[job.algorithm] = max(state.next_cached[job.algorithm], behind)


def _receive(state: State, run: Run) -> None:
    key = key_of(run)
    if key not in state.told:
        state.told.add(key)
        state.n_runs[key.algorithm] += 1
        state.n_answered += key in state.ever_requested
    state.wanted.pop(key, None)
    for tickets in state.pending_rounds.values():
        if key in tickets:
            tickets[key] = tickets[key]._replace(until=run.until, status=run.status)
            return
    if key not in state.superseded:
        _use(state, run.instance)
        _know(state, key, run.until, run.status)


def _close(state: State, key: RunId, ticket: PendingRun) -> None:
    """A run that was told counts as it was."""
    if ticket.until is None or ticket.status is None:
        raise ValueError("a round is decided when all of its runs are in")
    state.spent_time += ticket.until - ticket.horizon
    state.failures[key.algorithm] += ticket.failed
    if ticket.until < ticket.horizon:
        state.not_extendable.add((key.algorithm, key.instance))
    _know(state, key, ticket.until, ticket.status)


def _know(state: State, key: RunId, until: float, status: Status) -> None:
    """Until when it is known how an algorithm stands on an instance."""
    until = until if status == Status.CUT else float("inf")
    known = state.observed_until[key.instance]
    known[key.algorithm] = max(until, known.get(key.algorithm, 0.0))


def _unknow(state: State, key: RunId, ticket: PendingRun) -> None:
    """What was known before the run was asked for is known still."""
    known = state.observed_until[key.instance]
    known.pop(key.algorithm, None)
    if ticket.before:
        known[key.algorithm] = ticket.before


def _use(state: State, instance: str) -> None:
    if instance not in state.used:
        state.pool.pop(instance, None)
        state.used[instance] = len(state.order)
        state.order.append(instance)
        state.observed_until[instance] = {}


def _decide(state: State, event: Decided) -> None:
    state.basis = DecisionInput(event.round, state.rated())
    state.asked = max(state.asked, event.round + 1)  # what comes in from now on is of the next
    for key, ticket in state.pending_rounds.pop(event.round, {}).items():
        _unknow(state, key, ticket)
        _close(state, key, ticket)
    for found in event.eliminated:
        _leave(state, found.algorithm, event.round)
        state.eliminated[found.algorithm] = found
    state.open = {(pair.first, pair.second): pair.times for pair in event.open}
    state.need = {(pair.first, pair.second): pair.need for pair in event.open}
    state.horizons, state.given_up = dict(event.horizons), event.given_up
    state.outlook = event.outlook
    state.screened, state.chosen = event.screening, event.chosen
    if event.assessed or not event.problems:
        state.assessed = {one.algorithm: one for one in event.assessed}
    state.batch = event.batch
    state.round += 1
    if not state.open:
        _cancel(state, [key for out in state.pending_rounds.values() for key in out], event.round)
    state.news = bool(state.pending_rounds)


def runs_in(events: Iterable[Event], state: State) -> Runs:
    """All runs in the events of a race that count; one that was extended is one run."""
    told = (event.run for event in events if isinstance(event, Told | Imported))
    runs = (run for run in told if key_of(run) not in state.withdrawn)
    kept = effective_runs(runs, state.extends)
    return Runs.from_records(kept, direction=state.direction, clock=state.clock)
