"""How often a member of the Pareto set is eliminated: short races of many kinds, a thousand each.

Utilities are drawn from the prior of the paper's synthetic examples. Luck is new at each time
(persistence 0), lasts for half the range, or for a whole run.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from cells import Cell, seeded
from course import arms, believing, course, grid, raced, rules_of

from polarbear.testing import PAPER, draw_truth

PERSISTENCE, ALPHA = (0.0, 0.5, np.inf), (0.95, 0.99)
INSTANCES = {5: 96, 20: 40}
"""By the number of algorithms. Whoever is lost is mostly lost early, when little is known."""

TIMES = 5
DRAWS = 2000
"""Of a posterior: fewer take longer, for their weights fail more often and draws must be moved."""

UNCORRECTED_SHARE = 5
"""One in so many races is also run with every ranking as evidence, as in the paper."""


def measure(
    n: int,
    persistence: float,
    alpha: float,
    evidence: str,
    instances: int,
    more: Mapping[str, Any],
    number: int,
) -> dict[str, Any]:
    rng = seeded("false", n, persistence, number)  # the same truths and runs whatever alpha is
    truth, _ = draw_truth(PAPER, grid(TIMES), n, rng)
    on = course(truth, instances, rng, persistence)
    rules = rules_of({"alpha": alpha}, more)
    found = raced(on, rules, believing(evidence=evidence, draws=DRAWS), number)
    del found["time"]
    return found


def cells(quick: bool, races: int, more: Mapping[str, Any]) -> list[Cell]:
    found = []
    wanted = (2, 2) if quick else (races, races // UNCORRECTED_SHARE)
    kinds = [(n, p, a) for n in INSTANCES for p in PERSISTENCE for a in ALPHA]
    for n, persistence, alpha in [(5, 0.5, 0.95)] if quick else kinds:
        instances = 16 if quick else INSTANCES[n]
        named = {
            said: partial(measure, n, persistence, alpha, evidence, instances, more)
            for said, evidence in (("corrected", "instances"), ("uncorrected", "rankings"))
        }
        name = f"n{n}-L{persistence:g}-a{alpha}"
        found.append(Cell("false", name, *arms(named, wanted, more)))
    return found
