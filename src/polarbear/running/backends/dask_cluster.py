"""``DaskWorkerPool``: makes runs on the workers of a Dask cluster.

1. A task makes a few runs. Its key is a hash of them, so that the same task is not run twice, and
   the number of the attempt, so that lost runs can be submitted again.
2. Results are fetched as they come, many at a time, and nothing is kept on the cluster.
3. If the scheduler ends, all tasks are lost: each job is a ``LostRun``, and submitted again.
4. A worker checks whether its task is still wanted. If the coordinator has ended, or has cancelled
   the task, the run is ended.
"""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from json import dumps
from typing import Any

from polarbear.errors import SolverError, require
from polarbear.racing.jobs import Job
from polarbear.running.backends.dispatcher import collect_results
from polarbear.running.backends.executors import close_idle_workers, run_jobs
from polarbear.running.solvers.setup import PackedSetup, Setup, pack
from polarbear.running.workers.outcomes import LostRun, RunOutcome

RECONNECT_SECONDS = 60.0
"""Seconds to wait for a scheduler that cannot be reached."""

_POLL_SECONDS = 1.0  # between questions to the scheduler about its workers


@dataclass(frozen=True)
class DaskCall:
    """The argument of a Dask task, in a class so that Dask does not search it for futures."""

    packed: PackedSetup
    jobs: tuple[Job, ...]
    key: str


def run_task(call: DaskCall) -> list[RunOutcome | LostRun]:
    """Make the runs of a Dask task; called on a Dask worker."""
    tasks = require("distributed", extra="dask").get_worker().state.tasks

    def is_wanted() -> bool:
        task = tasks.get(call.key)
        return task is not None and task.state in ("executing", "long-running")

    return run_jobs(call.packed, call.jobs, is_wanted)


class DaskWorkerPool:
    """The workers of a Dask cluster, reached through a Dask client."""

    call_seconds = 0.5

    def __init__(self, setup: Setup, client: Any) -> None:
        self._packed = pack(setup)
        self._client = client
        self._attempts: Counter[str] = Counter()
        self._n_threads, self._asked_at = 1, -_POLL_SECONDS

    @property
    def n_workers(self) -> int:
        """The number of threads of all Dask workers, as last reported by the scheduler."""
        is_due = time.monotonic() > self._asked_at + _POLL_SECONDS
        if is_due and self._client.status == "running":
            with suppress(OSError):  # the scheduler is ending; its tasks will be lost
                self._n_threads = sum(self._client.nthreads().values())
            self._asked_at = time.monotonic()
        return self._n_threads

    def submit(self, jobs: Sequence[Job]) -> Any:
        """Submit runs to be made one after the other; return a future of their outcomes."""
        self._wait_for_scheduler()
        identity = blake2b(dumps([self._packed.key, jobs]).encode(), digest_size=16).hexdigest()
        key = f"polarbear-{identity}-{self._attempts[identity]}"
        self._attempts[identity] += 1
        call = DaskCall(self._packed, tuple(jobs), key)
        return self._client.submit(run_task, call, key=key, retries=0, pure=False)

    def gather(self, futures: Sequence[Any]) -> list[list[RunOutcome | LostRun] | BaseException]:
        """Return the results of tasks, fetched in one request, or one by one if that fails."""
        done = [future for future in futures if future.status == "finished"]
        if len(done) == len(futures):
            try:
                return list(self._client.gather(done))
            except Exception:  # noqa: S110 (a worker ended meanwhile)
                pass
        return collect_results(futures)

    def withdraw(self, future: Any) -> bool:
        """Cancel a task; if it is running, its worker ends it."""
        future.cancel()
        return True

    def close(self) -> None:
        """End the idle worker processes of PolarBear on the cluster; the cluster stays open."""
        if self._client.status == "running":
            with suppress(OSError):
                self._client.run(close_idle_workers, on_error="ignore")

    def _wait_for_scheduler(self) -> None:
        """Wait until the client is connected; raise an error after a minute."""
        end = time.monotonic() + RECONNECT_SECONDS
        while self._client.status != "running":
            if time.monotonic() > end or self._client.status == "closed":
                raise SolverError(
                    "the Dask scheduler cannot be reached: start it again, then the same call "
                    "continues the race"
                )
            time.sleep(0.1)
