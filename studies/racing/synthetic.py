"""The paper's three synthetic examples (paper, 5.1): truths of their kinds, many of each.

The paper shows one truth of each kind and says what it looks like. Here truths are drawn from the
prior that the paper draws them from until they look so; runs are rankings that are new at each
time (persistence 0), as the paper's are.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from racing.cells import Cell, seeded
from racing.course import Floats, arms, course, grid, members, methods_of, raced, wins

from polarbear.priors import GP, HSGP, SparseGP
from polarbear.simulation import PAPER_PRIOR, draw_truth

EPSILON = 0.05
CERTAINTY = 0.99
METHODS = tuple(methods_of(CERTAINTY))
INSTANCES = 6000
"""A race that is not settled by then ends undecided."""


def crossing(truth: Floats) -> bool:
    """Two members, and one of them dominates all the others clearly.

    The other one is ahead of it for one stretch inside, by a little, but not so little that both
    were practically the same.
    """
    best = np.flatnonzero(members(truth))
    if len(best) != 2:
        return False
    win = wins(truth)
    others = np.setdiff1d(np.arange(truth.shape[1]), best)
    for a, b in (best, best[::-1]):
        ahead = win[:, b, a] > 0.5
        stretches = int(np.sum(np.diff(ahead.astype(int)) == 1))
        inside = not ahead[0] and not ahead[-1] and stretches == 1
        little = 0.5 + EPSILON < win[:, b, a].max() < 0.5 + 2 * EPSILON
        if inside and little and win[:, a][:, others].min() > 0.5 + EPSILON:
            return True
    return False


def winner(truth: Floats) -> bool:
    """One dominates all the others clearly, and the closest comes closest at the end."""
    best = np.flatnonzero(members(truth))
    if len(best) != 1:
        return False
    lead = np.delete(wins(truth)[:, best[0]], best[0], axis=1)
    when, _ = np.unravel_index(np.argmin(lead), lead.shape)
    return bool(0.5 + EPSILON < lead.min() < 0.5 + 3 * EPSILON and when >= 0.9 * len(truth))


def near(truth: Floats) -> bool:
    """Four members; two others are dominated, but come close to who dominates them.

    They are then practically the same at some time. The rest is dominated clearly.
    """
    if members(truth).sum() != 4:
        return False
    lead = np.where(members(truth)[:, None], wins(truth).min(axis=0), 0.0).max(axis=0)
    return int(np.sum((lead > 0.5) & (lead < 0.5 + EPSILON))) == 2


class Example(NamedTuple):
    n: int
    n_times: int
    looks_so: Callable[[Floats], bool]
    prior: Any
    paper: int
    """How many instances the paper's race took."""


EXAMPLES = {
    "crossing": Example(5, 20, crossing, GP(), 328),
    "winner": Example(10, 100, winner, HSGP(), 32),
    "near": Example(10, 50, near, SparseGP(inducing=10), 280),
}


def truth_of(name: str, number: int) -> Floats:
    example, rng = EXAMPLES[name], seeded("synthetic", name, number)
    while True:
        truth, _ = draw_truth(PAPER_PRIOR, grid(example.n_times), example.n, rng)
        if example.looks_so(truth):
            return truth


def measure(
    name: str, method: str, instances: int, changes: Mapping[str, Any], number: int
) -> dict[str, Any]:
    on = course(truth_of(name, number), instances, seeded("runs", name, number))
    chosen = methods_of(CERTAINTY, EXAMPLES[name].prior)[method]
    return raced(on, chosen.change(changes), number)


def cells(quick: bool, races: int, more: Mapping[str, Any]) -> list[Cell]:
    found = []
    for name in ("crossing",) if quick else EXAMPLES:
        methods = ("default",) if quick else METHODS
        instances = 32 if quick else INSTANCES
        named = {one: partial(measure, name, one, instances, more) for one in methods}
        found.append(Cell("synthetic", name, *arms(named, 1 if quick else races, more)))
    return found
