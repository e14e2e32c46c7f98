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


class PaperRace:
    """Algorithm 1 of the paper, step by step, with loops and counting alone.

    The posterior is by importance resampling: ``prior`` holds curves drawn from a prior, each a
    dictionary from algorithm to utilities at the times, and ``samples`` of them are resampled by
    their likelihood; at each time by itself if ``over_time`` is "independent".
    ``observe(algorithm, instance, k)`` gives the value at time k (large is good), or None if the
    run is missing.
    """

    def __init__(
        self, algorithms, n_times, prior, observe, *,
        over_time, certainty, epsilon, elimination, resolution, batch, samples,
    ):  # fmt: skip
        self.over_time = over_time
        self.n_times, self.prior, self.observe, self.samples = n_times, prior, observe, samples
        self.certainty, self.epsilon = certainty, epsilon
        self.elimination, self.resolution = elimination, resolution
        self.b_min, self.b_max = batch
        self.b = self.b_min
        self.candidates = sorted(algorithms)
        self.everybody = list(algorithms)  # with the eliminated ones
        self.resolved = {}  # C(t, {A, B})
        for a, b in combinations(self.candidates, 2):
            for t in range(n_times):
                self.resolved[a, b, t] = False
        self.instances = []  # in the order of their use
        self.known = {}  # (algorithm, instance): the last time until which it ran
        self.behind = {}  # newcomers: the used instances on which they have not run yet

    def join(self, algorithm):
        """A new algorithm enters with the prior, unresolved against all candidates."""
        for other in self.everybody:
            a, b = sorted((algorithm, other))
            for t in range(self.n_times):
                self.resolved[a, b, t] = False
        self.everybody.append(algorithm)
        self.candidates = sorted([*self.candidates, algorithm])
        self.behind[algorithm] = list(self.instances)

    def unresolved_times(self, a):
        """The times at which some pair of a candidate is unresolved."""
        return [
            t
            for t in range(self.n_times)
            for b in self.candidates
            if b != a and not self.resolved[*sorted((a, b)), t]
        ]

    def plan(self):
        """The runs of the next round: (algorithm, instance, last time); none at the end."""
        tau = {a: max(self.unresolved_times(a), default=None) for a in self.candidates}
        sampled = [a for a in self.candidates if tau[a] is not None]
        runs = []
        for a in sampled:
            runs += [(a, instance, tau[a]) for instance in self.behind.get(a, [])[: self.b]]
            self.behind[a] = self.behind.get(a, [])[self.b :]
        if not runs and sampled:
            for _ in range(self.b):
                self.instances.append(str(len(self.instances) + 1))
                runs += [(a, self.instances[-1], tau[a]) for a in sampled]
        for a, instance, last in runs:
            self.known[a, instance] = last
        return runs

    def largest_group(self):
        """The most algorithms that instances compare with each other, also through others.

        The paper knows no missing runs. What no instance compares with the others waits.
        """
        groups = [{a} for a in sorted({a for a, _ in self.known})]
        for instance in self.instances:
            met = {
                a
                for (a, where), last in self.known.items()
                if where == instance
                and any(self.observe(a, instance, t) is not None for t in range(last + 1))
            }
            joined = [group for group in groups if group & met]
            if joined:
                first = groups.index(joined[0])
                groups[first] = set().union(*joined)
                groups = [one for one in groups if one is groups[first] or one not in joined]
        return max(groups, key=len)

    def posterior(self):
        """Curves sampled from P(theta | R), where R is every ranking at every time."""
        observed = {}
        for (a, instance), last in self.known.items():
            for t in range(last + 1):
                value = self.observe(a, instance, t)
                if value is not None and a in self.compared:
                    observed.setdefault((instance, t), {})[a] = value
        rankings = [(tuple(ranking(values, "maximize")), t) for (_, t), values in observed.items()]
        if self.over_time == "temporal":
            return self.resample(rankings)
        draws = [{a: [] for a in self.prior[0]} for _ in range(self.samples)]
        for t in range(self.n_times):
            chosen = self.resample([one for one in rankings if one[1] == t])
            for draw, curve in zip(draws, chosen, strict=True):
                for a in draw:
                    draw[a].append(curve[a][t])
        return draws

    def resample(self, rankings):
        """Curves of the prior, as often as their likelihood says."""
        weights = [
            math.fsum(self.log_probability(*one, curve) for one in rankings) for curve in self.prior
        ]
        top = max(weights)
        weights = [math.exp(w - top) for w in weights]
        step, at, chosen = sum(weights) / self.samples, 0, []
        passed = weights[0]
        for k in range(self.samples):  # systematic resampling
            while passed < (k + 0.5) * step and at < len(weights) - 1:
                at += 1
                passed += weights[at]
            chosen.append(self.prior[at])
        return chosen

    def log_probability(self, groups, t, curve):
        """Plackett-Luce; a tie is the mean over all its orders."""
        key = (groups, id(curve), t)
        memory = self.__dict__.setdefault("memory", {})
        if key not in memory:
            orders = [[]]
            for group in groups:
                orders = [order + list(tie) for order in orders for tie in permutations(group)]
            logs = []
            for order in orders:
                log = 0.0
                for k in range(len(order)):
                    rest = sum(math.exp(curve[a][t]) for a in order[k:])
                    log += curve[order[k]][t] - math.log(rest)
                logs.append(log)
            memory[key] = math.fsum(logs) / len(logs)
        return memory[key]

    def decide(self):
        """Update the posterior, eliminate, resolve, and adapt the batch: who was eliminated."""
        self.compared = self.largest_group()
        rated = [a for a in self.candidates if a in self.compared]
        draws = self.posterior()
        before = self.count_unresolved()
        eliminated = self.eliminate(draws, rated) if len(self.compared) > 1 else []
        for a, b in combinations(rated, 2) if len(self.compared) > 1 else ():
            self.resolve(draws, a, b)
        done = before - self.count_unresolved()
        if done == 0:
            self.b = self.b * 2
        elif done > 0.2 * len(self.resolved):
            self.b = self.b // 2
        self.b = min(max(self.b, self.b_min), self.b_max)
        return eliminated

    def count_unresolved(self):
        """The number of (pair, time) of candidates that are not resolved."""
        return sum(
            not resolved and a in self.candidates and b in self.candidates
            for (a, b, _), resolved in self.resolved.items()
        )

    def ahead(self, draws, a, b, t):
        """P(theta_A(t) > theta_B(t) | R)."""
        return sum(curve[a][t] > curve[b][t] for curve in draws) / len(draws)

    def equivalent(self, draws, a, b, t):
        """Whether A and B are (epsilon, certainty)-equivalent at a time."""
        near = 0
        for curve in draws:
            win = 1 / (1 + math.exp(curve[b][t] - curve[a][t]))
            near += 0.5 - self.epsilon <= win <= 0.5 + self.epsilon
        return near / len(draws) >= self.certainty

    def dominance(self, draws, a, b):
        """P(A dominates B) as elimination has it."""
        times = range(self.n_times)
        if self.elimination == "pointwise":
            return min(self.ahead(draws, a, b, t) for t in times)
        return sum(all(curve[a][t] > curve[b][t] for t in times) for curve in draws) / len(draws)

    def eliminate(self, draws, rated):
        """Remove dominated candidates one after the other: a dominated one before its dominators.

        In a circle the most certainly dominated one goes first, and of those that are equally
        certain the first by name.
        """
        chance = {(a, b): self.dominance(draws, a, b) for a in rated for b in rated if a != b}
        eliminated = []
        while True:
            dominated = {}
            for b in rated:
                by = [chance[a, b] for a in rated if a != b and chance[a, b] >= self.certainty]
                if by:
                    dominated[b] = max(by)
            if not dominated:
                return eliminated
            harmless = [
                b
                for b in dominated
                if not any(c != b and chance[b, c] >= self.certainty for c in dominated)
            ]
            for b in harmless or [max(dominated, key=lambda name: dominated[name])]:
                self.candidates.remove(b)
                rated.remove(b)
                eliminated.append(b)

    def resolve(self, draws, a, b):
        """Eq. 30 at each time, and with crossing resolution eq. 31."""
        times = range(self.n_times)
        a_leads = [self.ahead(draws, a, b, t) >= self.certainty for t in times]
        b_leads = [self.ahead(draws, b, a, t) >= self.certainty for t in times]
        tie = [self.equivalent(draws, a, b, t) for t in times]
        for t in times:
            if a_leads[t] or b_leads[t] or tie[t]:
                self.resolved[a, b, t] = True
        if self.resolution == "crossing":
            for t in times:
                for u in times:
                    holds = (a_leads[t] or tie[t]) and (b_leads[u] or tie[u])
                    if holds and (a_leads[t] or b_leads[u]):
                        for every in times:
                            self.resolved[a, b, every] = True


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
