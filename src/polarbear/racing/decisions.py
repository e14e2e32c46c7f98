"""The records of a decision: which algorithms leave, which pairs stay open, and what comes next."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import NamedTuple, Self

from polarbear.data.names import natural_sort_key
from polarbear.inference.verdicts import Verdict

Pair = tuple[str, str]
"""Two algorithms, in their canonical order."""


def pair(a: str, b: str) -> Pair:
    """Return two names as a pair in their canonical order."""
    return (a, b) if natural_sort_key(a) < natural_sort_key(b) else (b, a)


class Open(NamedTuple):
    """An undecided pair: two algorithms whose relation is uncertain at some times.

    Bit t of ``times`` is set if it is unknown at time t. ``need`` is the expected number of
    further instances, infinite if there is no forecast.
    """

    first: str
    second: str
    times: int
    need: float = inf

    @classmethod
    def list_all(cls, pairs: Mapping[Pair, int], needed: Mapping[Pair, float]) -> tuple[Self, ...]:
        """Return a record of each undecided pair, in canonical order.

        ``pairs``: its undecided times as bits; ``needed``: the instances it needs, where known.
        """
        ordered = sorted(pairs, key=lambda names: [natural_sort_key(name) for name in names])
        return tuple(cls(*names, pairs[names], needed.get(names, inf)) for names in ordered)


class Forecast(NamedTuple):
    """The instances and runs that a race still needs: 10 %, 50 % and 90 % quantiles.

    >>> print(Forecast((0.2, 3, 9), (0.4, 6, 18)))
    about 3 more instances (1 to 9), 6 runs (1 to 18)
    >>> print(Forecast((1, 63, 3e6), (1, 130, inf)))
    about 63 more instances (1 to more than 100,000), 130 runs (1 to endlessly many)
    """

    instances: tuple[float, float, float]
    runs: tuple[float, float, float]

    def __str__(self) -> str:
        # An open pair needs at least one more instance, however close to certain it is.
        (low, instances, high), (fewest, runs, most) = (
            [max(1.0, quantile) for quantile in part] for part in self
        )
        return (
            f"about {_format_number(instances)} more instance{_plural_s(instances)} "
            f"({_format_number(low)} to {_format_number(high)}), {_format_number(runs)} "
            f"run{_plural_s(runs)} ({_format_number(fewest)} to {_format_number(most)})"
        )


@dataclass(frozen=True)
class Decision:
    """What a question finds after a round.

    Attributes
    ----------
    open
        The pairs that stay undecided. The race ends when there is none.
    batch
        The number of instances of the next round.
    verdicts
        The verdict about each candidate. Those that are dominated leave the race.
    chosen
        The algorithms that are chosen at this stage, if the question is about a choice.
    forecast
        What the race still needs; None without a forecast.
    problems
        Why the posterior is not trusted.
    returning
        The algorithms that were eliminated and come back, because the one that replaced them left.
    """

    open: tuple[Open, ...]
    batch: int
    verdicts: tuple[Verdict, ...] = ()
    chosen: tuple[str, ...] = ()
    forecast: Forecast | None = None
    problems: tuple[str, ...] = ()
    returning: tuple[str, ...] = ()

    @property
    def eliminated(self) -> tuple[Verdict, ...]:
        """The verdicts about the algorithms that leave the race."""
        return tuple(one for one in self.verdicts if one.kind == "dominated")


def all_pairs(names: Iterable[str]) -> list[Pair]:
    """Return all pairs of names, in canonical order."""
    ordered = sorted(names, key=natural_sort_key)
    return [(a, b) for k, a in enumerate(ordered) for b in ordered[k + 1 :]]


MAX_FORECAST = 100_000
"""The largest number of a forecast that is written in digits; nobody waits for more."""


def _format_number(number: float) -> str:
    if number > MAX_FORECAST:
        return f"more than {MAX_FORECAST:,}" if isfinite(number) else "endlessly many"
    return f"{number:,.0f}"


def _plural_s(number: float) -> str:
    return "" if _format_number(number) == "1" else "s"
