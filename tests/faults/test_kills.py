"""The coordinator is killed at random moments and started again: nothing is lost, nothing changes.

``POLARBEAR_KILLS=100 pytest tests/faults`` is the long version; by default there are a few.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import polarbear as pb
from course import decisions, run, told

HERE = Path(__file__).parent.parent
KILLS = int(os.environ.get("POLARBEAR_KILLS", "6"))
SECONDS = 0.004
"""How long a third of a run takes, so that a kill hits runs as well as decisions."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "race.db"
    begin = time.monotonic()
    run(path, 2, SECONDS).close()
    return read(path), time.monotonic() - begin


def read(where):
    with pb.open_store(where, read_only=True) as store:
        return list(store.read())


def begun(where):
    script = [sys.executable, str(HERE / "course.py"), str(where), "2", str(SECONDS)]
    return subprocess.Popen(script, stdout=subprocess.DEVNULL, start_new_session=True)


def alive(session):
    """Processes of a session, but for the dead that nobody has asked after."""
    found = []
    for place in Path("/proc").iterdir():
        try:
            words = (place / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(words[3]) == session and words[0] != "Z":
            found.append(place.name)
    return found


def killed_again_and_again(where, kills, seed, seconds):
    """Kill the race at random moments until it was killed often enough, then let it end."""
    rng = random.Random(seed)
    known = set()
    for _ in range(kills):
        process = begun(where)
        try:
            process.wait(rng.uniform(0.0, 1.5 * seconds))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        assert not orphans(process.pid)
        before, known = known, _acknowledged(where)
        assert before <= known
    assert begun(where).wait(120) == 0


def _acknowledged(where):
    try:
        return {run[:3] for run in told(read(where))}
    except pb.StoreError:  # it was killed before there was anything
        return set()


def orphans(session):
    """Who is left of a session two seconds after its leader was killed."""
    end = time.monotonic() + 2
    while (left := alive(session)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def test_kills_of_a_race_in_a_file(tmp_path, undisturbed):
    whole, seconds = undisturbed
    done = 0
    trial = 0
    while done < KILLS:
        path = tmp_path / f"race{trial}.db"
        number = min(5, KILLS - done)
        killed_again_and_again(path, number, trial, seconds)
        found = read(path)
        assert told(found) == told(whole)
        assert decisions(found) == decisions(whole)
        done, trial = done + number, trial + 1


def test_kills_of_a_race_in_a_database(undisturbed, server):
    whole, seconds = undisturbed
    kills = max(2, 3 * KILLS // 10)
    for trial in range(0, kills, 5):
        where = f"{server.url}#kills{trial}"
        killed_again_and_again(where, min(5, kills - trial), trial, seconds)
        found = read(where)
        assert told(found) == told(whole)
        assert decisions(found) == decisions(whole)
