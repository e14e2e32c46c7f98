"""Targets beside times on recorded runs, and COCO's expected running times beside ours.

python studies/orders/targets.py           # minutes (the last part needs cocoex and cocopp)
python studies/orders/targets.py --quick   # the example alone
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from tools.markdown import table

import polarbear as pb

HERE = Path(__file__).parent
GAPS = [10.0, 1.0, 0.1]
BUDGET = 300


def compare(runs):
    """Pareto sets by time and by target, and the leaders."""
    rows = []
    times = pb.grid.from_runs(runs, 9)
    for name, posterior in (
        ("times", pb.fit(runs, times=times)),
        ("targets", pb.fit(runs, targets=pb.targets.from_runs(runs))),
    ):
        leaders = [posterior.algorithms[k] for k in posterior.mean().argmax(axis=1)]
        changes = [leader for k, leader in enumerate(leaders) if k == 0 or leader != leaders[k - 1]]
        rows.append([name, ", ".join(posterior.pareto(0.95)), " -> ".join(changes)])
    return rows


def make_coco(folder):
    """Log random search, a (1+1)-ES and Nelder-Mead on BBOB, in COCO's own format."""
    import cocoex
    import scipy.optimize

    def random_search(problem, rng):
        while problem.evaluations < BUDGET:
            problem(rng.uniform(-5, 5, problem.dimension))

    def one_plus_one(problem, rng):
        x, step = rng.uniform(-4, 4, problem.dimension), 1.0
        value = problem(x)
        while problem.evaluations < BUDGET:
            y = x + step * rng.normal(size=problem.dimension)
            new = problem(y)
            step *= 1.5 if new <= value else 0.9
            if new <= value:
                x, value = y, new

    def nelder_mead(problem, rng):
        while problem.evaluations < BUDGET:
            start = rng.uniform(-4, 4, problem.dimension)
            left = BUDGET - problem.evaluations
            scipy.optimize.minimize(problem, start, method="Nelder-Mead", options={"maxfev": left})

    for name, solver in (
        ("random", random_search), ("ES", one_plus_one), ("Nelder-Mead", nelder_mead),
    ):  # fmt: skip
        suite = cocoex.Suite("bbob", "instances: 1-5", "dimensions: 2 function_indices: 1-12")
        options = f"outer_folder: {folder} result_folder: {name} algorithm_name: {name}"
        observer = cocoex.Observer("bbob", options)
        for number, problem in enumerate(suite):
            problem.observe_with(observer)
            solver(problem, np.random.default_rng(number))
            problem.free()


def expected_running_times(folder):
    """COCO's expected running time for each gap, function and algorithm, by cocopp."""
    import cocopp.genericsettings
    from cocopp import pproc

    cocopp.genericsettings.verbose = 0
    found = {}
    for algorithm in ("random", "ES", "Nelder-Mead"):
        for data in pproc.DataSetList([str(folder / algorithm)], check_data_type=False):
            found[algorithm, data.funcId] = np.array(data.detERT(GAPS))
    return found


def compare_with_coco():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_coco(folder)
        runs = pb.read(folder)
        known = expected_running_times(folder)
    posterior = pb.fit(runs, targets=pb.targets.from_optima(0.0, runs, gaps=GAPS))
    functions = sorted({function for _, function in known})
    rows = []
    for k, gap in enumerate(GAPS):
        for a, algorithm in enumerate(posterior.algorithms):
            times = np.array([known[algorithm, f][k] for f in functions])
            others = np.array([[known[o, f][k] for f in functions] for o in posterior.algorithms])
            wins = np.mean((times <= others.min(axis=0)) & np.isfinite(times))
            middle = np.median(times)
            rows.append(
                [f"{gap:g}", algorithm, "never" if np.isinf(middle) else f"{middle:.0f}",
                 f"{np.mean(np.isfinite(times)):.2f}", f"{wins:.2f}",
                 f"{posterior.mean()[k, a]:.2f}"]
            )  # fmt: skip
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    text = ["# Targets beside times\n", "`python studies/orders/targets.py`\n"]
    rows = [["example (MA-BBOB, d = 5)", *row] for row in compare(pb.example())]
    text.append(table(["runs", "compared at", "Pareto set (0.95)", "leaders, early to late"], rows))
    if not quick:
        text += [
            "\n## COCO's expected running times, by cocopp\n",
            f"12 functions, 5 instances, d = 2, {BUDGET} evaluations, logged by cocoex.\n",
            table(["gap", "algorithm", "median ERT over functions", "functions reached",
                   "smallest ERT", "rating: P(reaches it first)"], compare_with_coco()),
            "",
        ]  # fmt: skip
    (sys.stdout.write if quick else (HERE / "targets.md").write_text)("\n".join(text))


if __name__ == "__main__":
    main()
