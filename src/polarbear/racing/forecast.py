"""Forecast how many more instances the open pairs of a race need until they are settled.

A mean of t standard errors after P instances has t sqrt(Q / P) after Q. It is certain when that is
z, which takes

    Q = P (z / t)^2 instances.                                                                (1)

t itself has a standard error of 1, which gives the interval of a forecast.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.dominance import MAX_CELLS, Floats
from polarbear.inference.posterior import Posterior
from polarbear.racing.decisions import Forecast, Pair, pair

MAX_FORECAST_DRAWS = 200
"""The number of posterior draws that a forecast uses."""

SHIFTS = (1.28, 0.0, -1.28)
"""What is added to each t for the 10 %, 50 % and 90 % quantiles of a forecast."""


def count_more(t: Floats, n_instances: Floats, z: Floats | float) -> Floats:
    """Return how many more instances make a mean certain, by equation (1); infinite if t <= 0.

    >>> count_more(np.array([1.0, 4.0, -1.0]), np.array(10.0), 2.0)
    array([30.,  0., inf])
    """
    total = np.where(t > 0, n_instances * (z / np.maximum(t, 1e-9)) ** 2, np.inf)
    return np.maximum(total - n_instances, 0.0)


class Routes(NamedTuple):
    """The further instances of each pair (row, column) until one of two ends, at some shift."""

    replaced: Floats  # (n, n): row eliminates column
    settled: Floats  # (n, n): the pair is settled, and both stay


def forecast_pairs(
    pairs: Iterable[Pair], names: Sequence[str], find_routes: Callable[[float], Routes]
) -> tuple[Forecast | None, dict[Pair, float]]:
    """Return the forecast of a race, and how many more instances each open pair takes.

    Pairs without one of the ``names`` are left out. ``find_routes``: returns the routes of these
    names if a number is added to each t. A pair closes when it is settled, or when one of the two
    algorithms is eliminated.
    """
    code = {name: k for k, name in enumerate(names)}
    rated = [(a, b) for a, b in pairs if a in code and b in code]
    if not rated:
        return None, {}
    first, second = np.array([[code[a], code[b]] for a, b in rated]).T
    looks: list[tuple[float, float, list[float]]] = []
    for shift in SHIFTS:
        replaced, settled = find_routes(shift)
        leaves = replaced.min(axis=0)
        needed = np.minimum(settled[first, second], np.minimum(leaves[first], leaves[second]))
        longest = np.zeros(len(leaves))
        for end in (first, second):
            np.maximum.at(longest, end, needed)
        looks.append((float(needed.max()), float(longest.sum()), needed.tolist()))
    low, middle, high = looks
    quantiles = Forecast((low[0], middle[0], high[0]), (low[1], middle[1], high[1]))
    return quantiles, {pair(*both): n for both, n in zip(rated, middle[2], strict=True)}


class Leads(NamedTuple):
    """The utility lead of each algorithm (row) over each other one (column), by a posterior."""

    mean: Floats  # (T, n, n)
    spread: Floats  # (T, n, n): standard deviations
    instances: Floats  # (T, n, n): on which both have run, at least 1

    @classmethod
    def of(
        cls, posterior: Posterior, rankings: Rankings, weights: Floats | None = None
    ) -> Self | None:
        """Return the leads at each time, or in the weighted mean; None if these are too many."""
        n, n_times = len(posterior.algorithms), len(posterior.times)
        if n * n * n_times > MAX_CELLS:
            return None
        draws = posterior.utilities
        draws = draws[:: max(1, len(draws) // MAX_FORECAST_DRAWS)]
        at = np.ones(n_times, dtype=bool)
        if weights is not None:
            draws, at = np.einsum("dtn,t->dn", draws, weights)[:, None], weights > 0
        centre = draws.mean(axis=0)
        apart = np.moveaxis(draws - centre, 0, -1)  # (T, n, D)
        covariance = apart @ apart.swapaxes(1, 2) / len(draws)
        own = np.diagonal(covariance, axis1=1, axis2=2)
        variance = own[:, :, None] + own[:, None] - 2 * covariance
        weight = np.repeat(rankings.weight, np.diff(rankings.offset))  # 1 for each instance
        counts = np.array(
            [
                np.bincount(rankings.algorithm[known], weight[known], minlength=n)
                for known in rankings.position[at] != UNKNOWN
            ]
        )
        counts = counts if weights is None else counts.min(axis=0, keepdims=True)
        return cls(
            mean=centre[:, :, None] - centre[:, None],
            spread=np.sqrt(np.maximum(variance, 1e-18)),
            instances=np.maximum(np.minimum(counts[:, :, None], counts[:, None]), 1.0),
        )
