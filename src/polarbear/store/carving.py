"""Rows in the pages of a damaged SQLite file, also where nothing leads to these pages any more.

What leads to a page may be in the part of a file that is gone. Every row of ours has a checksum
of its content and its place, so that a row that is found this way is known for what it is.
https://www.sqlite.org/fileformat2.html has the names used here.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LEAF = 0x0D
MAX_COLUMNS = 16
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


def is_truncated(path: Path) -> bool:
    """Whether a file is shorter than its first page says."""
    with path.open("rb") as file:
        head = file.read(100)
    if len(head) < 100:
        return True
    size, pages = _page_size(head), int.from_bytes(head[28:32], "big")
    return path.stat().st_size < size * pages


def carve(path: Path) -> Iterator[tuple[int, list[Any]]]:
    """Yield all rows of tables whose bytes are in the file: their rowid, and their columns."""
    with path.open("rb") as file:
        head = file.read(100)
        if len(head) < 100:
            return
        pages = _Pages(file, _page_size(head), head[20])
        for number in range(1, pages.count + 1):
            yield from _rows(pages, number)


def _page_size(head: bytes) -> int:
    size = int.from_bytes(head[16:18], "big")
    return 65_536 if size == 1 else max(size, 512)


class _Pages:
    def __init__(self, file: Any, size: int, reserved: int) -> None:
        self._file, self._size = file, size
        self.usable = size - reserved
        self.count = file.seek(0, 2) // size

    def __getitem__(self, number: int) -> bytes:
        if not 1 <= number <= self.count:
            raise IndexError(number)
        self._file.seek((number - 1) * self._size)
        return self._file.read(self._size)


def _rows(pages: _Pages, number: int) -> Iterator[tuple[int, list[Any]]]:
    page = pages[number]
    start = 100 if number == 1 else 0
    if page[start] != LEAF:
        return
    for k in range(int.from_bytes(page[start + 3 : start + 5], "big")):
        at = start + 8 + 2 * k
        try:
            cell = int.from_bytes(page[at : at + 2], "big")
            length, cell = _varint(page, cell)
            rowid, cell = _varint(page, cell)
            row = _record(_payload(pages, page, cell, length))
        except (IndexError, ValueError, struct.error):
            continue  # the rest of this row is gone, or it is none
        yield rowid - (rowid >> 63 << 64), row


def _payload(pages: _Pages, page: bytes, at: int, length: int) -> bytes:
    """The content of a cell, with what is on overflow pages."""
    usable = pages.usable
    most, least = usable - 35, (usable - 12) * 32 // 255 - 23
    local = length
    if length > most:
        local = least + (length - least) % (usable - 4)
        local = local if local <= most else least
    content = page[at : at + local]
    following = int.from_bytes(page[at + local : at + local + 4], "big")
    while len(content) < length:
        overflow = pages[following]
        following = int.from_bytes(overflow[:4], "big")
        content += overflow[4 : min(usable, 4 + length - len(content))]
    return content


def _record(content: bytes) -> list[Any]:
    """The columns of a record."""
    end, at = _varint(content, 0)
    kinds: list[int] = []
    while at < end:
        kind, at = _varint(content, at)
        kinds.append(kind)
    if len(kinds) > MAX_COLUMNS:
        raise ValueError(len(kinds))
    row: list[Any] = []
    for kind in kinds:
        size = _INTEGERS.get(kind, 8 if kind == 7 else max(0, (kind - 12) // 2))
        part = content[at : at + size]
        if len(part) < size:
            raise IndexError(size)
        at += size
        row.append(_value(kind, part))
    return row


def _value(kind: int, part: bytes) -> Any:
    if kind == 0:
        return None
    if kind in (8, 9):
        return kind - 8
    if kind == 7:
        return struct.unpack(">d", part)[0]
    if kind in _INTEGERS:
        return int.from_bytes(part, "big", signed=True)
    return part if kind % 2 == 0 else part.decode(errors="replace")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to 9 bytes, and where it ends."""
    value = 0
    for k in range(8):
        byte = data[at + k]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + k + 1
    return value << 8 | data[at + 8], at + 9
