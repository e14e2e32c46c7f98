"""Limits of a candidate: no more is spent on it, and the others race on."""

import pytest

import polarbear as pb
from polarbear.racing.events import Decided, from_json, to_json
from polarbear.racing.planning import _informative_horizon
from racers import PerLook, check_invariants, drive, race_of, restore


def made(race, name):
    return sum(run.algorithm == name for run in race.runs)


@pytest.mark.parametrize("limit", [0, 1, 5, 30])
def test_no_more_runs_than_its_limit_are_made_of_a_candidate(limit):
    budget = pb.Budget(batch=(2, 8))
    question = pb.StrictParetoSet(certainty=0.99)
    race = drive(race_of(("early", "late"), question=question, budget=budget, seed=1))
    before = race.pareto
    race.add("good", max_runs=limit)
    drive(race)
    assert made(race, "good") <= limit
    assert race.ended in ("resolved", "limits of candidates")
    assert set(before) <= {*race.pareto, *race.eliminated}
    if race.ended != "resolved":
        assert race.verdict("good").kind == "undecided"
    if limit == 5:
        assert "its limit is reached" in str(race.verdict("good"))
    check_invariants(race)
    again = restore([from_json(to_json(one)) for one in race.events])
    assert again.state.members.limits == race.state.members.limits
    assert again.ask() == ()


def test_the_time_of_a_candidate_is_limited_and_others_race_on():
    race = race_of(
        ("early", "late"), question=PerLook(certainty=0.9), budget=pb.Budget(batch=(2, 4)), seed=2
    )
    race.add("twin", max_time=9.0)
    race.add("good")
    drive(race)
    assert sum(run.until for run in race.runs if run.algorithm == "twin") <= 9.0
    assert made(race, "good") > made(race, "twin")


def test_a_limit_that_makes_no_sense_is_refused():
    race = race_of(("early", "late"))
    for wrong in ({"max_runs": -1}, {"max_time": "long"}):
        with pytest.raises(pb.DataError, match="expected a number"):
            race.add("good", **wrong)


def test_a_pair_of_candidates_at_their_limits_has_no_forecast():
    race = race_of(("early", "late"), question=PerLook(), budget=pb.Budget(batch=(2, 8)), seed=2)
    for name in ("good", "twin"):
        race.add(name, max_runs=6)
    drive(race)
    assert race.ended == "limits of candidates"
    decided = [event for event in race.events if isinstance(event, Decided)]
    needed = {(one.first, one.second): one.need for one in decided[-1].decision.open}
    assert needed["good", "twin"] == float("inf")


def test_a_used_instance_is_informative_only_at_undecided_times():
    """Without this a late candidate ran where its rivals had been stopped before those times."""
    race = drive(race_of(("early", "late"), seed=2))
    state = race.state
    instance = state.pool.order[0]
    state.pool.observed_until[instance]["early"] = 2.0
    first, second, third = (1 << k for k in range(3))
    assert _informative_horizon(state, instance, {"early": third}) is None
    assert _informative_horizon(state, instance, {"early": first | third}) == 1.0
    assert _informative_horizon(state, instance, {"early": first | second | third}) == 2.0
    assert _informative_horizon(state, instance, {"absent": first}) is None
