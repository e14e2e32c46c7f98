"""Weights, ties and partial orders mean the same in every part of a fit."""

from dataclasses import replace

import numpy as np
import pytest

import polarbear as pb
from polarbear.errors import DataError
from polarbear.simulation import rank_costs, simulate_rankings

PRIORS = ("Dirichlet", "HierarchicalDirichlet", "BSpline")


def ties_then_wins(shares, tied, n=1000, seed=1):
    """Costs (times, n, 2): a share of ties, and of the others these shares of wins of the first."""
    rng = np.random.default_rng(seed)
    costs = np.zeros((len(shares), n, 2))
    for t, share in enumerate(shares):
        u = rng.random(n)
        costs[t, :, 1] = np.where(u < tied, 0, np.where(u < tied + (1 - tied) * share, 1, -1))
    return costs


@pytest.mark.parametrize("prior", PRIORS)
def test_a_weight_of_four_for_all_is_a_weight_of_one(prior):
    """Once, weights were copies at single times: P(better) was .96 instead of .81."""
    rankings = simulate_rankings(np.array([[0.6, 0.0]]), 20, seed=3)
    once, fourfold = (
        pb.fit(replace(rankings, weight=np.full(20, weight)), prior) for weight in (1.0, 4.0)
    )
    np.testing.assert_allclose(once.prob_better(), fourfold.prob_better(), atol=1e-6)
    assert once.prob_replaces("a1", "a2") == fourfold.prob_replaces("a1", "a2")


def test_equal_algorithms_are_rarely_told_apart_by_a_few_heavy_instances():
    """By 5 of 40 instances with the weight 20, equal ones were clear in 72 % of samples."""
    weight = np.repeat([20.0, 1.0], [5, 35])
    surest = []
    for seed in range(60):
        rankings = replace(simulate_rankings(np.zeros((1, 2)), 40, seed=seed), weight=weight)
        surest.append(float(np.abs(pb.fit(rankings).prob_better("a1", "a2")[0] - 0.5)))
    assert np.mean(np.array(surest) > 0.45) < 0.15


@pytest.mark.parametrize("prior", ["BSpline", "Dirichlet"])
def test_ties_count_once_however_they_are_read(prior):
    """By averaged ties, the share of ties was taken off the lead twice: "tied"."""
    costs = ties_then_wins([0.66, 0.34], 0.5, n=3000)
    kinds = [
        [one.kind for one in pb.fit(rank_costs(costs, ties=ties), prior).verdicts()]
        for ties in ("unordered", "averaged")
    ]
    assert kinds == [["member"] * 2] * 2


def test_two_algorithms_cannot_contradict_a_model_of_averaged_ties():
    costs = np.zeros((1, 200, 2))
    costs[0, :, 1] = np.r_[np.zeros(150), np.ones(42), -np.ones(8)]
    posterior = pb.fit(rank_costs(costs, ties="averaged"))
    assert not posterior.counted
    won = posterior.win_probability("a1", "a2")[0][0]
    np.testing.assert_allclose(won, posterior.mean("a1")[0], atol=0.01)
    assert posterior.averaged


def test_a_posterior_of_averaged_ties_is_the_same_from_its_file(tmp_path):
    costs = ties_then_wins([0.7, 0.4, 0.3], 0.5)
    posterior = pb.fit(rank_costs(costs, ties="averaged", weight=np.repeat([2e9, 1.0], [1, 999])))
    posterior.save(tmp_path / "p.npz")
    loaded = pb.Posterior.load(tmp_path / "p.npz")
    assert loaded.averaged
    assert loaded.verdicts() == posterior.verdicts()


def test_partial_orders_are_not_counted_as_places():
    """Positions are sets of bits there; as places they reversed a posterior."""
    first = {"a": (0, 100), "c": (5, 5), "b": (6, 6), "d": (7, 7), "e": (7, 7.5)}
    later = {"a": (9.5, 2), "b": (9, 1), "c": (8, 3), "d": (7, 4), "e": (6, 5)}
    rows = [
        (name, f"i{k}", 1.0, *map(float, point))
        for k in range(120)
        for name, point in (first if k < 100 else later).items()
    ]
    columns = ("algorithm", "instance", "time", "f1", "f2")
    table = dict(zip(columns, zip(*rows, strict=True), strict=True))
    archives = pb.readers.Archives.from_frame(table, objectives=("f1", "f2"), direction="minimize")
    rankings = archives.dominance([1.0])
    posterior = pb.fit(rankings)
    assert posterior.prob_better("a", "b")[0] < 0.05  # a is never ahead of b, b of a on 20
    assert posterior.places is None
    for refused in (pb.calibrate, lambda data: pb.cross_fit(data, {"instance": [], "x": []})):
        with pytest.raises(DataError, match="partial orders"):
            refused(rankings)


def test_a_class_knows_of_its_ties_as_a_fit_of_it_does():
    """Without its ties a class said "worth running (> 99 %)" of what nearly always ties."""
    clear = ties_then_wins([1.0, 1.0], 0.0, n=200)
    costs = np.concatenate([ties_then_wins([0.7, 0.3], 0.8), clear], axis=1)
    rankings = rank_costs(costs)
    kinds = ["tied"] * 1000 + ["clear"] * 200
    rankings = rankings.with_instance_data({"instance": rankings.instances, "kind": kinds})
    classes = pb.fit(rankings, classes="kind")
    for kind, chosen in (("tied", slice(1000)), ("clear", slice(1000, 1200))):
        alone = pb.fit(rankings.take(np.arange(1200)[chosen]), "GP").verdicts()
        assert [one.kind for one in classes.on(kind).verdicts()] == [one.kind for one in alone]
    shares = classes.population({"tied": 1.0, "clear": 1.0}).decided
    np.testing.assert_allclose(shares, 0.6, atol=0.03)


def test_a_mix_counts_instances_by_their_weights():
    truth = np.zeros((1, 60, 2))
    truth[:, :30, 0] = truth[:, 30:, 1] = 2.0
    rankings = simulate_rankings(truth, 60, seed=1)
    rankings = replace(rankings, weight=np.repeat([3.0, 1.0], 30))
    table = {"instance": rankings.instances, "kind": ["x"] * 30 + ["y"] * 30, "f": range(60)}
    rankings = rankings.with_instance_data(table)
    pooled = pb.fit(rankings).mean("a1")[0]
    for posterior in (pb.fit(rankings, classes="kind"), pb.fit(rankings, features=["f"])):
        np.testing.assert_allclose(posterior.population().mean("a1")[0], pooled, atol=0.05)
        value = pb.selection.value_of_selection(posterior)
        np.testing.assert_allclose(value.single_value, pooled, atol=0.05)
    with pytest.raises(DataError, match="not negative"):
        pb.fit(rankings, classes="kind").population({"x": np.inf, "y": 1.0})


def test_a_sentence_names_the_rival_of_the_verdict_first():
    for seed in range(20):
        truth = np.array([[1.5, 1.5, 1.4, -1.0, -1.0]])
        posterior = pb.fit(simulate_rankings(truth, 300, seed=seed))
        text = str(posterior.verdict())
        for one in posterior.verdicts():
            if one.kind == "dominated":
                assert f"{one.algorithm} is replaceable by {one.rival} " in text


def test_weights_of_another_class_take_nothing_from_a_class():
    """By the effective number of all instances, a class of weight 1 was hardly known."""
    truth = np.full((1, 80, 2), 0.0)
    truth[:, :, 0] = 0.8
    rankings = simulate_rankings(truth, 80, seed=2)
    kinds = {"instance": rankings.instances, "kind": ["easy"] * 40 + ["hard"] * 40}
    rankings = rankings.with_instance_data(kinds)
    weighted = replace(rankings, weight=np.repeat([1.0, 19.0], 40))
    widths = []
    for one in (rankings, weighted):
        _, (low, high) = pb.fit(one, classes="kind").on("easy").win_probability("a1", "a2")
        widths.append(float((high - low)[0]))
    assert widths[1] < 1.3 * widths[0]


def test_the_scale_of_all_weights_is_nothing():
    rankings = simulate_rankings(np.array([[1.0, 0.0]]), 20, seed=3)
    found = [
        pb.fit(replace(rankings, weight=np.full(20, scale))).mean("a1")[0]
        for scale in (1.0, 1e-170, 1e200)
    ]
    np.testing.assert_allclose(found, found[0])


def test_averaged_rankings_without_a_tie_are_checked_against_their_duels():
    """A cycle: each wins two thirds of the duels with the next one."""
    cycle = np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]], dtype=float)
    costs = cycle[np.arange(300) % 3][None]
    for ties in ("unordered", "averaged"):
        posterior = pb.fit(rank_costs(costs, ties=ties))
        assert posterior.win_probability("a3", "a1")[0][0] > 0.6
