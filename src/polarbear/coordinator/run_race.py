"""``race``: run solvers on instances until the anytime Pareto set is settled.

The coordinator joins three parts that are independent of each other: the ``Race`` decides, the
store keeps its events, and the backend executes runs.

1. Jobs, runs and decisions are durable in the store before anything follows from them. After a
   crash the same call resumes from the store. A round in which all runs of two or more solvers
   fail before they report a value is not stored: the cause is the environment, not the solvers.
2. A run that a backend loses is submitted again. It counts as killed once it was running in
   ``MAX_WORKER_LOSSES`` losses of a worker. So is a run that was killed from outside, but once:
   whether it kills itself or fills the memory, nobody can tell.
3. Queued jobs of eliminated algorithms are cancelled. Runs that have begun end by themselves, and
   do not count.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike
from types import TracebackType
from typing import Any, Self, TextIO

import numpy as np
from numpy.typing import ArrayLike

from polarbear._text import escape_text, format_list
from polarbear.coordinator.resume import begin_or_resume, compare_identity
from polarbear.coordinator.round_health import RoundHealth, SilenceMonitor
from polarbear.data.run import FAILED, Direction, Status
from polarbear.data.runs import Runs
from polarbear.errors import SolverError, warn
from polarbear.inference.verdicts import Verdict
from polarbear.inference.posterior import Posterior
from polarbear.racing.budget import Budget
from polarbear.racing.decisions import Eliminated, Forecast
from polarbear.racing.events import Decided, Event, Failed, Report
from polarbear.racing.jobs import Job, RunId
from polarbear.racing.ledger import Spent
from polarbear.racing.model import FitOptions
from polarbear.racing.notes import make_attribution
from polarbear.racing.questions.question import Question
from polarbear.racing.race import Race, check_budget, check_question
from polarbear.racing.race_texts import RaceTexts
from polarbear.racing.status import RaceStatus
from polarbear.running.backends.interface import Backend, check_programs, start_backend
from polarbear.running.solvers.identity import identify
from polarbear.running.solvers.job import Clock
from polarbear.running.solvers.setup import Limits, Setup, Solver
from polarbear.running.workers.outcomes import RunOutcome
from polarbear.running.workers.provenance import WorkerDetails
from polarbear.store.log import Store
from polarbear.store.opening import open_store
from polarbear.store.restoring import restore_race

MAX_WORKER_LOSSES = 3
"""A run counts as killed if this number of workers was lost while it was running."""

POLL_SECONDS = 1.0
"""The time after which the deadline is checked again."""

PROGRESS_SECONDS = 0.2
"""The least time between two calls of the progress function without news."""

Watch = Callable[[RaceStatus], None]


def race(
    solvers: Mapping[str, Solver] | Iterable[Solver],
    instances: Any,
    times: ArrayLike,
    *,
    direction: Direction,
    question: Question | None = None,
    budget: Budget | None = None,
    store: str | PathLike[str] | None = None,
    executor: Any = None,
    clock: Clock | None = None,
    limits: Limits | None = None,
    seed: int = 0,
    fit: FitOptions = None,
    progress: bool | Watch | None = None,
    accept_changes: bool = False,
) -> Result:
    """Race solvers until the anytime Pareto set is settled.

    Parameters
    ----------
    solvers
        By name: functions of a job that yield or report values, or :class:`Command`.
    instances
        A sequence or a mapping, :class:`Instances` that workers build themselves, or a function
        that makes a new instance from a numpy generator.
    times
        The times at which algorithms are compared. Every run ends at the last one at the latest.
        Two numbers are two times; a range of 20 times is ``polarbear.grid.log(100, 1500, 20)``.
    direction
        Whether small ("minimize") or large ("maximize") values are good.
    question
        What the race is to find out: by default :class:`ParetoSet`.
    budget
        The limits of runs and time, and the deadline: ``Budget(deadline="8h")`` counts from this
        call on.
    store
        A file (SQLite) or ``postgresql://...`` that keeps the race. The same call resumes it.
        Further solvers in the call join the race; another question or budget replaces the old one.
    executor
        Where to run: None or a number (processes on this machine), :class:`LocalProcesses`, a
        Dask client, :class:`SharedFolder`, or any ``concurrent.futures.Executor``.
    clock
        What time counts: "evaluations", "wall", "cpu" or "reported".
    limits
        What a single run may use before it is stopped.
    seed
        The seed of instances, runs and posteriors: the same seed gives the same race.
    fit
        Options of ``polarbear.fit``, or a function, as in :class:`Race`. A store keeps them,
        and refuses others.
    progress
        Whether to write news to standard error; by default if it is a terminal. Or a function that
        is called with a :class:`RaceStatus` several times a second.
    accept_changes
        Whether to resume although instances, solvers or limits differ from those in the store
        under the same names. The changes are recorded. By default such a call is refused.

    Examples
    --------
    >>> import polarbear as pb
    >>> def fast(job):
    ...     for step in (1, 10, 100):
    ...         yield step, job.instance + 1 / step
    >>> def slow(job):
    ...     for step in (1, 10, 100):
    ...         yield step, job.instance + 2 / step
    >>> result = pb.race([fast, slow], range(40), [10, 100], direction="minimize", executor=1)
    >>> result.pareto, result.ended
    (('fast',), 'resolved')
    """
    setup = Setup.of(
        solvers, instances, times=times, direction=direction, clock=clock, limits=limits
    )
    return run_race(
        setup,
        check_question(question),
        check_budget(budget),
        store=store,
        executor=executor,
        seed=seed,
        fit=fit,
        progress=progress,
        accept_changes=accept_changes,
    )


def run_race(
    setup: Setup,
    question: Question,
    budget: Budget,
    *,
    store: str | PathLike[str] | None = None,
    executor: Any = None,
    seed: int = 0,
    fit: FitOptions = None,
    progress: bool | Watch | None = None,
    accept_changes: bool = False,
) -> Result:
    """Run a race of a setup, as :func:`race` does, and return its result."""
    budget = budget.resolve_deadline(time.time())
    opened = None if store is None else open_store(store)
    try:
        started, setup = begin_or_resume(setup, question, budget, seed, fit, opened, accept_changes)
        check_programs(setup, executor, started.state.racing)
        result = Result(started, setup, opened, executor, _make_watch(progress))
        result.resume()
    except BaseException:
        if opened is not None:
            opened.close()
        raise
    return result


class Result(RaceTexts):
    """The result of :func:`race`: decisions, runs and posterior, with methods to continue the race.

    Use it in a ``with`` statement or call :meth:`close`, so that others can open the store.
    """

    def __init__(
        self,
        race: Race,
        setup: Setup,
        store: Store | None,
        executor: Any,
        watch: Watch | None,
    ) -> None:
        self.race = race
        self._setup = setup
        self._store = store
        self._executor = executor
        self._watch = watch
        self._next_call = 0.0  # of the progress function, without news
        self._health = RoundHealth()
        self._n_valid = 0  # events in memory that stay if the round is undone, without a store
        self._monitor = SilenceMonitor(setup.times[-1] if setup.clock in ("wall", "cpu") else 0.0)

    @property
    def status(self) -> RaceStatus:
        """The status of the race: a record that can be printed, or written as JSON."""
        return self.race.status

    @property
    def pareto(self) -> tuple[str, ...]:
        """The candidates: algorithms that are neither eliminated nor removed."""
        return self.race.pareto

    @property
    def chosen(self) -> tuple[str, ...]:
        """The algorithms chosen at the last decision, in a race with a preference; else none."""
        return self.race.chosen

    @property
    def eliminated(self) -> dict[str, Eliminated]:
        """The eliminated algorithms in order, with the dominating algorithm and the probability."""
        return self.race.eliminated

    @property
    def resolved(self) -> bool:
        """Whether the relation of each pair of algorithms is decided with sufficient certainty."""
        return self.race.resolved

    @property
    def ended(self) -> str | None:
        """The reason why the race ended; None if it has not."""
        return self.race.ended

    @property
    def forecast(self) -> Forecast | None:
        """The forecast of further instances and runs until every pair of algorithms is decided."""
        return self.race.forecast

    @property
    def rounds(self) -> int:
        """The number of rounds that were decided."""
        return self.race.rounds

    @property
    def times(self) -> tuple[float, ...]:
        """The times at which the race compares algorithms."""
        return self.race.times

    @property
    def n_runs(self) -> int:
        """The number of runs made; each retry and each extension counts as one more."""
        return self.race.n_runs

    @property
    def spent(self) -> Spent:
        """The number of runs that were made for the race, and their total time."""
        return self.race.spent

    @property
    def posterior(self) -> Posterior | None:
        """The posterior of the last decision, with the algorithms that were racing then.

        ``polarbear.fit(result.runs, times=result.times)`` rates all algorithms.
        """
        return self.race.posterior

    def verdict(self, algorithm: str) -> Verdict:
        """Return an algorithm's status: member, equivalent, dominated, undecided or removed."""
        return self.race.verdict(algorithm)

    def statuses(self) -> list[Verdict]:
        """Return the status of every algorithm: candidates, then eliminated, then removed ones."""
        return self.race.statuses()

    @property
    def failures(self) -> dict[str, str]:
        """The reasons why runs of each solver failed, hung or reported no value.

        Each reason has its number of runs and their instances, the most frequent first. Reasons
        from before a restart are included.
        """
        return self.race.failures

    @property
    def events(self) -> list[Event]:
        """All events of the race in order, read from the store if there is one."""
        if self._store is None:
            return self.race.events
        return list(self._store.read(arrays=True))

    @property
    def runs(self) -> Runs:
        """All runs of the race in full length, including those of eliminated algorithms.

        Pass :attr:`times` to rate or rank them: the default would be the times of the runs, of
        which the race does not use the early ones.
        """
        return self.race.runs if self._store is None else self._store.runs()

    def add(
        self,
        name: str,
        solver: Solver,
        *,
        max_runs: int | None = None,
        max_time: float | None = None,
        accept_changes: bool = False,
    ) -> Verdict:
        """Add a solver, resume the race until it ends, and return the status of the solver.

        It first runs on the instances that others have run on. Earlier decisions stay. A solver
        that is racing already is not added twice, so that a script may be run again. Other code
        under its name is refused, unless its runs were withdrawn (:meth:`withdraw`) or
        ``accept_changes``. ``max_runs``, ``max_time``: its own limits, as in :meth:`Race.add`.
        """
        self._join(
            {name: solver}, max_runs=max_runs, max_time=max_time, accept_changes=accept_changes
        )
        self.resume()
        return self.verdict(name)

    def _join(
        self,
        solvers: Mapping[str, Solver],
        *,
        max_runs: int | None = None,
        max_time: float | None = None,
        trial: bool = False,
        accept_changes: bool = False,
    ) -> None:
        """Add solvers to the race, each with the given limits on its runs and time."""
        extended = Setup.of(
            {**self._setup.solvers, **solvers},
            self._setup.instances,
            times=self._setup.times,
            direction=self._setup.direction,
            clock=self._setup.clock,
            limits=self._setup.limits,
        )
        extended = replace(extended, aliases=self._setup.aliases)
        check_programs(extended, self._executor, list(solvers))
        identity = compare_identity(
            self.race.state.identity, identify(extended), "this race", accept_changes
        )
        for name in solvers:
            if name not in self.race.state.racing:
                self.race.add(name, max_runs=max_runs, max_time=max_time, trial=trial)
        if identity is not None:
            self.race.record(identity)
        self._setup = extended

    def remove(self, name: str, why: str = "") -> None:
        """Remove a solver from the race; its runs stay in the store."""
        self.race.remove(name, why)
        self._save()

    def withdraw(
        self, algorithm: str | None = None, instance: str | None = None, *, why: str = ""
    ) -> int:
        """Withdraw runs by algorithm, by instance, or by both; see :meth:`Race.withdraw`.

        They stay in the store and do not count any more; :meth:`resume` replaces them. Returns the
        number of runs withdrawn.
        """
        n_runs = self.race.withdraw(algorithm, instance, why=why, at=format_now())
        self._save()
        return n_runs

    def extend(self, question: Question | None = None, budget: Budget | None = None) -> None:
        """Resume the race with another question or budget; what is not given stays."""
        self.race.extend(question, budget and budget.resolve_deadline(time.time()))
        self.resume()

    def resume(self) -> None:
        """Run the jobs that the race requests until it ends."""
        jobs = self._ask()
        if not jobs:
            return
        with closing(start_backend(self._setup, self._executor)) as backend:
            n_lost: Counter[RunId] = Counter()
            pending: dict[RunId, Job] = {}
            while jobs:
                fresh = [job for job in jobs if job.key not in pending]
                backend.submit(fresh)
                pending |= {job.key: job for job in fresh}
                self._collect(backend, pending, n_lost)
                jobs = self._ask()
                self._cancel_unwanted(backend, pending, jobs)

    def close(self) -> None:
        """Close the store, so that other processes can open it for writing."""
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self) -> tuple[Job, ...]:
        """Return the jobs that the race requests, after storing and reporting its new decisions."""
        n_rounds, eliminated = self.race.rounds, set(self.eliminated)
        removed = self.race.removed
        jobs = self.race.ask(time.time())
        if self.race.rounds > n_rounds:
            self._check_round()
        if not self._health.all_failed:
            self._save()
        news = [str(self.verdict(name)) for name in self.eliminated if name not in eliminated]
        news += [
            f"{name} was removed: too many of its runs failed"
            for name in sorted(self.race.removed - removed)
        ]
        if self.race.rounds > n_rounds:
            status = RaceStatus.of(self.race.state)
            forecast = status.describe_forecast()
            news.append(
                f"round {status.n_rounds}: {status.spent.runs:,} runs, racing "
                f"{format_list(status.pareto)}{f'; {forecast}' if forecast else ''}"
            )
        self._report(*news)
        return jobs

    def _report(self, *news: str) -> None:
        """Call the progress function; without news at most once every ``PROGRESS_SECONDS``."""
        start = time.monotonic()
        ended = self.race.ended is not None
        if self._watch is not None and (news or ended or start >= self._next_call):
            self._watch(RaceStatus.of(self.race.state, news))
            end = time.monotonic()
            self._next_call = end + max(PROGRESS_SECONDS, 20 * (end - start))

    def _check_round(self) -> None:
        """Undo the last decision, which is not stored, if all runs of its round failed."""
        try:
            self._health.end_round(self.failures)
        except SolverError:
            fit, events = self.race.fit, self.race.events
            if self._store is None:
                question = self.race.question
                self.race = Race.from_events(events[: self._n_valid], fit=fit, question=question)
            else:
                self.race = restore_race(self._store, fit=fit, question=self.race.question)
            raise

    def _save(self) -> None:
        """Write all new events to the store, with the status of the race that follows from them."""
        events = self.race.events
        if self._store is not None and events:
            changed = any(not isinstance(event, Report) for event in events)
            status = RaceStatus.of(self.race.state) if changed else None
            decided = any(isinstance(event, Decided) for event in events)
            self._store.append(events, status=status)
            self.race.forget()
            if decided:
                self._store.keep_snapshot(self.race.snapshot)
        self._n_valid = len(self.race.events)

    def _collect(self, backend: Backend, pending: dict[RunId, Job], n_lost: Counter[RunId]) -> None:
        """Pass finished runs from the backend to the race, and request lost runs again."""
        workers: defaultdict[WorkerDetails, list[RunId]] = defaultdict(list)
        for outcome in backend.outcomes(POLL_SECONDS):
            key = outcome.job.key
            pending.pop(key, None)
            if isinstance(outcome, RunOutcome):
                self._monitor.record_end(outcome.seconds)
                if outcome.run.status == Status.KILLED and not n_lost[key]:
                    n_lost[key] += 1
                    self._report(f"{key.algorithm} on {key.instance} is run again: {outcome.why}")
                    continue
                if outcome.worker and key not in self.race.state.arrived:
                    workers[outcome.worker].append(key)
                self._take(outcome)
                continue
            n_lost[key] += outcome.was_running
            if n_lost[key] >= MAX_WORKER_LOSSES:
                killed = outcome.job.run([], [], until=0.0, status=Status.KILLED)
                self._take(RunOutcome(outcome.job, killed, why=outcome.why))
        for worker, keys in workers.items():
            self.race.record(make_attribution(self.race.state, keys, worker))
        if not self._health.all_failed:
            self._save()
        overdue = self._monitor.message([key[:2] for key in pending], time.monotonic())
        if overdue:
            warn(overdue)
        self._report(*filter(None, [overdue]))

    def _take(self, outcome: RunOutcome) -> None:
        """Add a finished run to the race, and warn of the first failure of each algorithm."""
        failed_before = {*self.race.state.reasons}
        is_new = outcome.job.key not in self.race.state.arrived
        problem = self._health.record_run(
            outcome.job.algorithm,
            has_value=np.size(outcome.run.time) > 0,
            failed=outcome.run.status in FAILED,
            finished=outcome.run.status == Status.FINISHED,
            why=outcome.why,
        )
        # A run has one reason, or it would count as several failed runs.
        self.race.tell(outcome.run, why="" if problem else outcome.why, output=outcome.output)
        if problem:
            if is_new:
                self.race.record(Failed.of(outcome.run, problem, outcome.output))
            if outcome.job.algorithm not in failed_before:
                self._warn_of_failure(outcome.job, problem)
        for name in self.race.state.reasons.keys() - failed_before:
            self._report(f"{name} failed on {outcome.job.instance}: {problem or outcome.why}")

    def _warn_of_failure(self, job: Job, problem: str) -> None:
        """Warn that the first run of an algorithm failed."""
        name, instance = escape_text(job.algorithm), escape_text(job.instance)
        warn(f"{name} on {instance}: {escape_text(problem)}")

    def _cancel_unwanted(
        self, backend: Backend, pending: dict[RunId, Job], jobs: tuple[Job, ...]
    ) -> None:
        """Cancel queued jobs of algorithms with a pending run that the race no longer wants."""
        wanted = {job.key for job in jobs}
        algorithms = {key.algorithm for key in pending if key not in wanted}
        if algorithms:
            for job in backend.cancel(algorithms):
                pending.pop(job.key, None)


def format_now() -> str:
    """Return the present date and time in UTC as text."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _make_watch(progress: bool | Watch | None, to: TextIO | None = None) -> Watch | None:
    """Return the progress function: the given one, one that prints news, or None for silence."""
    stream = sys.stderr if to is None else to
    if callable(progress):
        return progress
    if progress is False or (progress is None and not stream.isatty()):
        return None

    def write_news(status: RaceStatus) -> None:
        for line in status.news:
            print(escape_text(line), file=stream, flush=True)

    return write_news
