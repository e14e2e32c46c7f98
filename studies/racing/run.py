"""What do races decide, how often wrongly, and what do they cost? Writes table.md.

python studies/racing/run.py                            # all parts; hours; goes on where it was
python studies/racing/run.py --parts few --jobs 2       # some of them, on two cores
python studies/racing/run.py --parts pools --races 10   # fewer races of each kind, or more
python studies/racing/run.py --cpu-seconds 60           # and no more once a row took so long
python studies/racing/run.py --change '{"batch": [1, 8]}'  # other races, beside those there
python studies/racing/run.py --table                    # the tables again from what is there
python studies/racing/run.py --quick                    # seconds: does it run at all?
"""

import argparse
import json
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

from racing import candidates, few, pools, synthetic
from racing.cells import run
from racing.tables import write

QUICK_CPU_SECONDS = 4

PARTS = {
    "synthetic": (synthetic.cells, 20),
    "few": (few.cells, 100),
    "pools": (pools.cells, 100),
    "candidates": (candidates.cells, 1),
}
"""The cells of each part, and how many races there are of each kind."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--races", type=int, help="of each kind")
    parser.add_argument("--cpu-seconds", type=float, default=float("inf"), help="of each row")
    parser.add_argument("--only", default="", help="rows with this in their name, e.g. 'default'")
    parser.add_argument(
        "--change", type=json.loads, default={}, help="fields of question or budget, as JSON"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    wanted = parser.parse_args()
    chosen = []
    for part in wanted.parts if not wanted.table else ():
        cells, usual = PARTS[part]
        races = usual if wanted.races is None else wanted.races
        chosen += [cell.only(wanted.only) for cell in cells(wanted.quick, races, wanted.change)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else wanted.folder
        if wanted.jobs > 1:
            with ProcessPoolExecutor(wanted.jobs) as pool:
                for said in pool.map(partial(run, folder=folder, most=wanted.cpu_seconds), chosen):
                    print(said, flush=True)
        else:
            for cell in chosen:
                print(run(cell, folder, wanted.cpu_seconds), flush=True)
        print(write(folder))


if __name__ == "__main__":
    main()
