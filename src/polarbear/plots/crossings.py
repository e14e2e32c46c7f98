"""When does the lead of two change hands? The crossing map of a pair."""

from dataclasses import dataclass

import numpy as np

from polarbear._text import moment
from polarbear.data.frozen import Frozen
from polarbear.data.rankings import Rankings
from polarbear.errors import DataError
from polarbear.inference.verdict import Crossing
from polarbear.plots.arguments import Floats, Source, cast_of, posterior_of
from polarbear.plots.canvas import (
    FAINT,
    SMALL,
    Axes,
    Columns,
    Time,
    axes,
    edges,
    note,
    shown,
    time_axis,
)
from polarbear.plots.colours import INK, Cast


@dataclass(frozen=True, eq=False)
class CrossingMap(Frozen):
    """Two algorithms over time.

    Attributes
    ----------
    cast
        Everybody.
    first, second
        The two.
    times, clock
        The grid.
    ahead
        Shape (T,): P(the rating of the first is above that of the second).
    alike
        Shape (T,): P(practically the same).
    chance, lower, upper
        Shape (T,): how likely the first is to beat the second on a new instance, with an interval.
    counted
        Shape (T,): how often it did on the instances that were seen, if rankings were given.
    crossings
        Where the lead certainly changes hands.
    everywhere, everywhere_reversed
        P(first ahead at all times), and P(second ahead at all times).
    alpha, epsilon, level
        How sure one has to be, what is practically the same, and the level of the interval.
    """

    cast: Cast
    first: str
    second: str
    times: Floats
    clock: str
    ahead: Floats
    alike: Floats
    chance: Floats
    lower: Floats
    upper: Floats
    counted: Floats | None
    crossings: tuple[Crossing, ...]
    everywhere: float
    everywhere_reversed: float
    alpha: float
    epsilon: float
    level: float


def crossings_data(
    source: Source,
    first: str,
    second: str,
    *,
    alpha: float = 0.99,
    epsilon: float = 0.05,
    level: float = 0.95,
    rankings: Rankings | None = None,
) -> CrossingMap:
    """Who of two is ahead when, how surely, and where that changes.

    ``rankings``: how often the first was ahead in these is counted as well.

    >>> import polarbear as pb
    >>> truth = np.array([[0.0, 3.0], [0.0, 0.0], [3.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 50))
    >>> [crossing.then for crossing in crossings_data(posterior, "a1", "a2").crossings]
    ['a1']
    """
    posterior = posterior_of(source)
    if posterior is None:
        raise DataError("this race has not decided anything: there is no pair to look at yet")
    ahead = posterior.better(first, second)
    chance, (lower, upper) = posterior.win_probability(first, second, level)
    return CrossingMap(
        cast_of(source, alpha),
        first,
        second,
        posterior.times,
        posterior.clock,
        ahead,
        posterior.equivalent(first, second, epsilon),
        chance,
        lower,
        upper,
        None if rankings is None else rankings.win_rate(first, second),
        tuple(posterior.crossings(first, second, alpha)),
        posterior.better_everywhere(first, second),
        posterior.better_everywhere(second, first),
        alpha,
        epsilon,
        level,
    )


def crossings(
    source: Source | CrossingMap,
    first: str | None = None,
    second: str | None = None,
    ax: Axes | None = None,
    *,
    alpha: float = 0.99,
    rankings: Rankings | None = None,
    time: Time = "auto",
    columns: Columns = 1,
) -> Axes:
    """Draw who of two is ahead when, how surely, and where the lead changes hands.

    The line is P(the first is ahead): filled towards whoever leads. Bars at the top and the bottom
    are where that is certain, and grey is where the lead changes hands.

    >>> import polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 60))
    >>> crossings(posterior, "a1", "a2").get_ylabel()
    'P(a1 ahead of a2)'
    """
    if isinstance(source, CrossingMap):
        data = source
    elif first is None or second is None:
        raise DataError("crossings(posterior, first, second) takes the names of two algorithms")
    else:
        data = crossings_data(source, first, second, alpha=alpha, rankings=rankings)
    ax = axes(ax, columns)
    one, two = (data.cast.styles()[name] for name in (data.first, data.second))
    times, ahead = data.times, data.ahead
    single = len(times) == 1
    if single:
        ax.plot(times, ahead, "o", color=INK, markersize=5)
        ax.vlines(times, 0.5, ahead, color=(one if ahead[0] > 0.5 else two).colour, linewidth=4)
        ax.set_xticks(times, [moment(times[0], data.clock)])
    else:
        for style, side in ((one, ahead >= 0.5), (two, ahead <= 0.5)):
            fill = {"color": style.colour, "alpha": 0.25, "linewidth": 0, "interpolate": True}
            ax.fill_between(times, 0.5, ahead, where=side.tolist(), **fill)
        ax.plot(times, ahead, color=INK, linewidth=1.5)
    if data.counted is not None:
        ax.plot(times, data.counted, ".", color=FAINT, markersize=3)
    cells = edges(times, log=time_axis(ax, times, data.clock, time))
    if not single:
        cells = np.clip(cells, times[0], times[-1])
    for style, sure, y in ((one, ahead >= data.alpha, 1.04), (two, 1 - ahead >= data.alpha, -0.04)):
        turns = np.flatnonzero(np.diff(sure.astype(int), prepend=0, append=0))
        look = {"color": style.colour, "linewidth": 4, "clip_on": False}
        for start, stop in turns.reshape(-1, 2):
            ax.hlines(y, cells[start], cells[stop], **look)
    ax.axhline(0.5, color=INK, linewidth=0.5)
    ax.set_ylim(-0.08, 1.08)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.set_ylabel(f"P({shown(data.first)} ahead of {shown(data.second)})")
    _sides(ax, data)
    return ax


def _sides(ax: Axes, data: CrossingMap) -> None:
    """Say which side is whose, and where the lead changes."""
    one, two = (data.cast.styles()[name] for name in (data.first, data.second))
    place = {"transform": ax.transAxes, "fontsize": SMALL, "va": "center", "weight": "bold"}
    ax.text(1.02, 0.93, f"{shown(data.first)}\nahead", color=one.colour, **place)
    ax.text(1.02, 0.07, f"{shown(data.second)}\nahead", color=two.colour, **place)
    for change in data.crossings:
        ax.axvspan(change.until, change.since, color="#000000", alpha=0.08, linewidth=0)
    said = f"bars: certain (P > {data.alpha:g})"
    if data.crossings:
        said += ", grey: the lead changes"
    if data.counted is not None:
        said += ", dots: instances won"
    note(ax, said)
