"""``describe_exception``: an exception of a solver as one line of text; ``KilledProgramError``."""

import os
import signal
import traceback
from pathlib import Path

from polarbear.errors import SolverError

ENDING_SIGNALS = frozenset(
    number
    for name in ("SIGHUP", "SIGINT", "SIGKILL", "SIGTERM")
    if (number := getattr(signal, name, None)) is not None  # Windows has not all of them
)
"""Signals by which people and the system end a process; faults of its own have others."""


class KilledProgramError(SolverError):
    """Raised if a signal of another process ended the program of a run."""


_OWN_MODULES = str(Path(__file__).parents[2])
_STANDARD_LIBRARY = str(Path(os.__file__).parent)


def _is_library(frame: traceback.FrameSummary) -> bool:
    """Return whether a frame of a traceback is in Python's standard library."""
    return frame.filename.startswith(_STANDARD_LIBRARY) and "site-packages" not in frame.filename


def describe_exception(error: BaseException) -> str:
    """Describe an exception in one line: type, message, and the place where it was raised."""
    kind = type(error).__name__
    try:
        message = str(error)
    except BaseException:
        message = "(its message cannot be printed)"
    try:
        frames = traceback.extract_tb(error.__traceback__)
        solver_frames = [frame for frame in frames if not frame.filename.startswith(_OWN_MODULES)]
        shown_frames = (solver_frames or frames)[-3:]
        places = [f"{f.filename}, line {f.lineno}, in {f.name}" for f in shown_frames]
        place = f" ({', called from '.join(reversed(places))})"
        if isinstance(error, SolverError) and all(map(_is_library, solver_frames)):
            place = ""  # raised by this package about a program: the message is complete
    except BaseException:
        place = ""
    return f"{kind}: {message[:2_000]}{place}"
