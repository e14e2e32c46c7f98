"""The fixed evaluator: every candidate on every instance to the end; who would be in the set then?

The runs have the seeds that they have in the race, so what the race saw is the beginning of what is
seen here.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tools.modular import cma_es
from tools.records import Records

import polarbear as pb
from polarbear.racing.jobs import Key, job
from polarbear.running.job import HorizonReached, watched

Floats = NDArray[np.float64]


def evaluate(
    folder: Path, build: Callable[[str], Any], times: Floats, instances: int, slots: int
) -> None:
    """Run what is missing, and keep the Pareto set of all of it."""
    proposed = Records(folder / "proposals.jsonl", ("name",)).rows
    best = folder / "fixed.npz"
    found: dict[str, Floats] = dict(np.load(best)) if best.exists() else {}
    names = [str(k) for k in range(1, instances + 1)]
    with ProcessPoolExecutor(slots) as pool:
        for row in proposed:
            if row["name"] not in found:
                once = partial(_run, row["name"], row["options"], build, times)
                found[row["name"]] = np.array(list(pool.map(once, names, chunksize=8)))
                part = best.with_suffix(".part.npz")
                np.savez_compressed(part, **found)
                part.replace(best)
    records = [
        pb.Run(name, instance, times, values, float(times[-1]))
        for name, rows in found.items()
        for instance, values in zip(names, rows, strict=True)
    ]
    runs = pb.Runs.from_records(records, direction="minimize", clock="evaluations")
    posterior = pb.fit(pb.rank(runs, times), draws=2000)
    kept = Records(folder / "fixed.jsonl", ("candidates",))
    if (len(found) - 1,) not in kept:
        kept.add({"candidates": len(found) - 1, "pareto": list(posterior.pareto(0.95))})


def _run(
    name: str, options: dict[str, Any], build: Callable[[str], Any], times: Floats, instance: str
) -> Floats:
    """The best so far at each time."""
    asked = job(0, Key(name, instance, 0), float(times[-1]))
    running = watched(build(instance), horizon=asked.horizon, seed=asked.seed)
    with suppress(HorizonReached):
        cma_es(**options)(running)
    when, value = (np.array(part) for part in running.found)
    at = np.searchsorted(when, times, side="right") - 1
    return np.where(at >= 0, value[np.maximum(at, 0)], np.inf)
