"""Decisions of recorded races are made again from their runs."""

import re
from dataclasses import replace

import numpy as np
import pytest

import polarbear as pb
from polarbear.racing.events import Asked, Decided, Told, from_json, to_json
from polarbear.reporting.verifying import verify_decisions
from racers import drive, fitted, race_of

TIMES = np.array([1.0, 2.0, 3.0])
RACES = {
    "default": {},
    "paper": {"question": pb.PaperParetoSet()},
    "overlap": {"budget": pb.Budget(overlap=1, batch=(4, 16))},
    "baseline": {"question": pb.NoWorse("a1")},
    "limits": {"budget": pb.Budget(runs=120, retries=1)},
}


def recorded():
    truth = np.array([[2.0, 0.0, -2.0], [1.0, 0.5, -2.0], [0.0, 1.0, -2.0]])
    return pb.simulation.simulate_runs(truth, 60, 4, TIMES, crashed=0.05)


def race(name):
    return pb.replay(recorded(), **RACES[name], times=TIMES)


@pytest.mark.parametrize("name", RACES)
def test_decisions_follow_from_the_runs(name):
    events = race(name).events
    compared = list(verify_decisions(events))
    assert all(one.is_identical for one in compared)
    assert sum(isinstance(one.recorded, Decided) for one in compared) == sum(
        isinstance(event, Decided) for event in events
    )


def test_races_that_were_changed_on_the_way():
    """Joined, removed, withdrawn, another question, failures, a deadline, an end in the middle."""
    budget = pb.Budget(runs=60, failures=1)
    changed = race_of(("early", "good", "bad"), fit=None, question=pb.ParetoSet(), budget=budget)
    drive(changed, fails=0.2)
    assert changed.status.removed
    changed.add("late")
    changed.extend(pb.ParetoSet(certainty=0.9), budget=pb.Budget(runs=150))
    drive(changed)
    changed.withdraw(changed.pareto[0], why="wrong licence", at="today")
    changed.extend(pb.ParetoSet(), budget=pb.Budget(runs=250, deadline=100.0))
    for _ in range(2):
        for job in changed.ask(1.0):
            changed.tell(job.run([1.0], [float(job.seed % 7)]))
    changed.ask(200.0)
    assert changed.ended == "deadline"
    for stop in (len(changed.events), len(changed.events) // 2):
        compared = list(verify_decisions(changed.events[:stop]))
        assert [str(one) for one in compared if not one.is_identical] == []


def test_a_changed_run_decision_or_request_is_found_at_its_place():
    events = race("default").events
    k = next(k for k, e in enumerate(events) if isinstance(e, Decided) and e.decision.eliminated)
    decision = events[k].decision
    lost = decision.eliminated[0]

    def changed_to(probability):
        verdicts = [
            one._replace(probability=probability) if one == lost else one
            for one in decision.verdicts
        ]
        return replace(decision, verdicts=tuple(verdicts))

    for wrong, words in (
        (replace(decision, verdicts=()), f"the runs give .*{lost.algorithm} replaceable by"),
        (changed_to(0.5), r"a3 replaceable by a1 \(50 %\).*a3 replaceable by a1"),
    ):
        changed = [*events[:k], replace(events[k], decision=wrong), *events[k + 1 :]]
        first = next(one for one in verify_decisions(changed) if not one.is_same)
        assert first.number == k + 1
        assert re.search(words, str(first))
    near = changed_to(lost.probability - 1e-6)
    changed = [*events[:k], replace(events[k], decision=near), *events[k + 1 :]]
    (only,) = (one for one in verify_decisions(changed) if not one.is_identical)
    assert only.is_same
    assert only.difference == pytest.approx(1e-6, rel=1e-3)
    swapped = [
        replace(e, run=e.run._replace(value=tuple(-np.array(e.run.value))))
        if isinstance(e, Told) and e.run.algorithm == lost.algorithm
        else e
        for e in events
    ]
    assert not all(one.is_same for one in verify_decisions(swapped))
    asked = next(k for k, e in enumerate(events) if isinstance(e, Asked))
    fewer = replace(events[asked], jobs=events[asked].jobs[1:])
    first = next(iter(verify_decisions([*events[:asked], fewer, *events[asked + 1 :]])))
    assert not first.is_same
    assert "a request of round 1" in str(first)
    added = [*events[: k + 1], events[k], *events[k + 1 :]]
    assert not all(one.is_same for one in verify_decisions(added))  # the same round twice


def test_the_quick_fit_is_not_the_one_of_the_store():
    raced = pb.replay(recorded(), fitted(pb.PaperParetoSet()), times=TIMES)
    events = [from_json(to_json(event)) for event in raced.events]
    assert any(not one.is_identical for one in verify_decisions(events))
