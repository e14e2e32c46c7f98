"""How often does a race with classes eliminate a member of the Pareto set of a class?

Races are replayed on simulated runs whose truth is known. Writes a line of JSON to results/ for
each race, then races.md. Goes on where it was stopped.

python studies/instances/races.py               # 60 races of each kind; two CPU minutes
python studies/instances/races.py --races 200   # more, in the same files
python studies/instances/races.py --table       # the table again from results/
python studies/instances/races.py --quick       # some seconds: does it run at all?
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.markdown import table
from tools.options import parser
from tools.records import Records, seeded

import polarbear as pb
from polarbear.inference.posterior import Posterior

QUICK_CPU_SECONDS = 2

HERE = Path(__file__).parent
KEY = ("truth", "seed")
CERTAINTY, INSTANCES, N_TIMES = 0.95, 300, 3
SHARES = {"x": 0.5, "y": 0.3, "z": 0.2}
CLASSES = {
    f"i{k + 1}": kind
    for k, kind in enumerate(np.repeat([*SHARES], [int(s * INSTANCES) for s in SHARES.values()]))
}

TITLE = f"""# Races with classes of instances, on simulated truth

Made by `python studies/instances/races.py`; README.md says what is simulated. Certainty
{CERTAINTY}, {INSTANCES} instances in three classes, {N_TIMES} times. An error: some member of the
Pareto set of a class is eliminated; at most {1 - CERTAINTY:.2f} is promised for each member."""


def make_utilities(truth: str, rng: np.random.Generator) -> np.ndarray:
    """Return utilities (classes, times, algorithms) of four algorithms."""
    mu = np.zeros((len(SHARES), N_TIMES, 4))
    if truth == "tied in one class":  # the second is a member of x alone, and equal to the first
        mu[1:, :, 1] = -2.0
        mu[:, :, 2:] = -3.0
    elif truth == "tied at one time of one class":
        mu[:, :, 1] = -2.0
        mu[0, 1, 1] = 0.0
        mu[:, :, 2:] = -3.0
    elif truth == "one for each class":
        mu[np.arange(3), :, np.arange(3)] = 1.0
    elif truth == "drawn":
        mu += rng.normal(size=(1, 1, 4)) + rng.normal(size=(3, 1, 4))
        mu += 0.5 * rng.normal(size=mu.shape)
    return mu


TRUTHS = (
    "all equal", "tied in one class", "tied at one time of one class", "one for each class",
    "drawn",
)  # fmt: skip


def find_members(mu: np.ndarray) -> list[int]:
    """Return the algorithms that no other one is ahead of at all times, in some class."""
    ahead = (mu[:, :, :, None] > mu[:, :, None, :]).all(axis=1)  # (classes, first, second)
    return np.flatnonzero(~np.any(ahead, axis=1).all(axis=0)).tolist()


def make_runs(mu: np.ndarray, rng: np.random.Generator) -> pb.Runs:
    """Draw runs in a random order of instances; luck persists over times with correlation 0.5."""
    names = rng.permutation([*CLASSES])
    own = np.array([[*SHARES].index(CLASSES[name]) for name in names])
    shape = (len(names), N_TIMES, mu.shape[2])
    first, other = rng.normal(size=(shape[0], 1, shape[2])), rng.normal(size=shape)
    noise = np.sqrt(0.5) * (first + other)
    values = mu[own] + noise + 30.0 * np.arange(N_TIMES)[:, None]  # so that all are improvements
    times = np.arange(1.0, N_TIMES + 1)
    records = [
        pb.Run(f"a{a + 1}", str(name), times, values[k, :, a], float(N_TIMES))
        for k, name in enumerate(names)
        for a in range(mu.shape[2])
    ]
    return pb.Runs.from_records(records, direction="maximize")


def fit_roughly(rankings: pb.Rankings, *, seed: int) -> Posterior:
    """Return ratings by chance: with classes e-values decide, and a posterior decides nothing."""
    rng = np.random.default_rng(seed)
    n_times, n = len(rankings.times), len(rankings.algorithms)
    draws = rng.standard_normal((40, n_times, n)).astype(np.float32)
    weight = np.full((40, 1), 1 / 40, dtype=np.float32)
    return Posterior(rankings.algorithms, rankings.times, draws, weight)


def replay(truth: str, seed: int) -> dict[str, Any]:
    """Return a row: the members of any class by the truth, and what a race eliminates."""
    rng = seeded("races", truth, seed)
    mu = make_utilities(truth, rng)
    runs, members = make_runs(mu, rng), {f"a{k + 1}" for k in find_members(mu)}
    asked = pb.ParetoSet(certainty=CERTAINTY, classes=CLASSES, fit=fit_roughly)
    result = pb.replay(runs, asked, times=np.arange(1.0, N_TIMES + 1), seed=seed)
    return {
        "truth": truth, "seed": seed, "members": sorted(members),
        "out": sorted(result.eliminated), "runs": int(result.spent.runs),
    }  # fmt: skip


def summarise(rows: list[dict[str, Any]]) -> list[str]:
    """Return error rates, how many of the other algorithms are eliminated, and the runs."""
    lost = [len({*row["out"]} & {*row["members"]}) for row in rows]
    share = np.mean([count > 0 for count in lost])
    error = np.sqrt(share * (1 - share) / len(rows))
    members = sum(len(row["members"]) for row in rows)
    others = 4 * len(rows) - members
    found = sum(len({*row["out"]} - {*row["members"]}) for row in rows)
    return [
        str(len(rows)),
        f"{share:.3f} ({error:.3f})",
        f"{sum(lost) / members:.4f}",
        f"{found / others:.2f}" if others else "none",
        f"{np.mean([row['runs'] for row in rows]):,.0f}",
    ]


def write(rows: list[dict[str, Any]], folder: Path) -> str:
    """Write the table to a folder and return it."""
    lines = []
    for truth in TRUTHS:
        own = [row for row in rows if row["truth"] == truth]
        if own:
            lines.append([truth, *summarise(own)])
    head = [
        "truth", "races", "races with an error (s.e.)", "share of members eliminated",
        "share of others eliminated", "runs of at most 1,200",
    ]  # fmt: skip
    text = f"{TITLE}\n\n{table(head, lines)}\n"
    (folder / "races.md").write_text(text)
    return text


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--races", type=int, default=60, help="races of each kind")
    wanted = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else HERE
        records = Records(folder / "results" / "races.jsonl", KEY)
        done = {tuple(row[name] for name in KEY) for row in records.rows}
        end = np.inf if wanted.hours is None else time.time() + 3600 * wanted.hours
        for seed in range(0 if wanted.table else 1 if wanted.quick else wanted.races):
            for truth in TRUTHS:
                if (truth, seed) not in done and time.time() < end:
                    records.add(replay(truth, seed))
        print(write(records.rows, folder))


if __name__ == "__main__":
    main()
