"""
Programs as solvers, in wall-clock time
=======================================

A MaxSAT-style program that prints its values, and HiGHS with a callback, observed for two seconds.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib import pyplot

import polarbear as pb

LOCAL_SEARCH = '''
"""Flip a random variable unless more clauses become falsified; print "o" lines."""
import random, sys
lines = open(sys.argv[1]).read().splitlines()
clauses = [[int(word) for word in line.split()[:-1]] for line in lines[1:]]
chance = random.Random(int(sys.argv[2].partition("=")[2]))
value = [chance.random() < 0.5 for _ in range(1 + int(lines[0].split()[2]))]
def falsified():
    return sum(not any(value[abs(x)] == (x > 0) for x in clause) for clause in clauses)
best = now = falsified()
print("o", best, flush=True)
while best:
    k = chance.randrange(1, len(value))
    value[k] = not value[k]
    after = falsified()
    if after > now:
        value[k] = not value[k]
        continue
    now = after
    if now < best:
        best = now
        print("o", best, flush=True)
print("s OPTIMUM FOUND")
raise SystemExit(30)
'''


def highs(job):
    """The same problem as a mixed-integer program, with one slack variable for each clause."""
    import highspy

    solver = highspy.Highs()
    solver.silent()
    clauses, variables = read(job.instance)
    x = solver.addBinaries(variables)
    slack = solver.addBinaries(len(clauses))
    for clause, s in zip(clauses, slack, strict=True):
        terms = [x[k - 1] if k > 0 else 1 - x[-k - 1] for k in clause]
        solver.addConstr(sum(terms) + s >= 1)
    solver.setOptionValue("time_limit", job.horizon)
    solver.setOptionValue("random_seed", job.seed)
    solver.setOptionValue("threads", 1)
    solver.cbMipImprovingSolution += lambda event: job.report(
        event.data_out.objective_function_value
    )
    solver.minimize(sum(slack))


def read(path):
    """Return the clauses and the number of variables."""
    first, *rest = Path(path).read_text().splitlines()
    return [[int(w) for w in line.split()[:-1]] for line in rest], int(first.split()[2])


def write(path, rng, variables=60, clauses=400):
    """Write random clauses of three literals, too many to satisfy all of them."""
    rows = [rng.choice(variables, 3, replace=False) + 1 for _ in range(clauses)] * rng.choice(
        [-1, 1], (clauses, 3)
    )
    text = "\n".join(" ".join(map(str, [*row, 0])) for row in rows.tolist())
    path.write_text(f"p cnf {variables} {clauses}\n{text}\n")


def draw(checked, label, unit):
    """Draw best-so-far values over time, one line for each solver."""
    _, ax = pyplot.subplots(figsize=pb.plots.figsize(1), layout="constrained")
    for name, outcome in checked.outcomes.items():
        run = outcome.run
        ax.step([*run.time, run.until], [*run.value, run.value[-1]], where="post", label=name)
    ax.set(xlabel=unit, ylabel=label)
    ax.legend(frameon=False, loc="upper right", fontsize="small")


def main():
    """Run each solver once, for two seconds."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        program = place / "search.py"
        program.write_text(LOCAL_SEARCH)
        rng = np.random.default_rng(1)
        instances = [place / f"random-{k}.cnf" for k in range(3)]
        for path in instances:
            write(path, rng)
        arguments = [sys.executable, program, "{instance}", "--seed={seed}"]
        solvers = {"local search": pb.Command(arguments, pattern=r"^o (?P<value>\d+)")}
        if find_spec("highspy"):
            solvers["HiGHS"] = highs
        checked = pb.check(
            solvers,
            instances,
            times=pb.grid.log(0.1, 2, 10),
            direction="minimize",
            clock="wall",
            seconds=4,
        )
        print(checked)
        if checked.problems:
            raise SystemExit("some solvers failed")
        draw(checked, "Falsified clauses", "Seconds")


if __name__ == "__main__":
    main()
