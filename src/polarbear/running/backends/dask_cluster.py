"""Runs on the workers of a Dask cluster.

1. A task is a few runs. Its key is made of what is run, so that to ask for the same twice is to run
   it once, and of the attempt, so that what was lost can be asked for again.
2. Results are fetched as they come, many at a time, and nothing is kept on the cluster.
3. When the scheduler is gone, so is every task: each run is ``Lost``, and asked for again.
4. A worker asks whether anybody still wants what it runs. If the coordinator is gone, or has
   withdrawn the task, the run is ended.
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
from polarbear.running.backends.dispatcher import results
from polarbear.running.backends.executors import release, work
from polarbear.running.solvers.setup import Packed, Setup, pack
from polarbear.running.workers.outcomes import Lost, Outcome

PATIENCE = 60.0
"""Seconds to wait for a scheduler that is gone."""

_NEWS = 1.0  # seconds between questions to the scheduler about its workers


@dataclass(frozen=True)
class Call:
    """What a task is to do; Dask looks into tuples and lists, but not into this."""

    packed: Packed
    jobs: tuple[Job, ...]
    key: str


def perform(call: Call) -> list[Outcome | Lost]:
    """Make the runs of a task, on a worker."""
    tasks = require("distributed", extra="dask").get_worker().state.tasks

    def wanted() -> bool:
        task = tasks.get(call.key)
        return task is not None and task.state in ("executing", "long-running")

    return work(call.packed, call.jobs, wanted)


class DaskBackend:
    """The workers of a cluster, through a client."""

    call_seconds = 0.5

    def __init__(self, setup: Setup, client: Any) -> None:
        self._packed = pack(setup)
        self._client = client
        self._attempts: Counter[str] = Counter()
        self._threads, self._asked = 1, -_NEWS

    @property
    def slots(self) -> int:
        """How many threads all workers have together, as far as is known."""
        if time.monotonic() > self._asked + _NEWS and self._client.status == "running":
            with suppress(OSError):  # the scheduler is just going; its tasks will be lost
                self._threads = sum(self._client.nthreads().values())
            self._asked = time.monotonic()
        return self._threads

    def submit(self, jobs: Sequence[Job]) -> Any:
        """Make these runs one after the other."""
        self._connected()
        identity = blake2b(dumps([self._packed.key, jobs]).encode(), digest_size=16).hexdigest()
        key = f"polarbear-{identity}-{self._attempts[identity]}"
        self._attempts[identity] += 1
        call = Call(self._packed, tuple(jobs), key)
        return self._client.submit(perform, call, key=key, retries=0, pure=False)

    def gather(self, futures: Sequence[Any]) -> list[list[Outcome | Lost] | BaseException]:
        """Fetch all that is there in one go."""
        done = [future for future in futures if future.status == "finished"]
        if len(done) == len(futures):
            try:
                return list(self._client.gather(done))
            except Exception:  # noqa: S110 (a worker went away meanwhile: one by one, then)
                pass
        return results(futures)

    def withdraw(self, future: Any) -> bool:
        """Take back a task; if it runs, it is ended."""
        future.cancel()
        return True

    def close(self) -> None:
        """The cluster is its owner's; slots that wait on its workers are ours."""
        if self._client.status == "running":
            with suppress(OSError):
                self._client.run(release, on_error="ignore")

    def _connected(self) -> None:
        end = time.monotonic() + PATIENCE
        while self._client.status != "running":
            if time.monotonic() > end or self._client.status == "closed":
                raise SolverError(
                    "the Dask scheduler cannot be reached: start it again, and the same call "
                    "goes on where it was"
                )
            time.sleep(0.1)
