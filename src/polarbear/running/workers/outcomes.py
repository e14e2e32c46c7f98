"""``RunOutcome``: a run, how it ended and what it used; ``LostRun``: a job without one."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from polarbear.data.run import FAILED, Run, run_from_plain, run_to_plain
from polarbear.errors import DataError
from polarbear.racing.jobs import Job
from polarbear.running.workers.provenance import WorkerDetails

NO_VALUE_ADVICE = "does it yield, report, or call what job.track returns?"
"""For Python solvers without a value; for a program, ``RunOutcome.why`` quotes its output."""


class RunOutcome(NamedTuple):
    """A run that was made, with why it ended, the resources it used, and its machine.

    Attributes
    ----------
    job, run
        The job, and its run: ``race.tell(outcome.run)``.
    why
        The reason of its status, as text; empty if there is none.
    seconds, cpu
        Wall and CPU seconds of all processes of the run.
    memory
        The peak of resident memory in bytes, without what it inherited as a fork.
    load
        The load average of the machine when the run started. Above the number of cores, wall
        times are not fair.
    host
        The name of the machine.
    output
        The end of its output.
    worker
        The process that made it: host, versions, platform.
    """

    job: Job
    run: Run
    why: str = ""
    seconds: float = 0.0
    cpu: float = 0.0
    memory: int = 0
    load: float = 0.0
    host: str = ""
    output: str = ""
    worker: WorkerDetails = ()

    @property
    def has_value(self) -> bool:
        """Whether the run reported a value."""
        return np.size(self.run.time) > 0

    @property
    def failed_without_value(self) -> bool:
        """Whether the run failed before it reported a value."""
        return self.run.status in FAILED and not self.has_value


class LostRun(NamedTuple):
    """A job without an outcome because its worker ended; the race requests it again.

    ``was_running``: whether this very job was running, so that it may be the cause. Jobs that
    waited behind it, or went in one call with others, are not suspected.
    """

    job: Job
    why: str
    was_running: bool = True


def to_plain(outcome: RunOutcome) -> dict[str, Any]:
    """Convert an outcome to plain text and numbers, for a JSON file.

    >>> job = Job("a", "1", 0, 10.0, 1, 2)
    >>> from_plain(to_plain(RunOutcome(job, job.run([1.0], [2.0])))).run.value
    (2.0,)
    """
    plain = {"job": outcome.job._asdict(), "run": run_to_plain(outcome.run)}
    return outcome._asdict() | plain


def from_plain(plain: Mapping[str, Any]) -> RunOutcome:
    """Return the outcome from what :func:`to_plain` returned, after a check."""
    try:
        rest = {k: v for k, v in plain.items() if k not in ("job", "run")}
        rest["worker"] = tuple((str(k), str(v)[:200]) for k, v in rest.get("worker", ())[:40])
        return RunOutcome(Job(**plain["job"]), run_from_plain(plain["run"]), **rest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"the file does not hold the outcome of a run: {error}") from None
