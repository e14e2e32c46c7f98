"""One model for all budgets against one selector per budget, on MA-BBOB problems.

Writes a line of JSON to results/ for each pool and fold, then budgets.md. Goes on where it was
stopped.

python studies/instances/budgets.py             # two pools, five folds each; some CPU minutes
python studies/instances/budgets.py --table     # the table again from results/
python studies/instances/budgets.py --quick     # some seconds: does it run at all?

Needs ioh for the weights of the problems, and scikit-learn for the forests.
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.markdown import table
from tools.options import parser
from tools.pools import FOLDER
from tools.records import Records, seeded

import polarbear as pb
from polarbear.simulation import rank_costs

QUICK_CPU_SECONDS = 5

HERE = Path(__file__).parent
KEY = ("pool", "fold")
POOLS, FOLDS, BUDGETS, TREES = ("mabbob_d10", "mabbob_d5"), 5, 8, 100
SELECTORS = ("overall", "one model", "forest per budget")

TITLE = """# One model for all budgets against one selector per budget

Made by `python studies/instances/budgets.py`. Regret: by how many of the other six algorithms the
chosen one was beaten on a held-out problem, in the mean. README.md says what is compared."""


def read_weights(instances: np.ndarray) -> dict[str, np.ndarray]:
    """Return the weights of the 24 BBOB functions in each MA-BBOB problem, as features."""
    import ioh

    problems: Any = ioh.problem  # whose stubs lack some classes
    weights = np.array([problems.ManyAffine(int(k), 5).weights for k in instances])
    columns = {f"w{k + 1}": column for k, column in enumerate(weights.T)}
    return {**columns, "components": np.sum(weights > 0, axis=1).astype(float)}


def read_pool(name: str, n_instances: int | None = None) -> tuple[np.ndarray, pb.Rankings]:
    """Return the places (budgets, instances, algorithms), and rankings with features."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        chosen = np.linspace(0, len(file["times"]) - 1, BUDGETS).round().astype(int)
        place = file["position"][chosen, :n_instances].astype(float)
        ids, budgets = file["instances"][:n_instances], file["times"][chosen].astype(float)
        algorithms = file["algorithms"].tolist()
    rankings = rank_costs(place, algorithms=algorithms, times=budgets)
    table = {"instance": rankings.instances, **read_weights(ids)}
    return place, rankings.with_instance_data(table)


def choose(rankings: pb.Rankings, place: np.ndarray, train: Any, test: Any) -> dict[str, Any]:
    """Return the choice of each selector (budgets, test), and the CPU seconds of its training."""
    from sklearn.ensemble import RandomForestRegressor

    data = rankings.instance_data
    x = np.stack(list(data.values()), axis=1)
    choices: dict[str, tuple[np.ndarray, float]] = {}
    for name in SELECTORS:
        start = time.process_time()
        if name == "overall":
            best = pb.fit(rankings.take(train)).mean().argmax(axis=1)
            choice = np.repeat(best[:, None], len(test), axis=1)
        elif name == "one model":
            posterior = pb.fit(rankings.take(train), features="all")
            columns = {key: values[test] for key, values in data.items()}
            choice = posterior.predict(columns).prob_first.argmax(axis=2).T
        else:
            choice = np.empty((len(place), len(test)), dtype=int)
            for t, at_time in enumerate(place):
                forest = RandomForestRegressor(
                    TREES, min_samples_leaf=2, max_features=0.5, random_state=0
                )
                forest.fit(x[train], at_time[train])
                choice[t] = forest.predict(x[test]).argmin(axis=1)
        choices[name] = choice, time.process_time() - start
    return choices


def measure(records: Records, hours: float | None, n_instances: int | None = None) -> None:
    """Add the folds that are missing to the records."""
    deadline = np.inf if hours is None else time.time() + 3600 * hours
    done = {tuple(row[name] for name in KEY) for row in records.rows}
    for pool in POOLS if n_instances is None else POOLS[:1]:
        place, rankings = read_pool(pool, n_instances)
        fold_of = seeded(pool).permutation(place.shape[1]) % FOLDS
        for fold in range(FOLDS if n_instances is None else 1):
            if (pool, fold) in done or time.time() > deadline:
                continue
            train, test = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
            choices = choose(rankings, place, train, test)
            regret = {
                name: np.take_along_axis(place[:, test], choice[:, :, None], axis=2)[..., 0]
                for name, (choice, _) in choices.items()
            }
            gain = regret["forest per budget"] - regret["one model"]
            records.add({
                "pool": pool, "fold": fold, "held_out": len(test),
                "budgets": rankings.times.tolist(),
                "regret": {name: own.sum(axis=1).tolist() for name, own in regret.items()},
                "gain_squared": np.sum(gain**2, axis=1).tolist(),
                "gain_mean_squared": float(np.sum(gain.mean(axis=0) ** 2)),
                "seconds": {name: round(spent, 1) for name, (_, spent) in choices.items()},
            })  # fmt: skip


def summarise(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Return a line for each budget, and one for their mean."""
    number = sum(row["held_out"] for row in rows)
    total = {s: np.sum([row["regret"][s] for row in rows], axis=0) / number for s in SELECTORS}
    gain = total["forest per budget"] - total["one model"]
    squared = np.sum([row["gain_squared"] for row in rows], axis=0) / number
    error = np.sqrt(np.maximum(squared - gain**2, 0) / number)
    lines = [
        [
            f"{budget:,.0f}",
            *(f"{total[s][t]:.3f}" for s in SELECTORS),
            f"{gain[t]:+.3f} ({error[t]:.3f})",
        ]
        for t, budget in enumerate(rows[0]["budgets"])
    ]
    of_mean = sum(row["gain_mean_squared"] for row in rows) / number
    deviation = np.sqrt(max(of_mean - gain.mean() ** 2, 0) / number)
    means = [f"{total[s].mean():.3f}" for s in SELECTORS]
    spent = [f"{np.mean([row['seconds'][s] for row in rows]):.1f}" for s in SELECTORS]
    return [
        *lines,
        ["mean", *means, f"{gain.mean():+.3f} ({deviation:.3f})"],
        ["CPU seconds of training", *spent, ""],
    ]


def write(rows: list[dict[str, Any]], folder: Path) -> str:
    """Write the table to a folder and return it."""
    parts = [TITLE]
    head = ["evaluations", *SELECTORS, "forest per budget - one model (s.e.)"]
    for pool in dict.fromkeys(row["pool"] for row in rows):
        own = [row for row in rows if row["pool"] == pool]
        held_out = sum(row["held_out"] for row in own)
        parts += [f"{pool}, {len(own)} of {FOLDS} folds, {held_out} held-out problems:"]
        parts += [table(head, summarise(own))]
    text = "\n\n".join(parts) + "\n"
    (folder / "budgets.md").write_text(text)
    return text


def main() -> None:
    wanted = parser(__doc__).parse_args()
    warnings.simplefilter("ignore", pb.errors.DataWarning)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else HERE
        records = Records(folder / "results" / "budgets.jsonl", KEY)
        if not wanted.table:
            measure(records, wanted.hours, 60 if wanted.quick else None)
        print(write(records.rows, folder))


if __name__ == "__main__":
    main()
