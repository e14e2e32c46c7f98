"""Write the status of a race for programs: one line of JSON whenever there is news."""

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
    pace = Pace()

    def watch(status: RaceStatus) -> None:
        pace.record(time.monotonic(), status.n_runs)
        if status.news or status.ended:
            write(json.dumps(to_line(status, pace), ensure_ascii=False, allow_nan=False))

    return watch
