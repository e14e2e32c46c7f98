"""Where runs are made: the same outcomes everywhere, as they come, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import solvers
from disturbing import UNTIL_GONE
from polarbear.data.run import Status
from polarbear.errors import SolverError
from polarbear.racing.budget import Budget
from polarbear.racing.jobs import Job, RunId, job
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.running.backends import executors
from polarbear.running.backends.checking import check
from polarbear.running.backends.dispatcher import Dispatcher, collect_results
from polarbear.running.backends.interface import start_backend
from polarbear.running.backends.local_processes import LocalProcesses
from polarbear.running.solvers.processes import find_descendants, list_cores
from polarbear.running.solvers.setup import Limits, Setup, pack
from polarbear.running.workers.outcomes import LostRun, RunOutcome, from_plain, to_plain
from racers import SKILL, TIMES, history, race_of
from waiting import GROWING, PATIENCE, left_of, running, wait_for_outcomes, wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def setup_of(**more):
    named = {"good": solvers.good, "quick": solvers.quick, "naps": solvers.naps, **more}
    return Setup.of(named, solvers.drawn, times=[10, 100], direction="minimize")


def jobs_of(algorithms, n, horizon=100.0):
    return [job(0, RunId(name, str(k), 0), horizon) for k in range(n) for name in algorithms]


def decisions(outcomes):
    """What does not depend on where a run was made."""
    return sorted((o.run for o in outcomes), key=lambda run: (run.algorithm, run.instance))


@pytest.fixture(scope="module")
def expected():
    with closing(start_backend(setup_of(), 1)) as backend:
        backend.submit(jobs_of(["good", "quick", "naps"], 4))
        return decisions(wait_for_outcomes(backend))


def executor(kind):
    if kind == "threads":
        return ThreadPoolExecutor(2)
    return ProcessPoolExecutor(2, mp_context=get_context(kind))


def test_one_or_two_workers_give_the_same_runs(expected):
    with closing(start_backend(setup_of(), LocalProcesses(2, pin=True))) as backend:
        backend.submit(jobs_of(["good", "quick", "naps"], 4))
        assert decisions(wait_for_outcomes(backend)) == expected
    assert [run.status for run in expected[:1]] == [Status.CUT]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", "forkserver", "fork"])
def test_any_executor_makes_the_same_runs(kind, expected):
    with executor(kind) as pool, closing(start_backend(setup_of(), pool)) as backend:
        backend.submit(jobs_of(["good", "quick", "naps"], 4))
        assert decisions(wait_for_outcomes(backend)) == expected
    assert executors._idle == []


def test_outcomes_come_as_they_are_made():
    with closing(start_backend(setup_of(slow=lambda _: time.sleep(600)), 2)) as backend:
        backend.submit([*jobs_of(["slow"], 1), *jobs_of(["quick"], 3)])
        assert backend.pending == 4
        found = []
        while len(found) < 3:
            found += backend.outcomes()
        assert {outcome.job.algorithm for outcome in found} == {"quick"}
        assert (backend.pending, backend.outcomes(timeout=0.05)) == (1, [])
    assert backend.pending == 0


def test_queued_jobs_can_be_cancelled():
    with closing(start_backend(setup_of(), 1)) as backend:
        wanted = jobs_of(["naps", "quick"], 20)
        backend.submit(wanted)
        back = backend.cancel(["naps"])
        assert {taken.algorithm for taken in back} == {"naps"}
        assert len(back) >= 18
        ran = wait_for_outcomes(backend)
        assert len(ran) + len(back) == 40
        assert sum(outcome.job.algorithm == "quick" for outcome in ran) == 20


def test_the_run_of_a_killed_worker_is_lost():
    with closing(start_backend(setup_of(slow=lambda _: time.sleep(600)), 1)) as backend:
        backend.submit([*jobs_of(["slow"], 1), *jobs_of(["quick"], 2)])
        worker = backend._pool._workers[0].pid
        wait_until(lambda: len(find_descendants(worker)) > 1)
        os.kill(worker, signal.SIGKILL)
        found = wait_for_outcomes(backend)
    assert [type(outcome) for outcome in found] == [LostRun, RunOutcome, RunOutcome]
    assert found[0].job.algorithm == "slow"
    assert found[0].was_running


class Losing:
    """A backend that loses whatever it is given, and remembers what went together."""

    call_seconds, n_workers = 10.0, 1

    def __init__(self):
        self.calls = []

    def submit(self, jobs):
        self.calls.append(jobs)
        future = Future()
        future.set_exception(OSError("the worker is gone"))
        return future

    gather = staticmethod(collect_results)


def test_jobs_lost_together_are_retried_alone():
    backend = Losing()
    pool = Dispatcher(backend)
    pool._run_seconds = 0.01  # short runs go together
    wanted = jobs_of(["quick"], 8)
    pool.submit(wanted)
    first = wait_for_outcomes(pool)
    assert max(map(len, backend.calls)) > 1
    assert {lost.job for lost in first if lost.was_running} == {
        c[0] for c in backend.calls if len(c) == 1
    }
    backend.calls.clear()
    pool.submit(wanted)
    assert all(lost.was_running for lost in wait_for_outcomes(pool))
    assert [len(jobs) for jobs in backend.calls] == [1] * 8


def test_solvers_that_cannot_be_loaded_stop_the_race(tmp_path, monkeypatch):
    (tmp_path / "vanishing.py").write_text("def solver(job): yield 1, 2.0")
    monkeypatch.syspath_prepend(tmp_path)
    import vanishing

    with ThreadPoolExecutor(1) as pool:
        backend = start_backend(setup_of(gone=vanishing.solver), pool)
        (tmp_path / "vanishing.py").unlink()
        backend.submit(jobs_of(["gone"], 1))
        with pytest.raises(SolverError, match="cannot be loaded where they are to run"):
            backend.outcomes()
        backend.close()


def test_an_executor_can_start_a_backend_of_its_own(expected):
    class Own:
        def start_backend(self, setup):
            return start_backend(setup, 1)

    with closing(start_backend(setup_of(), Own())) as backend:
        backend.submit(jobs_of(["good", "quick", "naps"], 4))
        assert decisions(wait_for_outcomes(backend)) == expected


def test_an_executor_that_is_shut_down_is_an_error():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    backend = start_backend(setup_of(), pool)
    with pytest.raises(SolverError, match="accepts no more jobs"):
        backend.submit(jobs_of(["quick"], 1))
    for wrong in ("dask", 2.5, [2]):
        with pytest.raises(SolverError, match="expected a number of processes"):
            start_backend(setup_of(), wrong)
    with pytest.raises(SolverError, match="n_workers=0"):
        LocalProcesses(0)


def test_large_instances_give_a_warning():
    setup = Setup.of({"a": solvers.quick}, {"x": b"0" * 2_000_000}, times=[1], direction="minimize")
    with pytest.warns(UserWarning, match="2.0 MB, sent with every job"):
        pack(setup)


COORDINATOR = """
import sys, time
from polarbear.racing.jobs import RunId, job
from polarbear.running.backends.interface import start_backend
from polarbear.running.solvers.setup import Setup
import solvers
from racers import SKILL, TIMES, history, race_of
setup = Setup.of([solvers.child_sleeper], ["i"], times=[10], direction="minimize")
{make}
backend.submit([job(0, RunId("child_sleeper", "i", k), 10.0) for k in range(2)])
print("started", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        "backend = start_backend(setup, 2)",
        "import concurrent.futures as c; backend = start_backend(setup, c.ThreadPoolExecutor(2))",
    ],
)
def test_a_killed_coordinator_leaves_no_process(make):
    code = f"import sys; sys.path.insert(0, {str(Path(solvers.__file__).parent)!r})\n"
    words = [sys.executable, "-c", code + COORDINATOR.format(make=make)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as coordinator:
        try:
            assert coordinator.stdout.readline() == b"started\n"
            # Two guards, each with a supervisor, a run, its child, and the next run.
            below = wait_until(
                lambda: len(found := find_descendants(coordinator.pid)) >= 10 and found
            )
        finally:
            coordinator.kill()
    assert left_of(lambda: running(below), UNTIL_GONE) == []


INTERRUPTED = """
import os, signal
import solvers
from polarbear.running.backends.interface import start_backend
from polarbear.running.solvers.processes import find_descendants
from polarbear.running.solvers.setup import Setup
from waiting import left_of, running
me, forks = os.getpid(), []
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
def forked():
    forks.append(1)
    if len(forks) == 3 and os.getpid() == me:  # guards fork as well, and would interrupt again
        os.kill(me, signal.SIGINT)
os.register_at_fork(after_in_parent=forked)
try:
    start_backend(Setup.of([solvers.quick], ["i"], times=[10], direction="minimize"), 4)
except KeyboardInterrupt:
    print("heard, and left are", left_of(lambda: running(find_descendants(me))))
"""


def test_an_interrupt_during_a_fork_leaves_no_process():
    code = f"import sys; sys.path.insert(0, {str(Path(solvers.__file__).parent)!r})\n"
    command = [sys.executable, "-c", code + INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("heard, and left are []\n", "")


def test_outcomes_can_be_written_as_text():
    made = Job("a\n", "b;", 3, 10.0, 1, 2)
    run = made.run((1.0, 2.0), (float("inf"), 1e308), until=5.0, status=Status.KILLED)
    outcome = RunOutcome(made, run, "why", 1.0, 2.0, 3, 4.0, "host", "out")
    assert from_plain(to_plain(outcome)) == outcome


def test_list_cores():
    assert 1 <= len(list_cores()) <= (os.cpu_count() or 1)


@pytest.mark.slow
def test_check_reports_each_solver():
    def silent(_):
        return None

    def checked(seconds, **named):
        how = {"times": [10, 100], "direction": "maximize", "limits": Limits(threads=2)}
        return check(named, lambda rng: rng, seconds=seconds, **how)

    found = checked(PATIENCE, quick=solvers.quick, silent=silent, bad=solvers.nan)
    text = str(found)
    assert "3 solvers on instances without end, maximize" in text
    assert "finished at 5 evaluations, 1 improvement" in text
    stuck = "out of time at 3 evaluations, 1 improvement"
    assert any(stuck in str(checked(seconds, stuck=solvers.sleeper)) for seconds in GROWING)
    assert list(found.problems) == ["silent", "bad"]
    assert "does it yield" in found.problems["silent"]
    assert "nan was reported" in found.problems["bad"]


def skilled(job):
    values = job.rng.gumbel(size=len(TIMES)) + SKILL[job.algorithm] + 30 * np.arange(len(TIMES))
    yield from zip(TIMES, values, strict=True)


def driven(executor):
    """A race on an backend, as whoever drives one writes it."""
    race = race_of(question=ParetoSet(certainty=0.9), budget=Budget(batch=(2, 4), runs=60))
    setup = Setup.of(
        dict.fromkeys(race.pareto, skilled), solvers.drawn, times=TIMES, direction="maximize"
    )
    with closing(start_backend(setup, executor)) as backend:
        while jobs := race.ask():
            backend.submit(jobs)
            while backend.pending:
                for outcome in backend.outcomes():
                    race.tell(outcome.run)
    return history(race)


@pytest.mark.slow
def test_a_race_decides_the_same_on_one_or_two_workers():
    assert driven(1) == driven(2)
