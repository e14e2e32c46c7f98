"""Do 95 % intervals of ratings hold the shares of first places? Writes ratings.md.

And is P(a is rated above b) as often true as it says? A rating is the probability of coming first.
Samples are those of chances.py, of recorded pools and of simulated utilities, whose shares of first
places are known.

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
from unittest import mock

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from calibration.models import MODEL
from error_control.chances import MOST, PERSISTENCE, draw_sample, label, places
from racing.cells import Cell, load, run, seeded
from racing.pools import MABBOB, SHIPPED
from tools.markdown import table

import polarbear as pb
from polarbear.calibration.population import Floats, Truth
from polarbear.inference import counted
from polarbear.inference.replacing import Places
from polarbear.simulation import PAPER_PRIOR, draw_noisy_utilities, draw_truth, rank_costs

QUICK_CPU_SECONDS = 5

SIZES = (12, 24, 60, 200)
SOURCES = (*PERSISTENCE, *SHIPPED, *MABBOB)
FITS = {"default": {}, "with gaps": {}, "model": {"prior": MODEL}}
"""By name: options of ``fit``."""

WEIGHTS = (6.0, 24.0)
"""How many instances the model counts as in other fits, beside the default of 12."""

GAPS = 0.2
"""The share of runs that are left out of a sample with gaps."""

WEIGHED = {f"weight {weight:g}": weight for weight in WEIGHTS}
"""Fits by name."""

CERTAIN, CLOSE = 0.95, 1e-3
"""Claims of this probability are counted, of ratings that differ by more than this."""

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


def leave_out(rankings: pb.Rankings, n: int, number: int) -> pb.Rankings:
    """Return rankings without some runs, chosen by chance."""
    place = Places.of(rankings).position.astype(float)
    gone = seeded("gaps", n, number).random(place.shape[1:]) < GAPS
    return rank_costs(np.where(gone, np.nan, place), times=rankings.times)


def measure(source: str, n: int, name: str, number: int) -> dict[str, Any]:
    """Return how often intervals and claims of a fit hold, and the error of its ratings."""
    rankings, _ = draw_sample(source, n, number)
    truth = true_ratings(source, n, number)
    rankings = leave_out(rankings, n, number) if name == "with gaps" else rankings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with mock.patch.object(counted, "MODEL_WEIGHT", WEIGHED.get(name, counted.MODEL_WEIGHT)):
            posterior = pb.fit(rankings, **FITS.get(name, {}))
    low, high = posterior.interval()
    common = truth > 0.01  # few instances cannot tell how rare a rare first place is
    differs = truth[:, :, None] - truth[:, None]
    chance = posterior.prob_better()
    claimed = (chance >= CERTAIN) & (np.abs(differs) > CLOSE)
    return {
        "held": np.mean(((low <= truth) & (truth <= high))[common]),
        "error": np.sqrt(np.mean((posterior.mean() - truth)[common] ** 2)),
        "claims": [claimed.sum(), chance[claimed].sum(), (claimed & (differs > 0)).sum()],
    }


def write(folder: Path) -> str:
    """Write ratings.md, and return it."""
    rows = []
    for source in SOURCES:
        found = load(folder / "results" / f"ratings-{label(source)}.npz")
        for n in SIZES:
            arms = [arm for name in FITS if (arm := found.get(f"{n} {name}"))]
            if len(arms) == len(FITS):
                held = [f"{arm['held'].mean():.2f} ± {_error(arm['held']):.2f}" for arm in arms]
                error = [f"{arm['error'].mean():.3f}" for arm in arms]
                claims = [_compare(*arm["claims"].sum(axis=0)) for arm in arms]
                rows.append([source, n, len(arms[0]["held"]), *held, *error, *claims])
    kinds = [f"{what}, {name}" for what in ("held", "error", "claims") for name in FITS]
    text = (
        "Made by `python studies/error_control/ratings.py`: which share of 95 % intervals of\n"
        "ratings holds the true share of first places; the root mean square error of the ratings;\n"
        f"and of claims that a rating is above another one, of {CERTAIN} or more, the mean\n"
        "probability and the share that is true. *default* is `pb.fit`, *with gaps* the same\n"
        f"without {100 * GAPS:.0f} % of the runs, and *model* the Plackett-Luce model alone.\n\n"
        f"{table(['data', 'instances', 'samples', *kinds], rows)}\n\n"
        "The same by how many instances the model counts as, in the mean over recorded pools and\n"
        "over simulations of the model:\n\n"
        f"{_compare_weights(folder)}\n"
    )
    (folder / "ratings.md").write_text(text)
    return text


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _compare_weights(folder: Path) -> str:
    """Return a table of the intervals and errors by the weight of the model."""
    names = {6.0: "weight 6", counted.MODEL_WEIGHT: "default", 24.0: "weight 24"}
    rows = []
    for kind, sources in (("recorded", (*SHIPPED, *MABBOB)), ("simulated", tuple(PERSISTENCE))):
        found = [load(folder / "results" / f"ratings-{label(one)}.npz") for one in sources]
        for n in SIZES:
            row: list[object] = [kind, n]
            for what, digits in (("held", 2), ("error", 3)):
                for name in names.values():
                    each = [one[key][what].mean() for one in found if (key := f"{n} {name}") in one]
                    row.append(f"{np.mean(each):.{digits}f}" if each else "-")
            rows.append(row)
    kinds = [f"{what}, {weight:g}" for what in ("held", "error") for weight in names]
    return table(["data", "instances", *kinds], rows)


def _compare(number: float, stated: float, true: float) -> str:
    return f"{stated / number:.3f}, {true / number:.3f}" if number else "-"


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
                f"{n} {name}": partial(measure, source, n, name)
                for n in (SIZES[:1] if wanted.quick else SIZES)
                for name in (*FITS, *WEIGHED)
            }
            races = dict.fromkeys(arms, 2 if wanted.quick else wanted.orders)
            print(run(Cell("ratings", label(source), arms, races), folder), flush=True)
        print(write(folder))


if __name__ == "__main__":
    main()
