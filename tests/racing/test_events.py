"""Events: what is written is read again, in every version."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear.data.run import Run, Status, normalise_run
from polarbear.errors import DataError
from polarbear.racing import events
from polarbear.racing.events import (
    Added,
    Asked,
    Continued,
    Decided,
    Eliminated,
    Ended,
    Extended,
    Failed,
    Forecast,
    Imported,
    Offered,
    Open,
    Removed,
    Started,
    Superseded,
    Told,
    from_json,
    to_json,
)
from polarbear.racing.jobs import RunId, job
from polarbear.racing.rules import Rules

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
RULES = st.builds(
    Rules,
    certainty=st.sampled_from([0.9, 0.99]),
    batch=st.sampled_from([(1, 1), (8, 64)]),
    max_runs=st.none() | st.integers(0, 99),
    max_time=st.none() | st.floats(0, 1e9),
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
THREE = st.tuples(st.floats(0), st.floats(0), st.floats(0))
EVENTS = st.one_of(
    st.builds(
        Started,
        st.integers(),
        st.lists(st.floats(0, 1e9), min_size=1).map(tuple),
        st.sampled_from(["minimize", "maximize"]),
        NAMES,
        st.booleans(),
        RULES,
    ),
    st.builds(Extended, RULES),
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
        st.lists(st.builds(Eliminated, NAMES, NAMES, st.floats(0, 1)), max_size=2).map(tuple),
        st.lists(
            st.builds(Open, NAMES, NAMES, st.integers(1, 2**200), st.floats(0)), max_size=2
        ).map(tuple),
        st.integers(1, 64),
        st.lists(st.tuples(NAMES, st.floats(0, 1e9)), max_size=2).map(tuple),
        st.none() | st.builds(Forecast, THREE, THREE),
        st.lists(NAMES, max_size=2).map(tuple),
    ),
)


@given(EVENTS)
def test_what_is_written_is_read_again(event):
    line = to_json(event)
    assert "\n" not in line
    assert from_json(line) == event
    json.loads(line, parse_constant=pytest.fail)  # no infinities: others read it too


def test_an_older_version_is_brought_up_to_date(monkeypatch):
    old = to_json(Added("a"))

    def upgrade(plain, _):
        if plain["event"] == "added":
            plain["algorithm"] = plain["algorithm"].upper()
        return plain

    monkeypatch.setattr(events, "VERSION", 3)
    monkeypatch.setitem(events.UPGRADES, 2, upgrade)
    assert from_json(old) == Added("A")
    assert json.loads(to_json(Added("a")))["version"] == 3


@given(st.integers(), st.lists(KEYS, min_size=1, max_size=4), st.data())
def test_jobs_of_version_1_are_extensions_by_their_seeds(seed, keys, data):
    """A job says since version 2 which repetition it extends; before, its seed did."""
    jobs = []
    for key in keys:
        extends = data.draw(st.sampled_from([None, *range(key.repetition)]))
        jobs.append(job(seed, key, 4.0, extends))
    rows = [list(one)[:-1] for one in jobs]
    line = json.dumps({"event": "asked", "version": 1, "jobs": rows, "round": 3})
    assert from_json(line, seed=seed) == Asked(tuple(jobs), 3)
    if any(key.repetition for key in keys):
        with pytest.raises(DataError, match="pass the seed of the race as seed"):
            from_json(line)
    else:
        assert from_json(line) == Asked(tuple(jobs), 3)


def test_a_field_that_a_line_lacks_has_its_default():
    line = (
        '{"event": "decided", "version": 2, "round": 0, "eliminated": [], "open": [], "batch": 8}'
    )
    assert from_json(line) == Decided(0, (), (), 8)


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
    "wrong",
    [
        {"certainty": 1.0},
        {"certainty": "x"},
        {"epsilon": 0.5},
        {"elimination": "none"},
        {"resolution": "some"},
        {"error_control": "twice"},
        {"batch": (8, 4)},
        {"batch": 8},
        {"max_runs": -1},
        {"max_runs": 2.5},
        {"max_time": "long"},
        {"deadline": float("nan")},
        {"retries": None},
        {"retries": True},
    ],
)
def test_rules_that_make_no_sense_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(DataError, match=f"^{name}="):
        Rules(**wrong)


def test_a_rule_of_another_version_is_named():
    with pytest.raises(DataError, match="unknown rule 'beta'"):
        Rules.from_plain({"beta": 1})
