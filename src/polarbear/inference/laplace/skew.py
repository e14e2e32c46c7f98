"""Skewed marginals for a Gaussian approximation, along the most skewed directions.

When an algorithm has won or lost all comparisons, the posterior of its utility has an exponential
tail on one side. Importance weights with a Gaussian proposal then have a huge variance. Along such
a direction the normal coordinate is therefore replaced by the logarithm of a gamma variable with
the same mode, curvature and third derivative, which is the posterior of such a sweep.

With third derivative d, the shape of the gamma variable g is a = d^-2, and the coordinate is
sqrt(a) log(g / a), mirrored if d > 0. It has mode 0, curvature 1 and third derivative -1 / sqrt(a).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv, gammaln, log_ndtr, ndtr

Floats = NDArray[np.float64]

MIN_THIRD_DERIVATIVE = 0.15
"""Directions with a smaller third derivative stay Gaussian."""

QUANTILE_NODES = np.linspace(-7.0, 7.0, 141)
"""Normal quantiles at which the transformation is exact; it is interpolated between them."""

MAX_SEARCHED_DIRECTIONS, MAX_SKEW_DIRECTIONS = 6, 24
"""The most directions of which the most skewed is searched anew after each choice, and the most
directions that are examined in each block."""


class SkewTransform(NamedTuple):
    """A map from normal to skewed variables along orthonormal directions of each block of times."""

    direction: Floats  # (B, r, size)
    utility_direction: Floats  # (B, r, n): the same directions in utilities
    third_derivative: Floats  # (B, r): of the log-posterior; 0 leaves a direction Gaussian

    def transform(self, noise: Floats) -> "SkewedNoise":
        """Map standard normal variables (draws, blocks, size) to skewed ones."""
        mapped = self._map_coordinates(noise)
        log_ratio = (_log_normal_density(mapped.skewed) - mapped.log_density).sum(axis=-1)
        shift = mapped.skewed - mapped.normal
        return SkewedNoise(
            noise + multiply_blocks(shift, self.direction),
            multiply_blocks(shift, self.utility_direction),
            log_ratio,
            mapped,
        )

    def compute_score(self, skewed: "SkewedNoise") -> Floats:
        """Return the gradient of the log-density of skewed variables."""
        along = multiply_blocks(skewed.noise, self.direction.swapaxes(1, 2))
        return multiply_blocks(along + skewed.mapped.slope, self.direction) - skewed.noise

    def pull_back_gradient(self, skewed: "SkewedNoise", gradient: Floats) -> Floats:
        """Convert gradients with respect to skewed variables to those for normal variables."""
        mapped = skewed.mapped
        jacobian = np.exp(_log_normal_density(mapped.normal) - mapped.log_density)
        log_jacobian_slope = -mapped.normal - mapped.slope * jacobian
        along = multiply_blocks(gradient, self.direction.swapaxes(1, 2))
        change = (jacobian - 1) * along + log_jacobian_slope
        return gradient + multiply_blocks(change, self.direction)

    def _map_coordinates(self, noise: Floats) -> "_MappedCoordinates":
        # Draws of one direction are contiguous, because each direction has its own gamma shape.
        normal = self.direction @ np.ascontiguousarray(noise.transpose(1, 2, 0))
        skewed, log_density, slope = normal.copy(), _log_normal_density(normal), -normal
        for b, r in zip(*np.nonzero(self.third_derivative), strict=True):
            mapped = _map_to_log_gamma(normal[b, r], float(self.third_derivative[b, r]))
            skewed[b, r], log_density[b, r], slope[b, r] = mapped
        coordinates = (normal, skewed, log_density, slope)
        return _MappedCoordinates(*(values.transpose(2, 0, 1) for values in coordinates))


class _MappedCoordinates(NamedTuple):
    """Coordinates along the skewed directions, before and after the transformation."""

    normal: Floats
    skewed: Floats
    log_density: Floats  # of the skewed coordinate
    slope: Floats  # derivative of that log-density


class SkewedNoise(NamedTuple):
    """Variables after the skew transformation, with their density."""

    noise: Floats  # (D, B, size)
    utility_shift: Floats  # (D, B, n): the change in utilities
    log_ratio: Floats  # (D, B): normal density to skewed density at the transformed noise
    mapped: _MappedCoordinates


def find_skew(
    third_derivative: Callable[[Floats], Floats], candidates: Floats, noise_to_utilities: Floats
) -> SkewTransform | None:
    """Choose the most skewed of given directions in each block of times; None if none is skewed.

    ``third_derivative`` maps unit directions (B, c, size) to third derivatives (B, c) of the
    log-posterior along them. ``noise_to_utilities`` is (B, size, n). Chosen directions are made
    orthonormal.
    """
    blocks, n_candidates, size = candidates.shape
    if n_candidates > MAX_SEARCHED_DIRECTIONS:
        return _order_by_skew(third_derivative, candidates, noise_to_utilities)
    rows = np.arange(blocks)
    direction, third = np.zeros((blocks, 0, size)), np.zeros((blocks, 0))
    for _ in range(n_candidates):
        # Gram-Schmidt: what a candidate has beyond the directions chosen before.
        rest = candidates - candidates @ direction.swapaxes(1, 2) @ direction
        norm = np.linalg.norm(rest, axis=-1, keepdims=True)
        unit = rest / np.maximum(norm, 1e-300) * (norm > 1e-6)
        along = third_derivative(unit) * (norm[..., 0] > 1e-6)
        best = np.abs(along).argmax(axis=1)
        largest = along[rows, best]
        direction = np.concatenate([direction, unit[rows, best][:, None]], axis=1)
        third = np.concatenate([third, largest[:, None]], axis=1)
        if np.abs(largest).max() < MIN_THIRD_DERIVATIVE:
            break
    third = np.where(np.abs(third) < MIN_THIRD_DERIVATIVE, 0.0, third)
    return SkewTransform(direction, direction @ noise_to_utilities, third) if third.any() else None


def _order_by_skew(
    third_derivative: Callable[[Floats], Floats], candidates: Floats, noise_to_utilities: Floats
) -> SkewTransform | None:
    """Make directions orthonormal in the order of their skewness, the most skewed first."""
    unit = candidates / np.maximum(np.linalg.norm(candidates, axis=-1, keepdims=True), 1e-300)
    along = np.abs(third_derivative(unit))
    if along.max() < MIN_THIRD_DERIVATIVE:
        return None
    order = np.argsort(-along, axis=1, kind="stable")[:, : candidates.shape[2]]
    ordered = np.take_along_axis(unit, order[:, :, None], axis=1)
    direction = np.linalg.qr(ordered.swapaxes(1, 2)).Q.swapaxes(1, 2)
    third = third_derivative(direction)
    third = np.where(np.abs(third) < MIN_THIRD_DERIVATIVE, 0.0, third)
    used = np.flatnonzero(third.any(axis=0))
    direction, third = direction[:, used], third[:, used]
    return SkewTransform(direction, direction @ noise_to_utilities, third) if len(used) else None


def multiply_blocks(rows: NDArray[Any], matrices: NDArray[Any]) -> NDArray[Any]:
    """Multiply the rows of each block (draws, blocks, i) by the block's matrix (blocks, i, j)."""
    return (rows.swapaxes(0, 1) @ matrices).swapaxes(0, 1)


def _log_normal_density(x: Floats) -> Floats:
    """Return the logarithm of the standard normal density."""
    return -0.5 * x**2 - 0.5 * np.log(2 * np.pi)


def _map_to_log_gamma(normal: Floats, third_derivative: float) -> tuple[Floats, Floats, Floats]:
    """Map normal variates to the quantiles of a scaled log-gamma distribution.

    Returns the mapped values, the log-density there, and its slope.
    """
    shape = third_derivative**-2
    side = -np.sign(third_derivative)  # a negative third derivative: the long tail is below
    few = len(normal) <= len(QUANTILE_NODES)
    log_value = (_log_gamma_quantile if few else _interpolate_quantile)(side * normal, shape)
    value = np.exp(log_value)
    log_density = shape * log_value - value - gammaln(shape) - 0.5 * np.log(shape)
    slope = side * (shape - value) / np.sqrt(shape)
    return side * np.sqrt(shape) * (log_value - np.log(shape)), log_density, slope


def _log_gamma_quantile(z: Floats, shape: float) -> Floats:
    """Return the log of the gamma quantile at the probability Phi(z) of a normal variate z."""
    lower = z < 0
    value = np.empty_like(z)
    value[lower] = gammaincinv(shape, ndtr(z[lower]))
    value[~lower] = gammainccinv(shape, ndtr(-z[~lower]))
    # The smallest values underflow; there the distribution function is x^a / Gamma(a + 1).
    small = value < 1e-12
    log_value = np.log(np.where(small, 1.0, value))
    log_value[small] = (log_ndtr(z[small]) + gammaln(shape + 1)) / shape
    return log_value


@lru_cache(4096)
def _quantiles_at_nodes(shape: float) -> tuple[Floats, Floats]:
    """Return log-gamma quantiles and slopes at the interpolation nodes; results are cached."""
    quantile = _log_gamma_quantile(QUANTILE_NODES, shape)
    log_density = shape * quantile - np.exp(quantile) - gammaln(shape)
    return quantile, np.exp(_log_normal_density(QUANTILE_NODES) - log_density)


def _interpolate_quantile(z: Floats, shape: float) -> Floats:
    """Return log-gamma quantiles of many normal variates, to 1e-6, by cubic interpolation."""
    quantile, slope = _quantiles_at_nodes(shape)
    step = QUANTILE_NODES[1] - QUANTILE_NODES[0]
    k = np.clip((z - QUANTILE_NODES[0]) // step, 0, len(QUANTILE_NODES) - 2).astype(np.intp)
    u = (z - QUANTILE_NODES[k]) / step
    v = 1 - u
    # Written out, because importing scipy.interpolate takes longer than a fit.
    log_value = v * v * ((1 + 2 * u) * quantile[k] + u * step * slope[k])
    log_value += u * u * ((1 + 2 * v) * quantile[k + 1] - v * step * slope[k + 1])
    beyond = np.abs(z) > QUANTILE_NODES[-1]
    if beyond.any():
        log_value[beyond] = _log_gamma_quantile(z[beyond], shape)
    return log_value
