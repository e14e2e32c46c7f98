import numpy as np
import pytest
from numpy.testing import assert_allclose

from polarbear.engines.psis import smooth


@pytest.mark.parametrize("k", [0.2, 0.5, 0.8, 1.2])
def test_the_shape_of_a_pareto_tail_is_found(k):
    rng = np.random.default_rng(8)
    found = [smooth(k * rng.exponential(size=8000)).k for _ in range(20)]
    tail = 3 * np.sqrt(8000)
    assert abs(np.mean(found) - k) < 0.1
    assert np.std(found) < 1.5 * (1 + k) / np.sqrt(tail)  # the best there is, and half as much


def test_weights_are_normalised_and_keep_their_order():
    log_ratio = np.random.default_rng(1).normal(size=2000)
    found = smooth(log_ratio)
    assert_allclose(np.exp(found.log_weight).sum(), 1.0)
    assert np.all(np.diff(found.log_weight[np.argsort(log_ratio)]) >= -1e-9)


def test_a_shifted_normal_is_corrected_to_its_target():
    """Draws of N(0, 1.2) weighted to N(0.5, 1): the mean must come out."""
    rng = np.random.default_rng(3)
    x = 1.2 * rng.standard_normal(20_000)
    log_ratio = -0.5 * (x - 0.5) ** 2 + 0.5 * (x / 1.2) ** 2
    found = smooth(log_ratio)
    assert found.k < 0.5
    assert abs(np.exp(found.log_weight) @ x - 0.5) < 0.03


def test_equal_and_few_weights():
    assert smooth(np.zeros(500)).k == -np.inf
    assert smooth(np.arange(5.0)).k == np.inf
