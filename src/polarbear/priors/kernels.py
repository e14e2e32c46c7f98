"""Stationary kernels: covariance, spectral density, Markov chain, and the heuristics of HSGP."""

from dataclasses import dataclass
from math import gamma, pi, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from polarbear.priors.base import NUMPY, Algebra, Chain

Floats = NDArray[np.float64]
Name = Literal["matern32", "matern52", "squared-exponential"]

FINEST: dict[Name, float] = {"matern32": 1e-4, "matern52": 4e-3}
"""The shortest gap in time at which a chain's noise does not drown in rounding."""


def covariance(
    kernel: Name, times: Floats, others: Floats, scale: Any, length: Any, algebra: Algebra = NUMPY
) -> Any:
    """Covariance between two sets of times (paper, eq. 12)."""
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
    """A Matern process as a Markov chain of value and derivatives; ``None`` if it is none.

    On a grid so fine that its noise would be lost in rounding, it is not used as one.
    """
    gap = np.diff(times)
    if gap.min(initial=1.0) < FINEST.get(kernel, np.inf):
        return None
    if kernel == "matern32":
        rate = sqrt(3) / length
        x = rate * gap
        rows = [[1 + x, gap], [-rate * x, 1 - x]]
        start = np.diag([1.0, rate**2])
        # How a push moves the state, some time later: polynomials in that time, without exp(-x).
        push = np.array([[0.0, 1.0], [1.0, -rate]])
        power = 4 * rate**3
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
        push = np.array([[0.0, 0.0, 0.5], [0.0, 1.0, -rate / 2], [1.0, -2 * rate, rate**2 / 2]])
        power = 16 * rate**5 / 3
    # The exponential of the drift, in closed form; shape (T - 1, s, s).
    move = np.exp(-x)[:, None, None] * np.moveaxis(np.array(rows), -1, 0)
    return Chain(scale**2 * start, move, scale**2 * power * _pushed(push, rate, gap))


def _pushed(push: Floats, rate: float, gap: Floats) -> Floats:
    """The covariance of what white noise adds during each gap: shape (T - 1, s, s).

    The integral of exp(-2 rate u) p_i(u) p_j(u) over the gap. Over short gaps it is tiny, and the
    difference of two covariances, which is the same, would be rounding.
    """
    order = len(push)
    integral = np.stack(
        [
            gamma(k + 1) * gammainc(k + 1, 2 * rate * gap) / (2 * rate) ** (k + 1)
            for k in range(2 * order - 1)
        ]
    )
    found = np.zeros((len(gap), order, order))
    for i in range(order):
        for j in range(order):
            product = np.convolve(push[i], push[j])
            found[:, i, j] = product @ integral
    return found
