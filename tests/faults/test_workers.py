"""Workers are killed or stopped, and schedulers restarted, while a race goes on: nothing changes.

``POLARBEAR_KILLS=100 pytest tests/faults`` is the long version; by default there are a few, and
those on Dask are slow.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

import clusters
import killing
import polarbear as pb
from course import HOLD, run
from disturbing import BUDGET, CODE, LONG, UNTIL_GONE, Tally, meanwhile
from marks import MARK, PYTHONPATH, left
from polarbear.coordinator.run_race import MAX_WORKER_LOSSES
from polarbear.running.solvers.processes import find_descendants
from waiting import children, left_of, running, wait_until

HERE = Path(__file__).parents[1] / "support"
DASK = pytest.mark.skipif(clusters.distributed is None, reason="needs Dask")
WARNINGS = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


# On this machine


def begun(path, seconds, **environment):
    words = [str(path), "2", str(seconds), str(BUDGET.runs)]
    script = [sys.executable, str(HERE / "course.py"), *words]
    return subprocess.Popen(script, stdout=subprocess.DEVNULL, env=os.environ | environment)


def find_workers(process):
    """The processes that guard and supervise runs: the children of a coordinator, and theirs."""
    guards = children(process.pid)
    return [*guards, *(pid for guard in guards for pid in children(guard))]


@pytest.mark.slow
def test_workers_are_killed_and_their_runs_made_again(tmp_path, report):
    rng, tally = random.Random(1), Tally()
    # On a slow machine all few kills may hit one run: fewer than make it a failure.
    kills = 30 if LONG else MAX_WORKER_LOSSES - 1
    while tally.done < kills:
        path = tmp_path / f"{tally.races}.db"
        process = begun(path, 0.004)
        while process.poll() is None:
            time.sleep(rng.expovariate(2.0))
            found = find_workers(process)
            if found and tally.done < kills:
                victim = rng.choice(found)
                below = find_descendants(victim)
                tally.done += _send(victim, signal.SIGKILL)
                tally.left += len(left_of(lambda below=below: running(below), UNTIL_GONE))
        assert process.returncode == 0
        tally.race(killing.stored(path))
    tally.report(report, "worker of this machine killed (SIGKILL)")


@pytest.mark.slow
def test_a_worker_that_is_stopped_for_a_while_goes_on(tmp_path):
    path, held = tmp_path / "race.db", tmp_path / "held"
    held.touch()
    process = begun(path, 0.02, **{HOLD: str(held)})
    stopped = wait_until(lambda: len(found := find_workers(process)) >= 2 and found)[0]
    os.kill(stopped, signal.SIGSTOP)
    held.unlink()
    time.sleep(1.0)
    os.kill(stopped, signal.SIGCONT)
    assert process.wait(600) == 0
    tally = Tally()
    tally.race(killing.stored(path))
    assert tally.different == 0


@pytest.mark.slow
def test_a_coordinator_that_is_suspended_goes_on(tmp_path):
    """As a laptop whose lid is closed: everything stops, and the clocks have moved on."""
    path, held = tmp_path / "race.db", tmp_path / "held"
    held.touch()
    process = begun(path, 0.02, **{HOLD: str(held)})
    wait_until(lambda: len(find_workers(process)) >= 2)
    everybody = [process.pid, *find_descendants(process.pid)]
    for pid in everybody:
        _send(pid, signal.SIGSTOP)
    held.unlink()
    time.sleep(2.0)
    for pid in everybody:
        _send(pid, signal.SIGCONT)
    assert process.wait(600) == 0
    tally = Tally()
    tally.race(killing.stored(path))
    assert tally.different == 0


def _send(pid, number):
    """Whether there was somebody to get this signal, and not a run that has ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


# A folder


class Crew:
    """Workers of a folder, each with a mark of its own."""

    def __init__(self, folder, code):
        self.folder, self.code = folder, code
        self.workers = {}

    def start(self):
        mark = uuid4().hex
        command = [sys.executable, "-m", "polarbear", "worker", str(self.folder)]
        self.workers[mark] = subprocess.Popen(
            [*command, "--solvers", str(self.code)],
            env=os.environ | {"PYTHONPATH": PYTHONPATH, MARK: mark},
            stdout=subprocess.DEVNULL,
        )
        return mark

    def kill(self, mark):
        """Kill one: who is left of it and its run some seconds later."""
        process = self.workers.pop(mark)
        process.kill()
        process.wait()
        return left(mark, UNTIL_GONE)

    def stop(self):
        for mark in list(self.workers):
            self.kill(mark)


@pytest.fixture
def crew(tmp_path):
    code = tmp_path / "code.py"
    code.write_text(CODE)
    found = Crew(tmp_path / "spool", code)
    yield found
    found.stop()


@pytest.mark.slow
def test_workers_of_a_folder_are_killed_and_replaced(tmp_path, crew, report):
    rng, tally = random.Random(2), Tally()
    kills = 10 if LONG else 1
    while tally.done < kills:
        crew.folder = tmp_path / f"spool{tally.races}"
        for _ in range(2):
            crew.start()

        def kill(over):
            if not over.wait(rng.uniform(0.5, 3.0)) and tally.done < kills:
                tally.left += len(crew.kill(rng.choice(list(crew.workers))))
                tally.done += 1
                crew.start()

        with meanwhile(kill):
            folder = pb.backends.SharedFolder(crew.folder, patience=4.0, pause=0.02)
            tally.race(run(executor=folder, seconds=0.02, budget=BUDGET).events)
        crew.stop()
    tally.report(report, "worker of a folder killed (SIGKILL)")


@pytest.mark.slow
def test_the_late_result_of_a_worker_that_was_stopped_is_not_counted_twice(crew):
    marks = [crew.start() for _ in range(2)]

    def stop(over):
        worker = crew.workers[marks[0]]
        while not find_descendants(worker.pid) and not over.wait(0.05):
            pass
        worker.send_signal(signal.SIGSTOP)
        while [*crew.folder.glob(f"claims/*-{worker.pid}")] and not over.wait(0.05):
            pass  # nobody waits for it any more
        worker.send_signal(signal.SIGCONT)
        over.wait()

    tally = Tally()
    with meanwhile(stop):
        folder = pb.backends.SharedFolder(crew.folder, patience=3.0, pause=0.02)
        tally.race(run(executor=folder, seconds=0.02, budget=BUDGET).events)
    assert (tally.twice, tally.different) == (0, 0)


# Dask


@pytest.mark.long
@DASK
@WARNINGS
def test_workers_of_dask_are_killed_and_replaced(tmp_path, report):
    rng, tally = random.Random(3), Tally()
    kills = 30 if LONG else 2
    with clusters.cluster_at(tmp_path, 0) as (cluster, client):
        crew = {}

        def start():
            mark = uuid4().hex
            crew[mark] = cluster.start_worker(**{MARK: mark})

        def kill(over):
            if not over.wait(rng.uniform(1.0, 3.0)) and tally.done < kills:
                mark = rng.choice(list(crew))
                crew[mark].kill()
                crew.pop(mark).wait()
                tally.done += 1
                tally.left += len(left(mark, UNTIL_GONE))
                start()

        for _ in range(3):
            start()
        client.wait_for_workers(3, timeout=120)
        while tally.done < kills:
            with meanwhile(kill):
                tally.race(run(executor=client, seconds=0.05, budget=BUDGET).events)
    tally.report(report, "Dask worker killed (SIGKILL)")


@pytest.mark.long
@DASK
@WARNINGS
def test_a_scheduler_that_is_killed_and_started_again(tmp_path, report):
    tally = Tally()
    for trial in range(3 if LONG else 1):
        with clusters.cluster_at(tmp_path, 2) as (cluster, client):

            def restart(over, cluster=cluster, trial=trial):
                over.wait(2.0 + trial)
                cluster.scheduler.kill()
                cluster.scheduler.wait()
                cluster.scheduler = cluster.start_scheduler()
                for _ in range(2):
                    cluster.start_worker()
                over.wait()

            with meanwhile(restart):
                tally.race(run(executor=client, seconds=0.05, budget=BUDGET).events)
            tally.done += 1
    tally.report(report, "Dask scheduler killed and started again")


@pytest.mark.long
@DASK
@WARNINGS
def test_a_worker_of_dask_that_is_stopped_is_replaced_and_may_come_back(tmp_path, report):
    tally = Tally()
    ttl = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "3s"}
    with clusters.cluster_at(tmp_path, 2, **ttl) as (cluster, client):

        def stop(over):
            over.wait(1.5)
            cluster.workers[0].send_signal(signal.SIGSTOP)
            over.wait(8.0)
            cluster.workers[0].send_signal(signal.SIGCONT)
            over.wait()

        with meanwhile(stop):
            tally.race(run(executor=client, seconds=0.05, budget=BUDGET).events)
    tally.done = 1
    tally.report(report, "Dask worker stopped (SIGSTOP), later continued")
