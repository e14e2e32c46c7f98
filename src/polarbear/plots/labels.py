"""Placement of names beside the ends of their lines, without overlaps."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from polarbear.data.colours import Style
from polarbear.plots.arguments import Floats
from polarbear.plots.canvas import (
    MIN_FONT_POINTS,
    NOTE_COLOUR,
    TICK_FONT_POINTS,
    Axes,
    compute_layout,
    format_name,
    get_text_colour,
    measure_axes,
)

LINE_SPACING = 1.3
"""Distance between lines of text, in multiples of the font size."""


def space_apart(wanted: ArrayLike, gap: float, low: float = 0.0, high: float = 1.0) -> Floats:
    """Move positions at least ``gap`` apart, within bounds and in the same order.

    The result is nearest to ``wanted`` by squared distance: isotonic regression by the
    pool-adjacent-violators algorithm. If they do not fit, positions are spaced evenly.

    >>> space_apart([0.5, 0.5, 0.9], 0.2).round(3)
    array([0.4, 0.6, 0.9])
    >>> space_apart([0.0, 0.0, 0.1], 0.2).round(3)
    array([0. , 0.2, 0.4])
    """
    places = np.asarray(wanted, dtype=np.float64)
    if not len(places):
        return places
    order = np.argsort(places, kind="stable")
    gap = min(gap, (high - low) / max(1, len(places) - 1))
    steps = gap * np.arange(len(places))
    # With k * gap subtracted, positions only have to increase: pool neighbours that do not.
    pools: list[tuple[float, int]] = []
    for value in (places[order] - steps).tolist():
        mean, size = value, 1
        while pools and pools[-1][0] > mean:
            before, pooled = pools.pop()
            mean, size = (before * pooled + mean * size) / (pooled + size), pooled + size
        pools.append((mean, size))
    isotonic = np.concatenate([np.full(size, mean) for mean, size in pools])
    positions = np.empty_like(places)
    positions[order] = np.clip(isotonic, low, max(low, high - steps[-1])) + steps
    return positions


class LineEnd(NamedTuple):
    """A name to write at the end of a line, with the end's coordinates and the style."""

    name: str
    x: float
    y: float
    style: Style


def label_line_ends(
    ax: Axes, ends: Sequence[LineEnd], others: str = "", x: float = 1.02, low: float = 0.0
) -> None:
    """Write names beside the ends of their lines, without overlaps.

    ``x`` and ``low`` (the lowest height of a name) are fractions of the axes. If not all names
    fit, those of the highest lines are written. ``others`` is written for the lines without a
    name. Set the limits of the axes before.
    """
    if not ends and not others:
        return
    compute_layout(ax)
    height = measure_axes(ax)[1]
    size = float(
        np.clip(
            height / (LINE_SPACING * (len(ends) + bool(others))), MIN_FONT_POINTS, TICK_FONT_POINTS
        )
    )
    gap = LINE_SPACING * size / height
    room = max(1, int((1 - low) / gap + 1e-9) + 1 - bool(others))
    if len(ends) > room:
        ends = sorted(ends, key=lambda end: -end.y)[: room - (not others)]
        others = others or "..."
    to_axes = ax.transData + ax.transAxes.inverted()
    at = np.array([to_axes.transform((end.x, end.y)) for end in ends]).reshape(-1, 2)
    places = space_apart(np.clip(at[:, 1], 0, 1), gap, low + gap * bool(others), 1.0)
    moved = np.abs(places - at[:, 1]) > 0.3 * gap
    x += 0.03 * bool(moved.any())  # room for leader lines
    for end, point, place, is_moved in zip(ends, at, places, moved, strict=True):
        leader = {"arrowstyle": "-", "color": get_text_colour(end.style), "linewidth": 0.4}
        ax.annotate(
            format_name(end.name),
            tuple(point),
            (x, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            fontsize=size,
            color=get_text_colour(end.style),
            va="center",
            annotation_clip=False,
            arrowprops=leader | {"shrinkA": 0, "shrinkB": 1, "relpos": (0, 0.5)}
            if is_moved
            else None,
        )
    if others:
        ax.text(
            x,
            0.0,
            others,
            transform=ax.transAxes,
            fontsize=size,
            color=NOTE_COLOUR,
            va="center",
        )
