"""``Spawned``: runs where no process can be forked, which is Windows.

Each run is a new Python, which gets solvers and instances as bytes. What is weaker than in a slot:
it takes as long to start as Python does; only what can be pickled can be run; memory, CPU time and
the number of processes are not limited, nor known afterwards; what is printed is not kept. What
holds: a run has its own process, what it finds is known however it ends, it is killed at its
limit, and it ends when whoever wanted it is gone, unless it is in code that keeps Python waiting.
"""

import mmap
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from polarbear.data.run import Status
from polarbear.racing.jobs import Job
from polarbear.running.solvers.processes import THREADS, start_when_possible
from polarbear.running.solvers.setup import Packed, Setup, pack, unpack
from polarbear.running.solvers.shared_trajectory import Board, Ending
from polarbear.running.workers.child import perform
from polarbear.running.workers.outcomes import Lost, Outcome
from polarbear.running.workers.provenance import describe_worker

GRACE = 0.1
_GLANCE = 0.01
_MAIN = (
    "import sys; sys.path[:] = {path!r}; "
    "from polarbear.running.workers.spawning import main; main()"
)


class Spawned:
    """Like a :class:`~polarbear.running.workers.worker_process.Slot`, without fork."""

    gone = False

    def __init__(
        self,
        setup: Setup,
        *,
        core: int | None = None,
        slots: int = 1,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        del core, slots, wanted  # nothing can be done about them here
        self._setup, self._packed = setup, pack(setup)
        self._ended = threading.Event()

    def runs(self, jobs: Sequence[Job]) -> list[Outcome | Lost]:
        """Make runs one after the other."""
        return [self._run(job) for job in jobs]

    def end(self) -> None:
        """End what runs there."""
        self._ended.set()

    close = end

    def _run(self, job: Job) -> Outcome | Lost:
        if self._ended.is_set():
            return Lost(job, "the slot was closed")
        began = time.monotonic()
        with TemporaryDirectory(prefix="polarbear-") as folder:
            path = Path(folder) / "board"
            path.write_bytes(bytes(Board.size(self._setup.times)))
            with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
                board = Board(self._setup.times, memory)
                process = _started(self._packed, job, path)
                exceeded = self._wait(process, job, board, began)
                _kill(process)
                run = self._judged(job, board, exceeded, process.returncode)
                board.close()
        seconds = time.monotonic() - began
        host, worker = socket.gethostname(), describe_worker(self._setup.limits.memory)
        return run._replace(seconds=seconds, host=host, worker=worker)

    def _wait(
        self, process: subprocess.Popen[bytes], job: Job, board: Board, began: float
    ) -> tuple[Status, str] | None:
        limits = self._setup.limits
        while process.poll() is None:
            now = time.monotonic()
            if self._ended.is_set():
                return Status.KILLED, "the slot was closed"
            if now > began + limits.wall:
                return Status.OUT_OF_TIME, f"over the limit of {limits.wall:g} seconds"
            watched = board.began is not None and self._setup.clock == "wall"
            if watched and now > (board.began or now) + job.horizon + GRACE:
                return Status.CUT, ""
            time.sleep(_GLANCE)
        return None

    def _judged(
        self, job: Job, board: Board, exceeded: tuple[Status, str] | None, code: int | None
    ) -> Outcome:
        times, values = board.improvements()
        latest = max(times, default=0.0)
        status, why = exceeded or (Status.CRASHED, f"the process ended with {code}")
        until = job.horizon if status == Status.CUT else latest
        status, until, why = board.ending() or Ending(status, until, why)
        until = max(min(until, job.horizon), latest)
        run = job.run(tuple(times), tuple(values), until=until, status=status)
        return Outcome(job, run, why)


def main() -> NoReturn:
    """Be such a run: what to do comes by standard input, whose end is the end of our parent."""
    source = sys.stdin.buffer
    packed, job, path = pickle.load(source)  # noqa: S301 (from our own parent)

    def watch() -> None:
        source.read()
        os._exit(1)

    setup = unpack(packed)
    threading.Thread(target=watch, daemon=True).start()
    with Path(path).open("r+b") as file:
        perform(setup, job, Board(setup.times, mmap.mmap(file.fileno(), 0)))


def _started(packed: Packed, job: Job, path: Path) -> subprocess.Popen[bytes]:
    process = start_when_possible(
        lambda: subprocess.Popen(
            [sys.executable, "-c", _MAIN.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | dict.fromkeys(THREADS, str(1)),
            start_new_session=True,
        )
    )
    if process.stdin is not None:
        process.stdin.write(pickle.dumps((packed, job, str(path))))
        process.stdin.flush()
    return process


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and what it has started, as far as the system lets one."""
    if os.name == "nt":
        command = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
        subprocess.run(command, capture_output=True, check=False)
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
