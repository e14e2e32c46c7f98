"""Grids: increasing arrays of the times at which runs are compared.

A finer grid asks more questions of the same runs; it does not add evidence.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear.data.runs import Runs
from polarbear.errors import DataError

MAX_RECORDED_TIMES = 200
"""Runs recorded at no more distinct times than this are compared at these times."""


def linear(start: float, stop: float, n: int = 50) -> NDArray[np.float64]:
    """Return ``n`` evenly spaced times.

    >>> linear(10, 50, 5)
    array([10., 20., 30., 40., 50.])
    """
    return check_times(np.linspace(start, stop, n))


def log(start: float, stop: float, n: int = 50, *, whole: bool = False) -> NDArray[np.float64]:
    """Return ``n`` times evenly spaced on a logarithmic scale; ``whole`` rounds them.

    Rounding can make early times equal; equal times are returned once.

    >>> log(1, 1000, 4)
    array([   1.,   10.,  100., 1000.])
    >>> log(1, 10, 8, whole=True)
    array([ 1.,  2.,  3.,  4.,  5.,  7., 10.])
    """
    if not start > 0:
        raise DataError(
            f"start={start:g}: a logarithmic grid must start above 0; pass a later start"
        )
    if not stop >= start:
        raise DataError(
            f"the grid would end at {stop:g}, before its start at {start:g}: choose a later end"
        )
    times = np.geomspace(start, stop, n)
    return check_times(np.unique(np.maximum(np.round(times), 1.0)) if whole else times)


def from_runs(
    runs: Runs, n: int | None = None, *, start: float | None = None, stop: float | None = None
) -> NDArray[np.float64]:
    """Choose times at which to compare these runs.

    If the runs were recorded at few distinct times (at most 200), these are the grid; give ``n``
    to space times evenly instead. The grid starts when half of the runs have a first value. It
    ends at the last time at which half of the runs are known: later, the few runs with the
    longest records would decide. ``start`` and ``stop`` override this. Spaced times are
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
        raise DataError("no run has a value, so a grid cannot be chosen: pass the times")
    first = np.full(len(runs), np.inf)
    has_value = np.diff(runs.offset) > 0
    first[has_value] = runs.time[runs.offset[:-1][has_value]]
    half = np.sort(first)[(len(runs) - 1) // 2]
    first_half = float(half if np.isfinite(half) else first[has_value].min())
    start, stop = _choose_range(runs, first_half, start, stop)
    ends = runs.until
    if n is None:
        recorded = _find_few_distinct(np.concatenate([runs.time, ends]))
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


def _choose_range(
    runs: Runs, first_half: float, start: float | None, stop: float | None
) -> tuple[float, float]:
    """Return the first and last time: as given, or chosen so that half of the runs are known."""
    last = float(runs.until.max())
    if start is not None and not 0 <= start <= last:
        raise DataError(
            f"start={start:g}: expected a time from 0 to {last:g}, the last end of a run"
        )
    if stop is not None and not 0 <= stop <= last:
        raise DataError(f"stop={stop:g}: expected a time from 0 to {last:g}, the last end of a run")
    begin = first_half if start is None else float(start)
    end = max(begin, _find_half_known(runs)) if stop is None else float(stop)
    if end < begin:
        given = f"start={begin:g}" if start is not None else f"the first values are at {begin:g}"
        raise DataError(f"stop={end:g} is too early: {given}")
    return begin, end


def _find_half_known(runs: Runs) -> float:
    """Return the last time at which the best value of at least half of the runs is known.

    A run that was not cut is known at all times, because it keeps its value after its end.
    """
    known_until = np.where(runs.cut, runs.until, np.inf)
    half = np.sort(known_until)[len(runs) // 2]
    return float(half if np.isfinite(half) else runs.until.max())


def _find_few_distinct(times: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return the distinct times, or ``None`` if there are more than ``MAX_RECORDED_TIMES``."""
    # A sample first: where that has too many, millions of times need not be sorted.
    for part in (times[:: max(1, len(times) // 10_000)], times):
        distinct = np.unique(part)
        if len(distinct) > MAX_RECORDED_TIMES:
            return None
    return distinct


def check_times(times: ArrayLike) -> NDArray[np.float64]:
    """Return the times as an array; raise ``DataError`` unless they increase strictly.

    A grid has at least one time, and its times are finite and not negative.

    >>> check_times([1, 3, 2])
    Traceback (most recent call last):
    polarbear.errors.DataError: times must increase: 2 at position 2 follows 3
    """
    grid = np.atleast_1d(np.array(times, dtype=np.float64))
    if grid.ndim != 1 or not len(grid):
        raise DataError(f"times must be a list of at least one time, got shape {grid.shape}")
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
