"""Whether duels or first places contradict the model.

A Plackett-Luce model has one rating for each algorithm and time, to which all places contribute. It
cannot describe an algorithm that is often the first and often the last: its duels with a steady
rival may be won although its rating is lower. On a mixture of easy and hard instances, no algorithm
comes first as often as its rating says. The counts then say something else than the posterior.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, rel_entr

from polarbear._text import escape_text, format_range
from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.diagnostics import DUELS_CONTRADICT, FIRSTS_CONTRADICT
from polarbear.inference.e_values import Outcomes, with_effective_weights
from polarbear.inference.posterior import Posterior
from polarbear.inference.replacing import find_stretches

Floats, Ints = NDArray[np.float64], NDArray[np.intp]

MAX_DRAWS = 100
"""The most draws of the posterior that are used."""

MARGIN = 0.1
"""Where the share of wins lies by the duels on another side of 1/2, or of 1/2 -+ this margin, than
by the model, the duels may lead to another verdict (:mod:`polarbear.inference.replacing`)."""

MIN_DIFFERENCE, ERROR = 0.1, 0.01
MIN_RATING_DIFFERENCE, RATING_ERROR = 0.05, 0.1
"""By how much shares of wins or of first places must differ from the model, and how often they may
by chance."""

REMEDY = (
    "Ratings and P(best) may mislead there. By default, a fit counts first places instead, of at "
    "most 60 algorithms whose ties are not averaged, unless there are very many instances."
)


def find_contradicting_duels(outcomes: Outcomes, posterior: Posterior) -> str | None:
    """Name the pair whose duels contradict the model most clearly, as text; None without one.

    >>> import polarbear as pb
    >>> from polarbear.inference.e_values import count_outcomes
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0, 0.0]] * 3), 100)
    >>> find_contradicting_duels(count_outcomes(rankings), pb.fit(rankings, "BSpline")) is None
    True
    """
    first, second = np.triu_indices(len(posterior.algorithms), 1)
    won, lost = outcomes.wins[:, first, second], outcomes.losses[:, first, second]
    stretches = find_stretches(posterior.times, 0.1)
    start, stop = np.array([(one.start, one.stop) for one in stretches]).T
    parts = np.array([won, won + lost, _expect_wins(posterior, first, second)])
    sums = np.cumsum(np.pad(parts, ((0, 0), (1, 0), (0, 0))), axis=1)
    won, decided, expected = (sums[:, stop] - sums[:, start]) / (stop - start)[:, None]
    share = won / np.maximum(decided, 1e-12)
    # Rounded, so that of equal stretches the first one is named.
    errors = (np.abs(share - expected) * 2 * np.sqrt(decided)).round(9)
    # The duels say that another one is ahead, or worse by more than the margin.
    edges = np.array([0.5 - MARGIN, 0.5, 0.5 + MARGIN])[:, None, None]
    differs = np.any((share - edges) * (expected - edges) < 0, axis=0)
    differs &= errors >= ndtri(1 - ERROR / (2 * errors.size))
    errors[~(differs & (np.abs(share - expected) >= MIN_DIFFERENCE))] = 0.0
    if not errors.any():
        return None
    at = s, k = np.unravel_index(np.argmax(errors), errors.shape)
    clearest, modelled = float(share[at]), float(expected[at])
    names = [escape_text(posterior.algorithms[code[k]]) for code in (first, second)]
    if clearest < 0.5:
        names, clearest, modelled = names[::-1], 1 - clearest, 1 - modelled
    when = _describe_times(posterior, stretches[s])
    said = (
        f"{names[0]} wins {100 * clearest:.0f} % of its decided duels with {names[1]} {when}, and "
        f"{100 * modelled:.0f} % by the model"
    )
    return f"{DUELS_CONTRADICT}: {said}. {REMEDY}"


def find_contradicting_firsts(rankings: Rankings, posterior: Posterior) -> str | None:
    """Say whose first places differ most clearly from its rating on some stretch, if any do.

    Where several share the first place, any share of it agrees. Of n instances, a share s where e
    is expected is sqrt(2 n KL(s, e)) standard errors off, the signed root of the likelihood ratio;
    the mean over a stretch varies less than the share at one time.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0, 0.0]] * 3), 100)
    >>> find_contradicting_firsts(rankings, pb.fit(rankings, "BSpline")) is None
    True
    """
    rate = _draw_rates(posterior)
    rating = np.mean(rate / rate.sum(axis=2, keepdims=True), axis=1)
    counted = _count_firsts(with_effective_weights(rankings), rating)
    stretches = find_stretches(posterior.times, 0.1)
    means = np.array([counted[:, one].mean(axis=1) for one in stretches])  # (S, 4, n)
    compared = np.maximum(means[:, 0], 1e-12)
    least, most, expected = means[:, 1:].swapaxes(0, 1) / compared
    share = np.clip(expected, least, most)
    divergence = rel_entr(share, expected) + rel_entr(1 - share, 1 - expected)
    errors = np.sqrt(2 * compared * np.maximum(divergence, 0.0)).round(9)
    differs = errors >= ndtri(1 - RATING_ERROR / (2 * errors.size))
    errors[~(differs & (np.abs(share - expected) >= MIN_RATING_DIFFERENCE))] = 0.0
    if not errors.any():
        return None
    at = s, k = np.unravel_index(np.argmax(errors), errors.shape)
    said = (
        f"{escape_text(posterior.algorithms[k])} comes first on {100 * share[at]:.0f} % of "
        f"instances {_describe_times(posterior, stretches[s])}, and on {100 * expected[at]:.0f} % "
        "by the model"
    )
    return f"{FIRSTS_CONTRADICT}: {said}. {REMEDY}"


def _count_firsts(rankings: Rankings, rating: Floats) -> Floats:
    """Return sums over the comparisons of each algorithm with others at each time (4, T, n).

    Their number, those in which it was the only first, those in which it was among the first, and
    the probabilities of being the first that follow from the ratings.
    """
    n, start, owner = len(rankings.algorithms), rankings.offset[:-1], rankings.algorithm
    compared = np.repeat(np.arange(len(start)), np.diff(rankings.offset))
    weight = rankings.weight[compared]
    found = np.empty((4, len(rankings.times), n))
    for t, place in enumerate(rankings.position):
        known = place != UNKNOWN
        known &= np.add.reduceat(known, start, dtype=int)[compared] > 1
        best = np.minimum.reduceat(np.where(known, place, n), start)[compared]
        first = known & (place == best)
        alone = first & (np.add.reduceat(first, start, dtype=int)[compared] == 1)
        rate = np.where(known, rating[t, owner], 0.0)
        rate /= np.maximum(np.add.reduceat(rate, start), 1e-300)[compared]
        for k, what in enumerate((known, alone, first, rate)):
            found[k, t] = np.bincount(owner, weight * what, minlength=n)
    return found


def _describe_times(posterior: Posterior, stretch: slice) -> str:
    times = posterior.times[stretch]
    word = "at" if len(times) == 1 else "from"
    return f"{word} {format_range(times[0], times[-1], posterior.clock)}"


def _expect_wins(posterior: Posterior, first: Ints, second: Ints) -> Floats:
    """Return P(first beats second) by the model at each time (times, pairs)."""
    rate = _draw_rates(posterior)
    return np.array([np.mean(at[:, first] / (at[:, first] + at[:, second]), axis=0) for at in rate])


def _draw_rates(posterior: Posterior) -> Floats:
    """Return a few draws of what ratings are in proportion to (T, draws, n)."""
    drawn = posterior.utilities[:: max(1, len(posterior.utilities) // MAX_DRAWS)]
    drawn = drawn.swapaxes(0, 1)  # (T, draws, n)
    return np.exp(np.maximum(drawn - drawn.max(axis=2, keepdims=True), -700), dtype=float)
