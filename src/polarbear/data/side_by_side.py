"""Portfolios as algorithms: the runs of several algorithms side by side, as runs of one."""

from collections.abc import Sequence

import numpy as np

from polarbear.data.run import Direction, Run, Status, sign_of


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
    order = np.lexsort((sign_of(direction) * value, time))
    time, value = time[order], value[order]
    best = np.minimum.accumulate(sign_of(direction) * value)
    kept = (np.diff(best, prepend=np.inf) < 0) & (time <= until)
    return Run(
        algorithm=name,
        instance=runs[0].instance,
        time=tuple(time[kept].tolist()),
        value=tuple(value[kept].tolist()),
        until=until,
        repetition=runs[0].repetition,
        status=Status.CUT if cut else Status.FINISHED,
    )
