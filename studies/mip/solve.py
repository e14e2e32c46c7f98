"""A process that solves models with one solver, and writes the log of each.

``python solve.py SOLVER SECONDS SIZE`` reads names of models from its input, and prints a line when
one is done. It reads ``instances/`` and writes ``logs/``. All solvers have one thread.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mip.models import make_model

STARTED_BY = "run.py"

Solve = Callable[[str, Path, Path, float], None]
"""Solve the model of a name, which is in a file, and write a log, within seconds."""

SIZE = 1.0


def load_cp_sat() -> Solve:
    from ortools.sat.python import cp_model

    def solve(name: str, _: Path, log: Path, seconds: float) -> None:
        made, model = make_model(name, SIZE), cp_model.CpModel()
        x = [model.new_bool_var("") for _ in made.cost]
        for indices, coefficients, sense, limit in made.rows:
            row = cp_model.LinearExpr.weighted_sum([x[j] for j in indices], coefficients)
            low = limit if sense in "GE" else -(10**9)
            model.add_linear_constraint(row, low, limit if sense in "LE" else 10**9)
        model.minimize(cp_model.LinearExpr.weighted_sum(x, made.cost))
        solver, lines = cp_model.CpSolver(), list[str]()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.log_search_progress = True
        solver.parameters.log_to_stdout = False
        solver.log_callback = lines.append
        solver.solve(model)
        log.write_text("\n".join(lines))

    return solve


def load_highs() -> Solve:
    import highspy

    def solve(_: str, model: Path, log: Path, seconds: float) -> None:
        highs = highspy.Highs()
        highs.setOptionValue("log_to_console", False)
        highs.setOptionValue("log_file", str(log))
        highs.setOptionValue("threads", 1)
        highs.setOptionValue("time_limit", seconds)
        highs.readModel(str(model))
        highs.run()

    return solve


def load_scip() -> Solve:
    from pyscipopt import Model

    def solve(_: str, model: Path, log: Path, seconds: float) -> None:
        scip = Model()
        scip.hideOutput(True)
        scip.readProblem(str(model))
        scip.setParam("limits/time", seconds)
        scip.setLogfile(str(log))
        scip.hideOutput(False)
        scip.optimize()
        scip.setLogfile(None)

    return solve


def load_gurobi() -> Solve:
    import gurobipy

    environment = gurobipy.Env(empty=True)
    environment.setParam("LogToConsole", 0)
    environment.start()

    def solve(_: str, model: Path, log: Path, seconds: float) -> None:
        problem = gurobipy.read(str(model), env=environment)
        problem.Params.LogFile = str(log)
        problem.Params.Threads = 1
        problem.Params.TimeLimit = seconds
        problem.optimize()
        problem.dispose()

    return solve


def load_copt() -> Solve:
    import coptpy

    environment = coptpy.Envr()

    def solve(_: str, model: Path, log: Path, seconds: float) -> None:
        problem = environment.createModel()
        problem.setLogFile(str(log))
        problem.setParam("LogToConsole", 0)
        problem.setParam("Threads", 1)
        problem.setParam("TimeLimit", seconds)
        problem.readMps(str(model))
        problem.solve()

    return solve


def load_cbc() -> Solve:
    import pulp

    program = pulp.PULP_CBC_CMD().path

    def solve(_: str, model: Path, log: Path, seconds: float) -> None:
        words = ["cbc", model, "-timeMode", "elapsed", "-seconds", str(seconds), "-solve", "-quit"]
        with log.open("w") as file:
            subprocess.run(words, executable=program, stdout=file, stderr=file, check=True)

    return solve


SOLVERS = {
    "CP-SAT": load_cp_sat,
    "HiGHS": load_highs,
    "SCIP": load_scip,
    "CBC": load_cbc,
    "Gurobi": load_gurobi,
    "COPT": load_copt,
}


def main() -> None:
    global SIZE
    solver, seconds, size = sys.argv[1:]
    SIZE = float(size)
    # Some solvers print to the output whatever is asked of them, so answers get one of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        solve = SOLVERS[solver]()
    except ImportError as error:
        print(f"missing: {error}", file=answers, flush=True)
        return
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        name = line.strip()
        model, log = Path("instances", f"{name}.mps"), Path("logs", solver, f"{name}.log")
        unfinished = log.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        solve(name, model, unfinished, float(seconds))
        unfinished.rename(log)
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    main()
