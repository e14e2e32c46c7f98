"""Case study 2 of the paper: seven algorithms on MA-BBOB, raced for real.

Writes table.md and figures/, and what both are made of to results/.

python studies/mabbob/run.py                       # d = 10; goes on where it was
python studies/mabbob/run.py --dimension 30 --times 200   # the size of the paper
python studies/mabbob/run.py --dimension 30 --times 200 --method paper   # and its method
python studies/mabbob/run.py --hours 2             # no new round after so long; packs the store,
                                                   # with which another machine goes on
python studies/mabbob/run.py --fixed 1000          # and all to the end: ECDF, AOCC, attainment;
                                                   # of a race that has ended without its store, too
python studies/mabbob/run.py --table               # tables and figures again from results/
python studies/mabbob/run.py --quick               # seconds: does it run at all?
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from mabbob import classical
from mabbob.tables import write
from tools.checkpoint import pack, unpack
from tools.fixed import complete
from tools.options import parser, within
from tools.races import keep, load

import polarbear as pb

QUICK_CPU_SECONDS = 11

STEP_SIZES = ("CSA", "MSR", "TPA", "XNES", "MXNES", "LPXNES")
FIRST, PER_DIMENSION = 100, 2000
"""The paper's grid: from 100 to 2,000 d evaluations."""

BUDGET = pb.Budget(batch=(8, 128))
QUESTIONS = {
    "default": pb.ParetoSet(),
    "paper": pb.PaperParetoSet("independent"),
}
"""By method: that of the package, and the one of the paper's case study."""


def solvers() -> dict:
    """The algorithms by name; modcma is loaded here, so that tables need none."""
    from tools.modular import cma_es, random_search

    found = {name: cma_es(ssa=name, matrix_adaptation="COVARIANCE") for name in STEP_SIZES}
    return {**found, "RS": random_search}


def problem(dimension: int) -> Callable[[str], Any]:
    """What makes an instance of its name; ioh is loaded here, once, and not by every run."""
    from mabbob.problem import build

    return partial(build, dimension=dimension)


def race(
    dimension: int, last: int, n_times: int, store: Path, budget: pb.Budget, slots: int, method: str
):
    instances = [str(k) for k in range(1, 10_001)]
    return pb.race(
        solvers(),
        pb.Instances(tuple(instances), problem(dimension)),
        pb.grid.log(FIRST, last, n_times),
        direction="minimize",
        clock="evaluations",
        question=QUESTIONS[method],
        budget=budget,
        store=store,
        executor=slots,
    )


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--dimension", type=int, default=10)
    asked.add_argument("--times", type=int, default=50, help="on the grid; the paper has 200")
    asked.add_argument("--method", choices=tuple(QUESTIONS), default="default")
    asked.add_argument("--fixed", type=int, help="run all to the end on so many instances, too")
    wanted = asked.parse_args()
    folder = Path(__file__).parent
    if wanted.table:
        print(write(folder))
        return
    budget = within(BUDGET, wanted.hours)
    with tempfile.TemporaryDirectory() as scratch:
        dimension, last, n_times = wanted.dimension, PER_DIMENSION * wanted.dimension, wanted.times
        if wanted.quick:
            folder, dimension, last, n_times = Path(scratch), 2, 400, 8
            budget = replace(budget, runs=7 * 12)
        name = f"d{dimension}-T{n_times}-{wanted.method}"
        store = folder / f"{name}.db"
        place = folder / "results" / name
        number = 4 if wanted.quick else wanted.fixed or 0
        facts, known = load(place), None
        has_ended = facts is not None and facts["ended"] == "resolved"
        if facts is None or store.exists() or not has_ended:
            unpack(place, store)
            found = race(dimension, last, n_times, store, budget, wanted.slots, wanted.method)
            print(found)
            order, known = list(found.state.pool.order), found.runs
            facts = keep(found, place, dimension=dimension, order=order)
            if wanted.hours and facts["ended"] != "resolved":
                pack(store, place)
        if number:
            names = facts["order"][:number]
            times = pb.grid.log(FIRST, last, n_times)
            path, built = place / "fixed.npz", problem(dimension)
            runs = complete(path, solvers(), built, names, times, wanted.slots, known)
            classical.keep(runs, times, place)
        print(write(folder))


if __name__ == "__main__":
    main()
