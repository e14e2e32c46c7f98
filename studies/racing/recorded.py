"""What racing would have saved: replays of recorded pools, against running all on everything.

The pools hold who was ahead of whom at 60 times, of which every other is used; runs with these
rankings are made of them.
"""

import time
from collections.abc import Mapping
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
from racing.cells import Cell
from racing.course import arms, methods_of
from tools.pools import recorded_runs

import polarbear as pb
from polarbear.calibration.population import fit_utilities
from polarbear.simulation import find_members

POOLS = ("mabbob_d10", "mabbob_d5")
METHODS = tuple(product(("default", "paper"), (0.95, 0.99)))


@cache
def pool(name: str, instances: int | None) -> pb.Runs:
    """Runs that are ranked as the recorded ones are, at every other time up to the last."""
    return recorded_runs(name, slice(1, None, 2), instances)


@cache
def everything(name: str, instances: int | None) -> tuple[pb.Posterior, list[str]]:
    """What all of a pool says, and the Pareto set of the Plackett-Luce model nearest to it."""
    runs = pool(name, instances)
    rankings = pb.rank(runs, times_of(runs))
    truth = fit_utilities(rankings)
    nearest = [a for a, own in zip(rankings.algorithms, find_members(truth), strict=True) if own]
    return pb.fit(rankings), nearest


def times_of(runs: pb.Runs) -> np.ndarray:
    return np.unique(runs.time)


def measure(
    name: str,
    certainty: float,
    method: str,
    instances: int | None,
    more: Mapping[str, Any],
    number: int,
) -> dict[str, Any]:
    runs = pool(name, instances)
    chosen, begin = methods_of(certainty)[method].change(more), time.process_time()
    found = pb.replay(
        runs,
        chosen.question,
        budget=chosen.budget,
        times=times_of(runs),
        seed=number,
    )
    seconds = time.process_time() - begin
    full, nearest = everything(name, instances)
    kept, wanted = set(found.pareto), set(full.pareto(certainty))
    standing = found.state.rivals()
    pairs = list(combinations(runs.algorithms, 2))
    spent = dict.fromkeys(runs.algorithms, 0.0)
    for run in found.runs:
        spent[run.algorithm] += run.until
    return {
        "saved": found.saved,
        "runs_saved": 1 - found.spent.runs / found.full.runs,
        "instances": len(found.runs.instances),
        "rounds": found.rounds,
        "resolved": found.resolved,
        "lost": len(wanted - kept),
        "extra": len(kept - wanted),
        "lost_nearest": len(set(nearest) - kept),
        "kept": [a in kept for a in runs.algorithms],
        "open": [b in standing.get(a, {}) for a, b in pairs],
        "spent": [spent[a] / found.full.time for a in runs.algorithms],
        "seconds": seconds,
    }


def cells(quick: bool, races: int, more: Mapping[str, Any]) -> list[Cell]:
    found = []
    for name in POOLS[:1] if quick else POOLS:
        instances = 24 if quick else None
        named = {
            f"{method}, certainty {certainty}": partial(
                measure, name, certainty, method, instances, more
            )
            for method, certainty in (METHODS[:1] if quick else METHODS)
        }
        found.append(Cell("replay", name, *arms(named, 1 if quick else races, more)))
    return found
