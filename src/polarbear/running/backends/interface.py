"""``Engine``: where runs are made, and ``start``, which finds the engine for what a user passes.

How whoever drives a race uses it::

    with closing(start(setup, executor)) as engine:
        while jobs := race.ask():
            engine.submit(jobs)
            while engine.pending:
                for outcome in engine.outcomes(timeout=1):   # as they come
                    ...                                      # store it, and tell the race

1. Every job that was submitted ends once, as an ``Outcome`` or ``Lost``, or is given back by
   ``cancel``. What is lost is still wanted by the race, which asks for it again.
2. To ask for more outcomes says that those given before are safe: an engine that keeps results
   deletes them then.
3. ``close`` ends whatever is running. If the whole process is killed, so are the runs.
"""

from collections.abc import Collection, Iterable
from numbers import Integral
from typing import Any, Protocol

from polarbear._text import escape_text
from polarbear.errors import SolverError
from polarbear.racing.jobs import Job
from polarbear.running.backends.dask_cluster import DaskBackend
from polarbear.running.backends.dispatcher import Pool
from polarbear.running.backends.executors import ExecutorBackend
from polarbear.running.backends.local_processes import Local, LocalBackend
from polarbear.running.backends.shared_folder import Spool, SpoolEngine
from polarbear.running.solvers.commands import Command
from polarbear.running.solvers.setup import Setup
from polarbear.running.workers.outcomes import Lost, Outcome


class Engine(Protocol):
    """Takes jobs, and gives outcomes as they come."""

    @property
    def pending(self) -> int:
        """How many jobs have no outcome yet."""
        ...

    def submit(self, jobs: Iterable[Job]) -> None:
        """Take jobs."""
        ...

    def outcomes(self, timeout: float | None = None) -> list[Outcome | Lost]:
        """What has come in; at least one if anything is pending, unless ``timeout`` is over."""
        ...

    def cancel(self, algorithms: Collection[str]) -> list[Job]:
        """Take back the jobs of these algorithms that nobody has begun: which they were."""
        ...

    def close(self) -> None:
        """End all that is under way."""
        ...


def check_programs(setup: Setup, executor: Any, names: Collection[str]) -> None:
    """Refuse to race programs that are not on this machine, if that is where they would run."""
    if not _is_local(executor):
        return
    solvers = {name: setup.solvers[name] for name in names if name in setup.solvers}
    missing = [
        f"{escape_text(name)}: cannot start {solver.arguments[0]!r}: {why}"
        for name, solver in solvers.items()
        if isinstance(solver, Command) and (why := solver.explain_missing())
    ]
    if missing:
        raise SolverError("; ".join(missing))


def _is_local(executor: Any) -> bool:
    return executor is None or isinstance(executor, Integral | Local)


def start(setup: Setup, executor: Any = None) -> Engine:
    """The engine for what a user passes as ``executor``.

    ======================================  ===================================================
    nothing, a number, ``Local(...)``       processes on this machine
    a Dask client                           its workers
    ``Spool(folder)``                       wherever ``polarbear worker folder`` runs
    any ``concurrent.futures.Executor``     its workers
    ======================================  ===================================================
    """
    if _is_local(executor) and not isinstance(executor, Local):
        executor = Local(None if executor is None else int(executor))
    if isinstance(executor, Spool):
        return SpoolEngine(setup, executor)
    if isinstance(executor, Local):
        return Pool(LocalBackend(setup, executor))
    if type(executor).__module__.startswith("distributed") and hasattr(executor, "scheduler"):
        return Pool(DaskBackend(setup, executor))
    if callable(getattr(executor, "submit", None)):
        return Pool(ExecutorBackend(setup, executor))
    raise SolverError(
        f"executor={executor!r}: expected a number of processes, an executor with submit(), a "
        "Dask client, or Spool(folder)"
    )
