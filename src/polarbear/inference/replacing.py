"""Which algorithm replaces another: better on average over all times, and nowhere much worse.

Algorithm a is *worse by more than the margin* m on a stretch of time if it loses more than 1/2 + m
of the duels that are decided there, and its losses exceed its wins by more than m of the instances.
With the shares w and l of the times of the stretch at which it wins and loses on an instance,

    y1 = (1/2 + m) w - (1/2 - m) l    and    y2 = (w - l) / 2 + m / 2                          (1)

then both have a mean of at most 0. Bets on each of them give a test supermartingale, and so does
their average: the e-value that a is *no worse*. Bets on w - l over all times give the e-value that
a is *better on average*. (A margin on decided duels alone is never shown where most duels tie; one
on the score alone calls it immaterial to solve 20 more of a hundred instances.)

a **replaces** b when every e-value reaches K. If a user would miss b, some stretch or the average
is against it, and that one e-value ever reaches K with probability at most 1/K (Ville). So there is
no correction for the number of stretches, of looks, or of times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, logsumexp, stdtr

from polarbear.data.frozen import FrozenRecord
from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.dominance import MAX_CELLS, Bools, Floats, eliminate
from polarbear.inference.e_values import (
    find_heaviest,
    lead_bets,
    log_mixture,
    score_bets,
    with_effective_weights,
)
from polarbear.inference.verdicts import Verdict, pick_dominator
from polarbear.priors.base import scale_times

Ints = NDArray[np.intp]

MAX_DUELS = 30_000_000
"""The most duels at all times of which a posterior keeps the places."""

MAX_RESAMPLED, MIN_RESAMPLES = 300_000_000, 200
"""The most (draw, stretch, duel) from which probabilities are counted, down to so few draws."""

DUELS_FOR_ONE_DRAW = 75
"""Drawing a number for a comparison costs as much as about so many of its duels."""

CACHED_CELLS = 50_000
"""The numbers of draws of some pairs that a processor's cache holds."""

LIKELY_Z = 2.6
"""An algorithm is likely ahead on a stretch if its mean lead is this many standard errors.

A pair of which one is behind by half the margin everywhere is then kept in fewer than 5 % of races,
although a race looks often and at many stretches (studies/error_control).
"""


def find_stretches(times: Floats, width: float) -> list[slice]:
    """Return the longest ranges of times that are within ``width`` of the scaled time axis.

    Every time lies in at least one. Where times are further apart than the width, each is a stretch
    of its own.

    >>> find_stretches(np.array([10.0, 11.0, 12.0, 20.0, 30.0]), 0.1)
    [slice(0, 3, None), slice(3, 4, None), slice(4, 5, None)]
    >>> len(find_stretches(np.geomspace(100, 10_000, 20), 0.1))
    19
    """
    scaled = scale_times(np.asarray(times, dtype=float))
    stops = np.searchsorted(scaled, scaled + width + 1e-9, side="right").tolist()
    before = [0, *stops[:-1]]
    return [slice(k, stop) for k, stop in enumerate(stops) if stop > before[k]]


@dataclass(frozen=True, eq=False)
class Places(FrozenRecord):
    """The place of each algorithm in each comparison, from which all duels follow."""

    position: NDArray[Any]  # (T, comparisons, n): 0 is first, -1 not known
    instance: NDArray[Any]  # (comparisons,): the index of its instance
    weight: Floats  # (comparisons,)

    def are_possible(self) -> bool:
        """Return whether each number is one that a place, an instance or a weight can be."""
        _, compared, n = self.position.shape
        ranges = (self.position, UNKNOWN, n), (self.instance, 0, compared), (self.weight, 0, np.inf)
        return all(np.all((low <= x) & (x < high)) for x, low, high in ranges)

    @classmethod
    def of(cls, rankings: Rankings) -> Self:
        """Return the places in rankings."""
        n_compared, n = len(rankings.offset) - 1, len(rankings.algorithms)
        shape, kind = (len(rankings.times), n_compared, n), rankings.position.dtype
        position = np.full(shape, UNKNOWN, dtype=kind)
        compared = np.repeat(np.arange(n_compared), np.diff(rankings.offset))
        position[:, compared, rankings.algorithm] = rankings.position
        _, instance = np.unique(rankings.instance, return_inverse=True)
        return cls(position, instance.astype(np.int32), rankings.weight)


class PairEvidence(NamedTuple):
    """How each algorithm (row) stands against each other one (column), by wins and losses alone.

    ``no_worse`` and ``better`` are logarithms of e-values. The others are for a test that is made
    once, at an end that was known before: means in standard errors, and p-values.
    """

    no_worse: Floats  # (S, n, n): on each stretch, row is not worse by more than the margin
    better: Floats  # (n, n): row is better on average over all times
    t_no_worse: Floats  # (S, n, n)
    t_better: Floats  # (n, n)
    p_no_worse: Floats  # (S, n, n)
    p_better: Floats  # (n, n)
    lead: Floats  # (S, n, n): the mean lead of row, in standard errors
    worse: Floats  # (S, n, n): log e-value that row is worse by more than the margin, if asked for
    p_worse: Floats  # (S, n, n)
    instances: Floats  # (S, n, n): on which both are known on the whole stretch
    on_all_times: Floats  # (n, n): on which both are known at all times

    @classmethod
    def empty(cls, n_stretches: int, shape: tuple[int, int]) -> Self:
        """Return the evidence without any instance, of pairs with a row and a column."""
        once = ("better", "t_better", "p_better", "on_all_times")
        sizes = {name: shape if name in once else (n_stretches, *shape) for name in cls._fields}
        return cls(**{name: np.full(sizes[name], float(name[:2] == "p_")) for name in sizes})

    def shows_worse(self, log_k: Floats, level: Floats | float) -> Bools:
        """Return a mask (n, n): row is worse by more than the margin on some stretch.

        The mean of the e-values over stretches shows it, whatever their dependence; at an end that
        was known, so does a p-value below its level divided by their number.
        """
        n_stretches = self.worse.shape[-3]
        shown = logsumexp(self.worse, axis=-3) - np.log(n_stretches) >= log_k
        return shown | (self.p_worse.min(axis=-3) * n_stretches <= level)

    def is_ahead_somewhere(self) -> Bools:
        """Return a mask (n, n): row is likely ahead of column on some stretch."""
        return np.any(self.lead >= LIKELY_Z, axis=-3)


class Chances(NamedTuple):
    """The probabilities of the claims of this module, and in which draws they hold."""

    algorithms: tuple[str, ...]
    replaces: Floats  # (n, n): P(row replaces column)
    tied: Floats  # (n, n): P(neither is worse than the other by more than the margin anywhere)
    is_worth: Bools  # (draws, n): no other one replaces it

    @property
    def worth_running(self) -> Floats:
        """P(no other algorithm replaces it), of each algorithm."""
        return self.is_worth.mean(axis=0)

    def add_to(self, verdict: Verdict) -> Verdict:
        """Return the verdict with its probability, if the algorithm has runs."""
        code = {name: k for k, name in enumerate(self.algorithms)}
        at, rival = code.get(verdict.algorithm), code.get(verdict.rival or "")
        if at is None or (verdict.kind == "dominated" and rival is None):
            return verdict
        chance = self.replaces[rival, at] if verdict.kind == "dominated" else self.worth_running[at]
        return verdict._replace(probability=float(chance))

    def find_replaced(self, certainty: float) -> Bools:
        """Return a mask of the algorithms that one that stays replaces, with this certainty."""
        return eliminate(self.replaces >= certainty, self.replaces)

    def state_verdicts(self, certainty: float, margin: float | None) -> tuple[Verdict, ...]:
        """Return the verdict about each algorithm: each claim has the certainty, or is none.

        An algorithm that is tied with another one, and that no third one replaces, is called so:
        which of the two is better on average may never be known.
        """
        out, worth = self.find_replaced(certainty), self.worth_running
        tied = (self.tied >= certainty) & ~out & ~np.eye(len(out), dtype=bool)
        verdicts: list[Verdict] = []
        for k, name in enumerate(self.algorithms):
            one = Verdict(name, "undecided", float(worth[k]), margin=margin)
            by_others = float(self.replaces[~tied[k], k].sum())
            if out[k]:
                by = pick_dominator(self.replaces >= certainty, self.replaces, out, k)
                sure = float(self.replaces[by, k])
                one = one._replace(kind="dominated", rival=self.algorithms[by], probability=sure)
            elif worth[k] >= certainty:
                one = one._replace(kind="member")
            elif tied[k].any() and by_others <= 1 - certainty:
                rival = self.algorithms[int(np.argmax(np.where(tied[k], self.tied[k], -1.0)))]
                one = one._replace(kind="equivalent", rival=rival)
            elif len(self.algorithms) > 1:
                chance = np.where(out, -0.5, self.replaces[:, k])
                chance[k] = -1.0
                one = one._replace(rival=self.algorithms[int(np.argmax(chance))])
            verdicts.append(one)
        return tuple(verdicts)


class _ClaimCounts:
    """Counts in how many draws each claim about each pair holds, and who is replaced in which."""

    def __init__(self, algorithms: tuple[str, ...], n_draws: int) -> None:
        n = len(algorithms)
        self.algorithms = algorithms
        self.replaces, self.tied = np.zeros((2, n, n))
        self.is_replaced = np.zeros((n, n_draws), dtype=bool)

    def add(self, first: Ints, second: Ints, no_worse: Any, better: Any) -> None:
        """Add pairs, from masks (2, pairs, draws) of what holds for the first and the second."""
        tied = (no_worse[0] & no_worse[1]).mean(axis=1)
        for k, (row, column) in enumerate(((first, second), (second, first))):
            replaces = no_worse[k] & better[k]
            share = self.replaces[row, column] = replaces.mean(axis=1)
            self.tied[row, column] = tied
            for j in np.flatnonzero(share).tolist():
                self.is_replaced[column[j]] |= replaces[j]

    def finish(self) -> Chances:
        return Chances(self.algorithms, self.replaces, self.tied, ~self.is_replaced.T)


def can_count(rankings: Rankings) -> bool:
    """Return whether probabilities are counted from the duels of rankings in a short time."""
    n, n_compared = len(rankings.algorithms), len(rankings.offset) - 1
    return n_compared * max(n * (n - 1) // 2 * len(rankings.times), DUELS_FOR_ONE_DRAW) <= MAX_DUELS


def find_chances(rankings: Rankings, margin: float = 0.1, width: float = 0.1) -> Chances:
    """Return the probabilities of the claims of this module, by resampling instances.

    >>> import polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [2.0, 1.0, 0.0], [2.0, 3.0, 0.0]])
    >>> find_chances(pb.simulation.simulate_rankings(truth, 200)).worth_running.round(2)
    array([1., 1., 0.])
    """
    places = Places.of(with_effective_weights(rankings))
    return count_chances(rankings.algorithms, rankings.times, places, margin, width)


def count_chances(
    algorithms: tuple[str, ...], times: Floats, places: Places, margin: float, width: float
) -> Chances:
    """Return the probabilities of the claims of this module, by resampling instances.

    The posterior of the shares of wins and losses is that of the Bayesian bootstrap (Rubin, 1981):
    each draw gives the instances other weights. Two more instances, which rank the algorithms in
    an order of chance and in its reverse, keep few instances from being certain: of two algorithms
    that never tie, the prior is uniform. No model of rankings is needed, which might not fit the
    duels of each pair.
    """
    n, stretches = len(algorithms), find_stretches(times, width)
    n_duels = len(places.instance) * n * (n - 1) // 2
    work = max(n_duels * len(stretches), DUELS_FOR_ONE_DRAW * len(places.instance), 1)
    n_draws = int(np.clip(MAX_RESAMPLED // work, MIN_RESAMPLES, 1000))
    rng = np.random.default_rng(0)
    # Single precision: rounding is far below the noise of draws, and products take half the time.
    kind: Any = np.float32
    drawn = rng.standard_exponential((n_draws + 1, 1 + places.instance.max(initial=-1)), kind)
    one, other = rng.standard_exponential((2, n_draws + 1), kind)
    order = rng.random((n, n_draws + 1), kind)
    drawn[0], one[0], other[0] = 1, 1, 1  # the data as they are
    drawn = (drawn[:, places.instance] * places.weight.astype(kind)).T
    every, both = drawn.sum(axis=0), one + other

    def draw_leads(duels: Duels, some: list[slice], more: Any) -> tuple[Any, Any]:
        won, lost, known = duels.share_results(some)

        def total(parts: NDArray[Any]) -> Floats:
            # All stretches in one product, which is far faster.
            part = parts.astype(kind).swapaxes(0, 1).reshape(len(drawn), len(some) * parts.shape[2])
            return (part.T @ drawn).reshape(len(some), -1, n_draws + 1)

        weight = both + (every if known.all() else total(known))
        lead, decided = (total(won - lost) + more) / weight, won + lost
        has_ties = np.any(decided < known - 1e-9)
        return lead, (total(decided) + both) / weight if has_ties else np.ones(len(some), kind)

    everything, tally = slice(0, len(times)), _ClaimCounts(algorithms, n_draws)
    for duels in _compare_pairs(places, 1.0, [*stretches, everything]):
        is_first = order[duels.first] < order[duels.second]
        more = np.where(is_first, one - other, other - one)
        least = np.full((2, len(duels.first), n_draws + 1), np.inf, kind)
        step = max(1, CACHED_CELLS // (len(duels.first) * max(drawn.shape)))
        for k in range(0, len(stretches), step):
            drawn_leads = draw_leads(duels, stretches[k : k + step], more)
            for lead, decided in zip(*drawn_leads, strict=True):
                _lessen(least, lead, decided, margin)
        # At the margin itself, single precision may round to just below 0.
        no_worse = _count_noise_once(least) >= -1e-7
        lead = draw_leads(duels, [everything], more)[0][0, :, 1:]
        tally.add(duels.first, duels.second, no_worse, (lead > 0, lead < 0))
    return tally.finish()


def find_chances_of_curves(
    algorithms: tuple[str, ...],
    times: Floats,
    curves: NDArray[Any] | None,
    wins: NDArray[Any] | None = None,
    decided: Floats | None = None,
    margin: float = 0.1,
    width: float = 0.1,
    *,
    averaged: bool = False,
) -> Chances:
    """Return the probabilities of the claims of this module, by draws of win probabilities.

    They follow from the utilities ``curves`` (draws, times, n), or they are ``wins`` (draws, times,
    pairs). A model of rankings says nothing of ties, so the share of duels that are ``decided``
    (times, pairs) is that of the data, by default all. If ties were ``averaged``, they are halves
    in the probabilities already. Draws of ``wins`` are counted from resampled instances, so their
    noise counts once, as in :func:`count_chances`.
    """
    stretches, n_times = find_stretches(times, width), len(times)
    first, second = np.triu_indices(len(algorithms), 1)
    decided = np.ones((n_times, len(first))) if decided is None else decided
    source: Any = curves if wins is None else wins
    most = max(50, MAX_RESAMPLED // max(1, 3 * len(first) * n_times))
    laid = source[:: max(1, -(-len(source) // most))].transpose(2, 1, 0)
    is_double = wins is not None or np.abs(laid).max() > 80  # a single one is at most e^88
    laid = np.array(laid, float if is_double else None, order="C")  # (n or pairs, T, D)
    laid = np.exp(laid, out=laid) if wins is None else laid
    n_draws = laid.shape[2]
    if wins is not None:
        laid = np.concatenate([laid.mean(axis=2, keepdims=True), laid], axis=2)
    tally, step = _ClaimCounts(algorithms, n_draws), max(1, CACHED_CELLS // (n_draws * n_times))
    for low in range(0, len(first), step):
        a, b = first[low : low + step], second[low : low + step]
        if wins is None:
            ours, theirs = laid[a], laid[b]
            theirs += ours
            won = np.divide(ours, theirs, out=ours)
        else:
            won = laid[low : low + step]
        known = decided[:, low : low + step].T.astype(won.dtype)
        lead = (2 * won - 1) * (1 if averaged else known[:, :, None])
        for t in range(1, n_times):
            lead[:, t] += lead[:, t - 1]
        sums = [0.0, *lead.swapaxes(0, 1)]  # before each time
        least = np.full((2, *lead[:, 0].shape), np.inf, lead.dtype)
        for one in stretches:
            mean = (sums[one.stop] - sums[one.start]) / (one.stop - one.start)
            _lessen(least, mean, known[:, one].mean(axis=1, keepdims=True), margin)
        mean = sums[-1]
        if wins is not None:
            least, mean = _count_noise_once(least), mean[:, 1:]
        tally.add(a, b, least >= -1e-12, (mean > 0, mean < 0))
    return tally.finish()


def _count_noise_once(least: Floats) -> Floats:
    """Return draws of the worst stretch; the first of the given ones are the data as they are.

    The worst of many stretches is worse in a draw than in the data, because each draw adds noise;
    in the data it is worse than in truth for the same reason. So draws are shifted until the worst
    stretch is on average as bad as in the data (studies/error_control/chances.md).
    """
    drawn = least[..., 1:]
    return drawn + np.maximum(least[..., :1] - drawn.mean(axis=-1, keepdims=True), 0.0)


def _lessen(least: Floats, lead: Floats, decided: Floats | float, margin: float) -> None:
    """Take into ``least`` (2, ...) what a stretch says, if it is less.

    That is how far the first and the second one are from being worse by more than the margin, by
    (1), where the first leads by ``lead`` and this share of the duels is ``decided``.
    """
    room, half = margin * np.maximum(decided, 0.5), lead / 2
    np.minimum(least[0], room + half, out=least[0])
    np.minimum(least[1], room - half, out=least[1])


def compare_on_stretches(
    rankings: Rankings,
    margin: float = 0.1,
    width: float = 0.1,
    heaviest: float | None = None,
    *,
    both_sides: bool = False,
) -> PairEvidence:
    """Return how each algorithm stands against each other one; with ``both_sides``, if it is worse.

    An instance is one bet. Repetitions of it share the bet, and weights are relative to the
    ``heaviest`` one (by default the largest weight, at least 1), as in ``count_outcomes``.

    >>> import polarbear as pb
    >>> truth = np.array([[1.0, 0.0]] * 19 + [[-0.2, 0.0]])
    >>> evidence = compare_on_stretches(pb.simulation.simulate_rankings(truth, 200))
    >>> bool((evidence.no_worse[:, 0, 1] >= np.log(20)).all()), bool(evidence.better[0, 1] > 3)
    (True, True)
    """
    n, stretches = len(rankings.algorithms), find_stretches(rankings.times, width)
    evidence = PairEvidence.empty(len(stretches), (n, n))
    heaviest = find_heaviest(rankings) if heaviest is None else heaviest
    for duels in _compare_pairs(Places.of(rankings), heaviest, stretches):
        both = (duels.first, duels.second), (duels.second, duels.first)
        weigh(evidence, both, DuelTally.of(duels, stretches), margin, both_sides=both_sides)
    return evidence


def weigh(
    evidence: PairEvidence,
    both: tuple[tuple[Ints, Ints], tuple[Ints, Ints]],
    tally: DuelTally,
    margin: float,
    *,
    both_sides: bool = False,
) -> None:
    """Set the evidence of the first of each pair, and of the second one, at its row and column."""
    for size in {counts.shape[1] for counts in tally.results}:  # stretches of a length at once
        alike = [s for s, counts in enumerate(tally.results) if counts.shape[1] == size]
        used = np.any([tally.results[s].any(axis=0) for s in alike], axis=0)
        won, lost = (k / (size - 1) for k in np.nonzero(used))
        cells = np.concatenate([tally.results[s][:, used] for s in alike])
        for pairs, own in zip(both, ((won, lost), (lost, won)), strict=True):
            at = np.repeat(alike, len(pairs[0])), *(np.tile(each, len(alike)) for each in pairs)
            weigh_stretch(evidence, at, cells, *own, margin, both_sides=both_sides)
    payoff = np.linspace(-1, 1, tally.leads.shape[1])
    for at, own in zip(both, (payoff, -payoff), strict=True):
        evidence.better[at] = _log_wealth(tally.leads, own, *_lead_bets())
        evidence.t_better[at], evidence.p_better[at] = _test(tally.leads, own / 2, 0.5)
        evidence.on_all_times[at] = tally.leads.sum(axis=1)


def weigh_stretch(
    evidence: PairEvidence,
    at: tuple[int | Ints, ...],
    counts: Floats,
    won: Floats,
    lost: Floats,
    m: float,
    *,
    both_sides: bool,
) -> None:
    """Set what a stretch says of some pairs.

    ``counts`` (pairs, cells): the instances of each share ``won`` and ``lost`` (cells,) of times.
    """
    lead = won - lost
    t, p = _test(counts, lead / 2, 0.5)
    evidence.lead[at], evidence.instances[at] = t, counts.sum(axis=1)
    if m == 0:
        evidence.no_worse[at] = _log_wealth(counts, lead, *_lead_bets())
        evidence.t_no_worse[at], evidence.p_no_worse[at] = t, p
        return
    relative, absolute = (0.5 + m) * won - (0.5 - m) * lost, lead / 2 + m / 2
    evidence.no_worse[at] = np.logaddexp(
        _log_wealth(counts, relative, *score_bets(0.5 - m, m)),
        _log_wealth(counts, absolute, *score_bets(0.5 - m / 2, m / 2)),
    ) - np.log(2)
    (t1, p1), (t2, p2) = _test(counts, relative, 0.5 - m), _test(counts, absolute, 0.5 - m / 2)
    evidence.t_no_worse[at], evidence.p_no_worse[at] = np.maximum(t1, t2), np.minimum(p1, p2)
    if both_sides:  # worse: neither of (1) is above 0
        evidence.worse[at] = np.minimum(
            _log_wealth(counts, -relative, *score_bets(0.5 + m, m)),
            _log_wealth(counts, -absolute, *score_bets(0.5 + m / 2, m / 2)),
        )
        evidence.p_worse[at] = np.maximum(
            _test(counts, -relative, 0.5 + m)[1], _test(counts, -absolute, 0.5 + m / 2)[1]
        )


def _lead_bets() -> tuple[Floats, Floats]:
    """Return bets against "at most as many wins as losses", with a small one for close pairs."""
    theta, weight = lead_bets(0.05)
    return np.append(0.03, 2 * theta), np.append(len(weight) + 1.0, weight)


def _log_wealth(counts: Floats, payoff: Floats, stake: Floats, weight: Floats) -> Floats:
    """Return the log e-value of each pair: a mixture of bets with factors 1 + stake * payoff."""
    factors = np.log1p(stake[:, None] * payoff.ravel())
    return log_mixture(weight, factors @ counts.T)


def _test(counts: Floats, payoff: Floats, lowest: float) -> tuple[Floats, Floats]:
    """Return the mean payoff of each pair in standard errors, and the p-value of "at most 0".

    The variance has one more observation of 1/2, so that few equal outcomes are not certain. The
    p-value is the larger one of Student's t, which is right for payoffs with a small variance, and
    of the binomial distribution, which is exact if each instance is won or lost as a whole; in
    between, its number of trials is that with the observed variance. ``lowest``: the payoff of an
    instance that is lost as a whole, below 0; one that is won has one more.
    """
    n, payoff = counts.sum(axis=1), payoff.ravel()
    least = np.maximum(n, 1e-12)
    mean, squares = (counts @ payoff**k / least for k in (1, 2))
    spread = np.maximum(squares - mean**2, 0.0) * n + 0.25
    t = np.where(n > 0, mean / np.sqrt(spread / ((n + 1) * least)), 0.0)
    share = np.clip(mean + lowest, 0.0, 1.0)  # of trials that are won
    trials = n * (n * share * (1 - share) + 0.25) / spread
    binomial = betainc(np.maximum(trials * share, 1e-9), trials * (1 - share) + 1, lowest)
    p = np.maximum(stdtr(np.maximum(n - 1, 1), -t), binomial)
    return t, np.where(n >= 2, p, 1.0)


class Duels(NamedTuple):
    """The duels of some pairs of algorithms in each comparison, summed over the times before one.

    A sum is one number, wins * base + losses + unknown * base^2, with a base above the length of
    any stretch: the difference of two sums then tells how often the first won and lost between.
    """

    first: Ints  # (K,)
    second: Ints  # (K,)
    sums: NDArray[Any]  # (T + 1, comparisons, K)
    leads: Ints  # (comparisons, K): wins less losses at all times, above T if any is unknown
    base: int
    weight: Floats  # (comparisons,)

    @classmethod
    def of(
        cls,
        first: Ints,
        second: Ints,
        place: NDArray[Any],
        stretches: list[slice],
        weight: Floats,
    ) -> Self:
        """Return the duels of pairs, from the places (T, comparisons, n) of all algorithms."""
        ours, theirs = place[:, :, first], place[:, :, second]
        won, lost = ours < theirs, ours > theirs
        unknown = (ours == UNKNOWN) | (theirs == UNKNOWN)
        base = 1 + max(one.stop - one.start for one in stretches)
        kind = np.int32 if base**2 * len(place) < 2**31 else np.int64
        code = np.multiply(won, base, dtype=kind)
        code += lost
        code[unknown] = base * base
        sums = np.zeros((len(code) + 1, *code.shape[1:]), dtype=kind)
        for before, now, after in zip(sums, code, sums[1:], strict=False):
            np.add(before, now, out=after)  # far faster than a cumulative sum over the first axis
        lead = won.sum(axis=0, dtype=np.intp) - lost.sum(axis=0, dtype=np.intp)
        lead[unknown.any(axis=0)] = len(place) + 1
        return cls(first=first, second=second, sums=sums, leads=lead, base=base, weight=weight)

    def count_results(self, stretch: slice) -> Floats:
        """Return tables (K, wins, losses): on how many instances the first had so many of both."""
        size = stretch.stop - stretch.start + 1
        table = self._sum_cells(self.sums[stretch.stop] - self.sums[stretch.start], self.base**2)
        return table.reshape(-1, self.base, self.base)[:, :size, :size]

    def share_results(self, stretches: list[slice]) -> tuple[Floats, Floats, Bools]:
        """Return the shares (S, comparisons, K) of times that the first won and lost; if known."""
        start, stop = np.array([(one.start, one.stop) for one in stretches]).T
        code = (self.sums[stop] - self.sums[start]).astype(float)
        size = (stop - start)[:, None, None]
        known = code < self.base**2
        code *= known
        won = np.floor(code / self.base)  # exact, and far faster than divmod
        return won / size, (code - won * self.base) / size, known

    def count_leads(self) -> Floats:
        """Return tables (K, 2 T + 1) of wins less losses at all times, from -T to T."""
        n_times = len(self.sums) - 1
        return self._sum_cells(self.leads + n_times, 2 * n_times + 1)

    def _sum_cells(self, cell: Ints, size: int) -> Floats:
        """Return the total weight of each cell (K, size); larger cells are left out."""
        cell = np.minimum(cell, size, dtype=np.intp)
        cell += np.arange(len(self.first)) * (size + 1)
        weight = np.broadcast_to(self.weight[:, None], cell.shape).ravel()
        is_one = bool((self.weight == 1).all())  # weights take twice as long
        length = len(self.first) * (size + 1)
        total = np.bincount(cell.ravel(), None if is_one else weight, minlength=length)
        return total.reshape(-1, size + 1)[:, :size].astype(float)


class DuelTally(NamedTuple):
    """On how many instances the first of each of K pairs had which results; tallies add up."""

    results: tuple[Floats, ...]  # of each stretch (K, wins, losses)
    leads: Floats  # (K, 2 T + 1): wins less losses at all times, from -T to T

    @classmethod
    def of(cls, duels: Duels, stretches: list[slice]) -> Self:
        """Return the tally of some duels."""
        return cls(tuple(duels.count_results(one) for one in stretches), duels.count_leads())

    def join(self, other: Self) -> Self:
        """Return the tally of the duels of both."""
        results = zip(self.results, other.results, strict=True)
        return type(self)(tuple(own + more for own, more in results), self.leads + other.leads)


class PairTables(NamedTuple):
    """The results of one pair on each instance and stretch, as counts of cells (won, lost)."""

    instances: tuple[str, ...]
    cells: list[Floats]  # (I, cells) of each stretch
    won: list[Floats]  # (cells,): the shares of times that the first of the pair wins
    lost: list[Floats]

    @classmethod
    def of(cls, rankings: Rankings, first: str, second: str, width: float) -> Self:
        """Return the results of a pair; an instance with repetitions has a share in each cell."""
        pair = rankings.among([first, second])
        stretches = find_stretches(pair.times, width)
        tables = cls(pair.instances, [], [], [])
        for duels in _compare_pairs(Places.of(pair), find_heaviest(pair), stretches):
            for stretch in stretches:
                won, lost, known = (part[0] for part in duels.share_results([stretch]))
                found = np.column_stack([won, lost])[known[:, 0] > 0]
                values, cell = np.unique(found, axis=0, return_inverse=True)
                table = np.zeros((len(pair.instances), len(values)))
                used = known[:, 0] > 0
                at = pair.instance[used], cell.ravel()
                np.add.at(table, at, duels.weight[used])
                is_first = pair.algorithms.index(first) == 0
                tables.cells.append(table)
                tables.won.append(values[:, 0 if is_first else 1])
                tables.lost.append(values[:, 1 if is_first else 0])
        return tables

    @classmethod
    def of_wins(cls, n: int) -> Self:
        """Return tables at one time of n instances, with a cell for a loss and one for a win."""
        return cls(
            tuple(map(str, range(n))),
            [np.zeros((n, 2))],
            [np.array([0.0, 1.0])],
            [np.array([1.0, 0.0])],
        )

    @property
    def leads(self) -> list[Floats]:
        """The share of times won less that of times lost, (I,) on each stretch."""
        parts = zip(self.cells, self.won, self.lost, strict=True)
        return [cells @ (won - lost) for cells, won, lost in parts]

    def count_all(self) -> list[Floats]:
        """Return the counts (1, cells) of all instances on each stretch."""
        return [cells.sum(axis=0, keepdims=True) for cells in self.cells]

    def weigh(self, counts: list[Floats], margin: float) -> PairEvidence:
        """Return how the first stands against the second, by counts (rows, cells): (S, rows, 1)."""
        rows = len(counts[0])
        evidence = PairEvidence.empty(len(counts), (rows, 1))
        at = np.arange(rows), np.zeros(rows, dtype=np.intp)
        for s, (count, won, lost) in enumerate(zip(counts, self.won, self.lost, strict=True)):
            weigh_stretch(evidence, (s, *at), count, won, lost, margin, both_sides=True)
        return evidence


def _compare_pairs(places: Places, heaviest: float, stretches: list[slice]) -> Iterator[Duels]:
    """Yield the duels of all pairs, as many pairs at once as memory allows."""
    n_times, n_compared, n = places.position.shape
    pairs = np.triu_indices(n, 1)
    step = max(1, MAX_CELLS // max(1, n_times * n_compared))
    for low in range(0, len(pairs[0]), step):
        first, second = (each[low : low + step] for each in pairs)
        yield Duels.of(first, second, places.position, stretches, places.weight / heaviest)
