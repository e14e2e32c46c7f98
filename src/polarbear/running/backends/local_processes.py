"""``LocalProcesses``: make runs on this machine, in worker processes."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from queue import SimpleQueue
from typing import Any

from polarbear.errors import SolverError
from polarbear.inference.threads import one_thread
from polarbear.racing.jobs import Job
from polarbear.running.backends.dispatcher import collect_results
from polarbear.running.solvers.processes import list_cores, start_when_possible
from polarbear.running.solvers.setup import Setup
from polarbear.running.workers.outcomes import LostRun, RunOutcome
from polarbear.running.workers.spawning import SpawnedWorker
from polarbear.running.workers.worker_process import WorkerProcess


@dataclass(frozen=True)
class LocalProcesses:
    """An executor that makes runs in processes on this machine.

    Attributes
    ----------
    n_workers
        The number of runs at once; by default one for each core, because two on one core disturb
        each other.
    pin
        Whether each worker stays on a core of its own, which makes wall times steadier.

    Examples
    --------
    >>> LocalProcesses(2).n_workers
    2
    """

    n_workers: int | None = None
    pin: bool = False

    def __post_init__(self) -> None:
        n = self.n_workers
        if n is not None and not (isinstance(n, Integral) and n > 0):
            raise SolverError("expected the number of parallel runs, at least 1", n_workers=n)


class LocalWorkerPool:
    """Worker processes forked from this one, so that solvers need not be picklable.

    A thread waits for the outcomes of each worker.
    """

    call_seconds = 0.2

    def __init__(self, setup: Setup, options: LocalProcesses) -> None:
        cores = list_cores()
        self.n_workers = len(cores) if options.n_workers is None else int(options.n_workers)
        self._setup = setup
        self._queue: SimpleQueue[tuple[Future[list[RunOutcome | LostRun]], Sequence[Job]] | None]
        self._queue = SimpleQueue()
        self._cores = [
            cores[k % len(cores)] if options.pin else None for k in range(self.n_workers)
        ]
        # All are forked before any thread is started here.
        self._workers: list[WorkerProcess | SpawnedWorker] = []
        self._is_closed = False
        try:
            self._workers += (self._start_worker(k) for k in range(self.n_workers))
        except BaseException:
            for worker in self._workers:
                worker.close()
            raise
        with one_thread():  # linear algebra restarts its threads after a fork: now there is room
            pass
        self._threads = [
            # Daemons: a program that exits without close() does not wait for runs.
            threading.Thread(
                target=self._make_runs, args=(k,), name=f"polarbear-worker-{k}", daemon=True
            )
            for k in range(self.n_workers)
        ]
        for thread in self._threads:
            start_when_possible(thread.start, warns=True)

    def submit(self, jobs: Sequence[Job]) -> "Future[list[RunOutcome | LostRun]]":
        """Submit runs to be made one after the other; return a future of their outcomes."""
        future: Future[list[RunOutcome | LostRun]] = Future()
        self._queue.put((future, jobs))
        return future

    gather = staticmethod(collect_results)

    def withdraw(self, future: Any) -> bool:
        """Cancel a call that has not started, and return whether that succeeded."""
        return future.cancel()

    def close(self) -> None:
        """End all runs and worker processes."""
        self._is_closed = True
        for _ in self._threads:
            self._queue.put(None)
        for worker in self._workers:
            worker.end()
        for thread in self._threads:
            thread.join()

    def _start_worker(self, k: int) -> WorkerProcess | SpawnedWorker:
        make_worker = WorkerProcess if hasattr(os, "fork") else SpawnedWorker
        return make_worker(
            self._setup,
            core=self._cores[k],
            n_workers=self.n_workers,
            is_wanted=lambda: not self._is_closed,
        )

    def _make_runs(self, k: int) -> None:
        """Make the runs of queued calls in worker ``k``, until the pool is closed."""
        while (call := self._queue.get()) is not None and not self._is_closed:
            future, jobs = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._make_runs_of_call(k, jobs))
            except BaseException as error:
                future.set_exception(error)
        self._workers[k].close()

    def _make_runs_of_call(self, k: int, jobs: Sequence[Job]) -> list[RunOutcome | LostRun]:
        """Make the runs of one call in worker ``k``, and replace the worker if it has ended."""
        outcomes = self._workers[k].make_runs(jobs)
        if self._workers[k].is_gone and not self._is_closed:
            with suppress(OSError):  # closed while the system had no room for a process
                self._workers[k] = self._start_worker(k)
        return outcomes
