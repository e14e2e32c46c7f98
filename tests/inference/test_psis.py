import numpy as np
import pytest
from numpy.testing import assert_allclose

from polarbear.inference import psis
from polarbear.inference.psis import smooth_weights


@pytest.mark.parametrize("k", [0.2, 0.5, 0.8, 1.2])
def test_the_shape_of_a_pareto_tail_is_found(k):
    rng = np.random.default_rng(8)
    found = smooth_weights(k * rng.exponential(size=(8000, 20))).k_hat
    tail = 3 * np.sqrt(8000)
    assert abs(np.mean(found) - k) < 0.1
    assert np.std(found) < 1.5 * (1 + k) / np.sqrt(tail)  # the best there is, and half as much


def test_weights_are_normalised_and_keep_their_order():
    log_ratio = np.random.default_rng(1).normal(size=(2000, 3))
    found = smooth_weights(log_ratio)
    assert_allclose(found.weight.sum(axis=0), 1.0)
    for ratio, weight in zip(log_ratio.T, found.weight.T, strict=True):
        assert np.all(np.diff(weight[np.argsort(ratio)]) >= -1e-9)


def test_columns_do_not_know_of_each_other(monkeypatch):
    log_ratio = np.random.default_rng(2).normal(size=(500, 4)) * [0.0, 0.5, 1.0, 2.0]
    alone = [smooth_weights(log_ratio[:, [b]]) for b in range(4)]
    monkeypatch.setattr(psis, "MAX_CELLS", 5000)  # one column at a time
    found = smooth_weights(log_ratio)
    assert_allclose(found.k_hat, [one.k_hat[0] for one in alone])
    assert_allclose(found.weight, np.hstack([one.weight for one in alone]))


def test_a_shifted_normal_is_corrected_to_its_target():
    """Draws of N(0, 1.2) weighted to N(0.5, 1): the mean must come out."""
    rng = np.random.default_rng(3)
    x = 1.2 * rng.standard_normal(20_000)
    log_ratio = -0.5 * (x - 0.5) ** 2 + 0.5 * (x / 1.2) ** 2
    found = smooth_weights(log_ratio[:, None])
    assert found.k_hat < 0.5
    assert abs(found.weight[:, 0] @ x - 0.5) < 0.03


def test_equal_and_few_weights():
    assert smooth_weights(np.zeros((500, 1))).k_hat == -np.inf
    assert smooth_weights(np.arange(5.0)[:, None]).k_hat == np.inf
