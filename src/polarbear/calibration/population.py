"""Recorded rankings as a population: its true utilities, its win counts, and subsets of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from polarbear.data.positions import UNKNOWN, compute_positions
from polarbear.data.rankings import Rankings
from polarbear.inference.counted import LEAST_SHARE, sum_firsts
from polarbear.inference.laplace.independent import fit_independent
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.inference.replacing import Places

Floats = NDArray[np.float64]

MIN_WINS_OF_EACH = 5.0
"""The odds of a pair count as known if each of the two won on this number of instances."""


class Truth(NamedTuple):
    """What the claims of posteriors are compared with."""

    utilities: Floats  # (T, n), whose differences are the log-odds of two ratings
    asked: NDArray[np.bool_] | None = None  # (T, n, n): the pairs whose odds are known; None: all

    @classmethod
    def of_model(cls, rankings: Rankings) -> Self:
        """Return the nearest Plackett-Luce model."""
        return cls(fit_utilities(rankings), find_contested_pairs(rankings))

    @classmethod
    def of_counts(cls, rankings: Rankings) -> Self:
        """Return the shares of first places, as they are counted (``inference/counted``).

        >>> from polarbear.simulation import rank_costs
        >>> truth = Truth.of_counts(rank_costs(np.array([[[1.0, 2.0], [1.0, 3.0], [2.0, 1.0]]])))
        >>> np.exp(truth.utilities).round(2)
        array([[0.67, 0.33]])
        """
        data = zip(Places.of(rankings).position, fit_utilities(rankings), strict=True)
        weight = rankings.weight[None]
        sums = [sum_firsts(place, weight, softmax(rate[None], axis=1)) for place, rate in data]
        number = np.concatenate(sums)
        share = number / np.maximum(number.sum(axis=1, keepdims=True), 1e-300)
        known = number >= MIN_WINS_OF_EACH
        return cls(np.log(np.maximum(share, LEAST_SHARE)), known[:, :, None] & known[:, None])


def fit_utilities(rankings: Rankings, alpha: float = 1.0) -> Floats:
    """Fit the log-utilities (times, algorithms) of the nearest Plackett-Luce model at each time.

    The result is the mode of the posterior with ``Dirichlet(alpha)``, in log-utilities. For many
    rankings it is the model with the highest likelihood, also where no such model holds.

    >>> from polarbear.simulation import simulate_rankings
    >>> utilities = fit_utilities(simulate_rankings(np.array([[1.0, -1.0]]), 5000))
    >>> bool(np.abs(utilities - [1.0, -1.0]).max() < 0.1)
    True
    """
    n_times, n = len(rankings.times), len(rankings.algorithms)
    return fit_independent(build_likelihood(rankings), alpha, n_times, n).mean


def to_dense_positions(rankings: Rankings) -> NDArray[np.integer]:
    """Return positions (times, comparisons, algorithms), with -1 for absent or unknown ones."""
    return _spread_entries(rankings, rankings.position, UNKNOWN)


def _spread_entries(rankings: Rankings, values: NDArray[Any], absent: int) -> NDArray[Any]:
    """Return values (times, entries) as an array (times, comparisons, algorithms)."""
    comparison = np.repeat(np.arange(len(rankings.instance)), np.diff(rankings.offset))
    shape = (len(rankings.times), len(rankings.instance), len(rankings.algorithms))
    dense = np.full(shape, absent, dtype=values.dtype)
    dense[:, comparison, rankings.algorithm] = values
    return dense


def select_algorithms(rankings: Rankings, algorithms: Sequence[int]) -> Rankings:
    """Return the rankings among selected algorithms, without the runs of all others.

    >>> from polarbear.simulation import rank_costs
    >>> select_algorithms(rank_costs(np.array([[[3.0, 1.0, 2.0]]])), [0, 2]).order("i1", 0.0)
    [[('a3',), ('a1',)]]
    """
    kept = to_dense_positions(rankings)[:, :, list(algorithms)].astype(np.float64)
    rest = rankings.behind_top
    if rest is not None:
        rest = _spread_entries(rankings, rest, False)[:, :, list(algorithms)].reshape(len(rest), -1)
    position = compute_positions(np.where(kept == UNKNOWN, np.nan, kept))
    comparisons, n = position.shape[1:]
    return replace(
        rankings,
        algorithms=tuple(rankings.algorithms[k] for k in algorithms),
        position=position.reshape(len(rankings.times), -1),
        algorithm=np.tile(np.arange(n, dtype=np.int32), comparisons),
        offset=np.arange(comparisons + 1, dtype=np.int64) * n,
        behind_top=rest,
    )


def count_wins(rankings: Rankings) -> Floats:
    """Count wins of i against j (times, algorithms i, algorithms j); a tie counts as half a win."""
    position = to_dense_positions(rankings)
    known = position != UNKNOWN
    wins = np.zeros((len(rankings.times), *2 * [len(rankings.algorithms)]))
    for a in range(wins.shape[1]):
        ahead = (position[..., a, None] < position) + 0.5 * (position[..., a, None] == position)
        ahead *= known[..., a, None] & known
        wins[:, a] = np.einsum("c,tcn->tn", rankings.weight, ahead)
    return wins


def find_contested_pairs(rankings: Rankings) -> NDArray[np.bool_]:
    """Return a mask (times, algorithms, algorithms) of pairs in which both win several times.

    The odds of other pairs are not known: data cannot tell how rare a win is that never occurred.
    """
    wins = count_wins(rankings)
    both_won = np.minimum(wins, wins.swapaxes(1, 2)) >= MIN_WINS_OF_EACH
    return both_won & ~np.eye(both_won.shape[1], dtype=bool)
