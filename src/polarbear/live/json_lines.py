"""The status of a race for programs: a line of JSON whenever something happens."""

import json
import time
from collections.abc import Callable
from math import isfinite
from typing import Any

from polarbear.live.pace import Pace
from polarbear.racing.status import RaceStatus


def to_line(status: RaceStatus, pace: Pace) -> dict[str, Any]:
    """Return what a line holds: the status, and how much remains at this pace."""
    left = pace.remaining(status)
    remaining = left and {name: _finite(value) for name, value in left._asdict().items()}
    return {**status.to_dict(), "remaining": remaining}


def _finite(value: Any) -> Any:
    """Return a value for JSON, which has no infinities: they are None."""
    return None if isinstance(value, float) and not isfinite(value) else value


def line_writer(write: Callable[[str], object]) -> Callable[[RaceStatus], None]:
    """Return a progress function that writes a line whenever something happens."""
    pace = Pace()

    def watch(status: RaceStatus) -> None:
        pace.seen(time.monotonic(), status.n_runs)
        if status.news or status.ended:
            write(json.dumps(to_line(status, pace), ensure_ascii=False, allow_nan=False))

    return watch
