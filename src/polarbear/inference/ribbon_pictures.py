"""The ribbon as text for a terminal, and as SVG for a notebook."""

import html
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_uppercase

import numpy as np

from polarbear._text import escape_text, format_range, format_share, format_time, format_unit
from polarbear.data.colours import Cast, Style, get_luminance
from polarbear.inference.ribbon import CERTAIN, Ribbon

CAPTION = "What to run if you stop here"
UNCERTAIN_NOTE = f"less than {CERTAIN:.0%} certain".replace("%", " %")

SVG_WIDTH_PX, SVG_HEIGHT_PX = 640, 62
CELL_TOP_PX, CELL_HEIGHT_PX = 18, 28
LETTER_WIDTH_PX, TICK_LETTER_WIDTH_PX = 8.4, 6.6
"""About the width of a bold letter in a cell, and of a digit below it."""

HATCH = (
    '<defs><pattern id="polarbear-hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="1.6" height="6" fill="#fff" fill-opacity="0.7"/>'
    "</pattern></defs>"
)


def choose_ink(colour: str) -> str:
    """Return black or white, whichever has more contrast with a colour (at least 4.5).

    >>> choose_ink("#0033d3"), choose_ink("#93ffa5")
    ('#ffffff', '#000000')
    """
    return "#000000" if (get_luminance(colour) + 0.05) ** 2 > 0.0525 else "#ffffff"


def blend(colour: str, opacity: float, ground: str = "#ffffff") -> str:
    """Return the colour that a transparent one has on a ground.

    >>> blend("#0000ff", 0.5)
    '#8080ff'
    """
    mixed = (
        opacity * int(colour[k : k + 2], 16) + (1 - opacity) * int(ground[k : k + 2], 16)
        for k in (1, 3, 5)
    )
    return "#" + "".join(f"{round(level):02x}" for level in mixed)


def get_ribbon_styles(ribbon: Ribbon) -> Mapping[str, Style]:
    """Return the style of each algorithm, which it also has in other figures."""
    return Cast.of([*ribbon.algorithms, *ribbon.others]).styles()


def render_ribbon_text(ribbon: Ribbon, width: int = 80, *, is_coloured: bool = False) -> str:
    """Render a ribbon for a terminal: blocks with names in colour, or letters without it.

    Without colour, a capital stands for a certain leader and a small letter for one that is not.
    With colour, the same is in a line of its own below the blocks.

    >>> best = np.array([[0.99, 0.01], [0.7, 0.3], [0.0, 1.0]])
    >>> ribbon = Ribbon.of(["x", "y"], np.array([1.0, 10.0, 100.0]), "seconds", best)
    >>> print(render_ribbon_text(ribbon, 24))
    What to run if you stop here
    1                 32  100 seconds
    XXXXXXxxxxxxxxxxxxYYYYYY
    X x  Y y  small letters: less than 95 % certain
    """
    if not ribbon.leads:
        return f"{CAPTION}: nothing is known yet"
    columns = (np.arange(width) + 0.5) / width
    cell = np.searchsorted(ribbon.place(ribbon.edges[1:-1]), columns)
    is_certain = (ribbon.probability[cell, 0] >= CERTAIN).tolist()
    # The column at which each stretch begins; a short one may have none of its own.
    starts = [int(np.searchsorted(cell, one.first)) for one in ribbon.leads]
    names = [escape_text(ribbon.algorithms[one.algorithm]) for one in ribbon.leads]
    lines = [CAPTION, _write_ticks(ribbon, starts, width)]
    if is_coloured:
        widths = np.diff([*starts, width]).tolist()
        styles = get_ribbon_styles(ribbon)
        colours = [styles[ribbon.algorithms[one.algorithm]].on_dark for one in ribbon.leads]
        lines.append("".join(map(_paint, colours, names, widths)))
        lines.append("".join("█" if sure else "░" for sure in is_certain))
        hidden = {
            name: f"{_paint(colour, '', 2)} {name}"
            for name, colour, room in zip(names, colours, widths, strict=True)
            if len(name) > room
        }
        key = [*hidden.values(), f"█ at least {CERTAIN:.0%} certain, ░ less".replace("%", " %")]
        return "\n".join([*lines, "  ".join(key)])
    letters = _choose_letters(list(dict.fromkeys(names)))
    leader = [letters[escape_text(ribbon.algorithms[code])] for code in ribbon.top[cell, 0]]
    shown = (one if sure else one.lower() for one, sure in zip(leader, is_certain, strict=True))
    key = [f"{letter} {name}" for name, letter in letters.items()]
    note = [] if all(is_certain) else [f"small letters: {UNCERTAIN_NOTE}"]
    return "\n".join([*lines, "".join(shown), "  ".join([*key, *note])])


def _choose_letters(names: list[str]) -> dict[str, str]:
    """Return a letter for each name: its own initial, or one that is no initial of another.

    >>> _choose_letters(["B", "A", "beta"])
    {'B': 'B', 'A': 'A', 'beta': 'C'}
    """
    free = [letter for letter in ascii_uppercase if letter not in {n[0].upper() for n in names}]
    letters: dict[str, str] = {}
    for name in names:
        initial = name[0].upper()
        is_own = initial in ascii_uppercase and initial not in letters.values()
        letters[name] = initial if is_own else (free.pop(0) if free else "?")
    return letters


def _paint(colour: str, name: str, width: int) -> str:
    """Return a block of a colour for a terminal, with a name if that fits."""
    if not width:
        return ""
    ground, ink = (
        ";".join(str(int(one[k : k + 2], 16)) for k in (1, 3, 5))
        for one in (colour, choose_ink(colour))
    )
    text = (name if len(name) <= width else "").center(width)
    return f"\x1b[1;48;2;{ground};38;2;{ink}m{text}\x1b[0m"


def _write_ticks(ribbon: Ribbon, starts: list[int], width: int) -> str:
    """Return a line with the ends of the grid and the times at which the leader changes."""
    last = format_range(ribbon.times[-1], ribbon.times[-1], ribbon.clock)
    if len(ribbon.times) == 1:
        return last
    line, number = (format_time(ribbon.times[k], ribbon.clock) for k in (0, -1))
    for start, switch in zip(starts[1:], ribbon.switches, strict=True):
        text = format_time(switch, ribbon.clock)
        if len(line) < start < width - len(number) - len(text):
            line = line.ljust(start) + text
    return f"{line.ljust(max(len(line) + 1, width - len(number)))}{last}"


def render_ribbon_svg(ribbon: Ribbon, width: int = SVG_WIDTH_PX) -> str:
    """Render a ribbon as SVG for a notebook: cells, names where they fit, times of changes.

    >>> best = np.array([[0.99, 0.01], [0.7, 0.3], [0.0, 1.0]])
    >>> ribbon = Ribbon.of(["<x>", "y"], np.array([1.0, 10.0, 100.0]), "seconds", best)
    >>> svg = render_ribbon_svg(ribbon)
    >>> "<svg" in svg, "&lt;x&gt;" in svg, "<x>" in svg
    (True, True, False)
    """
    x = (1 + ribbon.place(ribbon.edges) * (width - 2)).tolist()
    last, unit = format_time(ribbon.times[-1], ribbon.clock), format_unit(ribbon.clock)
    parts = [
        *_draw_cells(ribbon, x),
        *_draw_labels(ribbon, x, width - TICK_LETTER_WIDTH_PX * (len(last) + 1)),
        _write_svg(width - 1, SVG_HEIGHT_PX - 2, last, "end"),
        _write_svg(1, 12, f"{CAPTION} ({unit})" if unit else CAPTION),
    ]
    if (ribbon.probability[:, 0] < CERTAIN).any():
        parts.append(_write_svg(width - 1, 12, f"hatched: {UNCERTAIN_NOTE}", "end"))
    return (
        f'<svg width="{width}" height="{SVG_HEIGHT_PX}" viewBox="0 0 {width} {SVG_HEIGHT_PX}" '
        f'role="img" aria-label="{CAPTION}: {html.escape(ribbon.describe())}" '
        f'font-family="system-ui, sans-serif">{HATCH}{"".join(parts)}</svg>'
    )


def _draw_cells(ribbon: Ribbon, x: Sequence[float]) -> Iterator[str]:
    """Yield a rectangle for each time, hatched if its leader is not certain."""
    styles, size = get_ribbon_styles(ribbon), f'y="{CELL_TOP_PX}" height="{CELL_HEIGHT_PX}"'
    for t, code in enumerate(ribbon.top[:, 0].tolist()):
        colour = blend(styles[ribbon.algorithms[code]].colour, float(ribbon.opacity[t]))
        place = f'x="{x[t]:.1f}" width="{x[t + 1] - x[t] + 0.3:.1f}" {size}'
        top = zip(ribbon.top[t].tolist(), ribbon.probability[t].tolist(), strict=True)
        said = ", ".join(f"{ribbon.algorithms[k]} {format_share(p)}" for k, p in top)
        when = format_range(ribbon.times[t], ribbon.times[t], ribbon.clock)
        title = html.escape(f"{when}: {said}")
        yield f'<rect {place} fill="{colour}"><title>{title}</title></rect>'
        if ribbon.probability[t, 0] < CERTAIN:
            yield f'<rect {place} fill="url(#polarbear-hatch)" pointer-events="none"/>'


def _draw_labels(ribbon: Ribbon, x: Sequence[float], limit: float) -> Iterator[str]:
    """Yield the names of leaders where they fit, and the times at which stretches begin."""
    styles, end = get_ribbon_styles(ribbon), -1.0
    for one in ribbon.leads:
        name, left, right = ribbon.algorithms[one.algorithm], x[one.first], x[one.last + 1]
        if LETTER_WIDTH_PX * len(name) < right - left:
            opacity = float(ribbon.opacity[one.first : one.last + 1].mean())
            ground = blend(styles[name].colour, opacity)
            yield (
                f'<text x="{(left + right) / 2:.1f}" y="{CELL_TOP_PX + 19}" font-size="13" '
                f'font-weight="700" text-anchor="middle" pointer-events="none" '
                f'paint-order="stroke" stroke="{ground}" stroke-width="4" '
                f'fill="{choose_ink(ground)}">{html.escape(name)}</text>'
            )
        text = format_time(one.start, ribbon.clock)
        wide = TICK_LETTER_WIDTH_PX * len(text)
        place = left - wide / 2 if one.first else left
        if end < place and place + wide < limit:
            yield _write_svg(place, SVG_HEIGHT_PX - 2, text)
            end = place + wide


def _write_svg(x: float, y: float, text: str, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.0f}" font-size="11.5" text-anchor="{anchor}" '
        f'fill="currentColor">{html.escape(text)}</text>'
    )
