"""``Pool``: an engine over anything that takes calls and gives futures.

1. Jobs wait here, and only twice as many as there are slots are under way. What waits can be taken
   back, and whoever makes the runs need not keep account of thousands.
2. Where a call costs more than a run, several short runs go together in one call.
3. A run whose worker is gone is ``Lost``. Nothing is tried again here: the race asks again. What
   was lost together with others goes alone the next time: so one knows which one is to blame.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from math import ceil, inf
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from polarbear.errors import PolarBearError, SolverError
from polarbear.racing.jobs import Job, Key
from polarbear.running.workers.outcomes import Lost, Outcome

AT_ONCE = 2
"""Calls under way for each slot: one that runs, one that comes next."""

_GLANCE = 0.5  # seconds after which to look whether there are more slots


class Backend(Protocol):
    """What makes runs.

    ``call_seconds``: how long a call should take, so that what it costs does not matter; 0 if a
    call costs next to nothing.
    """

    call_seconds: float

    @property
    def slots(self) -> int:
        """How many runs are made at once, now."""
        ...

    def submit(self, jobs: Sequence[Job]) -> Any:
        """Make these runs one after the other: a future with ``add_done_callback``."""
        ...

    def gather(self, futures: Sequence[Any]) -> list[list[Outcome | Lost] | BaseException]:
        """What became of futures that are done."""
        ...

    def withdraw(self, future: Any) -> bool:
        """Take back a call, if that is possible; what it gives is not wanted any more then."""
        ...

    def close(self) -> None:
        """End everything that was started."""
        ...


class Pool:
    """An engine (see :mod:`polarbear.running.backends.interface`) over a backend."""

    def __init__(self, backend: Backend, clock: Callable[[], float] = time.monotonic) -> None:
        self._backend = backend
        self._clock = clock
        self._waiting: deque[Job] = deque()
        self._flying: dict[Any, list[Job]] = {}
        self._landed: SimpleQueue[Any] = SimpleQueue()
        self._alone: set[Key] = set()
        self._seconds = inf  # how long a run takes, about

    @property
    def pending(self) -> int:
        """How many jobs have no outcome yet."""
        return len(self._waiting) + sum(map(len, self._flying.values()))

    def submit(self, jobs: Iterable[Job]) -> None:
        """Take jobs."""
        self._waiting.extend(jobs)
        self._launch()

    def outcomes(self, timeout: float | None = None) -> list[Outcome | Lost]:
        """What has come in; at least one if anything is pending, unless the time is over."""
        end = inf if timeout is None else self._clock() + timeout
        self._launch()
        while self._flying:
            left = end - self._clock()
            try:
                landed = [self._landed.get(timeout=max(min(left, _GLANCE), 0.0))]
            except Empty:
                if left <= 0:
                    return []
                self._launch()  # there may be more slots than there were
                continue
            while not self._landed.empty():
                landed.append(self._landed.get())
            found = self._gathered([future for future in landed if future in self._flying])
            self._launch()
            if found:
                return found
        return []

    def cancel(self, algorithms: Collection[str]) -> list[Job]:
        """Take back the jobs of these algorithms that nobody has begun: which they were."""
        back = [job for job in self._waiting if job.algorithm in algorithms]
        self._waiting = deque(job for job in self._waiting if job.algorithm not in algorithms)
        for future, jobs in list(self._flying.items()):
            if all(job.algorithm in algorithms for job in jobs) and self._backend.withdraw(future):
                back += self._flying.pop(future)
        self._launch()
        return back

    def close(self) -> None:
        """End all that is under way."""
        self._waiting.clear()
        for future in self._flying:
            self._backend.withdraw(future)
        self._flying.clear()
        self._backend.close()

    def _launch(self) -> None:
        slots = max(self._backend.slots, 1) if self._waiting else 0
        while self._waiting and len(self._flying) < AT_ONCE * slots:
            jobs = self._together(self._chunk(slots))
            try:
                future = self._backend.submit(jobs)
            except PolarBearError:
                raise
            except RuntimeError as error:  # broken, or shut down
                raise SolverError(f"the executor takes no more jobs: {error}") from error
            self._flying[future] = jobs
            future.add_done_callback(self._landed.put)

    def _chunk(self, slots: int) -> int:
        """How many jobs go together: not so many that some slot has nothing to do."""
        together = max(int(self._backend.call_seconds / max(self._seconds, 1e-3)), 1)
        return min(together, ceil(len(self._waiting) / (AT_ONCE * slots)))

    def _together(self, size: int) -> list[Job]:
        """The next jobs that go in one call."""
        jobs = [self._waiting.popleft()]
        while len(jobs) < size and self._alone.isdisjoint((jobs[0].key, self._waiting[0].key)):
            jobs.append(self._waiting.popleft())
        return jobs

    def _gathered(self, futures: list[Any]) -> list[Outcome | Lost]:
        found: list[Outcome | Lost] = []
        for future, made in zip(futures, self._backend.gather(futures), strict=True):
            jobs = self._flying.pop(future)
            if isinstance(made, PolarBearError):
                raise made
            if isinstance(made, BaseException):
                why = f"{type(made).__name__}: {made}"
                found += [Lost(job, why, blamed=len(jobs) == 1) for job in jobs]
            else:
                found += made
        for outcome in found:
            if isinstance(outcome, Outcome):
                known = outcome.seconds if self._seconds == inf else self._seconds
                self._seconds = 0.9 * known + 0.1 * outcome.seconds
                self._alone.discard(outcome.job.key)
            else:
                self._alone.add(outcome.job.key)
        return found


def results(futures: Sequence[Any]) -> list[list[Outcome | Lost] | BaseException]:
    """The results of futures that are done, each by itself."""
    return [_result(future) for future in futures]


def _result(future: Any) -> list[Outcome | Lost] | BaseException:
    try:
        return future.result()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # CancelledError is no Exception in some libraries
        return error
