"""A race in a terminal: what is drawn at any size, and real ones that are disturbed."""

import io
import json
import os
import re
import signal
import subprocess
import warnings
from dataclasses import replace

import numpy as np
import pytest

import polarbear as pb
from course import decisions, told
from polarbear.cli.main import main
from polarbear.inference.verdicts import Unsettled, Verdict
from polarbear.live.json_lines import to_line
from polarbear.live.pace import Pace
from polarbear.racing.budget import Budget
from polarbear.racing.decisions import Forecast
from polarbear.racing.ledger import Spent
from polarbear.racing.race import Race
from polarbear.racing.status import Answer
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
    best = more.pop("best", [])
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
        answer=Answer((), tuple([tuple(best)] * len(status.setup.times)) if best else ()),
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
        "open_pairs": n * (n - 1) // 4,
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
    status = status_of(5, out=2, best=[("algorithm 4", 0.98), ("algorithm 2", 0.02)])
    picture = drawn(status, columns=110, news=["algorithm 1 is dominated by algorithm 4"])
    for text in (
        "race.toml  round 5",
        "200 of 5,000 runs, 123,456 of 1,000,000 evaluations",
        "settled  ██████████░░░░░░░░░░ 5 of 10 pairs",
        "about 190 runs (90 to 890)",
        "If you stopped now  1",
        "AAAAAAAAAA",
        "A algorithm 4",
        "▌algorithm 4  > 99 % █████████░  1 – 4      40       -",  # noqa: RUF001
        "▌algorithm 2    40 % ████░░░░░░  never      40       -",
        "▌algorithm 0  dropped                       40       -  algorithm 4 is always ahead",
        "algorithm 1 is dominated by algorithm 4",
        "Ctrl-C stops",
    ):
        assert text in picture, picture


def test_failures_are_on_the_screen_in_red():
    rich = pytest.importorskip("rich.console")
    from polarbear.live.terminal import Screen

    status = status_of(5, out=2, failed={"algorithm 1": 7, "algorithm 3": 12})
    lines = drawn(status).splitlines()
    (row,) = [line for line in lines if line.startswith("▌algorithm 3 ")]
    assert row.split()[-2:] == ["40", "12"]
    console = rich.Console(file=io.StringIO(), width=90, height=24, force_terminal=True)
    console.print(Screen("race.toml", "Ctrl-C stops", console).picture(status, 24))
    assert re.search(r"\x1b\[1;31m *12", console.file.getvalue())  # bold red


def test_the_ribbon_is_in_colour_and_the_end_says_what_to_run():
    rich = pytest.importorskip("rich.console")
    from polarbear.live.terminal import Screen

    status = status_of(5, out=2, ended="no instances left", best=[("algorithm 4", 0.98)])
    console = rich.Console(
        file=io.StringIO(), width=90, height=24, force_terminal=True, color_system="truecolor"
    )
    console.print(Screen("race.toml", "Ctrl-C stops", console).picture(status, 24))
    blocks = console.file.getvalue()
    assert re.search(r"\x1b\[[0-9;]*48;2;[0-9;]+m +algorithm 4 +", blocks)  # a name in a block
    assert "at least 95 % certain" in blocks
    picture = drawn(status)
    assert "run algorithm 4 (98 %)" in picture
    assert "ended    no instances left" in picture


def test_what_is_open_is_said_of_each_algorithm_and_no_probability_stands_alone():
    likely = Verdict("tpa", "undecided", 0.004, rival="csa", proof=0.62, margin=0.1)
    open_ = Verdict("csa", "undecided", 0.97, unsettled=Unsettled({"tpa": 4.0}, 61.3), margin=0.1)
    status = status_of(2, verdicts=(likely, open_), made={"csa": 3})
    picture = drawn(status, columns=110)
    assert "likely replaceable by csa (> 99 %), proof 62 %" in picture
    assert "tpa: about 61 more instances" in picture
    assert "P =" not in picture
    assert "P >" not in picture
    assert "csa: proof 62 %" in drawn(status, columns=64)  # the short form


def test_settled_pairs_never_go_back_over_a_race_of_twenty_rounds():
    truth = np.tile([1.5, 1.0, 0.3, 0.0, -1.0], (6, 1))
    truth[:3, 1] = 2.0
    runs = pb.simulation.simulate_runs(truth, 120, persistence=0.5, seed=4)
    race = pb.replay(runs, budget=Budget(batch=(2, 2)))
    shown = []
    for stage in Race.after_each_round(race.events):
        picture = drawn(stage.status, rows=24, columns=80)
        settled, total = map(int, re.search(r"(\d+) of (\d+) pairs", picture).groups())
        assert total == 10
        shown.append(settled)
    assert len(shown) >= 20
    assert shown == sorted(shown)
    assert shown[-1] > shown[0]


@pytest.mark.parametrize("rows", [6, 10, 14, 24, 60])
@pytest.mark.parametrize("columns", [20, 60, 200])
@pytest.mark.parametrize("n", [2, 7, 30, 300])
def test_the_screen_fits_every_window(rows, columns, n):
    picture = drawn(status_of(n, out=n // 2), rows, columns, [f"round {k}" for k in range(50)])
    lines = picture.splitlines()
    assert len(lines) <= rows
    assert max(map(len, lines)) <= columns
    if rows >= 10:
        assert "40 %" in picture or "> 99 %" in picture or columns < 60
    if rows == 24 and n > 7 and columns > 20:
        assert f"and {n - sum(line.startswith('▌') for line in lines)} more" in picture


def test_a_warning_is_wrapped_and_not_cut():
    warning = "round 3 decides nothing: " + "reason " * 20 + "and this is what to do"
    for columns in (60, 80, 120):
        picture = " ".join(drawn(status_of(3), columns=columns, news=[warning]).split())
        assert warning in picture
    left = drawn(status_of(3, unused=5, budget=Budget()), columns=80)
    assert "left     about 190 runs (90 to 890); too few instances" in left


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
    assert "0 of 400 runs" in picture
    assert "left     known after the first rounds" in picture
    assert "If you stopped now  known after the first round" in picture
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

    path = prepared(tmp_path, 0.03, last=26)  # an algorithm is dominated then, and pairs are open
    words = command("race", path, "--workers", 2)
    with Terminal(words, rows=24, columns=90) as terminal:
        terminal.shows("of 3 pairs", "▌early", "If you stopped now")
        terminal.resize(12, 50)
        small = terminal.until(
            lambda lines: (
                lines[0].startswith("race.toml")
                and any(line.split()[:3] == ["algorithm", "worth", "running"] for line in lines)
                and lines[-1].startswith("Ctrl-C")
            )
        )
        assert 2 < len(small) <= 12
        terminal.resize(30, 110)
        terminal.shows("is dominated by")
        terminal.press("\x03")
        assert terminal.wait() == 130
    (tmp_path / "further").touch()
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
        assert "  run         " in again.text()
        assert "polarbear report" in again.text()
    assert decisions(read_events(path)) == decisions(undisturbed)
    assert told(read_events(path)) == told(undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (40, 110)])
def test_a_real_terminal_shows_the_ribbon_and_ends_with_what_to_run(tmp_path, rows, columns):
    pytest.importorskip("pyte")
    pytest.importorskip("rich")
    from terminals import Terminal

    path = prepared(tmp_path, 0.01, last=20)  # in the second round
    text, _, budget = path.read_text().partition("[question]")
    path.write_text(f"{text}[budget]{budget.partition('[budget]')[2]}")  # the default question
    with Terminal(command("race", path, "--workers", 2), rows=rows, columns=columns) as terminal:
        picture = terminal.shows(
            "If you stopped now",
            "at least 95 % certain",
            r"settled +[█░]+ \d of 3 pairs",
            r"▌(early|late|worst) +(<|>)? ?\d+ % [█░]+",
            "failed",
        )
        lines = picture.splitlines()
        assert len(lines) <= rows
        assert max(map(len, lines)) <= columns
        colours = {cell.bg for row in terminal.screen.buffer.values() for cell in row.values()}
        assert len(colours) >= 2  # the blocks of the ribbon
        (tmp_path / "further").touch()
        assert terminal.wait() == 0
        end = terminal.text()
    assert re.search(r"\n  run +(early|late)", end)
    assert "What to run if you stop here" in end
    assert f"polarbear select {tmp_path / 'race.db'}"[:60] in end.replace("\n", "")


@pytest.mark.slow
def test_a_terminated_process_prints_how_to_resume(tmp_path):
    path = prepared(tmp_path, 0, go=False)
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
    assert next(line["counts"]["rounds"] for line in lines if not line["ended"]) == 1
    assert lines[-1]["ended"] == last["ended"] == "budget of runs spent"
    assert sum(lines[-1]["runs"]["made"].values()) == last["n_runs"] == len(told(undisturbed))
    assert set(last["eliminated"]) == {"worst"}
    assert {one["algorithm"]: one["kind"] for one in last["verdicts"]}["worst"] == "dominated"
    sources = [(source["name"], source["kind"]) for source in last["provenance"]["sources"]]
    assert sources == [(str(path), "race"), (str(path.parent / "race.db"), "store")]
    assert last["provenance"]["model"]["method"] == "laplace"
