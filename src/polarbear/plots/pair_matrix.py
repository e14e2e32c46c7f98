"""Figure of all pairs as a matrix of probabilities, at one time or over all times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polarbear.data.colours import Cast
from polarbear.data.frozen import FrozenRecord
from polarbear.inference.dominance import check_certainty
from polarbear.plots.arguments import (
    Bools,
    Floats,
    PosteriorSource,
    find_nearest_time,
    get_cast,
    get_posterior,
    get_times,
)
from polarbear.plots.canvas import (
    NO_DECISION_MESSAGE,
    NOTE_FONT_POINTS,
    TICK_FONT_POINTS,
    Axes,
    OneOrTwo,
    add_colour_bar,
    choose_font_size,
    compute_height,
    describe_time,
    format_name,
    get_text_colour,
    label_rows,
    prepare_axes,
    show_message,
)

MAX_WRITTEN_ALGORITHMS = 12
"""The matrix has written probabilities up to this number of algorithms."""


@dataclass(frozen=True, eq=False)
class Pairs(FrozenRecord):
    """Probabilities that rows are ahead of columns; algorithms that lead most come first.

    Attributes
    ----------
    cast
        All algorithms.
    algorithms
        The algorithms of rows and columns.
    ahead
        Shape (n, n): P(row ahead of column), at the time or at all times; nan on the diagonal.
    certain
        Shape (n, n): whether that probability is at least ``certainty``.
    crosses
        Shape (n, n): over all times, whether each of the two certainly leads at some time;
        False at a single time.
    time
        The time of the comparison, or None for all times.
    clock
        The name of its clock.
    certainty
        The required certainty.
    """

    cast: Cast
    algorithms: tuple[str, ...]
    ahead: Floats
    certain: Bools
    crosses: Bools
    time: float | None
    clock: str
    certainty: float


def pairs_data(
    source: PosteriorSource, time: float | None = None, *, certainty: float = 0.95
) -> Pairs:
    """Compute P(row ahead of column) at one time, or at all times jointly.

    >>> import polarbear as pb
    >>> truth = np.array([[0.0, 3.0], [3.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 50))
    >>> pairs_data(posterior, 0.0).algorithms, bool(pairs_data(posterior).crosses[0, 1])
    (('a2', 'a1'), True)
    """
    check_certainty(certainty)
    posterior, cast = get_posterior(source), get_cast(source, certainty)
    times, clock = get_times(source)
    if posterior is None:
        empty, no_flags = np.zeros((0, 0)), np.zeros((0, 0), dtype=bool)
        return Pairs(
            cast=cast,
            algorithms=(),
            ahead=empty,
            certain=no_flags,
            crosses=no_flags,
            time=time,
            clock=clock,
            certainty=certainty,
        )
    by_time = posterior.prob_better()
    ahead, mean_ahead = posterior.prob_dominates(), by_time.mean(axis=0)
    leads = np.any(by_time >= certainty, axis=0)
    crosses = leads & leads.T
    if time is not None:
        place = find_nearest_time(times, time, clock)
        time, ahead = float(times[place]), by_time[place]
        mean_ahead, crosses = ahead, np.zeros_like(crosses)
    order = np.argsort(-mean_ahead.mean(axis=1), kind="stable")
    both = np.ix_(order, order)
    ahead = ahead[both].copy()
    np.fill_diagonal(ahead, np.nan)
    return Pairs(
        cast=cast,
        algorithms=tuple(posterior.algorithms[k] for k in order),
        ahead=ahead,
        certain=ahead >= certainty,
        crosses=crosses[both] & ~np.eye(len(order), dtype=bool),
        time=time,
        clock=clock,
        certainty=certainty,
    )


def pairs(
    source: PosteriorSource | Pairs,
    time: float | None = None,
    ax: Axes | None = None,
    *,
    certainty: float = 0.95,
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw all pairs as a matrix of P(row ahead of column), at one time or at all times.

    Certain pairs are in bold type, or have a dot in a matrix too large for numbers. Over all
    times "x" means that the two certainly cross.

    >>> import polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 60))
    >>> [label.get_text() for label in pairs(posterior).get_xticklabels()]
    ['a1', 'a2', 'a3']
    """
    data = source if isinstance(source, Pairs) else pairs_data(source, time, certainty=certainty)
    if not data.algorithms:
        return show_message(prepare_axes(ax, columns), NO_DECISION_MESSAGE)
    n = len(data.algorithms)
    ax = prepare_axes(
        ax, columns, compute_height(n, columns, 0.25 if n <= MAX_WRITTEN_ALGORITHMS else 0.12)
    )
    mesh = ax.imshow(
        np.ma.masked_invalid(data.ahead),
        cmap="PuOr_r" if data.time is not None else "YlOrBr",
        vmin=0,
        vmax=1,
        aspect="equal",
    )
    label_rows(ax, data.algorithms, data.cast)
    styles, size = data.cast.styles(), choose_font_size(ax, n)
    ax.set_xticks(range(n), list(map(format_name, data.algorithms)), rotation=90, fontsize=size)
    ax.tick_params(axis="x", length=0, top=False, labeltop=True, labelbottom=False)
    for tick, name in zip(ax.xaxis.get_major_ticks(), data.algorithms, strict=True):
        tick.label2.set_color(get_text_colour(styles[name]))
    ax.set_ylim(n - 0.5, -0.5)
    ax.spines[:].set_visible(False)
    _mark_cells(ax, data)
    when = "at all times" if data.time is None else f"at {describe_time(data.time, data.clock)}"
    title = f"P(row is ahead of column) {when}"
    marks = (
        f"bold: P > {data.certainty:g}"
        if n <= MAX_WRITTEN_ALGORITHMS
        else f"dots: P > {data.certainty:g}"
    )
    ax.set_xlabel(f"{title}\n{marks}{', x: the lead changes' if data.time is None else ''}")
    ax.xaxis.label.set_fontsize(TICK_FONT_POINTS)
    add_colour_bar(ax, mesh, "")
    return ax


def _mark_cells(ax: Axes, data: Pairs) -> None:
    """Write probabilities into cells that have room, and mark pairs that are certain."""
    n = len(data.algorithms)
    for i in range(n):
        for j in range(n):
            value = data.ahead[i, j]
            if i == j or np.isnan(value):
                continue
            dark = value > 0.75 or (data.time is not None and value < 0.25)
            colour = "white" if dark else "#262626"
            if n <= MAX_WRITTEN_ALGORITHMS:
                text = "x" if data.crosses[i, j] else _format_probability(value)
                weight = "bold" if data.certain[i, j] else "normal"
                place = {"ha": "center", "va": "center", "fontsize": NOTE_FONT_POINTS}
                ax.text(j, i, text, color=colour, weight=weight, **place)
            elif data.certain[i, j] or data.crosses[i, j]:
                mark = "." if data.certain[i, j] else "x"
                ax.plot(j, i, mark, color=colour, markersize=2, markeredgewidth=0.4)


def _format_probability(probability: float) -> str:
    """Format a probability with two digits, never as exactly 0 or 1."""
    if probability > 0.995:
        return ">.99"
    return "<.01" if probability < 0.005 else f"{probability:.2f}".lstrip("0")
