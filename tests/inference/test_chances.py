"""Probabilities of "replaces" against closed forms and single draws, and what is said of them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

import polarbear as pb
from polarbear.inference import replacing
from polarbear.inference.replacing import (
    LIKELY_Z,
    Chances,
    Duels,
    DuelTally,
    PairEvidence,
    PairTables,
    Places,
    compare_on_stretches,
    find_chances,
    find_chances_of_curves,
    find_stretches,
)
from polarbear.inference.verdicts import Verdict


def duels(wins, losses, ties=0, n_times=1):
    """Rankings of two algorithms: the first wins, loses and ties on so many instances."""
    first = np.repeat([-1.0, 1.0, 0.0], [wins, losses, ties])
    costs = np.stack([first, np.zeros(len(first))], axis=1)
    return pb.simulation.rank_costs(np.repeat(costs[None], n_times, axis=0))


@pytest.mark.parametrize(("wins", "losses"), [(12, 8), (30, 40), (5, 0), (60, 50)])
def test_without_ties_a_chance_is_that_of_a_beta_distribution(wins, losses):
    """Weights of instances are exponential, so the share of wins is Beta(w + 1, l + 1)."""
    share = beta(wins + 1, losses + 1)
    chances = find_chances(duels(wins, losses, n_times=3), margin=0.1)
    # The margin on wins less losses decides: it allows a share of 0.45.
    within = share.cdf(0.6) - share.cdf(0.4)
    assert chances.replaces[0, 1] == pytest.approx(share.sf(0.5), abs=0.05)
    assert chances.replaces[1, 0] == pytest.approx(share.cdf(0.5), abs=0.05)
    assert chances.tied[0, 1] == chances.tied[1, 0] == pytest.approx(within, abs=0.05)
    assert chances.replaces.diagonal().tolist() == chances.tied.diagonal().tolist() == [0, 0]
    assert chances.worth_running == pytest.approx(1 - chances.replaces.sum(axis=0))


def test_ties_make_a_loss_immaterial():
    """Of 100 instances 4 are lost and 96 tied: worse on average, by less than the margin."""
    chances = find_chances(duels(0, 4, 96), margin=0.1)
    assert chances.tied[0, 1] > 0.95
    assert chances.replaces[1, 0] > 0.95
    assert find_chances(duels(0, 4, 96), margin=0.01).tied[0, 1] < 0.2


def test_repetitions_share_the_weight_of_their_instance():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(2, 30)).round(1)
    once = [
        pb.Run(name, f"i{i:02}", [1.0], [values[k, i]], 1.0)
        for k, name in enumerate("ab")
        for i in range(30)
    ]
    thrice = [run._replace(repetition=k) for run in once for k in range(3)]
    few, many = (
        find_chances(pb.rank(pb.Runs.from_records(runs, direction="minimize"), [1.0]))
        for runs in (once, thrice)
    )
    assert few.replaces == pytest.approx(many.replaces)
    assert few.tied == pytest.approx(many.tied)


def test_who_loses_on_one_stretch_replaces_nobody():
    costs = np.zeros((30, 80, 2))
    costs[:, :, 1] = 1.0
    costs[-1, :, 1] = -1.0
    rankings = pb.simulation.rank_costs(costs)
    assert find_chances(rankings, width=0.01).replaces.max() < 0.01
    # On all times together the lead by far outweighs it.
    assert find_chances(rankings, width=0.99).replaces[0, 1] > 0.99


def test_the_memory_that_is_used_changes_no_result(monkeypatch):
    truth = np.random.default_rng(1).normal(size=(6, 5))
    rankings = pb.simulation.simulate_rankings(truth, 40, seed=1)

    def compute():
        curves = np.random.default_rng(2).normal(size=(60, 6, 5))
        of_curves = find_chances_of_curves(rankings.algorithms, rankings.times, curves)
        return *find_chances(rankings)[1:], *of_curves[1:], *compare_on_stretches(rankings)

    whole = compute()
    for cells in (1, 700):
        monkeypatch.setattr(replacing, "MAX_CELLS", cells)
        monkeypatch.setattr(replacing, "CACHED_CELLS", cells)
        for own, other in zip(compute(), whole, strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)


def test_of_very_many_duels_fewer_draws_are_counted(monkeypatch):
    rankings = duels(9, 3)
    monkeypatch.setattr(replacing, "MAX_RESAMPLED", 12 * replacing.DUELS_FOR_ONE_DRAW * 250)
    assert find_chances(rankings).is_worth.shape == (250, 2)
    monkeypatch.setattr(replacing, "MAX_RESAMPLED", 12)
    assert find_chances(rankings).is_worth.shape == (200, 2)  # not fewer than these
    many = duels(9, 3, n_times=200)
    monkeypatch.setattr(replacing, "MAX_RESAMPLED", 12 * len(find_stretches(many.times, 0.1)) * 300)
    assert find_chances(many).is_worth.shape == (300, 2)

    times, wins = np.arange(1.0, 5.0), np.full((1000, 4, 1), 0.7)
    for most, n_draws in ((3 * 4 * 250, 250), (1, 50), (3 * 4 * 1000, 1000), (3 * 4 * 999, 500)):
        monkeypatch.setattr(replacing, "MAX_RESAMPLED", most)
        chances = find_chances_of_curves(("a", "b"), times, wins, wins)
        assert chances.is_worth.shape == (n_draws, 2)
        assert chances.replaces.tolist() == [[0, 1], [0, 0]]


@pytest.mark.parametrize("ties", [False, True])
def test_chances_of_curves_are_those_of_a_literal_twin(ties):
    rng, times = np.random.default_rng(3), np.array([1.0, 2.0, 3.0, 5.0, 100.0])
    curves = rng.normal(size=(90, 1, 3)) + 0.7 * rng.normal(size=(90, 5, 3))
    decided = rng.uniform(0.2, 1, (5, 3)) if ties else None
    found = find_chances_of_curves(("a", "b", "c"), times, curves, None, decided, 0.1, 0.3)
    replaces = np.zeros((3, 3, 90), dtype=bool)
    for k, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
        for own, other in ((a, b), (b, a)):
            share = np.ones(5) if decided is None else decided[:, k]
            chance = 1 / (1 + np.exp(curves[..., other] - curves[..., own]))
            won, lost = chance * share, (1 - chance) * share
            room = []
            for one in find_stretches(times, 0.3):
                w, v = won[:, one].mean(axis=1), lost[:, one].mean(axis=1)
                room.append(np.maximum(0.6 * w - 0.4 * v, (w - v + 0.1) / 2))
            better = won.mean(axis=1) > lost.mean(axis=1)
            replaces[own, other] = (np.min(room, axis=0) >= 0) & better
    np.testing.assert_allclose(found.replaces, replaces.mean(axis=2))
    assert (found.is_worth == ~replaces.any(axis=0).T).all()
    assert 0.1 < found.replaces.mean() < 0.4


def test_chances_of_curves_are_shares_of_draws():
    """Four draws of one pair at two far times, each a stretch of its own."""
    wins = np.array([[0.7, 0.45], [0.7, 0.35], [0.5, 0.5], [0.45, 0.5]])[..., None]
    times = np.array([1.0, 1000.0])
    chances = find_chances_of_curves(("a", "b"), times, wins, wins)
    # a is better in the first two draws, and in the second much worse at the end.
    assert chances.replaces.tolist() == [[0, 0.25], [0.25, 0]]
    assert chances.tied.tolist() == [[0, 0.5], [0.5, 0]]
    assert chances.is_worth.tolist() == [[1, 0], [1, 1], [1, 1], [0, 1]]


def test_the_margin_itself_is_no_loss():
    """With a margin of 0.1, of duels that are all decided 40 of 100 may be won, and no fewer."""
    for share, tied in ((0.4, 1), (0.4 - 1e-6, 0), (0.6, 1), (0.6 + 1e-6, 0)):
        wins = np.full((1, 1, 1), share)
        assert find_chances_of_curves(("a", "b"), np.ones(1), wins, wins).tied[0, 1] == tied


def test_the_margin_counts_all_duels_and_those_that_are_decided():
    """Of 30 % decided duels 66 % may be won, 10 % more of all than lost; of 80 % only 60 %."""
    for decided, share, tied in ((0.3, 0.66, 1), (0.3, 0.67, 0), (0.8, 0.599, 1), (0.8, 0.601, 0)):
        wins, known = np.full((1, 2, 1), share), np.full((2, 1), decided)
        chances = find_chances_of_curves(("a", "b"), np.ones(2), wins, wins, decided=known)
        assert chances.tied[0, 1] == tied


@pytest.mark.parametrize(("won", "lost"), [(8, 24), (6, 20), (2, 10)])
def test_a_posterior_and_the_duels_agree_where_most_instances_tie(won, lost, tmp_path):
    """Late, the second wins most of the few decided duels: by less than a tenth of all."""
    outcomes = [np.repeat([-1, 1, 0], [w, v, 200 - w - v]) for w, v in ((130, 70), (won, lost))]
    first = np.stack(outcomes)
    rankings = pb.simulation.rank_costs(np.stack([first, np.zeros_like(first)], axis=-1))
    pb.fit(rankings).save(tmp_path / "ties.zip")
    posterior = pb.Posterior.load(tmp_path / "ties.zip")
    expected = find_chances(rankings).worth_running
    assert posterior.decided == pytest.approx(np.array([[1.0], [(won + lost + 2) / 202]]))
    assert (posterior._chances(0.1, 0.1).worth_running == expected).all()
    model = replace(posterior, places=None)
    np.testing.assert_allclose(model._chances(0.1, 0.1).worth_running, expected, atol=0.11)
    no_ties = replace(model, decided=None)._chances(0.1, 0.1).worth_running
    assert no_ties[1] > expected[1] + 0.5  # of ties a model of rankings knows nothing


NAMES = ("a", "b", "c", "d")


def chances_of(replaces=(), tied=(), worth=(1.0,) * 4):
    matrices = np.zeros((2, 4, 4))
    for matrix, entries in zip(matrices, (replaces, tied), strict=True):
        for names, chance in entries:
            matrix[NAMES.index(names[0]), NAMES.index(names[1])] = chance
    matrices[1] += matrices[1].T
    is_worth = np.arange(100)[:, None] < np.array(worth) * 100
    return Chances(NAMES, *matrices, is_worth)


def said(chances, certainty=0.95):
    verdicts = chances.state_verdicts(certainty, 0.1)
    assert {one.margin for one in verdicts} == {0.1}
    return [(one.kind, one.rival, one.probability) for one in verdicts]


def test_who_is_replaced_says_by_whom_it_is_surest_of_those_that_stay():
    chances = chances_of(
        [("ab", 0.96), ("ac", 0.97), ("bc", 0.99), ("cd", 0.5), ("ad", 0.2)], worth=(1, 0, 0, 0.4)
    )
    # b replaces c more surely than a does, but is replaced itself, and so is c, closest to d.
    assert said(chances) == [
        ("member", None, 1.0),
        ("dominated", "a", 0.96),
        ("dominated", "a", 0.97),
        ("undecided", "a", 0.4),
    ]
    assert chances.find_replaced(0.95).tolist() == [False, True, True, False]
    assert chances.find_replaced(0.96).tolist() == [False, True, True, False]  # as much as it is
    assert chances.find_replaced(0.97).tolist() == [False, False, True, False]


def test_who_is_tied_is_equivalent_if_no_third_one_replaces_it():
    halves = [("ab", 0.5), ("ba", 0.5), ("ca", 0.05), ("cb", 0.06)]
    chances = chances_of(halves, [("ab", 0.97), ("bd", 0.99)], worth=(0.5, 0.5, 1, 0.5))
    assert said(chances) == [
        ("equivalent", "b", 0.5),
        ("undecided", "a", 0.5),  # c may replace it
        ("member", None, 1.0),
        ("equivalent", "b", 0.5),
    ]


def test_a_tie_with_who_is_replaced_counts_for_nothing():
    chances = chances_of([("ab", 0.99), ("bc", 0.3)], [("bc", 0.99)], worth=(1, 0, 0.7, 0.9))
    assert said(chances)[1:] == [
        ("dominated", "a", 0.99),
        ("undecided", "a", 0.7),  # b is closer to replacing it, but is out
        ("undecided", "a", 0.9),
    ]


def test_one_algorithm_has_no_rival():
    alone = Chances(("a",), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((4, 1), dtype=bool))
    assert [(one.kind, one.rival) for one in alone.state_verdicts(0.9, None)] == [
        ("undecided", None)
    ]


def test_a_verdict_gets_the_probability_of_its_claim():
    chances = chances_of([("ab", 0.75)], worth=(0.25, 1, 1, 1))
    assert chances.add_to(Verdict("a", "undecided")).probability == 0.25
    assert chances.add_to(Verdict("b", "dominated", rival="a")).probability == 0.75
    # Those without runs, or replaced by one without runs, have none.
    assert chances.add_to(Verdict("x", "undecided")).probability is None
    assert chances.add_to(Verdict("b", "dominated", rival="x")).probability is None
    assert chances.add_to(Verdict("a", "member", rival="x")).probability == 0.25


def test_tables_of_a_pair_give_the_evidence_of_its_rankings():
    """With ties, repetitions and runs that end early; in both orders of the names."""
    rng = np.random.default_rng(5)
    times = np.array([1.0, 2.0, 4.0, 400.0])
    runs = [
        pb.Run(
            name,
            f"i{i}",
            times[:end],
            rng.integers(0, 3, end) - times[:end],
            times[end - 1],
            k,
            status="cut",
        )
        for name in ("new", "old", "other")
        for i in range(12)
        for k in range(1 + i % 2)
        for end in (4 if i else 3,)
    ]
    rankings = pb.rank(pb.Runs.from_records(runs, direction="minimize"), times)
    evidence = compare_on_stretches(rankings.among(["new", "old"]), 0.1, 0.4, both_sides=True)
    for first, second, at in (("new", "old", (0, 1)), ("old", "new", (1, 0))):
        tables = PairTables.of(rankings, first, second, 0.4)
        found = tables.weigh(tables.count_all(), 0.1)
        for name in ("no_worse", "worse", "t_no_worse", "p_no_worse", "p_worse", "lead"):
            expected = getattr(evidence, name)[:, *at]
            assert getattr(found, name)[:, 0, 0] == pytest.approx(expected), name
        assert found.instances[:, 0, 0].tolist() == [12, 11]
        swapped = PairTables.of(rankings, second, first, 0.4)
        for own, other in zip(tables.leads, swapped.leads, strict=True):
            assert own.tolist() == (-other).tolist()


def test_worse_is_shown_against_both_margins():
    """As "no worse" is of wins: neither duels that are decided nor all may be within it."""
    for wins, losses, ties in ((10, 60, 0), (1, 40, 300), (60, 10, 0)):
        found = compare_on_stretches(duels(wins, losses, ties), 0.1, both_sides=True)
        shown = found.shows_worse(np.full((2, 2), np.log(20)), -1.0)
        assert shown.tolist() == [[False, (wins, losses) == (10, 60)], [wins == 60, False]]
        at_the_end = found.shows_worse(np.full((2, 2), np.inf), 0.05)
        assert at_the_end.tolist() == shown.tolist()


@pytest.mark.parametrize("n", [10, 25])
def test_the_p_value_of_wins_alone_is_that_of_the_binomial_test(n):
    """If each instance is won or lost as a whole, P(at least as many wins) by the null."""
    for wins in range(n + 1):
        found = compare_on_stretches(duels(wins, n - wins), 0.0)
        exact = beta.cdf(0.5, wins, n - wins + 1) if wins else 1.0
        assert found.p_better[0, 1] >= exact - 1e-9
        # Not much more, as the variance has one observation of 1/2 more.
        assert found.p_better[0, 1] <= max(2.2 * exact, exact + 0.03)
    assert compare_on_stretches(duels(1, 0)).p_better[0, 1] == 1  # one instance shows nothing
    assert compare_on_stretches(duels(2, 0)).p_better[0, 1] < 1


def test_certain_is_what_reaches_the_certainty():
    assert said(chances_of(worth=(0.95, 0.94, 1, 1)))[:2] == [
        ("member", None, 0.95),
        ("undecided", "a", 0.94),
    ]
    assert said(chances_of([("ab", 0.95)], worth=(1, 0.05, 1, 1)))[1] == ("dominated", "a", 0.95)
    replaces = [("ab", 0.5), ("ba", 0.5), ("ca", 0.25), ("cb", 0.25)]
    chances = chances_of(replaces, [("ab", 0.75)], worth=(0.5, 0.5, 1, 1))
    assert said(chances, 0.75)[0] == ("equivalent", "b", 0.5)


def test_counts_of_wins_and_losses_are_a_table():
    table = PairTables.of_wins(2)
    found = table.weigh([np.array([[4.0, 9.0]])], 0.1)
    expected = compare_on_stretches(duels(9, 4), 0.1, both_sides=True)
    for name in ("no_worse", "worse", "p_no_worse", "lead", "instances"):
        assert getattr(found, name)[0, 0, 0] == pytest.approx(getattr(expected, name)[0, 0, 1])
    assert (table.instances, table.cells[0].shape) == (("0", "1"), (2, 2))
    assert found.no_worse.shape == (1, 1, 1)


def test_a_pair_without_instances_shows_nothing():
    runs = [pb.Run(name, i, [1.0], [0.0], 1.0) for name, i in (("a", "i"), ("b", "j"), ("c", "i"))]
    found = compare_on_stretches(pb.rank(pb.Runs.from_records(runs, direction="minimize"), [1.0]))
    for name in ("no_worse", "better", "t_no_worse", "t_better", "lead", "instances"):
        assert (getattr(found, name)[..., 0, 1] == 0).all(), name
    assert found.p_better[0, 1] == 1
    assert (found.p_no_worse[:, 0, 1] == 1).all()


def test_ahead_somewhere_is_at_least_the_stated_lead():
    evidence = PairEvidence.empty(2, (1, 2))
    evidence.lead[1, 0] = LIKELY_Z, LIKELY_Z - 1e-9
    assert evidence.is_ahead_somewhere().tolist() == [[True, False]]
    assert LIKELY_Z == 2.6  # the rate of errors in studies/error_control is for this one


def test_worse_is_shown_by_the_mean_of_the_e_values():
    evidence = PairEvidence.empty(2, (1, 1))
    evidence.worse[:, 0, 0] = np.log(50), 0.0
    assert evidence.shows_worse(np.log(25.4), -1.0)
    assert not evidence.shows_worse(np.log(25.6), -1.0)
    evidence = PairEvidence.empty(1, (1, 1))
    evidence.worse[:], evidence.p_worse[:] = 3.0, 0.25
    assert evidence.shows_worse(3.0, -1.0)  # what reaches a level
    assert evidence.shows_worse(4.0, 0.25)
    evidence = PairEvidence.empty(2, (1, 1))
    evidence.p_worse[:, 0, 0] = 0.02, 0.5  # of two stretches, the smallest one twice
    assert evidence.shows_worse(np.inf, 0.05)
    assert not evidence.shows_worse(np.inf, 0.03)


def test_of_two_the_other_one_is_the_rival_even_if_it_is_out():
    replaces = np.array([[0.0, 0.96], [0.0, 0.0]])
    is_worth = np.arange(10)[:, None] < np.array([9, 0])
    verdicts = Chances(("a", "b"), replaces, np.zeros((2, 2)), is_worth).state_verdicts(0.95, 0.1)
    assert [(one.kind, one.rival) for one in verdicts] == [("undecided", "b"), ("dominated", "a")]


def test_without_a_margin_only_a_lead_shows_that_one_is_no_worse():
    found = compare_on_stretches(duels(30, 4), 0.0)
    assert found.no_worse[0, 0, 1] == pytest.approx(found.better[0, 1])
    assert found.t_no_worse[0, 0, 1] == pytest.approx(found.t_better[0, 1])
    assert found.p_no_worse[0, 0, 1] == pytest.approx(found.p_better[0, 1])


def test_one_instance_leads_by_its_own_standard_error():
    """Its mean is 1/2, and the variance has one observation of 1/2 more."""
    assert compare_on_stretches(duels(1, 0)).lead[0, 0, 1] == pytest.approx(np.sqrt(2))


def test_utilities_that_no_single_number_can_hold_are_compared():
    curves = np.zeros((60, 2, 3), dtype=np.float32)
    curves[..., 0], curves[..., 1] = 100.0, -100.0
    chances = find_chances_of_curves(("a", "b", "c"), np.array([1.0, 2.0]), curves)
    assert chances.replaces.tolist() == [[0, 1, 1], [0, 0, 0], [0, 1, 0]]


def test_duels_are_counted_unless_they_are_too_many(monkeypatch):
    rankings = pb.simulation.simulate_rankings(np.zeros((40, 3)), 4)
    single = pb.simulation.simulate_rankings(np.zeros((1, 3)), 4)
    for data, duels in ((rankings, 4 * 3 * 40), (single, 4 * replacing.DUELS_FOR_ONE_DRAW)):
        monkeypatch.setattr(replacing, "MAX_DUELS", duels)
        assert replacing.can_count(data)
        monkeypatch.setattr(replacing, "MAX_DUELS", duels - 1)
        assert not replacing.can_count(data)


def test_without_comparisons_nothing_is_claimed():
    nothing = pb.simulation.simulate_rankings(np.zeros((3, 3)), 5).take([])
    replaces = find_chances(nothing).replaces[~np.eye(3, dtype=bool)]
    assert np.all((replaces > 0.2) & (replaces < 0.6))


def test_impossible_places_are_noticed():
    places = Places.of(pb.simulation.simulate_rankings(np.zeros((2, 3)), 4))
    assert replace(places, weight=np.array([0.0, 0.5, 1, 2])).are_possible()
    for name, wrong in (("position", 3), ("position", -2), ("instance", 4), ("instance", -1)):
        values = getattr(places, name).copy()
        values.flat[0] = wrong
        assert not replace(places, **{name: values}).are_possible()
    for weight in (-1.0, np.inf):
        assert not replace(places, weight=np.array([weight, 1, 1, 1])).are_possible()


def test_tallies_of_parts_add_up():
    place = np.random.default_rng(0).integers(0, 3, (5, 8, 2))
    stretches, one, two = [slice(0, 3), slice(2, 5)], np.array([0]), np.array([1])
    whole, first, rest = (
        DuelTally.of(Duels.of(one, two, place[:, part], stretches, np.ones(n)), stretches)
        for part, n in ((slice(0, 8), 8), (slice(0, 3), 3), (slice(3, 8), 5))
    )
    joined = first.join(rest)
    assert (joined.leads == whole.leads).all()
    for own, other in zip(joined.results, whole.results, strict=True):
        assert (own == other).all()


def test_by_default_a_stretch_is_a_tenth_and_nobody_is_shown_to_be_worse():
    found = compare_on_stretches(pb.simulation.simulate_rankings(np.zeros((20, 2)), 4))
    assert len(found.no_worse) == len(find_stretches(np.linspace(0, 1, 20), 0.1)) > 10
    assert (found.worse == 0).all()


@pytest.mark.parametrize("n_instances", [1, 12])
def test_chances_do_not_depend_on_the_order_of_names(n_instances):
    """Where all tie, each of six algorithms is the best with the same probability."""
    rankings = pb.simulation.rank_costs(np.zeros((3, n_instances, 6)))
    for worth in (find_chances(rankings, 0, 0.1), pb.fit(rankings)._chances(0.0, 0.1)):
        np.testing.assert_allclose(worth.worth_running, 1 / 6, atol=0.04)


def test_one_tied_instance_is_certain_of_nothing():
    for prior in (None, "BSpline"):
        posterior = pb.fit(pb.simulation.rank_costs(np.zeros((4, 1, 2))), prior)
        assert posterior.prob_replaces().max() < 0.6
        assert 0.3 < min(posterior.prob_in_pareto().values()) < 0.9


def test_few_wins_in_a_row_are_not_certain():
    """As by the model with its uniform prior: three wins make it 94 %."""
    posterior = pb.fit(duels(3, 0))
    assert posterior.prob_replaces("a1", "a2") == pytest.approx(0.9375, abs=0.02)
    assert posterior.prob_replaces("a1", "a2") == pytest.approx(
        posterior.prob_better("a1", "a2")[0], abs=0.02
    )


def test_who_never_met_is_compared_by_the_model():
    """a beats c, and c beats b: no duel of a and b says so."""
    runs = [
        pb.Run(name, f"{pair}{i}", [1.0], [float(k)], 1.0)
        for pair in ("ac", "cb")
        for i in range(40)
        for k, name in enumerate(pair)
    ]
    posterior = pb.fit(pb.Runs.from_records(runs, direction="minimize"), times=[1.0])
    assert posterior.places is None
    assert posterior.prob_replaces("a", "b") > 0.95
