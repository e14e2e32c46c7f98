"""Looking many times: error control per look against e-values.

Two algorithms at one time. The second wins with probability one half (tied), a little less (nearly
tied: practically the same, but worse), or clearly less.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from cells import Cell, seeded

from course import arms, believing, course, drive, rules_of

WINS, ALPHA = (0.5, 0.48, 0.45, 0.40, 0.30), (0.95, 0.99)
INSTANCES = 1024


def measure(
    win: float,
    base: Mapping[str, Any],
    instances: int,
    more: Mapping[str, Any],
    number: int,
) -> dict[str, Any]:
    truth = np.array([[0.0, np.log(win / (1 - win))]])
    on = course(truth, instances, seeded("looks", win, number))
    race, fitting, _ = drive(on, rules_of(base, more), believing(), number)
    # Of two that are tied neither is dominated, and to eliminate either is wrong.
    wrong = {"a0", "a1"} if win == 0.5 else {"a0"}
    return {
        "wrong": len(wrong & race.eliminated.keys()),
        "right": len(race.eliminated.keys() - wrong),
        "alike": race.ended == "resolved" and not race.eliminated,
        "instances": len(race.runs.instances),
        "looks": race.rounds,
        "fit": fitting,
    }


def cells(quick: bool, races: int, more: Mapping[str, Any]) -> list[Cell]:
    found = []
    for win in (0.3,) if quick else WINS:
        bases = {
            f"{control} {certainty}": {"certainty": certainty, "error_control": control}
            for certainty in (ALPHA[:1] if quick else ALPHA)
            for control in ("per_look", "per_member", "whole_race")
        }
        instances = 32 if quick else INSTANCES
        named = {arm: partial(measure, win, base, instances, more) for arm, base in bases.items()}
        found.append(Cell("looks", f"p{win}", *arms(named, 2 if quick else races, more)))
    return found
