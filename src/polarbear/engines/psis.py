"""Pareto-smoothed importance sampling (Vehtari et al. 2024): a certificate and a correction.

Draws of an approximation are weighted by how much more likely the target makes them. The largest
weights are replaced by quantiles of a generalised Pareto distribution fitted to them; its shape
k-hat says whether the weights can be trusted: below 0.7 they can.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]


ENOUGH = 0.7
"""Importance weights can be trusted up to this k-hat."""


class Smoothed(NamedTuple):
    """Normalised log-weights, and the shape of their tail."""

    log_weight: Floats
    k: float


def smooth(log_ratio: Floats) -> Smoothed:
    """Smooth the log-ratios of target to approximation.

    >>> even = smooth(np.zeros(1000))
    >>> even.k, float(np.exp(even.log_weight).sum().round(6))
    (-inf, 1.0)
    """
    log_weight = log_ratio - log_ratio.max()
    size = len(log_weight)
    tail = int(min(0.2 * size, 3 * np.sqrt(size)))
    k = np.inf
    if tail >= 5:
        order = np.argsort(log_weight)
        cutoff = log_weight[order[-tail - 1]]
        excess = np.exp(log_weight[order[-tail:]]) - np.exp(cutoff)
        if excess[-1] <= 1e-12:
            k = -np.inf  # the weights are all alike
        else:
            k, scale = _fit_pareto(np.maximum(excess, 1e-300))
            share = (np.arange(tail) + 0.5) / tail
            waiting = -np.log1p(-share)  # quantiles of the exponential, which is the shape 0
            with np.errstate(over="ignore"):  # infinite weights are cut below
                excess = scale * (np.expm1(k * waiting) / k if k else waiting)
            quantile = np.exp(cutoff) + excess
            log_weight[order[-tail:]] = np.log(np.minimum(quantile, 1.0))
    return Smoothed(log_weight - logsumexp(log_weight), float(k))


def _fit_pareto(excess: Floats) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto (Zhang and Stephens 2009, with a weak prior)."""
    size = len(excess)
    number = 30 + int(np.sqrt(size))
    quartile = excess[max(0, size // 4 - 1)]
    grid = 1 - np.sqrt(number / (np.arange(1, number + 1) - 0.5))
    grid = grid / (3 * quartile) + 1 / excess[-1]
    shapes = np.log1p(-grid[:, None] * excess).mean(axis=1)
    profile = size * (np.log(-grid / shapes) - shapes - 1)
    weight = np.exp(profile - logsumexp(profile))
    theta = float(weight @ grid)
    k = float(np.log1p(-theta * excess).mean())
    scale = -k / theta
    return k * size / (size + 10) + 5 / (size + 10), scale
