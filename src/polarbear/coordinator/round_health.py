"""Detect broken setups: rounds in which every run fails, silent solvers, runs that do not end."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from polarbear._text import escape_text, format_list
from polarbear.data.run import FAILED, Status
from polarbear.errors import SolverError
from polarbear.running.workers.outcomes import NO_VALUE_ADVICE, RunOutcome

QUIET_SECONDS = 600.0
"""Seconds without the end of a run until a warning; at least three times the longest run."""

MIN_RUNS_WITHOUT_VALUE = 4
"""The number of cut runs without a value after which a solver that never had one is reported."""


class RoundHealth:
    """Records how the runs of a round ended, to detect a broken environment and silent solvers.

    ``trusted`` are algorithms that are known to work. With these, only a round in which one of
    them fails too is a sign of a broken environment: other algorithms may be broken themselves.

    >>> health = RoundHealth()
    >>> health.is_broken(["a", "b"]), health.is_broken(["a"])
    (True, False)
    >>> RoundHealth(trusted=["c"]).is_broken(["a", "b"])
    False
    """

    def __init__(self, trusted: Collection[str] | None = None) -> None:
        self._trusted = None if trusted is None else frozenset(trusted)
        self.any_success = False  # whether a run of this round had a value, or did not fail
        self._failed: set[str] = set()  # algorithms with a recorded run of this round that failed
        self._n_without_value: Counter[str] = Counter()  # runs, in all rounds
        self._with_value: set[str] = set()  # algorithms that have reported a value

    def is_broken(self, failed: Iterable[str]) -> bool:
        """Return whether the environment seems to be broken, after the last run of a round.

        ``failed``: the algorithms of runs that are not recorded, and failed without a value.
        """
        names = self._failed.union(failed)
        is_suspicious = self._trusted is None or not self._trusted.isdisjoint(names)
        return len(names) > 1 and not self.any_success and is_suspicious

    def record_run(self, outcome: RunOutcome) -> str:
        """Record the end of a run; return a warning if its lack of values is suspicious, else "".

        It is suspicious if the algorithm has never reported a value, and the run finished by itself
        or several runs were cut.
        """
        algorithm, status = outcome.job.algorithm, outcome.run.status
        if outcome.failed_without_value:
            self._failed.add(algorithm)
        else:
            self.any_success = True
        if outcome.has_value:
            self._with_value.add(algorithm)
        if outcome.has_value or status in FAILED:
            return ""
        self._n_without_value[algorithm] += 1
        if algorithm in self._with_value or (
            self._n_without_value[algorithm] < MIN_RUNS_WITHOUT_VALUE and status != Status.FINISHED
        ):
            return ""
        return f"it reported no value: {outcome.why or NO_VALUE_ADVICE}"

    def end_round(self) -> None:
        """Begin another round."""
        self.any_success = False
        self._failed.clear()


def every_run_failed(why: Mapping[str, str]) -> SolverError:
    """Return the error that all runs of a round failed, with the reason for each algorithm."""
    if len(set(why.values())) == 1:
        reasons = f"{format_list(list(why))}: {next(iter(why.values()))}"
    else:
        named = [f"{escape_text(name)}: {reason}" for name, reason in why.items()]
        reasons = "; ".join(named[:4])
    return SolverError(
        f"every run of this round failed before it reported a value ({reasons}). To find the "
        "cause, call polarbear.check with the same arguments: it runs each solver once, for a few "
        "seconds. The last failed runs are not kept, and the same call makes them again. If "
        "every solver fails on some instance, leave it out of the call, after "
        "polarbear forget STORE --instance NAME"
    )


class SilenceMonitor:
    """Detects that no run has ended for a long time: a solver hangs, or there is no worker.

    >>> monitor = SilenceMonitor()
    >>> monitor.message([], now=0.0), monitor.message([("hill", "f1")], now=601.0)
    (None, 'no run has ended for 10 minutes; under way or waiting: hill on f1. ...')
    """

    def __init__(self, longest: float = 0.0) -> None:
        self._since: float | None = None
        self._longest = longest  # seconds that a run took, or may take
        self._threshold = max(QUIET_SECONDS, 3 * longest)

    def record_end(self, seconds: float) -> None:
        """Record that a run has ended, and its duration in seconds."""
        self._longest = max(self._longest, seconds)
        self._since, self._threshold = None, max(QUIET_SECONDS, 3 * self._longest)

    def message(self, pending: Collection[tuple[str, str]], now: float) -> str | None:
        """Return a warning if no run has ended for too long, else None.

        The time until the next warning doubles with each.
        """
        self._since = now if self._since is None else self._since
        quiet = now - self._since
        if quiet < self._threshold:
            return None
        self._threshold *= 2
        names = format_list([f"{algorithm} on {instance}" for algorithm, instance in pending], 4)
        return (
            f"no run has ended for {quiet / 60:,.0f} minutes; under way or waiting: {names}. If "
            "one hangs: interrupt the race, limit runs by Limits(wall_seconds=...), or by "
            "wall_seconds under [limits] in a race file, and start it again"
        )
