"""What runs cost: ``Spent``, ``Limit`` of one algorithm, and ``Trial`` of a newcomer."""

from typing import NamedTuple

import numpy as np

from polarbear.data.run import Run


def has_value(run: Run) -> bool:
    """Return whether a run reported a value."""
    return np.size(run.time) > 0


class Spent(NamedTuple):
    """A number of runs and their total time."""

    runs: int
    time: float


class Limit(NamedTuple):
    """The most that the runs of one algorithm may cost; None where it has no limit of its own."""

    max_runs: int | None = None
    max_time: float | None = None

    def allows(self, spent: Spent) -> bool:
        """Return whether a number of runs and their time are within the limit."""
        runs_allowed = self.max_runs is None or spent.runs <= self.max_runs
        return runs_allowed and (self.max_time is None or spent.time <= self.max_time)


class Trial(NamedTuple):
    """The number of runs that a newcomer has made, and whether one had a value and did not fail.

    A broken program may take until its time limit in every run. So a newcomer first makes one run
    alone. If that is successful, the rest of its first batch follows; if not, as many runs as are
    needed to remove it.

    >>> [trial.choose_batch(8, 3) for trial in (Trial(), Trial(1, passed=True), Trial(1))]
    [1, 7, 3]
    """

    n_runs: int = 0
    passed: bool = False

    def after(self, success: bool) -> "Trial":
        """Return the trial after one more run."""
        return Trial(self.n_runs + 1, self.passed or success)

    def choose_batch(self, first_batch: int, max_failures: int | None) -> int:
        """Return how many runs to make in the next round."""
        if not self.n_runs:
            return 1
        n_runs = first_batch
        if not self.passed and max_failures is not None:
            n_runs = min(n_runs, max_failures + 1)
        return max(n_runs - self.n_runs, 1)
