"""Processes with a mark in their environment, which all that they start inherit."""

import os
from pathlib import Path

from waiting import PATIENCE, left_of

MARK = "POLARBEAR_TEST_LIFE"

PYTHONPATH = os.pathsep.join(
    filter(None, [str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
)
"""Where such processes find what tests share, and the package that is tested."""


def marked(mark):
    """Those who are there, whatever session and parent they have."""
    word, found = f"{MARK}={mark}".encode(), []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if word in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
        except OSError:  # gone meanwhile, or somebody else's
            continue
    return found


def left(mark, seconds=PATIENCE):
    """Those who are still there so long after whoever started them was killed."""
    return left_of(lambda: marked(mark), seconds)
