"""``read_lines``: read the output of a program line by line, in bounded memory."""

import os
import select
from collections.abc import Callable, Iterator

MAX_LINE_BYTES = 2_000
"""Longer lines are skipped: no objective value needs them, and patterns may be slow on them."""

_CHUNK_BYTES, _WAIT_SECONDS = 65_536, 0.1

_CAN_WAIT = os.name == "posix"  # elsewhere only for sockets


def read_lines(descriptor: int, has_ended: Callable[[], bool]) -> Iterator[str]:
    r"""Yield the lines of a pipe or a terminal until it is closed, or its program has ended.

    A child that the program left behind may keep it open.

    Lines end in ``\n``, ``\r\n``, or in ``\r`` as those of a progress display do. Bytes that are
    not UTF-8 become replacement characters.
    """
    splitter = LineSplitter()
    while chunk := _read_chunk(descriptor, has_ended):
        yield from splitter.feed(chunk)
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


def _read_chunk(descriptor: int, has_ended: Callable[[], bool]) -> bytes:
    """Read some bytes from a file descriptor; b"" at the end."""
    is_over = False
    while _CAN_WAIT and not select.select([descriptor], [], [], _WAIT_SECONDS)[0]:
        if is_over:
            return b""
        is_over = has_ended()  # what it wrote last may have arrived meanwhile
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except OSError:  # a terminal reports its closed other end as an error
        return b""
