"""The likelihood against direct enumeration of all orders."""

from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import reference
from polarbear import Run, Runs, fit, rank
from polarbear.calibration.population import select_algorithms
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.inference.plackett_luce.ordered_rankings import (
    find_equal_rows,
    merge_comparisons,
    tie_subsets,
)
from polarbear.inference.plackett_luce.ranking_likelihood import RankingLikelihood
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood
from polarbear.simulation import rank_costs, simulate_runs
from strategies import DIRECTIONS, GRIDS, records

FORMS = pytest.mark.parametrize("form", [SubsetLikelihood, RankingLikelihood])


def simulated(n, n_instances, times=(1.0, 2.0), levels=4, seed=0):
    """Complete rankings with many ties."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, levels, size=(n, n_instances, len(times)))
    recorded = [
        Run(f"a{k}", str(i), times, np.minimum.accumulate(values[k, i][::-1])[::-1], times[-1])
        for k in range(n)
        for i in range(n_instances)
    ]
    return rank(Runs.from_records(recorded, direction="maximize"), times, ties="averaged")


@pytest.mark.slow
@FORMS
@given(recorded=records(), times=GRIDS, direction=DIRECTIONS, seed=st.integers(0, 99))
def test_the_value_agrees_with_the_mean_over_all_orders(form, recorded, times, direction, seed):
    rankings = rank(Runs.from_records(recorded, direction=direction), times, ties="averaged")
    mu = np.random.default_rng(seed).normal(size=(len(times), len(rankings.algorithms)))
    expected = [
        reference.log_likelihood(rankings, dict(zip(rankings.algorithms, row, strict=True)), t)
        for row, t in zip(mu, times, strict=True)
    ]
    assert_allclose(form.from_rankings(rankings).value(mu), expected, atol=1e-9)


@FORMS
def test_gradient_and_curvature_are_derivatives(form):
    rankings = simulated(5, 7)
    data = form.from_rankings(rankings)
    mu = np.random.default_rng(1).normal(size=(2, 5))
    gradient, curvature = data.gradient(mu), data.curvature(mu)
    step = 1e-5
    for t in range(2):
        for i in range(5):
            up, down = mu.copy(), mu.copy()
            up[t, i] += step
            down[t, i] -= step
            assert_allclose(
                (data.value(up) - data.value(down))[t] / (2 * step), gradient[t, i], atol=1e-6
            )
            assert_allclose(
                -(data.gradient(up) - data.gradient(down))[t] / (2 * step),
                curvature[t, i],
                atol=1e-6,
            )


@pytest.mark.parametrize("n", [2, 6, 12])
def test_both_forms_give_the_same_numbers(n):
    rankings = simulated(n, 9, levels=3)
    mu = np.random.default_rng(2).normal(size=(2, n))
    table, orders = (
        SubsetLikelihood.from_rankings(rankings),
        RankingLikelihood.from_rankings(rankings),
    )
    for what in ("value", "gradient", "curvature"):
        assert_allclose(getattr(table, what)(mu), getattr(orders, what)(mu), atol=1e-10)
    many = np.random.default_rng(2).normal(size=(3, 2, n))
    assert_allclose(table.value(many), orders.value(many))


def test_the_form_follows_the_number_of_algorithms():
    assert isinstance(build_likelihood(simulated(12, 2)), SubsetLikelihood)
    assert isinstance(build_likelihood(simulated(13, 2)), RankingLikelihood)


@FORMS
def test_extreme_utilities_stay_finite(form):
    data = form.from_rankings(simulated(4, 5))
    mu = np.array([[700.0, 0.0, -700.0, 350.0]] * 2)
    assert np.isfinite(data.value(mu)).all()
    assert np.isfinite(data.gradient(mu)).all()
    assert np.isfinite(data.curvature(mu)).all()


@pytest.mark.parametrize("size", [13, 20])
def test_sampled_orders_for_large_ties_are_balanced_and_near(size):
    member, weight = tie_subsets(size)
    by_size = [weight[member.sum(axis=1) == m].sum() for m in range(1, size + 1)]
    assert_allclose(by_size, 1.0)
    assert_allclose(weight @ member, (size + 1) / 2)
    mu = np.random.default_rng(3).normal(size=size)
    sampled = weight @ np.log(member @ np.exp(mu))
    exact = reference.mean_log_sums(mu)
    assert abs(sampled - exact) < 0.02 * size


@pytest.mark.parametrize("ties", [False, True])
def test_both_representations_agree_with_algorithms_that_are_not_known(ties):
    """An unknown entry must not change the curvature of any algorithm, the first one included."""
    rng = np.random.default_rng(8)
    n, n_times, instances = 5, 3, 12
    costs = rng.normal(size=(n_times, instances, n))
    if ties:
        costs = costs.round()
    costs[rng.random(costs.shape) < 0.3] = np.nan
    rankings = rank_costs(costs, weight=rng.uniform(0.5, 2, instances), ties="averaged")
    table, orders = (
        SubsetLikelihood.from_rankings(rankings),
        RankingLikelihood.from_rankings(rankings),
    )
    mu = rng.normal(size=(4, n_times, n))
    assert_allclose(orders.value(mu), table.value(mu), atol=1e-9)
    assert_allclose(orders.gradient(mu), table.gradient(mu), atol=1e-9)
    assert_allclose(orders.curvature(mu[0]), table.curvature(mu[0]), atol=1e-9)
    assert_allclose(orders.curvature(mu[0]).sum(axis=-1), 0.0, atol=1e-9)
    for form in (table, orders):
        assert_allclose(
            form.to_single_precision().value(mu.astype(np.float32)), table.value(mu), atol=1e-3
        )


def test_many_draws_of_many_algorithms_are_as_one_by_one():
    """More draws and rankings than are worked on at a time."""
    rankings = simulated(14, 300, levels=6)
    orders = RankingLikelihood.from_rankings(rankings)
    mu = np.random.default_rng(4).normal(size=(260, 2, 14))
    some = [0, 1, 255, 256, 259]
    assert_allclose(orders.value(mu)[some], [orders.value(mu[k]) for k in some], rtol=1e-12)
    light = orders.to_single_precision()
    assert light is not orders
    assert_allclose(light.value(mu.astype(np.float32)), orders.value(mu), atol=3e-3)
    assert (
        RankingLikelihood.from_rankings(simulated(14, 1000)).to_single_precision().wins.dtype
        == np.float64
    )  # too many choices


@FORMS
def test_utilities_far_apart_do_not_leave_the_range_of_single_precision(form):
    table = form.from_rankings(simulated(4, 6))
    mu = np.array([[[0.0, -100.0, -200.0, -1000.0]] * 2, [[0.0, 1.0, 2.0, 3.0]] * 2])
    light = table.to_single_precision().value(mu.astype(np.float32))
    assert np.isfinite(light).all()
    assert_allclose(light[1], table.value(mu)[1], atol=1e-3)


def test_scores_are_the_gradients_of_single_instances():
    rng = np.random.default_rng(3)
    costs = rng.integers(0, 3, size=(3, 6, 4)).astype(float)
    costs[rng.random(costs.shape) < 0.2] = np.nan
    weight, mu = rng.uniform(0.5, 2, 6), rng.normal(size=(3, 4))
    averaged = partial(rank_costs, ties="averaged")
    scores = RankingLikelihood.from_rankings(averaged(costs, weight=weight)).instance_gradients(
        mu, np.arange(6) // 2, 3
    )
    for k in range(3):
        alone = slice(2 * k, 2 * k + 2)
        own = SubsetLikelihood.from_rankings(averaged(costs[:, alone], weight=weight[alone]))
        assert_allclose(scores[k], own.gradient(mu), atol=1e-12)


def test_counted_rankings_have_the_likelihood_of_all():
    """Of 14 algorithms, of which two to four meet, so that rankings repeat."""
    rng = np.random.default_rng(5)
    costs = rng.integers(0, 5, (2, 900, 14)).astype(float)
    costs[
        :, rng.permuted(np.tile(np.arange(14), (900, 1)), axis=1) > rng.integers(1, 4, (900, 1))
    ] = np.nan
    rankings = rank_costs(costs, weight=rng.uniform(0.5, 2, 900))
    each, counted = (RankingLikelihood.from_rankings(rankings, merge=m) for m in (False, True))
    assert counted.n_terms < 0.7 * each.n_terms
    mu = rng.normal(size=(3, 2, 14))
    assert_allclose(counted.value(mu), each.value(mu))
    assert_allclose(counted.gradient(mu), each.gradient(mu), atol=1e-9)
    assert_allclose(counted.curvature(mu[0]), each.curvature(mu[0]), atol=1e-9)


def test_comparisons_at_one_time_are_merged_without_loss():
    rng = np.random.default_rng(6)
    costs = rng.integers(0, 3, (1, 200, 4)).astype(float)
    rankings = rank_costs(costs)
    merged = merge_comparisons(rankings)
    assert len(merged.weight) < 80
    assert merged.weight.sum() == 200
    mu = rng.normal(size=(1, 4))
    assert_allclose(build_likelihood(merged).value(mu), build_likelihood(rankings).value(mu))


def test_rows_with_equal_hashes_are_compared():
    """Rows too long for an exact key are hashed; equal rows and only those are the same."""
    code = np.random.default_rng(7).integers(0, 2, (400, 3)).repeat(40, axis=1) * 900
    first, same = find_equal_rows(np.arange(400) // 200, code)
    assert len(first) == 16
    assert (code[first][same] == code).all()
    assert (np.diff(first // 200) >= 0).all()


def test_gradients_of_many_draws_are_those_of_single_ones():
    rng = np.random.default_rng(5)
    costs = rng.normal(size=(3, 40, 14))
    costs[rng.random(costs.shape) < 0.3] = np.nan
    rankings = rank_costs(costs, weight=rng.uniform(0.5, 2, 40))
    likelihood = RankingLikelihood.from_rankings(rankings, merge=True)
    draws = rng.normal(size=(600, 3, 14))
    expected = np.stack([likelihood.gradient(draw) for draw in draws])
    assert_allclose(likelihood.gradient(draws), expected, atol=1e-9)
    wide = 200 * draws[:20]
    expected = np.stack([likelihood.gradient(draw) for draw in wide])
    assert_allclose(likelihood.gradient(wide), expected, atol=1e-9)


def ranked_first(costs, top):
    """Rankings of runs with the given costs (instances, algorithms), of which ``top`` count."""
    recorded = [
        Run(f"a{k + 1}", f"i{i + 1}", [1.0], [cost], 1.0)
        for i, row in enumerate(costs)
        for k, cost in enumerate(row)
        if np.isfinite(cost)
    ]
    return rank(Runs.from_records(recorded, direction="minimize"), [1.0], ties="averaged", top=top)


def first_factors(costs, mu, top):
    """The first ``top`` factors of Plackett-Luce; a tie is the mean over its orders."""
    total = 0.0
    for row in costs:
        known = [k for k, cost in enumerate(row) if np.isfinite(cost)]
        orders = [o for o in permutations(known) if (np.diff(row[list(o)]) >= 0).all()]
        # A tie that begins among the first counts in full.
        last = max(row[k] for k in known if sum(row[known] < row[k]) < top)
        n_counted = sum(row[known] <= last)
        for order in orders:
            left = [mu[list(order[place:])] for place in range(n_counted)]
            total += sum(u[0] - np.log(np.exp(u).sum()) for u in left) / len(orders)
    return total


@FORMS
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("top", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_the_first_of_rankings_are_the_first_factors(form, tied, top, n):
    """Nothing is said of the order behind them, although orders of ties are averaged."""
    rng = np.random.default_rng(10 * n + top)
    costs = rng.integers(0, 3, (8, n)) if tied else rng.normal(size=(8, n))
    costs = costs.astype(float)
    costs[0, 0] = np.nan
    rankings = ranked_first(costs, top)
    mu = rng.normal(size=n)
    likelihood = form.from_rankings(rankings)
    assert_allclose(likelihood.value(mu[None]), first_factors(costs, mu, top))
    assert_allclose(likelihood.gradient(mu[None]).sum(), 0.0, atol=1e-12)
    merged = form.from_rankings(merge_comparisons(rankings))
    assert_allclose(merged.value(mu[None]), likelihood.value(mu[None]))


def test_what_is_behind_the_first_stays_so_in_a_selection():
    costs = np.random.default_rng(3).normal(size=(12, 5))
    rankings = ranked_first(costs, 3)
    kept = ["a1", "a2", "a4"]
    mu = np.array([0.4, -0.3, 0.2])
    expected = 0.0
    for row in costs:
        # Of the first three, in order, those that are kept are chosen from all that are left.
        first = [k for k in np.argsort(row)[:3] if f"a{k + 1}" in kept]
        chosen = [kept.index(f"a{k + 1}") for k in first]
        rest = [k for k in range(3) if k not in chosen]
        for place in range(len(chosen)):
            choice = mu[chosen[place:] + rest]
            expected += choice[0] - np.log(np.exp(choice).sum())
    some = rankings.among(kept)
    halves = some.take(range(5)).join(some.take(range(5, 12)))
    for same in (some, halves, select_algorithms(rankings, [0, 1, 3])):
        assert_allclose(build_likelihood(same).value(mu[None]), expected)


@pytest.mark.parametrize("top", [1, 2, 4])
def test_the_first_of_rankings_recover_the_truth(top):
    truth = np.array([[1.0, 0.5, 0.0, -0.5, -1.0]])
    runs = simulate_runs(truth, 3000, seed=2)
    posterior = fit(rank(runs, [0.0], top=top, ties="averaged"), evidence="rankings")
    ratings = np.exp(truth) / np.exp(truth).sum()
    assert_allclose(posterior.mean(), ratings, atol=0.03)
