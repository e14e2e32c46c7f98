"""A posterior by counts, where duels or first places contradict a model of rankings."""

import numpy as np
import pytest

import polarbear as pb
from polarbear.data.positions import UNKNOWN
from polarbear.inference.counted import count_posterior
from polarbear.inference.model_check import _count_firsts

MOODY = 0.6
"""On this share of instances the moody algorithm comes first; else it comes last."""


def rank_moody(rng, n, n_times=1):
    """Rankings of a steady, a moody and a weak algorithm, and the shares of first places."""
    is_good = rng.random(n) < MOODY
    moody = np.where(is_good, -2.0, 2.0)
    others = np.array([0.0, 0.5]) + 0.1 * rng.normal(size=(n, 2))
    costs = np.column_stack([others[:, 0], moody, others[:, 1]])
    return pb.simulation.rank_costs(np.repeat(costs[None], n_times, axis=0))


def test_an_algorithm_that_is_first_or_last_is_rated_by_its_first_places():
    posterior = pb.fit(rank_moody(np.random.default_rng(1), 200, 5))
    assert posterior.method == "laplace, counted"
    assert posterior.mean("a2") == pytest.approx(MOODY, abs=0.07)
    assert posterior.prob_best()[:, 1].min() > 0.95
    assert posterior.win_probability("a2", "a1")[0] == pytest.approx(MOODY, abs=0.07)
    assert "Duels and first places are counted" in str(posterior.verdict())


def test_verdicts_and_duels_agree_on_the_example():
    """The rating model alone would call L-BFGS-B replaceable with more than 99 %."""
    runs = pb.example()
    fitted = {one.algorithm: one for one in pb.fit(runs).verdicts()}
    for counted in pb.assess(runs):
        own = fitted[counted.algorithm]
        assert own.probability == pytest.approx(counted.probability, abs=0.03)
        assert (own.kind == "dominated") == (counted.kind == "dominated")


EASY, HARD = np.array([3.0, 1.0, 0.0, -1.0]), np.array([-1.0, 0.0, 1.0, 1.0])
"""Utilities on two thirds of the instances, and on the others."""


def rank_mixture(rng, n, n_times=5):
    """Rankings on a mixture of instances, which no Plackett-Luce model describes."""
    utility = np.where((rng.random(n) < 2 / 3)[:, None], EASY, HARD)
    costs = -(utility + rng.gumbel(size=utility.shape))
    return pb.simulation.rank_costs(np.repeat(costs[None], n_times, axis=0))


def softmax(utility):
    return np.exp(utility) / np.exp(utility).sum()


def test_ratings_of_a_mixture_of_instances_cover_the_shares_of_first_places():
    """By the model alone, whose duels nothing contradicts, they covered .46 of the shares."""
    truth = 2 / 3 * softmax(EASY) + 1 / 3 * softmax(HARD)
    covered, methods = [], set()
    for seed in range(20):
        posterior = pb.fit(rank_mixture(np.random.default_rng(seed), 300), draws=500)
        low, high = posterior.interval()
        covered.append((low <= truth) & (truth <= high))
        methods.add(posterior.method)
    assert methods == {"laplace, counted"}
    assert np.mean(covered) > 0.88


def test_a_verdict_says_which_first_places_contradict_the_model():
    rankings = rank_mixture(np.random.default_rng(1), 300)
    said = "a1 comes first on 56 % of instances at 0, and on 39 % by the model"
    assert said in str(pb.fit(rankings).verdict())
    start = "First places contradict the model of rankings: a1 comes first on"
    assert str(pb.fit(rankings, evidence="rankings").verdict()).startswith(start)


def test_first_places_of_some_are_a_caution_only():
    """Who comes first among some says nothing of the others, so ratings stay the model's."""
    rankings = rank_mixture(np.random.default_rng(1), 400)
    some = rankings.take(range(300, 400)).among(["a1", "a2", "a3"])
    posterior = pb.fit(rankings.take(range(300)).join(some))
    assert posterior.method == "laplace"
    assert str(posterior.verdict()).startswith("First places contradict the model of rankings")


def test_first_places_are_counted_as_by_hand():
    rng = np.random.default_rng(0)
    costs = rng.integers(0, 4, (3, 30, 4)).astype(float)
    costs[rng.random(costs.shape) < 0.2] = np.nan
    rankings = pb.simulation.rank_costs(costs, weight=rng.uniform(0.5, 2, 30))
    rating = rng.dirichlet(np.ones(4), 3)
    expected = np.zeros((4, 3, 4))
    for t, place in enumerate(rankings.position):
        for c, weight in enumerate(rankings.weight):
            entries = range(rankings.offset[c], rankings.offset[c + 1])
            known = [k for k in entries if place[k] != UNKNOWN]
            known = known if len(known) > 1 else []  # one alone is compared with nobody
            first = [k for k in known if place[k] == min(place[j] for j in known)]
            for k in known:
                who = rankings.algorithm[k]
                total = sum(rating[t, rankings.algorithm[j]] for j in known)
                of_all = (1, first == [k], k in first, rating[t, who] / total)
                expected[:, t, who] += weight * np.array(of_all, dtype=float)
    assert _count_firsts(rankings, rating) == pytest.approx(expected)


def test_intervals_of_counted_ratings_cover_the_truth():
    rng, covered, races = np.random.default_rng(2), 0, 200
    for _ in range(races):
        rankings = rank_moody(rng, 40)
        posterior = count_posterior(rankings, pb.fit(rankings, draws=200))
        low, high = posterior.interval("a2")
        covered += low[0] <= MOODY <= high[0]
    assert 0.91 <= covered / races <= 0.985  # two standard errors around 0.95


@pytest.mark.long
def test_rankings_of_the_model_are_seldom_contradicted():
    found = []
    for seed in range(100):
        truth = np.random.default_rng(seed).normal(0, 0.7, (8, 5))
        rankings = pb.simulation.simulate_rankings(truth, 60, seed=seed, persistence=0.5)
        found.append(pb.fit(rankings, draws=200).method)
    assert found.count("laplace, counted") <= 2


def test_ratings_stay_those_of_the_model_where_some_were_not_compared():
    rankings = rank_moody(np.random.default_rng(3), 200)
    pair = rankings.take(range(150, 200)).among(["a1", "a2"])
    posterior = pb.fit(rankings.take(range(150)).join(pair))
    assert posterior.method == "laplace, duels counted"
    assert posterior.mixture is not None
    assert "Duels are counted, and ratings are those of a model" in str(posterior.verdict())
    assert posterior.win_probability("a2", "a1")[0] == pytest.approx(MOODY, abs=0.08)


def test_a_named_prior_and_the_paper_keep_the_model():
    rankings = rank_moody(np.random.default_rng(4), 200, 5)
    for options in (
        {"prior": "BSpline"},
        {"prior": pb.priors.Dirichlet(2.0)},
        {"evidence": "rankings"},
    ):
        posterior = pb.fit(rankings, **options)
        assert posterior.method == "laplace"
        assert str(posterior.verdict()).startswith("The duels contradict the model of rankings")


def test_what_is_not_counted_is_said_also_of_large_data(monkeypatch):
    monkeypatch.setattr("polarbear.inference.replacing.MAX_DUELS", 100)
    posterior = pb.fit(rank_mixture(np.random.default_rng(1), 300))
    assert posterior.method == "laplace"
    assert str(posterior.verdict()).startswith("First places contradict the model of rankings")


def test_it_is_the_same_after_a_file(tmp_path):
    posterior = pb.fit(rank_moody(np.random.default_rng(5), 100, 3))
    posterior.save(tmp_path / "posterior.npz")
    again = pb.Posterior.load(tmp_path / "posterior.npz")
    assert str(again.verdict()) == str(posterior.verdict())


def test_a_race_goes_on_from_counts():
    rankings = rank_moody(np.random.default_rng(6), 150, 3)
    first = pb.fit(rankings)
    again = pb.fit(rankings, start=first)
    assert again.mean() == pytest.approx(first.mean(), abs=0.02)
