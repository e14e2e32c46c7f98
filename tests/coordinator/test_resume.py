"""A race that is resumed: the same names from everywhere, and nothing else under these names."""

import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import polarbear as pb
from polarbear.cli.main import main
from polarbear.errors import DataError, SolverError, StoreError
from polarbear.racing.events import Identified, Offered, Started
from polarbear.racing.race import Race
from polarbear.running.solvers.configuration import load
from polarbear.running.solvers.identity import identify
from waiting import PATIENCE

PROGRAM = """
import random, sys
skill, seed, path = float(sys.argv[1]), sys.argv[2], sys.argv[3]
luck = random.Random(seed + open(path).read())
for step in (1, 10, 100):
    print("o", step, luck.random() / skill - step, flush=True)
"""

RACE = """
times = [10, 100]
direction = "minimize"
clock = "reported"
store = "race.db"
[solvers.strong]
command = ["python3", "./solver.py", "4", "{seed}", "{instance}"]
pattern = '^o (?P<time>\\S+) (?P<value>\\S+)'
[solvers.weak]
command = ["python3", "./solver.py", "1", "{seed}", "{instance}"]
pattern = '^o (?P<time>\\S+) (?P<value>\\S+)'
[instances]
files = "instances/*.txt"
[question]
kind = "StrictParetoSet"
[budget]
runs = MAX
batch = [2, 2]
"""


@pytest.fixture
def folder(tmp_path):
    """The folder of a race of two programs on six files."""
    folder = tmp_path / "study"
    (folder / "instances").mkdir(parents=True)
    for k in range(6):
        (folder / "instances" / f"f{k}.txt").write_text(f"instance {k}")
    (folder / "solver.py").write_text(PROGRAM)
    (folder / "race.toml").write_text(RACE.replace("MAX", "4"))
    return folder


def events_of(path):
    with pb.open_store(path, read_only=True) as store:
        return list(store.read())


def accept_changes(path):
    with pb.open_store(path) as store:
        store.accept_changes()


def assert_sound(path):
    """No run failed, and there are some."""
    with pb.open_store(path, read_only=True) as store:
        assert {run.status.value for run in store.runs()} <= {"cut", "finished"}
        assert store.status().n_runs


def resume(*words):
    """The exit code of a race that may do more runs than the one before."""
    return main(["race", *map(str, words), "--workers", "1", "--quiet"])


def allow(folder, runs):
    (folder / "race.toml").write_text(RACE.replace("MAX", str(runs)))


def test_a_race_is_the_same_from_every_folder(folder, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(folder)
    places = [
        (folder, "race.toml"),
        (tmp_path, "study/race.toml"),
        (folder / "instances", "../race.toml"),
        (tmp_path, "link/race.toml"),
        (tmp_path / "link", "race.toml"),
        ("/", folder / "race.toml"),
    ]
    asked = []
    for here, path in places:
        monkeypatch.chdir(here)
        setup = load(path).setup
        names = setup.instances.names
        race = Race(setup.solvers, [1], direction="minimize", instances=names)
        asked.append((names, race.ask(), identify(setup)))
        assert all(Path(setup.instances.build(name)).is_file() for name in names)
    assert all(other == asked[0] for other in asked)
    assert asked[0][0] == tuple(f"instances/f{k}.txt" for k in range(6))


@pytest.mark.slow
def test_a_resume_from_another_folder_brings_no_new_instance(folder, tmp_path, monkeypatch):
    places = [(folder, "race.toml"), (tmp_path, "study/race.toml"), ("/", folder / "race.toml")]
    for runs, (here, path) in zip((4, 6, 8), places, strict=True):
        allow(folder, runs)
        monkeypatch.chdir(here)
        assert resume(path) == 0
    events = events_of(folder / "race.db")
    offered = [event for event in events if isinstance(event, Offered)]
    assert [len(event.instances) for event in offered] == [6]
    assert sum(isinstance(event, Identified) for event in events) == 1
    with pb.open_store(folder / "race.db") as store:
        assert store.status().n_runs > 6


def test_a_file_under_two_names_is_refused(folder, capsys):
    shutil.copy(folder / "instances/f1.txt", folder / "instances/g.txt")
    assert resume(folder / "race.toml") != 0
    output = capsys.readouterr().err
    assert "'instances/f1.txt' and 'instances/g.txt' are files with the same content" in output
    assert not (folder / "race.db").exists() or not events_of(folder / "race.db")


@pytest.mark.slow
def test_paths_in_python_are_named_as_written_and_known_by_content(folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = [f"instances/f{k}.txt" for k in range(6)]
    assert pb.Instances.of(names).names == tuple(names)
    files = pb.Instances.from_files("*.txt", folder / "instances")
    assert files.names == tuple(f"f{k}.txt" for k in range(6))
    assert pb.Instances.from_files(["./instances/f1.txt"]).names == ("instances/f1.txt",)
    with pytest.raises(DataError, match="there is no file 'f9.txt' in"):
        pb.Instances.from_files(["f9.txt"], folder)

    def solve(job):
        yield 10, job.rng.random() + len(str(job.instance)) * 0

    both = {"a": solve, "b": lambda job: solve(job)}
    some = {"times": [10], "direction": "minimize", "executor": 1, "store": "python.db"}
    pb.race(both, names, budget=pb.Budget(runs=4), **some).close()
    absolute = [str(folder / name) for name in names]
    with pytest.raises(StoreError, match=r"'instances/f\d.txt' is now '/.*accept_changes\(\)"):
        pb.race(both, absolute, budget=pb.Budget(runs=8), **some)
    accept_changes("python.db")
    for _ in range(2):  # accepted once, and remembered
        result = pb.race(both, absolute, budget=pb.Budget(runs=8), **some)
        assert set(result.runs.instances) <= set(names)
        result.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed", ["study/instances/{}", "{folder}/instances/{}", "../instances/{}"]
)
def test_a_store_with_file_names_as_typed(folder, tmp_path, monkeypatch, capsys, typed):
    """As version 0.1.0 did, which kept no contents either."""
    monkeypatch.chdir(tmp_path)
    files = sorted(path.name for path in (folder / "instances").iterdir())
    setup = load(folder / "race.toml").setup
    old = Race(
        setup.solvers,
        setup.times,
        direction="minimize",
        clock="reported",
        instances=[typed.format(name, folder=folder) for name in files],
    )
    with pb.open_store(folder / "race.db") as store:
        store.append(old.events)
    before = events_of(folder / "race.db")
    assert isinstance(before[0], Started)
    assert resume("study/race.toml") != 0
    assert "--accept-changes" in capsys.readouterr().err
    assert events_of(folder / "race.db") == before
    assert resume("study/race.toml", "--accept-changes") == 0
    after = events_of(folder / "race.db")
    assert sum(isinstance(event, Offered) for event in after) == 1
    assert_sound(folder / "race.db")
    assert resume(folder / "race.toml") == 0


def test_a_race_with_the_same_file_twice_in_its_store_is_refused(folder, capsys):
    """What a resume from another folder left behind: 6 files, 12 instances."""
    setup = load(folder / "race.toml").setup
    names = setup.instances.names
    old = Race(
        setup.solvers,
        setup.times,
        direction="minimize",
        clock="reported",
        instances=[*names, *(f"study/{name}" for name in names)],
    )
    with pb.open_store(folder / "race.db") as store:
        store.append(old.events)
    assert resume(folder / "race.toml", "--accept-changes") != 0
    assert "6 instances of the race in" in capsys.readouterr().err


@pytest.mark.slow
def test_missing_instances_are_refused_before_anything_is_stored(folder, capsys):
    assert resume(folder / "race.toml") == 0
    before = events_of(folder / "race.db")
    (folder / "instances/f2.txt").unlink()
    allow(folder, 20)
    for more in ((), ("--accept-changes",)):
        assert resume(folder / "race.toml", *more) != 0
        output = capsys.readouterr().err
        assert "1 instance of the race in" in output
        assert "instances/f2.txt" in output
        assert events_of(folder / "race.db") == before


def test_one_content_per_file_is_checked_at_once(folder):
    shutil.copy(folder / "instances/f1.txt", folder / "g.txt")
    instances = pb.Instances.from_files(["instances/f1.txt", "g.txt"], folder)
    with pytest.raises(DataError, match="same content"):
        pb.race({"a": print, "b": print}, instances, [1], direction="minimize")


def search(job, scale=1.0):
    for step in (1, 10, 100):
        yield step, job.rng.random() * scale * job.instance[0] - step


def search_otherwise(job, scale=1.0):
    for step in (1, 10, 100):
        yield step, job.rng.random() * scale + job.instance[0] - step


def base(path):
    return {
        "solvers": {"a": partial(search, scale=1.0), "b": partial(search, scale=2.0)},
        "instances": {name: [float(name), "x"] for name in "123456"},
        "times": [10, 100],
        "direction": "minimize",
        "budget": pb.Budget(runs=4, batch=(2, 2)),
        "limits": pb.Limits(wall_seconds=60),
        "executor": 1,
        "store": path,
    }


TRUE = pb.Command("true", r"(?P<value>\d) (?P<time>\d)", clock="evaluations")
WRONG = {
    "other objects": ({"instances": {n: [7.0, "x"] for n in "123456"}}, "'1' has another content"),
    "other limits": (
        {"limits": pb.Limits(wall_seconds=9)},
        "the limit wall_seconds was 60 and is 9",
    ),
    "another environment": (
        {"limits": pb.Limits(wall_seconds=60, environment=["A_*"])},
        "the limit environment was None and is ['A_*']",
    ),
    "another function": (
        {"solvers": {"a": partial(search_otherwise, scale=1.0), "b": partial(search, scale=2.0)}},
        "solver 'a' has changed: its code",
    ),
    "another parameter": (
        {"solvers": {"a": partial(search, scale=1.5), "b": partial(search, scale=2.0)}},
        "solver 'a' has changed",
    ),
    "a program": (
        {"solvers": {"a": TRUE, "b": partial(search, scale=2.0)}, "clock": "evaluations"},
        "solver 'a' was a Python function and is a program",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRONG)
def test_changes_are_refused_or_recorded(tmp_path, kind):
    path = tmp_path / "race.db"
    pb.race(**base(path)).close()
    before = events_of(path)
    change, message = WRONG[kind]
    again = {**base(path), "budget": pb.Budget(runs=8, batch=(2, 2)), **change}
    with pytest.raises(StoreError, match=re.escape(message) + r".*accept_changes\(\)"):
        pb.race(**again)
    assert events_of(path) == before
    if kind != "a program":
        accept_changes(path)
        pb.race(**again).close()
        first, accepted = [e for e in events_of(path)[len(before) :] if isinstance(e, Identified)]
        assert first == Identified(accepts_changes=True)
        assert any(message in change for change in accepted.changes)
        pb.race(**again).close()  # it is what the store knows now
        with pytest.raises(StoreError, match="differ from those of the race"):
            pb.race(**base(path))  # accepted once


def test_changes_are_accepted_once_also_if_there_were_none(tmp_path):
    path = tmp_path / "race.db"
    accept_changes(path)  # of a race that has not begun
    for _ in range(2):
        pb.race(**base(path)).close()
        changed, _ = WRONG["other limits"]
        with pytest.raises(StoreError, match="differ from those of the race"):
            pb.race(**{**base(path), **changed})
        accept_changes(path)


def count_keys(_):
    """How many of three variables a run sees, as its value."""
    yield 10, sum(name in os.environ for name in ("A_KEY", "B_KEY", "PATH"))


@pytest.mark.parametrize(("environment", "seen"), [(None, 3), ([], 1), (["A_*"], 2), (["*"], 3)])
def test_runs_see_the_environment_that_is_asked_for(tmp_path, monkeypatch, environment, seen):
    for name in ("A_KEY", "B_KEY"):
        monkeypatch.setenv(name, "secret")
    call = {**base(tmp_path / "race.db"), "solvers": {"a": count_keys, "b": count_keys}}
    call["limits"] = pb.Limits(environment=environment)
    for runs in (4, 8):  # the second call resumes
        with pb.race(**{**call, "budget": pb.Budget(runs=runs, batch=(2, 2))}) as result:
            assert {float(run.value[0]) for run in result.runs} == {seen}
            assert len(result.runs) == runs
    assert os.environ["B_KEY"] == "secret"


@pytest.mark.parametrize("wrong", ["A_KEY", 3, [3]])
def test_an_environment_that_is_no_list_of_names_is_refused(wrong):
    with pytest.raises(DataError, match=re.escape(f"environment={wrong!r}: expected a l")):
        pb.Limits(environment=wrong)


@pytest.mark.slow
def test_a_changed_program_is_refused(folder, capsys):
    assert resume(folder / "race.toml") == 0
    before = events_of(folder / "race.db")
    (folder / "solver.py").write_text(PROGRAM.replace("/ skill", "* skill"))
    assert resume(folder / "race.toml") != 0
    output = capsys.readouterr().err
    assert "solver 'strong' has changed: its program, or a file among its arguments" in output
    text = (folder / "race.toml").read_text()
    (folder / "solver.py").write_text(PROGRAM)
    (folder / "race.toml").write_text(text.replace('"4"', '"5"'))
    assert resume(folder / "race.toml") != 0
    assert "the command line of solver 'strong' was " in capsys.readouterr().err
    assert events_of(folder / "race.db") == before


def test_an_interrupted_call_says_where_its_runs_are(tmp_path, monkeypatch):
    with pb.race(**base(tmp_path / "race.db")) as result:
        result.extend(budget=pb.Budget(runs=500))

        def interrupt(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr(result, "_collect", interrupt)
        with pytest.raises(KeyboardInterrupt) as stopped:
            result.resume()
        assert "race.db; the same call resumes" in stopped.value.__notes__[0]


def test_a_solver_that_comes_back_with_other_code_is_refused(tmp_path):
    with pb.race(**base(tmp_path / "race.db")) as result:
        result.add("c", partial(search, scale=3.0))
        result.remove("c")
        with pytest.raises(StoreError, match="solver 'c' has changed"):
            result.add("c", partial(search, scale=4.0))
        result.add("c", partial(search, scale=3.0))


@pytest.mark.slow
def test_a_missing_module_does_not_change_the_store(folder, capsys):
    """Every run of a round failed before it reported a value: that says nothing about solvers."""
    assert resume(folder / "race.toml") == 0
    before = events_of(folder / "race.db")
    allow(folder, 12)
    (folder / "solver.py").write_text("import random, sys, no_such_module\n" + PROGRAM)
    assert resume(folder / "race.toml", "--accept-changes") == 1
    assert "The last failed runs are not kept" in capsys.readouterr().err
    with pb.open_store(folder / "race.db", read_only=True) as store:
        assert store.status().n_runs == 4
    (folder / "solver.py").write_text(PROGRAM)
    assert resume(folder / "race.toml", "--accept-changes") == 0
    assert_sound(folder / "race.db")
    assert events_of(folder / "race.db")[: len(before)] == before


@pytest.mark.slow
@pytest.mark.parametrize("store", [True, False])
def test_a_round_with_only_failures_is_undone(tmp_path, store, monkeypatch):
    some = base(tmp_path / "race.db" if store else None)
    monkeypatch.setitem(globals(), "BROKEN", False)
    some["solvers"] = {"a": breakable, "b": partial(breakable, scale=2.0)}
    with pb.race(**some) as result:
        runs, rounds = result.runs, result.rounds
        monkeypatch.setitem(globals(), "BROKEN", True)
        result.extend(budget=pb.Budget(runs=8, batch=(2, 2)))
        with pytest.raises(SolverError, match="every run of this round failed"):
            result.resume()
        assert (result.runs, result.rounds) == (runs, rounds)
        monkeypatch.setitem(globals(), "BROKEN", False)
        result.resume()
        assert result.n_runs == 8
        assert {run.status.value for run in result.runs} <= {"cut", "finished"}


BROKEN = False


def breakable(job, scale=1.0):
    if BROKEN:
        raise ModuleNotFoundError("no module named 'solver'")
    yield from search(job, scale)


@pytest.mark.slow
def test_a_race_resumes_without_a_withdrawn_instance(folder, capsys):
    assert resume(folder / "race.toml") == 0
    (folder / "instances/f2.txt").rename(folder / "f2.txt")
    allow(folder, 8)
    assert resume(folder / "race.toml") == 1
    assert "polarbear forget" in capsys.readouterr().err
    assert main(["forget", str(folder / "race.db"), "--instance", "instances/f2.txt"]) == 0
    assert resume(folder / "race.toml") == 0
    with pb.open_store(folder / "race.db", read_only=True) as store:
        assert "instances/f2.txt" not in store.runs().instances
    (folder / "f2.txt").rename(folder / "instances/f2.txt")
    allow(folder, 16)
    assert resume(folder / "race.toml") == 0
    with pb.open_store(folder / "race.db", read_only=True) as store:
        assert "instances/f2.txt" in store.runs().instances


@pytest.mark.slow
def test_a_result_withdraws_runs(tmp_path):
    with pb.race(**base(tmp_path / "race.db")) as result:
        runs = result.n_runs
        assert result.withdraw("a", why="another licence") == 2
        assert result.n_runs == runs - 2 == len(result.runs)
        result.extend(budget=pb.Budget(runs=8, batch=(2, 2)))
        result.resume()
        assert {run.repetition for run in result.runs if run.algorithm == "a"} >= {1}


@pytest.mark.slow
def test_provenance_of_every_run(folder, capsys):
    assert resume(folder / "race.toml") == 0
    allow(folder, 6)
    assert resume(folder / "race.toml") == 0
    with pb.open_store(folder / "race.db", read_only=True) as store:
        origins, runs = store.origins(), store.runs()
    assert len(origins.worker_of) == len(runs) == 6
    assert set(origins.worker_of.values()) == set(origins.workers) == {1, 2}  # a process per call
    for worker in origins.workers.values():
        assert worker["host"] == socket.gethostname()
        assert worker["Python"] == platform.python_version()
        assert worker["numpy"] == np.__version__
        assert worker["polarbear-race"] == pb.__version__
    assert origins.solvers["strong"]["command"].startswith("python3 ./solver.py 4 '{seed}'")
    assert origins.limits["wall"] == 86400.0
    capsys.readouterr()
    assert main(["status", str(folder / "race.db"), "--verbose"]) == 0
    output = capsys.readouterr().out
    assert "solver      strong: python3 ./solver.py 4" in output
    assert f"worker 1    4 runs: host {socket.gethostname()}, process" in output
    assert main(["status", str(folder / "race.db"), "--verbose", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)["origins"]
    assert [worker["runs"] for worker in plain["workers"]] == [4, 2]
    assert main(["status", str(folder / "race.db")]) == 0
    assert "solver.py" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_shared_folder_keeps_the_worker_of_a_run(folder, tmp_path):
    spool = tmp_path / "spool"
    words = [sys.executable, "-m", "polarbear", "worker", spool, "--solvers", folder / "race.toml"]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL) as worker:
        assert main(["race", str(folder / "race.toml"), "--spool", str(spool), "--quiet"]) == 0
        worker.wait(PATIENCE)
    with pb.open_store(folder / "race.db", read_only=True) as store:
        origins = store.origins()
    assert len(origins.worker_of) == 4
    assert all(int(one["process"]) != os.getpid() for one in origins.workers.values())


@pytest.mark.slow
def test_one_broken_solver_is_repaired_by_one_command(folder, capsys):
    """The others ran, so the round is kept; what failed is taken back."""
    (folder / "weak.py").write_text(PROGRAM)
    text = RACE.replace('"./solver.py", "1"', '"./weak.py", "1"')
    (folder / "race.toml").write_text(text.replace("MAX", "4"))
    assert resume(folder / "race.toml") == 0
    (folder / "race.toml").write_text(text.replace("MAX", "8"))
    (folder / "weak.py").write_text("import no_such_module\n")
    assert resume(folder / "race.toml", "--accept-changes") == 0
    with pb.open_store(folder / "race.db", read_only=True) as store:
        assert any(run.status == pb.Status.CRASHED for run in store.runs())
    assert main(["forget", str(folder / "race.db"), "--status", "crashed"]) == 0
    assert "2 runs withdrawn" in capsys.readouterr().out
    (folder / "weak.py").write_text(PROGRAM)
    (folder / "race.toml").write_text(text.replace("MAX", "12"))
    assert resume(folder / "race.toml", "--accept-changes") == 0
    assert_sound(folder / "race.db")


@pytest.mark.slow
def test_sites_with_different_files_are_not_merged(folder, tmp_path):
    sites = [tmp_path / "one.db", tmp_path / "two.db", tmp_path / "three.db"]
    solvers = {"a": search_file, "b": partial(search_file, scale=2.0)}
    some = {"times": [10], "direction": "minimize", "executor": 1, "budget": pb.Budget(runs=2)}
    for site, text in zip(sites, ("instance 0", "instance 0", "something else"), strict=True):
        (folder / "instances/f0.txt").write_text(text)
        instances = pb.Instances.from_files("instances/*.txt", folder)
        pb.race(solvers, instances, store=site, **some).close()
    pb.store.merge(sites[:2], tmp_path / "all.db")
    with pb.open_store(tmp_path / "all.db", read_only=True) as store:
        origins = store.origins()
    assert len(origins.identity.instances) == 6
    assert set(origins.solvers) == {"a", "b"}
    with pytest.raises(StoreError, match="'instances/f0.txt' is a file with another content"):
        pb.store.merge(sites, tmp_path / "more.db")
    assert not events_of(tmp_path / "more.db")


def search_file(job, scale=1.0):
    yield 10, job.rng.random() * scale


@pytest.mark.slow
def test_corrected_code_after_withdrawal_in_a_new_call(tmp_path):
    def broken(job):
        if job.instance >= 0:
            raise ValueError("a bug")
        yield 1, 0.0

    def corrected(job):
        yield 1, job.instance

    def other(job):
        yield 1, job.instance + 1

    def call(solver):
        options = {"direction": "minimize", "store": tmp_path / "race.db", "executor": 1}
        instances = [float(k) for k in range(24)]
        return pb.race({"own": solver, "other": other}, instances, [1], **options)

    with call(broken) as result:
        assert "a bug" in result.failures["own"]
        result.withdraw("own", why="a bug")
        assert not result.failures
    with call(corrected) as result:
        assert not result.failures
        assert result.verdict("own").kind == "member"
        assert not result.failures
    with pb.open_store(tmp_path / "race.db", read_only=True) as store:
        assert not store.status().runs.why


def constant(value):
    def find(job):
        yield 1, value + job.instance

    return find


@pytest.mark.slow
def test_corrected_code_after_withdrawal_by_add():
    solvers = {"own": constant(2), "other": constant(1)}
    with pb.race(solvers, range(24), [1], direction="minimize", executor=1) as result:
        assert result.verdict("own").kind == "dominated"
        with pytest.raises(StoreError, match="withdraw the old runs"):
            result.add("own", constant(0))
        result.withdraw("own", why="a bug")
        result.add("own", constant(0))
        result.resume()
        assert result.verdict("own").kind == "member"


def halve_draws(rankings, *, seed):
    return pb.fit(rankings, seed=seed, draws=500)


def test_another_question_keeps_the_model(tmp_path):
    """Also a function, of which the store has the name alone."""
    call, question = base(tmp_path / "race.db"), pb.PaperParetoSet(fit=halve_draws)
    pb.race(**call, question=question).close()
    call["budget"] = pb.Budget(runs=8, batch=(2, 2))
    with pb.race(**call, question=replace(question, certainty=0.99)) as result:
        assert result.question.certainty == 0.99
        assert result.posterior.draws.shape[0] <= 500
        assert not any("cannot hold" in note for note in result.posterior.diagnostics.notes)
        result.extend(pb.PaperParetoSet(certainty=0.999))
        assert result.fit is halve_draws
        with pytest.raises(DataError, match="the model of a race stays: it is .*halve_draws"):
            result.extend(pb.PaperParetoSet(fit={"prior": "GP"}))
    with pytest.raises(StoreError, match="was started with another model"):
        pb.race(**call, question=pb.PaperParetoSet(certainty=0.99))


@pytest.mark.slow
def test_a_script_that_adds_solvers_is_resumed_with_all_of_them(tmp_path):
    options = {"direction": "minimize", "store": tmp_path / "race.db", "executor": 1}
    with pb.race({"a": constant(1)}, range(24), [1], **options) as result:
        result.add("b", constant(1))
        result.add("c", constant(1))
        result.resume()
        runs = result.n_runs
    how = r"'b', 'c' are racing.*Pass all solvers.*race\({..., 'b': ..., 'c': ...}"
    with pytest.raises(DataError, match=how):
        pb.race({"a": constant(1)}, range(24), [1], **options)
    solvers = {name: constant(1) for name in "abc"}
    with pb.race(solvers, range(24), [1], **options) as result:
        result.add("b", constant(1))  # races already
        result.resume()
        assert result.n_runs == runs
