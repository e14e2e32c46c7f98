"""The parts of a race's state, each by hand: members, pairs, pool, ledger, progress."""

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polarbear as pb
from polarbear.data.run import Status
from polarbear.inference.e_values import Shares
from polarbear.inference.verdicts import Verdict
from polarbear.racing.decisions import Decision, Open
from polarbear.racing.events import Failed, Hosted
from polarbear.racing.failures import add_failure
from polarbear.racing.jobs import Job, RunId
from polarbear.racing.ledger import Ledger, Limit, RunIdSet, Spent, TrialRuns
from polarbear.racing.pool import Pool
from polarbear.racing.progress import PendingRun, Progress
from polarbear.racing.state import Members, OpenPairs


def run_of(algorithm="a", instance="i", repetition=0, until=2.0, status=Status.CUT, values=(1.0,)):
    times = np.arange(1.0, 1 + len(values))
    return pb.Run(algorithm, instance, times, np.array(values), until, repetition, status=status)


def job_of(algorithm="a", instance="i", repetition=0, horizon=2.0, extends=None):
    return Job(algorithm, instance, repetition, horizon, 0, 0, extends)


# Members and their pairs


def test_the_runs_of_a_newcomer_are_counted_until_its_first_batch_is_complete():
    members = Members(on_trial={"new": TrialRuns()})
    members.count_run("new", 3, failed=True, success=False)
    assert members.on_trial == {"new": TrialRuns(1, passed=False)}
    members.count_run("new", 3, failed=False, success=True)
    assert members.on_trial == {"new": TrialRuns(2, passed=True)}
    members.count_run("new", 3, failed=False, success=False)
    members.count_run("old", 3, failed=True, success=False)
    assert members.on_trial == {}
    assert members.failures == {"new": 1, "old": 1}


def test_one_success_passes_a_trial_whatever_follows():
    members = Members(on_trial={"early": TrialRuns(1, passed=True), "late": TrialRuns(1)})
    members.count_run("early", 8, failed=True, success=False)
    members.count_run("late", 8, failed=False, success=True)
    assert members.on_trial == dict.fromkeys(("early", "late"), TrialRuns(2, passed=True))


def test_a_trial_takes_one_run_then_the_rest_of_the_batch_or_what_removes_it():
    assert TrialRuns().choose_batch(8, 3) == 1
    assert TrialRuns(1, passed=True).choose_batch(8, 3) == 7
    assert TrialRuns(1).choose_batch(8, 3) == 3  # the fourth failure removes it
    assert TrialRuns(1).choose_batch(8, None) == 7
    assert TrialRuns(1).choose_batch(8, 20) == 7
    assert TrialRuns(8).choose_batch(8, 3) == 1  # never none


def test_who_comes_back_and_who_enters():
    members = Members(eliminated={"out": Verdict("out", "dominated", rival="a")})
    members.removed, members.failed_out = {"gone": "why"}, {"gone"}
    assert members.enter("out", is_late=True)
    assert members.enter("gone", is_late=True)
    assert not members.enter("fresh", is_late=True)
    assert not members.eliminated
    assert not members.removed
    assert not members.failed_out
    assert members.present() == ("fresh", "gone", "out")


def test_who_leaves_is_on_trial_no_more():
    members = Members(racing={"a10", "a9"}, on_trial={"a9": TrialRuns()})
    assert members.present() == ("a9", "a10")
    members.leave("a9")
    members.leave("a9")
    assert (members.racing, members.on_trial) == ({"a10"}, {})


def test_a_decision_without_verdicts_keeps_the_last_ones_only_if_it_had_problems():
    member, out = Verdict("a", "member"), Verdict("b", "dominated", rival="a")
    members = Members()
    members.decide(Decision((), 1, verdicts=(member, out), chosen=("a",)))
    assert members.verdicts == {"a": member, "b": out}
    assert members.eliminated == {"b": out}
    assert members.chosen == ("a",)
    members.decide(Decision((), 1, problems=("doubts",)))
    assert members.verdicts == {"a": member, "b": out}
    members.decide(Decision((), 1))
    assert members.verdicts == {}
    assert members.eliminated == {"b": out}


def test_orphans_are_those_whose_rival_leaves():
    members = Members(eliminated={k: Verdict(k, "dominated", rival=k.upper()) for k in "abc"})
    leaving = [Verdict(name, "dominated", rival="x") for name in "AC"]
    staying = [Verdict("B", "member")]
    decision = Decision((), 1, verdicts=(*leaving, *staying))
    assert members.find_orphans(decision) == ["a", "c"]


def pairs_of():
    pairs = OpenPairs(4)
    open_ = (Open("a", "b", 0b101, 3.0), Open("a", "c", 0b010, 5.0), Open("b", "c", 0b001))
    pairs.decide(Decision(open_, 8))
    return pairs


def test_open_pairs_are_those_of_the_last_decision():
    pairs = pairs_of()
    assert pairs.batch == 8
    assert pairs.open == {("a", "b"): 5, ("a", "c"): 2, ("b", "c"): 1}
    assert pairs.rivals("abx") == {"a": {"b": 5}, "b": {"a": 5}}
    assert pairs.rivals("cab")["c"] == {"a": 2, "b": 1}
    pairs.enter("d", {("a", "b"): 7, ("a", "d"): 7})
    assert pairs.open == {("a", "b"): 5, ("a", "c"): 2, ("b", "c"): 1, ("a", "d"): 7}
    pairs.leave("a")
    assert pairs.open == {("b", "c"): 1}
    pairs.reopen({("b", "c"): 7})
    assert (pairs.open, pairs.need, pairs.forecast) == ({("b", "c"): 7}, {}, None)


def test_what_settles_an_algorithm_is_the_longest_of_its_pairs():
    """a runs on 5 more instances until time 30, and each rival until its own last open time."""
    pairs, times = pairs_of(), (10.0, 20.0, 30.0)
    found = pairs.find_unsettled("a", pairs.rivals("abc")["a"], times, left=9)
    assert dict(found.rivals) == {"b": 30.0, "c": 20.0}
    assert (found.instances, found.left) == (5.0, 9)
    assert found.time == 5 * 30 + 3 * 30 + 5 * 20
    # One of its pairs has no forecast.
    unknown = pairs.find_unsettled("c", pairs.rivals("abc")["c"], times)
    assert (dict(unknown.rivals), unknown.instances) == ({"a": 20.0, "b": 10.0}, None)
    assert (unknown.time, unknown.left) == (None, None)
    assert pairs.find_unsettled("x", {}, times).instances is None


# The pool of instances


def test_an_instance_is_used_once_and_has_a_place():
    pool = Pool()
    pool.offer(["x", "y", "z"], 0)
    drawn = list(pool.unused)
    assert sorted(drawn) == ["x", "y", "z"]
    pool.use(drawn[0])
    pool.use(drawn[0])
    assert (pool.order, pool.used, list(pool.unused)) == (drawn[:1], {drawn[0]: 0}, drawn[1:])
    assert pool.listed_first == 3
    pool.offer(["w", drawn[0]], 0)
    assert pool.listed_first == 3
    assert set(pool.unused) == {"w", *drawn[1:]}
    pool.use("new")  # as of an imported run
    assert pool.used["new"] == 1
    assert pool.names == {"w", "x", "y", "z", "new"}
    pool.dropped.add("w")
    assert "w" not in pool.names
    pool.offer(["w"], 0)
    assert "w" in pool.names


def test_of_an_instance_that_was_not_offered_the_list_has_one_more():
    pool = Pool()
    pool.offer(["x", "y"], 0)
    pool.use("z")
    assert pool.listed_first == 3


def test_until_when_an_algorithm_was_observed():
    pool = Pool()
    for name in ("x", "y", "z"):
        pool.use(name)
    pool.enter("a")
    assert (pool.backlog["a"], pool.next_cached["a"]) == (3, 0)
    pool.plan(RunId("a", "y", 0), 5.0)
    assert (pool.observed_until["y"], pool.next_cached["a"]) == ({"a": 5.0}, 2)
    pool.plan(RunId("a", "x", 0), 4.0)
    assert pool.next_cached["a"] == 2  # never back
    pool.restore(RunId("a", "y", 0), 3.0)
    pool.restore(RunId("a", "x", 0), 0.0)
    assert pool.observed_until == {"x": {}, "y": {"a": 3.0}, "z": {}}
    pool.observe(RunId("a", "y", 1), 2.0, Status.CUT)
    assert pool.observed_until["y"] == {"a": 3.0}  # no later than before
    pool.observe(RunId("a", "y", 1), 4.0, Status.CUT)
    assert pool.observed_until["y"] == {"a": 4.0}
    pool.observe(RunId("b", "z", 0), 1.0, Status.CRASHED)
    assert pool.observed_until["z"] == {"b": inf}
    pool.observe(RunId("c", "z", 0), 0.5, Status.CUT)
    assert pool.observed_until["z"]["c"] == 0.5
    assert pool.find_observed({"a"}) == {"y"}
    assert pool.find_observed({"a", "b"}) == {"y", "z"}


def test_what_is_withdrawn_was_not_observed():
    pool = Pool()
    pool.offer(["u", "v"], 0)
    for name in ("x", "y"):
        pool.use(name)
        pool.plan(RunId("a", name, 0), 5.0)
        pool.not_extendable.add(("a", name))
    pool.note_end()
    pool.withdraw({("a", "x"), ("b", "nowhere")}, ["y", "v"])
    assert pool.observed_until == {"x": {}, "y": {"a": 5.0}}
    assert pool.not_extendable == {("a", "y")}
    assert (pool.dropped, list(pool.unused)) == ({"y", "v"}, ["u"])
    assert pool.ends == [2, 0]
    pool.note_end()
    pool.note_end()
    assert pool.ends == [2, 0, 2]  # the same number of instances, with other runs


def test_the_error_for_an_end_is_there_when_all_is_used():
    pool = Pool()
    pool.offer("xy", 0)
    assert pool.error_shares(endless=False) == Shares.at_end_of(2)._replace(now=0.0)
    pool.use("x")
    assert pool.error_shares(endless=False) == Shares.at_end_of(2)._replace(now=0.0)
    pool.use("y")
    assert pool.error_shares(endless=False) == Shares.at_end_of(2)
    pool.note_end()
    assert pool.error_shares(endless=False) == Shares.at_end_of(2)
    pool.use("z")
    assert pool.error_shares(endless=False) == Shares.at_end_of(2, 1)
    pool.note_end()
    assert pool.error_shares(endless=False) == Shares.at_end_of(2, 1)


# The ledger


IDS = st.builds(RunId, st.sampled_from("abcdef"), st.sampled_from("xyz"), st.integers(0, 2))


@given(st.lists(st.tuples(st.booleans(), IDS), max_size=30))
def test_a_set_of_run_ids_is_a_set(changes):
    expected = {RunId(name, "z", 0) for name in "abcde"}  # six take more than a digit of bits
    found = RunIdSet(sorted(expected))
    for is_added, key in changes:
        (found.add if is_added else found.discard)(key)
        (expected.add if is_added else expected.discard)(key)
        assert len(found) == len(expected)
    found.add(RunId("f", "x", 0))
    expected.add(RunId("f", "x", 0))
    again = RunIdSet.from_plain(found.to_plain())
    for one in (found, again):
        assert (set(one), len(one)) == (expected, len(expected))
        for key in (RunId(a, i, k) for a in "afg" for i in "xyzw" for k in range(3)):
            assert (key in one) == (key in expected)


def test_a_set_of_run_ids_with_a_nameless_algorithm_is_refused():
    with pytest.raises(ValueError, match="without a name"):
        RunIdSet.from_plain([["a"], ["x", "y"], ["1", "2"], []])
    assert set(RunIdSet.from_plain([["a"], ["x"], ["1"], []])) == {RunId("a", "x", 0)}


def test_a_limit_allows_what_it_says():
    assert Limit().allows(Spent(10**9, inf))
    assert Limit(max_runs=2).allows(Spent(2, inf))
    assert not Limit(max_runs=2).allows(Spent(3, 0.0))
    assert Limit(max_time=5.0).allows(Spent(9, 5.0))
    assert not Limit(max_time=5.0).allows(Spent(0, 5.1))
    assert not Limit(1, 5.0).allows(Spent(2, 1.0))


def test_requests_are_charged_until_their_horizon_and_corrected():
    ledger = Ledger()
    ledger.request(job_of("a", "x"), 2.0)
    ledger.request(job_of("a", "y"), 3.0)
    ledger.request(job_of("b", "x"), 4.0)
    ledger.correct(-1.5)
    assert ledger.requested == Spent(3, 7.5)
    assert ledger.requested_by == {"a": Spent(2, 5.0), "b": Spent(1, 4.0)}
    assert ledger.spent == Spent(0, 0.0)
    assert Spent().plus(2.0) == Spent(1, 2.0)
    assert Spent(1, 2.0).plus(0.5, runs=4) == Spent(5, 2.5)


def test_the_first_run_with_an_id_counts():
    ledger = Ledger()
    ledger.request(job_of("a", "x"), 2.0)
    ledger.receive(run_of("a", "x", until=1.5), 0.5)
    ledger.receive(run_of("a", "x", until=9.0), 0.0)
    ledger.receive(run_of("a", "y", until=9.0), 0.0)  # imported: it cost this race nothing
    assert ledger.spent == Spent(1, 1.0)
    assert ledger.n_runs == {"a": 2}
    assert not ledger.failed
    ledger.receive(run_of("a", "z", status=Status.CRASHED), 0.0)
    assert set(ledger.failed) == {RunId("a", "z", 0)}


def test_rankings_use_the_number_of_the_run_that_was_extended():
    ledger = Ledger()
    ledger.request(job_of("a", "x"), 2.0)
    ledger.extends[RunId("a", "x", 3)] = 0
    ledger.extends[RunId("a", "y", 3)] = 2
    ledger.superseded.add(RunId("a", "x", 1))
    found = {
        (instance, k): ledger.renumber(run_of("a", instance, k))
        for instance, k in (("x", 0), ("x", 1), ("x", 3), ("y", 3), ("y", 1))
    }
    assert found.pop(("x", 1)) is None
    numbers = {key: run.repetition for key, run in found.items()}
    assert numbers == {("x", 0): 0, ("x", 3): 0, ("y", 3): 2, ("y", 1): 1}
    # A run that was requested has number 0, even if it replaces a failed one.
    ledger.request(job_of("a", "z", 4), 2.0)
    assert ledger.renumber(run_of("a", "z", 4)).repetition == 0


def test_a_worker_is_described_once():
    ledger, here = Ledger(), (("host", "node"),)
    keys = [RunId("a", "x", 0)]
    assert ledger.attribute(keys, here) == Hosted(1, tuple(keys), dict(here))
    ledger.workers[here] = 1
    assert ledger.attribute(keys, here) == Hosted(1, tuple(keys))
    assert ledger.attribute(keys, (("host", "other"),)).worker == 2


def test_withdrawn_runs_count_no_more():
    ledger = Ledger()
    for name, instance, status in (("a", "x", "crashed"), ("a", "y", "cut"), ("b", "x", "cut")):
        ledger.receive(run_of(name, instance, status=Status(status)), 0.0)
    add_failure(ledger.reasons, Failed(RunId("a", "y", 0), Status.CUT, "why"))
    ledger.failed.add(RunId("a", "y", 0))
    assert ledger.reasons["a"]["why"].runs == {"y": 1}
    assert set(ledger.failed) == {RunId("a", "x", 0), RunId("a", "y", 0)}
    ledger.withdraw({("a", "x")})
    assert ledger.n_runs == {"a": 1, "b": 1}
    assert set(ledger.failed) == {RunId("a", "y", 0)}
    assert set(ledger.withdrawn) == set(ledger.superseded) == {RunId("a", "x", 0)}
    assert ledger.reasons["a"]
    ledger.withdraw({("a", "x"), ("a", "y")})  # the first one is not counted twice
    assert ledger.n_runs == {"b": 1}
    assert set(ledger.withdrawn) == {RunId("a", "x", 0), RunId("a", "y", 0)}
    assert not ledger.reasons.get("a")
    assert len(ledger.arrived) == 3


# Progress


def test_a_race_begins_with_nothing():
    start = Progress()
    assert (start.n_asked, start.n_rounds, start.has_news) == (0, 0, False)
    assert (start.current, start.complete, start.ended) == (0, True, None)
    assert PendingRun(1.0) == (1.0, 0.0, None, None, False)


def test_a_round_is_complete_when_none_of_its_runs_is_wanted():
    progress = Progress(n_asked=3)
    assert (progress.current, progress.complete) == (3, True)
    first, second, other = RunId("a", "x", 0), RunId("b", "x", 0), RunId("a", "y", 0)
    progress.pending = {
        2: {other: PendingRun(1.0)},
        1: dict.fromkeys((first, second), PendingRun(1.0)),
    }
    progress.wanted = {second: job_of("b", "x"), other: job_of("a", "y")}
    assert progress.current == 1
    assert not progress.complete
    del progress.wanted[second]
    assert progress.complete
    assert set(progress.run_ids()) == {first, second, other}
    assert (progress.round_of(other), progress.round_of(first)) == (2, 1)
    assert progress.round_of(RunId("c", "x", 0)) == 1


def test_a_pending_run_fails_by_its_status_once_it_has_arrived():
    pending = PendingRun(5.0, 2.0)
    assert not pending.failed
    assert not pending._replace(until=4.0, status=Status.CUT).failed
    assert pending._replace(until=1.0, status=Status.CRASHED).failed
