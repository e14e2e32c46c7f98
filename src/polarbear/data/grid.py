"""Grids: increasing arrays of the times at which runs are compared.

A finer grid asks more questions of the same runs; it does not add evidence.
"""

from __future__ import annotations

from math import floor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import format_range
from polarbear.data.runs import Runs
from polarbear.errors import Argument, DataError

MAX_RECORDED_TIMES = 200
"""Runs recorded at no more distinct times than this are compared at these times."""

MAX_CHECKPOINTS = 50
"""No more distinct times than this were chosen by whoever recorded them, so all are compared."""

SOLVED_SHARE = 0.02
"""If runs solve their instance or not, a grid begins where this share of the solved ones is."""

FIRST_SHARE, FIRST_COUNT, MAX_COUNTED_SHARE = 0.01, 10, 0.1
"""A default grid begins at this share of its end. If times are counts, such as evaluations, it
begins at this count or later, unless that is more than the second share of its end."""


def linear(start: float, stop: float, n: int = 50) -> NDArray[np.float64]:
    """Return ``n`` evenly spaced times.

    >>> linear(10, 50, 5)
    array([10., 20., 30., 40., 50.])
    """
    return check_times(np.linspace(start, stop, _check_number(n)))


def log(start: float, stop: float, n: int = 50, *, whole: bool = False) -> NDArray[np.float64]:
    """Return ``n`` times evenly spaced on a logarithmic scale; ``whole`` rounds them.

    Rounding can make early times equal; equal times are returned once.

    >>> log(1, 1000, 4)
    array([   1.,   10.,  100., 1000.])
    >>> log(1, 10, 8, whole=True)
    array([ 1.,  2.,  3.,  4.,  5.,  7., 10.])
    """
    if not start > 0:
        raise DataError("a logarithmic grid must start above 0; pass a later start", start=start)
    if not stop >= start:
        raise DataError(
            f"the grid would end at {stop:g}, before its start at {start:g}: choose a later end"
        )
    times = np.geomspace(start, stop, _check_number(n))
    return check_times(np.unique(np.maximum(np.round(times), 1.0)) if whole else times)


def from_runs(
    runs: Runs, n: int | None = None, *, start: float | None = None, stop: float | None = None
) -> NDArray[np.float64]:
    """Choose times at which to compare these runs.

    If the runs were recorded at few distinct times (at most 200), these are the grid; give ``n``
    to space times evenly instead. Spaced times are logarithmic if the values span a factor of 100
    or more, and whole numbers if all recorded times are (evaluations).

    The grid begins at 1 % of its end, because the first observations are mostly luck, and no
    algorithm that is lucky once can be dominated. Where times are whole numbers, it begins at 10
    or later, unless that is more than a tenth of its end. It never begins before half of the runs
    have a value. Of runs that were recorded at 50 distinct times or fewer, no time is left out. If
    runs only solve their instance or not, it begins where 2 % of those that do have solved it.

    The grid ends at the last time at which half of the runs are known: later, the few runs with
    the longest records would decide. ``start`` and ``stop`` override both.

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
    >>> long = Runs.from_records(
    ...     [Run("a", "1", range(1, 5001), range(5000, 0, -1), 5000)], direction="minimize")
    >>> from_runs(long, 3), from_runs(long, 3, start=10)
    (array([  50.,  500., 5000.]), array([  10.,  224., 5000.]))
    """
    recorded = _find_few_distinct(np.concatenate([runs.time, runs.until]))
    whole = _is_whole(runs.time) and _is_whole(runs.until)
    first = find_first_time(runs)
    # Where runs end by themselves says nothing of the times at which values were recorded.
    keeps_all = recorded is not None and len(np.unique(runs.time)) <= MAX_CHECKPOINTS
    begin, end = _choose_range(runs, first, start, stop, whole, keeps_all)
    if n is None:
        if recorded is not None:
            recorded = recorded[(recorded >= begin) & (recorded <= end)]
            if len(recorded):
                return check_times(recorded)
        n = 50
    first_positive = float(runs.time[runs.time > 0].min(initial=end))  # a log scale has no zero
    begin = begin or first_positive
    if begin == end:
        return check_times(end)
    if end / ((first if start is None else begin) or first_positive) >= 100:
        return log(begin, end, n, whole=whole)
    times = np.linspace(begin, end, _check_number(n))
    return check_times(np.unique(np.round(times) if whole else times))


def find_first_time(runs: Runs) -> float:
    """Return the time from which half of the runs have a value, or the first value of all.

    Of runs that only solve their instance or not, it is the time at which 2 % of those that do
    have solved it: that most have not is then a result, and no lack of values.

    >>> from polarbear.data.run import Run
    >>> runs = [Run("a", str(k), [k], [1], until=9) for k in (1, 2, 7)]
    >>> find_first_time(Runs.from_records(runs, direction="minimize"))
    2.0
    """
    if not len(runs.time):
        raise DataError("no run has a value, so a grid cannot be chosen: pass the times")
    if _solves_only(runs):
        return float(np.sort(runs.time)[int(SOLVED_SHARE * len(runs.time))])
    first = np.full(len(runs), np.inf)
    has_value = np.diff(runs.offset) > 0
    first[has_value] = runs.time[runs.offset[:-1][has_value]]
    half = np.sort(first)[(len(runs) - 1) // 2]
    return float(half if np.isfinite(half) else first[has_value].min())


def _solves_only(runs: Runs) -> bool:
    """Return whether all values are the same, so that a run has solved its instance or not."""
    return bool(np.all(runs.value == runs.value[0]) and len(runs.time) < len(runs))


def describe_start(start: float, first: float, clock: str) -> str:
    """Return a sentence: the times begin after the first values, and how to begin earlier.

    >>> describe_start(20, 1, "evaluations")
    'The times begin at 20 evaluations, because the first observations are mostly luck. To begin
    at 1 evaluation, pass times=pb.grid.from_runs(runs, start=1), or --from 1.'
    """
    return (
        f"The times begin at {format_range(start, start, clock)}, because the first observations "
        f"are mostly luck. To begin at {format_range(first, first, clock)}, pass "
        f"times=pb.grid.from_runs(runs, start={first:g}), or --from {first:g}."
    )


def _is_whole(times: NDArray[np.float64]) -> bool:
    return bool(np.all(times == np.round(times)))


def _choose_range(
    runs: Runs,
    first: float,
    start: float | None,
    stop: float | None,
    whole: bool,
    keeps_all: bool,
) -> tuple[float, float]:
    """Return the first and last time of a grid: as given, or chosen as in ``from_runs``."""
    last = float(runs.until.max())
    if start is not None and not 0 <= start <= last:
        raise DataError(f"expected a time from 0 to {last:g}, the last end of a run", start=start)
    if stop is not None and not 0 <= stop <= last:
        raise DataError(f"expected a time from 0 to {last:g}, the last end of a run", stop=stop)
    end = _find_half_known(runs) if stop is None else float(stop)
    if start is not None:
        begin = float(start)
    else:
        begin = (
            first
            if keeps_all or _solves_only(runs)
            else max(first, _find_first_meaning(end, whole))
        )
    if stop is None:
        end = max(begin, end)
    if end < begin:
        why = f"the first values are at {begin:g}" if start is None else Argument("start", start)
        raise DataError(Argument("stop", stop), " is too early: ", why)
    return begin, end


def _find_first_meaning(end: float, whole: bool) -> float:
    """Return the time at which a comparison up to ``end`` begins to be more than luck."""
    if not whole:
        return FIRST_SHARE * end
    return float(max(floor(FIRST_SHARE * end), min(FIRST_COUNT, floor(MAX_COUNTED_SHARE * end))))


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


def _check_number(n: object) -> int:
    """Return a number of times; raise ``DataError`` if it is none."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise DataError("expected a number of times of at least 1", n=n)
    return int(n)


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
