"""Runs that were made again for longer: of each only the longest counts.

One that failed before the shorter one ended takes nothing away: the shorter one stays, and ends as
this one did.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from polarbear.data.runs import Runs
from polarbear.racing.jobs import Job, Key, first_of


def repeats(seed: int, jobs: Iterable[Job]) -> dict[Key, int]:
    """The jobs that are earlier ones for longer, and the repetition that each is again."""
    later = (job for job in jobs if job.repetition)
    found = {job.key: first_of(seed, job) for job in later}
    return {key: first for key, first in found.items() if first < key.repetition}


def without_shorter(runs: Runs, first: Mapping[Key, int]) -> Runs:
    """The runs without those that are there for longer, which take their numbers.

    >>> from polarbear import Run
    >>> short, long = Run("a", "x", [1], [5.0], 1.0), Run("a", "x", [1, 3], [5.0, 4.0], 4.0, 1)
    >>> runs = Runs.from_records([short, long], direction="minimize")
    >>> kept = without_shorter(runs, {Key("a", "x", 1): 0})
    >>> kept.until, kept.repetition
    (array([4.]), array([0]))
    """
    if not first:
        return runs
    names = (runs.algorithms[k] for k in runs.algorithm)
    instances = (runs.instances[k] for k in runs.instance)
    keys = map(Key, names, instances, runs.repetition.tolist())
    place = {key: k for k, key in enumerate(keys)}
    keep, number = np.ones(len(runs), dtype=bool), runs.repetition.copy()
    status, cut = runs.status.copy(), runs.cut
    for key, start in first.items():
        if key in place:
            last = place[key]
            earlier = (key._replace(repetition=k) for k in range(start, key.repetition))
            same = [place[one] for one in earlier if one in place]
            # Those that were not cut failed, and were tried again.
            longest = max([last, *(k for k in same if cut[k])], key=runs.until.__getitem__)
            if not cut[last]:
                status[longest] = runs.status[last]
            keep[[*same, last]] = False
            keep[longest], number[longest] = True, start
    return replace(runs.filter(where=keep), repetition=number[keep], status=status[keep])
