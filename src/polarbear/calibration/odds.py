"""Do the odds of two depend on who else takes part? Plackett and Luce assume that they do not.

If they do not, the odds of a pair are the same, but for chance, whether a third algorithm is left
out or not, and whether one asks the model or counts who won. How much chance moves them is known
from how much single instances do: to first order an instance adds its *influence*, the inverse
curvature times its score, to the utilities. Weighting influences at random, an instance as a whole
at all its times, shows what the largest of many changes would be by chance alone.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.calibration.population import (
    find_contested_pairs,
    select_algorithms,
    to_dense_positions,
)
from polarbear.data.rankings import UNKNOWN, Rankings
from polarbear.inference.laplace.independent import fit_independent
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.inference.plackett_luce.ranking_likelihood import RankingLikelihood

Floats = NDArray[np.float64]

WEAK_CONCENTRATION = 0.1
"""A weak prior: just enough for whoever never wins to have a finite utility."""

NEGLIGIBLE_DIFFERENCE = 0.01
"""Differences of a probability to win that are of no interest, added to the error of each."""

MIN_EFFECTIVE_INSTANCES = 10.0
"""The least number of instances behind a difference for its error to be known."""

MIN_INSTANCES = 30
"""With fewer instances in all, chance makes larger changes than these errors say: no check."""

N_MULTIPLIER_DRAWS = 999
"""The number of random samples of the largest change by chance."""


class OddsDifference(NamedTuple):
    """The probability that ``a`` beats ``b`` at a time, and what it is by another account.

    ``without`` is the algorithm that was left out, "" for all but the two: then ``other`` is the
    plain share of instances on which ``a`` was ahead. ``error`` is that of the difference.
    """

    a: str
    b: str
    time: float
    model: float
    other: float
    error: float
    without: str = ""


@dataclass(frozen=True)
class OddsCheck:
    """Differences between two accounts of the same odds, and whether chance makes such.

    Attributes
    ----------
    p_value
        How likely chance makes a largest difference, in standard errors, as large as this one. Not
        a number where there was nothing to compare.
    mean, largest
        The mean and the largest absolute difference of the probability to win.
    flipped
        The share of differences that put the other of the two ahead.
    cases
        How many pairs at times were compared.
    worst
        The differences that stand out most from chance, each pair once.
    """

    p_value: float
    mean: float
    largest: float
    flipped: float
    cases: int
    worst: tuple[OddsDifference, ...]


def check_irrelevant_alternatives(rankings: Rankings, seed: int = 0) -> OddsCheck:
    """Does a third algorithm change the odds of a pair? Each is left out in turn.

    >>> from polarbear.simulation import simulate_rankings
    >>> held = simulate_rankings(np.array([[0.0, 0.5, 1.0]]), 400)
    >>> check_irrelevant_alternatives(held).p_value > 0.05
    True
    >>> broken = simulate_rankings(np.array([[0.0, 0.5, 1.0]]), 400, spread=[0, 0, 8])
    >>> check_irrelevant_alternatives(broken).p_value < 0.01
    True
    """
    return _test_comparisons(rankings, _leave_each_out, seed)


def check_win_rates(rankings: Rankings, seed: int = 0) -> OddsCheck:
    """Are the model's odds of a pair those with which the two beat each other?"""
    return _test_comparisons(rankings, _compare_with_win_rates, seed)


class _OddsComparison(NamedTuple):
    """Probabilities to win, by the model and otherwise, at times and pairs: (T, pairs)."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    model: Floats
    other: Floats
    influence: Floats  # (instances, T, pairs): of the difference
    without: str


class _UtilityFit(NamedTuple):
    utilities: Floats  # (T, n)
    influence: Floats  # (instances, T, n)

    def odds(self, row: NDArray[np.intp], column: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Probabilities that row beats column, and the influences on them."""
        mu, change = self.utilities, self.influence
        wins = 1 / (1 + np.exp(mu[:, column] - mu[:, row]))
        return wins, wins * (1 - wins) * (change[..., row] - change[..., column])


def _fit_with_influence(rankings: Rankings) -> _UtilityFit:
    n_times, n = len(rankings.times), len(rankings.algorithms)
    found = fit_independent(build_likelihood(rankings), WEAK_CONCENTRATION, n_times, n)
    number = len(rankings.instances)
    score = RankingLikelihood.from_rankings(rankings).instance_gradients(
        found.mean, rankings.instance, number
    )
    score = score - score.mean(axis=0)
    return _UtilityFit(found.mean, np.einsum("itn,tnm->itm", score, found.covariance))


def _leave_each_out(rankings: Rankings) -> Iterator[_OddsComparison]:
    n = len(rankings.algorithms)
    whole = _fit_with_influence(rankings)
    for third in range(n) if n > 2 else ():
        rest = [k for k in range(n) if k != third]
        first, second = np.triu_indices(n - 1, 1)
        row, column = np.array(rest)[first], np.array(rest)[second]
        model, before = whole.odds(row, column)
        other, after = _fit_with_influence(select_algorithms(rankings, rest)).odds(first, second)
        name = rankings.algorithms[third]
        yield _OddsComparison(row, column, model, other, after - before, name)


def _compare_with_win_rates(rankings: Rankings) -> Iterator[_OddsComparison]:
    n = len(rankings.algorithms)
    if n < 3:  # of two alone the model counts wins and nothing else
        return
    row, column = np.triu_indices(n, 1)
    model, before = _fit_with_influence(rankings).odds(row, column)
    position = to_dense_positions(rankings)
    mine, theirs = position[..., row], position[..., column]
    known = (mine != UNKNOWN) & (theirs != UNKNOWN)
    won = np.where(known, (mine < theirs) + 0.5 * (mine == theirs), 0.0)
    shape = (len(rankings.instances), len(rankings.times), len(row))
    number, total = np.zeros(shape), np.zeros(shape)
    weight = rankings.weight[:, None, None]
    np.add.at(number, rankings.instance, weight * known.swapaxes(0, 1))
    np.add.at(total, rankings.instance, weight * won.swapaxes(0, 1))
    seen = np.maximum(number.sum(axis=0), 1e-300)
    rate = total.sum(axis=0) / seen
    yield _OddsComparison(row, column, model, rate, (total - rate * number) / seen - before, "")


def _test_comparisons(
    rankings: Rankings, accounts: Callable[[Rankings], Iterator[_OddsComparison]], seed: int
) -> OddsCheck:
    instances = len(rankings.instances)
    luck = np.random.default_rng(seed).standard_normal((N_MULTIPLIER_DRAWS, instances))
    luck -= luck.mean(axis=1, keepdims=True)
    open_ = find_contested_pairs(rankings)
    by_chance, found = np.zeros(N_MULTIPLIER_DRAWS), []
    for account in accounts(rankings) if instances >= MIN_INSTANCES else ():
        asked = open_[:, account.row, account.column]
        influence = account.influence[:, asked]
        square = np.sum(influence**2, axis=0)
        error = np.sqrt(square * instances / max(1, instances - 1) + NEGLIGIBLE_DIFFERENCE**2)
        # What hangs on a handful of instances has an error that nobody knows.
        some = square**2 >= MIN_EFFECTIVE_INSTANCES * np.sum(influence**4, axis=0)
        if some.any():
            largest = np.abs(luck @ (influence[:, some] / error[some])).max(axis=1)
            by_chance = np.maximum(by_chance, largest)
        found += [
            OddsDifference(
                rankings.algorithms[account.row[pair]],
                rankings.algorithms[account.column[pair]],
                float(rankings.times[t]),
                float(account.model[t, pair]),
                float(account.other[t, pair]),
                float(error[k]),
                account.without,
            )
            for k, (t, pair) in enumerate(np.argwhere(asked))
            if some[k]
        ]
    if not found:
        return OddsCheck(np.nan, np.nan, np.nan, np.nan, 0, ())
    gap = np.array([change.other - change.model for change in found])
    standard = np.abs(gap) / np.array([change.error for change in found])
    p_value = (1 + np.sum(by_chance >= standard.max())) / (1 + N_MULTIPLIER_DRAWS)
    flipped = np.mean([(c.other - 0.5) * (c.model - 0.5) < 0 for c in found])
    return OddsCheck(
        float(p_value),
        float(np.abs(gap).mean()),
        float(np.abs(gap).max()),
        float(flipped),
        len(found),
        tuple(_keep_first_of_pairs([found[k] for k in np.argsort(-standard)], 5)),
    )


def _keep_first_of_pairs(changes: list[OddsDifference], most: int) -> list[OddsDifference]:
    first: dict[tuple[str, str], OddsDifference] = {}
    for change in changes:
        first.setdefault((change.a, change.b), change)
    return list(first.values())[:most]
