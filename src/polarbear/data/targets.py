"""Targets: values to reach on each instance, from the easiest to the hardest.

Runs can be compared at times (which has the better value?) or at targets (which reaches it first?).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import PRECISION_TARGETS, align_columns, format_range, render_card
from polarbear.data import grid
from polarbear.data.levels import check_one_value
from polarbear.data.run import Floats, sign_of
from polarbear.data.runs import Runs
from polarbear.errors import DataError

SHARES = (5, 20, 35, 50, 65, 80, 90, 95, 98)
"""The default difficulties of :func:`from_runs`, in percent."""

SPACED_TIMES = 50
"""The number of times at which runs are observed to choose targets."""

UNIT = "% targets"


@dataclass(frozen=True)
class Targets:
    """Values to reach on each instance, from the easiest to the hardest.

    Pass it to :func:`polarbear.rank` or :func:`polarbear.fit` as ``targets=``.

    Parameters
    ----------
    difficulty
        A number for each target, increasing; results show it in place of a time.
    values
        The values of the targets on each instance, by name, the easiest first.
    unit
        The unit of ``difficulty``, for texts and axes.

    Examples
    --------
    >>> import polarbear as pb
    >>> runs = pb.Runs.from_frame(
    ...     {"algorithm": ["a", "a", "b", "b"], "instance": ["i"] * 4, "time": [1, 9, 2, 4],
    ...      "value": [5.0, 1.0, 3.0, 2.0]}, direction="minimize", until=10)
    >>> rankings = pb.rank(runs, targets=pb.targets.Targets([1, 2, 3], {"i": [5, 2, 0]}))
    >>> [rankings.order("i", target) for target in (1, 2, 3)]
    [[[('a',), ('b',)]], [[('b',), ('a',)]], [[('a', 'b')]]]
    """

    difficulty: ArrayLike
    values: Mapping[str, ArrayLike]
    unit: str = "targets"

    def __post_init__(self) -> None:
        object.__setattr__(self, "difficulty", grid.check_times(self.difficulty))
        shape = np.shape(self.difficulty)
        for instance, values in self.values.items():
            if np.shape(values) != shape or np.isnan(np.asarray(values, dtype=np.float64)).any():
                raise DataError(
                    f"targets of instance {instance!r}: expected {shape[0]} numbers, one for each "
                    "difficulty"
                )

    def costs(self, runs: Runs) -> Floats:
        """Return the targets of all instances of ``runs`` (targets, instances); less is harder."""
        check_one_value(runs, "a target")
        missing = [name for name in runs.instances if name not in self.values]
        if missing:
            raise DataError(
                f"no targets for instance {missing[0]!r}: give values for all "
                f"{len(runs.instances)} instances"
            )
        sign = sign_of(runs.direction)
        costs = [sign * np.asarray(self.values[name], np.float64) for name in runs.instances]
        result = np.stack(costs, axis=1)
        is_easier = (np.diff(result, axis=0) > 0).any(axis=0)
        if is_easier.any():
            at = int(np.argmax(is_easier))
            raise DataError(
                f"targets of instance {runs.instances[at]!r}: expected the easiest first, and each "
                "later one at least as hard"
            )
        return result


def from_runs(runs: Runs, shares: Sequence[float] = SHARES) -> Targets:
    """Choose targets on each instance from the values that its runs attained over time.

    The target of difficulty 80 is missed by 80 % of the best-so-far values of the instance, over
    all its runs and 50 times on the scale of :func:`polarbear.grid.from_runs`. The same difficulty
    therefore means the same on every instance, and no optimum has to be known. Targets depend on
    the runs that take part: keep them to compare new runs at the same ones.

    >>> import polarbear as pb
    >>> targets = from_runs(pb.example("cma-variants"), shares=[50, 90])
    >>> targets.difficulty, len(targets.values)
    (array([50., 90.]), 60)
    """
    check_one_value(runs, "a target")
    levels = grid.check_times(shares)
    if levels[-1] > 100:
        raise DataError("expected percentages from 0 to 100", shares=levels[-1])
    times = grid.from_runs(runs, SPACED_TIMES)
    sign = sign_of(runs.direction)
    all_costs = sign * runs.at(times)
    values: dict[str, ArrayLike] = {}
    first_run = np.searchsorted(runs.instance, np.arange(len(runs.instances) + 1))
    for code, name in enumerate(runs.instances):
        costs = np.sort(all_costs[first_run[code] : first_run[code + 1]], axis=None)
        costs = costs[~np.isnan(costs)]
        attained = costs[np.isfinite(costs)]
        if not len(attained):  # runs that were cut before these times: take all of their values
            ends = runs.offset[first_run[code : code + 2]]
            costs = attained = np.sort(sign * runs.value[ends[0] : ends[1]])
        if not len(attained):
            raise DataError(f"no run on instance {name!r} has a value: leave the instance out")
        # The smallest cost that at least this share of all costs are not below.
        place = np.ceil((100 - levels) * len(costs) / 100).astype(int) - 1
        values[name] = sign * np.minimum(costs[np.maximum(place, 0)], attained[-1])
    return Targets(levels, values, UNIT)


def from_optima(
    optima: Mapping[str, float] | float, runs: Runs, gaps: ArrayLike | None = None
) -> Targets:
    """Return targets at stated distances from the known optimum of each instance.

    ``gaps`` are absolute differences from the optimum, by default 10, 1, ..., 1e-8, as in COCO. The
    difficulty is 1 / gap; texts and figures show the gap, as the precision of the target.
    ``optima`` is a number for each instance, or one for all: 0 for COCO data, whose values are
    differences already.

    >>> import polarbear as pb
    >>> targets = from_optima(0.0, pb.example("cma-variants"), gaps=[1, 0.1])
    >>> targets.difficulty, targets.unit
    (array([ 1., 10.]), 'precision targets')
    """
    distances = 10.0 ** -np.arange(-1, 9) if gaps is None else np.asarray(gaps, dtype=np.float64)
    if not (np.isfinite(distances).all() and (distances > 0).all()):
        raise DataError("gaps: expected positive numbers, the largest first")
    check_one_value(runs, "a distance from the optimum")
    known = optima if isinstance(optima, Mapping) else dict.fromkeys(runs.instances, optima)
    values = {
        name: known[name] + sign_of(runs.direction) * distances
        for name in runs.instances
        if name in known
    }
    return Targets(1 / distances, values, PRECISION_TARGETS)


def find_hitting_times(runs: Runs, targets: Targets) -> Floats:
    """Return when each run first reaches each target (targets, runs); infinity if it does not.

    >>> from polarbear.data.run import Run
    >>> runs = Runs.from_records([Run("a", "1", [1, 40], [3, 2], 50)], direction="minimize")
    >>> find_hitting_times(runs, Targets([1, 2, 3], {"1": [9, 2.5, 1]})).ravel()
    array([ 1., 40., inf])
    """
    costs = targets.costs(runs)
    run = np.repeat(np.arange(len(runs)), np.diff(runs.offset))
    goal = costs[:, runs.instance]
    hits = np.full((len(costs), len(runs)), np.inf)
    for level, hit in zip(goal, hits, strict=True):
        reached = np.flatnonzero(runs.cost <= level[run])[::-1]
        hit[run[reached]] = runs.time[reached]  # the assignment that stays is the earliest
    return hits


@dataclass(frozen=True)
class RunningTimes:
    """Classical summaries of the time that algorithms need to reach targets (targets, algorithms).

    Attributes
    ----------
    algorithms, difficulty, unit
        The names, and the difficulties of the targets with their unit.
    reached
        The share of the runs that reach the target.
    expected
        ERT, the expected running time: the time spent by all runs until they reach the target or
        end, divided by the number of runs that reach it; infinity if none does (Auger and Hansen
        2005).
    penalised
        PAR, the mean time to reach the target, where a run that does not reach it counts
        ``penalty`` times its end.

    Examples
    --------
    >>> import polarbear as pb
    >>> runs = pb.example("cma-variants")
    >>> needed = pb.targets.running_times(runs, pb.targets.from_optima(0.0, runs, gaps=[1]))
    >>> needed.algorithms[int(needed.expected[0].argmin())], needed.reached.shape
    ('XNES', (1, 7))
    """

    algorithms: tuple[str, ...]
    difficulty: Floats
    unit: str
    reached: Floats
    expected: Floats
    penalised: Floats
    penalty: float

    def rows(self) -> list[list[str]]:
        """Return a row for each target and algorithm, with the columns of :meth:`headings`."""
        return [
            [
                format_range(float(level), float(level), self.unit),
                name,
                f"{self.reached[t, k]:.0%}",
                *(_format_figure(table[t, k]) for table in (self.expected, self.penalised)),
            ]
            for t, level in enumerate(self.difficulty)
            for k, name in enumerate(self.algorithms)
        ]

    def headings(self) -> list[str]:
        """Return the names of the columns of :meth:`rows`."""
        return ["target", "algorithm", "reached", "ERT", f"PAR{self.penalty:g}"]

    def __str__(self) -> str:
        return align_columns([self.headings(), *self.rows()])

    def _repr_html_(self) -> str:
        return render_card("time to reach targets", self.headings(), self.rows())


def _format_figure(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.4g}"


def running_times(runs: Runs, targets: Targets, penalty: float = 10) -> RunningTimes:
    """Summarise the time to reach each target as COCO (ERT) and solver competitions (PAR10) do.

    These are counts over all runs of an algorithm, without a model. They show by how much an
    algorithm is faster; a rating shows how often it is first.

    >>> import polarbear as pb
    >>> runs = pb.Runs.from_records(
    ...     [pb.Run("a", "1", [40], [0.0], 50), pb.Run("a", "2", [], [], 50)], direction="minimize")
    >>> print(running_times(runs, Targets([1], {"1": [0.0], "2": [0.0]})))
    target    algorithm  reached  ERT  PAR10
    1 target  a          50%      90   270
    """
    hits = find_hitting_times(runs, targets)
    is_reached = np.isfinite(hits)
    spent = np.where(is_reached, hits, runs.until)
    punished = np.where(is_reached, hits, penalty * runs.until)
    own = np.equal.outer(runs.algorithm, np.arange(len(runs.algorithms))).astype(np.float64)
    n_reached, n_runs = is_reached @ own, own.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(n_reached > 0, (spent @ own) / n_reached, np.inf)
    return RunningTimes(
        algorithms=runs.algorithms,
        difficulty=np.asarray(targets.difficulty, dtype=np.float64),
        unit=targets.unit,
        reached=n_reached / n_runs,
        expected=expected,
        penalised=(punished @ own) / n_runs,
        penalty=penalty,
    )


def censor(hits: Floats, until: Floats, is_cut: NDArray[np.bool_]) -> Floats:
    """Return hitting times (..., runs) of comparisons, infinity where an order is not known.

    A run that was cut before it reached a target may have reached it at any time after. Runs that
    reached it later than that are tied with it, behind those that reached it before.

    >>> censor(np.array([3.0, 7.0, np.inf]), np.array([9.0, 9.0, 5.0]), np.array([True] * 3))
    array([ 3., inf, inf])
    """
    is_censored = np.isinf(hits) & is_cut
    limit = np.min(np.where(is_censored, until, np.inf), axis=-1, keepdims=True)
    return np.where(hits > limit, np.inf, hits)
