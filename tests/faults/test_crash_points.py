"""The coordinator dies at chosen places, meets another one, or sees the clock jump."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from judge.in_process import InProcess

import polarbear as pb
from course import HOLD, decisions, run, told
from disturbing import BUDGET
from marks import PYTHONPATH
from polarbear.errors import StoreError
from waiting import wait_until

HERE = Path(__file__).parents[1] / "support"

CRASHING = """
import os, sys
import course
from polarbear.running.backends.dispatcher import Dispatcher
from polarbear.store.log import Store

where, place, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = 0

def crash_in(kind, name, before):
    original = getattr(kind, name)
    def method(self, *args, **more):
        global seen
        seen += 1
        if before and seen == number:
            os._exit(137)
        found = original(self, *args, **more)
        if not before and seen == number:
            os._exit(137)
        return found
    setattr(kind, name, method)

kinds = {"append": (Store, "append")}
kinds |= {name: (Dispatcher, name) for name in ("submit", "outcomes")}
name, _, when = place.partition(" ")
crash_in(*kinds[name], when == "before")
course.run(where, 2, budget=course.short(int(sys.argv[4]))).close()
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "race.db"
    run(path, InProcess(), budget=BUDGET).close()
    return read(path)


def read(path):
    with pb.open_store(path, read_only=True) as store:
        return list(store.read())


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 9] if "POLARBEAR_KILLS" in os.environ else [2])
@pytest.mark.parametrize(
    "place",
    ["append before", "append after", "submit before", "submit after", "outcomes after"],
)
def test_a_crash_at_this_place_changes_nothing(tmp_path, undisturbed, place, number):
    path = tmp_path / "race.db"
    script = [sys.executable, "-c", CRASHING, str(path), place, str(number), str(BUDGET.runs)]
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    crashed = subprocess.run(script, env=environment, timeout=600, check=False)
    assert crashed.returncode in (137, 0)  # a race may submit less often than that
    assert (crashed.returncode == 137) or place.startswith("submit")
    run(path, 2, budget=BUDGET).close()
    found = read(path)
    assert told(found) == told(undisturbed)
    assert decisions(found) == decisions(undisturbed)


@pytest.mark.slow
def test_a_second_coordinator_is_refused(tmp_path):
    path = tmp_path / "race.db"
    script = [sys.executable, str(HERE / "course.py"), str(path), "1", "0"]
    held = tmp_path / "held"
    held.touch()  # the first race lasts as long as it is looked at
    first = subprocess.Popen(script, stdout=subprocess.DEVNULL, env=os.environ | {HOLD: str(held)})
    try:
        # The file is there before its writer signs it.
        wait_until(lambda: path.exists() and read(path))
        with pytest.raises(StoreError, match=f"process {first.pid}"):
            run(path)
    finally:
        first.kill()
        first.wait()
    # Who is dead holds nothing. By the same script: it names the model that it fits.
    subprocess.run([*script, "10"], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("years", "zone"),
    [
        (-30, "Pacific/Kiritimati"),
        pytest.param(30, "America/St_Johns", marks=pytest.mark.long),
    ],
)
def test_the_clock_may_jump(tmp_path, monkeypatch, undisturbed, years, zone):
    """Years, and wherever one is: times of day are for people, and decide nothing."""
    monkeypatch.setenv("TZ", zone)
    now = time.time
    begin = now()

    def jumping():
        return now() + (years * 3.15e7 if now() > begin + 0.3 else 0.0)

    monkeypatch.setattr(time, "time", jumping)
    path = tmp_path / "race.db"
    run(path, 2, budget=BUDGET).close()
    found = read(path)
    assert decisions(found) == decisions(undisturbed)


@pytest.mark.slow
def test_a_full_disk_stops_the_race_with_a_sentence_and_it_goes_on_later(tmp_path, undisturbed):
    path = tmp_path / "race.db"
    script = (
        "import resource, signal, sys, course, polarbear as pb\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n"
        "try:\n    course.run(sys.argv[1], 1, budget=course.short(int(sys.argv[2])))\n"
        "except pb.errors.StoreError as error:\n    sys.exit(f'said: {error}')\n"
    )
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    full = subprocess.run(
        [sys.executable, "-c", script, str(path), str(BUDGET.runs)],
        env=environment,
        timeout=600,
        check=False,
        capture_output=True,
        text=True,
    )
    assert full.stderr.startswith("said: "), full.stderr
    assert "Traceback" not in full.stderr
    run(path, 2, budget=BUDGET).close()
    found = read(path)
    assert told(found) == told(undisturbed)
    assert decisions(found) == decisions(undisturbed)
