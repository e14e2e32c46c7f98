"""What notebooks show: small static HTML, escaped, without scripts, on light and on dark paper."""

import html
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

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
