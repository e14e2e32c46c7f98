"""Instances as the units of evidence: against what is known of persistent and of fresh luck."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polarbear as pb
from polarbear.inference.draws import compute_moments, match_moments
from polarbear.inference.laplace import cluster_robust as evidence
from polarbear.inference.laplace import sampling
from polarbear.inference.laplace.cluster_robust import (
    compute_instance_scores,
    copula_noise,
    sandwich_noise,
    shrinkage_at_times,
)
from polarbear.inference.laplace.dense import fit_dense
from polarbear.inference.laplace.engine import fit_laplace
from polarbear.inference.laplace.independent import fit_independent
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.priors.base import helmert_basis
from polarbear.simulation import PRIORS, rank_costs, simulate_rankings

TEMPORAL = [prior for name, prior in PRIORS.items() if "Dirichlet" not in name]


def persistent(n_times, instances, n=3, seed=0):
    """Rankings that never change: one look is as good as many."""
    luck = np.random.default_rng(seed).gumbel(size=(1, instances, n))
    return rank_costs(-np.repeat(luck + np.linspace(0, 0.6, n), n_times, axis=0))


def test_copula_noise_is_standard_normal_at_each_time_and_persists_as_runs_do():
    for rankings, expected in (
        (persistent(6, 60), 1.0),
        (simulate_rankings(np.zeros((6, 3)), 400), 0.0),
    ):
        one = fit_independent(build_likelihood(rankings), 1.0, 6, 3)
        rng = np.random.default_rng(1)
        scores = compute_instance_scores(rankings, one.mean, rng)
        noise_transform = copula_noise(one, scores, shrinkage_at_times(rankings))
        noise = noise_transform.transform(rng.standard_normal((40_000, noise_transform.n_inputs)))
        for t in range(6):
            assert_allclose(np.cov(noise[:, t].T), np.eye(2), atol=0.04)
        lead = (one.to_utilities(noise) - one.mean)[..., 0]
        assert abs(np.corrcoef(lead[:, 0], lead[:, 5])[0, 1] - expected) < 0.15


def test_the_marginals_of_independent_times_stay_the_same():
    rankings = persistent(5, 20)
    model = pb.priors.Dirichlet(1.001)  # the default's ratings are counted
    ours, paper = pb.fit(rankings, model), pb.fit(rankings, evidence="rankings")
    assert_allclose(ours.prob_better(), paper.prob_better(), atol=0.01)
    assert_allclose(ours.mean(), paper.mean(), atol=0.01)
    assert_allclose(ours.interval(), paper.interval(), atol=0.03)


def test_rankings_that_never_change_are_as_sure_of_all_times_as_of_one():
    for n_times in (2, 30):
        posterior = pb.fit(persistent(n_times, 20))
        assert posterior.prob_dominates("a3", "a1") > posterior.prob_better("a3", "a1")[0] - 0.02
    product = pb.fit(persistent(30, 20), evidence="rankings")
    assert product.prob_dominates("a3", "a1") < 0.9 * product.prob_better("a3", "a1")[0]


@pytest.mark.slow
@pytest.mark.parametrize("prior", TEMPORAL, ids=lambda p: type(p).__name__)
def test_looking_more_often_makes_nobody_more_certain(prior):
    few, many = (pb.fit(persistent(n_times, 40), prior=prior) for n_times in (5, 40))
    assert_allclose(few.prob_better("a3", "a1")[0], many.prob_better("a3", "a1")[0], atol=0.06)
    width = [np.ptp(p.interval("a3"), axis=0).mean() for p in (few, many)]
    assert 0.8 < width[1] / width[0] < 1.25
    paper = pb.fit(persistent(40, 40), prior=prior, evidence="rankings")
    assert np.ptp(paper.interval("a3"), axis=0).mean() < 0.75 * width[1]


@pytest.mark.parametrize("prior", TEMPORAL, ids=lambda p: type(p).__name__)
def test_with_fresh_luck_at_each_time_little_changes(prior):
    rankings = simulate_rankings(np.linspace(0, 1, 3) + np.zeros((12, 1)), 100)
    ours, paper = pb.fit(rankings, prior=prior), pb.fit(rankings, prior=prior, evidence="rankings")
    assert_allclose(ours.mean(), paper.mean(), atol=0.02)
    ratio = np.ptp(ours.interval(), axis=0).mean() / np.ptp(paper.interval(), axis=0).mean()
    assert 0.9 < ratio < 1.35


def test_a_sandwich_is_the_product_of_its_three_matrices():
    """Against the formula in plain matrices: H^-1 (J + I) H^-1 in whitened coefficients."""
    rankings = persistent(4, 30)
    data, times = build_likelihood(rankings), np.linspace(0, 1, 4)
    prior, hyper = pb.priors.HSGP(), {"scale": 1.0, "length": 0.4}
    factor = prior.factor(times, hyper)
    one = fit_dense(data, factor, 3, None)
    scores = compute_instance_scores(rankings, one.mean, np.random.default_rng(0))
    noise_transform = sandwich_noise(one, data, scores, np.zeros(4))
    whole = np.kron(factor, helmert_basis(3))  # coefficients -> utilities, all times
    curvature = np.zeros((12, 12))
    for t, block in enumerate(data.curvature(one.mean)):
        curvature[3 * t : 3 * t + 3, 3 * t : 3 * t + 3] = block
    inverse = np.linalg.inv(whole.T @ curvature @ whole + np.eye(whole.shape[1]))
    pulled = scores.reshape(30, -1) @ whole
    expected = whole @ inverse @ (pulled.T @ pulled + np.eye(len(inverse))) @ inverse @ whole.T
    rng = np.random.default_rng(1)
    drawn = one.to_utilities(
        noise_transform.transform(rng.standard_normal((60_000, noise_transform.n_inputs)))
    )
    found = np.cov(drawn.reshape(len(drawn), -1).T)
    assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.slow
def test_one_instance_is_not_certain_of_anything():
    for prior in PRIORS.values():
        posterior = pb.fit(persistent(5, 1), prior=prior)
        assert posterior.prob_better().max() < 0.98
        assert posterior.pareto(0.99) == posterior.algorithms


def test_only_some_of_very_many_instances_are_looked_at(monkeypatch):
    rankings = persistent(3, 300)
    scores = compute_instance_scores(rankings, np.zeros((3, 3)), np.random.default_rng(0))
    monkeypatch.setattr(evidence, "MAX_SCORE_INSTANCES", 100)
    some = compute_instance_scores(rankings, np.zeros((3, 3)), np.random.default_rng(0))
    assert (len(scores), len(some)) == (300, 100)
    flat, fewer = scores.reshape(300, -1), some.reshape(100, -1)
    assert_allclose(fewer.T @ fewer, flat.T @ flat, rtol=0.5, atol=15)


def test_draws_are_moved_to_other_moments():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(5000, 2, 3)).astype(np.float32)
    weight = rng.uniform(0.5, 1.5, size=(5000, 2))
    want = compute_moments(draws, weight)
    found = compute_moments(match_moments(draws, compute_moments(draws), want))
    assert_allclose(found.mean, want.mean, atol=1e-5)
    assert_allclose(found.covariance, want.covariance, atol=1e-4)


def test_other_engines_count_rankings():
    rankings = persistent(2, 5)
    with pytest.raises(pb.DataError, match="needs method=.laplace., got .nuts."):
        pb.fit(rankings, method="nuts", evidence="instances")
    with pytest.raises(pb.DataError, match="evidence='all'"):
        pb.fit(rankings, evidence="all")
    assert fit_laplace(rankings, PRIORS["GP"], evidence="rankings").evidence == "rankings"


@pytest.mark.parametrize("prior", ["Dirichlet", "HierarchicalDirichlet"])
@pytest.mark.parametrize("every", [1, 2])
def test_times_at_which_draws_were_moved_stay_with_their_curves(monkeypatch, prior, every):
    """All times, or every second one, are moved: they still go together, and with the others."""
    rankings = persistent(8, 30)
    sound = pb.fit(rankings, prior=PRIORS[prior], draws=4000)
    measured = sampling.standard_errors
    monkeypatch.setattr(
        sampling,
        "standard_errors",
        lambda sample: np.where(np.arange(8) % every == 0, 1.0, measured(sample)),
    )
    moved = pb.fit(rankings, prior=PRIORS[prior], draws=4000)
    assert any(f"at {8 // every} of 8 times" in note for note in moved.diagnostics.notes)
    assert_allclose(moved.prob_better(), sound.prob_better(), atol=0.03)
    for a, b in (("a3", "a1"), ("a2", "a1")):
        assert_allclose(moved.prob_dominates(a, b), sound.prob_dominates(a, b), atol=0.04)
    for name, share in sound.prob_in_pareto().items():
        assert abs(moved.prob_in_pareto()[name] - share) < 0.06


def test_a_single_instance_says_the_same_however_often_it_is_looked_at():
    few, many = (pb.fit(persistent(n_times, 1)).prob_in_pareto() for n_times in (5, 60))
    for name, share in few.items():
        assert abs(many[name] - share) < 0.05


@pytest.mark.parametrize("instances", [1, 3, 6])
def test_unanimous_rankings_that_never_change_are_one_statement(instances):
    """Nothing speaks for luck that changes: all times at once are as likely as one."""
    costs = np.tile(np.arange(3.0), (12, instances, 1))
    for names in (("a", "b", "c"), ("c", "b", "a")):
        turned = costs if names[0] == "a" else costs[..., ::-1]
        posterior = pb.fit(rank_costs(turned, algorithms=("x", "y", "z")))
        first, second = ("y", "z") if names[0] == "a" else ("y", "x")
        all_times = posterior.prob_dominates(first, second)
        assert abs(all_times - posterior.prob_better(first, second)[0]) < 0.03


def test_doubt_counts_those_that_speak():
    costs = np.random.default_rng(0).normal(size=(2, 20, 3))
    costs[1, 3:, 1:] = np.nan
    assert_allclose(shrinkage_at_times(rank_costs(costs)), [4 / 23, 4 / 6])
