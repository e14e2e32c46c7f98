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
from polarbear.data.run import Status
from polarbear.errors import SolverError
from polarbear.racing.jobs import Job, Key, job
from polarbear.racing.rules import Rules
from polarbear.running.backends import executors
from polarbear.running.backends.checking import check
from polarbear.running.backends.dispatcher import Pool, results
from polarbear.running.backends.interface import start
from polarbear.running.backends.local_processes import Local
from polarbear.running.solvers.processes import cores, descendants
from polarbear.running.solvers.setup import Limits, Setup, pack
from polarbear.running.workers.outcomes import Lost, Outcome, from_plain, to_plain
from racers import SKILL, TIMES, history, race_of
from waiting import THRICE, left_of, running, wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def setup_of(**more):
    named = {"good": solvers.good, "quick": solvers.quick, "naps": solvers.naps, **more}
    return Setup.of(named, solvers.drawn, times=[10, 100], direction="minimize")


def jobs_of(algorithms, n, horizon=100.0):
    return [job(0, Key(name, str(k), 0), horizon) for k in range(n) for name in algorithms]


def all_of(engine, timeout=180):
    found = []
    while engine.pending:
        new = engine.outcomes(timeout)
        assert new
        found += new
    return found


def decisions(outcomes):
    """What does not depend on where a run was made."""
    return sorted((o.run for o in outcomes), key=lambda run: (run.algorithm, run.instance))


@pytest.fixture(scope="module")
def expected():
    with closing(start(setup_of(), 1)) as engine:
        engine.submit(jobs_of(["good", "quick", "naps"], 4))
        return decisions(all_of(engine))


def executor(kind):
    if kind == "threads":
        return ThreadPoolExecutor(2)
    return ProcessPoolExecutor(2, mp_context=get_context(kind))


def test_local_runs_are_the_same_with_one_or_two_slots(expected):
    with closing(start(setup_of(), Local(2, pin=True))) as engine:
        engine.submit(jobs_of(["good", "quick", "naps"], 4))
        assert decisions(all_of(engine)) == expected
    assert [run.status for run in expected[:1]] == [Status.CUT]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["threads", "forkserver", "fork"])
def test_any_executor_will_do(kind, expected):
    with executor(kind) as pool, closing(start(setup_of(), pool)) as engine:
        engine.submit(jobs_of(["good", "quick", "naps"], 4))
        assert decisions(all_of(engine)) == expected
    assert executors._idle == []


def test_outcomes_come_as_they_are_made():
    with closing(start(setup_of(slow=lambda _: time.sleep(600)), 2)) as engine:
        engine.submit([*jobs_of(["slow"], 1), *jobs_of(["quick"], 3)])
        assert engine.pending == 4
        found = []
        while len(found) < 3:
            found += engine.outcomes()
        assert {outcome.job.algorithm for outcome in found} == {"quick"}
        assert (engine.pending, engine.outcomes(timeout=0.05)) == (1, [])
    assert engine.pending == 0


def test_jobs_that_wait_can_be_taken_back():
    with closing(start(setup_of(), 1)) as engine:
        wanted = jobs_of(["naps", "quick"], 20)
        engine.submit(wanted)
        back = engine.cancel(["naps"])
        assert {taken.algorithm for taken in back} == {"naps"}
        assert len(back) >= 18
        ran = all_of(engine)
        assert len(ran) + len(back) == 40
        assert sum(outcome.job.algorithm == "quick" for outcome in ran) == 20


def test_if_a_slot_is_killed_its_run_is_lost_and_the_engine_goes_on():
    with closing(start(setup_of(slow=lambda _: time.sleep(600)), 1)) as engine:
        engine.submit([*jobs_of(["slow"], 1), *jobs_of(["quick"], 2)])
        slot = engine._backend._slots[0].pid
        wait_until(lambda: len(descendants(slot)) > 1)
        os.kill(slot, signal.SIGKILL)
        found = all_of(engine)
    assert [type(outcome) for outcome in found] == [Lost, Outcome, Outcome]
    assert found[0].job.algorithm == "slow"
    assert found[0].blamed


class Losing:
    """A backend that loses whatever it is given, and remembers what went together."""

    call_seconds, slots = 10.0, 1

    def __init__(self):
        self.calls = []

    def submit(self, jobs):
        self.calls.append(jobs)
        future = Future()
        future.set_exception(OSError("the worker is gone"))
        return future

    gather = staticmethod(results)


def test_what_was_lost_in_company_goes_alone_before_it_is_blamed():
    backend = Losing()
    pool = Pool(backend)
    pool._seconds = 0.01  # short runs go together
    wanted = jobs_of(["quick"], 8)
    pool.submit(wanted)
    first = all_of(pool)
    assert max(map(len, backend.calls)) > 1
    assert {lost.job for lost in first if lost.blamed} == {
        c[0] for c in backend.calls if len(c) == 1
    }
    backend.calls.clear()
    pool.submit(wanted)
    assert all(lost.blamed for lost in all_of(pool))
    assert [len(jobs) for jobs in backend.calls] == [1] * 8


def test_solvers_that_cannot_be_loaded_stop_the_race(tmp_path, monkeypatch):
    (tmp_path / "vanishing.py").write_text("def solver(job): yield 1, 2.0")
    monkeypatch.syspath_prepend(tmp_path)
    import vanishing

    with ThreadPoolExecutor(1) as pool:
        engine = start(setup_of(gone=vanishing.solver), pool)
        (tmp_path / "vanishing.py").unlink()
        engine.submit(jobs_of(["gone"], 1))
        with pytest.raises(SolverError, match="cannot be loaded where they are to run"):
            engine.outcomes()
        engine.close()


def test_an_executor_that_is_shut_down_is_said_to_be():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    engine = start(setup_of(), pool)
    with pytest.raises(SolverError, match="takes no more jobs"):
        engine.submit(jobs_of(["quick"], 1))
    for wrong in ("dask", 2.5, [2]):
        with pytest.raises(SolverError, match="expected a number of processes"):
            start(setup_of(), wrong)
    with pytest.raises(SolverError, match="slots=0"):
        Local(0)


def test_heavy_instances_are_warned_of():
    setup = Setup.of({"a": solvers.quick}, {"x": b"0" * 2_000_000}, times=[1], direction="minimize")
    with pytest.warns(UserWarning, match="2.0 MB, sent with every job"):
        pack(setup)


COORDINATOR = """
import sys, time
from polarbear.racing.jobs import Key, job
from polarbear.running.backends.interface import start
from polarbear.running.solvers.setup import Setup
import solvers
from racers import SKILL, TIMES, history, race_of
setup = Setup.of([solvers.child_sleeper], ["i"], times=[10], direction="minimize")
{make}
engine.submit([job(0, Key("child_sleeper", "i", k), 10.0) for k in range(2)])
print("started", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        "engine = start(setup, 2)",
        "import concurrent.futures as c; engine = start(setup, c.ThreadPoolExecutor(2))",
    ],
)
def test_no_process_is_left_two_seconds_after_the_coordinator_is_killed(make):
    code = f"import sys; sys.path.insert(0, {str(Path(solvers.__file__).parent)!r})\n"
    words = [sys.executable, "-c", code + COORDINATOR.format(make=make)]

    def seconds():
        with subprocess.Popen(words, stdout=subprocess.PIPE) as coordinator:
            try:
                assert coordinator.stdout.readline() == b"started\n"
                # Two guards, each with a supervisor, a run, its child, and the next run.
                below = wait_until(
                    lambda: len(found := descendants(coordinator.pid)) >= 10 and found
                )
            finally:
                coordinator.kill()
        begin = time.monotonic()
        assert left_of(lambda: running(below)) == []
        return time.monotonic() - begin

    assert any(seconds() < 2 for _ in range(THRICE))


INTERRUPTED = """
import os, signal
import solvers
from polarbear.running.backends.interface import start
from polarbear.running.solvers.processes import descendants
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
    start(Setup.of([solvers.quick], ["i"], times=[10], direction="minimize"), 4)
except KeyboardInterrupt:
    print("heard, and left are", left_of(lambda: running(descendants(me))))
"""


def test_who_interrupts_in_the_middle_of_a_fork_is_heard_and_nobody_is_left():
    code = f"import sys; sys.path.insert(0, {str(Path(solvers.__file__).parent)!r})\n"
    command = [sys.executable, "-c", code + INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("heard, and left are []\n", "")


def test_outcomes_can_be_written_as_text():
    made = Job("a\n", "b;", 3, 10.0, 1, 2)
    run = made.run((1.0, 2.0), (float("inf"), 1e308), until=5.0, status=Status.KILLED)
    outcome = Outcome(made, run, "why", 1.0, 2.0, 3, 4.0, "host", "out")
    assert from_plain(to_plain(outcome)) == outcome


def test_there_are_cores():
    assert 1 <= len(cores()) <= (os.cpu_count() or 1)


@pytest.mark.slow
def test_check_says_what_was_understood():
    def silent(_):
        return None

    found = check(
        {"quick": solvers.quick, "silent": silent, "stuck": solvers.burner, "bad": solvers.nan},
        lambda rng: rng,
        times=[10, 100],
        direction="maximize",
        seconds=2.0,
        limits=Limits(threads=2),
    )
    text = str(found)
    assert "4 solvers on instances without end, maximize" in text
    assert "finished at 5 evaluations, 1 improvement" in text
    assert "out of time at 3 evaluations, 1 improvement" in text
    assert list(found.problems) == ["silent", "bad"]
    assert "does it yield" in found.problems["silent"]
    assert "nan was reported" in found.problems["bad"]


def skilled(job):
    values = job.rng.gumbel(size=len(TIMES)) + SKILL[job.algorithm] + 30 * np.arange(len(TIMES))
    yield from zip(TIMES, values, strict=True)


def driven(executor):
    """A race on an engine, as whoever drives one writes it."""
    race = race_of(rules=Rules(alpha=0.9, batch=(2, 4), max_runs=60))
    setup = Setup.of(
        dict.fromkeys(race.pareto, skilled), solvers.drawn, times=TIMES, direction="maximize"
    )
    with closing(start(setup, executor)) as engine:
        while jobs := race.ask():
            engine.submit(jobs)
            while engine.pending:
                for outcome in engine.outcomes():
                    race.tell(outcome.run)
    return history(race)


@pytest.mark.slow
def test_a_race_decides_the_same_wherever_its_runs_are_made():
    assert driven(1) == driven(2)
