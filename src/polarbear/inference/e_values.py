"""E-values for pairs of algorithms: evidence that stays valid under optional stopping.

An e-value is the wealth of a gambler who bets against a hypothesis, one instance after the other.
If the hypothesis is true, the wealth ever reaches K with probability at most 1/K, under any
stopping rule (Ville's inequality; Ramdas et al., Statistical Science 2023).

Two hypotheses are bet against for each ordered pair (a, b) at each time t:

- *lead*: "a wins at most as often as it loses". A large e-value shows that a is ahead of b at t.
- *par*: "the mean score of a is at most 1/2 - epsilon" (win 1, tie 1/2, loss 0). A large e-value
  shows that a is not behind b by more than epsilon at t.

Each e-value is a finite mixture of bets with fixed weights, so it is a function of the numbers of
wins, ties and losses. No model is needed: only instances that are drawn independently of each
other, and runs that reach a time in an order that does not depend on their own results.

Claims over all times take the minimum of e-values, which needs no correction for the number of
times.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import betaln, xlog1py, xlogy

from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.dominance import MAX_CELLS, Bools, Floats

HALF_ON_THE_WAY = 120
"""The number of instances with which half of the error of a race is for proofs on the way."""


class Outcomes(NamedTuple):
    """The number of instances on which row beat column, and on which they tied, at each time."""

    wins: Floats  # (T, n, n)
    ties: Floats  # (T, n, n), 0 on the diagonal

    @property
    def losses(self) -> Floats:
        """The numbers of instances on which row lost to column (times, row, column)."""
        return self.wins.swapaxes(1, 2)

    def share_decided(self) -> Floats | None:
        """Return the share of duels that are no ties (T, pairs); None if there are no ties.

        Two more are decided, so that few ties are not certain.
        """
        first, second = np.triu_indices(self.ties.shape[1], 1)
        tied = self.ties[:, first, second]
        decided = self.wins[:, first, second] + self.losses[:, first, second]
        return 1 - tied / (tied + decided + 2) if tied.any() else None

    def have_all_met(self) -> bool:
        """Return whether each pair has met at each time."""
        return bool((self.wins + self.losses + self.ties + np.eye(self.ties.shape[1])).all())


def count_outcomes(rankings: Rankings, heaviest: float | None = None) -> Outcomes:
    """Count the wins and ties of each pair of algorithms at each time.

    An instance is one bet. With repetitions its score is the share of its comparisons that were
    won, tied and lost. With weights an instance counts in proportion, and one of the ``heaviest``
    weight (by default the largest one, at least 1) counts as 1. Such fractions make an e-value
    smaller than a bet on the mean score would be (inequality of the weighted means), so it stays
    valid. Weights must not depend on results, and repetitions of an instance must come together.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 10)
    >>> outcomes = count_outcomes(rankings)
    >>> outcomes.wins[0, 0, 1] + outcomes.losses[0, 0, 1]
    np.float64(10.0)
    """
    n, n_times = len(rankings.algorithms), len(rankings.times)
    wins, ties = np.zeros((2, n_times, n * n))
    for cell, entry, weight in _iterate_comparisons(rankings, heaviest):
        size, k = entry.shape
        step = max(1, MAX_CELLS // (size * k))
        for first in range(0, n_times, step):
            at = slice(first, min(first + step, n_times))
            place = np.ascontiguousarray(rankings.position[at, entry].transpose(1, 2, 0))
            for i in range(k - 1):
                ours, theirs = place[:, i : i + 1], place[:, i + 1 :]  # (size, pairs, times)
                pair, add = _sum_by_pair(cell.reshape(size, k, k)[:, i, i + 1 :], weight[:, 0, 0])
                swapped = pair % n * n + pair // n
                known = (ours != UNKNOWN) & (theirs != UNKNOWN)
                wins[at, pair] += add((ours < theirs) & known).T
                wins[at, swapped] += add((theirs < ours) & known).T
                ties[at, pair] += add((ours == theirs) & known).T
    ties = ties.reshape(n_times, n, n)
    return Outcomes(wins.reshape(n_times, n, n), ties + ties.swapaxes(1, 2))


def _sum_by_pair(cell: NDArray[np.intp], weight: Floats) -> tuple[NDArray[np.intp], Any]:
    """Return distinct cells, and what sums (comparisons, pairs, times) by these and ``weight``."""
    size, k = cell.shape
    if (cell == cell[0]).all():  # as in a race on the same algorithms
        return cell[0], lambda holds: (weight @ holds.reshape(size, -1)).reshape(k, -1)
    pair, code = np.unique(cell, return_inverse=True)
    total = csr_array((np.repeat(weight, k), (code.ravel(), np.arange(cell.size))))
    return pair, lambda holds: total @ holds.reshape(cell.size, -1)


def count_by_instance(rankings: Rankings, first: str, second: str) -> Floats:
    """Return the wins, ties and losses of the first against the second (3, times, instances).

    Their sums over instances are those of :func:`count_outcomes`.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 10)
    >>> count_by_instance(rankings, "a1", "a2").sum(axis=0).tolist()
    [[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]]
    """
    pair = rankings.among([first, second])
    totals = np.bincount(pair.instance, pair.weight, minlength=len(pair.instances))
    compared = np.flatnonzero(np.diff(pair.offset) == 2)
    start = pair.offset[compared]
    swapped = pair.algorithm[start] != pair.algorithms.index(first)
    ours, theirs = pair.position[:, start + swapped], pair.position[:, start + ~swapped]
    known = (ours != UNKNOWN) & (theirs != UNKNOWN)
    weight, instance = pair.weight[compared] / max(1.0, totals.max()), pair.instance[compared]
    return np.array(
        [
            [np.bincount(instance, weight * row, minlength=len(totals)) for row in holds & known]
            for holds in (ours < theirs, ours == theirs, ours > theirs)
        ],
        dtype=np.float64,
    )


def log_lead(wins: Floats, losses: Floats, epsilon: float) -> Floats:
    """Return the log of the e-value against "an algorithm wins at most as often as it loses".

    A mixture of bets with factors 1 + 2 theta for a win and 1 - 2 theta for a loss. Small bets,
    which are best for close pairs, have the largest weights.

    >>> np.exp(log_lead(np.array([8.0, 4.0]), np.array([0.0, 4.0]), 0.05)).round(2)
    array([21.83,  0.75])
    """
    theta, weight = lead_bets(epsilon)
    return log_mixture(weight, [wins * np.log1p(2 * k) + losses * np.log1p(-2 * k) for k in theta])


def preference_evidence(
    rankings: Rankings, weights: Floats, epsilon: float, heaviest: float | None = None
) -> "Evidence":
    """Return log e-values of pairs, for scores averaged over time with preference weights.

    The score of a against b on an instance is sum_t weights_t score_t (win 1, tie 1/2, loss 0),
    one number between 0 and 1. The factor of a bet is 1 + 2 theta (2 score - 1) for lead, and
    1 + lambda (score - 1/2 + epsilon) for par. Instances on which both are known at all times that
    count are used.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[3.0, 0.0]] * 2), 40)
    >>> bool(preference_evidence(rankings, np.array([0.5, 0.5]), 0.05).lead[0, 0, 1] > np.log(20))
    True
    """
    n, m = len(rankings.algorithms), 0.5 - epsilon
    theta, theta_weight = lead_bets(epsilon)
    stake, stake_weight = score_bets(m, epsilon)
    counted = np.flatnonzero(weights)
    lead, par = np.zeros((len(theta), n * n)), np.zeros((len(stake), n * n))
    for cell, entry, weight in _iterate_comparisons(rankings, heaviest):
        score, known = 0.0, True
        for t in counted.tolist():
            place = rankings.position[t][entry]
            row, column = place[:, :, None], place[:, None, :]
            score = score + weights[t] * ((row < column) + 0.5 * (row == column))
            known = known & (row != UNKNOWN) & (column != UNKNOWN)
        share = (weight * known).ravel()
        for log_wealth, factors in (
            (lead, (2 * bet * (2 * np.asarray(score) - 1) for bet in theta)),
            (par, (bet * (np.asarray(score) - m) for bet in stake)),
        ):
            for total, factor in zip(log_wealth, factors, strict=True):
                total += np.bincount(cell, share * np.log1p(factor).ravel(), minlength=n * n)
    mixed = (log_mixture(theta_weight, lead), log_mixture(stake_weight, par))
    if epsilon == 0:
        mixed = mixed[0], np.full(n * n, -np.inf)
    return Evidence(*(log_e.reshape(1, n, n) for log_e in mixed))


def _iterate_comparisons(
    rankings: Rankings, heaviest: float | None
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.int64], Floats]]:
    """Yield chunks of comparisons; within a chunk, all have the same number of algorithms.

    A chunk of C comparisons has flat cells row * n + column of its pairs, indices of entries (C, k)
    and weights (C, 1, 1).
    """
    n = len(rankings.algorithms)
    heaviest = find_heaviest(rankings) if heaviest is None else heaviest
    size = np.diff(rankings.offset)
    for k in np.unique(size[size > 1]).tolist():
        of_size = np.flatnonzero(size == k)
        step = max(1, MAX_CELLS // (k * k))
        for first in range(0, len(of_size), step):
            chosen = of_size[first : first + step]
            entry = rankings.offset[chosen][:, None] + np.arange(k)
            code = rankings.algorithm[entry].astype(np.intp)
            cell = (code[:, :, None] * n + code[:, None, :]).ravel()
            yield cell, entry, rankings.weight[chosen][:, None, None] / heaviest


def find_heaviest(rankings: Rankings) -> float:
    """Return the largest total weight of an instance, at least 1.

    >>> import polarbear as pb
    >>> find_heaviest(pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 3))
    1.0
    """
    totals = np.bincount(rankings.instance, rankings.weight, minlength=1)
    return max(1.0, float(totals.max()))


def with_effective_weights(rankings: Rankings, groups: NDArray[np.intp] | None = None) -> Rankings:
    """Return rankings whose weights sum to the effective number of instances (Kish, 1965).

    An instance of weight 3 then counts like three others, and is not three times as certain. With
    ``groups`` (instances,), the weights of each group sum to its own effective number.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.rank_costs(np.zeros((1, 3, 2)), weight=np.full(3, 3.0))
    >>> with_effective_weights(rankings).weight
    array([1., 1., 1.])
    """
    size = len(rankings.instances)
    weight = rankings.weight / max(rankings.weight.max(initial=0.0), 1e-300)
    total = np.bincount(rankings.instance, weight, minlength=size)
    groups = np.zeros(size, np.intp) if groups is None else groups
    factor = np.bincount(groups, total) / np.maximum(np.bincount(groups, total**2), 1e-300)
    return replace(rankings, weight=weight * factor[groups[rankings.instance]])


def lead_bets(epsilon: float) -> tuple[Floats, Floats]:
    """Return bets against "an algorithm wins at most as often as it loses", and their weights."""
    theta = _geometric_grid(0.8 * max(epsilon, 0.01), 0.45, 2.25)
    return theta, np.arange(len(theta), 0, -1.0)


def score_bets(m: float, epsilon: float) -> tuple[Floats, Floats]:
    """Return bets against "the mean score is at most m", and the weights of their mixture."""
    low = min(0.7 * max(epsilon, 1e-3) / (m * (1 - m)), 0.8 / m)  # a stake of 1/m could lose all
    stake = _geometric_grid(low, 0.9 / m, 4.0)
    return stake, np.where(np.arange(len(stake)) == 0, 10.0, 1.0)


def _geometric_grid(low: float, high: float, ratio: float) -> Floats:
    """Return numbers from low to high whose successive ratios are equal and at most ``ratio``."""
    points = 1 + max(1, int(np.ceil(np.log(high / low) / np.log(ratio))))
    return low * (high / low) ** (np.arange(points) / (points - 1))


def log_mixture(weight: Floats, log_wealth: Sequence[Floats] | Floats) -> Floats:
    """Return the logarithm of the weighted mean of the wealths of several bets."""
    total = np.full(np.shape(log_wealth[0]), -np.inf)
    for log_weight, wealth in zip(np.log(weight / weight.sum()), log_wealth, strict=True):
        total = np.logaddexp(total, log_weight + wealth)
    return total


class Evidence(NamedTuple):
    """The logarithms of the e-values of all ordered pairs of algorithms at each time."""

    lead: Floats
    par: Floats


def multiplicity(rivals: int, later: int = 0) -> float:
    """Return the factor on the e-value threshold that corrects for comparisons with many rivals.

    ``rivals``: the number of rivals present when the algorithm entered. ``later``: 0 for these,
    and i for the i-th one that enters after it. The reciprocals over all rivals that ever come sum
    to at most 1, so the algorithm is wrongly eliminated with probability at most 1 - certainty.
    A tenth of the error, or an equal share if that is less, is kept for those that enter later.

    >>> multiplicity(9), multiplicity(9, later=1), multiplicity(9, later=2)
    (10.0, 20.0, 60.0)
    """
    if not rivals:
        return max(1.0, later * (later + 1.0))
    kept = min(0.1, 1 / (rivals + 1))
    return later * (later + 1) / kept if later else rivals / (1 - kept)


class Shares(NamedTuple):
    """The shares of the error for looks on the way, and for the one test of this look.

    Without a known end, all of it is for e-values, which may be looked at at any time. With one,
    a part of it is for a test at the end, which needs fewer instances.
    """

    on_the_way: float = 1.0
    now: float = 0.0

    @classmethod
    def at_end_of(cls, n: int, earlier_ends: int = 0) -> Self:
        """Return the shares at the end of a race that had a list of ``n`` instances at its start.

        With few instances hardly anything can be proven on the way, and most of the error is for
        the test at the end; with many it is the other way round. Of the part for the end, nine
        tenths are for the first one, and the rest is for further ones, if instances are added.

        >>> print("{:.2f} {:.2f}".format(*Shares.at_end_of(12)))
        0.09 0.82
        """
        on_the_way = n / (n + HALF_ON_THE_WAY)
        return cls(on_the_way, (1 - on_the_way) / multiplicity(1, earlier_ends))


def confidence_sequence(wins: Floats, losses: Floats, certainty: float) -> tuple[Floats, Floats]:
    """Return lower and upper bounds of a win probability, valid at any number of instances.

    The bounds hold at all numbers of instances at once: { q : B(w + 1, l + 1) < q^w (1 - q)^l / d }
    with d = 1 - certainty, from the uniform mixture of likelihoods (Robbins, 1970). With ties that
    count as half a win and half a loss, the bounds are those of the mean score: by the inequality
    of weighted means, q^s (1 - q)^(1 - s) is at most s q + (1 - s) (1 - q) for scores s in [0, 1].

    >>> low, high = confidence_sequence(np.array([60.0]), np.array([40.0]), 0.95)
    >>> round(float(low[0]), 3), round(float(high[0]), 3)
    (0.441, 0.746)
    """
    wins, losses = np.broadcast_arrays(np.asarray(wins, float), np.asarray(losses, float))
    least = betaln(wins + 1, losses + 1) + np.log1p(-certainty)
    peak = np.where(wins + losses > 0, wins / np.maximum(wins + losses, 1), 0.5)

    def inside(q: Floats) -> Bools:
        return xlogy(wins, q) + xlog1py(losses, -q) > least

    bounds = []
    for end in (0.0, 1.0):
        out, kept = np.full(peak.shape, end), peak.copy()
        for _ in range(50):
            middle = (out + kept) / 2
            within = inside(middle)
            out, kept = np.where(within, out, middle), np.where(within, middle, kept)
        bounds.append(out)
    return bounds[0], bounds[1]


def bound_win_rate(
    rankings: Rankings, first: str, second: str, certainty: float
) -> tuple[Floats, Floats]:
    """Return a confidence sequence (T,), (T,) of :meth:`Rankings.win_rate` of two algorithms.

    It holds at each time, at all numbers of instances at once.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[2.0, 0.0]]), 100)
    >>> low, high = bound_win_rate(rankings, "a1", "a2", 0.95)
    >>> bool(0.5 < low[0] < rankings.win_rate("a1", "a2")[0] < high[0] < 1)
    True
    """
    pair = rankings.among([first, second])
    row, column = pair.algorithms.index(first), pair.algorithms.index(second)
    outcomes = count_outcomes(pair)
    half = outcomes.ties[:, row, column] / 2
    return confidence_sequence(
        outcomes.wins[:, row, column] + half, outcomes.losses[:, row, column] + half, certainty
    )
