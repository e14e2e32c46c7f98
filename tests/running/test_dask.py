"""Dask: a real scheduler and real workers, added and killed while runs are made."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing

import pytest

import solvers
from clusters import ENVIRONMENT, cluster_at
from course import decisions, run, short, told
from polarbear.data.run import Status
from polarbear.racing.jobs import RunId, job
from polarbear.running.backends.interface import start_backend
from polarbear.running.solvers.processes import find_descendants
from polarbear.running.solvers.setup import Limits, Setup
from polarbear.running.workers.outcomes import LostRun, RunOutcome
from waiting import PATIENCE, THRICE, wait_for_outcomes, wait_until

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with cluster_at(tmp_path_factory.mktemp("dask"), 2) as found:
        yield found


def setup_of(**more):
    named = {n: f for n, f in vars(solvers).items() if callable(f) and n != "drawn"} | more
    limits = Limits(cpu_seconds=1.0, memory=300_000_000)
    return Setup.of(named, solvers.drawn, times=[10, 100], direction="minimize", limits=limits)


def jobs_of(algorithms, n, first=0):
    return [job(0, RunId(a, str(k), 0), 100.0) for k in range(first, first + n) for a in algorithms]


def key(outcome):
    return outcome.job.algorithm, outcome.job.instance


@pytest.mark.slow
def test_runs_are_those_of_a_single_process_and_bad_ones_harm_nobody(shared):
    _, client = shared
    names = ["good", "quick", "naps", "segfault", "gone", "unprintable"]
    wanted = [*jobs_of(["deaf"], 1), *jobs_of(names, 3)]
    found = {}
    for executor in (client, 2):
        with closing(start_backend(setup_of(), executor)) as backend:
            backend.submit(wanted)
            found[executor] = sorted(
                (o.run for o in wait_for_outcomes(backend)), key=lambda run: run[:2]
            )
    assert found[client] == found[2]
    assert len(found[client]) == len(wanted)
    assert len(client.nthreads()) == 2


@pytest.mark.slow
def test_a_race_is_the_same_as_on_this_machine(shared):
    _, client = shared
    result, here = (run(executor=executor, budget=short(40)) for executor in (client, 1))
    assert 1 <= len(result.state.ledger.workers) <= 2  # which process made a run is kept
    assert decisions(result.events) == decisions(here.events)
    assert told(result.events) == told(here.events)


@pytest.mark.slow
def test_short_runs_go_together(shared):
    _, client = shared
    with closing(start_backend(setup_of(), client)) as backend:
        sizes = set()

        def go_together():  # as soon as the machine is not so busy that runs are long
            backend.submit(jobs_of(["quick"], 60))
            while backend.pending:
                sizes.update(len(jobs) for jobs in backend._submitted.values())
                assert backend.outcomes(PATIENCE)
            return max(sizes) > 2

        wait_until(go_together)
    assert 1 in sizes


COORDINATOR = """
import time, distributed, solvers
from polarbear.racing.jobs import RunId, job
from polarbear.running.backends.interface import start_backend
from polarbear.running.solvers.setup import Setup
setup = Setup.of([solvers.child_sleeper], ["i"], times=[10], direction="minimize")
backend = start_backend(setup, distributed.Client("{address}"))
backend.submit([job(0, RunId("child_sleeper", "i", k), 10.0) for k in range(2)])
time.sleep(600)
"""


def test_a_run_that_nobody_wants_any_more_is_ended(shared):
    cluster, client = shared

    def processes():  # a guard, a supervisor, a run, its child, and the next run
        return [len(find_descendants(worker.pid)) for worker in cluster.workers]

    setup = Setup.of([solvers.child_sleeper], ["i"], times=[10], direction="minimize")
    backend = start_backend(setup, client)
    backend.submit([job(0, RunId("child_sleeper", "i", k), 10.0) for k in range(2)])
    wait_until(lambda: processes() == [5, 5])
    assert len(backend.cancel(["child_sleeper"])) == 2
    wait_until(lambda: max(processes()) <= 3)
    backend.close()


@pytest.mark.long
def test_runs_end_two_seconds_after_their_coordinator_is_killed(shared):
    cluster, _ = shared
    code = COORDINATOR.format(address=cluster.address)

    def seconds():
        coordinator = subprocess.Popen([sys.executable, "-c", code], env=ENVIRONMENT)
        try:
            wait_until(lambda: [len(find_descendants(w.pid)) for w in cluster.workers] == [5, 5])
        finally:
            coordinator.kill()
            coordinator.wait()
        begin = time.monotonic()
        wait_until(lambda: max(len(find_descendants(w.pid)) for w in cluster.workers) <= 3)
        return time.monotonic() - begin

    assert any(seconds() < 2 for _ in range(THRICE))


@pytest.mark.long
def test_workers_come_and_go_and_no_run_is_lost(shared):
    cluster, client = shared
    wanted = jobs_of(["naps"], 80, first=1000)
    with closing(start_backend(setup_of(), client)) as backend:
        backend.submit(wanted)
        found = backend.outcomes(60)
        extra = cluster.start_worker()
        client.wait_for_workers(3, timeout=120)
        os.kill(cluster.workers[0].pid, signal.SIGKILL)
        while missing := {key_of(j) for j in wanted} - {key(o) for o in found if made(o)}:
            new = backend.outcomes(60)
            lost = [outcome.job for outcome in new if isinstance(outcome, LostRun)]
            backend.submit(lost)  # as a race would
            found += new
            assert new or not missing
    runs = [o.run for o in found if made(o)]
    assert len(runs) == len(wanted)
    assert {run.status for run in runs} == {Status.FINISHED}
    cluster.workers[0] = extra


def key_of(wanted):
    return wanted.algorithm, wanted.instance


def made(outcome):
    return isinstance(outcome, RunOutcome)


@pytest.mark.long
def test_when_the_scheduler_is_killed_runs_are_lost_and_asked_for_again(tmp_path):
    with (
        cluster_at(tmp_path, 1) as (cluster, client),
        closing(start_backend(setup_of(), client)) as backend,
    ):
        backend.submit(jobs_of(["naps"], 40))
        first = backend.outcomes(60)
        cluster.scheduler.kill()
        cluster.scheduler.wait()
        cluster.scheduler = cluster.start_scheduler()
        cluster.start_worker()
        found, end = list(first), time.monotonic() + 90
        while sum(map(made, found)) < 40:
            new = backend.outcomes(5)
            backend.submit([o.job for o in new if isinstance(o, LostRun)])
            found += new
            assert time.monotonic() < end
    assert {key(o) for o in found if made(o)} == {key_of(j) for j in jobs_of(["naps"], 40)}
    assert any(isinstance(outcome, LostRun) for outcome in found)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_local_cluster_of_any_size_makes_the_same_runs(workers):
    wanted = jobs_of(["good", "quick", "naps"], 5)
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
        closing(start_backend(setup_of(), client)) as backend,
    ):
        backend.submit(wanted)
        found = sorted(outcome.run for outcome in wait_for_outcomes(backend))
    with closing(start_backend(setup_of(), 1)) as backend:
        backend.submit(wanted)
        assert found == sorted(outcome.run for outcome in wait_for_outcomes(backend))
