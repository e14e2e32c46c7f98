"""What should a tie say? Width of the posterior, and time, for both treatments. Writes table.md.

python studies/ties/run.py                    # simulated: about ten minutes
python studies/ties/run.py --aslib FOLDER     # and these ASlib scenarios: a minute
python studies/ties/run.py --quick            # seconds: does it run at all?
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from tools.markdown import table

import polarbear as pb

QUICK_CPU_SECONDS = 1

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
TREATMENTS = ("unordered", "averaged")
INSTANCES = 60


def costs_of_pairs(share: float):
    """Costs of two equal algorithms that tie on a share of the instances."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        costs = rng.normal(size=(INSTANCES, 2))
        costs[rng.random(INSTANCES) < share] = 0.0
        return costs

    return draw


def rounded(step: float):
    """Costs of five equal algorithms, rounded to a multiple of a step."""
    return lambda rng: np.round(rng.gumbel(size=(INSTANCES, 5)) / step)


def not_solved(share: float):
    """Costs of five equal algorithms that are unsolved, and tie last, in a share of runs."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        costs = rng.normal(size=(INSTANCES, 5))
        return np.where(costs > np.quantile(costs, 1 - share), 9.0, costs)

    return draw


def solved(share: float):
    """Costs of five equal algorithms that reach the optimum, and tie first, in a share of runs."""

    def draw(rng: np.random.Generator) -> np.ndarray:
        costs = rng.normal(size=(INSTANCES, 5))
        return np.where(costs < np.quantile(costs, share), -9.0, costs)

    return draw


CASES = {
    "2 algorithms, no ties": costs_of_pairs(0.0),
    "2 algorithms, 50 % ties": costs_of_pairs(0.5),
    "2 algorithms, 80 % ties": costs_of_pairs(0.8),
    "5 algorithms, values rounded": rounded(1.0),
    "5 algorithms, values rounded coarsely": rounded(3.0),
    "5 algorithms, 50 % of runs unsolved": not_solved(0.5),
    "5 algorithms, 80 % of runs unsolved": not_solved(0.8),
    "5 algorithms, 50 % of runs optimal": solved(0.5),
    "5 algorithms, 80 % of runs optimal": solved(0.8),
}


def standardise(posterior: pb.Posterior) -> float:
    """Return the posterior mean of a difference of utilities over its standard deviation."""
    utilities = posterior.utilities[:, 0].astype(float)  # draws of equal weight
    difference = utilities[:, 0] - utilities[:, 1]
    return float(difference.mean() / difference.std())


def simulate(fits: int) -> dict[str, dict[str, float]]:
    """Return the standard deviation of the standardised difference: 1 is right."""
    answer = {}
    for number, (name, draw) in enumerate(CASES.items()):
        rng = np.random.default_rng(number)
        z: dict[str, list[float]] = {ties: [] for ties in TREATMENTS}
        for _ in range(fits):
            costs = draw(rng)[None]
            for ties in TREATMENTS:
                z[ties].append(standardise(pb.fit(pb.simulation.rank_costs(costs, ties=ties))))
        answer[name] = {ties: float(np.std(values)) for ties, values in z.items()}
    return answer


def fit_scenario(folder: Path, slowest: int) -> dict[str, object]:
    """Return seconds of a fit, and how far ratings are from shares of first places."""
    runs = pb.read(folder)
    last = float(np.max(runs.until))
    rankings = pb.rank(runs, pb.grid.log(last / 100, last, 4))
    shares = first_places(rankings)
    row: dict[str, object] = {
        "instances": len(rankings.instances),
        "algorithms": len(rankings.algorithms),
    }
    for ties in TREATMENTS:
        if ties == "averaged" and len(rankings.algorithms) > slowest:
            continue  # minutes
        start = time.process_time()
        posterior = pb.fit(replace(rankings, ties=ties))
        row[f"{ties} seconds"] = time.process_time() - start
        row[f"{ties} error"] = float(np.abs(posterior.mean() - shares).mean())
    return row


def first_places(rankings: pb.Rankings) -> np.ndarray:
    """Return how often each algorithm is first alone (T, n), as a share of such instances."""
    n = len(rankings.algorithms)
    comparison = np.repeat(np.arange(len(rankings.instance)), np.diff(rankings.offset))
    shares = np.zeros((len(rankings.times), n))
    for t, position in enumerate(rankings.position):
        first = position == 0
        alone = np.bincount(comparison, first, minlength=len(rankings.instance)) == 1
        wins = np.bincount(rankings.algorithm, first & alone[comparison], minlength=n)
        shares[t] = wins / max(1, wins.sum())
    return shares


def write_table(results: dict) -> None:
    """Write table.md."""
    rows = [
        [name, *(f"{one[ties]:.2f}" for ties in TREATMENTS)]
        for name, one in results["simulated"].items()
    ]
    introduction = (
        f"Equal algorithms, {INSTANCES} instances, {results['fits']} fits each. A difference of "
        "utilities divided by its\nposterior standard deviation should have the standard deviation "
        "1. Below 1 the posterior is too wide.\nThe standard error is about "
        f"{1 / np.sqrt(2 * results['fits']):.2f}. Made by `python studies/ties/run.py`.\n"
    )
    text = ["# What a tie says\n", introduction, table(["data", *TREATMENTS], rows)]
    if results.get("aslib"):
        rows = [
            [
                name,
                str(one["instances"]),
                str(one["algorithms"]),
                *(
                    f"{one[f'{ties} {what}']:.{digits}f}" if f"{ties} {what}" in one else "minutes"
                    for what, digits in (("seconds", 2), ("error", 3))
                    for ties in TREATMENTS
                ),
            ]
            for name, one in results["aslib"].items()
        ]
        head = ["scenario", "instances", "algorithms"]
        head += [f"{what}, {ties}" for what in ("CPU s", "error") for ties in TREATMENTS]
        explanation = (
            "One fit at four cut-off times. The error is the mean difference between the rating of "
            "an algorithm\nand its share of first places. Made with `--aslib FOLDER`.\n"
        )
        text += ["\n## ASlib scenarios\n", explanation, table(head, rows)]
    (HERE / "table.md").write_text("\n".join(text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fits", type=int, default=300)
    parser.add_argument("--aslib", type=Path, nargs="+", default=[])
    parser.add_argument("--slowest", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.quick:
        print(simulate(2))
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not arguments.aslib or "simulated" not in results:
        results["fits"], results["simulated"] = arguments.fits, simulate(arguments.fits)
    for folder in arguments.aslib:
        results.setdefault("aslib", {})[folder.name] = fit_scenario(folder, arguments.slowest)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    write_table(results)


if __name__ == "__main__":
    main()
