"""Events: what is written is read again."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear.data.run import Run, Status, normalise_run
from polarbear.errors import DataError
from polarbear.inference.verdicts import Verdict
from polarbear.racing.budget import Budget
from polarbear.racing.decisions import Decision, Forecast, Open
from polarbear.racing.events import (
    Added,
    Asked,
    Continued,
    Decided,
    Ended,
    Extended,
    Failed,
    Imported,
    Offered,
    Removed,
    Started,
    Superseded,
    Told,
    from_json,
    to_json,
)
from polarbear.racing.jobs import RunId, job
from polarbear.racing.model import Model
from polarbear.racing.questions.choice import Choice
from polarbear.racing.questions.no_worse import NoWorse
from polarbear.racing.questions.paper_pareto_set import PaperParetoSet
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.racing.questions.stored import question_from_plain
from polarbear.selection.preferences import Weights

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
CERTAINTIES = st.sampled_from([0.9, 0.99])
QUESTIONS = st.one_of(
    st.builds(
        ParetoSet,
        certainty=CERTAINTIES,
        errors=st.sampled_from(["per_member", "whole_race"]),
        classes=st.none() | st.dictionaries(NAMES, NAMES),
    ),
    st.builds(
        Choice,
        st.builds(Weights, NAMES, st.lists(st.floats(0, 1), min_size=1).map(tuple)),
        certainty=CERTAINTIES,
        regret=st.none() | st.just(0.01),
        size=st.integers(1, 3),
    ),
    st.builds(NoWorse, NAMES, certainty=CERTAINTIES),
    st.builds(
        PaperParetoSet, certainty=CERTAINTIES, elimination=st.sampled_from(["joint", "pointwise"])
    ),
)
BUDGETS = st.builds(
    Budget,
    batch=st.sampled_from([(1, 1), (8, 64)]),
    runs=st.none() | st.integers(0, 99),
    time=st.none() | st.floats(0, 1e9),
)
VALUES = st.lists(st.floats(allow_nan=False), max_size=4)
RUNS = st.builds(
    lambda a, i, value, repetition, status: normalise_run(
        Run(a, i, range(len(value)), value, 10.0, repetition, status)
    ),
    NAMES,
    NAMES,
    VALUES,
    st.integers(-5, 2**40),
    st.sampled_from(Status),
)
KEYS = st.builds(RunId, NAMES, NAMES, st.integers(0, 3))
JOBS = st.builds(job, st.integers(), KEYS, st.floats(0, 9), st.none() | st.integers(0, 3))


VERDICTS = st.builds(
    Verdict,
    NAMES,
    st.sampled_from(["member", "dominated"]),
    st.none() | st.floats(0, 1),
    st.none() | NAMES,
    decisive=st.lists(NAMES, max_size=2).map(tuple),
)
THREE = st.tuples(st.floats(0), st.floats(0), st.floats(0))
EVENTS = st.one_of(
    st.builds(
        Started,
        st.integers(),
        st.lists(st.floats(0, 1e9), min_size=1).map(tuple),
        st.sampled_from(["minimize", "maximize"]),
        NAMES,
        st.booleans(),
        QUESTIONS,
        BUDGETS,
        st.just(Model()),
    ),
    st.builds(Extended, QUESTIONS, BUDGETS),
    st.builds(Offered, st.lists(NAMES).map(tuple)),
    st.builds(Added, NAMES),
    st.builds(Removed, NAMES, NAMES),
    st.builds(Asked, st.lists(JOBS, max_size=3).map(tuple), st.integers(0, 9)),
    st.builds(Told, RUNS),
    st.builds(Imported, RUNS),
    st.builds(Continued, KEYS, st.integers(0, 3)),
    st.builds(Superseded, KEYS, st.integers(0, 3)),
    st.builds(Failed, KEYS, st.sampled_from(Status), st.text(), st.text()),
    st.builds(Ended, NAMES),
    st.builds(
        Decided,
        st.integers(0, 9),
        st.builds(
            Decision,
            st.lists(
                st.builds(Open, NAMES, NAMES, st.integers(1, 2**200), st.floats(0)), max_size=2
            ).map(tuple),
            st.integers(1, 64),
            st.lists(VERDICTS, max_size=2).map(tuple),
            st.lists(NAMES, max_size=2).map(tuple),
            st.none() | st.builds(Forecast, THREE, THREE),
            st.lists(NAMES, max_size=2).map(tuple),
            st.lists(NAMES, max_size=2).map(tuple),
        ),
    ),
)


@given(EVENTS)
def test_what_is_written_is_read_again(event):
    line = to_json(event)
    assert "\n" not in line
    assert from_json(line) == event
    json.loads(line, parse_constant=pytest.fail)  # no infinities: others read it too


def test_a_field_that_a_line_lacks_has_its_default():
    line = '{"event": "decided", "version": 1, "round": 0, "decision": {"open": [], "batch": 8}}'
    assert from_json(line) == Decided(0, Decision((), 8))


def test_an_event_of_a_later_version_is_refused():
    with pytest.raises(DataError, match="version 2, but this program reads versions up to 1"):
        from_json('{"event": "added", "version": 2, "algorithm": "a"}')


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"event": "added"}',
        '{"event": "flew", "version": 1}',
        '{"event": "added", "version": 1}',
        '{"event": "added", "version": "x", "algorithm": "a"}',
        '{"event": "told", "version": 1, "run": {"algorithm": "a"}}',
    ],
)
def test_what_is_no_event_is_refused(line):
    with pytest.raises(DataError, match="not an event"):
        from_json(line)


def test_arrays_become_plain_numbers():
    run = normalise_run(Run("a", 1, np.array([1, 2]), np.array([[3.0], [2.0]]), np.float64(5), 0))
    assert run == Run("a", "1", (1.0, 2.0), (3.0, 2.0), 5.0, 0, Status.UNSTATED)
    with pytest.raises(DataError, match="nan"):
        normalise_run(Run("a", "1", [1], [float("nan")], 5))


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (ParetoSet, {"certainty": 1.0}),
        (ParetoSet, {"certainty": "x"}),
        (ParetoSet, {"margin": 0.5}),
        (ParetoSet, {"width": 2}),
        (ParetoSet, {"errors": "twice"}),
        (PaperParetoSet, {"certainty": 1.0}),
        (PaperParetoSet, {"epsilon": 0.5}),
        (PaperParetoSet, {"elimination": "none"}),
        (PaperParetoSet, {"resolution": "some"}),
        (Budget, {"batch": (8, 4)}),
        (Budget, {"batch": 8}),
        (Budget, {"runs": -1}),
        (Budget, {"runs": 2.5}),
        (Budget, {"time": "long"}),
        (Budget, {"deadline": float("nan")}),
        (Budget, {"retries": None}),
        (Budget, {"retries": True}),
        (Budget, {"failures": -1}),
        (Budget, {"overlap": 0.5}),
    ],
)
def test_what_makes_no_sense_is_refused(kind, wrong):
    (name,) = wrong
    with pytest.raises(DataError, match=f"^{name}="):
        kind(**wrong)


@pytest.mark.parametrize("wrong", [{"margin": 0.0}, {"margin": 0.5}, {"certainty": 0.5}])
def test_a_baseline_needs_a_margin_and_a_certainty(wrong):
    (name,) = wrong
    with pytest.raises(DataError, match=f"^{name}="):
        NoWorse("a", **wrong)


def test_a_field_of_another_version_is_named():
    with pytest.raises(DataError, match="ParetoSet has no 'beta'"):
        question_from_plain({"beta": 1})
    with pytest.raises(
        DataError, match="no question 'Best': expected one of ParetoSet, StrictParetoSet, Choice"
    ):
        question_from_plain({"kind": "Best"})
