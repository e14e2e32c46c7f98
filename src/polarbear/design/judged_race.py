"""``JudgedRace``: the race of a judge, which removes copies and candidates without values.

It stops as soon as the verdict about one candidate is final, or another candidate waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import numpy as np

from polarbear.coordinator.round_health import RoundHealth
from polarbear.coordinator.run_race import SolverRace
from polarbear.data.run import Run, Status
from polarbear.data.runs import Runs
from polarbear.design.candidates import REFERENCE
from polarbear.design.fitness import find_identical
from polarbear.errors import SolverError
from polarbear.inference.verdicts import Verdict
from polarbear.racing.events import Failed
from polarbear.racing.jobs import Job
from polarbear.running.solvers.setup import Setup, Solver
from polarbear.running.workers.outcomes import RunOutcome

MIN_IDENTICAL_RUNS = 8
"""The number of instances on which a copy of another candidate must have the same runs."""

COPY = "its runs are those of "
"""The reason for which a copy is removed from the race, before the name of the original."""


class JudgedRace(SolverRace):
    """A race of candidates that stops as soon as the verdict about one of them is final."""

    _shows_best = False  # which would take longer than the verdict
    _warns = False  # failures are part of the judgement

    def judge_with(self, make: Callable[[str], Solver], told: list[Run]) -> Self:
        """Give the race a function that makes the solver of a candidate, and all runs so far."""
        self.told = told  # reading the store for each candidate would take long
        self._health = RoundHealth(trusted=[REFERENCE])
        self._make = make
        self._name: str | None = None
        self._list_requests: Callable[[], Sequence[str]] = list
        self._compared: set[str] = set()  # candidates that are known to be copies, or not
        return self

    @property
    def setup(self) -> Setup:
        """The solvers and instances of the race."""
        return self._setup

    @property
    def runs(self) -> Runs:
        """All runs in full length, including the runs of eliminated candidates."""
        state = self.state
        kept = list(state.ledger.counted(self.told))
        return Runs.from_records(kept, direction=state.setup.direction, clock=state.setup.clock)

    @property
    def n_events(self) -> int:
        """The number of events in the store of the race."""
        return 0 if self._store is None else self._store.n_events

    @property
    def copies(self) -> dict[str, str]:
        """Map each candidate that was removed as a copy to the candidate with the same runs."""
        removed = self.state.members.removed
        return {
            name: why.removeprefix(COPY) for name, why in removed.items() if why.startswith(COPY)
        }

    def admit(self, names: Sequence[str], max_runs: int | None, max_time: float | None) -> None:
        """Add those candidates that are not in the race yet; raise lower limits of the others."""
        known, state = {*self._setup.solvers}, self.state
        solvers = {name: self._make(name) for name in names if name not in known}
        for name in names:
            limit = state.members.limits.get(name) if name in state.members.racing else None
            if limit is not None and _is_lower(limit.max_runs, max_runs):
                self.remove(name, "its limit is raised")  # only a new entry has new limits
                self.add(name, max_runs=max_runs, max_time=max_time)
        if solvers:
            self._take_solvers(solvers)
            for name in solvers:
                self.add(name, max_runs=max_runs, max_time=max_time, trial=True)

    def watch(self, name: str, list_requests: Callable[[], Sequence[str]]) -> None:
        """Make :meth:`resume` return when a verdict is final, or another request arrives."""
        self._name, self._list_requests = name, list_requests

    def is_settled(self, names: Sequence[str]) -> bool:
        """Return whether the verdicts about candidates are final, or no more runs are made."""
        open_ = [verdict for verdict in self.verdicts() if verdict.algorithm in names]
        return self.ended is not None or not any(map(self._is_open, open_))

    def check_reference(self) -> None:
        """Raise an error if the reference was removed, because fitness is relative to it."""
        if REFERENCE in self.state.members.removed:
            raise SolverError(
                f"the reference was removed: {self.failures.get(REFERENCE, 'its runs failed')}. "
                "Correct make_solver, the reference or the limits, and judge in a new folder"
            )

    def read_failures(self, names: Sequence[str]) -> Mapping[str, list[Failed]]:
        """Return the failed runs of candidates with their reasons, in order."""
        failures: dict[str, list[Failed]] = {name: [] for name in names}
        for event in self._store.of_kind(Failed) if self._store is not None else ():
            if event.key.algorithm in failures:
                failures[event.key.algorithm].append(event)
        return failures

    def _is_open(self, verdict: Verdict) -> bool:
        """Return whether further runs of a candidate may change the verdict about it."""
        if verdict.kind != "undecided":
            return False
        state = self.state
        if any(key.algorithm == verdict.algorithm for key in state.progress.wanted):
            return True
        return not state.has_reached_limit(verdict.algorithm)

    def _next_jobs(self) -> tuple[Job, ...]:
        """Return the next jobs; no jobs after a decision at which :meth:`resume` must return."""
        n_rounds = self.rounds
        jobs = super()._next_jobs()
        if self.rounds == n_rounds:
            return jobs
        if any([self._remove_copies(), self._remove_silent()]):
            jobs = super()._next_jobs()
        is_new = any(name not in self._setup.solvers for name in self._list_requests())
        is_due = self._name is not None and self.is_settled([self._name])
        return () if is_new or is_due else jobs

    def _remove_copies(self) -> bool:
        """Remove waiting candidates with the same runs as an earlier one; return whether any was.

        A candidate is compared once, as further runs cannot make it a copy. It may have all of its
        runs by then, if it joined together with others.
        """
        waiting = {*self._list_requests()} - self._compared
        names = [
            one.algorithm
            for one in self.verdicts()
            if one.algorithm in waiting
            and one.kind == "undecided"
            and self.state.ledger.n_runs[one.algorithm] >= MIN_IDENTICAL_RUNS
        ]
        if not names:
            return False
        self._compared.update(names)
        runs, joined, n_before = self.runs, list(self._setup.solvers), len(self.copies)
        for name in sorted(names, key=joined.index):
            earlier = [one for one in joined[: joined.index(name) + 1] if one not in self.copies]
            original = find_identical(runs.filter(algorithms=earlier), name, MIN_IDENTICAL_RUNS)
            if original is not None:
                self.remove(name, f"{COPY}{original}")
        return len(self.copies) > n_before

    def _remove_silent(self) -> bool:
        """Remove waiting candidates that never report a value; return whether any was removed.

        These are as good as failed runs, of which the budget allows some. Only runs count
        that ended or were observed until the last time, on instances on which the reference has
        reported a value.
        """
        state, waiting = self.state, {*self._list_requests()}
        silent = waiting - {run.algorithm for run in self.told if np.size(run.time)}
        if not silent:
            return False
        solved = {
            run.instance for run in self.told if run.algorithm == REFERENCE and np.size(run.time)
        }
        n_silent = Counter(
            run.algorithm
            for run in self.told
            if run.algorithm in silent
            and run.instance in solved
            and (run.status != Status.CUT or run.until >= state.setup.times[-1])
        )
        n_before = len(state.members.removed)
        allowed = state.setup.budget.failures
        enough = MIN_IDENTICAL_RUNS if allowed is None else allowed + 1
        for verdict in self.verdicts() if n_silent else ():
            name = verdict.algorithm
            if verdict.kind == "undecided" and n_silent[name] >= enough:
                self.remove(name, f"none of its {n_silent[name]} runs reported a value")
        return len(state.members.removed) > n_before

    def _take(self, outcome: RunOutcome) -> None:
        """Add a finished run to the race, and to the runs that are kept in memory."""
        if outcome.job.key not in self.state.ledger.arrived:
            self.told.append(outcome.run)
        super()._take(outcome)


def _is_lower(limit: int | None, other: int | None) -> bool:
    """Return whether a limit is lower than another one, where None is no limit."""
    return limit is not None and (other is None or limit < other)
