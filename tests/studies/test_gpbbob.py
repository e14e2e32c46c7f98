"""GP-BBOB against its definition in the paper (appendix C)."""

import numpy as np
import pytest

pytest.importorskip("ioh")

from gpbbob.generator import K_RANGE, Field, N, draw, k_quantile, truncated


def test_fields_have_the_covariance_of_an_rbf_kernel():
    rng = np.random.default_rng(1)
    x, y = np.array([0.3, -1.0, 2.0]), np.array([1.0, 0.5, 1.5])
    length, amplitude = 2.0, 1.5
    values = []
    for _ in range(400):
        field = Field.draw(rng, 3, rows=20, features=64, length=length, amplitude=amplitude)
        values.append([field(x), field(y)])
    at_x, at_y = np.moveaxis(np.array(values), 1, 0).reshape(2, -1)
    expected = amplitude**2 * np.exp(-np.sum((x - y) ** 2) / (2 * length**2))
    assert np.mean(at_x * at_y) == pytest.approx(expected, abs=0.15)
    assert np.mean(at_x**2) == pytest.approx(amplitude**2, rel=0.1)
    assert np.mean(at_x) == pytest.approx(0, abs=0.1)


def test_how_many_functions_are_active_follows_the_truncated_log_normal():
    rng = np.random.default_rng(2)
    normal = rng.lognormal(1.1, 0.5, 200_000)
    inside = np.rint(normal[(normal >= K_RANGE[0]) & (normal <= K_RANGE[1])])
    ours = k_quantile((np.arange(100_000) + 0.5) / 100_000)
    for k in range(2, 10):
        assert np.mean(ours == k) == pytest.approx(np.mean(inside == k), abs=0.01)
    assert ours.min() == 2
    assert ours.max() <= 24
    assert ours.mean() == pytest.approx(inside.mean(), abs=0.02)


def test_a_value_is_the_weighted_sum_over_the_largest_logits():
    instance = draw(np.random.default_rng(3), dimension=(5.0, 1.0))
    rng = np.random.default_rng(4)
    for x in rng.uniform(-5, 5, (20, instance.dimension)):
        z, k = instance.logits(x), instance.active(x)
        assert z.shape == (N,)
        top = np.argsort(z)[::-1][:k]
        odds = np.exp(z[top] / instance.temperature)
        weight = odds / odds.sum()
        expected = sum(w * instance.functions[i](x) for i, w in zip(top, weight, strict=True))
        assert instance(x) == pytest.approx(expected + instance.offset, rel=1e-9, abs=1e-6)
        chosen, weights = instance.weights(x)
        assert sorted(chosen) == sorted(top)
        assert sum(weights) == pytest.approx(1)


def test_only_active_functions_are_evaluated_and_outside_of_the_box_is_infinite():
    instance = draw(np.random.default_rng(5), dimension=(4.0, 0.1))
    x = np.zeros(instance.dimension)
    before = [f.state.evaluations for f in instance.functions]
    instance(x)
    called = [f.state.evaluations - n for f, n in zip(instance.functions, before, strict=True)]
    assert sum(called) == instance.active(x)
    assert instance(np.full(instance.dimension, 9.0)) == np.inf
    assert instance(np.full(instance.dimension, np.nan)) == np.inf


def test_weights_change_over_the_box():
    instance = draw(np.random.default_rng(6), dimension=(6.0, 0.1))
    points = np.random.default_rng(7).uniform(-5, 5, (50, instance.dimension))
    assert len({tuple(sorted(instance.weights(x)[0])) for x in points}) > 1


def test_instances_repeat_and_dimensions_are_drawn_again_outside_their_limits():
    one, two = (draw(np.random.default_rng(8), dimension=(4.0, 0.5)) for _ in range(2))
    x = np.linspace(-1, 1, one.dimension)
    assert one(x) == two(x)
    rng = np.random.default_rng(9)
    drawn = [truncated(lambda: rng.normal(0, 10), 2, 5) for _ in range(200)]
    assert 2 <= min(drawn) < 2.1  # clipped, a good part of them would be at the limits
    assert len(set(drawn)) == 200
