"""What lies ahead: needs against their definition, forecasts against what came."""

import numpy as np
import pytest
from scipy.special import ndtri

import polarbear as pb
from polarbear.inference.dominance import equivalence_margin
from polarbear.inference.verdicts import Unsettled, Verdict
from polarbear.racing.forecast import Leads, forecast_pairs
from racers import PerLook, drive, race_of, solve

Z, MARGIN = float(ndtri(0.99)), equivalence_margin(0.05)


def leads(*columns, spread=0.5, seen=10.0):
    """Leads (times, n, n) of algorithm 0 over each other one; the others are apart as follows."""
    utilities = -np.array([np.zeros(len(columns[0])), *columns], dtype=float).T
    shape = (*utilities.shape, utilities.shape[1])
    draws = np.array([0.8, 1.0, 1.2])[:, None, None] * utilities
    return Leads(draws, np.full(shape, spread), np.full(shape, seen))


def routes(one, resolution="crossing"):
    """How many more instances each pair takes, for each draw."""
    question = pb.PaperParetoSet(certainty=0.99, resolution=resolution)
    return [question._find_routes(lead, one) for lead in one.each()]


def test_a_lead_is_certain_when_its_spread_has_shrunk_enough():
    replaced, settled = routes(leads([0.4, 0.4, 0.4]), "strict")[1]
    assert 0.4 / (0.5 * np.sqrt(10 / (10 + replaced[0, 1]))) == pytest.approx(Z)
    assert settled[0, 1] == replaced[0, 1]
    assert np.isinf(replaced[1, 0])
    _, same = routes(leads([0.05, 0.05, 0.05]), "strict")[1]
    assert (MARGIN - 0.05) / (0.5 * np.sqrt(10 / (10 + same[0, 1]))) == pytest.approx(Z)


def test_a_crossing_needs_one_time_each_and_strictness_all():
    one, middle = leads([3.0, 0.21, -3.0]), leads([0.21])
    assert routes(one, "crossing")[1].settled[0, 1] == 0
    assert routes(one, "strict")[1].settled[0, 1] == routes(middle, "strict")[1].settled[0, 1] > 0


def test_who_is_about_to_be_eliminated_settles_its_other_pairs_for_free():
    # 1 is behind 0 for sure soon; 0 and 2 differ by a hair.
    both = leads([2.0, 2.0, 0.8], [0.3, 0.3, 0.3])
    pairs = [("a", "b"), ("a", "c"), ("a", "without runs")]
    forecast, need = forecast_pairs(pairs, "abc", routes(both))
    soon, late = need.values()
    assert soon < late
    low, middle, high = forecast.instances
    assert low < middle == late < high
    assert forecast.runs[1] == soon + 2 * late
    assert "more instances" in str(forecast)


@pytest.mark.parametrize(("lead", "least"), [(3.0, 0.5), (1.5, 0.4), (None, 0.5)])
def test_a_clear_lead_or_a_tie_still_takes_the_instances_that_it_takes(lead, least):
    """Once, what was clear took "about 1 more instance" while 12 were missing."""
    if lead is None:
        records = [pb.Run(a, f"i{k}", [1], [1.0], until=1) for a in "ab" for k in range(200)]
        runs = pb.Runs.from_records(records, direction="minimize")
    else:
        truth = np.array([[lead, 0.0]] * 5)
        runs = pb.simulation.simulate_runs(truth, 400, persistence=np.inf, seed=3)
    race = pb.replay(runs, budget=pb.Budget(batch=(1, 1)))
    rounds = [stage.status for stage in pb.Race.after_each_round(race.events)]
    end = rounds[-1].counts.instances
    ratios = [
        one.forecast.instances[1] / (end - one.counts.instances)
        for one in rounds[:-1]
        if one.counts.instances >= 8
    ]
    assert race.ended == "resolved"
    assert least < np.median(ratios) < 1 / least


@pytest.mark.slow
def test_the_forecast_is_about_what_comes():
    """Of races with the real fit, what is left is within the interval most of the time."""
    hits, cases = 0, 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = np.tile(rng.normal(0, 0.5, 3), (4, 1))
        runs = pb.simulation.simulate_runs(truth, 400, seed, persistence=np.inf)
        question = PerLook(certainty=0.95, elimination="pointwise")
        budget = pb.Budget(batch=(8, 8))
        race = pb.replay(runs, question, budget=budget, seed=seed)
        instances = 0
        total = len(race.runs.instances)
        for event in race.events:
            if isinstance(event, pb.racing.events.Asked):
                instances += len({job.instance for job in event.jobs})
            if not isinstance(event, pb.racing.events.Decided):
                continue
            decision = event.decision
            if decision.forecast and decision.open:
                low, _, high = decision.forecast.instances
                hits += low - 8 <= total - instances <= high + 8
                cases += 1
    assert cases > 5
    assert hits / cases > 0.5


def test_a_race_says_how_much_is_left_and_what_it_costs_to_know():
    race = race_of(("good", "twin"), question=PerLook(epsilon=0.01), budget=pb.Budget(batch=(4, 4)))
    for job in race.ask():
        race.tell(solve(job))
    race.ask()
    status = race.verdict("good")
    assert status.kind == "undecided"
    assert status.unsettled.instances > 0
    assert status.unsettled.time >= status.unsettled.instances
    assert "more instances" in str(status)
    assert "to settle" in str(race)
    done = drive(race_of(seed=1))
    assert done.status.forecast is None or "to settle" not in str(done)


@pytest.mark.parametrize(
    ("instances", "left", "said"),
    [
        (0.0, None, ", about 1 more instance"),
        (12.4, None, ", about 12 more instances"),
        (12.4, 30, ", about 12 more instances"),
        (12.4, 3, ", about 12 more instances; only 3 unused instances left"),
        (0.0, 0, ", about 1 more instance; no unused instance left"),
        (None, 0, "; no instance left"),
        (None, 9, ""),
    ],
)
def test_an_undecided_algorithm_says_what_it_lacks(instances, left, said):
    status = Verdict("a", "undecided", unsettled=Unsettled({"b": 1.0}, instances, left=left))
    assert str(status) == f"a is undecided: not settled with b{said}"


def test_an_assessment_and_a_race_of_the_same_runs_forecast_alike():
    """An assessment spends nothing on the way; its forecast was 100 times that of a race."""
    runs = pb.example("cma-variants")
    race = pb.replay(runs)
    ahead = {one.algorithm: one.unsettled for one in race.verdicts() if one.unsettled}
    found = {one.algorithm: one.unsettled for one in pb.assess(runs) if one.unsettled}
    assert found["CSA"].instances < 2 * ahead["CSA"].instances
