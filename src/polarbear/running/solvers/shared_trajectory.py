"""``SharedTrajectory``: shared memory in which a run records its improvements and how it ended.

Its supervisor reads them, however the run ends: no message can be lost, delayed or too large, and
no descriptor can be closed by the solver.

1. Improvements are pairs (time, value). A full trajectory is thinned: the best value at each time
   of the grid stays exact, and every second one of the others is deleted. The thinned pairs are
   written to a second buffer, and a single number switches between the buffers. So the memory is
   readable if the run is killed at any moment.
2. At its end a run records its status, the time until which it was observed, and a reason.
"""

import mmap
from math import isfinite, isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.run import STATUSES, Status

MAX_REMARK_BYTES = 4_000
"""Bytes of text that a run can leave."""

MIN_CAPACITY = 4_096
"""The least number of improvements that a trajectory has room for."""

# Cells of the header; improvements begin at cell _HEADER.
_STATE, _FILL, _STARTED, _UNTIL, _STATUS, _REMARK, _CPU, _HEADER = range(8)
_PREPARING, _RUNNING, _ENDED = 0.0, 1.0, 2.0
_SECOND_BUFFER = 2**32  # added to the number of improvements if they are in the second buffer


class Ending(NamedTuple):
    """The end of a run as the run itself recorded it: status, time and reason."""

    status: Status
    until: float
    why: str


class SharedTrajectory:
    """The improvements of a run and its ending, in memory shared between processes.

    Examples
    --------
    >>> trajectory = SharedTrajectory(times=(10.0, 100.0))
    >>> trajectory.begin(0.0)
    >>> trajectory.record(3.0, 0.5)
    >>> trajectory.end(Status.FINISHED, 7.0, "")
    >>> trajectory.improvements()
    ([3.0], [0.5])
    >>> trajectory.ending()
    Ending(status=<Status.FINISHED: 'finished'>, until=7.0, why='')
    """

    def __init__(self, times: tuple[float, ...], memory: mmap.mmap | None = None) -> None:
        self._times = np.asarray(times)
        # More than twice the pairs that thinning keeps for the grid, so that thinning makes room.
        self._capacity = max(MIN_CAPACITY, 4 * len(times) + 8)
        self._memory = mmap.mmap(-1, self.size(times)) if memory is None else memory
        self._cells: Any = memoryview(self._memory).cast("d")
        self._in_second = False  # whether the improvements are in the second buffer
        self._n_improvements = 0

    @staticmethod
    def size(times: tuple[float, ...]) -> int:
        """Return the size in bytes of a run's trajectory in a race with these times."""
        return 8 * (_HEADER + 4 * max(MIN_CAPACITY, 4 * len(times) + 8)) + MAX_REMARK_BYTES

    # Written by the run

    def begin(self, now: float, cpu_seconds: float = 0.0) -> None:
        """Record when the solver started, and the CPU seconds used before that."""
        self._cells[_STARTED] = now
        self._cells[_CPU] = cpu_seconds
        self._cells[_STATE] = _RUNNING

    def record(self, time: float, value: float) -> None:
        """Record the time and value of an improvement."""
        if self._n_improvements == self._capacity:
            self._thin()
        cells = self._cells
        at = self._buffer_start(self._in_second) + 2 * self._n_improvements
        cells[at] = time
        cells[at + 1] = value
        self._n_improvements += 1
        cells[_FILL] = self._n_improvements + (_SECOND_BUFFER if self._in_second else 0)

    def write_remark(self, remark: str) -> None:
        """Record a reason to report if the run is killed before it can record one."""
        encoded = remark.encode(errors="backslashreplace")[:MAX_REMARK_BYTES]
        start = len(self._memory) - MAX_REMARK_BYTES
        self._memory[start : start + len(encoded)] = encoded
        self._cells[_REMARK] = float(len(encoded))

    def end(self, status: Status, until: float, why: str) -> None:
        """Record how the run ended; a later record replaces an earlier one."""
        self.write_remark(why)
        self._cells[_UNTIL] = until
        self._cells[_STATUS] = float(STATUSES.index(status))
        self._cells[_STATE] = _ENDED

    # Read by the supervisor

    @property
    def started_at(self) -> float | None:
        """The time by the monotonic clock at which the solver started; None before that."""
        return None if self._cells[_STATE] == _PREPARING else self._cells[_STARTED]

    @property
    def started_cpu_seconds(self) -> float:
        """The CPU seconds that the process had used when the solver started."""
        return self._cells[_CPU]

    def improvements(self) -> tuple[list[float], list[float]]:
        """Return the times and values of improvements, up to the first invalid pair.

        A run that wrote outside of its own memory may have damaged them.
        """
        fill = self._cells[_FILL]
        in_second = fill >= _SECOND_BUFFER
        n_improvements = fill - _SECOND_BUFFER if in_second else fill
        if not (0 <= n_improvements <= self._capacity):
            return [], []
        start = self._buffer_start(in_second)
        pairs = self._cells[start : start + 2 * int(n_improvements)].tolist()
        times, values = pairs[::2], pairs[1::2]
        latest = 0.0
        for k, (time, value) in enumerate(zip(times, values, strict=True)):
            if not isfinite(time) or time < latest or isnan(value):
                return times[:k], values[:k]
            latest = time
        return times, values

    def ending(self) -> Ending | None:
        """Return the record that the run made of its ending; None if it made none."""
        cells = self._cells
        if cells[_STATE] != _ENDED or cells[_STATUS] not in range(len(STATUSES)):
            return None
        return Ending(STATUSES[int(cells[_STATUS])], cells[_UNTIL], self.remark())

    def remark(self) -> str:
        """Return the reason that the run left to be reported if it is killed; "" if none."""
        length = self._cells[_REMARK]
        length = int(length) if 0 <= length <= MAX_REMARK_BYTES else 0
        start = len(self._memory) - MAX_REMARK_BYTES
        return self._memory[start : start + length].decode(errors="replace")

    def close(self) -> None:
        """Release the shared memory."""
        self._cells.release()
        self._memory.close()

    def _buffer_start(self, second: bool) -> int:
        """Return the index of the first cell of the first or second buffer."""
        return _HEADER + (2 * self._capacity if second else 0)

    def _thin(self) -> None:
        """Copy a selection of the improvements to the other buffer, and use that from now on."""
        start = self._buffer_start(self._in_second)
        pairs = np.array(self._cells[start : start + 2 * self._n_improvements]).reshape(-1, 2)
        kept = pairs[select_improvements(pairs[:, 0], self._times)]
        other = self._buffer_start(not self._in_second)
        self._cells[other : other + kept.size] = kept.ravel().data
        self._in_second, self._n_improvements = not self._in_second, len(kept)
        self._cells[_FILL] = self._n_improvements + (_SECOND_BUFFER if self._in_second else 0)


def select_improvements(
    improved: NDArray[np.float64], times: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return a mask of the improvements to keep when the memory is full.

    These are the latest one at each of ``times``, the last one, and every second one.

    >>> select_improvements(np.arange(9.0), np.array([3.5])).astype(int)
    array([1, 0, 1, 1, 1, 0, 1, 0, 1])
    """
    is_kept = np.arange(len(improved)) % 2 == 0
    latest = np.searchsorted(improved, times, side="right") - 1
    is_kept[latest[latest >= 0]] = True
    is_kept[-1:] = True
    return is_kept
