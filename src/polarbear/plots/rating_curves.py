"""Figure of ratings over time with credible bands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from polarbear.data.colours import MUTED_PAPER_COLOUR, TEXT_COLOUR, Cast
from polarbear.data.frozen import FrozenRecord
from polarbear.data.names import find_indices
from polarbear.errors import DataError
from polarbear.plots.arguments import Floats, PosteriorSource, get_cast, get_posterior, get_times
from polarbear.plots.canvas import (
    NO_DECISION_MESSAGE,
    TICK_FONT_POINTS,
    Axes,
    OneOrTwo,
    TimeScale,
    add_note,
    compute_height,
    describe_time,
    draw_intervals,
    format_name,
    get_line_options,
    prepare_axes,
    prepare_panels,
    set_time_axis,
    show_message,
)
from polarbear.plots.labels import LineEnd, label_line_ends

MAX_PANELS = 24
"""The most small multiples in one figure, if the caller does not choose them."""

PANELS_PER_ROW = {1: 2, 2: 4}
"""Small multiples beside each other, in one and in two columns of a paper."""


@dataclass(frozen=True, eq=False)
class RatingCurves(FrozenRecord):
    """The mean ratings of algorithms over time, with credible intervals.

    Attributes
    ----------
    cast
        All algorithms, including those that are not rated any more.
    algorithms, times, clock
        The algorithms with ratings, none of a race without a decision; and the grid of times.
    mean, lower, upper
        Shape (T, n): the mean rating and the central interval.
    level
        The probability of the interval.
    truth
        Shape (T, n): the true ratings, if they are known.
    """

    cast: Cast
    algorithms: tuple[str, ...]
    times: Floats
    clock: str
    mean: Floats
    lower: Floats
    upper: Floats
    level: float
    truth: Floats | None = None


def ratings_data(
    source: PosteriorSource,
    *,
    level: float = 0.95,
    truth: ArrayLike | None = None,
    certainty: float = 0.95,
) -> RatingCurves:
    """Compute mean ratings over time and their credible intervals.

    Parameters
    ----------
    source
        A posterior or a race.
    level
        The probability of the intervals.
    truth
        True log-utilities, shape (T, n), of simulated data; they are converted to ratings.
    certainty
        The certainty required to exclude an algorithm from the Pareto set of a posterior.

    Examples
    --------
    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(3), 20))
    >>> curves = ratings_data(posterior)
    >>> curves.mean.shape, bool(np.all(curves.lower <= curves.upper))
    ((3, 3), True)
    """
    posterior, cast = get_posterior(source), get_cast(source, certainty)
    times, clock = get_times(source)
    if posterior is None:
        empty = np.zeros((len(times), 0))
        return RatingCurves(
            cast=cast,
            algorithms=(),
            times=times,
            clock=clock,
            mean=empty,
            lower=empty,
            upper=empty,
            level=level,
        )
    lower, upper = posterior.interval(level=level)
    mean = posterior.mean()
    return RatingCurves(
        cast=cast,
        algorithms=posterior.algorithms,
        times=times,
        clock=clock,
        mean=mean,
        lower=lower,
        upper=upper,
        level=level,
        truth=None if truth is None else _normalise_truth(truth, mean.shape),
    )


def _normalise_truth(utilities: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Check the shape of true log-utilities, and convert them to ratings."""
    mu = np.asarray(utilities, dtype=np.float64)
    if mu.shape != shape:
        raise DataError(
            f"truth has shape {mu.shape}: expected log-utilities of shape {shape}, a row for each "
            "time and a column for each algorithm that is rated"
        )
    rating = np.exp(mu - mu.max(axis=1, keepdims=True))
    return rating / rating.sum(axis=1, keepdims=True)


def ratings(
    source: PosteriorSource | RatingCurves,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    truth: ArrayLike | None = None,
    certainty: float = 0.95,
    highlight: Iterable[str] = (),
    time: TimeScale = "auto",
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw ratings over time: means, credible bands and, if known, dotted true ratings.

    Parameters
    ----------
    source
        A posterior, a race, or a result of :func:`ratings_data`.
    ax
        Axes to draw on; by default those of a new figure.
    level, truth, certainty
        As in :func:`ratings_data`.
    highlight
        The algorithms to draw in colour; others are grey. By default all, or of more than eight
        those in the Pareto set.
    time
        The scale of the time axis, "log" or "linear"; "auto" is log from a factor of 100 on, and
        for a log grid.
    columns
        Width of a new figure, in columns of a paper.

    Examples
    --------
    >>> import polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 60))
    >>> ratings(posterior).get_ylabel()
    'Rating = P(comes first)'
    """
    data = source
    if not isinstance(data, RatingCurves):
        data = ratings_data(data, level=level, truth=truth, certainty=certainty)
    chosen = [highlight] if isinstance(highlight, str) else list(highlight)
    if chosen:
        data = replace(data, cast=data.cast.highlight(chosen))
    if not data.algorithms:
        return show_message(prepare_axes(ax, columns), NO_DECISION_MESSAGE)
    if len(data.times) == 1:
        return _draw_single_time(data, ax, columns)
    ax = prepare_axes(ax, columns)
    styles = data.cast.styles()
    for k, name in enumerate(data.algorithms):
        style = styles[name]
        ax.plot(data.times, data.mean[:, k], **get_line_options(style))
        if not style.muted:
            band = (data.lower[:, k], data.upper[:, k])
            ax.fill_between(data.times, *band, color=style.colour, alpha=0.18, linewidth=0)
        if data.truth is not None and not style.muted:
            truth_style = {"linestyle": (0, (0.8, 1.2)), "linewidth": 1.8, "zorder": 4}
            ax.plot(data.times, data.truth[:, k], color=style.colour, **truth_style)
    set_time_axis(ax, data.times, data.clock, time)
    ax.set_ylabel("Rating = P(comes first)")
    ax.set_ylim(0, min(1.0, 1.05 * max(data.upper.max(), data.mean.max())))
    _label_lines(ax, data)
    _explain_marks(ax, data)
    return ax


def _label_lines(ax: Axes, data: RatingCurves) -> None:
    """Write the names of coloured lines at their ends, and the number of grey lines."""
    styles = data.cast.styles()
    shown = [k for k, name in enumerate(data.algorithms) if not styles[name].muted]
    left = len(data.algorithms) - len(shown)
    last = float(data.times[-1])
    ends = [
        LineEnd(data.algorithms[k], last, float(data.mean[-1, k]), styles[data.algorithms[k]])
        for k in shown
    ]
    others = "others" if data.cast.highlighted else "dominated"
    label_line_ends(ax, ends, f"+ {left} {others}" if left else "")


def rating_panels(
    source: PosteriorSource | RatingCurves,
    algorithms: Iterable[str] = (),
    *,
    level: float = 0.95,
    certainty: float = 0.95,
    time: TimeScale = "auto",
    columns: OneOrTwo = 2,
) -> list[Axes]:
    """Draw ratings in small multiples: a panel for each algorithm, the others in grey.

    It is for more algorithms than lines in one figure can show. Returns the axes of the panels.

    Parameters
    ----------
    source
        A posterior, a race, or a result of :func:`ratings_data`.
    algorithms
        The algorithms with a panel, in this order; by default those in the Pareto set, at most
        24 of the highest mean rating.
    level, certainty, time, columns
        As in :func:`ratings`.

    Examples
    --------
    >>> import polarbear as pb
    >>> truth = np.linspace([2.0] * 3 + [0.0] * 9, [0.0] * 6 + [2.0] * 6, 4)
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 40))
    >>> panels = rating_panels(posterior, ["a1", "a2", "a12"])
    >>> [ax.get_title(loc="left") for ax in panels]
    ['a1', 'a2', 'a12']
    """
    data = source
    if not isinstance(data, RatingCurves):
        data = ratings_data(data, level=level, certainty=certainty)
    if not data.algorithms or len(data.times) == 1:  # nothing to draw, or no curve
        return [ratings(data, columns=columns, time=time)]
    names = [algorithms] if isinstance(algorithms, str) else list(algorithms)
    if names:
        find_indices(names, data.algorithms, "algorithm")
    else:
        code = {name: k for k, name in enumerate(data.algorithms)}
        rated = [name for name in data.cast.pareto or data.cast.names if name in code]
        names = sorted(rated, key=lambda name: -data.mean[:, code[name]].mean())[:MAX_PANELS]
        names.sort(key=rated.index)
    per_row = min(len(names), PANELS_PER_ROW[columns])
    rows = -(-len(names) // per_row)
    panels = prepare_panels(rows, per_row, columns, 0.5 + 1.15 * rows)
    for ax, name in zip(panels, names, strict=False):
        _draw_panel(ax, data, name, time)
    for k, ax in enumerate(panels[: len(names)]):
        if k % per_row == 0:
            ax.set_ylabel("Rating")
        if k + per_row < len(names):  # the lowest of a column has the label of the axis
            ax.set_xlabel("")
        else:
            ax.tick_params(labelbottom=True)
    for ax in panels[len(names) :]:
        ax.set_axis_off()
    return panels[: len(names)]


def _draw_panel(ax: Axes, data: RatingCurves, name: str, time: TimeScale) -> None:
    """Draw one algorithm in colour above the grey curves of all others."""
    style = data.cast.highlight([name]).styles()[name]
    chosen = data.algorithms.index(name)
    for k in range(len(data.algorithms)):
        if k != chosen:
            ax.plot(data.times, data.mean[:, k], color=MUTED_PAPER_COLOUR, linewidth=0.5, zorder=2)
    band = (data.lower[:, chosen], data.upper[:, chosen])
    ax.fill_between(data.times, *band, color=style.colour, alpha=0.22, linewidth=0)
    ax.plot(data.times, data.mean[:, chosen], color=style.colour, linewidth=1.5, zorder=3)
    ax.set_title(
        format_name(name), loc="left", fontsize=TICK_FONT_POINTS, color=style.colour, pad=3
    )
    set_time_axis(ax, data.times, data.clock, time)
    ax.set_ylim(0, min(1.0, 1.05 * max(data.upper.max(), data.mean.max())))


def _explain_marks(ax: Axes, data: RatingCurves) -> None:
    """Write a note on what lines, bands and marks mean."""
    means, spans = ("line", "band") if len(data.times) > 1 else ("mark", "bar")
    text = f"{means}: mean, {spans}: {data.level:.0%} credible interval"
    if data.truth is not None:
        text += ", dotted: truth" if len(data.times) > 1 else ", stroke: truth"
    add_note(ax, text)


def _draw_single_time(data: RatingCurves, ax: Axes | None, columns: OneOrTwo) -> Axes:
    """Draw ratings at a single time, with a row for each algorithm in place of a curve."""
    ax = prepare_axes(ax, columns, compute_height(len(data.algorithms), columns))
    order = np.argsort(-data.mean[0], kind="stable")
    names = [data.algorithms[k] for k in order]
    mean, lower, upper = (part[0, order] for part in (data.mean, data.lower, data.upper))
    draw_intervals(ax, names, mean, lower, upper, data.cast)
    if data.truth is not None:
        ax.plot(data.truth[0, order], range(len(order)), "|", color=TEXT_COLOUR, markersize=11)
    ax.set_xlabel(f"Rating = P(comes first) at {describe_time(float(data.times[0]), data.clock)}")
    ax.set_xlim(left=0)
    _explain_marks(ax, data)
    return ax
