"""Names at the ends of lines, near where they belong and never on top of each other."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from polarbear.plots.arguments import Floats
from polarbear.plots.canvas import FAINT, LEAST, SMALL, Axes, ink, lay_out, points, shown
from polarbear.plots.colours import Style

LEADING = 1.3
"""From one line of text to the next, in sizes of the text."""


def spread(wanted: ArrayLike, gap: float, low: float = 0.0, high: float = 1.0) -> Floats:
    """Places at least ``gap`` apart, between ``low`` and ``high``, nearest to those wanted.

    Nearest by squared distance, in the order of what is wanted. If there is no room for so many,
    they share the room evenly.

    >>> spread([0.5, 0.5, 0.9], 0.2).round(3)
    array([0.4, 0.6, 0.9])
    >>> spread([0.0, 0.0, 0.1], 0.2).round(3)
    array([0. , 0.2, 0.4])
    """
    places = np.asarray(wanted, dtype=np.float64)
    if not len(places):
        return places
    order = np.argsort(places, kind="stable")
    gap = min(gap, (high - low) / max(1, len(places) - 1))
    steps = gap * np.arange(len(places))
    # Without its steps the answer only has to rise: neighbours that do not are pooled.
    pools: list[tuple[float, int]] = []
    for value in (places[order] - steps).tolist():
        mean, size = value, 1
        while pools and pools[-1][0] > mean:
            before, many = pools.pop()
            mean, size = (before * many + mean * size) / (many + size), many + size
        pools.append((mean, size))
    risen = np.concatenate([np.full(size, mean) for mean, size in pools])
    found = np.empty_like(places)
    found[order] = np.clip(risen, low, max(low, high - steps[-1])) + steps
    return found


class End(NamedTuple):
    """A name, where its line ends (in data coordinates), and its look."""

    name: str
    x: float
    y: float
    style: Style


def line_ends(
    ax: Axes, ends: Sequence[End], others: str = "", x: float = 1.02, low: float = 0.0
) -> None:
    """Write names beside the ends of their lines, at ``x`` in widths of the axes.

    None of them is below ``low``, in heights of the axes. Of more names than fit, those of the
    highest lines are written. ``others`` stands for lines without a name. The limits of the axes
    must be final.
    """
    if not ends and not others:
        return
    lay_out(ax)
    height = points(ax)[1]
    size = float(np.clip(height / (LEADING * (len(ends) + bool(others))), LEAST, SMALL))
    gap = LEADING * size / height
    room = max(1, int((1 - low) / gap + 1e-9) + 1 - bool(others))
    if len(ends) > room:
        ends = sorted(ends, key=lambda end: -end.y)[: room - (not others)]
        others = others or "..."
    to_axes = ax.transData + ax.transAxes.inverted()
    at = np.array([to_axes.transform((end.x, end.y)) for end in ends]).reshape(-1, 2)
    places = spread(np.clip(at[:, 1], 0, 1), gap, low + gap * bool(others), 1.0)
    moved = np.abs(places - at[:, 1]) > 0.3 * gap
    x += 0.03 * bool(moved.any())  # room for lines that lead to names
    for end, point, place, far in zip(ends, at, places, moved, strict=True):
        leader = {"arrowstyle": "-", "color": ink(end.style), "linewidth": 0.4}
        ax.annotate(
            shown(end.name),
            tuple(point),
            (x, place),
            xycoords="axes fraction",
            textcoords="axes fraction",
            fontsize=size,
            color=ink(end.style),
            va="center",
            annotation_clip=False,
            arrowprops=leader | {"shrinkA": 0, "shrinkB": 1, "relpos": (0, 0.5)} if far else None,
        )
    if others:
        ax.text(
            x,
            0.0,
            others,
            transform=ax.transAxes,
            fontsize=size,
            color=FAINT,
            va="center",
        )
