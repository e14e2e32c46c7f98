"""Detect broken setups: rounds in which every run fails, silent solvers, runs that do not end."""

from collections import Counter
from collections.abc import Collection, Mapping

from polarbear._text import escape_text, format_list
from polarbear.errors import SolverError
from polarbear.running.workers.outcomes import NO_VALUE_ADVICE

QUIET_SECONDS = 600.0
"""Seconds without the end of a run until a warning; at least three times the longest run."""

MIN_RUNS_WITHOUT_VALUE = 4
"""The number of cut runs without a value after which a solver that never had one is reported."""


class RoundHealth:
    """Records how the runs of a round ended, to detect rounds in which all of them failed.

    ``trusted`` are algorithms that are known to work. With these, only a round in which one of
    them fails too is a sign of a broken environment: other algorithms may be broken themselves.

    >>> health = RoundHealth()
    >>> for name in ("a", "b"):
    ...     _ = health.record_run(name, has_value=False, failed=True)
    >>> health.end_round({"a": "no such module", "b": "no such module"})
    Traceback (most recent call last):
    polarbear.errors.SolverError: every run of this round failed before it reported a value...
    """

    def __init__(self, trusted: Collection[str] | None = None) -> None:
        self._trusted = None if trusted is None else frozenset(trusted)
        self._failed: set[str] = set()  # algorithms with a run in this round that failed
        self._any_success = False  # whether a run of this round had a value, or did not fail
        self._n_without_value: Counter[str] = Counter()  # runs, in all rounds
        self._with_value: set[str] = set()  # algorithms that have reported a value

    def record_run(
        self,
        algorithm: str,
        *,
        has_value: bool,
        failed: bool,
        finished: bool = False,
        why: str = "",
    ) -> str:
        """Record the end of a run; return a warning if its lack of values is suspicious, else "".

        It is suspicious if the algorithm has never reported a value, and the run finished by itself
        or several runs were cut.
        """
        if has_value:
            self._with_value.add(algorithm)
        if has_value or not failed:
            self._any_success = True
        else:
            self._failed.add(algorithm)
        if has_value or failed:
            return ""
        self._n_without_value[algorithm] += 1
        if algorithm in self._with_value or (
            self._n_without_value[algorithm] < MIN_RUNS_WITHOUT_VALUE and not finished
        ):
            return ""
        return f"it reported no value: {why or NO_VALUE_ADVICE}"

    @property
    def all_failed(self) -> bool:
        """Whether this round has runs, and all of them failed before they reported a value."""
        return bool(self._failed) and not self._any_success and self._is_suspicious(self._failed)

    def _is_suspicious(self, failed: Collection[str]) -> bool:
        """Return whether failures of these algorithms suggest a fault outside of the solvers."""
        return self._trusted is None or not self._trusted.isdisjoint(failed)

    def end_round(self, why: Mapping[str, str]) -> None:
        """End a round; raise an error if it had several algorithms and all of its runs failed."""
        failed, any_success = self._failed, self._any_success
        self._failed, self._any_success = set(), False
        if len(failed) > 1 and not any_success and self._is_suspicious(failed):
            raise SolverError(
                "every run of this round failed before it reported a value "
                f"({_describe_reasons(failed, why)}). To find the cause, call polarbear.check with "
                "the same arguments: it runs each solver once, for a few seconds. Failed runs of "
                "this round are not kept, and the same call makes them again. If every solver "
                "fails on some instance, leave it out of the call, after "
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


def _describe_reasons(failed: set[str], why: Mapping[str, str]) -> str:
    """Return the reasons why algorithms failed, in one phrase if all share one reason."""
    reasons = {name: why.get(name, "no reason known") for name in sorted(failed)}
    if len(set(reasons.values())) == 1:
        return f"{format_list(list(reasons))}: {next(iter(reasons.values()))}"
    return "; ".join(f"{escape_text(name)}: {reason}" for name, reason in list(reasons.items())[:4])
