"""Search for the best multiset of algorithms to run in parallel.

The rating of a portfolio is the sum of the ratings of its members, with multiplicity (the maximum
of Gumbel variables is a Gumbel variable). The summands are called *items*: the values of an
algorithm if the preference is linear, its whole curves if not. There are four methods:

- with a linear preference and the risk "expected" or "best", the solution is known directly;
- a small number of portfolios is enumerated;
- else a portfolio grows greedily, and members are exchanged while that improves the score;
- for the risk "best", the best portfolio of every draw is searched, and the most frequent wins.

A search may miss the optimum; an upper bound of the score, the *limit*, bounds the difference.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Members = NDArray[np.intp]
Risk = float | Literal["expected", "best"]

MAX_ENUMERATED = 50_000
MAX_ENUMERATION_NUMBERS = 30_000_000
"""Enumeration is used up to this number of portfolios, and of numbers that they sum."""

MAX_KEPT = 10
"""The number of portfolios that are returned: the best and its runners-up."""

MAX_PAIRED_ALGORITHMS = 30
"""A search starts from the best pair of this number of algorithms."""

_CHUNK_NUMBERS = 100_000  # numbers in memory at once, so that they stay in the cache
_MAX_EXCHANGES = 100


@dataclass(frozen=True)
class PortfolioTask:
    """The algorithms to choose a portfolio from, and the criterion.

    Attributes
    ----------
    items
        Shape (n, D) or (n, D, T): the summands of each algorithm, for each draw.
    value
        A function from sums (..., D) or (..., D, T) to values (..., D).
    risk, size, repeats
        The criterion, the number of members, and whether a member may occur more than once.
    """

    items: Floats
    value: Callable[[Floats], Floats]
    risk: Risk
    size: int
    repeats: bool

    @property
    def linear(self) -> bool:
        """Whether the value of a portfolio is the sum of the values of its members."""
        return self.items.ndim == 2

    def values(self, members: Members) -> Floats:
        """Return the value of each portfolio in each draw (portfolios, draws)."""
        values = np.empty((len(members), self.items.shape[1]))
        for chunk in self._chunks(len(members)):
            values[chunk] = self.value(self.items[members[chunk]].sum(axis=1))
        return values

    def extended(self, base: Floats | float, inside: Members | None = None) -> Floats:
        """Return the values of a portfolio with one algorithm more, for each algorithm and draw."""
        values = np.empty(self.items.shape[:2])
        for chunk in self._chunks(len(values)):
            values[chunk] = self.value(base + self.items[chunk])
        if inside is not None and not self.repeats:
            np.put_along_axis(values, inside, -np.inf, axis=0)
        return values

    def score(self, values: Floats) -> Floats:
        """Return the risk criterion of values (..., draws): a quantile over draws, or the mean."""
        if isinstance(self.risk, str):
            return values.mean(axis=-1)
        return np.quantile(values, self.risk, axis=-1)

    def _chunks(self, rows: int) -> Iterator[slice]:
        step = max(1, _CHUNK_NUMBERS // self.items[0].size)
        return (slice(k, k + step) for k in range(0, rows, step))


@dataclass(frozen=True)
class BestPortfolios:
    """The best portfolios found, and an upper bound of the score if they are from a search.

    Attributes
    ----------
    members
        Shape (M, size): the best portfolio and its runners-up, in any order.
    top
        Shape (D,): the value of the best portfolio of each draw.
    limit
        An upper bound of the score of all portfolios; nan if the best one is proved optimal.
    """

    members: Members
    top: Floats
    limit: float = math.nan


def find_best_portfolios(task: PortfolioTask) -> BestPortfolios:
    """Find the best portfolios directly, by enumeration, or by search if there are too many."""
    n = len(task.items)
    has_direct_solution = task.linear and isinstance(task.risk, str)
    if has_direct_solution and task.size > 1:
        return _solve_linear(task)
    number = math.comb(n + task.size - 1, task.size) if task.repeats else math.comb(n, task.size)
    if task.size == 1 or (
        number <= MAX_ENUMERATED and number * task.items[0].size <= MAX_ENUMERATION_NUMBERS
    ):
        return _enumerate_portfolios(task)
    return _search_portfolios(task)


def _solve_linear(task: PortfolioTask) -> BestPortfolios:
    """Find the portfolio of highest value directly, if its value is the sum of its algorithms'."""
    top = _sum_largest(task.items, task)
    if task.risk == "expected":
        mean = task.items.mean(axis=1)
        return BestPortfolios(_find_neighbours(task, _repeat_leader(mean, task), mean), top)
    if task.repeats:
        # The best portfolio of a draw repeats its best algorithm; no other is ever best.
        return BestPortfolios(
            np.repeat(np.arange(len(task.items))[:, None], task.size, axis=1), top
        )
    ahead = np.argsort(-task.items, axis=0, kind="stable")[: task.size].T
    return BestPortfolios(_find_most_frequent(ahead), top)


def _enumerate_portfolios(task: PortfolioTask) -> BestPortfolios:
    """Find the best portfolios by evaluating every portfolio."""
    choose = combinations_with_replacement if task.repeats else combinations
    rows = list(choose(range(len(task.items)), task.size))
    portfolios = np.array(rows, dtype=np.intp)
    chunks = np.array_split(portfolios, -(-len(rows) * task.items.shape[1] // 1_000_000))
    scores, top = [], np.full(task.items.shape[1], -np.inf)
    for chunk in chunks:
        values = task.values(chunk)
        scores.append(task.score(values))
        np.maximum(top, values.max(axis=0), out=top)
    score = np.concatenate(scores)
    if task.risk == "best":
        best = np.concatenate([is_maximal(task.values(c), top).mean(axis=1) for c in chunks])
        order = np.lexsort((-score, -best))
    else:
        order = np.argsort(-score, kind="stable")
    # Single algorithms are all returned, however many there are.
    return BestPortfolios(portfolios[order if task.size == 1 else order[:MAX_KEPT]], top)


def _search_portfolios(task: PortfolioTask) -> BestPortfolios:
    """Search good portfolios: grow them greedily, then exchange members while that improves."""
    pairs, together = _evaluate_pairs(task)
    per_draw = _grow_per_draw(task, pairs[together.argmax(axis=0)].T)
    top = _sum_largest(task.items, task)
    if not task.linear:
        top = task.value(_pick_items(task, per_draw).sum(axis=0))
    if task.risk == "best":
        frequent = _find_most_frequent(per_draw.T)
        top = np.maximum(top, task.values(frequent).max(axis=0))
        return BestPortfolios(frequent, top, limit=1.0)
    alone = task.score(task.extended(0.0))
    pair = pairs[task.score(together).argmax()]
    ready = np.vstack([_find_most_frequent(per_draw.T), _repeat_leader(alone, task)])
    starts = [_grow_portfolio(task, initial) for initial in (pair[:0], pair)]
    starts.append(ready[task.score(task.values(ready)).argmax()])
    members, _ = max((_exchange_members(task, start) for start in starts), key=lambda end: end[1])
    best = _find_neighbours(task, members, alone)
    top = np.maximum(top, task.values(best).max(axis=0))
    return BestPortfolios(best, top, _bound_score(task))


def _evaluate_pairs(task: PortfolioTask) -> tuple[Members, Floats]:
    """Return pairs of algorithms, and the value of running both in equal shares, in each draw.

    Greedy growth alone misses two algorithms that are worth little alone, one good early and one
    good late.
    """
    mean = task.items.reshape(len(task.items), -1).mean(axis=1)
    best = np.sort(np.argsort(-mean, kind="stable")[:MAX_PAIRED_ALGORITHMS])
    pairs = best[np.stack(np.triu_indices(len(best), 0 if task.repeats else 1), axis=1)]
    return pairs, replace(task, items=task.items * (task.size / 2)).values(pairs)


def _grow_portfolio(task: PortfolioTask, members: Members) -> Members:
    """Grow a portfolio greedily: add the member that improves the score most, until full."""
    while len(members) < task.size:
        extended = task.extended(task.items[members].sum(axis=0))
        score = _forbid_repeats(task, task.score(extended), members)
        members = np.append(members, np.argmax(score))
    return members


def _exchange_members(task: PortfolioTask, members: Members) -> tuple[Members, float]:
    """Exchange one member at a time, the best exchange first, until none improves the score."""
    best = float(task.score(task.values(members[None]))[0])
    for _ in range(_MAX_EXCHANGES):
        offers: list[tuple[float, int, int]] = []
        for slot in np.unique(members, return_index=True)[1].tolist():
            others = np.delete(members, slot)
            extended = task.extended(task.items[others].sum(axis=0))
            score = _forbid_repeats(task, task.score(extended), others)
            offers.append((float(score.max()), slot, int(score.argmax())))
        offer, slot, algorithm = max(offers)
        if not offer > best + 1e-12 * abs(best):
            break
        best, members = offer, members.copy()
        members[slot] = algorithm
    return members, best


def _grow_per_draw(task: PortfolioTask, members: Members) -> Members:
    """Grow the best portfolio of each posterior draw greedily, from the given members."""
    if task.linear:
        order = np.argsort(-task.items, axis=0, kind="stable")
        return np.repeat(order[:1], task.size, axis=0) if task.repeats else order[: task.size]
    while len(members) < task.size:
        extended = task.extended(_pick_items(task, members).sum(axis=0), inside=members)
        members = np.concatenate([members, extended.argmax(axis=0)[None]])
    for slot in [*range(task.size)] * 2:
        others = np.delete(members, slot, axis=0)
        extended = task.extended(_pick_items(task, others).sum(axis=0), inside=others)
        current = np.take_along_axis(extended, members[slot][None], axis=0)[0]
        # A difference within rounding is a tie, which is not exchanged.
        gains = extended.max(axis=0) > current + 1e-12 * np.abs(current)
        members[slot] = np.where(gains, extended.argmax(axis=0), members[slot])
    return members


def _pick_items(task: PortfolioTask, members: Members) -> Floats:
    """Return the transformed ratings of one chosen member, which may differ in each draw."""
    return task.items[members, np.arange(task.items.shape[1])]


def _forbid_repeats(task: PortfolioTask, score: Floats, members: Members) -> Floats:
    if not task.repeats:
        score[members] = -np.inf
    return score


def _repeat_leader(score: Floats, task: PortfolioTask) -> Members:
    """Return the portfolio of the best single algorithms: one repeated, or the best few."""
    order = np.argsort(-score, kind="stable")
    return np.repeat(order[:1], task.size) if task.repeats else order[: task.size]


def _find_neighbours(task: PortfolioTask, members: Members, alone: Floats) -> Members:
    """Return the best among a portfolio and those that differ from it in one member."""
    neighbours = {tuple(np.sort(members).tolist())}
    candidates = np.argsort(-alone, kind="stable")[: MAX_KEPT + task.size].tolist()
    for slot in np.unique(members, return_index=True)[1].tolist():
        for candidate in candidates:
            other = members.copy()
            other[slot] = candidate
            if task.repeats or len(np.unique(other)) == task.size:
                neighbours.add(tuple(np.sort(other).tolist()))
    portfolios = np.array(sorted(neighbours), dtype=np.intp)
    order = np.argsort(-task.score(task.values(portfolios)), kind="stable")
    return portfolios[order[:MAX_KEPT]]


def _find_most_frequent(rows: Members) -> Members:
    """Return the rows that occur most often, where the order within a row does not matter."""
    distinct, counts = np.unique(np.sort(rows, axis=1), axis=0, return_counts=True)
    return distinct[np.argsort(-counts, kind="stable")[:MAX_KEPT]]


def _sum_largest(items: Floats, task: PortfolioTask) -> Floats:
    """Return the sum of the ``size`` largest transformed ratings: no portfolio exceeds it."""
    if task.repeats:
        return task.size * items.max(axis=0)
    return np.partition(items, -task.size, axis=0)[-task.size :].sum(axis=0)


def _bound_score(task: PortfolioTask) -> float:
    """Return an upper bound of the score of all portfolios."""
    limit = float(task.score(task.value(_sum_largest(task.items, task))))
    if task.linear and not isinstance(task.risk, str):
        # A quantile is at most the tail mean above it (expected shortfall), which is subadditive.
        draws = task.items.shape[1]
        above = min(int(task.risk * (draws - 1)) + 1, draws - 1)
        tail = np.sort(task.items, axis=1)[:, above:].mean(axis=1)
        limit = min(limit, float(_sum_largest(tail, task)))
    return limit


def is_maximal(values: Floats, top: Floats) -> NDArray[np.bool_]:
    """Return a mask of values (..., draws) that equal the best value of their draw."""
    return values >= top - 1e-9 * np.abs(top)
