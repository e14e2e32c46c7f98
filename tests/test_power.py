"""What a race can prove, before it starts: the simulated rule, and what a plan says."""

import json
from functools import cache

import numpy as np
import pytest

import polarbear as pb
from polarbear.cli.main import main


@cache
def planned(instances):
    """A plan of three algorithms, made once for all tests."""
    return pb.plan(instances, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("persistence", "case"),
    [pytest.param(np.inf, "luck_lasts", marks=pytest.mark.long), (0.0, "luck_is_new")],
)
def test_a_plan_agrees_with_whole_races(persistence, case):
    n_races, dropped = 60, 0
    truth = np.tile([0.85, 0.0, 0.0], (10, 1))  # the first wins 70 % of its duels
    for seed in range(n_races):
        runs = pb.simulation.simulate_runs(truth, 24, seed=seed, persistence=persistence)
        times = np.linspace(0, 1, 10)
        dropped += len(pb.replay(runs, times=times, seed=seed).eliminated)
    said = getattr(pb.plan(24, 3, times), case).dropped[0.7]
    assert dropped / n_races / 2 == pytest.approx(said, abs=0.15)  # three standard errors


def test_more_instances_prove_more_and_more_rivals_less():
    plans = [planned(n) for n in (12, 60)]
    for case in ("luck_lasts", "luck_is_new"):
        powers = [getattr(plan, case) for plan in plans]
        chances = [power.dropped[0.8] for power in powers]
        assert chances == sorted(chances)
        assert powers[0].smallest > powers[-1].smallest
        assert powers[0].needed == powers[-1].needed
    many = pb.plan(12, 12)
    assert many.luck_lasts.needed > plans[0].luck_lasts.needed
    assert many.luck_is_new.dropped[0.8] < plans[0].luck_is_new.dropped[0.8]
    assert pb.plan(12, 3) == plans[0]  # the same answer each time


def test_a_known_end_proves_more_than_a_budget_that_ends_before_it():
    named = [f"i{k}" for k in range(30)]
    whole = pb.plan(named, ["a", "b"], [1, 100], clock="wall")
    cut = pb.plan(named, ["a", "b"], [1, 100], clock="wall", budget=pb.Budget(time=5_000))
    assert (whole.used, cut.used, cut.instances) == (30, 25, 30)
    assert cut.luck_lasts.dropped[0.9] < whole.luck_lasts.dropped[0.9]
    assert "at most 60 runs, 6,000 seconds in all" in str(whole)
    assert "the budget is for 25 instances of 30, before the test at the end" in str(cut)


def test_instances_without_end_need_the_e_values_alone():
    plan = pb.plan(None, 3)
    assert plan.luck_lasts.needed > planned(12).luck_lasts.needed
    assert plan.luck_lasts.dropped == {}
    assert "instances without end" in str(plan)


def test_classes_share_the_instances():
    named = [f"i{k}" for k in range(60)]
    classes = {name: "odd" if k % 2 else "even" for k, name in enumerate(named)}
    plan = pb.plan(named, 3, question=pb.ParetoSet(classes=classes))
    assert plan.luck_lasts.dropped[0.8] < planned(60).luck_lasts.dropped[0.8]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"instances": 0, "algorithms": 3}, "instances=0: expected at least 1"),
        ({"instances": 12, "algorithms": 1}, "algorithms=1: expected at least 2"),
        ({"instances": 12, "algorithms": 2, "question": pb.NoWorse("a")}, "about ParetoSet"),
        ({"instances": 12, "algorithms": 2, "budget": pb.Budget(time=9)}, "Pass times="),
    ],
)
def test_what_cannot_be_planned_is_refused(given, problem):
    with pytest.raises(pb.DataError, match=problem):
        pb.plan(**given)


def test_the_command_takes_numbers_or_a_race_file(tmp_path, capsys):
    assert main(["plan", "--instances", "12", "--algorithms", "3", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["luck_lasts"]["needed"] > 12
    path = tmp_path / "race.toml"
    path.write_text(
        'times = [1, 5, 10]\ndirection = "minimize"\nclock = "wall"\n'
        'instances.names = ["a", "b", "c"]\n'
        'solvers.one.command = ["one"]\nsolvers.one.pattern = "(?P<value>.*)"\n'
        'solvers.two.command = ["two"]\nsolvers.two.pattern = "(?P<value>.*)"\n'
    )
    assert main(["plan", str(path)]) == 0
    text = capsys.readouterr().out
    assert "2 algorithms on 3 instances" in text
    assert "at most 6 runs, 60 seconds in all" in text
    assert "`select` chooses by what is likely" in text
    assert main(["plan", "--instances", "12"]) == 1
    assert "pass a race file, or --algorithms N" in capsys.readouterr().err
