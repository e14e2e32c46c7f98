"""The coordinator is killed at random moments and started again: nothing is lost, nothing changes.

``POLARBEAR_KILLS=100 pytest tests/faults`` is the long version; by default there are a few.
"""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

import killing
from disturbing import UNTIL_GONE
from marks import MARK, left, marked
from polarbear.running.solvers.processes import find_descendants
from waiting import children, left_of, running, wait_until

HERE = Path(__file__).parents[1] / "support"
KILLS = int(os.environ.get("POLARBEAR_KILLS", "2"))
MAX_RUNS = 240 if KILLS >= 100 else 80
SECONDS = 0.004
"""How long a third of a run takes, so that a kill hits runs as well as decisions."""

LATEST_KILL = 0.5
"""When the latest kill is, as a share of how long the race takes: most are killed several times."""


def live(where, seed, seconds, folder):  # noqa: ARG001 (all races are the same one)
    """A coordinator that is killed some time after it has begun."""
    said, mark = folder / uuid4().hex, uuid4().hex
    with said.open("wb") as mouth:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "course.py"), str(where), "2", str(SECONDS), str(MAX_RUNS)],
            stdout=mouth,
            env={**os.environ, MARK: mark},
        )
    wait_until(lambda: said.stat().st_size or process.poll() is not None)
    try:
        ended = process.wait(seconds) == 0
        assert ended, "the coordinator failed"
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        ended = False
    return killing.Life(killing.numbers(said.read_bytes())[1:], ended, len(left(mark, UNTIL_GONE)))


@cache
def undisturbed():
    """The events of a race that nobody kills, and how long it takes from when it is loaded."""
    with TemporaryDirectory() as folder:
        begin = time.monotonic()
        where = Path(folder) / "race.db"
        assert live(where, 0, 600, Path(folder)).ended
        return killing.stored(where), time.monotonic() - begin


def tolled(place, kills, folder):
    events, seconds = undisturbed()
    return killing.killed(
        place,
        kills,
        LATEST_KILL * seconds,
        live=lambda *how: live(*how, folder),
        undisturbed=lambda _: events,
    )


def told_of(report, what, toll):
    report(
        what, toll.kills, toll.races, toll.runs, toll.lost, toll.twice, toll.different, toll.left
    )
    assert toll.harmless, toll


@pytest.mark.slow
def test_kills_of_a_race_in_a_file(tmp_path, report):
    count = itertools.count()
    toll = tolled(lambda: tmp_path / f"{next(count)}.db", KILLS, tmp_path)
    assert toll.runs > 0.8 * MAX_RUNS * toll.races
    told_of(report, "coordinator killed (SIGKILL), SQLite", toll)


@pytest.mark.long
def test_kills_of_a_race_in_a_database(tmp_path, report, server):
    count = itertools.count()
    kills = max(2, 3 * KILLS // 10)
    toll = tolled(lambda: f"{server.url}#kills{next(count)}", kills, tmp_path)
    told_of(report, "coordinator killed (SIGKILL), PostgreSQL", toll)


# Whatever is killed

LEAVING = """
import os, time
import polarbear as pb

def daemon(job):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
    time.sleep(600)

words = ["sh", "-c", "sleep 600; true"]
wrapper = pb.Command(words, pattern="(?P<time>1) (?P<value>1)", clock="evaluations")
solvers = {"daemon": daemon, "wrapper": wrapper}
pb.race(solvers, ["i"], [1, 10], direction="minimize", executor=2)
"""
# A coordinator; for each worker a guard, a supervisor, a run and the next; a daemon; sh and sleep.
PROCESSES = 12


def below(coordinator, victim):
    """A process to be killed, and those that must end with it."""
    guard = random.choice(children(coordinator.pid))
    pid = {"guard": guard, "supervisor": children(guard)[0]}[victim]
    return pid, find_descendants(pid)


@pytest.mark.slow
def test_nothing_is_left_of_programs_and_daemons_whatever_is_killed(report):
    kills = 42 if KILLS >= 100 else 3
    remaining = 0
    for victim in itertools.islice(itertools.cycle(("group", "guard", "supervisor")), kills):
        mark = uuid4().hex
        coordinator = subprocess.Popen(
            [sys.executable, "-c", LEAVING],
            env={**os.environ, MARK: mark},
            start_new_session=True,
        )
        wait_until(lambda mark=mark: len(marked(mark)) >= PROCESSES)
        if victim != "group":
            pid, ending = below(coordinator, victim)
            os.kill(pid, signal.SIGKILL)
            remaining += len(left_of(lambda ending=ending: running(ending), UNTIL_GONE))
        os.killpg(coordinator.pid, signal.SIGKILL)
        coordinator.wait()
        remaining += len(left(mark, UNTIL_GONE))
    report(
        "group, guard or supervisor killed, with programs and daemons",
        kills,
        0,
        0,
        0,
        0,
        0,
        remaining,
    )
    assert remaining == 0
