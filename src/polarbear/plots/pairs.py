"""Who beats whom? All pairs, at a time or over all times."""

from dataclasses import dataclass

import numpy as np

from polarbear._text import span
from polarbear.data.frozen import Frozen
from polarbear.errors import DataError
from polarbear.inference.posterior import check_alpha
from polarbear.plots.arguments import Bools, Floats, Source, cast_of, posterior_of, times_of
from polarbear.plots.canvas import (
    SMALL,
    TINY,
    UNDECIDED,
    Axes,
    Columns,
    axes,
    bar,
    fitting,
    ink,
    moment,
    nothing,
    row_height,
    rows,
    shown,
)
from polarbear.plots.colours import Cast

WRITTEN = 12
"""The most algorithms of which probabilities are written into the matrix."""


@dataclass(frozen=True, eq=False)
class Pairs(Frozen):
    """Probabilities of pairs: rows against columns, those who win most first.

    Attributes
    ----------
    cast
        Everybody.
    algorithms
        Of rows and columns.
    ahead
        Shape (n, n): P(row ahead of column), at the time or at all times; nan on the diagonal.
    certain
        Shape (n, n): whether that is certain.
    crosses
        Shape (n, n): over all times, whether the two certainly change places; at a time nobody
        does.
    time
        The time that was asked about, or None for all times.
    clock
        What it counts.
    alpha
        How sure one has to be.
    """

    cast: Cast
    algorithms: tuple[str, ...]
    ahead: Floats
    certain: Bools
    crosses: Bools
    time: float | None
    clock: str
    alpha: float


def pairs_data(source: Source, time: float | None = None, *, alpha: float = 0.99) -> Pairs:
    """Who is ahead of whom, at the time of the grid nearest to ``time``, or at all times.

    >>> import polarbear as pb
    >>> truth = np.array([[0.0, 3.0], [3.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 50))
    >>> pairs_data(posterior, 0.0).algorithms, bool(pairs_data(posterior).crosses[0, 1])
    (('a2', 'a1'), True)
    """
    check_alpha(alpha)
    posterior, cast = posterior_of(source), cast_of(source, alpha)
    times, clock = times_of(source)
    if posterior is None:
        nothing, no = np.zeros((0, 0)), np.zeros((0, 0), dtype=bool)
        return Pairs(cast, (), nothing, no, no, time, clock, alpha)
    by_time = posterior.better_matrix()
    ahead, often = posterior.better_everywhere_matrix(), by_time.mean(axis=0)
    leads = np.any(by_time >= alpha, axis=0)
    crosses = leads & leads.T
    if time is not None:
        place = _nearest(times, time, clock)
        time, ahead = float(times[place]), by_time[place]
        often, crosses = ahead, np.zeros_like(crosses)
    order = np.argsort(-often.mean(axis=1), kind="stable")
    both = np.ix_(order, order)
    ahead = ahead[both].copy()
    np.fill_diagonal(ahead, np.nan)
    return Pairs(
        cast,
        tuple(posterior.algorithms[k] for k in order),
        ahead,
        ahead >= alpha,
        crosses[both] & ~np.eye(len(order), dtype=bool),
        time,
        clock,
        alpha,
    )


def _nearest(times: Floats, time: float, clock: str) -> int:
    if not times[0] <= time <= times[-1]:
        raise DataError(
            f"the time {time:,g} lies outside of what is known, {span(times[0], times[-1], clock)}"
        )
    return int(np.argmin(np.abs(times - time)))


def pairs(
    source: Source | Pairs,
    time: float | None = None,
    ax: Axes | None = None,
    *,
    alpha: float = 0.99,
    columns: Columns = 1,
) -> Axes:
    """Draw all pairs as a matrix: P(row ahead of column), at a time or at all times at once.

    What is certain is in bold type, or has a dot where there are too many to write. Over all times
    "x" says that two certainly change places.

    >>> import polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 60))
    >>> [label.get_text() for label in pairs(posterior).get_xticklabels()]
    ['a1', 'a2', 'a3']
    """
    data = source if isinstance(source, Pairs) else pairs_data(source, time, alpha=alpha)
    if not data.algorithms:
        return nothing(axes(ax, columns), UNDECIDED)
    n = len(data.algorithms)
    ax = axes(ax, columns, row_height(n, columns, 0.25 if n <= WRITTEN else 0.12))
    mesh = ax.imshow(
        np.ma.masked_invalid(data.ahead),
        cmap="PuOr_r" if data.time is not None else "YlOrBr",
        vmin=0,
        vmax=1,
        aspect="equal",
    )
    rows(ax, data.algorithms, data.cast)
    styles, size = data.cast.styles(), fitting(ax, n)
    ax.set_xticks(range(n), list(map(shown, data.algorithms)), rotation=90, fontsize=size)
    ax.tick_params(axis="x", length=0, top=False, labeltop=True, labelbottom=False)
    for tick, name in zip(ax.xaxis.get_major_ticks(), data.algorithms, strict=True):
        tick.label2.set_color(ink(styles[name]))
    ax.set_ylim(n - 0.5, -0.5)
    ax.spines[:].set_visible(False)
    _mark(ax, data)
    when = "at all times" if data.time is None else f"at {moment(data.time, data.clock)}"
    said = f"P(row is ahead of column) {when}"
    marks = f"bold: P > {data.alpha:g}" if n <= WRITTEN else f"dots: P > {data.alpha:g}"
    ax.set_xlabel(f"{said}\n{marks}{', x: they change places' if data.time is None else ''}")
    ax.xaxis.label.set_fontsize(SMALL)
    bar(ax, mesh, "")
    return ax


def _mark(ax: Axes, data: Pairs) -> None:
    """Write probabilities where there is room, and mark what is certain."""
    n = len(data.algorithms)
    for i in range(n):
        for j in range(n):
            value = data.ahead[i, j]
            if i == j or np.isnan(value):
                continue
            dark = value > 0.75 or (data.time is not None and value < 0.25)
            colour = "white" if dark else "#262626"
            if n <= WRITTEN:
                said = "x" if data.crosses[i, j] else _short(value)
                weight = "bold" if data.certain[i, j] else "normal"
                place = {"ha": "center", "va": "center", "fontsize": TINY}
                ax.text(j, i, said, color=colour, weight=weight, **place)
            elif data.certain[i, j] or data.crosses[i, j]:
                mark = "." if data.certain[i, j] else "x"
                ax.plot(j, i, mark, color=colour, markersize=2, markeredgewidth=0.4)


def _short(probability: float) -> str:
    """Two digits, and never a flat 0 or 1."""
    if probability > 0.995:
        return ">.99"
    return "<.01" if probability < 0.005 else f"{probability:.2f}".lstrip("0")
