"""A source: the files behind one path, be it a file, a folder, or a zip or tar archive.

Readers see names and contents only. What a file says about other files is looked up among these
names, so nothing outside the source is ever opened, and archives are read without unpacking.
"""

import gzip
import io
import posixpath
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from polarbear.data.names import natural
from polarbear.data.run import Direction
from polarbear.errors import DataError

MOST_BYTES = 1 << 30
"""The largest packed file that is read, against files made to fill the memory."""


class Refused(Exception):  # noqa: N818 (an answer, not an error)
    """A reader's answer that this is not its format, and why."""


class Source:
    """Files by name. ``label`` is what messages call the whole, ``files`` what there is to read."""

    def __init__(
        self,
        label: str,
        load: Mapping[str, Callable[[], bytes]],
        paths: Mapping[str, Path],
        names: Iterable[str] | None = None,
    ):
        self.label = label
        shown = [name for name in (load if names is None else names) if not _hidden(name)]
        self.files = tuple(sorted(shown, key=natural))
        self._load = load
        self._paths = paths

    def __contains__(self, name: str) -> bool:
        return name in self._load

    def ending(self, *endings: str) -> list[str]:
        """The files whose names end in one of these, in any case; packed with gzip or not."""
        return [name for name in self.files if name.lower().removesuffix(".gz").endswith(endings)]

    def content(self, name: str) -> bytes:
        """All bytes of a file."""
        with unpacking(name):
            return self._load[name]()

    def handle(self, name: str) -> Path | io.BytesIO:
        """A file for libraries that read files themselves, and need not all of it."""
        return self._paths.get(name) or io.BytesIO(self.content(name))

    def lines(self, name: str) -> list[str]:
        """The lines of a text file, without their ends."""
        content = self.content(name).removeprefix(b"\xef\xbb\xbf")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise DataError(f"{name}, line {line}: not text in UTF-8") from None
        return text.replace("\r\n", "\n").split("\n")

    def beside(self, name: str, other: str) -> str:
        """The file that ``name`` refers to as ``other``."""
        there = posixpath.normpath(
            posixpath.join(posixpath.dirname(name), other.replace("\\", "/"))
        )
        if there not in self._load:
            raise DataError(f"{name} refers to {other!r}, which is not there")
        return there


def open_source(path: str | Path) -> Source:
    """The files behind a path."""
    path = Path(path)
    try:
        if path.is_dir():
            return _folder(path)
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        with path.open("rb") as file:
            start = file.read(4)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {error}") from None
    with unpacking(path.name):
        if start == b"PK\x03\x04":
            return _zip(path)
        if tarfile.is_tarfile(path):
            return _tar(path)
    # What a file refers to lies beside it and can be opened too, but is not read unasked.
    beside = (
        _folder(path.parent) if path.suffix in (".json", ".info") else _files({path.name: path})
    )
    return Source(str(path), beside._load, beside._paths, names=[path.name])


def _folder(path: Path) -> Source:
    found = [file for file in path.rglob("*") if file.is_file()]
    return _files({file.relative_to(path).as_posix(): file for file in found}, str(path))


def _files(paths: Mapping[str, Path], label: str = "") -> Source:
    def loader(path: Path) -> Callable[[], bytes]:
        def load() -> bytes:
            if path.suffix != ".gz":
                return path.read_bytes()
            with gzip.open(path) as packed:
                return _at_most(packed.read(MOST_BYTES + 1))

        return load

    plain = {name: path for name, path in paths.items() if path.suffix != ".gz"}
    return Source(label, {name: loader(path) for name, path in paths.items()}, plain)


def _zip(path: Path) -> Source:
    def loader(name: str) -> Callable[[], bytes]:
        def load() -> bytes:
            with zipfile.ZipFile(path) as archive, archive.open(name) as file:
                return _at_most(file.read(MOST_BYTES + 1))

        return load

    with zipfile.ZipFile(path) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
    return Source(str(path), {name: loader(name) for name in names}, {})


def _tar(path: Path) -> Source:
    def loader(name: str) -> Callable[[], bytes]:
        def load() -> bytes:
            with tarfile.open(path) as archive:
                file = archive.extractfile(name)
                return _at_most(file.read(MOST_BYTES + 1)) if file else b""

        return load

    with tarfile.open(path) as archive:
        names = [member.name for member in archive if member.isfile()]
    return Source(str(path), {name.removeprefix("./"): loader(name) for name in names}, {})


def _at_most(content: bytes) -> bytes:
    if len(content) > MOST_BYTES:
        raise DataError(f"unpacks to more than {MOST_BYTES >> 20} MiB; unpack it yourself")
    return content


def _hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in name.split("/"))


@contextmanager
def unpacking(name: str) -> Iterator[None]:
    """Turn what the standard library raises on damaged archives into one error."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    except (
        OSError,
        EOFError,
        KeyError,
        RuntimeError,
        ValueError,
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
    ) as error:
        raise DataError(f"{name}: cannot be read: {error}") from None


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put the file's name before what is wrong in it."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def agreed(asked: Direction | None, told: Direction) -> Direction:
    """The direction that a format always has, if the caller asks for no other."""
    if asked not in (None, told):
        raise DataError(f"these files always {told}, but direction={asked!r} was asked for")
    return told


def number(token: str, where: str) -> float:
    """A number in a text file; nan and what is no number are errors with their place."""
    try:
        found = float(token)
    except ValueError:
        raise DataError(f"{where}: {token[:40]!r} is not a number") from None
    if found != found:
        raise DataError(f"{where}: nan is not a value")
    return found


def moment(token: str, where: str) -> float:
    """A time in a text file: a finite number that is not negative."""
    found = number(token, where)
    if not 0 <= found < float("inf"):
        raise DataError(f"{where}: {token[:40]!r} is not a time")
    return found
