"""The Dirichlet model against the Beta distribution and an exact Gibbs sampler."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, special, stats

import reference
from polarbear import Run, Runs, fit, rank
from polarbear.inference.laplace import engine, independent
from polarbear.inference.laplace.conditional import CONVERGED_DECREMENT, NewtonStep, damped_newton
from polarbear.inference.laplace.engine import fit_laplace
from polarbear.inference.laplace.independent import fit_independent
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.inference.plackett_luce.ranking_likelihood import RankingLikelihood
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood
from polarbear.inference.psis import smooth_weights
from polarbear.priors import Dirichlet
from polarbear.simulation import PRIORS, draw_truth, rank_costs, simulate_rankings


def rankings_of(n, n_instances, seed=0, sweep=False):
    rng = np.random.default_rng(seed)
    strength = np.linspace(0, 1.5, n)
    utility = strength + rng.gumbel(size=(n_instances, n))
    if sweep:
        utility[:, 0] = utility.max() + 1
    recorded = [
        Run(f"a{k}", str(i), [1], [utility[i, k]], 1) for i in range(n_instances) for k in range(n)
    ]
    return rank(Runs.from_records(recorded, direction="maximize"), [1])


def ahead(fit):
    """P(i ahead of j) from the Gaussian approximation at the first time."""
    mean, covariance = fit.mean[0], fit.covariance[0]
    variance = np.diag(covariance)[:, None] + np.diag(covariance) - 2 * covariance
    variance[np.diag_indices(len(mean))] = np.inf
    return special.ndtr((mean[:, None] - mean) / np.sqrt(variance))


@pytest.mark.parametrize(
    ("wins", "losses", "limit"), [(3, 5, 0.02), (0, 8, 0.02), (40, 20, 0.005), (1, 0, 0.04)]
)
def test_two_algorithms_have_a_beta_posterior(wins, losses, limit):
    """The Gaussian is near it, less so for a single ranking; weighted draws agree.

    After eight losses in a row the Gaussian still gives 0.019 where the Beta gives 0.002: small in
    difference and large in the tail, which is why decisions must rest on the weighted draws.
    """
    recorded = [
        Run(name, str(i), [1], [float((i < wins) == (name == "a"))], 1)
        for i in range(wins + losses)
        for name in "ab"
    ]
    rankings = rank(Runs.from_records(recorded, direction="maximize"), [1])
    fit = fit_independent(SubsetLikelihood.from_rankings(rankings), 1.0, 1, 2)
    exact = stats.beta(1 + wins, 1 + losses)
    assert abs(ahead(fit)[0, 1] - exact.sf(0.5)) < limit
    evidence = special.betaln(1 + wins, 1 + losses)
    assert abs(fit.log_evidence - evidence) < 0.1
    mu, log_ratio = fit.draw(np.random.default_rng(0), 20_000)
    weight = smooth_weights(log_ratio).weight[:, 0]
    theta = special.expit(mu[:, 0, 0] - mu[:, 0, 1])
    assert abs(weight @ theta - exact.mean()) < 0.01
    assert abs(weight @ (theta > 0.5) - exact.sf(0.5)) < 0.01
    corrected = fit.log_evidence + special.logsumexp(log_ratio[:, 0]) - np.log(20_000)
    assert abs(corrected - evidence) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "n_instances", "sweep", "limit"),
    [
        pytest.param(5, 30, False, 0.02, marks=pytest.mark.long),
        pytest.param(5, 8, True, 0.02, marks=pytest.mark.long),
        pytest.param(7, 200, False, 0.02, marks=pytest.mark.long),
        (4, 3, False, 0.03),
    ],
)
def test_pairs_agree_with_an_exact_sampler(n, n_instances, sweep, limit):
    rankings = rankings_of(n, n_instances, sweep=sweep)
    table = SubsetLikelihood.from_rankings(rankings)
    draws = reference.gibbs(table, alpha=1.0, size=20_000)
    exact = (draws[:, :, None] > draws[:, None, :]).mean(axis=0)
    fit = fit_independent(table, 1.0, 1, n)
    off = ~np.eye(n, dtype=bool)
    assert np.abs(ahead(fit) - exact)[off].max() < limit


def test_many_algorithms_and_warm_starts_end_at_one_mode():
    rankings = rankings_of(12, 40)
    one = fit_independent(SubsetLikelihood.from_rankings(rankings), 0.5, 1, 12)
    other = fit_independent(
        RankingLikelihood.from_rankings(rankings), 0.5, 1, 12, start=one.mean + 3.0
    )
    assert_allclose(one.mean, other.mean, atol=1e-5)
    assert_allclose(one.covariance, other.covariance, atol=1e-5)


@pytest.mark.slow
def test_a_thousand_algorithms():
    rng = np.random.default_rng(1)
    recorded = [
        Run(f"a{k}", str(i), [1], [rng.gumbel() + k / 500], 1)
        for i in range(300)
        for k in rng.choice(1000, 20, replace=False)
    ]
    rankings = rank(Runs.from_records(recorded, direction="maximize"), [1])
    fit = fit_independent(
        RankingLikelihood.from_rankings(rankings), 1.0, 1, len(rankings.algorithms)
    )
    strength = [int(name[1:]) for name in rankings.algorithms]
    assert stats.spearmanr(strength, fit.mean[0]).statistic > 0.5


def test_nobody_is_ahead_without_data_or_with_all_tied():
    tied = [Run(name, str(i), [1], [0.0], 1) for name in "abc" for i in range(50)]
    fit = fit_independent(
        SubsetLikelihood.from_rankings(rank(Runs.from_records(tied, direction="minimize"), [1])),
        1,
        1,
        3,
    )
    assert_allclose(fit.mean, 0.0, atol=1e-9)
    assert_allclose(ahead(fit)[0, 1], 0.5)


def test_the_mode_is_that_of_a_plain_optimiser():
    """BFGS on the literal likelihood of the twin, plus the Dirichlet prior."""
    rankings = rankings_of(4, 12)

    def loss(mu):
        prior = np.sum(mu - special.logsumexp(mu))
        utilities = dict(zip(rankings.algorithms, mu.tolist(), strict=True))
        return -reference.log_likelihood(rankings, utilities, 1.0) - prior

    exact = optimize.minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-6}).x
    for kind in (SubsetLikelihood, RankingLikelihood):
        for start in (0.0, 30.0):
            begin = start * np.linspace(-1, 1, 4)[None]
            mode = fit_independent(kind.from_rankings(rankings), 1.0, 1, 4, start=begin).mean[0]
            assert_allclose(mode, exact - exact.mean(), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("truth", ["Dirichlet", pytest.param("GP", marks=pytest.mark.long)])
def test_a_hundred_algorithms_at_twenty_times_are_fitted(truth):
    """Rounding at one time does not keep the others from their mode.

    The full size, 20 seeds up to 300 algorithms, is benchmarks/many_algorithms.py.
    """
    utilities, _ = draw_truth(PRIORS[truth], np.linspace(0, 1, 20), 100, 0)
    posterior = fit(simulate_rankings(utilities, 100, 0))
    assert posterior.diagnostics.trusted
    assert posterior.diagnostics.measured["Newton decrement"] < CONVERGED_DECREMENT


@pytest.mark.parametrize("offset", [0.0, -1e6, -1e11])
@pytest.mark.parametrize("start", [0.0, 5.0, -40.0])
def test_newton_steps_do_not_stall_where_rounding_hides_the_gain(offset, start):
    """Blocks of two algorithms with wins and losses, from afar and beside a large constant."""
    wins, losses = np.array([3.0, 40.0, 0.5]), np.array([5.0, 1.0, 700.0])

    def value(x):
        gap = x[:, 0]
        return offset - wins * np.logaddexp(0, -gap) - losses * np.logaddexp(0, gap)

    def step(x):
        chance = special.expit(x[:, 0])
        slope = wins - (wins + losses) * chance
        curvature = (wins + losses) * chance * (1 - chance)
        return NewtonStep(
            (slope / curvature)[:, None], slope**2 / curvature, np.abs(slope / curvature)
        )

    mode = damped_newton(np.full((3, 1), start), value, step)
    assert mode.decrement < CONVERGED_DECREMENT
    assert_allclose(mode.state[:, 0], np.log(wins / losses), atol=1e-5)


def test_many_algorithms_have_the_gaussian_of_few(monkeypatch):
    """The coordinates and the start for large n give the same mode, evidence and covariance."""
    costs = np.random.default_rng(3).normal(size=(2, 40, 20)) + np.linspace(0, 2, 20)
    likelihood = build_likelihood(rank_costs(costs))
    few = fit_independent(likelihood, 1.0, 2, 20)
    monkeypatch.setattr(independent, "MAX_DENSE_ALGORITHMS", 10)
    many = fit_independent(likelihood, 1.0, 2, 20)
    assert_allclose(many.warm_start, few.warm_start, atol=1e-6)  # means are shifted by their draws
    assert_allclose(many.covariance, few.covariance, atol=1e-6)
    assert abs(many.log_evidence - few.log_evidence) < 1e-6


def test_the_mean_without_weights_is_that_of_weighted_draws(monkeypatch):
    rankings = rank_costs(np.random.default_rng(4).normal(size=(2, 40, 14)) + np.arange(14) / 5)
    weighted = fit_laplace(rankings, Dirichlet())
    monkeypatch.setattr(engine, "MAX_WEIGHTED_TERMS", 0)
    plain = fit_laplace(rankings, Dirichlet())
    assert "without importance weights" in plain.diagnostics.notes[0]
    assert_allclose(plain.utilities.mean(axis=0), weighted.utilities.mean(axis=0), atol=0.05)
    difference = plain.prob_better() - weighted.prob_better()
    assert np.abs(difference).max() < 0.03
    assert len(weighted.draws) < len(weighted.utilities) == 6000


def test_equal_times_have_equal_posteriors():
    costs = np.random.default_rng(5).normal(size=(8, 30, 4)) + np.arange(4) / 4
    posterior = fit_laplace(rank_costs(costs.repeat(3, axis=0)), Dirichlet())
    apart = fit_laplace(rank_costs(costs), Dirichlet())
    assert_allclose(posterior.prob_better()[1::3], apart.prob_better(), atol=1e-6)
    assert (posterior.utilities[:, ::3] == posterior.utilities[:, 2::3]).all()
    ahead = posterior.prob_dominates()
    assert_allclose(ahead, apart.prob_dominates(), atol=0.03)


def test_gradients_far_from_the_mode_stay_finite():
    """In single precision exponentials of utilities far apart vanish, and choices divide by 0."""
    rankings = simulate_rankings(np.array([[2.0, 0.0, -2.0]]), 5)
    fit = fit_independent(build_likelihood(rankings), 0.01, 1, 3)
    noise = np.array([[[40.0, -40.0]], [[400.0, 400.0]], [[-400.0, 4.0]]])
    assert np.isfinite(fit.gradient(noise)).all()
    near = 0.1 * np.sign(noise)
    single = fit.gradient(near)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polarbear.inference.laplace.independent.MAX_SINGLE_RANGE", 0.0)
        assert_allclose(fit.gradient(near), single, atol=1e-4)
