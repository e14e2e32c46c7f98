"""E-values: closed forms, enumeration, and how often they are large when the claim is false."""

from collections import Counter
from itertools import product
from math import exp, gamma, log

import numpy as np
import pytest
from scipy.optimize import brentq

import polarbear as pb
from polarbear.inference import e_values
from polarbear.inference.e_values import (
    Outcomes,
    Shares,
    bound_win_rate,
    confidence_sequence,
    count_by_instance,
    count_outcomes,
    lead_bets,
    log_lead,
    log_mixture,
    multiplicity,
    preference_evidence,
    score_bets,
)
from racers import drive, race_of, restore

EPSILON = 0.05


def literal_lead(scores):
    """The wealth of four gamblers who bet on wins, instance by instance."""
    shares, weights = (0.04, 0.08963, 0.20083, 0.45), (0.4, 0.3, 0.2, 0.1)
    total = 0.0
    for share, weight in zip(shares, weights, strict=True):
        for score in scores:
            weight *= 1 + 2 * share * {1: 1, 0.5: 0, 0: -1}[score]
        total += weight
    return total


def literal_par(scores):
    """The wealth of three gamblers who bet on a mean score above 1/2 - epsilon."""
    stakes, weights = (0.14141, 0.53183, 2.0), (10 / 12, 1 / 12, 1 / 12)
    total = 0.0
    for stake, weight in zip(stakes, weights, strict=True):
        for score in scores:
            weight *= 1 + stake * (score - 0.45)
        total += weight
    return total


def log_par(wins, ties, losses, epsilon):
    """Return the log of the wealth of bets against "the mean score is at most 1/2 - epsilon"."""
    m = 0.5 - epsilon
    stakes, weight = score_bets(m, epsilon)
    wealth = [
        wins * np.log1p(k * (1 - m)) + ties * np.log1p(k * (0.5 - m)) + losses * np.log1p(-k * m)
        for k in stakes
    ]
    return log_mixture(weight, wealth)


def counted(scores):
    return tuple(np.array(float(scores.count(score))) for score in (1, 0.5, 0))


def test_e_values_are_those_of_literal_gamblers():
    rng = np.random.default_rng(0)
    for length in (0, 1, 5, 30):
        scores = rng.choice([1, 0.5, 0], length).tolist()
        wins, ties, losses = counted(scores)
        assert exp(log_lead(wins, losses, EPSILON)) == pytest.approx(literal_lead(scores), rel=1e-3)
        par = exp(log_par(wins, ties, losses, EPSILON))
        assert par == pytest.approx(literal_par(scores), rel=1e-3)


@pytest.mark.parametrize("tied", [0.0, 0.5])
@pytest.mark.parametrize("length", [1, 4, 9])
def test_the_expectation_is_one_where_the_claim_is_just_false(tied, length):
    """Enumeration of all outcomes: a win as likely as a loss; a mean score of 1/2 - epsilon."""
    lead = par = 0.0
    for numbers, orders in Counter(
        (scores.count(1), scores.count(0.5), scores.count(0))
        for scores in product((1, 0.5, 0), repeat=length)
    ).items():
        wins, ties, losses = map(np.float64, numbers)
        even = (1 - tied) / 2
        weight = orders * even ** (wins + losses) * tied**ties
        lead += weight * exp(log_lead(wins, losses, EPSILON))
        win = 0.45 - tied / 2
        weight = orders * win**wins * tied**ties * (1 - win - tied) ** losses
        par += weight * exp(log_par(wins, ties, losses, EPSILON))
    assert lead == pytest.approx(1, abs=1e-9)
    assert par == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.3, 0.4, 0.49])
@pytest.mark.parametrize("tied", [0.0, 0.5, 1.0])
def test_the_expectation_is_one_at_any_tolerance(epsilon, tied):
    """Enumeration: a mean score of 1/2 - epsilon, with this share of the ties it allows."""
    m = 0.5 - epsilon
    tie = tied * 2 * min(m, 1 - m)
    chance = np.array([m - tie / 2, tie, 1 - m - tie / 2]).clip(0)
    total = 0.0
    for scores in product((1, 0.5, 0), repeat=4):
        numbers = counted(scores)
        total += np.prod(chance**numbers) * exp(log_par(*numbers, epsilon))
    assert total == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.29, 0.3, 0.4, 0.49])
def test_wins_are_evidence_at_any_tolerance(epsilon):
    wins = np.arange(401.0)
    grown = log_par(wins, 0 * wins, 0 * wins, epsilon)
    assert (np.diff(grown) > 0).all()
    assert grown[-1] >= log(20)
    assert log_par(0.0, 0.0, 400.0, epsilon) < -1


def test_a_tie_is_ever_called_a_lead_as_often_as_stated():
    """By dynamic programming over 1,024 instances, with a look at each of them."""
    alive, stopped = {0: 1.0}, 0.0
    for n in range(1, 1025):
        wins = np.arange(n + 1.0)
        over = log_lead(wins, n - wins, EPSILON) >= log(20)
        later = dict.fromkeys(range(n + 1), 0.0)
        for won, share in alive.items():
            later[won] += share / 2
            later[won + 1] += share / 2
        stopped += sum(share for won, share in later.items() if over[won])
        alive = {won: share for won, share in later.items() if share and not over[won]}
    assert 0.03 <= stopped <= 0.05


def test_how_many_instances_the_clearest_outcomes_take():
    wins = np.arange(30.0)
    lead = log_lead(wins, np.zeros(30), EPSILON)
    assert [int(np.argmax(lead >= log(k))) for k in (20, 100, 400)] == [8, 11, 13]
    ties = np.arange(100.0)
    assert int(np.argmax(log_par(0 * ties, ties, 0 * ties, EPSILON) >= log(20))) == 57
    n = np.arange(1000)
    more, fewer = np.ceil(n / 2), np.floor(n / 2)
    worse = log_par(fewer, 0 * fewer, more, EPSILON)
    assert int(np.argmax(worse >= log(20))) == 696


def test_very_many_outcomes_give_numbers():
    wins, losses = np.array([1e6, 0.0, 5e5]), np.array([0.0, 1e6, 5e5])
    for log_e in (log_lead(wins, losses, EPSILON), log_par(wins, 0 * wins, losses, EPSILON)):
        assert log_e[0] > 5e5
        assert log_e[1] < 0
        assert not np.isnan(log_e).any()


@pytest.mark.parametrize(("sparse", "cells"), [(False, None), (True, None), (True, 1)])
def test_outcomes_are_counted_by_instances(sparse, cells, monkeypatch):
    """Of all algorithms on each instance, or of three of four; at once, or in small parts."""
    runs = pb.simulation.simulate_runs(np.zeros((3, 4)), 30, 1, rounding=1.0, cut=0.2, crashed=0.1)
    more = [run._replace(repetition=1) for run in runs if run.instance == "i1"]
    data = [*runs, *more]
    if sparse:
        left_out = {name: f"a{1 + k % 4}" for k, name in enumerate(runs.instances)}
        data = [run for run in data if run.algorithm != left_out[run.instance]]
    rankings = pb.rank(pb.Runs.from_records(data, direction="minimize"))
    if cells:
        monkeypatch.setattr(e_values, "MAX_CELLS", cells)
    outcomes = count_outcomes(rankings)
    for (i, a), (j, b) in product(enumerate(rankings.algorithms), repeat=2):
        for t, time in enumerate(rankings.times):
            shares = [_shares(rankings, name, time, a, b) for name in rankings.instances]
            won, tied = np.sum(shares, axis=0) if i != j else (0, 0)
            assert outcomes.wins[t, i, j] == pytest.approx(won)
            assert outcomes.ties[t, i, j] == pytest.approx(tied)


def _shares(rankings, instance, time, a, b):
    orders = rankings.order(instance, time)
    won = tied = 0
    for order in orders:
        place = {name: k for k, group in enumerate(order) for name in group}
        if a in place and b in place:
            won += place[a] < place[b]
            tied += place[a] == place[b]
    return won / len(orders), tied / len(orders)


def test_the_share_of_decided_duels_leaves_out_ties():
    wins, ties = np.zeros((2, 2, 3, 3))
    wins[0, 0, 1], wins[0, 1, 0], ties[0, 0, 1] = 3, 1, 4
    wins[0, 0, 2], wins[0, 2, 0] = 2, 2
    ties[1, 1, 2] = wins[1, 2, 1] = 0.25  # of an instance of little weight
    expected = np.array([[6 / 10, 1, 1], [1, 1, 2.25 / 2.5]])  # with two more that are decided
    assert Outcomes(wins, ties).share_decided() == pytest.approx(expected)
    assert not Outcomes(wins, ties).have_all_met()
    assert Outcomes(wins + 1, ties).have_all_met()
    once = np.ones((1, 2, 2)) - np.eye(2)
    assert Outcomes(once, 2 * once).have_all_met()
    assert Outcomes(wins, 0 * ties).share_decided() is None


def test_a_weighted_instance_counts_in_proportion_to_the_heaviest():
    runs = pb.simulation.simulate_runs(np.array([[1.0, 0.0]]), 20)
    weights = dict.fromkeys(runs.instances[:10], 4.0)
    plain, weighted = (count_outcomes(pb.rank(runs, weights=w)) for w in ({}, weights))
    heavy = count_outcomes(pb.rank(runs).take(range(10)))
    light = count_outcomes(pb.rank(runs).take(range(10, 20)))
    assert weighted.wins == pytest.approx(heavy.wins + light.wins / 4)
    assert (weighted.wins <= plain.wins).all()


def test_the_error_is_shared_among_all_rivals_that_ever_come():
    for rivals in (0, 1, 4, 9, 50):
        now = [1 / multiplicity(rivals)] * rivals
        later = [1 / multiplicity(rivals, i) for i in range(1, 5000)]
        assert sum(now + later) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("errors", ["per_member", "whole_race"])
def test_the_shares_of_a_race_with_newcomers_and_returns(errors):
    """Over all rivals that an algorithm meets, in any order of entry, they sum to at most 1."""
    rng = np.random.default_rng(3)
    question = pb.ParetoSet(errors=errors)
    for _ in range(20):
        race = race_of(("good", "twin"), question=question, budget=pb.Budget(runs=8))
        drive(race)
        state = race.state
        names = ["good", "twin", *(f"n{k}" for k in range(6))]
        met = {}
        for _ in range(30):
            name = names[rng.integers(len(names))]
            if name not in state.members.racing:
                race.add(name)
            elif len(state.members.racing) > 2:
                race.remove(name)
            present = race.pareto
            log_k = state.members.entries.log_thresholds(
                present, question.certainty, whole_race=errors == "whole_race"
            )
            multiplicities = np.exp(log_k) * (1 - question.certainty)
            for row, shares in zip(present, multiplicities.tolist(), strict=True):
                for column, share in zip(present, shares, strict=True):
                    if row != column:
                        # The threshold of a pair never changes.
                        assert met.setdefault((row, column), share) == share
        totals = [sum(1 / k for (_, of), k in met.items() if of == name) for name in names]
        assert max(totals) <= 1 + 1e-12
        if errors == "whole_race":
            assert sum(totals) <= 1 + 1e-12


@pytest.mark.parametrize(
    "wrong",
    [{"errors": "per_look"}, {"width": 1.5}, {"margin": 0.5}, {"certainty": 1.0}],
)
def test_the_fields_of_the_question_are_checked(wrong):
    with pytest.raises(pb.DataError, match=f"{next(iter(wrong))}=.*: expected"):
        pb.ParetoSet(**wrong)


def test_any_question_is_asked_of_recorded_data():
    rankings = pb.simulation.simulate_rankings(np.array([[3.0, 0.0, -3.0]] * 3), 60)
    for question in (pb.ParetoSet(), pb.PaperParetoSet("independent")):
        kinds = [one.kind for one in pb.assess(rankings, question=question)]
        assert kinds == ["member", "dominated", "dominated"]
    final = pb.Choice(pb.preferences.final())
    assert pb.assess(rankings, question=final)[0].kind == "chosen"
    gate = pb.assess(rankings, question=pb.NoWorse("a2"))
    assert [one.kind for one in gate] == ["passed", "baseline", "failed"]
    with pytest.raises(pb.DataError, match="is a class"):
        pb.assess(rankings, question=pb.ParetoSet)


def test_ties_of_rankings_are_read_as_the_question_says():
    """Averaged ties made 81 % of it from runs, and 96 % from their rankings."""
    runs = pb.simulation.simulate_runs(np.array([[1.0, 0.0]]), 60, rounding=4.0)
    rankings, question = pb.rank(runs, [0.0]), pb.PaperParetoSet("independent")
    assert np.mean(rankings.position == 0) > 0.6  # ties
    averaged = pb.assess(runs, question, times=[0.0])
    assert pb.assess(rankings, question=question) == averaged
    assert pb.assess(rankings) == pb.assess(runs, times=[0.0])


def test_instances_without_a_class_are_left_out():
    rankings = pb.simulation.simulate_rankings(np.array([[9.0, 0.0]]), 12)
    kinds = {"instance": rankings.instances, "kind": ["x", "y", ""] * 4}
    assert [*pb.assess_classes(rankings.with_instance_data(kinds), "kind")] == ["x", "y"]


@pytest.mark.slow
def test_a_confidence_sequence_covers_at_all_numbers_of_instances():
    rng = np.random.default_rng(0)
    counts = np.arange(401.0)
    low, high = confidence_sequence(counts[:, None], np.maximum(counts - counts[:, None], 0), 0.9)
    n = np.arange(1, 401)
    for p in (0.5, 0.7):
        wins = np.cumsum(rng.random((2000, 400)) < p, axis=1)
        covers = (low[wins, n] <= p) & (p <= high[wins, n])
        missed = (~covers).any(axis=1).mean()
        assert missed <= 0.1 + 2 * np.sqrt(0.09 / 2000)


def test_a_confidence_sequence_covers_mean_scores_with_ties():
    """Each tie is half a win and half a loss."""
    rng = np.random.default_rng(1)
    score = np.cumsum(rng.choice([1, 0.5, 0], p=[0.4, 0.4, 0.2], size=(500, 200)), axis=1)
    low, high = confidence_sequence(score, np.arange(1, 201) - score, 0.9)
    assert ((low > 0.6) | (high < 0.6)).any(axis=1).mean() <= 0.1


def test_a_race_decides_by_e_values_and_without_a_posterior_as_well():
    question = pb.ParetoSet(certainty=0.9)
    budget = pb.Budget(batch=(2, 8), runs=2000)
    careful = drive(race_of(seed=1, question=question, budget=budget))
    assert "bad" in careful.eliminated

    def refused(*_, **__):
        raise AssertionError("the race needs no posterior")

    blind = drive(race_of(seed=1, question=question, budget=budget, fit=refused))
    assert blind.eliminated == careful.eliminated
    assert restore(blind.events, fit=refused).pareto == blind.pareto


def test_counts_by_instance_add_up_to_the_counts():
    """With ties, repetitions, weights and runs that are not known at all times."""
    rng = np.random.default_rng(2)
    runs = [
        pb.Run(name, f"i{k}", [1, 2], rng.integers(0, 3, 2).astype(float), until, repetition)
        for name, until in (("a", 3), ("b", 2), ("c", 2))
        for k in range(7)
        for repetition in range(1 + k % 3)
        if (name, k) != ("b", 3)
    ]
    weights = {f"i{k}": 1.0 + k % 2 for k in range(7)}
    data = pb.Runs.from_records(runs, direction="minimize")
    rankings = pb.rank(data, [1, 2, 3], weights=weights)
    for first, second in (("a", "b"), ("c", "a")):
        pair = rankings.among([first, second])
        outcomes, row = count_outcomes(pair), pair.algorithms.index(first)
        expected = (outcomes.wins, outcomes.ties, outcomes.losses)
        counted = count_by_instance(rankings, first, second)
        assert counted.shape == (3, 3, len(pair.instances))
        np.testing.assert_allclose(counted.sum(axis=2), [one[:, row, 1 - row] for one in expected])


def literal_preference(rankings, weights, a, b, heaviest=1.0):
    """E-values of lead and par as products over instances and their repetitions."""
    lead, par = np.array([0.4, 0.3, 0.2, 0.1]), np.array([10.0, 1.0, 1.0]) / 12
    thetas, stakes = np.array([0.04, 0.0896281, 0.2008298, 0.45]), np.array([0.141414, 0.531812, 2])
    counted = [t for t, weight in enumerate(weights) if weight]
    for instance, name in enumerate(rankings.instances):
        size = rankings.weight[rankings.instance == instance].sum() / heaviest
        repetitions = [
            *zip(*(rankings.order(name, rankings.times[t]) for t in counted), strict=True)
        ]
        for orders in repetitions:
            score, share = 0.0, size / len(repetitions)
            for t, order in zip(counted, orders, strict=True):
                place = {one: k for k, group in enumerate(order) for one in group}
                if a not in place or b not in place:
                    score, share = 0.0, 0.0  # unknown: no bet
                    break
                score += weights[t] * (1.0 * (place[a] < place[b]) + 0.5 * (place[a] == place[b]))
            lead *= (1 + 2 * thetas * (2 * score - 1)) ** share
            par *= (1 + stakes * (score - 0.45)) ** share
    return lead.sum(), par.sum()


@pytest.mark.parametrize("cells", [None, 1])
def test_weighted_scores_are_bet_on_instance_by_instance(cells, monkeypatch):
    """With ties, repetitions, unknown runs, a time that does not count, and a heavy instance."""
    runs = pb.simulation.simulate_runs(np.zeros((4, 3)), 40, 1, rounding=1.0, cut=0.2)
    more = [run._replace(repetition=1) for run in runs if run.instance in ("i1", "i2")]
    data = pb.Runs.from_records([*runs, *more], direction="minimize")
    rankings = pb.rank(data, weights={"i2": 4.0})
    weights = np.array([0.2, 0.0, 0.5, 0.3])
    if cells:
        monkeypatch.setattr(e_values, "MAX_CELLS", cells)
    for heaviest in (None, 2.0):
        evidence = preference_evidence(rankings, weights, EPSILON, heaviest)
        for (i, a), (j, b) in product(enumerate(rankings.algorithms), repeat=2):
            if i != j:
                lead, par = literal_preference(rankings, weights, a, b, heaviest or 4.0)
                assert np.exp(evidence.lead[0, i, j]) == pytest.approx(lead, rel=1e-4)
                assert np.exp(evidence.par[0, i, j]) == pytest.approx(par, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.05, 0.0])
def test_weight_on_one_time_is_the_e_value_of_that_time(epsilon):
    runs = pb.simulation.simulate_runs(np.zeros((3, 3)), 40, 1, rounding=1.0, cut=0.2)
    rankings = pb.rank(runs)
    wins, ties = (counts[1] for counts in count_outcomes(rankings))
    weighted = preference_evidence(rankings, np.array([0.0, 1.0, 0.0]), epsilon)
    off = ~np.eye(3, dtype=bool)
    assert weighted.lead[0][off] == pytest.approx(log_lead(wins, wins.T, epsilon)[off])
    if epsilon:
        assert weighted.par[0][off] == pytest.approx(log_par(wins, ties, wins.T, epsilon)[off])
    else:  # only a lead shows it
        assert (weighted.par == -np.inf).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.05, 0.2, 0.4])
def test_bets_lie_as_close_as_they_must(epsilon):
    """One fewer would leave gaps that are too wide; and no stake can lose all."""
    for bets, most, whole in (
        (lead_bets(epsilon)[0], 2.25, 0.5),
        (score_bets(0.5 - epsilon, epsilon)[0], 4.0, 1 / (0.5 - epsilon)),
        (score_bets(0.5 + epsilon, epsilon)[0], 4.0, 1 / (0.5 + epsilon)),
    ):
        ratio, n_gaps = bets[1] / bets[0], len(bets) - 1
        assert bets[1:] / bets[:-1] == pytest.approx(ratio)
        assert 1 < ratio <= most
        assert n_gaps == 1 or ratio ** (n_gaps / (n_gaps - 1)) > most
        assert bets[-1] == pytest.approx(0.9 * whole)
    assert score_bets(0.8, 0.3)[0] * 0.8 == pytest.approx([0.8, 0.9])


def test_the_wealth_of_a_mixture_is_the_mean_of_the_wealths():
    assert np.exp(log_mixture(np.array([1.0, 3.0]), [log(1), log(5)])) == pytest.approx(4)
    assert np.exp(log_mixture(np.array([2.0]), [log(3)])) == pytest.approx(3)


def test_the_shares_of_the_error_are_those_that_are_stated():
    assert Shares() == (1.0, 0.0)
    assert Shares.at_end_of(120) == (0.5, pytest.approx(0.45))
    assert Shares.at_end_of(40) == (0.25, pytest.approx(0.75 * 0.9))
    assert Shares.at_end_of(40, 1).now == pytest.approx(0.75 * 0.1 / 2)
    assert multiplicity(0) == 1
    assert multiplicity(19) == pytest.approx(20)  # an equal share is less than a tenth
    assert multiplicity(19, 1) == pytest.approx(40)


@pytest.mark.parametrize("certainty", [0.6, 0.95])
def test_a_confidence_sequence_is_where_the_uniform_mixture_is_not_much_better(certainty):
    """Its bounds are the roots of q^w (1 - q)^l = d B(w + 1, l + 1), found by another method."""
    counts = [(0, 0), (1, 0), (0, 1), (0.3, 0.4), (1, 2), (0, 9), (9, 0), (2, 10), (60, 40)]
    for wins, losses in counts:
        beta = gamma(wins + 1) * gamma(losses + 1) / gamma(wins + losses + 2)

        def excess(q, wins=wins, losses=losses, beta=beta):
            return q**wins * (1 - q) ** losses - (1 - certainty) * beta

        peak = wins / (wins + losses) if wins + losses else 0.5
        expected = [end if excess(end) > 0 else brentq(excess, peak, end) for end in (0.0, 1.0)]
        low, high = confidence_sequence(np.array([wins]), np.array([losses]), certainty)
        assert [low[0], high[0]] == pytest.approx(expected, abs=1e-9)


def test_a_tie_is_half_a_win_and_half_a_loss_for_a_bound():
    value = {"a": [1, 1, 1, 2, 2, 3, 3], "b": [2, 2, 3, 2, 2, 1, 0]}
    runs = [
        pb.Run(name, f"i{k}", [1.0], [float(one)], 1.0)
        for name, values in value.items()
        for k, one in enumerate(values)
    ]
    rankings = pb.rank(pb.Runs.from_records(runs, direction="minimize"), [1.0])
    found = bound_win_rate(rankings, "a", "b", 0.9)
    assert np.ravel(found) == pytest.approx(np.ravel(confidence_sequence(4.0, 3.0, 0.9)))
