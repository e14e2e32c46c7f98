"""``Pace``: how fast a race gets on, and from that when it may be over."""

from collections import deque
from math import inf, isfinite
from typing import NamedTuple

from polarbear.racing.status import RaceStatus

WINDOW = 600.0
"""Seconds over which the pace is measured: races get slower as runs get longer."""


class Remaining(NamedTuple):
    """What is expected to be left: runs with an interval, and seconds for the middle of it.

    ``limit``: what will end the race before it is settled, if anything will.
    """

    runs: float
    least: float
    most: float
    seconds: float | None
    limit: str | None = None


class Pace:
    """Counts runs against the clock.

    Examples
    --------
    >>> pace = Pace()
    >>> pace.seen(0.0, 100), pace.seen(10.0, 150)
    (None, None)
    >>> pace.per_second
    5.0
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def seen(self, now: float, runs: int) -> None:
        """Take the present number of runs."""
        if not self._seen or now - self._seen[-1][0] >= 1.0:
            self._seen.append((now, runs))
        while self._seen[-1][0] - self._seen[1 if len(self._seen) > 1 else 0][0] > WINDOW:
            self._seen.popleft()

    @property
    def per_second(self) -> float:
        """Runs per second, lately."""
        if not self._seen:
            return 0.0
        (start, few), (end, many) = self._seen[0], self._seen[-1]
        return (many - few) / (end - start) if end > start else 0.0

    def remaining(self, status: RaceStatus) -> Remaining | None:
        """Return how much is left; None if that cannot be told."""
        if status.forecast is None or not status.n_open_pairs:
            return None
        done = status.n_since_decision
        least, runs, most = (max(runs - done, 0.0) for runs in status.forecast.runs)
        limit = None
        if (
            status.n_unused_instances is not None
            and status.forecast.instances[1] > status.n_unused_instances
        ):
            limit = "instances"
        allowed = status.rules.max_runs
        if allowed is not None:
            left = allowed - status.spent.runs + status.n_wanted
            limit = "max_runs" if left < runs else limit
            least, runs, most = (min(value, left) for value in (least, runs, most))
        speed = self.per_second
        seconds = runs / speed if speed and isfinite(runs) else None
        return Remaining(runs, least, most, seconds, limit)


def duration(seconds: float) -> str:
    """A time span as people say it.

    >>> duration(7), duration(95), duration(5000), duration(200_000)
    ('7 s', '1 min 35 s', '1 h 23 min', '2 d 7 h')
    """
    if not seconds < inf:
        return "endlessly"
    whole = round(seconds)
    for size, unit, small, part in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min")):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // small} {part}"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
