"""Is the gate as seldom wrong as it says, and what does it cost? Writes table.md.

python studies/gate/run.py               # 1,000 simulated patches: a minute or two
python studies/gate/run.py --highs       # HiGHS with two option sets, for real: minutes
python studies/gate/run.py --estimates   # how often estimates after stopping are too large: minutes
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
from polarbear.racing.questions.no_worse import estimate_win_probability, judge_against_baseline

QUICK_CPU_SECONDS = 3

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


def draw_outcomes(
    rng: np.random.Generator, p: float, n_times: int, tie: float, n: int
) -> np.ndarray:
    """Draw wins, ties and losses (3, T, n): P(win) is p where there is no tie."""
    keep = np.exp(-1 / (max(n_times - 1, 1) * PERSISTENCE))
    z, rows = rng.standard_normal(n), []
    for t in range(n_times):
        if t:
            z = keep * z + np.sqrt(1 - keep**2) * rng.standard_normal(n)
        is_tie = rng.random(n) < tie
        rows.append([(z < ndtri(p)) & ~is_tie, is_tie, (z >= ndtri(p)) & ~is_tie])
    return np.array(rows, dtype=float).swapaxes(0, 1)


def stop_gate(rng: np.random.Generator, p: float, n_times: int, tie: float) -> tuple[Any, bool]:
    """Run a gate to its end; return its outcomes, and whether it passed or failed."""
    budget, most = pb.Budget(), 2048
    outcomes = np.zeros((3, n_times, 0))
    while outcomes.shape[2] < most:
        batch = budget.batch_after(outcomes.shape[2])
        outcomes = np.concatenate([outcomes, draw_outcomes(rng, p, n_times, tie, batch)], axis=2)
        wins, ties, losses = outcomes.sum(axis=2)
        matrix = np.zeros((2, n_times, 2, 2))
        matrix[0, :, 1, 0], matrix[0, :, 0, 1] = wins, losses
        matrix[1, :, 1, 0] = matrix[1, :, 0, 1] = ties
        if judge_against_baseline(Outcomes(*matrix), 0, ALPHA, EPSILON)[0][1] != "undecided":
            return outcomes, True
    return outcomes, False


def measure_estimates(number: int, quick: bool) -> list[dict[str, Any]]:
    """Return how often the share of wins and the estimate exceed the true probability of a win."""
    kinds = [(p, 1, 0.0) for p in (0.4, 0.5, 0.55, 0.6, 0.7)]
    kinds += [(p, 10, 0.0) for p in (0.4, 0.7, 0.6, 0.55)] + [(0.6, 1, 0.5), (0.3, 1, 0.0)]
    rows = []
    for k, (p, n_times, tie) in enumerate(kinds[:1] if quick else kinds):
        rng, shares, estimates = np.random.default_rng([11, k]), [], []
        for _ in range(number):
            outcomes, decided = stop_gate(rng, p, n_times, tie)
            wins, _, losses = outcomes.sum(axis=2)
            shares.append(wins / np.maximum(wins + losses, 1))
            estimates.append(estimate_win_probability(outcomes, pb.NoWorse("old"), decided=decided))
        above = {
            name: float(np.mean((np.array(x) > p) + 0.5 * np.isclose(x, p)))
            for name, x in (("share", shares), ("estimate", estimates))
        }
        error = {
            f"median {name}": float(np.median(x))
            for name, x in (("share", shares), ("estimate", estimates))
        }
        rows.append({"p": p, "times": n_times, "ties": tie, "gates": number, **above, **error})
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
        executor=pb.backends.LocalProcesses(2, pin=True),
        store=folder / "gate.db",
        budget=pb.Budget(runs=8) if quick else None,
    )
    print(found)
    return found.to_dict() | {"runs": found.spent.runs}


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
    path = folder / "results" / "estimates.json"
    if path.exists():
        rows = json.loads(path.read_text())
        head = ["P(win)", "times", "ties %", "share > P %", "estimate > P %", "median share"]
        head += ["median estimate"]
        cells = [
            [
                f"{row['p']:g}",
                str(row["times"]),
                f"{100 * row['ties']:.0f}",
                *(f"{100 * row[name]:.1f}" for name in ("share", "estimate")),
                *(f"{row[name]:.3f}" for name in ("median share", "median estimate")),
            ]
            for row in rows
        ]
        said = (
            f"Estimates after stopping (`--estimates`): how often the share of wins, and the "
            f"estimate that allows for stopping, exceed the true probability of a win, in "
            f"{rows[0]['gates']} gates of each kind, over all times. 50 % is unbiased."
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
    parser.add_argument("--estimates", action="store_true", help="estimates after stopping")
    parser.add_argument("--gates", type=int, default=400, help="of each kind, for --estimates")
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else HERE
        results = folder / "results"
        results.mkdir(exist_ok=True)
        if wanted.highs or wanted.quick:
            facts = race_highs(folder, wanted.quick)
            (results / "highs.json").write_text(json.dumps(facts, indent=1) + "\n")
        if wanted.estimates or wanted.quick:
            rows = measure_estimates(4 if wanted.quick else wanted.gates, wanted.quick)
            (results / "estimates.json").write_text(json.dumps(rows, indent=1) + "\n")
        if not (wanted.highs or wanted.estimates):
            rows = measure(4, 64) if wanted.quick else measure(wanted.patches, MOST)
            (results / "patches.json").write_text(json.dumps(rows, indent=1) + "\n")
        print(write(folder))


if __name__ == "__main__":
    main()
