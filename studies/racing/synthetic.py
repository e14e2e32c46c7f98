"""The paper's three synthetic examples (paper, 5.1): truths of their kinds, many of each.

The paper shows one truth of each kind and says what it looks like. Here truths are drawn from the
prior that the paper draws them from until they look so; runs are rankings that are new at each
time (persistence 0), as the paper's are.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from racing.cells import Cell, seeded
from racing.course import Floats, arms, course, methods_of, raced

from polarbear.priors import GP, HSGP, SparseGP
from polarbear.simulation import draw_paper_example

EPSILON = 0.05
CERTAINTY = 0.99
METHODS = tuple(methods_of(CERTAINTY))
INSTANCES = 6000
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
