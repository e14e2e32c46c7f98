"""The lock that lets one process at a time write to a store, and checks of its file system."""

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
"""Network file systems, on which the shared memory and the locks of SQLite do not work."""

_OCTAL = re.compile(r"\\([0-7]{3})")  # how the table of mounts writes a space

MOUNTS = Path("/proc/self/mountinfo")

_LOCKED: set[tuple[int, int, int]] = set()
"""Process, device and inode of the files that this process has locked."""


class WriterLock:
    """A lock on a file beside the store; the system releases it when the process ends.

    A POSIX lock belongs to a process and is not inherited by its children, so a solver that
    outlives its coordinator holds no lock. It does not keep the same process from locking twice,
    so locked files are also recorded in a set.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and _identity(path.stat()) in _LOCKED:
            raise BlockingIOError  # opening and closing the file would release the lock
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._key = _identity(os.fstat(self._file))
        if fcntl is not None:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(self._file)
                raise BlockingIOError from None
        _LOCKED.add(self._key)

    def release(self) -> None:
        """Release the lock; a second call has no effect."""
        if self._key in _LOCKED:
            _LOCKED.discard(self._key)
            os.close(self._file)


def _identity(about: os.stat_result) -> tuple[int, int, int]:
    return os.getpid(), about.st_dev, about.st_ino


def file_system(path: Path, mounts: str) -> str:
    """Return the file system type of a path, by the system's table of mounts; "" if unknown.

    >>> file_system(Path("/home/ann/race.db"), "36 35 0:44 / /home rw - nfs4 server:/home rw")
    'nfs4'
    """
    best, kind = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        point = Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4]))
        if (
            path.is_relative_to(point) and len(point.parts) >= best
        ):  # the later of two mounts hides the other
            best, kind = len(point.parts), right.split()[0]
    return kind


def find_network_file_system(path: Path) -> str:
    """Return the type of the network file system that holds a path; "" if it is local."""
    try:
        kind = file_system(path.resolve(), MOUNTS.read_text())
    except OSError:  # this system has no such table
        return ""
    return kind if kind in NETWORK else ""


def refuse_network(path: Path) -> None:
    """Raise an error if a path is on a network file system."""
    kind = find_network_file_system(path)
    if kind:
        raise StoreError(
            f"{path} is on a network file system ({kind}), where SQLite loses data; "
            "put the store on a local disk, or use a postgresql:// URL"
        )
