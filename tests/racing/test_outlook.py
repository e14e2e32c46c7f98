"""What lies ahead: needs against their definition, forecasts against what came."""

import numpy as np
import pytest
from scipy.special import ndtri

import polarbear as pb
from polarbear.inference.dominance import equivalence_margin
from polarbear.inference.verdicts import Unsettled, Verdict
from polarbear.racing.allocation import choose_horizons
from polarbear.racing.forecast import (
    InstancesNeeded,
    LeadDraws,
    RequiredZ,
    TimeRanges,
    forecast_race,
)
from racers import PerLook, drive, race_of, solve

Z, MARGIN = float(ndtri(0.99)), equivalence_margin(0.05)
LOOK = RequiredZ(Z, Z, Z, MARGIN, one_sided=False)
TIMES = np.array([1.0, 10.0, 100.0])
RANGES = TimeRanges(np.arange(3), TIMES, TIMES)


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
    assert needs.first_dominates == pytest.approx(needs.first_ahead)
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


def test_the_cheapest_way_is_taken():
    # They change places early on for sure, but for one side; late times would cost a hundredfold.
    chosen = choose_horizons(leads([1.0, -3.0, 0.9]), RANGES, 2, pb.Budget(), LOOK, "at_par")
    assert chosen.until.tolist() == [1.0, 1.0]
    # One leads everywhere, and only the last time is in doubt.
    chosen = choose_horizons(leads([3.0, 3.0, 0.9]), RANGES, 2, pb.Budget(), LOOK, "at_par")
    assert chosen.until.tolist() == [100.0, 100.0]
    assert 8 <= chosen.batch <= 64
    strict = choose_horizons(leads([1.0, -3.0, 0.9]), RANGES, 2, pb.Budget(), LOOK, "strict")
    assert strict.until.tolist() == [100.0, 100.0]


@pytest.mark.parametrize("total", [np.inf, 60.0])
@pytest.mark.parametrize("resolution", ["strict", "crossing", "at_par"])
def test_equal_times_are_forecast_once(resolution, total):
    rng, budget = np.random.default_rng(0), pb.Budget()
    source = np.array([0, 0, 0, 1, 2, 2, 3])
    times, start = np.geomspace(1, 100, len(source)), np.array([0, 3, 4, 6])
    ranges = TimeRanges(start, times[start], times[[2, 3, 5, 6]])
    each = TimeRanges(np.arange(len(times)), times, times)
    for _ in range(30):
        few = leads(*rng.normal(0, 1, (3, 4)), seen=float(rng.integers(5, 60)))
        many = few._replace(**{n: getattr(few, n)[..., source, :] for n in few._fields[2:]})
        horizons = choose_horizons(few, ranges, 4, budget, LOOK, resolution, total)
        expected = choose_horizons(many, each, 4, budget, LOOK, resolution, total)
        assert (horizons is None) == (expected is None)
        if horizons is not None and expected is not None:
            assert horizons.until.tolist() == expected.until.tolist()
            assert horizons.batch == expected.batch
        forecasts = [forecast_race(one, 4, LOOK, resolution) for one in (few, many)]
        assert forecasts[0][0] == forecasts[1][0]


def test_nothing_is_expected_of_a_pair_at_the_edge():
    edge = leads([MARGIN] * 3)
    edge = edge._replace(draws=np.full_like(edge.draws, -0.0))
    assert (
        choose_horizons(
            edge._replace(spread=np.full((3, 1), np.inf)),
            RANGES,
            2,
            pb.Budget(),
            LOOK._replace(margin=0.0),
            "at_par",
        )
        is None
    )


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
    assert "to go" in str(race)
    done = drive(race_of(seed=1))
    assert done.forecast is None or "to go" not in str(done)


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


def test_what_is_certain_by_reckoning_and_open_all_the_same_is_seen_where_it_is_nearest():
    """Needs are reckoned from means and spreads; a race decides by draws, and may want one more."""
    sure = leads([3.0, 3.0, -1.3])  # they change places, by a little more than is needed
    needs = InstancesNeeded.from_leads(sure.draws.mean(axis=0), sure, LOOK)
    assert needs.until_settled("crossing") == 0
    # The early times are sure beyond doubt: another run there would tell nothing.
    late = choose_horizons(sure, RANGES, 2, pb.Budget(), LOOK, "at_par")
    assert late.until.tolist() == [100.0, 100.0]
    behind = leads([1.3, 3.0, 3.0])  # one leads everywhere, least surely at the beginning
    early = choose_horizons(behind, RANGES, 2, pb.Budget(), LOOK, "at_par")
    assert early.until.tolist() == [1.0, 1.0]
    used_up = sure._replace(n_instances=np.array([[10.0], [10.0], [40.0]]))
    assert choose_horizons(used_up, RANGES, 2, pb.Budget(), LOOK, "at_par", total=40) is None


def test_an_undecided_algorithm_without_open_pairs_says_so():
    status = Verdict("a", "undecided", 0.4)
    said = "none of its pairs is open for the question of the race"
    assert str(status) == f"a is undecided (P = 0.400 that it is a member): {said}"
    assert str(Verdict("a", "undecided")) == "a is undecided"  # before any decision
