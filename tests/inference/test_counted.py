"""Ratings and win probabilities by counts, with a model of rankings as their prior."""

import numpy as np
import pytest
from scipy.stats import beta, betabinom, gamma

import polarbear as pb
from polarbear.data.positions import UNKNOWN
from polarbear.inference.counted import MODEL_WEIGHT, _draw_gammas, _draw_wins, sum_firsts
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
    assert posterior.counted
    assert posterior.mean("a2") == pytest.approx(MOODY, abs=0.07)
    assert posterior.prob_best()[:, 1].min() > 0.95
    assert posterior.win_probability("a2", "a1")[0] == pytest.approx(MOODY, abs=0.07)


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


@pytest.mark.parametrize(("n", "samples"), [(12, 60), (40, 40), (300, 20)])
def test_ratings_of_a_mixture_of_instances_cover_the_shares_of_first_places(n, samples):
    """By the model alone, whose duels nothing contradicts, 300 instances covered .46 of them."""
    truth = 2 / 3 * softmax(EASY) + 1 / 3 * softmax(HARD)
    covered = []
    for seed in range(samples):
        low, high = pb.fit(rank_mixture(np.random.default_rng(seed), n), draws=500).interval()
        covered.append((low <= truth) & (truth <= high))
    assert 0.88 < np.mean(covered) < 0.99


@pytest.mark.parametrize(("won", "n"), [(5, 6), (6, 12), (9, 12), (40, 60), (120, 200)])
def test_two_algorithms_have_the_exact_posterior(won, n):
    """Of a share whose prior is Beta(c r, c (1 - r)) around a rating r that is uniform."""
    costs = np.zeros((1, n, 2))
    costs[0, :won, 1] = 1
    costs[0, won:, 0] = 1
    rating = pb.fit(pb.simulation.rank_costs(costs)).ratings[:, 0, 0]
    r = (np.arange(2_000) + 0.5) / 2_000
    a, b = MODEL_WEIGHT * r + won, MODEL_WEIGHT * (1 - r) + n - won
    weight = betabinom.pmf(won, n, MODEL_WEIGHT * r, MODEL_WEIGHT * (1 - r))
    weight /= weight.sum()
    mean, variance = beta.stats(a, b)
    exact = weight @ mean
    sd = np.sqrt(weight @ (variance + mean**2) - exact**2)
    assert rating.mean() == pytest.approx(exact, abs=0.03)
    assert rating.std() == pytest.approx(sd, rel=0.12)
    assert np.mean(rating > 0.5) == pytest.approx(weight @ beta.sf(0.5, a, b), abs=0.03)


def test_what_the_model_adds_follows_its_distributions():
    rng, shape = np.random.default_rng(0), np.array([0.05, 0.6, 3.0, 11.0], np.float32)
    drawn = _draw_gammas(np.tile(shape, (40_000, 1, 1)), rng)[:, 0]
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    for column, a in zip(drawn.T, shape, strict=True):
        below = [np.mean(column <= gamma.ppf(level, a)) for level in levels]
        assert below == pytest.approx(levels, abs=0.02)
        assert column.mean() == pytest.approx(a, rel=0.05)
    for rating in (0.5, 0.2, 0.02):
        ratings = np.tile(np.array([rating, 1 - rating], np.float32), (40_000, 1, 1))
        nobody = np.full((1, 1, 2), UNKNOWN)
        wins = _draw_wins(nobody, np.ones((40_000, 1), np.float32), np.log(ratings), rng)[:, 0, 0]
        mean, variance = beta.stats(MODEL_WEIGHT * rating, MODEL_WEIGHT * (1 - rating))
        assert wins.mean() == pytest.approx(mean, abs=0.01)
        assert wins.std() == pytest.approx(np.sqrt(variance), rel=0.25)


def test_first_places_with_ties_and_gaps_have_the_highest_likelihood(monkeypatch):
    """Of an instance, it is the share of those that tie among those that ran."""
    rng = np.random.default_rng(0)
    place = rng.integers(0, 3, (200, 4))
    place[rng.random(place.shape) < 0.2] = UNKNOWN
    weight, prior = rng.uniform(0.5, 2, 200), np.array([3.0, 2.0, 4.0, 1.0])

    def log_likelihood(share):
        value = prior @ np.log(share)
        for at, w in zip(place, weight, strict=True):
            known = [k for k in range(4) if at[k] != UNKNOWN]
            first = [k for k in known if at[k] == min(at[j] for j in known)]
            if known:
                value += w * np.log(share[first].sum() / share[known].sum())
        return value

    def estimate():
        total = prior + sum_firsts(place, weight[None], np.full((1, 4), 0.25), prior)[0]
        return total / total.sum()

    soon = estimate()
    monkeypatch.setattr("polarbear.inference.counted.SWEEPS", 300)
    share = estimate()
    assert soon == pytest.approx(share, abs=0.01)
    highest = log_likelihood(share)
    for k in range(4):
        for change in (-0.01, 0.01):
            other = share * np.exp(change * (np.arange(4) == k))
            assert log_likelihood(other / other.sum()) < highest


@pytest.mark.parametrize("n", [8, 10])
def test_who_never_comes_first_is_ordered_whatever_the_names(n):
    """Draws without a first place tied, and the later name won: it dominated who beat it always."""
    costs = np.tile(np.arange(float(n))[None, None], (1, 100, 1))
    posterior, other = (pb.fit(pb.simulation.rank_costs(c)) for c in (costs, costs[:, :, ::-1]))
    for k in range(1, n):
        assert posterior.prob_better(f"a{k}", f"a{k + 1}")[0] > 0.85
        assert other.prob_better(f"a{k + 1}", f"a{k}")[0] > 0.85
    for one, names in ((posterior, (n - 1, n)), (other, (2, 1))):
        assert one.win_probability(*(f"a{k}" for k in names))[0][0] > 0.95
    dominated = [one.rival for one in posterior.paper_verdict(0.95).verdicts[1:]]
    assert all(rival is None or int(rival[1:]) < k for k, rival in enumerate(dominated, 2))


def test_a_strong_algorithm_that_seldom_ran_is_rated_by_these_runs():
    """Shared six times only, missing first places stayed near the model: .64 instead of .8."""
    rng = np.random.default_rng(0)
    costs = rng.normal(size=(1, 300, 5))
    costs[0, :, 4] = np.where(rng.random(300) < 0.85, -10, 10)
    costs[0, rng.permutation(300)[60:], 4] = np.nan
    posterior = pb.fit(pb.simulation.rank_costs(costs))
    low, high = posterior.interval("a5")[:, 0]
    assert 0.7 < posterior.mean("a5")[0] < 0.9
    assert low < 0.85 < high
    assert "16 % of the places are unknown" in str(posterior.verdict())


def test_ties_of_all_say_nothing():
    costs = np.random.default_rng(0).normal(size=(2, 40, 3))
    tied = np.concatenate([costs, np.zeros((2, 300, 3))], axis=1)
    few, many = (pb.fit(pb.simulation.rank_costs(each)) for each in (costs, tied))
    assert many.mean() == pytest.approx(few.mean(), abs=0.02)
    assert many.interval() == pytest.approx(few.interval(), abs=0.04)


def test_runs_that_are_missing_are_filled_in_by_the_model():
    """A pair on a quarter of the instances; what they say of a third one is its rating."""
    rankings = rank_moody(np.random.default_rng(3), 200)
    pair = rankings.take(range(150, 200)).among(["a1", "a2"])
    posterior = pb.fit(rankings.take(range(150)).join(pair))
    assert posterior.mean("a2") == pytest.approx(MOODY, abs=0.08)
    assert posterior.win_probability("a2", "a1")[0] == pytest.approx(MOODY, abs=0.08)
    whole = pb.fit(rankings)
    assert np.ptp(posterior.interval("a2")) == pytest.approx(np.ptp(whole.interval("a2")), rel=0.3)


def test_the_model_alone_says_which_first_places_contradict_it():
    rankings = rank_mixture(np.random.default_rng(1), 300)
    said = "First places contradict the model of rankings: a1 comes first on 56 % of instances at 0"
    assert str(pb.fit(rankings, evidence="rankings").verdict()).startswith(said)
    assert "contradict" not in str(pb.fit(rankings).verdict())


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


def test_intervals_are_too_narrow_where_the_model_is_far_off():
    """Of an algorithm that is the first or the last, 40 instances hold .86; counts alone .95."""
    rng, covered, races = np.random.default_rng(2), 0, 200
    for _ in range(races):
        low, high = pb.fit(rank_moody(rng, 40), draws=200).interval("a2")
        covered += low[0] <= MOODY <= high[0]
    assert covered / races == pytest.approx(0.86, abs=0.05)  # two standard errors


@pytest.mark.long
def test_rankings_of_the_model_are_seldom_contradicted():
    found = []
    for seed in range(100):
        truth = np.random.default_rng(seed).normal(0, 0.7, (8, 5))
        rankings = pb.simulation.simulate_rankings(truth, 60, seed=seed, persistence=0.5)
        posterior = pb.fit(rankings, pb.priors.Dirichlet(1.001), draws=200)
        found.append(bool(posterior.diagnostics.contradictions))
    assert sum(found) <= 2


def test_a_named_prior_and_the_paper_keep_the_model():
    rankings = rank_moody(np.random.default_rng(4), 200, 5)
    for options in (
        {"prior": "BSpline"},
        {"prior": pb.priors.Dirichlet(2.0)},
        {"evidence": "rankings"},
    ):
        posterior = pb.fit(rankings, **options)
        assert not posterior.counted
        assert str(posterior.verdict()).startswith("The duels contradict the model of rankings")


def test_what_is_not_counted_is_said_also_of_large_data(monkeypatch):
    monkeypatch.setattr("polarbear.inference.replacing.MAX_DUELS", 100)
    posterior = pb.fit(rank_mixture(np.random.default_rng(1), 300))
    assert not posterior.counted
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
    assert again.mean() == pytest.approx(first.mean(), abs=0.03)
