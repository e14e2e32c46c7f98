"""The classical figures: ECDF, AOCC and differences of empirical attainment functions.

Unlike ratings they need values on a common scale: shares of one range of values for all
instances, or targets of each instance. moocore computes differences of attainment.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from polarbear._text import format_count
from polarbear.data import grid
from polarbear.data.colours import TEXT_COLOUR, Cast
from polarbear.data.frozen import FrozenRecord
from polarbear.data.levels import keep_one_value
from polarbear.data.names import find_indices
from polarbear.data.run import Run, sign_of
from polarbear.data.run_pairs import find_comparisons
from polarbear.data.runs import Runs
from polarbear.data.targets import Targets, find_hitting_times
from polarbear.data.time_axis import MIN_LOG_RATIO
from polarbear.errors import DataError, require, warn
from polarbear.plots.arguments import Floats
from polarbear.plots.canvas import (
    Axes,
    OneOrTwo,
    TimeScale,
    add_colour_bar,
    add_note,
    compute_height,
    describe_time,
    draw_intervals,
    format_name,
    get_line_options,
    label_rows,
    prepare_axes,
    set_log_ticks,
    set_time_axis,
    show_message,
)
from polarbear.plots.labels import LineEnd, label_line_ends

BOOTSTRAP_SAMPLES = 500
"""Bootstrap samples of instances for the confidence interval of a mean."""

TRIMMED_SHARE = 0.05
"""The share of runs at either end that the default range leaves out."""

MAX_DECADES = 10
"""The most decades of a default range on a log scale, as BBOB's targets 1e2 to 1e-8."""

MIN_COVERED_SHARE = 0.5
"""A default range that covers a smaller share of the range of all values causes a warning."""


MIN_TYPICAL_CHANGE = 0.05
"""If half of the runs change by a smaller share of the range, curves are flat: a warning."""


class Scale(NamedTuple):
    """The range of values, from worst to best, relative to which attained shares are measured."""

    low: float
    high: float
    log: bool


@dataclass(frozen=True, eq=False)
class Ecdf(FrozenRecord):
    """The mean share of a range of values, or of targets, that runs have attained by each time.

    Attributes
    ----------
    cast
        All algorithms.
    times, clock
        The grid of times.
    mean, lower, upper
        Shape (T, n): the mean over runs, and its bootstrap confidence interval over instances.
    scale, n_targets
        The range of values; None with targets, whose number on each instance is the second.
    level
        The level of the interval.
    """

    cast: Cast
    times: Floats
    clock: str
    mean: Floats
    lower: Floats
    upper: Floats
    scale: Scale | None
    level: float
    n_targets: int = 0


@dataclass(frozen=True, eq=False)
class Aocc(FrozenRecord):
    """The area over the convergence curve of runs: the share attained, averaged over time.

    Attributes
    ----------
    cast
        All algorithms.
    values
        For each algorithm an array with the area of each of its runs.
    mean
        Shape (n,): the mean area of each algorithm.
    until, clock
        The last time, and the name of its clock.
    scale
        The range of values.
    """

    cast: Cast
    values: tuple[Floats, ...]
    mean: Floats
    until: float
    clock: str
    scale: Scale


@dataclass(frozen=True, eq=False)
class Attainment(FrozenRecord):
    """Rectangles of time and value that two algorithms attain with different frequencies.

    Attributes
    ----------
    cast
        All algorithms.
    first, second
        The two algorithms that are compared.
    rectangles
        Shape (K, 4): time and value of one corner, then of the opposite corner.
    difference
        Shape (K,): the share of runs of the first that attain the rectangle, minus that of the
        second.
    times
        Shape (2,): the first and the last time.
    clock
        The name of the clock.
    direction
        "minimize" or "maximize".
    """

    cast: Cast
    first: str
    second: str
    rectangles: Floats
    difference: Floats
    times: Floats
    clock: str
    direction: str


def ecdf_data(
    runs: Runs,
    *,
    low: float | None = None,
    high: float | None = None,
    log: bool | None = None,
    targets: Targets | None = None,
    times: ArrayLike | None = None,
    pareto: Collection[str] = (),
    level: float = 0.95,
    seed: int = 0,
) -> Ecdf:
    """Compute the ECDF of attained targets at each time, averaged over runs.

    Parameters
    ----------
    runs
        The recorded runs.
    targets
        Count these targets of each instance, such as ``polarbear.targets.from_runs(runs)``, in
        place of a range. A range is the same for all instances, so values of instances that differ
        in scale draw flat lines, for which there is a warning.
    low, high, log
        The range, and whether shares are of its logarithm. By default the range is from the
        best 5 % of final values to the worst 5 % of first values. It is logarithmic if it is
        positive and spans a factor of 100, and then has at most ten decades, as BBOB's targets
        have. If the default leaves out many values, there is a warning.
    times
        The grid of times; by default :func:`polarbear.grid.from_runs`.
    pareto
        The algorithms in colour if there are many, such as ``posterior.pareto()``.
    level, seed
        Level and random seed of the bootstrap interval of the mean.

    Examples
    --------
    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> ecdf_data(runs).mean.shape
    (3, 3)
    """
    runs = keep_one_value(runs, "an ECDF")
    grid_times = grid.from_runs(runs) if times is None else grid.check_times(times)
    if targets is not None:
        if (low, high, log) != (None, None, None):
            raise DataError("low, high and log are of a range: leave them out, or targets")
        scale, share = None, _count_reached(runs, grid_times, targets)
    else:
        scale = _choose_scale(runs, low, high, log)
        share = _compute_shares(runs.at(grid_times), scale, runs.direction)
        if not _warn_of_flat_curves(share, scale):
            _warn_of_short_range(runs, scale, low, high)
    rng = np.random.default_rng(seed)
    n, instances = len(runs.algorithms), len(runs.instances)
    total = np.zeros((instances, n, len(grid_times)))
    known = np.zeros_like(total)
    place = (runs.instance, runs.algorithm)
    np.add.at(total, place, np.nan_to_num(share))
    np.add.at(known, place, ~np.isnan(share))
    # Bootstrap: each instance is weighted by the number of times that it is drawn.
    instance_counts = rng.multinomial(
        instances, np.full(instances, 1 / instances), BOOTSTRAP_SAMPLES
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total.sum(axis=0) / known.sum(axis=0)
        resampled_mean = np.einsum("ri,int->rnt", instance_counts, total) / np.einsum(
            "ri,int->rnt", instance_counts, known
        )
    lower, upper = _compute_bootstrap_interval(resampled_mean, mean, level)
    cast = Cast.of(runs.algorithms, pareto)
    n_targets = 0 if targets is None else np.size(targets.difficulty)
    return Ecdf(
        cast=cast,
        times=grid_times,
        clock=runs.clock,
        mean=mean.T,
        lower=lower.T,
        upper=upper.T,
        scale=scale,
        level=level,
        n_targets=n_targets,
    )


def _count_reached(runs: Runs, times: Floats, targets: Targets) -> Floats:
    """Return the share of targets that each run has reached (runs, times), nan if unknown."""
    hits = find_hitting_times(runs, targets)
    share = np.stack([(hits <= time).mean(axis=0) for time in times], axis=1)
    return np.where(runs.known(times), share, np.nan)


def _warn_of_flat_curves(share: Floats, scale: Scale) -> bool:
    """Warn if most runs hardly change on the range of all instances; return whether it was done."""
    with np.errstate(invalid="ignore"):
        change = np.fmax.reduce(share, axis=1) - np.fmin.reduce(share, axis=1)
    change = change[np.isfinite(change)]
    if share.shape[1] < 2 or not len(change) or np.median(change) >= MIN_TYPICAL_CHANGE:
        return False
    warn(
        f"the lines are flat, because half of the runs change by less than "
        f"{100 * MIN_TYPICAL_CHANGE:.0f} % of the range {scale.low:.3g} to {scale.high:.3g}, which "
        "is that of all instances. Count targets of each instance with "
        "targets=pb.targets.from_runs(runs), or set low=, high= and log="
    )
    return True


def aocc_data(
    runs: Runs,
    *,
    low: float | None = None,
    high: float | None = None,
    log: bool | None = None,
    until: float | None = None,
    pareto: Collection[str] = (),
) -> Aocc:
    """Compute the area over the convergence curve of each run: its mean share from 0 to ``until``.

    The range of values is as in :func:`ecdf_data`. ``until`` is by default the last time at which
    all runs are known, with a warning if some were observed longer. A run that crashed or ended
    by itself keeps its last value, and a run has attained nothing before its first one. A run that
    was cut before ``until`` is left out.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> aocc_data(runs).mean.shape
    (3,)
    """
    runs = keep_one_value(runs, "the AOCC")
    scale = _choose_scale(runs, low, high, log)
    _warn_of_short_range(runs, scale, low, high)
    end = _choose_last_time(runs) if until is None else float(until)
    watched = runs.known([end])[:, 0]
    if not end > 0 or not watched.any():
        raise DataError("expected a time above 0 until which some run was observed", until=end)
    start = np.minimum(runs.time, end)
    stop = np.append(start[1:], end)
    stop[runs.offset[1:][np.diff(runs.offset) > 0] - 1] = end  # a last value stays
    run = np.repeat(np.arange(len(runs)), np.diff(runs.offset))
    share = _compute_shares(runs.value, scale, runs.direction)
    area = np.bincount(run, share * (stop - start), len(runs)) / end
    values = tuple(area[(runs.algorithm == k) & watched] for k in range(len(runs.algorithms)))
    mean = np.array(
        [areas_of_runs.mean() if len(areas_of_runs) else np.nan for areas_of_runs in values]
    )
    return Aocc(
        cast=Cast.of(runs.algorithms, pareto),
        values=values,
        mean=mean,
        until=end,
        clock=runs.clock,
        scale=scale,
    )


def eaf_difference_data(runs: Runs, first: str, second: str) -> Attainment:
    """Compute the difference of the attainment functions of two algorithms, with moocore.

    The empirical attainment function is the share of runs that attain a value by a time. Its runs
    are those on the instances and repetitions that both algorithms ran. One that ended keeps its
    value, also if it was cut.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> attainment = eaf_difference_data(runs, "a1", "a3")
    >>> len(attainment.rectangles) == len(attainment.difference)
    True
    """
    moocore = require("moocore", extra="classical")
    find_indices([first, second], runs.algorithms, "algorithm")
    both = [own for _, own in find_comparisons(runs) if own.keys() >= {first, second}]
    if not both:
        raise DataError(f"{first!r} and {second!r} did not run on the same instances")
    last, sign = float(runs.until.max()), sign_of(runs.direction)
    sides = [_collect_points([own[name] for own in both], sign) for name in (first, second)]
    found = np.concatenate([points[np.isfinite(points[:, 1])] for points in sides])
    if not len(found):
        raise DataError(f"no run of {first!r} or {second!r} has a finite value")
    worst = float(found[:, 1].max())
    for points in sides:  # moocore must know of runs without a value: they attain nothing in time
        points[~np.isfinite(points[:, 1]), :2] = last + 1.0, worst
    try:
        rectangles = moocore.eafdiff(*sides, rectangles=True)
    except ValueError as error:  # there is no difference
        if "size 0" not in str(error):
            raise
        rectangles = np.empty((0, 5))
    corners = rectangles[:, :4].copy()
    corners[:, 2] = np.minimum(corners[:, 2], last)
    corners[:, 3] = np.where(np.isinf(corners[:, 3]), worst, corners[:, 3])
    inside = (corners[:, 0] < corners[:, 2]) & (corners[:, 1] < corners[:, 3])
    if runs.direction == "maximize":
        corners[:, [1, 3]] = -corners[:, [3, 1]]
    return Attainment(
        cast=Cast.of(runs.algorithms),
        first=first,
        second=second,
        rectangles=corners[inside],
        difference=rectangles[inside, 4] / len(both),
        times=np.array([found[:, 0].min(), last]),
        clock=runs.clock,
        direction=runs.direction,
    )


def _collect_points(runs: Sequence[Run], sign: float) -> Floats:
    """Return times, costs and numbers of runs (rows, 3), with a row of infinity without a value."""
    rows: list[tuple[float, float, int]] = []
    for number, run in enumerate(runs, start=1):
        found = zip(np.asarray(run.time), sign * np.asarray(run.value), strict=True)
        finite = [(time, cost, number) for time, cost in found if np.isfinite(cost)]
        rows += finite or [(np.inf, np.inf, number)]
    return np.array(rows)


def _choose_last_time(runs: Runs) -> float:
    """Return the last time at which all runs are known; warn if some were observed longer."""
    cut, last = runs.until[runs.cut], float(runs.until.max(initial=0.0))
    end = float(cut.min()) if len(cut) else last
    longer = np.count_nonzero(runs.until > end)
    if longer:
        warn(
            f"AOCC until {describe_time(end, runs.clock)}, the last time at which all runs are "
            "known: "
            f"{longer:,} of {format_count(len(runs), 'run')} were observed longer, up to "
            f"{describe_time(last, runs.clock)}. Set until= to choose; "
            "runs cut before it are left out"
        )
    return end


def _choose_scale(runs: Runs, low: float | None, high: float | None, log: bool | None) -> Scale:
    """Return the range of values to use: given limits, else those of the default range."""
    finite = runs.value[np.isfinite(runs.value)]
    if not len(finite):
        raise DataError("no run has a finite value, so there is nothing to draw: pass other runs")
    default = _choose_default_range(runs, log)
    start = default.low if low is None else float(low)
    stop = default.high if high is None else float(high)
    on_log = start > 0 and stop >= MIN_LOG_RATIO * start if log is None else log
    if not start < stop or (on_log and start <= 0):
        raise DataError(
            f"values from {start:g} to {stop:g}{' on a log scale' if on_log else ''} are not a "
            "range: set low < high, both positive on a log scale, or log=False"
        )
    return Scale(start, stop, on_log)


def _warn_of_short_range(runs: Runs, scale: Scale, low: float | None, high: float | None) -> None:
    """Warn if a default range leaves out a large part of the values."""
    finite = runs.value[np.isfinite(runs.value)]
    smallest, largest = float(finite.min()), float(finite.max())
    whole = _measure_range(smallest, largest, scale.log and smallest > 0)
    if (low is None or high is None) and _measure_range(*scale) < MIN_COVERED_SHARE * whole:
        shape = "log" if scale.log else "linear"
        warn(
            f"shares are of the range {scale.low:.3g} to {scale.high:.3g} on a {shape} scale, and "
            f"the values are from {smallest:.3g} to {largest:.3g}: set low=, high= and log= to "
            "choose"
        )


def _choose_default_range(runs: Runs, log: bool | None) -> Scale:
    """Return the range from the best final to the worst first value, without extreme runs."""
    has_value = np.flatnonzero(np.diff(runs.offset) > 0)
    first, final = runs.cost[runs.offset[has_value]], runs.cost[runs.offset[has_value + 1] - 1]
    first, final = (part[np.isfinite(part)].astype(np.float64) for part in (first, final))
    best = float(np.quantile(final, TRIMMED_SHARE, method="inverted_cdf"))
    worst = float(np.quantile(first, 1 - TRIMMED_SHARE, method="inverted_cdf"))
    if not best < worst:
        best, worst = float(final.min()), float(first.max())
    low, high = (best, worst) if runs.direction == "minimize" else (-worst, -best)
    on_log = low > 0 and high >= MIN_LOG_RATIO * low if log is None else log
    return Scale(max(low, high * 10.0**-MAX_DECADES) if on_log and high > 0 else low, high, on_log)


def _measure_range(low: float, high: float, on_log: bool) -> float:
    return float(np.log(high / low)) if on_log else high - low


def _compute_shares(values: Floats, scale: Scale, direction: str) -> Floats:
    """Return the share of the range that each value attains: 0 without a value, nan if unknown."""
    ends, values = np.array([scale.low, scale.high]), np.clip(values, scale.low, scale.high)
    (low, high), values = (np.log(ends), np.log(values)) if scale.log else (ends, values)
    share = (values - low) / (high - low)
    return share if direction == "maximize" else 1 - share


def _compute_bootstrap_interval(
    resampled_mean: Floats, mean: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return bootstrap confidence limits of means; the mean replaces resampled means of nan."""
    without_gaps = np.where(np.isnan(resampled_mean), mean, resampled_mean)
    lower, upper = np.quantile(without_gaps, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return lower, upper


def ecdf(
    source: Runs | Ecdf,
    ax: Axes | None = None,
    *,
    time: TimeScale = "auto",
    columns: OneOrTwo = 1,
    **options: Any,
) -> Axes:
    """Draw the mean share of a range of values that the runs have attained by each time.

    ``options`` are those of :func:`ecdf_data`.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> ecdf(runs).get_ylabel()
    'Mean attained share (ECDF)'
    """
    require("matplotlib.pyplot", extra="plots")  # an error comes before long computations
    data = source if isinstance(source, Ecdf) else ecdf_data(source, **options)
    if len(data.times) == 1:
        return _draw_single_time(data, ax, columns)
    ax = prepare_axes(ax, columns)
    styles = data.cast.styles()
    for k, name in enumerate(data.cast.names):
        style = styles[name]
        ax.plot(data.times, data.mean[:, k], **get_line_options(style))
        if not style.muted:
            band = (data.lower[:, k], data.upper[:, k])
            ax.fill_between(data.times, *band, color=style.colour, alpha=0.18, linewidth=0)
    set_time_axis(ax, data.times, data.clock, time)
    ax.set_ylabel("Mean attained share (ECDF)")
    ax.set_ylim(0, 1)
    level = f"{data.level:.0%} confidence interval of the mean"
    add_note(ax, f"{_describe_share(data)}; band: {level}")
    named = [k for k, name in enumerate(data.cast.names) if not styles[name].muted]
    left = len(data.cast.names) - len(named)
    ends = []
    for k in named:
        known = np.flatnonzero(~np.isnan(data.mean[:, k]))  # runs may all be cut before the end
        for t in known[-1:]:
            here = float(data.times[t]), float(data.mean[t, k])
            ends.append(LineEnd(data.cast.names[k], *here, styles[data.cast.names[k]]))
    label_line_ends(ax, ends, f"+ {left} others" if left else "")
    return ax


def _describe_share(data: Ecdf) -> str:
    """Return what the shares are of, in words."""
    if data.scale is None:
        return f"share of {format_count(data.n_targets, 'target')} on each instance"
    return f"share of {_format_range(data.scale)}"


def _draw_single_time(data: Ecdf, ax: Axes | None, columns: OneOrTwo) -> Axes:
    """Draw shares at a single time, with a row for each algorithm in place of a curve."""
    ax = prepare_axes(ax, columns, compute_height(len(data.cast.names), columns))
    order = np.argsort(-np.nan_to_num(data.mean[0], nan=-1.0), kind="stable")
    names = [data.cast.names[k] for k in order]
    mean, lower, upper = (part[0, order] for part in (data.mean, data.lower, data.upper))
    draw_intervals(ax, names, mean, lower, upper, data.cast)
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"Mean attained share at {describe_time(float(data.times[0]), data.clock)}")
    level = f"{data.level:.0%} confidence interval of the mean"
    add_note(ax, f"{_describe_share(data)}; bar: {level}")
    return ax


def aocc(
    source: Runs | Aocc, ax: Axes | None = None, *, columns: OneOrTwo = 1, **options: Any
) -> Axes:
    """Draw the area over the convergence curve, with a point for each run and the mean.

    ``options`` are those of :func:`aocc_data`.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> aocc(runs).get_xlabel()
    'AOCC until time 1'
    """
    require("matplotlib.pyplot", extra="plots")
    data = source if isinstance(source, Aocc) else aocc_data(source, **options)
    ax = prepare_axes(ax, columns, compute_height(len(data.cast.names), columns))
    styles = data.cast.styles()
    order = np.argsort(-np.nan_to_num(data.mean, nan=-1.0), kind="stable")
    rng = np.random.default_rng(0)
    for row, k in enumerate(order):
        style, areas = styles[data.cast.names[k]], data.values[k]
        height = row + rng.uniform(-0.28, 0.28, len(areas))
        ax.plot(areas, height, ".", color=style.colour, markersize=2, alpha=0.5)
        ax.plot(data.mean[k], row, "|", color=TEXT_COLOUR, markersize=10, markeredgewidth=1.6)
    label_rows(ax, [data.cast.names[k] for k in order], data.cast)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel(f"AOCC until {describe_time(data.until, data.clock)}")
    add_note(ax, f"mean attained share of {_format_range(data.scale)}; dots: runs, stroke: mean")
    return ax


def eaf_difference(
    source: Runs | Attainment,
    first: str | None = None,
    second: str | None = None,
    ax: Axes | None = None,
    *,
    time: TimeScale = "auto",
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw where one of two algorithms attains values by a time more often than the other.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> eaf_difference(runs, "a1", "a3").get_ylabel()
    'Value (minimize)'
    """
    if isinstance(source, Attainment):
        data = source
    elif first is None or second is None:
        raise DataError(
            "the names of two algorithms are missing: call eaf_difference(runs, first, second)"
        )
    else:
        data = eaf_difference_data(source, first, second)
    ax = prepare_axes(ax, columns)
    if not len(data.difference):
        two = f"{format_name(data.first)} and {format_name(data.second)}"
        return show_message(ax, f"After the first time there is\nno difference between {two}.")
    colours = require("matplotlib.colors", extra="plots")
    collections = require("matplotlib.collections", extra="plots")
    one, two = (data.cast.styles()[name].colour for name in (data.first, data.second))
    shades = colours.LinearSegmentedColormap.from_list("two", [two, "white", one])
    corners = data.rectangles
    boxes = [[(a, b), (c, b), (c, d), (a, d)] for a, b, c, d in corners.tolist()]
    areas = collections.PolyCollection(boxes, cmap=shades, edgecolor="face", linewidth=0.1)
    areas.set_array(data.difference)
    largest = float(np.abs(data.difference).max(initial=0.01))
    areas.set_clim(-largest, largest)
    areas.set_rasterized(True)
    ax.add_collection(areas)
    set_time_axis(ax, data.times, data.clock, time)
    values = corners[:, [1, 3]]
    ax.set_ylim(values.min(), values.max())
    if values.min() > 0 and values.max() >= MIN_LOG_RATIO * values.min():
        ax.set_yscale("log")
        set_log_ticks(ax.yaxis, values.min(), values.max())
    ax.set_ylabel(f"Value ({data.direction})")
    scale = add_colour_bar(ax, areas, "Algorithm with more runs that attain it")
    tick_labels = [f"{format_name(name)}\n+{largest:.0%}" for name in (data.second, data.first)]
    scale.set_ticks([-largest, 0, largest], labels=[tick_labels[0], "equal", tick_labels[1]])
    return ax


def _format_range(scale: Scale) -> str:
    return f"{scale.low:.3g} to {scale.high:.3g}{' (log)' if scale.log else ''}"
