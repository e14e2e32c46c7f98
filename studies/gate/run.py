"""Is the gate as seldom wrong as it says, and what can it show? Writes table.md.

python studies/gate/run.py               # simulated patches: minutes
python studies/gate/run.py --highs       # HiGHS with two option sets, for real: minutes
python studies/gate/run.py --estimates   # how often estimates after stopping are too large: minutes
python studies/gate/run.py --quick       # seconds: does it run at all?
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from error_control.run import (
    ENDS,
    MARGIN,
    PERSISTENCE,
    STRETCHES,
    TIMES,
    T,
    boundary,
    log_odds,
    looks_until,
)
from programs.run import HIGHS, command, instances
from scipy.special import ndtri
from tools.markdown import table

import polarbear as pb
from polarbear.inference.e_values import Shares
from polarbear.inference.replacing import Duels, DuelTally, PairEvidence, PairTables, weigh
from polarbear.racing.questions.no_worse import estimate_win_probability, find_kind, judge, show
from polarbear.simulation import draw_persistent_noise

QUICK_CPU_SECONDS = 5

HERE = Path(__file__).parent
OPEN_END = 500
"""How many instances a gate without a known end may use."""

ENDS_OF_GATES = (*ENDS[1:], OPEN_END)


def list_patches() -> dict[str, tuple[np.ndarray, float]]:
    """Return the lead of a new version in utility at each time (T,), and the share of ties."""
    some = np.arange(T) // 3 == 3  # three of twenty times
    edge, low = boundary(), log_odds(0.2)
    half = 0.5
    return {
        "equal": (np.zeros(T), 0.0),
        "equal, half of the duels tie": (np.zeros(T), half),
        "wins 60 %": (np.full(T, log_odds(0.6)), 0.0),
        "wins 80 %": (np.full(T, log_odds(0.8)), 0.0),
        "worse by the margin at 3 times": (edge * some, 0.0),
        "worse by the margin at 3 times, half tie": (boundary(half) * some, half),
        "worse by the margin": (np.full(T, edge), 0.0),
        "wins 20 % at 3 times": (low * some, 0.0),
        "wins 20 %": (np.full(T, low), 0.0),
    }


def answer_gates(
    lead: np.ndarray, ties: float, gates: int, n: int, persistence: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the answers of so many gates of at most n instances, and the instances of each."""
    rng, question = np.random.default_rng([7, n, seed]), pb.NoWorse("old", margin=MARGIN)
    noise = draw_persistent_noise(TIMES, (n, gates, 2), persistence, rng)
    noise[..., 0] += lead[:, None, None]
    costs = -noise
    costs[:, rng.random((n, gates)) < ties] = 0.0
    answers, cost = np.full(gates, "undecided"), np.full(gates, float(n))
    first, second = 2 * np.arange(gates), 2 * np.arange(gates) + 1
    tally, seen = None, 0
    every = np.arange(gates)
    both = (every, np.full(gates, 0)), (every, np.full(gates, 1))
    for look in looks_until(n):
        new = costs[:, seen:look].reshape(T, look - seen, -1)
        more = DuelTally.of(
            Duels.of(first, second, new, STRETCHES, np.ones(look - seen)), STRETCHES
        )
        tally, seen = more if tally is None else tally.join(more), look
        evidence = PairEvidence.empty(len(STRETCHES), (gates, 2))
        weigh(evidence, both, tally, MARGIN, both_sides=True)
        shares = Shares() if n == OPEN_END else Shares.at_end_of(n)
        shares = shares if look == n else shares._replace(now=0.0)
        shown = show(question, evidence, shares)
        passed: Any = shown.no_worse[0].all(axis=0)
        found = zip(passed[:, 0], shown.worse[0][:, 0], strict=True)
        now = np.array([find_kind(*one) for one in found])
        settled = (answers == "undecided") & (now != "undecided")
        answers, cost = np.where(settled, now, answers), np.where(settled, look, cost)
    return answers, cost


def measure(number: int, ends: tuple[int, ...]) -> list[dict[str, Any]]:
    rows = []
    for kind, (lead, ties) in list_patches().items():
        for persistence in PERSISTENCE if len(ends) > 1 else PERSISTENCE[:1]:
            row: dict[str, Any] = {"patch": kind, "L": persistence, "gates": number}
            for n in ends:
                gates = number // 4 if n == OPEN_END else number  # these take longest
                at_once = max(1, min(gates, 8_000_000 // (4 * T * n)))
                parts = [
                    answer_gates(lead, ties, at_once, n, persistence, seed)
                    for seed in range(-(-gates // at_once))
                ]
                answers, cost = (np.concatenate(part)[:gates] for part in zip(*parts, strict=True))
                shares = [float(np.mean(answers == one)) for one in ("passed", "failed")]
                row[str(n)] = [*shares, float(np.median(cost))]
            rows.append(row)
            print(row, flush=True)
    return rows


def draw_outcomes(
    rng: np.random.Generator, p: float, n_times: int, tie: float, n: int
) -> np.ndarray:
    """Draw wins, ties and losses (3, T, n): P(win) is p where there is no tie."""
    keep = np.exp(-1 / (max(n_times - 1, 1) * 0.5))
    z, rows = rng.standard_normal(n), []
    for t in range(n_times):
        if t:
            z = keep * z + np.sqrt(1 - keep**2) * rng.standard_normal(n)
        is_tie = rng.random(n) < tie
        rows.append([(z < ndtri(p)) & ~is_tie, is_tie, (z >= ndtri(p)) & ~is_tie])
    return np.array(rows, dtype=float).swapaxes(0, 1)


def tabulate(outcomes: np.ndarray) -> PairTables:
    """Return outcomes (3, T, I) as tables, with a stretch for each time."""
    wins, ties, losses = outcomes
    cells = [np.stack(row, axis=1) for row in zip(losses, ties, wins, strict=True)]
    names = tuple(map(str, range(outcomes.shape[2])))
    won, lost = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    return PairTables(names, cells, [won] * len(cells), [lost] * len(cells))


def stop_gate(rng: np.random.Generator, p: float, n_times: int, tie: float) -> tuple[Any, bool]:
    """Run a gate to its end; return its outcomes, and whether it passed or failed."""
    budget, most, question = pb.Budget(), 2048, pb.NoWorse("old")
    outcomes = np.zeros((3, n_times, 0))
    while outcomes.shape[2] < most:
        batch = budget.batch_after(outcomes.shape[2])
        outcomes = np.concatenate([outcomes, draw_outcomes(rng, p, n_times, tie, batch)], axis=2)
        tables = tabulate(outcomes)
        if judge(question, tables, tables.count_all(), Shares()) != ["undecided"]:
            return outcomes, True
    return outcomes, False


def measure_estimates(number: int, quick: bool) -> list[dict[str, Any]]:
    """Return how often the share of wins and the estimate exceed the true probability of a win."""
    kinds = [(p, 1, 0.0) for p in (0.2, 0.3, 0.5, 0.55, 0.6, 0.7)]
    kinds += [(p, 10, 0.0) for p in (0.7, 0.6)] + [(0.6, 1, 0.5)]
    rows = []
    for k, (p, n_times, tie) in enumerate(kinds[:1] if quick else kinds):
        rng, shares, estimates = np.random.default_rng([11, k]), [], []
        for _ in range(number):
            outcomes, decided = stop_gate(rng, p, n_times, tie)
            wins, _, losses = outcomes.sum(axis=2)
            shares.append(wins / np.maximum(wins + losses, 1))
            tables, question = tabulate(outcomes), pb.NoWorse("old")
            found = estimate_win_probability(outcomes, tables, question, decided=decided)
            estimates.append(found)
        above = {
            name: float(np.mean((np.array(x) > p) + 0.5 * np.isclose(x, p)))
            for name, x in (("share", shares), ("estimate", estimates))
        }
        error = {
            f"median {name}": float(np.median(x))
            for name, x in (("share", shares), ("estimate", estimates))
        }
        rows.append({"p": p, "times": n_times, "ties": tie, "gates": number, **above, **error})
        print(rows[-1], flush=True)
    return rows


def race_highs(folder: Path, quick: bool) -> dict[str, Any]:
    """Gate HiGHS without heuristics against HiGHS as it comes, on knapsacks."""
    number, items, times = (4, 20, [0.05]) if quick else (300, 200, [0.05, 0.2, 1.0])
    found = pb.gate(
        command("highs.py", *HIGHS["HiGHS"]),
        command("highs.py", *HIGHS["no heuristics"]),
        instances(folder / "instances", number, items),
        times,
        direction="minimize",
        executor=pb.backends.LocalProcesses(2, pin=True),
        store=folder / "gate.db",
        budget=pb.Budget(runs=8) if quick else None,
    )
    print(found)
    return found.to_dict() | {"runs": found.spent.runs}


def write(folder: Path) -> str:
    parts = ["Made by `python studies/gate/run.py` and `--highs`."]
    path = folder / "results" / "patches.json"
    if path.exists():
        rows = json.loads(path.read_text())
        ends = [key for key in rows[0] if key.isdigit()]
        head = ["patch", "L", *(f"N = {n}" for n in ends)]
        head[-1] = f"open end ({ends[-1]})" if int(ends[-1]) == OPEN_END else head[-1]
        cells = [
            [
                row["patch"],
                f"{row['L']:g}",
                *(
                    f"{100 * row[n][0]:.1f} / {100 * row[n][1]:.1f}"
                    + (f" ({row[n][2]:.0f})" if int(n) == OPEN_END else "")
                    for n in ends
                ),
            ]
            for row in rows
        ]
        setting = (
            f"{rows[0]['gates']} simulated patches of each kind at {T} times, certainty 0.95, "
            f"margin {MARGIN}: how many pass / fail in %, of gates that end after N instances. L: "
            "how long luck lasts (0: new at each time, inf: one draw for the run). Last column: "
            "gates whose end is not known (a quarter as many), and their median instances."
        )
        parts += [setting, table(head, cells)]
    path = folder / "results" / "highs.json"
    if path.exists():
        facts = json.loads(path.read_text())
        head = ["seconds", "new wins", "ties", "old wins", "P(new wins), bounds"]
        cells = [
            [
                f"{t['time']:g}",
                *(f"{t[k]:g}" for k in ("wins", "ties", "losses")),
                f"{t['low']:.2f} to {t['high']:.2f}",
            ]
            for t in facts["times"]
        ]
        said = (
            f"HiGHS without heuristics (new) against HiGHS (old): **{facts['answer']}** after "
            f"{facts['instances']} instances and {facts['runs']} runs. {facts['guarantee']}"
        )
        parts += [said, table(head, cells)]
    path = folder / "results" / "estimates.json"
    if path.exists():
        rows = json.loads(path.read_text())
        head = ["P(win)", "times", "ties %", "share > P %", "estimate > P %", "median share"]
        head += ["median estimate"]
        cells = [
            [
                f"{row['p']:g}",
                str(row["times"]),
                f"{100 * row['ties']:.0f}",
                *(f"{100 * row[name]:.1f}" for name in ("share", "estimate")),
                *(f"{row[name]:.3f}" for name in ("median share", "median estimate")),
            ]
            for row in rows
        ]
        said = (
            f"Estimates after stopping (`--estimates`): how often the share of wins, and the "
            f"estimate that allows for stopping, exceed the true probability of a win, in "
            f"{rows[0]['gates']} gates of each kind, over all times. 50 % is unbiased."
        )
        parts += [said, table(head, cells)]
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--patches", type=int, default=400, help="of each kind and persistence")
    parser.add_argument("--highs", action="store_true", help="race HiGHS for real")
    parser.add_argument("--estimates", action="store_true", help="estimates after stopping")
    parser.add_argument("--gates", type=int, default=200, help="of each kind, for --estimates")
    parser.add_argument("--quick", action="store_true", help="small: does it run at all?")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if wanted.quick else HERE
        results = folder / "results"
        results.mkdir(exist_ok=True)
        if wanted.highs or wanted.quick:
            facts = race_highs(folder, wanted.quick)
            (results / "highs.json").write_text(json.dumps(facts, indent=1) + "\n")
        if wanted.estimates or wanted.quick:
            rows = measure_estimates(4 if wanted.quick else wanted.gates, wanted.quick)
            (results / "estimates.json").write_text(json.dumps(rows, indent=1) + "\n")
        if not (wanted.highs or wanted.estimates):
            rows = measure(4, (12,)) if wanted.quick else measure(wanted.patches, ENDS_OF_GATES)
            (results / "patches.json").write_text(json.dumps(rows, indent=1) + "\n")
        print(write(folder))


if __name__ == "__main__":
    main()
