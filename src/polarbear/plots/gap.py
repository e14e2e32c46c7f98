"""Figures of values with bounds: both over time on one instance, and the mean gap between them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polarbear.data import grid
from polarbear.data.colours import Cast
from polarbear.data.frozen import FrozenRecord
from polarbear.data.levels import check_one_value
from polarbear.data.names import find_indices
from polarbear.data.run import Direction
from polarbear.data.runs import Runs, check_runs
from polarbear.errors import DataError
from polarbear.plots.arguments import Floats
from polarbear.plots.canvas import (
    Axes,
    OneOrTwo,
    TimeScale,
    add_note,
    format_name,
    get_line_options,
    prepare_axes,
    set_time_axis,
)
from polarbear.plots.labels import LineEnd, label_line_ends

MIN_KNOWN_SHARE = 0.9
"""Where fewer runs of an algorithm are known, they are a selection, and there is no mean."""

GRID_POINTS = 200
"""The number of times of a figure, unless they are given."""


@dataclass(frozen=True, eq=False)
class Gaps(FrozenRecord):
    """The gap between value and bound over time, by algorithm.

    Attributes
    ----------
    cast
        The algorithms.
    times, clock
        Shape (T,): the times, and their unit.
    mean, median
        Shape (T, n): over all runs that are known at a time; instances count the same. nan where
        fewer than 90 % of the runs of an algorithm are known: the others were cut before.
    n_runs
        Shape (T, n): the number of runs that are known.
    """

    cast: Cast
    times: Floats
    clock: str
    mean: Floats
    median: Floats
    n_runs: Floats


@dataclass(frozen=True, eq=False)
class Bounds(FrozenRecord):
    """The values and bounds of each algorithm on one instance over time.

    Attributes
    ----------
    cast
        The algorithms.
    instance, direction, times, clock
        The instance, whether its values are minimised, the times (T,) and their unit.
    value, bound
        Shape (T, n): medians over the repetitions; nan before the first, or where not known.
    """

    cast: Cast
    instance: str
    direction: Direction
    times: Floats
    clock: str
    value: Floats
    bound: Floats


def gaps_data(runs: Runs, *, times: ArrayLike | None = None, pareto: Collection[str] = ()) -> Gaps:
    """Compute the mean and median gap of each algorithm over time.

    The gap of a value v and a bound b is ``|v - b| / max(|v|, |b|)``, as in Berthold (2013),
    "Measuring the impact of primal heuristics". It is 1 where one is missing or the signs differ,
    and 0 where both are equal.

    Parameters
    ----------
    runs
        Runs with bounds, such as those read from solver logs.
    times
        The grid of times; by default 200 from the first value to the time that half of the runs
        reach.
    pareto
        The algorithms in colour if there are many, such as ``posterior.pareto()``.

    Examples
    --------
    >>> import polarbear as pb
    >>> run = pb.Run("CP", "x", [1, 5], [20.0, 10.0], until=9)
    >>> bound = run._replace(time=[2], value=[5.0])
    >>> runs = pb.Runs.from_records([run], direction="minimize", bounds=[bound])
    >>> gaps_data(runs, times=[1, 2, 5]).mean[:, 0]
    array([1.  , 0.75, 0.5 ])
    """
    bounds = _get_bounds(runs)
    grid_times = _choose_times(runs, times)
    gap = _compute_gap(runs.at(grid_times), bounds.at(grid_times))
    n = len(runs.algorithms)
    mean, median, n_runs = (np.full((len(grid_times), n), np.nan) for _ in range(3))
    for k in range(n):
        own = gap[runs.algorithm == k]
        instance = runs.instance[runs.algorithm == k]
        per_instance = [_average_known(own[instance == i]) for i in np.unique(instance)]
        known = np.array(per_instance)
        n_runs[:, k] = (~np.isnan(own)).sum(axis=0)
        enough = n_runs[:, k] >= max(1.0, MIN_KNOWN_SHARE * len(own))
        mean[enough, k] = np.nanmean(known[:, enough], axis=0)
        median[enough, k] = np.nanmedian(known[:, enough], axis=0)
    return Gaps(
        cast=Cast.of(runs.algorithms, pareto),
        times=grid_times,
        clock=runs.clock,
        mean=mean,
        median=median,
        n_runs=n_runs,
    )


def bounds_data(
    runs: Runs,
    instance: str,
    *,
    times: ArrayLike | None = None,
    pareto: Collection[str] = (),
) -> Bounds:
    """Compute the value and the bound of each algorithm on one instance over time.

    >>> import polarbear as pb
    >>> run = pb.Run("CP", "x", [1, 5], [20.0, 10.0], until=9)
    >>> bound = run._replace(time=[2], value=[5.0])
    >>> runs = pb.Runs.from_records([run], direction="minimize", bounds=[bound])
    >>> bounds_data(runs, "x", times=[1, 2, 5]).bound[:, 0]
    array([nan,  5.,  5.])
    """
    _get_bounds(runs)
    find_indices([instance], runs.instances, "instance")
    cast = Cast.of(runs.algorithms, pareto)
    runs = runs.filter(instances=[instance])
    grid_times = _choose_times(runs, times)
    value, bound = (np.full((len(grid_times), len(cast.names)), np.nan) for _ in range(2))
    for curves, part in ((value, runs), (bound, _get_bounds(runs))):
        at = part.at(grid_times)
        for k, name in enumerate(runs.algorithms):
            own = at[runs.algorithm == k]
            middle = np.median(own, axis=0)  # nan once a run is not known
            curves[:, cast.names.index(name)] = np.where(np.isinf(middle), np.nan, middle)
    return Bounds(
        cast=cast,
        instance=instance,
        direction=runs.direction,
        times=grid_times,
        clock=runs.clock,
        value=value,
        bound=bound,
    )


def gaps(
    source: Runs | Gaps,
    ax: Axes | None = None,
    *,
    times: ArrayLike | None = None,
    pareto: Collection[str] = (),
    time: TimeScale = "auto",
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw the mean gap between value and bound of each algorithm over time.

    The parameters are those of :func:`gaps_data`; ``ax``, ``time`` and ``columns`` are those of
    :func:`ratings`.

    >>> import polarbear as pb
    >>> run = pb.Run("CP", "x", [1, 5], [20.0, 10.0], until=9)
    >>> bound = run._replace(time=[2], value=[5.0])
    >>> runs = pb.Runs.from_records([run], direction="minimize", bounds=[bound])
    >>> gaps(runs).get_ylabel()
    'Mean gap'
    """
    data = source if isinstance(source, Gaps) else gaps_data(source, times=times, pareto=pareto)
    ax = prepare_axes(ax, columns)
    styles, ends = data.cast.styles(), list[LineEnd]()
    for k, name in enumerate(data.cast.names):
        ax.plot(data.times, data.mean[:, k], **get_line_options(styles[name]))
        ax.plot(data.times, data.median[:, k], ":", color=styles[name].colour, linewidth=0.8)
        ends += _find_line_end(name, data.times, data.mean[:, k], data.cast)
    set_time_axis(ax, data.times, data.clock, time)
    ax.set_ylabel("Mean gap")
    ax.set_ylim(0, 1)
    add_note(ax, "1 until there are a value and a bound; dots: median")
    label_line_ends(ax, ends, "")
    return ax


def bounds(
    source: Runs | Bounds,
    instance: str | None = None,
    ax: Axes | None = None,
    *,
    times: ArrayLike | None = None,
    pareto: Collection[str] = (),
    time: TimeScale = "auto",
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw the value and the bound of each algorithm on one instance, as two step curves.

    The parameters are those of :func:`bounds_data`; the instance may be left out if there is only
    one. ``ax``, ``time`` and ``columns`` are those of :func:`ratings`.

    >>> import polarbear as pb
    >>> run = pb.Run("CP", "x", [1, 5], [20.0, 10.0], until=9)
    >>> bound = run._replace(time=[2], value=[5.0])
    >>> runs = pb.Runs.from_records([run], direction="minimize", bounds=[bound])
    >>> bounds(runs).get_ylabel()
    'Value and bound on x'
    """
    data = source
    if not isinstance(data, Bounds):
        check_runs(data, "bounds")
        if instance is None and len(data.instances) != 1:
            raise DataError(
                f"there are {len(data.instances)} instances: pass the name of one of them"
            )
        data = bounds_data(data, instance or data.instances[0], times=times, pareto=pareto)
    ax = prepare_axes(ax, columns)
    styles, ends = data.cast.styles(), list[LineEnd]()
    for k, name in enumerate(data.cast.names):
        colour = styles[name].colour
        ax.step(data.times, data.value[:, k], where="post", color=colour, linewidth=1.5)
        ax.step(data.times, data.bound[:, k], where="post", color=colour, linewidth=0.8)
        both = (data.value[:, k], data.bound[:, k])
        ax.fill_between(data.times, *both, step="post", color=colour, alpha=0.08, linewidth=0)
        ends += _find_line_end(name, data.times, data.value[:, k], data.cast)
    set_time_axis(ax, data.times, data.clock, time)
    _set_value_range(ax, data)
    ax.set_ylabel(f"Value and bound on {format_name(data.instance)}")
    add_note(ax, f"thick: value ({data.direction}), thin: bound; medians of repetitions")
    label_line_ends(ax, ends, "")
    return ax


def _set_value_range(ax: Axes, data: Bounds) -> None:
    """Limit the value axis to the later half of the times, because first values may be extreme."""
    later = np.concatenate([data.value, data.bound], axis=1)[len(data.times) // 2 :]
    known = later[np.isfinite(later)]
    if len(known) and np.ptp(known) > 0:
        margin = 0.1 * np.ptp(known)
        ax.set_ylim(known.min() - margin, known.max() + margin)


def _get_bounds(runs: Runs) -> Runs:
    check_runs(runs, "a figure of bounds")
    check_one_value(runs, "a figure of bounds")
    if runs.bounds is None:
        raise DataError(
            "these runs have no bounds: read logs of solvers that print them, or pass bounds= to "
            "Runs.from_records"
        )
    return runs.bounds


def _choose_times(runs: Runs, times: ArrayLike | None) -> Floats:
    """Return the times of a figure, which begins at the first values unless they are given."""
    if times is not None:
        return grid.check_times(times)
    return grid.from_runs(runs, GRID_POINTS, start=grid.find_first_time(runs))


def _compute_gap(value: Floats, bound: Floats) -> Floats:
    """Return the gap of each run at each time (runs, times); nan where its value is unknown."""
    largest = np.maximum(np.abs(value), np.abs(bound))
    missing = np.isinf(largest) | (np.sign(value) * np.sign(bound) < 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.where(largest == 0, 0.0, np.abs(value - bound) / largest)
    return np.where(np.isnan(value), np.nan, np.where(missing, 1.0, gap))


def _average_known(gap: Floats) -> Floats:
    """Average at each time the repetitions of an instance whose best value is known."""
    known = ~np.isnan(gap)
    total = np.where(known, gap, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


def _find_line_end(name: str, times: Floats, curve: Floats, cast: Cast) -> list[LineEnd]:
    known = np.flatnonzero(~np.isnan(curve))
    style = cast.styles()[name]
    if not len(known) or style.muted:
        return []
    return [LineEnd(name, float(times[known[-1]]), float(curve[known[-1]]), style)]
