"""``OpenPairs``: which pairs of algorithms are undecided at which times, and what settles them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polarbear.racing.decisions import Decision, Forecast, Pair


@dataclass
class OpenPairs:
    """A pair of racing algorithms is *open* at the times at which its relation is not known.

    It closes time by time and stays closed, until one of the two comes back or the question
    changes.
    """

    batch: int  # instances of the next round
    open: dict[Pair, int] = field(default_factory=dict)  # bit t is set: unknown at time t
    need: dict[Pair, float] = field(default_factory=dict)  # expected further instances
    forecast: Forecast | None = None

    def enter(self, algorithm: str, undecided: Mapping[Pair, int]) -> None:
        """Open the pairs of an algorithm that joins, of those that are undecided at the start."""
        self.open |= {names: times for names, times in undecided.items() if algorithm in names}
        self.forecast = None

    def leave(self, algorithm: str) -> None:
        """Drop the pairs of an algorithm that leaves."""
        self.open = {names: times for names, times in self.open.items() if algorithm not in names}

    def reopen(self, undecided: dict[Pair, int]) -> None:
        """Open all pairs again."""
        self.open = undecided
        self.need.clear()
        self.forecast = None

    def decide(self, decision: Decision) -> None:
        """Take the undecided pairs and the forecasts of a decision."""
        self.open = {(pair.first, pair.second): pair.times for pair in decision.open}
        self.need = {(pair.first, pair.second): pair.need for pair in decision.open}
        self.forecast, self.batch = decision.forecast, decision.batch

    def rivals(self, names: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return the undecided rivals of each of these algorithms, with the undecided times.

        Algorithms without rivals are left out. Times are bits.
        """
        rivals: dict[str, dict[str, int]] = {}
        for (a, b), times in self.open.items():
            rivals.setdefault(a, {})[b] = times
            rivals.setdefault(b, {})[a] = times
        return {name: rivals[name] for name in names if name in rivals}
