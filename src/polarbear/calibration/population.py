"""Recorded rankings as a population: what is true in it, and parts of it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear.data.rankings import UNKNOWN, Rankings, compute_positions
from polarbear.inference.laplace.independent import fit_independent
from polarbear.inference.plackett_luce.likelihood import build_likelihood

Floats = NDArray[np.float64]

MIN_WINS_OF_EACH = 5.0
"""The number of instances that each of two must have won for their odds to be known."""


def fit_utilities(rankings: Rankings, alpha: float = 1.0) -> Floats:
    """Log-utilities (T, n) of the Plackett-Luce model that is nearest to rankings, at each time.

    The mode of the posterior with ``Dirichlet(alpha)``, in log-utilities; of many rankings it is
    the model that fits best, whether or not any fits.

    >>> from polarbear.simulation import simulate_rankings
    >>> found = fit_utilities(simulate_rankings(np.array([[1.0, -1.0]]), 5000))
    >>> bool(np.abs(found - [1.0, -1.0]).max() < 0.1)
    True
    """
    n_times, n = len(rankings.times), len(rankings.algorithms)
    return fit_independent(build_likelihood(rankings), alpha, n_times, n).mean


def select_times(rankings: Rankings, rows: ArrayLike) -> Rankings:
    """The same rankings at some of their times."""
    rows = np.asarray(rows)
    return replace(rankings, times=rankings.times[rows], position=rankings.position[rows])


def to_dense_positions(rankings: Rankings) -> NDArray[np.integer]:
    """Positions (T, comparisons, n), -1 for whoever does not take part or is not known."""
    comparison = np.repeat(np.arange(len(rankings.instance)), np.diff(rankings.offset))
    shape = (len(rankings.times), len(rankings.instance), len(rankings.algorithms))
    dense = np.full(shape, UNKNOWN, dtype=rankings.position.dtype)
    dense[:, comparison, rankings.algorithm] = rankings.position
    return dense


def select_algorithms(rankings: Rankings, algorithms: Sequence[int]) -> Rankings:
    """The same rankings with some of the algorithms only, by number.

    >>> from polarbear.simulation import rank_costs
    >>> select_algorithms(rank_costs(np.array([[[3.0, 1.0, 2.0]]])), [0, 2]).order("i1", 0.0)
    [[('a3',), ('a1',)]]
    """
    kept = to_dense_positions(rankings)[:, :, list(algorithms)].astype(np.float64)
    position = compute_positions(np.where(kept == UNKNOWN, np.nan, kept))
    comparisons, n = position.shape[1:]
    return replace(
        rankings,
        algorithms=tuple(rankings.algorithms[k] for k in algorithms),
        position=position.reshape(len(rankings.times), -1),
        algorithm=np.tile(np.arange(n, dtype=np.int32), comparisons),
        offset=np.arange(comparisons + 1, dtype=np.int64) * n,
    )


def count_wins(rankings: Rankings) -> Floats:
    """On how many instances the row was ahead of the column: (T, n, n), ties half."""
    position = to_dense_positions(rankings)
    known = position != UNKNOWN
    found = np.zeros((len(rankings.times), *2 * [len(rankings.algorithms)]))
    for a in range(found.shape[1]):
        ahead = (position[..., a, None] < position) + 0.5 * (position[..., a, None] == position)
        ahead *= known[..., a, None] & known
        found[:, a] = np.einsum("c,tcn->tn", rankings.weight, ahead)
    return found


def find_contested_pairs(rankings: Rankings) -> NDArray[np.bool_]:
    """Between whom (T, n, n) the odds are known: both have won on some instances.

    How rare a win is that was never seen, nobody can tell from a pool.
    """
    won = count_wins(rankings)
    both = np.minimum(won, won.swapaxes(1, 2)) >= MIN_WINS_OF_EACH
    return both & ~np.eye(both.shape[1], dtype=bool)
