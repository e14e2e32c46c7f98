"""Distributions of positive hyperparameters, as densities of their logarithm.

Engines work with the logarithm u of a hyperparameter x, so ``log_density`` is that of u: the
density of x plus u, for dx = x du.
"""

from dataclasses import dataclass
from math import lgamma, log, pi

import numpy as np
from scipy import special

from polarbear.errors import DataError


def positive(**values: float) -> None:
    """Refuse what is not a positive number.

    >>> positive(sd=0.0)
    Traceback (most recent call last):
    polarbear.errors.DataError: sd=0.0: expected a positive number
    """
    for name, value in values.items():
        if not 0 < value < np.inf:
            raise DataError(f"{name}={value!r}: expected a positive number")


@dataclass(frozen=True)
class LogNormal:
    """The logarithm is normal with ``mean`` and ``sd``.

    >>> LogNormal(0.0, 0.5).quantile(0.5)
    1.0
    """

    mean: float = 0.0
    sd: float = 1.0

    def __post_init__(self) -> None:
        positive(sd=self.sd)

    def log_density(self, u: float) -> float:
        """Log-density of the logarithm u."""
        return -0.5 * ((u - self.mean) / self.sd) ** 2 - log(self.sd) - 0.5 * log(2 * pi)

    def quantile(self, p: float) -> float:
        """The value below which lies the share p."""
        return float(np.exp(self.mean + self.sd * special.ndtri(p)))


@dataclass(frozen=True)
class InverseGamma:
    """The inverse is gamma with ``shape`` and rate ``scale``.

    >>> round(InverseGamma(5, 2).quantile(0.5), 3)
    0.428
    """

    shape: float
    scale: float

    def __post_init__(self) -> None:
        positive(shape=self.shape, scale=self.scale)

    def log_density(self, u: float) -> float:
        """Log-density of the logarithm u."""
        a, b = self.shape, self.scale
        return float(a * log(b) - lgamma(a) - a * u - b * np.exp(-u))

    def quantile(self, p: float) -> float:
        """The value below which lies the share p."""
        return float(self.scale / special.gammaincinv(self.shape, 1 - p))


@dataclass(frozen=True)
class Exponential:
    """Exponential with a ``rate``, so the mean is 1 / rate.

    >>> round(Exponential(0.5).quantile(0.5), 3)
    1.386
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        positive(rate=self.rate)

    def log_density(self, u: float) -> float:
        """Log-density of the logarithm u."""
        return float(log(self.rate) - self.rate * np.exp(u) + u)

    def quantile(self, p: float) -> float:
        """The value below which lies the share p."""
        return float(-np.log1p(-p) / self.rate)


Hyper = LogNormal | InverseGamma | Exponential
