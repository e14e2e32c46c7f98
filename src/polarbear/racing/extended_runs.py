"""Runs that were extended: made again with the same seed, until a later horizon.

A run and its extensions have a repetition each and are one run: ``effective_runs`` makes it.
The race, the store, merging and repair all count runs by this rule and by no other.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, Protocol, Self, TypeVar

from polarbear.data.run import Run, Status
from polarbear.racing.jobs import Job, RunId, key_of


class _Watched(Protocol):
    @property
    def until(self) -> float: ...

    @property
    def status(self) -> Status: ...

    def _replace(self, **changes: Any) -> Self: ...


W = TypeVar("W", bound=_Watched)


def extensions(jobs: Iterable[Job]) -> dict[RunId, int]:
    """Map each job that extends an earlier run to the repetition that it extends."""
    return {job.key: job.extends for job in jobs if job.extends is not None}


def join(earlier: W, later: W) -> W:
    """Make one run of a run and its extension: the one that was watched for longer.

    An extension that failed before the earlier run ended takes no value away: the earlier one
    stays, and ends as the extension did.

    >>> short = Run("a", "x", [1, 3], [5.0, 4.0], 10.0)
    >>> join(short, Run("a", "x", [1], [5.0], 2.0, 1, Status.CRASHED)).until
    10.0
    """
    if later.until >= earlier.until:
        return later
    return earlier if later.status == Status.CUT else earlier._replace(status=later.status)


def effective_runs(runs: Iterable[Run], extends: Mapping[RunId, int]) -> Iterator[Run]:
    """Yield every run once: a run and its extensions are one, with the number of the first.

    ``extends`` maps extensions to the repetition that they extend. Of attempts at an extension
    that failed and were made again, the last one counts.

    >>> short, long = Run("a", "x", [1], [5.0], 1.0), Run("a", "x", [1, 3], [5.0, 4.0], 4.0, 1)
    >>> [(run.until, run.repetition) for run in effective_runs([short, long], {key_of(long): 0})]
    [(4.0, 0)]
    """
    attempts: dict[RunId, list[Run]] = {
        key._replace(repetition=first): [] for key, first in extends.items()
    }
    for run in runs:
        key = key_of(run)
        first = key._replace(repetition=extends.get(key, key.repetition))
        if first in attempts:
            attempts[first].append(run)
        else:
            yield run
    for first, own in attempts.items():
        own.sort(key=key_of)
        counted = [run for run in own[:-1] if run.status == Status.CUT] + own[-1:]
        if counted:
            yield reduce(join, counted)._replace(repetition=first.repetition)
