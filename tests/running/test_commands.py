"""Programs as solvers: what they print, and what they are given."""

import os
import pickle
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import polarbear as pb
from polarbear.data.run import Status
from polarbear.errors import SolverError
from polarbear.racing.jobs import Job
from polarbear.running.solvers.commands import Command
from polarbear.running.solvers.output_lines import MAX_LINE_BYTES, LineSplitter
from polarbear.running.solvers.processes import find_descendants
from polarbear.running.solvers.setup import Limits, Setup
from polarbear.running.workers.worker_process import WorkerProcess
from waiting import GROWING, PATIENCE

O = r"^o (?P<value>\S+)"  # noqa: E741
TIMED = r"(?P<time>\S+)s: (?P<value>\S+)"


def program(code, **options):
    """A program that is a few lines of Python."""
    options = {"pattern": O, **options}
    return Command(
        [sys.executable, "-u", "-c", code.replace("{", "{{").replace("}", "}}")], **options
    )


def run(command, horizon=60.0, instance="i", limits=None, **more):
    setup = Setup.of(
        {"program": command},
        [instance],
        times=[1, 10],
        direction=more.get("direction", "minimize"),
        clock=more.get("clock"),
        limits=limits or Limits(wall_seconds=120),
    )
    worker = WorkerProcess(setup)
    try:
        outcome = worker.make_run(Job("program", setup.instances.names[0], 0, horizon, 17, 2))
        assert (
            len(find_descendants(worker.pid)) <= 2
        )  # the supervisor, and the process of the next run
        return outcome
    finally:
        worker.close()


def test_incumbents_are_read_as_they_come():
    def apart(nap):  # by more than one of the two naps between them, unless the machine is busy
        code = f"import time\nfor v in (5, 7, 3):\n  print('o', v)\n  time.sleep({nap})"
        outcome = run(program(code))
        assert (outcome.run.value, outcome.run.status) == ((5.0, 3.0), Status.FINISHED)
        return outcome.run.time[1] - outcome.run.time[0] > nap

    assert any(map(apart, (0.1, 1.0, 3.0)))


@pytest.mark.slow
def test_a_program_is_killed_with_its_whole_group_at_the_limit():
    code = "echo o 4; sleep 600 & setsid sleep 600 & wait"  # there sooner than Python would be
    for horizon in GROWING:
        outcome = run(Command(["sh", "-c", code], O), horizon)
        assert (outcome.run.status, outcome.run.until) == (Status.CUT, horizon)
        assert outcome.seconds < PATIENCE
        if outcome.run.value:
            break
    assert outcome.run.value == (4.0,)


def test_times_may_come_from_the_output():
    outcome = run(program("print('0.5s: 7'); print('2s: 6'); print('99s: 1')", pattern=TIMED))
    assert (outcome.run.time, outcome.run.value) == ((0.5, 2.0), (7.0, 6.0))
    assert (outcome.run.status, outcome.run.until) == (Status.CUT, 60.0)


@pytest.mark.slow
def test_the_cpu_clock_is_that_of_the_program():
    code = (
        "import time\nwhile time.process_time() < 0.3: pass\nprint('o 1')\ntime.sleep(NAP)\n"
        "while True: pass"
    )
    for nap in GROWING:  # a reader that comes during the nap finds the clock where it was
        outcome = run(program(code.replace("NAP", str(nap / 2)), clock="cpu"), horizon=1.0)
        assert outcome.run.status == Status.CUT
        if outcome.run.value:
            break
    assert outcome.run.value == (1.0,)
    assert 0.25 < outcome.run.time[0] < 1.0


@pytest.mark.slow
def test_a_program_that_fails_says_why():
    failed = run(program("print('o 3'); print('no licence'); raise SystemExit(2)"))
    assert (failed.run.status, failed.run.value) == (Status.CRASHED, (3.0,))
    assert "exit code 2 after: no licence" in failed.why
    assert run(program("raise SystemExit(30)")).run.status == Status.FINISHED
    fallen = run(program("import os; os.kill(os.getpid(), 11)"))
    assert (fallen.run.status, "signal 11" in fallen.why) == (Status.CRASHED, True)
    killed = run(program("import os; os.kill(os.getpid(), 9)"))
    assert (killed.run.status, "signal 9" in killed.why) == (Status.KILLED, True)
    missing = run(Command(["no-such-program"], O))
    assert "cannot start 'no-such-program': no folder of PATH" in missing.why


def test_standard_error_is_read_if_asked_for():
    code = "import sys; print('o 3', file=sys.stderr)"
    assert run(program(code)).run.value == ()
    assert "o 3" in run(program(code)).output
    assert run(program(code, include_stderr=True)).run.value == (3.0,)


def test_in_a_terminal_programs_do_not_hold_back_what_they_print(monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    # It ends without a chance to write what it has held back.
    code = "import os, sys\nprint('o 3', sys.stdout.isatty())\nos._exit(0)"
    held = Command([sys.executable, "-c", code], O)
    assert run(held).run.value == ()
    shown = Command([sys.executable, "-c", code], r"^o (?P<value>\d+) True", use_pty=True)
    assert run(shown).run.value == (3.0,)


@pytest.mark.parametrize(
    ("code", "values"),
    [
        ("print('o 5\\r\\no 4\\r')", (5.0, 4.0)),
        ("print('o 5'); print('x' * 10**8); print('o 4')", (5.0, 4.0)),
        ("import os; os.write(1, bytes(range(256)) * 1000 + b'\\no 5\\n')", (5.0,)),
        ("print('o 1e400'); print('o 1e308'); print('o -inf')", (1e308, float("-inf"))),
        ("print('o --'); print('o 5'); print('o 6'); print('o 4', end='')", (5.0, 4.0)),
        ("for _ in range(10**5): print('nothing')\nprint('o 2')", (2.0,)),
    ],
)
def test_whatever_is_printed(code, values):
    outcome = run(program(code))
    assert (outcome.run.value, outcome.run.status) == (values, Status.FINISHED)
    assert outcome.memory < 400_000_000


@pytest.mark.parametrize(
    ("printed", "why"),
    [("o nan", "nan was reported"), ("o 1,5", "'1,5' in the line 'o 1,5' is not a number")],
)
def test_what_is_no_number_ends_the_run(printed, why):
    outcome = run(program(f"print('o 7'); print('{printed}'); print('o 3')"))
    assert (outcome.run.value, outcome.run.status) == ((7.0,), Status.CRASHED)
    assert why in outcome.why


HOSTILE = [
    "; rm -rf /",
    "$(touch x)",
    "`id`",
    "a b",
    "../../etc",
    "q\"uo'te",
    "new\nline",
    "ü{seed}",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_data(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "import sys; print('o', len(sys.argv[1].encode()), sys.argv[2])"
    command = Command(
        [sys.executable, "-c", code, "{instance}", "{seed}x{{y}}"], r"o (?P<value>\d+) 17x.y."
    )
    assert run(command, instance=name).run.value == (float(len(name.encode())),)
    assert list(tmp_path.iterdir()) == []


def test_a_name_never_becomes_an_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "import sys; print('o 1', sys.argv[1])"
    command = Command([sys.executable, "-c", code, "{instance}"], r"o (?P<value>1) \./--version")
    refused = run(command, instance="--version")
    assert (refused.run.status, "read as an option" in refused.why) == (Status.CRASHED, True)
    (tmp_path / "--version").touch()
    assert run(command, instance="--version").run.value == (1.0,)
    null = run(command, instance="a\0b")
    assert (null.run.status, "null byte" in null.why) == (Status.CRASHED, True)


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ("solve {instnace}", {}, "did you mean 'instance'"),
        ("solve 'open", {}, "is not a list of arguments: No closing quotation"),
        ([], {}, "expected a program"),
        (["a\0b"], {}, "expected a program"),
        (["a"], {"pattern": "("}, "is not a valid regular expression"),
        (["a"], {"pattern": "o (.*)"}, "needs a group"),
        (["a"], {"clock": "moon"}, "expected one of"),
        (["a"], {"clock": "reported"}, "the pattern has no group 'time'"),
    ],
)
def test_what_is_wrong_is_said_at_once(arguments, more, message):
    with pytest.raises(SolverError) as caught:
        Command(arguments, **{"pattern": O, **more})
    assert message in str(caught.value)


def test_commands_are_values():
    command = Command("solve {instance}", O)
    again = pickle.loads(pickle.dumps(command))
    assert command == again == Command(["solve", "{instance}"], O)
    assert again._regex.search("o 3")["value"] == "3"


def test_clocks_must_agree():
    def walk(_):
        return None

    wall, reported = Command("a", O), Command("a", TIMED)
    options = {"instances": ["i"], "times": [1], "direction": "minimize"}
    assert Setup.of({"a": wall}, **options).clock == "wall"
    with pytest.raises(SolverError, match="use different clocks"):
        Setup.of({"a": wall, "b": walk}, **options)
    with pytest.raises(SolverError, match="has no group 'time'"):
        Setup.of({"a": wall, "b": walk}, clock="evaluations", **options)
    with pytest.raises(SolverError, match="has the clock 'reported'"):
        Setup.of({"a": reported}, clock="cpu", **options)


@given(
    st.binary(max_size=3 * MAX_LINE_BYTES), st.lists(st.integers(0, 3 * MAX_LINE_BYTES), max_size=5)
)
def test_lines_do_not_depend_on_how_they_come(data, cuts):
    whole = LineSplitter()
    expected = whole.feed(data) + whole.feed(b"\n")
    pieces, at = LineSplitter(), 0
    found = []
    for cut in [*sorted(cuts), len(data)]:
        found += pieces.feed(data[at:cut])
        at = max(at, cut)
    found += pieces.feed(b"\n")
    assert found == expected
    lines = data.replace(b"\r", b"\n").split(b"\n")
    assert expected == [x.decode(errors="replace") for x in lines if 0 < len(x) <= MAX_LINE_BYTES]


def test_the_program_sees_no_more_than_one_thread():
    assert run(program("import os; print('o', os.environ['OMP_NUM_THREADS'])")).run.value == (1.0,)
    assert os.environ.get("OMP_NUM_THREADS") != "17"


def test_a_pattern_that_finds_nothing_shows_the_first_lines_and_standard_error():
    words = "echo begin; echo cost 7; echo more; echo four; echo not licensed >&2"
    outcome = run(Command(["sh", "-c", words], pattern=r"^o (?P<value>\d+)"))
    assert (outcome.run.status, outcome.run.time) == (Status.FINISHED, ())
    assert "found no value in its output, which began: begin | cost 7 | more" in outcome.why
    assert outcome.why.endswith("; it printed last: not licensed")
    silent = run(Command(["true"], pattern=r"(?P<value>\d+)"))
    assert silent.why == "'true' printed no line"
    found = run(Command(["sh", "-c", "echo a; echo 7"], pattern=r"(?P<value>\d+)"))
    assert (found.run.value, found.why) == ((7.0,), "")


def test_a_program_that_is_cut_without_a_value_shows_its_first_lines():
    silent = Command(["sh", "-c", "echo cost 7; sleep 600"], pattern=r"^o (?P<value>\d)")
    for horizon in GROWING:
        outcome = run(silent, horizon)
        assert outcome.run.status == Status.CUT
        if "began" in outcome.why:
            break
    assert outcome.why.endswith("which began: cost 7")


def test_why_a_program_failed_is_said_with_its_standard_error():
    outcome = run(Command(["sh", "-c", "echo bad option >&2; exit 3"], pattern=r"(?P<value>\d)"))
    assert outcome.run.status == Status.CRASHED
    assert "'sh' ended with exit code 3" in outcome.why
    assert outcome.why.endswith("; it printed last: bad option")
    outcome = run(Command(["sh", "-c", "kill -SEGV $$"], pattern=r"(?P<value>\d)"))
    assert "'sh' ended with signal 11 (SIGSEGV)" in outcome.why
    outcome = run(Command(["no-such-program"], pattern=r"(?P<value>\d)"))
    assert (
        "cannot start 'no-such-program': no folder of PATH has a program of this name"
        in outcome.why
    )


def test_check_gives_programs_no_advice_about_python():
    program = Command(["echo", "cost 7"], pattern=r"^o (?P<value>\d)")
    named = {"p": program, "f": lambda _: None}
    checked = pb.check(named, ["i"], [1], direction="minimize", clock="wall")
    assert "yield" not in checked.problems["p"]
    assert "which began: cost 7" in checked.problems["p"]
    assert "yield" in checked.problems["f"]


@pytest.mark.parametrize(("ended", "status"), [("finished", Status.FINISHED), ("cut", Status.CUT)])
def test_a_program_that_ends_by_itself_has_finished_or_was_cut_by_its_own_limit(ended, status):
    command = program("print('o 3')", ended=ended)
    outcome = run(command)
    assert outcome.run.status is status
    assert outcome.run.until < 60
    with pytest.raises(SolverError, match="ended='gone': expected 'cut' or 'finished'"):
        program("", ended="gone")
