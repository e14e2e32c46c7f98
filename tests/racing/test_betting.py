"""E-values: as slow bets give them, and no more often large than promised."""

import numpy as np
import pytest
from scipy.integrate import quad

import polarbear as pb
from polarbear.racing.betting import log_e_values, stakes, wins
from racers import drive, race_of


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (3, 0), (0, 3), (12.5, 4), (40, 60)])
def test_the_mixture_of_all_stakes(won, lost):
    slow, _ = quad(lambda share: (1 + share) ** won * (1 - share) ** lost, 0, 1)
    assert np.exp(log_e_values(np.array(won), np.array(lost))) == pytest.approx(slow, rel=1e-6)


def test_after_very_many_wins_and_losses_there_are_numbers():
    found = log_e_values(np.array([1e6, 0.0, 5e5]), np.array([0.0, 1e6, 5e5]))
    assert found[0] > 6e5
    assert found[1] < 0
    assert not np.isnan(found).any()


def test_an_e_value_of_equals_is_seldom_ever_large():
    rng = np.random.default_rng(0)
    won = np.cumsum(rng.random((4000, 300)) < 0.5, axis=1)
    lost = np.arange(1, 301) - won
    most = log_e_values(won.astype(float), lost.astype(float)).max(axis=1)
    for bound in (5, 20, 100):
        share = np.mean(most >= np.log(bound))
        assert share <= 1 / bound + 3 * np.sqrt(1 / bound / 4000)
        assert share >= 0.1 / bound  # and not needlessly small


def test_wins_are_counted_on_instances():
    runs = pb.testing.simulate_runs(np.zeros((3, 4)), 30, 1, rounding=1.0, cut=0.2, crashed=0.1)
    more = [run._replace(repetition=1) for run in runs if run.instance == "i1"]
    rankings = pb.rank(pb.Runs.from_records([*runs, *more], direction="minimize"))
    found = wins(rankings)
    for i, a in enumerate(rankings.algorithms):
        for j, b in enumerate(rankings.algorithms):
            if i == j:
                assert not found[:, i, j].any()
                continue
            for t, time in enumerate(rankings.times):
                slow = sum(_ahead(rankings, name, time, a, b) for name in rankings.instances)
                assert found[t, i, j] == pytest.approx(slow)


def _ahead(rankings, instance, time, a, b):
    orders = rankings.order(instance, time)
    won = 0
    for order in orders:
        place = {name: k for k, group in enumerate(order) for name in group}
        won += a in place and b in place and place[a] < place[b]
    return won / len(orders)


def test_the_error_is_shared_however_many_come():
    initial = stakes(0.9, [0] * 7, 7)
    newcomers = stakes(0.9, range(1, 5000), 7)
    assert np.exp(-initial).sum() + np.exp(-newcomers).sum() == pytest.approx(0.1, rel=1e-3)


def test_a_race_that_bets_eliminates_and_asks_for_more():
    fixed = drive(race_of(seed=1, rules=pb.Rules(alpha=0.9, batch=(2, 8), max_runs=2000)))
    rules = pb.Rules(alpha=0.9, batch=(2, 8), max_runs=2000, looks="betting")
    betting = drive(race_of(seed=1, rules=rules))
    assert "bad" in betting.eliminated
    assert betting.spent.runs > fixed.spent.runs
