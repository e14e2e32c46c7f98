"""Targets beside times on recorded runs, and COCO's expected running times beside ours.

python studies/orders/targets.py               # minutes (the last part needs cocoex and cocopp)
python studies/orders/targets.py --quick       # the example alone
python studies/orders/targets.py --pools DIR   # make pools/ from recorded values
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

QUICK_CPU_SECONDS = 1

HERE = Path(__file__).parent
POOLS = HERE / "pools"
GAPS = [10.0, 1.0, 0.1]
BUDGET = 300


def make_pools(folder):
    """Keep every other time of the recorded pools, and the order of all values of an instance.

    Ranks are enough: neither rankings nor targets change with a monotone transformation.
    """
    POOLS.mkdir(exist_ok=True)
    for source in sorted(Path(folder).glob("mabbob_d*.npz")):
        with np.load(source, allow_pickle=False) as file:
            kept = np.r_[0 : len(file["grid"]) - 1 : 2, len(file["grid"]) - 1]
            best = file["best"][:, :, kept]
            names, times = file["algorithms"], file["grid"][kept]
        order = np.stack(
            [np.unique(best[:, i], return_inverse=True)[1] for i in range(best.shape[1])], axis=1
        ).reshape(best.shape)
        np.savez_compressed(
            POOLS / source.name, value=order.astype(np.uint8), algorithms=names, times=times
        )


def read_pool(path):
    with np.load(path, allow_pickle=False) as file:
        value, names, times = file["value"], file["algorithms"], file["times"]
    algorithm, instance, time = (index.ravel() for index in np.indices(value.shape))
    columns = {
        "algorithm": names[algorithm], "instance": instance + 1, "time": times[time],
        "value": value.ravel().astype(np.float64),
    }  # fmt: skip
    return pb.Runs.from_frame(columns, direction="minimize", clock="evaluations")


def read_recorded():
    """Recorded runs: the example, two pools, logs of MIP solvers, and learning curves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.errors.DataWarning)  # whole seconds in some logs
        return {
            "example (MA-BBOB, d = 5)": pb.example("cma-variants"),
            "pool (MA-BBOB, d = 5)": read_pool(POOLS / "mabbob_d5.npz"),
            "pool (MA-BBOB, d = 10)": read_pool(POOLS / "mabbob_d10.npz"),
            "logs of MIP solvers (studies/mip)": read_logs(MIP),
            "expected returns (studies/curves)": read_curves("expected"),
        }


def compare(runs):
    """Return the Pareto set, the leaders and shares of ties by times and by targets.

    Also returns a row for each algorithm that is in only one of the two sets, and how many runs
    reach the easiest target until the first time.
    """
    times, targets = pb.grid.from_runs(runs, 9), pb.targets.from_runs(runs)
    rows, posteriors = [], []
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
        posteriors.append(posterior)
    differing = []
    by_times, by_targets = ({*posterior.pareto(0.95)} for posterior in posteriors)
    for name in sorted(by_times ^ by_targets):
        k = runs.algorithms.index(name)
        chances = [posterior.prob_in_pareto()[name] for posterior in posteriors]
        best = [float(posterior.prob_best()[:, k].max()) for posterior in posteriors]
        differing.append(
            [name, *(f"{x:.3f}" for pair in zip(chances, best, strict=True) for x in pair)]
        )
    hits = pb.targets.find_hitting_times(runs, targets)
    early = float(np.mean(hits[0] <= times[0]))
    middle = [float(np.median(row)) for row in hits[:2]]
    return rows, differing, (early, *middle, times[0])


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
    """Return rows by gap and algorithm, and the largest difference of our and cocopp's ERT."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_coco(folder)
        runs = pb.read(folder)
        known = expected_running_times(folder)
    targets = pb.targets.from_optima(0.0, runs, gaps=GAPS)
    posterior = pb.fit(pb.rank(runs, targets=targets))
    functions = sorted({function for _, function in known})
    differences = []
    for function in functions:
        mine = [name for name in runs.instances if f" f{function} " in name]
        ours = pb.targets.running_times(runs.filter(instances=mine), targets)
        for a, algorithm in enumerate(ours.algorithms):
            theirs = known[algorithm, function]
            assert np.array_equal(np.isinf(theirs), np.isinf(ours.expected[:, a]))
            reached = np.isfinite(theirs)
            differences += np.abs(ours.expected[reached, a] / theirs[reached] - 1).tolist()
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
    return runs, rows, (max(differences), len(differences))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pools", metavar="DIR", help="make pools/ from recorded values")
    wanted = parser.parse_args()
    if wanted.pools:
        make_pools(wanted.pools)
        return
    quick = wanted.quick
    recorded = {"example": pb.example("cma-variants")} if quick else read_recorded()
    if not quick:
        coco, coco_rows, (largest, n_compared) = compare_with_coco()
        recorded["BBOB (below)"] = coco
    rows, differing, before = [], [], []
    for name, runs in recorded.items():
        own, others, (early, *middle, first) = compare(runs)
        rows += [[name, *row] for row in own]
        differing += [[name, *row] for row in others]
        before.append([name, f"{first:,.4g}", f"{early:.2f}", *(f"{x:,.4g}" for x in middle)])
    text = [
        "# Targets beside times\n", "`python studies/orders/targets.py`\n",
        table(["runs", "compared at", "Pareto set (0.95)", "leaders, early to late",
               "pairs tied at the first", "in the middle", "at the last"], rows),
        "\nAlgorithms in one of the two sets only: probabilities to be members and to be best.\n",
        table(["runs", "algorithm", "member by times", "best at a time", "member by targets",
               "best at a target"], differing),
        "\nWhen the two easiest targets are reached.\n",
        table(["runs", "first time", "runs that reach the easiest target until then",
               "median time to the easiest", "to the next"], before),
    ]  # fmt: skip
    if not quick:
        text += [
            "\n## COCO's expected running times, by cocopp\n",
            f"12 functions, 5 instances, d = 2, {BUDGET} evaluations, logged by cocoex.\n",
            f"`pb.targets.running_times` differs by at most {largest:.1g} in {n_compared} ERT.\n",
            table(["gap", "algorithm", "median ERT over functions", "functions reached",
                   "smallest ERT", "rating: P(reaches it first)"], coco_rows),
            "",
        ]  # fmt: skip
    (sys.stdout.write if quick else (HERE / "targets.md").write_text)("\n".join(text))


if __name__ == "__main__":
    main()
