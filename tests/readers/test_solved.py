"""Reading of results that are solved or not at a cost."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polarbear as pb
from polarbear.errors import DataError, DataWarning

BOARD = Path(__file__).parent / "files" / "solved" / "leaderboards.json"
TABLE = """model,task,solved,cost,api_calls
A,task-1,true,$0.02,3
A,task-2,false,0.5,12
B,task-1,1,0.3,9
B,task-2,yes,0.4,11
"""


def write(folder, text):
    path = folder / "board.csv"
    path.write_text(text)
    return path


def test_columns_are_guessed_and_said(tmp_path):
    with pytest.warns(DataWarning, match="'model' as the algorithm.*'cost' as the cost in dollars"):
        runs = pb.read(write(tmp_path, TABLE))
    assert (runs.algorithms, runs.instances) == (("A", "B"), ("task-1", "task-2"))
    assert (runs.direction, runs.clock) == ("maximize", "dollars")
    never = -np.inf  # finished without a value, so known at every budget
    assert_allclose(
        runs.at([0.01, 0.1, 0.45, 9]),
        [[never, 1, 1, 1], [never] * 2 + [1] * 2, [never] * 4, [never, never, 1, 1]],
    )


def test_named_columns_and_clock_are_taken_without_a_word(tmp_path, recwarn):
    path = write(tmp_path, TABLE.replace("solved", "ok"))
    runs = pb.read(
        path, format="solved", algorithm="model", instance="task", value="ok",
        time="api_calls", clock="turns",
    )  # fmt: skip
    assert runs.clock == "turns"
    assert not recwarn
    assert "3 to 12 turns, 3 improvements" in str(runs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("cost", "x"), "'api_calls' as the cost in calls"),
        (("api_calls", "tokens"), "in dollars"),
    ],
)
def test_the_first_known_unit_is_read(tmp_path, change, message):
    with pytest.warns(DataWarning, match=message):
        pb.read(write(tmp_path, TABLE.replace(*change)))


def test_a_cell_that_is_not_solved_or_not_is_named(tmp_path):
    path = write(tmp_path, TABLE.replace("yes", "perhaps"))
    with pytest.raises(pb.DataError, match="'perhaps' is not solved or not"):
        pb.read(path, format="solved", value="solved")


def test_two_rows_of_one_run_are_refused(tmp_path):
    with pytest.raises(pb.DataError, match="are both A, task-1"):
        pb.read(write(tmp_path, TABLE + "A,task-1,0,2,3\n"))


def test_leaderboards_of_swe_bench_are_read_once_for_each_run():
    runs = pb.read(BOARD)
    assert (runs.algorithms, runs.instances) == (
        ("Model A", "Model B"),
        ("task-1", "task-2", "task-10"),
    )
    assert (len(runs), runs.clock) == (6, "dollars")
    assert pb.read(BOARD, time="api_calls").clock == "calls"


def test_a_long_table_is_not_taken_for_one_of_solved_runs(tmp_path):
    text = "algorithm,instance,time,value,passed\na,x,1,2.5,1\nb,x,1,3.5,0\n"
    runs = pb.read(write(tmp_path, text), direction="minimize")
    assert runs.value.tolist() == [2.5, 3.5]


def test_many_runs_without_a_value_are_counted():
    frame = {
        "algorithm": ["a"] * 6,
        "instance": range(6),
        "time": 1.0,
        "value": [np.nan] * 5 + [1.0],
        "status": "finished",
    }
    runs = pb.Runs.from_frame(
        {**frame, "time": [1.0] * 6, "status": ["finished"] * 6}, direction="maximize"
    )
    assert "no value    5 of 6 runs (5 finished)" in str(runs)


def test_the_grid_begins_where_some_instances_are_solved():
    """That most are not solved is a result, not a lack of values."""
    cost = np.geomspace(0.01, 10, 200)
    frame = {
        "algorithm": ["a", "b"] * 100,
        "instance": np.arange(200) // 2,
        "time": cost,
        "value": np.where(np.arange(200) % 4 == 0, 1.0, np.nan),
        "status": ["finished"] * 200,
    }
    runs = pb.Runs.from_frame(frame, direction="maximize", until="last", clock="dollars")
    assert pb.grid.from_runs(runs, 10)[0] == pytest.approx(0.0115, rel=0.1)


@pytest.mark.parametrize("content", [b'{"task1": {"cost": 1', b"\xff\xfe"])
def test_details_that_cannot_be_read_are_not_left_out(tmp_path, content):
    """Else an algorithm is missing, and nobody notices."""
    for model in ("m1", "m2"):
        (tmp_path / model).mkdir()
        details = {f"t{k}": {"cost": 1.0, "resolved": True} for k in range(3)}
        (tmp_path / model / "per_instance_details.json").write_text(json.dumps(details))
    (tmp_path / "notes.json").write_text("{")  # of another program
    assert pb.read(tmp_path).algorithms == ("m1", "m2")
    (tmp_path / "m2" / "per_instance_details.json").write_bytes(content)
    with pytest.raises(DataError, match="m2/per_instance_details.json"):
        pb.read(tmp_path)
