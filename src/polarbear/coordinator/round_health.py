"""Notices what cannot be meant: rounds in which everybody fails, solvers that never report."""

from collections import Counter
from collections.abc import Collection, Mapping

from polarbear._text import escape_text, format_list
from polarbear.errors import SolverError
from polarbear.running.workers.outcomes import NO_VALUE_ADVICE

QUIET_SECONDS = 600.0
"""Seconds without the end of a run, and three times the longest run, after which this is said."""

SILENT = 4
"""The number of runs cut without a value, of an algorithm that never found one, that is odd."""


class Vigil:
    """What the runs of a round came to, of all who were in it.

    >>> vigil = Vigil()
    >>> for name in ("a", "b"):
    ...     _ = vigil.take(name, found=False, failed=True)
    >>> vigil.round_over({"a": "no such module", "b": "no such module"})
    Traceback (most recent call last):
    polarbear.errors.SolverError: every run of this round failed before it found anything...
    """

    def __init__(self) -> None:
        self._failed: set[str] = set()  # in this round
        self._others = False  # whether anything else happened in it
        self._quiet: Counter[str] = Counter()  # runs without a value, ever
        self._heard: set[str] = set()  # algorithms that have found something

    def take(
        self, algorithm: str, *, found: bool, failed: bool, finished: bool = False, why: str = ""
    ) -> str:
        """Take the end of a run; why it found nothing, if that is odd, else "".

        Of an algorithm that has never found anything, a run that finished by itself is odd, and so
        are runs that were cut, if there are several.
        """
        if found:
            self._heard.add(algorithm)
        if found or not failed:
            self._others = True
        else:
            self._failed.add(algorithm)
        if found or failed:
            return ""
        self._quiet[algorithm] += 1
        if algorithm in self._heard or (self._quiet[algorithm] < SILENT and not finished):
            return ""
        return f"it found nothing: {why or NO_VALUE_ADVICE}"

    @property
    def all_failed(self) -> bool:
        """Whether runs of this round came in, and all of them failed before they found anything."""
        return bool(self._failed) and not self._others

    def round_over(self, why: Mapping[str, str]) -> None:
        """Raise if there is nothing to compare."""
        failed, others = self._failed, self._others
        self._failed, self._others = set(), False
        if len(failed) > 1 and not others:
            raise SolverError(
                "every run of this round failed before it found anything, so there is nothing to "
                f"compare ({_reasons(failed, why)}); polarbear.check with the same arguments runs "
                "each solver once for a moment. None of these runs is kept: the same call makes "
                "them again. To go on without instances on which every solver fails: polarbear "
                "forget STORE --instance NAME, and leave them out of the call"
            )


class Silence:
    """Notices that no run has ended for long: a solver hangs, or no worker has come.

    >>> silence = Silence()
    >>> silence.message([], now=0.0), silence.message([("hill", "f1")], now=601.0)
    (None, 'no run has ended for 10 minutes; under way or waiting: hill on f1. ...')
    """

    def __init__(self, longest: float = 0.0) -> None:
        self._since: float | None = None
        self._longest = longest  # seconds that a run has taken, or may take
        self._patience = max(QUIET_SECONDS, 3 * longest)

    def end(self, seconds: float) -> None:
        """A run has ended that took so long."""
        self._longest = max(self._longest, seconds)
        self._since, self._patience = None, max(QUIET_SECONDS, 3 * self._longest)

    def message(self, pending: Collection[tuple[str, str]], now: float) -> str | None:
        """What to say of pending (algorithm, instance), if it is time; each time half as often."""
        self._since = now if self._since is None else self._since
        quiet = now - self._since
        if quiet < self._patience:
            return None
        self._patience *= 2
        names = format_list([f"{algorithm} on {instance}" for algorithm, instance in pending], 4)
        return (
            f"no run has ended for {quiet / 60:,.0f} minutes; under way or waiting: {names}. If "
            "one hangs: interrupt the race, limit runs by Limits(wall_seconds=...), or by "
            "wall_seconds under [limits] in a race file, and start it again"
        )


def _reasons(failed: set[str], why: Mapping[str, str]) -> str:
    """Why they failed; once, if it is the same for all."""
    said = {name: why.get(name, "no reason known") for name in sorted(failed)}
    if len(set(said.values())) == 1:
        return f"{format_list(list(said))}: {next(iter(said.values()))}"
    return "; ".join(f"{escape_text(name)}: {reason}" for name, reason in list(said.items())[:4])
