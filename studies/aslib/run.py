"""Selection per instance on scenarios of ASlib: closed gap, log scores and calibration.

Writes a line of JSON to results/ for each scenario, cut-off and fold, then table.md and figures/.
Goes on where it was stopped: first one fold of all scenarios, then the next fold.

python studies/aslib/run.py --scenarios FOLDER              # a folder of folders of scenarios
python studies/aslib/run.py --scenarios FOLDER --folds 3    # the first three folds of each only
python studies/aslib/run.py --table                         # table and figure from results/
python studies/aslib/run.py --quick                         # some seconds: does it run at all?

The scenarios: git clone https://github.com/coseal/aslib_data
Forests need scikit-learn (pip install 'polarbear-race[forest]'); without it they are left out.
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from aslib.scenario import Scenario, read_scenario, write_small_scenario
from aslib.scoring import HeldOut, SolvedPairs
from aslib.tables import write
from tools.options import parser
from tools.records import Records, seeded

import polarbear as pb

QUICK_CPU_SECONDS = 7

HERE = Path(__file__).parent
KEY = ("scenario", "share", "fold")
MOST_ALGORITHMS, MOST_INSTANCES = 18, 1500
TREES, QUICK_TREES = 100, 10
"""The number of trees of a forest; 100 is the default of ``pb.cross_fit``."""

Predicted = tuple[Iterable[np.ndarray], float]
"""Ratings (draws, cut-offs, algorithms) on each held-out instance; CPU seconds of the fit."""

HAS_FORESTS = find_spec("sklearn") is not None


def solved_order(runtime: np.ndarray, cutoff: float, rng: np.random.Generator) -> np.ndarray:
    """Return the algorithms that solved an instance by a cut-off, the fastest first."""
    order = np.lexsort((rng.uniform(size=len(runtime)), runtime))
    return order[runtime[order] <= cutoff]


def predict_overall(train: pb.Rankings, n_test: int) -> Predicted:
    """Return the same ratings for each held-out instance."""
    start = time.process_time()
    ratings = np.asarray(pb.fit(train).ratings)
    ratings = ratings[:: max(1, len(ratings) // 500)]
    return [ratings] * n_test, time.process_time() - start


def make_forest(trees: int, seed: int = 0) -> Any:
    """Return a forest with the default settings of ``pb.cross_fit``."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(trees, min_samples_leaf=2, max_features=0.5, random_state=seed)


def predict_features(train: pb.Rankings, test: pb.Rankings, regressor: Any = None) -> Predicted:
    """Return ratings by features, with the cross-fitted scores of a regressor if there is one."""
    start = time.process_time()
    scores = None if regressor is None else pb.cross_fit(train, "all", regressor=regressor)
    posterior = pb.fit(train, features="all", scores=scores)
    return posterior.iterate_ratings(numbers(test)), time.process_time() - start


def predict_models(train: pb.Rankings, test: pb.Rankings, trees: int) -> dict[str, Predicted]:
    """Return the predictions by features, without and with a forest."""
    models = {"features": predict_features(train, test)}
    if HAS_FORESTS:
        models["features and forest"] = predict_features(train, test, make_forest(trees))
    return models


def numbers(rankings: pb.Rankings) -> dict[str, np.ndarray]:
    """Return the features that are numbers."""
    data = rankings.instance_data
    return {name: values for name, values in data.items() if values.dtype.kind != "U"}


def choose_by_regression(
    scenario: Scenario, train: np.ndarray, test: np.ndarray, par10: np.ndarray, trees: int
) -> np.ndarray:
    """Return choices (cut-offs, test): the lowest log PAR10 by a forest for each algorithm."""
    table = np.stack(list(numbers(scenario.rankings).values()), axis=1)
    table = np.where(np.isfinite(table), table, -1e12)
    predicted = np.empty((len(par10), len(test), par10.shape[2]))
    for t, costs in enumerate(np.log(np.maximum(par10, 1e-3))):
        for j in range(par10.shape[2]):
            forest = make_forest(trees, j).fit(table[train], costs[train, j])
            predicted[t, :, j] = forest.predict(table[test])
    return predicted.argmin(axis=2)


def evaluate_fold(scenario: Scenario, fold: int, trees: int) -> Iterator[dict[str, Any]]:
    """Train on all folds but one, and yield what comes of the held-out one at each cut-off."""
    test, train = np.flatnonzero(scenario.fold == fold), np.flatnonzero(scenario.fold != fold)
    rankings, par10 = scenario.rankings, scenario.par10()
    n_times, n = len(scenario.cutoffs), len(rankings.algorithms)
    choices: dict[str, np.ndarray] = {
        "single best": np.repeat(par10[:, train].mean(axis=1).argmin(axis=1)[:, None], len(test), 1)
    }
    models = {"overall": predict_overall(rankings.take(train), len(test))}
    models |= predict_models(rankings.take(train), rankings.take(test), trees)
    solved = predict_models(scenario.solved.take(train), scenario.solved.take(test), trees)
    models |= {f"solved, {name}": own for name, own in solved.items()}
    seconds: dict[str, float] = {}
    scores: dict[str, list[HeldOut | SolvedPairs]] = {}
    for name, (ratings, spent) in models.items():
        kind = SolvedPairs if name.startswith("solved") else HeldOut
        scores[name] = [kind(n) for _ in range(n_times)]
        seconds[name], choices[name] = round(spent, 2), np.empty((n_times, len(test)), dtype=int)
        rng = seeded(scenario.name, fold)
        for i, drawn in enumerate(ratings):
            choices[name][:, i] = drawn.mean(axis=0).argmax(axis=1)
            for t, cutoff in enumerate(scenario.cutoffs):
                order = solved_order(scenario.runtime[test[i]], cutoff, rng)
                scores[name][t].add(drawn[:, t], order)
    if HAS_FORESTS:
        start = time.process_time()
        choices["regression"] = choose_by_regression(scenario, train, test, par10, trees)
        seconds["regression"] = round(time.process_time() - start, 2)
    for t, cutoff in enumerate(scenario.cutoffs):
        held_out = par10[t, test]
        costs = {name: held_out[np.arange(len(test)), own[t]] for name, own in choices.items()}
        costs["virtual best"] = held_out.min(axis=1)
        row = {
            "scenario": scenario.name, "share": round(float(cutoff / scenario.cutoffs[-1]), 3),
            "fold": int(fold), "folds": len(np.unique(scenario.fold)),
            "algorithms": n, "features": len(numbers(rankings)),
            "instances": len(rankings.instances), "held_out": len(test),
            "solved": int((scenario.runtime[test].min(axis=1) <= cutoff).sum()),
            "par10": {name: round(float(own.sum()), 3) for name, own in costs.items()},
            "models": {name: own[t].to_row() for name, own in scores.items()},
            "seconds": seconds,
        }  # fmt: skip
        if "regression" in costs:  # for the standard error of the difference
            gain = {name: costs["regression"] - costs[name] for name in scores}
            row["gain_squared"] = {name: float(f"{np.sum(g**2):.6g}") for name, g in gain.items()}
        yield row


def evaluate(
    scenarios: list[Scenario],
    records: Records,
    n_folds: int | None = None,
    hours: float | None = None,
    trees: int = TREES,
) -> None:
    """Add what is missing to the records, until the time is up."""
    deadline = np.inf if hours is None else time.time() + 3600 * hours
    folds = {one.name: np.unique(one.fold)[:n_folds].tolist() for one in scenarios}
    for k in range(max(map(len, folds.values()), default=0)):
        for scenario in scenarios:
            own = folds[scenario.name][k : k + 1]
            if not own or (scenario.name, 1.0, own[0]) in records:
                continue
            if time.time() > deadline:
                return
            rows = [
                row
                for row in evaluate_fold(scenario, own[0], trees)
                if tuple(row[name] for name in KEY) not in records
            ]
            for row in rows:
                records.add(row)
            print(scenario.name, "fold", own[0], rows[-1]["seconds"] if rows else "", flush=True)


def read_all(folder: Path, names: list[str]) -> list[Scenario]:
    """Read the scenarios in a folder, and print which are left out and why."""
    scenarios = list[Scenario]()
    for path in sorted(folder.iterdir()):
        if not path.is_dir() or path.name.startswith(".") or (names and path.name not in names):
            continue
        try:
            scenario = read_scenario(path, MOST_ALGORITHMS, MOST_INSTANCES)
        except pb.DataError as error:
            scenario = f"cannot be read: {error}"
        if isinstance(scenario, str):
            print(f"{path.name} {scenario}: left out", flush=True)
        else:
            scenarios.append(scenario)
    return sorted(scenarios, key=lambda one: one.runtime.size)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--scenarios", type=Path, help="a folder of folders of scenarios")
    options.add_argument("--only", nargs="*", default=[], help="the names of some of them")
    options.add_argument("--folds", type=int, help="of each scenario, at most; by default all")
    wanted = options.parse_args()
    warnings.simplefilter("ignore", pb.errors.DataWarning)
    if wanted.quick:
        with tempfile.TemporaryDirectory() as scratch:
            write_small_scenario(Path(scratch) / "scenarios" / "made")
            records = Records(Path(scratch) / "results" / "folds.jsonl", KEY)
            evaluate(read_all(Path(scratch) / "scenarios", []), records, 2, trees=QUICK_TREES)
            print(write(records.rows, Path(scratch)))
        return
    records = Records(HERE / "results" / "folds.jsonl", KEY)
    if not wanted.table:
        if wanted.scenarios is None:
            options.error("--scenarios is missing: a folder of scenarios of ASlib")
        scenarios = read_all(wanted.scenarios, wanted.only)
        evaluate(scenarios, records, wanted.folds, wanted.hours)
    print(write(records.rows, HERE))


if __name__ == "__main__":
    main()
