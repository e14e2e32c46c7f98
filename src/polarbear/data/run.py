"""One run of an algorithm on an instance: its record, its only validator and its only codec.

How a trajectory is read:

* between two improvements the best value so far holds;
* before the first value there is none, which ranks behind every value (the worst infinity, ``inf``
  when minimising, means the same);
* after ``until`` a run that was *cut* is unknown, because it was not observed; a run that ended in
  any other way, by itself or by failing, keeps its best value for ever;
* where nothing says how a run ended (*unstated*), ``Runs.ended`` decides what the data can decide,
  and the rest is read as finished; ``rank`` and ``fit`` then also read it as cut.

Events, stores, the shared folder and the race itself check runs with ``check_run`` or
``normalise_run`` and encode them with ``encode_run`` (bytes) or ``run_to_plain`` (for JSON).
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from math import inf, isfinite
from numbers import Integral
from struct import Struct
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear.data.names import check_name, to_name
from polarbear.errors import Argument, DataError

Floats = NDArray[np.float64]

Direction = Literal["minimize", "maximize"]
Directions = Direction | Sequence[Direction]
"""One direction, or one for each of several values."""

SAY_DIRECTION = (Argument("direction", "minimize"), " or ", Argument("direction", "maximize"))

NO_DIRECTION = ("nothing says whether small or large values are good: pass ", SAY_DIRECTION)


class Status(StrEnum):
    """How a run ended: only a run that was cut might have found better values later.

    >>> Status("crashed") is Status.CRASHED, [str(status) for status in Status][:3]
    (True, ['cut', 'finished', 'out of time'])
    """

    CUT = "cut"  # watching ended at the horizon
    FINISHED = "finished"  # the algorithm stopped by itself
    OUT_OF_TIME = "out of time"
    OUT_OF_MEMORY = "out of memory"
    CRASHED = "crashed"
    KILLED = "killed"
    UNSTATED = "unstated"  # nothing says how it ended


FAILED = frozenset({Status.CRASHED, Status.KILLED, Status.OUT_OF_MEMORY})
"""The statuses of runs that failed. Running out of time is a result, not a failure."""

STATUSES = tuple(Status)

STATUS_CODES: Mapping[Status, int] = {status: code for code, status in enumerate(STATUSES)}
"""The number of each status in files. It never changes: a new status goes to the end."""

IMPROVEMENT_BYTES = 16
"""The size of one improvement in ``EncodedRun.trajectory``: a time and a value of 8 bytes."""


class Run(NamedTuple):
    """One run of an algorithm on an instance: its improvements, and until when it was observed.

    ``time`` and ``value`` hold the improvements in any order; ``repetition`` tells runs on the
    same instance apart, and may be a seed.

    >>> run = Run("CSA", "sphere", time=[10, 80], value=[4.0, 0.5], until=100)
    >>> run.status, run._replace(status=Status.FINISHED).status
    (<Status.UNSTATED: 'unstated'>, <Status.FINISHED: 'finished'>)
    """

    algorithm: str
    instance: str
    time: "ArrayLike"
    value: "ArrayLike"
    until: float
    repetition: int = 0
    status: Status = Status.UNSTATED

    def name(self, *, with_status: bool = False) -> str:
        """Return the algorithm, the instance and the repetition of the run as text.

        >>> Run("CSA", "sphere", [], [], until=0).name()
        'CSA on sphere (repetition 0)'
        """
        ended = f", {self.status}" if with_status else ""
        return f"{self.algorithm} on {self.instance} (repetition {self.repetition}{ended})"


class EncodedRun(NamedTuple):
    """A run whose times and values are stored as bytes.

    ``trajectory``: all times, then all values, as little-endian numbers of 8 bytes.
    """

    algorithm: str
    instance: str
    repetition: int
    until: float
    status: Status
    trajectory: bytes

    @property
    def n_improvements(self) -> int:
        """Return the number of improvements of the run."""
        return len(self.trajectory) // IMPROVEMENT_BYTES


def sign_of(direction: str) -> float:
    """Return the factor 1 or -1 that turns values into costs, of which less is better."""
    if direction not in ("minimize", "maximize"):
        meant = {"min": "minimize", "max": "maximize"}.get(str(direction)[:3].lower())
        hint = f"; did you mean {meant!r}?" if meant else ""
        raise DataError(f"direction must be 'minimize' or 'maximize', not {direction!r}{hint}")
    return 1.0 if direction == "minimize" else -1.0


def opposite_of(direction: Direction) -> Direction:
    """Return the opposite direction, in which bounds on the objective improve.

    >>> opposite_of("minimize")
    'maximize'
    """
    return "maximize" if direction == "minimize" else "minimize"


# The validator


def check_run(run: Run) -> Run:
    """Return a run with built-in types; raise an error that names the run and its defect.

    Times and values that are tuples or arrays of 64-bit floats stay as they are.

    >>> check_run(Run("CSA", "sphere", [10], [4.0], until=5))
    Traceback (most recent call last):
    polarbear.errors.DataError: run of algorithm 'CSA' on instance 'sphere', repetition 0: watched
    until 5, but it has a value at 10
    """
    return run if _is_surely_valid(run) else normalise_run(run)


def normalise_run(run: Run) -> Run:
    """Check a run as ``check_run`` does; return it with tuples of floats.

    >>> normalise_run(Run("CSA", 7, np.array([10]), [4], until=100))
    Run(algorithm='CSA', instance='7', time=(10.0,), value=(4.0,), until=100.0, repetition=0, \
status=<Status.UNSTATED: 'unstated'>)
    """
    try:
        time, value, until = _as_floats(run.time), _as_floats(run.value), float(run.until)
        problem = _describe_problem(run, time, value, until)
    except (TypeError, ValueError, OverflowError):
        raise _error(run, "times, values and until must be numbers") from None
    if problem:
        raise _error(run, problem)
    names = (check_name(to_name(run.algorithm)), check_name(to_name(run.instance)))
    numbers = (tuple(time.tolist()), tuple(value.tolist()), until, int(run.repetition))
    return Run(*names, *numbers, Status(run.status))


def are_valid_trajectories(
    time: Floats, value: Floats, until: Floats, run_of_row: NDArray[np.integer]
) -> bool:
    """Return whether the rows of many runs satisfy all rules of ``check_run``.

    ``time``, ``value`` and ``run_of_row`` have shape [rows], ``until`` has shape [runs].

    >>> rows = np.array([10.0]), np.array([4.0])
    >>> [are_valid_trajectories(*rows, np.array([until]), np.array([0])) for until in (100.0, 5.0)]
    [True, False]
    """
    return bool(
        len(time) == len(value)
        and np.isfinite(until).all()
        and np.all(until >= 0)
        and np.all(time >= 0)
        and np.all(time <= until[run_of_row])
        and not np.isnan(value).any()
    )


def _is_surely_valid(run: Run) -> bool:
    """Return whether a quick test shows that a run is valid; if not, a full test is needed.

    The quick test takes built-in types, and arrays of 64-bit numbers in place of tuples.
    """
    time: Any = run.time
    value: Any = run.value
    try:
        if type(time) is type(value) is tuple:
            low, high = min(time, default=0.0), max(time, default=0.0)
            # The minimum of a tuple can miss nan, the sum does not.
            total = sum(time, sum(value, 0.0))
        elif type(time) is type(value) is np.ndarray and _are_float_vectors(time, value):
            low, high = time.min(initial=0.0), time.max(initial=0.0)
            total = value.min(initial=0.0)  # the minimum of an array does not miss nan
        else:
            return False
        return (
            type(run.algorithm) is type(run.instance) is str
            and type(run.until) is float
            and type(run.repetition) is int
            and type(run.status) is Status
            and len(time) == len(value)
            and 0 <= low <= high <= run.until < inf
            and total == total
            and not abs(run.repetition) >> 63
            and bool(run.algorithm.encode() and run.instance.encode())
        )
    except (TypeError, ValueError, OverflowError):  # no numbers, or a name is not Unicode
        return False


def _describe_problem(run: Run, time: Floats, value: Floats, until: float) -> str | None:
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


def _error(run: Run, problem: str) -> DataError:
    return DataError(
        f"run of algorithm {run.algorithm!r} on instance {run.instance!r}, "
        f"repetition {run.repetition}: {problem}"
    )


def _as_floats(numbers: ArrayLike) -> Floats:
    return np.asarray(numbers, dtype=np.float64).ravel()


def _are_float_vectors(time: Floats, value: Floats) -> bool:
    return time.dtype.char == value.dtype.char == "d" and time.ndim == value.ndim == 1


# The codec


def encode_run(run: Run) -> EncodedRun:
    """Encode a run that ``check_run`` returned.

    >>> encoded = encode_run(Run("CSA", "sphere", (10.0, 80.0), (4.0, 0.5), until=100.0))
    >>> encoded.n_improvements, len(encoded.trajectory)
    (2, 32)
    """
    time: Any = run.time
    value: Any = run.value
    if type(time) is type(value) is tuple:
        trajectory = _numbers(2 * len(time)).pack(*time, *value)
    else:
        trajectory = b"".join(np.asarray(part, dtype="<f8").tobytes() for part in (time, value))
    return EncodedRun(
        algorithm=run.algorithm,
        instance=run.instance,
        repetition=run.repetition,
        until=run.until,
        status=run.status,
        trajectory=trajectory,
    )


def decode_run(encoded: EncodedRun, *, arrays: bool = False) -> Run:
    """Decode a run from bytes without checking its content.

    ``arrays``: times and values become arrays, which take less memory than tuples.

    >>> decode_run(encode_run(Run("CSA", "sphere", (10.0,), (4.0,), until=100.0))).value
    (4.0,)
    """
    algorithm, instance, repetition, until, status, trajectory = encoded
    middle = len(trajectory) // IMPROVEMENT_BYTES
    numbers: Any
    if arrays:
        numbers = np.frombuffer(trajectory, dtype="<f8")
    else:
        numbers = _numbers(2 * middle).unpack(trajectory)
    time, value = numbers[:middle], numbers[middle:]
    return Run(
        algorithm=algorithm,
        instance=instance,
        time=time,
        value=value,
        until=until,
        repetition=repetition,
        status=status,
    )


def run_to_plain(run: Run) -> dict[str, Any]:
    """Return a valid run as lists, numbers and text for JSON; infinite values become text.

    >>> run_to_plain(Run("CSA", "sphere", [10], [-np.inf], until=100))["value"]
    ['-inf']
    """
    values = _as_floats(run.value).tolist()
    return run._asdict() | {
        "time": _as_floats(run.time).tolist(),
        "value": [value if isfinite(value) else str(value) for value in values],
    }


def run_from_plain(plain: Mapping[str, Any]) -> Run:
    """Return the run that ``run_to_plain`` turned into plain data, after a check.

    >>> run_from_plain(run_to_plain(Run("CSA", "sphere", [10], [np.inf], until=100))).value
    (inf,)
    """
    return normalise_run(Run(**plain))


@lru_cache(maxsize=4096)
def _numbers(count: int) -> Struct:
    return Struct(f"<{count}d")
