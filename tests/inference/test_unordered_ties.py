"""Ties without an order, against the sum over all orders."""

import math
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import polarbear as pb
from polarbear.inference.plackett_luce import unordered_ties
from polarbear.inference.plackett_luce.likelihood import (
    build_likelihood,
    compute_instance_gradients,
)
from polarbear.inference.plackett_luce.ranking_likelihood import RankingLikelihood
from polarbear.inference.plackett_luce.unordered_ties import (
    UnorderedLikelihood,
    collect_tied_groups,
)
from polarbear.simulation import rank_costs
from racers import fitted


def log_sum_over_orders(costs, mu):
    """The log-probability of one ranking with ties: the sum over all orders that agree with it."""
    known = [k for k, cost in enumerate(costs) if not np.isnan(cost)]
    total = 0.0
    for order in permutations(known):
        if all(costs[a] <= costs[b] for a, b in pairwise(order)):
            logs = (
                mu[k] - math.log(sum(math.exp(mu[j]) for j in order[place:]))
                for place, k in enumerate(order)
            )
            total += math.exp(math.fsum(logs))
    return math.log(total)


def tied_costs(n, n_times=2, instances=8, seed=0):
    """Costs with many ties, and algorithms that are not known."""
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, 3, size=(n_times, instances, n)).astype(float)
    costs[rng.random(costs.shape) < 0.15] = np.nan
    return costs, rng.uniform(0.5, 2, instances), rng.normal(size=(n_times, n))


@given(seed=st.integers(0, 10_000), n=st.integers(2, 6))
def test_the_value_is_the_sum_over_all_orders(seed, n):
    costs, weight, mu = tied_costs(n, 1, 3, seed)
    expected = sum(
        w * log_sum_over_orders(row, mu[0]) for w, row in zip(weight, costs[0], strict=True)
    )
    likelihood = build_likelihood(rank_costs(costs, weight=weight))
    assert_allclose(likelihood.value(mu), [expected], atol=1e-9)


@pytest.mark.parametrize("n", [5, 14])
def test_gradient_and_curvature_are_derivatives_and_concave(n):
    costs, weight, mu = tied_costs(n)
    likelihood = build_likelihood(rank_costs(costs, weight=weight))
    assert isinstance(likelihood, UnorderedLikelihood)
    gradient, curvature, step = likelihood.gradient(mu), likelihood.curvature(mu), 1e-5
    for k in range(n):
        move = np.zeros_like(mu)
        move[:, k] = step
        slope = (likelihood.value(mu + move) - likelihood.value(mu - move)) / (2 * step)
        assert_allclose(slope, gradient[:, k], atol=1e-6)
        bend = -(likelihood.gradient(mu + move) - likelihood.gradient(mu - move)) / (2 * step)
        assert_allclose(bend, curvature[:, k], atol=1e-6)
    assert np.linalg.eigvalsh(curvature).min() > -1e-9
    draws = np.stack([mu, 2 * mu, mu + 0.1])
    for method in (likelihood.value, likelihood.gradient):
        assert_allclose(method(draws), [method(draw) for draw in draws], atol=1e-10)
    light = likelihood.to_single_precision().value(draws.astype(np.float32))
    assert_allclose(light, likelihood.value(draws), atol=1e-3)


def test_the_gradient_is_the_same_after_a_curvature_and_for_many_draws(monkeypatch):
    costs, weight, mu = tied_costs(8)
    likelihood = build_likelihood(rank_costs(costs, weight=weight))
    before, draws = likelihood.gradient(mu), np.stack([mu, 2 * mu])
    likelihood.curvature(mu)
    assert_allclose(likelihood.gradient(mu), before, atol=1e-12)
    value, gradient = likelihood.value(draws), likelihood.gradient(draws)
    monkeypatch.setattr(unordered_ties, "MAX_LEVEL_COLUMNS", 0)
    assert_allclose(likelihood.value(draws), value, atol=1e-10)
    assert_allclose(likelihood.gradient(draws), gradient, atol=1e-10)


def test_both_representations_of_the_untied_places_agree():
    costs, weight, mu = tied_costs(6)
    rankings = rank_costs(costs, weight=weight)
    groups = collect_tied_groups(rankings, merge=False)
    orders = UnorderedLikelihood(RankingLikelihood.from_rankings(rankings), groups)
    subsets = build_likelihood(rankings)
    for what in ("value", "gradient", "curvature"):
        assert_allclose(getattr(orders, what)(mu), getattr(subsets, what)(mu), atol=1e-9)


def test_scores_of_instances_are_gradients_of_their_rankings():
    costs, weight, mu = tied_costs(5, instances=6)
    scores = compute_instance_gradients(rank_costs(costs, weight=weight), mu, np.arange(6) // 2, 3)
    for k in range(3):
        own = slice(2 * k, 2 * k + 2)
        alone = build_likelihood(rank_costs(costs[:, own], weight=weight[own]))
        assert_allclose(scores[k], alone.gradient(mu), atol=1e-9)


@pytest.mark.parametrize("size", [2, 4, 5, 15, 29, 200])
@pytest.mark.parametrize("rate", [1e-3, 0.05, 1.0, 30.0])
def test_groups_of_equal_algorithms_have_the_closed_form(size, rate):
    exact = sum(math.log(j * rate / (1 + j * rate)) for j in range(1, size + 1))
    likelihood = build_likelihood(rank_costs(np.append(np.zeros(size), 1.0)[None, None]))
    mu = np.append(np.full(size, math.log(rate)), 0.0)[None]
    assert_allclose(likelihood.value(mu), exact, atol=1e-9)
    draws = np.stack([mu, mu + 1.0, mu - 2.0])
    assert_allclose(likelihood.value(draws), np.full((3, 1), exact), atol=1e-9)
    light = likelihood.to_single_precision().value(draws.astype(np.float32))
    assert_allclose(light, np.full((3, 1), exact), atol=1e-6 * (1 - exact))


def test_extreme_utilities_stay_finite():
    costs, weight, _ = tied_costs(7)
    likelihood = build_likelihood(rank_costs(costs, weight=weight))
    mu = np.array([[700.0, 0.0, -700.0, 350.0, 0.0, -90.0, 60.0]] * 2)
    for what in ("value", "gradient", "curvature"):
        assert np.isfinite(getattr(likelihood, what)(mu)).all()


def test_a_last_group_and_a_group_of_all_say_nothing():
    rankings = rank_costs(np.array([[[0.0, 1.0, 1.0], [2.0, 2.0, 2.0]]]))
    assert not collect_tied_groups(rankings, merge=True)
    first = rank_costs(np.array([[[0.0, 1.0, 1.0]]]))
    mu = np.array([[0.3, -0.2, 0.5]])
    assert_allclose(build_likelihood(rankings).value(mu), build_likelihood(first).value(mu))


@pytest.mark.slow
def test_the_posterior_of_equal_algorithms_is_as_wide_as_their_estimates_differ():
    """With averaged ties this standard deviation is 0.45 (studies/ties)."""
    rng, z = np.random.default_rng(5), []
    for _ in range(150):
        costs = rng.normal(size=(1, 60, 2))
        costs[0, rng.random(60) < 0.8] = 0.0
        posterior = pb.fit(rank_costs(costs))
        difference = posterior.utilities[:, 0, 0] - posterior.utilities[:, 0, 1]
        weight = posterior.weight[:, 0] / posterior.weight[:, 0].sum()
        mean = weight @ difference
        z.append(mean / np.sqrt(weight @ (difference - mean) ** 2))
    assert 0.8 < np.std(z) < 1.2  # 0.9 to 1.1, and twice the standard error of 150 fits


def test_ties_is_an_option_of_rank_fit_and_races():
    runs = pb.simulation.simulate_runs(np.zeros((2, 3)), 10, 0)
    assert pb.rank(runs).ties == "unordered"
    assert pb.rank(runs, ties="averaged").take([0, 1]).ties == "averaged"
    pb.fit(pb.rank(runs, ties="averaged"))
    replay = pb.replay(runs, fitted(None, {"ties": "averaged"}))
    assert replay.events[0].model.ties == "averaged"
    with pytest.raises(pb.DataError, match="ties='half': expected 'unordered' or 'averaged'"):
        pb.rank(runs, ties="half")
