"""Write the status of a race for programs: a line of JSON for each decision and other news."""

import json
import time
from collections.abc import Callable
from math import isfinite
from typing import Any

from polarbear.live.pace import Pace
from polarbear.racing.status import RaceStatus


def to_line(status: RaceStatus, pace: Pace) -> dict[str, Any]:
    """Return the content of a JSON line: the status, and the remaining runs and seconds."""
    estimate = pace.remaining(status)
    remaining = estimate and {name: _finite(value) for name, value in estimate._asdict().items()}
    return {**status.to_dict(), "remaining": remaining}


def _finite(value: Any) -> Any:
    """Return a number; None if it is infinite, which JSON cannot express."""
    return None if isinstance(value, float) and not isfinite(value) else value


def make_line_writer(write: Callable[[str], object]) -> Callable[[RaceStatus], None]:
    """Return a progress function that writes a JSON line whenever there is news."""
    pace, n_rounds = Pace(), 0

    def watch(status: RaceStatus) -> None:
        nonlocal n_rounds
        pace.record(time.monotonic(), status.n_runs)
        is_decided, n_rounds = status.counts.rounds > n_rounds, status.counts.rounds
        if status.news or is_decided or status.ended:
            write(json.dumps(to_line(status, pace), ensure_ascii=False, allow_nan=False))

    return watch
