"""Coverage and false claims of each kind of order, for equal algorithms. Writes false_claims.md.

Four algorithms draw from the same distribution on every instance, so no claim that one is better
is right, and the true difference of utilities is 0.

python studies/orders/false_claims.py           # minutes
python studies/orders/false_claims.py --quick   # seconds: does it run at all?
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from tools.markdown import table

import polarbear as pb

HERE = Path(__file__).parent
ALGORITHMS, INSTANCES, DATA_SETS = "abcd", 30, 20
TIMES = [4, 12]


def draw_rows(rng):
    """Rows of all runs: times 1 to 12, two objectives with a trade-off, and a violation."""
    for instance in range(INSTANCES):
        slope = rng.uniform(0.5, 2)
        for name in ALGORITHMS:
            skill = rng.exponential()  # of this run; the same distribution for all
            for t in range(1, 13):
                x, gap = rng.uniform(), (0.3 + skill) * rng.exponential() / t
                yield (
                    name,
                    instance,
                    t,
                    slope * x + gap,
                    1 - x + gap,
                    max(0.0, rng.normal() - 0.3 * t / 4),
                )


def draw_table(rng):
    names = ("algorithm", "instance", "time", "f1", "f2", "broken")
    return dict(zip(names, zip(*draw_rows(rng), strict=True), strict=True))


def archives(table_):
    columns = {name: table_[name] for name in ("algorithm", "instance", "time", "f1", "f2")}
    return pb.Archives.from_frame(columns, objectives=("f1", "f2"), direction="minimize", until=12)


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
    "lottery of 16": lambda t: pb.rank(archives(t).scalarise(16), TIMES),
    "hypervolume": lambda t: pb.rank(archives(t).hypervolume(1.1, TIMES), TIMES),
    "set dominance": lambda t: archives(t).dominance(TIMES),
}


def assess(rankings):
    """For each pair at the last time: z, whether 0 is in the 95 % interval, and the larger P."""
    posterior = pb.fit(rankings)
    mu = posterior.utilities[:, -1].astype(np.float64)
    found = []
    for a in range(len(ALGORITHMS)):
        for b in range(a):
            gap = mu[:, a] - mu[:, b]
            low, high = np.quantile(gap, [0.025, 0.975])
            better = posterior.prob_better(ALGORITHMS[a], ALGORITHMS[b])[-1]
            found.append((gap.mean() / gap.std(), low <= 0 <= high, max(better, 1 - better)))
    dominated = len(posterior.pareto(0.95)) < len(ALGORITHMS)
    return np.array(found), dominated


def write(rows, n, quick):
    """Write the table of the kinds that are done."""
    head = [
        "order",
        "coverage of 95 % intervals",
        "sd of z (1 is exact)",
        "pairs with P > 0.975 (at most 0.05)",
        "data sets with a dominated algorithm at 0.95",
    ]
    text = "\n".join(
        [
            "# Coverage and false claims for each kind of order\n",
            f"Four equal algorithms, {INSTANCES} instances, {n} data sets, at the last time.\n",
            "`python studies/orders/false_claims.py`\n",
            table(head, rows),
            "",
        ]
    )
    (sys.stdout.write if quick else (HERE / "false_claims.md").write_text)(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    n = 2 if quick else DATA_SETS
    rows = []
    for name, rank in KINDS.items():
        done = [assess(rank(draw_table(np.random.default_rng(seed)))) for seed in range(n)]
        pairs = np.stack([found for found, _ in done])  # (data sets, pairs, 3)
        covered = pairs[..., 1].mean(axis=1)
        error = covered.std(ddof=1) / np.sqrt(n)
        claimed, wrong = np.mean(pairs[..., 2] > 0.975), np.mean([wrong for _, wrong in done])
        coverage = f"{covered.mean():.3f} ± {error:.3f}"
        rows.append(
            [name, coverage, f"{pairs[..., 0].std():.2f}", f"{claimed:.3f}", f"{wrong:.2f}"]
        )
        if not quick:
            write(rows, n, quick)
    if quick:
        write(rows, n, quick)


if __name__ == "__main__":
    main()
