"""``value_of_time``: at which budget more time stops paying."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_duration, format_share, format_share_range, round_time
from polarbear.data.grid import from_runs
from polarbear.data.names import find_indices
from polarbear.data.runs import Runs, check_runs
from polarbear.errors import DataError
from polarbear.selection.schedules import choose_times, costs_at, find_rows

Floats = NDArray[np.float64]

DRAWS = 4000
PAYS = 0.05
"""More time pays where it improves more than this share of instances."""


@dataclass(frozen=True, repr=False)
class ValueOfTime:
    """What more time brings, at each of K budgets.

    Attributes
    ----------
    algorithm
        Whose; None for the algorithm with the best results at each budget.
    budgets
        (K,), at most half the longest time.
    improves
        (K, 3): the share of instances on which the doubled budget improves the result by more than
        the tolerance: estimate and bounds of 95 %.
    tolerance
        The relative change of a value that counts as an improvement.
    clock
        The unit of time.
    """

    algorithm: str | None
    budgets: Floats
    improves: Floats
    tolerance: float
    clock: str

    def enough(self, share: float = PAYS) -> float | None:
        """Return the budget from which on doubling improves at most this share of instances.

        None if it still pays at the last budget.
        """
        pays = np.flatnonzero(self.improves[:, 0] > share)
        after = int(pays[-1]) + 1 if len(pays) else 0
        return float(self.budgets[after]) if after < len(self.budgets) else None

    def __str__(self) -> str:
        who = self.algorithm or "the best choice"
        enough = self.enough()
        if enough is None:
            estimate, low, high = self.improves[-1]
            return (
                f"more time still pays: at {format_duration(self.budgets[-1], self.clock)}, "
                f"twice the budget improves {who} by more than {100 * self.tolerance:g} % on "
                f"{format_share(estimate)} of instances ({format_share_range(low, high)})"
            )
        low, high = self.improves[int(np.searchsorted(self.budgets, enough)), 1:]
        stops = round_time(enough, self.clock, 3)
        return (
            f"more time stops paying at {format_duration(stops, self.clock)}: twice the budget "
            f"then improves {who} by more than {100 * self.tolerance:g} % on at most "
            f"{100 * PAYS:g} % of instances ({format_share_range(low, high)} there)"
        )

    __repr__ = __str__


def value_of_time(
    runs: Runs, algorithm: str | None = None, *, tolerance: float = 0.01, seed: int = 0
) -> ValueOfTime:
    """Say at which budget more time stops paying.

    Parameters
    ----------
    runs
        Runs of the algorithms. Budgets are up to half the time at which the first of them was cut.
    algorithm
        Of which algorithm; by default the one with the best results at each budget is run.
    tolerance
        The relative change of a value that counts as an improvement.
    seed
        Determines the draws of the intervals.

    Examples
    --------
    >>> import polarbear as pb
    >>> found = pb.selection.value_of_time(pb.example(), "CMA-ES")
    >>> round(float(found.improves[0, 0]), 2), round(float(found.improves[-1, 0]), 2)
    (0.84, 0.62)
    """
    check_runs(runs, "value_of_time")
    if tolerance < 0:
        raise DataError("expected a share of the value, such as 0.01", tolerance=tolerance)
    rows = find_rows(runs)
    last = min(from_runs(runs, 2)[-1], runs.until[runs.cut].min(initial=np.inf))
    budgets = choose_times(runs, last)
    budgets = budgets[2 * budgets <= last]
    if not len(budgets):
        raise DataError("no budget can be doubled within the times at which all runs are known")
    if algorithm is not None:
        rows = rows[find_indices([algorithm], runs.algorithms, "algorithm")]
    now, later = (_find_best(costs_at(runs, rows, budgets * factor)) for factor in (1, 2))
    improved = _is_improved(now, later, tolerance)
    instance = np.unique(runs.instance[rows[0]], return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    return ValueOfTime(
        algorithm=algorithm,
        budgets=budgets,
        improves=_bound_shares(improved, instance, rng),
        tolerance=tolerance,
        clock=runs.clock,
    )


def _find_best(cost: Floats) -> Floats:
    """Return the costs (R, K) of who beats most others at each budget, of all costs (n, R, K)."""
    wins = [((one < cost) + (one == cost) / 2).mean(axis=(0, 1)) for one in cost]
    leader = np.argmax(wins, axis=0)
    return cost[leader, :, np.arange(len(leader))].T


def _is_improved(now: Floats, later: Floats, tolerance: float) -> NDArray[np.bool_]:
    """Return where a cost becomes smaller by more than the tolerance, or finite at all."""
    known = np.isfinite(now)
    enough = tolerance * np.abs(np.where(known, now, 0.0))
    change = np.where(known, now, 0.0) - np.where(known, later, 0.0)
    return np.where(known, change > enough, np.isfinite(later))


def _bound_shares(
    rows: NDArray[np.bool_], instance: NDArray[np.intp], rng: np.random.Generator
) -> Floats:
    """Return the shares over instances (K, 3) with bounds of 95 %, by the Bayesian bootstrap.

    One more instance with 0, and one with 1, have the weight of a half: shares of few instances
    are not certain if all agree.
    """
    count = np.bincount(instance)
    values = np.stack([np.bincount(instance, one) / count for one in rows.T])  # (K, instances)
    drawn = rng.standard_exponential((DRAWS, len(count)))
    zero, one = rng.gamma(0.5, size=(2, DRAWS, 1))
    shares = (drawn @ values.T + one) / (drawn.sum(axis=1, keepdims=True) + zero + one)
    return np.column_stack([values.mean(axis=1), *np.quantile(shares, [0.025, 0.975], axis=0)])
