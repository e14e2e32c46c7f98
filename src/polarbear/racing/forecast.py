"""Forecast how many more instances the open pairs of a race need until they are settled.

A lead of m with posterior standard deviation s after P instances has the standard deviation
s sqrt(P / Q) after Q. It is certain when m is z of these, which takes

    Q = P (z s / m)^2 instances.                                                              (1)

The number is computed for each of several posterior draws
as if it were the truth, which gives an interval.
"""

from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.dominance import MAX_CELLS, Floats, Resolution
from polarbear.inference.draws import find_distinct_times
from polarbear.inference.posterior import Posterior
from polarbear.racing.decisions import Forecast

MIN_FORECAST_DRAWS, MAX_FORECAST_DRAWS = 20, 200
"""The number of posterior draws that a forecast uses."""

FORECAST_QUANTILES = (0.1, 0.5, 0.9)

Ints = NDArray[np.intp]


class LeadDraws(NamedTuple):
    """Posterior draws of the utility lead of the first over the second algorithm of pairs."""

    first: Ints  # (K,)
    second: Ints  # (K,)
    draws: NDArray[Any]  # (D, T, K)
    spread: Floats  # (T, K): standard deviations
    n_instances: Floats  # (T, K): on which both have run, at least 1

    @classmethod
    def from_posterior(
        cls,
        posterior: Posterior,
        rankings: Rankings,
        pairs: Ints,
        selected: Ints | slice = slice(None),
    ) -> Self | None:
        """Return the leads of pairs; None if there are no pairs, or too many for memory.

        ``selected``: the indices of the times, by default of all.
        """
        first, second = pairs[:, 0], pairs[:, 1]
        affordable = MAX_CELLS // max(1, len(rankings.times) * len(pairs))
        if affordable < MIN_FORECAST_DRAWS or not len(pairs):
            return None
        utilities = posterior.utilities
        step = max(1, len(utilities) // min(affordable, MAX_FORECAST_DRAWS))
        curves = utilities[::step, selected]
        draws = curves[:, :, first] - curves[:, :, second]
        is_known = rankings.position[selected] != UNKNOWN
        n, code = len(rankings.algorithms), rankings.algorithm
        weights = np.repeat(rankings.weight, np.diff(rankings.offset))  # 1 for each instance
        counts = np.stack([np.bincount(code[at], weights[at], minlength=n) for at in is_known])
        both = np.minimum(counts[:, first], counts[:, second])
        return cls(
            first=first,
            second=second,
            draws=draws,
            spread=draws.std(axis=0),
            n_instances=np.maximum(both, 1.0),
        )


def find_ranges(posterior: Posterior, rankings: Rankings) -> Ints:
    """Return the first times of ranges with equal rankings and ratings: one forecast serves each.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.rank_costs(np.tile(np.arange(3.0), (30, 5, 1)))
    >>> find_ranges(pb.fit(rankings), rankings)
    array([0])
    """
    position = rankings.position
    changes = np.append(True, np.any(position[1:] != position[:-1], axis=1))
    changes[find_distinct_times(posterior.utilities)] = True
    return np.flatnonzero(changes)


def count_instances_needed(
    n_instances: Floats, spread: Floats, z: Floats | float, distance: NDArray[Any]
) -> Floats:
    """Return how many more instances would show that a distance is above 0.

    It is equation (1) of this module minus P. After ``n_instances`` the distance has the standard
    deviation ``spread``; it has to be ``z`` of them. The number is infinite where
    the distance is not above 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = n_instances * ((z * spread / distance) ** 2 - 1)
    return np.where(distance > 0, needed, np.inf)


class RequiredZ(NamedTuple):
    """The z-score of a certain claim, and the lead below which two algorithms are equivalent."""

    z: float
    margin: float


class InstancesNeeded(NamedTuple):
    """The further instances until each claim about pairs is certain, at each time and pair.

    A negative number says how many fewer instances would have been enough.
    """

    first_ahead: Floats
    second_ahead: Floats
    equivalent: Floats

    @classmethod
    def from_leads(cls, lead: NDArray[Any], leads: LeadDraws, required: RequiredZ) -> Self:
        """Return the instances needed if ``lead`` (..., times, pairs) is the true lead."""
        needed = partial(count_instances_needed, leads.n_instances, leads.spread, required.z)
        return cls(needed(lead), needed(-lead), needed(required.margin - np.abs(lead)))

    def until_settled(self, resolution: Resolution) -> Floats:
        """Return for each pair the instances until it is decided without an elimination."""
        ahead, behind, equivalent = self
        fewest = np.minimum(np.minimum(ahead, behind), equivalent).max(axis=-2)
        at_par = np.minimum(ahead, equivalent), np.minimum(behind, equivalent)
        routes = {
            "at_par": [at_par],
            "crossing": [(ahead, at_par[1]), (behind, at_par[0])],
            "strict": [],
        }
        for one, other in routes[resolution]:
            fewest = np.minimum(fewest, np.maximum(one.min(axis=-2), other.min(axis=-2)))
        return np.maximum(fewest, 0.0)


def instances_until_eliminated(
    first_dominates: Floats, second_dominates: Floats, leads: LeadDraws, n: int
) -> Floats:
    """Return for each algorithm the instances until some other algorithm dominates it.

    ``first_dominates``, ``second_dominates``: the instances until dominance is certain (..., K).
    """
    eliminated = np.full((n, *first_dominates.shape[:-1]), np.inf)
    np.minimum.at(eliminated, leads.second, np.moveaxis(first_dominates, -1, 0))
    np.minimum.at(eliminated, leads.first, np.moveaxis(second_dominates, -1, 0))
    return eliminated


def forecast_race(
    leads: LeadDraws, n: int, required: RequiredZ, resolution: Resolution
) -> tuple[Forecast, Floats]:
    """Return the forecast of a race, and the median instances that each undecided pair needs."""
    needed = InstancesNeeded.from_leads(leads.draws, leads, required)
    first_dominates, second_dominates = (
        np.maximum(each.max(axis=-2), 0.0) for each in (needed.first_ahead, needed.second_ahead)
    )
    eliminated = instances_until_eliminated(first_dominates, second_dominates, leads, n)
    # A pair closes when it is settled, or when one of the two algorithms is eliminated.
    either = np.minimum(eliminated[leads.first], eliminated[leads.second]).T
    closed = np.minimum(needed.until_settled(resolution), either)
    longest = np.zeros((n, len(closed)))
    np.maximum.at(longest, leads.first, closed.T)
    np.maximum.at(longest, leads.second, closed.T)
    forecast = Forecast(
        forecast_quantiles(closed.max(axis=1)), forecast_quantiles(longest.sum(axis=0))
    )
    return forecast, np.median(closed, axis=0)


def forecast_quantiles(values: Floats) -> tuple[float, float, float]:
    """Return the 10 %, 50 % and 90 % quantiles of a forecast, whose values may be infinite."""
    ordered = np.sort(values)  # np.quantile makes nan of two infinities
    low, mid, high = (float(ordered[int(q * (len(ordered) - 1))]) for q in FORECAST_QUANTILES)
    return low, mid, high
