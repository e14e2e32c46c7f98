"""Slow twins: the obvious way to compute what the package computes fast. Plain and obvious."""

import math
import random
from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement, permutations

import numpy as np

from polarbear import Run, Status


def best_so_far(run: Run, time: float, direction: str) -> float | None:
    """The value of a run at a time; the worst infinity for none yet, ``None`` for unknown."""
    if time > run.until and run.status is Status.CUT:
        return None
    worst, better = (math.inf, min) if direction == "minimize" else (-math.inf, max)
    best = worst
    for t, value in zip(run.time, run.value, strict=True):
        if t <= time:
            best = better(best, float(value))
    return best


def tied(leader: float, follower: float, abs_tol: float, rel_tol: float) -> bool:
    if leader == follower:
        return True
    if math.isinf(leader) or math.isinf(follower):
        return False
    larger = max(abs(leader), abs(follower))
    return abs(leader - follower) <= max(abs_tol, rel_tol * larger) * (1 + 1e-9)


def ranking(
    values: dict[str, float], direction: str, abs_tol: float = 0.0, rel_tol: float = 0.0
) -> list[tuple[str, ...]]:
    """Groups of tied algorithms, best first; a group is what ties with its best member."""
    groups: list[list[str]] = []
    for name in sorted(values, key=lambda a: values[a], reverse=direction == "maximize"):
        if groups and tied(values[groups[-1][0]], values[name], abs_tol, rel_tol):
            groups[-1].append(name)
        else:
            groups.append([name])
    return [tuple(sorted(group)) for group in groups]


def comparisons(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs of one instance, sorted into comparisons of one run per algorithm."""
    by_algorithm: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.repetition):
        by_algorithm.setdefault(run.algorithm, []).append(run)
    numbers = sorted({run.repetition for run in runs})
    most = max(len(theirs) for theirs in by_algorithm.values())
    by_number = len(numbers) < len(runs) and len(numbers) <= 2 * most
    slots = [[] for _ in range(len(numbers) if by_number else most)]
    for theirs in by_algorithm.values():
        turn = 0
        for k, comparison in enumerate(slots):
            own = [
                r
                for i, r in enumerate(theirs)
                if (numbers.index(r.repetition) if by_number else i) == k
            ]
            comparison.append(own[0] if own else theirs[turn % len(theirs)])
            turn += not own
    return slots


def rankings(
    runs: Sequence[Run],
    times: Sequence[float],
    direction: str,
    abs_tol: float = 0.0,
    rel_tol: float = 0.0,
) -> dict[tuple[str, float], list[list[tuple[str, ...]]]]:
    """For each instance and time, one ranking per comparison."""
    found = {}
    for instance in {run.instance for run in runs}:
        mine = comparisons([run for run in runs if run.instance == instance])
        for time in times:
            found[instance, time] = []
            for comparison in mine:
                values = {r.algorithm: best_so_far(r, time, direction) for r in comparison}
                known = {name: v for name, v in values.items() if v is not None}
                found[instance, time].append(ranking(known, direction, abs_tol, rel_tol))
    return found


def log_likelihood(rankings, utility: dict[str, float], time: float) -> float:
    """Plackett-Luce by the paper: a tie is the mean of the log-likelihood over all its orders."""
    total = 0.0
    for name in rankings.instances:
        code = rankings.instances.index(name)
        weights = [w for w, i in zip(rankings.weight, rankings.instance, strict=True) if i == code]
        for groups, weight in zip(rankings.order(name, time), weights, strict=True):
            orders = [[]]
            for group in groups:
                orders = [order + list(tie) for order in orders for tie in permutations(group)]
            logs = [
                sum(
                    utility[order[k]] - math.log(sum(math.exp(utility[a]) for a in order[k:]))
                    for k in range(len(order))
                )
                for order in orders
            ]
            total += weight * math.fsum(logs) / len(logs)
    return total


def mean_log_sums(mu: Sequence[float], samples: int = 20_000) -> float:
    """The mean over many random orders of the sum of log tail sums."""
    shuffler = random.Random(5)
    total = 0.0
    order = list(mu)
    for _ in range(samples):
        shuffler.shuffle(order)
        tail = 0.0
        for utility in order:
            tail += math.exp(utility)
            total += math.log(tail)
    return total / samples


def gibbs(table, alpha: float, size: int):
    """Exact draws of ratings at the first time of a set table (Caron and Doucet 2012)."""
    rng = np.random.default_rng(7)
    member, count, wins = table.member, table.count[0], table.wins[0]
    rate = np.ones(len(wins))
    draws = np.empty((size, len(wins)))
    for k in range(size + 200):
        waiting = rng.gamma(count, 1.0 / (member @ rate))
        rate = rng.gamma(alpha + wins, 1.0 / (1.0 + waiting @ member))
        if k >= 200:
            draws[k - 200] = rate / rate.sum()
    return draws


def anytime_dominated(curves: np.ndarray, algorithm: int) -> bool:
    """Whether another of the curves (n, T) is strictly above that of the algorithm at all times."""
    return any(
        all(theirs > own for theirs, own in zip(other, curves[algorithm], strict=True))
        for other in curves
    )


def selected(ratings, preference, risk, size: int, repeats: bool = True):
    """All portfolios with score, expected value, probability of being best, and regret.

    ``ratings`` (D, T, n); ``preference`` takes one curve (T,) and gives a number.
    """
    choose = combinations_with_replacement if repeats else combinations
    values = {
        members: [preference(sum(draw[:, a] for a in members)) for draw in ratings]
        for members in choose(range(ratings.shape[2]), size)
    }
    top = [max(column) for column in zip(*values.values(), strict=True)]
    found = {}
    for members, own in values.items():
        best = sum(v >= t - 1e-9 * abs(t) for v, t in zip(own, top, strict=True)) / len(top)
        expected = sum(own) / len(own)
        regret = sum(t - v for v, t in zip(own, top, strict=True)) / len(top)
        score = {"expected": expected, "best": best}.get(risk)
        found[members] = (quantile(own, risk) if score is None else score, expected, best, regret)
    return found


def quantile(values: Sequence[float], level: float) -> float:
    """Between the two order statistics around the level, by a straight line."""
    ordered, place = sorted(values), level * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
