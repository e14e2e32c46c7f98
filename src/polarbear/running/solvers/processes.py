"""Processes and what they use: sessions, descendants, memory, CPU time, cores.

Linux tells all of it in ``/proc``. Where there is none, nothing is known of descendants: groups are
killed all the same, and memory is limited by the address space if that is asked for.
"""

import ctypes
import errno
import os
import signal
import stat
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from polarbear.errors import warn

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""Where libraries look for how many threads they may start."""

WAIT_WARNING_SECONDS = 10.0
"""A process that waits so long for room for another one says so, if it has been asked to."""

Started = TypeVar("Started")

_FULL = (errno.EAGAIN, errno.ENOMEM)  # what the system says if there is no room for a process
_PROC = Path("/proc")
_LINUX = sys.platform == "linux"
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_prctl = ctypes.CDLL(None, use_errno=True).prctl if _LINUX else None
_UNTIL_GONE = 5.0  # seconds to wait for killed processes to go
_THREADS = r"os\.fork\(\) was called"


class Usage(NamedTuple):
    """CPU seconds, and the peak of resident memory in bytes."""

    cpu: float
    memory: int


def detach_descriptors(keep: Collection[int] = ()) -> None:
    """Let go of the files and connections of the process that this one was forked from.

    Standard streams, ``keep``, and files and folders that were opened for reading alone stay. Each
    other descriptor becomes one that cannot be written to, so that its number is not given to
    another file while some object still takes it for its own.
    """
    import fcntl  # not there on Windows

    nothing = os.open(os.devnull, os.O_RDONLY)
    known = os.fstat(nothing)
    for descriptor in {*_descriptors()} - {0, 1, 2, nothing, *keep}:
        try:
            status = os.fstat(descriptor)
            writes = fcntl.fcntl(descriptor, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR)
        except OSError:  # closed meanwhile, as the one that listed them is
            continue
        file = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
        if writes or not (file or os.path.samestat(status, known)):
            os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)


def _descriptors() -> list[int]:
    listed = "/proc/self/fd" if _LINUX else "/dev/fd"
    return [int(name) for name in os.listdir(listed)]  # noqa: PTH208 (twice as fast)


def die_with(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Get a signal when the parent ends, and end at once if it has ended already.

    The signal is sent when the *thread* ends that started this process: start it from one that
    stays.
    """
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number)
        # The parent may have died before it was said that its death matters.
        if os.getppid() != parent:
            os._exit(1)


def start_when_possible(
    start: Callable[[], Started],
    wanted: Callable[[], bool] = lambda: True,
    *,
    warns: bool = False,
) -> Started:
    """Start a process or a thread; while the system has no room for one, wait and try again.

    Parameters
    ----------
    start
        Raises ``OSError`` (EAGAIN, ENOMEM) or "can't start new thread" if there is no room.
    wanted
        The error is raised as soon as this is false.
    warns
        Whether to warn after ``WAIT_WARNING_SECONDS``.
    """
    began, pause = time.monotonic(), 0.01
    while True:
        try:
            return start()
        except (OSError, RuntimeError) as error:
            full = error.errno in _FULL if isinstance(error, OSError) else "thread" in str(error)
            if not full or not wanted():
                raise
            why = str(error)
        if warns and time.monotonic() > began + WAIT_WARNING_SECONDS:
            warns = False
            warn(f"the system has no room for another process ({why}): waiting until it has")
        time.sleep(pause)
        pause = min(2 * pause, 0.5)


def fork() -> int:
    """Fork, without the warnings of Python and JAX that there are threads, here and in the child.

    The child has none, so that it may fork in its turn. Who wants this process to end is heard
    before or after: what a handler raises in the middle, Python prints and forgets.
    """
    with warnings.catch_warnings(), _later(signal.SIGINT, signal.SIGTERM):
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", _THREADS, RuntimeWarning)
        pid = os.fork()
    if pid == 0:
        warnings.filterwarnings("ignore", _THREADS, RuntimeWarning)
    return pid


@contextmanager
def _later(*signals: signal.Signals) -> Iterator[None]:
    """Signals wait until this is over."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends, daemons among them."""
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def descendants(pid: int) -> list[int]:
    """Processes below a process, as far as the system tells."""
    found: list[int] = []
    queue = [pid]
    while queue:
        below = _children(queue.pop())
        found += below
        queue += below
    return found


def kill_below(spared: Collection[int] = ()) -> Usage:
    """Kill whatever is below this process, but for those ``spared``, and say what it had used.

    Descendants may start others while they are being killed, so this goes on until none is left.
    """
    cpu, memory = 0.0, 0
    give_up = time.monotonic() + _UNTIL_GONE
    while time.monotonic() < give_up:
        left = [pid for pid in descendants(os.getpid()) if pid not in spared]
        for pid in left:
            kill(pid)
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if not pid and not left and spared:
            break
        if pid:
            cpu += usage.ru_utime + usage.ru_stime
            memory = max(memory, _peak(usage.ru_maxrss))
        else:
            time.sleep(0.001)
    return Usage(cpu, memory)


def reap(pid: int) -> tuple[int, Usage]:
    """Wait for a child: its exit status, and what it and those it waited for have used."""
    _, status, usage = os.wait4(pid, 0)
    return status, Usage(usage.ru_utime + usage.ru_stime, _peak(usage.ru_maxrss))


def kill(pid: int) -> None:
    """Kill a process, if it is there."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def kill_group(pid: int) -> None:
    """Kill a process group at one stroke, so that none of it can start another meanwhile."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def kill_session(session: int) -> None:
    """Kill every process of a session; what is left of a run whose supervisor is gone."""
    kill_group(session)
    for entry in _PROC.glob("[0-9]*") if _LINUX else ():
        fields = _stat(int(entry.name))
        if fields and int(fields[3]) == session:
            kill(int(entry.name))


def resident(pids: Iterable[int]) -> int:
    """Resident memory of processes in bytes, pages that they share counted for each."""
    return sum(int(words[1]) * _PAGE for pid in pids if (words := _words(f"{pid}/statm")))


def proportional(pids: Iterable[int]) -> int:
    """The same, but pages that several share counted once; slower to find out."""
    return sum(
        1024 * int(words[words.index("Pss:") + 1])
        for pid in pids
        if "Pss:" in (words := _words(f"{pid}/smaps_rollup"))
    )


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU time of processes and of those that they have waited for."""
    found = (fields for pid in pids if (fields := _stat(pid)))
    return sum(sum(map(int, fields[11:15])) for fields in found) / _TICK


@cache
def machine_memory() -> int | None:
    """How much memory there is, for this machine or for the group of processes this one is in."""
    try:
        pages = os.sysconf("SC_PHYS_PAGES") * _PAGE
    except (AttributeError, ValueError, OSError):
        return None
    return min([pages, *cgroup_limits()])


def cgroup_limits(
    listed: Path = Path("/proc/self/cgroup"), mounted: Path = Path("/sys/fs/cgroup")
) -> list[int]:
    """Limits of memory of the control groups that this process is in, and of those above."""
    limits: list[int] = []
    try:
        lines = [line.split(":", 2) for line in listed.read_text().splitlines()]
    except OSError:
        return limits
    for _, controllers, path in (line for line in lines if len(line) == 3):
        if controllers and "memory" not in controllers.split(","):
            continue
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        for root in (mounted / "memory",) if controllers else (mounted, mounted / "unified"):
            group = root / path.lstrip("/")
            for folder in (group, *group.parents):
                if folder.is_relative_to(root):
                    with suppress(OSError, ValueError):  # none there, or "max"
                        limits.append(int((folder / name).read_text()))
    return limits


def cores() -> list[int]:
    """The cores this process may use, one of each that are two halves of the same."""
    if not hasattr(os, "sched_getaffinity"):
        return list(range(os.cpu_count() or 1))
    allowed = sorted(os.sched_getaffinity(0))
    first: dict[str, int] = {}
    for core in allowed:
        siblings = f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"
        try:
            same = Path(siblings).read_text()
        except OSError:
            same = str(core)
        first.setdefault(same, core)
    return list(first.values())


def pin(core: int | None) -> None:
    """Stay on a core, where the system has such a thing."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def _children(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 (twice as fast)
    except OSError:
        return []
    return [int(word) for task in tasks for word in _words(f"{pid}/task/{task}/children")]


def _words(path: str) -> list[str]:
    try:
        return (_PROC / path).read_text().split()
    except OSError:
        return []


def _stat(pid: int) -> list[str]:
    """The fields behind the name, which may hold spaces and brackets."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return []


def _peak(maxrss: int) -> int:
    return maxrss if sys.platform == "darwin" else 1024 * maxrss
