"""A posterior that is counted: duels of pairs and first places, without a model of rankings.

A Plackett-Luce model has one rating for each algorithm and time. It cannot describe an algorithm
that is often the first and often the last. Where duels or first places contradict it, a rating is
the share of instances on which the algorithm comes first, and a pair is judged by its duels. The
posterior of these shares is that of the Bayesian bootstrap (Rubin, 1981): each draw gives the
instances other weights, and one more instance, shared by all outcomes, keeps few instances from
being certain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.posterior import Posterior
from polarbear.inference.replacing import Places
from polarbear.inference.threads import one_thread

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

MAX_DRAWS, MIN_DRAWS = 2_000, 200
MAX_CELLS = 20_000_000
"""The most numbers in the draws of all pairs, down to the fewest draws."""

LEAST_SHARE = 1e-9
"""A share of first places is at least this, so that its logarithm is finite."""


def count_posterior(rankings: Rankings, fitted: Posterior, seed: int = 0) -> Posterior:
    """Return the posterior by counts, in place of one that was ``fitted`` to the same rankings.

    Ratings are counted if every comparison has all algorithms at all times; else the first of some
    says nothing of the others, and the ratings stay those of the model.

    >>> import polarbear as pb
    >>> steady, moody = np.zeros(80), np.repeat([-1.0, 2.0], [50, 30])
    >>> third = np.repeat([1.0, 1.0], 40)
    >>> rankings = pb.simulation.rank_costs(np.stack([steady, moody, third], axis=-1)[None])
    >>> counted = count_posterior(rankings, pb.fit(rankings))
    >>> counted.mean().round(1)
    array([[0.4, 0.6, 0. ]])
    """
    place = Places.of(rankings).position
    n_times, _, n = place.shape
    cells = max(n_times * n * n // 2, len(rankings.instances))
    n_draws = int(np.clip(MAX_CELLS // cells, MIN_DRAWS, MAX_DRAWS))
    rng = np.random.default_rng(seed)
    drawn = rng.standard_exponential((n_draws, len(rankings.instances)))[:, rankings.instance]
    drawn = (drawn * rankings.weight).astype(np.float32)
    with one_thread():
        posterior = replace(
            fitted, wins=_draw_wins(place, drawn, rng), method=f"{fitted.method}, duels counted"
        )
        if not are_complete(rankings):
            return posterior
        utilities = _draw_utilities(place, drawn, rng)
    return replace(
        posterior,
        method=f"{fitted.method}, counted",
        draws=utilities,
        weight=np.ones((n_draws, 1), dtype=np.float32),
        mixture=None,
        curves=None,
        chains=1,
        independent=False,
    )


def has_counted_ratings(posterior: Posterior) -> bool:
    """Return whether ratings are counted first places, and not those of a model."""
    return posterior.method.endswith(", counted")


def are_complete(rankings: Rankings) -> bool:
    """Return whether the place of each algorithm is known in each comparison at each time."""
    size = (len(rankings.offset) - 1) * len(rankings.algorithms)
    return len(rankings.algorithm) == size and not (rankings.position == UNKNOWN).any()


def _draw_wins(place: NDArray, drawn: Singles, rng: np.random.Generator) -> Singles:
    """Return draws (W, T, pairs) of the share of decided duels that the first of a pair wins."""
    first, second = np.triu_indices(place.shape[2], 1)
    half_won, half_lost = rng.gamma(0.5, size=(2, len(drawn), 1)).astype(np.float32)
    wins = np.empty((len(drawn), len(place), len(first)), dtype=np.float32)
    for t, at in enumerate(place):
        ours, theirs = at[:, first], at[:, second]
        known = (ours != UNKNOWN) & (theirs != UNKNOWN)
        won = drawn @ (known & (ours < theirs)).astype(np.float32) + half_won
        lost = drawn @ (known & (ours > theirs)).astype(np.float32) + half_lost
        wins[:, t] = won / (won + lost)
    return wins


def _draw_utilities(place: NDArray, drawn: Singles, rng: np.random.Generator) -> Singles:
    """Return draws (W, T, n) of the logarithms of the shares of first places; those tied share."""
    n = place.shape[2]
    prior = rng.gamma(1 / n, size=(len(drawn), n)).astype(np.float32)
    draws = np.empty((len(drawn), len(place), n), dtype=np.float32)
    for t, at in enumerate(place):
        is_first = at == at.min(axis=1, keepdims=True)
        first = is_first / is_first.sum(axis=1, keepdims=True)
        share = drawn @ first.astype(np.float32) + prior
        draws[:, t] = np.log(np.maximum(share / share.sum(axis=1, keepdims=True), LEAST_SHARE))
    return draws
