"""``Outcome``: a run that was made, how it ended, and what it took. ``Lost``: one that was not."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from polarbear.data.run import Run, run_from_plain, run_to_plain
from polarbear.errors import DataError
from polarbear.racing.jobs import Job
from polarbear.running.workers.provenance import Details

ADVICE = "does it yield, report, or call what job.track returns?"
"""For Python solvers that find nothing; of a program, ``Outcome.why`` says what it printed."""


class Outcome(NamedTuple):
    """A run, and what one may want to know about it later.

    Attributes
    ----------
    job, run
        What was asked for, and what was found: ``race.tell(outcome.run)``.
    why
        Why it ended as it did, for people; empty if there is nothing to say.
    seconds, cpu
        Wall and CPU seconds, with all processes that the run had started.
    memory
        The peak of resident memory in bytes, beyond what it began with: a run is forked.
    load
        The load average of the machine when the run started. Above the number of cores, wall
        times are not fair.
    host
        Where it ran.
    output
        The last of what it printed.
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
    worker: Details = ()


class Lost(NamedTuple):
    """A run that nobody knows the end of: its worker is gone. The race asks for it again.

    ``blamed``: whether it was the one under way, which may be why the worker is gone; what waited
    behind it, or went together with others, has nothing to do with it.
    """

    job: Job
    why: str
    blamed: bool = True


def to_plain(outcome: Outcome) -> dict[str, Any]:
    """As text and numbers, for a file.

    >>> job = Job("a", "1", 0, 10.0, 1, 2)
    >>> from_plain(to_plain(Outcome(job, job.run([1.0], [2.0])))).run.value
    (2.0,)
    """
    plain = {"job": outcome.job._asdict(), "run": run_to_plain(outcome.run)}
    return outcome._asdict() | plain


def from_plain(plain: Mapping[str, Any]) -> Outcome:
    """Back from :func:`to_plain`; an error if it is anything else."""
    try:
        rest = {k: v for k, v in plain.items() if k not in ("job", "run")}
        rest["worker"] = tuple((str(k), str(v)[:200]) for k, v in rest.get("worker", ())[:40])
        return Outcome(Job(**plain["job"]), run_from_plain(plain["run"]), **rest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"this is not the outcome of a run: {error}") from None
