"""Relations between curves against their definitions, draw by draw."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import polarbear as pb
from polarbear.inference import dominance
from polarbear.inference.pairs import Crossing, find_crossings, tabulate_pairs
from polarbear.inference.posterior import Posterior
from polarbear.inference.replacing import find_stretches

SEEDS = st.integers(0, 10_000)
ALPHAS = st.sampled_from([0.61, 0.81, 0.96])  # no share of 40 draws: rounding decides nothing


def posterior_of(draws, times=None, **more):
    """A posterior that is nothing but draws."""
    draws = np.asarray(draws, dtype=np.float32)
    n_times, n = draws.shape[1:]
    return Posterior(
        tuple("abcdefgh"[:n]),
        np.arange(1.0, n_times + 1) if times is None else times,
        draws,
        np.full((len(draws), 1), 1 / len(draws), dtype=np.float32),
        **more,
    )


def random_posterior(seed):
    rng = np.random.default_rng(seed)
    n_times, n = rng.integers(1, 4), rng.integers(2, 5)
    centre = rng.normal(size=(n_times, n)) * rng.choice([0.3, 1, 3])
    level = rng.normal(size=(40, 1, n)) * rng.choice([0.1, 1])
    return posterior_of(centre + level + 0.3 * rng.normal(size=(40, n_times, n)))


class Twin:
    """The paper's definitions by loops over draws (sections 3.5 and 3.6)."""

    def __init__(self, posterior, certainty, epsilon=0.05):
        self.mu = posterior.utilities.astype(float)
        self.certainty, self.epsilon = certainty, epsilon
        self.n_times, self.n = self.mu.shape[1:]

    def share(self, event):
        return sum(bool(event(curve)) for curve in self.mu) / len(self.mu)

    def leads(self, t, a, b):
        return self.share(lambda curve: curve[t, a] > curve[t, b]) >= self.certainty

    def ties(self, t, a, b):
        def near(curve):
            chance = np.exp(curve[t, a]) / (np.exp(curve[t, a]) + np.exp(curve[t, b]))
            return 0.5 - self.epsilon <= chance <= 0.5 + self.epsilon

        return self.share(near) >= self.certainty

    def dominates(self, a, b, elimination):
        if a == b:
            return False
        if elimination == "pointwise":
            return all(self.leads(t, a, b) for t in range(self.n_times))
        return self.share(lambda curve: (curve[:, a] > curve[:, b]).all()) >= self.certainty

    def crosses(self, a, b):
        for t in range(self.n_times):
            for s in range(self.n_times):
                first, second = self.leads(t, a, b), self.leads(s, b, a)
                par = (first or self.ties(t, a, b)) and (second or self.ties(s, a, b))
                if par and (first or second):
                    return True
        return False

    def resolved(self, t, a, b, resolution):
        if resolution == "crossing" and self.crosses(a, b):
            return True
        return self.leads(t, a, b) or self.leads(t, b, a) or self.ties(t, a, b)


@pytest.mark.slow
@given(seed=SEEDS, certainty=ALPHAS)
@pytest.mark.parametrize("elimination", ["joint", "pointwise"])
def test_the_pareto_set_and_who_dominates(elimination, seed, certainty):
    posterior = random_posterior(seed)
    twin = Twin(posterior, certainty)
    names = posterior.algorithms
    expected = {
        b: {a for a in range(twin.n) if twin.dominates(a, b, elimination)} for b in range(twin.n)
    }
    verdicts = posterior.paper_verdict(certainty, elimination=elimination).verdicts
    out = {one.algorithm: one.rival for one in verdicts if one.kind == "dominated"}
    assert [names.index(name) for name in out] == [b for b in range(twin.n) if expected[b]]
    assert all(names.index(by) in expected[names.index(name)] for name, by in out.items())
    if elimination == "joint":
        strict = {"margin": 0.0, "width": 0.0}
        assert posterior.pareto(certainty, **strict) == tuple(k for k in names if k not in out)
        for b in range(twin.n):
            sure = posterior.prob_replaces(**strict)[:, b] >= certainty
            assert set(np.flatnonzero(sure)) == expected[b]


@pytest.mark.slow
@given(seed=SEEDS, certainty=ALPHAS, margin=st.sampled_from([0.05, 0.1, 0.3]))
def test_who_replaces_whom_by_loops_over_draws(seed, certainty, margin):
    """Better on average, and nowhere worse by more than the margin: in a share of the draws."""
    posterior = random_posterior(seed)
    n_times, n = posterior.utilities.shape[1:]
    stretches = find_stretches(posterior.times, 0.6)

    def replaces(curve, a, b):
        wins = [1 / (1 + np.exp(float(curve[t, b]) - float(curve[t, a]))) for t in range(n_times)]
        nowhere_worse = all(np.mean(wins[one]) >= 0.5 - margin for one in stretches)
        return a != b and np.mean(wins) > 0.5 and nowhere_worse

    holds = np.array(
        [[[replaces(one, a, b) for b in range(n)] for a in range(n)] for one in posterior.utilities]
    )
    options, names = {"margin": margin, "width": 0.6}, posterior.algorithms
    for a, b in np.ndindex(n, n):
        found = posterior.prob_replaces(names[a], names[b], **options)
        assert found == pytest.approx(holds[:, a, b].mean())
    worth = ~holds.any(axis=1)
    assert_allclose([*posterior.prob_in_pareto(**options).values()], worth.mean(axis=0))
    for one in posterior.verdicts(certainty, **options):
        k = names.index(one.algorithm)
        sure = holds[:, :, k].mean(axis=0)
        assert (one.kind == "dominated") <= (sure.max() >= certainty)
        assert (one.kind == "member") <= (worth[:, k].mean() >= certainty)
    out = [name not in posterior.pareto(certainty, **options) for name in names]
    wrong = posterior.verdict(certainty, **options).mistaken
    assert wrong == pytest.approx(worth[:, out].any(axis=1).mean())


@pytest.mark.slow
@given(seed=SEEDS, certainty=ALPHAS)
@pytest.mark.parametrize("resolution", ["strict", "crossing"])
def test_when_a_pair_is_resolved(resolution, seed, certainty):
    posterior = random_posterior(seed)
    twin = Twin(posterior, certainty)
    alike = np.stack(
        [
            [posterior.prob_equivalent(a, b) for b in posterior.algorithms]
            for a in posterior.algorithms
        ]
    ).transpose(2, 0, 1)
    ahead = posterior.prob_better()
    found = dominance.is_resolved(ahead, alike, certainty, resolution=resolution)
    crossing = dominance.crosses(ahead, alike, certainty)
    for a in range(twin.n):
        for b in range(twin.n):
            if a != b:
                assert crossing[a, b] == twin.crosses(a, b)
                for t in range(twin.n_times):
                    assert found[t, a, b] == twin.resolved(t, a, b, resolution)
    out = np.zeros(twin.n, dtype=bool)
    out[0] = True
    without = dominance.is_resolved(ahead, alike, certainty, resolution=resolution, eliminated=out)
    assert without[:, 0].all()
    assert without[:, :, 0].all()
    assert (without[:, 1:, 1:] == found[:, 1:, 1:]).all()


@given(seed=SEEDS, certainty=ALPHAS)
def test_the_chance_of_a_wrong_elimination(seed, certainty):
    posterior = random_posterior(seed)
    mu, names = posterior.utilities, posterior.algorithms
    strict = {"margin": 0.0, "width": 0.0}
    kept = posterior.pareto(certainty, **strict)
    n = len(names)

    def free(curve, b):
        return not any((curve[:, a] > curve[:, b]).all() for a in range(n) if a != b)

    wrong = [any(free(curve, b) for b in range(n) if names[b] not in kept) for curve in mu]
    assert_allclose(posterior.verdict(certainty, **strict).mistaken, np.mean(wrong))
    belongs = [np.mean([free(curve, b) for curve in mu]) for b in range(n)]
    assert_allclose(list(posterior.prob_in_pareto(**strict).values()), belongs)


def test_exact_chances_at_each_time_are_kept_and_times_go_together():
    rng = np.random.default_rng(0)
    chance = np.array([0.9, 0.7, 0.8])
    ahead = np.full((3, 2, 2), 0.5)
    ahead[:, 0, 1], ahead[:, 1, 0] = chance, 1 - chance

    def joint(lead):
        utilities = np.stack([lead, np.zeros_like(lead)], axis=2)
        return dominance.prob_ahead_everywhere_matrix(utilities, ahead, count=False)[0, 1]

    together = rng.normal(size=(4000, 1)) + np.zeros((1, 3))  # all times are one
    assert_allclose(joint(together), 0.7, atol=1e-3)
    assert_allclose(joint(rng.normal(size=(4000, 3))), 0.9 * 0.7 * 0.8, atol=0.02)


def test_nobody_is_ahead_of_all_times_more_surely_than_at_the_worst():
    posterior = posterior_of(np.full((10, 2, 2), [[1.0, 0.0], [1.0, 0.0]]))
    assert posterior.prob_dominates("a", "b") == 1
    assert posterior.prob_dominates("b", "a") == posterior.prob_dominates("a", "a") == 0


def test_crossings_name_who_leads_before_and_after():
    mean = np.array([[2.0, 0.0], [0.1, 0.0], [0.0, 2.0], [0.0, 3.0], [2.0, 0.0]])
    rng = np.random.default_rng(1)
    posterior = posterior_of(mean + 0.3 * rng.normal(size=(500, 5, 2)))
    first, second = find_crossings(posterior, "a", "b")
    assert first[:4] == ("a", "b", 1.0, 3.0)
    assert second[:4] == ("b", "a", 4.0, 5.0)
    assert first.probability > 0.99
    assert find_crossings(posterior, "b", "a") == [first, second]
    assert isinstance(first, Crossing)


def test_a_verdict_says_what_the_numbers_say():
    mean = np.array([[3.0, 0.0, -3.0], [0.0, 3.0, -3.0]])
    rng = np.random.default_rng(2)
    draws = mean + 0.3 * rng.normal(size=(1000, 2, 3))
    posterior = posterior_of(draws, np.array([100.0, 60_000.0]), clock="evaluations")
    wrong = "Probability that any exclusion is wrong: < 1 %."
    assert str(posterior.verdict(0.95)).splitlines() == [
        "a is worth running (> 99 %): most likely the best at 100 evaluations.",
        "b is worth running (> 99 %): most likely the best at 60,000 evaluations.",
        "c is replaceable by a (> 99 %), and by b.",
        f"2 of 3 algorithms stay in the anytime Pareto set. {wrong}",
    ]
    assert str(posterior.paper_verdict(0.95)).splitlines()[1:3] == [
        "b is a member of the Pareto set (> 99 %): most likely the best at 60,000 evaluations.",
        "c is dominated by a at both times, 100 and 60,000 evaluations (> 99 %), and by b.",
    ]
    mean = np.array([[3.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 3.0]])
    draws = mean + 0.3 * rng.normal(size=(1000, 4, 2))
    even = posterior_of(draws, np.array([1.0, 300.4, 3404.01, 9000.0]), clock="wall")
    close = "Too close to call who is the best from 300 to 3,404 seconds (a, b)."
    assert str(even.verdict(0.95)).splitlines()[-2] == close
    table = tabulate_pairs(posterior)
    assert table["relation"] == ["crosses", "dominates", "dominates"]
    assert len({len(column) for column in table.values()}) == 1


def test_a_verdict_says_if_only_the_dominator_is_uncertain():
    """In 96 % of draws a or b is ahead of c, and neither of them in more than 60 %."""
    a_leads, b_leads, c_leads = [2.0, 0.0, 1.0], [0.0, 2.0, 1.0], [0.0, 0.5, 1.0]
    draws = np.array([a_leads] * 600 + [b_leads] * 360 + [c_leads] * 40)[:, None]
    posterior = posterior_of(draws, np.array([1.0]))
    said = (
        "c is undecided: it is dominated (96 %), but by which algorithm is not certain: "
        "a (60 %), b (36 %)."
    )
    assert said in str(posterior.paper_verdict(0.95)).splitlines()
    for certainty in (0.95, 0.97):  # likely replaceable, and not certain by whom
        found = str(posterior.verdict(certainty)).splitlines()
        assert said.replace("dominated", "replaceable") in found
    sure = "c is undecided (4 % that it is a member): closest to dominating it is a (60 %)."
    assert sure in str(posterior.paper_verdict(0.97)).splitlines()


def test_all_that_are_alike_stay():
    said = str(pb.fit(pb.simulation.simulate_rankings(np.zeros((3, 3)), 20, 1)).verdict())
    assert said.endswith("All 3 algorithms stay in the anytime Pareto set.")


@pytest.mark.parametrize("certainty", [0.5, 1.1, np.nan])
def test_a_certainty_that_is_none_is_refused(certainty):
    posterior = random_posterior(0)
    with pytest.raises(pb.DataError, match="certainty="):
        posterior.pareto(certainty)
    with pytest.raises(pb.DataError, match="epsilon="):
        posterior.prob_equivalent("a", "b", 0.5)
    with pytest.raises(pb.DataError, match="elimination="):
        posterior.paper_verdict(0.9, elimination="both")
    with pytest.raises(pb.DataError, match=r"margin=0.5, width=0.1: expected"):
        posterior.pareto(0.9, margin=0.5)


def test_a_verdict_says_at_how_many_times():
    draws = np.array([2.0, 0.0]) + 0.1 * np.random.default_rng(1).normal(size=(1000, 4, 2))
    posterior = posterior_of(draws, np.array([100.0, 200.0, 300.0, 400.0]), clock="evaluations")
    assert "dominated by a at all 4 times from 100 to 400 evaluations" in str(
        posterior.paper_verdict()
    )


def test_who_is_tied_is_not_called_open():
    """Of two clones one is better on average in every draw, and which is not known."""
    draws = np.random.default_rng(1).normal(0, 0.05, (400, 3, 3)) - [0.0, 0.0, 3.0]
    first, second, third = posterior_of(draws).verdicts()
    assert (first.kind, first.rival) == ("equivalent", "b")
    assert (second.kind, second.rival) == ("equivalent", "a")
    assert str(first).startswith("a is tied with b within 0.1 at all times")
    assert third.kind == "dominated"


# Each function against loops, on probabilities whose sums are exact: thresholds are met exactly.

EXACT = np.array([0.0, 0.125, 0.25, 0.5, 0.75, 0.875, 0.9375, 1.0])
"""Probabilities that are compared with a certainty of 3/4."""


def random_chances(seed):
    """P(row ahead of column), and P(they are equivalent), of which many are certain."""
    rng = np.random.default_rng(seed)
    n_times, n = rng.integers(1, 5), rng.integers(2, 5)
    ahead, alike = np.full((n_times, n, n), 0.5), np.ones((n_times, n, n))
    for a, b in zip(*np.triu_indices(n, 1), strict=True):
        likely = [EXACT, EXACT[3:5], EXACT[4:], 1 - EXACT[4:]][rng.integers(4)]
        ahead[:, a, b] = rng.choice(likely, n_times)
        alike[:, a, b] = alike[:, b, a] = rng.choice(EXACT[: rng.choice([4, 5])], n_times)
        ahead[:, b, a] = 1 - ahead[:, a, b]
    return ahead, alike


def literal_settled(ahead, alike, a, b, resolution):
    """Whether the relation of a pair is known at all times, by what it is at any two of them."""
    n_times = len(ahead)
    for t, s in np.ndindex(n_times, n_times):
        first, second = ahead[t, a, b] >= 0.75, ahead[s, b, a] >= 0.75
        both = (first or alike[t, a, b] >= 0.75) and (second or alike[s, a, b] >= 0.75)
        if both and (resolution == "at_par" or (resolution == "crossing" and (first or second))):
            return True
    return False


@pytest.mark.parametrize("resolution", ["strict", "crossing", "at_par"])
def test_open_times_are_those_of_loops(resolution):
    """A pair is open where it is not resolved; and, if it leads but does not dominate, where the
    error is above its share, or at the worst time."""
    for seed in range(60):
        ahead, alike = random_chances(seed)
        n_times, n, _ = ahead.shape
        beats = np.random.default_rng(seed).random((n, n)) < 0.3
        expected = np.zeros(ahead.shape, dtype=bool)
        for a, b in zip(*np.nonzero(~np.eye(n, dtype=bool)), strict=True):
            leads, ties = ahead[:, a, b] >= 0.75, alike[:, a, b] >= 0.75
            known = leads | (ahead[:, b, a] >= 0.75) | ties
            if not literal_settled(ahead, alike, a, b, resolution):
                expected[:, a, b] |= ~known
            if leads.all() and not beats[a, b] and not ties.any():
                short = [t for t in range(n_times) if 1 - ahead[t, a, b] > 0.25 / n_times]
                for t in short or [int(np.argmin(ahead[:, a, b]))]:
                    expected[t, a, b] = expected[t, b, a] = True
        found = dominance.find_open_times(ahead, alike, beats, 0.75, resolution)
        assert (found == expected).all()


def test_who_leads_at_exactly_the_certainty_leads():
    for seed in range(60):
        ahead, alike = random_chances(seed)
        both = range(ahead.shape[1])
        crossing = dominance.crosses(ahead, alike, 0.75)
        par = dominance.are_at_par(ahead, alike, 0.75)
        pointwise = dominance.dominates(ahead, ahead[0], 0.75, "pointwise")
        for a, b in itertools.product(both, both):
            for matrix, resolution in ((crossing, "crossing"), (par, "at_par")):
                settled = literal_settled(ahead, alike, a, b, resolution)
                assert matrix[a, b] == (a != b and settled)
            assert pointwise[a, b] == all(ahead[:, a, b] >= 0.75)
    assert (dominance.dominates(ahead, ahead[0], 0.75) == (ahead[0] >= 0.75)).all()
    dominance.check_certainty(1.0)


def test_the_last_of_a_chain_goes_first_however_sure_the_others_are():
    chain = np.diag([0.99, 0.8, 0.8], 1)
    assert dominance.eliminate(chain > 0, chain).tolist() == [False, True, True, True]


def test_of_a_circle_of_dominance_the_most_certainly_dominated_one_goes_first():
    circle = np.array([[0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], dtype=bool)
    sure = np.array([[0, 0.8, 1, 0], [0, 0, 0.9, 0], [0.7, 0, 0, 0], [0, 0, 0, 0]])
    # The third goes; then the second is dominated by the first, which nobody dominates any more.
    assert dominance.eliminate(circle, sure).tolist() == [False, True, True, False]
    # Two circles at once: in each, the surest of those that are left.
    two = np.kron(np.eye(2, dtype=bool), [[False, True], [True, False]])
    sure = np.array([[0, 0.9, 0, 0], [0.8, 0, 0, 0], [0, 0, 0, 0.6], [0, 0, 0.7, 0]])
    assert dominance.eliminate(two, sure).tolist() == [False, True, True, False]
    assert not dominance.eliminate(np.zeros((3, 3), dtype=bool), np.zeros((3, 3))).any()


def test_changes_of_the_lead_are_those_of_loops():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        ahead, lead = rng.choice(EXACT, 7), rng.integers(-2, 3, (16, 7)).astype(float)
        certain = [t for t in range(7) if ahead[t] >= 0.75 or 1 - ahead[t] >= 0.75]
        expected = []
        for s, t in itertools.pairwise(certain):
            up, was_up = ahead[t] >= 0.75, ahead[s] >= 0.75
            if up == was_up:
                continue
            before, after = (1 - ahead[s], ahead[t]) if up else (ahead[s], 1 - ahead[t])
            both = [x[s] < 0 < x[t] if up else x[t] < 0 < x[s] for x in lead]
            expected.append((s, t, up, before * after, min(np.mean(both), before, after)))
        for product in (True, False):
            changes = dominance.find_lead_changes(ahead, lead, 0.75, product=product)
            chosen = [(*one[:3], one[3] if product else one[4]) for one in expected]
            assert list(changes) == chosen


def random_draws(seed):
    """Draws with few different values, and P(ahead) that is near their shares, not equal."""
    rng = np.random.default_rng(seed)
    n_times, n, n_draws = rng.integers(2, 10), rng.integers(2, 12), 16
    centre = rng.integers(-1, 2, (1, 1, n)) * rng.integers(0, 3)
    draws = (
        centre + rng.integers(-2, 3, (n_draws, 1, n)) + rng.integers(0, 2, (n_draws, n_times, n))
    )
    share = (draws[..., :, None] > draws[..., None, :]).mean(axis=0)
    share += (draws[..., :, None] == draws[..., None, :]).mean(axis=0) / 2
    near = np.round(64 * share + rng.integers(-3, 4, share.shape)).clip(0, 64) / 64
    near = np.where(np.triu(np.ones((n, n))) > 0, near, 1 - near.swapaxes(1, 2))
    near[:, range(n), range(n)] = 0.5
    return draws.astype(float), near


def literal_joint(draws, ahead, *, count):
    """P(a ahead of b at all times): the share of draws, within the bounds that P(ahead) sets."""
    n_draws, n_times, n = draws.shape
    found = np.zeros((n, n))
    for a, b in zip(*np.nonzero(~np.eye(n, dtype=bool)), strict=True):
        chance, lead = ahead[:, a, b], draws[:, :, a] - draws[:, :, b]
        least = np.full(n_times, 0.0 if count else -np.inf)
        for t, behind in enumerate(np.round((1 - chance) * n_draws).astype(int)):
            if behind and not count:  # as many draws as P(ahead) says are behind
                least[t] = sorted(lead[:, t])[behind - 1]
        share = min(np.mean((lead > least).all(axis=1)), 1 - 0.5 / n_draws)
        if chance.min() > 1e-3:
            found[a, b] = max(min(share, chance.min()), 1 - sum(1 - chance))
    return found


@pytest.mark.parametrize("count", [True, False])
def test_who_is_ahead_at_all_times_is_counted_draw_by_draw(count, monkeypatch):
    for seed in range(25):
        draws, ahead = random_draws(seed)
        found = dominance.prob_ahead_everywhere_matrix(draws, ahead, count=count)
        expected = literal_joint(draws, ahead, count=count)
        assert_allclose(found, expected, atol=1e-12)
        worst = ahead.min(axis=0)
        for least in (0.0, 0.5, worst[0, -1]):  # what is below need not be counted
            some = dominance.prob_ahead_everywhere_matrix(draws, ahead, count=count, least=least)
            assert (some[worst >= least] == found[worst >= least]).all()
    for cells in (1, 300):  # few pairs at a time
        monkeypatch.setattr(dominance, "MAX_CELLS", cells)
        again = dominance.prob_ahead_everywhere_matrix(draws, ahead, count=count)
        assert (again == found).all()


@pytest.mark.parametrize("count", [True, False])
def test_draws_say_nothing_above_what_their_number_resolves(count):
    """At each time P is 1 - 1/80: one of 16 draws would be too many, and none too few."""
    draws = np.tile([1.0, 0.0], (16, 5, 1))
    ahead = np.full((5, 2, 2), 0.5)
    ahead[:, 0, 1], ahead[:, 1, 0] = 1 - 1 / 80, 1 / 80
    found = dominance.prob_ahead_everywhere_matrix(draws, ahead, count=count)
    assert found[0, 1] == pytest.approx(1 - 0.5 / 16)
    draws[:8] = [0.0, 1.0]
    ahead[0, 1, 0], ahead[1:, 1, 0] = (
        1e-3,
        0.5,
    )  # such a pair is not counted, whatever the draws say
    assert dominance.prob_ahead_everywhere_matrix(draws, ahead, count=count)[1, 0] == 0


@pytest.mark.parametrize("count", [True, False])
def test_what_no_draw_resolves_is_not_counted(count):
    """The lower bound is 1 - 1/32, and each of 16 draws says the opposite."""
    draws, ahead = np.tile([0.0, 1.0], (16, 2, 1)), np.full((2, 2, 2), 0.5)
    ahead[:, 0, 1], ahead[:, 1, 0] = 1 - 1 / 64, 1 / 64

    def refused(*_):
        raise AssertionError("no draws are needed")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dominance, "_count_joint" if count else "_prob_joint", refused)
        found = dominance.prob_ahead_everywhere_matrix(draws, ahead, count=count, least=0.5)
    assert found.tolist() == [[0, 1 - 1 / 32], [0, 0]]


def test_draws_of_a_pair_are_left_out_when_it_is_known_to_be_behind():
    """That is looked up after every fourth time. Of nine, the last but one comes last."""
    a, b = np.array([0, 0, 1]), np.array([1, 2, 0])
    for n_times, last, left in ((3, 2, [0, 1, 2]), (4, 3, [0]), (8, 7, [0]), (9, 7, [0, 1])):
        curves = [np.array([[2.0, 2.0], [0.0, 1.0], [1.0, 1.0]]) for _ in range(n_times)]
        curves[last][2] = 3.0
        won, rest = dominance._joint_wins(curves, a, b)
        assert rest.tolist() == left
        assert won.tolist() == [[k == 0] * 2 for k in left]
    same = np.zeros((5, 3, 2))
    same[:, 2] = 1.0
    assert len(dominance._distinct_curves(same)) == 2


def test_at_one_time_it_is_the_chance_at_that_time():
    draws, ahead = np.zeros((8, 1, 2)), np.array([[[0.5, 0.1], [0.9, 0.5]]])
    found = dominance.prob_ahead_everywhere_matrix(draws, ahead, count=True)
    assert found.tolist() == [[0.0, 0.1], [0.9, 0.0]]


@pytest.mark.parametrize("most", [1, 100])
def test_who_is_undominated_in_a_draw_is_counted_draw_by_draw(most, monkeypatch):
    """By all pairs, or by the surest rivals first; a rival that is never ahead is left out."""
    monkeypatch.setattr(dominance, "MAX_FULL_ALGORITHMS", most)
    for seed in range(25):
        draws, ahead = random_draws(seed)
        n_draws, _, n = draws.shape
        expected = np.ones((n_draws, n), dtype=bool)
        for k, a, b in np.ndindex(n_draws, n, n):
            if ahead[:, a, b].min() > 0.5 / n_draws and all(draws[k, :, a] > draws[k, :, b]):
                expected[k, b] = False
        assert (dominance.is_undominated_in_draws(draws, ahead) == expected).all()
    monkeypatch.setattr(dominance, "MAX_CELLS", 1)
    assert (dominance.is_undominated_in_draws(draws, ahead) == expected).all()
    # Each of twenty rivals is ahead in one draw of twenty, and nobody in the last one.
    draws = np.zeros((21, 2, 21))
    draws[range(20), :, range(1, 21)] = 1.0
    ahead = np.full((2, 21, 21), 0.5)
    assert dominance.is_undominated_in_draws(draws, ahead)[:, 0].tolist() == [False] * 20 + [True]


@pytest.mark.parametrize("most", [1, 100])
def test_a_rival_that_no_draw_could_show_dominates_in_none(most, monkeypatch):
    """The probability at the worst time is at most half a draw; a little more is counted."""
    monkeypatch.setattr(dominance, "MAX_FULL_ALGORITHMS", most)
    draws, ahead = np.tile([1.0, 0.0], (16, 2, 1)), np.full((2, 2, 2), 0.5)
    ahead[0, 1, 0] = 0.0
    for worst, dominated in ((0.0, False), (0.5 / 16, False), (1 / 16, True)):
        ahead[0, 0, 1] = worst
        found = dominance.is_undominated_in_draws(draws, ahead)
        assert (found == [True, not dominated]).all()
