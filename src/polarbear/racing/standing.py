"""``Standing``: what a race has to say about an algorithm."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from polarbear.data.names import listing
from polarbear.notebook import card


class Standing(NamedTuple):
    """What a race has to say about an algorithm.

    Attributes
    ----------
    standing, by, probability
        If it is dominated, by whom, and how sure that was.
    open
        With whom its relation is not known yet, and the last time at which it is not.
    instances, time
        What it would cost to know: on about how many more instances it has to run with these
        rivals, and how long all of these runs take. None if that cannot be told yet.
    """

    algorithm: str
    standing: Literal["in the set", "dominated", "undecided", "removed"]
    by: str | None = None
    probability: float | None = None
    open: Mapping[str, float] = MappingProxyType({})
    instances: float | None = None
    time: float | None = None

    def __str__(self) -> str:
        if self.standing == "dominated":
            return f"{self.algorithm} is dominated by {self.by} (P = {self.probability:.3f})"
        if self.standing == "undecided":
            cost = f", about {self.instances:,.0f} more instances" if self.instances else ""
            return (
                f"{self.algorithm} is undecided: not settled with {listing(list(self.open))}{cost}"
            )
        return f"{self.algorithm} is {self.standing}"


def shown(text: str, standings: Iterable[Standing]) -> str:
    """What a notebook shows of a race."""
    rows = [[one.algorithm, one.standing, f"{one}."] for one in standings]
    return card(text, ["algorithm", "standing", "verdict"], rows)
