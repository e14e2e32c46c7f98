"""What all figures share: sizes, axes, the axis of time, rows with names, and saying nothing."""

from collections.abc import Sequence
from importlib import import_module
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from polarbear._text import span
from polarbear.errors import DataError, require
from polarbear.plots.arguments import Floats
from polarbear.plots.colours import INK, Cast, Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any

Columns = Literal[1, 2]
Time = Literal["auto", "log", "linear"]

WIDTHS = {1: 3.4, 2: 7.0}
"""Inches of one and of two columns of a paper."""

TEXT, SMALL, TINY, LEAST = 8.0, 7.0, 6.0, 5.0
"""Sizes of text in points: of axes, of ticks and names, of notes, and the least that is read."""

FAINT = "#6e6e6e"
"""The colour of small print, and of names whose lines are grey."""

LOG_FROM = 100
"""Times that span such a factor are drawn on a log axis, as priors and grids have it."""

CLOCKS = {
    "time": "Time",
    "wall": "Wall-clock time (s)",
    "cpu": "CPU time (s)",
    "seconds": "Time (s)",
    "reported": "Time as reported",
}


def figsize(columns: Columns = 1, height: float | None = None) -> tuple[float, float]:
    """Width and height in inches of a figure for one or two columns of a paper.

    >>> figsize(), figsize(2, height=3.0)
    ((3.4, 2.4), (7.0, 3.0))
    """
    if columns not in WIDTHS:
        raise DataError(f"columns={columns!r}: a paper has figures of 1 or of 2 columns")
    return WIDTHS[columns], {1: 2.4, 2: 3.2}[columns] if height is None else height


def axes(ax: Any, columns: Columns, height: float | None = None) -> Axes:
    """The axes to draw on: those given, or new ones in a figure of their own."""
    pyplot = require("matplotlib.pyplot", extra="plots")
    if ax is not None and not hasattr(ax, "spines"):
        raise DataError(
            f"{ax!r} is no place to draw, which is axes of matplotlib; to save a figure, "
            'keep what is returned: ax = ...; ax.figure.savefig("figure.png", dpi=200)'
        )
    if ax is None:
        figure = import_module("polarbear.plots.embedding").PaperFigure
        size = figsize(columns, height)
        ax = pyplot.subplots(figsize=size, layout="constrained", FigureClass=figure)[1]
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=SMALL)
    ax.xaxis.label.set_size(TEXT)
    ax.yaxis.label.set_size(TEXT)
    return ax


def row_height(rows: int, columns: Columns, each: float = 0.15) -> float:
    """Inches for a figure with so many rows of names."""
    return max(figsize(columns)[1], 0.75 + each * rows)


def time_axis(ax: Axes, times: Floats, clock: str, scale: Time = "auto") -> bool:
    """Label the axis of time and choose its scale: whether it is a log scale."""
    if scale not in ("auto", "log", "linear"):
        raise DataError(f"time={scale!r}: expected 'auto', 'log' or 'linear'")
    first, last = float(times[0]), float(times[-1])
    if scale == "log" and not first > 0:
        raise DataError(
            f"a log axis has no place for {span(first, first, clock)}: use time='linear'"
        )
    wide = first > 0 and last >= LOG_FROM * first
    log = scale == "log" or (scale == "auto" and (wide or is_geometric(times)))
    ax.set_xlabel(clock_label(clock))
    if log:
        ax.set_xscale("log")
        log_ticks(ax.xaxis, first, last)
    elif last >= 10_000:
        ticker = require("matplotlib.ticker", extra="plots")
        ax.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        ax.xaxis.set_major_locator(ticker.MaxNLocator(6))
    if last > first:
        ax.set_xlim(first, last)
    return log


def is_geometric(times: Floats) -> bool:
    """Whether times are a log grid: their logarithms are far nearer to even spacing than they are.

    >>> is_geometric(np.geomspace(5, 50, 9)), is_geometric(np.linspace(5, 50, 9))
    (True, False)
    """
    if len(times) < 3 or not times[0] > 0:
        return False
    even = np.linspace(0, 1, len(times))

    def unevenness(place: Floats) -> float:
        return float(np.abs((place - place[0]) / (place[-1] - place[0]) - even).max())

    return unevenness(np.log(times)) < 0.25 * unevenness(times)


def log_ticks(axis: Any, first: float, last: float) -> None:
    """Labels of a log axis: powers of ten, or plain numbers on less than two decades.

    Left to itself matplotlib labels minor ticks too, in another size and on top of each other.
    """
    ticker = require("matplotlib.ticker", extra="plots")
    axis.set_minor_formatter(ticker.NullFormatter())
    decades = np.log10(last / first)
    if not 0 < decades < 2:
        return
    if decades < 0.5:  # next to linear
        axis.set_major_locator(ticker.MaxNLocator(4, steps=[1, 2, 5, 10]))
        axis.set_minor_locator(ticker.NullLocator())
    else:
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if decades <= 1 else (1, 3)))
    short = ticker.EngFormatter(sep="")
    axis.set_major_formatter(short if last >= 10_000 else lambda place, _: f"{place:,.6g}")


def clock_label(clock: str) -> str:
    """What the axis of time says."""
    return CLOCKS.get(clock, clock[:1].upper() + clock[1:])


def moment(time: float, clock: str) -> str:
    """A time, in words."""
    return f"time {time:,g}" if clock == "time" else span(time, time, clock)


def edges(times: Floats, *, log: bool) -> Floats:
    """Where cells begin and end that have the times in their middles."""
    place = np.log(times) if log else times
    if len(place) == 1:
        found = np.array([place[0] - 0.5, place[0] + 0.5])
    else:
        middle = (place[1:] + place[:-1]) / 2
        first, last = 2 * place[0] - middle[0], 2 * place[-1] - middle[-1]
        found = np.concatenate([[first], middle, [last]])
    return np.exp(found) if log else found


def line(style: Style) -> dict[str, Any]:
    """How matplotlib draws the line of an algorithm."""
    return {
        "color": style.colour,
        "linestyle": (0, style.dash) if style.dash else "-",
        "linewidth": 0.8 if style.muted else 1.5,
        "zorder": 2 if style.muted else 3,
    }


def rows(ax: Axes, names: Sequence[str], cast: Cast) -> None:
    """Names of rows at the left, the first on top, in the colours of the cast."""
    styles = cast.styles()
    size = fitting(ax, len(names))
    ax.set_yticks(range(len(names)), list(map(shown, names)), fontsize=size)
    for label, name in zip(ax.get_yticklabels(), names, strict=True):
        label.set_color(ink(styles[name]))
    ax.set_ylim(len(names) - 0.4, -0.75)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def dots(
    ax: Axes, names: Sequence[str], mean: Floats, lower: Floats, upper: Floats, cast: Cast
) -> None:
    """A row for each name: a mark at the mean, a bar for the interval."""
    styles = cast.styles()
    for row, name in enumerate(names):
        style = styles[name]
        ax.plot([lower[row], upper[row]], [row, row], color=style.colour, linewidth=1.8)
        ax.plot(mean[row], row, style.marker, color=style.colour, markersize=4)
    rows(ax, names, cast)


def fitting(ax: Axes, lines: int) -> float:
    """The size of text of which so many lines fit beside the axes."""
    return float(np.clip(0.85 * points(ax)[1] / max(lines, 1), LEAST, SMALL))


def points(ax: Axes) -> tuple[float, float]:
    """Width and height of axes in points, as they are laid out by now."""
    box = ax.get_window_extent()
    return box.width * 72 / ax.figure.dpi, box.height * 72 / ax.figure.dpi


def shown(name: str, most: int = 24) -> str:
    r"""A name as matplotlib should write it: as it is, but not too long, and never as mathematics.

    >>> shown("a$b$"), shown("x" * 30)
    ('a\\$b\\$', 'xxxxxxxxxxxxxxxxxxxxxxx…')
    """
    short = " ".join(name.split())
    short = short if len(short) <= most else short[: most - 1] + "…"
    return short.replace("$", r"\$")


def ink(style: Style) -> str:
    """The colour of a name: that of its line, but grey that can be read."""
    return FAINT if style.muted else style.colour


def lay_out(ax: Axes) -> None:
    """Let the figure find its layout, for what depends on the size of axes."""
    figure: Any = ax.figure.figure  # also of axes in a subfigure
    figure.draw_without_rendering()


def note(ax: Axes, said: str) -> None:
    """Small print above the axes: what is what, in as many lines as it takes."""
    said = fill(said, max(20, int(points(ax)[0] / (0.5 * TINY))))
    place = {"transform": ax.transAxes, "va": "bottom", "fontsize": TINY, "color": FAINT}
    ax.text(0.0, 1.02, said, **place)


def bar(ax: Axes, shades: Any, label: str, pad: float = 0.03) -> Any:
    """A colour bar at the right."""
    found = ax.figure.colorbar(shades, ax=ax, pad=pad, fraction=0.06, aspect=25)
    found.set_label(label, fontsize=SMALL)
    found.ax.tick_params(labelsize=SMALL)
    found.outline.set_visible(False)
    return found


def nothing(ax: Axes, why: str) -> Axes:
    """Axes that say why there is nothing to see."""
    ax.set_axis_off()
    ax.text(
        0.5, 0.5, why, transform=ax.transAxes, ha="center", va="center", fontsize=TEXT, color=INK
    )
    return ax


UNDECIDED = "Nothing has been decided yet:\nno round of this race is complete."
