"""Pareto-smoothed importance sampling (Vehtari et al. 2024): a certificate and a correction.

Draws of an approximation are weighted by how much more likely the target makes them. The largest
weights are replaced by quantiles of a generalised Pareto distribution fitted to them; its shape
k-hat says whether the weights can be trusted: below 0.7 they can.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.inference.draws import turned

Floats = NDArray[np.float64]


ENOUGH = 0.7
"""Importance weights can be trusted up to this k-hat."""

AT_ONCE = 1_000_000
"""The most numbers worked on at once, which bounds memory."""


class Smoothed(NamedTuple):
    """Normalised weights (D, B), and the shapes (B,) of their tails."""

    weight: Floats
    k: Floats


def smooth(log_ratio: Floats) -> Smoothed:
    """Smooth the log-ratios (D, B) of target to approximation: each column by itself.

    >>> even = smooth(np.zeros((1000, 1)))
    >>> even.k, even.weight.sum().round(6)
    (array([-inf]), np.float64(1.0))
    """
    row = turned(log_ratio)  # draws of a block side by side
    weight = np.exp(row - row.max(axis=1, keepdims=True))
    size = weight.shape[1]
    tail = int(min(0.2 * size, 3 * np.sqrt(size)))
    k = np.full(len(weight), np.inf)
    step = max(1, AT_ONCE // (max(1, tail) * _grid_size(tail)))
    for b in range(0, len(weight) if tail >= 5 else 0, step):
        k[b : b + step] = _smoothed(weight[b : b + step], tail)
    return Smoothed((weight / weight.sum(axis=1, keepdims=True)).T, k)


def _smoothed(weight: Floats, tail: int) -> Floats:
    """Replace the largest weights of rows (B, D) by quantiles, and return the shapes (B,)."""
    largest = np.argpartition(weight, -tail - 1, axis=1)[:, -tail - 1 :]
    value = np.take_along_axis(weight, largest, axis=1)
    order = np.argsort(value, axis=1)
    largest = np.take_along_axis(largest, order, axis=1)[:, 1:]
    value = np.take_along_axis(value, order, axis=1)
    cutoff, excess = value[:, :1], value[:, 1:] - value[:, :1]
    k = np.full(len(weight), -np.inf)
    uneven = excess[:, -1] > 1e-12  # else the weights are all alike
    if uneven.any():
        shape, scale = _fit_pareto(np.maximum(excess[uneven], 1e-300))
        share = (np.arange(tail) + 0.5) / tail
        waiting = -np.log1p(-share)  # quantiles of the exponential, which is the shape 0
        safe = np.where(shape == 0, 1e-300, shape)[:, None]
        with np.errstate(over="ignore"):  # infinite weights are cut
            longer = np.expm1(safe * waiting) / safe
        value[uneven, 1:] = np.minimum(cutoff[uneven] + scale[:, None] * longer, 1.0)
        np.put_along_axis(weight, largest, value[:, 1:], axis=1)
        k[uneven] = shape
    return k


def _grid_size(tail: int) -> int:
    return 30 + int(np.sqrt(tail))


def _fit_pareto(excess: Floats) -> tuple[Floats, Floats]:
    """Shapes and scales of generalised Paretos (Zhang and Stephens 2009, with a weak prior).

    Of sorted rows (B, tail).
    """
    size = excess.shape[1]
    number = _grid_size(size)
    quartile = excess[:, max(0, size // 4 - 1)]
    grid = 1 - np.sqrt(number / (np.arange(1, number + 1) - 0.5))
    grid = grid / (3 * quartile[:, None]) + 1 / excess[:, -1:]
    shapes = np.log1p(-grid[:, :, None] * excess[:, None, :]).mean(axis=2)
    profile = size * (np.log(-grid / shapes) - shapes - 1)
    weight = np.exp(profile - profile.max(axis=1, keepdims=True))
    theta = np.sum(weight * grid, axis=1) / weight.sum(axis=1)
    k = np.log1p(-theta[:, None] * excess).mean(axis=1)
    return k * size / (size + 10) + 5 / (size + 10), -k / theta
