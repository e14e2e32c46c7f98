"""``Local``: runs on this machine, each slot a process with a thread that waits for it."""

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
from polarbear.running.backends.dispatcher import results
from polarbear.running.solvers.processes import cores, start_when_possible
from polarbear.running.solvers.setup import Setup
from polarbear.running.workers.outcomes import Lost, Outcome
from polarbear.running.workers.spawning import Spawned
from polarbear.running.workers.worker_process import Slot


@dataclass(frozen=True)
class Local:
    """Run on this machine.

    Attributes
    ----------
    slots
        How many runs at once; by default one for each core, for two on a core disturb each other.
    pin
        Whether each slot stays on a core of its own, which makes wall times steadier.

    Examples
    --------
    >>> Local(2).slots
    2
    """

    slots: int | None = None
    pin: bool = False

    def __post_init__(self) -> None:
        if self.slots is not None and not (isinstance(self.slots, Integral) and self.slots > 0):
            raise SolverError(f"slots={self.slots!r}: expected a number of runs at once")


class LocalBackend:
    """Slots that are forked here: closures and whatever else is in memory can be run."""

    call_seconds = 0.2

    def __init__(self, setup: Setup, where: Local) -> None:
        own = cores()
        self.slots = len(own) if where.slots is None else int(where.slots)
        self._setup = setup
        self._queue: SimpleQueue[tuple[Future[list[Outcome | Lost]], Sequence[Job]] | None]
        self._queue = SimpleQueue()
        self._cores = [own[k % len(own)] if where.pin else None for k in range(self.slots)]
        # All are forked before there is any thread of ours.
        self._slots: list[Slot | Spawned] = []
        self._closed = False
        try:
            self._slots += (self._slot(k) for k in range(self.slots))
        except BaseException:
            for slot in self._slots:
                slot.close()
            raise
        with one_thread():  # linear algebra restarts its threads after a fork: now there is room
            pass
        self._threads = [
            # Daemons: whoever leaves without closing is not kept waiting for runs.
            threading.Thread(target=self._work, args=(k,), name=f"polarbear-slot-{k}", daemon=True)
            for k in range(self.slots)
        ]
        for thread in self._threads:
            start_when_possible(thread.start, warns=True)

    def submit(self, jobs: Sequence[Job]) -> "Future[list[Outcome | Lost]]":
        """Make these runs one after the other."""
        future: Future[list[Outcome | Lost]] = Future()
        self._queue.put((future, jobs))
        return future

    gather = staticmethod(results)

    def withdraw(self, future: Any) -> bool:
        """Take back a call that nobody has begun."""
        return future.cancel()

    def close(self) -> None:
        """End all runs and slots."""
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for slot in self._slots:
            slot.end()
        for thread in self._threads:
            thread.join()

    def _slot(self, k: int) -> Slot | Spawned:
        kind = Slot if hasattr(os, "fork") else Spawned
        return kind(
            self._setup, core=self._cores[k], slots=self.slots, wanted=lambda: not self._closed
        )

    def _work(self, k: int) -> None:
        while (wanted := self._queue.get()) is not None and not self._closed:
            future, jobs = wanted
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._run(k, jobs))
            except BaseException as error:
                future.set_exception(error)
        self._slots[k].close()

    def _run(self, k: int, jobs: Sequence[Job]) -> list[Outcome | Lost]:
        made = self._slots[k].runs(jobs)
        if self._slots[k].gone and not self._closed:
            with suppress(OSError):  # closed while the system had no room for a process
                self._slots[k] = self._slot(k)
        return made
