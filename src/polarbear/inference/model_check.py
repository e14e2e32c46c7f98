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
    modelled = _expect_wins(posterior, first, second)
    found: tuple[float, int, slice, float, float] | None = None
    stretches = find_stretches(posterior.times, 0.1)
    least = ndtri(1 - ERROR / (2 * len(first) * len(stretches)))
    for stretch in stretches:
        expected = modelled[stretch].mean(axis=0)
        decided = (won[stretch] + lost[stretch]).mean(axis=0)
        share = won[stretch].mean(axis=0) / np.maximum(decided, 1e-12)
        errors = np.abs(share - expected) * 2 * np.sqrt(decided)
        # The duels say that another one is ahead, or worse by more than the margin.
        edges = (0.5 - MARGIN, 0.5, 0.5 + MARGIN)
        differs = np.any([(share - edge) * (expected - edge) < 0 for edge in edges], axis=0)
        differs &= errors >= least
        errors[~(differs & (np.abs(share - expected) >= MIN_DIFFERENCE))] = 0.0
        k = int(np.argmax(errors))
        if errors[k] > (found[0] if found else 0.0):
            found = float(errors[k]), k, stretch, float(share[k]), float(expected[k])
    if found is None:
        return None
    _, k, stretch, share, expected = found
    names = [posterior.algorithms[at] for at in (first[k], second[k])]
    if share < 0.5:
        names, share, expected = names[::-1], 1 - share, 1 - expected
    times = posterior.times[stretch]
    word = "at" if len(times) == 1 else "from"
    when = f"{word} {format_range(times[0], times[-1], posterior.clock)}"
    return Contradiction(winner=names[0], loser=names[1], when=when, share=share, expected=expected)


def _expect_wins(posterior: Posterior, first: Ints, second: Ints) -> Floats:
    """Return P(first beats second) by the model at each time (times, pairs), from a few draws."""
    expected = np.empty((len(posterior.times), len(first)))
    weight = posterior.weight
    for t in range(len(expected)):
        if weight.shape[1] > 1 and posterior.curves is None:  # curves would take longer
            drawn = posterior.draws[systematic_resample(weight[:, t], MAX_DRAWS), t]
        else:
            drawn = posterior.utilities[:: max(1, len(posterior.utilities) // MAX_DRAWS), t]
        rate = np.exp(np.maximum(drawn - drawn.max(axis=1, keepdims=True), -700), dtype=float)
        expected[t] = np.mean(rate[:, first] / (rate[:, first] + rate[:, second]), axis=0)
    return expected
