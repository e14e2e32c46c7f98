"""Forecast how many more instances the open pairs of a race need until they are settled.

A lead of m with posterior standard deviation s after P instances has the standard deviation
s sqrt(P / Q) after Q. It is certain when m is z of these, which takes

    Q = P (z s / m)^2 instances.                                                              (1)

With error control per look, z is the normal quantile of the certainty. For an e-value that has to
reach K it is about sqrt(2 (ln K + 1)). The number is computed for each of several posterior draws
as if it were the truth, which gives an interval.
"""

from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.dominance import MAX_CELLS, Bools, Floats, Resolution
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

    def with_binomial_spread(self) -> Self:
        """Return the leads with the standard error that the pair's wins and losses alone imply.

        E-values use these counts only, while the posterior also learns from other pairs. The
        standard error of the log-odds of p after P instances is 1 / sqrt(P p (1 - p)).
        """
        p = 1 / (1 + np.exp(-self.draws.mean(axis=0)))
        return self._replace(spread=1 / np.sqrt(self.n_instances * p * (1 - p)))

    def select_pairs(self, selected: Bools | Ints) -> Self:
        """Return the leads of the pairs given by a mask or by index."""
        ends = self.first[selected], self.second[selected]
        return type(self)(*ends, *(part[..., selected] for part in self[2:]))


class TimeRanges(NamedTuple):
    """Ranges of neighbouring times with equal rankings and ratings: one forecast serves a range.

    Claims about a range hold from its first time on; runs that improve it may go to its last.
    """

    start: Ints  # (R,): index of the first time of each range
    first: Floats  # (R,): that time
    last: Floats  # (R,): the last time of each range

    @classmethod
    def of(cls, posterior: Posterior, rankings: Rankings) -> Self:
        """Return the ranges of the times of a posterior.

        >>> import polarbear as pb
        >>> rankings = pb.simulation.rank_costs(np.tile(np.arange(3.0), (30, 5, 1)))
        >>> TimeRanges.of(pb.fit(rankings), rankings).start
        array([0])
        """
        times, position = posterior.times, rankings.position
        changes = np.append(True, np.any(position[1:] != position[:-1], axis=1))
        changes[find_distinct_times(posterior.utilities)] = True
        start = np.flatnonzero(changes)
        return cls(start, times[start], times[np.append(start[1:], len(times)) - 1])


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
    """The z-score that each claim about a pair of algorithms requires to be certain.

    ``first_dominates``, ``second_dominates``: that one algorithm of the pair dominates the other
    (K,). ``at_one_time``: any claim about one time. ``margin``: the lead below which the two are
    equivalent. ``one_sided``: an algorithm is at par if it is not behind by more than the margin;
    otherwise it is at par if it is ahead or the two are equivalent.
    """

    first_dominates: Floats | float
    second_dominates: Floats | float
    at_one_time: float
    margin: float
    one_sided: bool

    def select_pairs(self, selected: Bools | Ints) -> Self:
        """Return the required z-scores of the pairs given by a mask or by index."""
        first, second = (
            each[selected] if isinstance(each, np.ndarray) else each
            for each in (self.first_dominates, self.second_dominates)
        )
        return self._replace(first_dominates=first, second_dominates=second)


class InstancesNeeded(NamedTuple):
    """The further instances until each claim about pairs is certain, at each time and pair.

    A negative number says how many fewer instances would have been enough.
    """

    first_dominates: Floats  # the first is ahead, with the certainty that dominance requires
    second_dominates: Floats
    first_ahead: Floats
    second_ahead: Floats
    first_at_par: Floats  # the first is ahead or equivalent
    second_at_par: Floats
    equivalent: Floats

    @classmethod
    def from_leads(cls, lead: NDArray[Any], leads: LeadDraws, required: RequiredZ) -> Self:
        """Return the instances needed if ``lead`` (..., times, pairs) is the true lead."""
        z, margin, n_instances = required.at_one_time, required.margin, leads.n_instances
        needed = partial(count_instances_needed, n_instances, leads.spread)
        # Equation (1) of both directions shares (s / m)^2, and claims differ by z alone.
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = n_instances * (leads.spread / lead) ** 2
        ratios = np.where(lead > 0, ratio, np.inf), np.where(lead < 0, ratio, np.inf)

        def needed_by_sign(first_z: Floats | float, second_z: Floats | float) -> list[Floats]:
            zs = (np.asarray(first_z), np.asarray(second_z))
            return [each**2 * one - n_instances for each, one in zip(zs, ratios, strict=True)]

        first_dominates, second_dominates = needed_by_sign(
            required.first_dominates, required.second_dominates
        )
        first_ahead, second_ahead = needed_by_sign(z, z)
        if margin == 0:
            first_at_par, second_at_par = first_ahead, second_ahead
            equivalent = np.full_like(first_ahead, np.inf)
        elif required.one_sided:
            first_at_par, second_at_par = needed(z, margin + lead), needed(z, margin - lead)
            equivalent = np.maximum(first_at_par, second_at_par)
        else:
            equivalent = needed(z, margin - np.abs(lead))
            first_at_par = np.minimum(first_ahead, equivalent)
            second_at_par = np.minimum(second_ahead, equivalent)
        return cls(
            first_dominates=first_dominates,
            second_dominates=second_dominates,
            first_ahead=first_ahead,
            second_ahead=second_ahead,
            first_at_par=first_at_par,
            second_at_par=second_at_par,
            equivalent=equivalent,
        )

    def limit_to(self, available: Floats) -> Self:
        """Replace numbers by infinity where more instances are needed than are available."""
        return type(self)(*(np.where(each > available, np.inf, each) for each in self))

    def until_relation_known(self) -> Floats:
        """Return at each time the instances until a lead in a pair, or equivalence, is certain."""
        return np.minimum(np.minimum(self.first_ahead, self.second_ahead), self.equivalent)

    def settling_claims(self, resolution: Resolution) -> list[tuple[Floats, Floats]]:
        """Return combinations of two claims that decide a pair if each holds at some time."""
        if resolution == "at_par":
            return [(self.first_at_par, self.second_at_par)]
        crossing = [(self.first_ahead, self.second_at_par), (self.second_ahead, self.first_at_par)]
        return crossing if resolution == "crossing" else []

    def until_settled(self, resolution: Resolution) -> Floats:
        """Return for each pair the instances until it is decided without an elimination."""
        fewest = self.until_relation_known().max(axis=-2)
        for one, other in self.settling_claims(resolution):
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
        np.maximum(each.max(axis=-2), 0.0)
        for each in (needed.first_dominates, needed.second_dominates)
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
