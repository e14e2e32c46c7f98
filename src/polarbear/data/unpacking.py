"""Limits on what compressed files and archives may unpack to, and a check of their names.

A file of a few kilobytes can unpack to gigabytes. Real results are packed to a tenth of their size,
logs to a thirtieth; files that are made to fill the memory, to a thousandth and less.
"""

import zipfile
from collections import Counter
from collections.abc import Iterable
from math import inf
from operator import itemgetter

from polarbear.errors import DataError

MAX_UNPACKED_BYTES = 1 << 28
"""The most bytes that the packed files of a folder or an archive of results may unpack to."""

MAX_RATIO = 100
"""How many times as large as the packed files the unpacked ones may be."""

FREE_BYTES = 1 << 24
"""Bytes to which any packed file may unpack, whatever its own size."""


def limit_unpacked(packed: int, most: float = inf) -> float:
    """Return the number of bytes to which packed files of a total size may unpack.

    >>> limit_unpacked(1_000) == FREE_BYTES, limit_unpacked(1_000_000)
    (True, 100000000)
    """
    return min(most, max(FREE_BYTES, MAX_RATIO * packed))


def check_unpacked(unpacked: int, packed: int, most: float = inf) -> None:
    """Raise ``DataError`` if packed files unpack to too many bytes.

    >>> check_unpacked(10**9, packed=1_000)
    Traceback (most recent call last):
    polarbear.errors.DataError: unpacks to more than 16 MiB, over 100 times its size: if you ...
    """
    limit = limit_unpacked(packed, most)
    if unpacked <= limit:
        return
    ratio = "" if limit == most else f", over {MAX_RATIO} times its size"
    raise DataError(
        f"unpacks to more than {int(limit) >> 20} MiB{ratio}: if you trust it, unpack it and read "
        "the files, or pack it again without compression (zip -0)"
    )


def check_names(names: Iterable[str]) -> None:
    """Raise ``DataError`` if an archive holds two files of one name.

    >>> check_names(["a.csv", "b.csv", "a.csv"])
    Traceback (most recent call last):
    polarbear.errors.DataError: holds 2 files named 'a.csv', and only one can be read: unpack ...
    """
    name, n = max(Counter(names).items(), key=itemgetter(1), default=("", 0))
    if n > 1:
        raise DataError(
            f"holds {n} files named {name!r}, and only one can be read: unpack it, keep the right "
            "one, and pack it again"
        )


def check_zip(archive: zipfile.ZipFile, most: float = inf) -> None:
    """Raise ``DataError`` if a zip archive unpacks to too many bytes, or doubles a name."""
    check_names(archive.namelist())
    packed = archive.start_dir  # where the list of its files begins
    check_unpacked(sum(info.file_size for info in archive.infolist()), packed, most)
