"""Targets beside times on recorded runs, and COCO's expected running times beside ours.

python studies/orders/targets.py           # minutes (the last part needs cocoex and cocopp)
python studies/orders/targets.py --quick   # the example alone
"""

import argparse
import itertools
import sys
import tempfile
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from curves.run import read as read_curves
from mip.run import HERE as MIP
from mip.run import read_runs as read_logs
from tools.markdown import table

import polarbear as pb

HERE = Path(__file__).parent
GAPS = [10.0, 1.0, 0.1]
BUDGET = 300


def read_recorded():
    """Recorded runs with values: the example, logs of MIP solvers, and learning curves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.DataWarning)  # whole seconds in some logs
        return {
            "example (MA-BBOB, d = 5)": pb.example(),
            "logs of MIP solvers (studies/mip)": read_logs(MIP),
            "expected returns (studies/curves)": read_curves("expected"),
        }


def compare(runs):
    """Return a row by times and one by targets: the Pareto set, the leaders, and shares of ties."""
    times, targets = pb.grid.from_runs(runs, 9), pb.targets.from_runs(runs)
    rows = []
    for name, rankings in (
        ("times", pb.rank(runs, times)),
        ("targets", pb.rank(runs, targets=targets)),
    ):
        posterior = pb.fit(rankings)
        leaders = [posterior.algorithms[k] for k in posterior.mean().argmax(axis=1)]
        changes = [leader for k, leader in enumerate(leaders) if k == 0 or leader != leaders[k - 1]]
        tied = share_tied(rankings)
        rows.append(
            [name, ", ".join(posterior.pareto(0.95)), " -> ".join(changes),
             f"{tied[0]:.2f}", f"{tied[len(tied) // 2]:.2f}", f"{tied[-1]:.2f}"]
        )  # fmt: skip
    return rows, share_before(runs, targets, times[0])


def share_tied(rankings):
    """Return the share of pairs of runs on an instance that are tied, at each time or target."""
    tied, pairs = np.zeros(len(rankings.times)), np.zeros(len(rankings.times))
    for first, last in itertools.pairwise(rankings.offset):
        position = rankings.position[:, first:last].astype(float)
        known = position >= 0
        both = np.triu(known[:, :, None] & known[:, None, :], 1)
        equal = position[:, :, None] == position[:, None, :]
        tied += (both & equal).sum(axis=(1, 2))
        pairs += both.sum(axis=(1, 2))
    return tied / np.maximum(pairs, 1)


def share_before(runs, targets, first_time):
    """Return how many of the runs reach the easiest target before a time."""
    sign = 1 if runs.direction == "minimize" else -1
    reached = 0
    for run in runs:
        early = np.asarray(run.value)[np.asarray(run.time) < first_time]
        reached += bool(np.any(sign * early <= sign * np.ravel(targets.values[run.instance])[0]))
    return reached / len(runs)


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
    rows, before = [], []
    recorded = {"example": pb.example()} if quick else read_recorded()
    for name, runs in recorded.items():
        own, share = compare(runs)
        rows += [[name, *row] for row in own]
        before.append(f"{share:.2f} ({name})")
    text += [
        table(["runs", "compared at", "Pareto set (0.95)", "leaders, early to late",
               "pairs tied at the first", "in the middle", "at the last"], rows),
        f"\nRuns that reach the easiest target before the first time: {', '.join(before)}.",
    ]  # fmt: skip
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
