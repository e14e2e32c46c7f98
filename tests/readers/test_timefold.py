"""Logs of Timefold 1.24: scores with levels, of which runs keep the last."""

import csv
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from polarbear import DataError, Status, read
from polarbear.errors import DataWarning

FILES = Path(__file__).parent / "files" / "timefold"
START = "INFO Solving started: time spent (5), best score (0hard/0soft), random (JDK with seed 8)."


def write(folder: Path, *scores: str, start: str = START) -> Path:
    steps = [
        f"DEBUG LS step ({i}), time spent ({100 * i}), score ({s}), new best score ({s}), accepted"
        for i, s in enumerate(scores, start=1)
    ]
    file = folder / "ls__p.log"
    file.write_text("\n".join([start, *steps, "INFO Solving ended: time spent (900), best"]))
    return file


def test_a_log_holds_what_a_listener_heard():
    runs = read(FILES / "ls__jobs40__0.log.gz")
    (run,) = runs
    with (FILES / "ls__jobs40__0.events.csv").open() as file:
        events = list(csv.DictReader(file))
    assert [f"0hard/{value:.0f}soft" for value in run.value] == [row["score"] for row in events]
    # The log prints a step after its listeners were called, on a clock that started earlier.
    assert_allclose(run.time, [float(row["time"]) for row in events], atol=0.15)
    assert (runs.direction, run.until, run.status) == ("maximize", 4.012, Status.CUT)
    assert run.name() == "ls on jobs40 (repetition 0)"


def test_infeasible_scores_are_no_values(tmp_path):
    (run,) = read(write(tmp_path, "-3hard/-10soft", "-1hard/-90soft", "0hard/-80soft"))
    assert (run.time.tolist(), run.value.tolist(), run.until) == ([0.3], [-80], 0.9)
    with pytest.warns(DataWarning, match="no feasible solution, so the run has no value"):
        (run,) = read(write(tmp_path, "-3hard/-10soft"))
    assert len(run.value) == 0


@pytest.mark.parametrize(
    ("scores", "values"),
    [
        (["-12", "-3"], [-12, -3]),
        (["-2init/0hard/-5soft", "0hard/-4.5soft"], [-4.5]),
        (["0hard/-2medium/-9soft", "0hard/-2medium/-7soft"], [-9, -7]),
    ],
)
def test_kinds_of_scores(tmp_path, scores, values):
    assert read(write(tmp_path, *scores))[0].value.tolist() == values


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (
            ["0hard/-2medium/-9soft", "0hard/-1medium/-99soft"],
            "line 3: .* more than the last level",
        ),
        (["0hard/-2soft", "4hard/-2soft"], "runs are compared by the last level"),
        (["[0/0]hard/[-1]soft"], "line 2: .* is not a score with levels hard, medium and soft"),
    ],
)
def test_scores_that_one_value_cannot_stand_for(tmp_path, scores, message):
    with pytest.raises(DataError, match=f"ls__p.log: {message}|{message}"):
        read(write(tmp_path, *scores))


def test_names_and_several_solves(tmp_path):
    file = write(tmp_path, "0hard/-2soft")
    (run,) = read(file, names="{algorithm}__{instance}.log")
    assert run.repetition == 8
    with pytest.raises(DataError, match="holds 2 solves; write each to a log of its own"):
        read(write(tmp_path, "0hard/-2soft", start=f"{START}\n{START}"))
    with pytest.raises(DataError, match="this format always has direction='maximize'"):
        read(write(tmp_path, "0hard/-2soft"), direction="minimize")
