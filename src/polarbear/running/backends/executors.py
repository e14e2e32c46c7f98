"""``ExecutorWorkerPool``: makes runs on any ``concurrent.futures.Executor``.

The workers of the executor, processes or threads, call :func:`run_jobs`. The runs themselves are
made in worker processes of ours, one for each current call. These are kept for the next calls.
"""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from polarbear.racing.jobs import Job
from polarbear.running.backends.dispatcher import collect_results
from polarbear.running.solvers.setup import PackedSetup, Setup, pack
from polarbear.running.workers.outcomes import LostRun, RunOutcome
from polarbear.running.workers.worker_process import WorkerProcess

_idle: list[WorkerProcess] = []
_inherited: list[WorkerProcess] = []
_lock = threading.Lock()


def run_jobs(
    packed: PackedSetup, jobs: Sequence[Job], is_wanted: Callable[[], bool] | None = None
) -> list[RunOutcome | LostRun]:
    """Make runs in a worker process that this process starts, until they are cancelled."""
    with _lock:
        worker = _idle.pop() if _idle else None
    worker = WorkerProcess() if worker is None or worker.is_gone else worker
    try:
        return worker.make_runs(jobs, packed, is_wanted)
    finally:
        if not worker.is_gone:
            with _lock:
                _idle.append(worker)


def close_idle_workers() -> None:
    """End the idle worker processes that this process has started."""
    with _lock:
        while _idle:
            _idle.pop().close()


def _disown_inherited() -> None:
    """After a fork, forget the parent's worker processes without closing their handles."""
    _inherited.extend(_idle)
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_inherited)


class ExecutorWorkerPool:
    """The workers of any executor whose ``submit(function, *arguments)`` returns futures."""

    call_seconds = 0.2

    def __init__(self, setup: Setup, executor: Any) -> None:
        self._packed = pack(setup)
        self._executor = executor

    @property
    def n_workers(self) -> int:
        """The number of workers if the executor states it, else the number of cores."""
        return getattr(self._executor, "_max_workers", None) or os.cpu_count() or 1

    def submit(self, jobs: Sequence[Job]) -> Any:
        """Submit runs to be made one after the other; return a future of their outcomes."""
        return self._executor.submit(run_jobs, self._packed, list(jobs))

    gather = staticmethod(collect_results)

    def withdraw(self, future: Any) -> bool:
        """Cancel a call that has not started, and return whether that succeeded."""
        return future.cancel()

    def close(self) -> None:
        """End the worker processes that this process started; the executor stays open."""
        close_idle_workers()
