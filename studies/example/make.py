"""Make the results that come with the package as ``pb.example()``: six optimisers on BBOB, d = 10.

python studies/example/make.py          # all 720 runs again: about twenty minutes on two cores
python studies/example/make.py --quick  # are some runs made again just as they are in the file?
"""

import argparse
import csv
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from numpy.typing import NDArray
from tools.records import seeded

Floats = NDArray[np.float64]
Objective = Callable[[Floats], float]

QUICK_CPU_SECONDS = 20

FOLDER = Path(__file__).parents[2] / "src" / "polarbear" / "examples"
RESULTS, INSTANCES = FOLDER / "bbob_d10.csv", FOLDER / "bbob_d10_instances.csv"
DIMENSION, N_EVALUATIONS, LOW, HIGH = 10, 10_000, -5.0, 5.0
TIMES = np.unique(np.geomspace(100, N_EVALUATIONS, 50).round().astype(int))
PRECISION = 1e-8
"""The target precision of BBOB: a distance to the optimum below it is recorded as this one."""

GROUPS = {
    "separable": range(1, 6),
    "moderate": range(6, 10),
    "ill-conditioned": range(10, 15),
    "multi-modal": range(15, 20),
    "weak structure": range(20, 25),
}


class BudgetSpent(Exception):  # noqa: N818 (the way a run ends, not an error)
    """Ends an optimiser when it asks for one evaluation more than it has."""


def run_cma_es(objective: Objective, rng: np.random.Generator) -> None:
    """CMA-ES of cma, restarted with a doubled population whenever it stops by itself."""
    import cma

    options = {"bounds": [LOW, HIGH], "seed": int(rng.integers(1, 2**31)), "verbose": -9}
    cma.fmin2(objective, partial(draw_start, rng), (HIGH - LOW) / 4, options, restarts=99)


def run_de(objective: Objective, rng: np.random.Generator) -> None:
    """Differential evolution of scipy, to the end of the budget and without its final L-BFGS-B."""
    from scipy.optimize import differential_evolution

    box = [(LOW, HIGH)] * DIMENSION
    while True:  # tol=0 stops only where all members are equal
        differential_evolution(objective, box, tol=0, polish=False, rng=rng)


def run_local(method: str, objective: Objective, rng: np.random.Generator) -> None:
    """A local method of scipy, restarted at a new random point."""
    from scipy.optimize import minimize

    while True:
        minimize(objective, draw_start(rng), method=method, bounds=[(LOW, HIGH)] * DIMENSION)


def run_pso(objective: Objective, rng: np.random.Generator) -> None:
    """Particle swarm optimisation of nevergrad."""
    import nevergrad

    box = nevergrad.p.Array(shape=(DIMENSION,))
    # With the default method, "bouncing", the swarm of nevergrad 1.0.12 stays at the bounds.
    box.set_bounds(LOW, HIGH, method="clipping", full_range_sampling=True)
    box.random_state.seed(rng.integers(2**31))
    nevergrad.optimizers.PSO(box, budget=N_EVALUATIONS + 1).minimize(objective)


def run_random_search(objective: Objective, rng: np.random.Generator) -> None:
    """Independent points, uniform in the box."""
    while True:
        objective(draw_start(rng))


OPTIMISERS: dict[str, Callable[[Objective, np.random.Generator], None]] = {
    "CMA-ES": run_cma_es,
    "DE": run_de,
    "L-BFGS-B": partial(run_local, "L-BFGS-B"),
    "Nelder-Mead": partial(run_local, "Nelder-Mead"),
    "PSO": run_pso,
    "random search": run_random_search,
}


def draw_start(rng: np.random.Generator) -> Floats:
    """Draw a point, uniform in the box."""
    return rng.uniform(LOW, HIGH, DIMENSION)


def get_problem(function: int, instance: int) -> Any:
    import ioh

    return ioh.get_problem(function, instance, DIMENSION, ioh.ProblemClass.BBOB)


def name_instance(function: int, instance: int) -> tuple[str, str]:
    """Return the names of a function and of its instance, as readers of IOHprofiler spell them."""
    name = f"f{function} {get_problem(function, instance).meta_data.name}"
    return name, f"{name} d{DIMENSION} i{instance}"


def record_run(job: tuple[str, int, int]) -> list[str]:
    """Make a run and return its row: algorithm, instance, distance to the optimum at each time."""
    warnings.simplefilter("ignore")
    algorithm, function, instance = job
    problem = get_problem(function, instance)
    best = np.full(N_EVALUATIONS, np.inf)
    n_made = 0

    def evaluate(point: Floats) -> float:
        nonlocal n_made
        if n_made == N_EVALUATIONS:
            raise BudgetSpent
        point = np.asarray(point, dtype=float)
        assert np.all(np.abs(point) <= HIGH), f"{algorithm} left the box"
        value = float(problem(point))
        best[n_made] = value - problem.optimum.y
        n_made += 1
        return value

    try:
        OPTIMISERS[algorithm](evaluate, seeded("example", *job))
    except BudgetSpent:
        pass
    else:
        raise RuntimeError(f"{job} ended by itself after {n_made} evaluations")
    so_far = np.minimum.accumulate(np.maximum(best, PRECISION))
    name = name_instance(function, instance)[1]
    return [algorithm, name, *(f"{value:.4g}" for value in so_far[TIMES - 1])]


def list_jobs() -> Iterator[tuple[str, int, int]]:
    for function in range(1, 25):
        for instance in range(1, 6):
            for algorithm in OPTIMISERS:
                yield algorithm, function, instance


def write_table(path: Path, rows: list[list[str]]) -> None:
    part = path.with_suffix(".part")
    with part.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    part.replace(path)  # a file is whole or not there


def make(slots: int) -> None:
    with Pool(slots) as pool:
        rows = []
        for row in pool.imap(record_run, list_jobs()):
            rows.append(row)
            print(len(rows), *row[:2], row[-1], flush=True)
    write_table(RESULTS, [["algorithm", "instance", *map(str, TIMES)], *rows])
    write_instances()


def write_instances() -> None:
    """Write the function and the group of each instance."""
    attributes = [
        [name_instance(function, instance)[1], name_instance(function, instance)[0], group]
        for group, functions in GROUPS.items()
        for function in functions
        for instance in range(1, 6)
    ]
    write_table(INSTANCES, [["instance", "function", "group"], *attributes])


def compare() -> None:
    """Make a run of each optimiser, and say whether it is the one in the file."""
    with RESULTS.open() as file:
        recorded = {tuple(row[:2]): row for row in csv.reader(file)}
    for algorithm in OPTIMISERS:
        row = record_run((algorithm, 8, 1))
        same = row == recorded[row[0], row[1]]
        print(f"{algorithm} on {row[1]}: {'as recorded' if same else 'not as recorded'}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slots", type=int, default=2, help="runs at once")
    parser.add_argument("--quick", action="store_true", help="six runs, and nothing is written")
    given = parser.parse_args()
    if given.quick:
        compare()
    else:
        make(given.slots)


if __name__ == "__main__":
    main()
