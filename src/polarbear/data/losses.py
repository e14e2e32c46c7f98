"""How much is lost by running an algorithm, in the unit of the values.

The rank model says which algorithm is ahead, and not by how much. Losses are counted from the runs,
without a model: on each instance, the value of an algorithm against the best value of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import align_columns, format_list, format_range, render_card
from polarbear.data import grid
from polarbear.data.levels import keep_one_value
from polarbear.data.run import sign_of
from polarbear.data.run_pairs import find_pairs
from polarbear.data.runs import Runs, check_runs
from polarbear.data.targets import Targets, find_hitting_times
from polarbear.errors import DataError

Floats = NDArray[np.float64]
Measure = Literal["difference", "ratio", "gap"]

WORST_SHARE = 0.1


@dataclass(frozen=True)
class Losses:
    """The losses of algorithms at some times, over instances.

    Attributes
    ----------
    algorithms, times
        The names, and the times.
    values
        The loss on each instance (times, algorithms, instances): 0, or 1 for a ratio, if the
        algorithm has the best value; infinity if only others have a feasible value; nan if it is
        unknown.
    measure, clock, what
        The definition of a loss, the unit of the times (or targets), and what is compared: values,
        or times to reach targets.
    """

    algorithms: tuple[str, ...]
    times: Floats
    values: Floats
    measure: Measure
    clock: str
    what: Literal["value", "time"] = "value"

    def quantile(self, share: float) -> Floats:
        """Return a quantile of the losses over instances (times, algorithms).

        The quantile is an observed loss: at least this share of the instances lose no more.
        """
        if not 0 <= share <= 1:
            raise DataError("expected a number from 0 to 1", share=share)
        return self._over_instances(
            lambda known: float(np.sort(known)[max(ceil(share * len(known) - 1e-9) - 1, 0)])
        )

    def worst(self) -> Floats:
        """Return the mean loss on the worst tenth of the instances (times, algorithms)."""
        return self._over_instances(
            lambda known: float(np.sort(known)[-ceil(WORST_SHARE * len(known)) :].mean())
        )

    def columns(self) -> dict[str, list[Any]]:
        """Return a table with a row for each time and algorithm, as a mapping of columns."""
        n, n_times = len(self.algorithms), len(self.times)
        return {
            "algorithm": list(self.algorithms) * n_times,
            "time" if self.what == "value" else "target": np.repeat(self.times, n).tolist(),
            "instances": np.count_nonzero(~np.isnan(self.values), axis=-1).ravel().tolist(),
            "median": self.quantile(0.5).ravel().tolist(),
            "quantile 0.9": self.quantile(1 - WORST_SHARE).ravel().tolist(),
            "worst tenth": self.worst().ravel().tolist(),
        }

    def headings(self) -> list[str]:
        """Return the names of the columns of :meth:`rows`."""
        place = "time" if self.what == "value" else "target"
        share = f"{1 - WORST_SHARE:.0%}".replace("%", " %")
        return ["algorithm", place, "instances", "median", share, "mean of the worst tenth"]

    def rows(self) -> list[list[str]]:
        """Return a row for each time and algorithm, with the columns of :meth:`headings`."""
        return [
            [
                name,
                format_range(time, time, self.clock),
                f"{n:,}",
                *(f"{loss:.4g}" for loss in table),
            ]
            for name, time, n, *table in zip(*self.columns().values(), strict=True)
        ]

    def __str__(self) -> str:
        return f"{self.title}\n{align_columns([self.headings(), *self.rows()])}"

    def _repr_html_(self) -> str:
        return render_card(self.title, self.headings(), self.rows())

    @property
    def title(self) -> str:
        """What a loss is, in one line."""
        return f"loss against the best {self.what} of each instance: {self.measure}"

    def _over_instances(self, summarise: Callable[[Floats], float]) -> Floats:
        """Summarise the known losses of each time and algorithm; nan if none is known."""
        result = np.full(self.values.shape[:2], np.nan)
        for place in np.ndindex(result.shape):
            known = self.values[place][~np.isnan(self.values[place])]
            if len(known):
                result[place] = summarise(known)
        return result


def losses(
    runs: Runs,
    times: ArrayLike | None = None,
    *,
    targets: Targets | None = None,
    measure: Measure = "difference",
    among: Sequence[str] | None = None,
) -> Losses:
    """Count how much each algorithm loses against the best value of each instance.

    Parameters
    ----------
    runs
        The runs; the value of an algorithm on an instance is the median of its repetitions.
    times
        When to look.
    targets
        In place of times: compare the times to reach these targets. With ``measure="ratio"`` a loss
        is the factor by which an algorithm is slower than the fastest one on the instance.
    measure
        "difference" from the best value, its "ratio" to the best value (for positive values), or
        the "gap", which is the difference divided by the larger magnitude of the two.
    among
        The algorithms to show; the best value is that of all.

    Examples
    --------
    >>> import polarbear as pb
    >>> runs = pb.example("cma-variants")
    >>> print(pb.selection.losses(runs, [1000, 10_000], among=["CSA", "RS"], measure="ratio"))
    loss against the best value of each instance: ratio
    algorithm  time                instances  median  90 %   mean of the worst tenth
    CSA        1,000 evaluations   60         ...
    RS         1,000 evaluations   60         ...
    CSA        10,000 evaluations  60         ...
    RS         10,000 evaluations  60         ...
    """
    check_runs(runs, "losses")
    runs = keep_one_value(runs, "losses")
    if measure not in get_args(Measure):
        raise DataError(f"expected {format_list(get_args(Measure))}", measure=measure)
    if targets is not None and times is None:
        costs, is_maximized = _find_times(runs, targets), False
        when, clock, what = np.asarray(targets.difficulty), targets.unit, "time"
    elif times is None or targets is not None:
        raise DataError("losses are at times or at targets: give one of them")
    else:
        when, clock, what = grid.check_times(times), runs.clock, "value"
        costs, is_maximized = sign_of(runs.direction) * runs.at(when), runs.direction == "maximize"
    unknown = [name for name in among or () if name not in runs.algorithms]
    if unknown:
        known = format_list(runs.algorithms)
        raise DataError(f"no algorithm {unknown[0]!r}: the runs are of {known}")
    cost = _typical_costs(runs, costs)
    sign = -1.0 if is_maximized else 1.0
    if measure == "ratio" and not (~np.isfinite(cost) | (sign * cost > 0)).all():
        raise DataError("measure='ratio' needs positive values; use 'difference' or 'gap'")
    values = _compare_with_best(cost, measure, is_maximized)
    names = runs.algorithms if among is None else tuple(among)
    shown = [runs.algorithms.index(name) for name in names]
    return Losses(
        algorithms=names,
        times=when,
        values=values[:, shown],
        measure=measure,
        clock=clock,
        what=what,
    )


def _find_times(runs: Runs, targets: Targets) -> Floats:
    """Return when runs (runs, targets) reach targets: infinity if never, nan if unknown.

    Unknown is a run that was cut before the best one on its instance reached the target.
    """
    hits = find_hitting_times(runs, targets).T
    best = np.full((len(runs.instances), hits.shape[1]), np.inf)
    np.minimum.at(best, runs.instance, hits)
    best = best[runs.instance]
    was_cut = runs.cut[:, None] & (runs.until[:, None] < best) & np.isfinite(best)
    return np.where(was_cut & np.isinf(hits), np.nan, hits)


def _typical_costs(runs: Runs, cost: Floats) -> Floats:
    """Return the median of the costs (runs, times) of each algorithm on each instance.

    Its shape is (times, algorithms, instances), and it is nan if a cost is unknown.
    """
    shape = (cost.shape[1], len(runs.algorithms), len(runs.instances))
    typical = np.full(shape, np.nan)
    pairs = find_pairs(runs.instance, runs.algorithm)
    for first, n_runs in zip(pairs.first_run, pairs.n_runs, strict=True):
        known = cost[first : first + n_runs]
        ordered = np.sort(known, axis=0)  # nan sorts last
        middle = (ordered[(n_runs - 1) // 2] + ordered[n_runs // 2]) / 2
        middle = np.where(np.isnan(known).any(axis=0), np.nan, middle)
        typical[:, runs.algorithm[first], runs.instance[first]] = middle
    return typical


def _compare_with_best(cost: Floats, measure: Measure, is_maximized: bool) -> Floats:
    """Return losses (times, algorithms, instances), infinity where an algorithm has no value."""
    best = np.where(np.isnan(cost), np.inf, cost).min(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        if measure == "ratio":
            loss = best / cost if is_maximized else cost / best
        else:
            loss = cost - best
            if measure == "gap":
                larger = np.maximum(np.abs(cost), np.abs(best))
                loss = np.where(loss == 0, 0.0, loss / larger)
    none = np.isinf(best) & np.isinf(cost)  # no algorithm has a value: nothing is lost
    loss = np.where(none, 1.0 if measure == "ratio" else 0.0, loss)
    return np.where(np.isinf(cost) & ~none, np.inf, np.where(np.isnan(cost), np.nan, loss))
