"""Figure of one pair over time: the probability that the first leads, and where it changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polarbear._text import format_time
from polarbear.data.colours import TEXT_COLOUR, Cast
from polarbear.data.frozen import FrozenRecord
from polarbear.data.rankings import Rankings
from polarbear.errors import DataError
from polarbear.inference.e_values import bound_win_rate
from polarbear.inference.pairs import Crossing, find_crossings
from polarbear.plots.arguments import Floats, PosteriorSource, get_cast, get_posterior
from polarbear.plots.canvas import (
    NOTE_COLOUR,
    TICK_FONT_POINTS,
    Axes,
    OneOrTwo,
    TimeScale,
    add_note,
    compute_cell_edges,
    format_name,
    prepare_axes,
    set_time_axis,
)


@dataclass(frozen=True, eq=False)
class CrossingMap(FrozenRecord):
    """The probabilities over time that each of two algorithms leads.

    Attributes
    ----------
    cast
        All algorithms.
    first, second
        The two algorithms that are compared.
    times, clock
        The grid of times.
    ahead
        Shape (T,): P(the rating of the first exceeds that of the second).
    alike
        Shape (T,): P(the two are practically equivalent).
    chance, lower, upper
        Shape (T,): P(the first wins on a new instance), and a credible interval of it.
    counted
        Shape (T,): the observed share of instances that the first won, if rankings were given.
    anytime_lower, anytime_upper
        Shape (T,): a confidence sequence of the win probability, if rankings were given. It holds
        at each time with probability ``level``, however often instances were added before.
    crossings
        The crossings that are certain: periods in which the lead passes from one to the other.
    everywhere, everywhere_reversed
        P(first ahead at all times), and P(second ahead at all times).
    certainty, epsilon, level
        The required certainty, the margin of equivalence, and the level of the interval.
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
    anytime_lower: Floats | None
    anytime_upper: Floats | None
    crossings: tuple[Crossing, ...]
    everywhere: float
    everywhere_reversed: float
    certainty: float
    epsilon: float
    level: float


def crossings_data(
    source: PosteriorSource,
    first: str,
    second: str,
    *,
    certainty: float = 0.95,
    epsilon: float = 0.05,
    level: float = 0.95,
    rankings: Rankings | None = None,
) -> CrossingMap:
    """Compute when each of two algorithms leads, with what probability, and where they cross.

    If ``rankings`` are given, the share of instances that the first won is computed as well, with
    a confidence sequence: bounds that stay valid while instances are added and data are analysed
    again, which credible intervals do not.

    >>> import polarbear as pb
    >>> truth = np.array([[0.0, 3.0], [0.0, 0.0], [3.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 50))
    >>> [crossing.then for crossing in crossings_data(posterior, "a1", "a2").crossings]
    ['a1']
    """
    posterior = get_posterior(source)
    if posterior is None:
        raise DataError(
            "this race has no decision yet: a pair can be compared after its first round"
        )
    ahead = posterior.prob_better(first, second)
    counted = anytime_lower = anytime_upper = None
    if rankings is not None:
        if not np.array_equal(rankings.times, posterior.times):
            raise DataError("the rankings have other times than the posterior: rank at its times")
        counted = rankings.win_rate(first, second)
        anytime_lower, anytime_upper = bound_win_rate(rankings, first, second, level)
    chance, (lower, upper) = posterior.win_probability(first, second, level)
    return CrossingMap(
        cast=get_cast(source, certainty),
        first=first,
        second=second,
        times=posterior.times,
        clock=posterior.clock,
        ahead=ahead,
        alike=posterior.prob_equivalent(first, second, epsilon),
        chance=chance,
        lower=lower,
        upper=upper,
        counted=counted,
        anytime_lower=anytime_lower,
        anytime_upper=anytime_upper,
        crossings=tuple(find_crossings(posterior, first, second, certainty)),
        everywhere=posterior.prob_dominates(first, second),
        everywhere_reversed=posterior.prob_dominates(second, first),
        certainty=certainty,
        epsilon=epsilon,
        level=level,
    )


def crossings(
    source: PosteriorSource | CrossingMap,
    first: str | None = None,
    second: str | None = None,
    ax: Axes | None = None,
    *,
    certainty: float = 0.95,
    rankings: Rankings | None = None,
    time: TimeScale = "auto",
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw when each of two algorithms leads, with what probability, and where they cross.

    The line is P(the first is ahead), filled in the colour of the leading algorithm. Bars at the
    top and the bottom mark where the lead is certain, and grey marks where it changes. With
    ``rankings``, dots are the share of instances that the first won, and thin lines bound the
    probability of a win: a confidence sequence, valid however often data were added and analysed.

    >>> import polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 60))
    >>> crossings(posterior, "a1", "a2").get_ylabel()
    'P(a1 ahead of a2)'
    """
    if isinstance(source, CrossingMap):
        data = source
    elif first is None or second is None:
        raise DataError(
            "the names of two algorithms are missing: call crossings(posterior, first, second)"
        )
    else:
        data = crossings_data(source, first, second, certainty=certainty, rankings=rankings)
    ax = prepare_axes(ax, columns)
    one, two = (data.cast.styles()[name] for name in (data.first, data.second))
    times, ahead = data.times, data.ahead
    single = len(times) == 1
    if single:
        ax.plot(times, ahead, "o", color=TEXT_COLOUR, markersize=5)
        ax.vlines(times, 0.5, ahead, color=(one if ahead[0] > 0.5 else two).colour, linewidth=4)
        ax.set_xticks(times, [format_time(times[0], data.clock)])
    else:
        for style, side in ((one, ahead >= 0.5), (two, ahead <= 0.5)):
            fill = {"color": style.colour, "alpha": 0.25, "linewidth": 0, "interpolate": True}
            ax.fill_between(times, 0.5, ahead, where=side.tolist(), **fill)
        ax.plot(times, ahead, color=TEXT_COLOUR, linewidth=1.5)
    if data.counted is not None:
        ax.plot(times, data.counted, ".", color=NOTE_COLOUR, markersize=3)
        for bound in (data.anytime_lower, data.anytime_upper):
            if bound is not None:
                mark = "_" if single else "-"
                ax.plot(times, bound, mark, color=NOTE_COLOUR, linewidth=0.6)
    cells = compute_cell_edges(times, log=set_time_axis(ax, times, data.clock, time))
    if not single:
        cells = np.clip(cells, times[0], times[-1])
    for style, is_certain, y in (
        (one, ahead >= data.certainty, 1.04),
        (two, 1 - ahead >= data.certainty, -0.04),
    ):
        turns = np.flatnonzero(np.diff(is_certain.astype(int), prepend=0, append=0))
        bar_style = {"color": style.colour, "linewidth": 4, "clip_on": False}
        for start, stop in turns.reshape(-1, 2):
            ax.hlines(y, cells[start], cells[stop], **bar_style)
    ax.axhline(0.5, color=TEXT_COLOUR, linewidth=0.5)
    ax.set_ylim(-0.08, 1.08)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.set_ylabel(f"P({format_name(data.first)} ahead of {format_name(data.second)})")
    _label_sides(ax, data)
    return ax


def _label_sides(ax: Axes, data: CrossingMap) -> None:
    """Write which side of the figure means which algorithm, and mark changes of the lead."""
    one, two = (data.cast.styles()[name] for name in (data.first, data.second))
    place = {
        "transform": ax.transAxes,
        "fontsize": TICK_FONT_POINTS,
        "va": "center",
        "weight": "bold",
    }
    ax.text(1.02, 0.93, f"{format_name(data.first)}\nahead", color=one.colour, **place)
    ax.text(1.02, 0.07, f"{format_name(data.second)}\nahead", color=two.colour, **place)
    for change in data.crossings:
        ax.axvspan(change.until, change.since, color="#000000", alpha=0.08, linewidth=0)
    text = f"bars: certain (P > {data.certainty:g})"
    if data.crossings:
        text += ", grey: the lead changes"
    if data.counted is not None:
        text += f", dots: instances won, thin: their {data.level:.0%} confidence sequence"
    add_note(ax, text)
