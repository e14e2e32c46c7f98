"""A race that was resumed has the rankings, and so the decisions, of one that was never cut."""

import random

import numpy as np
import pytest

import polarbear as pb
from polarbear.reporting.verifying import verify_decisions
from polarbear.store.restoring import restore_race

SKILL = {"a": 0.0, "b": 0.4, "c": 0.6, "d": 1.2}


def run_race(*, resumes):
    """Return runs, rounds and checked decisions of a race with ties within a tolerance."""
    names = [f"i{k}" for k in range(400)]
    question = pb.ParetoSet(fit={"abs_tol": 0.8})
    race = pb.Race(SKILL, [1], direction="minimize", instances=names, seed=4, question=question)
    with pb.open_store(":memory:") as store:
        while True:
            jobs = race.ask()
            store.append(race.events)
            race.forget()
            if resumes and race.rounds % 3 == 0:
                race = restore_race(store)
            if not jobs:
                break
            for job in jobs:
                value = SKILL[job.algorithm] + random.Random(job.seed).gauss(0, 1)
                race.tell(job.run([1], [value]))
        store.append(race.events)
        checked = [one.is_same for one in verify_decisions(list(store.read()))]
        return race.n_runs, race.rounds, checked


def test_ties_within_a_tolerance_are_of_those_who_are_left():
    """Once, ranks were those of ties with who had left, and a resume ranked anew: 250, not 452."""
    runs, rounds, checked = run_race(resumes=True)
    assert all(checked)
    assert (runs, rounds, checked) == run_race(resumes=False)


@pytest.mark.parametrize("seed", range(3))
def test_repetitions_are_compared_as_those_who_are_left_made_them(seed):
    rng = np.random.default_rng(seed)
    runs = [
        pb.Run(name, f"i{k}", [1], [rng.normal()], until=1, repetition=repetition)
        for k in range(9)
        for name in "abc"
        for repetition in range(3 if name == "c" else 2)
    ]
    runs = pb.Runs.from_records(runs, direction="minimize")
    race = pb.Race([*"abc"], [1], direction="minimize", instances=[f"j{k}" for k in range(9)])
    race.load(runs)
    for job in race.ask():
        race.tell(job.run([1], [rng.normal()]))
    race.ask()
    race.remove("c")
    while jobs := race.ask():
        for job in jobs:
            race.tell(job.run([1], [rng.normal()]))
    ranked = race._rank_runs(race.state.progress.decision_input)
    anew = pb.rank(race.runs.filter(algorithms=["a", "b"]), [1])
    assert ranked.win_rate("a", "b") == pytest.approx(anew.win_rate("a", "b"))
