"""Reading of rows directly from the pages of a truncated SQLite file.

SQLite reaches a page through other pages, which may be in the missing part of the file. The
checksum of every row in a store shows whether a row that was read this way is intact.
https://www.sqlite.org/fileformat2.html defines the terms used here.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LEAF = 0x0D
MAX_COLUMNS = 16
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


def is_truncated(path: Path) -> bool:
    """Return whether an SQLite file is shorter than its header states."""
    with path.open("rb") as file:
        head = file.read(100)
    if len(head) < 100:
        return True
    size, pages = _page_size(head), int.from_bytes(head[28:32], "big")
    return path.stat().st_size < size * pages


def read_rows(path: Path) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rowid and the columns of every table row in the pages of an SQLite file."""
    with path.open("rb") as file:
        head = file.read(100)
        if len(head) < 100:
            return
        pages = _Pages(file, _page_size(head), head[20])
        for number in range(1, pages.count + 1):
            yield from _read_page(pages, number)


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


def _read_page(pages: _Pages, number: int) -> Iterator[tuple[int, list[Any]]]:
    page = pages[number]
    start = 100 if number == 1 else 0
    if page[start] != LEAF:
        return
    for k in range(int.from_bytes(page[start + 3 : start + 5], "big")):
        at = start + 8 + 2 * k
        try:
            cell = int.from_bytes(page[at : at + 2], "big")
            length, cell = _read_varint(page, cell)
            rowid, cell = _read_varint(page, cell)
            row = _decode_record(_read_payload(pages, page, cell, length))
        except (IndexError, ValueError, struct.error):
            continue  # the rest of the row is missing, or this is no row
        yield rowid - (rowid >> 63 << 64), row


def _read_payload(pages: _Pages, page: bytes, at: int, length: int) -> bytes:
    """Return the content of a cell of an SQLite page, including its overflow pages."""
    usable = pages.usable
    max_local, min_local = usable - 35, (usable - 12) * 32 // 255 - 23
    local = length
    if length > max_local:
        local = min_local + (length - min_local) % (usable - 4)
        local = local if local <= max_local else min_local
    content = page[at : at + local]
    next_page = int.from_bytes(page[at + local : at + local + 4], "big")
    while len(content) < length:
        overflow = pages[next_page]
        next_page = int.from_bytes(overflow[:4], "big")
        content += overflow[4 : min(usable, 4 + length - len(content))]
    return content


def _decode_record(content: bytes) -> list[Any]:
    """Decode an SQLite record to the values of its columns."""
    end, at = _read_varint(content, 0)
    kinds: list[int] = []
    while at < end:
        kind, at = _read_varint(content, at)
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
        row.append(_decode_column(kind, part))
    return row


def _decode_column(kind: int, part: bytes) -> Any:
    if kind == 0:
        return None
    if kind in (8, 9):
        return kind - 8
    if kind == 7:
        return struct.unpack(">d", part)[0]
    if kind in _INTEGERS:
        return int.from_bytes(part, "big", signed=True)
    return part if kind % 2 == 0 else part.decode(errors="replace")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a variable-length integer of 1 to 9 bytes, and the position after it."""
    value = 0
    for k in range(8):
        byte = data[at + k]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + k + 1
    return value << 8 | data[at + 8], at + 9
