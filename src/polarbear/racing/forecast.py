"""Forecast how many more instances the open pairs of a race need until they are settled.

A mean of t standard errors after P instances has t sqrt(Q / P) after Q. It is certain when that is
z, which takes

    Q = P (z / t)^2 instances.                                                                (1)

t itself has a standard error of 1. So the number is computed for several values of t that may be
the truth, such as those of posterior draws, which gives the interval of a forecast.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np

from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.dominance import MAX_CELLS, Floats
from polarbear.inference.posterior import Posterior
from polarbear.racing.decisions import Forecast, Pair, pair

MIN_FORECAST_DRAWS, MAX_FORECAST_DRAWS = 20, 200
"""The number of posterior draws that a forecast uses."""

SHIFTS = (1.28, 0.0, -1.28)
"""What is added to each t for a forecast without a posterior: the quantiles of its error."""


def count_more(t: Floats, n_instances: Floats, z: Floats | float) -> Floats:
    """Return how many more instances make a mean certain, by equation (1); infinite if t <= 0.

    >>> count_more(np.array([1.0, 4.0, -1.0]), np.array(10.0), 2.0)
    array([30.,  0., inf])
    """
    total = np.where(t > 0, n_instances * (z / np.maximum(t, 1e-9)) ** 2, np.inf)
    return np.maximum(total - n_instances, 0.0)


def errors_of_proof(log_k: Floats) -> Floats:
    """Return of how many standard errors a mean is when a bet on it has about reached exp(log_k).

    >>> errors_of_proof(np.log([20.0, 1e6])).round(2)
    array([2.83, 5.44])
    """
    return np.sqrt(2 * (log_k + 1))


def count_more_bets(
    log_e: Floats, t: Floats, n_instances: Floats, log_k: Floats, shift: float
) -> Floats:
    """Return how many more instances a bet takes until it has grown to exp(log_k).

    ``shift`` is added to the standard errors t of the mean. One instance adds a bounded amount, so
    a proof takes several however clear the lead is: a bet also has to grow as it did so far, where
    about 1 is what a mixture of bets costs.

    >>> count_more_bets(np.array([2.0]), np.array([4.0]), np.array([6.0]), np.array([5.0]), 0.0)
    array([6.])
    """
    by_mean = count_more(t + shift, n_instances, errors_of_proof(log_k))
    more = np.maximum(log_k - log_e, 0.0) * n_instances / (np.maximum(log_e, 0.0) + 1)
    is_known = (t > 0) & (t + shift > 0)  # else nothing has grown, or nothing ever will
    slower = (np.maximum(t, 1e-9) / np.where(is_known, t + shift, 1.0)) ** 2
    return np.maximum(by_mean, np.where(is_known, more * slower, 0.0))


class Routes(NamedTuple):
    """The further instances of each pair (row, column) until one of two ends, for some truth."""

    replaced: Floats  # (n, n): row eliminates column
    settled: Floats  # (n, n): the pair is settled, and both stay


def forecast_pairs(
    pairs: Iterable[Pair], names: Sequence[str], routes: Iterable[Routes]
) -> tuple[Forecast | None, dict[Pair, float]]:
    """Return the forecast of a race, and the median instances that each open pair takes.

    Pairs without one of the ``names`` are left out. ``routes``: those of these names, for each of
    several truths. A pair closes when it is settled, or when one of the two is eliminated.
    """
    code = {name: k for k, name in enumerate(names)}
    rated = [(a, b) for a, b in pairs if a in code and b in code]
    if not rated:
        return None, {}
    first, second = np.array([[code[a], code[b]] for a, b in rated]).T
    needed: list[Floats] = []
    runs: list[float] = []
    for replaced, settled in routes:
        leaves = replaced.min(axis=0)
        more = np.minimum(settled[first, second], np.minimum(leaves[first], leaves[second]))
        longest = np.zeros(len(leaves))
        for end in (first, second):
            np.maximum.at(longest, end, more)
        needed.append(more)
        runs.append(float(longest.sum()))
    forecast = Forecast(_find_quantiles(np.max(needed, axis=1)), _find_quantiles(np.array(runs)))
    median: list[float] = np.median(needed, axis=0).tolist()
    return forecast, {pair(*both): more for both, more in zip(rated, median, strict=True)}


def _find_quantiles(values: Floats) -> tuple[float, float, float]:
    """Return the 10 %, 50 % and 90 % quantiles of a forecast, whose values may be infinite."""
    ordered = np.sort(values)  # np.quantile makes nan of two infinities
    low, middle, high = (float(ordered[round(q * (len(values) - 1))]) for q in (0.1, 0.5, 0.9))
    return low, middle, high


class Leads(NamedTuple):
    """The utility lead of each algorithm (row) over each other one (column), by a posterior."""

    utilities: Floats  # (D, T, n): draws
    spread: Floats  # (T, n, n): standard deviations
    instances: Floats  # (T, n, n): on which both have run, at least 1

    @classmethod
    def of(
        cls, posterior: Posterior, rankings: Rankings, weights: Floats | None = None
    ) -> Self | None:
        """Return the leads at each time, or in the weighted mean; None if these are too many."""
        n, n_times = len(posterior.algorithms), len(posterior.times)
        n_draws = min(MAX_CELLS // (n_times * n * n // 2), MAX_FORECAST_DRAWS)
        if n_draws < MIN_FORECAST_DRAWS:
            return None
        step = max(1, len(posterior.utilities) // n_draws)
        draws = posterior.utilities[::step].astype(np.float64)
        at = np.ones(n_times, dtype=bool)
        if weights is not None:
            draws, at = np.einsum("dtn,t->dn", draws, weights)[:, None], weights > 0
        apart = np.moveaxis(draws - draws.mean(axis=0), 0, -1)  # (T, n, D)
        covariance = apart @ apart.swapaxes(1, 2) / len(draws)
        own = np.diagonal(covariance, axis1=1, axis2=2)
        variance = own[:, :, None] + own[:, None] - 2 * covariance
        weight = np.repeat(rankings.weight, np.diff(rankings.offset))  # 1 for each instance
        known = rankings.position[at] != UNKNOWN
        rows = [np.bincount(rankings.algorithm[k], weight[k], minlength=n) for k in known]
        counts = np.array(rows)
        counts = counts if weights is None else counts.min(axis=0, keepdims=True)
        return cls(
            utilities=draws,
            spread=np.sqrt(np.maximum(variance, 1e-18)),
            instances=np.maximum(np.minimum(counts[:, :, None], counts[:, None]), 1.0),
        )

    def each(self) -> Iterator[Floats]:
        """Yield the leads (T, n, n) of each draw."""
        return (one[:, :, None] - one[:, None] for one in self.utilities)
