"""Who is ahead of whom: dominance, equivalence, crossing and what follows, on plain arrays.

``ahead`` (T, n, n) is P(row ahead of column) at each time, ``alike`` (T, n, n) the probability that
the two are practically the same there, ``everywhere`` (n, n) P(row ahead of column at all times).
The definitions are those of the paper, sections 3.5 and 3.6.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polarbear.draws import by_time

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Elimination = Literal["joint", "pointwise"]
Resolution = Literal["strict", "crossing"]

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
    return _together(by_time(lead), ahead, count)


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
    curves = list(by_time(utilities)) if len(wanted) else []
    step = max(1, AT_ONCE // (8 * draws))
    for k in range(0, len(wanted), step):
        a, b = row[wanted[k : k + step]], column[wanted[k : k + step]]
        leads = (at[a] - at[b] for at in curves)
        found[a, b] = _together(leads, ahead[:, a, b], count)
    return found


def sequential(alpha: float, n: int, instances: int) -> float:
    """The certainty to ask for at each look, if one looks again and again as instances come in.

    The error 1 - alpha is shared: equally among who may dominate whom, and in parts of 1/2, 1/6,
    1/12, ... among looks at 8 to 15 instances, at 16 to 31 and so on; half of it is kept for the
    looks between doublings. Then, however often one looks, the chance to ever leave out anybody
    wrongly is about 1 - alpha at most, if a single look errs as often as it says.

    >>> round(sequential(0.95, n=5, instances=20), 4)
    0.9998
    """
    claims = max(1, n * (n - 1))
    epoch = 1 + max(0, int(np.log2(max(instances, 1) / 8)))
    return 1 - (1 - alpha) / (2 * claims * epoch * (epoch + 1))


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
    """Whether a pair needs no more looking at, at each time: (T, n, n), true on the diagonal."""
    found = (ahead >= alpha) | (ahead.swapaxes(1, 2) >= alpha) | (alike >= alpha)
    if resolution == "crossing":
        found = found | crosses(ahead, alike, alpha)
    if eliminated is not None:
        found = found | eliminated[:, None] | eliminated[None, :]
    return found | np.eye(ahead.shape[1], dtype=bool)


def not_dominated(utilities: NDArray[Any]) -> Bools:
    """Whether, in each draw (D, T, n), nobody is ahead of an algorithm at all times: (D, n)."""
    draws, n_times, n = utilities.shape
    free = np.empty((draws, n), dtype=bool)
    step = max(1, AT_ONCE // (n * n))
    for k in range(0, draws, step):
        some = utilities[k : k + step]
        beaten = np.ones((len(some), n, n), dtype=bool)
        for t in range(n_times):
            beaten &= some[:, t, :, None] < some[:, t, None, :]
        free[k : k + step] = ~beaten.any(axis=2)
    return free
