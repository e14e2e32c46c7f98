"""Positions: the places of runs in a comparison, from their costs.

Position 0 is the best; runs that tie have the same position, and -1 means that a run is not known.
"""

import numpy as np
from numpy.typing import NDArray

from polarbear.data.levels import is_violation
from polarbear.data.trajectories import Floats
from polarbear.errors import DataError

Positions = NDArray[np.signedinteger]

UNKNOWN = -1
"""The position of a run that is not known at a time."""

MAX_COUNTED_RUNS = 16
"""Up to this number of runs, positions are found by counting, which is faster than sorting."""

TOLERANCE_SLACK = 1e-9
"""Tolerances are widened by this factor, so that 1.1 and 1.0 tie at 0.1 despite rounding."""


def check_tolerances(abs_tol: float, rel_tol: float) -> None:
    """Raise ``DataError`` unless 0 <= ``abs_tol`` < inf and 0 <= ``rel_tol`` < 1."""
    if not (0 <= abs_tol < np.inf and 0 <= rel_tol < 1):
        raise DataError(
            "tolerances must be 0 <= abs_tol < inf and 0 <= rel_tol < 1, "
            f"got abs_tol={abs_tol!r} and rel_tol={rel_tol!r}"
        )


def compute_positions(costs: Floats, abs_tol: float = 0.0, rel_tol: float = 0.0) -> Positions:
    """Return positions along the last axis, 0 for the smallest cost; equal if tied, -1 for nan.

    >>> compute_positions(np.array([3.0, 1.0, np.nan, 3.0, np.inf]))
    array([ 1,  0, -1,  1,  3], dtype=int8)
    >>> compute_positions(np.array([1.0, 1.4, 1.8]), abs_tol=0.5)
    array([0, 0, 2])
    """
    size = costs.shape[-1]
    if size <= MAX_COUNTED_RUNS and abs_tol == 0 and rel_tol == 0:
        ahead = np.zeros(costs.shape, dtype=np.int8)
        for place in range(size):
            ahead += costs[..., place, None] < costs
        return np.where(np.isnan(costs), np.int8(UNKNOWN), ahead)
    order = np.argsort(costs, axis=-1)
    ranked = np.take_along_axis(costs, order, axis=-1)
    leads = np.ones(costs.shape, dtype=bool)  # whether a cost is the first of a group of ties
    if abs_tol == 0 and rel_tol == 0:
        leads[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
    else:
        leader = ranked[..., 0].copy()
        for place in range(1, size):
            follower = ranked[..., place]
            leads[..., place] = ~_is_tied(leader, follower, abs_tol, rel_tol)
            leader = np.where(leads[..., place], follower, leader)
    ahead = np.maximum.accumulate(np.where(leads, np.arange(size), 0), axis=-1)
    ahead[np.isnan(ranked)] = UNKNOWN
    position = np.empty_like(ahead)
    np.put_along_axis(position, order, ahead, axis=-1)
    return position


def _is_tied(a: Floats, b: Floats, abs_tol: float, rel_tol: float) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore", over="ignore"):
        tolerance = np.maximum(abs_tol, rel_tol * np.maximum(np.abs(a), np.abs(b)))
        tolerance = tolerance * (1 + TOLERANCE_SLACK)
        is_near = (np.abs(a - b) <= tolerance) & np.isfinite(a) & np.isfinite(b)
        return (a == b) | (is_near & ~is_violation(b))


def keep_top(positions: Positions, top: int) -> Positions:
    """Return positions along the last axis in which all runs behind the first ``top`` tie.

    Runs that tie with the last of the first ``top`` stay with it.

    >>> keep_top(np.array([0, 2, 1, 4, 3, -1]), 2)
    array([ 0,  2,  1,  2,  2, -1])
    >>> keep_top(np.array([0, 0, 0, 3, 4]), 2)
    array([0, 0, 0, 3, 3])
    """
    is_behind = positions >= top
    place = np.min(positions, axis=-1, keepdims=True, initial=positions.shape[-1], where=is_behind)
    return np.where(is_behind, place, positions).astype(positions.dtype)
