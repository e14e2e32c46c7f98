"""Figure of ratings over time with credible bands."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polarbear.data.frozen import FrozenRecord
from polarbear.errors import DataError
from polarbear.plots.arguments import Floats, PosteriorSource, get_cast, get_posterior, get_times
from polarbear.plots.canvas import (
    NO_DECISION_MESSAGE,
    Axes,
    Columns,
    TimeScale,
    add_note,
    compute_height,
    describe_time,
    draw_intervals,
    get_line_options,
    prepare_axes,
    set_time_axis,
    show_message,
)
from polarbear.plots.colours import TEXT_COLOUR, Cast
from polarbear.plots.labels import LineEnd, label_line_ends


@dataclass(frozen=True, eq=False)
class RatingCurves(FrozenRecord):
    """Ratings of algorithms over time.

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
    certainty: float = 0.99,
) -> RatingCurves:
    """Compute mean ratings and their credible intervals.

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
        return RatingCurves(cast, (), times, clock, empty, empty, empty, level)
    lower, upper = posterior.interval(level=level)
    mean = posterior.mean()
    return RatingCurves(
        cast,
        posterior.algorithms,
        times,
        clock,
        mean,
        lower,
        upper,
        level,
        None if truth is None else _normalise_truth(truth, mean.shape),
    )


def _normalise_truth(utilities: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Convert true log-utilities to ratings, after a check of their shape."""
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
    certainty: float = 0.99,
    time: TimeScale = "auto",
    columns: Columns = 1,
) -> Axes:
    """Draw ratings over time: means, credible bands, and dotted true ratings if they are known.

    Parameters
    ----------
    source
        A posterior, a race, or a result of :func:`ratings_data`.
    ax
        Axes to draw on; by default those of a new figure.
    level, truth, certainty
        As in :func:`ratings_data`.
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
    """Write the names of coloured lines at their ends, and the number of grey ones."""
    styles = data.cast.styles()
    shown = [k for k, name in enumerate(data.algorithms) if not styles[name].muted]
    left = len(data.algorithms) - len(shown)
    last = float(data.times[-1])
    ends = [
        LineEnd(data.algorithms[k], last, float(data.mean[-1, k]), styles[data.algorithms[k]])
        for k in shown
    ]
    label_line_ends(ax, ends, f"+ {left} dominated" if left else "")


def _explain_marks(ax: Axes, data: RatingCurves) -> None:
    """Write what lines, bands and marks mean."""
    means, spans = ("line", "band") if len(data.times) > 1 else ("mark", "bar")
    text = f"{means}: mean, {spans}: {data.level:.0%} credible interval"
    if data.truth is not None:
        text += ", dotted: truth" if len(data.times) > 1 else ", stroke: truth"
    add_note(ax, text)


def _draw_single_time(data: RatingCurves, ax: Axes | None, columns: Columns) -> Axes:
    """Draw ratings at a single time: a row for each algorithm in place of a curve."""
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
