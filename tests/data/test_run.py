"""One run: one validator, one codec, and no second one of either in the package."""

import ast
import json
from collections.abc import Iterator
from math import inf, nan
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import polarbear
from polarbear.data import run as module
from polarbear.data.run import (
    STATUS_CODES,
    STATUSES,
    Run,
    Status,
    are_valid_trajectories,
    check_run,
    decode_run,
    encode_run,
    normalise_run,
    run_from_plain,
    run_to_plain,
)
from polarbear.errors import DataError

SOURCE = Path(polarbear.__file__).parent

NUMBERS = st.one_of(
    st.floats(min_value=0.0, max_value=100.0),
    st.sampled_from([0.0, -0.0, -1.0, inf, -inf, nan, 5e-324, 1.7e308, True, 3, 10**400, "x"]),
)
NAMES = st.sampled_from(["CSA", "f\N{GREEK SMALL LETTER ALPHA}", "", "\ud800", 7, None])
ANY_RUN = st.builds(
    Run,
    NAMES,
    NAMES,
    st.lists(NUMBERS, max_size=4).map(tuple),
    st.lists(NUMBERS, max_size=4).map(tuple),
    NUMBERS,
    st.one_of(st.integers(-2, 2), st.sampled_from([2**63, -(2**63), 0.5])),
    st.sampled_from([*Status, "cut", "exploded"]),
)
FLOATS = st.floats(allow_nan=False)
VALID_RUN = st.lists(st.tuples(st.floats(0, 1e300), FLOATS)).flatmap(
    lambda rows: st.builds(
        Run,
        st.text(st.characters(codec="utf-8"), min_size=1),
        st.text(st.characters(codec="utf-8"), min_size=1),
        st.just(tuple(time for time, _ in rows)),
        st.just(tuple(value for _, value in rows)),
        st.floats(max((time for time, _ in rows), default=0.0), 1e301),
        st.integers(1 - 2**63, 2**63 - 1),
        st.sampled_from(Status),
    )
)


def is_valid(run: Run) -> bool:
    try:
        check_run(run)
    except DataError:
        return False
    return True


def as_arrays(run: Run) -> Run:
    return run._replace(time=np.array(run.time), value=np.array(run.value))


@given(VALID_RUN)
def test_a_valid_run_survives_every_encoding(run):
    assert normalise_run(run) == run
    assert decode_run(encode_run(run)) == run
    assert normalise_run(decode_run(encode_run(run), arrays=True)) == run
    assert encode_run(as_arrays(run)) == encode_run(run)
    assert run_from_plain(json.loads(json.dumps(run_to_plain(run), allow_nan=False))) == run


@given(ANY_RUN)
def test_the_quick_test_accepts_only_what_the_full_test_accepts(run):
    quickly = module._is_surely_valid(run)
    try:
        normal = normalise_run(run)
    except DataError:
        assert not quickly
        return
    assert module._is_surely_valid(normal)
    assert module._is_surely_valid(as_arrays(normal)) or not normal.time
    assert encode_run(check_run(run)) == encode_run(normal)


@given(st.lists(st.tuples(NUMBERS.filter(lambda x: isinstance(x, float)), FLOATS | st.just(nan))))
def test_many_runs_are_valid_if_each_of_them_is(rows):
    time, value = (
        np.array(part, dtype=float) for part in ([t for t, _ in rows], [v for _, v in rows])
    )
    until, owner = np.array([50.0, inf]), np.arange(len(rows)) % 1
    each = [is_valid(Run("a", "i", [t], [v], 50.0)) for t, v in rows]
    assert are_valid_trajectories(time, value, until[:1], owner) == all(each)
    assert not are_valid_trajectories(time, value, until, owner)


def test_numbers_of_statuses_in_files_never_change():
    words = ["cut", "finished", "out of time", "out of memory", "crashed", "killed", "unstated"]
    assert [str(status) for status in STATUSES] == words
    assert list(STATUS_CODES.values()) == list(range(7))


def test_an_infinite_value_is_text_in_json():
    run = Run("CSA", "f1", (1.0, 2.0), (inf, -inf), 9.0, 3, Status.CRASHED)
    assert json.dumps(run_to_plain(run), allow_nan=False) == (
        '{"algorithm": "CSA", "instance": "f1", "time": [1.0, 2.0], "value": ["inf", "-inf"], '
        '"until": 9.0, "repetition": 3, "status": "crashed"}'
    )


# No second codec and no second validator

ENCODERS = {"json", "struct", "pickle", "marshal", "tobytes", "frombuffer", "fromstring"}
RUNS = {"Run", "EncodedRun", "Outcome", "Told", "Imported"}

MAY_ENCODE = {
    "data/run.py": "the codec of runs",
    "racing/events.py": "lines of events; a run in them is run_to_plain",
    "racing/jobs.py": "names, from which seeds are derived",
    "selection/schedules.py": "the file of a schedule, which holds no run",
    "readers/ioh.py": "the index files of IOHprofiler",
    "readers/minizinc.py": "messages of MiniZinc",
    "readers/trials.py": "files of tuners",
    "readers/writing.py": "the index files of IOHprofiler",
    "reporting/history.py": "arrays, of which a hash is taken",
    "running/backends/dask_cluster.py": "what workers say about themselves",
    "running/backends/shared_folder.py": "jobs, and outcomes whose run is run_to_plain",
    "running/workers/containment.py": "jobs",
    "running/workers/spawning.py": "solvers and jobs, for a child process",
    "store/rows.py": "checksums of rows; a run in them is encode_run",
    "store/restoring.py": "nothing: it catches errors of a damaged snapshot",
    "cli/races.py": "the option --json",
}
"""Modules that handle runs and encode something, with what they encode."""

MAY_VALIDATE = {
    "data/run.py": "the validator of runs",
    "data/long_table.py": "rows of tables, before they are runs",
    "data/archives.py": "points of several objectives, which runs of one value do not have",
    "running/solvers/job.py": "single values that a solver reports",
    "running/solvers/shared_trajectory.py": "the memory page of a run that is under way",
}
"""Modules that judge times and values, with what they judge."""


def names_in(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.alias(name=name):
                yield name.split(".")[0]
            case ast.ImportFrom(module=str(name)):
                yield name.split(".")[0]
            case _:
                pass


def sources(*needed: set[str]) -> Iterator[tuple[str, ast.Module]]:
    """Modules whose text has a name of each set: only these are parsed."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text("utf-8")
        if all(any(name in text for name in names) for names in needed):
            yield path.relative_to(SOURCE).as_posix(), ast.parse(text)


def test_no_other_module_encodes_runs():
    for path, tree in sources(ENCODERS, RUNS):
        names = set(names_in(tree))
        if names & ENCODERS and names & RUNS:
            assert path in MAY_ENCODE, (
                f"{path} handles runs and uses {names & ENCODERS}: encode runs with encode_run or "
                "run_to_plain of polarbear.data.run, and say in MAY_ENCODE what this module encodes"
            )
    for path, tree in sources({"Run(**"}):
        for call in ast.walk(tree):  # a run made of one mapping, and nothing else
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Run" and not call.args:
                is_plain = [one.arg for one in call.keywords] == [None]
                assert not is_plain or path == "data/run.py", f"{path}: use run_from_plain"


def test_no_other_module_validates_runs():
    rooms = ("data/", "racing/", "running/", "store/", "coordinator/")
    judges = {"isnan", "isfinite", "inf"}
    for path, tree in sources({"time"}, {"value"}, judges):
        if not path.startswith(rooms):
            continue
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            names = set(names_in(function))
            if {"time", "value"} <= names and names & judges:
                assert path in MAY_VALIDATE, (
                    f"{path}: {function.name} judges times and values: use check_run or "
                    "normalise_run of polarbear.data.run, or say in MAY_VALIDATE what it judges"
                )
