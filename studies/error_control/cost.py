"""What does the default rule cost, and what does it decide with few instances? Writes cost.md.

Replays of recorded pools in random orders, with all instances and with the first 60 only; and the
share of two clearly worse rivals that are dropped with 12 to 120 instances.

Run: python studies/error_control/cost.py [--orders 12] [--quick] [--aslib folder]
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.pools import recorded_runs

import polarbear as pb
from polarbear.data.positions import UNKNOWN
from polarbear.inference.replacing import find_stretches

QUICK_CPU_SECONDS = 20

MARGIN, WIDTH = 0.1, 0.1
QUESTIONS = {
    "replaceable": pb.ParetoSet(),
    "strict": pb.StrictParetoSet(),
    "paper": pb.PaperParetoSet("independent", certainty=0.95),
}


def list_pools(aslib: Path | None) -> dict[str, tuple[pb.Runs, np.ndarray]]:
    """Return recorded runs by name, with the times at which they are compared."""
    pools = {"bbob": pb.example(), "cma-variants": pb.example("cma-variants")}
    found = {name: (runs, pb.grid.from_runs(runs, 20)) for name, runs in pools.items()}
    for name in ("mabbob_d5", "mabbob_d10"):
        runs = recorded_runs(name, slice(2, None, 3))
        found[name] = runs, np.unique(runs.time)
    for path in sorted(aslib.glob("*.tar.gz")) if aslib else ():
        runs = pb.read(path)
        first = max(1.0, float(np.quantile(runs.time, 0.05)))
        if runs.until.max() <= first:
            continue  # a scenario without times
        found[path.name.split(".")[0]] = runs, np.geomspace(first, runs.until.max() * 0.999, 20)
    return found


def find_replaceable(runs: pb.Runs, times: np.ndarray) -> np.ndarray:
    """Return whether row replaces column in the whole pool, taken as the truth."""
    rankings = pb.rank(runs, times)
    n = len(rankings.algorithms)
    place = rankings.position.reshape(len(times), -1, n)
    place = place[:, (place != UNKNOWN).all(axis=(0, 2))]
    wins = (place[:, :, :, None] < place[:, :, None, :]).mean(axis=1)
    stretches = [wins[one].mean(axis=0) for one in find_stretches(times, WIDTH)]
    won = np.stack(stretches)
    lost = won.swapaxes(1, 2)
    relative = (0.5 + MARGIN) * won - (0.5 - MARGIN) * lost
    holds = (np.maximum(relative, (won - lost + MARGIN) / 2) >= 0).all(axis=0)
    average = wins.mean(axis=0)
    return holds & (average > average.T)


def replay_pool(
    runs: pb.Runs, times: np.ndarray, question: pb.Question, limit: int | None, seed: int
) -> tuple[float, float, int, int, bool]:
    """Return instances, share of runs, dropped, wrongly dropped, and whether it was resolved."""
    order = np.random.default_rng(seed).permutation(len(runs.instances))
    chosen = [runs.instances[k] for k in order[:limit]]
    some = runs.filter(instances=chosen) if limit else runs
    race = pb.replay(some, question, times=times, seed=seed)
    code = {name: k for k, name in enumerate(pb.rank(runs, times).algorithms)}
    truth = find_replaceable(runs, times)
    wrong = sum(not truth[code[one.rival or ""], code[k]] for k, one in race.eliminated.items())
    share = race.spent.runs / (len(chosen) * len(code))
    instances = len(race.state.pool.order)
    return instances, share, len(race.eliminated), wrong, race.resolved


def tabulate_pools(aslib: Path | None, orders: int) -> list[str]:
    """Return a table of replays, with a row for each pool, question and number of instances."""
    head = ("pool", "algorithms", "question", "of instances", "used", "share of runs", "dropped")
    head += ("wrong", "resolved")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, (runs, times) in list_pools(aslib).items():
        for label, question in QUESTIONS.items():
            for limit in (None, 60):
                if limit and limit >= len(runs.instances):
                    continue
                found = [replay_pool(runs, times, question, limit, k) for k in range(orders)]
                used, share, dropped, wrong, resolved = np.array(found, dtype=float).T
                lines.append(
                    f"| {name} | {len(runs.algorithms)} | {label} | {limit or len(runs.instances)} "
                    f"| {np.median(used):.0f} | {np.median(share):.2f} | {dropped.mean():.1f} | "
                    f"{wrong.sum():.0f} of {dropped.sum():.0f} | {resolved.mean():.2f} |"
                )
                print(lines[-1], flush=True)
    return lines


def tabulate_few(races: int) -> list[str]:
    """Return the share of two worse rivals that a race drops with few instances."""
    truths = {"winner .7 of three": np.tile([0.85, 0, 0], (20, 1))}
    late = np.zeros((20, 3))
    late[4:, 0] = 0.85
    truths["tied on the first fifth, .7 later"] = late
    sizes = (12, 24, 60, 120)
    lines = [f"| truth | L | {' | '.join(map(str, sizes))} |", "|---" * (2 + len(sizes)) + "|"]
    for name, truth in truths.items():
        for persistence in (0.5, np.inf):
            shares = []
            for n in sizes:
                dropped = 0
                for seed in range(races):
                    runs = pb.simulation.simulate_runs(truth, n, seed=seed, persistence=persistence)
                    dropped += len(pb.replay(runs, pb.ParetoSet(), seed=seed).eliminated)
                shares.append(f"{dropped / races / 2:.2f}")
            lines.append(f"| {name} | {persistence:g} | {' | '.join(shares)} |")
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orders", type=int, default=12)
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    parser.add_argument("--aslib", type=Path, help="a folder with scenarios of ASlib")
    options = parser.parse_args()
    if options.quick:
        tabulate_few(1)
        sys.exit()
    few = tabulate_few(5 * options.orders)
    pools = tabulate_pools(options.aslib, options.orders)
    text = ["# With few instances: share of two worse rivals dropped", "", *few, ""]
    text += ["# Recorded pools", "", *pools, ""]
    (Path(__file__).parent / "cost.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
