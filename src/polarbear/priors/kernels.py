"""Stationary kernels: covariance, spectral density, Markov chain, and the heuristics of HSGP."""

from dataclasses import dataclass
from math import gamma, pi, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polarbear.priors.base import NUMPY, Algebra, Chain

Floats = NDArray[np.float64]
Name = Literal["matern32", "matern52", "squared-exponential"]


def covariance(
    kernel: Name, times: Floats, others: Floats, scale: Any, length: Any, algebra: Algebra = NUMPY
) -> Any:
    """Covariance between two sets of times (paper, eq. 10)."""
    distance = np.abs(times[:, None] - others[None, :]) / length
    if kernel == "squared-exponential":
        return scale**2 * algebra.exp(-0.5 * distance**2)
    if kernel == "matern32":
        root = sqrt(3) * distance
        return scale**2 * (1 + root) * algebra.exp(-root)
    root = sqrt(5) * distance
    return scale**2 * (1 + root + root**2 / 3) * algebra.exp(-root)


def spectral_density(
    kernel: Name, frequency: Floats, scale: Any, length: Any, algebra: Algebra = NUMPY
) -> Any:
    """Spectral density at angular frequencies, for the basis of a Hilbert-space GP."""
    if kernel == "squared-exponential":
        return scale**2 * sqrt(2 * pi) * length * algebra.exp(-0.5 * (length * frequency) ** 2)
    nu = 1.5 if kernel == "matern32" else 2.5
    front = 2 * sqrt(pi) * gamma(nu + 0.5) * (2 * nu) ** nu / (gamma(nu) * length ** (2 * nu))
    return scale**2 * front * (2 * nu / length**2 + frequency**2) ** -(nu + 0.5)


@dataclass(frozen=True)
class BasisRule:
    """How wide and how fine a Hilbert-space basis must be (Riutort-Mayol et al. 2022, sec. 4)."""

    boundary: float  # c >= boundary * length / S, for the longest length
    number: float  # m >= number * c * S / length, for the shortest


BASIS_RULES: dict[Name, BasisRule] = {
    "matern32": BasisRule(4.5, 3.42),
    "matern52": BasisRule(4.1, 2.65),
    "squared-exponential": BasisRule(3.2, 1.75),
}


def markov(kernel: Name, times: Floats, scale: float, length: float) -> Chain | None:
    """A Matern process as a Markov chain of value and derivatives; ``None`` if it is none."""
    if kernel == "squared-exponential":
        return None
    gap = np.diff(times)
    if kernel == "matern32":
        rate = sqrt(3) / length
        x = rate * gap
        rows = [[1 + x, gap], [-rate * x, 1 - x]]
        start = np.diag([1.0, rate**2])
    else:
        rate = sqrt(5) / length
        x = rate * gap
        rows = [
            [1 + x + x**2 / 2, gap * (1 + x), gap**2 / 2],
            [-rate * x**2 / 2, 1 + x - x**2, gap * (1 - x / 2)],
            [rate**2 * (x**2 / 2 - x), rate * (x**2 - 3 * x), 1 - 2 * x + x**2 / 2],
        ]
        kappa = rate**2 / 3
        start = np.array([[1.0, 0.0, -kappa], [0.0, kappa, 0.0], [-kappa, 0.0, rate**4]])
    start = scale**2 * start
    # The exponential of the drift, in closed form; shape (T - 1, s, s).
    move = np.exp(-x)[:, None, None] * np.moveaxis(np.array(rows), -1, 0)
    # The process is stationary, so what is added keeps the covariance as it was.
    noise = start - move @ start @ np.swapaxes(move, 1, 2)
    return Chain(start, move, noise)
