"""Portfolios as algorithms: the runs of several algorithms side by side, as runs of one."""

from collections.abc import Sequence

import numpy as np

from polarbear.data.run import Direction, Run, Status, sign_of
from polarbear.data.trajectories import extract_improvements


def join_side_by_side(runs: Sequence[Run], name: str, direction: Direction) -> Run:
    """Return the run of a portfolio: at each time the best value of its members so far.

    It is known until the first member was cut. Members that ended by themselves, or failed, keep
    their best value.

    >>> fast = Run("fast", "x", [1], [5.0], 9, status=Status.FINISHED)
    >>> slow = Run("slow", "x", [4, 8], [6.0, 2.0], 20, status=Status.CUT)
    >>> both = join_side_by_side([fast, slow], "both", "minimize")
    >>> both.time, both.value, both.until
    ((1.0, 8.0), (5.0, 2.0), 20)
    """
    cut = [run.until for run in runs if run.status == Status.CUT]
    until = min(cut) if cut else max(run.until for run in runs)
    time = np.concatenate([np.asarray(run.time, dtype=np.float64) for run in runs])
    value = np.concatenate([np.asarray(run.value, dtype=np.float64) for run in runs])
    sign = sign_of(direction)
    best = extract_improvements(np.zeros(len(time), dtype=np.int32), time, sign * value, n_runs=1)
    known = best.time <= until
    return Run(
        algorithm=name,
        instance=runs[0].instance,
        time=tuple(best.time[known].tolist()),
        value=tuple((sign * best.cost[known]).tolist()),
        until=until,
        repetition=runs[0].repetition,
        status=Status.CUT if cut else Status.FINISHED,
    )
