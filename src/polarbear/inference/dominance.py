"""Dominance, equivalence and crossing of algorithms, on plain arrays of probabilities.

``ahead`` (T, n, n) is P(row ahead of column) at each time, ``alike`` (T, n, n) the probability that
the two are equivalent there, ``everywhere`` (n, n) P(row ahead of column at all times).
``certainty`` is the required probability. The definitions are those of the paper, 4.1 and 4.2.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polarbear.errors import DataError
from polarbear.inference.draws import find_distinct_times, iterate_times

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Elimination = Literal["joint", "pointwise"]
Resolution = Literal["strict", "crossing", "at_par"]

MAX_FULL_ALGORITHMS = 100
"""With more algorithms, rivals are compared surest first, and only in the draws still open."""

MAX_CELLS = 4_000_000
"""The most cells of an array that are processed at once, which bounds memory."""


def check_certainty(certainty: float) -> None:
    """Raise DataError for a certainty up to 1/2, where two algorithms could dominate each other."""
    if not (isinstance(certainty, Real) and 0.5 < certainty <= 1):
        raise DataError(
            "expected a probability between 0.5 and 1, such as 0.95", certainty=certainty
        )


def equivalence_margin(epsilon: float) -> float:
    """Return the difference of log-utilities at which the win probability is 1/2 + epsilon.

    >>> round(equivalence_margin(0.05), 4)
    0.2007
    """
    return float(np.log((0.5 + epsilon) / (0.5 - epsilon)))


def _prob_joint(leads: Iterable[NDArray[Any]], ahead: Floats) -> Floats:
    """Return P(ahead at all times) of each pair; ``leads`` yields (pairs, draws) for each time.

    The leads provide the dependence between times, ``ahead`` the probability at each time: a draw
    counts as ahead at a time if it lies above the quantile 1 - P(ahead) of the draws. The result
    lies between the Frechet bounds: at most the smallest P(ahead), and at least 1 - sum of
    (1 - P(ahead)) over times.
    """
    won: Any = True
    for lead, at_time in zip(leads, ahead, strict=True):
        won = won & (lead > _lead_quantile(lead, at_time)[:, None])
    # D draws cannot resolve probabilities above 1 - 0.5 / D, but the lower bound may.
    counted = np.minimum(won.mean(axis=1), 1 - 0.5 / won.shape[1])
    return np.maximum(np.minimum(counted, ahead.min(axis=0)), 1 - (1 - ahead).sum(axis=0))


def _lead_quantile(lead: NDArray[Any], ahead: Floats) -> Floats:
    """Return the quantile of each pair's leads (pairs, draws) at probability 1 - P(ahead)."""
    n_behind = np.round((1 - ahead) * lead.shape[1]).astype(np.intp)
    quantile = np.full(len(lead), -np.inf)
    some = np.flatnonzero(n_behind > 0)
    quantile[some] = np.sort(lead[some], axis=1)[np.arange(len(some)), n_behind[some] - 1]
    return quantile


def prob_ahead_everywhere_matrix(
    utilities: NDArray[Any], ahead: Floats, *, count: bool, least: float = 0.0
) -> Floats:
    """Return P(row ahead of column at all times), from draws (draws, times, algorithms).

    The diagonal is 0, and pairs whose probability is below ``least`` may be.
    """
    draws, n_times, n = utilities.shape
    row, column = np.nonzero(~np.eye(n, dtype=bool))
    probability = np.zeros((n, n))
    # An algorithm that is probably behind at some time cannot be ahead at all: few pairs count.
    smallest = ahead.min(axis=0)[row, column]
    probability[row, column] = smallest if n_times == 1 else 0.0
    is_likely = (smallest > 1e-3) & (smallest >= least) & (n_times > 1)
    likely = np.flatnonzero(is_likely)
    if len(likely):
        # Where the lower bound is above what draws can resolve, they need not be counted.
        bound = 1 - (1 - ahead[:, row[likely], column[likely]]).sum(axis=0)
        is_sure = bound >= 1 - 0.5 / draws
        probability[row[likely], column[likely]] = bound
        likely = likely[~is_sure]
    curves: list[NDArray[Any]] = []
    if len(likely):
        curves = _distinct_curves(utilities) if count else list(iterate_times(utilities))
    step = max(1, MAX_CELLS // (8 * draws))
    for k in range(0, len(likely), step):
        a, b = row[likely[k : k + step]], column[likely[k : k + step]]
        if count:
            probability[a, b] = _count_joint(curves, a, b, ahead[:, a, b])
        else:
            leads = (at_time[a] - at_time[b] for at_time in curves)
            probability[a, b] = _prob_joint(leads, ahead[:, a, b])
    return probability


def _count_joint(
    curves: list[NDArray[Any]], a: NDArray[np.intp], b: NDArray[np.intp], ahead: Floats
) -> Floats:
    """Return P(ahead at all times) of pairs (a, b) as :func:`_prob_joint` with ``count`` does."""
    won, rest = _joint_wins(curves, a, b)
    share = np.zeros(len(a))
    share[rest] = np.minimum(won.mean(axis=1), 1 - 0.5 / won.shape[1])
    return np.maximum(np.minimum(share, ahead.min(axis=0)), 1 - (1 - ahead).sum(axis=0))


def _distinct_curves(utilities: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the draws (algorithms, draws) of each time that differs from the one before."""
    distinct = find_distinct_times(utilities)
    if len(distinct) < utilities.shape[1]:
        utilities = utilities[:, distinct]
    return list(iterate_times(utilities))


def _joint_wins(
    curves: list[NDArray[Any]], a: NDArray[np.intp], b: NDArray[np.intp]
) -> tuple[Bools, NDArray[np.intp]]:
    """Return a mask (pairs, draws): true where a is ahead of b at all times; and the pairs in it.

    Pairs that are ahead at all times in no draw are left out as soon as that is known. Times far
    from each other come first, as curves of neighbouring times say nearly the same.
    """
    rest = np.arange(len(a))
    won = np.ones((len(a), curves[0].shape[1]), dtype=bool)
    stride = len(curves)
    order: list[int] = []
    while stride:
        order += [t for t in range(0, len(curves), stride) if t not in order]
        stride //= 2
    for k, t in enumerate(order):
        won &= curves[t][a[rest]] > curves[t][b[rest]]
        if k % 4 == 3:
            some = won.any(axis=1)
            if not some.all():
                won, rest = won[some], rest[some]
    return won, rest


def dominates(
    ahead: Floats, everywhere: Floats, certainty: float, elimination: Elimination = "joint"
) -> Bools:
    """Return a matrix: true where row dominates column, jointly or pointwise over times."""
    if elimination == "joint":
        return everywhere >= certainty
    at_each_time: Bools = np.all(ahead >= certainty, axis=0)
    return at_each_time & ~np.eye(len(at_each_time), dtype=bool)


def crosses(ahead: Floats, alike: Floats, certainty: float) -> Bools:
    """Return a matrix of pairs that cross: each leads or ties at some time, and at least one leads.

    Eq. 31 of the paper.
    """
    leads, ties = ahead >= certainty, alike >= certainty
    somewhere, at_par = np.any(leads, axis=0), np.any(leads | ties, axis=0)
    crossing: Bools = (somewhere & at_par.T) | (somewhere.T & at_par)
    return crossing & ~np.eye(len(crossing), dtype=bool)


def are_at_par(ahead: Floats, alike: Floats, certainty: float) -> Bools:
    """Return a matrix of pairs in which each algorithm certainly leads or ties at some time.

    Then neither dominates the other by more than epsilon. Unlike :func:`crosses` this needs no
    strict lead, so that equal algorithms are settled as well.
    """
    holds = np.any((ahead >= certainty) | (alike >= certainty), axis=0)
    both: Bools = holds & holds.T
    return both & ~np.eye(len(both), dtype=bool)


def eliminate(beats: Bools, certainty: Floats) -> Bools:
    """Return a mask of eliminated algorithms, given a matrix of whether row dominates column.

    Algorithm 1 of the paper takes candidates one by one, and only a remaining candidate eliminates
    another. Here an algorithm is eliminated before those that dominate it. Where algorithms
    dominate each other in a cycle, the most certainly dominated one goes first.

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


def find_lead_changes(
    ahead: Floats, lead: NDArray[Any], certainty: float, *, product: bool
) -> Iterator[tuple[int, int, bool, float]]:
    """Yield each certain change of the lead between two algorithms, from P(ahead) and draws.

    Each is the index of the last certain time before, that of the first certain time after, whether
    the pair's first algorithm leads afterwards, and P(both leads). With ``product`` times are
    independent.
    """
    certain = np.flatnonzero((ahead >= certainty) | (1 - ahead >= certainty))
    for s, t in pairwise(certain.tolist()):
        up = bool(ahead[t] >= certainty)
        if up == (ahead[s] >= certainty):
            continue
        low, high = (s, t) if up else (t, s)  # when the first of the pair is behind, and ahead
        behind, leads = 1 - ahead[low], ahead[high]
        counted = np.mean((lead[:, low] < 0) & (lead[:, high] > 0))
        both = behind * leads if product else min(float(counted), behind, leads)
        yield s, t, up, float(both)


def is_resolved(
    ahead: Floats,
    alike: Floats,
    certainty: float,
    *,
    resolution: Resolution = "crossing",
    eliminated: Bools | None = None,
) -> Bools:
    """Return a mask (times, row, column) of pairs whose relation is certain; true on the diagonal.

    "strict" is eq. 30 of the paper, "crossing" eq. 31; "at_par" is :func:`are_at_par`.
    """
    resolved = (ahead >= certainty) | (ahead.swapaxes(1, 2) >= certainty) | (alike >= certainty)
    if resolution == "crossing":
        resolved = resolved | crosses(ahead, alike, certainty)
    elif resolution == "at_par":
        resolved = resolved | are_at_par(ahead, alike, certainty)
    if eliminated is not None:
        resolved = resolved | eliminated[:, None] | eliminated[None, :]
    return resolved | np.eye(ahead.shape[1], dtype=bool)


def find_open_times(
    ahead: Floats, alike: Floats, beats: Bools, certainty: float, resolution: Resolution = "at_par"
) -> Bools:
    """Return a mask (times, row, column) of the times at which each pair is undecided.

    A pair is open where it is not resolved (:func:`is_resolved`). A pair in which one algorithm
    leads at each time with certainty, but does not dominate (``beats``), is open as well: at the
    times whose error exceeds the Bonferroni bound of joint dominance.
    """
    open_ = ~is_resolved(ahead, alike, certainty, resolution=resolution)
    pending = np.all(ahead >= certainty, axis=0) & ~beats & ~np.any(alike >= certainty, axis=0)
    if not pending.any():
        return open_
    # Bonferroni: with error (1 - certainty) / T at each time, the joint error is at most
    # 1 - certainty.
    short = 1 - ahead > (1 - certainty) / len(ahead)
    least = np.arange(len(ahead))[:, None, None] == np.argmin(ahead, axis=0)
    open_time = np.where(short.any(axis=0), short, least) & pending
    return open_ | open_time | open_time.swapaxes(1, 2)


def is_undominated_in_draws(utilities: NDArray[Any], ahead: Floats) -> Bools:
    """Return a mask (draws, algorithms): true where no rival is ahead at all times in the draw.

    Pairs whose smallest P(ahead) over time is below half of 1 / D are not counted.
    """
    draws, _, n = utilities.shape
    undominated = np.ones((n, draws), dtype=bool)
    least, curves = ahead.min(axis=0), _distinct_curves(utilities)
    if n > MAX_FULL_ALGORITHMS:
        _count_undominated(undominated, curves, least)
        return undominated.T
    row, column = np.nonzero(least > 0.5 / draws)
    step = max(1, MAX_CELLS // draws)
    for k in range(0, len(row), step):
        a, b = row[k : k + step], column[k : k + step]
        is_ahead, rest = _joint_wins(curves, a, b)
        for dominated, j in zip(is_ahead, b[rest].tolist(), strict=True):
            undominated[j] &= ~dominated
    return undominated.T


def _count_undominated(undominated: Bools, curves: list[NDArray[Any]], least: Floats) -> None:
    """Set a mask (algorithms, draws) to false where a rival is ahead at all times in the draw.

    Rivals come surest first, and only draws in which none was ahead yet are compared.
    """
    draws = undominated.shape[1]
    stacked = np.stack(curves)  # (times, algorithms, draws)
    for j, mask in enumerate(undominated):
        rivals = np.flatnonzero(least[:, j] > 0.5 / draws)
        rivals = rivals[np.argsort(-least[rivals, j], kind="stable")]
        open_draws = np.arange(draws)
        for start in range(0, len(rivals), 8):
            some = rivals[start : start + 8]
            own = stacked[:, j, open_draws]
            ahead = np.all(stacked[:, some[:, None], open_draws] > own[:, None], axis=0).any(axis=0)
            mask[open_draws[ahead]] = False
            open_draws = open_draws[~ahead]
            if not len(open_draws):
                break
