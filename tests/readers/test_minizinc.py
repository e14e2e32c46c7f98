"""JSON streams of MiniZinc 2.6.4 and 2.10.0, with four of its solvers."""

import gzip
import json
import re
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from polarbear import DataError, Status, read

FILES = Path(__file__).parent / "files" / "minizinc"


def lines_of(name: str) -> list[str]:
    return gzip.decompress((FILES / f"{name}.jsonl.gz").read_bytes()).decode().splitlines()


def write(folder: Path, *messages: dict | str) -> Path:
    file = folder / "gecode__p.jsonl"
    lines = [line if isinstance(line, str) else json.dumps(line) for line in messages]
    file.write_text("\n".join(lines))
    return file


@pytest.mark.parametrize(
    ("name", "direction", "until", "status"),
    [
        ("gecode__k30__1", "maximize", 1.854, Status.FINISHED),
        ("gecode__fl__1", "minimize", 0.149, Status.FINISHED),
        ("gecode__tsp30__1", "minimize", 3.192587, Status.CUT),  # by flatTime and solveTime
        ("gecode__killed__1", "minimize", 1.42, Status.CUT),
        ("gecode-2.10__tsp30__1", "minimize", 14.434, Status.CUT),
        ("gecode_presolver-2.10__k30__1", "maximize", 9.746, Status.FINISHED),
        ("gecode_presolver-2.10__tsp14__1", "minimize", 7.401, Status.FINISHED),
        ("chuffed-2.10__k30__1", "maximize", 8.017, Status.FINISHED),
        ("bc-2.10__tsp14__1", "minimize", 31.326, Status.FINISHED),
        ("highs-2.10__k30__1", "maximize", 6.02, Status.FINISHED),
    ],
)
def test_a_stream_holds_its_solutions(name, direction, until, status):
    runs = read(FILES / f"{name}.jsonl.gz")
    (run,) = runs
    algorithm, instance, _ = name.split("__")
    assert run[:2] == (algorithm, instance)
    assert (runs.direction, run.until, run.status) == (direction, until, status)
    messages = [json.loads(line) for line in lines_of(name) if line.startswith("{")]
    best: dict[float, float] = {}  # the best value of each millisecond; each solution improves
    for message in messages:
        if message["type"] == "solution":
            output = json.dumps(message["output"])  # as JSON, or as "_objective = 5;"
            value = re.search(r'_objective(?:" ?: ?| = )([-\d.]+)', output)
            best[message["time"] / 1000] = float(value[1])
    assert_allclose(run.time, list(best))
    assert_allclose(run.value, list(best.values()))


def test_statistics_have_bounds_and_a_proof_is_one():
    bounds = read(FILES / "bc-2.10__tsp14__1.jsonl.gz").bounds
    assert bounds.direction == "maximize"
    assert_allclose(bounds.time, [13.824, 21.414, 31.326])
    assert_allclose(bounds.value, [363.5, 382, 401])
    assert_allclose(read(FILES / "chuffed-2.10__k30__1.jsonl.gz").bounds.value, [723])
    assert read(FILES / "gecode__tsp30__1.jsonl.gz").bounds is None


@pytest.mark.parametrize(
    ("name", "status", "until"),
    [
        ("gecode__unsat__1", Status.FINISHED, 0.097),
        ("chuffed-2.10__unsat__1", Status.FINISHED, 4.712),
        ("highs-2.10__tsp14__1", Status.CUT, 15.631),
        ("gecode__bad__1", Status.CRASHED, 0.0),  # an error in the model
        ("chuffed-2.10__tsp14__1", Status.CRASHED, 5.72872),  # aborted
    ],
)
def test_ends_without_a_solution(name, status, until):
    (run,) = read(FILES / f"{name}.jsonl.gz", direction="minimize")
    assert (run.status, run.until, len(run.value)) == (status, until, 0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gecode__sat__1", "line 7: a solution without an objective"),
        ("gecode__tsp14__1", "line 5: no '_objective' in a solution; run minizinc --json-stream"),
    ],
)
def test_streams_without_an_objective_are_refused(name, message):
    with pytest.raises(DataError, match=f"{name}.jsonl.gz: {message}"):
        read(FILES / f"{name}.jsonl.gz")


SOLUTION = {"type": "solution", "output": {"json": {"cost": 5, "_objective": 7}}, "time": 1200}


def test_another_variable_a_table_of_data_and_missing_times(tmp_path):
    runs = read(write(tmp_path, SOLUTION), value="cost", direction="minimize", until=9)
    assert (runs[0].value[0], runs[0].time[0], runs[0].until) == (5, 1.2, 9)
    data = {"type": "solution", "output": {"dzn": "x = 3;\n_objective = -31.5;\n"}, "time": 10}
    assert read(write(tmp_path, data), direction="minimize")[0].value[0] == -31.5
    with pytest.raises(DataError, match="line 1: no time in a solution; run minizinc"):
        read(write(tmp_path, {k: v for k, v in SOLUTION.items() if k != "time"}))
    with pytest.raises(DataError, match=r"do not tell the direction \(minizinc --statistics"):
        read(write(tmp_path, SOLUTION))


def test_the_last_line_of_a_killed_run_may_be_cut_off(tmp_path):
    half = json.dumps(SOLUTION)[:40]
    runs = read(write(tmp_path, SOLUTION, half), direction="minimize")
    assert (len(runs.value), runs[0].status) == (1, Status.CUT)
    with pytest.raises(DataError, match="gecode__p.jsonl: line 1: not a JSON object"):
        read(write(tmp_path, half, SOLUTION), direction="minimize")


def test_streams_of_both_directions(tmp_path):
    for name in ("gecode__k30__1", "gecode__tsp30__1"):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines_of(name)))
    with pytest.raises(DataError, match="some streams minimise and some maximise"):
        read(tmp_path)
    assert read(tmp_path, direction="maximize").instances == ("k30",)
