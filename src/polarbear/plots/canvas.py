"""Parts that figures share: sizes, axes, the time axis, rows of names, notes and messages."""

from collections.abc import Sequence
from importlib import import_module
from os import PathLike
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from polarbear._text import capitalise, choose_precision, format_range, format_time
from polarbear.data.colours import TEXT_COLOUR, Cast, Style
from polarbear.data.time_axis import is_log_axis
from polarbear.errors import DataError, require
from polarbear.plots.arguments import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    Axes = Any

OneOrTwo = Literal[1, 2]
TimeScale = Literal["auto", "log", "linear"]

COLUMN_WIDTH_INCHES = {1: 3.4, 2: 7.0}
"""Width of one and of two columns of a paper."""

AXIS_FONT_POINTS, TICK_FONT_POINTS, NOTE_FONT_POINTS, MIN_FONT_POINTS = 8.0, 7.0, 6.0, 5.0
"""Font sizes in points: axis labels, ticks and names, notes, and the smallest legible size."""

NOTE_COLOUR = "#6e6e6e"
"""The colour of notes, and of names whose lines are grey."""

CLOCK_LABELS = {
    "time": "Time",
    "wall": "Wall-clock time (s)",
    "cpu": "CPU time (s)",
    "seconds": "Time (s)",
    "dollars": "Cost (dollars)",
    "reported": "Time as reported",
}


def figsize(columns: OneOrTwo = 1, height: float | None = None) -> tuple[float, float]:
    """Return width and height in inches of a figure for one or two columns of a paper.

    >>> figsize(), figsize(2, height=3.0)
    ((3.4, 2.4), (7.0, 3.0))
    """
    if columns not in COLUMN_WIDTH_INCHES:
        raise DataError("expected 1 or 2, the columns of a paper", columns=columns)
    return COLUMN_WIDTH_INCHES[columns], {1: 2.4, 2: 3.2}[columns] if height is None else height


def save_figure(ax: Any, path: str | PathLike[str], **options: Any) -> Path:
    """Save a figure as journals require: TrueType fonts in PDF and PostScript, text in SVG.

    Figures that PolarBear makes are saved so by their own ``savefig``. This function is for axes
    that you made yourself, and leaves the settings of matplotlib as they are.

    Parameters
    ----------
    ax
        Axes, or a figure.
    path
        The file; its ending is the format.
    options
        Options of matplotlib's ``savefig``, such as ``dpi=300``.

    Examples
    --------
    >>> from matplotlib import pyplot
    >>> figure, ax = pyplot.subplots(figsize=figsize(1))
    >>> path = save_figure(ax, "figure.pdf")
    >>> b"/Type3" in path.read_bytes()
    False
    >>> path.unlink(); pyplot.close(figure)
    """
    embedding = _load_embedding()
    figure = getattr(ax, "figure", ax)
    if not hasattr(figure, "savefig"):
        raise DataError(f"ax must be matplotlib Axes or a Figure, got {ax!r}")
    embedding.save_with_text(figure, path, **options)
    return Path(path)


def _load_embedding() -> Any:
    """Import ``plots.embedding``; raise an error with advice if matplotlib is missing."""
    require("matplotlib.pyplot", extra="plots")
    return import_module("polarbear.plots.embedding")


def prepare_axes(ax: Any, columns: OneOrTwo, height: float | None = None) -> Axes:
    """Return the axes to draw on: those given, or new ones in a new figure."""
    pyplot = require("matplotlib.pyplot", extra="plots")
    if ax is not None and not hasattr(ax, "spines"):
        raise DataError(
            f"ax must be matplotlib Axes, got {ax!r}; to save a figure, use the axes that the "
            'function returns: ax = ...; ax.figure.savefig("figure.png", dpi=200)'
        )
    if ax is None:
        figure = _load_embedding().PaperFigure
        size = figsize(columns, height)
        ax = pyplot.subplots(figsize=size, layout="constrained", FigureClass=figure)[1]
    return _set_axes_style(ax)


def prepare_panels(n_rows: int, n_columns: int, columns: OneOrTwo, height: float) -> list[Axes]:
    """Return new axes with common scales in a new figure, row by row."""
    figure = _load_embedding().PaperFigure
    pyplot = require("matplotlib.pyplot", extra="plots")
    _, panels = pyplot.subplots(
        n_rows,
        n_columns,
        figsize=figsize(columns, height),
        layout="constrained",
        sharex=True,
        sharey=True,
        squeeze=False,
        FigureClass=figure,
    )
    return [_set_axes_style(ax) for ax in panels.flat]


def _set_axes_style(ax: Any) -> Axes:
    """Set the spines and the font sizes that all figures share."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=TICK_FONT_POINTS)
    ax.xaxis.label.set_size(AXIS_FONT_POINTS)
    ax.yaxis.label.set_size(AXIS_FONT_POINTS)
    return ax


def compute_height(rows: int, columns: OneOrTwo, each: float = 0.15) -> float:
    """Return the height in inches of a figure with a number of rows."""
    return max(figsize(columns)[1], 0.75 + each * rows)


def set_time_axis(ax: Axes, times: Floats, clock: str, scale: TimeScale = "auto") -> bool:
    """Label the time axis and choose its scale; return whether the scale is logarithmic."""
    if scale not in ("auto", "log", "linear"):
        raise DataError("expected 'auto', 'log' or 'linear'", time=scale)
    first, last = float(times[0]), float(times[-1])
    if scale == "log" and not first > 0:
        raise DataError(
            f"a log axis cannot show {format_range(first, first, clock)}: use time='linear'"
        )
    log = scale == "log" or (scale == "auto" and is_log_axis(times))
    ax.set_xlabel(format_clock(clock))
    if log:
        ax.set_xscale("log")
        set_log_ticks(ax.xaxis, first, last)
    elif last >= 10_000:
        ticker = require("matplotlib.ticker", extra="plots")
        ax.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        ax.xaxis.set_major_locator(ticker.MaxNLocator(6))
    if choose_precision(clock) == "reciprocal":
        ax.xaxis.set_major_formatter(lambda value, _: format_time(value, clock))
    if last > first:
        ax.set_xlim(first, last)
    return log


def set_log_ticks(axis: Any, first: float, last: float) -> None:
    """Label a log axis with powers of ten, or with plain numbers if it spans less than two decades.

    By default matplotlib labels minor ticks too, in another size, and the labels overlap.
    """
    ticker = require("matplotlib.ticker", extra="plots")
    axis.set_minor_formatter(ticker.NullFormatter())
    decades = np.log10(last / first)
    if not 0 < decades < 2:
        return
    if decades < 0.5:  # nearly linear
        axis.set_major_locator(ticker.MaxNLocator(4, steps=[1, 2, 5, 10]))
        axis.set_minor_locator(ticker.NullLocator())
    else:
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5) if decades <= 1 else (1, 3)))
    short = ticker.EngFormatter(sep="")
    axis.set_major_formatter(short if last >= 10_000 else lambda value, _: f"{value:,.6g}")


def format_clock(clock: str) -> str:
    """Return the label of the time axis for a clock."""
    return CLOCK_LABELS.get(clock, capitalise(clock))


def describe_time(time: float, clock: str) -> str:
    """Return a time with its unit as text."""
    return f"time {time:,g}" if clock == "time" else format_range(time, time, clock)


def compute_cell_edges(times: Floats, *, log: bool) -> Floats:
    """Return the edges of cells whose centres are the given times."""
    position = np.log(times) if log else times
    if len(position) == 1:
        cell_edges = np.array([position[0] - 0.5, position[0] + 0.5])
    else:
        midpoints = (position[1:] + position[:-1]) / 2
        first, last = 2 * position[0] - midpoints[0], 2 * position[-1] - midpoints[-1]
        cell_edges = np.concatenate([[first], midpoints, [last]])
    return np.exp(cell_edges) if log else cell_edges


def get_line_options(style: Style) -> dict[str, Any]:
    """Return matplotlib's options for the line of an algorithm, from its style."""
    return {
        "color": style.colour,
        "linestyle": (0, style.dash) if style.dash else "-",
        "linewidth": 0.8 if style.muted else 1.5,
        "zorder": 2 if style.muted else 3,
    }


def label_rows(ax: Axes, names: Sequence[str], cast: Cast) -> None:
    """Write the names of rows at the left, the first on top, in the algorithms' colours."""
    styles = cast.styles()
    size = choose_font_size(ax, len(names))
    ax.set_yticks(range(len(names)), list(map(format_name, names)), fontsize=size)
    for label, name in zip(ax.get_yticklabels(), names, strict=True):
        label.set_color(get_text_colour(styles[name]))
    ax.set_ylim(len(names) - 0.4, -0.75)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def draw_intervals(
    ax: Axes, names: Sequence[str], mean: Floats, lower: Floats, upper: Floats, cast: Cast
) -> None:
    """Draw a row for each name, with a mark at its mean and a bar for its interval."""
    styles = cast.styles()
    for row, name in enumerate(names):
        style = styles[name]
        ax.plot([lower[row], upper[row]], [row, row], color=style.colour, linewidth=1.8)
        ax.plot(mean[row], row, style.marker, color=style.colour, markersize=4)
    label_rows(ax, names, cast)


def choose_font_size(ax: Axes, lines: int) -> float:
    """Return the font size at which a number of text lines fits beside the axes."""
    return float(
        np.clip(0.85 * measure_axes(ax)[1] / max(lines, 1), MIN_FONT_POINTS, TICK_FONT_POINTS)
    )


def measure_axes(ax: Axes) -> tuple[float, float]:
    """Return the width and height of the axes in points, in the present layout."""
    box = ax.get_window_extent()
    return box.width * 72 / ax.figure.dpi, box.height * 72 / ax.figure.dpi


def format_name(name: str, max_length: int = 24) -> str:
    r"""Shorten a name, and escape dollar signs, which matplotlib would read as mathematics.

    >>> format_name("a$b$"), format_name("x" * 30)
    ('a\\$b\\$', 'xxxxxxxxxxxxxxxxxxxxxxx…')
    """
    short = " ".join(name.split())
    short = short if len(short) <= max_length else short[: max_length - 1] + "…"
    return short.replace("$", r"\$")


def get_text_colour(style: Style) -> str:
    """Return the colour of an algorithm's name: that of its line, darker if that is grey."""
    return NOTE_COLOUR if style.muted else style.colour


def compute_layout(ax: Axes) -> None:
    """Compute the layout of the figure, so that the size of the axes is known."""
    figure: Any = ax.figure.figure  # also of axes in a subfigure
    figure.draw_without_rendering()


def add_note(ax: Axes, text: str) -> None:
    """Write a note above the axes, wrapped to their width."""
    text = fill(text, max(20, int(measure_axes(ax)[0] / (0.56 * NOTE_FONT_POINTS))))
    place = {
        "transform": ax.transAxes,
        "va": "bottom",
        "fontsize": NOTE_FONT_POINTS,
        "color": NOTE_COLOUR,
    }
    ax.text(0.0, 1.02, text, **place)


def add_colour_bar(ax: Axes, mappable: Any, label: str, pad: float = 0.03) -> Any:
    """Add a colour bar at the right of the axes, and return it."""
    colour_bar = ax.figure.colorbar(mappable, ax=ax, pad=pad, fraction=0.06, aspect=25)
    colour_bar.set_label(label, fontsize=TICK_FONT_POINTS)
    colour_bar.ax.tick_params(labelsize=TICK_FONT_POINTS)
    colour_bar.outline.set_visible(False)
    return colour_bar


def show_message(ax: Axes, reason: str) -> Axes:
    """Write into the axes why there is nothing to draw."""
    ax.set_axis_off()
    ax.text(
        0.5,
        0.5,
        reason,
        transform=ax.transAxes,
        ha="center",
        va="center",
        fontsize=AXIS_FONT_POINTS,
        color=TEXT_COLOUR,
    )
    return ax


NO_DECISION_MESSAGE = "No decision yet:\nno round of this race is complete."
