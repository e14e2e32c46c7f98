"""Bend a Gaussian along the directions in which the posterior is most skewed.

After an algorithm has won or lost everything, its utility has an exponential tail on one side, and
weights that take a Gaussian there have no variance to speak of: a sweep is the one thing Laplace
is bad at. Along such a direction the noise is replaced by the logarithm of a gamma variable with
the same mode, curvature and third derivative, which is what the posterior of a sweep is.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv, gammaln, log_ndtr, ndtr

Floats = NDArray[np.float64]

LEAST = 0.15
"""Directions of which the third derivative is smaller stay as they are."""

NODES = np.linspace(-7.0, 7.0, 141)
"""Where the bending is worked out exactly; hardly any noise lies beyond."""

MOST_SKEWED = 6
"""The most directions that are looked at."""


class Skew(NamedTuple):
    """Orthonormal directions for each block, and how skewed the posterior is along them."""

    direction: Floats  # (B, r, size)
    line: Floats  # (B, r, n): the same in utilities
    third: Floats  # (B, r): third derivatives of the log-posterior, 0 for none

    def bend(self, noise: Floats) -> "Bent":
        """Move noise (D, B, size) along the directions."""
        mapped = self._mapped(noise)
        extra = (_log_normal(mapped.there) - mapped.log_density).sum(axis=-1)
        shift = mapped.there - mapped.along
        moved = noise + per_block(shift, self.direction)
        return Bent(moved, per_block(shift, self.line), extra, mapped)

    def pull(self, bent: "Bent", slope: Floats) -> Floats:
        """The slope of the log-density of noise before it was bent, from the slope where it is."""
        mapped = bent.mapped
        stretch = np.exp(_log_normal(mapped.along) - mapped.log_density)
        turn = -mapped.along - mapped.slope * stretch
        onto = per_block(slope, self.direction.swapaxes(1, 2))
        return slope + per_block((stretch - 1) * onto + turn, self.direction)

    def _mapped(self, noise: Floats) -> "_Mapped":
        # The draws of a direction side by side: each is worked on by itself.
        along = self.direction @ np.ascontiguousarray(noise.transpose(1, 2, 0))
        there, log_density, slope = along.copy(), _log_normal(along), -along
        for b, r in zip(*np.nonzero(self.third), strict=True):
            found = _log_gamma(along[b, r], float(self.third[b, r]))
            there[b, r], log_density[b, r], slope[b, r] = found
        return _Mapped(*(one.transpose(2, 0, 1) for one in (along, there, log_density, slope)))


class _Mapped(NamedTuple):
    along: Floats  # (D, B, r): where the noise is along each direction
    there: Floats  # where it is bent to
    log_density: Floats  # of what it is bent to, there
    slope: Floats  # of that


class Bent(NamedTuple):
    """Noise that was moved."""

    noise: Floats  # (D, B, size)
    moved: Floats  # (D, B, n): by how much, in utilities
    log_ratio: Floats  # (D, B): of the normal density there to that of what was drawn from
    mapped: _Mapped


def find(third_along: Callable[[Floats], Floats], candidates: Floats, away: Floats) -> Skew | None:
    """The most skewed of some directions (B, c, size), one after the other, orthonormal.

    ``third_along`` gives third derivatives (B, c) of the log-posterior along unit directions, and
    ``away`` (B, size, n) what noise is in utilities.
    """
    blocks, _, size = candidates.shape
    direction, third = np.zeros((blocks, 0, size)), np.zeros((blocks, 0))
    for _ in range(candidates.shape[1]):
        inside = candidates @ direction.swapaxes(1, 2) @ direction
        left = candidates - inside
        norm = np.linalg.norm(left, axis=-1, keepdims=True)
        unit = left / np.maximum(norm, 1e-300) * (norm > 1e-6)
        found = third_along(unit) * (norm[..., 0] > 1e-6)
        best = np.abs(found).argmax(axis=1)
        rows = np.arange(blocks)
        chosen = found[rows, best]
        direction = np.concatenate([direction, unit[rows, best][:, None]], axis=1)
        third = np.concatenate([third, chosen[:, None]], axis=1)
        if np.abs(chosen).max() < LEAST:
            break
    third = np.where(np.abs(third) < LEAST, 0.0, third)
    return Skew(direction, direction @ away, third) if third.any() else None


def per_block(rows: NDArray[Any], matrices: NDArray[Any]) -> NDArray[Any]:
    """Rows (D, B, i) times a matrix (B, i, j) for each block."""
    return (rows.swapaxes(0, 1) @ matrices).swapaxes(0, 1)


def _log_normal(x: Floats) -> Floats:
    return -0.5 * x**2 - 0.5 * np.log(2 * np.pi)


def _log_gamma(normal: Floats, third: float) -> tuple[Floats, Floats, Floats]:
    """Where a normal variable is mapped, the log-density there, and its slope."""
    shape = third**-2
    side = -np.sign(third)  # a negative third derivative: the long tail is below
    log_value = (_log_quantile if len(normal) <= len(NODES) else _between_nodes)(
        side * normal, shape
    )
    value = np.exp(log_value)
    # Mode 0 and curvature 1: sqrt(shape) * log(gamma / shape).
    log_density = shape * log_value - value - gammaln(shape) - 0.5 * np.log(shape)
    slope = side * (shape - value) / np.sqrt(shape)
    return side * np.sqrt(shape) * (log_value - np.log(shape)), log_density, slope


def _log_quantile(z: Floats, shape: float) -> Floats:
    """The logarithm of the gamma variable at the place in its distribution where z is in its."""
    lower = z < 0
    value = np.empty_like(z)
    value[lower] = gammaincinv(shape, ndtr(z[lower]))
    value[~lower] = gammainccinv(shape, ndtr(-z[~lower]))
    # The smallest values underflow; there the distribution function is a power.
    small = value < 1e-12
    log_value = np.log(np.where(small, 1.0, value))
    log_value[small] = (log_ndtr(z[small]) + gammaln(shape + 1)) / shape
    return log_value


@lru_cache(4096)
def _at_nodes(shape: float) -> tuple[Floats, Floats]:
    """The same at the nodes, and its slope; kept, for draws come in parts."""
    at = _log_quantile(NODES, shape)
    return at, np.exp(_log_normal(NODES) - (shape * at - np.exp(at) - gammaln(shape)))


def _between_nodes(z: Floats, shape: float) -> Floats:
    """The same to 1e-6, for many: exact at some nodes, cubic between them."""
    at, slope = _at_nodes(shape)
    step = NODES[1] - NODES[0]
    k = np.clip((z - NODES[0]) // step, 0, len(NODES) - 2).astype(np.intp)
    u = (z - NODES[k]) / step
    v = 1 - u
    # Hermite's cubic, by hand: scipy's takes longer to import than a fit takes.
    found = v * v * ((1 + 2 * u) * at[k] + u * step * slope[k])
    found += u * u * ((1 + 2 * v) * at[k + 1] - v * step * slope[k + 1])
    beyond = np.abs(z) > NODES[-1]
    if beyond.any():
        found[beyond] = _log_quantile(z[beyond], shape)
    return found
