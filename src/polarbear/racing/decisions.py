"""The records of a decision: which algorithms leave, which pairs stay open, and what comes next."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite
from typing import NamedTuple, Self

from polarbear.data.names import natural_sort_key
from polarbear.inference.verdicts import Verdict, Kind

Pair = tuple[str, str]
"""Two algorithms, in their canonical order."""


def pair(a: str, b: str) -> Pair:
    """Return two names as a pair in their canonical order."""
    return (a, b) if natural_sort_key(a) < natural_sort_key(b) else (b, a)


class Eliminated(NamedTuple):
    """An elimination: one algorithm is dominated ``by`` another, with a posterior probability.

    The probability is None if the race had no trusted posterior and decided by e-values alone.
    ``decisive`` is the smallest set of instances without which there is no elimination.
    """

    algorithm: str
    by: str
    probability: float | None
    decisive: tuple[str, ...] = ()


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
    def list_all(cls, pairs: dict[Pair, int], needed: dict[Pair, float]) -> tuple[Self, ...]:
        """Return a record of each undecided pair, in canonical order.

        ``pairs``: its undecided times as bits; ``needed``: the instances it needs, where known.
        """
        ordered = sorted(pairs, key=lambda names: [natural_sort_key(name) for name in names])
        return tuple(cls(*names, pairs[names], needed.get(names, inf)) for names in ordered)


class Assessed(NamedTuple):
    """The status of a candidate as a decision stores it: a part of its ``Verdict``."""

    algorithm: str
    status: Kind
    prob_in_pareto: float | None
    rival: str | None = None
    since: float | None = None
    until: float | None = None

    @classmethod
    def of(cls, status: Verdict) -> Self:
        """Return the fields of an algorithm's status that the event of a decision stores."""
        prob = None if status.prob_in_pareto is None else round(status.prob_in_pareto, 6)
        rival, since, until = status.rival, status.since, status.until
        return cls(status.algorithm, status.status, prob, rival, since, until)


class Forecast(NamedTuple):
    """The instances and runs that a race still needs: 10 %, 50 % and 90 % quantiles.

    >>> print(Forecast((0.2, 3, 9), (0.4, 6, 18)))
    about 3 more instances (1 to 9), 6 runs (1 to 18)
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
    eliminated, assessed
        The algorithms that leave, and the status of each candidate.
    chosen
        The algorithms that are chosen at this stage, if the question is about a choice.
    horizons
        The algorithms to run next, and until when; by default all with an open pair, until its
        last open time.
    forecast
        What the race still needs; None without a forecast.
    problems
        Why the posterior is not trusted.
    given_up
        Whether no run on the instances left is expected to settle a pair.
    """

    open: tuple[Open, ...]
    batch: int
    eliminated: tuple[Eliminated, ...] = ()
    assessed: tuple[Assessed, ...] = ()
    chosen: tuple[str, ...] = ()
    horizons: tuple[tuple[str, float], ...] = ()
    forecast: Forecast | None = None
    problems: tuple[str, ...] = ()
    given_up: bool = False


def all_pairs(names: Iterable[str]) -> list[Pair]:
    """Return all pairs of names, in canonical order."""
    ordered = sorted(names, key=natural_sort_key)
    return [(a, b) for k, a in enumerate(ordered) for b in ordered[k + 1 :]]


def _format_number(number: float) -> str:
    return f"{number:,.0f}" if isfinite(number) else "endlessly many"


def _plural_s(number: float) -> str:
    return "" if _format_number(number) == "1" else "s"
