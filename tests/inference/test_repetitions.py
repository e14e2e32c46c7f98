"""Repetitions of an instance count as much as they tell: known cases, and simulations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polarbear as pb
from polarbear.inference.laplace.independent import fit_independent
from polarbear.inference.laplace.repetitions import adjust_for_repetitions, has_repetitions
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.priors.base import helmert_basis


def make_rankings(rng, n_instances, n_repetitions, effect, agree=False, n_times=1):
    """Rankings by utilities of instances plus chance; all repetitions are equal if they agree."""
    shape = (n_instances, 1 if agree else n_repetitions, len(effect))
    noise = rng.normal(size=(n_instances, 1, len(effect))) * effect + rng.gumbel(size=shape)
    utility = np.broadcast_to(noise, (n_instances, n_repetitions, len(effect)))
    instance, repetition, algorithm = (index.ravel() for index in np.indices(utility.shape))
    runs = pb.Runs.from_frame(
        {
            "algorithm": np.array([*"abcdef"])[algorithm], "instance": instance,
            "repetition": repetition, "time": np.ones(utility.size), "value": -utility.ravel(),
        },
        direction="minimize", until=n_times,
    )  # fmt: skip
    return pb.rank(runs, np.arange(1, n_times + 1))


def adjust(rankings):
    plain = build_likelihood(rankings)
    n_times, n = len(rankings.times), len(rankings.algorithms)
    mode = fit_independent(plain, 1.0, n_times, n).mean
    return plain, adjust_for_repetitions(rankings, plain, mode), mode


@pytest.mark.parametrize("agree", [True, False])
def test_without_repetitions_or_if_they_agree_nothing_changes(agree):
    rng = np.random.default_rng(1)
    rankings = make_rankings(rng, 20, 6 if agree else 1, np.zeros(4), agree=agree)
    assert has_repetitions(rankings) == agree
    plain, adjusted, mode = adjust(rankings)
    mu = mode + rng.normal(size=mode.shape)
    mu -= mu.mean(axis=1, keepdims=True)
    assert_allclose(adjusted.value(mu), plain.value(mu), rtol=1e-6)
    assert_allclose(adjusted.curvature(mu), plain.curvature(mu), rtol=1e-5, atol=1e-6)


def test_derivatives_of_the_adjusted_likelihood():
    rng = np.random.default_rng(2)
    _, adjusted, mode = adjust(make_rankings(rng, 15, 5, np.array([0, 0, 2.0, 2.0]), n_times=2))
    mu = mode + rng.normal(size=mode.shape)
    gradient, curvature = adjusted.gradient(mu), adjusted.curvature(mu)
    for k in range(4):
        step = 1e-5 * (np.arange(4) == k)
        slope = (adjusted.value(mu + step) - adjusted.value(mu - step)) / 2e-5
        assert_allclose(gradient[:, k], slope, atol=1e-5)
        bend = (adjusted.gradient(mu - step) - adjusted.gradient(mu + step)) / 2e-5
        assert_allclose(curvature[:, k], bend, atol=1e-4)
    draws = mu + rng.normal(size=(3, *mu.shape))
    assert_allclose(adjusted.value(draws), [adjusted.value(one) for one in draws])
    assert_allclose(adjusted.gradient(draws), [adjusted.gradient(one) for one in draws])
    single = adjusted.to_single_precision()
    assert_allclose(single.value(draws.astype(np.float32)), adjusted.value(draws), rtol=1e-4)


def test_independent_repetitions_count_in_full_with_many_instances():
    """The curvature is then that of all rankings, and scores of instances have it as covariance."""
    rng = np.random.default_rng(3)
    rankings = make_rankings(rng, 900, 4, np.zeros(3))
    plain, adjusted, mode = adjust(rankings)
    basis = helmert_basis(3)
    before, after = (basis.T @ one.curvature(mode)[0] @ basis for one in (plain, adjusted))
    assert_allclose(after, 4 * before, rtol=0.15, atol=20)


def test_directions_are_told_apart():
    """Repetitions agree about a and b, and not about c and d."""
    rankings = make_rankings(np.random.default_rng(4), 300, 8, np.array([9.0, 9.0, 0.0, 0.0]))
    plain, adjusted, mode = adjust(rankings)

    def gain(first, second):
        line = np.zeros(4)
        line[[first, second]] = 1, -1
        before, after = (
            line @ np.linalg.pinv(one.curvature(mode)[0]) @ line for one in (plain, adjusted)
        )
        return before / after

    assert gain(0, 1) < 1.3
    assert gain(2, 3) > 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("effect", "low"), [pytest.param(0.0, 0.6, marks=pytest.mark.long), (3.0, 0.85)]
)
def test_intervals_by_simulation(effect, low):
    """Repetitions of 30 instances: z has a standard deviation near 1, and not far above it."""
    z = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        rankings = make_rankings(rng, 30, 6, np.full(3, effect), n_times=2)
        mu = pb.fit(rankings, draws=500).utilities[:, 1].astype(np.float64)
        gap = mu[:, 0] - mu[:, 1]
        z.append(gap.mean() / gap.std())
    assert low < np.std(z) < 1.15


def test_the_joint_statement_is_not_more_certain_than_the_least_certain_time():
    rankings = make_rankings(np.random.default_rng(5), 40, 5, np.ones(3), n_times=4)
    posterior = pb.fit(rankings)
    at_times = posterior.prob_better("a", "b")
    assert posterior.prob_dominates("a", "b") <= at_times.min() + 0.02
    assert_allclose(posterior.prob_dominates("a", "b"), at_times.min(), atol=0.06)  # same rankings
    papers = pb.fit(rankings, evidence="rankings")
    assert np.all(np.abs(papers.prob_better("a", "b") - 0.5) <= np.abs(at_times - 0.5) + 0.01)
