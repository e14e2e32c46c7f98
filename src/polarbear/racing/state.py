"""``State``: everything that the next step of a race depends on; ``apply`` alone changes it.

It has six parts: the setup, the members, their pairs, the pool of instances, the ledger of runs and
the progress. Each part changes itself; this module says which event changes which parts.

Plans depend only on decisions and requests, so the order in which runs arrive has no effect.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from math import inf
from typing import cast

from polarbear.data.names import natural_sort_key
from polarbear.data.run import Run, Status
from polarbear.inference.verdicts import Unsettled, Verdict
from polarbear.racing.budget import Budget
from polarbear.racing.decisions import Decision, Forecast, Pair, pair
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
from polarbear.racing.failures import add_failure
from polarbear.racing.jobs import Job, RunId, key_of
from polarbear.racing.ledger import Ledger, Limit, Spent, TrialRuns
from polarbear.racing.pool import Pool
from polarbear.racing.progress import DecisionInput, PendingRun, Progress
from polarbear.racing.questions.question import Entries, Question, View


@dataclass
class Members:
    """An algorithm is either racing, eliminated or removed."""

    racing: set[str] = field(default_factory=set)
    eliminated: dict[str, Verdict] = field(default_factory=dict)  # in order
    removed: dict[str, str] = field(default_factory=dict)  # algorithm: reason
    failed_out: set[str] = field(default_factory=set)  # removed after too many failed runs
    verdicts: dict[str, Verdict] = field(default_factory=dict)  # of the last decision
    chosen: tuple[str, ...] = ()  # at the last decision, by a question about a choice
    entries: Entries = field(default_factory=Entries)
    limits: dict[str, Limit] = field(default_factory=dict)
    on_trial: dict[str, TrialRuns] = field(default_factory=dict)  # newcomers in their first batch
    failures: Counter[str] = field(default_factory=Counter)  # failed runs of decided rounds

    def present(self) -> tuple[str, ...]:
        """Return the racing algorithms in their canonical order."""
        return tuple(sorted(self.racing, key=natural_sort_key))

    def enter(self, algorithm: str, *, is_late: bool) -> bool:
        """Let an algorithm take part in the race; return whether it comes back."""
        came_back = algorithm in self.eliminated or algorithm in self.removed
        self.eliminated.pop(algorithm, None)
        self.removed.pop(algorithm, None)
        self.failed_out.discard(algorithm)
        self.racing.add(algorithm)
        self.entries.add(algorithm, self.racing, is_late=is_late)
        return came_back

    def leave(self, algorithm: str) -> None:
        """End an algorithm's part in the race."""
        self.racing.discard(algorithm)
        self.on_trial.pop(algorithm, None)

    def count_run(self, algorithm: str, first_batch: int, *, failed: bool, success: bool) -> None:
        """Count a run of a decided round: for the limit of failures, and for a trial."""
        self.failures[algorithm] += failed
        trial = self.on_trial.pop(algorithm, None)
        if trial is not None and trial.n_runs + 1 < first_batch:
            self.on_trial[algorithm] = TrialRuns(trial.n_runs + 1, trial.passed or success)

    def find_orphans(self, decision: Decision) -> list[str]:
        """Return the eliminated algorithms whose rival leaves by a decision."""
        leaving = {one.algorithm for one in decision.eliminated}
        return [name for name, one in self.eliminated.items() if one.rival in leaving]

    def decide(self, decision: Decision) -> None:
        """Take the verdicts of a decision; the eliminated ones have left."""
        self.eliminated |= {one.algorithm: one for one in decision.eliminated}
        self.chosen = decision.chosen
        if decision.verdicts or not decision.problems:
            self.verdicts = {one.algorithm: one for one in decision.verdicts}


@dataclass
class OpenPairs:
    """A pair of racing algorithms is *open* at the times at which its relation is not known.

    It closes time by time and stays closed, until one of the two comes back or the question
    changes.
    """

    batch: int  # instances of the next round
    open: dict[Pair, int] = field(default_factory=dict)  # bit t is set: unknown at time t
    need: dict[Pair, float] = field(default_factory=dict)  # expected further instances
    forecast: Forecast | None = None

    def enter(self, algorithm: str, undecided: Mapping[Pair, int]) -> None:
        """Open the pairs of an algorithm that joins, of those that are undecided at the start."""
        self.open |= {names: times for names, times in undecided.items() if algorithm in names}
        self.forecast = None

    def leave(self, algorithm: str) -> None:
        """Drop the pairs of an algorithm that leaves."""
        self.open = {names: times for names, times in self.open.items() if algorithm not in names}

    def reopen(self, undecided: dict[Pair, int]) -> None:
        """Open all pairs again."""
        self.open = undecided
        self.need.clear()
        self.forecast = None

    def decide(self, decision: Decision) -> None:
        """Take the undecided pairs and the forecasts of a decision."""
        self.open = {(one.first, one.second): one.times for one in decision.open}
        self.need = {(one.first, one.second): one.need for one in decision.open}
        self.forecast, self.batch = decision.forecast, decision.batch

    def rivals(self, names: Iterable[str]) -> dict[str, dict[str, int]]:
        """Return the undecided rivals of each of these algorithms among them, with the open times.

        Algorithms without rivals are left out. Times are bits.
        """
        rivals: dict[str, dict[str, int]] = {name: {} for name in names}
        for (a, b), times in self.open.items():
            if a in rivals and b in rivals:
                rivals[a][b] = rivals[b][a] = times
        return {name: others for name, others in rivals.items() if others}

    def find_unsettled(
        self, name: str, rivals: Mapping[str, int], times: Sequence[float], left: int | None = None
    ) -> Unsettled:
        """Return the rivals of an algorithm, and the instances and time needed to settle with all.

        It runs until the last open time of all its pairs, each rival until that of its own pair.
        """
        until = {
            rival: times[rivals[rival].bit_length() - 1]
            for rival in sorted(rivals, key=natural_sort_key)
        }
        needs = [self.need.get(pair(name, rival), inf) for rival in until]
        instances = max(needs, default=inf)
        if instances == inf:
            return Unsettled(until, left=left)
        time = instances * max(until.values())
        time += sum(need * end for need, end in zip(needs, until.values(), strict=True))
        return Unsettled(until, instances, time, left)


@dataclass
class State:
    """The state of a race: setup, members, pairs, pool, ledger and progress."""

    setup: Started
    pairs: OpenPairs
    members: Members = field(default_factory=Members)
    pool: Pool = field(default_factory=Pool)
    ledger: Ledger = field(default_factory=Ledger)
    progress: Progress = field(default_factory=Progress)

    @property
    def left(self) -> int | None:
        """The number of unused instances; None if instances are generated without end."""
        return None if self.setup.endless else len(self.pool.unused)

    @property
    def resolved(self) -> bool:
        """Whether the relation of each pair of algorithms is decided with sufficient certainty."""
        return not self.pairs.open and not self.progress.has_news and self.obstacle is None

    @property
    def obstacle(self) -> str | None:
        """Why nothing can be decided, such as a baseline that does not race; None if it can."""
        return self.setup.question.find_obstacle(self.members.racing, self.members.removed)

    def view(self) -> View:
        """Return what the question may know of the race when a round is decided."""
        members = self.members.present()
        return View(
            members=members,
            times=self.setup.times,
            open=self.pairs.open,
            batch=self.pairs.batch,
            budget=self.setup.budget,
            entries=self.members.entries,
            dropped={k: one.rival or "" for k, one in self.members.eliminated.items()},
            error_shares=self.pool.error_shares(endless=self.setup.endless),
            heaviest=self.setup.model.heaviest,
            exhausted=frozenset(name for name in members if self.has_reached_limit(name)),
            n_used=self.pool.n_used,
            n_unused=float("inf") if self.setup.endless else len(self.pool.unused),
        )

    def rated(self) -> tuple[str, ...]:
        """Return the algorithms that a decision's posterior includes, in their canonical order."""
        if not self.setup.question.rates_eliminated:
            return self.members.present()
        names = {*self.members.racing, *self.members.eliminated}
        return tuple(sorted(names, key=natural_sort_key))

    def find_failing(self) -> dict[str, int]:
        """Return the algorithms of which more runs failed than is allowed, with the number.

        Counted are the runs of decided rounds and of the current one.
        """
        most = self.setup.budget.failures
        if most is None:
            return {}
        now = self.progress.pending.get(self.progress.current, {})
        failed = self.members.failures + Counter(
            k.algorithm for k, run in now.items() if run.failed
        )
        return {name: number for name, number in failed.items() if number > most}

    def has_reached_limit(self, algorithm: str) -> bool:
        """Return whether an algorithm's own limits allow no further run, however short."""
        limit = self.members.limits.get(algorithm, Limit())
        requested = self.ledger.requested_by.get(algorithm, Spent())
        return not limit.allows(requested.plus(self.setup.times[0]))

    def charged_from(self, extends: int | None, before: float) -> float:
        """Return the time from which a run is charged, observed ``before`` until that time."""
        return before if self.setup.continues and extends is not None else 0.0


def start_state(event: Started) -> State:
    """Return the state of a race that has just started."""
    return State(event, OpenPairs(event.budget.batch[0]))


def apply(state: State, event: Event) -> None:
    """Change the state by an event; no other function changes a state."""
    if isinstance(event, Told):  # first, because there are most of these
        _receive(state, event.run)
        return
    members, ledger, progress = state.members, state.ledger, state.progress
    if not isinstance(event, Report):
        progress.ended = None
    match event:
        case Started():
            raise ValueError("an event Started can only be the first event of a race")
        case Extended(question, budget):
            _extend(state, question, budget)
        case Identified():
            progress.identity = progress.identity.updated(event)
        case Offered(instances):
            state.pool.offer(instances, state.setup.seed)
        case Added(algorithm, max_runs, max_time, trial):
            _enter(state, algorithm)
            members.on_trial |= {algorithm: TrialRuns()} if trial else {}
            members.limits[algorithm] = Limit(max_runs, max_time)
            members.failures[algorithm] = 0
            if state.setup.question.focuses:  # the paper's batch rule ignores entries
                state.pairs.batch = state.setup.budget.batch[0]
        case Removed(algorithm, why):
            _remove(state, algorithm, why)
        case Asked(jobs):
            progress.n_asked = max(progress.n_asked, event.round + 1)
            ledger.extends |= map_extensions(jobs)
            for job in jobs:
                _request(state, job, event.round)
            progress.has_news = True
        case Imported(run):
            _receive(state, run)
            progress.has_news = True
        case Continued(key, extends):
            ledger.extends[key] = extends
        case Superseded(key):
            _cancel(state, [key], -1)
            ledger.superseded.add(key)
        case Hosted(worker, _, details):
            if details:
                ledger.workers[tuple(details.items())] = worker
        case Withdrawn():
            _withdraw(state, event)
        case Failed(key):
            add_failure(ledger.reasons, event)
            ledger.failed.add(key)
        case Ended(why):
            progress.ended = why
        case Decided():
            _decide(state, event)


# Algorithms


def _enter(state: State, algorithm: str) -> None:
    """Let an algorithm take part in the race, with its relation to all others undecided."""
    question, n_times = state.setup.question, len(state.setup.times)
    came_back = state.members.enter(algorithm, is_late=state.progress.n_rounds > 0)
    state.pairs.enter(algorithm, question.undecided(state.members.racing, n_times))
    state.members.verdicts.clear()  # they were relative to other rivals
    state.pool.enter(algorithm)
    # An algorithm that returns is assessed on its earlier runs before it runs again.
    state.progress.has_news |= came_back


def _leave(state: State, algorithm: str, current: int) -> None:
    """End an algorithm's part in the race: drop its undecided pairs and cancel its pending runs."""
    state.members.leave(algorithm)
    state.pairs.leave(algorithm)
    keys = [key for key in state.progress.run_ids() if key.algorithm == algorithm]
    _cancel(state, keys, current)


def _remove(state: State, algorithm: str, why: str) -> None:
    """Remove an algorithm; those that it eliminated return, because its runs count no more."""
    members = state.members
    # The verdicts about the others were relative to this algorithm.
    state.progress.has_news |= algorithm in members.racing and bool(members.verdicts)
    if algorithm in state.find_failing():
        members.failed_out.add(algorithm)
    _leave(state, algorithm, state.progress.current)
    members.eliminated.pop(algorithm, None)
    members.removed[algorithm] = why
    for name in [name for name, one in members.eliminated.items() if one.rival == algorithm]:
        _enter(state, name)


def _extend(state: State, question: Question, budget: Budget) -> None:
    """Change the question or the budget, and open the pairs that may be decided differently."""
    before = state.setup.question
    state.setup = replace(state.setup, question=question, budget=budget)
    least, most = budget.batch
    state.pairs.batch = min(max(state.pairs.batch, least), most)
    if question == before:
        return
    state.pairs.batch = least
    for name, eliminated in list(state.members.eliminated.items()):
        if not question.keeps_elimination(before, eliminated.probability):
            _enter(state, name)
    _reopen(state)


def _reopen(state: State) -> None:
    """Make all pairs of racing algorithms undecided at all times."""
    n_times = len(state.setup.times)
    state.pairs.reopen(state.setup.question.undecided(state.members.racing, n_times))
    state.members.verdicts.clear()
    state.pool.next_cached.clear()  # instances that were uninformative may be informative now
    state.progress.has_news = state.ledger.n_runs.total() > 0


# Runs


def _request(state: State, job: Job, round_: int) -> None:
    """Add a requested run to its round, and charge its time up to its planned end."""
    state.pool.use(job.instance)
    pending, key = state.progress.pending.setdefault(round_, {}), job.key
    before = state.pool.observed_until[job.instance].get(job.algorithm, 0.0)
    earlier = (key._replace(repetition=k) for k in reversed(range(job.repetition)))
    retried = next((one for one in earlier if one in pending), None) if job.repetition else None
    if retried is not None:  # it failed, and this run replaces it
        failed = pending.pop(retried)
        before = failed.before
        state.ledger.superseded.add(retried)
        state.ledger.correct(key.algorithm, (failed.until or 0.0) - failed.horizon)
    state.progress.wanted[key] = job
    state.ledger.request(key, job.horizon - state.charged_from(job.extends, before))
    pending[key] = PendingRun(job.horizon, before)
    state.pool.plan(key, job.horizon)


def _receive(state: State, run: Run) -> None:
    """Add a run that has arrived, requested or imported, to the state."""
    key, ledger = key_of(run), state.ledger
    pending = state.progress.pending.get(state.progress.round_of(key), {})
    asked = pending.get(key)
    before = asked.before if asked else 0.0
    ledger.receive(run, state.charged_from(ledger.extends.get(key), before))
    state.progress.wanted.pop(key, None)
    if asked:
        has_value = len(cast(Sized, run.time)) > 0
        pending[key] = asked._replace(until=run.until, status=run.status, has_value=has_value)
    elif key not in ledger.superseded:
        state.pool.use(run.instance)
        state.pool.observe(key, run.until, run.status)


def _settle(state: State, key: RunId, run: PendingRun) -> None:
    """Charge a run of a decided round for its actual time, and count it if it failed."""
    if run.until is None or run.status is None:
        raise ValueError(
            "this round cannot be decided: some of its runs have not arrived; pass them to tell()"
        )
    state.ledger.correct(key.algorithm, run.until - run.horizon)
    success = run.has_value and not run.failed
    first_batch = state.setup.budget.batch[0]
    state.members.count_run(key.algorithm, first_batch, failed=run.failed, success=success)
    if run.until < run.horizon and run.status == Status.CUT:
        state.pool.not_extendable.add((key.algorithm, key.instance))
    state.pool.observe(key, run.until, run.status)


def _cancel(state: State, keys: list[RunId], current: int) -> None:
    """Cancel pending runs; those of rounds after ``current`` will affect no decision.

    Runs of rounds after ``current`` never count, because a decision must not depend on which of
    them have arrived. Runs of the current round count, whether they arrive earlier or later.
    """
    progress = state.progress
    for round_, pending in list(progress.pending.items()):
        for key in [key for key in keys if key in pending]:
            run = pending.pop(key)
            progress.wanted.pop(key, None)
            state.pool.restore(key, run.before)
            if round_ > current:
                state.ledger.superseded.add(key)
            elif run.status is not None:
                _settle(state, key, run)
        if not pending:
            del progress.pending[round_]


def _withdraw(state: State, event: Withdrawn) -> None:
    """Exclude withdrawn runs, and make all pairs of algorithms undecided again.

    A fit uses all runs together, so any decision may depend on the excluded ones. Eliminated
    algorithms return; those that the other runs eliminate are eliminated again before any new run.
    """
    pairs, members, progress = set(event.pairs), state.members, state.progress
    dropped = () if state.setup.endless else event.instances
    under_way = [key for key in progress.run_ids() if key[:2] in pairs or key.instance in dropped]
    _cancel(state, under_way, -1)
    state.ledger.withdraw(pairs)
    state.pool.withdraw(pairs, dropped)
    for algorithm, _ in pairs:
        members.failures[algorithm] = 0
    # A solver without counted runs may be replaced by other code under the same name.
    known = progress.identity.solvers
    solvers = {name: known[name] for name in known if state.ledger.n_runs[name]}
    progress.identity = replace(progress.identity, solvers=solvers)
    returning = members.failed_out & {algorithm for algorithm, _ in pairs}
    for name in [*members.eliminated, *sorted(returning, key=natural_sort_key)]:
        _enter(state, name)
    _reopen(state)


# Decisions


def _decide(state: State, event: Decided) -> None:
    """Apply a decision to the state: eliminations, undecided pairs, forecasts, next batch size."""
    progress, decision = state.progress, event.decision
    progress.decision_input = DecisionInput(event.round, state.rated())
    progress.n_rounds += 1
    progress.n_asked = max(progress.n_asked, event.round + 1)  # later runs are of the next round
    for key, run in progress.pending.pop(event.round, {}).items():
        state.pool.restore(key, run.before)
        _settle(state, key, run)
    for elimination in decision.eliminated:
        _leave(state, elimination.algorithm, event.round)
    state.members.decide(decision)
    for name in decision.returning:
        _enter(state, name)
    if not state.setup.endless and not state.pool.unused:
        state.pool.note_end()
    state.pairs.decide(decision)
    if not state.pairs.open:
        _cancel(state, list(progress.run_ids()), event.round)
    progress.has_news = bool(progress.pending) or bool(decision.returning)
