"""The parts of a race's state, each by hand: members, pairs, pool, ledger, progress."""

from dataclasses import replace
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
from polarbear.racing.events import (
    Added,
    Asked,
    Continued,
    Decided,
    Ended,
    Extended,
    Failed,
    Hosted,
    Identified,
    Imported,
    Offered,
    Removed,
    Started,
    Superseded,
    Told,
    Withdrawn,
)
from polarbear.racing.failures import add_failure
from polarbear.racing.jobs import Job, RunId
from polarbear.racing.ledger import Ledger, Limit, RunIdSet, Spent, TrialRuns
from polarbear.racing.model import Model
from polarbear.racing.pool import Pool
from polarbear.racing.progress import DecisionInput, PendingRun, Progress
from polarbear.racing.state import Members, OpenPairs, apply, start_state


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
    assert pool.ends == [0]
    pool.note_end()
    pool.note_end()
    assert pool.ends == [0, 2]  # the same number of instances, with other runs


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
    assert Limit(max_time=1.0).allows(Spent(10, 0.1 + 9 * 0.1 + 1e-12))
    assert Limit(max_time=0.0).allows(Spent())


def test_requests_are_charged_until_their_horizon_and_corrected():
    ledger = Ledger()
    ledger.request(RunId("a", "x", 0), 2.0)
    ledger.request(RunId("a", "y", 0), 3.0)
    ledger.request(RunId("b", "x", 0), 4.0)
    ledger.correct("a", -1.5)
    assert ledger.requested == Spent(3, 7.5)
    assert ledger.requested_by == {"a": Spent(2, 3.5), "b": Spent(1, 4.0)}
    assert ledger.spent == Spent(0, 0.0)
    assert Spent().plus(2.0) == Spent(1, 2.0)
    assert Spent(1, 2.0).plus(0.5, runs=4) == Spent(5, 2.5)


def test_the_first_run_with_an_id_counts():
    ledger = Ledger()
    ledger.request(RunId("a", "x", 0), 2.0)
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
    ledger.request(RunId("a", "x", 0), 2.0)
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
    ledger.request(RunId("a", "z", 4), 2.0)
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


# Events, and the parts that they change


AT_THE_END = (Open("a", "b", 0b10),)


def state_of(names="ab", *events, question=None, **more):
    """The state of a race with two times and three instances, after some events."""
    started = Started(
        seed=0,
        times=(1.0, 2.0),
        direction="minimize",
        clock="",
        endless=False,
        question=question or pb.ParetoSet(),
        budget=pb.Budget(batch=(2, 8), failures=1),
        model=Model.of({}),
    )
    state = start_state(replace(started, **more))
    after(state, Offered(("x", "y", "z")), *map(Added, names))
    return after(state, *events)


def after(state, *events):
    for event in events:
        apply(state, event)
    return state


def ask(*pairs, round_=0, **more):
    """The event that requests runs, named by algorithm and instance."""
    return Asked(tuple(job_of(*one, **more) for one in pairs), round_)


def tell(pair, **more):
    return Told(run_of(*pair, **more))


def decided(round_=0, open_=AT_THE_END, **more):
    return Decided(round_, Decision(open_, 4, **more))


CRASHED = {"status": Status.CRASHED, "until": 0.5}
LOST = Verdict("b", "dominated", rival="a", probability=0.96)


def test_who_joins_has_all_pairs_open_and_a_place_among_the_entries():
    state = state_of("ab")
    assert (state.pairs.open, state.pairs.batch) == ({("a", "b"): 0b11}, 2)
    assert not state.progress.has_news
    after(
        state, ask("ax", "bx"), tell("ax"), tell("bx"), decided(verdicts=(Verdict("a", "member"),))
    )
    assert (state.pairs.open, state.pairs.batch) == ({("a", "b"): 0b10}, 4)
    after(state, Ended("why"), Added("c", 5, 9.0, trial=True))
    assert state.pairs.open == {("a", "b"): 0b10, ("a", "c"): 0b11, ("b", "c"): 0b11}
    assert state.members.entries.numbers == {"a": [0], "b": [0], "c": [1]}
    assert state.pool.backlog == {"a": 0, "b": 0, "c": 1}
    assert (state.members.limits["c"], state.members.limits["a"]) == (Limit(5, 9.0), Limit())
    assert state.members.on_trial == {"c": TrialRuns()}
    assert (state.members.verdicts, state.pairs.batch) == ({}, 2)
    assert not state.progress.has_news
    assert state.progress.ended is None
    # The rule of the paper for the size of a round ignores who joins.
    paper = state_of("ab", decided(), Added("c"), question=pb.PaperParetoSet())
    assert paper.pairs.batch == 4


def test_who_comes_back_is_news_and_begins_without_failures():
    state = state_of("abc", ask("cx"), tell("cx", **CRASHED), decided(), Removed("c", "why"))
    assert (state.members.failures["c"], state.members.removed) == (1, {"c": "why"})
    assert not state.progress.has_news  # there were no verdicts yet
    after(state, Added("c"))
    assert (state.members.failures["c"], state.members.removed) == (0, {})
    assert state.progress.has_news


def test_whom_the_removed_one_eliminated_returns():
    state = state_of("abc", decided(verdicts=(LOST, Verdict("a", "member"))))
    assert (state.members.racing, state.members.eliminated) == ({"a", "c"}, {"b": LOST})
    assert state.rated() == ("a", "c")
    assert replace(state, setup=replace(state.setup, question=pb.PaperParetoSet())).rated() == (
        "a",
        "b",
        "c",
    )
    after(state, Removed("a", "why"))
    assert (state.members.racing, state.members.eliminated) == ({"b", "c"}, {})
    assert state.pairs.open == {("b", "c"): 0b11}
    assert state.progress.has_news
    # Who is out already changes no verdict.
    state = state_of("abc", decided(verdicts=(LOST, Verdict("a", "member"))), Removed("b", "why"))
    assert (state.members.racing, state.members.removed) == ({"a", "c"}, {"b": "why"})
    assert state.members.eliminated == {}
    assert not state.progress.has_news
    # And what was new before stays so.
    assert state_of("abc", ask("ax"), Removed("b", "why")).progress.has_news


def test_a_request_is_charged_until_it_arrives_and_its_round_is_decided():
    state = state_of("ab", ask("ax", "bx"))
    a, b = RunId("a", "x", 0), RunId("b", "x", 0)
    assert state.ledger.requested == Spent(2, 4.0)
    assert state.progress.pending == {0: {a: PendingRun(2.0), b: PendingRun(2.0)}}
    assert set(state.progress.wanted) == {a, b}
    assert (state.progress.n_asked, state.progress.has_news) == (1, True)
    assert (state.pool.order, state.pool.observed_until["x"]) == (["x"], {"a": 2.0, "b": 2.0})
    with pytest.raises(ValueError, match="some of its runs have not arrived"):
        after(state_of("ab", ask("ax", "bx")), decided())
    after(state, tell("ax", until=1.5, values=()), tell("bx", **CRASHED))
    assert (state.progress.wanted, state.ledger.spent) == ({}, Spent(2, 2.0))
    assert state.progress.pending[0][a] == PendingRun(2.0, 0.0, 1.5, Status.CUT, has_value=False)
    assert state.progress.pending[0][b] == PendingRun(2.0, 0.0, 0.5, Status.CRASHED, has_value=True)
    assert state.find_failing() == {}
    state.members.on_trial |= {"a": TrialRuns(), "b": TrialRuns()}
    after(state, decided())
    assert state.ledger.requested == Spent(2, 2.0)
    assert state.progress.decision_input == DecisionInput(0, ("a", "b"))
    assert (state.progress.pending, state.progress.n_rounds) == ({}, 1)
    assert (state.progress.n_asked, state.progress.has_news) == (1, False)
    assert (state.members.failures["a"], state.members.failures["b"]) == (0, 1)
    assert state.members.on_trial == {"a": TrialRuns(1), "b": TrialRuns(1)}  # neither succeeded
    assert state.pool.observed_until["x"] == {"a": 1.5, "b": inf}
    assert state.pool.not_extendable == {("a", "x")}
    # The second failure is one too many, as soon as it arrives.
    after(state, ask("ay", "by", round_=1), tell("ay"), tell("by", **CRASHED))
    assert state.find_failing() == {"b": 2}
    assert not state_of("ab", budget=pb.Budget()).find_failing()
    after(state, Removed("b", "failures"))
    assert state.members.failed_out == {"b"}
    after(state, decided(round_=1), Removed("a", "by hand"))
    assert state.members.failed_out == {"b"}
    assert state.members.on_trial == {}
    assert state.pool.not_extendable == {("a", "x")}  # the second run was cut at its planned end


def test_a_trial_ends_with_the_smallest_batch():
    state = state_of("a", Added("b", trial=True), ask("bx"), tell("bx"), decided())
    assert state.members.on_trial == {"b": TrialRuns(1, passed=True)}
    after(state, ask("by", round_=1), tell("by"), decided(1))
    assert state.members.on_trial == {}


def test_a_decision_of_a_round_that_was_not_asked_counts_as_if_it_was():
    assert state_of("ab", decided(round_=3)).progress.n_asked == 4
    assert state_of("ab", ask("ax", round_=3), ask("ay", round_=1)).progress.n_asked == 4
    assert state_of("ab", decided(returning=("c",))).progress.has_news
    assert state_of("ab", decided(returning=("c",))).members.racing == {"a", "b", "c"}


def test_a_failed_run_is_replaced_by_its_retry():
    for until in (0.0, 0.5):
        state = state_of("ab", ask("ax"), tell("ax", status=Status.CRASHED, until=until, values=()))
        after(state, Asked((job_of("a", "x", 1),), 0))
        assert state.ledger.requested == Spent(2, until + 2.0)
        assert set(state.ledger.superseded) == {RunId("a", "x", 0)}
        assert state.progress.pending == {0: {RunId("a", "x", 1): PendingRun(2.0)}}
        after(state, tell("ax", repetition=1), decided())
        assert (state.ledger.requested, state.members.failures["a"]) == (Spent(2, until + 2.0), 0)
    # The last of the earlier repetitions is the one that is replaced.
    after(state, ask("ax", repetition=2, round_=1), ask("ax", repetition=4, round_=1))
    assert set(state.progress.pending[1]) == {RunId("a", "x", 4)}


@pytest.mark.parametrize("continues", [True, False])
def test_an_extension_costs_what_it_adds_only_if_it_continues(continues):
    state = state_of("ab", continues=continues)
    after(state, ask("ax", horizon=1.0), tell("ax", until=1.0), decided())
    after(state, ask("ax", repetition=1, extends=0, round_=1))
    cost = 1.0 if continues else 2.0
    assert state.progress.pending[1] == {RunId("a", "x", 1): PendingRun(2.0, 1.0)}
    assert state.ledger.requested == Spent(2, 1.0 + cost)
    assert state.pool.observed_until["x"] == {"a": 2.0}
    after(state, tell("ax", repetition=1, until=1.5))
    assert state.ledger.spent == Spent(2, 1.0 + cost - 0.5)
    after(state, decided(round_=1))
    assert state.ledger.requested == Spent(2, 1.0 + cost - 0.5)
    assert state.pool.observed_until["x"] == {"a": 1.5}
    # A run that extends none is charged in full, and so is one that arrives although cancelled.
    after(state, ask("ax", repetition=2, round_=2))
    assert state.ledger.requested == Spent(3, 1.0 + cost - 0.5 + 2.0)
    after(state, ask("ax", repetition=3, extends=2, round_=3), Removed("a", "why"))
    after(state, tell("ax", repetition=3, until=2.0))
    assert state.ledger.spent == Spent(3, 1.0 + cost - 0.5 + 2.0)


def test_runs_of_later_rounds_never_count_once_they_are_cancelled():
    def start():
        state = state_of("abc", ask("ax", "bx"), ask("ay", "by", "cy", round_=1))
        return after(state, tell("ax", **CRASHED), tell("ay", **CRASHED))

    state = after(start(), Removed("a", "why"))
    assert set(state.ledger.superseded) == {RunId("a", "y", 0)}
    assert state.members.failures["a"] == 1
    assert state.ledger.requested == Spent(5, 8.5)
    assert state.pool.observed_until == {"x": {"b": 2.0, "a": inf}, "y": {"b": 2.0, "c": 2.0}}
    after(state, Removed("b", "why"))
    assert set(state.ledger.superseded) == {RunId("a", "y", 0), RunId("b", "y", 0)}
    assert [*state.progress.pending] == [1]
    assert set(state.progress.wanted) == {RunId("c", "y", 0)}
    # When no pair is open, all that was asked beyond the decided round is cancelled.
    state = after(start(), tell("bx"), decided(open_=()))
    assert set(state.ledger.superseded) == {RunId(name, "y", 0) for name in "abc"}
    assert (state.progress.pending, state.progress.wanted) == ({}, {})
    assert not state.progress.has_news
    state = after(start(), tell("bx"), decided())
    assert state.progress.has_news  # the next round is under way
    # Who is eliminated leaves after its runs of the round count.
    state = after(start(), tell("bx"), decided(verdicts=(LOST, Verdict("a", "member"))))
    assert set(state.ledger.superseded) == {RunId("b", "y", 0)}


@pytest.mark.parametrize("arrived", [True, False])
def test_a_run_that_is_superseded_or_withdrawn_is_as_if_it_was_not_made(arrived):
    """Also one of the current round: it neither counts as failed nor corrects the charge."""
    for event in (Superseded(RunId("a", "x", 0), 1), Withdrawn((("a", "x"),))):
        state = state_of("ab", ask("ax", "bx"), ask("ay", round_=1))
        after(state, *[tell("ax", **CRASHED)] * arrived, event)
        assert set(state.ledger.superseded) == {RunId("a", "x", 0)}
        assert state.ledger.requested == Spent(3, 6.0)
        assert state.members.failures["a"] == 0
        assert set(state.progress.run_ids()) == {RunId("b", "x", 0), RunId("a", "y", 0)}
        assert set(state.progress.wanted) == {RunId("b", "x", 0), RunId("a", "y", 0)}
        assert state.pool.observed_until == {"x": {"b": 2.0}, "y": {"a": 2.0}}


def test_an_imported_run_counts_unless_it_is_superseded():
    state = state_of("ab", Imported(run_of("a", "w", until=1.0)))
    assert (state.pool.order, state.pool.observed_until) == (["w"], {"w": {"a": 1.0}})
    assert (state.ledger.n_runs, state.ledger.spent) == ({"a": 1}, Spent())
    assert state.progress.has_news
    state = state_of("ab", Superseded(RunId("a", "w", 0), 1), Imported(run_of("a", "w")))
    assert state.pool.order == []


def test_withdrawn_runs_open_all_pairs_and_let_algorithms_return():
    solvers = {"a": {"code": "1"}, "b": {"code": "2"}}
    lost = LOST._replace(algorithm="c")
    state = state_of("abcd", Identified(solvers=solvers), ask("ax", "bx", "dx"))
    after(state, tell("ax"), tell("bx"), tell("dx", **CRASHED), decided(verdicts=(lost,)))
    after(state, ask("ay", "dy", round_=1), tell("dy", **CRASHED), Removed("d", "failures"))
    assert state.members.failed_out == {"d"}
    after(state, tell("ay"), decided(round_=1))
    after(state, Withdrawn((("a", "x"), ("a", "y"), ("d", "x")), instances=("x", "z")))
    assert state.members.racing == {"a", "b", "c", "d"}
    assert all(times == 0b11 for times in state.pairs.open.values())
    assert len(state.pairs.open) == 6
    # Who returns has a further entry, and nobody else has.
    assert state.members.entries.numbers == {"a": [0], "b": [0], "c": [0, 1], "d": [0, 2]}
    assert (state.members.failures["d"], state.members.failures["a"]) == (0, 0)
    assert state.progress.identity.solvers == {"b": {"code": "2"}}  # a has no run left
    assert state.pool.dropped == {"x", "z"}
    assert state.progress.has_news
    assert state.members.verdicts == {}
    endless = state_of("ab", Withdrawn((("a", "x"),), instances=("x",)), endless=True)
    assert endless.pool.dropped == set()
    assert not endless.progress.has_news  # no run is there to decide from


def test_another_question_opens_the_pairs_and_another_budget_does_not():
    state = state_of("abc", ask("ax"), tell("ax"), decided(verdicts=(LOST,)))
    state.pool.next_cached["a"] = 1
    question = state.setup.question
    after(state, Extended(question, pb.Budget(batch=(5, 8))))
    assert (state.pairs.batch, state.pairs.open) == (5, {("a", "b"): 0b10})
    after(state, Extended(question, pb.Budget(batch=(1, 3))))
    assert (state.pairs.batch, state.members.eliminated) == (3, {"b": LOST})
    assert (state.setup.budget.batch, state.pool.next_cached["a"]) == ((1, 3), 1)
    assert state.members.verdicts
    laxer = replace(question, certainty=0.9)
    after(state, Extended(laxer, pb.Budget(batch=(1, 3))))
    assert (state.pairs.batch, state.members.eliminated) == (1, {"b": LOST})
    assert (state.pairs.open, state.setup.question) == ({("a", "c"): 0b11}, laxer)
    assert (state.pool.next_cached["a"], state.members.verdicts) == (0, {})
    assert state.progress.has_news
    after(state, Extended(question, pb.Budget(batch=(2, 3))))
    assert (state.members.racing, len(state.pairs.open)) == ({"a", "b", "c"}, 3)


def test_reports_are_kept_and_do_not_reopen_a_race():
    details, key = {"host": "node"}, RunId("a", "x", 0)
    state = state_of("ab", ask("ax"), Ended("why"), tell("ax"))
    after(state, Failed(key, Status.CRASHED, "no licence"), Hosted(3, (key,), details))
    after(state, Hosted(4, (key,)), Identified(solvers={"a": {"code": "1"}}))
    assert state.progress.ended == "why"
    assert set(state.ledger.failed) == {key}
    assert state.ledger.reasons["a"]["no licence"].runs == {"x": 1}
    assert state.ledger.workers == {(("host", "node"),): 3}
    assert state.progress.identity.solvers == {"a": {"code": "1"}}
    after(state, Continued(RunId("a", "x", 1), 0))
    assert state.ledger.extends == {RunId("a", "x", 1): 0}
    assert state.progress.ended is None
    with pytest.raises(ValueError, match="can only be the first"):
        after(state, state.setup)


def test_an_end_is_noted_when_all_instances_are_used():
    every = ask("ax", "ay", "az"), tell("ax"), tell("ay"), tell("az"), decided()
    assert state_of("ab", *every).pool.ends == [3]
    assert state_of("ab", *every, endless=True).pool.ends == []
    assert state_of("ab", decided()).pool.ends == []
    assert (state_of("ab").left, state_of("ab", *every).left) == (3, 0)
    assert state_of("ab", endless=True).left is None


def test_a_race_is_resolved_without_open_pairs_news_or_obstacles():
    assert not state_of("ab").resolved
    assert state_of("ab", decided(open_=())).resolved
    assert not state_of("ab", decided(open_=()), Imported(run_of())).resolved
    gate = pb.NoWorse("c")
    state = state_of("ab", decided(open_=()), question=gate)
    assert state.obstacle == gate.find_obstacle({"a", "b"}, {})
    assert not state.resolved


def test_limits_of_an_algorithm_allow_the_shortest_run_or_none():
    state = state_of(
        "a", Added("b", max_runs=1), Added("c", max_time=2.5), Added("d", max_time=3.5)
    )
    assert state.view().exhausted == frozenset()
    after(state, ask("ax", "bx", "cx", "dx"))
    assert [name for name in "abcd" if state.has_reached_limit(name)] == ["b", "c"]


def test_a_question_sees_the_race():
    state = state_of("ab", ask("ax", "bx", "by"), Added("c", max_runs=0))
    view = state.view()
    assert (view.members, view.times, view.batch) == (("a", "b", "c"), (1.0, 2.0), 2)
    assert (view.n_used, view.n_unused, view.exhausted) == (2, 1, {"c"})
    assert (view.open, view.budget) == (state.pairs.open, state.setup.budget)
    assert view.heaviest == state.setup.model.heaviest
    assert view.dropped == {}
    endless = state_of("abc", decided(verdicts=(LOST,)), endless=True).view()
    assert (endless.n_unused, endless.dropped) == (inf, {"b": "a"})
    assert endless.error_shares == Shares()
