"""A whole race over recorded runs: what deciding costs, for the solvers cost nothing.

    python benchmarks/recorded_race.py            # 50 rounds, prints a row
    python benchmarks/recorded_race.py --quick    # 5 rounds

Seven algorithms on the 646 recorded MA-BBOB problems in 10 dimensions, asked about at 200 times:
the 60 recorded ones are steps of curves at 200. Rounds have eight instances, and so much certainty
is asked for that 50 rounds do not settle it. The other side is one plain likelihood and gradient
(``passes.py``) after each round, over all rankings of the instances so far.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measuring import Figures, Row, apart, measure_rows
from passes import plain_pass

QUICK_CPU_SECONDS = 2

POOL = Path(__file__).parent.parent / "studies/calibration/pools/mabbob_d10.npz"
ROUNDS, TIMES, BATCH = 50, 200, 8
SECONDS = 8.0
"""The goal: CPU seconds of the whole race without its solvers."""


def recorded(n_times: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names, times, and positions (times, instances, algorithms), as steps."""
    with np.load(POOL) as file:
        grid, names = file["times"].astype(float), file["algorithms"].tolist()
        times = np.geomspace(grid[0], grid[-1], n_times)
        step = np.searchsorted(grid, times * (1 + 1e-12), side="right") - 1
        return names, times, file["position"][step]


def raced(rounds: int, n_times: int) -> Figures:
    """CPU seconds that the race takes to be told and asked, and those of the passes."""
    import polarbear as pb
    from polarbear.simulation import rank_costs

    names, times, position = recorded(n_times)
    pb.fit(rank_costs(np.eye(3)[None]))  # what is loaded once is not counted
    # Values that rank as recorded, and of which each is an improvement.
    value = position - len(names) * np.arange(n_times)[:, None, None].astype(float)
    race = pb.Race(
        names,
        times,
        direction="minimize",
        instances=[str(k) for k in range(position.shape[1])],
        question=pb.StrictParetoSet(certainty=0.999),
        budget=pb.Budget(batch=(BATCH, BATCH)),
        clock="evaluations",
    )
    spent, seen = [], []
    jobs = race.ask()
    while jobs and len(spent) < rounds:
        runs = []
        for job in jobs:
            until = times <= job.horizon
            own = value[until, int(job.instance), names.index(job.algorithm)]
            runs.append(job.run(times[until], own))
        begin = time.process_time()
        for run in runs:
            race.tell(run)
        jobs = race.ask()
        spent.append(time.process_time() - begin)
        seen.append(len(race.runs.instances))
    order, at = position.argsort(axis=2), np.zeros((n_times, len(names)))
    begin = time.process_time()
    for instances in seen:
        plain_pass(order[:, :instances], at)
    passes = time.process_time() - begin
    return {
        "race": sum(spent),
        "passes": passes,
        "rounds": len(spent),
        "last": float(np.median(spent[-5:])),
        "instances": seen[-1],
        "runs": race.n_runs,
    }


def rows(quick: bool) -> Iterator[Row]:
    """The race against its passes; the goal is in seconds, so it depends on the machine."""
    found = apart(raced, 5 if quick else ROUNDS, 30 if quick else TIMES)
    yield Row(
        "race",
        f"{found['rounds']} rounds of recorded MA-BBOB runs, n=7, T={30 if quick else TIMES}: "
        f"{found['runs']:,} runs on {found['instances']} instances",
        "a plain pass a round",
        found["race"],
        found["passes"],
        goal=None if quick else SECONDS / found["passes"],
        limit=5000 if quick else None,
        remark=f"{found['race'] / found['rounds']:.2f} s a round, at the end {found['last']:.2f}"
        + ("" if quick else f"; goal: {SECONDS:.0f} s"),
    )


if __name__ == "__main__":
    measure_rows(__doc__, rows)
