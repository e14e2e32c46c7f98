"""What a race drops with few instances: two clearly worse rivals of a winner, a known end."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from racing.cells import Cell, seeded
from racing.course import Floats, arms, course, methods_of, raced

SIZES = (12, 24, 60, 120)
METHODS = ("default", "strict", "paper")


def truths() -> dict[str, Floats]:
    """Return log-utilities at 20 times; a lead of .85 wins 70 % of duels."""
    late = np.zeros((20, 3))
    late[4:, 0] = 0.85
    return {"winner": np.tile([0.85, 0.0, 0.0], (20, 1)), "late_winner": late}


def measure(
    name: str, persistence: float, method: str, n: int, more: Mapping[str, Any], number: int
) -> dict[str, Any]:
    on = course(truths()[name], n, seeded("few", name, persistence, n, number), persistence)
    return raced(on, methods_of(0.95)[method].change(more), number)


def cells(quick: bool, races: int, more: Mapping[str, Any]) -> list[Cell]:
    found = []
    for name in truths():
        for persistence in (0.5,) if quick else (0.5, np.inf):
            named = {
                f"{method}, {n} instances": partial(measure, name, persistence, method, n, more)
                for method in (METHODS[:1] if quick else METHODS)
                for n in (SIZES[:1] if quick else SIZES)
            }
            found.append(
                Cell("few", f"{name}-L{persistence:g}", *arms(named, 1 if quick else races, more))
            )
    return found
