"""Programs in a race: those that are missing stop it before a run, and silent ones are named."""

import json
import os
from pathlib import Path

import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.errors import SolverError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="races of programs need POSIX")

GOOD = pb.Command(["sh", "-c", "echo o 1 {seed}"], pattern=r"o (?P<time>\S+) (?P<value>\S+)")


def race(program, tmp_path, **more):
    solvers = {"good": GOOD, "other": program}
    options = {"direction": "minimize", "store": tmp_path / "race.db", "executor": 1, **more}
    budget = pb.Budget(batch=(2, 2), runs=8)
    return pb.race(solvers, range(8), [10], budget=budget, **options)


@pytest.mark.slow
def test_a_missing_program_stops_a_race_before_any_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("quick").write_text("#!/bin/sh\necho o 1 2\n")
    for name, why in (
        ("quick", r"other: cannot start 'quick': no folder of PATH .*; write './quick' for the"),
        ("no-such-program", r"'no-such-program': no folder of PATH has a program of this name$"),
        ("./quik", r"there is no file .*/quik$"),
        ("./quick", r"quick is not executable: chmod \+x"),
    ):
        with pytest.raises(SolverError, match=why):
            race(pb.Command([name], pattern=GOOD.pattern), tmp_path)
        with pb.open_store(tmp_path / "race.db") as store:
            assert store.n_events == 0
    Path("quick").chmod(0o755)
    with race(pb.Command(["./quick"], pattern=GOOD.pattern), tmp_path) as result:
        assert not result.failures


@pytest.mark.slow
def test_an_added_program_must_exist(tmp_path):
    with race(GOOD, tmp_path) as result:
        with pytest.raises(SolverError, match="third: cannot start 'no-such-program'"):
            result.add("third", pb.Command(["no-such-program"], pattern=GOOD.pattern))
        assert "third" not in result.state.members.racing


@pytest.mark.slow
def test_a_pattern_without_match_is_reported_after_one_run(tmp_path, capsys):
    silent = pb.Command(["echo", "best so far: 3"], pattern=r"o (?P<time>\d+) (?P<value>\d+)")
    with pytest.warns(pb.errors.DataWarning) as warned, race(silent, tmp_path) as result:
        why = result.failures["other"]
    (message,) = [str(one.message) for one in warned]
    assert r"the pattern 'o (?P<time>\d+) (?P<value>\d+)' found no value" in message
    assert "which began: best so far: 3" in why
    assert "(4 runs, on " in why
    main(["status", str(tmp_path / "race.db"), "--json"])
    assert json.loads(capsys.readouterr().out)["runs"]["why"] == {"other": why}
