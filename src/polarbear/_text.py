"""Numbers, times and lists of names as text, and small HTML tables for notebooks."""

import html
from collections.abc import Iterable, Sequence
from math import floor, isfinite
from typing import Literal

import numpy as np
from numpy.typing import NDArray


def shown(name: str) -> str:
    r"""Escape what a terminal would obey: control characters, line ends, changes of direction.

    Every name that is printed passes through here.

    >>> print(shown("a\n\x1b[2J"))
    a\n\x1b[2J
    """
    plain = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
    return "".join(plain)


def shown_lines(text: object) -> str:
    r"""Escape the same in a text, whose line ends stay.

    >>> print(shown_lines("what a program said:\n\x1b[2Jx"))
    what a program said:
    \x1b[2Jx
    """
    return "\n".join(map(shown, str(text).split("\n")))


def listing(names: Sequence[str], most: int = 8) -> str:
    """A list of names short enough for one line.

    >>> listing(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    if not names:
        return "none"
    first = ", ".join(shown(str(name)) for name in names[:most])
    return first if len(names) <= most else f"{first} and {len(names) - most:,} more"


def count(number: int, noun: str) -> str:
    """A number of things, in words.

    >>> count(1, "run"), count(2500, "run")
    ('1 run', '2,500 runs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def unit_of(clock: str, otherwise: str = "") -> str:
    """What a clock counts, for people; ``otherwise`` where that says nothing that is not known.

    >>> unit_of("evaluations"), unit_of("wall"), unit_of("time")
    ('evaluations', 'seconds', '')
    """
    units = {"time": otherwise, "reported": otherwise, "wall": "seconds", "cpu": "CPU seconds"}
    return units[clock] if clock in units else shown(clock)


COUNTED = ("evaluations", "evals", "calls", "iterations", "generations", "steps", "epochs", "nodes")
"""Clocks that count whole things."""


def digits(clock: str) -> Literal["whole", "seconds", "all"]:
    """How exactly a time of a clock is said.

    Of what is counted, whole numbers, rounded down: after 30.9 evaluations one knows what was found
    in 30. Of seconds, whole ones from 100 on and three digits below. Else all digits.

    >>> digits("evaluations"), digits("cpu"), digits("time")
    ('whole', 'seconds', 'all')
    """
    unit = unit_of(clock)
    if unit in COUNTED:
        return "whole"
    return "seconds" if unit.split(" ")[-1] in ("seconds", "s") else "all"


def moment(time: float, clock: str, most: int = 6) -> str:
    """A time without its unit, with the digits that say something, ``most`` at most.

    >>> moment(30.889, "evaluations"), moment(3404.01, "wall"), moment(2.5188, "seconds")
    ('30', '3,404', '2.52')
    """
    exactly = digits(clock) if isfinite(time) else "all"
    if exactly == "whole":
        return f"{floor(time * (1 + 1e-9)):,}"  # 9,999.9999999 is a grid's 10,000
    if exactly == "seconds":
        return f"{time:,.0f}" if abs(time) >= 100 else f"{time:,.3g}"
    return f"{time:,.{most}g}"


def amount(time: float, clock: str) -> str:
    """How much time.

    >>> amount(1_234_567, "evaluations"), amount(2.5, "wall"), amount(7, "time")
    ('1,234,567 evaluations', '2.5 seconds', '7')
    """
    return _with_unit(moment(time, clock, 7), clock)


def span(start: float, stop: float, clock: str) -> str:
    """A range of time, in words.

    >>> span(100, 20_000, "evaluations"), span(1, 2, "time"), span(5, 5, "wall")
    ('100 to 20,000 evaluations', '1 to 2', '5 seconds')
    >>> span(1, 1, "evaluations")
    '1 evaluation'
    """
    first, last = moment(start, clock), moment(stop, clock)
    said = first if first == last else f"{first} to {last}"
    return _with_unit(said, clock)


def _with_unit(said: str, clock: str) -> str:
    unit = unit_of(clock)
    if said == "1" and (unit in COUNTED or unit.endswith("seconds")):
        unit = unit[:-1]
    return f"{said} {unit}".rstrip()


MOST_ROWS = 20

WIDE, HIGH = 120, 36
"""Pixels of a small curve."""

Cell = str | NDArray[np.floating]


def card(text: str, head: Sequence[str], rows: Iterable[Sequence[Cell]], note: str = "") -> str:
    """A text of some lines, a table whose cells are text or small curves, and a note.

    >>> card("two < three", ["name"], [["<b>"]])
    '<div><pre>two &lt; three</pre><table>...name...&lt;b&gt;...</table></div>'
    """
    rows = list(rows)
    # Curves of a table share their height, so that they can be compared.
    top = max((float(c.max()) for row in rows for c in row if not isinstance(c, str)), default=1.0)
    body = [_row("td", [_cell(cell, top) for cell in row]) for row in rows[:MOST_ROWS]]
    if len(rows) > MOST_ROWS:
        body.append(_row("td", [f"and {len(rows) - MOST_ROWS:,} more"]))
    table = f"<thead>{_row('th', map(html.escape, head))}</thead><tbody>{''.join(body)}</tbody>"
    said = f"<p>{html.escape(note)}</p>" if note else ""
    return f"<div><pre>{html.escape(text)}</pre><table>{table}</table>{said}</div>"


def _row(tag: str, cells: Iterable[str]) -> str:
    # Notebooks set numbers to the right; these are sentences.
    left = ' style="text-align: left"'
    return f"<tr>{''.join(f'<{tag}{left}>{cell}</{tag}>' for cell in cells)}</tr>"


def _cell(cell: Cell, top: float) -> str:
    if isinstance(cell, str):
        return html.escape(cell)
    x = np.linspace(2, WIDE - 2, len(cell)) if len(cell) > 1 else np.array([WIDE / 2])
    y = HIGH - 3 - (HIGH - 6) * np.asarray(cell, dtype=np.float64) / max(top, 1e-300)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    return (
        f'<svg width="{WIDE}" height="{HIGH}" role="img" aria-label="ratings over time">'
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5" '
        'stroke-linecap="round"/></svg>'
    )
