"""Start, fork, find, measure and kill processes on this machine, and choose their cores.

``psutil`` measures them. Our own code does what it lacks: signals at the death of a parent, the
adoption of orphans, memory limits of control groups, and cores that are hyperthreads of one.
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
from typing import Any, NamedTuple, TypeVar

import psutil

from polarbear.errors import warn

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""Environment variables with which numerical libraries limit their number of threads."""

WAIT_WARNING_SECONDS = 10.0
"""After this wait for room for another process, a warning is given if it was asked for."""

Started = TypeVar("Started")

_NO_ROOM_ERRORS = (errno.EAGAIN, errno.ENOMEM)
_LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_prctl = ctypes.CDLL(None, use_errno=True).prctl if _LINUX else None
_KILL_TIMEOUT_SECONDS = 5.0
_FORK_WARNING = r"os\.fork\(\) was called"


class Usage(NamedTuple):
    """The resources that processes used: CPU seconds, and peak resident memory in bytes."""

    cpu_seconds: float
    peak_bytes: int


def detach_descriptors(keep: Collection[int] = ()) -> None:
    """Close the inherited files and connections of a forked process, except those to keep.

    Standard streams, ``keep``, and files and folders that were opened for reading alone stay. Each
    other descriptor becomes one that cannot be written to. It is not closed: its number would be
    given to another file, which an inherited object might then take for its own.
    """
    import fcntl  # not there on Windows

    devnull = os.open(os.devnull, os.O_RDONLY)
    devnull_status = os.fstat(devnull)
    for descriptor in {*_list_descriptors()} - {0, 1, 2, devnull, *keep}:
        try:
            status = os.fstat(descriptor)
            is_writable = fcntl.fcntl(descriptor, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR)
        except OSError:  # closed meanwhile, as the one is that listed the folder
            continue
        is_file = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
        if is_writable or not (is_file or os.path.samestat(status, devnull_status)):
            os.dup2(devnull, descriptor, inheritable=False)
    os.close(devnull)


def _list_descriptors() -> list[int]:
    """List all open file descriptors of this process, not only regular files."""
    folder = "/proc/self/fd" if _LINUX else "/dev/fd"
    return [int(name) for name in os.listdir(folder)]  # noqa: PTH208 (twice as fast)


def end_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Make the system send this process a signal when its parent ends.

    The signal is sent at the end of the *thread* that started this process, so that thread has to
    outlive it. Only Linux has such a signal.
    """
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number)
        # The parent may have ended before the signal was asked for.
        if os.getppid() != parent:
            os._exit(1)


def start_when_possible(
    start: Callable[[], Started],
    is_wanted: Callable[[], bool] = lambda: True,
    *,
    warns: bool = False,
) -> Started:
    """Start a process or a thread, and retry while the system has no room for one.

    Parameters
    ----------
    start
        Raises ``OSError`` (EAGAIN, ENOMEM) or "can't start new thread" if there is no room.
    is_wanted
        The error is raised as soon as this is false.
    warns
        Whether to warn after ``WAIT_WARNING_SECONDS``.
    """
    started_at, pause = time.monotonic(), 0.01
    while True:
        try:
            return start()
        except (OSError, RuntimeError) as error:
            is_os_error = isinstance(error, OSError)
            no_room = error.errno in _NO_ROOM_ERRORS if is_os_error else "thread" in str(error)
            if not no_room or not is_wanted():
                raise
            why = str(error)
        if warns and time.monotonic() > started_at + WAIT_WARNING_SECONDS:
            warns = False
            warn(f"the system has no room for another process ({why}): waiting until it has")
        time.sleep(pause)
        pause = min(2 * pause, 0.5)


def fork() -> int:
    """Fork this process, without the warnings of Python and JAX about threads.

    The child has no threads, so that it may fork in its turn. Signals to end this process wait
    until the fork is over: an exception raised by a handler during it would be printed and lost.
    """
    with warnings.catch_warnings(), _defer_signals(signal.SIGINT, signal.SIGTERM):
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", _FORK_WARNING, RuntimeWarning)
        pid = os.fork()
    if pid == 0:
        warnings.filterwarnings("ignore", _FORK_WARNING, RuntimeWarning)
    return pid


@contextmanager
def _defer_signals(*signals: signal.Signals) -> Iterator[None]:
    """Block signals during the ``with`` statement; they are delivered at its end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def adopt_orphans() -> None:
    """Make this process the parent of descendants, also daemons, whose own parent ends."""
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def find_descendants(pid: int) -> list[int]:
    """List the children of a process, their children, and so on."""
    if not _LINUX:
        with suppress(psutil.Error):
            return [child.pid for child in psutil.Process(pid).children(recursive=True)]
        return []
    # Not psutil, which reads every process of the machine for this: with 100 processes it took 20
    # times as long, and a supervisor asks 20 times a second.
    pids: list[int] = []
    queue = [pid]
    while queue:
        children = _read_children(queue.pop())
        pids += children
        queue += children
    return pids


def kill_descendants(spared: Collection[int] = ()) -> Usage:
    """Kill all descendants of this process except those ``spared``; return their usage.

    Descendants may start others while they are being killed, so this repeats until none is left.
    """
    cpu_seconds, peak_bytes = 0.0, 0
    give_up_at = time.monotonic() + _KILL_TIMEOUT_SECONDS
    while time.monotonic() < give_up_at:
        left = [pid for pid in find_descendants(os.getpid()) if pid not in spared]
        for pid in left:
            kill(pid)
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if not pid and not left and spared:
            break
        if pid:
            cpu_seconds += usage.ru_utime + usage.ru_stime
            peak_bytes = max(peak_bytes, _to_bytes(usage.ru_maxrss))
        else:
            time.sleep(0.001)
    return Usage(cpu_seconds, peak_bytes)


def reap(pid: int) -> tuple[int, Usage]:
    """Wait for a child to end; return its wait status, and the usage of it and its children."""
    _, status, usage = os.wait4(pid, 0)
    return status, Usage(usage.ru_utime + usage.ru_stime, _to_bytes(usage.ru_maxrss))


def kill(pid: int) -> None:
    """Kill a process, if it exists."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def kill_group(pid: int) -> None:
    """Kill a process group in one system call, so that no member can fork meanwhile."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def kill_session(session: int) -> None:
    """Kill every process of a session, such as the remains of a run without supervisor."""
    kill_group(session)
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == session:
                kill(pid)


def measure_resident_bytes(pids: Iterable[int]) -> int:
    """Return the summed resident memory of processes, in which shared pages count repeatedly."""
    return sum(_measure(pid, lambda process: process.memory_info().rss) for pid in pids)


def measure_proportional_bytes(pids: Iterable[int]) -> int:
    """Return the memory of processes with each shared page counted once; a slow call.

    Where the system does not know this (it is Linux that does), resident memory is summed.
    """

    def proportional(process: psutil.Process) -> int:
        memory = process.memory_full_info()
        return getattr(memory, "pss", memory.rss)

    return sum(_measure(pid, proportional) for pid in pids)


def measure_cpu_seconds(pids: Iterable[int]) -> float:
    """Return the summed CPU time of processes and of the children they have waited for."""

    def cpu_seconds(process: psutil.Process) -> float:
        times = process.cpu_times()
        return times.user + times.system + times.children_user + times.children_system

    return sum(_measure(pid, cpu_seconds) for pid in pids)


def measure_children() -> float:
    """Return the CPU time of all descendants of this process, also of those that have ended."""
    seconds, found = 0.0, find_descendants(os.getpid())
    for _ in range(3):  # one that ends meanwhile counts in neither itself nor its parent
        pids, waited = found, os.times()
        seconds = measure_cpu_seconds(pids) + waited.children_user + waited.children_system
        found = find_descendants(os.getpid())
        if found == pids:
            break
    return seconds


def _measure(pid: int, measure: Callable[[psutil.Process], float]) -> Any:
    """Measure a process; return 0 if it has ended or belongs to another user."""
    try:
        return measure(psutil.Process(pid))
    except psutil.Error:
        return 0


@cache
def get_available_memory() -> int:
    """Return the memory in bytes that this process may use, within its control groups."""
    return min([psutil.virtual_memory().total, *read_cgroup_limits()])


def read_cgroup_limits(
    listed: Path = Path("/proc/self/cgroup"), mounted: Path = Path("/sys/fs/cgroup")
) -> list[int]:
    """Read the memory limits of the control groups of this process and of their parents."""
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
                    with suppress(OSError, ValueError):  # no such file, or "max"
                        limits.append(int((folder / name).read_text()))
    return limits


def list_cores() -> list[int]:
    """List the physical cores that this process may use, each by its first hyperthread.

    psutil counts physical cores and does not say which hyperthreads belong together.
    """
    if not hasattr(os, "sched_getaffinity"):
        return list(range(os.cpu_count() or 1))
    allowed = sorted(os.sched_getaffinity(0))
    first_by_siblings: dict[str, int] = {}
    for core in allowed:
        path = f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"
        try:
            siblings = Path(path).read_text()
        except OSError:
            siblings = str(core)
        first_by_siblings.setdefault(siblings, core)
    return list(first_by_siblings.values())


def pin_to_core(core: int | None) -> None:
    """Pin this process to a core, if the system supports it; do nothing if the core is None."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def _read_children(pid: int) -> list[int]:
    """Return the process ids of the children of all threads of a process."""
    children: list[int] = []
    with suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 (twice as fast)
            with suppress(OSError):
                text = Path(f"/proc/{pid}/task/{task}/children").read_text()
                children += map(int, text.split())
    return children


def _to_bytes(maxrss: int) -> int:
    """Convert ``ru_maxrss`` to bytes; it counts bytes on macOS and kilobytes elsewhere."""
    return maxrss if sys.platform == "darwin" else 1024 * maxrss
