"""How do races of two equal algorithms end? Writes equal_pairs.md.

python studies/racing/equal_pairs.py               # 200 races of each case: half an hour
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

CERTAINTY = 0.99
CASES = ((1, 1024), (20, 1024), (1, 2048))
"""Numbers of times and of instances."""

OUTCOMES = ("both equivalent", "one equivalent", "both members", "one eliminated", "undecided")


class End(NamedTuple):
    """How a race of two equal algorithms ended, and the instances that it took."""

    outcome: str
    instances: int


def race(seed: int, n_times: int, instances: int = 1024) -> End:
    """Race two algorithms whose results have the same distribution at every time."""
    runs = pb.testing.simulate_runs(np.zeros((n_times, 2)), instances, seed=seed, persistence=0.5)
    replay = pb.replay(runs, pb.Rules(alpha=CERTAINTY), seed=seed)
    kinds = Counter(one.status for one in replay.statuses())
    if kinds["dominated"]:
        outcome = "one eliminated"
    elif kinds["undecided"]:
        outcome = "undecided"
    else:
        outcome = ("both members", "one equivalent", "both equivalent")[kinds["equivalent"]]
    return End(outcome, len(replay.runs.instances))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--races", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    wanted = parser.parse_args()
    setting = f"certainty {CERTAINTY}, epsilon 0.05, {wanted.races} races each"
    lines = [
        f"Two equal algorithms, {setting} (`python studies/racing/equal_pairs.py`).",
        "",
        f"| times | instances | {' | '.join(OUTCOMES)} | median instances used |",
        f"|{'---|' * (len(OUTCOMES) + 3)}",
    ]
    for n_times, instances in CASES:
        with ProcessPoolExecutor(wanted.jobs) as pool:
            once = partial(race, n_times=n_times, instances=instances)
            ends = list(pool.map(once, range(wanted.races)))
        count = Counter(end.outcome for end in ends)
        shares = " | ".join(f"{100 * count[one] / len(ends):.1f} %" for one in OUTCOMES)
        used = int(np.median([end.instances for end in ends]))
        lines.append(f"| {n_times} | {instances:,} | {shares} | {used} |")
        print(lines[-1], flush=True)
    lines += [
        "",
        "*one equivalent*: one is certain to lead somewhere, the other ties with it elsewhere.",
    ]
    if wanted.races >= 200:
        (Path(__file__).parent / "equal_pairs.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
