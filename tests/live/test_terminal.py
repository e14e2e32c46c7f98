"""A race in a terminal: what is drawn at any size, and real ones that are disturbed."""

import io
import json
import os
import re
import signal
import subprocess
import warnings
from dataclasses import replace

import pytest

import polarbear as pb
from course import decisions, told
from polarbear.cli.main import main
from polarbear.inference.verdicts import Verdict
from polarbear.live.json_lines import to_line
from polarbear.live.pace import Pace
from polarbear.racing.budget import Budget
from polarbear.racing.decisions import Forecast
from polarbear.racing.ledger import Spent
from racers import drive, race_of
from typed import begun, command, prepared
from waiting import PATIENCE, wait_until


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The same race in one go: its events."""
    path = prepared(tmp_path_factory.mktemp("undisturbed"), 0)
    subprocess.run(command("race", path, "--workers", 2, "--quiet"), check=True)
    return read_events(path)


def read_events(path):
    with pb.open_store(path.parent / "race.db", read_only=True) as store:
        return list(store.read())


# What is drawn


def status_of(n, *, out=0, **more):
    names = [f"algorithm {k}" for k in range(n)]
    verdicts = [Verdict(name, "undecided", 0.4) for name in names[out:-1]]
    verdicts.append(Verdict(names[-1], "member", 0.997))
    verdicts += [
        Verdict(name, "dominated", rival=names[-1], probability=0.995) for name in names[:out]
    ]
    status = race_of().status
    status = replace(
        status,
        verdicts=tuple(verdicts),
        spent=Spent(900, 123_456.0),
        requested=Spent(900, 123_456.0),
        forecast=Forecast((10.0, 20.0, 90.0), (100.0, 200.0, 900.0)),
    )
    usual = {
        "budget": Budget(runs=5000, time=1e6),
        "clock": "evaluations",
        "made": dict.fromkeys(names, 40),
        "wanted": dict.fromkeys(names[out:], 3),
        "rounds": 4,
        "open_pairs": n,
        "since_decision": 10,
        "unused": None,
    }
    return changed(status, **{**usual, **more})


def changed(status, **more):
    """A status with other fields, of its own or of its setup, counts or runs."""
    setup, counts, runs = status.setup, status.counts, status.runs
    for name, value in more.items():
        if hasattr(setup, name):
            setup = replace(setup, **{name: value})
        elif hasattr(counts, name):
            counts = counts._replace(**{name: value})
        elif hasattr(runs, name):
            runs = runs._replace(**{name: value})
        else:
            status = replace(status, **{name: value})
    return replace(status, setup=setup, counts=counts, runs=runs)


def drawn(status, rows=24, columns=90, news=()):
    rich = pytest.importorskip("rich.console")
    from polarbear.live.terminal import Screen

    console = rich.Console(file=io.StringIO(), width=columns, height=rows, record=True)
    screen = Screen("race.toml", "Ctrl-C stops", console)
    for line in news:
        screen.note(line)
    console.print(screen.picture(status, rows))
    return console.export_text().rstrip("\n")


def test_everything_is_on_the_screen():
    picture = drawn(status_of(5, out=2), news=["algorithm 1 is dominated by algorithm 4"])
    for text in (
        "algorithm 2  ● undecided (40 % that it is a member)",
        "algorithm 4  ◆ member (> 99 %)",
        "✗ dominated by algorithm 4 (> 99 %)",
        "Pareto set  algorithm 2, algorithm 3, algorithm 4",
        "200 made, 9 requested and not in yet",
        "about 190 runs (90 to 890)",
        "900 of 5,000 runs (18 %), 123,456 of 1,000,000 evaluations (12 %)",
        "algorithm 1 is dominated by algorithm 4",
        "Ctrl-C stops",
    ):
        assert text in picture, picture


def test_failures_are_on_the_screen_in_red():
    rich = pytest.importorskip("rich.console")
    from polarbear.live.terminal import Screen

    status = status_of(5, out=2, failed={"algorithm 1": 7, "algorithm 3": 12})
    lines = drawn(status).splitlines()
    assert any(
        line.split() == ["algorithm", "status", "runs", "requested", "failed"] for line in lines
    )
    (row,) = [line for line in lines if line.startswith("algorithm 3 ")]
    assert row.split()[-3:] == ["40", "3", "12"]
    assert "failed      19 runs: algorithm 3 (12), algorithm 1 (7)" in lines
    console = rich.Console(file=io.StringIO(), width=90, height=24, force_terminal=True)
    console.print(Screen("race.toml", "Ctrl-C stops", console).picture(status, 24))
    assert re.search(r"\x1b\[1;31m *12", console.file.getvalue())  # bold red
    assert "failed" not in drawn(status_of(5, out=2))


@pytest.mark.parametrize("rows", [6, 10, 14, 24, 60])
@pytest.mark.parametrize("columns", [20, 60, 200])
@pytest.mark.parametrize("n", [2, 7, 30, 300])
def test_the_screen_fits_every_window(rows, columns, n):
    picture = drawn(status_of(n, out=n // 2), rows, columns, [f"round {k}" for k in range(50)])
    lines = picture.splitlines()
    assert len(lines) <= rows
    assert max(map(len, lines)) <= columns
    assert "undecided" in picture or "member" in picture or columns < 60
    if rows == 24 and n > 7 and columns > 20:
        assert f"and {n - sum('● undecided' in line for line in lines)} more" in picture


def test_remaining_runs_of_a_race_that_ended_unsettled():
    to_go = "about 276 more instances (9 to 600); no unused instance left"
    news = [f"round 4: 90 runs, racing a, b; {to_go}"]
    picture = drawn(status_of(3, ended="no instances left"), columns=80, news=news)
    assert "to go       the race ended (no instances left) before all pairs were settled" in picture
    assert "to go       nothing" not in picture
    assert (
        "no unused instance left" in picture
    )  # at the end of a line that is too long for the window
    picture = drawn(status_of(3, ended="resolved", open_pairs=0))
    assert "to go       nothing" in picture


def test_a_warning_is_wrapped_and_not_cut():
    warning = "round 3 decides nothing: " + "reason " * 20 + "and this is what to do"
    for columns in (60, 80, 120):
        picture = " ".join(drawn(status_of(3), columns=columns, news=[warning]).split())
        assert warning in picture
    left = drawn(status_of(3, unused=5, budget=Budget()), columns=80)
    assert "there may be too few instances to settle it" in " ".join(left.split())


def test_control_characters_in_names_are_escaped():
    name = "\x1b[2Jx\n"
    picture = drawn(
        status_of(2, verdicts=(Verdict(name, "undecided"),), made={name: 3}),
        news=[f"{name} failed"],
    )
    assert "\x1b" not in picture
    assert r"\x1b[2Jx\n" in picture


def test_warnings_are_repeated_after_the_screen(monkeypatch):
    rich = pytest.importorskip("rich.console")
    from polarbear.live.terminal import Screen

    shown = []
    monkeypatch.setattr("warnings.showwarning", lambda message, *_: shown.append(str(message)))
    console = rich.Console(file=io.StringIO(), force_terminal=True, width=90, height=24)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with Screen("race.toml", "Ctrl-C stops", console) as screen:
            warnings.warn("round 3 decides nothing", stacklevel=1)
            screen(status_of(3))
            assert not shown
    assert "round 3 decides nothing" in console.file.getvalue()
    assert shown == ["round 3 decides nothing"]


def test_a_race_that_has_not_begun_is_drawn():
    race = race_of()
    picture = drawn(race.status)
    assert "0 made" in picture
    assert "that can be told after the first rounds" in picture
    race = drive(race)
    picture = drawn(race.status)
    assert "ended" in picture


def test_remaining_runs_follow_from_pace_and_limits():
    pace, status = Pace(), status_of(3)
    assert pace.remaining(replace(status, forecast=None)) is None
    for second in range(11):
        pace.record(float(second), 5 * second)
    left = pace.remaining(status)
    assert (left.runs, left.least, left.most) == (190, 90, 890)
    assert left.seconds == pytest.approx(38)
    left = pace.remaining(changed(status, budget=Budget(runs=950)))
    assert (left.runs, left.limit) == (50 + 9, "budget")
    assert pace.remaining(changed(status, unused=15)).limit == "instances"
    endless = Forecast((1.0, float("inf"), float("inf")), (1.0, float("inf"), float("inf")))
    line = to_line(changed(status, forecast=endless, budget=Budget()), pace)
    assert line["remaining"]["seconds"] is None
    assert json.dumps(line, allow_nan=False)


# A real one


@pytest.mark.slow
def test_a_race_in_a_window_that_changes_and_is_interrupted(tmp_path, undisturbed):
    pytest.importorskip("pyte")
    pytest.importorskip("rich")
    from terminals import Terminal

    path = prepared(tmp_path, 0.03)
    (tmp_path / "last").write_text("26")  # an algorithm is dominated by then, and pairs are open
    words = command("race", path, "--workers", 2)
    with Terminal(words, rows=24, columns=90) as terminal:
        picture = terminal.shows("requested and not in yet")
        assert "early      ● undecided" in picture
        terminal.resize(12, 50)
        small = terminal.until(
            lambda lines: (
                lines[0].startswith("polarbear")
                and lines[1].split() == ["algorithm", "status", "runs", "requested"]
                and lines[-1].startswith("Ctrl-C")
            )
        )
        assert 2 < len(small) <= 12
        terminal.resize(30, 110)
        terminal.shows("is dominated by")
        terminal.press("\x03")
        assert terminal.wait() == 130
    (tmp_path / "last").unlink()
    output = terminal.text()
    assert "Traceback" not in output
    joined = "".join(output.split())  # lines are broken where the window ends
    assert f"all finished runs are in {tmp_path / 'race.db'}".replace(" ", "") in joined
    assert f"polarbear race {path} --workers 2".replace(" ", "") in joined
    # The store is sound, holds a part, and the same command makes the whole of it.
    events = read_events(path)
    some = len(told(events))
    assert 0 < some < len(told(undisturbed))
    assert pb.Race.from_events(events).ask()
    with Terminal(words) as again:
        assert again.wait() == 0
        assert "ended       budget of runs spent" in again.text()
    assert decisions(read_events(path)) == decisions(undisturbed)
    assert told(read_events(path)) == told(undisturbed)


@pytest.mark.slow
def test_a_terminated_process_prints_how_to_resume(tmp_path):
    path = prepared(tmp_path, 0.05)
    words = command("race", path, "--workers", 2)
    running = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: begun(tmp_path / "race.db"))
    os.kill(running.pid, signal.SIGTERM)
    output = running.communicate(timeout=PATIENCE)[1]
    assert running.returncode == 143
    assert "To resume: polarbear race" in output
    assert "Traceback" not in output


@pytest.mark.slow
def test_lines_if_there_is_no_terminal(tmp_path, capfd):
    path = prepared(tmp_path, 0)
    assert main(["race", str(path), "--workers", "2"]) == 0
    output = capfd.readouterr()
    assert "\x1b" not in output.err
    assert "worst is dominated by" in output.err
    assert "round 1: " in output.err
    assert "ended       budget of runs spent" in output.out


@pytest.mark.slow
def test_lines_of_json_for_programs(tmp_path, capfd, undisturbed):
    path = prepared(tmp_path, 0)
    assert main(["race", str(path), "--workers", "2", "--json"]) == 0
    output = capfd.readouterr()
    assert not output.err
    *lines, last = map(json.loads, output.out.splitlines())
    assert any("round 1: " in text for line in lines for text in line["news"])
    assert lines[-1]["ended"] == last["ended"] == "budget of runs spent"
    assert sum(lines[-1]["runs"]["made"].values()) == last["n_runs"] == len(told(undisturbed))
    assert set(last["eliminated"]) == {"worst"}
    assert {one["algorithm"]: one["kind"] for one in last["verdicts"]}["worst"] == "dominated"
    sources = [(source["name"], source["kind"]) for source in last["provenance"]["sources"]]
    assert sources == [(str(path), "race"), (str(path.parent / "race.db"), "store")]
    assert last["provenance"]["model"]["method"] == "laplace"
