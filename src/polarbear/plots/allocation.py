"""What was spent on whom? Instances and time per algorithm."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polarbear.data import grid
from polarbear.data.frozen import Frozen
from polarbear.data.runs import Runs
from polarbear.plots.colours import Cast
from polarbear.plots.sources import Floats, Ints, Racing, cast_of, race_of


@dataclass(frozen=True, eq=False)
class Allocation(Frozen):
    """What was spent on algorithms, in the order of the cast.

    Attributes
    ----------
    cast
        Everybody.
    times, clock
        The grid.
    instances
        Shape (n, T): on how many instances an algorithm was run until this time or longer.
    runs
        Shape (n,): how often it was run.
    time
        Shape (n,): how long all of its runs took together.
    """

    cast: Cast
    times: Floats
    clock: str
    instances: Ints
    runs: Ints
    time: Floats


def allocation_data(source: Runs | Racing, times: ArrayLike | None = None) -> Allocation:
    """On how many instances each algorithm was run, and until when.

    ``times``: those of the race, or of runs what :func:`polarbear.grid.from_runs` chooses.

    >>> import polarbear as pb
    >>> runs = pb.testing.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 100)
    >>> allocation_data(runs).instances[0].tolist()
    [100, 100, 100]
    >>> found = allocation_data(pb.replay(runs))
    >>> bool(found.time.sum() < allocation_data(runs).time.sum())
    True
    """
    if isinstance(source, Runs):
        runs, cast = source, Cast.of(source.algorithms)
        at = grid.from_runs(runs) if times is None else grid.increasing(times)
    else:
        race, cast = race_of(source), cast_of(source)
        at = grid.increasing(race.state.times if times is None else times)
        runs = source.runs
    n = len(cast.names)
    code = np.array([cast.names.index(name) for name in runs.algorithms], dtype=np.intp)
    who = code[runs.algorithm]
    # Of several runs on an instance the longest says how far it was seen.
    longest = np.full((n, len(runs.instances)), -np.inf)
    np.maximum.at(longest, (who, runs.instance), runs.until)
    return Allocation(
        cast,
        at,
        runs.clock,
        (longest[:, :, None] >= at).sum(axis=1),
        np.bincount(who, minlength=n),
        np.bincount(who, runs.until, minlength=n).astype(np.float64),
    )
