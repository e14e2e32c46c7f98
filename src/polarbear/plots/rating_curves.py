"""How good is each, when? Ratings over time with credible bands."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polarbear.data.frozen import Frozen
from polarbear.errors import DataError
from polarbear.plots.arguments import Floats, Source, cast_of, posterior_of, times_of
from polarbear.plots.canvas import (
    UNDECIDED,
    Axes,
    Columns,
    Time,
    axes,
    dots,
    line,
    moment,
    note,
    nothing,
    row_height,
    time_axis,
)
from polarbear.plots.colours import INK, Cast
from polarbear.plots.labels import End, line_ends


@dataclass(frozen=True, eq=False)
class RatingCurves(Frozen):
    """Ratings of algorithms over time.

    Attributes
    ----------
    cast
        Everybody, also those who are not rated any more.
    algorithms, times, clock
        Who is rated, and when. Nobody, if a race has not decided anything.
    mean, lower, upper
        Shape (T, n): the mean rating and the central interval.
    level
        Of the interval.
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
    source: Source,
    *,
    level: float = 0.95,
    truth: ArrayLike | None = None,
    alpha: float = 0.99,
) -> RatingCurves:
    """Mean ratings and their intervals.

    Parameters
    ----------
    source
        A posterior or a race.
    level
        Of the intervals.
    truth
        True log-utilities, shape (T, n), of simulated data: they become ratings.
    alpha
        How sure one has to be that somebody does not belong to the Pareto set, of a posterior.

    Examples
    --------
    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(3), 20))
    >>> found = ratings_data(posterior)
    >>> found.mean.shape, bool(np.all(found.lower <= found.upper))
    ((3, 3), True)
    """
    posterior, cast = posterior_of(source), cast_of(source, alpha)
    times, clock = times_of(source)
    if posterior is None:
        nothing = np.zeros((len(times), 0))
        return RatingCurves(cast, (), times, clock, nothing, nothing, nothing, level)
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
        None if truth is None else _ratings(truth, mean.shape),
    )


def _ratings(utilities: ArrayLike, shape: tuple[int, ...]) -> Floats:
    mu = np.asarray(utilities, dtype=np.float64)
    if mu.shape != shape:
        raise DataError(
            f"truth has shape {mu.shape}: expected log-utilities of shape {shape}, a row for each "
            "time and a column for each algorithm that is rated"
        )
    rating = np.exp(mu - mu.max(axis=1, keepdims=True))
    return rating / rating.sum(axis=1, keepdims=True)


def ratings(
    source: Source | RatingCurves,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    truth: ArrayLike | None = None,
    alpha: float = 0.99,
    time: Time = "auto",
    columns: Columns = 1,
) -> Axes:
    """Draw ratings over time: mean and credible band, and the truth dotted where it is known.

    Parameters
    ----------
    source
        A posterior, a race, or what :func:`ratings_data` made of one.
    ax
        Where to draw; by default in a new figure.
    level, truth, alpha
        As in :func:`ratings_data`.
    time
        Whether the axis of time is "log" or "linear"; "auto" is log over a factor of 100, and
        for a log grid.
    columns
        Of a paper, that a new figure fits.

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
        data = ratings_data(data, level=level, truth=truth, alpha=alpha)
    if not data.algorithms:
        return nothing(axes(ax, columns), UNDECIDED)
    if len(data.times) == 1:
        return _at_one_time(data, ax, columns)
    ax = axes(ax, columns)
    styles = data.cast.styles()
    for k, name in enumerate(data.algorithms):
        style = styles[name]
        ax.plot(data.times, data.mean[:, k], **line(style))
        if not style.muted:
            band = (data.lower[:, k], data.upper[:, k])
            ax.fill_between(data.times, *band, color=style.colour, alpha=0.18, linewidth=0)
        if data.truth is not None and not style.muted:
            dots = {"linestyle": (0, (0.8, 1.2)), "linewidth": 1.8, "zorder": 4}
            ax.plot(data.times, data.truth[:, k], color=style.colour, **dots)
    time_axis(ax, data.times, data.clock, time)
    ax.set_ylabel("Rating = P(comes first)")
    ax.set_ylim(0, min(1.0, 1.05 * max(data.upper.max(), data.mean.max())))
    _name_lines(ax, data)
    _say_what_is_what(ax, data)
    return ax


def _name_lines(ax: Axes, data: RatingCurves) -> None:
    styles = data.cast.styles()
    shown = [k for k, name in enumerate(data.algorithms) if not styles[name].muted]
    left = len(data.algorithms) - len(shown)
    last = float(data.times[-1])
    ends = [
        End(data.algorithms[k], last, float(data.mean[-1, k]), styles[data.algorithms[k]])
        for k in shown
    ]
    line_ends(ax, ends, f"+ {left} dominated" if left else "")


def _say_what_is_what(ax: Axes, data: RatingCurves) -> None:
    means, spans = ("line", "band") if len(data.times) > 1 else ("mark", "bar")
    said = f"{means}: mean, {spans}: {data.level:.0%} credible"
    if data.truth is not None:
        said += ", dotted: truth" if len(data.times) > 1 else ", stroke: truth"
    note(ax, said)


def _at_one_time(data: RatingCurves, ax: Axes | None, columns: Columns) -> Axes:
    """At a single time there are no curves: a row for each algorithm."""
    ax = axes(ax, columns, row_height(len(data.algorithms), columns))
    order = np.argsort(-data.mean[0], kind="stable")
    names = [data.algorithms[k] for k in order]
    mean, lower, upper = (part[0, order] for part in (data.mean, data.lower, data.upper))
    dots(ax, names, mean, lower, upper, data.cast)
    if data.truth is not None:
        ax.plot(data.truth[0, order], range(len(order)), "|", color=INK, markersize=11)
    ax.set_xlabel(f"Rating = P(comes first) at {moment(float(data.times[0]), data.clock)}")
    ax.set_xlim(left=0)
    _say_what_is_what(ax, data)
    return ax
