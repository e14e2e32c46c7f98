"""Four optimisers of pymoo on 30 bi-objective problems: which order gives which verdict?

python studies/orders/objectives.py           # minutes; continues where it stopped (needs pymoo)
python studies/orders/objectives.py --quick   # seconds: does it run at all?
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from tools.markdown import table

import polarbear as pb

QUICK_CPU_SECONDS = 4
NEEDS = ("pymoo",)

HERE = Path(__file__).parent
POINTS = HERE / "results" / "points.json"
EVALUATIONS, POPULATION = 400, 20
TIMES = [40, 60, 80, 120, 160, 200, 300, 400]
FACTORS = (1.01, 1.5, 10.0)


def make_problems():
    """30 problems: ZDT, DTLZ and others of pymoo in several dimensions."""
    from pymoo.problems import get_problem

    named = {}
    for name in ("zdt1", "zdt2", "zdt3", "zdt4", "zdt6"):
        for n in (5, 10, 20):
            named[f"{name} d{n}"] = (name, {"n_var": n})
    for name in ("dtlz1", "dtlz2", "dtlz3", "dtlz4", "dtlz5", "dtlz6", "dtlz7"):
        for n in (5, 10):
            named[f"{name} d{n}"] = (name, {"n_var": n, "n_obj": 2})
    named["kursawe"] = ("kursawe", {})
    return {key: get_problem(name, **options) for key, (name, options) in named.items()}


def make_optimisers():
    from pymoo.algorithms.moo.moead import MOEAD
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.algorithms.moo.sms import SMSEMOA
    from pymoo.algorithms.moo.spea2 import SPEA2
    from pymoo.util.ref_dirs import get_reference_directions

    directions = get_reference_directions("uniform", 2, n_partitions=POPULATION - 1)
    return {
        "MOEA/D": lambda: MOEAD(directions, n_neighbors=6),
        "NSGA-II": lambda: NSGA2(pop_size=POPULATION),
        "SMS-EMOA": lambda: SMSEMOA(pop_size=POPULATION),
        "SPEA2": lambda: SPEA2(pop_size=POPULATION),
    }


def record_run(problem, optimiser, seed):
    """Return the improvements of a run: [evaluation, f1, f2], by its own archive."""
    from pymoo.optimize import minimize

    seen = []
    evaluate = problem._evaluate

    def recorded(x, out, *args, **kwargs):
        evaluate(x, out, *args, **kwargs)
        seen.extend(np.atleast_2d(out["F"]).tolist())

    problem._evaluate = recorded
    try:
        minimize(problem, optimiser(), ("n_eval", EVALUATIONS), seed=seed, verbose=False)
    finally:
        del problem._evaluate
    return [[k, *point] for k, point in enumerate(seen[:EVALUATIONS], start=1)]


def measure(quick):
    """Make the runs that are missing, and return the improvements of all by name."""
    done = json.loads(POINTS.read_text()) if POINTS.exists() and not quick else {}
    problems = make_problems()
    for number, (name, problem) in enumerate(problems.items()):
        if quick and number == 4:
            break
        for algorithm, optimiser in make_optimisers().items():
            key = f"{algorithm}|{name}"
            if key in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = record_run(problem, optimiser, number)
            run = pb.Run(algorithm, name, [r[0] for r in rows], [r[1:] for r in rows], EVALUATIONS)
            one = pb.readers.Archives.from_records(
                [run], objectives=("f1", "f2"), direction="minimize"
            )
            done[key] = [
                [float(f"{x:.7g}") for x in row]
                for row in np.column_stack([one.time, one.points]).tolist()
            ]
        if not quick:
            POINTS.parent.mkdir(exist_ok=True)
            POINTS.write_text(json.dumps(done))
    return done


def to_archives(done):
    records = []
    for key, rows in done.items():
        algorithm, name = key.split("|")
        rows = [row for row in rows if row[0] <= EVALUATIONS]
        time_, points = [r[0] for r in rows], [r[1:] for r in rows]
        records.append(pb.Run(algorithm, name, time_, points, EVALUATIONS))
    return pb.readers.Archives.from_records(
        records, objectives=("f1", "f2"), direction="minimize", clock="evaluations"
    )


def winners(runs):
    """The algorithms that are first on each instance at the end; by rank, repetitions averaged."""
    rankings = pb.rank(runs, [TIMES[-1]])
    comparison = np.repeat(np.arange(len(rankings.instance)), np.diff(rankings.offset))
    mean = np.zeros((len(rankings.instances), len(rankings.algorithms)))
    np.add.at(mean, (rankings.instance[comparison], rankings.algorithm), rankings.position[0])
    return mean.argmin(axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true", help="from the runs that are there")
    arguments = parser.parse_args()
    quick = arguments.quick
    done = json.loads(POINTS.read_text()) if arguments.table else measure(quick)
    archives = to_archives(done)
    orders: dict[str, Callable[[], Any]] = {"lottery of 16": lambda: archives.scalarise(16)}
    for factor in FACTORS:
        orders[f"hypervolume, {factor:g} of nadir"] = lambda factor=factor: archives.hypervolume(
            factor, TIMES
        )
    orders["hypervolume, all three"] = lambda: archives.hypervolume(FACTORS, TIMES)
    orders["set dominance"] = lambda: archives.dominance(TIMES)
    rows, first = [], {}
    for name, make in orders.items():
        start = time.process_time()
        data = make()
        made = time.process_time() - start
        rankings = data if isinstance(data, pb.Rankings) else pb.rank(data, TIMES)
        posterior = pb.fit(rankings)
        if not isinstance(data, pb.Rankings):
            first[name] = winners(data)
        at_end = posterior.mean()[-1]
        sms = posterior.prob_better("SMS-EMOA", "NSGA-II")[-1]
        rows.append(
            [name, f"{made:.2f}", ", ".join(posterior.pareto(0.95)),
             posterior.algorithms[int(at_end.argmax())], f"{at_end.max():.2f}", f"{sms:.2f}"]
        )  # fmt: skip
    base = first["hypervolume, 1.5 of nadir"]
    changes = [
        [name, f"{np.mean(own != base):.2f}"] for name, own in first.items() if own is not base
    ]
    shares = archives.dominance(TIMES).share_ordered()
    text = [
        "# Several objectives: four optimisers of pymoo on bi-objective problems\n",
        f"{archives}; {EVALUATIONS} evaluations, population {POPULATION}.\n",
        "`python studies/orders/objectives.py`\n",
        table(["ordered by", "CPU seconds", "Pareto set (0.95)", "leads at the end", "rating",
               "P(SMS-EMOA > NSGA-II) at the end"], rows),
        "\nShare of problems with another winner at the end than by hypervolume at 1.5 of nadir:\n",
        table(["ordered by", "other winner"], changes),
        "\nSet dominance orders this share of the pairs at "
        + ", ".join(f"{t}: {s:.2f}" for t, s in zip(TIMES, shares, strict=True)) + ".\n",
    ]  # fmt: skip
    (sys.stdout.write if quick else (HERE / "objectives.md").write_text)("\n".join(text))


if __name__ == "__main__":
    main()
