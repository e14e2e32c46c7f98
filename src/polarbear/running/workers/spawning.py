"""``SpawnedWorker``: makes runs on systems that cannot fork processes, such as Windows.

Each run is a new Python process, which gets solvers and instances as bytes. Weaker than in a
:class:`~polarbear.running.workers.worker_process.WorkerProcess`: it takes as long to start as
Python does; solvers and instances have to be picklable; memory, CPU time and the number of
processes are neither limited nor measured; output is not kept. As strong: a run has its own
process, its improvements are known however it ends, it is killed at its wall limit, and it ends
with the process that asked for it, unless a solver holds the interpreter lock.
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

import psutil

from polarbear.racing.jobs import Job
from polarbear.running.solvers.processes import THREAD_VARIABLES, start_when_possible
from polarbear.running.solvers.setup import PackedSetup, Setup, pack, unpack
from polarbear.running.solvers.shared_trajectory import SharedTrajectory
from polarbear.running.workers.child import run_job
from polarbear.running.workers.endings import STATUS_OF, Cause, EndEvidence, conclude
from polarbear.running.workers.outcomes import LostRun, RunOutcome
from polarbear.running.workers.provenance import describe_worker

GRACE_SECONDS = 0.1
"""Seconds that a run has to end by itself at its horizon."""

_POLL_SECONDS = 0.01
_MAIN = (
    "import sys; sys.path[:] = {path!r}; "
    "from polarbear.running.workers.spawning import main; main()"
)


class SpawnedWorker:
    """Makes runs one at a time, each in a new Python process."""

    is_gone = False

    def __init__(
        self,
        setup: Setup,
        *,
        core: int | None = None,
        n_workers: int = 1,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        del core, n_workers, is_wanted  # not supported here
        self._setup, self._packed = setup, pack(setup)
        self._is_ended = threading.Event()

    def make_runs(self, jobs: Sequence[Job]) -> list[RunOutcome | LostRun]:
        """Make runs one after the other, and return their outcomes."""
        return [self._make_run(job) for job in jobs]

    def end(self) -> None:
        """Kill the current run, and start no further runs."""
        self._is_ended.set()

    close = end

    def _make_run(self, job: Job) -> RunOutcome | LostRun:
        if self._is_ended.is_set():
            return LostRun(job, STATUS_OF[Cause.WORKER_CLOSED][1])
        started_at = time.monotonic()
        with TemporaryDirectory(prefix="polarbear-") as folder:
            path = Path(folder) / "trajectory"
            path.write_bytes(bytes(SharedTrajectory.size(self._setup.times)))
            with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
                trajectory = SharedTrajectory(self._setup.times, memory)
                process = _start_process(self._packed, job, path)
                exceeded = self._wait(process, job, trajectory, started_at)
                begin = trajectory.started_at if self._setup.clock == "wall" else None
                elapsed = 0.0 if begin is None else time.monotonic() - begin
                _kill(process)
                evidence = exceeded or EndEvidence(Cause.EXIT, process.returncode)
                outcome = conclude(job, trajectory, evidence, elapsed=elapsed)
                trajectory.close()
        return outcome._replace(
            seconds=time.monotonic() - started_at,
            host=socket.gethostname(),
            worker=describe_worker(self._setup.limits.memory),
        )

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        job: Job,
        trajectory: SharedTrajectory,
        started_at: float,
    ) -> EndEvidence | None:
        """Wait until the process ends, then return None; or return why it must be killed."""
        limit = self._setup.limits.wall_seconds
        while process.poll() is None:
            now = time.monotonic()
            if self._is_ended.is_set():
                return EndEvidence(Cause.WORKER_CLOSED)
            if now > started_at + limit:
                return EndEvidence(Cause.WALL_LIMIT, limit)
            solver_started_at = trajectory.started_at
            is_timed = solver_started_at is not None and self._setup.clock == "wall"
            if is_timed and now > (solver_started_at or now) + job.horizon + GRACE_SECONDS:
                return EndEvidence(Cause.HORIZON)
            time.sleep(_POLL_SECONDS)
        return None


def main() -> NoReturn:
    """Entry point of the spawned process: make the run that standard input describes.

    The end of standard input means that the parent has ended.
    """
    source = sys.stdin.buffer
    packed, job, path = pickle.load(source)  # noqa: S301 (from our own parent)

    def end_with_input() -> None:
        source.read()
        os._exit(1)

    setup = unpack(packed)
    threading.Thread(target=end_with_input, daemon=True).start()
    with Path(path).open("r+b") as file:
        run_job(setup, job, SharedTrajectory(setup.times, mmap.mmap(file.fileno(), 0)))


def _start_process(packed: PackedSetup, job: Job, path: Path) -> subprocess.Popen[bytes]:
    """Start the process of a run, and send it the setup, the job and the memory file's path."""
    process = start_when_possible(
        lambda: subprocess.Popen(
            [sys.executable, "-c", _MAIN.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | dict.fromkeys(THREAD_VARIABLES, str(1)),
            start_new_session=True,
        )
    )
    if process.stdin is not None:
        process.stdin.write(pickle.dumps((packed, job, str(path))))
        process.stdin.flush()
    return process


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all of its descendants."""
    if os.name == "nt":
        with suppress(psutil.Error):
            tree = psutil.Process(process.pid)
            for member in (*tree.children(recursive=True), tree):
                with suppress(psutil.Error):
                    member.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
