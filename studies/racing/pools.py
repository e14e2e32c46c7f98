"""Replays of recorded pools in random orders: with all instances, and with the first 60 or 12.

MA-BBOB in 5 and 10 dimensions (studies/calibration), both examples of the package, and scenarios of
ASlib if a folder with them is given by POLARBEAR_ASLIB.
"""

import os
import time
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from racing.cells import Cell
from racing.course import Floats, arms, methods_of
from racing.truths import count_missed, replacing_in_pool
from tools.pools import recorded_runs

import polarbear as pb

SHIPPED = ("bbob", "cma-variants")
MABBOB = ("mabbob_d5", "mabbob_d10")
METHODS = ("default", "strict", "paper")


def scenarios() -> dict[str, Path]:
    """Return the scenarios of ASlib that are there."""
    folder = os.environ.get("POLARBEAR_ASLIB")
    paths = sorted(Path(folder).glob("*.tar.gz")) if folder else ()
    return {path.name.split(".")[0]: path for path in paths}


@cache
def pool(name: str) -> tuple[pb.Runs, Floats, np.ndarray]:
    """Return recorded runs, the times at which they are compared, and who truly replaces whom."""
    if name in SHIPPED:
        runs = pb.example(name)
        times = pb.grid.from_runs(runs, 20)
    elif name in MABBOB:
        runs = recorded_runs(name, slice(2, None, 3))
        times = np.unique(runs.time)
    else:
        runs = pb.read(scenarios()[name])
        first, last = max(1.0, float(np.quantile(runs.time, 0.05))), runs.until.max() * 0.999
        if last <= first:
            raise pb.DataError(f"{name} has no times")
        times = np.geomspace(first, last, 20)
    return runs, times, replacing_in_pool(runs, times)


def measure(
    name: str, method: str, limit: int | None, more: Mapping[str, Any], number: int
) -> dict[str, Any]:
    runs, times, truth = pool(name)
    order = np.random.default_rng(number).permutation(len(runs.instances))
    some = runs.filter(instances=[runs.instances[k] for k in order[:limit]])
    # Recorded optimisers, as in the paper's study of MA-BBOB: its independent configuration.
    chosen = methods_of(0.95, over_time="independent")[method].change(more)
    begin = time.process_time()
    race = pb.replay(some, chosen.question, budget=chosen.budget, times=times, seed=number)
    return {
        "saved": race.saved,
        "runs": race.spent.runs / race.full.runs,
        "instances": len(race.state.pool.order),
        "dropped": len(race.eliminated),
        "missed": count_missed(race, truth, list(runs.algorithms)),
        "resolved": race.status.resolved,
        "seconds": time.process_time() - begin,
    }


def cells(quick: bool, races: int, more: Mapping[str, Any]) -> list[Cell]:
    found = []
    for name in ("cma-variants",) if quick else (*SHIPPED, *MABBOB, *scenarios()):
        try:
            n = len(pool(name)[0].instances)
        except pb.DataError as error:  # a scenario that has no times
            print(f"{name} is left out: {error}")
            continue
        limits = (None,) if quick else (None, *(few for few in (60, 12) if few < n))
        named = {
            f"{method}, {limit or n} instances": partial(measure, name, method, limit, more)
            for method in (METHODS[:1] if quick else METHODS)
            for limit in limits
        }
        found.append(Cell("pools", name, *arms(named, 1 if quick else races, more)))
    return found
