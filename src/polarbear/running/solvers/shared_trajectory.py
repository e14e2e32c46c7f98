"""``Board``: a page of memory that a run and its supervisor share.

What a run finds is written here at once. It is there whatever becomes of the run: no message is on
its way that could be lost, held back or too large, and no descriptor that a solver might close.

1. Improvements are pairs (time, value). When the page is full it is thinned: what was best at each
   time of the grid stays exact, and of the rest every second one goes. The thinned pairs are
   written beside the old ones, and one number says which of the two count, so that a run that is
   killed at any moment leaves a page that can be read.
2. At its end a run says how it ended, until when it was watched, and why.
"""

import mmap
from math import isfinite, isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.run import STATUSES, Status

LONGEST_WORDS = 4_000
"""Bytes of text that a run can leave."""

LEAST = 4_096
"""The least number of improvements that are kept."""

_STATE, _FILL, _BEGAN, _UNTIL, _STATUS, _WORDS, _CPU, _HEADER = range(8)
_PREPARING, _RUNNING, _OVER = 0.0, 1.0, 2.0
_SECOND = 2**32  # added to the number of improvements if they are in the second place


class Ending(NamedTuple):
    """How a run says that it ended."""

    status: Status
    until: float
    why: str


class Board:
    """What a run has found so far, shared between processes.

    Examples
    --------
    >>> board = Board(times=(10.0, 100.0))
    >>> board.begin(0.0)
    >>> board.record(3.0, 0.5)
    >>> board.end(Status.FINISHED, 7.0, "")
    >>> board.improvements()
    ([3.0], [0.5])
    >>> board.ending()
    Ending(status=<Status.FINISHED: 'finished'>, until=7.0, why='')
    """

    def __init__(self, times: tuple[float, ...], memory: mmap.mmap | None = None) -> None:
        self._times = np.asarray(times)
        # Twice as many as cannot be thinned, so that thinning makes room.
        self._capacity = max(LEAST, 4 * len(times) + 8)
        self._memory = mmap.mmap(-1, self.size(times)) if memory is None else memory
        self._cells: Any = memoryview(self._memory).cast("d")
        self._second = False
        self._n = 0

    @staticmethod
    def size(times: tuple[float, ...]) -> int:
        """How many bytes a board for these times takes."""
        return 8 * (_HEADER + 4 * max(LEAST, 4 * len(times) + 8)) + LONGEST_WORDS

    # Written by the run

    def begin(self, now: float, cpu: float = 0.0) -> None:
        """The solver starts: what came before was preparation, and took so many CPU seconds."""
        self._cells[_BEGAN] = now
        self._cells[_CPU] = cpu
        self._cells[_STATE] = _RUNNING

    def record(self, time: float, value: float) -> None:
        """Write down an improvement."""
        if self._n == self._capacity:
            self._thin()
        cells = self._cells
        at = self._start(self._second) + 2 * self._n
        cells[at] = time
        cells[at + 1] = value
        self._n += 1
        cells[_FILL] = self._n + (_SECOND if self._second else 0)

    def write_remark(self, remark: str) -> None:
        """Leave words for the case that the run is ended before it can say why."""
        encoded = remark.encode(errors="backslashreplace")[:LONGEST_WORDS]
        start = len(self._memory) - LONGEST_WORDS
        self._memory[start : start + len(encoded)] = encoded
        self._cells[_WORDS] = float(len(encoded))

    def end(self, status: Status, until: float, why: str) -> None:
        """Say how it ended. What was said last counts."""
        self.write_remark(why)
        self._cells[_UNTIL] = until
        self._cells[_STATUS] = float(STATUSES.index(status))
        self._cells[_STATE] = _OVER

    # Read by the supervisor

    @property
    def began(self) -> float | None:
        """When the solver started, if it did."""
        return None if self._cells[_STATE] == _PREPARING else self._cells[_BEGAN]

    @property
    def began_cpu(self) -> float:
        """How many CPU seconds had been used when the solver started."""
        return self._cells[_CPU]

    def improvements(self) -> tuple[list[float], list[float]]:
        """Times and values, as far as they are sound: a run may have written over its memory."""
        fill = self._cells[_FILL]
        second = fill >= _SECOND
        n = fill - _SECOND if second else fill
        if not (0 <= n <= self._capacity):
            return [], []
        start = self._start(second)
        pairs = self._cells[start : start + 2 * int(n)].tolist()
        times, values = pairs[::2], pairs[1::2]
        latest = 0.0
        for k, (time, value) in enumerate(zip(times, values, strict=True)):
            if not isfinite(time) or time < latest or isnan(value):
                return times[:k], values[:k]
            latest = time
        return times, values

    def ending(self) -> Ending | None:
        """How the run says that it ended, if it came to say so."""
        cells = self._cells
        if cells[_STATE] != _OVER or cells[_STATUS] not in range(len(STATUSES)):
            return None
        return Ending(STATUSES[int(cells[_STATUS])], cells[_UNTIL], self.remark())

    def remark(self) -> str:
        """The words that the run left."""
        length = self._cells[_WORDS]
        length = int(length) if 0 <= length <= LONGEST_WORDS else 0
        start = len(self._memory) - LONGEST_WORDS
        return self._memory[start : start + length].decode(errors="replace")

    def close(self) -> None:
        """Give the memory back."""
        self._cells.release()
        self._memory.close()

    # Inside

    def _start(self, second: bool) -> int:
        return _HEADER + (2 * self._capacity if second else 0)

    def _thin(self) -> None:
        start = self._start(self._second)
        pairs = np.array(self._cells[start : start + 2 * self._n]).reshape(-1, 2)
        kept = pairs[thinned(pairs[:, 0], self._times)]
        other = self._start(not self._second)
        self._cells[other : other + kept.size] = kept.ravel().data
        self._second, self._n = not self._second, len(kept)
        self._cells[_FILL] = self._n + (_SECOND if self._second else 0)


def thinned(time: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which improvements stay: the last one at each of ``times``, the last, every second one.

    >>> thinned(np.arange(9.0), np.array([3.5])).astype(int)
    array([1, 0, 1, 1, 1, 0, 1, 0, 1])
    """
    stay = np.arange(len(time)) % 2 == 0
    best = np.searchsorted(time, times, side="right") - 1
    stay[best[best >= 0]] = True
    stay[-1:] = True
    return stay
