"""Figure of the instances and the time that were spent on each algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polarbear._text import format_time
from polarbear.data import grid
from polarbear.data.colours import Cast
from polarbear.data.frozen import FrozenRecord
from polarbear.data.runs import Runs
from polarbear.errors import require
from polarbear.plots.arguments import Floats, Ints, check_race, get_cast
from polarbear.plots.canvas import (
    NOTE_FONT_POINTS,
    Axes,
    OneOrTwo,
    TimeScale,
    add_colour_bar,
    choose_font_size,
    compute_cell_edges,
    compute_height,
    format_clock,
    label_rows,
    prepare_axes,
    set_time_axis,
    show_message,
)
from polarbear.racing.ledger import Spent
from polarbear.racing.race import Race


@dataclass(frozen=True, eq=False)
class Allocation(FrozenRecord):
    """The instances, runs and time that were spent on each algorithm.

    Attributes
    ----------
    cast
        All algorithms.
    times, clock
        The grid of times.
    instances
        Shape (n, T): the number of instances with a run until this time or longer.
    runs
        Shape (n,): the number of runs.
    time
        Shape (n,): the total time of all runs; in a race, with all failed, extended and withdrawn
        ones, as :attr:`Race.spent` has it.
    """

    cast: Cast
    times: Floats
    clock: str
    instances: Ints
    runs: Ints
    time: Floats


def allocation_data(source: Runs | Race, times: ArrayLike | None = None) -> Allocation:
    """Count the instances on which each algorithm was run until each time or longer.

    ``times`` are by default those of the race, or for runs :func:`polarbear.grid.from_runs`.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 100)
    >>> allocation_data(runs).instances[0].tolist()
    [100, 100, 100]
    >>> spent = allocation_data(pb.replay(runs))
    >>> bool(spent.time.sum() < allocation_data(runs).time.sum())
    True
    """
    costs: Mapping[str, Spent] | None = None
    if isinstance(source, Runs):
        runs, cast = source, Cast.of(source.algorithms)
        grid_times = grid.from_runs(runs) if times is None else grid.check_times(times)
    else:
        state, cast = check_race(source).state, get_cast(source)
        grid_times = grid.check_times(state.setup.times if times is None else times)
        runs, costs = source.runs, state.ledger.spent_by
    n = len(cast.names)
    code = np.array([cast.names.index(name) for name in runs.algorithms], dtype=np.intp)
    algorithm_of_run = code[runs.algorithm]
    # Of several runs on an instance the longest counts.
    pair = algorithm_of_run * len(runs.instances) + runs.instance
    order = np.argsort(pair, kind="stable")
    first = np.flatnonzero(np.diff(pair[order], prepend=-1))
    longest = np.maximum.reduceat(runs.until[order], first)
    algorithm_of_pair = algorithm_of_run[order][first]
    return Allocation(
        cast=cast,
        times=grid_times,
        clock=runs.clock,
        instances=np.stack(
            [np.bincount(algorithm_of_pair[longest >= t], minlength=n) for t in grid_times], axis=1
        ),
        runs=np.bincount(algorithm_of_run, minlength=n),
        time=np.bincount(algorithm_of_run, runs.until, minlength=n).astype(np.float64)
        if costs is None
        else np.array([costs.get(name, Spent()).time for name in cast.names]),
    )


def allocation(
    source: Runs | Race | Allocation,
    ax: Axes | None = None,
    *,
    times: ArrayLike | None = None,
    time: TimeScale = "auto",
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw the number of instances on which each algorithm was run, and until which time.

    The colour of a cell is the number of instances with a run until this time or longer. The
    numbers at the right are the total time of all runs; the algorithm with the largest is on top.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> allocation(pb.replay(runs)).get_xlabel()
    'Time'
    """
    data = source if isinstance(source, Allocation) else allocation_data(source, times)
    n = len(data.cast.names)
    if not data.runs.sum():
        return show_message(prepare_axes(ax, columns), "There are no runs yet.")
    ax = prepare_axes(ax, columns, compute_height(n, columns, 0.14))
    order = np.argsort(-data.time, kind="stable")
    log = set_time_axis(ax, data.times, data.clock, time)
    cells = compute_cell_edges(data.times, log=log)
    counts = np.where(data.instances[order] > 0, data.instances[order], np.nan)
    heights = np.arange(n + 1) - 0.5
    # Square-root scale: long runs are made on few instances, which should be visible as well.
    norm = require("matplotlib.colors", extra="plots").PowerNorm(0.5, vmin=0)
    mesh = ax.pcolormesh(cells, heights, counts, cmap="YlGnBu", norm=norm, rasterized=True)
    ax.hlines(np.arange(n - 1) + 0.5, cells[0], cells[-1], color="white", linewidth=1.2)
    ax.set_xlim(cells[0], cells[-1])
    if len(data.times) == 1:
        ax.set_xticks(data.times, [format_time(data.times[0], data.clock)])
    label_rows(ax, [data.cast.names[k] for k in order], data.cast)
    ax.set_ylim(n - 0.5, -0.5)
    place = {
        "transform": ax.get_yaxis_transform(),
        "fontsize": choose_font_size(ax, n),
        "va": "center",
    }
    short = require("matplotlib.ticker", extra="plots").EngFormatter(places=1, sep="")
    for row, k in enumerate(order):
        ax.text(1.02, row, short(data.time[k]), color="#404040", **place)
    heading = {
        "transform": ax.transAxes,
        "fontsize": NOTE_FONT_POINTS,
        "va": "bottom",
        "ha": "center",
    }
    ax.text(1.06, 1.02, f"total {format_clock(data.clock).lower()}", **heading)
    add_colour_bar(ax, mesh, "Instances run at least this long", pad=0.17)
    return ax
