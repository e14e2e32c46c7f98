"""The Gaussian around the mode: two kinds of algebra, quadrature, and hard data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate

from polarbear.inference.laplace.banded import fit_local, fit_markov
from polarbear.inference.laplace.dense import fit_dense
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.priors.bspline import BSpline
from polarbear.priors.gp import GP, HSGP, SparseGP
from polarbear.priors.random_walk import RandomWalk
from polarbear.simulation import rank_costs

HYPER = {"scale": 1.2, "length": 0.3}
MARKOV = [GP("matern32"), GP("matern52"), RandomWalk()]


def simulated(n, n_instances, n_times, seed=0, sweep=False):
    """Complete rankings from smoothly moving utilities; with a sweep the first always wins."""
    rng = np.random.default_rng(seed)
    times = np.linspace(0, 1, n_times) if n_times > 1 else np.zeros(1)
    phase = rng.uniform(0, 2 * np.pi, n)
    mu = np.sin(3 * times[:, None] + phase)
    utility = mu[:, None, :] + rng.gumbel(size=(n_times, n_instances, n))
    if sweep:
        utility[..., 0] = utility.max() + 1
    return times, rank_costs(-utility, times=times)


@pytest.mark.parametrize("prior", MARKOV)
@pytest.mark.parametrize("n_times", [1, 2, 15])
def test_chain_and_dense_algebra_agree(prior, n_times):
    times, rankings = simulated(4, 10, n_times)
    data = build_likelihood(rankings)
    full = fit_dense(data, prior.factor(times, HYPER), 4, None)
    banded = fit_markov(data, prior.chain(times, HYPER), 4, None)
    assert_allclose(full.log_evidence, banded.log_evidence, atol=1e-3)
    assert_allclose(full.mean, banded.mean, atol=1e-3)
    assert_allclose(full.covariance, banded.covariance, atol=1e-3)


@pytest.mark.parametrize("degree", [1, 3])
def test_local_and_dense_algebra_agree(degree):
    times, rankings = simulated(4, 10, 60)
    data = build_likelihood(rankings)
    factor = BSpline(degree=degree).factor(times, HYPER)
    full, narrow = fit_dense(data, factor, 4, None), fit_local(data, factor, 4, None)
    assert_allclose(full.log_evidence, narrow.log_evidence, atol=1e-3)
    assert_allclose(full.mean, narrow.mean, atol=1e-4)
    assert_allclose(full.covariance, narrow.covariance, atol=1e-4)
    noise = np.random.default_rng(0).standard_normal((3, *narrow.shape))
    step = 1e-2 * np.eye(narrow.shape[1])[7]
    up, down = (
        narrow.log_ratio(x, narrow.to_utilities(x)) - 0.5 * np.sum(x**2, axis=-1)
        for x in (noise + step, noise - step)
    )
    assert_allclose(narrow.gradient(noise)[..., 7], (up - down) / 2e-2, atol=2e-2)


def test_a_wide_factor_is_not_local():
    times, rankings = simulated(4, 10, 12)
    assert fit_local(build_likelihood(rankings), HSGP().factor(times, HYPER), 4, None) is None


@pytest.mark.parametrize("prior", MARKOV)
def test_the_mode_is_where_the_slope_ends(prior):
    times, rankings = simulated(4, 10, 8)
    data = build_likelihood(rankings)
    found = fit_markov(data, prior.chain(times, HYPER), 4, None)
    covariance = prior.factor(times, HYPER) @ prior.factor(times, HYPER).T
    # Stationarity without any algebra of the engine: K times the slope gives the mode back.
    assert_allclose(covariance @ data.gradient(found.mean), found.mean, atol=1e-4)
    assert found.decrement < 1e-6


@pytest.mark.parametrize("prior", [*MARKOV, HSGP(), SparseGP(), BSpline()])
def test_a_start_from_elsewhere_ends_at_the_same_mode(prior):
    times, rankings = simulated(4, 10, 40)
    data = build_likelihood(rankings)

    def at(hyper, start):
        states = prior.chain(times, hyper)
        if states is None:
            factor = prior.factor(times, hyper)
            return fit_local(data, factor, 4, start) or fit_dense(data, factor, 4, start)
        return fit_markov(data, states, 4, start)

    other = at({"scale": 0.4, "length": 0.9}, None)
    cold, warm = at(HYPER, None), at(HYPER, other.warm_start)
    assert_allclose(warm.mean, cold.mean, atol=1e-4)
    assert_allclose(warm.log_evidence, cold.log_evidence, atol=1e-6)


@pytest.mark.parametrize("n_times", [1, 2])
def test_evidence_and_its_correction_against_quadrature(n_times):
    """Two algorithms: the integral can be done on a grid."""
    times, rankings = simulated(2, 6, n_times, seed=3)
    data = build_likelihood(rankings)
    factor = RandomWalk().factor(times, HYPER)
    found = fit_dense(data, factor, 2, None)

    def density(*z):
        eta = factor @ np.array(z)
        mu = np.stack([eta, -eta], axis=1) / np.sqrt(2)
        prior = np.exp(-0.5 * np.sum(np.square(z))) / (2 * np.pi) ** (n_times / 2)
        return np.exp(data.value(mu).sum()) * prior

    exact, _ = integrate.nquad(density, [(-8, 8)] * n_times)
    assert abs(found.log_evidence - np.log(exact)) < 0.1
    _, log_ratio = found.draw(np.random.default_rng(1), 20_000)
    corrected = found.log_evidence + np.log(np.mean(np.exp(log_ratio)))
    assert abs(corrected - np.log(exact)) < 0.005


@pytest.mark.parametrize("prior", [GP(), RandomWalk(), HSGP()])
def test_draws_have_the_stated_mean_and_covariance(prior):
    times, rankings = simulated(3, 10, 6)
    data = build_likelihood(rankings)
    states = prior.chain(times, HYPER)
    found = (
        fit_dense(data, prior.factor(times, HYPER), 3, None)
        if states is None
        else fit_markov(data, states, 3, None)
    )
    mu, _ = found.draw(np.random.default_rng(2), 40_000)
    error = 5 * np.sqrt(found.covariance.max() / 40_000)
    assert_allclose(mu.mean(axis=0), found.mean, atol=error)
    for t in range(6):
        assert_allclose(np.cov(mu[:, t].T), found.covariance[t], atol=0.02)
    assert_allclose(mu.sum(axis=-1), 0.0, atol=1e-9)


@pytest.mark.parametrize("n_instances", [1, 5, 200])
def test_an_algorithm_that_always_wins_has_a_finite_lead(n_instances):
    times, rankings = simulated(5, n_instances, 10, sweep=True)
    found = fit_markov(build_likelihood(rankings), GP().chain(times, HYPER), 5, None)
    assert np.isfinite(found.log_evidence)
    assert np.all(found.mean[:, 0] > found.mean[:, 1:].max(axis=1))
    assert np.all(np.linalg.eigvalsh(found.covariance) > -1e-9)


def test_without_data_the_posterior_is_the_prior():
    nothing = build_likelihood(rank_costs(np.empty((5, 0, 3))))
    found = fit_markov(nothing, GP().chain(np.linspace(0, 1, 5), HYPER), 3, None)
    assert_allclose(found.log_evidence, 0.0, atol=1e-8)
    assert_allclose(found.mean, 0.0)
    # A variance of 1.2^2 in each of two orthonormal directions: 2/3 of it for each algorithm.
    assert_allclose(found.covariance[2], 1.44 * (np.eye(3) - 1 / 3), atol=1e-8)
