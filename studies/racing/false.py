"""How often a member of the Pareto set is eliminated: short races of many kinds, a thousand each.

Utilities are drawn from the prior of the paper's synthetic examples. Luck is new at each time
(persistence 0), lasts for half the range, or for a whole run.
"""

from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from cells import Cell, seeded

from course import arms, course, grid, raced, remembered, rules_of
from polarbear.simulation import PAPER_PRIOR, draw_truth

PERSISTENCE, ALPHA = (0.0, 0.5, np.inf), (0.95, 0.99)
INSTANCES = {5: 96, 20: 32}
"""By the number of algorithms. Whoever is lost is mostly lost early, when little is known."""

TIMES = 5
DRAWS = 2000
"""Of a posterior: fewer take longer, for their weights fail more often and draws must be moved."""

EVIDENCE = (("corrected", "instances", 1), ("uncorrected", "rankings", 5))
"""What counts as evidence: instances, or every ranking as in the paper; one in how many races."""


def measure(
    n: int,
    persistence: float,
    certainty: float,
    evidence: str,
    instances: int,
    more: Mapping[str, Any],
    number: int,
) -> dict[str, Any]:
    rng = seeded("false", n, persistence, number)  # the same truths and runs whatever certainty is
    truth, _ = draw_truth(PAPER_PRIOR, grid(TIMES), n, rng)
    on = course(truth, instances, rng, persistence)
    rules = rules_of({"certainty": certainty}, more)
    found = raced(on, rules, remembered(evidence, DRAWS), number)
    del found["time"]
    return found


def cells(quick: bool, races: int, more: Mapping[str, Any]) -> list[Cell]:
    found = []
    for n, persistence in [(5, 0.5)] if quick else product(INSTANCES, PERSISTENCE):
        instances = 16 if quick else INSTANCES[n]
        named, wanted = {}, []
        for said, evidence, share in EVIDENCE:
            for certainty in ALPHA:
                arm = partial(measure, n, persistence, certainty, evidence, instances, more)
                named[f"{said}, certainty {certainty}"] = arm
                wanted.append(2 if quick else races // share)
        found.append(Cell("false", f"n{n}-L{persistence:g}", *arms(named, wanted, more)))
    return found
