"""``Backend``: the interface of all ways to make runs; ``start_backend`` starts one.

A coordinator uses it like this::

    with closing(start_backend(setup, executor)) as backend:
        while jobs := race.ask():
            backend.submit(jobs)
            while backend.pending:
                for outcome in backend.outcomes(timeout=1):   # as they come
                    ...                                       # store it, and tell the race

1. Every submitted job is returned once: as a ``RunOutcome``, as a ``LostRun``, or by ``cancel``.
   The race asks again for jobs that are lost.
2. Asking for more outcomes confirms that the earlier ones are stored: a backend that keeps results
   deletes them then.
3. ``close`` ends all runs. If the whole process is killed, so are the runs.
"""

from collections.abc import Callable, Collection, Iterable
from numbers import Integral
from typing import Any, Protocol

from polarbear._text import escape_text
from polarbear.errors import SolverError
from polarbear.racing.jobs import Job
from polarbear.running.backends.dask_cluster import DaskWorkerPool
from polarbear.running.backends.dispatcher import Dispatcher
from polarbear.running.backends.executors import ExecutorWorkerPool
from polarbear.running.backends.local_processes import LocalProcesses, LocalWorkerPool
from polarbear.running.solvers.commands import Command
from polarbear.running.solvers.setup import Setup
from polarbear.running.workers.outcomes import LostRun, RunOutcome


class Backend(Protocol):
    """The interface of a backend, to which jobs are submitted and which returns their outcomes."""

    @property
    def pending(self) -> int:
        """The number of submitted jobs that have no outcome yet."""
        ...

    def submit(self, jobs: Iterable[Job]) -> None:
        """Queue jobs to be run."""
        ...

    def outcomes(self, timeout: float | None = None) -> list[RunOutcome | LostRun]:
        """Wait for outcomes until there is at least one, no job is pending, or time is up."""
        ...

    def cancel(self, algorithms: Collection[str]) -> list[Job]:
        """Cancel the jobs of these algorithms that have not started, and return them."""
        ...

    def close(self) -> None:
        """End all runs and release what the backend uses."""
        ...


def check_programs(setup: Setup, executor: Any, names: Collection[str]) -> None:
    """Raise an error if runs are made on this machine and a solver's program is missing here."""
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
    return executor is None or isinstance(executor, Integral | LocalProcesses)


def start_backend(setup: Setup, executor: Any = None) -> Backend:
    """Start the backend for the argument ``executor`` of :func:`polarbear.race`.

    ==========================================  ===============================================
    nothing, a number, ``LocalProcesses(...)``  processes on this machine
    a Dask client                               its workers
    an object with ``start_backend(setup)``     what that returns: ``SharedFolder(folder)`` makes
                                                runs wherever ``polarbear worker folder`` runs
    any ``concurrent.futures.Executor``         its workers
    ==========================================  ===============================================
    """
    if _is_local(executor) and not isinstance(executor, LocalProcesses):
        executor = LocalProcesses(None if executor is None else int(executor))
    start: Callable[[Setup], Backend] | None = getattr(executor, "start_backend", None)
    if start is not None:
        return start(setup)
    if isinstance(executor, LocalProcesses):
        return Dispatcher(LocalWorkerPool(setup, executor))
    if type(executor).__module__.startswith("distributed") and hasattr(executor, "scheduler"):
        return Dispatcher(DaskWorkerPool(setup, executor))
    if callable(getattr(executor, "submit", None)):
        return Dispatcher(ExecutorWorkerPool(setup, executor))
    raise SolverError(
        "expected a number of processes, an executor with submit(), a "
        "Dask client, or SharedFolder(folder)",
        executor=executor,
    )
