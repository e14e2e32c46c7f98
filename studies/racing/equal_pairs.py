"""How do races of two equal algorithms end? Writes equal_pairs.md.

python studies/racing/equal_pairs.py                       # 200 races at 1 and at 20 times: an hour
python studies/racing/equal_pairs.py --times 1 --races 20  # fewer; goes on where it was stopped
python studies/racing/equal_pairs.py --quick               # one race: does it run at all?
python studies/racing/equal_pairs.py --table               # the table again from results/

After a change of the package that changes what races do, delete results/equal_pairs.jsonl.
"""

import argparse
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

import polarbear as pb

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.markdown import table
from tools.records import Records

QUICK_CPU_SECONDS = 1

HERE = Path(__file__).parent
CERTAINTY, EPSILON, INSTANCES = 0.95, 0.05, 4096
TIMES = (1, 20)
OUTCOMES = ("equivalent", "eliminated", "member", "undecided")


def race(seed: int, n_times: int, persistence: float = 0.5) -> dict[str, Any]:
    """Race two algorithms whose results have the same distribution at every time."""
    runs = pb.simulation.simulate_runs(
        np.zeros((n_times, 2)), INSTANCES, seed=seed, persistence=persistence
    )
    replay = pb.replay(runs, pb.ParetoSet(certainty=CERTAINTY), seed=seed)
    kinds = {one.kind for one in replay.verdicts()}
    outcome = "eliminated" if "dominated" in kinds else "undecided"
    if kinds == {"equivalent"}:
        outcome = "equivalent"
    elif kinds <= {"equivalent", "member"}:
        outcome = "member"
    instances = len(replay.runs.instances)
    return {"times": n_times, "race": seed, "outcome": outcome, "instances": instances}


def describe(rows: list[dict[str, Any]]) -> str:
    """Return the page of the races that are there."""
    lines = []
    for n_times in TIMES:
        ends = [row for row in rows if row["times"] == n_times]
        if ends:
            count = Counter(row["outcome"] for row in ends)
            shares = [f"{100 * count[one] / len(ends):.1f} %" for one in OUTCOMES]
            middle = f"{np.median([row['instances'] for row in ends]):,.0f}"
            mean = f"{np.mean([row['instances'] for row in ends]):,.0f}"
            lines.append([n_times, len(ends), *shares, middle, mean])
    head = ["times", "races", *OUTCOMES, "median instances", "mean"]
    return (
        f"Two equal algorithms, certainty {CERTAINTY}, epsilon {EPSILON}, error control per "
        f"member, at most {INSTANCES:,} instances, luck that lasts for half the range of times "
        "(`python studies/racing/equal_pairs.py`).\n\n"
        f"{table(head, lines)}\n\n"
        "*equivalent*: both are at par somewhere, and neither is certain to lead anywhere. "
        "*member*: both stay, and one of them is certain to lead somewhere.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--races", type=int, default=200)
    parser.add_argument("--times", type=int, nargs="+", choices=TIMES, default=list(TIMES))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    parser.add_argument("--table", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, times, races = HERE, wanted.times, wanted.races
        if wanted.quick:
            folder, times, races = Path(scratch), TIMES[:1], 1
        ends = Records(folder / "results" / "equal_pairs.jsonl", key=("times", "race"))
        for n_times in times if not wanted.table else ():
            missing = [number for number in range(races) if (n_times, number) not in ends]
            with ProcessPoolExecutor(wanted.jobs) as pool:
                for row in pool.map(race, missing, repeat(n_times)):
                    ends.add(row)
        page = describe(ends.rows)
        (folder / "equal_pairs.md").write_text(page)
        print(page)


if __name__ == "__main__":
    main()
