"""Who replaces whom, against a literal twin: instance by instance, stretch by stretch."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from scipy.stats import t as student

import polarbear as pb
from polarbear.data.positions import UNKNOWN
from polarbear.inference.e_values import lead_bets, score_bets
from polarbear.inference.replacing import Duels, compare_on_stretches, find_chances, find_stretches
from polarbear.priors.base import scale_times

TIMES = np.geomspace(1, 1000, 12)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=30, unique=True), st.floats(0, 0.9))
def test_stretches_cover_every_time_and_none_lies_in_another(times, width):
    times = np.sort(times)
    stretches = find_stretches(times, width)
    ranges = [range(one.start, one.stop) for one in stretches]
    assert set().union(*ranges) == set(range(len(times)))
    for one in ranges:
        assert not any(set(one) < set(other) for other in ranges)
    scaled = scale_times(times)
    for one in stretches:
        assert scaled[one.stop - 1] - scaled[one.start] <= width + 1e-8
        # And it is as long as can be.
        if one.stop < len(times):
            assert scaled[one.stop] - scaled[one.start] > width


def twin(rankings, a, b, margin, width, weight_of):
    """Log e-values, t-values and leads of a against b by their definition."""
    position = rankings.position
    columns = {name: k for k, name in enumerate(rankings.algorithms)}
    rows = []  # (weight, outcome at each time: 1, -1, 0 or nan)
    for c in range(len(rankings.offset) - 1):
        entries = range(rankings.offset[c], rankings.offset[c + 1])
        place = {rankings.algorithm[e]: position[:, e] for e in entries}
        if columns[a] not in place or columns[b] not in place:
            continue
        ours, theirs = place[columns[a]], place[columns[b]]
        outcome = np.sign(theirs.astype(float) - ours)
        outcome[(ours == UNKNOWN) | (theirs == UNKNOWN)] = np.nan
        rows.append((weight_of(c), outcome))

    def mixture(payoffs, stakes, weights):
        wealth = [np.prod([(1 + k * y) ** w for w, y in payoffs]) for k in stakes]
        return np.log(np.dot(weights, wealth) / np.sum(weights))

    def t_value(payoffs):
        n = sum(w for w, _ in payoffs)
        mean = sum(w * y for w, y in payoffs) / n
        spread = sum(w * (y - mean) ** 2 for w, y in payoffs)
        return mean / np.sqrt((spread + 0.25) / (n + 1) / n)

    def p_value(payoffs, lowest):
        """The larger one of Student's test and the binomial test with the observed variance."""
        n, t = sum(w for w, _ in payoffs), t_value(payoffs)
        mean = sum(w * y for w, y in payoffs) / n
        spread = sum(w * (y - mean) ** 2 for w, y in payoffs) + 0.25
        won = min(max(mean + lowest, 0), 1)
        trials = n * (n * won * (1 - won) + 0.25) / spread
        at_least = beta.cdf(lowest, trials * won, trials * (1 - won) + 1) if won else 1.0
        return max(student.sf(t, n - 1), at_least)

    theta, theta_weight = lead_bets(0.05)
    small = np.append(0.015, theta), np.append(len(theta) + 1, theta_weight)
    no_worse, t_no_worse, p_no_worse, lead, worse, p_worse = [], [], [], [], [], []
    for stretch in find_stretches(rankings.times, width):
        shares = [
            (w, np.mean(x[stretch] > 0), np.mean(x[stretch] < 0))
            for w, x in rows
            if not np.isnan(x[stretch]).any()
        ]
        y1 = [(k, (0.5 + margin) * w - (0.5 - margin) * l) for k, w, l in shares]  # noqa: E741
        y2 = [(k, (w - l) / 2 + margin / 2) for k, w, l in shares]  # noqa: E741
        e1 = mixture(y1, *score_bets(0.5 - margin, margin))
        e2 = mixture(y2, *score_bets(0.5 - margin / 2, margin / 2))
        no_worse.append(np.log((np.exp(e1) + np.exp(e2)) / 2))
        t_no_worse.append(max(t_value(y1), t_value(y2)))
        p_no_worse.append(min(p_value(y1, 0.5 - margin), p_value(y2, 0.5 - margin / 2)))
        lead.append(t_value([(k, (w - l) / 2) for k, w, l in shares]))  # noqa: E741
        behind = [[(k, -y) for k, y in payoffs] for payoffs in (y1, y2)]
        above = 0.5 + margin, 0.5 + margin / 2
        bets = score_bets(above[0], margin), score_bets(above[1], margin / 2)
        worse.append(min(mixture(y, *bet) for y, bet in zip(behind, bets, strict=True)))
        p_worse.append(max(p_value(y, m) for y, m in zip(behind, above, strict=True)))
    whole = [(w, np.mean(np.sign(x))) for w, x in rows if not np.isnan(x).any()]
    better = mixture(whole, 2 * small[0], small[1])
    t_better = t_value([(w, y / 2) for w, y in whole])
    p_better = p_value([(w, y / 2) for w, y in whole], 0.5)
    return {
        "no_worse": no_worse, "better": better, "t_no_worse": t_no_worse, "t_better": t_better,
        "lead": lead, "p_no_worse": p_no_worse, "p_better": p_better, "worse": worse,
        "p_worse": p_worse,
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_evidence_is_that_of_a_literal_twin(seed):
    rng = np.random.default_rng(seed)
    # With ties; in the last two mostly ties, where the margin of all duels counts.
    costs = np.round(rng.normal(size=(len(TIMES), 25, 3)) * (0.35 if seed > 3 else 2))
    names = [f"a{k}" for k in range(3)]
    runs = [
        pb.Run(names[k], f"i{i}", TIMES[:end], costs[:end, i, k], TIMES[end - 1], status="cut")
        for i in range(25)
        for k in range(3)
        for end in (len(TIMES) if rng.random() < 0.8 else int(rng.integers(2, 12)),)
    ]
    weights = {f"i{i}": 0.5 for i in range(5)} if seed % 2 else None
    rankings = pb.rank(pb.Runs.from_records(runs, direction="minimize"), TIMES, weights=weights)
    heaviest = 2.0 if seed > 2 else None
    found = compare_on_stretches(rankings, 0.1, 0.2, heaviest, both_sides=True)
    for (i, a), (j, b) in permutations(enumerate(rankings.algorithms), 2):
        weights = rankings.weight / (heaviest or 1.0)
        for name, expected in twin(rankings, a, b, 0.1, 0.2, weights.__getitem__).items():
            assert getattr(found, name)[..., i, j] == pytest.approx(expected), name


def test_an_instance_with_repetitions_is_one_bet():
    """Its e-value is at most that of the mean score of the repetitions."""
    once = pb.Runs.from_records(
        [pb.Run(n, f"i{i}", [1.0], [float(n == "b")], 1.0) for n in "ab" for i in range(6)],
        direction="minimize",
    )
    thrice = pb.Runs.from_records(
        [run._replace(repetition=k) for run in once for k in range(3)], direction="minimize"
    )
    one, three = (compare_on_stretches(pb.rank(runs, [1.0])) for runs in (once, thrice))
    assert three.no_worse == pytest.approx(one.no_worse)
    assert three.better == pytest.approx(one.better)


def test_a_common_start_does_not_save_an_algorithm():
    """Tied at the first fifth, behind later: the paper's strict lead would never be shown."""
    lead = np.zeros((20, 2))
    lead[4:, 0] = np.log(4.0)
    rng = np.random.default_rng(1)
    costs = -(lead[:, None] + rng.gumbel(size=(1, 150, 2)))
    costs[:4] = 0.0
    rankings = pb.simulation.rank_costs(costs)
    first, second = pb.assess(rankings)
    assert (first.kind, second.kind, second.rival) == ("member", "dominated", "a1")
    strict = pb.assess(rankings, pb.StrictParetoSet())
    assert [one.kind for one in strict] == ["undecided", "undecided"]


def test_who_wins_at_the_last_time_alone_is_not_dropped():
    lead = np.zeros((20, 2))
    lead[:, 0] = np.log(4.0)
    lead[-2:, 0] = -np.log(4.0)
    dropped = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rankings = pb.simulation.rank_costs(-(lead[:, None] + rng.gumbel(size=(20, 60, 2))))
        dropped += pb.assess(rankings)[1].kind == "dominated"
    assert dropped == 0


def test_chances_follow_the_duels_and_not_a_model_of_rankings():
    """Often the best and sometimes the worst of three: ahead of each rival in most duels."""
    rng = np.random.default_rng(0)
    costs = rng.normal(size=(5, 200, 3))
    wild = rng.random(200) < 0.58
    costs[:, :, 0] = np.where(wild, -9.0, 9.0)
    chances = find_chances(pb.simulation.rank_costs(costs))
    assert chances.worth_running[0] > 0.95
    assert chances.replaces[1, 0] < 0.05


def test_chances_are_not_certain_after_few_instances():
    costs = np.tile([0.0, 1.0], (5, 4, 1))
    chances = find_chances(pb.simulation.rank_costs(costs))
    assert 0.8 < chances.replaces[0, 1] < 0.999
    assert chances.replaces.sum() <= 1 + 1e-9


def test_the_worst_of_many_noisy_stretches_does_not_make_an_algorithm_worth_running():
    """It loses 60 % of its duels everywhere, so its rival replaces it, and luck is new each time.

    If draws were not shifted, it would be called worth running with 60 % in the mean.
    """
    found = []
    for seed in range(20):
        costs = np.random.default_rng(seed).gumbel(size=(20, 12, 2))
        costs[:, :, 1] += np.log(0.6 / 0.4)
        found.append(find_chances(pb.simulation.rank_costs(costs)).worth_running[1])
    assert 0.2 < np.mean(found) < 0.4


def twin_chances(rankings, margin, width):
    """P(row replaces column), P(tied) and P(worth running) by their definition, draw by draw."""
    n, times = len(rankings.algorithms), rankings.times
    rng = np.random.default_rng(0)
    weights = rng.standard_exponential((1001, len(rankings.instances)), np.float32)
    one, other = rng.standard_exponential((2, 1001), np.float32)
    order = rng.random((n, 1001), np.float32)
    weights[0], one[0], other[0] = 1.0, 1.0, 1.0  # the data as they are
    # The weights sum to the effective number of instances.
    own = np.array([rankings.weight[rankings.instance == i].sum() for i in range(7)])
    weights = weights[:, rankings.instance] * rankings.weight * own.sum() / (own @ own)
    place = np.full((len(times), weights.shape[1], n), UNKNOWN)
    for c in range(weights.shape[1]):
        for e in range(rankings.offset[c], rankings.offset[c + 1]):
            place[:, c, rankings.algorithm[e]] = rankings.position[:, e]
    no_worse, better = np.ones((n, n, 1000), bool), np.zeros((n, n, 1000), bool)
    for a, b in permutations(range(n), 2):
        ours, theirs = place[..., a], place[..., b]
        ahead = order[a] < order[b]
        half = np.where(ahead, one, other), np.where(ahead, other, one)

        def share(stretch, ours=ours, theirs=theirs, half=half):
            known = ((ours != UNKNOWN) & (theirs != UNKNOWN))[stretch].all(axis=0)
            total = weights @ known + half[0] + half[1]
            won, lost = (ours < theirs)[stretch].mean(axis=0), (ours > theirs)[stretch].mean(axis=0)
            return tuple(
                (weights @ (x * known) + h) / total for x, h in zip((won, lost), half, strict=True)
            )

        worst = np.full(1001, np.inf)
        for stretch in find_stretches(times, width):
            won, lost = share(stretch)
            room = (0.5 + margin) * won - (0.5 - margin) * lost, (won - lost + margin) / 2
            worst = np.minimum(worst, np.maximum(*room))
        no_worse[a, b] = worst[1:] + max(worst[0] - worst[1:].mean(), 0) >= 0
        won, lost = share(slice(0, len(times)))
        better[a, b] = (won > lost)[1:]
    replaces = no_worse & better
    tied = (no_worse & no_worse.swapaxes(0, 1)).mean(axis=2) * ~np.eye(n, dtype=bool)
    return replaces.mean(axis=2), tied, 1 - replaces.any(axis=0).mean(axis=1)


@pytest.mark.parametrize("seed", range(2))
def test_chances_are_those_of_a_literal_twin(seed):
    """With ties, repetitions, weights, and runs that end early; on seven instances."""
    rng = np.random.default_rng(seed)
    runs = [
        pb.Run(
            f"a{k}", f"i{i}", TIMES[:end], np.round(2 * rng.normal(size=end)) - 9 * TIMES[:end],
            TIMES[end - 1], r, status="cut",
        )
        for i in range(7)
        for r in range(1 + i % 2)
        for k in range(3)
        for end in (len(TIMES) if rng.random() < 0.8 else int(rng.integers(2, 12)),)
    ]  # fmt: skip
    runs = pb.Runs.from_records(runs, direction="minimize")
    rankings = pb.rank(runs, TIMES, weights={"i1": 0.5, "i2": 3.0})
    found = find_chances(rankings, 0.1, 0.2)
    assert found.is_worth.shape == (1000, 3)
    replaces, tied, worth = twin_chances(rankings, 0.1, 0.2)
    # Single precision may turn a draw at the edge.
    np.testing.assert_allclose(found.replaces, replaces, atol=0.0011)
    np.testing.assert_allclose(found.tied, tied, atol=0.0011)
    np.testing.assert_allclose(found.worth_running, worth, atol=0.0021)


def test_sums_over_very_many_times_do_not_overflow():
    """With 1,300 times a sum of unknown results is above 2^31."""
    place = np.zeros((1300, 2, 2), dtype=np.int8)
    place[:, :, 1] = [UNKNOWN, 1]
    stretches = [slice(0, 1300), slice(1299, 1300)]
    first, second = np.array([0]), np.array([1])
    won, lost, known = Duels.of(first, second, place, stretches, np.ones(2)).share_results(
        stretches
    )
    assert won[:, :, 0].tolist() == known[:, :, 0].tolist() == [[0, 1]] * 2
    assert not lost.any()
