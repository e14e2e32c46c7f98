"""What a reader promises, as a test of readers in other packages. May import source."""

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from polarbear.data.runs import Runs
from polarbear.errors import DataError
from polarbear.readers.source import Refused, open_source


def check_reader(
    reader: Callable[..., Runs], files: str | os.PathLike[str], **options: Any
) -> Runs:
    """Check that a reader of yours keeps what :func:`polarbear.read` promises, on sample files.

    A folder and a zip archive of it must be the same runs, and files of another program must raise
    :class:`polarbear.readers.Refused`, so that other formats are tried. Files that are cut off or
    damaged must be read or raise :class:`polarbear.DataError`, not an error that only
    programmers understand.

    Parameters
    ----------
    reader
        The reader, as in ``pb.read(..., format=reader)``.
    files
        A file that the real program wrote, or a folder of such files.
    options
        Options of the reader that these files need.

    Returns
    -------
    Runs
        The runs of the files, for checks of what they should be.

    Raises
    ------
    AssertionError
        With the promise that the reader does not keep.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> import polarbear as pb
    >>> def read_mine(source):
    ...     text = {name: source.text(name) for name in source.ending(".mine")}
    ...     runs = [pb.Run("a", name, [1.0], [float(text[name])], until=2.0) for name in text]
    ...     return pb.Runs.from_records(runs, direction="minimize", clock="seconds")
    >>> folder = Path(mkdtemp())
    >>> _ = (folder / "x.mine").write_text("0.25")
    >>> pb.readers.check_reader(read_mine, folder)
    Traceback (most recent call last):
    AssertionError: for notes.text, the reader must raise Refused
    """
    read, files = partial(_read, reader, options), Path(files)
    runs = read(files)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "copy")
        if files.is_dir():
            shutil.copytree(files, copy)
            if read(Path(shutil.make_archive(str(copy), "zip", copy))) != runs:
                raise AssertionError("a folder and a zip archive of it must be the same runs")
        else:
            copy.mkdir()
            shutil.copy(files, copy)
        for name in "notes.text", "package.json":
            other = Path(scratch, name)
            other.write_text('{"of": "another program"}\n', "utf-8")
            found = _catch(read, other)
            if not isinstance(found, Refused):
                raise AssertionError(f"for {name}, the reader must raise Refused") from found
        for path in sorted(path for path in copy.rglob("*") if path.is_file()):
            content = path.read_bytes()
            start, end = content[: len(content) // 2], content[len(content) // 2 :]
            for what, damaged in {
                "is cut off": start,
                "has a line of another program": start + b"\n?, {x: \n" + end,
                "has bytes that are no text": start + b"\xff\x00" + end,
                "is empty": b"",
            }.items():
                path.write_bytes(damaged)
                found = _catch(read, copy)
                if not isinstance(found, DataError | None):
                    name = path.relative_to(copy).as_posix()
                    raise AssertionError(
                        f"if {name} {what}, a reader must return runs or raise DataError with the "
                        f"name of the file, but this was raised: {type(found).__name__}: {found}"
                    ) from found
            path.write_bytes(content)
    return runs


def _read(reader: Callable[..., Runs], options: dict[str, Any], path: Path) -> Runs:
    with closing(open_source(path)) as files:
        return reader(files, **options)


def _catch(read: Callable[[Path], Runs], path: Path) -> Exception | None:
    """Return what a reader raises, if anything."""
    try:
        read(path)
    except Exception as error:  # any error is what is looked for
        return error
    return None
