"""The style of each algorithm, the same in all figures of the same algorithms.

Any two colours differ by at least 28 in CIELAB, with normal vision, protanopia and deuteranopia.
Their contrast with paper and with a dark screen is at least 3. They alternate between dark and
bright, and neighbours have other dashes and markers, so that lines stay distinct in grey print.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from polarbear.data.names import find_indices, natural_sort_key

MAX_COLOURED = 8
"""With more algorithms than this, only those of the Pareto set are in colour."""

PAPER_COLOURS = (
    "#0033d3",
    "#b68e00",
    "#48146e",
    "#26a76b",
    "#7e3500",
    "#6c8bff",
    "#004b45",
    "#b87db2",
)
DARK_COLOURS = (
    "#4d68ff",
    "#ffee43",
    "#8a68c2",
    "#93ffa5",
    "#be662c",
    "#aec1ff",
    "#388477",
    "#ffd1de",
)
"""The same hues for a dark screen."""

MUTED_PAPER_COLOUR, MUTED_DARK_COLOUR = "#b4b4b4", "#5c6066"
"""Algorithms outside of the Pareto set, when there are many, on paper and on a dark screen."""

TEXT_COLOUR = "#262626"
"""Text, and lines that belong to no algorithm."""

# Lengths of lines and gaps in points; dots are reserved for the truth.
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 2), (7, 2, 1.5, 2), (3.5, 1.5))
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


MUTED_STYLE = Style(MUTED_PAPER_COLOUR, MUTED_DARK_COLOUR, (), "o", muted=True)


@dataclass(frozen=True)
class Cast:
    """All algorithms of a comparison in canonical order, and which are in the Pareto set.

    Figures of the same cast draw an algorithm in the same style, even if they show only some.

    Attributes
    ----------
    names, pareto
        All algorithms, and those of the Pareto set.
    order
        The order in which styles are assigned; by default that of ``names``. A race uses the order
        in which algorithms joined, so that one that joins changes no colour.
    highlighted
        The algorithms in colour, if these were chosen.

    Examples
    --------
    >>> cast = Cast.of(["b", "a10", "a9"], pareto=["b"])
    >>> cast.names, cast.styles()["a9"].colour == PAPER_COLOURS[0]
    (('a9', 'a10', 'b'), True)
    >>> joined = Cast.of(["a1", "b", "a10", "a9"], order=cast.names)
    >>> [joined.styles()[name].colour == cast.styles()[name].colour for name in cast.names]
    [True, True, True]
    """

    names: tuple[str, ...]
    pareto: tuple[str, ...]
    order: tuple[str, ...] = ()
    highlighted: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, names: Iterable[str], pareto: Collection[str] = (), order: Iterable[str] = ()
    ) -> "Cast":
        """Return a record of these algorithms, sorted by name, and of the Pareto set."""
        names = tuple(sorted(set(names), key=natural_sort_key))
        members = tuple(name for name in names if name in pareto)
        first = tuple(name for name in dict.fromkeys(order) if name in names)
        return cls(names, members, (*first, *(name for name in names if name not in first)))

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
        """Return the style of each algorithm.

        It depends on the names alone, so that an algorithm keeps its colour during a race.
        """
        shown = set(self.coloured)
        return {
            name: _make_style(k) if name in shown else MUTED_STYLE
            for k, name in enumerate(self.order or self.names)
        }


def _make_style(k: int) -> Style:
    """Return style number k of a fixed series; the first 32 are distinct."""
    colour = k % len(PAPER_COLOURS)
    turn = k + k // len(PAPER_COLOURS)  # a repeated colour has another dash
    return Style(
        PAPER_COLOURS[colour],
        DARK_COLOURS[colour],
        DASHES[turn % len(DASHES)],
        MARKERS[turn % len(MARKERS)],
    )
