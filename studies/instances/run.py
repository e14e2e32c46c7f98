"""Coverage of 95 % intervals by class and by features, and truth of claims, on simulated truth.

Writes a line of JSON to results/ for each data set, then table.md. Goes on where it was stopped.

python studies/instances/run.py                 # 200 data sets of each kind, some CPU minutes
python studies/instances/run.py --sets 50       # fewer
python studies/instances/run.py --table         # the table again from results/
python studies/instances/run.py --quick         # some seconds: does it run at all?
"""

import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from instances.truths import Truth, make_classes, make_features
from tools.markdown import table
from tools.options import parser
from tools.records import Records

import polarbear as pb

QUICK_CPU_SECONDS = 3

HERE = Path(__file__).parent
KEY = ("kind", "strength", "seed")
CELLS = (
    *(("classes", strength) for strength in (0.0, 0.25, 0.7, 1.5, 3.0)),
    ("smooth", 0.5), ("smooth", 1.0), ("smooth", 2.0), ("rough", 1.0), ("step", 1.0),
    ("nothing", 0.0),
)  # fmt: skip
CERTAINTY = 0.99

TITLE = """# Ratings by class and by features, on simulated truth

Made by `python studies/instances/run.py`; README.md says what is simulated. Standard errors are
those between data sets."""


def make(kind: str, strength: float, seed: int) -> Truth:
    if kind == "classes":
        return make_classes(strength, seed)
    return make_features(kind, strength, seed)


def ask(truth: Truth, seed: int) -> dict[str, list[int]]:
    """Return for each kind of question the number of pairs, covered, claimed, and truly claimed."""
    posterior: Any = pb.fit(truth.rankings, seed=seed, **truth.arguments)
    first, second = np.triu_indices(len(truth.rankings.algorithms), 1)
    counts: dict[str, list[int]] = {}
    for kind, places in truth.places.items():
        total = np.zeros(4, dtype=int)
        for place, mu in zip(places, truth.utilities[kind], strict=True):
            drawn = posterior.on(place).utilities[:, 0].astype(float)
            gaps = drawn[:, first] - drawn[:, second]
            low, high = np.quantile(gaps, [0.025, 0.975], axis=0)
            gap, ahead = mu[first] - mu[second], np.mean(gaps > 0, axis=0)
            covered = (low <= gap) & (gap <= high)
            claimed = np.maximum(ahead, 1 - ahead) >= CERTAINTY
            right = claimed & ((ahead > 0.5) == (gap > 0))
            total += [len(gap), *map(np.count_nonzero, (covered, claimed, right))]
        counts[kind] = total.tolist()
    return counts


def measure(records: Records, n_sets: int, hours: float | None) -> None:
    """Add what is missing to the records, one data set of every kind after the other."""
    deadline = np.inf if hours is None else time.time() + 3600 * hours
    done = {tuple(row[name] for name in KEY) for row in records.rows}
    for seed in range(n_sets):
        for kind, strength in CELLS:
            if time.time() > deadline:
                return
            if (kind, strength, seed) not in done:
                counts = ask(make(kind, strength, seed), seed)
                records.add({"kind": kind, "strength": strength, "seed": seed, "counts": counts})


def summarise(rows: list[dict[str, Any]], question: str) -> list[str]:
    """Return coverage with its standard error, and the share of claims that are true."""
    counts = np.array([row["counts"][question] for row in rows])
    number, covered, claimed, right = counts.T
    share = covered / number
    error = share.std(ddof=1) / np.sqrt(len(share)) if len(share) > 1 else np.nan
    true = right.sum() / claimed.sum() if claimed.sum() else np.nan
    return [
        str(len(rows)),
        f"{share.mean():.3f} ({error:.3f})",
        f"{claimed.sum():,}",
        f"{true:.4f}",
    ]


def write(rows: list[dict[str, Any]], folder: Path) -> str:
    """Write the table to a folder and return it."""
    lines = []
    for kind, strength in CELLS:
        own = [row for row in rows if (row["kind"], row["strength"]) == (kind, strength)]
        lines += [
            [kind, f"{strength:g}", question, *summarise(own, question)]
            for question in (own[0]["counts"] if own else ())
        ]
    head = [
        "truth", "sd between instances", "asked about", "data sets",
        "coverage of 95 % intervals (s.e.)", f"claims with P >= {CERTAINTY}", "of them true",
    ]  # fmt: skip
    text = f"{TITLE}\n\n{table(head, lines)}\n"
    (folder / "table.md").write_text(text)
    return text


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sets", type=int, default=200, help="data sets of each kind")
    wanted = options.parse_args()
    warnings.simplefilter("ignore", pb.errors.DataWarning)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else HERE
        records = Records(folder / "results" / "coverage.jsonl", KEY)
        if not wanted.table:
            measure(records, 1 if wanted.quick else wanted.sets, wanted.hours)
        print(write(records.rows, folder))


if __name__ == "__main__":
    main()
