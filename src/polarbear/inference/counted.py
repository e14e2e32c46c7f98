"""Ratings and win probabilities by counts, with a model of rankings as their prior.

A Plackett-Luce model has one rating for each algorithm and time, to which all places contribute. No
recorded set of optimisers follows it: some are often the first and often the last. Here a rating is
the share of instances on which an algorithm comes first, and a win probability the share of decided
duels that it wins. The model is the prior of both, and counts as much as twelve instances. It also
says what results leave open: who of those that tie is the first, and whether one that did not run
would have been.

The posterior is that of a Dirichlet process around the model (Ferguson, 1973). Each draw gives the
instances other weights (the Bayesian bootstrap; Rubin, 1981), and adds the shares of twelve more by
the ratings of a draw of the model. Its ratings are as uncertain as after twelve instances if there
are many, because more instances only say how far the truth is from it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax

from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.diagnostics import FILLED_IN
from polarbear.inference.posterior import Posterior
from polarbear.inference.replacing import Places
from polarbear.inference.threads import one_thread

Floats, Singles = NDArray[np.float64], NDArray[np.float32]

MODEL_WEIGHT = 12.0
"""The model counts as much as so many instances.

Recorded optimisers differ from it by so much: intervals of their ratings hold the shares of first
places as often as they say (studies/error_control). Where the model is right, ratings from 200
instances are as precise as the model alone has them from half as many.
"""

MAX_DRAWS, MIN_DRAWS = 2_000, 250
MAX_RATINGS, MAX_WEIGHTS, MAX_PRODUCTS = 4_000_000, 20_000_000, 3_000_000_000
"""The most draws times ratings, times comparisons, and times duels, down to the fewest draws."""

MAX_WINS, MIN_WINS = 3_000_000, 100
"""The most draws times pairs of which wins are kept, down to so few draws."""

SWEEPS, SWEEPS_OF_MEAN = 6, 300
"""How often first places that are not known are shared anew, in all draws and in their mean."""

LEAST_SHARE = 1e-9
"""Shares of first places below this are ordered by the model."""

TINY = np.float32(1e-37)

MANY_MISSING = 0.1
"""Above this share of places that are missing, a note says that the model fills in first places."""


def count_posterior(
    rankings: Rankings, fitted: Posterior, seed: int = 0, draws: int | None = None
) -> Posterior:
    """Return the posterior by counts, with the model ``fitted`` to the same rankings as the prior.

    >>> import polarbear as pb
    >>> steady, moody = np.zeros(80), np.repeat([-1.0, 2.0], [50, 30])
    >>> third = np.repeat([1.0, 1.0], 40)
    >>> rankings = pb.simulation.rank_costs(np.stack([steady, moody, third], axis=-1)[None])
    >>> counted = count_posterior(rankings, pb.fit(rankings, evidence="rankings"))
    >>> counted.mean().round(1)
    array([[0.4, 0.6, 0. ]])
    """
    place = Places.of(rankings).position
    n_times, n_compared, n = place.shape
    n_draws = draws or _choose_draws(n_times, n_compared, n)
    n_wins = min(max(2 * MAX_WINS // (n_times * n * n), MIN_WINS), n_draws)
    rng = np.random.default_rng(seed)
    size = n_draws, len(rankings.instances)
    drawn = rng.standard_exponential(size, np.float32)[:, rankings.instance]
    drawn *= rankings.weight.astype(np.float32)
    chosen = rng.permutation(max(n_draws, len(fitted.utilities)))[:n_draws]
    utilities = fitted.utilities[chosen % len(fitted.utilities)]
    with one_thread():
        modelled = _widen(utilities, _count_known(place, rankings.weight))  # in logarithms
        rating: Singles = np.exp(modelled)
        prior = _draw_gammas(np.float32(MODEL_WEIGHT) * rating, rng)
        sums = [sum_firsts(at, drawn, rating[:, t], prior[:, t]) for t, at in enumerate(place)]
        total = prior + np.stack(sums, axis=1)
        with np.errstate(divide="ignore"):
            share = np.log(total / total.sum(axis=2, keepdims=True))
        utilities = np.maximum(share, np.float32(np.log(LEAST_SHARE)) + modelled)
        measured = dict(fitted.diagnostics.measured)
        measured["error"] = max(measured.get("error", 0.0), 0.5 / np.sqrt(n_draws))
        notes = (*fitted.diagnostics.notes, *_describe_missing(place))
        return replace(
            fitted,
            counted=True,
            draws=utilities - utilities.mean(axis=2, keepdims=True),
            weight=np.ones((n_draws, 1), dtype=np.float32),
            mixture=None,
            curves=None,
            chains=1,
            independent=False,
            wins=_draw_wins(place, drawn[:n_wins], modelled[:n_wins], rng),
            diagnostics=replace(fitted.diagnostics, measured=measured, notes=notes),
        )


def _choose_draws(n_times: int, n_compared: int, n: int) -> int:
    """Return how many draws are cheap."""
    products = n_times * n_compared * n * n // 2
    costs = (MAX_RATINGS, n_times * n), (MAX_WEIGHTS, n_compared), (MAX_PRODUCTS, products)
    return int(np.clip(min(most // max(each, 1) for most, each in costs), MIN_DRAWS, MAX_DRAWS))


def _describe_missing(place: NDArray) -> list[str]:
    """Return a note if the model fills in many first places, because runs are missing."""
    known = place != UNKNOWN
    compared = known[known.sum(axis=2) > 1]
    share = 1 - compared.mean() if compared.size else 0.0
    if share <= MANY_MISSING:
        return []
    said = f"{FILLED_IN}: {100 * share:.0f} % of the places are unknown"
    return [f"{said}. Ratings and P(best) may be off by more than their intervals say."]


def sum_firsts(place: NDArray, weight: Any, rating: Any, prior: Any = 0.0) -> NDArray[Any]:
    """Return the weighted sums (draws, n) of first places (comparisons, n) at one time.

    Each row of ``weight`` (draws, comparisons) has its own ratings (draws, n), with which sums
    begin. Those that tie for the first place share it in proportion to their ratings, and for each
    first place among those that ran, the others are given what makes it the share of its rating.
    Ratings are then those that follow from the sums and the ``prior`` sums, and so on (an EM
    algorithm: the likelihood is the rating of those that are first, among those that ran).

    >>> place = np.array([[0, 1, 1], [1, 0, 2], [0, 0, 2], [1, 0, UNKNOWN]])
    >>> sum_firsts(place, np.ones((1, 4)), np.full((1, 3), 1 / 3)).round(2)
    array([[1.33, 2.67, 0.  ]])
    """
    known, is_first = _find_known(place)
    told = known.sum(axis=1) > is_first.sum(axis=1)
    first, among = is_first[told].astype(weight.dtype), known[told].astype(weight.dtype)
    weight = weight if told.all() else weight[:, told]
    if np.count_nonzero(first) == len(first) and among.all():
        return weight @ first

    def share(rating: Any, weight: Any, prior: Any, sweeps: int) -> Any:
        total = rating
        for _ in range(sweeps):
            of_first, of_known = (np.maximum(rating @ of.T, TINY) for of in (first, among))
            total = rating * ((weight / of_first) @ first + (weight / of_known) @ (1 - among))
            rating = prior + total
            rating = rating / np.maximum(rating.sum(axis=1, keepdims=True), TINY)
        return total

    # All draws begin where their mean ends, because sweeps are slow where little is known.
    prior = prior + np.zeros_like(rating)
    mean, weights, priors = (x.mean(axis=0, keepdims=True) for x in (rating, weight, prior))
    end = priors + share(mean, weights, priors, SWEEPS_OF_MEAN)
    rating = rating * (end / end.sum() / np.maximum(mean, TINY))
    return share(rating, weight, prior, SWEEPS)


def _count_known(place: NDArray, weight: Floats) -> Floats:
    """Return how many instances' worth of first places is known at each time (T,).

    Of an instance it is the share of rivals that are known to be behind the first.
    """
    known, is_first = _find_known(place)
    return (known & ~is_first).sum(axis=2) @ weight / (place.shape[2] - 1)


def _find_known(place: NDArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return masks of who ran, and of who is the first of these."""
    known = place != UNKNOWN
    best = np.where(known, place, place.shape[-1]).min(axis=-1, keepdims=True)
    return known, known & (place == best)


def _widen(utilities: Singles, n_instances: Floats) -> Singles:
    """Return logarithms of ratings, as uncertain as the centre of a Dirichlet process of weight c.

    Shares of N draws from it vary (N + c) / (1 + c) times as much around the centre as shares of
    independent draws from the centre, so they tell as much of it as fewer of these. The prior
    Dirichlet(1) says as much as n / (n - 1) rankings of n algorithms.
    """
    n, mean = utilities.shape[2], utilities.mean(axis=0)
    prior = n / (n - 1)
    fewer = n_instances * np.minimum((1 + MODEL_WEIGHT) / (n_instances + MODEL_WEIGHT), 1)
    ratio = ((n_instances + prior) / (fewer + prior)).astype(np.float32)[:, None]
    told = (fewer / np.maximum(n_instances, 1e-9)).astype(np.float32)[:, None]
    wide = mean * np.where(told > 0, told * ratio, 1) + np.sqrt(ratio) * (utilities - mean)
    return log_softmax(wide, axis=2)


def _draw_gammas(shape: Singles, rng: np.random.Generator) -> Singles:
    """Return gamma variables of these shapes (draws, T, n), in a draw one quantile at all times.

    The quantiles are those of Wilson and Hilferty (1931) for a shape larger by 1, which a power of
    a uniform variable takes off again.
    """
    size, larger = (len(shape), 1, shape.shape[2]), shape + 1
    normal = rng.standard_normal(size, np.float32)
    power = rng.standard_exponential(size, np.float32)
    root = np.maximum(1 - 1 / (9 * larger) + normal / (3 * np.sqrt(larger)), 0)
    return larger * root**3 * np.exp(-power / np.maximum(shape, 1e-6))


def _draw_wins(
    place: NDArray, drawn: Singles, modelled: Singles, rng: np.random.Generator
) -> Singles:
    """Return draws (W, T, pairs) of the share of decided duels that the first of a pair wins.

    Of the duels by the model it is a beta variable, by the normal variable of its mean and variance
    within 0 and 1.
    """
    first, second = np.triu_indices(place.shape[2], 1)
    normal = rng.standard_normal((len(drawn), len(first)), np.float32)
    wins = np.empty((len(drawn), len(place), len(first)), dtype=np.float32)
    every = drawn.sum(axis=1, keepdims=True)
    for t, at in enumerate(place):
        ours, theirs = at[:, first], at[:, second]
        known = (ours != UNKNOWN) & (theirs != UNKNOWN)
        decided = known & (ours != theirs)
        won = drawn @ (decided & (ours < theirs)).astype(np.float32)
        duels = every if decided.all() else drawn @ decided.astype(np.float32)
        chance = expit(modelled[:, t, first] - modelled[:, t, second])
        sd = np.sqrt(chance * (1 - chance) / np.float32(MODEL_WEIGHT + 1))
        wins[:, t] = won + MODEL_WEIGHT * np.clip(chance + normal * sd, 0, 1)
        wins[:, t] /= duels + MODEL_WEIGHT
    return wins
