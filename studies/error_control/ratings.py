"""Do 95 % intervals of ratings hold the shares of first places? Writes ratings.md.

A rating is the probability of coming first. Samples are those of chances.py, of recorded pools and
of simulated utilities, whose shares of first places are known; those that tie share a place.

python studies/error_control/ratings.py               # a quarter of an hour; goes on
python studies/error_control/ratings.py --orders 50   # samples of each source and size
python studies/error_control/ratings.py --quick       # seconds: does it run at all?
python studies/error_control/ratings.py --table       # the table again from results/
"""

import argparse
import os
import sys
import tempfile
import warnings
from functools import cache, partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from error_control.chances import MOST, PERSISTENCE, draw_sample, label, places
from racing.cells import Cell, load, run, seeded
from racing.pools import MABBOB, SHIPPED
from tools.markdown import table

import polarbear as pb
from polarbear.calibration.population import Floats, Truth
from polarbear.inference.counted import has_counted_ratings
from polarbear.simulation import PAPER_PRIOR, draw_noisy_utilities, draw_truth, rank_costs

QUICK_CPU_SECONDS = 5

SIZES = (12, 24, 60, 200)
SOURCES = (*PERSISTENCE, *SHIPPED, *MABBOB)
FITS = {"default": {}, "model": {"evidence": "rankings"}}
MANY = 4_000
"""Instances that stand for the population of a simulation."""


@cache
def true_ratings(source: str, n: int, number: int) -> Floats:
    """Return the shares of first places (T, n) in the population of a sample."""
    rng = seeded("chances", source, n, number)  # begins as in draw_sample
    if source in PERSISTENCE:
        times = np.linspace(0.02, 1.0, 20)
        truth, _ = draw_truth(PAPER_PRIOR, times, 5, rng)
        noisy = draw_noisy_utilities(truth, MANY, rng, times, persistence=PERSISTENCE[source])
        population = rank_costs(-noisy)
    else:
        place, times = places(source)
        size = place.shape[2]
        population = rank_costs(place[:, :, np.sort(rng.permutation(size)[:MOST])])
    return np.exp(Truth.of_counts(population).utilities)


def measure(source: str, n: int, options: dict[str, Any], number: int) -> dict[str, Any]:
    """Return how often intervals hold the truth, the error of the ratings, and who is counted."""
    rankings, _ = draw_sample(source, n, number)
    truth = true_ratings(source, n, number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = pb.fit(rankings, **options)
    low, high = posterior.interval()
    common = truth > 0.01  # few instances cannot tell how rare a rare first place is
    return {
        "held": np.mean(((low <= truth) & (truth <= high))[common]),
        "error": np.sqrt(np.mean((posterior.mean() - truth)[common] ** 2)),
        "counted": has_counted_ratings(posterior),
    }


def write(folder: Path) -> str:
    """Write ratings.md, and return it."""
    rows = []
    for source in SOURCES:
        found = load(folder / "results" / f"ratings-{label(source)}.npz")
        for n in SIZES:
            arms = [found.get(f"{n} {name}") for name in FITS]
            if None in arms:
                continue
            held = [f"{a['held'].mean():.2f} ± {_error(a['held']):.2f}" for a in arms if a]
            error = [f"{a['error'].mean():.3f}" for a in arms if a]
            counted = arms[0]["counted"] if arms[0] else np.zeros(1)
            row = [source, n, len(counted), f"{counted.mean():.2f}", *held, *error]
            rows.append(row)
    head = ["data", "instances", "samples", "counted", *(f"held, {name}" for name in FITS)]
    text = (
        "Made by `python studies/error_control/ratings.py`: in which share of the samples ratings\n"
        "are counted, which share of 95 % intervals of ratings holds the true share of first\n"
        "places, and the root mean square error of the ratings. *default* is `pb.fit`, and\n"
        "*model* the Plackett-Luce model alone.\n\n"
        f"{table([*head, *(f'error, {name}' for name in FITS)], rows)}\n"
    )
    (folder / "ratings.md").write_text(text)
    return text


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--orders", type=int, default=20)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else Path(__file__).parent
        sources = SOURCES[:1] if wanted.quick else () if wanted.table else SOURCES
        for source in sources:
            arms = {
                f"{n} {name}": partial(measure, source, n, options)
                for n in (SIZES[:1] if wanted.quick else SIZES)
                for name, options in FITS.items()
            }
            races = dict.fromkeys(arms, 2 if wanted.quick else wanted.orders)
            print(run(Cell("ratings", label(source), arms, races), folder), flush=True)
        print(write(folder))


if __name__ == "__main__":
    main()
