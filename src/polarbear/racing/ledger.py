"""``Ledger``: the runs of a race and their cost; ``Limit`` and ``TrialRuns`` of an algorithm."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from polarbear.data.run import FAILED, EncodedRun, Run
from polarbear.racing.events import Failed, Hosted
from polarbear.racing.failures import Reasons, add_failure, withdraw_failures
from polarbear.racing.jobs import Job, RunId, key_of
from polarbear.racing.run_sets import RunIdSet


def has_value(run: Run) -> bool:
    """Return whether a run reported a value."""
    return np.size(run.time) > 0


class Spent(NamedTuple):
    """A number of runs and their total time."""

    runs: int = 0
    time: float = 0.0

    def plus(self, time: float, runs: int = 1) -> "Spent":
        """Return the sum after further runs of a total time."""
        return Spent(self.runs + runs, self.time + time)


class Limit(NamedTuple):
    """The most that the runs of one algorithm may cost; None where it has no limit of its own."""

    max_runs: int | None = None
    max_time: float | None = None

    def allows(self, spent: Spent) -> bool:
        """Return whether a number of runs and their time are within the limit."""
        runs_allowed = self.max_runs is None or spent.runs <= self.max_runs
        return runs_allowed and (self.max_time is None or spent.time <= self.max_time)


class TrialRuns(NamedTuple):
    """The number of runs that a newcomer has made, and whether one had a value and did not fail.

    A broken program may take until its time limit in every run. So a newcomer first makes one run
    alone. If that is successful, the rest of its first batch follows; if not, as many runs as are
    needed to remove it.

    >>> trials = TrialRuns(), TrialRuns(1, passed=True), TrialRuns(1)
    >>> [trial.choose_batch(8, 3) for trial in trials]
    [1, 7, 3]
    """

    n_runs: int = 0
    passed: bool = False

    def after(self, success: bool) -> "TrialRuns":
        """Return the trial after one more run."""
        return TrialRuns(self.n_runs + 1, self.passed or success)

    def choose_batch(self, first_batch: int, max_failures: int | None) -> int:
        """Return how many runs to make in the next round."""
        if not self.n_runs:
            return 1
        n_runs = first_batch
        if not self.passed and max_failures is not None:
            n_runs = min(n_runs, max_failures + 1)
        return max(n_runs - self.n_runs, 1)


@dataclass
class Ledger:
    """All runs of a race by their ids, and the time that they cost.

    A requested run is charged up to its horizon, and after its round for the time that it took. An
    extension is charged from its start, or for what it adds in a replay. The first run with a given
    id counts; later ones with the same id are ignored.
    """

    arrived: RunIdSet = field(default_factory=RunIdSet)  # including withdrawn runs
    n_runs: Counter[str] = field(default_factory=Counter)  # by algorithm, without withdrawn runs
    failed: RunIdSet = field(default_factory=RunIdSet)  # by their status, or with a reason
    reasons: Reasons = field(default_factory=dict)  # why runs failed, by algorithm
    spent: Spent = field(default_factory=Spent)  # requested runs that arrived
    requested: Spent = field(default_factory=Spent)  # all requested runs, on which limits are set
    requested_by: dict[str, Spent] = field(default_factory=dict)  # the same by algorithm
    ever_requested: RunIdSet = field(default_factory=RunIdSet)  # including cancelled runs
    extends: dict[RunId, int] = field(default_factory=dict)  # the repetition that a run extends
    superseded: RunIdSet = field(default_factory=RunIdSet)  # retried after a failure, or cancelled
    withdrawn: RunIdSet = field(default_factory=RunIdSet)  # arrived, and excluded from then on
    workers: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)  # details: number

    def request(self, job: Job, cost: float) -> None:
        """Charge a requested run."""
        self.ever_requested.add(job.key)
        self.requested = self.requested.plus(cost)
        self.requested_by[job.algorithm] = self.spent_by(job.algorithm).plus(cost)

    def correct(self, difference: float) -> None:
        """Correct the charge of a run by the difference to the time that it took."""
        self.requested = self.requested.plus(difference, runs=0)

    def spent_by(self, algorithm: str) -> Spent:
        """Return what was requested of one algorithm."""
        return self.requested_by.get(algorithm, Spent())

    def receive(self, run: Run, charged_from: float) -> None:
        """Add a run that has arrived, unless one with its id has."""
        key = key_of(run)
        if key in self.arrived:
            return
        self.arrived.add(key)
        self.n_runs[key.algorithm] += 1
        if key in self.ever_requested:
            self.spent = self.spent.plus(run.until - charged_from)
        if run.status in FAILED:
            self.failed.add(key)

    def renumber(self, run: EncodedRun) -> EncodedRun | None:
        """Return a run with the repetition number that rankings use; None if it does not count.

        An extension has the number of the run that it extends. A requested run has number 0, even
        if it replaces a failed one.
        """
        key = key_of(run)
        if key in self.superseded:
            return None
        original = key._replace(repetition=self.extends.get(key, key.repetition))
        return run._replace(
            repetition=0 if original in self.ever_requested else original.repetition
        )

    def attribute(self, runs: Iterable[RunId], worker: tuple[tuple[str, str], ...]) -> Hosted:
        """Return the event that records which worker process made these runs.

        The first event of a worker also holds its details.

        >>> ledger = Ledger(workers={(("host", "node-7"),): 1})
        >>> [ledger.attribute([], (("host", f"node-{k}"),)).worker for k in (7, 8)]
        [1, 2]
        """
        number = self.workers.get(worker)
        if number is not None:
            return Hosted(number, tuple(runs))
        return Hosted(len(self.workers) + 1, tuple(runs), dict(worker))

    def fail(self, event: Failed) -> None:
        """Add the reason why a run failed."""
        add_failure(self.reasons, event)
        self.failed.add(event.key)

    def withdraw(self, pairs: set[tuple[str, str]]) -> None:
        """Exclude the runs so far of pairs (algorithm, instance)."""
        excluded = {key for key in self.arrived if key[:2] in pairs}
        self.n_runs -= Counter(key.algorithm for key in excluded - self.withdrawn)
        self.withdrawn |= excluded
        self.failed -= excluded
        self.superseded |= excluded
        withdraw_failures(self.reasons, pairs)
