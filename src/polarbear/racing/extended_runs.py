"""Extended runs: a run repeated with the same seed until a later horizon.

A run and its extensions have one repetition number each, but count as one run, which
``effective_runs`` makes. The race, the store, merging and repair all use this rule.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import TypeVar

from polarbear.data.run import EncodedRun, Run, Status
from polarbear.racing.jobs import Job, RunId, key_of

R = TypeVar("R", Run, EncodedRun)


def map_extensions(jobs: Iterable[Job]) -> dict[RunId, int]:
    """Map each job that extends an earlier run to the repetition that it extends."""
    return {job.key: job.extends for job in jobs if job.extends is not None}


def join(earlier: R, later: R) -> R:
    """Return a run and its extension as one run: the one of the two that was observed for longer.

    If the extension failed before the end of the earlier run, the earlier run keeps its values and
    takes the status of the extension.

    >>> short = Run("a", "x", [1, 3], [5.0, 4.0], 10.0)
    >>> join(short, Run("a", "x", [1], [5.0], 2.0, 1, Status.CRASHED)).until
    10.0
    """
    if later.until >= earlier.until:
        return later
    return earlier if later.status == Status.CUT else earlier._replace(status=later.status)


def effective_runs(runs: Iterable[Run], extends: Mapping[RunId, int]) -> Iterator[Run]:
    """Yield each run once, joined with its extensions, under its own repetition number.

    ``extends`` maps extensions to the repetition that they extend. If an extension failed and was
    repeated, the last attempt counts.

    >>> short, long = Run("a", "x", [1], [5.0], 1.0), Run("a", "x", [1, 3], [5.0, 4.0], 4.0, 1)
    >>> [(run.until, run.repetition) for run in effective_runs([short, long], {key_of(long): 0})]
    [(4.0, 0)]
    """
    attempts: dict[RunId, list[Run]] = {
        key._replace(repetition=original): [] for key, original in extends.items()
    }
    for run in runs:
        key = key_of(run)
        original = key._replace(repetition=extends.get(key, key.repetition))
        if original in attempts:
            attempts[original].append(run)
        else:
            yield run
    for original, parts in attempts.items():
        parts.sort(key=key_of)
        counted = [run for run in parts[:-1] if run.status == Status.CUT] + parts[-1:]
        if counted:
            yield reduce(join, counted)._replace(repetition=original.repetition)
