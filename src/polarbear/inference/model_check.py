"""Whether the duels of pairs contradict the model, which says that the other one wins more often.

A Plackett-Luce model has one rating for each algorithm and time. It cannot describe an algorithm
that is often the first and often the last: its duels with a steady rival may be won although its
rating is lower. The counts of wins and losses then say something else than the posterior.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from polarbear._text import escape_text, format_range
from polarbear.data.rankings import Rankings
from polarbear.inference.diagnostics import DUELS_CONTRADICT
from polarbear.inference.e_values import count_outcomes
from polarbear.inference.replacing import find_stretches

MAX_CHECKED, MAX_DRAWS = 60, 100
"""The most algorithms whose pairs are checked, and the most draws that are used."""

MARGIN = 0.1
"""Where the share of wins lies by the duels on another side of 1/2, or of 1/2 -+ this margin, than
by the model, the duels may lead to another verdict (:mod:`polarbear.inference.replacing`)."""

MIN_DIFFERENCE, MIN_ERRORS = 0.1, 3.0
"""By how much the share of wins and the model must differ, absolutely and in standard errors."""


def find_contradiction(rankings: Rankings, utilities: NDArray[Any]) -> str:
    """Return the clearest pair whose duels are won by one and by the model lost; "" if none is.

    ``utilities``: posterior draws (draws, times, algorithms).

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0, 0.0]] * 3), 100)
    >>> find_contradiction(rankings, pb.fit(rankings).utilities)
    ''
    """
    n = len(rankings.algorithms)
    if n > MAX_CHECKED:
        return ""
    first, second = np.triu_indices(n, 1)
    outcomes = count_outcomes(rankings)
    won, lost = outcomes.wins[:, first, second], outcomes.losses[:, first, second]
    curves = utilities[:: max(1, len(utilities) // MAX_DRAWS)].astype(np.float64)
    found: tuple[float, int, slice, float, float] | None = None
    for stretch in find_stretches(rankings.times, 0.1):
        model = expit(curves[:, stretch][..., first] - curves[:, stretch][..., second])
        expected = model.mean(axis=(0, 1))
        decided = (won[stretch] + lost[stretch]).mean(axis=0)
        share = won[stretch].mean(axis=0) / np.maximum(decided, 1e-12)
        errors = np.abs(share - expected) * 2 * np.sqrt(decided)
        # The duels say that another one is ahead, or worse by more than the margin.
        edges = (0.5 - MARGIN, 0.5, 0.5 + MARGIN)
        differs = np.any([(share - edge) * (expected - edge) < 0 for edge in edges], axis=0)
        differs &= errors >= MIN_ERRORS
        errors[~(differs & (np.abs(share - expected) >= MIN_DIFFERENCE))] = 0.0
        k = int(np.argmax(errors))
        if errors[k] > (found[0] if found else 0.0):
            found = float(errors[k]), k, stretch, float(share[k]), float(expected[k])
    if found is None:
        return ""
    _, k, stretch, share, expected = found
    names = [rankings.algorithms[at] for at in (first[k], second[k])]
    if share < 0.5:
        names, share, expected = names[::-1], 1 - share, 1 - expected
    winner, loser = map(escape_text, names)
    times = rankings.times[stretch]
    word = "at" if len(times) == 1 else "from"
    when = f"{word} {format_range(times[0], times[-1], rankings.clock)}"
    return (
        f"{DUELS_CONTRADICT}: {winner} wins {100 * share:.0f} % of its decided duels with {loser} "
        f"{when}, and {100 * expected:.0f} % by the model. Ratings and P(best) may mislead there; "
        "pb.assess counts duels."
    )
