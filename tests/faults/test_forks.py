"""For a while the system has no room for another process: races wait, and no run is lost.

``POLARBEAR_KILLS=100 pytest tests/faults/test_forks.py`` is the long version, which takes the room
for 0.3, 2 and 10 seconds; by default it is 0.3.
"""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import killing
import polarbear as pb
from disturbing import LONG
from polarbear.data.run import FAILED, Status
from polarbear.racing.events import Told
from waiting import PATIENCE, wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

ROOM = 60
"""Processes and threads that the user of a race may have."""

CODE = f"""
import glob, os, resource, signal, sys, time
import polarbear as pb
from polarbear.running.workers.provenance import describe_worker

full = None

def python(job):
    if full:
        open(f"{{full}}-{{os.getpid()}}", "w").close()
    while len(glob.glob(f"{{full}}-*")) > 12 and not os.path.exists(full):
        time.sleep(0.01)
    yield 1, job.rng.random()

line = r"t (?P<time>\\S+) v (?P<value>\\S+)"
words = ["sh", "-c", "echo t 1 v 0.{{seed}}"]
program = pb.Command(words, pattern=line, clock="evaluations")

def fit(rankings, *, seed):
    return pb.fit(rankings, seed=seed, draws=100)

def race(runs, **more):
    return pb.race(
        {{"python": python, "program": program, "other": python}},
        range(60), [1, 10], direction="minimize", executor=2,
        question=pb.ParetoSet(certainty=0.999, fit=fit),
        budget=pb.Budget(batch=(8, 8), runs=runs), **more,
    )

race(24)  # all is loaded from here on, which another user may not be able to do
describe_worker()
if sys.argv[2] == "ignoring":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
else:
    full = sys.argv[3]  # after some runs the others wait until there is no room
    os.setresuid(*3 * [int(sys.argv[2])])
    resource.setrlimit(resource.RLIMIT_NPROC, ({ROOM}, {ROOM}))
race(72, store=sys.argv[1]).close()
"""


def statuses(store):
    return [event.run.status for event in killing.stored(store) if isinstance(event, Told)]


def launch(folder, how):
    script = folder / "race.py"
    script.write_text(CODE)
    words = [script, folder / "race.db", str(how), folder / "full"]
    return subprocess.Popen([sys.executable, *words])


def fill(user, seconds, full):
    """Take all the room of a user for a while, and make a file when it is taken."""
    child = os.fork()
    if child == 0:
        taken = []
        try:
            os.setresuid(user, user, user)
            resource.setrlimit(resource.RLIMIT_NPROC, (ROOM, ROOM))
            end = None
            while end is None or time.monotonic() < end:
                try:
                    pid = os.fork()
                except OSError:
                    if end is None:
                        full.touch()
                        end = time.monotonic() + seconds
                    continue
                if pid == 0:
                    signal.signal(signal.SIGINT, signal.SIG_DFL)
                    time.sleep(PATIENCE)
                    os._exit(0)
                taken.append(pid)
        finally:
            for pid in taken:
                os.kill(pid, signal.SIGKILL)
            os._exit(0)
    os.waitpid(child, 0)


@pytest.fixture
def folder():
    place = Path(
        tempfile.mkdtemp()
    )  # other users can go through it, unlike through those of pytest
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)


@pytest.mark.slow
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="needs another user")
@pytest.mark.parametrize("seconds", [0.3, 2.0, 10.0] if LONG else [0.3])
def test_no_run_is_lost_while_the_system_has_no_room_for_processes(folder, seconds, report):
    user = 60_000 + os.getpid() % 5_000  # who has no other processes
    race, store = launch(folder, user), folder / "race.db"
    # Not before the other user has made the file that all share, for it would be ours.
    shared = store.with_name("race.db-shm")
    wait_until(lambda: shared.exists() and len(statuses(store)) >= 10)
    before = len(statuses(store))
    fill(user, seconds, folder / "full")
    assert race.wait(120) == 0
    made = statuses(store)
    failed = sum(status in FAILED for status in made)
    report(f"no room for processes, {seconds:g} s (failed runs)", 1, 1, len(made), failed, 0, 0, 0)
    assert before < len(made), "the race was too fast to be disturbed"
    assert failed == 0


@pytest.mark.slow
def test_a_launcher_that_ignores_the_end_of_its_children_loses_no_run(folder):
    assert launch(folder, "ignoring").wait(120) == 0
    assert FAILED.isdisjoint(statuses(folder / "race.db"))


@pytest.mark.slow
def test_a_race_begins_when_there_is_room_and_programs_lose_no_time(monkeypatch):
    """The system call itself fails here, so that nothing depends on who tests."""

    def fail_at_first(call):
        first = []

        def fail(*arguments):
            first.append(time.monotonic())
            if first[-1] < first[0] + 1.0:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            return call(*arguments)

        return fail

    def check_setup():
        program = pb.Command(["echo", "1"], pattern="(?P<value>1)")
        how = {"times": [PATIENCE], "direction": "minimize", "executor": 1, "seconds": PATIENCE}
        return pb.check({"program": program}, ["i"], **how).outcomes["program"]

    with monkeypatch.context() as patch:
        patch.setattr(os, "fork", fail_at_first(os.fork))
        assert check_setup().run.status is Status.FINISHED
    monkeypatch.setattr(subprocess, "_fork_exec", fail_at_first(subprocess._fork_exec))
    made = check_setup()
    assert made.run.status is Status.FINISHED
    assert made.run.until < made.seconds - 0.9
