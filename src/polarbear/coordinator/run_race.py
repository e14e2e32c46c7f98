"""``race``: solvers run on instances until it is settled who belongs to the anytime Pareto set.

The coordinator joins three things that know nothing of each other: the ``Race`` decides, the store
remembers, the backend runs.

1. What the race asks for, decides or is told is durable in the store before anything is done about
   it. After a crash the same call goes on where it was: what is not in the store did not happen.
   A round in which all runs of two or more solvers fail before they find anything is not kept:
   that is no fact about solvers, but something that is missing where they run.
2. A run that a backend loses is asked for again. After ``PATIENCE`` losses that it may be to blame
   for it counts as killed.
3. Queued jobs of eliminated algorithms are cancelled; runs that are under way end by themselves,
   and do not count.
"""

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
from polarbear.coordinator.round_health import Silence, Vigil
from polarbear.data.run import Direction, Status
from polarbear.data.runs import Runs
from polarbear.errors import SolverError, warn
from polarbear.inference.algorithm_status import AlgorithmStatus
from polarbear.inference.posterior import Posterior
from polarbear.racing.events import Eliminated, Event, Failed, Forecast, Report
from polarbear.racing.jobs import Job, RunId
from polarbear.racing.model import FitOptions
from polarbear.racing.notes import attribution
from polarbear.racing.race import Race
from polarbear.racing.rules import Rules
from polarbear.racing.state import FAILED, Spent
from polarbear.racing.status import RaceStatus, as_card
from polarbear.running.backends.interface import Backend, check_programs, start_backend
from polarbear.running.solvers.identity import (
    identify,
)
from polarbear.running.solvers.job import Clock
from polarbear.running.solvers.setup import Limits, Setup, Solver
from polarbear.running.workers.outcomes import RunOutcome
from polarbear.running.workers.provenance import WorkerDetails
from polarbear.store.log import Store
from polarbear.store.opening import open_store

PATIENCE = 3
"""The number of times that a run may be under way when its worker is lost, before it is killed."""

WAIT = 1.0
"""Seconds after which one looks at the deadline again."""

BLINK = 0.2
"""Seconds between two calls of the progress function, if there is no news."""

Watch = Callable[[RaceStatus], None]


def race(
    solvers: Mapping[str, Solver] | Iterable[Solver],
    instances: Any,
    times: ArrayLike,
    *,
    direction: Direction,
    rules: Rules | None = None,
    store: str | PathLike[str] | None = None,
    executor: Any = None,
    clock: Clock | None = None,
    limits: Limits | None = None,
    seed: int = 0,
    fit: FitOptions = None,
    progress: bool | Watch | None = None,
    accept_changes: bool = False,
) -> "Result":
    """Race solvers until it is settled who belongs to the anytime Pareto set.

    Parameters
    ----------
    solvers
        By name: functions of a job that yield or report what they find, or :class:`Command`.
    instances
        A sequence or a mapping, :class:`Instances` that are made where they are needed, or a
        function of a numpy generator that makes one more.
    times
        The times at which one asks who is ahead. No run is longer than until the last. Two numbers
        are two times; a range of 20 times is ``polarbear.grid.log(100, 1500, 20)``.
    direction
        Whether small ("minimize") or large ("maximize") values are good.
    rules
        How sure to be, how much to spend, until when: ``Rules(deadline="8h")``, from this call on.
    store
        A file (SQLite) or ``postgresql://...`` that remembers the race. The same call goes on where
        it was; with more solvers these join, with other rules the race goes on under them.
    executor
        Where to run: nothing or a number (processes on this machine), :class:`LocalProcesses`, a
        Dask client, :class:`SharedFolder`, or any ``concurrent.futures.Executor``.
    clock
        What time counts: "evaluations", "wall", "cpu" or "reported".
    limits
        What a single run may use before it is ended.
    seed
        Of instances, runs and posteriors: the same seed gives the same race.
    fit
        Options of ``polarbear.fit``, or a function, as in :class:`Race`. A store remembers them,
        and refuses others.
    progress
        Whether to tell standard error what happens; by default if it is a terminal. Or a function
        that is called with a :class:`RaceStatus` several times a second.
    accept_changes
        Whether to resume although instances, solvers or limits are not those that the store knows
        by these names. What changed is recorded. By default such a call is refused.

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
    rules = Rules() if rules is None else rules
    return conducted(
        setup,
        rules,
        store=store,
        executor=executor,
        seed=seed,
        fit=fit,
        progress=progress,
        accept_changes=accept_changes,
    )


def conducted(
    setup: Setup,
    rules: Rules,
    *,
    store: str | PathLike[str] | None = None,
    executor: Any = None,
    seed: int = 0,
    fit: FitOptions = None,
    progress: bool | Watch | None = None,
    accept_changes: bool = False,
) -> "Result":
    """The same as :func:`race`, of a setup."""
    rules = rules.resolve_deadline(time.time())
    kept = None if store is None else open_store(store)
    try:
        running, setup = begin_or_resume(setup, rules, seed, fit, kept, accept_changes)
        check_programs(setup, executor, running.state.racing)
        result = Result(running, setup, kept, executor, _watcher(progress))
        result.go_on()
    except BaseException:
        if kept is not None:
            kept.close()
        raise
    return result


class Result:
    """A race that was run, and can go on: it answers, takes more solvers, and closes its store.

    :func:`race` gives one. ``failures`` says why runs of a solver failed.
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
        self._again = 0.0  # when to tell without news
        self._vigil = Vigil()
        self._n_kept = 0  # of the events in memory, if there is no store
        self._silence = Silence(setup.times[-1] if setup.clock in ("wall", "cpu") else 0.0)

    @property
    def status(self) -> RaceStatus:
        """Where the race stands, as a record that can be printed, and written as JSON."""
        return self.race.status

    @property
    def pareto(self) -> tuple[str, ...]:
        """All algorithms but those that are dominated."""
        return self.race.pareto

    @property
    def eliminated(self) -> dict[str, Eliminated]:
        """The dominated algorithms, by which one and with which probability, in order."""
        return self.race.eliminated

    @property
    def resolved(self) -> bool:
        """Whether the relation of every pair is known."""
        return self.race.resolved

    @property
    def ended(self) -> str | None:
        """Why the race ended."""
        return self.race.ended

    @property
    def outlook(self) -> Forecast | None:
        """How much would be left to do."""
        return self.race.outlook

    @property
    def rounds(self) -> int:
        """The number of decisions."""
        return self.race.rounds

    @property
    def times(self) -> tuple[float, ...]:
        """The times at which the race compares algorithms."""
        return self.race.times

    @property
    def n_runs(self) -> int:
        """The number of runs made; one that was extended or made again counts each time."""
        return self.race.n_runs

    @property
    def spent(self) -> Spent:
        """The number of runs that were asked for, and the time of all of them."""
        return self.race.spent

    @property
    def posterior(self) -> Posterior | None:
        """The posterior of the last decision: ratings of the algorithms that were racing then.

        All algorithms are rated by ``polarbear.fit(result.runs, times=result.times)``.
        """
        return self.race.posterior

    def verdict(self, algorithm: str) -> AlgorithmStatus:
        """Return the status of an algorithm: member, equivalent, dominated, undecided, removed."""
        return self.race.verdict(algorithm)

    def statuses(self) -> list[AlgorithmStatus]:
        """Return the status of every algorithm: candidates, then eliminated, then removed ones."""
        return self.race.statuses()

    @property
    def failures(self) -> dict[str, str]:
        """Why runs of each solver failed, hung or found nothing; also after a restart.

        Each reason comes with its number of runs and their instances, the most frequent first.
        """
        return self.race.failures

    @property
    def events(self) -> list[Event]:
        """Everything that happened, in order; read from the store if there is one."""
        if self._store is None:
            return self.race.events
        return list(self._store.read(arrays=True))

    @property
    def runs(self) -> Runs:
        """All runs, each as long as it was, also of those who are out.

        To rate or rank them ask at :attr:`times`: by default the times of the runs would be taken,
        and earlier ones are none of the race's.
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
    ) -> AlgorithmStatus:
        """Let a solver join, and race on until all is settled again: how it stands then.

        It first runs on the instances that others have run on. What was found out before stands.
        A solver that races already races on, so that a script may be run again. With other code it
        is refused, unless its runs were withdrawn (:meth:`withdraw`) or ``accept_changes``.
        ``max_runs``, ``max_time``: the most to spend on it, as in :meth:`Race.add`.
        """
        more = Setup.of(
            {**self._setup.solvers, name: solver},
            self._setup.instances,
            times=self._setup.times,
            direction=self._setup.direction,
            clock=self._setup.clock,
            limits=self._setup.limits,
        )
        more = replace(more, aliases=self._setup.aliases)
        check_programs(more, self._executor, [name])
        identity = compare_identity(
            self.race.state.identity, identify(more), "this race", accept_changes
        )
        if name not in self.race.state.racing:
            self.race.add(name, max_runs=max_runs, max_time=max_time)
        if identity is not None:
            self.race.record(identity)
        self._setup = more
        self.go_on()
        return self.verdict(name)

    def remove(self, name: str, why: str = "") -> None:
        """Let a solver leave."""
        self.race.remove(name, why)
        self._keep()

    def withdraw(
        self, algorithm: str | None = None, instance: str | None = None, *, why: str = ""
    ) -> int:
        """Withdraw runs of an algorithm, on an instance, or both; see :meth:`Race.withdraw`.

        They stay in the store and do not count any more; :meth:`go_on` makes others in their place.
        Returns how many were withdrawn.
        """
        number = self.race.withdraw(algorithm, instance, why=why, at=now_as_text())
        self._keep()
        return number

    def extend(self, rules: Rules) -> None:
        """Go on under other rules: surer, longer, closer."""
        self.race.extend(rules.resolve_deadline(time.time()))
        self.go_on()

    def go_on(self) -> None:
        """Run until the race ends."""
        jobs = self._ask()
        if not jobs:
            return
        with closing(start_backend(self._setup, self._executor)) as backend:
            lost: Counter[RunId] = Counter()
            out: dict[RunId, Job] = {}
            while jobs:
                fresh = [job for job in jobs if job.key not in out]
                backend.submit(fresh)
                out |= {job.key: job for job in fresh}
                self._collect(backend, out, lost)
                jobs = self._ask()
                self._recall(backend, out, jobs)

    def close(self) -> None:
        """Let others have the store."""
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

    def __str__(self) -> str:
        return str(self.status)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_card(str(self), self.statuses())

    # Inside

    def _ask(self) -> tuple[Job, ...]:
        before, out, left = self.race.rounds, set(self.eliminated), self.race.removed
        jobs = self.race.ask(time.time())
        if self.race.rounds > before:
            self._judge_round()
        if not self._vigil.all_failed:
            self._keep()
        news = [str(self.verdict(name)) for name in self.eliminated if name not in out]
        gone = sorted(self.race.removed - left)
        news += [f"{name} was removed: too many of its runs failed" for name in gone]
        if self.race.rounds > before:
            status = RaceStatus.of(self.race.state)
            forecast = status.describe_forecast()
            news.append(
                f"round {status.n_rounds}: {status.spent.runs:,} runs, racing "
                f"{format_list(status.pareto)}{f'; {forecast}' if forecast else ''}"
            )
        self._say(*news)
        return jobs

    def _say(self, *news: str) -> None:
        """Call the progress function; without news at most every ``BLINK`` seconds."""
        start = time.monotonic()
        ended = self.race.ended is not None
        if self._watch is not None and (news or ended or start >= self._again):
            self._watch(RaceStatus.of(self.race.state, news))
            end = time.monotonic()
            self._again = end + max(BLINK, 20 * (end - start))

    def _judge_round(self) -> None:
        """Undo the round that was decided if all of its runs failed."""
        try:
            self._vigil.round_over(self.failures)
        except SolverError:
            kept = self.race.events[: self._n_kept] if self._store is None else self._store.read()
            self.race = Race.from_events(kept, fit=self.race.fit, keep=self._store is None)
            raise

    def _keep(self) -> None:
        """What has happened is durable from here on."""
        events = self.race.events
        if self._store is not None and events:
            changed = any(not isinstance(event, Report) for event in events)
            status = RaceStatus.of(self.race.state) if changed else None
            self._store.append(events, status=status)
            self.race.forget()
        self._n_kept = len(self.race.events)

    def _collect(self, backend: Backend, out: dict[RunId, Job], lost: Counter[RunId]) -> None:
        """Take what has come in; what was lost is run again."""
        workers: defaultdict[WorkerDetails, list[RunId]] = defaultdict(list)
        for made in backend.outcomes(WAIT):
            key = made.job.key
            out.pop(key, None)
            if isinstance(made, RunOutcome):
                self._silence.end(made.seconds)
                if made.worker and key not in self.race.state.told:
                    workers[made.worker].append(key)
                self._take(made)
                continue
            lost[key] += made.was_running
            if lost[key] >= PATIENCE:
                killed = made.job.run([], [], until=0.0, status=Status.KILLED)
                self._take(RunOutcome(made.job, killed, why=made.why))
        for worker, keys in workers.items():
            self.race.record(attribution(self.race.state, keys, worker))
        if not self._vigil.all_failed:
            self._keep()
        overdue = self._silence.message([key[:2] for key in out], time.monotonic())
        if overdue:
            warn(overdue)
        self._say(*filter(None, [overdue]))

    def _take(self, made: RunOutcome) -> None:
        named = {*self.race.state.reasons}
        self.race.tell(made.run, why=made.why, output=made.output)
        failed = made.run.status in FAILED
        found = np.size(made.run.time) > 0
        odd = self._vigil.take(
            made.job.algorithm,
            found=found,
            failed=failed,
            finished=made.run.status == Status.FINISHED,
            why=made.why,
        )
        if odd:
            self.race.record(Failed.of(made.run, odd, made.output))
            if made.job.algorithm not in named:
                name, instance = escape_text(made.job.algorithm), escape_text(made.job.instance)
                warn(f"{name} on {instance}: {escape_text(odd)}")
        for name in self.race.state.reasons.keys() - named:
            self._say(f"{name} failed on {made.job.instance}: {odd or made.why}")

    def _recall(self, backend: Backend, out: dict[RunId, Job], jobs: tuple[Job, ...]) -> None:
        """Cancel queued jobs that are not wanted any more."""
        wanted = {job.key for job in jobs}
        gone = {key.algorithm for key in out if key not in wanted}
        if gone:
            for job in backend.cancel(gone):
                out.pop(job.key, None)


def now_as_text() -> str:
    """The time, for people."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _watcher(progress: bool | Watch | None, to: TextIO | None = None) -> Watch | None:
    stream = sys.stderr if to is None else to
    if callable(progress):
        return progress
    if progress is False or (progress is None and not stream.isatty()):
        return None

    def told(status: RaceStatus) -> None:
        for line in status.news:
            print(escape_text(line), file=stream, flush=True)

    return told
