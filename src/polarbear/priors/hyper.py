"""Distributions of positive hyperparameters.

Engines work with the logarithm u of a hyperparameter x, so ``log_density`` is the log-density of u.
Since dx = x du, it is the log-density of x plus u.
"""

from dataclasses import dataclass
from math import lgamma, log, pi

import numpy as np
from scipy import special

from polarbear.errors import DataError


def check_positive(**values: float) -> None:
    """Raise DataError if one of the values is not positive and finite.

    >>> check_positive(sd=0.0)
    Traceback (most recent call last):
    polarbear.errors.DataError: sd=0.0: expected a positive number
    """
    for name, value in values.items():
        if not 0 < value < np.inf:
            raise DataError("expected a positive number", **{name: value})


@dataclass(frozen=True)
class LogNormal:
    """Log-normal distribution: the logarithm is normal with ``mean`` and ``sd``.

    >>> LogNormal(0.0, 0.5).quantile(0.5)
    1.0
    """

    mean: float = 0.0
    sd: float = 1.0

    def __post_init__(self) -> None:
        check_positive(sd=self.sd)

    def log_density(self, u: float) -> float:
        """Return the log-density of u, the logarithm of the hyperparameter."""
        return -0.5 * ((u - self.mean) / self.sd) ** 2 - log(self.sd) - 0.5 * log(2 * pi)

    def quantile(self, p: float) -> float:
        """Return the quantile of the hyperparameter at probability p."""
        return float(np.exp(self.mean + self.sd * special.ndtri(p)))


@dataclass(frozen=True)
class InverseGamma:
    """Inverse gamma distribution: 1/x has a gamma distribution with ``shape`` and mean shape/scale.

    >>> round(InverseGamma(5, 2).quantile(0.5), 3)
    0.428
    """

    shape: float
    scale: float

    def __post_init__(self) -> None:
        check_positive(shape=self.shape, scale=self.scale)

    def log_density(self, u: float) -> float:
        """Return the log-density of u, the logarithm of the hyperparameter."""
        a, b = self.shape, self.scale
        return float(a * log(b) - lgamma(a) - a * u - b * np.exp(-u))

    def quantile(self, p: float) -> float:
        """Return the quantile of the hyperparameter at probability p."""
        return float(self.scale / special.gammaincinv(self.shape, 1 - p))


@dataclass(frozen=True)
class Exponential:
    """Exponential distribution with a ``rate``: the mean is 1 / rate.

    >>> round(Exponential(0.5).quantile(0.5), 3)
    1.386
    """

    rate: float = 1.0

    def __post_init__(self) -> None:
        check_positive(rate=self.rate)

    def log_density(self, u: float) -> float:
        """Return the log-density of u, the logarithm of the hyperparameter."""
        return float(log(self.rate) - self.rate * np.exp(u) + u)

    def quantile(self, p: float) -> float:
        """Return the quantile of the hyperparameter at probability p."""
        return float(-np.log1p(-p) / self.rate)


Hyper = LogNormal | InverseGamma | Exponential
