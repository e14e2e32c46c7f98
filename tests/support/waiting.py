"""Waiting for what must come about: long enough for a busy machine, and no longer than it takes."""

import time
from pathlib import Path

PATIENCE = 120.0
"""Seconds after which something is not slow but wrong."""

GROWING = (1.0, 8.0, 64.0)
"""Seconds after which a run is ended that must have found something before: busy machines take the
later ones."""

THRICE = 3
"""How often something may be tried that has to be fast: others may keep the machine busy."""


def wait_until(condition, seconds=PATIENCE):
    """What a condition gives, as soon as it gives something.

    What takes long to find out is asked less often: it takes the time of whom it waits for.
    """
    end = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if found := condition():
            return found
        answered = time.monotonic()
        assert answered < end, f"still waiting after {seconds:g} seconds"
        time.sleep(max(0.005, 3 * (answered - asked)))


def wait_for_outcomes(backend, timeout=180):
    """The outcomes of all jobs that a backend was given."""
    outcomes = []
    while backend.pending:
        new = backend.outcomes(timeout)
        assert new, f"no outcome within {timeout} seconds"
        outcomes += new
    return outcomes


def left_of(found, seconds=PATIENCE):
    """Those whom a function finds, once it finds nobody any more or the time is over."""
    end = time.monotonic() + seconds
    while (left := found()) and time.monotonic() < end:
        time.sleep(0.02)
    return left


def children(pid):
    """The processes that a single-threaded process, or the first thread of another, started."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def running(pids):
    """Those of these processes that are there; a zombie is not."""
    return [pid for pid in pids if _runs(pid)]


def _runs(pid):
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
