"""The power fails: what the disk has at any moment holds everything that was acknowledged.

The store is on a file system of its own, in an image. While a process writes, the image is copied
at random moments: whatever the system has not sent to the "disk" by then is not in the copy, as
after a loss of power. The copy is mounted, which replays the journal of its file system, and the
store is opened there.
"""

import itertools
import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager

import pytest

from killing import fork, stored
from polarbear.data.run import Run
from polarbear.racing.budget import Budget
from polarbear.racing.events import Started, Told
from polarbear.racing.model import Model
from polarbear.racing.questions.pareto_set import ParetoSet
from polarbear.store.opening import open_store
from waiting import wait_until

LONG = int(os.environ.get("POLARBEAR_KILLS", "0")) >= 100
BEGIN = Started(7, (1.0, 2.0, 4.0), "minimize", "evaluations", True, ParetoSet(), Budget(), Model())
BATCH = 4


@contextmanager
def mounted(image, at):
    """An image as a folder; the test is skipped where that is not permitted."""
    at.mkdir(exist_ok=True)
    try:
        done = subprocess.run(["mount", "-o", "loop", image, at], capture_output=True, check=False)
    except OSError:
        pytest.skip("no file system can be mounted here")
    if done.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


def image_of(folder):
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("no file system can be made here")
    image = folder / "disk.img"
    with image.open("wb") as file:
        file.truncate(64_000_000)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    return image


def told(k):
    return Told(Run("a", str(k), (1.0, 2.0), (5.0, 4.0 + k), 4.0))


def write(where, say, synchronous):
    """Append for ever, and say how many events were acknowledged."""
    with open_store(where) as store:
        store._database._connection.execute(f"PRAGMA synchronous = {synchronous}")
        store.append([BEGIN])
        for k in itertools.count(0, BATCH):
            store.append([told(k + j) for j in range(BATCH)])
            os.pwrite(say, (1 + k + BATCH).to_bytes(8, "little"), 0)
            time.sleep(0.005)  # without durability it would fill the disk before the test ends


def power_fails(folder, times, synchronous):
    """How many events were acknowledged in all, and how many of them were gone."""
    image, rng = image_of(folder), random.Random(9)
    said = os.open(folder / "said", os.O_RDWR | os.O_CREAT)
    acknowledged = gone = 0
    with mounted(image, folder / "disk") as disk:
        writer = fork()
        if writer == 0:
            try:
                write(disk / "race.db", said, synchronous)
            finally:
                os._exit(1)
        try:
            wait_until(lambda: number(said) > BATCH)
            for _ in range(times):
                time.sleep(rng.uniform(0.05, 0.4))
                known = stopped(writer, lambda: (number(said), shutil.copy(image, folder / "copy")))
                with mounted(folder / "copy", folder / "after") as after:
                    found = stored(after / "race.db")
                events = [BEGIN, *map(told, range(len(found) - 1))]
                assert found == events[: len(found)]
                acknowledged += known
                gone += max(0, known - len(found))
        finally:
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
            os.close(said)
    return acknowledged, gone


def stopped(process, work):
    """Do something while a process stands still: the acknowledged number it gives."""
    os.kill(process, signal.SIGSTOP)
    os.waitpid(process, os.WUNTRACED)
    known, _ = work()
    os.kill(process, signal.SIGCONT)
    return known


def number(said):
    return int.from_bytes(os.pread(said, 8, 0), "little")


def test_nothing_acknowledged_is_lost_with_the_power(tmp_path, report):
    times = 50 if LONG else 4
    acknowledged, gone = power_fails(tmp_path, times, "FULL")
    report(
        "power lost (copy of the disk), SQLite; runs summed over the copies",
        times,
        1,
        acknowledged,
        gone,
        0,
        0,
        0,
    )
    assert acknowledged > times * BATCH
    assert gone == 0


@pytest.mark.skipif(not LONG, reason="takes long: POLARBEAR_KILLS=100")
def test_what_a_careless_store_loses_is_seen(tmp_path, report):
    """SQLite's synchronous=NORMAL, which many recommend, forgets what it has acknowledged."""
    acknowledged, gone = power_fails(tmp_path, 20, "NORMAL")
    what = "for comparison: the same with `synchronous=NORMAL`"
    report(what, 20, 1, acknowledged, gone, 0, 0, 0)
    assert gone > 0
