"""The instances that a claim depends on: the fewest without which its e-value falls below K.

Instances are removed in the order of what each alone contributes to the e-value. A claim over all
times takes the minimum of e-values over times, so one time is enough. If each instance is won, tied
or lost as a whole, the set is then smallest. With repetitions or weights, the set is small, though
not always smallest. So it is for a claim about some time, which takes the mean of e-values.
"""

from typing import Literal

import numpy as np

from polarbear.data.rankings import Rankings
from polarbear.inference.dominance import Floats
from polarbear.inference.e_values import (
    count_by_instance,
    log_better,
    log_mean_over_times,
    log_par,
)

Claim = Literal["at par", "better somewhere"]
"""Not behind by more than epsilon at all times; ahead by more than epsilon at some time."""


def find_decisive_instances(
    rankings: Rankings, first: str, second: str, claim: Claim, log_k: float, epsilon: float
) -> tuple[str, ...]:
    """Return few instances without which a claim about a pair of algorithms would not be certain.

    ``log_k``: the logarithm of the e-value that makes it certain. Empty if it is not certain.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[9.0, 0.0]]), 12)
    >>> find_decisive_instances(rankings, "a1", "a2", "at par", np.log(20), 0.05)
    ('i1', 'i2', 'i3', 'i4', 'i5')
    """
    outcomes = count_by_instance(rankings, first, second)
    total = outcomes.sum(axis=2, keepdims=True)
    if _log_e(total, claim, epsilon).min() < log_k:
        return ()
    without_each = _log_e(total - outcomes, claim, epsilon, at_each_time=True)  # (T or 1, I)
    order = np.argsort(without_each, axis=1, kind="stable")
    removed = np.cumsum(np.take_along_axis(outcomes, order[None], axis=2), axis=2)
    falls = _log_e(total - removed, claim, epsilon, at_each_time=True) < log_k
    needed = np.where(falls.any(axis=1), falls.argmax(axis=1) + 1, falls.shape[1] + 1)
    row = int(np.argmin(needed))
    names = rankings.among([first, second]).instances
    return tuple(names[k] for k in sorted(order[row, : needed[row]].tolist()))


def _log_e(counts: Floats, claim: Claim, epsilon: float, *, at_each_time: bool = False) -> Floats:
    """Return the log e-value of a claim from wins, ties and losses (3, T, k), for each of k counts.

    With ``at_each_time``, a claim over all times keeps the axis of times (T, k); a claim about some
    time has one row.
    """
    wins, ties, losses = np.maximum(counts, 0.0)
    if claim == "at par":
        log_e = log_par(wins, ties, losses, epsilon)
        return log_e if at_each_time else log_e.min(axis=0)
    mean = log_mean_over_times(log_better(wins, ties, losses, epsilon))
    return mean[None] if at_each_time else mean
