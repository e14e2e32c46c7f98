"""Bent Gaussians: densities, slopes, and what they are for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polarbear.inference.laplace.independent import fit_independent
from polarbear.inference.laplace.mixture import GridMixture, _compute_gradient, _map_mixed_noise
from polarbear.inference.laplace.skew import QUANTILE_NODES, SkewTransform
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood
from polarbear.simulation import simulate_rankings


@pytest.mark.parametrize("third", [-1.2, -0.3, 0.2, 0.8])
def test_bent_noise_has_the_stated_density(third):
    """Weights that take it back to the normal must find the normal's moments."""
    skew = SkewTransform(np.array([[[0.6, 0.8]]]), np.array([[[0.6, 0.8]]]), np.array([[third]]))
    noise = np.random.default_rng(0).standard_normal((400_000, 1, 2))
    bent = skew.transform(noise)
    weight = np.exp(bent.log_ratio[:, 0])
    inside = np.all(np.abs(bent.noise[:, 0]) < 2, axis=1)
    assert_allclose(np.mean(weight * inside), 0.9545**2, atol=0.02)
    across = bent.noise[:, 0] @ [0.8, -0.6]
    assert_allclose(across, noise[:, 0] @ [0.8, -0.6], atol=1e-9)
    assert_allclose(bent.noise - noise, bent.utility_shift, atol=1e-9)


def sweep():
    utilities = np.zeros((2, 6, 4))
    utilities[..., 0], utilities[..., 3] = 1e3, -1e3
    return simulate_rankings(utilities, 6)


class Precise(SubsetLikelihood):
    """Differences of single precision would drown in rounding."""

    def to_single_precision(self):
        return self


def test_the_slope_is_that_of_the_density():
    one = fit_independent(Precise(**vars(SubsetLikelihood.from_rankings(sweep()))), 0.5, 2, 4)
    assert one.skew is not None
    noise = np.random.default_rng(1).standard_normal((5, 2, 3))
    component = np.zeros(5, dtype=np.intp)

    def log_density(x):
        return _map_mixed_noise([one], component, x)[1] - 0.5 * np.sum(x**2, axis=-1)

    slope, h = _compute_gradient([one], component, noise), 1e-5
    for k in range(3):
        step = np.zeros(3)
        step[k] = h
        expected = (log_density(noise + step) - log_density(noise - step)) / (2 * h)
        assert_allclose(slope[..., k], expected, atol=1e-4, rtol=1e-4)


def test_a_sweep_needs_no_more_than_a_few_draws():
    one = fit_independent(build_likelihood(sweep()), 1.0, 2, 4)
    plain = GridMixture([one], np.ones(1), np.zeros(1))
    noise = np.random.default_rng(2).standard_normal((4000, 2, 3))
    bent = _map_mixed_noise(plain.components, np.zeros(4000, dtype=np.intp), noise)[1]
    straight = one.log_ratio(noise, one.to_utilities(noise))
    assert np.exp(bent).std() < 0.5 * np.exp(straight).std()


@pytest.mark.parametrize("third", [-0.15, 0.9, -2.0])
def test_many_are_bent_as_few_are(third):
    """Between the nodes, at the edge and beyond: a map that few draws get exactly."""
    skew = SkewTransform(np.ones((1, 1, 1)), np.ones((1, 1, 1)), np.array([[third]]))
    noise = np.concatenate([np.random.default_rng(1).normal(size=997), [-7.0, 7.0, -7.3]])
    many = skew.transform(noise[:, None, None])
    few = [skew.transform(noise[k : k + 100, None, None]) for k in range(0, 1000, 100)]
    assert len(noise) > len(QUANTILE_NODES) > 100
    assert_allclose(many.noise, np.concatenate([one.noise for one in few]), atol=2e-6)
    assert_allclose(many.log_ratio, np.concatenate([one.log_ratio for one in few]), atol=2e-5)
