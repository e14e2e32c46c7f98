"""Is what the posteriors claim as often true as they say? Writes table.md and curve.svg.

python studies/calibration/run.py                        # all parts; hours; goes on where it was
python studies/calibration/run.py --parts known race     # some of them
python studies/calibration/run.py --replicates 100       # more data sets
python studies/calibration/run.py --table                # the tables again from what is there
python studies/calibration/run.py --quick                # twenty seconds: does it run at all?
"""

import argparse
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

# One process, one thread: matrices are small, and --jobs is there for more cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

sys.path.insert(0, str(Path(__file__).parents[1]))

from calibration import known, races, recorded, refined
from calibration.cells import Cell, run
from calibration.tables import collect, figure, write

from polarbear.simulation import PRIORS

QUICK_CPU_SECONDS = 11

PARTS = ("known", "recorded", "refined", "identical", "race", "price")


def cells(quick: bool, replicates: int, repeats: int) -> list[Cell]:
    found = [
        *known.cells(quick, replicates),
        *recorded.cells(quick, replicates),
        *refined.cells(quick, replicates),
        *races.cells(quick, repeats),
    ]
    # Few times and instances first: tables fill early.
    return sorted(found, key=lambda cell: PARTS.index(cell.part))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--priors", nargs="+", default=list(PRIORS))
    parser.add_argument("--replicates", type=int, default=30, help="data sets per cell of (a), (b)")
    parser.add_argument("--races", type=int, default=400, help="races of the default model")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else wanted.folder
        every = cells(wanted.quick, wanted.replicates, wanted.races)
        chosen = [cell for cell in every if cell.part in wanted.parts and not wanted.table]
        chosen = [cell.only(wanted.priors) for cell in chosen]
        if wanted.jobs > 1:
            with ProcessPoolExecutor(wanted.jobs) as pool:
                for said in pool.map(partial(run, folder=folder), chosen):
                    print(said, flush=True)
        else:
            for cell in chosen:
                print(run(cell, folder), flush=True)
        found = collect(every, folder)
        print(write(found, folder))
        figure(found, folder)


if __name__ == "__main__":
    main()
