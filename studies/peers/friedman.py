"""Friedman's test with Conover's comparisons after it, at many times at once.

This is what F-Race and irace test with. ``scipy.stats.friedmanchisquare`` gives the same statistic
for one time (a test compares them); the comparisons after it are not in scipy.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def statistic(values: Floats) -> Floats:
    """Friedman's statistic, corrected for ties, of values (..., instances, n)."""
    blocks, n = values.shape[-2:]
    squares, sums, centre = _sums(values)
    spread = squares - centre
    found = (n - 1) * ((sums**2).sum(axis=-1) - blocks * centre)
    return np.divide(found, spread, out=np.zeros_like(found), where=spread > 0)


def better(values: Floats, level: float) -> Bools:
    """Whether row is better than column (..., n, n), both tests at this level of significance."""
    blocks, n = values.shape[-2:]
    squares, sums, _ = _sums(values)
    freedom = (blocks - 1) * (n - 1)
    inside = 2 * (blocks * squares - (sums**2).sum(axis=-1)) / freedom
    least = stats.t.ppf(1 - level / 2, freedom) * np.sqrt(np.maximum(inside, 0.0))
    lead = sums[..., None, :] - sums[..., :, None]  # small ranks are good
    differ = stats.chi2.sf(statistic(values), n - 1) < level
    return (lead > least[..., None, None]) & differ[..., None, None]


def _sums(values: Floats) -> tuple[Floats, Floats, float]:
    """Ranks squared and summed, ranks summed by algorithm, and what the former is without order."""
    ranks = stats.rankdata(values, axis=-1)
    blocks, n = values.shape[-2:]
    centre = blocks * n * (n + 1) ** 2 / 4
    return (ranks**2).sum(axis=(-2, -1)), ranks.sum(axis=-2), centre
