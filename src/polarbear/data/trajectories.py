"""Best-so-far trajectories of many runs, stored one after another in flat arrays.

The improvements of R runs lie in two long arrays ``time`` and ``cost``; run r owns the slice
``offset[r]:offset[r + 1]``. Inside a slice, times increase strictly, and costs decrease strictly
unless the values of the runs are not their best so far. Smaller costs are better, and ``+inf``
means "no value yet".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
_Rows = tuple[Ints, Floats, Floats]


class FlatTrajectories(NamedTuple):
    """The improvements of many runs in flat arrays, with facts about the original rows."""

    offset: NDArray[np.int64]  # (R + 1,)
    time: Floats  # (improvements,)
    cost: Floats  # (improvements,)
    last: Floats  # (R,): the time of each run's last row, improvement or not; nan without rows
    has_non_improving: bool  # whether some rows after a run's first value improve nothing
    conflicting_run: int  # a run with two different values at one time, -1 if there is none


def extract_improvements(
    run: Ints, time: Floats, cost: Floats, n_runs: int, *, best_so_far: bool = True
) -> FlatTrajectories:
    """Reduce rows in any order to those that improve on all earlier rows of their run.

    ``run[i]`` is the run of row i. Rows may be unsorted, repeated, and worse than earlier ones.
    Without ``best_so_far`` all rows with a change stay; of several at one time, the last counts.

    >>> flat = extract_improvements(np.array([1, 0, 0, 0]), np.array([3., 2., 1., 4.]),
    ...                             np.array([5., 8., 9., 8.5]), n_runs=2)
    >>> flat.offset.tolist(), flat.time.tolist(), flat.cost.tolist()
    ([0, 2, 3], [1.0, 2.0, 3.0], [9.0, 8.0, 5.0])
    """
    order = _sort_order(run, time, n_runs, stable=not best_so_far)
    if order is not None:
        run, time, cost = run[order], time[order], cost[order]
        del order
    starts = _compute_offsets(run, n_runs)
    last = np.full(n_runs, np.nan)
    has_rows = starts[1:] > starts[:-1]
    last[has_rows] = time[starts[1:][has_rows] - 1]
    conflicts = np.flatnonzero(_is_same_time_as_next(run, time))
    conflicts = conflicts[cost[conflicts] != cost[conflicts + 1]]
    conflicting_run = int(run[conflicts[0]]) if len(conflicts) else -1

    n_observed = _count_observed_times(run, time, cost, n_runs)
    if best_so_far:
        run, time, cost = _keep_improvements(run, time, cost, n_runs)
    else:
        run, time, cost = _keep_changes(run, time, cost)
    offset = _compute_offsets(run, n_runs)
    return FlatTrajectories(
        offset=offset,
        time=time,
        cost=cost,
        last=last,
        has_non_improving=n_observed > len(time),
        conflicting_run=conflicting_run,
    )


def _keep_changes(run: Ints, time: Floats, cost: Floats) -> _Rows:
    """Keep the last row of each run at each time, if its cost differs from the one before."""
    run, time, cost = _drop_rows(run, time, cost, _is_same_time_as_next(run, time))
    is_same = cost == np.inf  # before the first value there is none
    is_same[1:] = np.where(run[1:] == run[:-1], cost[1:] == cost[:-1], is_same[1:])
    return _drop_rows(run, time, cost, is_same)


def _keep_improvements(run: Ints, time: Floats, cost: Floats, n_runs: int) -> _Rows:
    """Keep the rows whose cost is below that of all earlier rows of their run."""
    better = _is_better_than_previous(run, cost)
    run, time, cost = _drop_rows(run, time, cost, ~better)
    better = _is_better_than_previous(run, cost)
    if not better.all():
        # A row may be better than the one before it and still not the best so far.
        starts = _compute_offsets(run, n_runs)
        for r in np.unique(run[~better]):
            part = slice(starts[r], starts[r + 1])
            best = np.minimum.accumulate(cost[part])
            better[part] = np.r_[best[0] < np.inf, best[1:] < best[:-1]]
        run, time, cost = _drop_rows(run, time, cost, ~better)
    # Of several improvements at one time only the best one counts.
    return _drop_rows(run, time, cost, _is_same_time_as_next(run, time))


def evaluate_costs(offset: Ints, time: Floats, cost: Floats, times: Floats) -> Floats:
    """Return the latest cost of each run at each of increasing times (times, runs).

    >>> offset, time, cost = np.array([0, 2, 2]), np.array([1., 3.]), np.array([9., 8.])
    >>> evaluate_costs(offset, time, cost, np.array([0., 1., 5.]))
    array([[inf, inf],
           [ 9., inf],
           [ 8., inf]])
    """
    n_runs = len(offset) - 1
    latest = np.full(len(times) * n_runs, np.nan)
    # An improvement counts from the first grid time at or after it; of several, the last one.
    column = np.searchsorted(times, time, side="left")
    cell = column * n_runs + np.repeat(np.arange(n_runs), np.diff(offset))
    newest = np.ones(len(cell), dtype=bool)
    newest[:-1] = cell[1:] != cell[:-1]
    newest &= column < len(times)
    latest[cell[newest]] = cost[newest]
    latest = latest.reshape(len(times), n_runs)
    before = np.full(n_runs, np.inf)
    for row in latest:
        np.copyto(row, before, where=np.isnan(row))
        before = row
    return latest


def gather_trajectories(
    offset: Ints, time: Floats, cost: Floats, runs: Ints
) -> tuple[Ints, Floats, Floats]:
    """Copy the trajectories of selected runs in the given order; a run may occur twice.

    >>> offset, time, cost = np.array([0, 2, 3]), np.array([1., 2., 5.]), np.array([9., 8., 7.])
    >>> gather_trajectories(offset, time, cost, np.array([1]))
    (array([0, 1]), array([5.]), array([7.]))
    """
    length = offset[runs + 1] - offset[runs]
    new = np.concatenate([[0], np.cumsum(length)])
    row = np.repeat(offset[runs] - new[:-1], length) + np.arange(new[-1])
    return new, time[row], cost[row]


def _sort_order(run: Ints, time: Floats, n_runs: int, *, stable: bool) -> Ints | None:
    """Return the order that sorts rows by run, then time; ``None`` if they are sorted already."""
    if _is_sorted(run, time):
        return None
    order = _group_by_run(run, n_runs)
    if _is_sorted(run[order], time[order]):
        return order
    by_time = np.argsort(time, kind="stable" if stable else None)
    return by_time[_group_by_run(run[by_time], n_runs)]


def _is_sorted(run: Ints, time: Floats) -> bool:
    if np.any(run[1:] < run[:-1]):
        return False
    return not np.any((time[1:] < time[:-1]) & (run[1:] == run[:-1]))


def _group_by_run(run: Ints, n_runs: int) -> Ints:
    """Return the order that groups rows by run and keeps their order otherwise, in linear time."""
    # Building a sparse row matrix is a counting sort.
    rows = len(run)
    ones = np.ones(rows, dtype=np.int8)
    return csr_array((ones, (run, np.arange(rows, dtype=run.dtype))), shape=(n_runs, rows)).indices


def _compute_offsets(run: Ints, n_runs: int) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.bincount(run, minlength=n_runs))]).astype(np.int64)


def _is_better_than_previous(run: Ints, cost: Floats) -> NDArray[np.bool_]:
    better = cost < np.inf
    better[1:] &= (cost[1:] < cost[:-1]) | (run[1:] != run[:-1])
    return better


def _count_observed_times(run: Ints, time: Floats, cost: Floats, n_runs: int) -> int:
    """Count the distinct times of each run from its first value on; return the sum over runs."""
    is_new_time = np.ones(len(run), dtype=bool)  # the first row of a run at a time
    is_new_time[1:] = (run[1:] != run[:-1]) | (time[1:] != time[:-1])
    if np.any(cost == np.inf):
        first = np.full(n_runs, np.inf)
        with_value = np.flatnonzero(cost < np.inf)[::-1]
        first[run[with_value]] = time[with_value]  # the assignment that stays is the earliest
        is_new_time &= time >= first[run]
    return int(np.sum(is_new_time))


def _is_same_time_as_next(run: Ints, time: Floats) -> NDArray[np.bool_]:
    same = np.zeros(len(run), dtype=bool)
    same[:-1] = (time[1:] == time[:-1]) & (run[1:] == run[:-1])
    return same


def _drop_rows(
    run: Ints, time: Floats, cost: Floats, mask: NDArray[np.bool_]
) -> tuple[Ints, Floats, Floats]:
    if not mask.any():
        return run, time, cost
    return run[~mask], time[~mask], cost[~mask]
