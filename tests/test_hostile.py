"""Names and files of strangers are data, wherever they go."""

import ast
import re
import sqlite3
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

import course
import polarbear as pb
from polarbear.cli.main import main
from polarbear.errors import DataError, StoreError
from polarbear.inference.verdicts import Verdict
from polarbear.racing.budget import Budget
from polarbear.racing.events import Added, Imported, Started
from polarbear.racing.jobs import RunId, job
from polarbear.racing.model import Model
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.reporting.supplement import read_members
from polarbear.running.backends.interface import start_backend
from polarbear.running.solvers.setup import Setup
from polarbear.store.merging import merge
from polarbear.store.repair import repair_store
from polarbear.store.rows import StoredEvent, event_row

NAMES = (
    "; touch hacked",
    "$(touch hacked)",
    "`touch hacked`",
    "../../hacked",
    "/etc/passwd",
    "--version",
    "-o/etc/passwd",
    "'; DROP TABLE runs; --",
    'double " quote',
    "new\nline\r\n",
    "null\0byte",
    "\x1b[2Jcleared",
    "{seed}{0.__class__}%s%n",
    "<script>alert(1)</script>",
    "\u202egnirts",
    "CON",
    "x" * 1000,
)


@pytest.fixture(scope="module")
def raced(tmp_path_factory):
    """The store of a race in which every name is hostile."""
    path = tmp_path_factory.mktemp("hostile") / "race.db"
    with pb.race(
        {name: course.solver((float(k),) * 3) for k, name in enumerate(NAMES)},
        {name: float(k) for k, name in enumerate(NAMES)},
        course.TIMES,
        direction="maximize",
        budget=Budget(batch=(2, 2), runs=3 * len(NAMES)),
        question=pb.ParetoSet(fit=course.quick),
        store=path,
        executor=2,
    ) as found:
        assert {*found.pareto, *found.eliminated} == {*NAMES}
    return path


def plain(text):
    """Whether a terminal shows it and does nothing else."""
    return all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.slow
def test_names_go_through_a_race_its_store_and_its_exports(raced, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pb.open_store(raced, read_only=True) as store:
        runs = store.runs()
        assert set(runs.algorithms) == set(NAMES)
        assert set(runs.instances) <= set(NAMES)
        assert plain(str(store.status()))
    assert not repair_store(raced, tmp_path / "copy.db").lost
    assert merge([raced, "copy.db"], "all.db").runs == len(runs)
    with pb.open_store("all.db", read_only=True) as store:
        assert store.runs() == runs
    assert main(["status", str(raced)]) == 0
    assert plain(capsys.readouterr().out)
    made = {
        path.name.partition(".")[0]
        for folder in (tmp_path, raced.parent)
        for path in folder.iterdir()
    }
    assert made == {"race", "copy", "all"}


def test_names_come_back_from_parquet(raced, tmp_path, capsys):
    pytest.importorskip("pyarrow")
    assert main(["read", str(raced), "--output", str(tmp_path / "runs.parquet")]) == 0
    assert plain(capsys.readouterr().out)
    with pb.open_store(raced, read_only=True) as store:
        assert pb.Runs.from_parquet(tmp_path / "runs.parquet") == store.runs()


def test_a_name_in_csv_is_one_cell(tmp_path):
    names = [f"x{end}forged" for end in ("\r", "\n", ",", '"', "")]
    runs = pb.Runs.from_records(
        [pb.Run(name, "i", [1.0], [2.0], 9.0) for name in names], direction="minimize"
    )
    runs.to_csv(tmp_path / "runs.csv")
    assert pb.read(tmp_path / "runs.csv", direction="minimize") == runs


def test_names_like_formulas_come_back_from_csv_as_they_were(tmp_path):
    """They are not escaped for spreadsheets: another program would read another name."""
    names = ["=1+1", "+1", "-1", "@SUM(A1)", "=HYPERLINK('x')", "'=1"]
    runs = pb.Runs.from_records(
        [pb.Run(name, name, [1.0], [2.0], 9.0) for name in names], direction="minimize"
    )
    runs.to_csv(tmp_path / "runs.csv")
    assert pb.read(tmp_path / "runs.csv", direction="minimize") == runs
    lines = (tmp_path / "runs.csv").read_text().splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {*names}


def test_what_is_said_of_a_name_is_not_obeyed_by_a_terminal():
    evil = "\x1b]0;owned\x07\n"
    for status in ("member", "undecided", "removed"):
        assert plain(str(Verdict(evil, status)))
    said = str(Verdict(evil, "dominated", rival=evil, probability=0.99))
    assert plain(said)
    assert "\n" not in said


HOSTILE = "a\x1b[2J\nb\x07\x9b\u202ec"
"""A name that clears a terminal, rings, begins a line, and turns the direction of writing."""


def hostile_runs():
    """Runs in which algorithms, instances and the clock have such names."""
    names, n = (HOSTILE, f"b{HOSTILE}", "good"), 30
    table = {
        "algorithm": names * n,
        "instance": [f"{HOSTILE}{k // 3}" for k in range(3 * n)],
        "time": [1] * 3 * n,
        "value": [k % 3 + k * k % 7 for k in range(3 * n)],
    }
    return pb.Runs.from_frame(table, direction="minimize", clock=HOSTILE)


def printed():
    """Everything that people print, with hostile names in it."""
    runs = hostile_runs()
    posterior = pb.fit(runs, times=[1])
    replay = pb.replay(runs, pb.ParetoSet(certainty=0.8), times=[1])
    yield from (runs, pb.rank(runs, [1]), posterior, posterior.verdict(0.8), posterior.diagnostics)
    yield from (replay, replay.status, *replay.verdicts(), *replay.eliminated.values())
    yield pb.simulation.replay_many(runs, pb.ParetoSet(certainty=0.8), times=[1], seeds=range(2))
    yield pb.calibrate(runs, times=[1], replicates=2)
    yield pb.select(posterior)
    yield from pb.select(posterior, size=2, repeats=False, sure=0.999).choices
    yield pb.select(posterior, size=2, repeats=False, sure=0.999)

    def fails(job):
        raise ValueError(f"{job.name}{HOSTILE}")

    def finds(job):
        yield 1, job.rng.random()

    solvers = {HOSTILE: finds, f"b{HOSTILE}": finds, f"c{HOSTILE}": fails}
    instances = {f"{HOSTILE}{k}": k for k in range(8)}
    asked = {"times": [1], "direction": "minimize", "executor": 1}
    yield pb.check(solvers, instances, **asked)
    question, budget = pb.ParetoSet(certainty=0.8), pb.Budget(runs=24)
    with pb.race(
        solvers, instances, question=question, budget=budget, store=":memory:", **asked
    ) as result:
        assert result.failures
        yield from (result, result.in_memory(), result.status, *result.verdicts())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_people_print_holds_no_control_characters():
    for thing in printed():
        for said in (str(thing), repr(thing)):
            raw = {c for c in said if not c.isprintable()} - {"\n"}
            assert not raw, (type(thing), raw)
            if "ValueError" not in said:  # what a solver says may have lines
                assert "\nb\\x07" not in said, type(thing)


def test_files_of_a_folder_are_named_by_hashes(tmp_path):
    solvers = dict.fromkeys(NAMES, course.solver((1.0,) * 3))
    setup = Setup.of(solvers, list(NAMES), times=[1], direction="minimize")
    with closing(start_backend(setup, pb.backends.SharedFolder(tmp_path / "spool"))) as backend:
        backend.submit([job(0, RunId(a, i, 0), 1.0) for a in NAMES for i in NAMES[:2]])
        files = [path.name for path in (tmp_path / "spool" / "jobs").iterdir()]
    assert len(files) == 2 * len(NAMES)
    assert all(re.fullmatch(r"[0-9a-f]{32}\.json", name) for name in files)
    assert [path.name for path in tmp_path.iterdir()] == ["spool"]


@pytest.mark.slow
def test_the_name_of_a_race_in_a_database_is_data(server):
    names = ["'; DROP TABLE runs; --", 'double " quote', "../$(touch hacked)\n{0}%s"]
    begin = Started(7, (1.0,), "minimize", "evaluations", True, ParetoSet(), Budget(), Model())
    for name in names:
        where = f"{server.url}#{quote(name, safe='')}"
        with pb.open_store(where) as store:
            store.append([begin, Added(name)])
    for name in names:
        with pb.open_store(f"{server.url}#{quote(name, safe='')}", read_only=True) as store:
            assert list(store.read()) == [begin, Added(name)]
    for name in ("null\0byte", "x" * 1000):
        with pytest.raises(StoreError, match="63 bytes"):
            pb.open_store(f"{server.url}#{quote(name, safe='')}")


@pytest.mark.parametrize(
    "body",
    [
        '{"event": "added", "version": 1, "algorithm": ' + "[" * 100_000,
        '{"event": "started", "version": 1, "seed": ' + "9" * 1_000_000 + "}",
        '{"event": "added", "version": ' + "9" * 5_000 + "}",
        '{"event": "__class__", "version": 1}',
        '{"event": "added", "version": 1, "__init__": 3}',
    ],
)
def test_events_of_a_stranger_are_looked_at(tmp_path, body):
    path = tmp_path / "race.db"
    begin = Started(7, (1.0,), "minimize", "evaluations", True, ParetoSet(), Budget(), Model())
    with pb.open_store(path) as store:
        store.append([begin, Added("a")])
    row = event_row(2, StoredEvent("added", body.encode()))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE events SET body = ?, crc = ? WHERE seq = 2", (row[2], row[3]))
        connection.commit()
    with (
        pb.open_store(path, read_only=True) as store,
        pytest.raises(StoreError, match="event 2 is not"),
    ):
        list(store.read())


def test_secrets_of_the_environment_and_the_command_line_are_not_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("POLARBEAR_TEST_TOKEN", "token-of-the-environment")
    code = "import os; print('o 1'); print('said', os.environ['POLARBEAR_TEST_TOKEN'])"
    solver = pb.Command(
        [sys.executable, "-c", code, "--key=key-of-the-command"], r"^o (?P<value>\d)"
    )
    pb.race(
        {"one": solver, "two": solver},
        ["a", "b"],
        [1.0],
        direction="minimize",
        budget=Budget(runs=2),
        store=tmp_path / "race.db",
        executor=1,
        question=pb.ParetoSet(fit=course.quick),
    ).close()
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"one" in content
    for secret in (b"token-of-the-environment", b"key-of-the-command"):
        assert secret not in content


SOURCE = Path(pb.__file__).parent


@pytest.mark.slow
def test_nothing_at_rest_is_pickled_and_nothing_read_is_evaluated():
    """Pickles go from a coordinator to its own workers and back, and nowhere else."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = [node.func.id]
            elif isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
                names = [node.arg] if node.value.value is True else []
            evil = {"pickle", "marshal", "shelve", "yaml", "eval", "exec", "allow_pickle", "shell"}
            found |= {(path.relative_to(SOURCE).as_posix(), name) for name in evil & {*names}}
    assert found == {
        ("design/candidates.py", "exec"),  # load_code: a candidate's text, in its own process
        ("running/solvers/setup.py", "pickle"),
        ("running/workers/spawning.py", "pickle"),
    }


def test_conflicts_are_listed_as_text(raced, tmp_path, capsys):
    with pb.open_store(raced, read_only=True) as store:
        first = next(store.read())
        run = store.runs()[0]
    with pb.open_store(tmp_path / "other.db") as store:
        worse = run._replace(value=tuple(v - 1 for v in run.value))
        store.append([first, *map(Added, NAMES), Imported(worse)])
    arguments = [str(raced), str(tmp_path / "other.db"), str(tmp_path / "all.db")]
    assert main(["merge", *arguments]) == 0
    said = capsys.readouterr().out
    assert "1 of them with another outcome" in said
    assert plain(said)


def test_files_that_unpack_to_gigabytes_are_refused(tmp_path):
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("header.json", "manifest.json"):
            archive.writestr(name, bytes(20_000_000))
    for load in (pb.Posterior.load, pb.selection.InstanceRatings.load, read_members):
        with pytest.raises(DataError, match="unpacks to more than 16 MiB, over 100 times its size"):
            load(bomb)
    assert main(["analyse", str(bomb)]) == 1


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_files_that_hold_a_part_twice_are_refused(tmp_path):
    path = tmp_path / "twice.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for _ in range(2):
            archive.writestr("header.json", "{}")
    for load in (pb.Posterior.load, pb.selection.InstanceRatings.load, read_members):
        with pytest.raises(DataError, match="holds 2 files named 'header.json'"):
            load(path)
