"""Coverage of intervals and error of claims if results are solved or not, with known truth.

A model solves a task by a budget with a probability that depends on the model, the task and the
budget. Rankings of such results do not follow Plackett and Luce, so the true ratings are those of a
fit to very many tasks.

python studies/solved/run.py                       # writes table.md; CPU minutes
python studies/solved/run.py --size 100 1000 10    # time and memory of one fit
python studies/solved/run.py --quick               # seconds: does it run at all?
"""

import argparse
import resource
import time
from pathlib import Path

import numpy as np

import polarbear as pb
from polarbear.inference.laplace.engine import estimate_utilities
from polarbear.priors import Dirichlet
from polarbear.simulation import rank_costs

QUICK_CPU_SECONDS = 10

BUDGETS = np.geomspace(0.02, 3.0, 8)
N_MODELS, MANY_TASKS, REPLICATES, LEVEL = 6, 20_000, 25, 0.9
TABLE = Path(__file__).with_name("table.md")


def draw_truth(models: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the skill and the typical cost of models."""
    return rng.normal(0.6, 0.8, models), np.exp(rng.normal(-2.2, 1, models))


def simulate(
    truth: tuple[np.ndarray, np.ndarray],
    tasks: int,
    rng: np.random.Generator,
    budgets: np.ndarray = BUDGETS,
):
    """Return the rankings of models by solved or not at each budget, on random tasks."""
    skill, cost = truth
    difficulty = rng.normal(0, 2.5, (tasks, 1))
    chance = 1 / (1 + np.exp(difficulty - skill))
    paid = cost * np.exp(rng.normal(0, 1, (tasks, len(skill))) + 0.1 * difficulty)
    solved_at = np.where(rng.random(chance.shape) < chance, paid, np.inf)
    return rank_costs((solved_at > budgets[:, None, None]).astype(float))


def measure(tasks: int, replicate: int) -> np.ndarray:
    """Return sums: intervals, those that hold the truth, claims, wrong ones, stated errors."""
    rng = np.random.default_rng([tasks, replicate])
    truth = draw_truth(N_MODELS, rng)
    utilities = estimate_utilities(simulate(truth, MANY_TASKS, rng), Dirichlet())
    posterior = pb.fit(simulate(truth, tasks, rng))
    a, b = np.triu_indices(N_MODELS, 1)
    gap = utilities[:, a] - utilities[:, b]
    draws = posterior.draws[:, :, a] - posterior.draws[:, :, b]
    weight = np.broadcast_to(posterior.weight, draws.shape[:2])[..., None]
    weight = weight / weight.sum(axis=0)
    below = np.sum(weight * (draws < gap), axis=0)  # where the truth lies in the posterior
    ahead = np.sum(weight * (draws > 0), axis=0)
    covered = np.abs(below - 0.5) <= LEVEL / 2
    error, is_ahead = np.minimum(ahead, 1 - ahead), ahead > 0.5
    claimed = error <= 0.05
    wrong = claimed & (is_ahead != (gap > 0))
    return np.array([covered.size, covered.sum(), claimed.sum(), wrong.sum(), error[claimed].sum()])


def measure_size(models: int, tasks: int, budgets: int) -> str:
    """Return what a fit of so many models, tasks and budgets takes."""
    rng = np.random.default_rng(0)
    grid = np.geomspace(BUDGETS[0], BUDGETS[-1], budgets)
    rankings = simulate(draw_truth(models, rng), tasks, rng, grid)
    begin = time.process_time()
    pb.fit(rankings)
    spent = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{models} x {tasks:,} x {budgets}: {spent:.1f} CPU s, at most {peak:,.0f} MB"


def main() -> None:
    """Measure all sizes, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small version that writes nothing")
    parser.add_argument("--size", type=int, nargs=3, help="models, tasks and budgets of one fit")
    options = parser.parse_args()
    quick = options.quick
    if options.size:
        print(measure_size(*options.size))
        return
    lines = [
        f"| tasks | coverage of {LEVEL:.0%} intervals of gaps | claims at 0.95 | wrong | stated |",
        "|---|---|---|---|---|",
    ]
    for tasks in (50,) if quick else (50, 150, 500):
        counts = sum(measure(tasks, k) for k in range(2 if quick else REPLICATES))
        n, covered, claims, wrong, stated = np.asarray(counts).tolist()
        errors = f"{wrong / max(claims, 1):.4f} | {stated / max(claims, 1):.4f}"
        lines.append(f"| {tasks} | {covered / n:.3f} | {claims:,.0f} | {errors} |")
        print(lines[-1], flush=True)
    if not quick:
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
