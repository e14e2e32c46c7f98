"""Is the gate as seldom wrong as it says, and what does it cost? Writes table.md.

python studies/gate/run.py               # 1,000 simulated patches: a minute or two
python studies/gate/run.py --highs       # HiGHS with two option sets, for real: minutes
python studies/gate/run.py --quick       # seconds: does it run at all?
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from programs.run import HIGHS, command, instances
from scipy.special import ndtri
from tools.markdown import table

import polarbear as pb
from polarbear.inference.e_values import Outcomes
from polarbear.racing.gating import judge_against_baseline

HERE = Path(__file__).parent
ALPHA, EPSILON, N_TIMES, MOST, PERSISTENCE = 0.95, 0.05, 10, 8192, 0.5
SHIFTS = (0.02, 0.05, 0.1, 0.2)


def patches() -> dict[str, np.ndarray]:
    """Mean scores of a new version at each time (T,), by what was changed."""
    half, early = np.full(N_TIMES, 0.5), np.arange(N_TIMES) < N_TIMES // 2
    kinds = {"equal": half}
    for shift in SHIFTS:
        kinds[f"better by {shift:g}"] = half + shift
        kinds[f"worse by {shift:g}"] = half - shift
        kinds[f"worse by {shift:g}, early"] = half - shift * early
        kinds[f"worse by {shift:g}, late"] = half - shift * ~early
    return kinds


def simulate(p: np.ndarray, number: int, rng: np.random.Generator, most: int) -> dict[str, Any]:
    """Return the answers of the gate on so many patches, and the instances that each took.

    Results of an instance are correlated over time: a Gaussian process with correlation
    exp(-|s - t| / L) over a unit range, which is below the quantile of p where the patch wins.
    """
    gap = 1 / (N_TIMES - 1)
    keep, cut = np.exp(-gap / PERSISTENCE), ndtri(p)
    wins = np.zeros((N_TIMES, number))
    answers = np.full(number, "undecided")
    cost = np.full(number, float(most))
    n = 0
    while n < most and (answers == "undecided").any():
        batch = int(np.clip(n // 8, 8, 64))
        z = rng.standard_normal((number, batch))
        for t in range(N_TIMES):
            if t:
                z = keep * z + np.sqrt(1 - keep**2) * rng.standard_normal(z.shape)
            wins[t] += (z < cut[t]).sum(axis=1)
        n += batch
        matrix = np.zeros((N_TIMES, number + 1, number + 1))
        matrix[:, 1:, 0], matrix[:, 0, 1:] = wins, n - wins
        now = np.array(
            judge_against_baseline(Outcomes(matrix, np.zeros_like(matrix)), 0, ALPHA, EPSILON)[0][
                1:
            ]
        )
        settled = (answers == "undecided") & (now != "undecided")
        answers, cost = np.where(settled, now, answers), np.where(settled, n, cost)
    shares = {name: float(np.mean(answers == name)) for name in ("passed", "failed", "undecided")}
    return {**shares, "mean": float(cost.mean())}


def fixed_sample(power: float) -> float:
    """Return the sample that shows "not behind by epsilon" of an equal patch with this power."""
    z = ndtri(ALPHA) + ndtri(min(max(power, 0.5), 0.999))
    return float((0.5 * z / EPSILON) ** 2)


def measure(number: int, most: int) -> list[dict[str, Any]]:
    rows = []
    for k, (kind, p) in enumerate(patches().items()):
        row = {"patch": kind, "behind": float(max(0.5 - p.min(), 0.0)), "patches": number}
        rows.append({**row, **simulate(p, number, np.random.default_rng([7, k]), most)})
        print(rows[-1], flush=True)
    return rows


def race_highs(folder: Path, quick: bool) -> dict[str, Any]:
    """Gate HiGHS without heuristics against HiGHS as it comes, on knapsacks."""
    number, items, times = (4, 20, [0.05]) if quick else (300, 200, [0.05, 0.2, 1.0])
    found = pb.gate(
        command("highs.py", *HIGHS["HiGHS"]),
        command("highs.py", *HIGHS["no heuristics"]),
        instances(folder / "instances", number, items),
        times,
        direction="minimize",
        executor=pb.LocalProcesses(2, pin=True),
        store=folder / "gate.db",
        max_runs=8 if quick else None,
    )
    print(found)
    return found.to_dict()


def write(folder: Path) -> str:
    parts = ["Made by `python studies/gate/run.py` and `--highs`."]
    path = folder / "results" / "patches.json"
    if path.exists():
        rows = json.loads(path.read_text())
        head = ["patch", "behind by at most", "pass %", "fail %", "undecided %", "mean instances"]
        cells = [
            [
                row["patch"],
                f"{row['behind']:g}",
                *(f"{100 * row[name]:.1f}" for name in ("passed", "failed", "undecided")),
                f"{row['mean']:,.0f}",
            ]
            for row in rows
        ]
        equal = rows[0]
        setting = (
            f"{equal['patches']} simulated patches of each kind at {N_TIMES} times, certainty "
            f"{ALPHA}, epsilon {EPSILON}, at most {MOST:,} instances."
        )
        cost = (
            f"An equal patch takes {equal['mean']:,.0f} instances in the mean. A fixed sample that "
            f"shows the same at one time with the same power takes "
            f"{fixed_sample(equal['passed']):,.0f}; it must be chosen beforehand, and takes as "
            "many for patches that are clearly better or worse."
        )
        parts += [setting, table(head, cells), cost]
    path = folder / "results" / "highs.json"
    if path.exists():
        facts = json.loads(path.read_text())
        head = ["seconds", "new wins", "ties", "old wins", "P(new wins), bounds"]
        cells = [
            [
                f"{t['time']:g}",
                *(f"{t[k]:g}" for k in ("wins", "ties", "losses")),
                f"{t['low']:.2f} to {t['high']:.2f}",
            ]
            for t in facts["times"]
        ]
        said = (
            f"HiGHS without heuristics (new) against HiGHS (old): **{facts['answer']}** after "
            f"{facts['instances']} instances and {facts['runs']} runs. {facts['guarantee']}"
        )
        parts += [said, table(head, cells)]
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--patches", type=int, default=60, help="of each of the 17 kinds")
    parser.add_argument("--highs", action="store_true", help="race HiGHS for real")
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else HERE
        results = folder / "results"
        results.mkdir(exist_ok=True)
        if wanted.highs or wanted.quick:
            facts = race_highs(folder, wanted.quick)
            (results / "highs.json").write_text(json.dumps(facts, indent=1) + "\n")
        if not wanted.highs:
            rows = measure(4, 64) if wanted.quick else measure(wanted.patches, MOST)
            (results / "patches.json").write_text(json.dumps(rows, indent=1) + "\n")
        print(write(folder))


if __name__ == "__main__":
    main()
