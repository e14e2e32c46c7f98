"""A terminal of our own: a real pseudo-terminal with a program in it, and what its screen shows."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

from waiting import PATIENCE

try:
    import pyte
except ImportError:  # whoever uses it says so and skips
    pyte = None

# In a session of its own a program has no terminal, and Ctrl-C would not get there.
_TAKE = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """Runs a program in a terminal of a size."""

    def __init__(self, command, *, rows=24, columns=90):
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self._end, theirs = pty.openpty()
        self.resize(rows, columns)
        # Without a size in it, which readline would leave there.
        own = {k: v for k, v in os.environ.items() if k not in ("LINES", "COLUMNS", "NO_COLOR")}
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _TAKE,
                *command,
            ],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env=own | {"TERM": "xterm-256color"},
        )
        os.close(theirs)

    def resize(self, rows, columns):
        """The window has another size, and the program is told."""
        self.screen.resize(rows, columns)
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        """Somebody types: ``\\x03`` is Ctrl-C."""
        os.write(self._end, keys.encode())

    def shows(self, *patterns):
        """Wait until one screen shows all these regular expressions; its text.

        A picture arrives in parts: what belongs together is asked for together.
        """
        said = f"no screen with all of {patterns}"
        return "\n".join(
            self.until(lambda lines: all(re.search(p, "\n".join(lines)) for p in patterns), said)
        )

    def until(self, condition, said="not on the screen"):
        """Wait until something holds of the lines of the screen, of which there are two or more."""
        end = time.monotonic() + PATIENCE
        while len(lines := self.text().splitlines()) < 2 or not condition(lines):
            assert time.monotonic() < end, f"{said}:\n{self.text()}"
            was_alive = self.alive()
            assert self.read(0.2) or was_alive, f"ended, {said}:\n{self.text()}"
        return lines

    def read(self, seconds):
        """Take what the program writes for some time; false if there was nothing."""
        if not select.select([self._end], [], [], seconds)[0]:
            return False
        try:
            found = os.read(self._end, 65536)
        except OSError:  # the program has ended, and so has its terminal
            return False
        self.raw += found
        self._stream.feed(found)
        return bool(found)

    def text(self):
        """What the screen shows."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def alive(self):
        """Whether the program runs."""
        return self._process.poll() is None

    def wait(self, seconds=PATIENCE):
        """The exit code, once the program has ended."""
        end = time.monotonic() + seconds
        while self.alive():
            assert time.monotonic() < end, f"still running:\n{self.text()}"
            self.read(0.1)
        while self.read(0.1):
            pass
        return self._process.returncode

    def close(self):
        """End the program, if it is there."""
        if self.alive():
            self._process.kill()
            self._process.wait()
        os.close(self._end)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
