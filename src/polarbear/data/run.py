"""One run: an algorithm on an instance with a seed, what it found, and how it ended.

What a run says, and what it does not:

* between two improvements it stands at the best that it found so far;
* before its first value it has none, which ranks behind every value (the worst infinity, ``inf``
  when minimising, is the same as no value);
* after ``until`` a run that was *cut* is unknown, because nobody looked; a run that ended in
  any other way, by itself or by failing, keeps what it had found and finds nothing better.
"""

from enum import StrEnum
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear.errors import DataError

Direction = Literal["minimize", "maximize"]


class Status(StrEnum):
    """How a run ended. Only a run that was cut may still have had better values to come."""

    CUT = "cut"  # watching ended at the horizon
    FINISHED = "finished"  # the algorithm stopped by itself
    OUT_OF_TIME = "out of time"
    OUT_OF_MEMORY = "out of memory"
    CRASHED = "crashed"
    KILLED = "killed"


STATUSES = tuple(Status)


class Run(NamedTuple):
    """One algorithm on one instance with one seed, watched ``until`` a time."""

    algorithm: str
    instance: str
    time: ArrayLike
    value: ArrayLike
    until: float
    repetition: int = 0
    status: Status = Status.CUT


def sign_of(direction: str) -> float:
    """What turns a value into a cost, of which small is good, and a cost into a value."""
    if direction not in ("minimize", "maximize"):
        raise DataError(f"direction must be 'minimize' or 'maximize', not {direction!r}")
    return 1.0 if direction == "minimize" else -1.0


def check(run: Run, time: NDArray[np.float64], value: NDArray[np.float64], until: float) -> None:
    """Refuse what no run can have, with the name of the run."""
    problem = None
    latest = max(time, default=0.0)
    bad = ~(np.isfinite(time) & (time >= 0))
    if len(time) != len(value):
        problem = f"{len(time)} times and {len(value)} values"
    elif bad.any():
        problem = f"time {time[bad][0]} is not a finite time >= 0"
    elif np.isnan(value).any():
        problem = f"the value at time {time[np.isnan(value)][0]:g} is nan"
    elif not until >= latest:
        problem = f"watched until {until:g}, but it has a value at {latest:g}"
    if problem:
        raise DataError(
            f"run of algorithm {run.algorithm!r} on instance {run.instance!r}, "
            f"repetition {run.repetition}: {problem}"
        )
