"""The paper's three synthetic examples (paper, 5.1): truths of their kinds, many of each.

The paper shows one truth of each kind and says what it looks like. Here truths are drawn from the
prior that the paper draws them from until they look so. The luck of a run is new at each time
(L = 0), as the paper's is, or the same at all times (L = inf). No race knows its end.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from racing.cells import Cell, seeded
from racing.course import Floats, arms, course, methods_of, raced

from polarbear.priors import GP, HSGP, SparseGP
from polarbear.simulation import draw_paper_example

CERTAINTY = 0.95
METHODS = tuple(methods_of(CERTAINTY))
INSTANCES = 3000
"""A race that is not settled by then ends undecided."""


class Example(NamedTuple):
    prior: Any
    paper: int
    """How many instances the paper's race took."""


EXAMPLES = {
    "crossing": Example(GP(), 328),
    "winner": Example(HSGP(), 32),
    "near": Example(SparseGP(inducing=10), 280),
}


def truth_of(name: str, number: int) -> Floats:
    return draw_paper_example(name, seeded("synthetic", name, number))


def measure(
    name: str, persistence: float, method: str, n: int, more: Mapping[str, Any], number: int
) -> dict[str, Any]:
    on = course(truth_of(name, number), n, seeded("runs", name, number), persistence)
    chosen = methods_of(CERTAINTY, EXAMPLES[name].prior)[method]
    return raced(on, chosen.change(more), number, endless=True)


def cells(quick: bool, races: int, more: Mapping[str, Any]) -> list[Cell]:
    found = []
    for name in ("crossing",) if quick else EXAMPLES:
        for persistence in (0.0,) if quick else (0.0, np.inf):
            methods = METHODS[:1] if quick else METHODS
            n = 32 if quick else INSTANCES
            named = {one: partial(measure, name, persistence, one, n, more) for one in methods}
            wanted = [races if one == "default" else max(1, races // 5) for one in methods]
            label = f"{name}-L{persistence:g}"
            found.append(Cell("synthetic", label, *arms(named, [1] if quick else wanted, more)))
    return found
