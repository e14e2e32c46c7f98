"""An executor that makes runs in this process, for candidates of the study itself.

They need no containment, and a process for each of 50,000 runs would take most of the time. A run
that raises an exception has crashed, as in a process of its own.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from polarbear.data.run import Status
from polarbear.racing.jobs import Job
from polarbear.running.solvers.exceptions import describe_exception
from polarbear.running.solvers.job import HorizonReached, RunningJob
from polarbear.running.solvers.setup import PackedSetup, Setup, unpack
from polarbear.running.solvers.shared_trajectory import SharedTrajectory
from polarbear.running.workers.outcomes import RunOutcome


class InProcess:
    """Has ``submit`` of an executor."""

    _max_workers = 1

    def __init__(self) -> None:
        self._setup: tuple[str, Setup] | None = None

    def submit(self, function: Callable[..., Any], packed: PackedSetup, jobs: Sequence[Job]) -> Any:
        """Make these runs now, instead of calling the function that starts processes."""
        del function
        setup = self._setup
        if setup is None or setup[0] != packed.key:
            setup = self._setup = (packed.key, unpack(packed))
        future: Future[Any] = Future()
        future.set_result([run_job(setup[1], job) for job in jobs])
        return future


def run_job(setup: Setup, job: Job) -> RunOutcome:
    """Make a run in this process."""
    trajectory = SharedTrajectory(setup.times)
    running = RunningJob(
        job,
        setup.instances.make(job),
        trajectory,
        times=setup.times,
        direction=setup.direction,
        clock=setup.clock,
    )
    status, why = Status.CUT, ""
    try:
        running.call_solver(setup.solvers[job.algorithm])
    except HorizonReached:
        pass
    except Exception as error:
        status, why = Status.CRASHED, describe_exception(error)
    times, values = trajectory.improvements()
    return RunOutcome(job, job.run(tuple(times), tuple(values), status=status), why)
