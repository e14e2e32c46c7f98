"""``schedule``: one algorithm after the other within a budget, if that beats the best single one.

Each algorithm of a schedule starts afresh, and the best value of all is kept. With the score of
each algorithm that starts and stops at given times, the score of a schedule on an instance is the
largest one of its steps, at each budget. Two steps are searched exactly on the grid of times, and
further ones are added greedily.

A schedule is chosen among thousands, so that its score on the same data flatters it. The stated
figures are from instances that were held out: with ten folds, the schedule and the best single
algorithm are chosen on nine and compared on the tenth.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_duration, format_share
from polarbear.data.grid import from_runs
from polarbear.data.run import Run, Status, sign_of
from polarbear.data.run_pairs import assign_slots, find_comparisons, find_pairs
from polarbear.data.runs import Runs, check_best_so_far, check_runs
from polarbear.data.side_by_side import join_side_by_side
from polarbear.data.trajectories import evaluate_costs
from polarbear.errors import DataError
from polarbear.selection.preferences import Linear, Preference, at, to_preference

Floats = NDArray[np.float64]
Score = Literal["wins", "solved", "par10"]

FOLDS = 10
DRAWS = 4000
"""Draws of the weights of instances, from which probabilities are counted."""

WORTH_IT = 0.95
N_TIMES = 20
"""How many budgets are weighted, and at how many times an algorithm may take over."""


@dataclass(frozen=True, repr=False)
class Schedule:
    """Algorithms to run one after the other, each from its start, and whether that pays.

    Attributes
    ----------
    steps
        Each algorithm with the time at which the next one takes over; the last one has infinity.
    single
        The best single algorithm.
    probability
        The probability that the schedule beats the best single algorithm.
    gain
        The lead in score over the best single algorithm: mean, and bounds of 95 %.
    values
        The scores of the schedule and of the best single algorithm, on instances held out.
    score
        "wins": the share of the algorithms of the runs that are beaten, ties as a half. "solved":
        the share of instances that are solved. "par10": the time to solve, in budgets, with ten
        for an instance that is not solved; negative, as more is better.
    preference
        For which budgets.
    clock
        The unit of time.
    """

    steps: tuple[tuple[str, float], ...]
    single: str
    probability: float
    gain: tuple[float, float, float]
    values: tuple[float, float]
    score: Score
    preference: str
    clock: str

    @property
    def is_worth_it(self) -> bool:
        """Whether the schedule beats the best single algorithm with a probability of 95 %."""
        return self.probability >= WORTH_IT

    @property
    def name(self) -> str:
        """What to run when, in words."""
        parts = [
            f"{algorithm} until {format_duration(until, self.clock)}"
            for algorithm, until in self.steps[:-1]
        ]
        return ", then ".join([*parts, self.steps[-1][0]])

    def __str__(self) -> str:
        share = format_share(self.probability)
        sure = f"P {share}" if share[0] in "<>" else f"P = {share}"
        first = f"run {self.name}: better than {self.single} alone ({sure})"
        if not self.is_worth_it:
            first = (
                f"run {self.single}: no schedule is worth it\n"
                f"  the best    {self.name} ({sure} that it is better)"
            )
        return (
            f"{first}\n  {self._describe_scores()}, on instances held out\n"
            f"  for         {self.preference}; each algorithm starts afresh"
        )

    __repr__ = __str__

    def _describe_scores(self) -> str:
        """Return the scores of the schedule and of the best single algorithm, and the gain."""
        own, other = self.values
        if self.score == "par10":
            gain = "{:.2f} less, {:.2f} to {:.2f}".format(*self.gain)
            return f"PAR10       {-own:.2f} budgets, {self.single} alone {-other:.2f} ({gain})"
        gain = "{:+.1f} points, {:+.1f} to {:+.1f}".format(*(100 * one for one in self.gain))
        what = "solves      {:.1f} %" if self.score == "solved" else "beats       {:.1f} % of all"
        return f"{what.format(100 * own)}, {self.single} alone {100 * other:.1f} % ({gain})"

    def add_to(self, runs: Runs, name: str | None = None) -> Runs:
        """Return the runs and those of the schedule, which is one more algorithm with its curve.

        >>> import polarbear as pb
        >>> runs = pb.Runs.from_records([pb.Run("a", "x", [1], [5.0], 9),
        ...                              pb.Run("b", "x", [3], [4.0], 9)], direction="minimize")
        >>> steps, unknown = (("a", 2.0), ("b", np.inf)), (0.0, 0.0, 0.0)
        >>> own = Schedule(steps, "a", 0.5, unknown, unknown[:2], "wins", "any budget", "time")
        >>> own.add_to(runs, "both").filter(algorithms=["both"])[0].time
        array([1., 5.])
        """
        name = self.name if name is None else name
        last = float(runs.until.max())
        own = [
            join_in_turn(
                [(one[who], until) for who, until in self.steps], name, runs, last
            )._replace(repetition=repetition)
            for repetition, one in find_comparisons(runs)
            if all(who in one for who, _ in self.steps)
        ]
        more = Runs.from_records(own, direction=runs.direction, clock=runs.clock)
        return Runs.concat([runs, more])

    def to_plain(self) -> dict[str, Any]:
        """Return the fields for JSON; the time of the last step is None."""
        steps = [[who, until if np.isfinite(until) else None] for who, until in self.steps]
        return {**asdict(self), "steps": steps}

    def save(self, path: str | Path) -> None:
        """Write the schedule as JSON, for the program that carries it out."""
        Path(path).write_text(json.dumps(self.to_plain(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a schedule that :meth:`save` wrote."""
        plain: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        steps = tuple((who, np.inf if time is None else time) for who, time in plain["steps"])
        pairs = {name: tuple(plain[name]) for name in ("gain", "values")}
        return cls(**{**plain, **pairs, "steps": steps})


def schedule(
    runs: Runs,
    budget: float | Preference | None = None,
    *,
    steps: int = 2,
    score: Score = "wins",
    target: float | None = None,
    seed: int = 0,
) -> Schedule:
    """Find the best schedule, "A until 12 seconds, then B", and say whether it pays.

    Parameters
    ----------
    runs
        Runs of all algorithms on the same instances. A run that was cut counts with its last value.
    budget
        The budget, or a preference over budgets as in :func:`select`; by default any budget counts
        the same, on a log scale if the times span one.
    steps
        How many algorithms run one after the other, at most.
    score
        "wins": the share of all algorithms that the schedule beats at the same budget, ties as a
        half. "solved": the share of instances that it solves. "par10": the time until it solves an
        instance, with ten budgets if it does not; this needs one budget.
    target
        The value that solves an instance; by default any value does.
    seed
        Determines the folds and the draws.

    Examples
    --------
    >>> import polarbear as pb
    >>> rng = np.random.default_rng(0)
    >>> def solve(fails, quickly):  # at random, or not at all
    ...     return [] if rng.random() < fails else [min(99.0, rng.exponential(quickly))]
    >>> found = [pb.Run(name, f"i{k}", time, [0.0] * len(time), 100.0, status=pb.Status.CUT)
    ...          for k in range(200)
    ...          for name, time in (("quick", solve(0.5, 2)), ("thorough", solve(0.2, 40)))]
    >>> runs = pb.Runs.from_records(found, direction="minimize", clock="seconds")
    >>> best = pb.selection.schedule(runs, 100, score="par10")
    >>> best.steps[0][0], best.is_worth_it
    ('quick', True)
    """
    check_runs(runs, "schedule")
    check_best_so_far(runs, "schedule")
    if steps < 2:
        raise DataError("expected at least 2 algorithms, one after the other", steps=steps)
    if score not in get_args(Score):
        raise DataError(f"expected one of {', '.join(get_args(Score))}", score=score)
    table = RunTable.of(runs, budget, score, target)
    found = Search(table, seed).find(steps)
    says = table.preference.says
    if isinstance(budget, int | float):
        says = f"a budget of {format_duration(budget, runs.clock)}"
    return Schedule(**found, score=score, preference=says, clock=runs.clock)


@dataclass(frozen=True)
class RunTable:
    """The scores of algorithms that start and stop at given times, at K budgets on R rows.

    A row is a repetition on an instance, on which all algorithms ran.
    """

    algorithms: tuple[str, ...]
    instance: NDArray[np.intp]  # (R,)
    splits: Floats  # when the next algorithm may take over
    weights: Floats  # (K,), of the budgets
    between: Callable[[float, float], Floats]  # from, until: scores (n, R, K)
    preference: Linear

    @classmethod
    def of(
        cls, runs: Runs, budget: float | Preference | None, score: Score, target: float | None
    ) -> Self:
        """Return the scores that runs have."""
        rows = find_rows(runs)
        if isinstance(budget, int | float):
            wanted, grid = at(float(budget)), np.array([float(budget)])
        else:
            grid = from_runs(runs, N_TIMES)
            wanted = to_preference(budget, grid)
        if not isinstance(wanted, Linear):
            raise DataError("a schedule needs a budget, or a preference that weights budgets")
        weights = wanted.weights(grid, runs.clock)
        budgets, weights = grid[weights > 0], weights[weights > 0]
        if score == "par10" and len(budgets) > 1:
            raise DataError("score='par10' needs one budget, such as schedule(runs, 3600)")
        goal = np.inf if target is None else sign_of(runs.direction) * target
        solved = _find_solved(runs, goal)[rows]  # (n, R)

        reference = costs_at(runs, rows, budgets) if score == "wins" else ()

        def between(start: float, stop: float) -> Floats:
            used = np.minimum(budgets, stop) - start
            if score == "par10":
                total, end = start + solved, budgets[0]
                cost = np.where(total <= min(stop, end), total / end, 10.0)
                return -cost[:, :, None]
            if score == "solved":
                return (solved[:, :, None] <= used).astype(float)
            cost = np.where(used > 0, costs_at(runs, rows, used), np.inf)
            beaten = np.zeros(cost.shape)
            for one in reference:
                beaten += (one > cost) + (one == cost) / 2
            return beaten / len(cost)

        return cls(
            algorithms=runs.algorithms,
            instance=runs.instance[rows[0]].astype(np.intp),
            splits=choose_times(runs, float(budgets[-1])),
            weights=weights,
            between=between,
            preference=wanted,
        )


def draw_mean_leads(lead: Floats, rng: np.random.Generator) -> Floats:
    """Draw the mean over all instances from leads on some, by the Bayesian bootstrap.

    One more instance with the largest lead and one with the largest loss, each of half a weight,
    keep a lead on two instances only from being certain.
    """
    drawn = rng.standard_exponential((DRAWS, len(lead)))
    more = rng.gamma(0.5, size=(DRAWS, 2))
    mean = drawn @ lead + np.abs(lead).max() * (more[:, 0] - more[:, 1])
    return mean / (drawn.sum(axis=1) + more.sum(axis=1))


def find_probability(lead: Floats) -> float:
    """Return the share of draws with a lead; of those without a difference, a half."""
    return float(np.mean(lead > 0) + np.mean(lead == 0) / 2)


def find_rows(runs: Runs) -> NDArray[np.intp]:
    """Return which run (n, rows) each algorithm made on each instance and repetition."""
    # Which repetitions are compared, as in rank.
    slot, _ = assign_slots(find_pairs(runs.instance, runs.algorithm), runs.repetition)
    key = runs.instance.astype(np.int64) * (int(slot.max()) + 1) + slot
    names, row = np.unique(key, return_inverse=True)
    found = np.full((len(runs.algorithms), len(names)), -1, dtype=np.intp)
    found[runs.algorithm, row] = np.arange(len(runs))
    found = found[:, (found >= 0).all(axis=0)]
    n_instances = len(np.unique(runs.instance[found[0]])) if found.size else 0
    if n_instances < 4 or len(found) < 2:
        raise DataError(
            "a schedule needs at least 2 algorithms that all ran on the same 4 instances or more; "
            f"here {len(found)} algorithms share {n_instances} instances"
        )
    return found


def choose_times(runs: Runs, last: float) -> Floats:
    """Return times before the last one, from the first improvements on, on a log scale."""
    early = runs.time[(runs.time > 0) & (runs.time < last)]
    if not len(early):
        raise DataError(f"no run improves before the budget of {last:g}: nothing to compare")
    return np.geomspace(np.quantile(early, 0.05), last, N_TIMES + 1)[:-1]


def costs_at(runs: Runs, rows: NDArray[np.intp], times: Floats) -> Floats:
    """Return the best cost so far (n, R, K) of the runs of rows (n, R); infinity before a value."""
    order, column = np.unique(times, return_inverse=True)
    return evaluate_costs(runs.offset, runs.time, runs.cost, order)[column].T[rows]


def _find_solved(runs: Runs, goal: float) -> Floats:
    """Return when each run reached the goal, infinity if it never did."""
    reached = runs.cost <= goal if np.isfinite(goal) else np.isfinite(runs.cost)
    found = np.full(len(runs), np.inf)
    run_of_row = np.repeat(np.arange(len(runs)), np.diff(runs.offset))
    np.minimum.at(found, run_of_row[reached], runs.time[reached])
    return found


Steps = tuple[tuple[int, float], ...]


class Search:
    """The best schedules on the training parts of all folds, and on everything (the last)."""

    def __init__(self, table: RunTable, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.table, self.rng = table, rng
        self.names, own = np.unique(table.instance, return_inverse=True)
        fold = rng.permutation(len(self.names)) % min(FOLDS, len(self.names))
        self.fold = fold[own]
        # Instances count the same, however many repetitions they have.
        self.weight = (1 / np.bincount(own))[own]
        in_fold = self.fold[:, None] == np.arange(fold.max() + 1)
        self.training = np.column_stack([~in_fold, np.ones(len(own))]) * self.weight[:, None]
        self.training /= self.training.sum(axis=0)
        self.own = own

    def find(self, n_steps: int) -> dict[str, Any]:
        """Return the fields of the best schedule of at most this many steps."""
        alone = self.table.between(0.0, np.inf) @ self.table.weights  # (n, R)
        single = np.argmax(alone @ self.training, axis=0)  # of each training part
        found = self._find_pairs()
        for _ in range(n_steps - 2):
            found = [self._extend(steps, k) for k, steps in enumerate(found)]
        values = np.stack([self._evaluate(steps) for steps in found])  # (folds + 1, R)
        rows = np.arange(len(self.fold))
        held_out = values[self.fold, rows], alone[single[self.fold], rows]
        by_instance = [
            np.bincount(self.own, one * self.weight) for one in (held_out[0], held_out[1])
        ]
        lead = np.asarray(by_instance[0] - by_instance[1], dtype=np.float64)
        mean = draw_mean_leads(lead, self.rng)
        low, high = np.quantile(mean, [0.025, 0.975])
        names = self.table.algorithms
        return {
            "steps": tuple((names[a], until) for a, until in found[-1]),
            "single": names[int(single[-1])],
            "probability": find_probability(mean),
            "gain": (float(lead.mean()), float(low), float(high)),
            "values": (float(by_instance[0].mean()), float(by_instance[1].mean())),
        }

    def _find_pairs(self) -> list[Steps]:
        """Return the best two steps on each training part, of all on the grid."""
        table, n = self.table, len(self.table.algorithms)
        best = np.full(self.training.shape[1], -np.inf)
        found: list[Steps] = [()] * len(best)
        for split in table.splits.tolist():
            first, second = table.between(0.0, split), table.between(split, np.inf)
            for a in range(n):
                total = (np.maximum(first[a], second) @ table.weights) @ self.training  # (n, F)
                total[a] = -np.inf
                b = np.argmax(total, axis=0)
                for k in np.flatnonzero(total.max(axis=0) > best):
                    best[k] = total[b[k], k]
                    found[k] = ((a, split), (int(b[k]), np.inf))
        return found

    def _extend(self, steps: Steps, k: int) -> Steps:
        """Return the steps with one more after them, if that is better on training part k."""
        table, (*before, (last, _)) = self.table, steps
        start = before[-1][1]
        best, found = float(self._evaluate(steps) @ self.training[:, k]), steps
        done = self._scores(tuple(before))
        for split in table.splits[table.splits > start].tolist():
            own = np.maximum(done, table.between(start, split)[last])
            total = np.maximum(own, table.between(split, np.inf)) @ table.weights
            total = total @ self.training[:, k]
            total[last] = -np.inf
            if total.max() > best:
                best = float(total.max())
                found = (*before, (last, split), (int(np.argmax(total)), np.inf))
        return found

    def _scores(self, steps: Steps) -> Floats:
        """Return the scores (R, K) of steps."""
        start, parts = 0.0, []
        for a, until in steps:
            parts.append(self.table.between(start, until)[a])
            start = until
        scores: Floats = np.max(parts, axis=0)
        return scores

    def _evaluate(self, steps: Steps) -> Floats:
        """Return the score (R,) of steps, over all budgets."""
        value: Floats = self._scores(steps) @ self.table.weights
        return value


def join_in_turn(steps: list[tuple[Run, float]], name: str, runs: Runs, last: float) -> Run:
    """Return the run of a schedule: each step with the time at which the next one takes over.

    It is known until the ``last`` time of all runs, or until the last step was cut.
    """
    start, parts = 0.0, []
    until, status = last, Status.CUT
    for run, stop in steps:
        time, value = np.asarray(run.time, float) + start, np.asarray(run.value, float)
        kept = time <= min(stop, last)
        end = last if stop == np.inf else stop
        own = {"time": time[kept], "value": value[kept], "until": end, "status": Status.FINISHED}
        parts.append(run._replace(**own))
        if stop == np.inf:
            until, status = start + run.until, Status(run.status)
        start = stop
    joined = join_side_by_side(parts, name, runs.direction)
    return joined._replace(until=min(until, last), status=status if until <= last else Status.CUT)
