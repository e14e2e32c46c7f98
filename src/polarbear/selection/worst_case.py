"""``worst_case_regret``: what a choice can cost at most if the preference over budgets is unknown.

With V = sum_t u_t theta(t) for weights u on the times (a distribution of the budget), choosing A
costs Regret(A, u) = E[max V - V_A] (paper, section 4). It is convex in u, so that its supremum over
u is at a single time. The largest regret of who knows u, sup_u min_A Regret(A, u), is what more
data could save: the *reducible* part. What remains of min_A sup_u Regret(A, u), the regret of who
does not know u, no data can save: it is the *irreducible* part.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear._text import escape_text, format_range
from polarbear.selection.ratings import RatingSource, thin_draws

Floats = NDArray[np.float64]

MAX_DRAWS, MAX_TIMES = 1000, 40
"""The most posterior draws that are used, and times of which mixtures are searched; evenly chosen
if there are more."""


class WorstCase(NamedTuple):
    """The worst-case regret over all distributions of the budget.

    Attributes
    ----------
    algorithm
        The algorithm whose largest regret is smallest.
    regret, at
        That regret, and the budget at which it occurs.
    reducible
        The largest regret of who knows the distribution: more data lower it.
    clock
        The unit of the budget.
    """

    algorithm: str
    regret: float
    at: float
    reducible: float
    clock: str

    @property
    def irreducible(self) -> float:
        """What remains however many data there are, as long as the budget is unknown."""
        return max(self.regret - self.reducible, 0.0)

    def __str__(self) -> str:
        return (
            f"{escape_text(self.algorithm)} costs at most {self.regret:.3f} whatever the budget is "
            f"(at {format_range(self.at, self.at, self.clock)}): {self.reducible:.3f} for want of "
            f"data, {self.irreducible:.3f} because the budget is unknown"
        )


def worst_case_regret(posterior: RatingSource) -> WorstCase:
    """Return the algorithm with the smallest worst-case regret, and what of it data can reduce.

    The regret is in ratings: in the probability of having the best solution. It is that of the
    distributions of the budget, which weigh the ratings over time, and of all algorithms.
    ``reducible`` is the worst-case regret of the paper (section 4), for these preferences. Saved
    :class:`Ratings` serve as well as a posterior.

    >>> import polarbear as pb
    >>> truth = np.array([[1.0, 0.0, -3.0], [0.0, 1.0, -3.0]])
    >>> few, many = (pb.fit(pb.simulation.simulate_rankings(truth, n)) for n in (20, 2000))
    >>> worst_case_regret(few).reducible > 0.01 > worst_case_regret(many).reducible
    True
    >>> worst_case_regret(many).irreducible > 0.3
    True
    """
    ratings = thin_draws(posterior.ratings, MAX_DRAWS).astype(np.float64)
    best, mean = ratings.max(axis=2).mean(axis=0), ratings.mean(axis=0)
    some = np.linspace(0, len(mean) - 1, min(MAX_TIMES, len(mean))).round().astype(int)
    regret = best[:, None] - mean  # (T, n), at single times
    worst = regret.max(axis=0)
    chosen = int(np.argmin(worst))
    return WorstCase(
        algorithm=posterior.algorithms[chosen],
        regret=float(worst[chosen]),
        at=float(posterior.times[int(np.argmax(regret[:, chosen]))]),
        reducible=max(
            float(regret.min(axis=1).max()),
            _largest_regret_of_mixtures(ratings[:, some], mean[some]),
        ),
        clock=posterior.clock,
    )


def _largest_regret_of_mixtures(ratings: Floats, mean: Floats) -> float:
    """Return the largest regret of who knows u, over mixtures of two times at which leaders tie.

    Where one algorithm leads in the mean, the regret is convex in u. So its maximum is at a single
    time, or where leaders tie. Mixtures of three and more times are not searched.
    """
    largest = 0.0
    for s, t in combinations(range(len(mean)), 2):
        slope = mean[t] - mean[s]
        leader = int(mean[s].argmax())
        while len(steeper := np.flatnonzero(slope > slope[leader])):
            share = (mean[s, leader] - mean[s, steeper]) / (slope[steeper] - slope[leader])
            leader, u = int(steeper[share.argmin()]), float(share.min())  # who leads from u on
            if u >= 1:
                break
            value = (1 - u) * ratings[:, s] + u * ratings[:, t]
            largest = max(largest, float(value.max(axis=1).mean() - value[:, leader].mean()))
    return largest
