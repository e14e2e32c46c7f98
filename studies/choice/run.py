"""What does a race save if the budget is known? Writes table.md.

python studies/choice/run.py             # 200 replays; hours; goes on where it was
python studies/choice/run.py --replays 20
python studies/choice/run.py --table     # the table again from results/
python studies/choice/run.py --quick     # seconds: does it run at all?
"""

import argparse
import sys
import tempfile
import warnings
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from tools.markdown import table
from tools.pools import recorded_runs
from tools.records import Records

import polarbear as pb

QUICK_CPU_SECONDS = 3

HERE = Path(__file__).parent
NAMES = ("mabbob_d10", "mabbob_d5")
SHARES = {"early": (0.0, 0.3), "middle": (0.3, 0.7), "late": (0.7, 1.0), "any": (0.0, 1.0)}
REGRET = 0.01
POOL_TIMES, TIMES = 60, 20


@cache
def pool(name: str, instances: int | None) -> pb.Runs:
    """Return runs that are ranked as the recorded ones are, at some of their times."""
    chosen = np.linspace(0, POOL_TIMES - 1, TIMES).astype(int)
    return recorded_runs(name, chosen, instances)


@cache
def truth(name: str, instances: int | None) -> pb.Posterior:
    """Return the posterior of all runs of a pool, which stands for the truth."""
    runs = pool(name, instances)
    return pb.fit(pb.rank(runs, np.unique(runs.time)), draws=2000)


def preference(times: np.ndarray, share: str) -> pb.preferences.Linear:
    """Return the preference for a part of the time range, on its logarithmic scale."""
    ends = np.exp(np.interp(SHARES[share], [0, 1], np.log(times[[0, -1]])))
    return pb.preferences.between(float(ends[0]), float(ends[1]), scale="log")


@lru_cache(maxsize=1)
def whole_race(name: str, seed: int, instances: int | None) -> pb.Race:
    """Replay a race for the whole Pareto set, which is the same for all preferences."""
    runs = pool(name, instances)
    return pb.replay(runs, times=np.unique(runs.time), seed=seed)


def measure(name: str, share: str, seed: int, instances: int | None) -> dict[str, Any]:
    """Replay the whole race and the race for a choice, in the same order of instances."""
    runs, full = pool(name, instances), truth(name, instances)
    times = np.unique(runs.time)
    wanted = preference(times, share)
    row: dict[str, Any] = {"pool": name, "share": share, "seed": seed}
    whole = whole_race(name, seed, instances)
    row |= {"whole": whole.spent.time, "whole_ended": whole.ended}
    row["whole_choice"] = (
        pb.select(whole.posterior, wanted).algorithms[0] if whole.posterior else ""
    )
    values = {one.algorithms[0]: one.expected for one in pb.select(full, wanted).choices}
    for arm, regret in (("settled", None), ("regret", REGRET)):
        replay = pb.replay(runs, pb.Choice(wanted, regret=regret), times=times, seed=seed)
        chosen = replay.status.chosen[0]
        row |= {
            arm: replay.spent.time,
            f"{arm}_ended": replay.ended,
            f"{arm}_choice": chosen,
            f"{arm}_loss": max(values.values()) - values[chosen],
        }
    return row


def write(folder: Path) -> str:
    rows = Records(folder / "results" / "replays.jsonl", ("pool", "share", "seed")).rows
    parts = [f"{len(rows)} replays; made by `python studies/choice/run.py`, see README.md."]
    cells = []
    for arm in ("settled", "regret"):
        for name in NAMES:
            some = [row for row in rows if row["pool"] == name]
            if not some:
                continue
            ratio = np.array([row[arm] / row["whole"] for row in some])
            loss = np.array([row[f"{arm}_loss"] for row in some])
            same = np.mean([row[f"{arm}_choice"] == row["whole_choice"] for row in some])
            done = np.mean([row[f"{arm}_ended"] == "resolved" for row in some])
            cells.append(
                [
                    arm if arm == "settled" else f"regret {REGRET:g}",
                    name,
                    len(some),
                    f"{100 * np.median(ratio):.0f}",
                    f"{100 * done:.0f}",
                    f"{100 * same:.0f}",
                    f"{100 * np.mean(loss <= REGRET):.0f}",
                    f"{loss.max():.3f}",
                ]
            )
    head = ["race ends at", "pool", "replays", "evaluations, % of the whole race (median)"]
    head += ["resolved %", "same choice %", f"loss <= {REGRET:g} %", "largest loss"]
    parts.append(table(head, cells))
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replays", type=int, default=200)
    parser.add_argument("--table", action="store_true", help="the table again from results/")
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    wanted = parser.parse_args()
    warnings.simplefilter("ignore", pb.errors.DataWarning)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else HERE
        records = Records(folder / "results" / "replays.jsonl", ("pool", "share", "seed"))
        kinds = [(name, share) for name in NAMES for share in SHARES]
        total = 0 if wanted.table else 1 if wanted.quick else wanted.replays
        for k in range(total):
            name, share = kinds[k % len(kinds)]
            key = (name, share, k // len(kinds))
            if key not in records:
                records.add(measure(*key, 8 if wanted.quick else None))
                print(records.rows[-1], flush=True)
        print(write(folder))


if __name__ == "__main__":
    main()
