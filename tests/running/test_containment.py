"""One misbehaving run harms nobody: it ends with a status, and with what it had found."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import replace
from uuid import uuid4

import pytest

import solvers
from marks import MARK, left, marked
from polarbear.data.run import Run, Status
from polarbear.errors import SolverError
from polarbear.racing.jobs import Job
from polarbear.running.solvers.processes import find_descendants, read_cgroup_limits
from polarbear.running.solvers.setup import Limits, Setup, pack
from polarbear.running.workers.outcomes import LostRun
from polarbear.running.workers.spawning import SpawnedWorker
from polarbear.running.workers.worker_process import WorkerLost, WorkerProcess
from waiting import GROWING, PATIENCE, left_of, running, wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

LIMITS = Limits(wall_seconds=PATIENCE, memory=300_000_000, processes=40)


def setup_of(clock="evaluations", limits=LIMITS, more=()):
    named = {name: f for name, f in vars(solvers).items() if callable(f)} | dict(more)
    return Setup.of(
        named, ["i"], times=[10, 100, 1000], direction="minimize", clock=clock, limits=limits
    )


def job(algorithm, horizon=1000.0):
    return Job(algorithm, "i", 0, horizon, 1, 2)


@pytest.fixture(scope="module")
def worker_of():
    """Workers by the seconds that their runs have: few for those that would never end."""
    made = {}

    def worker_of(seconds):
        if seconds not in made:
            limits = replace(LIMITS, wall_seconds=seconds)
            made[seconds] = WorkerProcess(setup_of(limits=limits))
        return made[seconds]

    yield worker_of
    for worker in made.values():
        worker.close()


@pytest.fixture(scope="module")
def worker(worker_of):
    return worker_of(PATIENCE)


MISBEHAVIOUR = {
    "segfault": (Status.CRASHED, "ended by SIGSEGV"),
    "deaf": (Status.OUT_OF_TIME, "over the limit of {:g} seconds"),
    "stopped": (Status.OUT_OF_TIME, "over the limit of {:g} seconds"),
    "hog": (Status.OUT_OF_MEMORY, "of memory"),
    "greedy": (Status.OUT_OF_MEMORY, "out of memory"),
    "flood": (Status.OUT_OF_TIME, "over the limit of {:g} seconds"),
    "bomb": (Status.CRASHED, "over the limit of 40 processes"),
    "daemon": (Status.FINISHED, ""),
    "unprintable": (Status.CRASHED, "Unprintable: (its message cannot be printed)"),
    "surrogate": (Status.CRASHED, "half a character \\ud800"),
    "elsewhere": (Status.FINISHED, ""),
    "threads": (Status.FINISHED, ""),
    "leaves": (Status.CRASHED, "SystemExit: 3"),
    "leaves_well": (Status.FINISHED, "sys.exit"),
    "gone": (Status.CRASHED, "exit code 0"),
    "base": (Status.CRASHED, "BaseException: all the way down"),
    "interrupted": (Status.CRASHED, "KeyboardInterrupt"),
    "garbage": (Status.CRASHED, "the solver returned 42: it should yield"),
    "garbage_pairs": (Status.CRASHED, "'nothing' is not a value"),
    "nan": (Status.CRASHED, "nan was reported"),
    "backwards": (Status.CRASHED, "reported time 2 after 3"),
    "infinite_time": (Status.CRASHED, "inf is not a time"),
    "recursion": (Status.CRASHED, "RecursionError"),
    "killed": (Status.KILLED, "killed from outside: perhaps the machine was out of memory"),
    "terminated": (Status.KILLED, "killed from outside, by SIGTERM"),
}


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_a_misbehaving_run_ends_with_a_status_and_what_it_had_found(worker_of, name):
    status, why = MISBEHAVIOUR[name]
    for seconds in GROWING if status == Status.OUT_OF_TIME else [PATIENCE]:
        worker = worker_of(seconds)
        outcome = worker.make_run(job(name))
        # The supervisor, and the process of the next run.
        assert len(find_descendants(worker.pid)) <= 2
        quick = worker.make_run(job("quick")).run
        if outcome.run.value and quick.status == Status.FINISHED:
            break
    assert (outcome.run.status, outcome.run.time, outcome.run.value) == (status, (3.0,), (7.0,))
    assert why.format(seconds) in outcome.why
    assert quick.value == (3.0, 2.0)


def test_a_run_that_closes_all_descriptors_is_still_heard(worker):
    outcome = worker.make_run(job("closes"))
    assert (outcome.run.value, outcome.run.status) == ((7.0, 6.0), Status.FINISHED)


def test_a_run_that_finds_very_much_is_thinned_and_exact_at_the_times(worker):
    run = worker.make_run(job("large", 90_000.0)).run
    assert run.status == Status.CUT
    assert len(run.time) < 10_000
    best = dict(zip(run.time, run.value, strict=True))
    for time_ in (10, 100, 1000, 90_000):
        assert best[time_] == 1 / time_


def test_the_memory_of_the_machine_is_that_of_its_own_control_group(tmp_path):
    listed = tmp_path / "cgroup"
    listed.write_text("4:cpu,memory:/jobs/7\n3:pids:/\n0::/user/8\n")
    limits = {
        "memory/memory.limit_in_bytes": "9000",
        "memory/jobs/memory.limit_in_bytes": "500",
        "memory/jobs/7/memory.limit_in_bytes": "700",
        "user/memory.max": "max",
        "user/8/memory.max": "600",
        "elsewhere/memory.max": "1",
    }
    for name, limit in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(limit)
    assert sorted(read_cgroup_limits(listed, tmp_path)) == [500, 600, 700, 9000]
    assert read_cgroup_limits(tmp_path / "none", tmp_path) == []


def test_a_run_holds_no_descriptor_that_can_be_written_to(tmp_path):
    (tmp_path / "read").write_text("7")
    with (
        (tmp_path / "written").open("w+") as written,
        (tmp_path / "read").open() as readable,
        closing(socket.socket()) as connection,
    ):

        def stray(_):
            """Writes wherever it can; files that are read stay open."""
            number = 0
            for descriptor in {*range(3, 300), written.fileno(), connection.fileno()}:
                with suppress(OSError):
                    os.write(descriptor, b"garbage")
                    number += 1
            yield 1, float(readable.read())
            yield 2, number

        worker = WorkerProcess(setup_of(more={"stray": stray}))
        try:
            assert worker.make_run(job("stray")).run.value == (7.0, 0.0)
        finally:
            worker.close()
    assert (tmp_path / "written").read_bytes() == b""


def test_what_is_printed_is_kept_in_part(worker):
    outcome = worker.make_run(job("talker"))
    assert outcome.output.endswith("the end of it\n")
    assert len(outcome.output) <= 4_000


def test_a_run_is_cut_at_its_horizon_or_finishes_before(worker):
    cut, finished = worker.make_run(job("good", 50.0)), worker.make_run(job("quick"))
    assert (cut.run.status, cut.run.until, cut.run.time[-1]) == (Status.CUT, 50.0, 50.0)
    assert (finished.run.status, finished.run.until) == (Status.FINISHED, 5.0)
    nothing = worker.make_run(job("silent")).run
    assert (nothing.status, nothing.until, nothing.time) == (Status.FINISHED, 0.0, ())


def test_what_a_run_used_is_known(worker_of):
    begin = time.monotonic()
    outcome = worker_of(1.0).make_run(job("deaf"))
    assert 1.0 <= outcome.seconds <= time.monotonic() - begin
    assert 0 < outcome.cpu <= outcome.seconds + 0.5  # how much of a second, others decide
    assert 0 <= outcome.memory < 300_000_000
    assert outcome.host
    assert outcome.load >= 0


def test_by_the_wall_clock_a_silent_run_is_cut_at_its_horizon():
    worker = WorkerProcess(setup_of(clock="wall", limits=Limits(wall_seconds=120)))
    try:
        for name in ("sleeper", "child_sleeper", "deaf"):
            run = worker.make_run(job(name, 0.3))
            # It said that it found 7 at time 3, which is after its horizon.
            assert (run.run.status, run.run.until) == (Status.CUT, 0.3)
            assert run.seconds < 60
    finally:
        worker.close()


def test_by_the_cpu_clock_a_silent_run_is_cut_at_its_horizon():
    def spin(job):
        job.report(1.0)
        while True:
            pass

    worker = WorkerProcess(
        setup_of(clock="cpu", limits=Limits(wall_seconds=120), more={"spin": spin})
    )
    try:
        outcome = worker.make_run(job("spin", 0.3))
        assert (outcome.run.status, outcome.run.until) == (Status.CUT, 0.3)
        assert outcome.cpu >= 0.3
    finally:
        worker.close()


def test_cpu_and_address_space_can_be_limited():
    worker = WorkerProcess(setup_of(limits=Limits(cpu_seconds=0.3)))
    burnt = worker.make_run(job("burner"))
    worker.close()
    assert (burnt.run.status, burnt.run.value) == (Status.OUT_OF_TIME, (7.0,))
    assert "CPU seconds" in burnt.why
    worker = WorkerProcess(setup_of(limits=Limits(address_space=1_000_000_000)))
    hog = worker.make_run(job("hog"))
    worker.close()
    assert (hog.run.status, hog.why) == (Status.OUT_OF_MEMORY, "out of memory")


def test_runs_do_not_share_chance():
    import random

    import numpy as np

    def lucky(_):
        yield 1, random.random()
        yield 2, -np.random.random()  # noqa: NPY002

    worker = WorkerProcess(setup_of(more={"lucky": lucky}))
    try:
        same = [worker.make_run(job("lucky")).run.value for _ in range(2)]
        other = worker.make_run(job("lucky")._replace(seed=9)).run.value
        assert same[0] == same[1] != other
    finally:
        worker.close()


@pytest.mark.slow
def test_without_fork_a_run_is_a_new_python():
    worker = SpawnedWorker(setup_of(limits=Limits(wall_seconds=120)))
    named = ("quick", "segfault", "unprintable", "gone")
    made = {name: worker.make_runs([job(name)])[0] for name in named}
    assert made["quick"].run == Run("quick", "i", (1.0, 5.0), (3.0, 2.0), 5.0, 0, Status.FINISHED)
    for name in named[1:]:
        assert (made[name].run.status, made[name].run.value) == (Status.CRASHED, (7.0,))
    assert "(its message cannot be printed)" in made["unprintable"].why
    worker.close()
    assert isinstance(worker.make_runs([job("quick")])[0], LostRun)
    timed = SpawnedWorker(setup_of(clock="wall", limits=Limits(wall_seconds=120)))
    assert timed.make_runs([job("child_sleeper", 0.3)])[0].run.status == Status.CUT


def test_closing_a_worker_ends_its_run():
    worker = WorkerProcess(setup_of(limits=Limits()))
    worker._connection.send(("run", (job("child_sleeper"),), None))
    below = wait_until(lambda: len(found := find_descendants(worker.pid)) == 4 and found)
    worker.close()
    assert left_of(lambda: running(below)) == []


@pytest.mark.parametrize("victim", ["guard", "supervisor"])
def test_if_the_supervisor_or_its_guard_is_killed_so_is_its_run(victim):
    import threading

    worker = WorkerProcess(setup_of(limits=Limits()))
    pid, errors = worker.pid, []

    def run():
        try:
            worker.make_run(job("child_sleeper"))
        except WorkerLost as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    below = wait_until(lambda: len(found := find_descendants(pid)) == 4 and found)
    os.kill(pid if victim == "guard" else find_descendants(pid)[0], signal.SIGKILL)
    thread.join(120)
    assert len(errors) == 1
    assert left_of(lambda: running(below)) == []


STARTER = """
import sys, time
from polarbear.running.workers.worker_process import WorkerProcess
sys.path.insert(0, sys.argv[1])
worker = WorkerProcess()
time.sleep(600)
"""


def test_a_worker_that_is_importing_ends_with_its_parent(tmp_path):
    """Of a module that takes long to load, in place of one that every worker loads."""
    slow = "import time\nfrom pathlib import Path\nPath(__file__).with_name('loading').touch()\n"
    (tmp_path / "threadpoolctl.py").write_text(slow + "time.sleep(600)\n")
    mark = uuid4().hex
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)], env=os.environ | {MARK: mark}
    )
    wait_until((tmp_path / "loading").exists)
    assert len(marked(mark)) == 2
    starter.kill()
    starter.wait()
    assert left(mark) == []


def test_a_started_worker_gets_its_setup_as_bytes():
    packed = pack(setup_of())
    worker = WorkerProcess()
    try:
        for _ in range(2):
            assert worker.make_run(job("quick"), packed).run.value == (3.0, 2.0)
        assert worker.make_run(job("segfault"), packed).why.startswith(
            "ended by SIGSEGV; it printed last: "
        )
        broken = packed._replace(key="other", content=b"nothing")
        with pytest.raises(SolverError, match="cannot be loaded"):
            worker.make_run(job("quick"), broken)
        assert worker.make_run(job("quick"), packed).run.value == (3.0, 2.0)
    finally:
        worker.close()
