"""``Dispatcher``: a backend over a pool of workers that takes calls and returns futures.

1. Jobs are queued here, and only two calls per worker are submitted. So queued jobs can be
   cancelled, and a scheduler need not keep thousands of them.
2. Where a call costs more than a run, several short runs go together in one call.
3. A job whose worker has ended is a ``LostRun``. It is not retried here: the race asks for it
   again. Jobs lost together are retried one per call, so that the culprit can be identified.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from math import ceil, inf
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from polarbear.errors import PolarBearError, SolverError
from polarbear.racing.jobs import Job, RunId
from polarbear.running.workers.outcomes import LostRun, RunOutcome

CALLS_PER_WORKER = 2
"""Submitted calls for each worker: one that runs, and the next one."""

_POLL_SECONDS = 0.5  # after which the number of workers is asked for again


class WorkerPool(Protocol):
    """The interface of a pool of workers to which calls are submitted.

    ``call_seconds``: how long a call should take, so that its overhead is small; 0 if it has next
    to none.
    """

    call_seconds: float

    @property
    def n_workers(self) -> int:
        """The number of runs that the pool can make at the same time now."""
        ...

    def submit(self, jobs: Sequence[Job]) -> Any:
        """Submit runs to be made one after the other; return a future of their outcomes."""
        ...

    def gather(self, futures: Sequence[Any]) -> list[list[RunOutcome | LostRun] | BaseException]:
        """Return the result or the exception of each future; all futures must be done."""
        ...

    def withdraw(self, future: Any) -> bool:
        """Cancel a call if possible, and return whether it was cancelled."""
        ...

    def close(self) -> None:
        """End all processes that the pool has started."""
        ...


class Dispatcher:
    """A backend that distributes jobs over a pool of workers."""

    def __init__(self, pool: WorkerPool, clock: Callable[[], float] = time.monotonic) -> None:
        self._pool = pool
        self._clock = clock
        self._queued: deque[Job] = deque()
        self._submitted: dict[Any, list[Job]] = {}  # by future
        self._done: SimpleQueue[Any] = SimpleQueue()  # futures
        self._suspected: set[RunId] = set()  # lost before: these go alone
        self._run_seconds = inf  # moving average

    @property
    def pending(self) -> int:
        """The number of submitted jobs that have no outcome yet."""
        return len(self._queued) + sum(map(len, self._submitted.values()))

    def submit(self, jobs: Iterable[Job]) -> None:
        """Queue jobs for the workers."""
        self._queued.extend(jobs)
        self._submit_calls()

    def outcomes(self, timeout: float | None = None) -> list[RunOutcome | LostRun]:
        """Wait for outcomes until there is at least one, no job is pending, or time is up."""
        end = inf if timeout is None else self._clock() + timeout
        self._submit_calls()
        while self._submitted:
            left = end - self._clock()
            try:
                done = [self._done.get(timeout=max(min(left, _POLL_SECONDS), 0.0))]
            except Empty:
                if left <= 0:
                    return []
                self._submit_calls()  # there may be more workers than before
                continue
            while not self._done.empty():
                done.append(self._done.get())
            outcomes = self._gather([future for future in done if future in self._submitted])
            self._submit_calls()
            if outcomes:
                return outcomes
        return []

    def cancel(self, algorithms: Collection[str]) -> list[Job]:
        """Cancel the jobs of these algorithms that have not started, and return them."""
        cancelled = [job for job in self._queued if job.algorithm in algorithms]
        self._queued = deque(job for job in self._queued if job.algorithm not in algorithms)
        for future, jobs in list(self._submitted.items()):
            if all(job.algorithm in algorithms for job in jobs) and self._pool.withdraw(future):
                cancelled += self._submitted.pop(future)
        self._submit_calls()
        return cancelled

    def close(self) -> None:
        """End all runs and the pool of workers."""
        self._queued.clear()
        for future in self._submitted:
            self._pool.withdraw(future)
        self._submitted.clear()
        self._pool.close()

    def _submit_calls(self) -> None:
        """Submit calls to the pool until each worker has enough of them."""
        n_workers = max(self._pool.n_workers, 1) if self._queued else 0
        while self._queued and len(self._submitted) < CALLS_PER_WORKER * n_workers:
            jobs = self._take_jobs(self._choose_call_size(n_workers))
            try:
                future = self._pool.submit(jobs)
            except PolarBearError:
                raise
            except RuntimeError as error:  # broken, or shut down
                raise SolverError(
                    f"the executor accepts no more jobs, pass one that is open: {error}"
                ) from error
            self._submitted[future] = jobs
            future.add_done_callback(self._done.put)

    def _choose_call_size(self, n_workers: int) -> int:
        """Choose how many jobs a call takes, so that every worker gets a call."""
        size = max(int(self._pool.call_seconds / max(self._run_seconds, 1e-3)), 1)
        return min(size, ceil(len(self._queued) / (CALLS_PER_WORKER * n_workers)))

    def _take_jobs(self, size: int) -> list[Job]:
        """Take the next call's jobs from the queue; a job that may kill workers is taken alone."""
        jobs = [self._queued.popleft()]
        while len(jobs) < size and self._suspected.isdisjoint((jobs[0].key, self._queued[0].key)):
            jobs.append(self._queued.popleft())
        return jobs

    def _gather(self, futures: list[Any]) -> list[RunOutcome | LostRun]:
        """Return the outcomes of finished calls, and update run durations and suspect jobs."""
        outcomes: list[RunOutcome | LostRun] = []
        for future, result in zip(futures, self._pool.gather(futures), strict=True):
            jobs = self._submitted.pop(future)
            if isinstance(result, PolarBearError):
                raise result
            if isinstance(result, BaseException):
                why = f"{type(result).__name__}: {result}"
                outcomes += [LostRun(job, why, was_running=len(jobs) == 1) for job in jobs]
            else:
                outcomes += result
        for outcome in outcomes:
            if isinstance(outcome, RunOutcome):
                before = outcome.seconds if self._run_seconds == inf else self._run_seconds
                self._run_seconds = 0.9 * before + 0.1 * outcome.seconds
                self._suspected.discard(outcome.job.key)
            else:
                self._suspected.add(outcome.job.key)
        return outcomes


def collect_results(
    futures: Sequence[Any],
) -> list[list[RunOutcome | LostRun] | BaseException]:
    """Return the result or the exception of each future; all futures must be done."""
    return [_get_result(future) for future in futures]


def _get_result(future: Any) -> list[RunOutcome | LostRun] | BaseException:
    try:
        return future.result()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # CancelledError is no Exception in some libraries
        return error
