"""What a race has to say, about itself and about an algorithm (``Standing``)."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from polarbear.data.names import amount, count, listing, shown
from polarbear.notebook import card
from polarbear.racing.state import State


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
    left
        How many instances are left that nobody has run on. None: there is always one more.
    """

    algorithm: str
    standing: Literal["in the set", "dominated", "undecided", "removed"]
    by: str | None = None
    probability: float | None = None
    open: Mapping[str, float] = MappingProxyType({})
    instances: float | None = None
    time: float | None = None
    left: int | None = None

    def __str__(self) -> str:
        name = shown(self.algorithm)
        if self.standing == "dominated":
            by = shown(self.by or "")
            return f"{name} is dominated by {by} (P = {self.probability:.3f})"
        if self.standing == "undecided":
            return f"{name} is undecided: not settled with {listing(list(self.open))}{self._cost()}"
        return f"{name} is {self.standing}"

    def _cost(self) -> str:
        if self.instances is None:
            return "" if self.left != 0 else "; no instance left"
        # What is open takes at least one more, however close to certain it is.
        more = max(1, round(self.instances))
        return f", about {count(more, 'more instance')}{_short(more, self.left)}"


def described(state: State) -> str:
    """A race in some lines."""
    n = state.n_algorithms
    race = "" if n == len(state.racing) else f"{len(state.racing):,} of {n:,} still race, "
    stands = "resolved" if state.resolved else f"{race}{count(len(state.open), 'pair')} open"
    left = to_go(state)
    return (
        f"race of {count(n, 'algorithm')} after {count(state.round, 'round')}, {stands}\n"
        f"  racing      {listing(state.present())}\n"
        f"  eliminated  {listing(list(state.eliminated))}\n"
        f"  spent       {count(state.spent.runs, 'run')}, {amount(state.spent_time, state.clock)}"
        + (f"\n  to go       {left}" if left else "")
    )


def to_go(state: State) -> str:
    """How much is left of a race, and whether there are instances enough; "" if it is not known."""
    if not state.open or state.outlook is None:
        return ""
    return f"{state.outlook}{_short(max(1.0, state.outlook.instances[1]), state.left)}"


def _short(wanted: float, left: int | None) -> str:
    """That there are fewer instances than it will probably take."""
    if left is None or left >= wanted:
        return ""
    return f"; {f'only {left:,}' if left else 'none'} of them left"


def as_card(text: str, standings: Iterable[Standing]) -> str:
    """What a notebook shows of a race."""
    rows = [[one.algorithm, one.standing, f"{one}."] for one in standings]
    return card(text, ["algorithm", "standing", "verdict"], rows)
