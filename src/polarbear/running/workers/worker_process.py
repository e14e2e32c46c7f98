"""``Slot``: a process that supervises one run at a time, the one that guards it, and the handle.

Below the process that holds the handle there are two for each slot. The *supervisor* is
single-threaded and has no children but runs, which is what containment needs. Its parent, the
*guard*, only waits. Whichever is killed, nothing stays behind:

1. The process with the handle: its end of the connection is closed, and the guard kills all below.
2. The supervisor: its orphans become children of the guard, which kills them.
3. The guard: the supervisor gets a signal, and kills all below.
4. The process group of one of them: each is in a session of its own, so that no group has two.

A slot comes about in two ways. *Forked*, it has all solvers and instances in memory, closures and
unpicklable things among them. *Started* as a new program, it gets them as bytes: this is how the
workers of other engines have slots of their own.
"""

import gc
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any, NoReturn

from threadpoolctl import threadpool_limits

from polarbear.errors import SolverError
from polarbear.racing.jobs import Job
from polarbear.running.solvers.exceptions import describe_exception
from polarbear.running.solvers.processes import (
    THREADS,
    adopt_orphans,
    detach_descriptors,
    die_with,
    fork,
    kill_below,
    kill_session,
    pin,
    start_when_possible,
)
from polarbear.running.solvers.setup import Packed, Setup, unpack
from polarbear.running.workers.containment import Abandoned, Supervisor
from polarbear.running.workers.outcomes import Lost, Outcome
from polarbear.running.workers.parent_watch import unwatch, watched

_MINUTE = 60.0
GLANCE_SECONDS = 0.25
"""How often a guard looks whether its parent is there, where no system call tells it."""


class SlotGone(Exception):  # noqa: N818 (it says what is the case)
    """The supervising process is gone, and nobody knows what became of the run."""


class Slot:
    """A place where one run at a time is made.

    Parameters
    ----------
    setup
        What to run, for a forked slot; none for a slot that is started as a new program.
    core
        The core to stay on.
    slots
        How many there are on this machine.
    wanted
        Whether to go on waiting if the system has no room for a process.
    """

    def __init__(
        self,
        setup: Setup | None = None,
        *,
        core: int | None = None,
        slots: int = 1,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._ours, theirs = Pipe()
        self._known: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            if setup is None:
                self._process = start_when_possible(
                    lambda: _start(theirs, core, slots), wanted, warns=True
                )
                self.pid = self._process.pid
            else:
                self.pid = start_when_possible(
                    lambda: _fork(theirs, setup, core, slots), wanted, warns=True
                )
        except BaseException:  # who is interrupted may have made it already: it ends with this
            self._forget()
            raise
        finally:
            theirs.close()

    def run(self, job: Job, packed: Packed | None = None) -> Outcome:
        """Make a run; an error if the slot is gone before its end."""
        made = self.runs([job], packed)[0]
        if isinstance(made, Lost):
            raise SlotGone(made.why)
        return made

    def runs(
        self,
        jobs: Sequence[Job],
        packed: Packed | None = None,
        wanted: Callable[[], bool] | None = None,
    ) -> list[Outcome | Lost]:
        """Make runs one after the other. If the slot is gone, what is left of them is lost.

        Parameters
        ----------
        packed
            What to run, for a slot that is a program of its own.
        wanted
            Is asked twice a second whether anybody still waits for the runs; if not, they end.
        """
        session = 0
        made: list[Outcome | Lost] = []
        try:
            if packed is not None and packed.key not in self._known:
                self._ours.send(("setup", packed, sys.path))
                self._known.add(packed.key)
            self._ours.send(("run", tuple(jobs), None if packed is None else packed.key))
            while len(made) < len(jobs):
                answer = self._answer(wanted)
                if isinstance(answer, str):
                    raise SolverError(answer)
                if isinstance(answer, int):
                    session = answer
                else:
                    made.append(answer)
        except (EOFError, OSError):
            if session:
                kill_session(session)
            self.close()
            why = "the process that supervised the run is gone"
            begun = len(made)
            made += [Lost(job, why, k == begun) for k, job in enumerate(jobs) if k >= begun]
        return made

    @property
    def gone(self) -> bool:
        """Whether there is no such slot any more."""
        return not self.pid

    def _answer(self, wanted: Callable[[], bool] | None) -> Any:
        while wanted is not None and not self._ours.poll(0.5):
            if not wanted():
                self.end()
        return self._ours.recv()

    def end(self) -> None:
        """Make the slot end, and with it what runs there; another thread may wait for that run."""
        if self.pid:
            os.kill(self.pid, signal.SIGTERM)

    def close(self) -> None:
        """End the slot and what runs there, and wait until both are gone."""
        self.end()
        self._forget()
        try:
            if self._process is not None:
                self._process.wait(_MINUTE)
            elif self.pid:
                os.waitpid(self.pid, 0)
        except (ChildProcessError, subprocess.TimeoutExpired):
            pass
        self.pid = 0

    def _forget(self) -> None:
        self._ours.close()


def _fork(theirs: Connection, setup: Setup, core: int | None, slots: int) -> int:
    parent = os.getpid()
    # Only this thread lives on in the child, which calls nothing that another one may hold a lock
    # of, and forks runs once it is alone.
    pid = fork()
    if pid:
        return pid
    try:
        guard = _guard(theirs, parent)
        for name in THREADS:
            os.environ[name] = str(setup.limits.threads)
        with threadpool_limits(setup.limits.threads):
            _serve(theirs, guard, core, slots, setup)
    finally:
        os._exit(0)


def _start(theirs: Connection, core: int | None, slots: int) -> subprocess.Popen[bytes]:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        f"from polarbear.running.workers.parent_watch import watch; watch({os.getpid()})\n"
        "from polarbear.running.workers.worker_process import main\n"
        f"main({theirs.fileno()}, {os.getpid()}, {core}, {slots})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        env=os.environ | dict.fromkeys(THREADS, "1"),
        start_new_session=True,
    )


def main(descriptor: int, parent: int, core: int | None, slots: int) -> NoReturn:
    """Be a slot that was started as a program."""
    unwatch()
    connection = Connection(descriptor)
    try:
        _serve(connection, _guard(connection, parent), core, slots, None)
    finally:
        os._exit(0)


def _guard(connection: Connection, parent: int) -> int:
    """Fork the supervisor, where this returns who guards it; else never return.

    The guard kills all below when the supervisor or the parent is gone.
    """
    _begin_session()
    guard = os.getpid()
    child = start_when_possible(fork, lambda: os.getppid() == parent)
    if child:
        _wait_for_end(connection, child, parent)
        _leave()
    _begin_session()
    die_with(guard, signal.SIGTERM)
    detach_descriptors(keep=(connection.fileno(),))
    return guard


def _wait_for_end(connection: Connection, child: int, parent: int) -> None:
    """Return when a child or the parent is gone, or the other end of a connection is closed."""
    detach_descriptors(keep=(connection.fileno(),))
    poll = select.poll()
    poll.register(connection, 0)  # that the other end is closed is told in any case
    if hasattr(os, "pidfd_open"):
        poll.register(os.pidfd_open(child), select.POLLIN)
    how = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.getppid() == parent and not poll.poll(1000 * GLANCE_SECONDS):
        if os.waitid(os.P_PID, child, how) is not None:
            return


def _begin_session() -> None:
    """Be where no signal for another process group comes, and adopt what is orphaned below."""
    with suppress(PermissionError):  # it is in a session of its own
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that asks
    signal.signal(signal.SIGTERM, _leave)
    # The launcher may ignore the end of its children or block signals; runs are waited for here.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    adopt_orphans()


def _serve(
    connection: Connection, guard: int, core: int | None, slots: int, setup: Setup | None
) -> None:
    """Make the runs that are asked for, until the connection or the guard is gone."""
    pin(core)
    gc.collect()
    gc.freeze()  # what is never collected need not be copied for each run
    options: Any = {
        "slots": slots,
        "parent": guard,
        "announce": connection.send,
    }
    known: dict[str | None, Supervisor | str] = {}
    if setup is not None:
        known[None] = Supervisor(setup, **options)
    while (message := _next(connection, guard)) is not None:
        kind, what, more = message
        if kind == "setup":
            with watched(guard):
                found = _unpacked(what, more)
            known[what.key] = found if isinstance(found, str) else Supervisor(found, **options)
        elif not _made(connection, known[more], what):
            break
    kill_below()


def _made(connection: Connection, supervisor: Supervisor | str, jobs: Sequence[Job]) -> bool:
    """Make runs, and say what became of each; false if nobody wants to know."""
    if isinstance(supervisor, str):
        connection.send(supervisor)
        return True
    try:
        for outcome in supervisor.runs(jobs):
            connection.send(outcome)
        supervisor.prepare()
    except (Abandoned, OSError):
        return False
    return True


def _leave(*_: object) -> NoReturn:
    """End at a signal; nothing stays behind."""
    kill_below()
    os._exit(0)


def _next(connection: Connection, parent: int) -> Any:
    """What is asked for next; none if there is nobody any more."""
    try:
        while not connection.poll(1.0):
            if os.getppid() != parent:
                return None
        return connection.recv()
    except (EOFError, OSError):
        return None


def _unpacked(packed: Packed, path: list[str]) -> Setup | str:
    """A setup, or why it cannot be had here."""
    sys.path[:] = path
    try:
        setup = unpack(packed)
    except BaseException as error:
        why = describe_exception(error)
        return f"solvers and instances cannot be loaded where they are to run: {why}"
    for name in THREADS:
        os.environ[name] = str(setup.limits.threads)
    gc.freeze()
    return setup
