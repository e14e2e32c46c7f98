"""How do races of two equal algorithms end? Writes equal_pairs.md.

python studies/racing/equal_pairs.py               # 200 races at 1 and at 20 times: half an hour
python studies/racing/equal_pairs.py --races 20    # fewer
"""

import argparse
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import polarbear as pb

CERTAINTY, INSTANCES = 0.95, 4096
OUTCOMES = ("equivalent", "eliminated", "member", "undecided")


class End(NamedTuple):
    """How a race of two equal algorithms ended, and the instances that it took."""

    outcome: str
    instances: int


def race(seed: int, n_times: int, persistence: float = 0.5) -> End:
    """Race two algorithms whose results have the same distribution at every time."""
    runs = pb.testing.simulate_runs(
        np.zeros((n_times, 2)), INSTANCES, seed=seed, persistence=persistence
    )
    replay = pb.replay(runs, pb.Rules(alpha=CERTAINTY), seed=seed)
    kinds = {one.status for one in replay.statuses()}
    outcome = "eliminated" if "dominated" in kinds else "undecided"
    if kinds == {"equivalent"}:
        outcome = "equivalent"
    elif kinds <= {"equivalent", "member"}:
        outcome = "member"
    return End(outcome, len(replay.runs.instances))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--races", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    wanted = parser.parse_args()
    setting = (
        f"certainty {CERTAINTY}, epsilon 0.05, {INSTANCES:,} instances, {wanted.races} races each"
    )
    lines = [
        f"Two equal algorithms, {setting} (`python studies/racing/equal_pairs.py`).",
        "",
        f"| times | {' | '.join(OUTCOMES)} | median instances |",
        f"|{'---|' * (len(OUTCOMES) + 2)}",
    ]
    for n_times in (1, 20):
        with ProcessPoolExecutor(wanted.jobs) as pool:
            ends = list(pool.map(partial(race, n_times=n_times), range(wanted.races)))
        count = Counter(end.outcome for end in ends)
        shares = " | ".join(f"{100 * count[one] / len(ends):.1f} %" for one in OUTCOMES)
        instances = int(np.median([end.instances for end in ends]))
        lines.append(f"| {n_times} | {shares} | {instances} |")
        print(lines[-1], flush=True)
    lines += ["", "*member*: both stay, and one of them is certain to lead somewhere."]
    if wanted.races >= 200:
        (Path(__file__).parent / "equal_pairs.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
