"""Are the probabilities beside verdicts right, of races, ``assess`` and ``fit``? Writes chances.md.

A recorded pool is the population, and says who replaces whom in truth. Instances are drawn from it
*with* replacement: half of a pool says more of it than a sample says of a population. Each time, at
most six of its algorithms compete. So do five with simulated utilities, of a known truth.

python studies/error_control/chances.py                    # goes on where it was
python studies/error_control/chances.py --orders 200       # samples of each source and size
python studies/error_control/chances.py --quick            # seconds: does it run at all?
python studies/error_control/chances.py --table            # the table again from results/

With POLARBEAR_ASLIB=FOLDER, the scenarios of ASlib in this folder are pools too.
"""

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from functools import cache, partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from numpy.typing import NDArray
from racing.cells import Cell, Columns, load, run, seeded
from racing.pools import MABBOB, SHIPPED, pool, scenarios
from racing.truths import find_replacing, replacing_by_utilities
from tools.markdown import table

import polarbear as pb
from polarbear.data.positions import UNKNOWN
from polarbear.inference.verdicts import Verdict
from polarbear.simulation import PAPER_PRIOR, draw_noisy_utilities, draw_truth, rank_costs

QUICK_CPU_SECONDS = 5

SIZES = (12, 24, 60)
MOST = 6
BINS = (0.5, 0.65, 0.8, 0.95, 0.99, 1.0)
PERSISTENCE = {"simulated, L = 0": 0.0, "simulated, L = 0.5": 0.5, "simulated, L = inf": np.inf}
CLAIMS = ("worth running", "replaceable")

Floats = NDArray[np.float64]


@cache
def places(name: str) -> tuple[Floats, Floats]:
    """Return the positions (T, I, n) of all algorithms of a pool where all are known, and times."""
    runs, times, _ = pool(name)
    rankings = pb.rank(runs, times)
    place = rankings.position.reshape(len(times), -1, len(rankings.algorithms))
    return place[:, (place != UNKNOWN).all(axis=(0, 2))].astype(float), times


def draw_sample(source: str, n: int, number: int) -> tuple[pb.Rankings, NDArray[np.bool_]]:
    """Return rankings of n instances, and whether row replaces column in truth."""
    rng = seeded("chances", source, n, number)
    if source in PERSISTENCE:
        times = np.linspace(0.02, 1.0, 20)
        truth, _ = draw_truth(PAPER_PRIOR, times, 5, rng)
        noisy = draw_noisy_utilities(truth, n, rng, times, persistence=PERSISTENCE[source])
        return rank_costs(-noisy, times=times), replacing_by_utilities(truth, times)
    place, times = places(source)
    size = place.shape[2]
    place = place[:, :, np.sort(rng.permutation(size)[:MOST])]
    wins = (place[:, :, :, None] < place[:, :, None, :]).mean(axis=1)
    chosen = place[:, rng.integers(place.shape[1], size=n)]
    replacing = find_replacing(wins, wins.swapaxes(1, 2), times)
    return rank_costs(chosen, times=times), replacing


def judge(
    one: Verdict, k: int, code: dict[str, int], replaces: NDArray[np.bool_]
) -> tuple[int, float, bool]:
    """Return which claim a verdict makes, its probability, and whether it is true."""
    assert one.probability is not None
    if one.kind == "dominated" and one.rival is not None:
        return 1, one.probability, bool(replaces[code[one.rival], k])
    is_replaced = bool(replaces[:, k].any())
    if one.probability < 0.5:
        return 1, 1 - one.probability, is_replaced
    return 0, one.probability, not is_replaced


def measure(source: str, n: int, number: int) -> dict[str, Any]:
    """Return the number, stated sum and true number of claims (kinds, bins, 3) of one sample."""
    rankings, replaces = draw_sample(source, n, number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdicts = pb.assess(rankings)
    tally = np.zeros((len(CLAIMS), len(BINS) - 1, 3))
    code = {name: k for k, name in enumerate(rankings.algorithms)}
    for k, one in enumerate(verdicts):
        claim, probability, is_true = judge(one, k, code, replaces)
        cell = min(np.searchsorted(BINS, probability, side="right") - 1, len(BINS) - 2)
        tally[claim, cell] += 1, probability, is_true
    return {"tally": tally}


def list_sources() -> list[str]:
    """Return all sources that are there."""
    found = [*PERSISTENCE, *SHIPPED, *MABBOB]
    for name in scenarios():
        try:
            pool(name)
        except pb.DataError as error:  # a scenario that has no times
            print(f"{name} is left out: {error}")
        else:
            found.append(name)
    return found


def find_group(name: str) -> str:
    """Return which rows of the table a file of results belongs to."""
    if name in map(label, PERSISTENCE):
        return "simulated"
    return "recorded here" if name in SHIPPED + MABBOB else "ASlib"


def label(source: str) -> str:
    """Return the name of a source in the names of files."""
    return source.replace("simulated, L = ", "L")


def cells(sources: Iterable[str], orders: int, sizes: Sequence[int]) -> list[Cell]:
    """Return a cell for each source, with an arm for each number of instances."""
    found = []
    for source in sources:
        measures = {str(n): partial(measure, source, n) for n in sizes}
        found.append(Cell("chances", label(source), measures, dict.fromkeys(measures, orders)))
    return found


def share(parts: Sequence[Floats]) -> str:
    """Return which share of claims is true, its standard error, and how many there are.

    ``parts`` (samples, 3) of each source. Claims about one sample are dependent, so the error is
    that of a ratio of sums over samples; with many sources, over sources.
    """
    sums = np.stack([one.sum(axis=0) for one in parts]) if len(parts) > 8 else np.concatenate(parts)
    count, _, true = sums.sum(axis=0)
    if not count:
        return ""
    residual = sums[:, 2] - sums[:, 0] * true / count
    error = np.sqrt((residual**2).sum()) / count
    return f"{true / count:.2f} ± {error:.2f} ({count:.0f})"


def write(folder: Path) -> str:
    """Write chances.md, and return it."""
    found: dict[str, list[dict[str, Columns]]] = {}
    for path in sorted((folder / "results").glob("chances-*.npz")):
        found.setdefault(find_group(path.stem.removeprefix("chances-")), []).append(load(path))
    rows = []
    found["all"] = [one for group in found.values() for one in group]
    spread = f"{SIZES[0]} to {SIZES[-1]}"
    for group, n, (claim, name) in product(
        sorted(found, key=str.lower, reverse=True), (*SIZES, spread), enumerate(CLAIMS)
    ):
        arms = [str(size) for size in SIZES if n in (size, spread)]
        measured = (
            [one[arm]["tally"][:, claim] for arm in arms if arm in one] for one in found[group]
        )
        parts = [np.concatenate(tallies).astype(float) for tallies in measured if tallies]
        if parts and (n == spread) == (group == "all"):
            shares = [share([one[:, k] for one in parts]) for k in range(len(BINS) - 1)]
            rows.append([group, len(parts), n, sum(map(len, parts)), name, *shares])
    head = ["data", "sources", "instances", "samples", "claim"]
    spans = [f"{low:g} to {high:g}" for low, high in pairwise(BINS)]
    text = (
        "Made by `python studies/error_control/chances.py`: of the claims with a stated\n"
        "probability in a range, the share that is true, its standard error, and their number.\n\n"
        f"{table([*head, *spans], rows)}\n"
    )
    (folder / "chances.md").write_text(text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--orders", type=int, default=100)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else Path(__file__).parent
        sources = [*PERSISTENCE][:1] if wanted.quick else [] if wanted.table else list_sources()
        sizes = SIZES[:1] if wanted.quick else SIZES
        for cell in cells(sources, 2 if wanted.quick else wanted.orders, sizes):
            print(run(cell, folder), flush=True)
        print(write(folder))


if __name__ == "__main__":
    main()
