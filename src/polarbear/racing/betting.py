"""Elimination that no number of looks can spoil: e-values of who beats whom.

Bet against "a is not ahead of b at time t": on every instance stake a share of what you have on a
beating b. If the claim is true (a wins at most half of the instances on which one of them wins),
what you have, the *e-value*, ever grows beyond K with a probability of at most 1/K, whenever you
look and however long you go on (Ville's inequality). A mixture over all shares needs no tuning and
has a closed form.

To eliminate b one must be ahead of it at *all* times, so the smallest e-value over times counts,
and there is nothing to pay for the number of times nor for luck that persists over time. Any of the
others could be the one, so the error 1 - alpha is shared among them (:func:`stakes`), and a member
of the Pareto set is ever eliminated with a probability of at most 1 - alpha. That needs no model:
only instances that are drawn independently, and "ahead" means to win more often than not.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import betainc, betaln

from polarbear.data.rankings import UNKNOWN, Rankings
from polarbear.relations import AT_ONCE, Floats


def wins(rankings: Rankings) -> Floats:
    """On how many instances row was ahead of column, at each time: (T, n, n).

    Several comparisons on an instance share it. That can only make e-values smaller: what they
    bring on average is at least their geometric mean.
    """
    n = len(rankings.algorithms)
    found = np.zeros((len(rankings.times), n * n))
    size = np.diff(rankings.offset)
    for k in np.unique(size[size > 1]).tolist():
        of_size = np.flatnonzero(size == k)
        step = max(1, AT_ONCE // (k * k))
        for first in range(0, len(of_size), step):
            chosen = of_size[first : first + step]
            entry = rankings.offset[chosen][:, None] + np.arange(k)
            code = rankings.algorithm[entry].astype(np.intp)
            cell = (code[:, :, None] * n + code[:, None, :]).ravel()
            weight = rankings.weight[chosen][:, None, None]
            for t, row in enumerate(found):
                place = rankings.position[t][entry]
                ahead = (place[:, :, None] < place[:, None, :]) & (place[:, :, None] != UNKNOWN)
                row += np.bincount(cell, (weight * ahead).ravel(), minlength=n * n)
    return found.reshape(-1, n, n)


def log_e_values(won: Floats, lost: Floats) -> Floats:
    """Logarithm of the e-value against "wins at most half", after so many wins and losses.

    The shares that are staked are uniform between nothing and everything.

    >>> np.exp(log_e_values(np.array([1.0, 10.0]), np.array([0.0, 2.0]))).round(2)
    array([1.5 , 9.44])
    """
    with np.errstate(divide="ignore"):
        above_half = np.log(betainc(lost + 1, won + 1, 0.5))
    return (won + lost + 1) * np.log(2) + betaln(won + 1, lost + 1) + above_half


def stakes(alpha: float, entered: Sequence[int], initial: int) -> Floats:
    """Logarithm of the e-value that each algorithm needs to eliminate another one.

    ``entered`` is 0 for each of the ``initial`` ones, who share half of the error, and m for the
    m-th newcomer; newcomers get 1/2, 1/6, 1/12, ... of the other half, however many come.

    >>> np.exp(stakes(0.95, [0, 0, 1, 2], initial=2)).round(6)
    array([ 80.,  80.,  80., 240.])
    """
    order = np.asarray(entered, dtype=np.float64)
    share = np.where(order > 0, order * (order + 1), initial)
    return np.log(2 * share / (1 - alpha))
