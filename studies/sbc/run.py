"""Simulation-based calibration of the fast engine, for every prior.

    python studies/sbc/run.py                 # 1000 data sets per prior, about half an hour
    python studies/sbc/run.py --sets 100      # fewer
    python studies/sbc/run.py --quick         # two, of each prior
    python studies/sbc/run.py --table         # the table again from what is there

Truth is drawn from the prior, data from the truth, and the truth must then be as likely to lie in
any part of the posterior as in any other (Talts et al. 2018): its rank among the draws is uniform.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import polarbear as pb
from polarbear.priors.prior import Prior
from polarbear.simulation import draw_truth, simulate_rankings

QUICK_CPU_SECONDS = 4

FOLDER = Path(__file__).parent
ALGORITHMS, INSTANCES, TIMES = 4, 10, 6
BINS = 20
LEVEL = 0.01
"""The chance that a calibrated engine fails any of the tests, shared equally among them."""

PRIORS = {
    **pb.simulation.PRIORS,
    "SparseGP": pb.priors.SparseGP(inducing=4),
    "GP-matern52": pb.priors.GP("matern52"),
    "GP-squared-exponential": pb.priors.GP("squared-exponential"),
}
QUANTITIES: dict[str, Callable[[NDArray], NDArray]] = {
    "difference at a time": lambda mu: mu[..., 3, 0] - mu[..., 3, 1],
    "utility at the start": lambda mu: mu[..., 0, 2],
    "mean difference": lambda mu: (mu[..., 0] - mu[..., 1]).mean(axis=-1),
}


def ranks(prior: Prior, seed: int) -> dict[str, float]:
    """Where the truth lies among the draws, from 0 to 1, for each quantity."""
    rng = np.random.default_rng(seed)
    mu, hyper = draw_truth(prior, np.linspace(0, 1, TIMES), ALGORITHMS, rng)
    rankings = simulate_rankings(mu, INSTANCES, rng)
    posterior = pb.fit(rankings, prior=prior, evidence="rankings", seed=seed)
    draws = posterior.utilities.astype(np.float64)
    found = {name: of(draws) < of(mu) for name, of in QUANTITIES.items()}
    place = {name: float(below.mean()) for name, below in found.items()}
    place |= {name: float((posterior.hyper[name] < x).mean()) for name, x in hyper.items()}
    moved = posterior.mixture is None or not posterior.mixture.holds.all()
    return place | {"moved": float(moved), "trusted": float(posterior.diagnostics.trusted)}


def table(results: dict[str, dict[str, NDArray]]) -> str:
    tests = sum(len(found) - 2 for found in results.values())
    limit = LEVEL / (2 * tests)
    head = (
        f"Simulation-based calibration: n={ALGORITHMS}, P={INSTANCES}, T={TIMES}; uniform by a "
        f"chi-square test with {BINS} bins and by Kolmogorov and Smirnov's; a test fails below "
        f"{limit:.1e}, which is {LEVEL:g} shared among {2 * tests} tests."
    )
    lines = [
        head,
        "",
        "| prior | quantity | sets | chi-square p | Kolmogorov p | in 90 % | moved | trusted | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in results.items():
        for quantity, u in found.items():
            if quantity in ("moved", "trusted"):
                continue
            count = np.histogram(u, BINS, (0, 1))[0]
            square, largest = stats.chisquare(count).pvalue, stats.kstest(u, "uniform").pvalue
            verdict = "pass" if min(square, largest) > limit else "**FAIL**"
            lines.append(
                f"| {name} | {quantity} | {len(u)} | {square:.3f} | {largest:.3f} | "
                f"{np.mean((u > 0.05) & (u < 0.95)):.3f} | {found['moved'].mean():.2f} | "
                f"{found['trusted'].mean():.3f} | "
                f"{verdict} |"
            )
    return "\n".join(lines) + "\n"


def measure(folder: Path, sets: int) -> dict[str, dict[str, NDArray]]:
    """What is in the folder; priors with fewer data sets are measured again."""
    results: dict[str, dict[str, Any]] = {}
    for name, prior in PRIORS.items():
        path = folder / "results" / f"{name}.npz"
        if path.exists():
            with np.load(path) as file:
                results[name] = {key: file[key] for key in file.files}
        if len(results.get(name, {}).get("moved", ())) < sets:
            rows = [ranks(prior, seed) for seed in range(sets)]
            results[name] = {key: np.array([row[key] for row in rows]) for key in rows[0]}
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, **results[name])
            print(table({name: results[name]}), flush=True)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, sets = (Path(scratch), 2) if wanted.quick else (wanted.folder, wanted.sets)
        results = measure(folder, 0 if wanted.table else sets)
        (folder / "table.md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
