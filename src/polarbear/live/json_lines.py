"""Progress for programs: a line of JSON whenever something happens."""

import json
import time
from collections.abc import Callable
from math import isfinite
from typing import Any

from polarbear.live.pace import Pace
from polarbear.racing.progress import Progress


def plain(progress: Progress, pace: Pace) -> dict[str, Any]:
    """What a line holds: names, numbers and lists, and null where nothing can be told."""
    left = pace.remaining(progress)
    return {
        "statuses": [
            {**one._asdict(), "open": dict(one.open), "instances": _finite(one.instances)}
            for one in progress.statuses
        ],
        "runs": dict(progress.runs),
        "wanted": dict(progress.wanted),
        "rounds": progress.rounds,
        "open_pairs": progress.open,
        "spent": progress.spent._asdict(),
        "max_runs": progress.rules.max_runs,
        "max_time": progress.rules.max_time,
        "clock": progress.clock,
        "remaining": None
        if left is None
        else {name: _finite(value) for name, value in left._asdict().items()},
        "news": list(progress.news),
        "ended": progress.ended,
    }


def _finite(value: Any) -> Any:
    """JSON has no infinities: they are null."""
    return None if isinstance(value, float) and not isfinite(value) else value


def writer(write: Callable[[str], object]) -> Callable[[Progress], None]:
    """What prints a line for each thing that happens: a watch for a race."""
    pace = Pace()

    def watch(progress: Progress) -> None:
        pace.seen(time.monotonic(), sum(progress.runs.values()))
        if progress.news or progress.ended:
            write(json.dumps(plain(progress, pace), ensure_ascii=False, allow_nan=False))

    return watch
