"""How often a member of the Pareto set is eliminated: short races of many kinds, a thousand each.

Utilities are drawn from the prior of the paper's synthetic examples. Luck is new at each time
(persistence 0), lasts for half the range, or for a whole run.
"""

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from racing.cells import Cell, seeded
from racing.course import arms, course, grid, methods_of, raced

from polarbear.simulation import PAPER_PRIOR, draw_truth

PERSISTENCE, CERTAINTIES = (0.0, 0.5, np.inf), (0.95, 0.99)
INSTANCES = {5: 96, 20: 32}
"""By the number of algorithms. Members are mostly lost early, when little is known."""

TIMES = 5
METHODS = ("default", "paper")


def measure(
    n: int,
    persistence: float,
    certainty: float,
    method: str,
    instances: int,
    more: Mapping[str, Any],
    number: int,
) -> dict[str, Any]:
    rng = seeded("false", n, persistence, number)  # the same truths and runs whatever certainty is
    truth, _ = draw_truth(PAPER_PRIOR, grid(TIMES), n, rng)
    on = course(truth, instances, rng, persistence)
    chosen = methods_of(certainty)[method]
    found = raced(on, chosen.change(more), number)
    del found["time"]
    return found


def cells(quick: bool, races: int, more: Mapping[str, Any]) -> list[Cell]:
    found = []
    for n, persistence in [(5, 0.5)] if quick else product(INSTANCES, PERSISTENCE):
        instances = 16 if quick else INSTANCES[n]
        named = {
            f"{method}, certainty {certainty}": partial(
                measure, n, persistence, certainty, method, instances, more
            )
            for method, certainty in product(METHODS, CERTAINTIES)
        }
        races = 2 if quick else races
        found.append(Cell("false", f"n{n}-L{persistence:g}", *arms(named, races, more)))
    return found
