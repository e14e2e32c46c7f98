"""One writer at a time on one machine, and where files must not be."""

import os
import re
from pathlib import Path

from polarbear.errors import StoreError

try:
    import fcntl
except ImportError:  # not on Windows, where the epoch alone keeps an older writer out
    fcntl = None

NETWORK = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs"),
    *("glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "panfs", "pvfs2", "smb3"),
    *("smbfs", "wekafs"),
}
"""File systems between machines: what SQLite shares between processes does not work there."""

_OCTAL = re.compile(r"\\([0-7]{3})")  # how the table writes a space

MOUNTS = Path("/proc/self/mountinfo")

_HELD: set[tuple[int, int, int]] = set()


class Lease:
    """A lock on a file beside the store; whoever dies lets go of it.

    A POSIX lock belongs to a process and is not inherited by its children, so a solver that
    outlives its coordinator holds nothing. It would not keep the same process from locking
    twice, hence the set.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and _identity(path.stat()) in _HELD:
            raise BlockingIOError  # to open and close the file would let go of the lock
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._key = _identity(os.fstat(self._file))
        if fcntl is not None:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(self._file)
                raise BlockingIOError from None
        _HELD.add(self._key)

    def release(self) -> None:
        """Let go."""
        if self._key in _HELD:
            _HELD.discard(self._key)
            os.close(self._file)


def _identity(about: os.stat_result) -> tuple[int, int, int]:
    return os.getpid(), about.st_dev, about.st_ino


def file_system(path: Path, mounts: str) -> str:
    """The kind of file system that a path is on, by the table of mounts; "" if it is not known.

    >>> file_system(Path("/home/ann/race.db"), "36 35 0:44 / /home rw - nfs4 server:/home rw")
    'nfs4'
    """
    best, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        point = Path(_OCTAL.sub(lambda found: chr(int(found[1], 8)), fields[4]))
        if path.is_relative_to(point) and len(point.parts) >= best:  # of two, the later one counts
            best, kind = len(point.parts), right.split()[0]
    return kind


def on_network(path: Path) -> str:
    """The kind of network file system that a path is on; "" if it is on none."""
    try:
        kind = file_system(path.resolve(), MOUNTS.read_text())
    except OSError:  # no such table here
        return ""
    return kind if kind in NETWORK else ""


def refuse_network(path: Path) -> None:
    """Keep stores off file systems on which they would break."""
    kind = on_network(path)
    if kind:
        raise StoreError(
            f"{path} is on a network file system ({kind}), where SQLite loses data; "
            "put the store on a local disk, or use a postgresql:// URL"
        )
