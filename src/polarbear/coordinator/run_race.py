"""``race``: run solvers on instances until the anytime Pareto set is settled.

The coordinator joins three parts that are independent of each other: the ``Race`` decides, the
store keeps its events, and the backend executes runs.

1. Jobs, runs and decisions are durable in the store before anything follows from them. After a
   crash the same call resumes from the store. Runs that failed before they reported a value are
   held back until another run of their round does better. If none of two or more solvers does, the
   cause is the environment, not the solvers: the race stops, and knows nothing of these runs. With
   retries, it knows of all attempts but the last.
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
from contextlib import closing, suppress
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike
from typing import Any, Self

from numpy.typing import ArrayLike

from polarbear._text import escape_text
from polarbear.coordinator.resume import begin_or_resume, compare_identity
from polarbear.coordinator.round_health import RoundHealth, SilenceMonitor, every_run_failed
from polarbear.data.run import Direction, Status
from polarbear.data.runs import Runs
from polarbear.errors import DataError, PolarBearError, SolverError, warn
from polarbear.racing.budget import Budget
from polarbear.racing.events import Decided, Event, Failed, Report
from polarbear.racing.failures import Reasons, add_failure, describe_failures
from polarbear.racing.jobs import Job, RunId
from polarbear.racing.planning import plan_retries
from polarbear.racing.questions.pareto_set import check_question
from polarbear.racing.questions.question import Question
from polarbear.racing.race import Race, check_budget
from polarbear.racing.status import Best, RaceStatus
from polarbear.running.backends.interface import Backend, check_programs, start_backend
from polarbear.running.solvers.identity import identify
from polarbear.running.solvers.job import Clock
from polarbear.running.solvers.setup import Limits, Setup, Solver
from polarbear.running.workers.outcomes import RunOutcome
from polarbear.running.workers.provenance import WorkerDetails
from polarbear.store.log import Store
from polarbear.store.opening import open_store

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
    progress: bool | Watch | None = None,
) -> SolverRace:
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
        What the race is to find out, and the model of its posteriors: by default
        :class:`ParetoSet`.
    budget
        The limits of runs and time, and the deadline: ``Budget(deadline="8h")`` counts from this
        call on.
    store
        A file (SQLite) or ``postgresql://...`` that keeps the race. The same call resumes it.
        Further solvers in the call join the race; another question or budget replaces the old one.
        Other instances, solvers or limits under the same names are refused, unless the store
        accepts changes (:meth:`Store.accept_changes`).
    executor
        Where to run: None or a number (processes on this machine), :class:`LocalProcesses`, a
        Dask client, :class:`SharedFolder`, or any ``concurrent.futures.Executor``.
    clock
        What time counts: "evaluations", "wall", "cpu" or "reported".
    limits
        What a single run may use before it is stopped.
    seed
        The seed of instances, runs and posteriors: the same seed gives the same race.
    progress
        Whether to write news to standard error; by default if it is a terminal. Or a function that
        is called with a :class:`RaceStatus` several times a second.

    Returns
    -------
    SolverRace
        The race at its end, which can be extended and resumed.

    Raises
    ------
    SolverError
        If a solver is none, or every run of a round fails before it reports a value.
    DataError
        If another argument is invalid.
    StoreError
        If the store cannot be used, or belongs to another race.

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
        progress=progress,
    )


def run_race(
    setup: Setup,
    question: Question,
    budget: Budget,
    *,
    store: str | PathLike[str] | None = None,
    executor: Any = None,
    seed: int = 0,
    progress: bool | Watch | None = None,
) -> SolverRace:
    """Run a race of a setup, as :func:`race` does, and return it."""
    budget = budget.resolve_deadline(time.time())
    opened = None if store is None else open_store(store)
    try:
        started, setup = begin_or_resume(SolverRace, setup, question, budget, seed, opened)
        check_programs(setup, executor, started.state.members.racing)
        started.attach(setup, opened, executor, _make_watch(progress)).resume()
    except BaseException:
        if opened is not None:
            opened.close()
        raise
    return started


def format_now() -> str:
    """Return the present date and time in UTC as text."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class SolverRace(Race):
    """A race that runs its solvers itself, as :func:`race` returns it.

    It is a :class:`Race` with all that this has to read. Change it by :meth:`add`, :meth:`remove`,
    :meth:`withdraw` or :meth:`extend`, then :meth:`resume` it. Use it in a ``with`` statement or
    call :meth:`close`, so that others can open the store.
    """

    _now = staticmethod(format_now)
    _store: Store | None = None
    _shows_best = True  # whether a status has what to run now
    _warns = True  # of the first failed run of each algorithm
    _best: Best = ()  # what to run, as found last
    _rated = 0, False  # the number of rounds then, and whether the race had ended
    _next_fit = 0.0

    def attach(self, setup: Setup, store: Store | None, executor: Any, watch: Watch | None) -> Self:
        """Give the race its solvers and instances, a store, workers and a progress function."""
        self._setup, self._store, self._executor, self._watch = setup, store, executor, watch
        self._next_call = 0.0  # of the progress function, without news
        self._health = RoundHealth()
        self._held: list[RunOutcome] = []  # until one of a round has a value
        self._monitor = SilenceMonitor(setup.times[-1] if setup.clock in ("wall", "cpu") else 0.0)
        return self

    # Reading what is in the store

    @property
    def events(self) -> list[Event]:
        """All events of the race in order, read from the store if there is one."""
        return self._events if self._store is None else list(self._store.read(arrays=True))

    @property
    def runs(self) -> Runs:
        """All runs of the race in full length, including those of eliminated algorithms.

        Pass :attr:`times` to rate or rank them: the default would be the times of the runs, of
        which the race does not use the early ones.
        """
        return super().runs if self._store is None else self._store.runs()

    def in_memory(self) -> Race:
        """Return this race with all of its events in memory, for those who read them often."""
        race = copy(self)
        race._events, race._store = self.events, None
        return race

    @property
    def status(self) -> RaceStatus:
        """The status of the race, with what to run now if that was found for a recent decision."""
        status = super().status
        present = {*status.pareto}  # some may have left since
        rows = [tuple(one for one in row if one[0] in present) for row in self._best]
        return replace(status, answer=status.answer._replace(best=tuple(rows) if all(rows) else ()))

    # Changing the race

    def add(
        self,
        algorithm: str,
        solver: Solver | None = None,
        *,
        max_runs: int | None = None,
        max_time: float | None = None,
        trial: bool = False,
    ) -> None:
        """Add a solver, or readmit one that was eliminated or removed.

        It first runs on the instances that others have run on. Earlier decisions stay. A solver
        that is racing already is not added twice, so that a script may be run again. Other code
        under its name is refused, unless its runs were withdrawn (:meth:`withdraw`). ``max_runs``,
        ``max_time`` and ``trial`` are those of :meth:`Race.add`.
        """
        if solver is not None:
            self._take_solvers({algorithm: solver})
        elif algorithm not in self._setup.solvers:
            raise DataError(f"{algorithm!r} is not a solver of this race: pass it as well")
        if algorithm not in self.state.members.racing:
            super().add(algorithm, max_runs=max_runs, max_time=max_time, trial=trial)
        self._save()

    def _take_solvers(self, solvers: Mapping[str, Solver]) -> None:
        """Make solvers known under their names, if these do not stand for other code."""
        setup = self._setup.with_solvers({**self._setup.solvers, **solvers})
        check_programs(setup, self._executor, list(solvers))
        known = self.state.progress.identity
        if identity := compare_identity(known, identify(setup), "this race"):
            self.record(identity)
        self._setup = setup

    def extend(self, question: Question | None = None, budget: Budget | None = None) -> None:
        """Change the question or the budget as :meth:`Race.extend`; :meth:`resume` goes on."""
        super().extend(question, budget and budget.resolve_deadline(time.time()))

    # Running

    def resume(self) -> None:
        """Run the jobs that the race requests until it ends."""
        jobs = self._next_jobs()
        if not jobs:
            return
        self._held.clear()  # what an interrupted call held back is made again
        with closing(start_backend(self._setup, self._executor)) as backend:
            n_lost: Counter[RunId] = Counter()
            under_way: dict[RunId, Job] = {}
            while jobs:
                held = {outcome.job.key for outcome in self._held}
                fresh = [job for job in jobs if job.key not in under_way and job.key not in held]
                backend.submit(fresh)
                under_way |= {job.key: job for job in fresh}
                try:
                    self._collect(backend, under_way, n_lost)
                except SolverError:  # nothing of this round is kept
                    backend.outcomes(0.0)
                    raise
                except KeyboardInterrupt as interrupted:
                    if self._store is not None:
                        name = self._store.name
                        interrupted.add_note(f"finished runs are in {name}; the same call resumes")
                    raise
                jobs = self._next_jobs()
                self._cancel_unwanted(backend, under_way, jobs)
            backend.outcomes(0.0)  # so that it forgets what is stored by now
        if self._held:
            why = "; ".join(f"{name}: {why}" for name, why in self._drop_held().items())
            warn(
                f"all runs that ended since the last decision failed before they reported a value, "
                f"and are not kept: {escape_text(why)}"
            )

    def close(self) -> None:
        """Close the store, so that other processes can open it for writing."""
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next_jobs(self) -> tuple[Job, ...]:
        """Return the jobs that the race requests, after storing and reporting its new decisions."""
        n_rounds, members = self.rounds, self.state.members
        eliminated, removed = {*members.eliminated}, {*members.removed}
        jobs = self.ask(time.time())
        self._rate()
        self._save()
        news = [str(one) for name, one in members.eliminated.items() if name not in eliminated]
        news += [
            f"{name} was removed: too many of its runs failed"
            for name in sorted(members.removed.keys() - removed)
        ]
        is_decided = self.rounds > n_rounds
        if is_decided:
            self._health.end_round()
        self._report(*news, is_due=is_decided)
        return jobs

    def _rate(self) -> None:
        """Find what to run now for those who watch or read the store, if that takes little time.

        Decisions need no posterior. One is fitted at the end, and before as long as that takes a
        twentieth of the time.
        """
        rated = self.rounds, self.ended is not None
        is_seen = self._watch is not None or self._store is not None
        if not (self._shows_best and is_seen and self.rounds) or rated == self._rated:
            return
        start = time.monotonic()
        if self.ended or start >= self._next_fit:
            with suppress(PolarBearError):
                self._best = super().status.with_best(self.posterior).answer.best
                self._rated = rated
            end = time.monotonic()
            self._next_fit = end + 20 * (end - start)

    def _report(self, *news: str, is_due: bool = False) -> None:
        """Call the progress function; without news at most once every ``PROGRESS_SECONDS``."""
        start = time.monotonic()
        is_due = is_due or self.ended is not None or start >= self._next_call
        if self._watch is not None and (news or is_due):
            self._watch(replace(self.status, news=news))
            end = time.monotonic()
            self._next_call = end + max(PROGRESS_SECONDS, 20 * (end - start))

    def _save(self) -> None:
        """Write all new events to the store, with the status of the race that follows from them."""
        events = self._events
        if self._store is not None and events:
            changed = any(not isinstance(event, Report) for event in events)
            decided = any(isinstance(event, Decided) for event in events)
            self._store.append(events, status=self.status if changed else None)
            self.forget()
            if decided:
                self._store.keep_snapshot(self.snapshot)

    def _collect(
        self, backend: Backend, under_way: dict[RunId, Job], n_lost: Counter[RunId]
    ) -> None:
        """Take finished runs from the backend, and leave lost ones to be requested again."""
        for outcome in backend.outcomes(POLL_SECONDS):
            key = outcome.job.key
            under_way.pop(key, None)
            if isinstance(outcome, RunOutcome):
                self._monitor.record_end(outcome.seconds)
                if outcome.run.status == Status.KILLED and not n_lost[key]:
                    n_lost[key] += 1
                    self._report(f"{key.algorithm} on {key.instance} is run again: {outcome.why}")
                    continue
                self._held.append(outcome)
                continue
            n_lost[key] += outcome.was_running
            if n_lost[key] >= MAX_WORKER_LOSSES:
                killed = outcome.job.run([], [], until=0.0, status=Status.KILLED)
                self._held.append(RunOutcome(outcome.job, killed, why=outcome.why))
        self._take_held(is_last=not under_way)
        overdue = self._monitor.message([key[:2] for key in under_way], time.monotonic())
        if overdue:
            warn(overdue)
        self._report(*filter(None, [overdue]))

    def _take_held(self, *, is_last: bool) -> None:
        """Pass finished runs to the race, unless all runs of the round so far have failed.

        If these were the last ones, and none is made again, it is an error.
        """
        failed = {one.job.key: one for one in self._held if one.failed_without_value}
        if self._held and len(failed) == len(self._held) and not self._health.any_success:
            if not is_last or self.state.progress.wanted.keys() - failed.keys():
                return
            is_broken = self._health.is_broken(key.algorithm for key in failed)
            if is_broken and plan_retries(self.state, failed) is None:
                raise every_run_failed(self._drop_held())
        workers: defaultdict[WorkerDetails, list[RunId]] = defaultdict(list)
        for outcome in self._held:
            if outcome.worker and outcome.job.key not in self.state.ledger.arrived:
                workers[outcome.worker].append(outcome.job.key)
            self._take(outcome)
        self._held.clear()
        for worker, keys in workers.items():
            self.record(self.state.ledger.attribute(keys, worker))
        self._save()

    def _drop_held(self) -> dict[str, str]:
        """Forget the runs that are held back; return why those of each algorithm failed."""
        reasons: Reasons = {}
        for outcome in self._held:
            add_failure(reasons, Failed.of(outcome.run, outcome.why))
        self._held.clear()
        return describe_failures(reasons, {}, ())

    def _take(self, outcome: RunOutcome) -> None:
        """Add a finished run to the race, and warn of the first failure of each algorithm."""
        failed_before = {*self.state.ledger.reasons}
        is_new = outcome.job.key not in self.state.ledger.arrived
        problem = self._health.record_run(outcome)
        # A run has one reason, or it would count as several failed runs.
        self.tell(outcome.run, why="" if problem else outcome.why, output=outcome.output)
        if problem:
            if is_new:
                self.record(Failed.of(outcome.run, problem, outcome.output))
            if self._warns and outcome.job.algorithm not in failed_before:
                where = f"{outcome.job.algorithm} on {outcome.job.instance}"
                warn(f"{escape_text(where)}: {escape_text(problem)}")
        for name in self.state.ledger.reasons.keys() - failed_before:
            self._report(f"{name} failed on {outcome.job.instance}: {problem or outcome.why}")

    def _cancel_unwanted(
        self, backend: Backend, under_way: dict[RunId, Job], jobs: tuple[Job, ...]
    ) -> None:
        """Cancel queued jobs of algorithms with a run under way that the race no longer wants."""
        wanted = {job.key for job in jobs}
        algorithms = {key.algorithm for key in under_way if key not in wanted}
        if algorithms:
            for job in backend.cancel(algorithms):
                under_way.pop(job.key, None)


def _make_watch(progress: bool | Watch | None) -> Watch | None:
    """Return the progress function: the given one, one that prints news, or None for silence."""
    stream, n_rounds = sys.stderr, 0
    if callable(progress):
        return progress
    if progress is False or (progress is None and not stream.isatty()):
        return None

    def write_news(status: RaceStatus) -> None:
        nonlocal n_rounds
        decided = [status.describe_round()] if status.counts.rounds > n_rounds else []
        n_rounds = status.counts.rounds
        for line in [*status.news, *decided]:
            print(escape_text(line), file=stream, flush=True)

    return write_news
