"""A question means the same in a race, in `assess` and in its parts, and limits count what is."""

import numpy as np
import pytest

import polarbear as pb
from polarbear.errors import DataError
from polarbear.racing.assessing import assess_classes

TRUTH = np.array([[2.0, 0.0, 0.0]] * 3)


def test_a_baseline_that_is_not_there_is_said():
    rankings = pb.simulation.simulate_rankings(TRUTH, 20)
    with pytest.raises(DataError, match="baseline='A1'"):
        pb.assess(rankings, question=pb.NoWorse("A1"))


def test_classes_are_assessed_with_the_tolerance_of_the_question():
    runs = pb.simulation.simulate_runs(TRUTH, 60)
    question = pb.ParetoSet(fit={"abs_tol": 1e9})
    (own,) = assess_classes(runs, dict.fromkeys(runs.instances, 1), question=question).values()
    kinds = [one.kind for one in own]
    assert kinds == [one.kind for one in pb.assess(runs, question=question)]
    assert "dominated" not in kinds


def test_a_race_without_its_baseline_recommends_nothing():
    question, budget = pb.NoWorse("old"), pb.Budget(failures=2)
    names = [f"i{k}" for k in range(12)]
    race = pb.Race(
        ["old", "new"], [1], direction="minimize", question=question, budget=budget, instances=names
    )
    while jobs := race.ask():
        for job in jobs:
            crashes = job.algorithm == "old"
            race.tell(job.run([], [], until=1, status="crashed") if crashes else job.run([1], [1]))
    assert race.pareto == ("new",)
    assert "run         new" not in str(race)


def test_a_limit_of_time_counts_the_time_that_runs_took():
    """Each run was charged with its horizon of 100, though it took 1."""
    names = [f"i{k}" for k in range(60)]
    race = pb.Race(["a", "b"], [100], direction="minimize", instances=names)
    race.add("c", max_time=1000)
    while jobs := race.ask():
        for job in jobs:
            race.tell(job.run([1], [1.0], until=1, status="finished"))
    runs = [run for run in race.runs if run.algorithm == "c"]
    assert len(runs) == 60
