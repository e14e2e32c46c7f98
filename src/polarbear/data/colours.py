"""The style of each algorithm, the same in all figures and reports.

The colour follows from the name, so that it is the same in every figure. If another algorithm of
the comparison has it with more right, it is the next free one; of more than twelve, some share a
colour and have different dashes. Any two colours differ by at least 27 in CIELAB with normal
vision, and by at least 18 with protanopia and deuteranopia. Their contrast with paper and with a
dark screen is at least 3. Algorithms that are equally dark differ in dashes or markers, so that
lines stay distinct in grey print. ``set_colours`` fixes colours.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from polarbear.data.names import find_indices, natural_sort_key
from polarbear.errors import DataError

MAX_COLOURED = 8
"""With more algorithms than this, only those of the Pareto set are in colour."""

PAPER_COLOURS = (
    "#7e3500",
    "#004b45",
    "#48146e",
    "#26a76b",
    "#b87db2",
    "#0033d3",
    "#b68e00",
    "#aa2fb3",
    "#ff3955",
    "#bd1c71",
    "#6c8bff",
    "#0000f6",
)
DARK_COLOURS = (
    "#be662c",
    "#388477",
    "#8a68c2",
    "#93ffa5",
    "#ffd1de",
    "#4d68ff",
    "#ffee43",
    "#e38eb3",
    "#d0977b",
    "#d0135e",
    "#aec1ff",
    "#687197",
)
"""The same hues for a dark screen."""

_SALT = (5608).to_bytes(8, "little")
"""Chosen so that common names, such as a to g and those of the example, have different colours."""

MUTED_PAPER_COLOUR, MUTED_DARK_COLOUR = "#b4b4b4", "#5c6066"
"""Algorithms outside of the Pareto set, when there are many, on paper and on a dark screen."""

TEXT_COLOUR = "#262626"
"""Text, and lines that belong to no algorithm."""

# Lengths of lines and gaps in points; dots are reserved for the truth.
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (7, 2),
    (7, 2, 1.5, 2),
    (3.5, 1.5),
    (7, 2, 1.5, 2, 1.5, 2),
    (11, 4),
)
MARKERS = ("o", "s", "^", "v", "P", "p", "<", ">")


class Style(NamedTuple):
    """The colour, dash pattern and marker of an algorithm.

    Attributes
    ----------
    colour, on_dark
        On paper, and on a dark screen.
    dash
        Lengths of lines and gaps in points; empty for a solid line.
    marker
        Matplotlib's name of the marker.
    muted
        Whether the algorithm is drawn in grey.
    """

    colour: str
    on_dark: str
    dash: tuple[float, ...]
    marker: str
    muted: bool = False


MIN_GREY_DIFFERENCE = 20
"""Two colours whose lightness differs by less look alike in grey print."""

MAX_SEPARATED = 32
"""Of more algorithms than this, only those in colour are given different dashes and markers."""

MUTED_STYLE = Style(MUTED_PAPER_COLOUR, MUTED_DARK_COLOUR, (), "o", muted=True)


_fixed: dict[str, tuple[str, str]] = {}  # by set_colours: on paper, and on a dark screen


def set_colours(colours: Mapping[str, str | tuple[str, str]] | None) -> None:
    """Fix the colours of algorithms in all figures and reports from now on.

    Parameters
    ----------
    colours
        A colour for each name, such as "#0033d3", or a pair: on paper, and on a dark screen.
        Algorithms that are not named keep theirs. None ends what earlier calls have fixed.

    Examples
    --------
    >>> import polarbear as pb
    >>> pb.plots.set_colours({"CSA": "#0033d3", "RS": ("#7f7f7f", "#a0a0a0")})
    >>> Cast.of(["CSA", "XNES"]).styles()["CSA"].colour
    '#0033d3'
    >>> pb.plots.set_colours(None)
    """
    chosen: dict[str, tuple[str, str]] = {}
    for name, given in (colours or {}).items():
        pair = (given, given) if isinstance(given, str) else tuple(given)
        if len(pair) != 2 or not all(re.fullmatch("#[0-9a-fA-F]{6}", str(one)) for one in pair):
            raise DataError(
                f"colour {given!r} of {name!r}: expected a colour such as '#0033d3', or a pair of "
                "colours, on paper and on a dark screen"
            )
        chosen[str(name)] = (str(pair[0]), str(pair[1]))
    if colours is None:
        _fixed.clear()
    _fixed.update(chosen)


@dataclass(frozen=True)
class Cast:
    """All algorithms of a comparison in canonical order, and which are in the Pareto set.

    Attributes
    ----------
    names, pareto
        All algorithms, and those of the Pareto set.
    highlighted
        The algorithms in colour, if these were chosen.

    Examples
    --------
    >>> cast, joined = Cast.of(["b", "a10", "a9"], pareto=["b"]), Cast.of(["a1", "b", "a10", "a9"])
    >>> cast.names
    ('a9', 'a10', 'b')
    >>> [joined.styles()[name].colour == cast.styles()[name].colour for name in cast.names]
    [True, True, True]
    """

    names: tuple[str, ...]
    pareto: tuple[str, ...]
    highlighted: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str], pareto: Collection[str] = ()) -> "Cast":
        """Return a record of these algorithms, sorted by name, and of the Pareto set."""
        names = tuple(sorted(set(names), key=natural_sort_key))
        return cls(names, tuple(name for name in names if name in pareto))

    def highlight(self, names: Iterable[str]) -> "Cast":
        """Return a copy of the record in which only these algorithms have colours."""
        chosen = [names] if isinstance(names, str) else list(names)
        codes = find_indices(chosen, self.names, "algorithm")
        return replace(self, highlighted=tuple(self.names[k] for k in codes))

    @property
    def coloured(self) -> tuple[str, ...]:
        """The algorithms in colour: the highlighted ones, all, or if many the Pareto set."""
        if self.highlighted:
            return self.highlighted
        return self.pareto if len(self.names) > MAX_COLOURED and self.pareto else self.names

    def styles(self) -> dict[str, Style]:
        """Return the style of each algorithm; its colour depends on its name, if that is free."""
        separated = self.names if len(self.names) <= MAX_SEPARATED else self.coloured
        styles = _separate(separated)
        shown = set(self.coloured)
        return {name: styles[name] if name in shown else MUTED_STYLE for name in self.names}


def _separate(names: Iterable[str]) -> dict[str, Style]:
    """Return a style for each name, with different dashes or markers where colours are alike.

    The names are taken in the order of their hashes, so that one that joins changes few others.
    """
    styles: dict[str, Style] = {}
    numbers = {name: _hash_name(name) for name in names}
    order = sorted(numbers, key=lambda name: (numbers[name], name))
    places = _choose_places({name: numbers[name] for name in order if name not in _fixed})
    for name in order:
        number, place = numbers[name], places.get(name, 0)
        colour, on_dark = _fixed.get(name) or (PAPER_COLOURS[place], DARK_COLOURS[place])
        turn = number // len(PAPER_COLOURS)
        dashes = (*_rotate(DASHES[:4], turn % 4), *DASHES[4:])  # the last two where they are needed
        markers = _rotate(MARKERS, turn % len(MARKERS))
        options = [Style(colour, on_dark, *marks) for marks in product(dashes, markers)]
        # The first of those that are least confused with earlier ones.
        styles[name] = min(options, key=lambda one: sum(_rate(one, s) for s in styles.values()))
    return styles


def _choose_places(numbers: Mapping[str, int]) -> dict[str, int]:
    """Return the index of a colour for each name, by its number; up to twelve have their own.

    Of names with the same colour the first one has it, and the others those that nobody has.

    >>> _choose_places({"a": 3, "b": 15, "c": 4})
    {'a': 3, 'c': 4, 'b': 5}
    """
    n = len(PAPER_COLOURS)
    if len(numbers) > n:
        return {name: number % n for name, number in numbers.items()}
    first: dict[int, str] = {}
    for name, number in numbers.items():
        first.setdefault(number % n, name)
    places = {name: place for place, name in first.items()}
    for name in [name for name in numbers if name not in places]:
        after = (k % n for k in range(numbers[name] % n, 2 * n))
        places[name] = next(place for place in after if place not in places.values())
    return places


def _rate(one: Style, other: Style) -> int:
    """Return how easily two styles are confused: in colour, and in grey print."""
    if one.dash != other.dash:
        return 0
    difference = abs(_get_lightness(one.colour) - _get_lightness(other.colour))
    same_colour = one.colour == other.colour or one.on_dark == other.on_dark
    if same_colour:
        return 1000
    in_grey = difference < MIN_GREY_DIFFERENCE
    return 10 * in_grey + (in_grey and one.marker == other.marker)


def _hash_name(name: str) -> int:
    """Return a number that is the same for a name on every machine."""
    digest = hashlib.blake2b(name.encode(), digest_size=8, salt=_SALT).digest()
    return int.from_bytes(digest[:4], "little")


def _rotate(options: tuple[Any, ...], start: int) -> tuple[Any, ...]:
    return options[start:] + options[:start]


def get_luminance(colour: str) -> float:
    """Return the relative luminance of a colour, from 0 to 1."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@cache
def _get_lightness(colour: str) -> float:
    """Return the lightness L* of a colour, from 0 to 100."""
    luminance = get_luminance(colour)
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance
