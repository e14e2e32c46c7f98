"""The data of figures equals direct computation."""

import numpy as np
import pytest
from judge.in_process import InProcess

import polarbear as pb
from polarbear.inference.pairs import find_crossings, tabulate_pairs
from polarbear.plots import (
    allocation_data,
    calibration_data,
    crossings_data,
    evolution_data,
    pairs_data,
    ratings_data,
    values_data,
)

TIMES = np.geomspace(1, 1000, 6)
TRUTH = np.stack([np.linspace(2, -1, 6), np.linspace(-1, 2, 6), np.full(6, -2.0)], axis=1)


@pytest.fixture(scope="module")
def runs():
    return pb.simulation.simulate_runs(TRUTH, 80, times=TIMES, persistence=0.5)


@pytest.fixture(scope="module")
def posterior(runs):
    return pb.fit(runs)


@pytest.fixture(scope="module")
def replayed(runs):
    return pb.replay(runs, pb.ParetoSet(certainty=0.95))


@pytest.fixture
def empty():
    return pb.Race(["a", "b", "c"], TIMES, direction="minimize")


def test_ratings_are_means_and_quantiles_of_draws(posterior):
    curves = ratings_data(posterior, level=0.8, truth=TRUTH)
    draws = posterior.ratings.astype(float)
    assert np.allclose(curves.mean, draws.mean(axis=0), atol=1e-6)
    assert np.allclose(curves.lower, np.quantile(draws, 0.1, axis=0), atol=1e-6)
    assert np.allclose(curves.upper, np.quantile(draws, 0.9, axis=0), atol=1e-6)
    odds = np.exp(TRUTH)
    assert np.allclose(curves.truth, odds / odds.sum(axis=1, keepdims=True))
    assert curves.cast.pareto == posterior.pareto()
    with pytest.raises(pb.DataError, match="expected log-utilities of shape"):
        ratings_data(posterior, truth=TRUTH[:, :2])


def test_ratings_of_a_race_are_of_remaining_algorithms_in_a_cast_of_all(replayed):
    data = ratings_data(replayed)
    assert data.cast.names == ("a1", "a2", "a3")
    assert data.cast.pareto == replayed.pareto
    assert data.algorithms == replayed.posterior.algorithms
    assert data == ratings_data(pb.Race.from_events(replayed.events))


def test_values_equal_those_of_select(posterior):
    preference = pb.preferences.between(10, 500, scale="log")
    data = values_data(posterior, preference)
    chosen = {choice.algorithms[0]: choice for choice in pb.select(posterior, preference).choices}
    assert data.algorithms == tuple(chosen)
    for name, mean, best in zip(data.algorithms, data.mean, data.best, strict=True):
        assert mean == pytest.approx(chosen[name].expected, abs=1e-6)
        assert best == pytest.approx(chosen[name].best, abs=1e-6)
    areas = (
        np.trapezoid(data.density, data.grid, axis=1)
        if hasattr(np, "trapezoid")
        else (data.density.sum(axis=1) * (data.grid[1] - data.grid[0]))
    )
    assert np.allclose(areas, 1, atol=0.02)
    assert np.all((data.lower < data.mean) & (data.mean < data.upper))


def test_values_by_any_increasing_function(posterior):
    worst = pb.preferences.increasing(lambda curves: curves.min(axis=-1))
    data = values_data(posterior, worst)
    best = posterior.ratings.min(axis=1).mean(axis=0)
    assert np.allclose(sorted(best, reverse=True), data.mean, atol=1e-6)


def test_a_value_without_doubt_has_a_density():
    posterior = pb.fit(pb.simulation.simulate_rankings(np.array([[0.0, 0.0]]), 5))
    certain = values_data(posterior, pb.preferences.increasing(lambda c: 0 * c.sum(axis=-1)))
    assert np.isfinite(certain.density).all()


def test_evolution_equals_the_decisions_of_the_race(replayed):
    data = evolution_data(replayed)
    assert len(data) == replayed.rounds
    assert data.share[-1] == 1.0
    assert np.all(np.diff(data.runs) >= 0)
    for name, out in replayed.eliminated.items():
        k = data.cast.names.index(name)
        (round_,) = np.flatnonzero(np.diff(data.eliminated[:, k].astype(int), prepend=0))
        # A decision is stored with six digits of its probabilities.
        assert data.dominance[round_, k] == pytest.approx(out.probability, abs=5e-7)
        assert data.cast.names[data.rival[round_, k]] == out.rival
        assert data.dominance[round_, k] >= data.certainty[round_]
        assert np.isnan(data.dominance[round_ + 1 :, k]).all()
    members = [data.cast.names[k] for k in np.flatnonzero(data.resolved[-1])]
    assert tuple(members) == replayed.pareto
    for one in replayed.verdicts():
        if one.is_candidate:
            k = data.cast.names.index(one.algorithm)
            assert data.dominance[-1, k] == pytest.approx(1 - one.probability)


@pytest.mark.slow
def test_evolution_of_a_stored_race_is_read_from_its_store(tmp_path):
    def solver(gain):
        def solve(job):
            for step in (1, 10, 100):
                yield step, job.instance + gain / step

        return solve

    solvers = {"fast": solver(1), "slow": solver(2)}
    make = {"direction": "minimize", "executor": InProcess()}
    with pb.race(solvers, range(40), [10, 100], store=tmp_path / "race.db", **make) as stored:
        kept = evolution_data(stored), allocation_data(stored)
    plain = pb.race(solvers, range(40), [10, 100], **make)
    assert kept == (evolution_data(plain), allocation_data(plain))


def test_allocation_counts_instances_and_time(runs, replayed):
    data = allocation_data(replayed)
    made = replayed.runs
    for k, name in enumerate(data.cast.names):
        until = {}
        for run in made:
            if run.algorithm == name:
                until[run.instance] = max(run.until, until.get(run.instance, 0.0))
        counted = [sum(end >= time for end in until.values()) for time in TIMES]
        assert data.instances[k].tolist() == counted
        assert data.time[k] == pytest.approx(sum(r.until for r in made if r.algorithm == name))
        assert data.runs[k] == sum(r.algorithm == name for r in made)
    assert np.all(allocation_data(runs).instances == 80)


def test_pairs_at_a_time_and_over_all(posterior):
    early = pairs_data(posterior, 1.0)
    assert early.time == 1.0
    assert early.algorithms[0] == "a1"
    for i, row in enumerate(early.algorithms):
        for j, column in enumerate(early.algorithms):
            if i != j:
                assert early.ahead[i, j] == posterior.prob_better(row, column)[0]
    always = pairs_data(posterior, certainty=0.95)
    table = tabulate_pairs(posterior)
    for one, two, relation in zip(table["first"], table["second"], table["relation"], strict=True):
        i, j = always.algorithms.index(one), always.algorithms.index(two)
        assert always.crosses[i, j] == (relation == "crosses")
        assert always.certain[i, j] == (relation == "dominates")
        assert always.certain[j, i] == (relation == "is dominated by")
    with pytest.raises(
        pb.DataError, match="time=5000: expected a time in the posterior's range, 1 to 1,000"
    ):
        pairs_data(posterior, 5000)


def test_crossings_of_a_pair(posterior, runs):
    rankings = pb.rank(runs)
    data = crossings_data(posterior, "a1", "a2", certainty=0.95, rankings=rankings)
    assert np.array_equal(data.ahead, posterior.prob_better("a1", "a2"))
    assert np.array_equal(data.counted, rankings.win_rate("a1", "a2"))
    assert (data.anytime_lower <= data.counted).all()
    assert (data.anytime_upper >= data.counted).all()
    # Valid at all numbers of instances at once, so wider than an interval for one number.
    error = np.sqrt(data.counted * (1 - data.counted) / len(rankings.instances))
    assert (data.anytime_upper - data.anytime_lower > 2 * 1.96 * error).all()
    assert crossings_data(posterior, "a1", "a2").anytime_lower is None
    assert list(data.crossings) == find_crossings(posterior, "a1", "a2")
    with pytest.raises(pb.DataError, match="no algorithm named 'a9'"):
        crossings_data(posterior, "a1", "a9")


def test_calibration_is_the_curve_of_the_tally(runs):
    calibration = pb.calibrate(runs, replicates=10)
    for kind in ("ahead", "everywhere"):
        data = calibration_data(calibration, kind)
        bins = [one for one in calibration.tally.curve(kind) if one.true.cases]
        assert data.claimed.tolist() == [one.claimed for one in bins]
        assert data.true.tolist() == [one.true.value for one in bins]
        assert calibration_data(calibration.tally, kind) == data


def test_a_race_before_its_first_decision_has_empty_figures(empty):
    assert ratings_data(empty).mean.shape == (6, 0)
    assert ratings_data(empty).cast.names == ("a", "b", "c")
    assert values_data(empty).algorithms == ()
    assert pairs_data(empty).ahead.shape == (0, 0)
    assert len(evolution_data(empty)) == 0
    assert evolution_data(empty).dominance.shape == (0, 3)
    assert allocation_data(empty).instances.tolist() == [[0] * 6] * 3
    with pytest.raises(pb.DataError, match="has no decision yet"):
        crossings_data(empty, "a", "b")


def test_a_wrong_argument_is_refused(runs):
    with pytest.raises(pb.DataError, match=r"got Runs: make one with fit\(...\)"):
        ratings_data(runs)
    with pytest.raises(pb.DataError, match="expected a race to draw, got Posterior"):
        evolution_data(pb.fit(runs))


def test_the_value_of_time_is_that_of_each_algorithm(runs):
    data = pb.plots.time_values_data(runs)
    for k, name in enumerate(data.cast.names):
        own = pb.selection.value_of_time(runs, name).improves[:, 0]
        np.testing.assert_array_equal(data.improves[:, k], own)
    ax = pb.plots.time_values(data)
    assert set(data.cast.names) <= {text.get_text() for text in ax.texts}
