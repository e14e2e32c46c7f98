"""Races for a known budget: e-values of weighted scores, the choice, and what it costs."""

import numpy as np
import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.racing.events import from_json, to_json
from polarbear.racing.questions.choice import choose
from polarbear.selection.preferences import parse_preference
from racers import TIMES, check_invariants, drive, race_of, solve

EARLY, LATE = pb.preferences.between(1, 2), pb.preferences.at(4)


def choice(preference=EARLY, runs=4000, **more):
    """The question and the budget of a race for a choice."""
    budget = pb.Budget(batch=(4, 16), runs=runs)
    return {"question": pb.Choice(preference, **more), "budget": budget}


def test_the_choice_is_that_of_select():
    truth = np.array([[1.0, 0.5, 0.0, -1.0], [0.0, 0.5, 1.0, -1.0]])
    posterior = pb.fit(pb.simulation.simulate_rankings(truth, 60))
    for size in (1, 2):
        weights = np.array([0.7, 0.3])
        preference = pb.preferences.Linear("", lambda _times, _clock, w=weights: w)
        best = pb.select(posterior, preference, size=size, repeats=False).choices[0]
        found = choose(posterior.ratings, weights, size)
        names = {posterior.algorithms[k] for k in np.flatnonzero(found.chosen)}
        assert names == {*best.algorithms}
        assert found.regret.mean() == pytest.approx(best.regret, abs=1e-6)
        assert found.regret.min() >= -1e-12


@pytest.mark.parametrize(("preference", "best"), [(EARLY, "early"), (LATE, "late")])
def test_a_race_for_a_budget_chooses_and_spends_less(preference, best):
    names = ("early", "late", "bad", "worst")
    race = drive(race_of(names, **choice(preference), seed=3))
    assert (race.ended, race.status.chosen) == ("resolved", (best,))
    assert [one.algorithm for one in race.verdicts() if one.kind == "chosen"] == [best]
    check_invariants(race)
    full = drive(race_of(names, **{**choice(), "question": pb.ParetoSet()}, seed=3))
    assert race.spent.time < full.spent.time
    again = pb.Race.from_events([from_json(to_json(event)) for event in race.events])
    assert again.status.chosen == race.status.chosen


def test_no_run_is_longer_than_the_last_time_that_counts():
    race = race_of(("early", "late"), **choice(EARLY))
    jobs = race.ask()
    assert {job.horizon for job in jobs} == {2.0}


def test_a_newcomer_is_compared_with_the_choice_alone():
    race = drive(race_of(("late", "bad", "worst"), **choice(EARLY), seed=1))
    before = race.status.chosen
    race.add("early")
    jobs = race.ask()
    assert {job.algorithm for job in jobs} <= {"early", *before}
    for job in jobs:
        race.tell(solve(job))
    drive(race)
    assert race.status.chosen == ("early",)


def test_portfolios_and_regret():
    both = drive(
        race_of(
            ("early", "late", "bad", "worst"),
            **choice(pb.preferences.between(), size=2),
        )
    )
    assert both.status.chosen == ("early", "late")
    loose = drive(race_of(("early", "late", "bad"), **choice(EARLY, regret=0.5)))
    assert loose.ended == "resolved"
    assert loose.rounds == 1


def test_what_makes_no_sense_is_refused():
    for name in ("regret", "size"):
        with pytest.raises(pb.DataError, match=f"^{name}=0: expected a number"):
            pb.Choice(EARLY, **{name: 0})
    with pytest.raises(pb.DataError, match="weights on times"):
        pb.Choice(lambda t: t)
    weights = pb.Choice(EARLY).at(TIMES, "time")
    with pytest.raises(pb.DataError, match="3 weights, but the race has 2"):
        weights.at([1, 2], "time")


@pytest.mark.slow
def test_two_preferences_in_a_file_are_refused():
    with pytest.raises(pb.DataError, match="expected"):
        parse_preference({"between": [1, 2], "at": 4})


def test_a_race_that_is_not_settled_claims_nothing_of_its_choice():
    race = drive(race_of(("good", "twin"), **choice(runs=16)))
    assert race.ended == "budget of runs spent"
    assert "a settled choice is behind another algorithm by more than 0.05" in str(race)


def test_a_replay_for_a_budget_by_command(capsys):
    command = ["replay", "--example", "cma-variants", "--between", "200", "1000"]
    assert main([*command, "--regret", "0.01", "--times", "3"]) == 0
    said = capsys.readouterr().out
    assert "  run         CSA\n" in said


def test_select_of_a_race_names_its_posterior():
    race = drive(race_of(("good", "bad"), budget=pb.Budget(runs=16)))
    said = r"not Race: pass its posterior, select\(result.posterior, \.\.\.\), .*fit\(result.runs"
    with pytest.raises(pb.DataError, match=said):
        pb.select(race)
    assert pb.select(race.posterior).algorithms
