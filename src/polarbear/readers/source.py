"""A source: the files behind one path, be it a file, a folder, or a zip or tar archive.

Readers see names and contents only. What a file says about other files is looked up among these
names, so no file can make a reader open one outside the source. Archives are not unpacked to disk.
"""

import gzip
import io
import lzma
import posixpath
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from polarbear.data.names import natural_sort_key
from polarbear.data.run import Direction
from polarbear.errors import DataError

MAX_UNPACKED_BYTES = 1 << 28
"""The most that all packed files of a source may unpack to together: not all of the memory."""

TAR_HEADER_BYTES = 512

EXAMPLE_PATH = Path(__file__).parents[1] / "examples" / "mabbob_d5.csv"
"""The results that come with the package: seven algorithms on 60 problems."""


class Refused(Exception):  # noqa: N818 (an answer, not an error)
    """A reader's answer that this is not its format, and why.

    >>> def read_mine(source, *, direction="minimize"):
    ...     if not source.ending(".mine"):
    ...         raise Refused("no file ends in .mine")
    """


class RefusedIncomplete(Refused):
    """The same, where the files look like the format: worth being said first.

    ``arguments`` are those of ``read`` that would supply what is lacking.
    """

    def __init__(self, why: str, arguments: Mapping[str, object] | None = None):
        super().__init__(why)
        self.arguments = dict(arguments or {})


class Source:
    """The files behind a path, by name, as readers see them.

    Attributes
    ----------
    label
        What messages call the whole.
    files
        The names of the files, with folders before them; hidden ones are left out.

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
        close: Callable[[], None] = lambda: None,
    ):
        self.label = label
        self.root = root or label  # the folder that names are relative to
        self.close = close
        shown = [name for name in load if not _is_hidden(name)] if names is None else names
        self.files = tuple(sorted(shown, key=natural_sort_key))
        self.forced = False  # whether the caller insists on a format, whatever files are called
        self.memo: dict[str, Any] = {}  # what readers have parsed, so that it is parsed once
        self._load = load
        self._paths = paths
        self._packed = packed or {}  # what files of an archive unpack to, as it says
        self._unpacked: dict[str, int] = {}  # what files did unpack to
        self._total = 0

    def ending(self, *endings: str) -> list[str]:
        """The files whose names end in one of these, in any case; packed with gzip or not."""
        if self.forced and len(self.files) == 1:
            return list(self.files)
        names = [name for name in self.files if name.lower().removesuffix(".gz").endswith(endings)]
        with prefix_errors(self.label):
            check_unpacked_size(sum(self._packed.get(name, 0) for name in names))
        return names

    def path(self, name: str) -> str:
        """The whole path of a file, for patterns; an archive is a folder called like it."""
        return f"{self.root}/{name}"

    def content(self, name: str) -> bytes:
        """All bytes of a file, unpacked if it is a ``.gz``."""
        with wrap_archive_errors(name):
            self._count(name, self._packed.get(name, 0))
            content = self._load[name]()
            if name.lower().endswith(".gz"):
                with gzip.open(io.BytesIO(content)) as file:
                    content = file.read(MAX_UNPACKED_BYTES + 1)
                self._count(name, len(content) + self._packed.get(name, 0))
        return content

    def _count(self, name: str, size: int) -> None:
        """Add what a file unpacks to, once, and refuse a source that unpacks to too much."""
        self._total += max(size - self._unpacked.get(name, 0), 0)
        self._unpacked[name] = max(size, self._unpacked.get(name, 0))
        check_unpacked_size(self._total)

    def handle(self, name: str) -> Path | io.BytesIO:
        """A file for libraries that read files themselves, and need not all of it."""
        return self._paths.get(name) or io.BytesIO(self.content(name))

    def lines(self, name: str) -> list[str]:
        """The lines of a text file, without their ends."""
        return self.text(name).split("\n")

    def text(self, name: str) -> str:
        """A text file, with lines that end as in Python."""
        content = self.content(name).removeprefix(b"\xef\xbb\xbf")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise DataError(f"{name}: line {line}: not text in UTF-8") from None
        return text.replace("\r\n", "\n")

    def beside(self, name: str, other: str) -> str:
        """The file that ``name`` refers to as ``other``."""
        folder = posixpath.dirname(name)
        there = posixpath.normpath(posixpath.join(folder, other.replace("\\", "/")))
        found = self.find(there)
        if found is None:
            raise DataError(f"{name} refers to {other!r}, which is not there")
        return found

    def find(self, name: str) -> str | None:
        """The file of a name, packed with gzip or not."""
        return next((file for file in (name, f"{name}.gz") if file in self._load), None)


def open_source(path: str | PathLike[str]) -> Source:
    """The files behind a path."""
    if not str(path):
        raise DataError("the path is empty")
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
        packed = bool(start) and start != b"PK\x03\x04" and tarfile.is_tarfile(path)
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: {error}") from None
    if not exists:
        there = path.name == EXAMPLE_PATH.name
        hint = "; the example comes with the package: runs = pb.example()" if there else ""
        raise DataError(f"{path}: no such file or folder{hint}")
    with wrap_archive_errors(str(path)):
        if folder:
            source = _open_folder(path)
        elif start == b"PK\x03\x04":
            source = _open_zip(path)
        elif packed:
            source = _open_tar(path)
        elif not start:
            raise DataError("the file is empty")
        else:
            # What a file refers to lies beside it: it can be opened, but is not read unasked.
            index = path.suffix.lower() in (".json", ".info")
            near = [*path.parent.glob("*"), *path.parent.glob("*/*")] if index else [path]
            source = _open_files(
                _relative_names(path.parent, near), path, path.parent, names=[path.name]
            )
    if not source.files:
        raise DataError(f"{path}: holds no files")
    return source


def _open_folder(path: Path) -> Source:
    return _open_files(_relative_names(path, path.rglob("*")), path, path)


def _relative_names(folder: Path, files: Iterable[Path]) -> dict[str, Path]:
    return {file.relative_to(folder).as_posix(): file for file in files if file.is_file()}


def _open_files(
    paths: Mapping[str, Path], label: Path, root: Path, names: Iterable[str] | None = None
) -> Source:
    plain = {name: path for name, path in paths.items() if path.suffix != ".gz"}
    load = {name: path.read_bytes for name, path in paths.items()}
    return Source(str(label), load, plain, names, root=root.absolute().as_posix())


def _open_zip(path: Path) -> Source:
    archive = zipfile.ZipFile(path)  # opened once: its directory may list thousands of files
    members = {info.filename: info for info in archive.infolist() if not info.is_dir()}

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
        close=archive.close,
    )


def _open_tar(path: Path) -> Source:
    """All of it at once: to find a file in a packed tar, everything before it is unpacked."""
    contents: dict[str, bytes] = {}
    total = 0
    with tarfile.open(path) as archive:
        for member in archive:
            total += member.size + TAR_HEADER_BYTES
            check_unpacked_size(total)
            if member.isfile() and (file := archive.extractfile(member)):
                contents[member.name.removeprefix("./")] = file.read()

    def loader(name: str) -> Callable[[], bytes]:
        return lambda: contents[name]

    return Source(
        str(path),
        {name: loader(name) for name in contents},
        {},
        root=_strip_archive_suffix(path),
        packed={name: len(content) for name, content in contents.items()},
    )


def _strip_archive_suffix(path: Path) -> str:
    """The path of an archive as if it were a folder: runs.tar.gz is runs."""
    name = re.sub(r"(\.tar)?\.\w+$", "", path.name)
    return path.absolute().with_name(name or path.name).as_posix()


def check_unpacked_size(size: int) -> None:
    """Refuse what unpacks to more than the memory should hold."""
    if size > MAX_UNPACKED_BYTES:
        raise DataError(f"unpacks to more than {MAX_UNPACKED_BYTES >> 20} MiB; unpack it yourself")


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in name.split("/"))


@contextmanager
def wrap_archive_errors(name: str) -> Iterator[None]:
    """Turn what the standard library raises on damaged archives into one error."""
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
    """Put the file's name before what is wrong in it, unless it is there."""
    try:
        yield
    except DataError as error:
        message = str(error)
        raise DataError(message if message.startswith(name) else f"{name}: {message}") from None


def resolve_direction(asked: Direction | None, told: Direction) -> Direction:
    """The direction that a format always has, if the caller asks for no other."""
    if asked not in (None, told):
        raise DataError(f"these files always {told}, but direction={asked!r} was asked for")
    return told


def parse_number(token: str, where: str) -> float:
    """A number in a text file; nan and what is no number are errors with their place."""
    try:
        found = float(token)
    except ValueError:
        raise DataError(f"{where}: {token[:40]!r} is not a number") from None
    if found != found:
        raise DataError(f"{where}: nan is not a value")
    return found


def parse_time(token: str, where: str) -> float:
    """A time in a text file: a finite number that is not negative."""
    found = parse_number(token, where)
    if not 0 <= found < float("inf"):
        raise DataError(f"{where}: {token[:40]!r} is not a time")
    return found
