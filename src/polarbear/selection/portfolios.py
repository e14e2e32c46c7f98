"""The best multiset of algorithms to run in parallel: arrays in, arrays out.

The rating of a portfolio is the sum of the ratings of its members, each as often as it is in (the
maximum of Gumbel variables is one). What is summed is called an *item*: the values of an algorithm
if the preference is linear, its whole curves if not. Four ways lead to the best portfolio:

- a linear preference by expected value or probability of being best is answered directly;
- else few portfolios are all tried;
- else a portfolio grows member by member, and members are exchanged while that helps;
- for the probability of being best every draw is searched for its own best portfolio, and the one
  that most draws agree on is taken.

What a search found may be short of the best. A *limit* that no portfolio can pass says by how much.
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
"""Portfolios that are all tried, and numbers that this may take: a fraction of a second."""

MAX_KEPT = 10
"""How many portfolios are kept: the best and its runners-up."""

MAX_PAIRED_ALGORITHMS = 30
"""Of so many algorithms all pairs are tried before a search."""

_CHUNK_NUMBERS = 100_000  # numbers at a time: what stays in the cache
_MAX_EXCHANGES = 100


@dataclass(frozen=True)
class PortfolioTask:
    """What to choose from, and by what.

    Attributes
    ----------
    items
        Shape (n, D) or (n, D, T): what is summed over members, for each draw.
    value
        From sums of shape (..., D) or (..., D, T) to values of shape (..., D).
    risk, size, repeats
        The criterion, how many members, and whether one may be in more than once.
    """

    items: Floats
    value: Callable[[Floats], Floats]
    risk: Risk
    size: int
    repeats: bool

    @property
    def linear(self) -> bool:
        """Whether values add up like the ratings do."""
        return self.items.ndim == 2

    def values(self, members: Members) -> Floats:
        """Values of portfolios (M, size): shape (M, D)."""
        found = np.empty((len(members), self.items.shape[1]))
        for some in self._chunks(len(members)):
            found[some] = self.value(self.items[members[some]].sum(axis=1))
        return found

    def extended(self, base: Floats | float, inside: Members | None = None) -> Floats:
        """Values of a sum with each algorithm added: shape (n, D), -inf for those in already."""
        found = np.empty(self.items.shape[:2])
        for some in self._chunks(len(found)):
            found[some] = self.value(base + self.items[some])
        if inside is not None and not self.repeats:
            np.put_along_axis(found, inside, -np.inf, axis=0)
        return found

    def score(self, values: Floats) -> Floats:
        """What values (..., D) are worth under risk; by "best" their mean, which breaks ties."""
        if isinstance(self.risk, str):
            return values.mean(axis=-1)
        return np.quantile(values, self.risk, axis=-1)

    def _chunks(self, rows: int) -> Iterator[slice]:
        step = max(1, _CHUNK_NUMBERS // self.items[0].size)
        return (slice(k, k + step) for k in range(0, rows, step))


@dataclass(frozen=True)
class BestPortfolios:
    """The best portfolios.

    Attributes
    ----------
    members
        Shape (M, size): the best and its runners-up, in any order.
    top
        Shape (D,): the value of the best portfolio of each draw.
    limit
        What the score of no portfolio can exceed; nan if the best one was found for certain.
    """

    members: Members
    top: Floats
    limit: float = math.nan


def find_best_portfolios(task: PortfolioTask) -> BestPortfolios:
    """The best portfolios and how sure that is."""
    n = len(task.items)
    direct = task.linear and isinstance(task.risk, str)
    if direct and task.size > 1:
        return _solve_linear(task)
    number = math.comb(n + task.size - 1, task.size) if task.repeats else math.comb(n, task.size)
    if task.size == 1 or (
        number <= MAX_ENUMERATED and number * task.items[0].size <= MAX_ENUMERATION_NUMBERS
    ):
        return _enumerate_portfolios(task)
    return _search_portfolios(task)


def _solve_linear(task: PortfolioTask) -> BestPortfolios:
    """With values that add up, nobody gains from company: the best in a row."""
    top = _sum_largest(task.items, task)
    if task.risk == "expected":
        mean = task.items.mean(axis=1)
        return BestPortfolios(_find_neighbours(task, _repeat_leader(mean, task), mean), top)
    if task.repeats:
        # In each draw its best algorithm, as often as it may: all others are never best.
        return BestPortfolios(
            np.repeat(np.arange(len(task.items))[:, None], task.size, axis=1), top
        )
    ahead = np.argsort(-task.items, axis=0, kind="stable")[: task.size].T
    return BestPortfolios(_find_most_frequent(ahead), top)


def _enumerate_portfolios(task: PortfolioTask) -> BestPortfolios:
    """Try every portfolio."""
    choose = combinations_with_replacement if task.repeats else combinations
    rows = list(choose(range(len(task.items)), task.size))
    everyone = np.array(rows, dtype=np.intp)
    chunks = np.array_split(everyone, -(-len(rows) * task.items.shape[1] // 1_000_000))
    scores, top = [], np.full(task.items.shape[1], -np.inf)
    for some in chunks:
        values = task.values(some)
        scores.append(task.score(values))
        np.maximum(top, values.max(axis=0), out=top)
    score = np.concatenate(scores)
    if task.risk == "best":
        ahead = np.concatenate([is_maximal(task.values(some), top).mean(axis=1) for some in chunks])
        order = np.lexsort((-score, -ahead))
    else:
        order = np.argsort(-score, kind="stable")
    # A single algorithm is compared with all others, however many there are.
    return BestPortfolios(everyone[order if task.size == 1 else order[:MAX_KEPT]], top)


def _search_portfolios(task: PortfolioTask) -> BestPortfolios:
    """Grow portfolios from one and from two, and exchange members while that helps."""
    pairs, together = _evaluate_pairs(task)
    per_draw = _grow_per_draw(task, pairs[together.argmax(axis=0)].T)
    top = _sum_largest(task.items, task)
    if not task.linear:
        top = task.value(_pick_items(task, per_draw).sum(axis=0))
    if task.risk == "best":
        found = _find_most_frequent(per_draw.T)
        return BestPortfolios(found, np.maximum(top, task.values(found).max(axis=0)), limit=1.0)
    alone = task.score(task.extended(0.0))
    pair = pairs[task.score(together).argmax()]
    ready = np.vstack([_find_most_frequent(per_draw.T), _repeat_leader(alone, task)])
    starts = [_grow_portfolio(task, few) for few in (pair[:0], pair)]
    starts.append(ready[task.score(task.values(ready)).argmax()])
    members, _ = max((_exchange_members(task, start) for start in starts), key=lambda end: end[1])
    found = _find_neighbours(task, members, alone)
    top = np.maximum(top, task.values(found).max(axis=0))
    return BestPortfolios(found, top, _bound_score(task))


def _evaluate_pairs(task: PortfolioTask) -> tuple[Members, Floats]:
    """Pairs (P, 2) of algorithms and what portfolios of both in equal parts are worth: (P, D).

    One good early and one good late may each be worth nothing alone.
    """
    mean = task.items.reshape(len(task.items), -1).mean(axis=1)
    few = np.sort(np.argsort(-mean, kind="stable")[:MAX_PAIRED_ALGORITHMS])
    pairs = few[np.stack(np.triu_indices(len(few), 0 if task.repeats else 1), axis=1)]
    return pairs, replace(task, items=task.items * (task.size / 2)).values(pairs)


def _grow_portfolio(task: PortfolioTask, members: Members) -> Members:
    """A portfolio (size,) grown from some members, each time by the one that helps most."""
    while len(members) < task.size:
        extended = task.extended(task.items[members].sum(axis=0))
        score = _forbid_repeats(task, task.score(extended), members)
        members = np.append(members, np.argmax(score))
    return members


def _exchange_members(task: PortfolioTask, members: Members) -> tuple[Members, float]:
    """Exchange one member at a time, the exchange that helps most, until none does."""
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
    """The best portfolio of each draw, grown from some members (k, D): shape (size, D)."""
    if task.linear:
        order = np.argsort(-task.items, axis=0, kind="stable")
        return np.repeat(order[:1], task.size, axis=0) if task.repeats else order[: task.size]
    while len(members) < task.size:
        extended = task.extended(_pick_items(task, members).sum(axis=0), inside=members)
        members = np.concatenate([members, extended.argmax(axis=0)[None]])
    for slot in [*range(task.size)] * 2:
        others = np.delete(members, slot, axis=0)
        extended = task.extended(_pick_items(task, others).sum(axis=0), inside=others)
        now = np.take_along_axis(extended, members[slot][None], axis=0)[0]
        # Ties stay: rounding is no reason to exchange.
        gains = extended.max(axis=0) > now + 1e-12 * np.abs(now)
        members[slot] = np.where(gains, extended.argmax(axis=0), members[slot])
    return members


def _pick_items(task: PortfolioTask, members: Members) -> Floats:
    """The items of members (k, D) that differ by draw: shape (k, D, T)."""
    return task.items[members, np.arange(task.items.shape[1])]


def _forbid_repeats(task: PortfolioTask, score: Floats, members: Members) -> Floats:
    if not task.repeats:
        score[members] = -np.inf
    return score


def _repeat_leader(score: Floats, task: PortfolioTask) -> Members:
    """The best of single algorithms, as often as it may be taken: shape (size,)."""
    order = np.argsort(-score, kind="stable")
    return np.repeat(order[:1], task.size) if task.repeats else order[: task.size]


def _find_neighbours(task: PortfolioTask, members: Members, alone: Floats) -> Members:
    """A portfolio and the best of those that differ in one member, of the best algorithms."""
    known = {tuple(np.sort(members).tolist())}
    offers = np.argsort(-alone, kind="stable")[: MAX_KEPT + task.size].tolist()
    for slot in np.unique(members, return_index=True)[1].tolist():
        for offer in offers:
            other = members.copy()
            other[slot] = offer
            if task.repeats or len(np.unique(other)) == task.size:
                known.add(tuple(np.sort(other).tolist()))
    found = np.array(sorted(known), dtype=np.intp)
    order = np.argsort(-task.score(task.values(found)), kind="stable")
    return found[order[:MAX_KEPT]]


def _find_most_frequent(rows: Members) -> Members:
    """The rows, as sets, that occur most often."""
    found, times = np.unique(np.sort(rows, axis=1), axis=0, return_counts=True)
    return found[np.argsort(-times, kind="stable")[:MAX_KEPT]]


def _sum_largest(items: Floats, task: PortfolioTask) -> Floats:
    """The largest sum of items, number by number: what no portfolio can exceed anywhere."""
    if task.repeats:
        return task.size * items.max(axis=0)
    return np.partition(items, -task.size, axis=0)[-task.size :].sum(axis=0)


def _bound_score(task: PortfolioTask) -> float:
    """What the score of no portfolio can exceed."""
    limit = float(task.score(task.value(_sum_largest(task.items, task))))
    if task.linear and not isinstance(task.risk, str):
        # A quantile is at most the mean of what lies above it, and such means of a sum are at most
        # the sum of those of its members.
        draws = task.items.shape[1]
        above = min(int(task.risk * (draws - 1)) + 1, draws - 1)
        tail = np.sort(task.items, axis=1)[:, above:].mean(axis=1)
        limit = min(limit, float(_sum_largest(tail, task)))
    return limit


def is_maximal(values: Floats, top: Floats) -> NDArray[np.bool_]:
    """Where values are the best, but for rounding."""
    return values >= top - 1e-9 * np.abs(top)
