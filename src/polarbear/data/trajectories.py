"""Trajectories as flat arrays: arrays in, arrays out; no names, no files.

The trajectories of R runs lie one after another in two long arrays ``time`` and
``value``; run r owns the slice ``offset[r]:offset[r + 1]``. Inside a slice times
increase strictly and values improve strictly, so a slice holds *improvements*.
Values here are costs: smaller is better, and ``+inf`` means "no value yet".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]


class Flat(NamedTuple):
    """Improvements of R runs in flat arrays, and when each run was last heard of."""

    offset: NDArray[np.int64]
    time: Floats
    cost: Floats
    last: Floats  # the latest row of each run, improvement or not; nan for a run without rows
    observed: bool  # whether some rows only say that nothing better was found until later
    clash: int  # a run with two different values at one time, -1 if there is none


def improvements(run: Ints, time: Floats, cost: Floats, n_runs: int) -> Flat:
    """Reduce rows in any order to the improvements of each run.

    ``run`` says to which run a row belongs. Rows may be unsorted, repeated and
    worse than earlier ones; what remains is the best so far and when it was found.

    >>> flat = improvements(np.array([1, 0, 0, 0]), np.array([3., 2., 1., 4.]),
    ...                     np.array([5., 8., 9., 8.5]), n_runs=2)
    >>> flat.offset.tolist(), flat.time.tolist(), flat.cost.tolist()
    ([0, 2, 3], [1.0, 2.0, 3.0], [9.0, 8.0, 5.0])
    """
    order = _order(run, time, n_runs)
    if order is not None:
        run, time, cost = run[order], time[order], cost[order]
        del order
    starts = _offsets(run, n_runs)
    last = np.full(n_runs, np.nan)
    heard = starts[1:] > starts[:-1]
    last[heard] = time[starts[1:][heard] - 1]
    twice = np.flatnonzero(_same_time_as_next(run, time))
    twice = twice[cost[twice] != cost[twice + 1]]
    clash = int(run[twice[0]]) if len(twice) else -1

    moments = _moments_since_first_value(run, time, cost, n_runs)
    better = _better_than_before(run, cost)
    run, time, cost = _drop(run, time, cost, ~better)
    better = _better_than_before(run, cost)
    if not better.all():
        # A row may be better than the one before it and still not the best so far.
        starts = _offsets(run, n_runs)
        for r in np.unique(run[~better]):
            part = slice(starts[r], starts[r + 1])
            best = np.minimum.accumulate(cost[part])
            better[part] = np.r_[best[0] < np.inf, best[1:] < best[:-1]]
        run, time, cost = _drop(run, time, cost, ~better)
    # Of several improvements at one time only the best one counts.
    run, time, cost = _drop(run, time, cost, _same_time_as_next(run, time))
    # More moments than improvements: at some of them there was nothing better to tell.
    return Flat(_offsets(run, n_runs), time, cost, last, moments > len(time), clash)


def costs_at(offset: Ints, time: Floats, cost: Floats, times: Floats) -> Floats:
    """Best so far of every run at every time of an increasing grid: shape (times, runs).

    >>> offset, time, cost = np.array([0, 2, 2]), np.array([1., 3.]), np.array([9., 8.])
    >>> costs_at(offset, time, cost, np.array([0., 1., 5.]))
    array([[inf, inf],
           [ 9., inf],
           [ 8., inf]])
    """
    n_runs = len(offset) - 1
    best = np.full(len(times) * n_runs, np.inf)
    # The first grid time at or after an improvement; the last improvement before it counts.
    column = np.searchsorted(times, time, side="left")
    cell = column * n_runs + np.repeat(np.arange(n_runs), np.diff(offset))
    newest = np.ones(len(cell), dtype=bool)
    newest[:-1] = cell[1:] != cell[:-1]
    newest &= column < len(times)
    best[cell[newest]] = cost[newest]
    return np.minimum.accumulate(best.reshape(len(times), n_runs), axis=0)


def gather(offset: Ints, time: Floats, cost: Floats, runs: Ints) -> tuple[Ints, Floats, Floats]:
    """The trajectories of some runs, in the order asked for; a run may be asked for twice.

    >>> gather(np.array([0, 2, 3]), np.array([1., 2., 5.]), np.array([9., 8., 7.]), np.array([1]))
    (array([0, 1]), array([5.]), array([7.]))
    """
    length = offset[runs + 1] - offset[runs]
    new = np.concatenate([[0], np.cumsum(length)])
    row = np.repeat(offset[runs] - new[:-1], length) + np.arange(new[-1])
    return new, time[row], cost[row]


def _order(run: Ints, time: Floats, n_runs: int) -> Ints | None:
    """The order that sorts rows by run, then time; ``None`` if they already are."""
    if _in_order(run, time):
        return None
    order = _group(run, n_runs)
    if _in_order(run[order], time[order]):
        return order
    by_time = np.argsort(time)
    return by_time[_group(run[by_time], n_runs)]


def _in_order(run: Ints, time: Floats) -> bool:
    if np.any(run[1:] < run[:-1]):
        return False
    return not np.any((time[1:] < time[:-1]) & (run[1:] == run[:-1]))


def _group(run: Ints, n_runs: int) -> Ints:
    """Stable sort by run. Building a sparse row matrix is a counting sort, linear in the rows."""
    rows = len(run)
    ones = np.ones(rows, dtype=np.int8)
    return csr_array((ones, (run, np.arange(rows, dtype=run.dtype))), shape=(n_runs, rows)).indices


def _offsets(run: Ints, n_runs: int) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.bincount(run, minlength=n_runs))]).astype(np.int64)


def _better_than_before(run: Ints, cost: Floats) -> NDArray[np.bool_]:
    better = cost < np.inf
    better[1:] &= (cost[1:] < cost[:-1]) | (run[1:] != run[:-1])
    return better


def _moments_since_first_value(run: Ints, time: Floats, cost: Floats, n_runs: int) -> int:
    """How many different times rows of a run are at, from its first value on, over all runs."""
    moment = np.ones(len(run), dtype=bool)  # the first row of a run at a time
    moment[1:] = (run[1:] != run[:-1]) | (time[1:] != time[:-1])
    if np.any(cost == np.inf):
        first = np.full(n_runs, np.inf)
        valued = np.flatnonzero(cost < np.inf)[::-1]
        first[run[valued]] = time[valued]  # of several, the last to be written is the earliest
        moment &= time >= first[run]
    return int(np.sum(moment))


def _same_time_as_next(run: Ints, time: Floats) -> NDArray[np.bool_]:
    same = np.zeros(len(run), dtype=bool)
    same[:-1] = (time[1:] == time[:-1]) & (run[1:] == run[:-1])
    return same


def _drop(
    run: Ints, time: Floats, cost: Floats, mask: NDArray[np.bool_]
) -> tuple[Ints, Floats, Floats]:
    if not mask.any():
        return run, time, cost
    return run[~mask], time[~mask], cost[~mask]
