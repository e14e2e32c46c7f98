"""Races on a real SLURM of one node: an array of ``polarbear worker``, and dask-jobqueue.

The cluster takes a minute: ``pytest -m long tests/faults/test_slurm.py``, as root, with
``slurmctld``, ``slurmd``, ``slurm-client`` and ``munge`` installed.
"""

import os
import re
import shlex
import sys
import time

import pytest

import batch
import polarbear as pb
from course import run
from disturbing import BUDGET, CODE, Tally, meanwhile
from marks import PYTHONPATH

OPTIONS = {
    "cores": 1,
    "processes": 1,
    "memory": "1GB",
    "walltime": "01:00:00",
    "python": sys.executable,
    "worker_extra_args": ["--lifetime", "50m", "--lifetime-stagger", "5m"],
    "job_script_prologue": [f"export PYTHONPATH={shlex.quote(PYTHONPATH)}"],
    "scheduler_options": {"host": "127.0.0.1", "dashboard_address": ":0"},
}
WARNINGS = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def slurm():
    if batch.why_not():
        pytest.skip(batch.why_not())
    own = batch.Slurm()
    yield own
    own.remove()


def cancelling(slurm, tally, name=""):
    """Cancel one of the jobs that run, two seconds after there are some."""

    def cancel(over):
        while not (found := [job for job in slurm.running() if name in job]):
            if over.wait(0.2):
                return
        if not over.wait(2.0):
            slurm.ask("scancel", found[0])
            tally.done += 1
        over.wait()

    return meanwhile(cancel)


@pytest.mark.long
def test_workers_in_an_array_make_the_runs_of_a_race(slurm, tmp_path, report):
    (tmp_path / "code.py").write_text(CODE)
    folder = tmp_path / "spool"
    command = [sys.executable, "-m", "polarbear", "worker", str(folder), "--solvers"]
    slurm.submit(
        f"export PYTHONPATH={shlex.quote(PYTHONPATH)}",
        shlex.join([*command, str(tmp_path / "code.py"), "--idle", "60"]),
        options=["--array=1-3"],
    )
    tally = Tally()
    with cancelling(slurm, tally):
        spool = pb.backends.SharedFolder(folder, patience=3.0, pause=0.05)
        tally.race(run(executor=spool, seconds=0.02, budget=BUDGET).events)
    assert tally.done == 1
    end = time.monotonic() + 60
    while slurm.running():  # workers leave when the race is over
        assert time.monotonic() < end
        time.sleep(0.2)
    tally.report(report, "`polarbear worker` in a SLURM array, one cancelled")


@pytest.mark.long
@WARNINGS
def test_dask_on_slurm_makes_the_runs_of_a_race(slurm, tmp_path, monkeypatch, report):
    jobqueue = pytest.importorskip("dask_jobqueue")
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("SLURM_CONF", slurm.environment["SLURM_CONF"])
    monkeypatch.setenv("PATH", os.environ["PATH"] + ":/usr/bin")
    tally = Tally()
    options = {**OPTIONS, "log_directory": str(tmp_path), "local_directory": str(tmp_path)}
    with (
        jobqueue.SLURMCluster(**options) as cluster,
        distributed.Client(cluster) as client,
    ):
        cluster.adapt(minimum=2, maximum=2, interval="1s", wait_count=1)
        client.wait_for_workers(2, timeout=120)
        with cancelling(slurm, tally):
            tally.race(run(executor=client, seconds=0.05, budget=BUDGET).events)
    tally.report(report, "Dask workers as SLURM jobs (dask-jobqueue), one cancelled")


@WARNINGS
def test_the_jobs_of_dask_jobqueue_start_workers_of_one_thread():
    """As far as it goes without SLURM: the script that would be submitted."""
    jobqueue = pytest.importorskip("dask_jobqueue")
    with jobqueue.SLURMCluster(**OPTIONS) as cluster:
        script = cluster.job_script()
    assert re.search(r"^#SBATCH .*-t 01:00:00$", script, re.MULTILINE)
    assert re.search(r"^#SBATCH --cpus-per-task=1$", script, re.MULTILINE)
    command = script.strip().splitlines()[-1]
    assert command.startswith(f"{sys.executable} -m distributed.cli.dask_worker tcp://127.0.0.1:")
    assert "--nthreads 1" in command
    assert "--lifetime 50m --lifetime-stagger 5m" in command
