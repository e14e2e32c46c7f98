"""``WorkerProcess``: a handle on a process that makes one run at a time, and on its guard.

Below the process that holds the handle there are two for each worker. The *supervisor* is
single-threaded and has no children but runs, as containment requires. Its parent, the *guard*, only
waits. If one of them is killed, no process is left over:

1. The process with the handle: its end of the connection is closed, and the guard kills all below.
2. The supervisor: its orphans become children of the guard, which kills them.
3. The guard: the supervisor gets a signal, and kills all below.
4. The process group of one of them: each is in a session of its own, so that no group has two.

A worker is made in two ways. A *forked* one has all solvers and instances in memory, closures and
unpicklable objects among them. One that is *started* as a new program gets them as bytes: executors
and Dask use these.
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
    THREAD_VARIABLES,
    adopt_orphans,
    detach_descriptors,
    end_with_parent,
    fork,
    kill_descendants,
    kill_session,
    pin_to_core,
    start_when_possible,
)
from polarbear.running.solvers.setup import PackedSetup, Setup, unpack
from polarbear.running.workers.containment import ParentGone, Supervisor
from polarbear.running.workers.outcomes import LostRun, RunOutcome
from polarbear.running.workers.parent_watch import stop_parent_watch, watch_parent

GUARD_POLL_SECONDS = 0.25
"""How often a guard checks whether its parent exists, which no system call reports."""

_CLOSE_TIMEOUT_SECONDS = 60.0


class WorkerLost(Exception):  # noqa: N818 (nothing is wrong here)
    """Raised if the worker process ended during a run, so that the run has no outcome."""


class WorkerProcess:
    """A process that makes one run at a time, and the connection to it.

    Parameters
    ----------
    setup
        Solvers, instances and limits of a forked worker; none for a worker that is started as a
        new program.
    core
        The core to stay on.
    n_workers
        The number of workers on this machine.
    is_wanted
        While the system has no room for a process, whether to go on waiting.
    """

    def __init__(
        self,
        setup: Setup | None = None,
        *,
        core: int | None = None,
        n_workers: int = 1,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._connection, theirs = Pipe()
        self._sent_keys: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            if setup is None:
                self._process = start_when_possible(
                    lambda: _start_program(theirs, core, n_workers), is_wanted, warns=True
                )
                self.pid = self._process.pid
            else:
                self.pid = start_when_possible(
                    lambda: _fork_worker(theirs, setup, core, n_workers), is_wanted, warns=True
                )
        except BaseException:  # an interrupt may come after the fork: a closed pipe ends the worker
            self._connection.close()
            raise
        finally:
            theirs.close()

    def make_run(self, job: Job, packed: PackedSetup | None = None) -> RunOutcome:
        """Make a run, and return its outcome; raise ``WorkerLost`` if the worker ends before."""
        outcome = self.make_runs([job], packed)[0]
        if isinstance(outcome, LostRun):
            raise WorkerLost(outcome.why)
        return outcome

    def make_runs(
        self,
        jobs: Sequence[Job],
        packed: PackedSetup | None = None,
        is_wanted: Callable[[], bool] | None = None,
    ) -> list[RunOutcome | LostRun]:
        """Make runs one after the other; if the worker ends, the remaining runs are lost.

        Parameters
        ----------
        packed
            Solvers, instances and limits, for a worker that is a program of its own.
        is_wanted
            Is asked twice a second whether the runs are still wanted; if not, they are ended.
        """
        session = 0
        outcomes: list[RunOutcome | LostRun] = []
        try:
            if packed is not None and packed.key not in self._sent_keys:
                self._connection.send(("setup", packed, sys.path))
                self._sent_keys.add(packed.key)
            self._connection.send(("run", tuple(jobs), None if packed is None else packed.key))
            while len(outcomes) < len(jobs):
                message = self._receive(is_wanted)
                if isinstance(message, str):
                    raise SolverError(message)
                if isinstance(message, int):
                    session = message
                else:
                    outcomes.append(message)
        except (EOFError, OSError):
            if session:
                kill_session(session)
            self.close()
            why = "the process that supervised the run is gone"
            running = len(outcomes)  # the index of the job that was running
            outcomes += [LostRun(job, why, k == running) for k, job in enumerate(jobs)][running:]
        return outcomes

    @property
    def is_gone(self) -> bool:
        """Whether the worker process has ended."""
        return not self.pid

    def _receive(self, is_wanted: Callable[[], bool] | None) -> Any:
        """Receive a message of the supervisor; end the worker if its runs are no longer wanted."""
        while is_wanted is not None and not self._connection.poll(0.5):
            if not is_wanted():
                self.end()
        return self._connection.recv()

    def end(self) -> None:
        """Ask the worker to kill its run and end; safe while another thread waits for the run."""
        if self.pid:
            os.kill(self.pid, signal.SIGTERM)

    def close(self) -> None:
        """End the worker and its run, and wait until both have ended."""
        self.end()
        self._connection.close()
        try:
            if self._process is not None:
                self._process.wait(_CLOSE_TIMEOUT_SECONDS)
            elif self.pid:
                os.waitpid(self.pid, 0)
        except (ChildProcessError, subprocess.TimeoutExpired):
            pass
        self.pid = 0


def _fork_worker(connection: Connection, setup: Setup, core: int | None, n_workers: int) -> int:
    """Fork a guard, which forks a supervisor; return the process id of the guard."""
    parent = os.getpid()
    # Only this thread exists in the child. The child must not take a lock that another thread of
    # the parent may hold, and it forks runs once it is alone.
    pid = fork()
    if pid:
        return pid
    try:
        guard = _fork_supervisor(connection, parent)
        for name in THREAD_VARIABLES:
            os.environ[name] = str(setup.limits.threads)
        with threadpool_limits(setup.limits.threads):
            _serve(connection, guard, core, n_workers, setup)
    finally:
        os._exit(0)


def _start_program(
    connection: Connection, core: int | None, n_workers: int
) -> subprocess.Popen[bytes]:
    """Start a guard process as a new Python program."""
    code = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from polarbear.running.workers.parent_watch import start_parent_watch\n"
        f"start_parent_watch({os.getpid()})\n"
        "from polarbear.running.workers.worker_process import main\n"
        f"main({connection.fileno()}, {os.getpid()}, {core}, {n_workers})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        pass_fds=[connection.fileno()],
        env=os.environ | dict.fromkeys(THREAD_VARIABLES, "1"),
        start_new_session=True,
    )


def main(descriptor: int, parent: int, core: int | None, n_workers: int) -> NoReturn:
    """Entry point of a worker process that was started as a program."""
    stop_parent_watch()
    connection = Connection(descriptor)
    try:
        _serve(connection, _fork_supervisor(connection, parent), core, n_workers, None)
    finally:
        os._exit(0)


def _fork_supervisor(connection: Connection, parent: int) -> int:
    """Fork the supervisor, and return only there, with the guard's process id; the guard waits.

    The guard kills all descendants when the supervisor or the parent has ended.
    """
    _begin_session()
    guard = os.getpid()
    supervisor = start_when_possible(fork, lambda: os.getppid() == parent)
    if supervisor:
        _wait_for_end(connection, supervisor, parent)
        _kill_descendants_and_exit()
    _begin_session()
    end_with_parent(guard, signal.SIGTERM)
    detach_descriptors(keep=(connection.fileno(),))
    return guard


def _wait_for_end(connection: Connection, child: int, parent: int) -> None:
    """Wait for the end of the child, of the parent or of the other side of the connection."""
    detach_descriptors(keep=(connection.fileno(),))
    poll = select.poll()
    poll.register(connection, 0)  # a closed other end is reported in any case
    if hasattr(os, "pidfd_open"):
        poll.register(os.pidfd_open(child), select.POLLIN)
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.getppid() == parent and not poll.poll(1000 * GUARD_POLL_SECONDS):
        if os.waitid(os.P_PID, child, options) is not None:
            return


def _begin_session() -> None:
    """Begin a new session without inherited signal handlers, and adopt orphaned descendants."""
    with suppress(PermissionError):  # it is in a session of its own already
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process with the handle
    signal.signal(signal.SIGTERM, _kill_descendants_and_exit)
    # The launcher may ignore the end of its children or block signals; runs are waited for here.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    adopt_orphans()


def _serve(
    connection: Connection, guard: int, core: int | None, n_workers: int, setup: Setup | None
) -> None:
    """Make the requested runs until the connection is closed or the guard process has ended."""
    pin_to_core(core)
    # Objects that are never collected need not be copied for each run. Nor are they collected once
    # more here: that would copy all of them.
    gc.freeze()
    options: Any = {
        "n_workers": n_workers,
        "parent": guard,
        "announce": connection.send,
    }
    supervisors: dict[str | None, Supervisor | str] = {}  # or why there is none
    if setup is not None:
        supervisors[None] = Supervisor(setup, **options)
    while (request := _receive_request(connection, guard)) is not None:
        match request:
            case ("setup", packed, path):
                with watch_parent(guard):
                    loaded = _load_setup(packed, path)
                is_error = isinstance(loaded, str)
                supervisors[packed.key] = loaded if is_error else Supervisor(loaded, **options)
            case (_, jobs, key):
                if not _make_runs(connection, supervisors[key], jobs):
                    break
    kill_descendants()


def _make_runs(connection: Connection, supervisor: Supervisor | str, jobs: Sequence[Job]) -> bool:
    """Make runs and send each outcome; return false if the receiver is gone."""
    if isinstance(supervisor, str):
        connection.send(supervisor)
        return True
    try:
        for outcome in supervisor.make_runs(jobs):
            connection.send(outcome)
        supervisor.prepare()
    except (ParentGone, OSError):
        return False
    return True


def _kill_descendants_and_exit(*_: object) -> NoReturn:
    """Kill all descendants and exit; also used as the handler of SIGTERM."""
    kill_descendants()
    os._exit(0)


def _receive_request(connection: Connection, parent: int) -> Any:
    """Receive the next request; None if the connection is closed or the parent has ended."""
    try:
        while not connection.poll(1.0):
            if os.getppid() != parent:
                return None
        return connection.recv()
    except (EOFError, OSError):
        return None


def _load_setup(packed: PackedSetup, path: list[str]) -> Setup | str:
    """Unpickle a setup, or return the error as text if that fails on this machine."""
    sys.path[:] = path
    try:
        setup = unpack(packed)
    except BaseException as error:
        why = describe_exception(error)
        return f"solvers and instances cannot be loaded where they are to run: {why}"
    for name in THREAD_VARIABLES:
        os.environ[name] = str(setup.limits.threads)
    threadpool_limits(setup.limits.threads)  # a library that was loaded before read no variable
    gc.freeze()
    return setup
