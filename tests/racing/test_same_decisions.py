"""Fifty recorded races decide as they did when files/decisions.json was written.

PYTHONPATH=tests/support python tests/racing/test_same_decisions.py writes the file again, after a
change of decisions that is intended.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import polarbear as pb
from polarbear.reporting.verifying import verify_decisions
from racers import fitted, quick_fit

FILE = Path(__file__).with_name("files") / "decisions.json"

RACES = {
    "default": (pb.ParetoSet(), pb.Budget()),
    "whole race": (pb.ParetoSet(errors="whole_race"), pb.Budget()),
    "paper": (pb.PaperParetoSet(), pb.Budget()),
    "paper pointwise": (
        pb.PaperParetoSet(elimination="pointwise", resolution="strict"),
        pb.Budget(),
    ),
    "overlap": (pb.ParetoSet(), pb.Budget(overlap=1, batch=(4, 16))),
    "strict": (pb.StrictParetoSet(), pb.Budget()),
    "preference": (pb.Choice(pb.preferences.between(2, 3)), pb.Budget()),
    "regret": (pb.Choice(pb.preferences.between(2, 3), regret=0.05), pb.Budget(batch=(32, 64))),
    "baseline": (pb.NoWorse("a1"), pb.Budget()),
    "limits": (pb.ParetoSet(), pb.Budget(runs=150, retries=1)),
}
PAPER = {"prior": "Dirichlet", "ties": "averaged", "evidence": "rankings"}
FITTED = {"paper": PAPER, "paper pointwise": PAPER, "regret": {}}
"""Races whose decisions rest on a posterior; e-values need none, so those races fit quickly."""
SEEDS = range(5)
SEEDS_IN_CI = (1, 2)
"""The other seeds are raced by the long tests."""
TIMES = np.array([1.0, 2.0, 3.0])


def runs_of(seed):
    """Runs of three to five algorithms that lead, cross or tie, some of which crash."""
    rng = np.random.default_rng(seed)
    start, end = rng.normal(0, 1.5, (2, 3 + seed % 3))
    if seed == 2:
        start[1], end[1] = start[0], end[0]  # two equal ones
    weight = np.linspace(0, 1, len(TIMES))[:, None]
    return pb.simulation.simulate_runs(
        (1 - weight) * start + weight * end,
        300,
        seed,
        TIMES,
        persistence=[0.0, 1.0, np.inf][seed % 3],
        crashed=0.05 if seed == 3 else 0.0,
    )


def decisions_of(name, seed):
    """What a race asked for (as a digest), how it ended, and the status of each algorithm."""
    question, budget = RACES[name]
    runs = runs_of(seed)
    fit = FITTED.get(name, quick_fit)
    replay = pb.replay(runs, fitted(question, fit), budget=budget, times=TIMES, seed=seed)
    jobs = [
        [job.algorithm, job.instance, job.repetition, job.horizon]
        for event in replay.events
        for job in getattr(event, "jobs", ())
    ]
    return {
        "asked": hashlib.sha256(json.dumps(jobs).encode()).hexdigest()[:16],
        "n_runs": len(jobs),
        "rounds": replay.rounds,
        "ended": replay.ended,
        "eliminated": [[one.algorithm, one.rival] for one in replay.eliminated.values()],
        "statuses": {one.algorithm: one.kind for one in replay.verdicts()},
    }


@pytest.mark.parametrize("name", RACES)
@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=() if k in SEEDS_IN_CI else pytest.mark.long) for k in SEEDS]
)
def test_decides_as_recorded(name, seed):
    assert decisions_of(name, seed) == json.loads(FILE.read_text())[f"{name}, seed {seed}"]


@pytest.mark.long
@pytest.mark.parametrize("name", RACES)
@pytest.mark.parametrize("seed", SEEDS)
def test_decisions_can_be_made_again_from_the_runs(name, seed):
    question, budget = RACES[name]
    events = pb.replay(runs_of(seed), question, budget=budget, times=TIMES, seed=seed).events
    assert all(one.is_identical for one in verify_decisions(events))


if __name__ == "__main__":
    kept = {f"{name}, seed {s}": decisions_of(name, s) for name in RACES for s in SEEDS}
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(kept, indent=1) + "\n")
