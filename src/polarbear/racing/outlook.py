"""How far a race is from its end: how many more instances its open pairs need.

A lead of ``m`` that is known up to a standard deviation ``s`` after P instances is known up to
s sqrt(P / Q) after Q, and certain when that is a small enough part of m: after
Q = P (z s / m)^2 instances, where z is the normal quantile of the certainty asked for. What the
lead really is nobody knows, so each draw of the posterior is taken for the truth in turn, which
gives an interval.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import UNKNOWN, Rankings
from polarbear.posterior import Posterior
from polarbear.racing.events import Outlook
from polarbear.relations import AT_ONCE, Floats, Resolution

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
        affordable = AT_ONCE // max(1, len(rankings.times) * len(pairs))
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

    def of_pairs(self, chosen: NDArray[np.bool_]) -> Self:
        """Those of some pairs."""
        ends = self.first[chosen], self.second[chosen]
        return type(self)(*ends, *(part[..., chosen] for part in self[2:]))


class Needs(NamedTuple):
    """How many more instances until one is certain of a pair at a time: each (..., T, K).

    Below zero: so many fewer would have been enough.
    """

    ahead: Floats  # that the first leads
    behind: Floats
    alike: Floats  # that they are practically the same

    @classmethod
    def of(cls, lead: NDArray[Any], leads: Leads, z: float, margin: float) -> Self:
        """If these are the true leads."""
        size, wide = np.abs(lead), z * leads.spread
        with np.errstate(divide="ignore", invalid="ignore"):
            far = leads.seen * ((wide / size) ** 2 - 1)
            near = leads.seen * ((wide / (margin - size)) ** 2 - 1)
        return cls(
            np.where(lead > 0, far, np.inf),
            np.where(lead < 0, far, np.inf),
            np.where(size < margin, near, np.inf),
        )

    def within(self, room: Floats) -> Self:
        """The same, where no more instances than these can be had: (T, K)."""
        return type(self)(*(np.where(each > room, np.inf, each) for each in self))

    def over(self) -> Floats:
        """Until the first is known to dominate: (..., K)."""
        return np.maximum(self.ahead.max(axis=-2), 0.0)

    def under(self) -> Floats:
        """Until the second is."""
        return np.maximum(self.behind.max(axis=-2), 0.0)

    def settled(self, resolution: Resolution) -> Floats:
        """Until the pair is resolved, if nobody is eliminated."""
        at_par = np.minimum(self.behind, self.alike), np.minimum(self.ahead, self.alike)
        strict = np.maximum(np.minimum(*at_par).max(axis=-2), 0.0)
        if resolution == "strict":
            return strict
        ways = [
            np.maximum(one.min(axis=-2), other.min(axis=-2))
            for one, other in zip((self.ahead, self.behind), at_par, strict=True)
        ]
        return np.minimum(strict, np.maximum(np.minimum(*ways), 0.0))


def outs(over: Floats, under: Floats, leads: Leads, n: int) -> Floats:
    """When each of n algorithms is known to be dominated: (n, ...)."""
    out = np.full((n, *over.shape[:-1]), np.inf)
    np.minimum.at(out, leads.second, np.moveaxis(over, -1, 0))
    np.minimum.at(out, leads.first, np.moveaxis(under, -1, 0))
    return out


def outlook(
    leads: Leads, n: int, z: float, margin: float, resolution: Resolution
) -> tuple[Outlook, Floats]:
    """How much is left, and of each pair the median (K,)."""
    needs = Needs.of(leads.draws, leads, z, margin)
    out = outs(needs.over(), needs.under(), leads, n)
    # A pair is done when it is resolved, or one of the two is out.
    end = np.minimum(needs.settled(resolution), np.minimum(out[leads.first], out[leads.second]).T)
    last = np.zeros((n, len(end)))
    np.maximum.at(last, leads.first, end.T)
    np.maximum.at(last, leads.second, end.T)
    instances, runs = (_quantiles(values) for values in (end.max(axis=1), last.sum(axis=0)))
    return Outlook(instances, runs), np.median(end, axis=0)


def _quantiles(values: Floats) -> tuple[float, float, float]:
    ordered = np.sort(values)  # np.quantile makes nan of two infinities
    low, mid, high = (float(ordered[int(q * (len(ordered) - 1))]) for q in QUANTILES)
    return low, mid, high
