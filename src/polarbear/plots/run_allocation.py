"""What was spent on whom? Instances and time per algorithm."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polarbear._text import moment
from polarbear.data import grid
from polarbear.data.frozen import Frozen
from polarbear.data.runs import Runs
from polarbear.errors import require
from polarbear.plots.arguments import Floats, Ints, Racing, cast_of, race_of
from polarbear.plots.canvas import (
    TINY,
    Axes,
    Columns,
    Time,
    axes,
    bar,
    clock_label,
    edges,
    fitting,
    nothing,
    row_height,
    rows,
    time_axis,
)
from polarbear.plots.colours import Cast


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
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 100)
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
    pair = who * len(runs.instances) + runs.instance
    order = np.argsort(pair, kind="stable")
    first = np.flatnonzero(np.diff(pair[order], prepend=-1))
    longest = np.maximum.reduceat(runs.until[order], first)
    whose = who[order][first]
    return Allocation(
        cast,
        at,
        runs.clock,
        np.stack([np.bincount(whose[longest >= t], minlength=n) for t in at], axis=1),
        np.bincount(who, minlength=n),
        np.bincount(who, runs.until, minlength=n).astype(np.float64),
    )


def allocation(
    source: Runs | Racing | Allocation,
    ax: Axes | None = None,
    *,
    times: ArrayLike | None = None,
    time: Time = "auto",
    columns: Columns = 1,
) -> Axes:
    """Draw on how many instances each algorithm was run, and until when; who cost most on top.

    The colour of a cell says on how many instances an algorithm was run until then or longer. The
    figures at the right are the time that all of its runs took together.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> allocation(pb.replay(runs)).get_xlabel()
    'Time'
    """
    data = source if isinstance(source, Allocation) else allocation_data(source, times)
    n = len(data.cast.names)
    if not data.runs.sum():
        return nothing(axes(ax, columns), "Nothing has been run yet.")
    ax = axes(ax, columns, row_height(n, columns, 0.14))
    order = np.argsort(-data.time, kind="stable")
    log = time_axis(ax, data.times, data.clock, time)
    cells = edges(data.times, log=log)
    counts = np.where(data.instances[order] > 0, data.instances[order], np.nan)
    heights = np.arange(n + 1) - 0.5
    # By roots: where a race runs long it does so on few instances, and they are to be seen, too.
    norm = require("matplotlib.colors", extra="plots").PowerNorm(0.5, vmin=0)
    mesh = ax.pcolormesh(cells, heights, counts, cmap="YlGnBu", norm=norm, rasterized=True)
    ax.hlines(np.arange(n - 1) + 0.5, cells[0], cells[-1], color="white", linewidth=1.2)
    ax.set_xlim(cells[0], cells[-1])
    if len(data.times) == 1:
        ax.set_xticks(data.times, [moment(data.times[0], data.clock)])
    rows(ax, [data.cast.names[k] for k in order], data.cast)
    ax.set_ylim(n - 0.5, -0.5)
    place = {"transform": ax.get_yaxis_transform(), "fontsize": fitting(ax, n), "va": "center"}
    short = require("matplotlib.ticker", extra="plots").EngFormatter(places=1, sep="")
    for row, k in enumerate(order):
        ax.text(1.02, row, short(data.time[k]), color="#404040", **place)
    heading = {"transform": ax.transAxes, "fontsize": TINY, "va": "bottom", "ha": "center"}
    ax.text(1.06, 1.02, f"total {clock_label(data.clock).lower()}", **heading)
    bar(ax, mesh, "Instances run at least this long", pad=0.17)
    return ax
