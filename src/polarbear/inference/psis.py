"""Pareto-smoothed importance sampling (Vehtari et al., JMLR 2024).

Draws of an approximation are weighted by the ratio of the target density to the approximation. The
largest weights are replaced by quantiles of a generalised Pareto distribution fitted to them. Its
shape k-hat diagnoses the weights: they are reliable below 0.7.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.inference.draws import transpose_in_tiles

Floats = NDArray[np.float64]


MAX_K_HAT = 0.7
"""Importance weights are reliable up to this k-hat."""

MAX_CELLS = 1_000_000
"""The most numbers processed at once, which bounds memory."""


class SmoothedWeights(NamedTuple):
    """Normalised weights (draws, blocks), and k-hat of each block: how heavy their tail is."""

    weight: Floats
    k_hat: Floats


def smooth_weights(log_ratio: Floats) -> SmoothedWeights:
    """Return Pareto-smoothed importance weights from log(target / proposal) (draws, blocks).

    Each column is smoothed by itself.

    >>> smoothed = smooth_weights(np.zeros((1000, 1)))
    >>> smoothed.k_hat, smoothed.weight.sum().round(6)
    (array([-inf]), np.float64(1.0))
    """
    row = transpose_in_tiles(log_ratio)  # the draws of a block are contiguous
    weight = np.exp(row - row.max(axis=1, keepdims=True))
    size = weight.shape[1]
    tail = int(min(0.2 * size, 3 * np.sqrt(size)))
    k_hat = np.full(len(weight), np.inf)
    step = max(1, MAX_CELLS // (max(1, tail) * _grid_size(tail)))
    for b in range(0, len(weight) if tail >= 5 else 0, step):
        k_hat[b : b + step] = _smooth_tails(weight[b : b + step], tail)
    return SmoothedWeights((weight / weight.sum(axis=1, keepdims=True)).T, k_hat)


def _smooth_tails(weight: Floats, tail: int) -> Floats:
    """Smooth the ``tail`` largest weights of each row in place; return k-hat of each row."""
    largest = np.argpartition(weight, -tail - 1, axis=1)[:, -tail - 1 :]
    value = np.take_along_axis(weight, largest, axis=1)
    order = np.argsort(value, axis=1)
    largest = np.take_along_axis(largest, order, axis=1)[:, 1:]
    value = np.take_along_axis(value, order, axis=1)
    cutoff, excess = value[:, :1], value[:, 1:] - value[:, :1]
    k_hat = np.full(len(weight), -np.inf)
    uneven = excess[:, -1] > 1e-12  # otherwise all weights are equal
    if uneven.any():
        shape, scale = _fit_generalised_pareto(np.maximum(excess[uneven], 1e-300))
        probability = (np.arange(tail) + 0.5) / tail
        exponential = -np.log1p(-probability)  # quantiles of the exponential: shape 0
        safe = np.where(shape == 0, 1e-300, shape)[:, None]
        with np.errstate(over="ignore"):  # infinite quantiles are cut to the largest raw weight
            quantile = np.expm1(safe * exponential) / safe
        value[uneven, 1:] = np.minimum(cutoff[uneven] + scale[:, None] * quantile, 1.0)
        np.put_along_axis(weight, largest, value[:, 1:], axis=1)
        k_hat[uneven] = shape
    return k_hat


def _grid_size(tail: int) -> int:
    """Return the number of grid points of the Pareto fit (Zhang and Stephens 2009)."""
    return 30 + int(np.sqrt(tail))


def _fit_generalised_pareto(excess: Floats) -> tuple[Floats, Floats]:
    """Fit a generalised Pareto distribution to each sorted row; return shapes and scales.

    The estimator of Zhang and Stephens (2009): the posterior mean over a grid of the profile
    likelihood. A weak prior, worth 10 observations, shrinks the shape towards 1/2.
    """
    size = excess.shape[1]
    n_points = _grid_size(size)
    quartile = excess[:, max(0, size // 4 - 1)]
    grid = 1 - np.sqrt(n_points / (np.arange(1, n_points + 1) - 0.5))
    grid = grid / (3 * quartile[:, None]) + 1 / excess[:, -1:]
    shapes = np.log1p(-grid[:, :, None] * excess[:, None, :]).mean(axis=2)
    profile = size * (np.log(-grid / shapes) - shapes - 1)
    weight = np.exp(profile - profile.max(axis=1, keepdims=True))
    theta = np.sum(weight * grid, axis=1) / weight.sum(axis=1)
    k = np.log1p(-theta[:, None] * excess).mean(axis=1)
    return k * size / (size + 10) + 5 / (size + 10), -k / theta
