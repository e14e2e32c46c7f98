"""The three synthetic examples of the paper (section 5.1): truths of their kinds.

The paper shows one truth of each kind and says what it looks like. Here truths are drawn from the
prior that the paper draws them from, until one looks so.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.errors import DataError
from polarbear.simulation.truth import PAPER_PRIOR, Floats, draw_truth

EPSILON = 0.05
"""The paper's margin within which two algorithms are equivalent."""


class PaperExample(NamedTuple):
    """The number of algorithms and of times of an example, and whether a truth looks like it."""

    n: int
    n_times: int
    looks_so: Callable[[Floats], bool]


def draw_paper_example(name: str, seed: int | np.random.Generator = 0) -> Floats:
    """Draw log-utilities (times, algorithms) that look like an example of the paper.

    "crossing": two members, of which one leads the other for one stretch inside, by a little.
    "winner": one of ten dominates all others, and the closest comes closest at the end. "near":
    four members of ten; two others are dominated, but nearly equal to who dominates them at some
    time.

    >>> truth = draw_paper_example("winner", seed=1)
    >>> truth.shape, int(find_members(truth).sum())
    ((100, 10), 1)
    """
    if name not in PAPER_EXAMPLES:
        raise DataError(f"expected one of {', '.join(PAPER_EXAMPLES)}", name=name)
    example, rng = PAPER_EXAMPLES[name], np.random.default_rng(seed)
    # From 0.02, for from a factor of 100 on the prior would take logarithms of time.
    times = np.linspace(0.02, 1.0, example.n_times)
    while True:
        truth, _ = draw_truth(PAPER_PRIOR, times, example.n, rng)
        if example.looks_so(truth):
            return truth


def find_members(truth: Floats) -> NDArray[np.bool_]:
    """Return which algorithms of a truth (times, algorithms) are in the anytime Pareto set.

    >>> find_members(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, -1.0]]))
    array([ True,  True, False])
    """
    return ~np.any(np.all(truth[:, :, None] > truth[:, None, :], axis=0), axis=0)


def _win_probabilities(truth: Floats) -> Floats:
    """Return the probability (T, n, n) that the row is ahead of the column on an instance."""
    return 1 / (1 + np.exp(truth[:, None, :] - truth[:, :, None]))


def _is_crossing(truth: Floats) -> bool:
    """Two members, and one of them dominates all the others clearly.

    The other one is ahead of it for one stretch inside, by a little, but not so little that both
    were practically the same.
    """
    best = np.flatnonzero(find_members(truth))
    if len(best) != 2:
        return False
    win = _win_probabilities(truth)
    others = np.setdiff1d(np.arange(truth.shape[1]), best)
    for a, b in (best, best[::-1]):
        ahead = win[:, b, a] > 0.5
        n_stretches = int(np.sum(np.diff(ahead.astype(int)) == 1))
        is_inside = not ahead[0] and not ahead[-1] and n_stretches == 1
        is_little = 0.5 + EPSILON < win[:, b, a].max() < 0.5 + 2 * EPSILON
        if is_inside and is_little and win[:, a][:, others].min() > 0.5 + EPSILON:
            return True
    return False


def _has_winner(truth: Floats) -> bool:
    """One dominates all the others clearly, and the closest comes closest at the end."""
    best = np.flatnonzero(find_members(truth))
    if len(best) != 1:
        return False
    lead = np.delete(_win_probabilities(truth)[:, best[0]], best[0], axis=1)
    when, _ = np.unravel_index(np.argmin(lead), lead.shape)
    return bool(0.5 + EPSILON < lead.min() < 0.5 + 3 * EPSILON and when >= 0.9 * len(truth))


def _is_near(truth: Floats) -> bool:
    """Four members; two others are practically the same as who dominates them, at some time."""
    members = find_members(truth)
    if members.sum() != 4:
        return False
    lead = _win_probabilities(truth).min(axis=0)
    lead = np.where(members[:, None], lead, 0.0).max(axis=0)
    return int(np.sum((lead > 0.5) & (lead < 0.5 + EPSILON))) == 2


PAPER_EXAMPLES: Mapping[str, PaperExample] = {
    "crossing": PaperExample(5, 20, _is_crossing),
    "winner": PaperExample(10, 100, _has_winner),
    "near": PaperExample(10, 50, _is_near),
}
