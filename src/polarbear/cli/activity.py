"""``Activity``: one line on a terminal that moves while a command works.

A thread writes it, so that it also moves while numpy computes. It writes with ``os.write``, without
the lock of a stream: processes that a command forks meanwhile find no lock that is held.
"""

import os
import sys
import threading
import time
from typing import Self

DELAY_SECONDS = 0.5
"""A command that takes less shows nothing."""

INTERVAL_SECONDS = 0.25

CLEAR = "\r\x1b[2K"
"""Go to the begin of the line and clear it."""


class Activity:
    """Shows that a command works, and on what; a context manager.

    Nothing is shown unless standard error is a terminal.
    """

    def __init__(self) -> None:
        self._what, self._start = "", 0.0
        self._shown = False
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._process = 0

    def __enter__(self) -> Self:
        self._process, self._start = os.getpid(), time.monotonic()
        self._ended.clear()
        if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            self._thread = threading.Thread(target=self._move, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def says(self, what: str) -> None:
        """Say what the command does from now on, such as "reading results.csv"."""
        self._what = what

    def clear(self) -> None:
        """Remove the line, because something else is printed; it comes back if work goes on."""
        if self._thread is not None and os.getpid() == self._process:
            with self._lock:
                self._clear()

    def end(self) -> None:
        """Remove the line for good."""
        thread, self._thread = self._thread, None
        if thread is not None and os.getpid() == self._process:
            self._ended.set()
            thread.join()
            self._clear()

    def _clear(self) -> None:
        if self._shown:
            os.write(sys.stderr.fileno(), CLEAR.encode())
        self._shown = False

    def _move(self) -> None:
        """Write the line again and again, until the command has ended."""
        marks = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if (sys.stderr.encoding or "").startswith("utf") else "|/-\\"
        step = 0
        wait = DELAY_SECONDS
        while not self._ended.wait(wait):
            step, wait = step + 1, INTERVAL_SECONDS
            seconds = time.monotonic() - self._start
            text = f"{marks[step % len(marks)]} {self._what or 'working'}, {seconds:.0f} s"
            with self._lock:
                if not self._ended.is_set():
                    self._shown = True
                    columns = _count_columns()
                    os.write(sys.stderr.fileno(), f"{CLEAR}{text[: columns - 1]}".encode())


def _count_columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


activity = Activity()
"""The line of this process: a command shows one thing at a time."""
