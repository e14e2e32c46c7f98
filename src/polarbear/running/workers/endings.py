"""``conclude``: determine how a run ended, from its own record and its supervisor's evidence.

A run records how it ended, if it can. If it cannot, its supervisor knows the cause: a limit at
which it ended the run, or the signal or exit code that the system reports. ``STATUS_OF`` is the one
table from causes to statuses.
"""

import os
import signal
from enum import Enum, auto
from math import isnan
from typing import NamedTuple

from polarbear.data.run import Status
from polarbear.racing.jobs import Job
from polarbear.running.solvers.exceptions import ENDING_SIGNALS
from polarbear.running.solvers.shared_trajectory import Ending, SharedTrajectory
from polarbear.running.workers.outcomes import RunOutcome


class Cause(Enum):
    """The possible causes of the end of a run that did not record its own ending."""

    HORIZON = auto()
    WALL_LIMIT = auto()
    CPU_LIMIT = auto()
    MEMORY_LIMIT = auto()
    PROCESS_LIMIT = auto()
    WORKER_CLOSED = auto()
    CPU_SIGNAL = auto()
    KILL_SIGNAL = auto()
    ENDING_SIGNAL = auto()
    OTHER_SIGNAL = auto()
    EXIT = auto()


STATUS_OF: dict[Cause, tuple[Status, str]] = {
    # ended by the supervisor
    Cause.HORIZON: (Status.CUT, ""),
    Cause.WALL_LIMIT: (Status.OUT_OF_TIME, "over the limit of {:g} seconds"),
    Cause.CPU_LIMIT: (Status.OUT_OF_TIME, "over the limit of {:g} CPU seconds"),
    Cause.MEMORY_LIMIT: (Status.OUT_OF_MEMORY, "over the limit of {:,.0f} MB of memory"),
    Cause.PROCESS_LIMIT: (Status.CRASHED, "over the limit of {} processes"),
    Cause.WORKER_CLOSED: (Status.KILLED, "the worker process was closed"),
    # ended by the system, by another process or by itself
    Cause.CPU_SIGNAL: (Status.OUT_OF_TIME, "over the limit of CPU seconds"),
    Cause.KILL_SIGNAL: (
        Status.KILLED,
        "killed from outside: perhaps the machine was out of memory",
    ),
    Cause.ENDING_SIGNAL: (Status.KILLED, "killed from outside, by {}"),
    Cause.OTHER_SIGNAL: (Status.CRASHED, "ended by {}"),
    Cause.EXIT: (Status.CRASHED, "the process ended by itself, with exit code {}"),
}
"""The status of a run by the cause of its end, and the reason, in which the detail is filled in."""


class EndEvidence(NamedTuple):
    """The observed cause of a run's end, with a detail: the limit, the signal or the exit code."""

    cause: Cause
    detail: object = None


def read_wait_status(wait_status: int) -> EndEvidence:
    """Return the cause of a process's end from its wait status.

    >>> killed, exited = read_wait_status(9), read_wait_status(256)
    >>> killed.cause.name, killed.detail, exited.cause.name, exited.detail
    ('KILL_SIGNAL', 'SIGKILL', 'EXIT', 1)
    """
    if not os.WIFSIGNALED(wait_status):
        return EndEvidence(Cause.EXIT, os.WEXITSTATUS(wait_status))
    number = os.WTERMSIG(wait_status)
    name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
    causes = {"SIGKILL": Cause.KILL_SIGNAL, "SIGXCPU": Cause.CPU_SIGNAL}
    other = Cause.ENDING_SIGNAL if number in ENDING_SIGNALS else Cause.OTHER_SIGNAL
    return EndEvidence(causes.get(name, other), name)


def conclude(
    job: Job, trajectory: SharedTrajectory, evidence: EndEvidence, elapsed: float
) -> RunOutcome:
    """Return the outcome of a run, by the run's own record, else by the observed cause.

    ``elapsed`` is the time of the run by the clock of the race, as far as the supervisor knows it.

    >>> job, trajectory = Job("a", "1", 0, 10.0, 1, 2), SharedTrajectory((10.0,))
    >>> trajectory.record(3.0, 0.5)
    >>> outcome = conclude(job, trajectory, EndEvidence(Cause.WALL_LIMIT, 60), elapsed=4.0)
    >>> outcome.run.status.value, outcome.run.until, outcome.why
    ('out of time', 4.0, 'over the limit of 60 seconds')
    """
    times, values = trajectory.improvements()
    ending = trajectory.ending()
    if ending is None:
        status, reason = STATUS_OF[evidence.cause]
        until = job.horizon if status == Status.CUT else elapsed
        ending = Ending(status, until, reason.format(evidence.detail) or trajectory.remark())
    latest = max(times, default=0.0)
    until = latest if isnan(ending.until) else max(min(ending.until, job.horizon), latest)
    run = job.run(tuple(times), tuple(values), until=until, status=ending.status)
    return RunOutcome(job, run, ending.why)
