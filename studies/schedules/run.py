"""Does a schedule pay, is its stated gain true, and do intervals of the value of time cover it?

python studies/schedules/run.py --aslib FOLDER   # scenarios of ASlib; some CPU minutes
python studies/schedules/run.py --quick          # seconds: does it run at all?
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.markdown import table

import polarbear as pb
from polarbear.selection.schedules import RunTable, Search

QUICK_CPU_SECONDS = 6

LAST = 100.0
LIMITS = """Of one algorithm at a time, at all budgets, in 40 splits. The truth is the share on the
other instances, which has an error of its own. Where nearly no or nearly all instances improve, 40
of them may all agree, and the interval hangs on the half instance that is added to either side."""


def score(runs: pb.Runs, budget: float, steps: tuple[tuple[str, float], ...]) -> np.ndarray:
    """Return the PAR10 score of a schedule on each instance, in budgets; more is better."""
    found = RunTable.of(runs, budget, "par10", None)
    code = {name: k for k, name in enumerate(found.algorithms)}
    return Search(found, 0)._evaluate(tuple((code[name], until) for name, until in steps))


def best_parallel(runs: pb.Runs, budget: float) -> float:
    """Return the held-out score of the best two algorithms side by side, each at half speed."""
    found = RunTable.of(runs, budget / 2, "par10", None)
    search = Search(found, 0)
    alone = found.between(0.0, np.inf)[:, :, 0]
    n = len(alone)
    pairs = [(a, b) for a in range(n) for b in range(a)]
    values = np.stack([np.maximum(alone[a], alone[b]) for a, b in pairs])
    chosen = np.argmax(values @ search.training, axis=0)
    return float(values[chosen[search.fold], np.arange(values.shape[1])].mean())


def measure_scenario(runs: pb.Runs, budget: float) -> list[float]:
    """Return the share of the gap from the single best to the virtual best that is closed."""
    alone = RunTable.of(runs, budget, "par10", None).between(0.0, np.inf)[:, :, 0]
    virtual = float(alone.max(axis=0).mean())
    two, three, four = (
        pb.selection.schedule(runs, budget, steps=k, score="par10") for k in (2, 3, 4)
    )
    single = two.values[1]
    scores = [two.values[0], three.values[0], four.values[0], best_parallel(runs, budget)]
    return [two.probability, *((one - single) / (virtual - single) for one in scores)]


def check_probability(runs: pb.Runs, budget: float) -> list[tuple[float, float]]:
    """Return the stated probabilities of a gain, and whether there was one on a tenth held out."""
    order = np.random.default_rng(1).permutation(len(runs.instances))
    found = []
    for fold in range(10):
        out = [runs.instances[k] for k in order[fold::10]]
        kept = [name for name in runs.instances if name not in set(out)]
        stated = pb.selection.schedule(runs.filter(instances=kept), budget, score="par10")
        held_out = runs.filter(instances=out)
        own, other = (
            score(held_out, budget, steps).mean()
            for steps in (stated.steps, ((stated.single, np.inf),))
        )
        found.append((stated.probability, float(own > other) + (own == other) / 2))
    return found


def simulate(n: int, seed: int, algorithms: int = 6) -> pb.Runs:
    """Return runs of equal algorithms, which solve an instance at a random time or never."""
    rng = np.random.default_rng(seed)
    records = []
    for k in range(n):
        hard = rng.exponential(20.0)
        for a in range(algorithms):
            time = hard * rng.exponential(1.0)
            solved = time < LAST and rng.random() > 0.4
            at, value = ([time], [0.0]) if solved else ([], [])
            records.append(pb.Run(f"a{a}", f"i{k}", at, value, LAST, status=pb.Status.CUT))
    return pb.Runs.from_records(records, direction="minimize", clock="seconds")


def measure_optimism(races: int, size: int) -> str:
    """Return the mean of stated less true gain, with its standard error, in budgets of PAR10."""
    truth, stated, true = simulate(size, 10**6), [], []
    for seed in range(races):
        found = pb.selection.schedule(simulate(40, seed), LAST, score="par10")
        own, other = (
            score(truth, LAST, steps).mean() for steps in (found.steps, ((found.single, np.inf),))
        )
        stated.append(found.gain[0])
        true.append(own - other)
    optimism = np.subtract(stated, true)
    error = optimism.std(ddof=1) / np.sqrt(races)
    return (
        f"Six equal algorithms, 40 instances, {races} data sets: stated gain "
        f"{np.mean(stated):.3f}, true gain {np.mean(true):.3f} budgets; optimism "
        f"{optimism.mean():+.3f} (standard error {error:.3f})."
    )


def measure_coverage(runs: pb.Runs, splits: int) -> float:
    """Return how often the interval from 40 instances covers the share on all others."""
    covered = []
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(runs.instances))
        few, rest = ([runs.instances[k] for k in part] for part in (order[:40], order[40:]))
        name = runs.algorithms[seed % len(runs.algorithms)]
        own, other = (
            pb.selection.value_of_time(runs.filter(instances=part), name) for part in (few, rest)
        )
        truth = np.interp(np.log(own.budgets), np.log(other.budgets), other.improves[:, 0])
        covered.append(((own.improves[:, 1] <= truth) & (truth <= own.improves[:, 2])).mean())
    return float(np.mean(covered))


def main() -> None:
    """Write table.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--aslib", type=Path, help="a folder with scenarios of ASlib")
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    options = parser.parse_args()
    if options.quick:
        print(measure_optimism(2, 200))
        print(measure_scenario(simulate(40, 1), LAST))
        return
    rows, probabilities, coverage = [], [], []
    for path in sorted(options.aslib.glob("*.tar.gz")) if options.aslib else ():
        runs = pb.read(path)
        budget, name = float(runs.until.max()), path.name.split(".")[0]
        times = RunTable.of(runs, budget, "par10", None) if budget > 10 else None
        if times is None or "Obj" in name or "OPENML" in name:
            continue  # values, not times to solve
        measured = measure_scenario(runs, budget)
        probabilities.append(check_probability(runs, budget))
        if len(runs.instances) > 400:
            coverage.append([name, f"{measure_coverage(runs, 40):.3f}"])
        counts = [len(runs.algorithms), len(runs.instances)]
        rows.append([name, *counts, *(f"{one:.2f}" for one in measured)])
        print(*rows[-1], flush=True)
    rng = np.random.default_rng(0)
    each = np.array(probabilities)  # (scenarios, folds, 2)
    drawn = each[rng.integers(len(each), size=(2000, len(each)))].mean(axis=(1, 2))
    low, high = np.quantile(drawn[:, 0] - drawn[:, 1], [0.025, 0.975])
    stated, happened = each.mean(axis=(0, 1))
    head = ["scenario", "algorithms", "instances", "P(two steps are better)"]
    head += ["gap closed: two steps", "three", "four", "two side by side at half speed"]
    mean = np.array([[float(cell) for cell in row[3:]] for row in rows]).mean(axis=0)
    rows.append(["mean", "", "", *(f"{one:.2f}" for one in mean)])
    said = (
        f"P(two steps are better) is {stated:.3f} in the mean of {each.shape[0]} scenarios and ten "
        f"folds; on the tenth held out they were better in {happened:.3f} (difference "
        f"{stated - happened:+.3f}, 95 % interval over scenarios {low:+.3f} to {high:+.3f})."
    )
    covered = [float(cell) for _, cell in coverage]
    coverage.append(["mean", f"{np.mean(covered):.3f}"])
    text = [
        "Made by `python studies/schedules/run.py --aslib FOLDER`.",
        "## The gap from the single best to the virtual best, PAR10, held out (ten folds)",
        table(head, rows),
        "## Stated probabilities",
        said,
        "## Optimism",
        measure_optimism(200, 4000),
        "## Value of time: intervals of 95 % from 40 instances that cover the share on the others",
        LIMITS,
        table(["runs", "covered"], coverage),
    ]
    (Path(__file__).parent / "table.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
