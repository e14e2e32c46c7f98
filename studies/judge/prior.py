"""Does the fitness depend on the number of other candidates? Three priors on simulated loops.

Writes prior.md.

python studies/judge/prior.py           # 24 loops of 30 candidates; about a minute
python studies/judge/prior.py --quick   # two loops of 8 candidates; writes nothing
"""

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import fill
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from scipy.stats import kendalltau
from tools.options import parser

import polarbear as pb
from polarbear.design.fitness import measure_fitness
from polarbear.inference.laplace.engine import estimate_utilities
from polarbear.priors.dirichlet import Dirichlet

QUICK_CPU_SECONDS = 2

TIMES = (1.0, 2.0, 3.0)
N_OTHERS = (0, 10, 30)
N_BEST = 10
OLD, TOTAL, OURS = "Dirichlet(1) on all", "Dirichlet(2 / n) on all", "relative to the reference"


def simulate(rng: np.random.Generator, name: str, utilities: np.ndarray, n: int) -> list[pb.Run]:
    """Runs on n instances with Gumbel noise, whose values improve with time by a constant."""
    costs = -(utilities + rng.gumbel(size=(n, len(utilities)))) - 100 * np.arange(len(utilities))
    times = TIMES[: len(utilities)]
    return [pb.Run(name, str(i), times, row, times[-1]) for i, row in enumerate(costs.tolist())]


def measure(records: list[pb.Run], name: str) -> dict[str, float]:
    """The log-odds of a candidate against the reference, by each prior."""
    runs = pb.Runs.from_records(records, direction="minimize")
    times = TIMES[: len(np.atleast_1d(records[0].time))]
    rankings = pb.rank(runs, times)
    names = rankings.algorithms
    found: dict[str, float] = {}
    for label, alpha in ((OLD, 1.0), (TOTAL, 2 / len(names))):
        mean = estimate_utilities(rankings, Dirichlet(alpha)).mean(axis=0)
        found[label] = float(mean[names.index(name)] - mean[names.index("reference")])
    race = pb.Race(["reference"], times, direction="minimize")
    fitness = measure_fitness(runs, times, [name], "reference", race)[name].overall
    return {**found, OURS: float(np.log(fitness / (1 - fitness)))}


def draw_varied(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 1.5, n)


def draw_mostly_bad(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.3, rng.normal(0, 1, n), rng.normal(-4, 1, n))


def loop(
    seed: int, n: int, draw: Callable[[np.random.Generator, int], np.ndarray]
) -> dict[str, list[float]]:
    """Judge candidates one after the other; return tau with the truth, of all and of the best."""
    rng = np.random.default_rng(seed)
    utilities = draw(rng, n)[:, None] + rng.normal(0, 0.5, (n, len(TIMES)))
    truth = utilities.mean(axis=1)
    records, judged = simulate(rng, "reference", np.zeros(len(TIMES)), 40), []
    for k in range(n):  # a bad candidate is dominated after 16 runs
        records += simulate(rng, f"c{k}", utilities[k], 40 if truth[k] > -1 else 16)
        judged.append(measure(records, f"c{k}"))
    best = np.argsort(-truth)[:N_BEST]
    values = {label: np.array([one[label] for one in judged]) for label in judged[0]}
    tau: Any = kendalltau
    return {
        label: [tau(v, truth).statistic, tau(v[best], truth[best]).statistic]
        for label, v in values.items()
    }


def judge_winner(n_others: int) -> dict[str, float]:
    """The fitness of a candidate that wins on each of 16 instances, among bad candidates."""
    rng = np.random.default_rng(1)
    records = simulate(rng, "reference", np.zeros(1), 16)
    records += simulate(rng, "winner", np.full(1, 30.0), 16)
    for k in range(n_others):
        records += simulate(rng, f"bad {k}", np.full(1, -6.0), 16)
    return {label: 1 / (1 + np.exp(-odds)) for label, odds in measure(records, "winner").items()}


def tabulate(n_loops: int, n: int) -> str:
    loops = {
        kind: [loop(seed, n, draw) for seed in range(n_loops)]
        for kind, draw in (("varied", draw_varied), ("mostly bad", draw_mostly_bad))
    }
    winners = [judge_winner(n_others) for n_others in N_OTHERS]
    columns = [f"{kind}, {what}" for kind in loops for what in ("all", f"best {N_BEST}")]
    head = ["prior", *columns, *(f"winner, {n_others} others" for n_others in N_OTHERS)]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for label in (OLD, TOTAL, OURS):
        cells = [label]
        for rows in loops.values():
            taus = np.array([row[label] for row in rows])
            above = taus - np.array([row[OLD] for row in rows])
            errors = above.std(axis=0, ddof=1) / np.sqrt(n_loops)
            for tau, more, error in zip(taus.mean(axis=0), above.mean(axis=0), errors, strict=True):
                cells.append(
                    f"{tau:.3f}" + (f" ({more:+.3f} ± {error:.3f})" if label != OLD else "")
                )
        lines.append(f"| {' | '.join([*cells, *(f'{one[label]:.3f}' for one in winners)])} |")
    said = (
        f"{n_loops} simulated loops of {n} candidates for each kind. Kendall's tau between the "
        "fitness when a candidate is judged and the truth: means over loops, and in brackets the "
        "difference to the first row with its standard error. The last columns are the fitness of "
        "a candidate that wins on each of 16 instances, among bad candidates."
    )
    return "\n".join([fill(said, 120), "", *lines, ""])


def main() -> None:
    wanted = parser(__doc__).parse_args()
    text = tabulate(*((2, 8) if wanted.quick else (12, 30)))
    if not wanted.quick:
        Path(__file__).with_name("prior.md").write_text(f"# Priors of the fitness\n\n{text}")
    print(text)


if __name__ == "__main__":
    main()
