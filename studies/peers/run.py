"""Racing against others on the same data: what each spends, and whom it loses. Writes table.md.

python studies/peers/run.py                       # all; hours on one core; goes on where it was
python studies/peers/run.py --courses handover --races 5
python studies/peers/run.py --methods F-Race      # those with this in their names
python studies/peers/run.py --table               # the table again from what is there
python studies/peers/run.py --quick               # seconds: does it run at all?
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

# One process, one thread: matrices are small, and several courses can be run side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from peers.courses import Course, drawn, handover, pool
from peers.methods import METHODS
from peers.tables import write
from tools.records import Records

QUICK_CPU_SECONDS = 4

CERTAINTIES = (0.95, 0.99)
RACES = 20
INSTANCES = 1000
"""Instances of a simulated race; what is not decided by then stays undecided."""

COURSES: dict[str, Callable[[int], Course]] = {
    "handover": partial(handover, instances=INSTANCES),
    "drawn": partial(drawn, instances=INSTANCES),
    "mabbob_d10": lambda _: pool("mabbob_d10"),
    "mabbob_d5": lambda _: pool("mabbob_d5"),
}
QUICK: dict[str, Callable[[int], Course]] = {
    "handover": partial(handover, instances=40),
    "mabbob_d5": lambda _: pool("mabbob_d5", 24),
}


def measure(name: str, course: Course, method: str, certainty: float, number: int) -> dict:
    began = time.process_time()
    found = METHODS[method](course, certainty, number)
    return {
        "course": name,
        "method": method,
        "certainty": certainty,
        "race": number,
        "members": len(course.members),
        "lost": sorted(course.members - found.kept),
        "missed": course.missed(found.kept),
        "extra": sorted(found.kept - course.members),
        "regret": round(course.regret(found.kept), 4),
        "spent": round(found.spent / course.full(), 5),
        "last": round(found.last / course.full(), 5),
        "runs": found.runs,
        "instances": found.instances,
        "ended": bool(found.ended),
        "cpu": round(time.process_time() - began, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--courses", nargs="+", choices=COURSES, default=list(COURSES))
    parser.add_argument("--methods", default="", help="only those with this in their names")
    parser.add_argument(
        "--certainty", nargs="+", type=float, choices=CERTAINTIES, default=list(CERTAINTIES)
    )
    parser.add_argument("--races", type=int, default=RACES, help="of each kind")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else Path(__file__).parent
        courses = QUICK if wanted.quick else {name: COURSES[name] for name in wanted.courses}
        certainties = [0.95] if wanted.quick else wanted.certainty
        for name, make in courses.items() if not wanted.table else ():
            kept = Records(folder / "results" / f"{name}.jsonl", ("method", "certainty", "race"))
            for number in range(1 if wanted.quick else wanted.races):
                course = make(number)
                for certainty in certainties:
                    for method in METHODS:
                        key = (method, certainty, number)
                        if wanted.methods in method and key not in kept:
                            kept.add(measure(name, course, method, certainty, number))
            print(f"{name}: {len(kept.rows)} races", flush=True)
        print(write(folder))


if __name__ == "__main__":
    main()
