"""What do the usual figures say? ECDF, AOCC and differences of attainment, by other libraries.

They need values on a common scale, which ratings do without: shares of a range of values that is
the same for all instances. iohinspector and moocore do the counting.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from polarbear._text import count
from polarbear.data import grid
from polarbear.data.frozen import Frozen
from polarbear.data.names import indices
from polarbear.data.runs import Runs
from polarbear.errors import DataError, require, warn
from polarbear.plots.arguments import Floats
from polarbear.plots.canvas import (
    LOG_FROM,
    Axes,
    Columns,
    Time,
    axes,
    bar,
    dots,
    line,
    log_ticks,
    moment,
    note,
    nothing,
    row_height,
    rows,
    shown,
    time_axis,
)
from polarbear.plots.colours import INK, Cast
from polarbear.plots.labels import End, line_ends

RESAMPLES = 500
"""The number of bootstrap samples of instances for an interval of a mean."""

EXTREME = 0.05
"""The share of runs at either end whose values do not stretch the default range."""

MAX_DECADES = 10
"""The most decades of a default range on a log scale, as BBOB's targets 1e2 to 1e-8."""

COVERED = 0.5
"""A default range that covers less than this share of all values is warned of."""


class Scale(NamedTuple):
    """A range of values, of which runs attain a share."""

    low: float
    high: float
    log: bool


@dataclass(frozen=True, eq=False)
class Ecdf(Frozen):
    """The mean share of a range of values that was attained by a time.

    Attributes
    ----------
    cast
        Everybody.
    times, clock
        The grid.
    mean, lower, upper
        Shape (T, n): the mean over instances, and an interval of it by resampling instances.
    scale
        The range of values.
    level
        Of the interval.
    """

    cast: Cast
    times: Floats
    clock: str
    mean: Floats
    lower: Floats
    upper: Floats
    scale: Scale
    level: float


@dataclass(frozen=True, eq=False)
class Aocc(Frozen):
    """The area over the convergence curve of runs: the mean attained share until the last time.

    Attributes
    ----------
    cast
        Everybody.
    values
        For each algorithm an array with the area of each of its runs.
    mean
        Shape (n,).
    until, clock
        The last time.
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
class Attainment(Frozen):
    """Where two algorithms attain values by times with different frequencies.

    Attributes
    ----------
    cast
        The two.
    rectangles
        Shape (K, 4): from time and value to time and value.
    difference
        Shape (K,): the share of runs of the first that attain what is inside, minus that of the
        second.
    times
        Shape (2,): the first and the last time.
    clock
        What time counts.
    direction
        Whether small or large values are good.
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
    times: ArrayLike | None = None,
    pareto: Collection[str] = (),
    level: float = 0.95,
    seed: int = 0,
) -> Ecdf:
    """The mean share of a range of values that runs attain by a time, by iohinspector.

    Parameters
    ----------
    runs
        What was recorded.
    low, high, log
        The range, and whether shares are those of its logarithm. By default the range is from the
        best 5 % of final values to the worst 5 % of first values. It is logarithmic if it is
        positive and spans a factor of 100, and then has ten decades at most, as BBOB's targets
        have. A warning says so if the default leaves out much of the values.
    times
        The grid; by default :func:`polarbear.grid.from_runs`.
    pareto
        Who is in colour if there are many, such as ``posterior.pareto()``.
    level, seed
        Of the interval of the mean, by resampling instances.

    Examples
    --------
    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> ecdf_data(runs).mean.shape
    (3, 3)
    """
    _require_packages()
    scale = _scale(runs, low, high, log)
    at = grid.from_runs(runs) if times is None else grid.increasing(times)
    share = _attained(runs, at, scale)
    rng = np.random.default_rng(seed)
    n, instances = len(runs.algorithms), len(runs.instances)
    total = np.zeros((instances, n, len(at)))
    known = np.zeros_like(total)
    place = (runs.instance, runs.algorithm)
    np.add.at(total, place, np.nan_to_num(share))
    np.add.at(known, place, ~np.isnan(share))
    # Each instance counts as often as it is drawn.
    drawn = rng.multinomial(instances, np.full(instances, 1 / instances), RESAMPLES)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total.sum(axis=0) / known.sum(axis=0)
        again = np.einsum("ri,int->rnt", drawn, total) / np.einsum("ri,int->rnt", drawn, known)
    lower, upper = _interval(again, mean, level)
    cast = Cast.of(runs.algorithms, pareto)
    return Ecdf(cast, at, runs.clock, mean.T, lower.T, upper.T, scale, level)


def aocc_data(
    runs: Runs,
    *,
    low: float | None = None,
    high: float | None = None,
    log: bool | None = None,
    until: float | None = None,
    pareto: Collection[str] = (),
) -> Aocc:
    """The area over the convergence curve of each run, by iohinspector.

    The range of values is as in :func:`ecdf_data`. ``until``: by default the last time at which
    all runs are known, with a warning if some were watched for longer. A run that crashed or ended
    by itself keeps its value. A run that was cut before ``until`` is left out.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> aocc_data(runs).mean.shape
    (3,)
    """
    polars, inspector = _require_packages()
    scale = _scale(runs, low, high, log)
    end = _last_known(runs) if until is None else float(until)
    watched = runs.known([end])[:, 0]
    if not end > 0 or not watched.any():
        raise DataError(f"no run was watched until {end:g}: choose another until=")
    table = _table(runs, scale)
    keep = np.flatnonzero(watched).tolist()
    table = table.filter(polars.col("data_id").is_in(keep))
    areas = inspector.get_aocc(table, end, free_vars=["run"], return_as_pandas=False)
    found = np.full(len(runs), np.nan)
    found[areas["run"].to_numpy()] = areas["AOCC"].to_numpy()
    found[watched & np.isnan(found)] = 0.0  # of a run without any value
    values = tuple(found[(runs.algorithm == k) & watched] for k in range(len(runs.algorithms)))
    mean = np.array([one.mean() if len(one) else np.nan for one in values])
    return Aocc(Cast.of(runs.algorithms, pareto), values, mean, end, runs.clock, scale)


def eaf_difference_data(runs: Runs, first: str, second: str) -> Attainment:
    """Where one of two attains more than the other, by moocore.

    The empirical attainment function is the share of runs that have found a value by a time.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> found = eaf_difference_data(runs, "a1", "a3")
    >>> len(found.rectangles) == len(found.difference)
    True
    """
    moocore = require("moocore", extra="classical")
    one, two = (
        _points(runs, code) for code in indices([first, second], runs.algorithms, "algorithm")
    )
    found = moocore.eafdiff(one.points, two.points, rectangles=True)
    corners, number = found[:, :4].copy(), found[:, 4]
    last = float(runs.until.max())
    corners[:, 2] = np.minimum(corners[:, 2], last)
    corners[:, 3] = np.where(np.isinf(corners[:, 3]), _worst(one, two), corners[:, 3])
    inside = (corners[:, 0] < corners[:, 2]) & (corners[:, 1] < corners[:, 3])
    if runs.direction == "maximize":
        corners[:, [1, 3]] = -corners[:, [3, 1]]
    start = float(min(one.points[:, 0].min(), two.points[:, 0].min()))
    return Attainment(
        Cast.of(runs.algorithms),
        first,
        second,
        corners[inside],
        number[inside] / max(one.runs, two.runs),
        np.array([start, last]),
        runs.clock,
        runs.direction,
    )


class _Front(NamedTuple):
    points: Floats  # time, cost, run
    runs: int


def _points(runs: Runs, code: int) -> _Front:
    chosen = np.flatnonzero(runs.algorithm == code)
    rows = np.concatenate([np.arange(runs.offset[r], runs.offset[r + 1]) for r in chosen])
    run = np.repeat(np.arange(len(chosen)), np.diff(runs.offset)[chosen])
    points = np.stack([runs.time[rows], runs.cost[rows], run + 1.0], axis=1).astype(np.float64)
    points = points[np.isfinite(points[:, 1])]
    if not len(points):
        raise DataError(f"{runs.algorithms[code]!r} has found no value in any run")
    return _Front(points, len(chosen))


def _worst(*fronts: _Front) -> float:
    return float(max(front.points[:, 1].max() for front in fronts))


def _last_known(runs: Runs) -> float:
    """The last time at which every run is known, with a warning if it leaves out later ones."""
    cut, last = runs.until[runs.cut], float(runs.until.max(initial=0.0))
    end = float(cut.min()) if len(cut) else last
    longer = np.count_nonzero(runs.until > end)
    if longer:
        warn(
            f"AOCC until {moment(end, runs.clock)}, the last time at which all runs are known: "
            f"{longer:,} of {count(len(runs), 'run')} were watched for longer, up to "
            f"{moment(last, runs.clock)}. Set until= to choose; runs cut before it are left out"
        )
    return end


def _scale(runs: Runs, low: float | None, high: float | None, log: bool | None) -> Scale:
    """The range of values, checked; by default one that a few extreme values do not stretch."""
    finite = runs.value[np.isfinite(runs.value)]
    if not len(finite):
        raise DataError("no run has found a value")
    usual = _usual_range(runs, log)
    start = usual.low if low is None else float(low)
    stop = usual.high if high is None else float(high)
    on_log = start > 0 and stop >= LOG_FROM * start if log is None else log
    if not start < stop or (on_log and start <= 0):
        raise DataError(
            f"a range from {start:g} to {stop:g}{' on a log scale' if on_log else ''} is none: "
            "set low= and high=, or log=False"
        )
    least, most = float(finite.min()), float(finite.max())
    whole = _length(least, most, on_log and least > 0)
    if (low is None or high is None) and _length(start, stop, on_log) < COVERED * whole:
        shape = "log" if on_log else "linear"
        warn(
            f"shares are of values from {start:.3g} to {stop:.3g} on a {shape} scale, and the "
            f"values are from {least:.3g} to {most:.3g}: set low=, high= and log= to choose"
        )
    return Scale(start, stop, on_log)


def _usual_range(runs: Runs, log: bool | None) -> Scale:
    """From the best final values to the worst first values, without the extreme 5 % of runs."""
    has_value = np.flatnonzero(np.diff(runs.offset) > 0)
    first, final = runs.cost[runs.offset[has_value]], runs.cost[runs.offset[has_value + 1] - 1]
    first, final = (part[np.isfinite(part)].astype(np.float64) for part in (first, final))
    best = float(np.quantile(final, EXTREME, method="inverted_cdf"))
    worst = float(np.quantile(first, 1 - EXTREME, method="inverted_cdf"))
    if not best < worst:
        best, worst = float(final.min()), float(first.max())
    low, high = (best, worst) if runs.direction == "minimize" else (-worst, -best)
    on_log = low > 0 and high >= LOG_FROM * low if log is None else log
    return Scale(max(low, high * 10.0**-MAX_DECADES) if on_log and high > 0 else low, high, on_log)


def _length(low: float, high: float, on_log: bool) -> float:
    return float(np.log(high / low)) if on_log else high - low


def _require_packages(*, drawing: bool = False) -> tuple[Any, Any]:
    """Import polars and iohinspector, before anything is computed or warned of."""
    if drawing:
        require("matplotlib.pyplot", extra="classical")
    return require("polars", extra="classical"), require("iohinspector", extra="classical")


def _shares(values: Floats, scale: Scale, direction: str) -> Floats:
    """The share of the range that each value attains; 0 without a value, nan if it is unknown."""
    polars, inspector = _require_packages()
    table = polars.DataFrame({"raw_y": np.clip(values.ravel(), scale.low, scale.high)})
    attained = inspector.transform_fval(
        table, scale.low, scale.high, scale.log, maximization=direction == "maximize"
    )
    return attained["eaf"].to_numpy().reshape(values.shape)


def _attained(runs: Runs, times: Floats, scale: Scale) -> Floats:
    return _shares(runs.at(times), scale, runs.direction)


def _table(runs: Runs, scale: Scale) -> Any:
    """Improvements as iohinspector has them."""
    polars = require("polars", extra="classical")
    run = np.repeat(np.arange(len(runs)), np.diff(runs.offset))
    return polars.DataFrame(
        {
            "data_id": run,
            "run": run,
            "evaluations": runs.time,
            "eaf": _shares(runs.value, scale, runs.direction),
        }
    )


def _interval(again: Floats, mean: Floats, level: float) -> tuple[Floats, Floats]:
    """Quantiles over resamples, where there are any."""
    filled = np.where(np.isnan(again), mean, again)
    lower, upper = np.quantile(filled, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return lower, upper


def ecdf(
    source: Runs | Ecdf,
    ax: Axes | None = None,
    *,
    time: Time = "auto",
    columns: Columns = 1,
    **options: Any,
) -> Axes:
    """Draw the mean share of a range of values that was attained by a time.

    ``options`` are those of :func:`ecdf_data`.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> ecdf(runs).get_ylabel()
    'Mean attained share (ECDF)'
    """
    if not isinstance(source, Ecdf):
        _require_packages(drawing=True)
    data = source if isinstance(source, Ecdf) else ecdf_data(source, **options)
    if len(data.times) == 1:
        return _at_one_time(data, ax, columns)
    ax = axes(ax, columns)
    styles = data.cast.styles()
    for k, name in enumerate(data.cast.names):
        style = styles[name]
        ax.plot(data.times, data.mean[:, k], **line(style))
        if not style.muted:
            band = (data.lower[:, k], data.upper[:, k])
            ax.fill_between(data.times, *band, color=style.colour, alpha=0.18, linewidth=0)
    time_axis(ax, data.times, data.clock, time)
    ax.set_ylabel("Mean attained share (ECDF)")
    ax.set_ylim(0, 1)
    note(ax, f"of {_range(data.scale)}; band: {data.level:.0%} confidence of the mean")
    named = [k for k, name in enumerate(data.cast.names) if not styles[name].muted]
    left = len(data.cast.names) - len(named)
    ends = []
    for k in named:
        known = np.flatnonzero(~np.isnan(data.mean[:, k]))  # runs may all be cut before the end
        for t in known[-1:]:
            here = float(data.times[t]), float(data.mean[t, k])
            ends.append(End(data.cast.names[k], *here, styles[data.cast.names[k]]))
    line_ends(ax, ends, f"+ {left} others" if left else "")
    return ax


def _at_one_time(data: Ecdf, ax: Axes | None, columns: Columns) -> Axes:
    """At a single time there are no curves: a row for each algorithm."""
    ax = axes(ax, columns, row_height(len(data.cast.names), columns))
    order = np.argsort(-np.nan_to_num(data.mean[0], nan=-1.0), kind="stable")
    names = [data.cast.names[k] for k in order]
    mean, lower, upper = (part[0, order] for part in (data.mean, data.lower, data.upper))
    dots(ax, names, mean, lower, upper, data.cast)
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"Mean attained share at {moment(float(data.times[0]), data.clock)}")
    note(ax, f"of {_range(data.scale)}; bar: {data.level:.0%} confidence of the mean")
    return ax


def aocc(
    source: Runs | Aocc, ax: Axes | None = None, *, columns: Columns = 1, **options: Any
) -> Axes:
    """Draw the area over the convergence curve: a point for each run, a stroke for the mean.

    ``options`` are those of :func:`aocc_data`.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> aocc(runs).get_xlabel()
    'AOCC until time 1'
    """
    if not isinstance(source, Aocc):
        _require_packages(drawing=True)
    data = source if isinstance(source, Aocc) else aocc_data(source, **options)
    ax = axes(ax, columns, row_height(len(data.cast.names), columns))
    styles = data.cast.styles()
    order = np.argsort(-np.nan_to_num(data.mean, nan=-1.0), kind="stable")
    rng = np.random.default_rng(0)
    for row, k in enumerate(order):
        style, found = styles[data.cast.names[k]], data.values[k]
        height = row + rng.uniform(-0.28, 0.28, len(found))
        ax.plot(found, height, ".", color=style.colour, markersize=2, alpha=0.5)
        ax.plot(data.mean[k], row, "|", color=INK, markersize=10, markeredgewidth=1.6)
    rows(ax, [data.cast.names[k] for k in order], data.cast)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel(f"AOCC until {moment(data.until, data.clock)}")
    note(ax, f"mean attained share of {_range(data.scale)}; dots: runs, stroke: mean")
    return ax


def eaf_difference(
    source: Runs | Attainment,
    first: str | None = None,
    second: str | None = None,
    ax: Axes | None = None,
    *,
    time: Time = "auto",
    columns: Columns = 1,
) -> Axes:
    """Draw where one of two attains values by times that the other attains less often.

    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> eaf_difference(runs, "a1", "a3").get_ylabel()
    'Value (minimize)'
    """
    if isinstance(source, Attainment):
        data = source
    elif first is None or second is None:
        raise DataError("eaf_difference(runs, first, second) takes the names of two algorithms")
    else:
        data = eaf_difference_data(source, first, second)
    ax = axes(ax, columns)
    if not len(data.difference):
        two = f"{shown(data.first)} and {shown(data.second)}"
        return nothing(ax, f"After the first time\nnothing tells {two} apart.")
    colours = require("matplotlib.colors", extra="plots")
    collections = require("matplotlib.collections", extra="plots")
    one, two = (data.cast.styles()[name].colour for name in (data.first, data.second))
    shades = colours.LinearSegmentedColormap.from_list("two", [two, "white", one])
    corners = data.rectangles
    boxes = [[(a, b), (c, b), (c, d), (a, d)] for a, b, c, d in corners.tolist()]
    areas = collections.PolyCollection(boxes, cmap=shades, edgecolor="face", linewidth=0.1)
    areas.set_array(data.difference)
    most = float(np.abs(data.difference).max(initial=0.01))
    areas.set_clim(-most, most)
    areas.set_rasterized(True)
    ax.add_collection(areas)
    time_axis(ax, data.times, data.clock, time)
    values = corners[:, [1, 3]]
    ax.set_ylim(values.min(), values.max())
    if values.min() > 0 and values.max() >= LOG_FROM * values.min():
        ax.set_yscale("log")
        log_ticks(ax.yaxis, values.min(), values.max())
    ax.set_ylabel(f"Value ({data.direction})")
    scale = bar(ax, areas, "Who has attained it more often by then")
    more = [f"{shown(name)}\n+{most:.0%}" for name in (data.second, data.first)]
    scale.set_ticks([-most, 0, most], labels=[more[0], "alike", more[1]])
    return ax


def _range(scale: Scale) -> str:
    return f"{scale.low:.3g} to {scale.high:.3g}{' (log)' if scale.log else ''}"
