"""Make the files of this folder with installed packages: python make.py FOLDER.

Needs coco-experiment, ioh and pymoo. The solvers write every evaluation to ``evaluations.csv``
themselves, so that what a package logged can be compared with what happened.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np

try:
    import cocoex
    import ioh
    from pymoo.algorithms.moo.moead import MOEAD
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.optimize import minimize
    from pymoo.problems import get_problem
    from pymoo.util.ref_dirs import get_reference_directions
except ImportError:  # pytest looks into every module
    cocoex = None

N_EVALUATIONS = 40


def search(evaluate, low, high, rng, local):
    """Evaluate random points, or mutations of a point that is replaced unless it is better."""
    x = rng.uniform(low, high)
    best = np.asarray(evaluate(x))
    for _ in range(N_EVALUATIONS - 1):
        y = rng.normal(x, (high - low) / 20) if local else rng.uniform(low, high)
        point = np.asarray(evaluate(y))
        if not (best <= point).all():
            x, best = y, point


def record_calls(evaluate, rows, *where):
    """Return a function that also adds a row for each evaluation."""
    time = iter(range(1, 1000))

    def recorded(x):
        point = evaluate(x)
        rows.append((*where, next(time), *point, True))
        return point

    return recorded


def make_coco(folder, rows):
    """Two runs of two algorithms on each of three problems of bbob-biobj."""
    for name in ("local", "random"):
        options = f"outer_folder: {folder} result_folder: {name} algorithm_name: {name}"
        observer = cocoex.Observer("bbob-biobj", options)
        for repetition in range(2):
            chosen = "dimensions: 2 function_indices: 1,2"
            for problem in cocoex.Suite("bbob-biobj", "instances: 1,3", chosen):
                function, instance = problem.id_function, problem.id_instance
                if (function, instance) == (2, 3):
                    continue
                problem.observe_with(observer)
                where = ("coco", name, f"bbob-biobj f{function} d2 i{instance}", repetition)
                rng = np.random.default_rng([repetition, function])
                low, high = problem.lower_bounds, problem.upper_bounds
                search(record_calls(problem, rows, *where), low, high, rng, name == "local")
                problem.free()


class Second:
    """A sphere as the second objective; the logger of IOHprofiler watches its value F2."""

    F2 = 0.0

    def __init__(self, problem):
        self.problem, self.centre = problem, np.add(problem.optimum.x, [2.0, 1.0])

    def evaluate(self, x):
        self.F2 = float(np.sum((x - self.centre) ** 2))
        return self.problem(x) - self.problem.optimum.y, self.F2  # raw_y is without the optimum


def make_ioh(folder, rows):
    """Two algorithms on a pair of spheres; a logger of all evaluations, and one of few."""
    for name, trigger in (
        ("local", ioh.logger.trigger.ALWAYS), ("random", ioh.logger.trigger.ALWAYS),
        ("partial", ioh.logger.trigger.ON_IMPROVEMENT),
    ):  # fmt: skip
        problem = ioh.get_problem(1, 1, 2)
        second = Second(problem)
        logger = ioh.logger.Analyzer(
            [trigger], root=str(folder), folder_name=name, algorithm_name=name
        )
        logger.watch(second, ["F2"])
        problem.attach_logger(logger)
        for repetition in range(2):
            where = ("ioh", name, "f1 Sphere d2 i1", repetition)
            evaluate = record_calls(second.evaluate, rows, *where)
            rng = np.random.default_rng(repetition)
            search(evaluate, np.full(2, -5.0), np.full(2, 5.0), rng, name == "local")
            problem.reset()
        logger.close()


def make_pymoo(path, rows):
    """Histories of pymoo as JSON: evaluations, offspring and population of each generation."""
    directions = get_reference_directions("uniform", 2, n_partitions=9)
    histories = []
    for name, make, of in (
        ("NSGA2", lambda: NSGA2(pop_size=10), "osy"),
        ("MOEAD", lambda: MOEAD(directions, n_neighbors=5), "zdt1"),
    ):
        problem = get_problem(of)
        inner, time = problem._evaluate, iter(range(1, 1000))

        def record(x, out, *args, inner=inner, time=time, name=name, of=of, **kwargs):
            inner(x, out, *args, **kwargs)
            points = np.atleast_2d(out["F"])
            bounds = out["G"] if out.get("G") is not None else np.zeros(len(points))
            broken = np.reshape(bounds, (len(points), -1)) > 0
            for point, own in zip(points, broken, strict=True):
                rows.append(("pymoo", name, of, 0, next(time), *point, not own.any()))

        problem._evaluate = record
        result = minimize(problem, make(), ("n_eval", N_EVALUATIONS), seed=1, save_history=True)
        generations = [
            {
                "n_eval": entry.evaluator.n_eval,
                "off": [describe(one) for one in np.atleast_1d(entry.off)],
                "pop": [describe(one) for one in entry.pop],
            }
            for entry in result.history
        ]
        histories.append({"algorithm": name, "instance": of, "history": generations})
    path.write_text(json.dumps(histories))


def describe(individual):
    return {"F": individual.F.tolist(), "FEAS": individual.FEAS.tolist()}


if __name__ == "__main__":
    root, rows = Path(sys.argv[1]), []
    make_coco(root / "coco", rows)
    make_ioh(root / "ioh", rows)
    make_pymoo(root / "pymoo.json", rows)
    with (root / "evaluations.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        head = ("source", "algorithm", "instance", "repetition", "time", "f1", "f2", "feasible")
        writer.writerows([head, *rows])
