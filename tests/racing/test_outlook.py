"""What lies ahead: needs against their definition, forecasts against what came."""

import numpy as np
import pytest
from scipy.special import ndtri

import polarbear as pb
from polarbear.inference.dominance import equivalence_margin
from polarbear.inference.verdicts import Unsettled, Verdict
from polarbear.racing.forecast import (
    InstancesNeeded,
    LeadDraws,
    RequiredZ,
    forecast_race,
)
from racers import PerLook, drive, race_of, solve

Z, MARGIN = float(ndtri(0.99)), equivalence_margin(0.05)
LOOK = RequiredZ(Z, MARGIN)
TIMES = np.array([1.0, 10.0, 100.0])


def leads(*columns, spread=0.5, seen=10.0, draws=50):
    """Leads of pairs of a chain 0-1, 0-2, ...; the first of a pair is algorithm 0."""
    mean = np.array(columns, dtype=float).T
    noise = spread * np.random.default_rng(0).standard_normal((draws, *mean.shape))
    noise -= noise.mean(axis=0)
    noise *= spread / noise.std(axis=0)
    k = np.arange(len(columns))
    return LeadDraws(
        np.zeros_like(k), k + 1, mean + noise, np.full(mean.shape, spread), np.full_like(mean, seen)
    )


def test_a_lead_is_certain_when_its_spread_has_shrunk_enough():
    one = leads([0.4, 0.4, 0.4])
    needs = InstancesNeeded.from_leads(np.full((3, 1), 0.4), one, LOOK)
    total = 10 + needs.first_ahead[0, 0]
    assert 0.4 / (0.5 * np.sqrt(10 / total)) == pytest.approx(Z)
    assert np.isinf(needs.second_ahead).all()
    assert np.isinf(needs.equivalent).all()
    same = InstancesNeeded.from_leads(np.full((3, 1), 0.05), one, LOOK)
    assert (MARGIN - 0.05) / (0.5 * np.sqrt(10 / (10 + same.equivalent[0, 0]))) == pytest.approx(Z)


def test_a_crossing_needs_one_time_each_and_strictness_all():
    one = leads([3.0, 0.21, -3.0])
    needs = InstancesNeeded.from_leads(one.draws.mean(axis=0), one, LOOK)
    assert needs.until_settled("crossing") == 0
    assert needs.until_settled("strict") == pytest.approx(needs.first_ahead[1])


def test_who_is_about_to_be_eliminated_settles_its_other_pairs_for_free():
    # 1 is behind 0 for sure soon; 0 and 2 differ by a hair.
    both = leads([2.0, 2.0, 0.8], [0.3, 0.3, 0.3])
    found, need = forecast_race(both, 3, LOOK, "crossing")
    assert need[0] < need[1]
    assert found.instances[0] <= found.instances[1] <= found.instances[2]
    assert found.runs[1] >= found.instances[1]
    assert "more instances" in str(found)


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
    assert done.forecast is None or "to settle" not in str(done)


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
