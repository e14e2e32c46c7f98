"""Grids: the times at which one asks who is ahead.

A grid is an increasing array of times. Refining it asks more questions of the same runs; it does
not add evidence.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear.data.runs import Runs
from polarbear.errors import DataError

MOST_RECORDED = 200
"""The most distinct times in the data for which these times are the grid."""


def linear(start: float, stop: float, n: int = 50) -> NDArray[np.float64]:
    """``n`` evenly spaced times.

    >>> linear(10, 50, 5)
    array([10., 20., 30., 40., 50.])
    """
    return check_times(np.linspace(start, stop, n))


def log(start: float, stop: float, n: int = 50, *, whole: bool = False) -> NDArray[np.float64]:
    """``n`` times evenly spaced on a logarithmic scale; ``whole`` rounds them to whole numbers.

    Rounding can make early times coincide, which are then given once.

    >>> log(1, 1000, 4)
    array([   1.,   10.,  100., 1000.])
    >>> log(1, 10, 8, whole=True)
    array([ 1.,  2.,  3.,  4.,  5.,  7., 10.])
    """
    if not start > 0:
        raise DataError(f"a logarithmic grid must start above 0, not at {start:g}")
    if not stop >= start:
        raise DataError(f"a grid from {start:g} must end later, not at {stop:g}")
    times = np.geomspace(start, stop, n)
    return check_times(np.unique(np.maximum(np.round(times), 1.0)) if whole else times)


def from_runs(
    runs: Runs, n: int | None = None, *, start: float | None = None, stop: float | None = None
) -> NDArray[np.float64]:
    """A grid that fits the runs.

    If the runs were recorded at few distinct times (at most 200), these are the grid; give ``n``
    to space times evenly instead. Either way it starts when half of the runs have a first value
    and ends at the last time at which half of the runs are known: beyond it the few that were
    watched longest would decide. ``start`` and ``stop`` say otherwise. Spaced times are
    logarithmic if they span a factor of 100 or more, and whole numbers if all recorded times are
    (evaluations).

    >>> from polarbear.data.run import Run
    >>> runs = Runs.from_records(
    ...     [Run("a", "1", [1, 40, 900], [3, 2, 1], until=1000), Run("b", "1", [1], [2], 1000)],
    ...     direction="minimize")
    >>> from_runs(runs)
    array([   1.,   40.,  900., 1000.])
    >>> from_runs(runs, 4)
    array([   1.,   10.,  100., 1000.])
    >>> from_runs(runs, start=10, stop=900)
    array([ 40., 900.])
    """
    if not len(runs.time):
        raise DataError("no run has a value, so there are no times to choose from")
    first = np.full(len(runs), np.inf)
    has_value = np.diff(runs.offset) > 0
    first[has_value] = runs.time[runs.offset[:-1][has_value]]
    half = np.sort(first)[(len(runs) - 1) // 2]
    first_half = float(half if np.isfinite(half) else first[has_value].min())
    start, stop = _range(runs, first_half, start, stop)
    ends = runs.until
    if n is None:
        recorded = _few_distinct(np.concatenate([runs.time, ends]))
        if recorded is not None:
            recorded = recorded[(recorded >= start) & (recorded <= stop)]
            if len(recorded):
                return check_times(recorded)
        n = 50
    whole = bool(np.all(runs.time == np.round(runs.time)) and np.all(ends == np.round(ends)))
    if start == 0:  # a log scale has no zero
        start = float(runs.time[runs.time > 0].min(initial=stop))
    if start == stop:
        return check_times(stop)
    if stop / start >= 100:
        return log(start, stop, n, whole=whole)
    times = np.linspace(start, stop, n)
    return check_times(np.unique(np.round(times) if whole else times))


def _range(
    runs: Runs, first_half: float, start: float | None, stop: float | None
) -> tuple[float, float]:
    """Where a grid starts and stops: as asked for, or else where half of the runs are known."""
    last = float(runs.until.max())
    if start is not None and not 0 <= start <= last:
        raise DataError(f"start={start:g}: expected a time from 0 to {last:g}, where runs end")
    if stop is not None and not 0 <= stop <= last:
        raise DataError(f"stop={stop:g}: expected a time from 0 to {last:g}, where runs end")
    begin = first_half if start is None else float(start)
    end = max(begin, _half_are_known(runs)) if stop is None else float(stop)
    if end < begin:
        given = f"start={begin:g}" if start is not None else f"the first values are at {begin:g}"
        raise DataError(f"stop={end:g} is too early: {given}")
    return begin, end


def _half_are_known(runs: Runs) -> float:
    """The last time at which at least half of the runs are known; what ended by itself stays so."""
    known = np.where(runs.cut, runs.until, np.inf)
    half = np.sort(known)[len(runs) // 2]
    return float(half if np.isfinite(half) else runs.until.max())


def _few_distinct(times: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The distinct times if they are few; a sample spares sorting millions of them in vain."""
    for some in (times[:: max(1, len(times) // 10_000)], times):
        distinct = np.unique(some)
        if len(distinct) > MOST_RECORDED:
            return None
    return distinct


def check_times(times: ArrayLike) -> NDArray[np.float64]:
    """Check a grid: at least one time, all finite and not negative, strictly increasing.

    >>> check_times([1, 3, 2])
    Traceback (most recent call last):
    polarbear.errors.DataError: times must increase: 2 at position 2 follows 3
    """
    grid = np.atleast_1d(np.array(times, dtype=np.float64))
    if grid.ndim != 1 or not len(grid):
        raise DataError(f"times must be a list of at least one time, not of shape {grid.shape}")
    bad = ~np.isfinite(grid) | (grid < 0)
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(f"times must be finite and not negative: {grid[at]} at position {at}")
    back = np.diff(grid) <= 0
    if back.any():
        at = int(np.argmax(back)) + 1
        raise DataError(
            f"times must increase: {grid[at]:g} at position {at} follows {grid[at - 1]:g}"
        )
    grid.flags.writeable = False
    return grid
