"""Lines of a program's output as they come, whatever comes: memory is bounded."""

import os
from collections.abc import Iterator

LONGEST = 2_000
"""Longer lines are passed over: no incumbent needs them, and patterns may be slow on them."""

_CHUNK = 65_536


def lines(descriptor: int) -> Iterator[str]:
    r"""The lines that come out of a pipe or a terminal, until it ends.

    Lines end in ``\n``, ``\r\n`` or, like those that a program writes over, in ``\r``. Bytes that
    are no text become replacement characters.
    """
    cutter = Cutter()
    while chunk := _read(descriptor):
        yield from cutter.feed(chunk)
    yield from cutter.feed(b"\n")


class Cutter:
    r"""Cuts chunks of bytes into lines.

    >>> cutter = Cutter()
    >>> cutter.feed(b"o 12\r\no 1"), cutter.feed(b"1\n"), cutter.feed(b"x" * 5000 + b"\no 10\n")
    (['o 12'], ['o 11'], ['o 10'])
    """

    def __init__(self) -> None:
        self._rest = b""
        self._skipping = False  # inside a line that is too long

    def feed(self, chunk: bytes) -> list[str]:
        """The lines that this chunk completes; empty ones are left out."""
        *whole, rest = chunk.replace(b"\r", b"\n").split(b"\n")
        if whole:
            whole[0] = b"" if self._skipping else self._rest + whole[0]
            self._rest, self._skipping = rest, False
        elif not self._skipping:
            self._rest += rest
        if len(self._rest) > LONGEST:
            self._rest, self._skipping = b"", True
        return [line.decode(errors="replace") for line in whole if 0 < len(line) <= LONGEST]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # the other side of a terminal is closed
        return b""
