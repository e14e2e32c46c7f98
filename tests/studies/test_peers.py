"""The methods that races are compared with."""

import numpy as np
import pytest
from peers.courses import Course, handover, pool
from peers.friedman import better, statistic
from peers.methods import METHODS
from scipy import stats


def test_the_statistic_is_that_of_scipy_with_ties_too():
    rng = np.random.default_rng(1)
    values = rng.integers(0, 4, (3, 12, 5)).astype(float)
    expected = [stats.friedmanchisquare(*one.T).statistic for one in values]
    np.testing.assert_allclose(statistic(values), expected)


def test_comparisons_are_conovers():
    # Conover, Practical Nonparametric Statistics, 3rd edition, section 5.8: grasses ranked by
    # homeowners. The statistic is 8.097, and two rank sums differ at 5 % from 11.48 on.
    ranks = np.array(
        [
            [4, 3, 2, 1], [4, 2, 3, 1], [3, 1.5, 1.5, 4], [3, 1, 2, 4], [4, 2, 1, 3], [2, 2, 2, 4],
            [1, 3, 2, 4], [2, 4, 1, 3], [3.5, 1, 2, 3.5], [4, 1, 3, 2], [4, 2, 3, 1],
            [3.5, 1, 2, 3.5],
        ]
    )  # fmt: skip
    assert statistic(ranks) == pytest.approx(8.097, abs=5e-4)
    sums = ranks.sum(axis=0)
    expected = sums[None, :] - sums[:, None] > 11.48
    np.testing.assert_array_equal(better(ranks, 0.05), expected)


def test_nobody_is_better_where_all_tie():
    assert not better(np.ones((10, 3)), 0.05).any()


def test_handover_has_three_members_and_its_runs_have_its_rankings():
    course = handover(0, 30)
    assert course.members == {"sprinter", "stayer", "between"}
    assert course.regret(course.members) == 0
    assert course.regret(frozenset({"sprinter"})) > 0.1
    runs = course.runs()
    at = runs.at(course.times).reshape(30, 6, -1)  # sorted by instance and algorithm
    names = [course.algorithms.index(name) for name in runs.algorithms]
    instances = [int(name[1:]) for name in runs.instances]
    expected = course.values[:, instances][..., names].transpose(1, 2, 0)
    np.testing.assert_array_equal(at.argsort(axis=1), expected.argsort(axis=1))


@pytest.mark.parametrize(
    "method",
    [pytest.param(name, marks=pytest.mark.long if "paper" in name else ()) for name in METHODS],
)
def test_every_method_keeps_a_clear_winner_and_drops_who_never_wins(method):
    if "Pruner" in method:
        pytest.importorskip("optuna")
    rng = np.random.default_rng(0)
    values = rng.random((4, 64, 3)) + np.array([0.0, 2.0, 4.0])
    replaces = np.triu(np.ones((3, 3), dtype=bool), 1)
    names, times = ("best", "second", "last"), np.arange(1.0, 5.0)
    course = Course(names, times, values, -np.eye(4, 3), replaces)
    found = METHODS[method](course, 0.95, 0)
    assert "best" in found.kept
    assert not course.missed(found.kept)
    assert course.missed(frozenset({"last"})) == ["best", "second"]
    if "Halving" not in method:  # it keeps whoever comes first, whatever it is worth
        order = np.random.default_rng(0).permutation(3).tolist()
        assert "last" not in found.kept or order.index(2) < order.index(0)
    assert 0 < found.spent <= course.full()


def test_pools_are_ranked_as_recorded():
    course = pool("mabbob_d5", 40)
    assert course.values.shape == (30, 40, 7)
    assert "RS" not in course.members
    assert "CSA" in course.members
