"""The fixed practice: every algorithm on every instance to the end.

Runs have the seeds that they have in a race of :func:`polarbear.race`, so what a race saw is the
beginning of what is seen here.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import polarbear as pb
from polarbear.racing.jobs import RunId, job
from polarbear.running.solvers.job import HorizonReached, make_trial_job

Floats = NDArray[np.float64]

CHUNK = 10
"""After so many instances their runs are kept: no more than these are lost."""


def complete(
    path: Path,
    solvers: Mapping[str, Callable[[Any], Any]],
    build: Callable[[str], Any],
    instances: Sequence[str],
    times: Floats,
    slots: int,
    known: pb.Runs | None = None,
) -> pb.Runs:
    """Run what is missing in a file, and give back everything as runs to be minimised.

    ``known``: the runs of a race, of which those that went on to the end need not be made again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = len(instances), len(times)
    found: dict[str, Any] = {name: np.full(shape, np.nan) for name in solvers}
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            for name in solvers.keys() & set(file.files):
                found[name][: len(file[name])] = file[name][: len(instances)]
    if known is not None:
        _take(known, found, instances, times)
    with ProcessPoolExecutor(slots) as pool:
        for first in range(0, len(instances), CHUNK):
            made = {}
            for name, solver in solvers.items():
                missing = np.isnan(found[name][first : first + CHUNK, -1])
                some = (first + np.flatnonzero(missing)).tolist()
                once = partial(run, name, solver, build, times)
                if some:
                    made[name] = some, pool.map(once, [instances[k] for k in some])
            for name, (some, values) in made.items():
                found[name][some] = list(values)
            if made:
                part = path.with_suffix(".part.npz")
                np.savez_compressed(part, **{one: v.astype(np.float32) for one, v in found.items()})
                part.replace(path)  # a file is whole or not there
    records = [
        pb.Run(name, instance, times, values, float(times[-1]))
        for name in solvers
        for instance, values in zip(instances, found[name], strict=True)
    ]
    return pb.Runs.from_records(records, direction="minimize", clock="evaluations")


def _take(
    known: pb.Runs, found: dict[str, Floats], instances: Sequence[str], times: Floats
) -> None:
    """Put runs that went on to the end where they belong."""
    place = {name: k for k, name in enumerate(instances)}
    wanted = [name in place for name in known.instances]
    whole = (known.until >= times[-1]) & np.array(wanted)[known.instance]
    taken = known.filter(where=whole)
    values = np.where(np.isnan(at := taken.at(times)), np.inf, at)
    for who, where, value in zip(taken.algorithm, taken.instance, values, strict=True):
        if taken.algorithms[who] in found:
            found[taken.algorithms[who]][place[taken.instances[where]]] = value


def run(
    name: str,
    solver: Callable[[Any], Any],
    build: Callable[[str], Any],
    times: Floats,
    instance: str,
) -> Floats:
    """The best so far of one run at each time."""
    asked = job(0, RunId(name, instance, 0), float(times[-1]))
    running = make_trial_job(build(instance), horizon=asked.horizon, seed=asked.seed)
    with suppress(HorizonReached):
        solver(running)
    when, value = (np.array(part) for part in running.improvements)
    at = np.searchsorted(when, times, side="right") - 1
    return np.where(at >= 0, value[np.maximum(at, 0)], np.inf)
