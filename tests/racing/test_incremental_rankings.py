"""Rankings that are kept up to date are those that are made anew."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polarbear as pb
from polarbear.racing.incremental_rankings import IncrementalRankings
from polarbear.racing.jobs import key_of
from polarbear.racing.ledger import Ledger
from polarbear.racing.pool import Pool

TIMES = (1.0, 2.0, 4.0, 8.0)
NAMES = ("a1", "a2", "a3", "a4")


def orders(rankings):
    return {(i, t): rankings.order(i, t) for i in rankings.instances for t in rankings.times}


@pytest.mark.slow
@settings(max_examples=60)
@given(data=st.data(), direction=st.sampled_from(["minimize", "maximize"]))
def test_whoever_comes_and_goes(data, direction):
    runs = pb.simulation.simulate_runs(np.zeros((5, 4)), 12, 3, cut=0.3, crashed=0.2, rounding=0.5)
    runs = [run._replace(time=9 * run.time, until=9 * run.until) for run in runs]
    order = data.draw(st.permutations(range(len(runs))))
    evidence = IncrementalRankings(TIMES, direction, "time")
    place = {f"i{k}": k for k in data.draw(st.permutations(range(13)))}
    pool = Pool(used=place, observed_until={name: dict.fromkeys(NAMES, 9.0) for name in place})
    told = []
    for round_ in range(4):
        for k in order[round_ * 12 : round_ * 12 + 12]:
            evidence.add(key_of(runs[k]), runs[k], round_)
            told.append(runs[k])
        names = data.draw(st.sets(st.sampled_from(NAMES)))
        counts = [run for run in told if run.algorithm in names]
        found = evidence.rankings(round_, names, Ledger(), pool)
        if not counts:
            assert found is None
            continue
        slow = pb.rank(pb.Runs.from_records(counts, direction=direction), TIMES)
        assert found.algorithms == slow.algorithms
        assert list(found.instances) == sorted(slow.instances, key=place.get)
        assert orders(found) == orders(slow)


def test_what_counts_later_is_not_seen_before():
    evidence = IncrementalRankings([1.0], "minimize", "time")
    for name, round_ in (("a", 0), ("b", 2)):
        run = pb.Run(name, "i", [1], [0.0], 1.0)
        evidence.add(key_of(run), run, round_)
    pool = Pool(used={"i": 0}, observed_until={"i": {"a": 1.0, "b": 1.0}})
    assert evidence.rankings(1, ["a", "b"], Ledger(), pool).algorithms == ("a",)
    assert evidence.rankings(2, ["a", "b"], Ledger(), pool).algorithms == ("a", "b")
    assert evidence.rankings(2, [], Ledger(), pool) is None


def test_among_and_join_are_what_rank_makes():
    runs = pb.simulation.simulate_runs(np.zeros((4, 5)), 20, 7, cut=0.2, rounding=0.5)
    whole = pb.rank(runs)
    some = whole.among(["a2", "a5"])
    assert orders(some) == orders(pb.rank(runs.filter(algorithms=["a2", "a5"]), whole.times))
    first, rest = whole.take(range(7)), whole.take(range(7, 20))
    assert orders(first.join(rest)) == orders(whole)
    assert first.among(["a1"]).join(rest.among(["a3"])).algorithms == ("a1", "a3")
    with pytest.raises(pb.errors.DataError, match="no algorithm named 'a9'"):
        whole.among(["a9"])
