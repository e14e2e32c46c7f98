"""Coverage and false claims of each kind of order. Writes false_claims.md.

Four algorithms run on every instance. In the first part they draw from the same distribution, so no
claim that one is better is right. In the second part they differ, and the truth is what the same
order says of 4,000 instances.

python studies/orders/false_claims.py           # minutes; continues where it stopped
python studies/orders/false_claims.py --table   # the table again from results/
python studies/orders/false_claims.py --quick   # seconds: does it run at all?
"""

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from tools.markdown import table
from tools.records import Records

import polarbear as pb

QUICK_CPU_SECONDS = 30

HERE = Path(__file__).parent
ALGORITHMS, INSTANCES, MANY, DATA_SETS = "abcd", 30, 4000, 50
TIMES = [4, 12]
HANDICAPS = {"equal": (1.0, 1.0, 1.0, 1.0), "unequal": (1.0, 1.15, 1.4, 1.8)}
"""The distances to the front are multiplied by these."""


def draw_table(rng, handicaps, n_instances):
    """Columns of all runs: times 1 to 12, two objectives with a trade-off, and a violation."""
    shape = (n_instances, len(ALGORITHMS), 12)
    instance, name, time = (index + 1 for index in np.indices(shape))
    slope = rng.uniform(0.5, 2, size=(n_instances, 1, 1))
    skill = rng.exponential(size=(*shape[:2], 1))  # of this run
    handicap = np.array(handicaps)[:, None]
    x, gap = rng.uniform(size=shape), handicap * (0.3 + skill) * rng.exponential(size=shape) / time
    broken = np.maximum(0.0, rng.normal(size=shape) + handicap - 1 - 0.3 * time / 4)
    columns = {"instance": instance, "time": time, "f1": slope * x + gap, "f2": 1 - x + gap}
    plain = {key: values.ravel() for key, values in (*columns.items(), ("broken", broken))}
    return {"algorithm": np.array([*ALGORITHMS])[name.ravel() - 1], **plain}


def archives(table_):
    columns = {name: table_[name] for name in ("algorithm", "instance", "time", "f1", "f2")}
    return pb.readers.Archives.from_frame(
        columns, objectives=("f1", "f2"), direction="minimize", until=12
    )


def runs(table_, **options):
    return pb.Runs.from_frame(table_, direction="minimize", until=12, **options)


def targets(table_):
    data = runs(table_, value="f1")
    return pb.rank(data, targets=pb.targets.from_runs(data, [50, 90]))


KINDS = {
    "best value so far (for comparison)": lambda t: pb.rank(runs(t, value="f1"), TIMES),
    "violation, then value": lambda t: pb.rank(runs(t, value="f1", violation="broken"), TIMES),
    "levels": lambda t: pb.rank(runs(t, value=("broken", "f1")), TIMES),
    "latest value": lambda t: pb.rank(runs(t, value="f1", best_so_far=False), TIMES),
    "chosen by another value": lambda t: pb.rank(runs(t, value="f1", chosen_by="f2"), TIMES),
    "targets": targets,
    "first two only (top)": lambda t: pb.rank(runs(t, value="f1"), TIMES, top=2),
    "lottery of 1": lambda t: pb.rank(archives(t).scalarise(1), TIMES),
    "lottery of 4": lambda t: pb.rank(archives(t).scalarise(4), TIMES),
    "lottery of 16": lambda t: pb.rank(archives(t).scalarise(16), TIMES),
    "hypervolume": lambda t: pb.rank(archives(t).hypervolume(1.1, TIMES), TIMES),
    "set dominance": lambda t: archives(t).dominance(TIMES),
}


SIZES = {
    ("equal", "lottery of 16"): (INSTANCES // 3, INSTANCES, 4 * INSTANCES),
    ("equal", "set dominance"): (INSTANCES, 4 * INSTANCES, 16 * INSTANCES),
}
"""The numbers of instances, where there is more than one."""

MORE_SETS = {("equal", "violation, then value"): 8, ("equal", "chosen by another value"): 8}
"""How many times as many data sets where 50 leave open whether claims are too frequent."""


def find_truth(rank, truth):
    """Return the utilities (times, algorithms) of an order, from many instances."""
    if truth == "equal":
        return np.zeros((len(TIMES), len(ALGORITHMS)))
    rankings = rank(draw_table(np.random.default_rng(10**6), HANDICAPS[truth], MANY))
    return pb.fit(rankings).utilities.mean(axis=0, dtype=np.float64)


def assess(rankings, truth):
    """Return z, coverage and claims for each pair at the last time, and whether a member is lost.

    A claim is P > 0.975 that one is better, and false if the truth says otherwise.
    """
    posterior = pb.fit(rankings)
    first, second = np.triu_indices(len(ALGORITHMS), 1)
    mu = posterior.utilities[:, -1].astype(np.float64)
    gap, true = mu[:, first] - mu[:, second], truth[-1, first] - truth[-1, second]
    low, high = np.quantile(gap, [0.025, 0.975], axis=0)
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    better = np.array([posterior.prob_better(ALGORITHMS[a], ALGORITHMS[b])[-1] for a, b in pairs])
    claimed = np.maximum(better, 1 - better) > 0.975
    false = claimed & ((better - 0.5) * true <= 0)
    ahead = (truth[:, :, None] > truth[:, None, :]).all(axis=0)
    members = {ALGORITHMS[k] for k in np.flatnonzero(~ahead.any(axis=0))}
    return {
        "z": ((gap.mean(axis=0) - true) / gap.std(axis=0)).round(4).tolist(),
        "covered": float(np.mean((low <= true) & (true <= high))),
        "claimed": int(claimed.sum()),
        "false": int(false.sum()),
        "lost": not members <= {*posterior.pareto(0.95)},
    }


def measure(records, n_sets):
    """Add the data sets that are missing, and yield after each order."""
    for truth, handicaps in HANDICAPS.items():
        for name, rank in KINDS.items():
            sizes, known = SIZES.get((truth, name), (INSTANCES,)), None
            more = MORE_SETS.get((truth, name), 1)
            for size, seed in itertools.product(sizes, range(more * n_sets)):
                if (truth, name, size, seed) not in records:
                    known = find_truth(rank, truth) if known is None else known
                    data = draw_table(np.random.default_rng(seed), handicaps, size)
                    key = {"truth": truth, "order": name, "instances": size, "seed": seed}
                    records.add({**key, **assess(rank(data), known)})
            yield


def write(rows, folder):
    """Write the tables of the orders that are done."""
    parts = [
        "# Coverage and false claims for each kind of order\n",
        "Four algorithms, at the last of two times. `python studies/orders/false_claims.py`\n",
    ]
    head = ["order", "instances", "data sets", "coverage of 95 % intervals", "sd of z (1 is exact)"]
    head += ["pairs with P > 0.975", "of all pairs, false", "a member is called dominated (0.95)"]
    for truth in HANDICAPS:
        lines = []
        groups = {(r["order"], r["instances"]) for r in rows if r["truth"] == truth}
        for name, size in sorted(groups, key=lambda group: ([*KINDS].index(group[0]), group[1])):
            own = [
                r for r in rows if (r["truth"], r["order"], r["instances"]) == (truth, name, size)
            ]
            covered, n_pairs = np.array([row["covered"] for row in own]), 6 * len(own)
            error = covered.std(ddof=1) / np.sqrt(len(own))
            lines.append([
                name, size, len(own), f"{covered.mean():.3f} ± {error:.3f}",
                f"{np.std([row['z'] for row in own]):.2f}",
                *(f"{sum(row[key] for row in own) / n_pairs:.3f}" for key in ("claimed", "false")),
                f"{np.mean([row['lost'] for row in own]):.2f}",
            ])  # fmt: skip
        parts += [f"## {truth.capitalize()} algorithms\n", table(head, lines), ""]
    text = "\n".join(parts)
    (folder / "false_claims.md").write_text(text)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true", help="from the data sets that are there")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else HERE
        records = Records(
            folder / "results" / "claims.jsonl", ("truth", "order", "instances", "seed")
        )
        for _ in () if wanted.table else measure(records, 2 if wanted.quick else DATA_SETS):
            write(records.rows, folder)
        print(write(records.rows, folder))


if __name__ == "__main__":
    main()
