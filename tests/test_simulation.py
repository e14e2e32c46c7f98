"""Simulated data: at each time exactly Plackett and Luce's, whatever happens between times."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

import polarbear as pb
from polarbear.simulation import (
    PAPER_PRIOR,
    PRIORS,
    draw_noisy_utilities,
    draw_persistent_noise,
    draw_truth,
    simulate_rankings,
    simulate_runs,
)

TRUTH = np.array([[0.0, 1.0, -0.5], [1.5, 0.0, 0.2], [0.3, 0.3, 0.3]])
EVEN = np.linspace(0.0, 1.0, 3)


def probability(order, utilities):
    """Of an order, best first, under Plackett and Luce."""
    strength = np.exp(utilities[list(order)])
    return np.prod(strength / np.cumsum(strength[::-1])[::-1])


@pytest.mark.parametrize("persistence", [0.0, 0.1, 0.5, np.inf])
def test_at_each_time_rankings_are_draws_of_the_model_for_any_persistence(persistence):
    instances = 4000
    noisy = draw_noisy_utilities(TRUTH, instances, 1, persistence=persistence)
    order = np.argsort(-noisy, axis=-1)
    for t, utilities in enumerate(TRUTH):
        count = dict.fromkeys(permutations(range(3)), 0)
        for one in order[t]:
            count[tuple(one)] += 1
        expected = [instances * probability(kind, utilities) for kind in count]
        # Twelve tests in all: one false alarm in a thousand would need a p-value below this.
        assert stats.chisquare(list(count.values()), expected).pvalue > 1e-3 / 12


@pytest.mark.parametrize("persistence", [0.0, 0.3, np.inf])
def test_noise_is_gumbel_at_each_time_and_goes_together_as_it_says(persistence):
    times = np.array([0.0, 0.2, 1.0])
    noise = draw_persistent_noise(times, (5000,), persistence, 2)
    for row in noise:
        assert stats.kstest(row, "gumbel_r").pvalue > 1e-3 / 9
    normal = stats.norm.ppf(stats.gumbel_r.cdf(noise))
    gap = np.abs(times[:, None] - times)
    expected = np.eye(3) if persistence == 0 else np.exp(-gap / persistence)
    assert np.corrcoef(normal) == pytest.approx(expected, abs=4 / np.sqrt(5000))


def test_no_persistence_is_new_noise_and_endless_one_is_a_single_draw():
    noise = draw_persistent_noise(EVEN, (7,), np.inf, 3)
    assert np.all(noise == noise[0])
    assert np.all(
        draw_persistent_noise(EVEN, (7,), 0.0, 3) == np.random.default_rng(3).gumbel(size=(3, 7))
    )
    level = np.zeros((9, 4))
    rankings = simulate_rankings(level, 5, persistence=np.inf)
    assert np.all(rankings.position == rankings.position[0])


def test_no_tail_of_the_noise_is_cut():
    # The smallest and largest of a million differ from those of the Gumbel distribution by chance.
    noise = draw_persistent_noise(np.zeros(1), (1_000_000,), 1.0, 4)
    assert np.isfinite(noise).all()
    least, most = stats.gumbel_r.ppf([1e-9, 1 - 1e-9])
    assert least < noise.min() < stats.gumbel_r.ppf(1e-4)
    assert stats.gumbel_r.ppf(1 - 1e-4) < noise.max() < most


def test_persistence_counts_in_logarithms_where_times_span_decades():
    times = np.array([1.0, 10.0, 100.0])
    noise = draw_persistent_noise(times, (20_000,), 0.5, 5)
    normal = stats.norm.ppf(stats.gumbel_r.cdf(noise))
    assert np.corrcoef(normal)[0, 1] == pytest.approx(np.exp(-1), abs=4 / np.sqrt(20_000))


@pytest.mark.parametrize("rounding", [0.0, 0.7])
@pytest.mark.parametrize("persistence", [0.0, 0.4, np.inf])
def test_runs_improve_all_the_time_and_rank_as_the_rankings_do(persistence, rounding):
    how = {"persistence": persistence, "rounding": rounding, "spread": [0.0, 1.0, 2.0]}
    runs = simulate_runs(TRUTH, 40, 6, **how)
    assert np.all(np.diff(runs.at(EVEN), axis=1) < 0)
    ranked, direct = pb.rank(runs, EVEN), simulate_rankings(TRUTH, 40, 6, **how)
    assert np.array_equal(ranked.position, direct.position)
    assert ranked.algorithms == direct.algorithms
    assert ranked.instances == direct.instances


def test_rounding_ties_runs():
    assert np.ptp(simulate_rankings(TRUTH, 20, rounding=1e6).position) == 0
    tied = simulate_rankings(TRUTH, 50, rounding=1.0).position.reshape(3, 50, 3)
    assert any(len(set(row)) < 3 for row in tied.reshape(-1, 3))


def test_a_crashed_run_is_behind_all_that_go_on():
    runs = simulate_runs(np.zeros((6, 5)), 60, 7, crashed=0.3)
    ended = np.array([run.status == pb.Status.CRASHED for run in runs])
    # Binomial with 300 runs: four standard deviations.
    assert ended.mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.3 * 0.7 / 300))
    times = np.linspace(0.0, 1.0, 6)
    assert runs.known(times).all()
    value = runs.at(times).reshape(60, 5, 6)
    until = np.where(ended, runs.until, 1.0).reshape(60, 5)
    none = np.array([len(run.time) == 0 for run in runs]).reshape(60, 5)
    assert np.isinf(value[none]).all()
    alive = (until[..., None] >= times) & ~none[..., None]
    for instance in range(60):
        for t in range(6):
            going, stopped = alive[instance, :, t], ~alive[instance, :, t]
            best_stopped = value[instance, stopped, t].min(initial=np.inf)
            assert value[instance, going, t].max(initial=-np.inf) <= best_stopped


def test_a_cut_run_is_unknown_later_and_the_others_stay_as_they_are():
    times = np.linspace(0.0, 1.0, 6)
    whole, part = (simulate_runs(np.zeros((6, 5)), 60, 8, cut=share) for share in (0.0, 0.5))
    known = part.known(times)
    assert known[:, 0].all()
    assert 0.5 < known[:, -1].mean() < 0.7
    assert np.array_equal(part.at(times)[known], whole.at(times)[known])


def test_equal_spread_keeps_tied_algorithms_tied_and_unequal_spread_does_not_move_the_pair():
    rankings = simulate_rankings(np.zeros((1, 3)), 4000, 9, spread=[0.0, 0.0, 3.0])
    for a, b in [("a1", "a2"), ("a1", "a3")]:
        # Noise that is symmetric between two leaves them even: four standard deviations.
        assert rankings.win_rate(a, b)[0] == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(4000))


@pytest.mark.parametrize("name", PRIORS)
def test_truth_comes_from_any_prior(name):
    utilities, hyper = draw_truth(PRIORS[name], np.linspace(0, 1, 8), 4, 1)
    assert utilities.shape == (8, 4)
    assert set(hyper) == set(PRIORS[name].hypers())
    assert np.allclose(utilities.sum(axis=1), 0, atol=1e-9)


def test_the_truth_of_the_paper_has_the_spread_it_says():
    drawn = np.array([draw_truth(PAPER_PRIOR, EVEN, 5, seed)[0] for seed in range(600)])
    # The variance of an algorithm is E[scale^2] (1 - 1/n) with scale log-normal(0, 0.5).
    assert np.mean(drawn**2) == pytest.approx(np.exp(0.5) * 0.8, rel=0.2)


@pytest.mark.parametrize(
    "wrong", [{"persistence": -1.0}, {"persistence": np.nan}, {"crashed": 0.7, "cut": 0.7}]
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(pb.DataError):
        simulate_runs(TRUTH, 3, **wrong)
