"""Which number should a designer be given? Six definitions of fitness on recorded design loops.

Writes fitness.md, and what it is made of to results/fitness.jsonl.

python studies/judge/fitness.py           # six loops of 20 candidates; minutes; goes on
python studies/judge/fitness.py --quick   # one loop of 8 candidates
python studies/judge/fitness.py --table   # the table again from results/
"""

import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from judge.in_process import InProcess
from scipy.special import logit
from scipy.stats import kendalltau
from tools.options import parser
from tools.records import Records

import polarbear as pb
from polarbear.design.fitness import measure_fitness, measure_win_rates
from polarbear.inference.e_values import count_outcomes
from polarbear.racing.jobs import RunId, job

QUICK_CPU_SECONDS = 4

TIMES = (10.0, 30.0, 100.0, 300.0)
REFERENCE = {"step": 1.0, "shrink": 1.0}
CERTAINTY = 0.95
OURS, MEAN = "log-odds, mode of all", "log-odds, fit of all"
"""``pb.Judge`` uses the mode, with a prior that is relative to the reference."""

N_TRUTH = 120
"""Instances on which every candidate runs in full, for the truth."""


def make_solver(options):
    """A walk whose steps shrink when they fail."""

    def walk(running):
        rng, objective = running.rng, running.instance
        step, x = options["step"], rng.uniform(-5, 5, 3)
        best = objective(x)
        yield 1, best
        for evaluations in range(2, int(running.horizon) + 1):
            trial = x + step * rng.normal(size=3)
            value = objective(trial)
            if value < best:
                x, best = trial, value
                yield evaluations, best
            else:
                step *= options["shrink"]

    return walk


def make_instance(rng):
    centre, scale = rng.uniform(-3, 3, 3), rng.uniform(0.5, 3, 3)
    return lambda x: float((scale * (x - centre) ** 2).sum())


def propose(seed: int, n: int) -> list[dict[str, float]]:
    rng = np.random.default_rng(seed)
    steps = np.exp(rng.uniform(np.log(0.05), np.log(20), n))
    return [
        {"step": float(step), "shrink": float(shrink)}
        for step, shrink in zip(steps, rng.uniform(0.9, 1, n), strict=True)
    ]


def rank(runs: pb.Runs, names: list[str]) -> pb.Rankings:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pb.rank(runs.filter(algorithms=names), TIMES)


def fit(runs: pb.Runs, names: list[str]) -> pb.Posterior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pb.fit(rank(runs, names), seed=1)


def log_odds(posterior: pb.Posterior) -> dict[str, float]:
    """Mean log-odds over times against the reference, by the posterior mean."""
    utilities = np.asarray(posterior.utilities, dtype=float).mean(axis=0)
    return average_over_times(posterior.algorithms, utilities)


def average_over_times(names: Sequence[str], utilities: np.ndarray) -> dict[str, float]:
    odds = utilities - utilities[:, [names.index("reference")]]
    return dict(zip(names, odds.mean(axis=0).tolist(), strict=True))


def measure(judge: pb.design.Judge, store: Path, names: list[str]) -> dict[str, dict[str, float]]:
    """All definitions, for these candidates, with the runs that there are now."""
    with pb.open_store(store, read_only=True) as opened:
        runs = opened.runs()
    racing = judge.members()
    all_ = fit(runs, list(runs.algorithms))
    odds, nearby = log_odds(all_), log_odds(fit(runs, [*{*racing, "reference", *names}]))
    race = pb.Race(["reference"], TIMES, direction="minimize")
    values: dict[str, dict[str, float]] = {}
    for name in names:
        fitness = measure_fitness(runs, TIMES, [name], "reference", race)
        rates = [r for r in measure_win_rates(runs, TIMES, name, "reference") if r is not None]
        n = len(runs.filter(algorithms=[name]).instances)
        smooth = [(rate * n + 1) / (n + 2) for rate in rates]
        values[name] = {
            "win rate": float(np.mean(rates)),
            "log-odds of the pair": float(np.mean([np.log(p / (1 - p)) for p in smooth])),
            OURS: float(logit(fitness[name].overall)),
            MEAN: odds[name],
            "log-odds, fit of the set": nearby[name],
            "P(better)": float(all_.prob_better(name, "reference").mean()),
        }
    return values


def find_truth(options: dict[str, dict[str, float]], n_truth: int) -> dict[str, dict[str, float]]:
    """Log-odds against the reference, and wins against all, on instances of their own."""
    executor_jobs = []
    instances = pb.Instances.of(make_instance)
    for name, one in options.items():
        for k in range(n_truth):
            wanted = job(99, RunId(name, str(k), 0), TIMES[-1])
            executor_jobs.append(_run(wanted, instances, one))
    runs = pb.Runs.from_records(executor_jobs, direction="minimize", clock="evaluations")
    posterior, outcomes = fit(runs, list(options)), count_outcomes(pb.rank(runs, TIMES))
    wins = (outcomes.wins + outcomes.ties / 2).mean(axis=(0, 2)).tolist()
    return {
        "log-odds": log_odds(posterior),
        "wins against all": dict(zip(runs.algorithms, wins, strict=True)),
    }


def _run(wanted: Any, instances: pb.Instances, options: dict[str, float]) -> pb.Run:
    class Running:
        rng = np.random.default_rng(wanted.instance_seed + 1)
        horizon = wanted.horizon
        instance = staticmethod(instances.make(wanted))

    pairs = list(make_solver(options)(Running))
    return wanted.run([t for t, _ in pairs], [v for _, v in pairs])


def loop(seed: int, n: int, n_truth: int) -> dict[str, Any]:
    """A design loop through the judge: every definition when judged, at the end, and the truth."""
    with tempfile.TemporaryDirectory() as folder:
        judge = pb.design.Judge(
            folder,
            make_solver,
            make_instance,
            TIMES,
            reference=REFERENCE,
            direction="minimize",
            clock="evaluations",
            budget=pb.Budget(runs=60, failures=3),
            executor=InProcess(),
            seed=seed,
        )
        store, early = Path(folder, "race.db"), {}
        options = {"reference": REFERENCE}
        for one in propose(seed, n):
            name = judge(one).name
            options[name] = one
            early |= measure(judge, store, [name])
        late = measure(judge, store, list(early))
        spent = judge.status().spent
    return {
        "seed": seed,
        "n": n,
        "early": early,
        "late": late,
        "truth": find_truth(options, n_truth),
        "n_truth": n_truth,
        "evaluations": spent.time,
    }


def tabulate(rows: list[dict[str, Any]]) -> str:
    """Kendall's tau with both truths, among all and among the best eight, and what moved."""
    definitions = list(next(iter(rows[0]["early"].values())))
    head = (
        "| fitness | tau, when judged | of the best 8 | tau, at the end | of the best 8 "
        "| tau with wins against all | of the best 8 | moved, share of spread | rank of its best |"
    )
    said = (
        f"{len(rows)} loops of {rows[0]['n']} candidates, at most 60 runs each; truth from "
        f"{rows[0]['n_truth']} other instances. Means over loops."
    )
    lines = [said, "", head, "|---|---|---|---|---|---|---|---|---|"]
    for definition in definitions:
        columns = np.array([_summarise(row, definition) for row in rows]).mean(axis=0)
        lines.append(f"| {definition} | " + " | ".join(f"{v:.2f}" for v in columns) + " |")
    return "\n".join([*lines, "", *_compare(rows, definitions), "", *_compare_mean(rows)]) + "\n"


def _compare_mean(rows: list[dict[str, Any]]) -> list[str]:
    """How the mode orders candidates, compared with the posterior mean."""
    taus: list[Any] = [
        kendalltau(*zip(*[(one[OURS], one[MEAN]) for one in row[stage].values()], strict=True))
        for row in rows
        for stage in ("early", "late")
    ]
    values = [tau.statistic for tau in taus]
    place = f"when judged and at the end of {len(rows)} loops"
    found = f"Kendall's tau {np.mean(values):.3f}, at least {min(values):.3f}."
    return [f"{OURS}, against {MEAN}, {place}: {found}"]


def _compare(rows: list[dict[str, Any]], definitions: list[str]) -> list[str]:
    """By how much tau is larger with the definition of the judge, with standard errors."""
    taus = {name: np.array([_summarise(row, name)[:4] for row in rows]) for name in definitions}
    head = (
        "| tau of the judge's definition, above that of | when judged | of the best 8 "
        "| at the end | of the best 8 |"
    )
    lines = [head, "|---|---|---|---|---|"]
    for name in definitions:
        if name != OURS and len(rows) > 1:
            above = taus[OURS] - taus[name]
            errors = above.std(axis=0, ddof=1) / np.sqrt(len(rows))
            cells = [f"{m:.2f} ± {e:.2f}" for m, e in zip(above.mean(axis=0), errors, strict=True)]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, "", "Means over loops and their standard errors."]


def _summarise(row: dict[str, Any], definition: str) -> list[float]:
    names = list(row["early"])
    early, late = (
        np.array([row[stage][name][definition] for name in names]) for stage in ("early", "late")
    )
    odds, wins = (
        np.array([row["truth"][kind][name] for name in names])
        for kind in ("log-odds", "wins against all")
    )
    top, top_wins = np.argsort(-odds)[:8], np.argsort(-wins)[:8]

    def tau(a, b):
        found: Any = kendalltau(a, b)
        value = found.statistic
        return 0.0 if np.isnan(value) else float(value)

    rank = 1 + int(np.sum(odds > odds[int(np.argmax(early))]))
    return [
        tau(early, odds),
        tau(early[top], odds[top]),
        tau(late, odds),
        tau(late[top], odds[top]),
        tau(early, wins),
        tau(early[top_wins], wins[top_wins]),
        float(np.abs(late - early).mean() / np.std(late)),
        float(rank),
    ]


def main() -> None:
    wanted = parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else Path(__file__).parent
        kept = Records(folder / "results" / "fitness.jsonl", ("seed",))
        for seed in range(1 if wanted.quick else 6):
            if (seed,) not in kept and not wanted.table:
                kept.add(loop(seed, *((6, 20) if wanted.quick else (20, N_TRUTH))))
                print(f"loop {seed}", flush=True)
        text = tabulate(kept.rows)
        (folder / "fitness.md").write_text(f"# Definitions of fitness\n\n{text}")
        print(text)


if __name__ == "__main__":
    main()
