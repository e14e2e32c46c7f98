"""A folder in place of a connection: real workers, killed and replaced."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing

import pytest

import solvers
from marks import PYTHONPATH
from polarbear.cli.main import main
from polarbear.data.run import Status
from polarbear.errors import SolverError
from polarbear.racing.jobs import Job, RunId, job
from polarbear.running.backends.folder_worker import run_folder_jobs
from polarbear.running.backends.interface import start_backend
from polarbear.running.backends.shared_folder import SharedFolder, hash_job, write_file
from polarbear.running.solvers.setup import Setup
from polarbear.running.workers.outcomes import LostRun, RunOutcome, to_plain
from waiting import wait_for_outcomes, wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

CODE = """
import solvers as given
solvers = {"quick": given.quick, "naps": given.naps, "segfault": given.segfault,
           "child_sleeper": given.child_sleeper}
instances = given.drawn
"""


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "race.py"
    path.write_text(CODE)
    return str(path)


def setup():
    named = {name: vars(solvers)[name] for name in ("quick", "naps", "segfault", "child_sleeper")}
    return Setup.of(named, solvers.drawn, times=[10, 100], direction="minimize")


def backend_at(folder, **more):
    return start_backend(setup(), SharedFolder(folder, **{"pause": 0.02, **more}))


def jobs_of(*algorithms, n=3):
    return [job(0, RunId(a, str(k), 0), 100.0) for k in range(n) for a in algorithms]


def worker(folder, code, *more):
    command = [sys.executable, "-m", "polarbear", "worker", str(folder), "--solvers", code, *more]
    environment = os.environ | {"PYTHONPATH": PYTHONPATH}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_workers_make_the_runs_of_a_folder(tmp_path, code):
    folder = tmp_path / "spool"
    workers = [worker(folder, code) for _ in range(2)]  # before the race, as in a batch queue
    with closing(backend_at(folder)) as backend:
        wanted = jobs_of("quick", "naps", "segfault", n=6)
        backend.submit(wanted)
        found = wait_for_outcomes(backend)
    said = [w.communicate(timeout=120)[0] for w in workers]
    assert [w.returncode for w in workers] == [0, 0]
    assert sorted(o.job for o in found) == sorted(wanted)
    assert "segfault on 0: crashed ended by SIGSEGV" in "".join(said)
    with closing(start_backend(setup(), 1)) as local:
        local.submit(wanted)
        expected = sorted(o.run for o in wait_for_outcomes(local))
    assert sorted(o.run for o in found) == expected
    backend.outcomes()
    assert list((folder / "results").iterdir()) == list((folder / "claims").iterdir()) == []


@pytest.mark.slow
def test_the_job_of_a_worker_that_is_gone_is_given_to_another(tmp_path, code):
    folder = tmp_path / "spool"
    with closing(backend_at(folder, patience=5.0)) as backend:
        backend.submit(jobs_of("child_sleeper", n=1))
        claims = folder / "claims"
        killed = worker(folder, code)
        wait_until(lambda: list(claims.iterdir()))
        killed.kill()
        killed.communicate()
        assert backend.outcomes(0.3) == []
        wait_until(lambda: not backend.outcomes(0.05) and list((folder / "jobs").iterdir()))
        ended = worker(folder, code)
        wait_until(lambda: list(claims.iterdir()))
        # One that lives keeps its claim, however long it takes.
        assert backend.outcomes(7.0) == []
        assert len(list(claims.iterdir())) == 1
        ended.send_signal(signal.SIGTERM)  # one that is told to go gives it back itself
        ended.communicate()
        assert ended.returncode == 143
        assert list(claims.iterdir()) == []
        assert len(list((folder / "jobs").iterdir())) == 1


def test_results_stay_until_the_next_are_asked_for(tmp_path, code):
    folder = tmp_path / "spool"
    first = backend_at(folder)
    first.submit(jobs_of("quick"))
    assert run_folder_jobs(folder, code, max_runs=3) == 3
    assert len(first.outcomes()) == 3  # and the coordinator dies before they are stored
    again = backend_at(folder)
    again.submit(jobs_of("quick"))
    assert list((folder / "jobs").iterdir()) == []
    assert len(again.outcomes()) == 3
    again.outcomes()
    assert list((folder / "results").iterdir()) == []


def test_a_job_whose_result_is_not_kept_can_be_submitted_again(tmp_path, code):
    backend = backend_at(tmp_path / "spool")
    for _ in range(2):
        backend.submit(jobs_of("quick", n=1))
        assert run_folder_jobs(tmp_path / "spool", code, max_runs=1, idle_seconds=2.0) == 1
        assert len(backend.outcomes()) == 1


def test_unclaimed_jobs_can_be_cancelled(tmp_path):
    backend = backend_at(tmp_path)
    backend.submit(jobs_of("quick", "naps"))
    assert len(backend.cancel(["naps"])) == 3
    assert backend.pending == 3
    backend.close()
    assert backend.pending == 0
    assert list((tmp_path / "jobs").iterdir()) == []


def test_files_of_strangers_are_data(tmp_path, code):
    backend = backend_at(tmp_path)
    wanted = [Job("quick\n;$(x)", f"../../{k}\0", 0, 100.0, 1, 2) for k in range(5)]
    backend.submit(wanted)
    results = tmp_path / "results"
    good = RunOutcome(wanted[0], wanted[0].run((1.0,), (2.0,), until=1.0, status=Status.FINISHED))
    content = [
        json.dumps(to_plain(good)),  # of another job than the name says
        "[" * 100_000,
        '{"job": 3}',
        json.dumps(to_plain(good)).replace("2.0", "NaN"),
        " " * 16_000_001,
    ]
    for k, text in enumerate(content):
        job = wanted[(k + 1) % 5]
        (results / f"{hash_job(job, backend._fingerprint(job))}.json").write_text(text)
    found = backend.outcomes()
    assert [type(outcome) for outcome in found] == [LostRun] * 5
    assert list(tmp_path.parent.glob("[0-9]*")) == []
    write_file(results / f"{'0' * 32}.json", {"a": 1})  # late, or not ours
    backend.submit(wanted[:1])
    assert backend.outcomes(0.1) == []
    (tmp_path / "jobs" / "strange.json").write_text("nothing")
    for path in (tmp_path / "jobs").glob("[0-9a-f]*.json"):
        path.unlink()
    backend.close()
    assert run_folder_jobs(tmp_path, code, idle_seconds=0.1) <= 1


def test_bad_job_files_are_set_aside_and_neither_spin_nor_end_a_worker(tmp_path, code):
    backend = backend_at(tmp_path)
    wanted = jobs_of("quick", n=2)
    backend.submit(wanted)
    jobs, plain = tmp_path / "jobs", wanted[0]._asdict()
    bad = {
        "empty": "",
        "list": "[1]",
        "newer": json.dumps({"version": 7, "job": plain}),
        "short": json.dumps({"job": {"algorithm": "quick"}}),
        "types": json.dumps({"job": {**plain, "horizon": "long"}}),
        "renamed": json.dumps({"job": plain}),
        "unknown": json.dumps({"job": {**plain, "command": "rm"}}),
    }
    for name, text in bad.items():
        (jobs / f"{name}.json").write_text(text)
    (jobs / "folder.json").mkdir()
    os.mkfifo(jobs / "pipe.json")
    said = []
    assert run_folder_jobs(tmp_path, code, idle_seconds=1.0, pause=0.05, report=said.append) == 2
    assert len(wait_for_outcomes(backend)) == 2
    assert list(jobs.iterdir()) == list((tmp_path / "claims").iterdir()) == []
    refused = {path.name.partition(".")[0] for path in (tmp_path / "refused").iterdir()}
    assert refused == {*bad, "folder", "pipe"}
    assert sum("is set aside, in refused: " in line for line in said) == len(refused)
    backend.close()


def test_a_run_that_kills_its_worker_process_is_lost(tmp_path):
    code = tmp_path / "code.py"
    code.write_text(
        "import os, signal, solvers\n"
        "def naps(job): os.kill(os.getppid(), signal.SIGKILL)\n"
        "solvers = {'quick': solvers.quick, 'naps': naps, 'segfault': solvers.segfault,\n"
        "           'child_sleeper': solvers.child_sleeper}\n"
        "instances = range(3)\n"
    )
    backend = backend_at(tmp_path / "spool")
    backend.submit([*jobs_of("naps", n=1), *jobs_of("quick", n=1)])
    assert run_folder_jobs(tmp_path / "spool", str(code), max_runs=2) == 2
    made = {type(outcome): outcome for outcome in wait_for_outcomes(backend)}
    assert made[LostRun].job.algorithm == "naps"
    assert made[LostRun].was_running
    assert made[RunOutcome].job.algorithm == "quick"


def test_what_is_wrong_is_said(tmp_path, code, capsys):
    folder = tmp_path / "spool"
    with pytest.raises(SolverError, match="no race was started in"):
        run_folder_jobs(folder, code, idle_seconds=0.0)
    backend_at(folder)
    other = Setup.of([solvers.quick], ["i"], times=[1], direction="minimize")
    with pytest.raises(SolverError, match="the folder of another race"):
        start_backend(other, SharedFolder(folder))
    for text, message in [
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("solvers = {}", "must define 'instances'"),
        ("solvers = {}; instances = []", "the list of solvers is empty"),
        ("solvers = {'quick': print}; instances = [1]", "add naps"),
    ]:
        wrong = tmp_path / "wrong.py"
        wrong.write_text(text)
        assert main(["worker", str(folder), "--solvers", str(wrong), "--idle", "0"]) == 1
        assert message in capsys.readouterr().err
    race = json.loads((folder / "race.json").read_text())
    del race["patience"]
    (folder / "race.json").write_text(json.dumps(race))
    with pytest.raises(SolverError, match=r"does not match .*: 'patience'"):
        run_folder_jobs(folder, code)
    (folder / "race.json").write_text(json.dumps({"version": 7}))
    with pytest.raises(SolverError, match="has format 7"):
        run_folder_jobs(folder, code)
