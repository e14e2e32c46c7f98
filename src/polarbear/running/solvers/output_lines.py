"""``read_lines``: read the output of a program line by line, in bounded memory."""

import os
import select
from collections.abc import Callable, Iterator

MAX_LINE_BYTES = 2_000
"""Longer lines are skipped: no objective value needs them, and patterns may be slow on them."""

_CHUNK_BYTES, _WAIT_MILLISECONDS = 65_536, 100

_MAX_LEFT_BYTES = 1_000_000
"""How much is read after the end of a program: more than a pipe holds. A child may write on."""


def read_lines(descriptor: int, has_ended: Callable[[], bool]) -> Iterator[str]:
    r"""Yield the lines of a pipe or a terminal until it is closed, or its program has ended.

    A child that the program left behind may keep it open.

    Lines end in ``\n``, ``\r\n``, or in ``\r`` as those of a progress display do. Bytes that are
    not UTF-8 become replacement characters.
    """
    splitter, rest = LineSplitter(), _MAX_LEFT_BYTES
    while rest > 0:
        is_over = has_ended()  # before: what it has written is there by now
        if not _is_readable(descriptor, 0 if is_over else _WAIT_MILLISECONDS):
            if is_over:
                break
            continue
        chunk = _read_chunk(descriptor)
        if not chunk:
            break
        yield from splitter.feed(chunk)
        rest -= len(chunk) if is_over else 0
    yield from splitter.feed(b"\n")


class LineSplitter:
    r"""Splits chunks of bytes into lines.

    >>> splitter = LineSplitter()
    >>> splitter.feed(b"o 12\r\no 1"), splitter.feed(b"1\n")
    (['o 12'], ['o 11'])
    >>> splitter.feed(b"x" * 5000 + b"\no 10\n")
    ['o 10']
    """

    def __init__(self) -> None:
        self._rest = b""  # the line that is not complete yet
        self._skipping = False  # whether that line is too long

    def feed(self, chunk: bytes) -> list[str]:
        """Add a chunk of bytes, and return the nonempty lines that it completes."""
        *whole, rest = chunk.replace(b"\r", b"\n").split(b"\n")
        if whole:
            whole[0] = b"" if self._skipping else self._rest + whole[0]
            self._rest, self._skipping = rest, False
        elif not self._skipping:
            self._rest += rest
        if len(self._rest) > MAX_LINE_BYTES:
            self._rest, self._skipping = b"", True
        return [line.decode(errors="replace") for line in whole if 0 < len(line) <= MAX_LINE_BYTES]


def _is_readable(descriptor: int, milliseconds: int) -> bool:
    """Wait until there is something to read, at most for some time; return whether there is."""
    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(milliseconds))


def _read_chunk(descriptor: int) -> bytes:
    """Read some bytes from a file descriptor; b"" at the end."""
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except OSError:  # a terminal reports its closed other end as an error
        return b""
