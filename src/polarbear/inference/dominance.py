"""Who is ahead of whom: dominance, equivalence, crossing and what follows, on plain arrays.

``ahead`` (T, n, n) is P(row ahead of column) at each time, ``alike`` (T, n, n) the probability that
the two are practically the same there, ``everywhere`` (n, n) P(row ahead of column at all times).
The definitions are those of the paper, sections 4.1 and 4.2.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polarbear.inference.draws import iterate_times

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Elimination = Literal["joint", "pointwise"]
Resolution = Literal["strict", "crossing", "at_par"]

AT_ONCE = 4_000_000


def margin(epsilon: float) -> float:
    """By how much log-utilities may differ for win probabilities within epsilon of one half.

    >>> round(margin(0.05), 4)
    0.2007
    """
    return float(np.log((0.5 + epsilon) / (0.5 - epsilon)))


def everywhere(lead: NDArray[Any], ahead: Floats, *, count: bool) -> Floats:
    """P(ahead at all times) of pairs, from leads (D, T, pairs) and P(ahead) at times (T, pairs).

    The leads say how times go together, ``ahead`` how likely each is: a draw counts as ahead at a
    time if it is above the share of draws that are not. To ``count`` takes the leads as they are.
    It is never more likely than to be ahead at the worst time, and never less likely than what is
    left when the times at which it is not so never come together.
    """
    return _together(iterate_times(lead), ahead, count)


def _together(leads: Iterable[NDArray[Any]], ahead: Floats, count: bool) -> Floats:
    """The same from leads (pairs, D) at one time after the other."""
    won: Any = True
    for lead, at in zip(leads, ahead, strict=True):
        won = won & (lead > (0.0 if count else _edge(lead, at)[:, None]))
    # What never happened in so many draws may still happen, unless the times rule it out.
    counted = np.minimum(won.mean(axis=1), 1 - 0.5 / won.shape[1])
    return np.maximum(np.minimum(counted, ahead.min(axis=0)), 1 - (1 - ahead).sum(axis=0))


def _edge(lead: NDArray[Any], ahead: Floats) -> Floats:
    """The lead above which the share of draws (pairs, D) is as likely as to be ahead."""
    behind = np.round((1 - ahead) * lead.shape[1]).astype(np.intp)
    edge = np.full(len(lead), -np.inf)
    some = np.flatnonzero(behind > 0)
    edge[some] = np.sort(lead[some], axis=1)[np.arange(len(some)), behind[some] - 1]
    return edge


def everywhere_matrix(utilities: NDArray[Any], ahead: Floats, *, count: bool) -> Floats:
    """P(row ahead of column at all times), with 0 on the diagonal, from draws (D, T, n)."""
    draws, n_times, n = utilities.shape
    row, column = np.nonzero(~np.eye(n, dtype=bool))
    found = np.zeros((n, n))
    # Whoever is likely behind at some time cannot be ahead at all: most pairs need no counting.
    least = ahead[:, row, column].min(axis=0)
    found[row, column] = least if n_times == 1 else 0.0
    wanted = np.flatnonzero(least > 1e-3) if n_times > 1 else np.empty(0, dtype=np.intp)
    curves = list(iterate_times(utilities)) if len(wanted) else []
    step = max(1, AT_ONCE // (8 * draws))
    for k in range(0, len(wanted), step):
        a, b = row[wanted[k : k + step]], column[wanted[k : k + step]]
        leads = (at[a] - at[b] for at in curves)
        found[a, b] = _together(leads, ahead[:, a, b], count)
    return found


def dominates(
    ahead: Floats, everywhere: Floats, alpha: float, elimination: Elimination = "joint"
) -> Bools:
    """Whether row dominates column with certainty alpha: at all times at once, or at each time."""
    if elimination == "joint":
        return everywhere >= alpha
    found: Bools = np.all(ahead >= alpha, axis=0)
    return found & ~np.eye(len(found), dtype=bool)


def crosses(ahead: Floats, alike: Floats, alpha: float) -> Bools:
    """Whether two are certain to change places: each leads or ties somewhere, one of them leads."""
    leads, ties = ahead >= alpha, alike >= alpha
    somewhere, at_par = np.any(leads, axis=0), np.any(leads | ties, axis=0)
    found: Bools = (somewhere & at_par.T) | (somewhere.T & at_par)
    return found & ~np.eye(len(found), dtype=bool)


def at_par(ahead: Floats, alike: Floats, alpha: float) -> Bools:
    """Whether each algorithm of a pair is certain to lead or to tie at some time: (n, n).

    Then neither dominates the other by more than epsilon. Unlike :func:`crosses` (paper, eq. 31)
    this asks for no strict lead, so that equal algorithms are settled as well.
    """
    holds = np.any((ahead >= alpha) | (alike >= alpha), axis=0)
    both: Bools = holds & holds.T
    return both & ~np.eye(len(both), dtype=bool)


def eliminate(beats: Bools, certainty: Floats) -> Bools:
    """Which algorithms are eliminated (n,), if ``beats`` says whether row dominates column.

    Algorithm 1 of the paper takes the candidates one after the other, and only a candidate that is
    still there eliminates another. The order here: an algorithm goes before those that dominate it,
    and where they dominate each other in a circle, the most certainly dominated one goes first.

    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> eliminate(chain, chain.astype(float))
    array([False,  True,  True])
    """
    candidate = np.ones(len(beats), dtype=bool)
    while True:
        among = beats & candidate[:, None] & candidate
        dominated: Bools = np.any(among, axis=0)
        if not dominated.any():
            return ~candidate
        dominators = np.any(among[:, dominated], axis=1)
        first: Bools = np.logical_and(dominated, ~dominators)
        if not first.any():
            surest = np.where(among, certainty, -1.0).max(axis=0)
            first[np.argmax(surest)] = True
        candidate &= ~first


def crossings(
    ahead: Floats, lead: NDArray[Any], alpha: float, *, product: bool
) -> Iterator[tuple[int, int, bool, float]]:
    """Where the lead of a pair changes hands: the last certain time before, the first one after.

    With whether the pair's first one leads after, and P(both). From P(ahead) at each time (T,) and
    leads (D, T); ``product``: times are independent.
    """
    certain = np.flatnonzero((ahead >= alpha) | (1 - ahead >= alpha))
    for s, t in pairwise(certain.tolist()):
        up = bool(ahead[t] >= alpha)
        if up == (ahead[s] >= alpha):
            continue
        before, after = (1 - ahead[s], ahead[t]) if up else (ahead[s], 1 - ahead[t])
        sign = 1 if up else -1
        counted = np.mean((sign * lead[:, s] < 0) & (sign * lead[:, t] > 0))
        both = before * after if product else min(float(counted), before, after)
        yield s, t, up, float(both)


def resolved(
    ahead: Floats,
    alike: Floats,
    alpha: float,
    *,
    resolution: Resolution = "crossing",
    eliminated: Bools | None = None,
) -> Bools:
    """Whether a pair is resolved at each time: (T, n, n), true on the diagonal.

    "strict" is eq. 30 of the paper, "crossing" eq. 31; "at_par" is :func:`at_par`.
    """
    found = (ahead >= alpha) | (ahead.swapaxes(1, 2) >= alpha) | (alike >= alpha)
    if resolution == "crossing":
        found = found | crosses(ahead, alike, alpha)
    elif resolution == "at_par":
        found = found | at_par(ahead, alike, alpha)
    if eliminated is not None:
        found = found | eliminated[:, None] | eliminated[None, :]
    return found | np.eye(ahead.shape[1], dtype=bool)


def open_times(
    ahead: Floats, alike: Floats, beats: Bools, alpha: float, resolution: Resolution = "at_par"
) -> Bools:
    """At which times each pair is open: (T, n, n).

    A pair is open where it is not :func:`resolved`. A pair in which one algorithm leads at each
    time with certainty, but does not dominate (``beats``), is open as well: at the times that are
    above the Bonferroni bound of joint dominance.
    """
    open_ = ~resolved(ahead, alike, alpha, resolution=resolution)
    pending = np.all(ahead >= alpha, axis=0) & ~beats & ~np.any(alike >= alpha, axis=0)
    if not pending.any():
        return open_
    # With error (1 - alpha) / T at each time, the joint error is at most 1 - alpha.
    short = 1 - ahead > (1 - alpha) / len(ahead)
    least = np.arange(len(ahead))[:, None, None] == np.argmin(ahead, axis=0)
    at = np.where(short.any(axis=0), short, least) & pending
    return open_ | at | at.swapaxes(1, 2)


def not_dominated(utilities: NDArray[Any], ahead: Floats) -> Bools:
    """Whether, in each draw (D, T, n), no algorithm is ahead of another at all times: (D, n).

    Pairs that P(ahead) at the least likely time all but rules out are not counted.
    """
    draws, _, n = utilities.shape
    free = np.ones((n, draws), dtype=bool)
    least = ahead.min(axis=0)
    np.fill_diagonal(least, 0.0)
    by, of = np.nonzero(least > 0.5 / draws)
    curves = list(iterate_times(utilities)) if len(by) else []
    step = max(1, AT_ONCE // draws)
    for k in range(0, len(by), step):
        a, b = by[k : k + step], of[k : k + step]
        dominates = np.ones((len(a), draws), dtype=bool)
        for at in curves:
            dominates &= at[a] > at[b]
        for row, column in zip(dominates, b.tolist(), strict=True):
            free[column] &= ~row
    return free.T
