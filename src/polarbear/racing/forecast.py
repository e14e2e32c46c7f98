"""How far a race is from its end: how many more instances its open pairs need.

A lead of ``m`` that is known up to a standard deviation ``s`` after P instances is known up to
s sqrt(P / Q) after Q, and certain when that is a small enough part of m: after
Q = P (z s / m)^2 instances. With error control per look z is the normal quantile of the certainty;
for an e-value that has to reach K it is about sqrt(2 (ln K + 1)). Each draw of the posterior is
taken for the truth in turn, which gives an interval.
"""

from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import UNKNOWN, Rankings
from polarbear.inference.dominance import MAX_CELLS, Floats, Resolution
from polarbear.inference.posterior import Posterior
from polarbear.racing.events import Forecast

FEW, MANY = 20, 200
"""How many draws are taken for the truth."""

QUANTILES = (0.1, 0.5, 0.9)

Ints = NDArray[np.intp]


class Leads(NamedTuple):
    """Leads of the first over the second of pairs, as the posterior has them."""

    first: Ints  # (K,)
    second: Ints
    draws: NDArray[Any]  # (D, T, K)
    spread: Floats  # (T, K)
    seen: Floats  # (T, K): on how many instances

    @classmethod
    def of(cls, posterior: Posterior, rankings: Rankings, pairs: Ints) -> Self | None:
        """The leads of pairs (K, 2); none if these are too many to look at."""
        first, second = pairs[:, 0], pairs[:, 1]
        affordable = MAX_CELLS // max(1, len(rankings.times) * len(pairs))
        if affordable < FEW or not len(pairs):
            return None
        utilities = posterior.utilities
        step = max(1, len(utilities) // min(affordable, MANY))
        curves = utilities[::step]
        draws = curves[:, :, first] - curves[:, :, second]
        known = rankings.position != UNKNOWN
        n, code = len(rankings.algorithms), rankings.algorithm
        counts = np.repeat(rankings.weight, np.diff(rankings.offset))  # 1 for each instance
        seen = np.stack([np.bincount(code[at], counts[at], minlength=n) for at in known])
        both = np.minimum(seen[:, first], seen[:, second])
        return cls(first, second, draws, draws.std(axis=0), np.maximum(both, 1.0))

    def by_counts(self) -> Self:
        """Return the leads with the spread that wins and losses of the pair alone would leave.

        E-values see these counts, while the posterior also learns from other pairs. The standard
        error of a log-odds of p after P instances is 1 / sqrt(P p (1 - p)).
        """
        p = 1 / (1 + np.exp(-self.draws.mean(axis=0)))
        return self._replace(spread=1 / np.sqrt(self.seen * p * (1 - p)))

    def of_pairs(self, chosen: NDArray[np.bool_]) -> Self:
        """Those of some pairs."""
        ends = self.first[chosen], self.second[chosen]
        return type(self)(*ends, *(part[..., chosen] for part in self[2:]))


def instances_until(
    seen: Floats, spread: Floats, z: Floats | float, distance: NDArray[Any]
) -> Floats:
    """Return how many more instances show that a distance is above 0; infinite if it is not.

    After ``seen`` instances it is known up to a standard deviation of ``spread``; ``z`` of them
    are required.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        need = seen * ((z * spread / distance) ** 2 - 1)
    return np.where(distance > 0, need, np.inf)


class Required(NamedTuple):
    """How many standard deviations of its lead each claim about a pair takes.

    ``over``, ``under``: that the first dominates the second, and the reverse (K,). ``once``: any
    claim about one time. ``margin``: the lead below which the two are equivalent. ``one_sided``:
    an algorithm is at par by itself, if it is not behind by more than the margin; otherwise it is
    ahead or the two are equivalent.
    """

    over: Floats | float
    under: Floats | float
    once: float
    margin: float
    one_sided: bool

    def of_pairs(self, chosen: NDArray[np.bool_]) -> Self:
        """Return those of some pairs."""
        over, under = (
            each[chosen] if isinstance(each, np.ndarray) else each
            for each in (self.over, self.under)
        )
        return self._replace(over=over, under=under)


class Needs(NamedTuple):
    """How many more instances each claim about a pair at a time takes: each (..., T, K).

    Below zero: so many fewer would have been enough.
    """

    over: Floats  # the first leads, as certainly as dominance takes
    under: Floats
    ahead: Floats  # the first leads
    behind: Floats
    first: Floats  # the first leads or is at par
    second: Floats
    same: Floats  # the two are equivalent

    @classmethod
    def of(cls, lead: NDArray[Any], leads: Leads, required: Required) -> Self:
        """Return the needs if these are the true leads."""
        until = partial(instances_until, leads.seen, leads.spread)

        once, margin = required.once, required.margin
        ahead, behind = until(once, lead), until(once, -lead)
        if required.one_sided:
            first, second = until(once, margin + lead), until(once, margin - lead)
            same = np.maximum(first, second)
        else:
            same = until(once, margin - np.abs(lead))
            first, second = np.minimum(ahead, same), np.minimum(behind, same)
        over, under = until(required.over, lead), until(required.under, -lead)
        return cls(over, under, ahead, behind, first, second, same)

    def within(self, room: Floats) -> Self:
        """The same, where no more instances than these can be had: (T, K)."""
        return type(self)(*(np.where(each > room, np.inf, each) for each in self))

    def strict(self) -> Floats:
        """Until the relation at each time is known: (..., T, K)."""
        return np.minimum(np.minimum(self.ahead, self.behind), self.same)

    def ways(self, resolution: Resolution) -> list[tuple[Floats, Floats]]:
        """Return pairs of claims that settle a pair, each of them at some time."""
        if resolution == "at_par":
            return [(self.first, self.second)]
        crossing = [(self.ahead, self.second), (self.behind, self.first)]
        return crossing if resolution == "crossing" else []

    def settled(self, resolution: Resolution) -> Floats:
        """Until the pair is settled, if neither is eliminated: (..., K)."""
        soonest = self.strict().max(axis=-2)
        for one, other in self.ways(resolution):
            way = np.maximum(one.min(axis=-2), other.min(axis=-2))
            soonest = np.minimum(soonest, way)
        return np.maximum(soonest, 0.0)


def outs(over: Floats, under: Floats, leads: Leads, n: int) -> Floats:
    """When each of n algorithms is known to be dominated: (n, ...)."""
    out = np.full((n, *over.shape[:-1]), np.inf)
    np.minimum.at(out, leads.second, np.moveaxis(over, -1, 0))
    np.minimum.at(out, leads.first, np.moveaxis(under, -1, 0))
    return out


def outlook(
    leads: Leads, n: int, required: Required, resolution: Resolution
) -> tuple[Forecast, Floats]:
    """How much is left, and of each pair the median (K,)."""
    needs = Needs.of(leads.draws, leads, required)
    over, under = (np.maximum(each.max(axis=-2), 0.0) for each in (needs.over, needs.under))
    out = outs(over, under, leads, n)
    # A pair is done when it is resolved, or one of the two is out.
    end = np.minimum(needs.settled(resolution), np.minimum(out[leads.first], out[leads.second]).T)
    last = np.zeros((n, len(end)))
    np.maximum.at(last, leads.first, end.T)
    np.maximum.at(last, leads.second, end.T)
    instances, runs = (quantiles(values) for values in (end.max(axis=1), last.sum(axis=0)))
    return Forecast(instances, runs), np.median(end, axis=0)


def quantiles(values: Floats) -> tuple[float, float, float]:
    """Return the quantiles of a forecast, which may be infinite."""
    ordered = np.sort(values)  # np.quantile makes nan of two infinities
    low, mid, high = (float(ordered[int(q * (len(ordered) - 1))]) for q in QUANTILES)
    return low, mid, high
