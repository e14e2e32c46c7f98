"""The fast engine against closed forms, exact samplers and long NUTS."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

import reference
from polarbear import priors
from polarbear.inference.laplace.engine import estimate_utilities
from polarbear.inference.laplace.engine import fit_laplace as fit_default
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood
from polarbear.readers import read_pairs
from polarbear.simulation import PRIORS, simulate_rankings

# What is compared with other engines and with exact answers: every ranking is evidence.
fit_laplace = partial(fit_default, evidence="rankings")
STUDY = Path(__file__).parents[2] / "studies" / "accuracy"


def duel(wins, losses):
    """Two algorithms at one time; the first wins some."""
    utilities = np.zeros((1, wins + losses, 2))
    utilities[0, :wins, 0] = utilities[0, wins:, 1] = 1e3
    return simulate_rankings(utilities, wins + losses)


def off_diagonal(values):
    return values[..., ~np.eye(values.shape[-1], dtype=bool)]


@pytest.mark.parametrize(
    ("wins", "losses"), [(0, 8), (8, 0), (3, 5), (40, 20), (1, 0), (0, 1), (0, 100)]
)
def test_two_algorithms_have_a_beta_posterior(wins, losses):
    """Also in the tail, where decisions are made and a plain Gaussian is ten times too timid."""
    found = fit_laplace(duel(wins, losses), priors.Dirichlet())
    exact = stats.beta(1 + wins, 1 + losses).sf(0.5)
    assert_allclose(found.prob_better("a1", "a2"), exact, atol=0.012)
    assert_allclose(found.prob_better("a1", "a2"), exact, atol=0.003 + 0.5 * min(exact, 1 - exact))
    assert_allclose(found.mean("a1"), (1 + wins) / (2 + wins + losses), atol=0.01)


@pytest.mark.parametrize(("wins", "losses"), [(0, 8), (3, 5), (40, 20)])
def test_the_estimate_without_draws_is_the_mode(wins, losses):
    (utilities,) = estimate_utilities(duel(wins, losses), priors.Dirichlet())
    assert_allclose(utilities[0] - utilities[1], np.log((1 + wins) / (1 + losses)), atol=1e-4)


def test_the_estimate_without_draws_is_near_the_mean_with_hyperparameters():
    rankings = simulate_rankings(np.array([[0.0, 1.0, 2.0]] * 4), 60, seed=3)
    prior = priors.RandomWalk()
    mean = fit_laplace(rankings, prior, draws=500).utilities.mean(axis=0)
    mean = mean - mean.mean(axis=1, keepdims=True)
    assert_allclose(estimate_utilities(rankings, prior), mean, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "instances", [6, *(pytest.param(k, marks=pytest.mark.long) for k in (1, 40))]
)
def test_it_agrees_with_an_exact_sampler(instances):
    mu = np.array([[3.0, 0.0, 0.2, 0.4]])
    rankings = simulate_rankings(mu, instances, seed=2)
    exact = reference.gibbs(SubsetLikelihood.from_rankings(rankings), 1.0, 20_000)
    expected = np.mean(exact[:, :, None] > exact[:, None, :], axis=0)
    found = fit_laplace(rankings, priors.Dirichlet())
    assert found.diagnostics.trusted
    assert_allclose(off_diagonal(found.prob_better()[0]), off_diagonal(expected), atol=0.015)
    assert_allclose(found.mean()[0], exact.mean(axis=0), atol=0.01)
    ends = np.quantile(exact, [0.025, 0.975], axis=0)
    assert_allclose(found.interval()[:, 0], ends, atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["middle", pytest.param("sweep", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", PRIORS)
def test_it_agrees_with_long_nuts(scenario, name):
    """The larger scenario is in the table of studies/accuracy."""
    if not STUDY.exists():
        pytest.skip("the studies are not beside the tests")
    from accuracy.scenarios import SCENARIOS

    found = fit_laplace(SCENARIOS[scenario](), PRIORS[name])
    with np.load(STUDY / "reference" / f"{scenario}-{name}.npz") as nuts:
        error = np.abs(off_diagonal(found.prob_better() - nuts["ahead"]))
        assert error.max() <= 0.02
        assert error.mean() <= 0.005
        for i, a in enumerate(found.algorithms):
            for j, b in enumerate(found.algorithms):
                if i != j:
                    assert abs(found.prob_dominates(a, b) - nuts["always"][i, j]) <= 0.02
    assert found.diagnostics.trusted


@pytest.mark.parametrize("name", PRIORS)
def test_the_order_of_the_algorithms_does_not_matter(name):
    mu = np.sin(np.linspace(0, 3, 8)[:, None] + np.arange(4))
    rankings = simulate_rankings(mu, 12, seed=3)
    turned = replace(
        rankings, algorithms=rankings.algorithms[::-1], algorithm=3 - rankings.algorithm
    )
    ours, theirs = fit_laplace(rankings, PRIORS[name]), fit_laplace(turned, PRIORS[name])
    assert_allclose(ours.prob_better("a1", "a3"), theirs.prob_better("a1", "a3"), atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIORS)
def test_a_warm_start_changes_the_way_and_not_the_answer(name):
    mu = np.sin(np.linspace(0, 3, 10)[:, None] + np.arange(4))
    before = fit_laplace(simulate_rankings(mu[:, :3], 8, seed=3), PRIORS[name])
    rankings = simulate_rankings(mu, 16, seed=4)
    cold, warm = (
        fit_laplace(rankings, PRIORS[name]),
        fit_laplace(rankings, PRIORS[name], start=before),
    )
    assert_allclose(warm.prob_better(), cold.prob_better(), atol=0.015)


def test_the_same_seed_gives_the_same_posterior_and_another_nearly_so():
    rankings = simulate_rankings(np.zeros((5, 3)), 10)
    first, again = (fit_laplace(rankings, priors.GP(), seed=5) for _ in range(2))
    other = fit_laplace(rankings, priors.GP(), seed=6)
    assert first == again
    assert first != other
    assert_allclose(first.prob_better(), other.prob_better(), atol=0.01)


def test_a_temporal_prior_uses_the_neighbours_and_an_independent_one_does_not():
    mu = np.tile([[0.5, 0.0]], (20, 1))
    rankings = simulate_rankings(mu, 10, seed=1)
    width = {
        name: np.ptp(fit_laplace(rankings, PRIORS[name]).interval("a1"), axis=0).mean()
        for name in ("Dirichlet", "GP")
    }
    assert width["GP"] < 0.6 * width["Dirichlet"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["Dirichlet", "HierarchicalDirichlet", pytest.param("GP", marks=pytest.mark.long), "BSpline"],
)
def test_draws_that_weights_cannot_mend_are_moved(name, monkeypatch):
    """With a limit that all weights fail, Hamiltonian Monte Carlo must come to the same answer."""
    mu = np.sin(np.linspace(0, 3, 6)[:, None] + np.arange(4))
    rankings = simulate_rankings(mu, 20, seed=3)
    weighted = fit_laplace(rankings, PRIORS[name])
    monkeypatch.setattr("polarbear.inference.laplace.sampling.MAX_K_HAT", -100.0)
    moved = fit_laplace(rankings, PRIORS[name], draws=8_000)
    assert moved.mixture is None
    assert moved.diagnostics.trusted
    assert "moved" in str(moved.diagnostics)
    assert_allclose(moved.prob_better(), weighted.prob_better(), atol=0.025)
    assert_allclose(moved.mean(), weighted.mean(), atol=0.01)


def test_hyperparameters_beyond_the_grid_are_a_problem(monkeypatch):
    monkeypatch.setattr("polarbear.inference.laplace.hypergrid.MAX_POINTS", 3)
    found = fit_laplace(simulate_rankings(np.zeros((4, 3)), 5), priors.GP())
    assert not found.diagnostics.trusted
    assert "beyond the grid" in str(found.diagnostics)


@pytest.mark.parametrize("kernel", ["matern32", "matern52", "squared-exponential"])
@pytest.mark.parametrize("n_times", [2, 40, pytest.param(300, marks=pytest.mark.long)])
def test_fine_grids_and_smooth_kernels_do_not_drown_in_rounding(kernel, n_times):
    times = np.linspace(0, 1, n_times)
    rankings = simulate_rankings(np.sin(3 * times[:, None] + np.arange(3)), 10, times=times)
    found = fit_laplace(rankings, priors.GP(kernel), draws=1000)
    assert found.diagnostics.trusted


def test_times_that_nearly_coincide_do_no_harm():
    times = np.array([0.0, 1e-7, 0.5, 0.5 + 1e-9, 1.0])
    for prior in (priors.GP(), priors.GP("matern52"), priors.RandomWalk()):
        rankings = simulate_rankings(np.zeros((5, 3)), 10, times=times)
        found = fit_laplace(rankings, prior)
        assert found.diagnostics.trusted
        assert_allclose(
            found.prob_better("a1", "a2")[0], found.prob_better("a1", "a2")[1], atol=0.01
        )


def beta_binomial(kappa, wins, losses):
    """The log-evidence of duels at many times under Dirichlet(kappa / 2, kappa / 2)."""
    a = kappa[:, None] / 2
    return (special.betaln(a + wins, a + losses) - special.betaln(a, a)).sum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_times", "instances"),
    [(20, 2), *(pytest.param(60, k, marks=pytest.mark.long) for k in (2, 4))],
)
def test_a_shared_kappa_agrees_with_quadrature(n_times, instances):
    """Two algorithms: everything is known in closed form, given kappa. Two rankings at each of
    many times are where Laplace's evidence is at its worst."""
    rng = np.random.default_rng(3)
    wins = rng.binomial(instances, rng.beta(0.3, 0.3, n_times))
    costs = np.zeros((n_times, instances, 2))
    for t, won in enumerate(wins):
        costs[t, :won, 0], costs[t, won:, 1] = 1e3, 1e3
    found = fit_laplace(simulate_rankings(costs, instances), priors.HierarchicalDirichlet())
    u = np.linspace(-9, 6, 3000)
    log_density = beta_binomial(np.exp(u), wins, instances - wins) + np.log(0.1) - 0.1 * np.exp(u)
    weight = np.exp(log_density + u - (log_density + u).max())
    weight /= weight.sum()
    quantile = np.exp(np.interp([0.1, 0.5, 0.9], np.cumsum(weight), u))
    ahead = np.array(
        [
            weight @ stats.beta(np.exp(u) / 2 + w, np.exp(u) / 2 + instances - w).sf(0.5)
            for w in range(instances + 1)
        ]
    )
    assert_allclose(found.prob_better("a1", "a2"), ahead[wins], atol=0.02)
    ours = np.quantile(found.hyper["kappa"], [0.1, 0.5, 0.9])
    assert_allclose(np.log(ours), np.log(quantile), atol=0.35)


@pytest.mark.long
def test_a_grid_that_laplace_puts_in_the_wrong_place_is_laid_again():
    """One ranking at each time and a coefficient for each: the data hardly know the scale.

    NUTS (8,000 draws) has log scales of -1.35, -.08 and 1.25, and probabilities of .72 and .28. Our
    .9 quantile is .9, because draws stay at their grid point; it moves no probability.
    """
    prior = priors.BSpline(number=30, degree=1, scale=priors.LogNormal(0.0, 1.0))
    costs = np.zeros((30, 1, 2))
    costs[::2, 0, 0] = costs[1::2, 0, 1] = 1e3
    found = fit_laplace(simulate_rankings(costs, 1), prior)
    low, middle, high = np.quantile(np.log(found.hyper["scale"]), [0.1, 0.5, 0.9])
    assert_allclose([low, middle], [-1.35, -0.08], atol=0.15)
    assert 0.8 < high < 1.35
    assert_allclose(found.prob_better("a1", "a2"), np.tile([0.72, 0.28], 15), atol=0.02)


def test_the_tail_is_never_said_to_be_empty():
    """Probabilities of exactly 0 or 1 would be claims that no number of draws can make."""
    for wins in (12, 30, 300):
        ahead = fit_laplace(duel(wins, 0), priors.Dirichlet()).prob_better("a1", "a2")
        assert 1 - 1e-3 < ahead[0] < 1.0


def test_votes_between_many_models_need_no_hmc():
    """Weights of Gaussians at the mode would be uneven here; those at the mean are not."""
    rng, n, votes = np.random.default_rng(0), 129, 2000
    a = rng.integers(n, size=votes)
    b = (a + 1 + rng.integers(n - 1, size=votes)) % n
    strength = rng.normal(size=n)
    first_wins = strength[a] - strength[b] + rng.logistic(size=votes) > 0
    names, sides = np.array([f"m{k:03}" for k in range(n)]), np.array(["model_b", "model_a"])
    columns = {"model_a": names[a], "model_b": names[b], "winner": sides[first_wins.astype(int)]}
    posterior = fit_default(read_pairs(columns), priors.Dirichlet())
    assert posterior.diagnostics.trusted
    assert not any("HMC" in note for note in posterior.diagnostics.notes)
    assert np.corrcoef(posterior.utilities.mean(axis=(0, 1)), strength)[0, 1] > 0.9
