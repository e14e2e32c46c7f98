"""``Pace``: measure the runs per second of a race, and estimate the remaining time."""

from collections import deque
from math import inf, isfinite
from typing import NamedTuple

from polarbear.racing.status import RaceStatus

WINDOW_SECONDS = 600.0
"""The time over which the pace is measured: races become slower as runs become longer."""


class Remaining(NamedTuple):
    """The forecast number of remaining runs with an interval, and the seconds that these runs take.

    ``limit``: the limit that will end the race before it is settled, if any.
    """

    runs: float
    least: float
    most: float
    seconds: float | None
    limit: str | None = None


class Pace:
    """Measures how many runs per second a race makes.

    Examples
    --------
    >>> pace = Pace()
    >>> pace.record(0.0, 100), pace.record(10.0, 150)
    (None, None)
    >>> pace.per_second
    5.0
    """

    def __init__(self) -> None:
        self._records: deque[tuple[float, int]] = deque()

    def record(self, now: float, runs: int) -> None:
        """Record the number of runs made until now."""
        if not self._records or now - self._records[-1][0] >= 1.0:
            self._records.append((now, runs))
        while (
            self._records[-1][0] - self._records[1 if len(self._records) > 1 else 0][0]
            > WINDOW_SECONDS
        ):
            self._records.popleft()

    @property
    def per_second(self) -> float:
        """The number of runs per second within the last ``WINDOW_SECONDS``."""
        if not self._records:
            return 0.0
        (start, n_start), (end, n_end) = self._records[0], self._records[-1]
        return (n_end - n_start) / (end - start) if end > start else 0.0

    def remaining(self, status: RaceStatus) -> Remaining | None:
        """Return the remaining runs and seconds; None if all is decided or there is no forecast."""
        if status.forecast is None or not status.counts.open_pairs:
            return None
        n_done = status.counts.since_decision
        least, runs, most = (max(runs - n_done, 0.0) for runs in status.forecast.runs)
        limit = None
        if status.counts.unused is not None and status.forecast.instances[1] > status.counts.unused:
            limit = "instances"
        allowed = status.setup.budget.runs
        if allowed is not None:
            affordable = allowed - status.requested.runs + status.n_wanted
            limit = "budget" if affordable < runs else limit
            least, runs, most = (min(value, affordable) for value in (least, runs, most))
        speed = self.per_second
        seconds = runs / speed if speed and isfinite(runs) else None
        return Remaining(runs=runs, least=least, most=most, seconds=seconds, limit=limit)


def format_seconds(seconds: float) -> str:
    """Format a duration in its two largest units, such as hours and minutes.

    >>> format_seconds(7), format_seconds(95), format_seconds(5000), format_seconds(200_000)
    ('7 s', '1 min 35 s', '1 h 23 min', '2 d 7 h')
    """
    if not seconds < inf:
        return "endlessly"
    whole = round(seconds)
    for size, unit, small, part in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // small} {part}"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
