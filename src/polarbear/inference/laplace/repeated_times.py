"""Neighbouring times with equal rankings, which are fitted once.

Where instances are the units of evidence and the prior treats times as independent, such times have
the same posterior, and their draws are the same.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings, select_times
from polarbear.inference.posterior import Posterior

MIN_MERGED_TIMES = 20
"""The number of times from which equal ones are merged; below it saves little."""


def merge_equal_times(rankings: Rankings) -> tuple[Rankings, NDArray[np.intp]]:
    """Return rankings without times equal to the one before, and the new index of each time.

    >>> from polarbear.simulation import rank_costs
    >>> part, source = merge_equal_times(rank_costs(np.tile(np.arange(3.0), (30, 5, 1))))
    >>> len(part.times), source.max()
    (1, np.int64(0))
    """
    changes = np.any(rankings.position[1:] != rankings.position[:-1], axis=1)
    if (rest := rankings.behind_top) is not None:
        changes |= np.any(rest[1:] != rest[:-1], axis=1)
    source = np.cumsum([0, *changes])
    is_small = len(rankings.times) < MIN_MERGED_TIMES
    if is_small or changes.all() or rankings.ties == "partial":  # which have more than positions
        return rankings, source
    first = np.flatnonzero([True, *changes])
    return select_times(rankings, first), source


def repeat_times(
    posterior: Posterior, times: NDArray[np.float64], source: NDArray[np.intp]
) -> Posterior:
    """Return a posterior at other times, each of which equals the time with index ``source``."""
    weight, curves, mixture = posterior.weight, posterior.curves, posterior.mixture
    if mixture is not None:
        mixture = replace(
            mixture,
            mean=mixture.mean[:, source],
            covariance=mixture.covariance[:, source],
            holds=mixture.holds[source],
            bent=mixture.bent if mixture.bent.size == 1 else mixture.bent[:, source],
        )
    repeated = replace(
        posterior,
        times=times,
        draws=posterior.draws[:, source],
        weight=weight if weight.shape[1] == 1 else weight[:, source],
        mixture=mixture,
        curves=None if curves is None else curves[:, source],
    )
    if curves is None:  # a cached property that is computed time by time
        is_plain = posterior.utilities is posterior.draws
        utilities = repeated.draws if is_plain else posterior.utilities[:, source]
        vars(repeated)["utilities"] = utilities
    return repeated
