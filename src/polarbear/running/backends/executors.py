"""Runs on any ``concurrent.futures.Executor``: worker processes, or threads.

The executor's workers call :func:`work`. The runs themselves are made in slots, one for each call
that is under way in a worker, which stay there for the next calls.
"""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from polarbear.racing.jobs import Job
from polarbear.running.backends.dispatcher import results
from polarbear.running.solvers.setup import Packed, Setup, pack
from polarbear.running.workers.outcomes import Lost, Outcome
from polarbear.running.workers.worker_process import Slot

_idle: list[Slot] = []
_inherited: list[Slot] = []
_lock = threading.Lock()


def work(
    packed: Packed, jobs: Sequence[Job], wanted: Callable[[], bool] | None = None
) -> list[Outcome | Lost]:
    """Make runs one after the other, wherever this is called, as long as they are ``wanted``."""
    with _lock:
        slot = _idle.pop() if _idle else None
    slot = Slot() if slot is None or slot.gone else slot
    try:
        return slot.runs(jobs, packed, wanted)
    finally:
        if not slot.gone:
            with _lock:
                _idle.append(slot)


def release() -> None:
    """End the slots that are waiting in this process."""
    with _lock:
        while _idle:
            _idle.pop().close()


def _forget() -> None:
    """The slots of a parent are not those of its children, which must not close them either."""
    _inherited.extend(_idle)
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class ExecutorBackend:
    """Anything with ``submit(function, *arguments)`` that gives futures."""

    call_seconds = 0.2

    def __init__(self, setup: Setup, executor: Any) -> None:
        self._packed = pack(setup)
        self._executor = executor

    @property
    def slots(self) -> int:
        """How many workers there are, if the executor says it."""
        return getattr(self._executor, "_max_workers", None) or os.cpu_count() or 1

    def submit(self, jobs: Sequence[Job]) -> Any:
        """Make these runs one after the other."""
        return self._executor.submit(work, self._packed, list(jobs))

    gather = staticmethod(results)

    def withdraw(self, future: Any) -> bool:
        """Take back a call that nobody has begun."""
        return future.cancel()

    def close(self) -> None:
        """The executor is its owner's; slots in this process are ours."""
        release()
