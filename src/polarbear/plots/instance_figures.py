"""Figures of ratings by class and by features: the table of classes, curves and maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.data.colours import Cast
from polarbear.data.frozen import FrozenRecord
from polarbear.data.names import find_indices
from polarbear.data.time_axis import MIN_LOG_RATIO
from polarbear.errors import DataError, require
from polarbear.inference.instance_posterior import InstancePosterior
from polarbear.plots.arguments import Floats, find_nearest_time
from polarbear.plots.canvas import (
    NOTE_FONT_POINTS,
    TICK_FONT_POINTS,
    Axes,
    OneOrTwo,
    add_colour_bar,
    add_note,
    choose_font_size,
    compute_cell_edges,
    compute_height,
    describe_time,
    format_clock,
    format_name,
    get_line_options,
    get_text_colour,
    prepare_axes,
    set_log_ticks,
)
from polarbear.plots.labels import LineEnd, label_line_ends

CURVE_POINTS, MAP_POINTS = 25, 16
"""The number of values of a feature in a curve, and along each feature in a map."""

UNSURE_ALPHA = 0.35
"""The opacity of cells in which the best algorithm is not certain."""

TABLE_COLOUR = "YlGnBu"


@dataclass(frozen=True, eq=False)
class ClassTable(FrozenRecord):
    """Ratings in each class at a time.

    Attributes
    ----------
    cast, algorithms
        All algorithms, and those of the columns.
    classes, counts
        The classes, and the number of instances of each.
    mean, best
        Shape (classes, algorithms): P(comes first), and P(has the highest rating).
    time, clock
        The time, and its clock.
    """

    cast: Cast
    algorithms: tuple[str, ...]
    classes: tuple[str, ...]
    counts: tuple[int, ...]
    mean: Floats
    best: Floats
    time: float
    clock: str


@dataclass(frozen=True, eq=False)
class FeatureCurve(FrozenRecord):
    """Ratings against a feature at a time, averaged over the other features.

    Attributes
    ----------
    cast, algorithms
        All algorithms, and those of the columns.
    feature, values
        The feature, and its values (points,).
    observed
        The values of the feature in the data.
    mean, lower, upper
        Shape (points, algorithms): the mean rating and its 95 % interval.
    time, clock
        The time, and its clock.
    """

    cast: Cast
    algorithms: tuple[str, ...]
    feature: str
    values: Floats
    observed: Floats
    mean: Floats
    lower: Floats
    upper: Floats
    time: float
    clock: str


@dataclass(frozen=True, eq=False)
class BestMap(FrozenRecord):
    """The best algorithm over two features, or over a feature and time.

    Attributes
    ----------
    cast, algorithms
        All algorithms; ``best`` has indices of the latter.
    x, y, x_name, y_name
        The values (X,) and (Y,), and the names; ``y_name`` is None for time.
    best, prob_best
        Shape (Y, X): the algorithm with the highest P(first), and P(it has the highest rating).
    observed
        Shape (instances, 2): the values in the data; empty for time.
    time, clock
        The time of a map over two features, and the clock.
    """

    cast: Cast
    algorithms: tuple[str, ...]
    x: Floats
    y: Floats
    x_name: str
    y_name: str | None
    best: NDArray[np.intp]
    prob_best: Floats
    observed: Floats
    time: float | None
    clock: str


def class_table_data(posterior: InstancePosterior, time: float | None = None) -> ClassTable:
    """Compute the ratings in each class at a time, by default the last.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 20)
    >>> kinds = {"instance": rankings.instances, "kind": ["x", "y"] * 10}
    >>> posterior = pb.fit(rankings.with_instance_data(kinds), classes="kind")
    >>> class_table_data(posterior).mean.shape
    (2, 2)
    """
    _check(posterior)
    k = _find_time(posterior, time)
    counts, parts = posterior.count_by_class(), list(posterior.by_class().values())
    members = {name for part in parts for name in part.pareto()}
    return ClassTable(
        cast=Cast.of(posterior.algorithms, members),
        algorithms=posterior.algorithms,
        classes=tuple(counts),
        counts=tuple(counts.values()),
        mean=np.stack([part.mean()[k] for part in parts]),
        best=np.stack([part.prob_best()[k] for part in parts]),
        time=float(posterior.times[k]),
        clock=posterior.clock,
    )


def class_table(
    source: InstancePosterior | ClassTable,
    time: float | None = None,
    ax: Axes | None = None,
    *,
    certainty: float = 0.95,
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw P(comes first) of each algorithm in each class at a time, by default the last.

    The highest rating of a class is in bold type if it is the highest with this certainty.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 20)
    >>> kinds = {"instance": rankings.instances, "kind": ["x", "y"] * 10}
    >>> posterior = pb.fit(rankings.with_instance_data(kinds), classes="kind")
    >>> [label.get_text() for label in class_table(posterior).get_yticklabels()]
    ['x (10)', 'y (10)']
    """
    data = source if isinstance(source, ClassTable) else class_table_data(source, time)
    rows, n = data.mean.shape
    ax = prepare_axes(ax, columns, compute_height(rows, columns, 0.2))
    mesh = ax.imshow(data.mean, cmap=TABLE_COLOUR, vmin=0, vmax=1, aspect="auto")
    names = [
        f"{format_name(name)} ({count})"
        for name, count in zip(data.classes, data.counts, strict=True)
    ]
    ax.set_yticks(range(rows), names, fontsize=choose_font_size(ax, rows))
    ax.set_xticks(
        range(n), list(map(format_name, data.algorithms)), rotation=90, fontsize=TICK_FONT_POINTS
    )
    styles = data.cast.styles()
    for label, name in zip(ax.get_xticklabels(), data.algorithms, strict=True):
        label.set_color(get_text_colour(styles[name]))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if rows * n <= 150:
        for i, j in np.ndindex(rows, n):
            sure = data.best[i, j] >= certainty
            ax.text(
                j,
                i,
                f"{data.mean[i, j]:.2f}".lstrip("0"),
                ha="center",
                va="center",
                fontsize=NOTE_FONT_POINTS,
                color="white" if data.mean[i, j] > 0.55 else "#262626",
                weight="bold" if sure else "normal",
            )
    add_colour_bar(ax, mesh, "")
    root: Any = ax.figure.figure  # of a part of a figure, the whole
    root.draw_without_rendering()  # the note is wrapped to the width beside names and bar
    when = describe_time(data.time, data.clock)
    add_note(ax, f"P(comes first) at {when}; bold: the highest with P > {certainty:g}")
    return ax


def feature_curve_data(
    posterior: InstancePosterior, feature: str | None = None, time: float | None = None
) -> FeatureCurve:
    """Compute ratings against a feature at a time, averaged over the other features.

    By default the feature is the most important one, and the time is the last.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 30)
    >>> posterior = pb.fit(rankings, features={"instance": rankings.instances, "f": range(30)})
    >>> feature_curve_data(posterior, "f").mean.shape
    (25, 2)
    """
    _check(posterior)
    k, feature = _find_time(posterior, time), _choose_features(posterior, [feature])[0]
    values, observed = _grid(posterior, feature, CURVE_POINTS)
    drawn = np.stack([posterior.average_ratings({feature: x}, time=k)[:, 0] for x in values])
    lower, upper = np.quantile(drawn, [0.025, 0.975], axis=1)
    return FeatureCurve(
        cast=_cast(posterior, drawn.mean(axis=1)),
        algorithms=posterior.algorithms,
        feature=feature,
        values=values,
        observed=observed,
        mean=drawn.mean(axis=1, dtype=np.float64),
        lower=lower,
        upper=upper,
        time=float(posterior.times[k]),
        clock=posterior.clock,
    )


def feature_curve(
    source: InstancePosterior | FeatureCurve,
    feature: str | None = None,
    time: float | None = None,
    ax: Axes | None = None,
    *,
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw ratings against a feature at a time, averaged over the other features.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 30)
    >>> posterior = pb.fit(rankings, features={"instance": rankings.instances, "f": range(30)})
    >>> feature_curve(posterior, "f").get_xlabel()
    'f'
    """
    data = source if isinstance(source, FeatureCurve) else feature_curve_data(source, feature, time)
    ax = prepare_axes(ax, columns)
    styles, ends = data.cast.styles(), list[LineEnd]()
    for k, name in enumerate(data.algorithms):
        style = styles[name]
        ax.plot(data.values, data.mean[:, k], **get_line_options(style))
        if not style.muted:
            band = (data.lower[:, k], data.upper[:, k])
            ax.fill_between(data.values, *band, color=style.colour, alpha=0.18, linewidth=0)
            ends.append(LineEnd(name, float(data.values[-1]), float(data.mean[-1, k]), style))
    ax.set_ylim(-0.03 * data.upper.max(), min(1.0, 1.05 * data.upper.max()))
    _set_feature_axis(ax.xaxis, ax.set_xscale, data.values)
    ax.set_xlim(data.values[0], data.values[-1])
    ticks = np.full(len(data.observed), ax.get_ylim()[0])
    ax.plot(data.observed, ticks, "|", color="#6e6e6e", markersize=4, markeredgewidth=0.4)
    ax.set_xlabel(format_name(data.feature))
    ax.set_ylabel("Rating = P(comes first)")
    left = len(data.algorithms) - len(ends)
    label_line_ends(ax, ends, f"+ {left} others" if left else "")
    when = describe_time(data.time, data.clock)
    add_note(ax, f"at {when}; band: 95 % interval; strokes: instances")
    return ax


def best_map_data(
    posterior: InstancePosterior,
    x: str | None = None,
    y: str | None = None,
    *,
    time: float | None = None,
    over_time: bool = False,
) -> BestMap:
    """Compute the best algorithm over two features at a time, or over a feature and time.

    By default the features are the two most important ones, and the time is the last. With
    ``over_time``, or if there is one feature only, ``y`` is time. Other features are averaged over.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0], [0.0, 1.0]]), 30)
    >>> posterior = pb.fit(rankings, features={"instance": rankings.instances, "f": range(30)})
    >>> best_map_data(posterior).best.shape                # times, values of the feature
    (2, 16)
    """
    _check(posterior)
    over_time = over_time or len(posterior.basis.names) == 1
    names = _choose_features(posterior, [x] if over_time else [x, y])
    grids = [_grid(posterior, name, MAP_POINTS) for name in names]
    k: int | None = None
    if over_time:
        drawn = np.stack([posterior.average_ratings({names[0]: v}) for v in grids[0][0]], axis=2)
        drawn = drawn.swapaxes(0, 1)  # times, draws, X, n
        heights, observed = posterior.times, np.zeros((0, 2))
    else:
        k = _find_time(posterior, time)
        heights, observed = grids[1][0], np.stack([own for _, own in grids], axis=1)
        rows = [
            [
                posterior.average_ratings(_pair(names, u, v), time=k, instances=30)[:, 0]
                for u in grids[0][0]
            ]
            for v in heights
        ]
        drawn = np.array(rows).swapaxes(1, 2)  # Y, draws, X, n
    best = drawn.mean(axis=1).argmax(axis=2)
    share = np.mean(drawn.argmax(axis=3) == best[:, None], axis=1)
    shown = drawn.mean(axis=1).reshape(-1, drawn.shape[3])
    return BestMap(
        cast=_cast(posterior, shown),
        algorithms=posterior.algorithms,
        x=grids[0][0],
        y=heights,
        x_name=names[0],
        y_name=None if over_time else names[1],
        best=best,
        prob_best=share,
        observed=observed,
        time=None if k is None else float(posterior.times[k]),
        clock=posterior.clock,
    )


def best_map(
    source: InstancePosterior | BestMap,
    x: str | None = None,
    y: str | None = None,
    ax: Axes | None = None,
    *,
    time: float | None = None,
    over_time: bool = False,
    certainty: float = 0.95,
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw which algorithm is best over two features at a time, or over a feature and time.

    Where it is pale, another algorithm may have the higher rating: P(best) is below ``certainty``.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[1.0, 0.0], [0.0, 1.0]]), 30)
    >>> posterior = pb.fit(rankings, features={"instance": rankings.instances, "f": range(30)})
    >>> best_map(posterior, "f", over_time=True).get_ylabel()
    'Time'
    """
    data = source
    if not isinstance(data, BestMap):
        data = best_map_data(data, x, y, time=time, over_time=over_time)
    ax = prepare_axes(ax, columns)
    colours = require("matplotlib.colors", extra="plots").to_rgba
    styles = data.cast.styles()
    rgba = np.array([colours(styles[name].colour) for name in data.algorithms])[data.best]
    rgba[..., 3] = np.where(data.prob_best >= certainty, 1.0, UNSURE_ALPHA)
    logs = [_is_log(data.x), data.y_name is not None and _is_log(data.y)]
    if data.y_name is None:
        logs[1] = data.y[0] > 0 and data.y[-1] >= MIN_LOG_RATIO * data.y[0]
    edges = [compute_cell_edges(v, log=log) for v, log in zip((data.x, data.y), logs, strict=True)]
    ax.pcolormesh(*edges, rgba, rasterized=True)
    _set_feature_axis(ax.xaxis, ax.set_xscale, data.x)
    if logs[1]:
        ax.set_yscale("log")
        set_log_ticks(ax.yaxis, float(data.y[0]), float(data.y[-1]))
    ax.set(xlim=(edges[0][0], edges[0][-1]), ylim=(edges[1][0], edges[1][-1]))
    if len(data.observed):
        ax.plot(*data.observed.T, ".", color="white", markersize=2.2, markeredgewidth=0)
        ax.plot(*data.observed.T, ".", color="#262626", markersize=1.2, markeredgewidth=0)
    ax.set_xlabel(format_name(data.x_name))
    ax.set_ylabel(format_clock(data.clock) if data.y_name is None else format_name(data.y_name))
    _label_regions(ax, data)
    at = "" if data.time is None else f"best at {describe_time(data.time, data.clock)}; "
    dots = "; dots: instances" if len(data.observed) else ""
    add_note(ax, f"{at}pale: P(best) < {certainty:g}{dots}")
    return ax


def _label_regions(ax: Axes, data: BestMap) -> None:
    """Write the names of the algorithms in the map at its right, in their colours."""
    styles = data.cast.styles()
    present = [k for k in np.argsort(-np.bincount(data.best.ravel())) if np.any(data.best == k)]
    for row, k in enumerate(present[:8]):
        name = data.algorithms[k]
        ax.text(
            1.03,
            0.97 - 0.09 * row,
            format_name(name),
            transform=ax.transAxes,
            fontsize=TICK_FONT_POINTS,
            color=get_text_colour(styles[name]),
            va="top",
        )


def _check(posterior: Any) -> None:
    if not isinstance(posterior, InstancePosterior):
        raise DataError(
            "expected the posterior of fit(classes=) or fit(features=), got "
            f"{type(posterior).__name__}"
        )


def _find_time(posterior: InstancePosterior, time: float | None) -> int:
    """Return the index of a time, by default of the last."""
    if time is None:
        return len(posterior.times) - 1
    return find_nearest_time(posterior.times, time, posterior.clock)


def _choose_features(posterior: InstancePosterior, names: list[str | None]) -> list[str]:
    """Return the features asked for; in the place of None the most important ones."""
    if not hasattr(posterior.basis, "knots"):
        raise DataError("this posterior has classes: use class_table")
    given = [name for name in names if name is not None]
    find_indices(given, posterior.basis.names, "feature")
    rest = [name for name in posterior.importance() if name not in given]
    return [rest.pop(0) if name is None else name for name in names]


def _grid(posterior: InstancePosterior, name: str, points: int) -> tuple[Floats, Floats]:
    """Return values of a feature from its 2 % to its 98 % quantile, and those in the data."""
    observed = np.asarray(posterior.attributes[name], dtype=np.float64)
    known = observed[np.isfinite(observed)]
    low, high = np.quantile(known, [0.02, 0.98])
    if low == high:
        low, high = known.min(), known.max()
    space = np.geomspace if low > 0 and high >= MIN_LOG_RATIO * low else np.linspace
    return space(low, high, points), observed


def _pair(names: list[str], u: float, v: float) -> Mapping[str, float]:
    return {names[0]: u, names[1]: v}


def _cast(posterior: InstancePosterior, mean: Floats) -> Cast:
    """Return all algorithms; those that are best somewhere count as the Pareto set."""
    best = {posterior.algorithms[k] for k in np.unique(mean.argmax(axis=1))}
    return Cast.of(posterior.algorithms, best)


def _is_log(values: Floats) -> bool:
    return bool(values[0] > 0 and values[-1] >= MIN_LOG_RATIO * values[0] * 0.999)


def _set_feature_axis(axis: Any, set_scale: Any, values: Floats) -> None:
    """Make an axis logarithmic if its values span two decades."""
    if _is_log(values):
        set_scale("log")
        set_log_ticks(axis, float(values[0]), float(values[-1]))
