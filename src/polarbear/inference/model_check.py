"""Whether the duels of pairs contradict the model, which says that the other one wins more often.

A Plackett-Luce model has one rating for each algorithm and time. It cannot describe an algorithm
that is often the first and often the last: its duels with a steady rival may be won although its
rating is lower. The counts of wins and losses then say something else than the posterior.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from polarbear._text import escape_text, format_range
from polarbear.inference.diagnostics import ALL_COUNTED, COUNTED, DUELS_CONTRADICT
from polarbear.inference.draws import systematic_resample
from polarbear.inference.e_values import Outcomes
from polarbear.inference.posterior import Posterior
from polarbear.inference.replacing import find_stretches

Floats, Ints = NDArray[np.float64], NDArray[np.intp]

MAX_CHECKED, MAX_DRAWS = 60, 100
"""The most algorithms whose pairs are checked, and the most draws that are used."""

MARGIN = 0.1
"""Where the share of wins lies by the duels on another side of 1/2, or of 1/2 -+ this margin, than
by the model, the duels may lead to another verdict (:mod:`polarbear.inference.replacing`)."""

MIN_DIFFERENCE, ERROR = 0.1, 0.01
"""By how much the share of wins and the model must differ, and how often they may by chance."""


class Contradiction(NamedTuple):
    """Of the duels of a pair that are decided at some times: the share won, and that by a model."""

    winner: str
    loser: str
    when: str
    share: float
    expected: float

    def describe(self, method: str) -> str:
        """Return what the duels say, and what follows from that for a posterior of this method."""
        winner, loser = escape_text(self.winner), escape_text(self.loser)
        duels = (
            f"{winner} wins {100 * self.share:.0f} % of its decided duels with {loser} "
            f"{self.when}, and {100 * self.expected:.0f} % by the model"
        )
        if method.endswith("duels counted"):
            what = f"{COUNTED}, and ratings are those of a model that contradicts them"
            return f"{what}: {duels}. P(best) may mislead there."
        if method.endswith("counted"):
            return f"{ALL_COUNTED}, because they contradict a model of rankings: {duels}."
        return (
            f"{DUELS_CONTRADICT}: {duels}. Ratings and P(best) may mislead there; a fit with the "
            "default prior counts first places instead."
        )


def find_contradiction(outcomes: Outcomes, posterior: Posterior) -> Contradiction | None:
    """Return the clearest pair whose duels are won by one and by the model lost; None without one.

    >>> import polarbear as pb
    >>> from polarbear.inference.e_values import count_outcomes
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0, 0.0]] * 3), 100)
    >>> find_contradiction(count_outcomes(rankings), pb.fit(rankings)) is None
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
    names = [posterior.algorithms[code[k]] for code in (first, second)]
    if clearest < 0.5:
        names, clearest, modelled = names[::-1], 1 - clearest, 1 - modelled
    times = posterior.times[stretches[s]]
    word = "at" if len(times) == 1 else "from"
    when = f"{word} {format_range(times[0], times[-1], posterior.clock)}"
    return Contradiction(*names, when=when, share=clearest, expected=modelled)


def _expect_wins(posterior: Posterior, first: Ints, second: Ints) -> Floats:
    """Return P(first beats second) by the model at each time (times, pairs), from a few draws."""
    if posterior.weight.shape[1] > 1 and posterior.curves is None:  # curves would take longer
        chosen = [systematic_resample(at, MAX_DRAWS) for at in posterior.weight.T]
        drawn = np.take_along_axis(posterior.draws, np.array(chosen).T[:, :, None], axis=0)
    else:
        drawn = posterior.utilities[:: max(1, len(posterior.utilities) // MAX_DRAWS)]
    drawn = drawn.swapaxes(0, 1)  # (T, draws, n)
    rate = np.exp(np.maximum(drawn - drawn.max(axis=2, keepdims=True), -700), dtype=float)
    return np.array([np.mean(at[:, first] / (at[:, first] + at[:, second]), axis=0) for at in rate])
