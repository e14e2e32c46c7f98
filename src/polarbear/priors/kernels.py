"""Stationary kernels: covariance, spectral density, Markov form, and Hilbert-space basis size."""

from dataclasses import dataclass
from math import gamma, pi, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from polarbear.priors.base import NUMPY, Algebra, MarkovChain

Floats = NDArray[np.float64]
KernelName = Literal["matern32", "matern52", "squared-exponential"]

MIN_GAP: dict[KernelName, float] = {"matern32": 1e-4, "matern52": 4e-3}
"""The shortest gap in time at which the noise of a Markov chain exceeds rounding errors."""


def kernel_covariance(
    kernel: KernelName,
    times: Floats,
    others: Floats,
    scale: Any,
    length: Any,
    algebra: Algebra = NUMPY,
) -> Any:
    """Return the covariance between two sets of times under a stationary kernel.

    See equation 12 of the paper.
    """
    distance = np.abs(times[:, None] - others[None, :]) / length
    if kernel == "squared-exponential":
        return scale**2 * algebra.exp(-0.5 * distance**2)
    if kernel == "matern32":
        root = sqrt(3) * distance
        return scale**2 * (1 + root) * algebra.exp(-root)
    root = sqrt(5) * distance
    return scale**2 * (1 + root + root**2 / 3) * algebra.exp(-root)


def spectral_density(
    kernel: KernelName, frequency: Floats, scale: Any, length: Any, algebra: Algebra = NUMPY
) -> Any:
    """Return the spectral density of a kernel at angular frequencies.

    See section 2 of Riutort-Mayol et al. (2022).
    """
    if kernel == "squared-exponential":
        return scale**2 * sqrt(2 * pi) * length * algebra.exp(-0.5 * (length * frequency) ** 2)
    nu = 1.5 if kernel == "matern32" else 2.5
    front = 2 * sqrt(pi) * gamma(nu + 0.5) * (2 * nu) ** nu / (gamma(nu) * length ** (2 * nu))
    return scale**2 * front * (2 * nu / length**2 + frequency**2) ** -(nu + 0.5)


@dataclass(frozen=True)
class BasisRule:
    """Constants that determine how many Hilbert-space basis functions a kernel needs.

    See section 4 of Riutort-Mayol et al. (2022).
    """

    boundary: float  # c >= boundary * length / S, for the longest length
    number: float  # m >= number * c * S / length, for the shortest


BASIS_RULES: dict[KernelName, BasisRule] = {
    "matern32": BasisRule(4.5, 3.42),
    "matern52": BasisRule(4.1, 2.65),
    "squared-exponential": BasisRule(3.2, 1.75),
}


def matern_chain(
    kernel: KernelName, times: Floats, scale: float, length: float
) -> MarkovChain | None:
    """Return a Matern process as a Markov chain of value and derivatives; None for other kernels.

    None for other kernels, and on grids so fine that rounding exceeds the chain's noise. The form
    is that of Hartikainen and Sarkka (2010).
    """
    gap = np.diff(times)
    if gap.min(initial=1.0) < MIN_GAP.get(kernel, np.inf):
        return None
    if kernel == "matern32":
        rate = sqrt(3) / length
        x = rate * gap
        rows = [[1 + x, gap], [-rate * x, 1 - x]]
        start = np.diag([1.0, rate**2])
        # Response of the state to white noise after a time u: polynomials in u, without exp(-x).
        response = np.array([[0.0, 1.0], [1.0, -rate]])
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
        response = np.array([[0.0, 0.0, 0.5], [0.0, 1.0, -rate / 2], [1.0, -2 * rate, rate**2 / 2]])
        power = 16 * rate**5 / 3
    # The matrix exponential of the drift in closed form: (T - 1, s, s).
    transition = np.exp(-x)[:, None, None] * np.moveaxis(np.array(rows), -1, 0)
    noise = scale**2 * power * _noise_covariance(response, rate, gap)
    return MarkovChain(scale**2 * start, transition, noise)


def _noise_covariance(response: Floats, rate: float, gap: Floats) -> Floats:
    """Return the covariance that unit white noise adds to the state in each gap between times.

    It is the integral of exp(-2 rate u) p_i(u) p_j(u) over the gap, with response polynomials p.
    Over short gaps the equal difference of two covariances would be lost in rounding.
    """
    order = len(response)
    integral = np.stack(
        [
            gamma(k + 1) * gammainc(k + 1, 2 * rate * gap) / (2 * rate) ** (k + 1)
            for k in range(2 * order - 1)
        ]
    )
    covariance = np.zeros((len(gap), order, order))
    for i in range(order):
        for j in range(order):
            product = np.convolve(response[i], response[j])
            covariance[:, i, j] = product @ integral
    return covariance
