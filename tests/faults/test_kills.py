"""The coordinator is killed at random moments and started again: nothing is lost, nothing changes.

``POLARBEAR_KILLS=100 pytest tests/faults`` is the long version; by default there are a few.
"""

import itertools
import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import killing
from disturbing import UNTIL_GONE
from marks import MARK, left
from waiting import wait_until

HERE = Path(__file__).parent.parent
KILLS = int(os.environ.get("POLARBEAR_KILLS", "4"))
SECONDS = 0.004
"""How long a third of a run takes, so that a kill hits runs as well as decisions."""

LONGEST = 0.5
"""When the latest kill is, as a share of how long the race takes: most are killed several times."""


def live(where, seed, seconds, folder):  # noqa: ARG001 (all races are the same one)
    """A coordinator that is killed some time after it has begun."""
    said, mark = folder / uuid4().hex, uuid4().hex
    with said.open("wb") as mouth:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "course.py"), str(where), "2", str(SECONDS)],
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
        LONGEST * seconds,
        live=lambda *how: live(*how, folder),
        undisturbed=lambda _: events,
    )


def told_of(report, what, toll):
    report(
        what, toll.kills, toll.races, toll.runs, toll.lost, toll.twice, toll.different, toll.left
    )
    assert toll.harmless, toll


def test_kills_of_a_race_in_a_file(tmp_path, report):
    count = itertools.count()
    toll = tolled(lambda: tmp_path / f"{next(count)}.db", KILLS, tmp_path)
    assert toll.runs >= 200 * toll.races
    told_of(report, "coordinator killed (SIGKILL), SQLite", toll)


def test_kills_of_a_race_in_a_database(tmp_path, report, server):
    count = itertools.count()
    kills = max(2, 3 * KILLS // 10)
    toll = tolled(lambda: f"{server.url}#kills{next(count)}", kills, tmp_path)
    told_of(report, "coordinator killed (SIGKILL), PostgreSQL", toll)
