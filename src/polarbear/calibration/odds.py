"""Tests of independence of irrelevant alternatives (IIA), which the Plackett-Luce model assumes.

Under IIA the odds of a pair are the same, up to chance, whether a third algorithm is left out or
not (Hausman and McFadden 1984), and whether they come from the model or from win rates. To first
order an instance adds its *influence*, the inverse curvature times its score, to the utilities.
A multiplier bootstrap of the influences, with one multiplier for an instance at all its times,
gives the distribution of the largest of many differences under IIA.
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
from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.laplace.independent import fit_independent
from polarbear.inference.plackett_luce.likelihood import (
    build_likelihood,
    compute_instance_gradients,
)

Floats = NDArray[np.float64]

WEAK_CONCENTRATION = 0.1
"""The concentration of a weak Dirichlet prior, so that utilities stay finite without wins."""

NEGLIGIBLE_DIFFERENCE = 0.01
"""Differences of a win probability of this size do not matter: added to each standard error."""

MIN_EFFECTIVE_INSTANCES = 10.0
"""A difference needs this effective number of instances for its standard error to be valid."""

MIN_INSTANCES = 30
"""With fewer instances in all, the standard errors are too small, so there is no test."""

N_MULTIPLIER_DRAWS = 999
"""The number of draws of the multiplier bootstrap."""


class OddsDifference(NamedTuple):
    """P(``a`` beats ``b``) at a time by the fitted model, and a second estimate to compare with.

    ``other`` is the model's probability without the algorithm ``without``; where that is "", it is
    the win rate. ``error`` is the standard error of the difference.
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
    """A test of whether two estimates of the same odds differ by more than chance.

    Attributes
    ----------
    p_value
        The p-value of the largest difference in standard errors; nan if nothing was compared.
    mean, largest
        The mean and the largest absolute difference of win probabilities.
    flipped
        The share of differences where the two estimates disagree on which algorithm is better.
    cases
        The number of (time, pair) cases that were compared.
    worst
        The most significant differences, one for each pair.
    """

    p_value: float
    mean: float
    largest: float
    flipped: float
    cases: int
    worst: tuple[OddsDifference, ...]


def check_irrelevant_alternatives(rankings: Rankings, seed: int = 0) -> OddsCheck:
    """Test whether the odds of pairs change when each other algorithm in turn is left out.

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
    """Test whether the win probabilities of a fitted model agree with the observed win rates."""
    return _test_comparisons(rankings, _compare_with_win_rates, seed)


class _OddsComparison(NamedTuple):
    """Two estimates of the win probabilities of pairs of algorithms (row, column)."""

    row: NDArray[np.intp]  # (pairs,)
    column: NDArray[np.intp]  # (pairs,)
    model: Floats  # (T, pairs)
    other: Floats  # (T, pairs)
    influence: Floats  # (instances, T, pairs): on the difference other - model
    without: str


class _UtilityFit(NamedTuple):
    """Fitted log-utilities, and the influence of each instance on them."""

    utilities: Floats  # (T, n)
    influence: Floats  # (instances, T, n)

    def win_probabilities(
        self, row: NDArray[np.intp], column: NDArray[np.intp]
    ) -> tuple[Floats, Floats]:
        """Return P(``row`` beats ``column``) for pairs, and each instance's influence on it."""
        mu, influence = self.utilities, self.influence
        wins = 1 / (1 + np.exp(mu[:, column] - mu[:, row]))
        return wins, wins * (1 - wins) * (influence[..., row] - influence[..., column])


def _fit_with_influence(rankings: Rankings) -> _UtilityFit:
    """Fit log-utilities (times, algorithms), and the influence of each instance on them."""
    n_times, n = len(rankings.times), len(rankings.algorithms)
    fit = fit_independent(build_likelihood(rankings), WEAK_CONCENTRATION, n_times, n)
    n_instances = len(rankings.instances)
    score = compute_instance_gradients(rankings, fit.mean, rankings.instance, n_instances)
    score = score - score.mean(axis=0)
    return _UtilityFit(fit.mean, np.einsum("itn,tnm->itm", score, fit.covariance))


def _leave_each_out(rankings: Rankings) -> Iterator[_OddsComparison]:
    """Yield for each algorithm a comparison of the odds of all pairs with and without it."""
    n = len(rankings.algorithms)
    whole = _fit_with_influence(rankings)
    for third in range(n) if n > 2 else ():
        rest = [k for k in range(n) if k != third]
        first, second = np.triu_indices(n - 1, 1)
        row, column = np.array(rest)[first], np.array(rest)[second]
        model, influence = whole.win_probabilities(row, column)
        reduced = _fit_with_influence(select_algorithms(rankings, rest))
        other, other_influence = reduced.win_probabilities(first, second)
        name = rankings.algorithms[third]
        yield _OddsComparison(
            row=row,
            column=column,
            model=model,
            other=other,
            influence=other_influence - influence,
            without=name,
        )


def _compare_with_win_rates(rankings: Rankings) -> Iterator[_OddsComparison]:
    """Yield one comparison of the model's win probabilities with the observed win rates."""
    n = len(rankings.algorithms)
    if n < 3:  # with two algorithms the model's win probability is the win rate
        return
    row, column = np.triu_indices(n, 1)
    model, influence = _fit_with_influence(rankings).win_probabilities(row, column)
    position = to_dense_positions(rankings)
    first, second = position[..., row], position[..., column]
    known = (first != UNKNOWN) & (second != UNKNOWN)
    won = np.where(known, (first < second) + 0.5 * (first == second), 0.0)
    shape = (len(rankings.instances), len(rankings.times), len(row))
    compared, wins = np.zeros(shape), np.zeros(shape)
    weight = rankings.weight[:, None, None]
    np.add.at(compared, rankings.instance, weight * known.swapaxes(0, 1))
    np.add.at(wins, rankings.instance, weight * won.swapaxes(0, 1))
    total = np.maximum(compared.sum(axis=0), 1e-300)
    rate = wins.sum(axis=0) / total
    rate_influence = (wins - rate * compared) / total
    yield _OddsComparison(
        row=row,
        column=column,
        model=model,
        other=rate,
        influence=rate_influence - influence,
        without="",
    )


def _test_comparisons(
    rankings: Rankings, compare: Callable[[Rankings], Iterator[_OddsComparison]], seed: int
) -> OddsCheck:
    """Test the largest difference of all comparisons with a multiplier bootstrap."""
    n_instances = len(rankings.instances)
    multipliers = np.random.default_rng(seed).standard_normal((N_MULTIPLIER_DRAWS, n_instances))
    multipliers -= multipliers.mean(axis=1, keepdims=True)
    contested = find_contested_pairs(rankings)
    bootstrap_max = np.zeros(N_MULTIPLIER_DRAWS)
    differences: list[OddsDifference] = []
    for comparison in compare(rankings) if n_instances >= MIN_INSTANCES else ():
        asked = contested[:, comparison.row, comparison.column]
        influence = comparison.influence[:, asked]
        square = np.sum(influence**2, axis=0)
        variance = square * n_instances / max(1, n_instances - 1)
        error = np.sqrt(variance + NEGLIGIBLE_DIFFERENCE**2)
        # The standard error of a difference that rests on a few instances is not reliable.
        is_reliable = square**2 >= MIN_EFFECTIVE_INSTANCES * np.sum(influence**4, axis=0)
        if is_reliable.any():
            standardised = influence[:, is_reliable] / error[is_reliable]
            largest = np.abs(multipliers @ standardised).max(axis=1)
            bootstrap_max = np.maximum(bootstrap_max, largest)
        differences += [
            OddsDifference(
                a=rankings.algorithms[comparison.row[pair]],
                b=rankings.algorithms[comparison.column[pair]],
                time=float(rankings.times[t]),
                model=float(comparison.model[t, pair]),
                other=float(comparison.other[t, pair]),
                error=float(error[k]),
                without=comparison.without,
            )
            for k, (t, pair) in enumerate(np.argwhere(asked))
            if is_reliable[k]
        ]
    if not differences:
        return OddsCheck(
            p_value=np.nan, mean=np.nan, largest=np.nan, flipped=np.nan, cases=0, worst=()
        )
    gap = np.array([one.other - one.model for one in differences])
    z = np.abs(gap) / np.array([one.error for one in differences])
    p_value = (1 + np.sum(bootstrap_max >= z.max())) / (1 + N_MULTIPLIER_DRAWS)
    flipped = np.mean([(one.other - 0.5) * (one.model - 0.5) < 0 for one in differences])
    return OddsCheck(
        p_value=float(p_value),
        mean=float(np.abs(gap).mean()),
        largest=float(np.abs(gap).max()),
        flipped=float(flipped),
        cases=len(differences),
        worst=tuple(_keep_first_of_pairs([differences[k] for k in np.argsort(-z)], 5)),
    )


def _keep_first_of_pairs(differences: list[OddsDifference], limit: int) -> list[OddsDifference]:
    """Keep the first difference of each pair of algorithms, and at most ``limit`` in total."""
    first: dict[tuple[str, str], OddsDifference] = {}
    for one in differences:
        first.setdefault((one.a, one.b), one)
    return list(first.values())[:limit]
