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
from polarbear.racing.verifying import verify_decisions
from racers import quick_fit

FILE = Path(__file__).with_name("files") / "decisions.json"

RULES = {
    "default": pb.Rules(),
    "whole race": pb.Rules(error_control="whole_race"),
    "per look": pb.Rules(error_control="per_look", batch=(32, 64)),
    "paper": pb.Rules.paper(),
    "overlap": pb.Rules(overlap=1, batch=(4, 16)),
    "strict": pb.Rules(resolution="strict", epsilon=0.1),
    "preference": pb.Rules(preference=pb.preferences.between(2, 3)),
    "regret": pb.Rules(preference=pb.preferences.between(2, 3), regret=0.05, batch=(32, 64)),
    "baseline": pb.Rules(baseline="a1", epsilon=0.1),
    "limits": pb.Rules(max_runs=150, retries=1),
}
FITTED = ("per look", "paper", "regret")
"""Rules whose decisions rest on a posterior; e-values need none, so those races fit quickly."""
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


def decisions_of(rules, seed):
    """What a race asked for (as a digest), how it ended, and the status of each algorithm."""
    fit = {"ties": "averaged"} if rules in FITTED else quick_fit
    replay = pb.replay(runs_of(seed), RULES[rules], times=TIMES, seed=seed, fit=fit)
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
        "eliminated": [[one.algorithm, one.by] for one in replay.eliminated.values()],
        "statuses": {one.algorithm: one.status for one in replay.statuses()},
    }


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=() if k in SEEDS_IN_CI else pytest.mark.long) for k in SEEDS]
)
def test_decides_as_recorded(rules, seed):
    assert decisions_of(rules, seed) == json.loads(FILE.read_text())[f"{rules}, seed {seed}"]


@pytest.mark.long
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", SEEDS)
def test_decisions_can_be_made_again_from_the_runs(rules, seed):
    events = pb.replay(runs_of(seed), RULES[rules], times=TIMES, seed=seed).events
    assert all(one.is_identical for one in verify_decisions(events))


if __name__ == "__main__":
    kept = {f"{rules}, seed {s}": decisions_of(rules, s) for rules in RULES for s in SEEDS}
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps(kept, indent=1) + "\n")
