"""Does the stated error of decisions hold, and what does that cost? Writes table.md.

python studies/error_control/run.py                       # all parts; goes on where it was stopped
python studies/error_control/run.py --parts errors cost   # some of them
python studies/error_control/run.py --races 100           # fewer races of each setting, or more
python studies/error_control/run.py --table               # table and figure again from results/
python studies/error_control/run.py --quick               # seconds: does it run at all?
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from error_control import cost, errors, whole
from error_control.tables import write
from tools.records import Records

QUICK_CPU_SECONDS = 4

KEYS = {
    "errors": ("setting", "n", "times", "persistence", "rule", "certainty", "races"),
    "equal": ("times", "races"),
    "cost": ("rule", "looks", "certainty", "win"),
    "curves": ("rule", "certainty"),
    "pairs": ("certainty", "win", "race"),
    "races": ("setting", "error_control", "certainty", "race"),
}
"""What tells the rows of each file apart."""


def measure_errors(files: dict[str, Records], races: int | None, quick: bool) -> None:
    races = races or (8 if quick else errors.RACES)
    for persistence, settings in list(errors.groups())[: 2 if quick else None]:
        errors.measure(persistence, settings, races, files["errors"])
        print(f"errors: {settings[0].name}, L = {persistence:g} done", flush=True)
    errors.newcomers(races, files["errors"], 4 if quick else errors.NEWCOMERS)
    errors.equal_pairs(files["equal"], 4 if quick else 500, 256 if quick else 4096)


def measure_cost(files: dict[str, Records], races: int | None, quick: bool) -> None:
    limit = 200 if quick else cost.INSTANCES
    cost.exact(files["cost"], limit)
    cost.planned(files["cost"], races or (20 if quick else cost.PAIRS), limit)
    cost.curves(files["curves"], limit)


def measure_pairs(files: dict[str, Records], races: int | None, quick: bool) -> None:
    cost.real(files["pairs"], races or (1 if quick else cost.RACES), 40 if quick else 10_000)


def measure_races(files: dict[str, Records], races: int | None, quick: bool) -> None:
    whole.measure(files["races"], races or (1 if quick else whole.RACES), 40 if quick else 4096)


PARTS: dict[str, Callable[[dict[str, Records], int | None, bool], None]] = {
    "errors": measure_errors,
    "cost": measure_cost,
    "races": measure_races,
    "pairs": measure_pairs,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--races", type=int, help="of each setting")
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    parser.add_argument("--table", action="store_true", help="table and figure from results/")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else Path(__file__).parent
        results = folder / "results"
        files = {name: Records(results / f"{name}.jsonl", key) for name, key in KEYS.items()}
        for part in wanted.parts if not wanted.table else ():
            PARTS[part](files, wanted.races, wanted.quick)
        print(write(folder, {name: one.rows for name, one in files.items()}))


if __name__ == "__main__":
    main()
