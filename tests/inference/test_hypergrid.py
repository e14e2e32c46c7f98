import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from polarbear.inference.laplace.hypergrid import build_hypergrid


def explored(log_density, start):
    return build_hypergrid(lambda u, _: (float(log_density(u)), u), start)


@pytest.mark.parametrize("sd", [0.1, 0.5, 1.3])
def test_one_dimension(sd):
    grid = explored(lambda u: stats.norm(1.0, sd).logpdf(u[0]), [0.0])
    u = grid.point[:, 0]
    mean = grid.weight @ u
    assert_allclose(mean, 1.0, atol=0.02 * sd)
    assert_allclose(np.sqrt(grid.weight @ (u - mean) ** 2), sd, rtol=0.02)
    assert grid.boundary_mass < 0.01
    assert len(u) < 25


def test_a_skewed_density():
    grid = explored(lambda u: stats.loggamma(1.5).logpdf(u[0]), [1.0])
    mean, variance = stats.loggamma(1.5).stats()
    u = grid.point[:, 0]
    assert_allclose(grid.weight @ u, mean, atol=0.03)
    assert_allclose(grid.weight @ (u - mean) ** 2, variance, rtol=0.05)
    assert grid.boundary_mass < 0.01


def test_two_correlated_dimensions():
    covariance = np.array([[0.5, 0.3], [0.3, 0.4]])
    target = stats.multivariate_normal([0.5, -1.0], covariance)
    grid = explored(target.logpdf, [0.0, 0.0])
    mean = grid.weight @ grid.point
    assert_allclose(mean, [0.5, -1.0], atol=0.02)
    away = grid.point - mean
    assert_allclose((grid.weight[:, None] * away).T @ away, covariance, atol=0.02)
    assert grid.boundary_mass < 0.01


def test_what_was_found_belongs_to_its_point():
    grid = explored(lambda u: -0.5 * u @ u, [1.0, 1.0])
    assert_allclose(np.array(grid.fits), grid.point, atol=1e-9)


def test_a_flat_density_says_that_it_could_not_be_covered():
    assert explored(lambda u: -1e-6 * np.abs(u).sum(), [0.0, 0.0]).boundary_mass > 0.01
