"""Formatting for people: names, counts, times and lists as text, and HTML tables for notebooks."""

import html
from collections.abc import Iterable, Sequence
from math import floor, isfinite
from typing import Literal

import numpy as np
from numpy.typing import NDArray


def escape_text(text: str) -> str:
    r"""Escape the characters that a terminal would act on, such as control characters.

    Every name that is printed passes through this function.

    >>> print(escape_text("a\n\x1b[2J"))
    a\n\x1b[2J
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escape_lines(text: object) -> str:
    r"""Escape each line of a text as :func:`escape_text` does, and keep the line ends.

    >>> print(escape_lines("output of a program:\n\x1b[2Jx"))
    output of a program:
    \x1b[2Jx
    """
    return "\n".join(map(escape_text, str(text).split("\n")))


def format_list(names: Sequence[str], limit: int = 8) -> str:
    """Join the first ``limit`` names with commas, and add how many more there are.

    >>> format_list(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    if not names:
        return "none"
    first = ", ".join(escape_text(str(name)) for name in names[:limit])
    return first if len(names) <= limit else f"{first} and {len(names) - limit:,} more"


def capitalise(text: str) -> str:
    """Return a text that begins with a capital, and is otherwise unchanged.

    >>> capitalise("run CSA")
    'Run CSA'
    """
    return text[:1].upper() + text[1:]


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun, in the plural where needed.

    >>> format_count(1, "run"), format_count(2500, "run")
    ('1 run', '2,500 runs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_unit(clock: str, otherwise: str = "") -> str:
    """Return the name of a clock's unit; ``otherwise`` for clocks whose unit is not known.

    >>> format_unit("evaluations"), format_unit("wall"), format_unit("time")
    ('evaluations', 'seconds', '')
    """
    units = {"time": otherwise, "reported": otherwise, "wall": "seconds", "cpu": "CPU seconds"}
    return units[clock] if clock in units else escape_text(clock)


def name_point(clock: str) -> str:
    """Return what a point of the grid is: a "target" if difficulties take the place of times.

    >>> name_point("evaluations"), name_point("% targets")
    ('time', 'target')
    """
    return "target" if clock.endswith("targets") else "time"


INTEGER_CLOCKS = (
    "evaluations",
    "evals",
    "calls",
    "iterations",
    "generations",
    "steps",
    "epochs",
    "nodes",
    "tokens",
    "turns",
)
"""Clocks that count events, so that their times are whole numbers."""


PRECISION_TARGETS = "precision targets"
"""The unit of targets at distances from the optimum, whose difficulty is 1 / distance."""


def choose_precision(clock: str) -> Literal["whole", "seconds", "all", "reciprocal"]:
    """Return how to write times of a clock: "whole" numbers, "seconds", or with "all" digits.

    "whole": counts are rounded down, since the result after 30.9 evaluations is that after 30.
    "seconds": whole seconds or dollars from 100 on, three significant digits below. "all": all
    digits.
    "reciprocal": a difficulty of 1e8 is the target with the precision 1e-8.

    >>> choose_precision("evaluations"), choose_precision("cpu"), choose_precision("time")
    ('whole', 'seconds', 'all')
    """
    if clock == PRECISION_TARGETS:
        return "reciprocal"
    unit = format_unit(clock)
    if unit in INTEGER_CLOCKS:
        return "whole"
    return "seconds" if unit.split(" ")[-1] in ("seconds", "s", "dollars") else "all"


def format_time(time: float, clock: str, max_digits: int = 6) -> str:
    """Format a time without its unit, with the precision that suits its clock.

    >>> format_time(30.889, "evaluations"), format_time(3404.01, "wall"), format_time(2.5188, "s")
    ('30', '3,404', '2.52')
    """
    precision = choose_precision(clock) if isfinite(time) else "all"
    if precision == "whole":
        return f"{floor(time * (1 + 1e-9)):,}"  # a grid's 10,000 may be 9,999.9999999 by rounding
    if precision == "seconds":
        return f"{time:,.0f}" if abs(time) >= 100 else f"{time:,.3g}"
    if precision == "reciprocal" and time:
        time = 1 / time
    return f"{time:,.{max_digits}g}"


def format_duration(time: float, clock: str) -> str:
    """Format a time with its unit; of times that solvers report, the unit is not known.

    >>> [format_duration(2.5, "wall"), format_duration(7, "time")]
    ['2.5 seconds', '7']
    >>> format_duration(1_234_567, "evaluations"), format_duration(288, "reported")
    ('1,234,567 evaluations', '288 (reported time)')
    """
    number = format_time(time, clock, 7)
    return f"{number} (reported time)" if clock == "reported" else _append_unit(number, clock)


def format_range(start: float, stop: float, clock: str) -> str:
    """Format a range of time with its unit.

    >>> format_range(100, 20_000, "evaluations"), format_range(1, 2, "time")
    ('100 to 20,000 evaluations', '1 to 2')
    >>> format_range(5, 5, "wall"), format_range(1, 1, "evaluations")
    ('5 seconds', '1 evaluation')
    >>> format_range(0.0123456, 3, "dollars"), format_range(1, 1, "tokens")
    ('0.0123 to 3 dollars', '1 token')
    >>> format_range(5, 98, "% targets"), format_range(5, 5, "% targets")
    ('5 to 98 % targets', '5 % target')
    >>> format_range(0.1, 1e8, "precision targets")
    '10 to 1e-08 precision targets'
    """
    first, last = format_time(start, clock), format_time(stop, clock)
    return _append_unit(first if first == last else f"{first} to {last}", clock)


def _append_unit(number: str, clock: str) -> str:
    unit = format_unit(clock)
    is_one = number == "1" and (unit in INTEGER_CLOCKS or unit.endswith(("seconds", "dollars")))
    if is_one or (name_point(clock) == "target" and " to " not in number):
        unit = unit[:-1]
    return f"{number} {unit}".rstrip()


def round_time(time: float, clock: str, digits: int) -> float:
    """Round a time to a number of significant digits; of a precision target, its precision.

    >>> round_time(4587.2, "evaluations", 2), round_time(0.026, "precision targets", 1)
    (4600.0, 0.025)
    """
    if choose_precision(clock) == "reciprocal" and time:
        return 1 / float(f"{1 / time:.{digits}g}")
    return float(f"{time:.{digits}g}")


def format_share(probability: float) -> str:
    """Format a probability as a percentage, never rounded to 0 or 100 %.

    >>> format_share(0.984), format_share(0.995), format_share(0.0)
    ('98 %', '> 99 %', '< 1 %')
    """
    if probability > 0.99:
        return "> 99 %"
    return "< 1 %" if probability < 0.01 else f"{100 * probability:.0f} %"


def format_share_range(low: float, high: float) -> str:
    """Format a range of probabilities as percentages.

    >>> format_share_range(0.9, 0.98), format_share_range(0.5, 1.0), format_share_range(0.9, 0.9)
    ('90 to 98 %', '50 to > 99 %', '90 %')
    """
    first, last = format_share(low), format_share(high)
    return first if first == last else f"{first.removesuffix(' %')} to {last}"


MAX_TABLE_ROWS = 20

SPARKLINE_WIDTH_PX, SPARKLINE_HEIGHT_PX = 120, 36

Cell = str | NDArray[np.floating]


def align_columns(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows of a table as lines of text, with each column as wide as its longest cell.

    >>> print(align_columns([["name", "n"], ["a", "10"]]))
    name  n
    a     10
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def render_card(
    text: str, head: Sequence[str], rows: Iterable[Sequence[Cell]], note: str = ""
) -> str:
    """Render a text, a table and a note as HTML; a table cell is text or a curve.

    >>> render_card("two < three", ["name"], [["<b>"]])
    '<div><pre...>two &lt; three</pre><table>...name...&lt;b&gt;...</table></div>'
    """
    rows = list(rows)
    # All curves of a table have one scale, so that they can be compared.
    top = max((float(c.max()) for row in rows for c in row if not isinstance(c, str)), default=1.0)
    shown = rows[:MAX_TABLE_ROWS]
    body = [_render_row("td", [_render_cell(cell, top) for cell in row]) for row in shown]
    if len(rows) > MAX_TABLE_ROWS:
        body.append(_render_row("td", [f"and {len(rows) - MAX_TABLE_ROWS:,} more"]))
    header = _render_row("th", map(html.escape, head))
    table = f"<thead>{header}</thead><tbody>{''.join(body)}</tbody>"
    pre = '<pre style="white-space: pre-wrap">'  # a long line is wrapped, not cut
    paragraph = f"<p>{html.escape(note)}</p>" if note else ""
    return f"<div>{pre}{html.escape(text)}</pre><table>{table}</table>{paragraph}</div>"


def _render_row(tag: str, cells: Iterable[str]) -> str:
    # Notebooks align cells to the right, as suits numbers; these are sentences.
    left = ' style="text-align: left"'
    return f"<tr>{''.join(f'<{tag}{left}>{cell}</{tag}>' for cell in cells)}</tr>"


def _render_cell(cell: Cell, top: float) -> str:
    if isinstance(cell, str):
        return html.escape(cell)
    width, height = SPARKLINE_WIDTH_PX, SPARKLINE_HEIGHT_PX
    x = np.linspace(2, width - 2, len(cell)) if len(cell) > 1 else np.array([width / 2])
    y = height - 3 - (height - 6) * np.asarray(cell, dtype=np.float64) / max(top, 1e-300)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="ratings over time">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5" '
        'stroke-linecap="round"/></svg>'
    )
