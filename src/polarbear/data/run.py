"""One run: an algorithm on an instance with a seed, what it found, and how it ended.

What a run says, and what it does not:

* between two improvements it stands at the best that it found so far;
* before its first value it has none, which ranks behind every value (the worst infinity, ``inf``
  when minimising, is the same as no value);
* after ``until`` a run that was *cut* is unknown, because nobody looked; a run that ended in
  any other way, by itself or by failing, keeps what it had found and finds nothing better.
"""

from enum import StrEnum
from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear.data.names import to_name
from polarbear.errors import DataError

Direction = Literal["minimize", "maximize"]

NO_DIRECTION = (
    "nothing says whether small or large values are good: "
    "pass direction='minimize' or direction='maximize'"
)


class Status(StrEnum):
    """How a run ended. Only a run that was cut may still have had better values to come.

    >>> Status("crashed") is Status.CRASHED, [str(status) for status in Status][:3]
    (True, ['cut', 'finished', 'out of time'])
    """

    CUT = "cut"  # watching ended at the horizon
    FINISHED = "finished"  # the algorithm stopped by itself
    OUT_OF_TIME = "out of time"
    OUT_OF_MEMORY = "out of memory"
    CRASHED = "crashed"
    KILLED = "killed"


STATUSES = tuple(Status)


class Run(NamedTuple):
    """One algorithm on one instance with one seed, watched ``until`` a time.

    ``time`` and ``value`` say what was found when, in any order; ``repetition`` tells runs on the
    same instance apart, and may be a seed.

    >>> run = Run("CSA", "sphere", time=[10, 80], value=[4.0, 0.5], until=100)
    >>> run.status, run._replace(status=Status.FINISHED).status
    (<Status.CUT: 'cut'>, <Status.FINISHED: 'finished'>)
    """

    algorithm: str
    instance: str
    time: ArrayLike
    value: ArrayLike
    until: float
    repetition: int = 0
    status: Status = Status.CUT

    def name(self, *, with_status: bool = False) -> str:
        """Which run it is, in words.

        >>> Run("CSA", "sphere", [], [], until=0).name()
        'CSA on sphere (repetition 0)'
        """
        ended = f", {self.status}" if with_status else ""
        return f"{self.algorithm} on {self.instance} (repetition {self.repetition}{ended})"


def sign_of(direction: str) -> float:
    """What turns a value into a cost, of which small is good, and a cost into a value."""
    if direction not in ("minimize", "maximize"):
        meant = {"min": "minimize", "max": "maximize"}.get(str(direction)[:3].lower())
        hint = f"; did you mean {meant!r}?" if meant else ""
        raise DataError(f"direction must be 'minimize' or 'maximize', not {direction!r}{hint}")
    return 1.0 if direction == "minimize" else -1.0


def check(run: Run) -> None:
    """Refuse what no run can have, with the name of the run."""
    try:
        time, value = (np.asarray(part, dtype=np.float64).ravel() for part in (run.time, run.value))
        problem = _problem(run, time, value, float(run.until))
    except (TypeError, ValueError, OverflowError):
        problem = "times, values and until must be numbers"
    if problem:
        raise DataError(
            f"run of algorithm {run.algorithm!r} on instance {run.instance!r}, "
            f"repetition {run.repetition}: {problem}"
        )


def _problem(
    run: Run, time: NDArray[np.float64], value: NDArray[np.float64], until: float
) -> str | None:
    latest = time.max(initial=0.0)
    bad = ~(np.isfinite(time) & (time >= 0))
    if len(time) != len(value):
        return f"{len(time)} times and {len(value)} values"
    if bad.any():
        return f"time {time[bad][0]} is not a finite time >= 0"
    if np.isnan(value).any():
        return f"the value at time {time[np.isnan(value)][0]:g} is nan"
    if not np.isfinite(until):
        return f"watched until {until:g}, which is not a finite time"
    if until < 0:
        return f"watched until {until:g}, which is before the start"
    if until < latest:
        return f"watched until {until:g}, but it has a value at {latest:g}"
    if not isinstance(run.repetition, Integral) or abs(int(run.repetition)) >> 63:
        return f"the repetition {run.repetition!r} is not a whole number of 64 bits"
    if not (to_name(run.algorithm) and to_name(run.instance)):
        return "the name of the algorithm or of the instance is missing"
    if run.status not in STATUSES:
        return f"the status {run.status!r} is not one of {', '.join(STATUSES)}"
    return None
