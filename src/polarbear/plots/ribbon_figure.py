"""Figure of the ribbon: what to run if you stop here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polarbear._text import format_time
from polarbear.data.colours import TEXT_COLOUR
from polarbear.inference.ribbon import CERTAIN, Ribbon
from polarbear.inference.ribbon_pictures import (
    CAPTION,
    UNCERTAIN_NOTE,
    blend,
    choose_ink,
    get_ribbon_styles,
)
from polarbear.plots.arguments import PosteriorSource, get_cast, get_posterior, get_times
from polarbear.plots.canvas import (
    NO_DECISION_MESSAGE,
    NOTE_COLOUR,
    NOTE_FONT_POINTS,
    TICK_FONT_POINTS,
    Axes,
    OneOrTwo,
    TimeScale,
    compute_layout,
    describe_time,
    format_clock,
    format_name,
    measure_axes,
    prepare_axes,
    set_time_axis,
    show_message,
)

HEIGHT_INCHES = 0.8
LETTER_WIDTH = 0.66
"""The width of a bold letter, in multiples of the font size."""


def ribbon_data(source: PosteriorSource, *, time: TimeScale = "auto") -> Ribbon:
    """Compute who leads at each time, with what probability, and when the leader changes.

    Parameters
    ----------
    source
        A posterior or a race.
    time
        The scale of the time axis, "log" or "linear"; "auto" is log from a factor of 100 on, and
        for a log grid.

    Examples
    --------
    >>> import polarbear as pb
    >>> truth = np.array([[3.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    >>> rankings = pb.simulation.simulate_rankings(truth, 50, times=np.array([1.0, 10.0, 100.0]))
    >>> ribbon_data(pb.fit(rankings)).switches
    [32.0]
    """
    posterior = get_posterior(source)
    times, clock = get_times(source)
    is_log = None if time == "auto" else time == "log"
    if posterior is None:
        return Ribbon.of((), times, clock, np.zeros((len(times), 0)), is_log)
    found = Ribbon.of(posterior.algorithms, times, clock, posterior.prob_best(), is_log)
    return replace(found, others=() if posterior is source else get_cast(source).names)


def ribbon(
    source: PosteriorSource | Ribbon,
    ax: Axes | None = None,
    *,
    time: TimeScale = "auto",
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw what to run if you stop here: the leader at each time, and where it changes.

    A cell is paler the less certain its leader is, and hatched below 95 %.

    Parameters
    ----------
    source
        A posterior, a race, or a result of :func:`ribbon_data`.
    ax
        Axes to draw on; by default those of a new figure.
    time
        As in :func:`ribbon_data`.
    columns
        Width of a new figure, in columns of a paper.

    Examples
    --------
    >>> import polarbear as pb
    >>> truth = np.array([[3.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    >>> rankings = pb.simulation.simulate_rankings(truth, 50, times=np.array([1.0, 10.0, 100.0]))
    >>> [text.get_text() for text in ribbon(pb.fit(rankings)).texts]
    ['a1', 'a2', 'What to run if you stop here']
    """
    data = source if isinstance(source, Ribbon) else ribbon_data(source, time=time)
    ax = prepare_axes(ax, columns, HEIGHT_INCHES)
    if not data.algorithms:
        return show_message(ax, NO_DECISION_MESSAGE)
    ax.set_ylim(0, 1)
    ax.set_yticks([])
    ax.spines[["left", "bottom"]].set_visible(False)
    edges, styles = data.edges, get_ribbon_styles(data)
    if len(data.times) == 1:
        edges = np.array([-0.5, 0.5])
        ax.set_xticks([0.0], [describe_time(float(data.times[0]), data.clock)])
    else:
        set_time_axis(ax, data.times, data.clock, "log" if data.is_log else "linear")
        _label_switches(ax, data)
    for t, code in enumerate(data.top[:, 0].tolist()):
        colour = styles[data.algorithms[code]].colour
        is_certain = data.probability[t, 0] >= CERTAIN
        ax.axvspan(
            edges[t],
            edges[t + 1],
            facecolor=blend(colour, float(data.opacity[t])),
            edgecolor="white",
            linewidth=0,
            hatch=None if is_certain else "/////",
        )
    _label_cells(ax, data, edges)
    style = {"transform": ax.transAxes, "va": "bottom", "fontsize": TICK_FONT_POINTS}
    ax.text(0.0, 1.05, CAPTION, color=TEXT_COLOUR, **style)
    if (data.probability[:, 0] < CERTAIN).any():
        style["fontsize"] = NOTE_FONT_POINTS
        ax.text(1.0, 1.05, f"hatched: {UNCERTAIN_NOTE}", ha="right", color=NOTE_COLOUR, **style)
    return ax


def _label_cells(ax: Axes, data: Ribbon, edges: np.ndarray) -> None:
    """Draw the boundaries, and write the names of leaders where they fit."""
    compute_layout(ax)
    width, styles = measure_axes(ax)[0], get_ribbon_styles(data)
    for one in data.leads:
        name, low, high = data.algorithms[one.algorithm], edges[one.first], edges[one.last + 1]
        if one.first:
            ax.axvline(low, color="white", linewidth=1.2)
        ends = ax.transAxes.inverted().transform(ax.transData.transform([(low, 0.5), (high, 0.5)]))
        room = (ends[1, 0] - ends[0, 0]) * width
        text = format_name(name)
        if LETTER_WIDTH * TICK_FONT_POINTS * len(text) + 3 > room:
            continue
        middle = (one.first + one.last) // 2
        ground = blend(styles[name].colour, float(data.opacity[middle]))
        label = ax.text(
            float(ends[:, 0].mean()),
            0.5,
            text,
            transform=ax.transAxes,
            ha="center",
            va="center",
            fontsize=TICK_FONT_POINTS,
            fontweight="bold",
            color=choose_ink(ground),
        )
        if one.least < CERTAIN:  # on hatches a name needs a ground of its own
            label.set_bbox({"facecolor": ground, "edgecolor": "none", "pad": 0.6})


def _label_switches(ax: Axes, data: Ribbon) -> None:
    """Label the ends of the axis and the times at which the leader changes, where these fit."""
    compute_layout(ax)
    width = measure_axes(ax)[0]
    times = [float(data.times[0]), *data.switches, float(data.times[-1])]
    labels = [format_time(one, data.clock) for one in times]
    half = [0.3 * TICK_FONT_POINTS * len(text) + 2 for text in labels]
    place = (np.clip(data.place(np.array(times)), 0, 1) * width).tolist()
    shown = [0]
    for k in range(1, len(times) - 1):
        after_last = place[k] - half[k] > place[shown[-1]] + half[shown[-1]]
        if after_last and place[k] + half[k] < place[-1] - half[-1]:
            shown.append(k)
    shown.append(len(times) - 1)
    ax.set_xticks([times[k] for k in shown], [labels[k] for k in shown])
    ax.set_xticks([], minor=True)
    ax.set_xlabel(format_clock(data.clock))
