"""Case study 3 of the paper: eight algorithms on GP-BBOB by the clock, raced.

Writes table.md and figures/, and what both are made of to results/.

python studies/gpbbob/run.py                  # d ~ N(60, 7.5), 1.2 s a run; goes on where it was
python studies/gpbbob/run.py --mean 100 --seconds 4
python studies/gpbbob/run.py --mean 240 --seconds 30 --first 0.1 --method paper   # as in the paper
python studies/gpbbob/run.py --clock cpu      # on a machine that is not idle
python studies/gpbbob/run.py --hours 2        # no new round after so long; packs the store, with
                                              # which another machine goes on
python studies/gpbbob/run.py --table          # tables and figures again from results/
python studies/gpbbob/run.py --quick          # seconds: does it run at all?
"""

import sys
import tempfile
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from gpbbob.tables import write
from numpy.typing import ArrayLike
from tools.checkpoint import pack, unpack
from tools.options import parser, within
from tools.races import keep

import polarbear as pb

QUICK_CPU_SECONDS = 7

MATRICES = {
    "COV": "COVARIANCE",
    "SEP": "SEPARABLE",
    "MAT": "MATRIX",
    "CHO": "CHOLESKY",
    "CMSA": "CMSA",
    "NAT": "NATURAL_GRADIENT",
    "NONE": "NONE",
}
QUESTIONS = {
    "default": pb.ParetoSet(certainty=0.99, fit={"prior": "BSpline"}),
    "paper": pb.PaperParetoSet(fit={"prior": "BSpline"}),
}
"""By method: that of the package, and the one of the paper's case study."""

BUDGET = pb.Budget(batch=(8, 128))
SPREAD = 1 / 8
"""The standard deviation of the dimension, as a part of the mean: 30 of 240 in the paper."""


def solvers() -> dict:
    """The algorithms by name; modcma is loaded here, so that tables need none."""
    from tools.modular import cma_es, random_search

    found = {name: cma_es(ssa="CSA", matrix_adaptation=kind) for name, kind in MATRICES.items()}
    # One point at a time: by the clock, points that are evaluated together come late.
    return {**found, "RS": partial(random_search, at_once=1)}


def race(mean: float, times: ArrayLike, store: Path, budget: pb.Budget, wanted: Namespace):
    from gpbbob.generator import draw  # loads ioh, which tables do without

    return pb.race(
        solvers(),
        partial(draw, dimension=(mean, SPREAD * mean)),
        times,
        direction="minimize",
        clock=wanted.clock,
        question=QUESTIONS[wanted.method],
        budget=budget,
        store=store,
        executor=pb.backends.LocalProcesses(wanted.slots, pin=wanted.clock == "wall"),
    )


def main() -> None:
    asked = parser(__doc__, slots="runs at once, one for each idle core")
    asked.add_argument("--mean", type=float, default=60.0, help="of the dimension; the paper: 240")
    asked.add_argument("--seconds", type=float, default=1.2, help="of a run; the paper: 30")
    asked.add_argument("--first", type=float, default=0.04, help="time; the paper: 0.1")
    asked.add_argument("--times", type=int, default=30)
    asked.add_argument("--method", choices=tuple(QUESTIONS), default="default")
    asked.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    wanted = asked.parse_args()
    folder = Path(__file__).parent
    if wanted.table:
        print(write(folder))
        return
    budget = within(BUDGET, wanted.hours)
    with tempfile.TemporaryDirectory() as scratch:
        mean, seconds = wanted.mean, wanted.seconds
        times = pb.grid.linear(wanted.first, seconds, wanted.times)
        if wanted.quick:
            folder, mean, seconds, times = Path(scratch), 4.0, 0.05, pb.grid.linear(0.005, 0.05, 6)
            budget = replace(budget, runs=8 * 8)
        method = "" if wanted.method == "default" else f"-{wanted.method}"
        name = f"d{mean:g}-{seconds:g}s-{wanted.clock}{method}"
        store, place = folder / f"{name}.db", folder / "results" / name
        unpack(place, store)
        found = race(mean, times, store, budget, wanted)
        print(found)
        keep(found, place, mean=mean, seconds=seconds, clock=wanted.clock)
        if wanted.hours:
            pack(store, place)
        print(write(folder))


if __name__ == "__main__":
    main()
