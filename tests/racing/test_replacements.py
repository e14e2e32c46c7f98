"""Drops, heirs and returns; a known end; pairs that are settled."""

from types import SimpleNamespace

import numpy as np
import pytest

import polarbear as pb
from polarbear.inference.e_values import Shares
from polarbear.racing.pool import Pool
from polarbear.racing.questions.replacements import drop_replaceable
from racers import fitted

ALL = np.ones(3, dtype=bool)


def shown(replaces, stands_in=None, proof=None):
    replaces = np.array(replaces, dtype=bool).reshape(-1, 3, 3)
    stands_in = replaces if stands_in is None else np.array(stands_in, dtype=bool).reshape(-1, 3, 3)
    return SimpleNamespace(
        replaces=replaces,
        stands_in=stands_in,
        proof=replaces.all(axis=0).astype(float) if proof is None else np.array(proof),
    )


def test_a_chain_whose_head_stands_in_for_all_leaves_the_head():
    chain = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    heirs = drop_replaceable(shown(chain, [[0, 1, 1], [0, 0, 1], [0, 0, 0]]), ALL, {})
    assert heirs == {1: 0, 2: 0}


def test_in_a_chain_whose_head_does_not_stand_in_the_last_stays():
    heirs = drop_replaceable(shown([[0, 1, 0], [0, 0, 1], [0, 0, 0]]), ALL, {})
    assert heirs == {1: 0}


def test_of_two_that_replace_each_other_one_stays():
    both = [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert len(drop_replaceable(shown(both), ALL, {})) == 1


def test_who_was_replaced_by_one_that_leaves_goes_to_another_or_comes_back():
    racing = np.array([True, True, False])
    drops_one = [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    # 2 was replaced by 1, which 0 replaces now.
    stands_in = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert drop_replaceable(shown(drops_one, stands_in), racing, {2: 1}) == {1: 0, 2: 0}
    assert drop_replaceable(shown(drops_one), racing, {2: 1}) == {1: 0}
    # As long as its rival stays, nothing changes, though the proof may be that of an earlier end.
    assert drop_replaceable(shown(np.zeros((3, 3))), racing, {2: 1}) == {2: 1}
    assert drop_replaceable(shown(np.zeros((3, 3))), racing, {2: -1}) == {}


def test_in_classes_another_one_may_replace_it_in_each():
    in_x, in_y = [[0, 0, 1], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert list(drop_replaceable(shown([in_x, in_y]), ALL, {})) == [2]
    assert drop_replaceable(shown([in_x, np.zeros((3, 3))]), ALL, {}) == {}


def test_the_error_is_shared_by_looks_on_the_way_and_ends():
    pool = Pool()
    pool.offer(["a", "b"], 0)
    on_the_way = Shares.at_end_of(2).on_the_way
    assert pool.error_shares(endless=False) == Shares(on_the_way, 0.0)
    assert pool.error_shares(endless=True) == Shares(1.0, 0.0)
    shares = []
    for name in "abcdefgh":
        pool.offer([name], 0)
        for unused in list(pool.unused):
            pool.use(unused)
        assert pool.error_shares(endless=False).on_the_way == on_the_way
        shares.append(pool.error_shares(endless=False).now)
        pool.note_end()
        assert pool.error_shares(endless=False).now == shares[-1]  # the same end, looked at again
    assert shares[0] == pytest.approx(0.9 * (1 - on_the_way))
    assert sum(set(shares)) < 1 - on_the_way
    assert len(set(shares)) == len(shares) - 1  # a and b came together


TRUTH = np.array([[1.2, 0.0, -1.5]] * 10)


def test_a_race_with_a_known_end_decides_there_what_e_values_cannot():
    known = 0
    for seed in range(5):
        runs = pb.simulation.simulate_runs(TRUTH, 24, seed=seed, persistence=np.inf)
        ended = pb.replay(runs, fitted(pb.ParetoSet()), seed=seed)
        assert "a1" in ended.pareto
        known += len(ended.eliminated)
    assert known >= 6  # of ten


def test_who_replaced_another_and_is_removed_brings_it_back():
    runs = pb.simulation.simulate_runs(TRUTH, 80, seed=1)
    race = pb.replay(runs, fitted(pb.ParetoSet()))
    assert race.eliminated["a3"].rival in ("a1", "a2")
    rival = race.eliminated["a3"].rival
    race.remove(rival)
    race.ask()
    others = {"a1", "a2"} - {rival}
    if "a3" in race.eliminated:
        assert race.eliminated["a3"].rival in others
    else:
        assert "a3" in race.pareto


def test_two_equal_algorithms_are_tied_and_both_stay():
    rng = np.random.default_rng(0)
    costs = np.repeat(rng.normal(size=(1, 600, 2)), 8, axis=0)
    race = pb.assess(pb.simulation.rank_costs(costs))
    assert [one.kind for one in race] == ["equivalent", "equivalent"]
    assert "tied with a2 within 0.1 at all times" in str(race[0])


def test_each_statement_of_a_race_agrees_with_its_chances():
    """What is dropped is likely replaceable, and what is worth running is not likely so."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = np.linspace(0, 1, 6)[:, None] * rng.normal(0, 1.2, 4) + rng.normal(0, 0.8, 4)
        runs = pb.simulation.simulate_runs(truth, 60, seed=seed, persistence=0.5)
        race = pb.replay(runs, fitted(pb.ParetoSet()), seed=seed)
        for stage in pb.Race.after_each_round(race.events, question=fitted(pb.ParetoSet())):
            for one in stage.verdicts():
                if one.probability is None:
                    continue
                if one.kind == "dominated":
                    assert one.probability > 0.8, (seed, one)
                if one.kind == "member" and one.probability < 0.5:
                    assert "doubts" in str(one)


def test_who_was_dropped_at_an_end_stays_out_when_instances_are_added():
    runs = pb.simulation.simulate_runs(TRUTH, 24, seed=0, persistence=np.inf)
    race = pb.replay(runs, fitted(pb.ParetoSet()))
    gone = dict(race.eliminated)
    assert gone
    race.offer(["another", "and another"])
    for job in race.ask():
        race.tell(job.run([1], [1.0]))
    race.ask()
    assert gone.keys() <= race.eliminated.keys()


def test_in_a_race_the_last_of_a_chain_goes_to_the_one_that_replaced_its_rival():
    """a2 replaces a3 first; when a1 replaces a2, a3 goes to a1."""
    rng = np.random.default_rng(0)
    early, late = np.array([0.0, 0.1, 3.0]), np.array([0.0, 3.0, 3.1])
    costs = np.concatenate([early + rng.gumbel(size=(60, 3)), late + rng.gumbel(size=(200, 3))])
    records = [
        pb.Run(f"a{k + 1}", f"i{i:03}", [1.0, 2.0], [costs[i, k], costs[i, k] - 0.1], 2.0)
        for i in range(260)
        for k in range(3)
    ]
    race = pb.replay(pb.Runs.from_records(records, direction="minimize"), times=[1.0, 2.0])
    assert race.pareto == ("a1",)
    assert {one.rival for one in race.eliminated.values()} == {"a1"}
    again = pb.Race.from_events(race.events)
    assert again.eliminated == race.eliminated
