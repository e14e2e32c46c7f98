"""One look for each algorithm, the same in all figures of the same algorithms.

Colours were chosen so that any two differ for everybody, also without red or green cones (by at
least 28 in CIELAB), and stand out from paper and from a dark screen (contrast of at least 3). They
alternate between dark and bright, and neighbours have other dashes and markers: in grey print two
lines are still two.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from polarbear.data.names import natural

MANY = 8
"""Of more algorithms than this, only those of the Pareto set are in colour."""

ON_PAPER = (
    "#0033d3",
    "#b68e00",
    "#48146e",
    "#26a76b",
    "#7e3500",
    "#6c8bff",
    "#004b45",
    "#b87db2",
)
ON_DARK = (
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

GREY, GREY_ON_DARK = "#b4b4b4", "#5c6066"
"""Of whom one need not look at."""

INK = "#262626"
"""Of text and of lines that belong to nobody."""

# Lengths of lines and gaps in points; dots are left for the truth.
DASHES: tuple[tuple[float, ...], ...] = ((), (7, 2), (7, 2, 1.5, 2), (3.5, 1.5))
MARKERS = ("o", "s", "^", "v", "P", "p", "<", ">")


class Style(NamedTuple):
    """How an algorithm looks.

    Attributes
    ----------
    colour, on_dark
        On paper, and on a dark screen.
    dash
        Lengths of lines and gaps in points; nothing is a solid line.
    marker
        As matplotlib names it.
    muted
        Whether it is one of many that are grey.
    """

    colour: str
    on_dark: str
    dash: tuple[float, ...]
    marker: str
    muted: bool = False


MUTED = Style(GREY, GREY_ON_DARK, (), "o", muted=True)


@dataclass(frozen=True)
class Cast:
    """Everybody who takes part, in canonical order, and who of them is in the Pareto set.

    Figures of the same cast give an algorithm the same look, whichever of them a figure shows.

    >>> cast = Cast.of(["b", "a10", "a9"], pareto=["b"])
    >>> cast.names, cast.styles()["a9"].colour == ON_PAPER[0]
    (('a9', 'a10', 'b'), True)
    """

    names: tuple[str, ...]
    pareto: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str], pareto: Collection[str] = ()) -> "Cast":
        """A cast of names in any order."""
        ordered = tuple(sorted(set(names), key=natural))
        return cls(ordered, tuple(name for name in ordered if name in pareto))

    @property
    def coloured(self) -> tuple[str, ...]:
        """Who is in colour: all, or of many the Pareto set, if that is known."""
        return self.pareto if len(self.names) > MANY and self.pareto else self.names

    def styles(self) -> dict[str, Style]:
        """The look of each: it hangs on the names alone, so nobody changes colour in a race."""
        shown = set(self.coloured)
        return {name: _style(k) if name in shown else MUTED for k, name in enumerate(self.names)}


def _style(k: int) -> Style:
    """The k-th look; no two of the first 32 are the same."""
    colour = k % len(ON_PAPER)
    turn = k + k // len(ON_PAPER)  # the same colour comes again with another dash
    return Style(
        ON_PAPER[colour],
        ON_DARK[colour],
        DASHES[turn % len(DASHES)],
        MARKERS[turn % len(MARKERS)],
    )
