"""``Source``: the files behind one path, which is a file, a folder, or a zip or tar archive.

Readers see names and contents only. References between files are looked up among these names, so
no file can make a reader open one outside of the source. Archives are not unpacked to disk.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import posixpath
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, cast

from polarbear.data.names import natural_sort_key
from polarbear.data.run import SAY_DIRECTION, Direction
from polarbear.data.unpacking import (
    MAX_UNPACKED_BYTES,
    check_names,
    check_unpacked,
    limit_unpacked,
)
from polarbear.errors import Argument, DataError, Message, Text

_OPEN_PACKED: Mapping[str, Callable[[io.BytesIO], io.BufferedIOBase]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
"""How files with a second ending are unpacked."""

_OPEN_PACKED_TAR: Mapping[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZ": bz2.open,
    b"\xfd7": lzma.open,
    b"]\0": lzma.open,
}
"""How a packed tar archive is unpacked, by its first two bytes."""

_EXAMPLES = Path(__file__).parents[1] / "examples"
EXAMPLE_PATHS: Mapping[str, Path] = {
    "bbob": _EXAMPLES / "bbob_d10.csv",
    "cma-variants": _EXAMPLES / "mabbob_d5.csv",
}
"""The example results, by the name that ``example`` takes."""


class Refused(Message, Exception):  # noqa: N818 (an answer, not an error)
    """Raised by a reader if files have another format than its own; the message says why.

    >>> def read_mine(source, *, direction="minimize"):
    ...     if not source.ending(".mine"):
    ...         raise Refused("no file ends in .mine")
    """


class RefusedIncomplete(Refused):
    """Raised by a reader if files seem to have its format but lack columns or arguments.

    ``arguments`` are those of ``read`` that would supply what is missing.
    """

    def __init__(self, why: Text, arguments: Mapping[str, object] | None = None):
        super().__init__(why)
        self.arguments = dict(arguments or {})


class Source:
    """The files of a folder, of an archive or of a single path, by name, as readers see them.

    Attributes
    ----------
    label
        The name of the source in messages.
    files
        The names of the files, with their folders; hidden files are left out.

    Examples
    --------
    >>> source = Source("results", {"a/1.log": lambda: b"0.5 9", "a/notes.md": lambda: b""}, {})
    >>> source.files, source.ending(".log"), source.lines("a/1.log")
    (('a/1.log', 'a/notes.md'), ['a/1.log'], ['0.5 9'])
    """

    def __init__(
        self,
        label: str,
        load: Mapping[str, Callable[[], bytes]],
        paths: Mapping[str, Path],
        names: Iterable[str] | None = None,
        *,
        root: str = "",
        packed: Mapping[str, int] | None = None,
        archive_bytes: int = 0,
        close: Callable[[], None] = lambda: None,
    ):
        self.label = label
        self.root = root or label  # the folder that names are relative to
        self.close = close
        visible = [name for name in load if not _is_hidden(name)] if names is None else names
        self.files = tuple(sorted(visible, key=natural_sort_key))
        self.forced = False  # whether the caller named the format, so that endings do not matter
        self.used: set[str] = set()  # the files whose content was read
        self.skipped: set[str] = set()  # files that hold no runs
        self.memo: dict[str, Any] = {}  # what readers have parsed, so that it is parsed once
        self._load = load
        self._paths = paths
        self._packed = packed or {}  # the unpacked sizes that an archive states, in bytes
        # The size of the archive, or of the packed files of a folder that were read.
        self._archive_bytes, self._packed_bytes = archive_bytes, archive_bytes
        self._unpacked: dict[str, int] = {}  # the actual unpacked sizes, in bytes
        self._total = 0

    def ending(self, *endings: str) -> list[str]:
        """List the files whose names have one of these endings, also packed (.gz, .bz2, .xz)."""
        if self.forced and len(self.files) == 1:
            return list(self.files)
        names = [name for name in self.files if split_packing(name)[0].lower().endswith(endings)]
        with prefix_errors(self.label):
            stated = sum(self._packed.get(name, 0) for name in names)
            check_unpacked(stated, self._archive_bytes, MAX_UNPACKED_BYTES)
        return names

    def path(self, name: str) -> str:
        """Return the whole path of a file, for patterns; an archive counts as a folder."""
        return f"{self.root}/{name}"

    def content(self, name: str) -> bytes:
        """Return all bytes of a file; a packed one is unpacked."""
        self.used.add(name)
        with wrap_archive_errors(name):
            self.count_unpacked(name, self._packed.get(name, 0))
            content = self._load[name]()
            if packing := split_packing(name)[1]:
                if not self._archive_bytes and name not in self._unpacked:
                    self._packed_bytes += len(content)
                limit = limit_unpacked(self._packed_bytes, MAX_UNPACKED_BYTES)
                with _OPEN_PACKED[packing](io.BytesIO(content)) as file:
                    content = file.read(int(limit) + 1)
                self.count_unpacked(name, len(content) + self._packed.get(name, 0))
        return content

    def leave(self, name: str) -> None:
        """Record that a file was not read, so that a warning says so if it looks like results."""
        self.used.discard(name)

    def skip(self, name: str) -> None:
        """Record that a file holds no runs, so that no warning says that it was not read."""
        self.used.discard(name)
        self.skipped.add(name)

    def count_unpacked(self, name: str, size: int) -> None:
        """Add a file's unpacked size to the total, once, and raise an error above the limit."""
        if size:
            self._total += max(size - self._unpacked.get(name, 0), 0)
            self._unpacked[name] = max(size, self._unpacked.get(name, 0))
            check_unpacked(self._total, self._packed_bytes, MAX_UNPACKED_BYTES)

    def handle(self, name: str) -> Path | io.BytesIO:
        """Return the path of a file or an open file, for libraries that read files themselves."""
        self.used.add(name)
        return self._paths.get(name) or io.BytesIO(self.content(name))

    def lines(self, name: str) -> list[str]:
        """Return the lines of a text file, without line ends."""
        return self.text(name).split("\n")

    def text(self, name: str) -> str:
        r"""Return the content of a text file, with ``\n`` as line end."""
        content = self.content(name).removeprefix(b"\xef\xbb\xbf")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise DataError(f"{name}: line {line}: not text in UTF-8; convert the file") from None
        return text.replace("\r\n", "\n")

    def beside(self, name: str, other: str) -> str:
        """Return the name of the file at the path ``other``, relative to the file ``name``."""
        folder = posixpath.dirname(name)
        path = posixpath.normpath(posixpath.join(folder, other.replace("\\", "/")))
        file = self.find(path)
        if file is None:
            raise DataError(f"{name} refers to {other!r}, which is not there: add that file")
        return file

    def find(self, name: str) -> str | None:
        """Return the name of a file, perhaps with .gz or .bz2 added; ``None`` if there is none."""
        return next(
            (file for file in (name, *map(name.__add__, _OPEN_PACKED)) if file in self._load), None
        )


def split_packing(name: str) -> tuple[str, str]:
    """Split an ending such as .gz or .bz2 off a file name.

    >>> split_packing("a.csv.GZ"), split_packing("a.csv")
    (('a.csv', '.gz'), ('a.csv', ''))
    """
    stem, ending = posixpath.splitext(name)
    return (stem, ending.lower()) if ending.lower() in _OPEN_PACKED else (name, "")


def open_source(path: str | PathLike[str]) -> Source:
    """Open the file, folder or archive at a path as a ``Source``."""
    if not str(path):
        raise DataError("the path is empty: name a file or a folder")
    path = Path(path)
    try:
        exists, folder, start = path.exists(), path.is_dir(), b""
        if exists and not folder:
            if not path.is_file():  # reading would wait, or never end
                raise DataError(
                    f"{path}: is a pipe or a device; save what it holds to a file and read that"
                )
            with path.open("rb") as file:
                start = file.read(4)
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: {error}") from None
    if not exists:
        calls = [f"pb.example({k!r})" for k, own in EXAMPLE_PATHS.items() if own.name == path.name]
        hint = f"; the example comes with the package: runs = {calls[0]}" if calls else ""
        raise DataError(f"{path}: no such file or folder{hint}")
    with wrap_archive_errors(str(path)):
        if folder:
            source = _open_folder(path)
        elif not start:
            raise DataError("the file is empty: name a file with results")
        elif start == b"PK\x03\x04":
            source = _open_zip(path)
        elif (archive := _open_tar(path, start)) is not None:
            source = archive
        else:
            # Files beside an index can be opened by reference, but are not listed.
            stem, _ = split_packing(path.name.lower())
            index = stem.endswith((".json", ".info", ".arff"))
            near = [*path.parent.glob("*"), *path.parent.glob("*/*")] if index else [path]
            source = _open_files(
                _relative_names(path.parent, near), path, path.parent, names=[path.name]
            )
    if not source.files:
        raise DataError(f"{path}: the folder or archive holds no files")
    return source


def _open_folder(path: Path) -> Source:
    return _open_files(_relative_names(path, path.rglob("*")), path, path)


def _relative_names(folder: Path, files: Iterable[Path]) -> dict[str, Path]:
    return {file.relative_to(folder).as_posix(): file for file in files if file.is_file()}


def _open_files(
    paths: Mapping[str, Path], label: Path, root: Path, names: Iterable[str] | None = None
) -> Source:
    plain = {name: path for name, path in paths.items() if not split_packing(name)[1]}
    load = {name: path.read_bytes for name, path in paths.items()}
    return Source(str(label), load, plain, names, root=root.absolute().as_posix())


def _open_zip(path: Path) -> Source:
    archive = zipfile.ZipFile(path)  # opened once: its directory may list thousands of files
    listed = [info for info in archive.infolist() if not info.is_dir()]
    try:
        check_names(info.filename for info in listed)
    except DataError:
        archive.close()
        raise
    members = {info.filename: info for info in listed}

    def loader(info: zipfile.ZipInfo) -> Callable[[], bytes]:
        def load() -> bytes:
            with archive.open(info) as file:
                return file.read(info.file_size + 1)  # zipfile refuses what is longer than it says

        return load

    return Source(
        str(path),
        {name: loader(info) for name, info in members.items()},
        {},
        root=_strip_archive_suffix(path),
        packed={name: info.file_size for name, info in members.items()},
        archive_bytes=path.stat().st_size,
        close=archive.close,
    )


class _LimitedFile:
    """A file of which a tar archive reads no more than a limit: a header may state any size."""

    def __init__(self, file: Any, packed: int) -> None:
        self._file, self._packed = file, packed
        self.tell, self.close = file.tell, file.close

    def read(self, size: int) -> bytes:
        check_unpacked(self._file.tell() + size, self._packed, MAX_UNPACKED_BYTES)
        return self._file.read(size)

    def seek(self, position: int) -> int:
        check_unpacked(position, self._packed, MAX_UNPACKED_BYTES)
        return self._file.seek(position)


def _open_tar(path: Path, start: bytes) -> Source | None:
    """Read all files of a tar archive at once, since a packed tar has no random access.

    Return ``None`` if the file is not a tar archive.
    """
    unpack: Callable[[Path], Any] = _OPEN_PACKED_TAR.get(start[:2], partial(Path.open, mode="rb"))
    with closing(_LimitedFile(unpack(path), path.stat().st_size)) as stream:
        try:
            archive = tarfile.TarFile(fileobj=cast(Any, stream))
        except (tarfile.TarError, OSError, EOFError, lzma.LZMAError, zlib.error):
            return None
        contents = [
            (member.name.removeprefix("./"), file.read())
            for member in archive
            if member.isfile() and (file := archive.extractfile(member))
        ]
        stream.seek(archive.offset)
        if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise DataError(f"{path}: the archive is cut or damaged: its end is missing")
    check_names(name for name, _ in contents)

    def loader(content: bytes) -> Callable[[], bytes]:
        return lambda: content

    return Source(
        str(path),
        {name: loader(content) for name, content in contents},
        {},
        root=_strip_archive_suffix(path),
        packed={name: len(content) for name, content in contents},
        archive_bytes=path.stat().st_size,
    )


def _strip_archive_suffix(path: Path) -> str:
    """Return the path of an archive without its endings: runs.tar.gz becomes runs."""
    name = re.sub(r"(\.tar)?\.\w+$", "", path.name)
    return path.absolute().with_name(name or path.name).as_posix()


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in name.split("/"))


@contextmanager
def wrap_archive_errors(name: str) -> Iterator[None]:
    """Raise ``DataError`` in place of the exceptions of the standard library on damaged files."""
    try:
        with prefix_errors(name):
            yield
    except DataError:
        raise
    except (
        OSError,
        EOFError,
        KeyError,
        RuntimeError,
        ValueError,
        lzma.LZMAError,
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
    ) as error:
        raise DataError(f"{name}: cannot be read: {error}") from None


@contextmanager
def prefix_errors(name: str) -> Iterator[None]:
    """Put the name of the file before the message of a ``DataError``, unless the message has it."""
    try:
        yield
    except DataError as error:
        raise DataError("" if str(error).startswith(name) else f"{name}: ", error) from None


def choose_direction(
    parts: Sequence[Any],
    asked: Direction | None,
    label: str,
    what: str,
    unknown: str = "",
) -> Direction:
    """Return the direction that was asked for, or else the one that all parts of a source have.

    The ``direction`` of a part is None if nothing states it. ``what`` names the parts in messages,
    and ``unknown`` says that none of them states it. Parts of the other direction are not read.
    """
    known: set[Direction] = {one.direction for one in parts if one.direction}
    if asked is None and len(known) != 1:
        why = f"some {what} minimise and some maximise" if known else unknown
        raise DataError(f"{label}: {why}; pass ", SAY_DIRECTION)
    chosen = asked or known.pop()
    if not any(one.direction in (None, chosen) for one in parts):
        raise DataError(f"{label}: holds no {what} that {chosen}; pass the other direction")
    return chosen


def resolve_direction(asked: Direction | None, fixed: Direction) -> Direction:
    """Return a format's fixed direction; raise ``DataError`` if the caller asks for another."""
    if asked not in (None, fixed):
        raise DataError(
            "this format always has ",
            Argument("direction", fixed),
            "; leave it out",
            direction=asked,
        )
    return fixed


def parse_number(token: str, where: str) -> float:
    """Parse a number; raise ``DataError`` with its place in the file if it is nan or no number."""
    try:
        number = float(token)
    except ValueError:
        raise DataError(f"{where}: {token[:40]!r} is not a number") from None
    if number != number:
        raise DataError(f"{where}: the value is nan, expected a number")
    return number


def parse_time(token: str, where: str) -> float:
    """Parse a time; raise ``DataError`` unless it is finite and not negative."""
    time = parse_number(token, where)
    if not 0 <= time < float("inf"):
        raise DataError(f"{where}: {token[:40]!r} is not a time: expected a finite number >= 0")
    return time
