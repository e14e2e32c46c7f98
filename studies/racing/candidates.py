"""A race that a thousand candidates enter one after another: what each decision costs.

Each candidate joins when the pairs of those before it are settled, or no instances are left for
them. Candidates are as those of an automated design: most are worse than what is there, they get
better by and by, and each has a curve of its own. So most are dominated, some get into the set, and
old ones leave.
"""

import sys
import time
import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from racing.cells import Cell, seeded
from racing.course import Floats, Method, arms, grid

import polarbear as pb
from polarbear.racing.jobs import Job
from polarbear.simulation import PAPER_PRIOR, draw_noisy_utilities, draw_truth, find_members

CANDIDATES, TIMES, INSTANCES, PERSISTENCE = 1000, 10, 128, 0.5
RISE, LEVEL = 6.0, 2.0
"""By how much utilities rise from the first candidate to the last, and how much the levels of
neighbours differ: most are clearly worse than the best so far."""

TREND = 1000.0
"""Of all runs, from a time to the next: every time is an improvement."""


def truth_of(number: int, candidates: int) -> Floats:
    rng = seeded("candidates", number)
    curves = [draw_truth(PAPER_PRIOR, grid(TIMES), 2, rng)[0][:, 0] for _ in range(candidates)]
    level = np.linspace(0, RISE, candidates) + LEVEL * rng.standard_normal(candidates)
    return np.stack(curves, axis=1) + level


def runs_of(utilities: Floats, instances: int, number: int, candidate: int) -> Floats:
    """Values (T, instances) of all runs of a candidate."""
    rng = seeded("candidate", number, candidate)
    noisy = draw_noisy_utilities(
        utilities[:, None], instances, rng, grid(TIMES), persistence=PERSISTENCE
    )
    return noisy[:, :, 0] + TREND * np.arange(TIMES)[:, None]


def measure(candidates: int, instances: int, more: Mapping[str, Any], number: int) -> dict:
    truth, values = truth_of(number, candidates), {}

    def answer(job: Job) -> pb.Run:
        k = int(job.algorithm[1:])
        if k not in values:
            values[k] = runs_of(truth[:, k], instances, number, k)
        seen = int(np.searchsorted(grid(TIMES), job.horizon, side="right"))
        return job.run(grid(TIMES)[:seen], values[k][:seen, int(job.instance)])

    names = [str(k) for k in range(instances)]
    method = Method(pb.ParetoSet()).change(more)
    race = pb.Race(
        ["c0"],
        grid(TIMES),
        direction="maximize",
        instances=names,
        question=method.question,
        budget=method.budget,
        seed=number,
    )
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(1, candidates):
            race.add(f"c{k}")
            rows.append(_settled(race, answer))
            if k % 50 == 0:
                print(f"{k} candidates, {rows[-1][2]} race", file=sys.stderr, flush=True)
    slowest, rounds, racing, runs = zip(*rows, strict=True)
    best = find_members(truth)
    lost = sum(best[int(name[1:])] for name in race.eliminated)
    return {
        "slowest": np.array(slowest),
        "rounds": np.array(rounds),
        "racing": np.array(racing),
        "runs": np.array(runs),
        "members": int(best.sum()),
        "lost": int(lost),
    }


def _settled(race: pb.Race, answer: Any) -> tuple[float, int, int, int]:
    """Go on until nothing is asked for: CPU of the slowest ask, rounds, who races, runs."""
    slowest, before = 0.0, race.rounds
    while True:
        begin = time.process_time()
        jobs = race.ask()
        slowest = max(slowest, time.process_time() - begin)
        if not jobs:
            return slowest, race.rounds - before, len(race.pareto), race.n_runs
        for job in jobs:
            race.tell(answer(job))


def cells(quick: bool, races: int, more: Mapping[str, Any]) -> list[Cell]:
    candidates, instances = (4, 8) if quick else (CANDIDATES, INSTANCES)
    named = {"default": partial(measure, candidates, instances, more)}
    return [Cell("candidates", f"of{candidates}", *arms(named, 1 if quick else races, more))]
