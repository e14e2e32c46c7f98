"""Common parts of priors: the Helmert basis, the scaled time axis, and the Gaussian interface."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from polarbear.data.time_axis import MIN_LOG_RATIO
from polarbear.errors import DataError
from polarbear.priors.hyper import Hyper

Floats = NDArray[np.float64]
Warp = Literal["auto", "linear", "log"]


def helmert_basis(n: int) -> Floats:
    """Return an orthonormal basis (n, n - 1) of the vectors of length n that sum to zero.

    See appendix A of the paper.

    >>> helmert_basis(2).round(3)
    array([[ 0.707],
           [-0.707]])
    """
    k = np.arange(1, n)
    row = np.arange(1, n + 1)[:, None]
    upper, below_diagonal = np.sqrt(1 / (k * (k + 1))), -np.sqrt(k / (k + 1))
    return np.where(row <= k, upper, np.where(row == k + 1, below_diagonal, 0.0))


def scale_times(times: Floats, warp: Warp = "auto") -> Floats:
    """Scale times to [0, 1] for a stationary prior, linearly or after taking logarithms.

    "auto" takes the logarithm of times that span a factor of 100 or more. A process that changes at
    one rate over raw time cannot follow changes over several decades.

    >>> scale_times(np.array([10.0, 100.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    if warp not in ("auto", "linear", "log"):
        raise DataError("expected 'auto', 'linear' or 'log'", warp=warp)
    if warp == "auto":
        warp = "log" if times[0] > 0 and times[-1] >= MIN_LOG_RATIO * times[0] else "linear"
    if warp == "log":
        if times[0] <= 0:
            raise DataError("warp='log' needs times above 0: start later, or use warp='linear'")
        times = np.log(times)
    span = times[-1] - times[0]
    return (times - times[0]) / span if span > 0 else np.zeros(len(times))


class Algebra(Protocol):
    """The array operations besides arithmetic that a prior needs, for numpy or symbolic tensors.

    A prior is written once. A modelling language that provides these three operations can
    differentiate it.
    """

    def exp(self, x: Any) -> Any:
        """Return the elementwise exponential."""
        ...

    def cholesky(self, a: Any) -> Any:
        """Return the lower Cholesky factor of a matrix."""
        ...

    def solve_lower(self, a: Any, b: Any) -> Any:
        """Solve a x = b for x, where a is lower triangular."""
        ...


class NumpyAlgebra:
    """The array operations that a prior needs, for numpy arrays."""

    def exp(self, x: Any) -> Any:
        """Return the elementwise exponential."""
        return np.exp(x)

    def cholesky(self, a: Any) -> Any:
        """Return the lower Cholesky factor of a matrix."""
        return cholesky(a, lower=True)

    def solve_lower(self, a: Any, b: Any) -> Any:
        """Solve a x = b for x, where a is lower triangular."""
        return solve_triangular(a, b, lower=True)


NUMPY = NumpyAlgebra()


class MarkovChain(NamedTuple):
    """A Gaussian process over time in state-space form.

    The first of the s entries of a state x_t is the value of the process. With transition A_t and
    noise covariance N_t the states are x_{t+1} = A_t x_t + w_t, w_t ~ Normal(0, N_t).
    """

    initial_covariance: Floats  # (s, s)
    transition: Floats  # (T - 1, s, s)
    noise_covariance: Floats  # (T - 1, s, s)


class GaussianPrior(Protocol):
    """A prior under which log-utilities are Gaussian, given hyperparameters.

    With z standard normal of shape (K, n - 1), the utilities at T times are
    ``mu = factor(times, hyper) @ z @ helmert_basis(n).T``.
    """

    @property
    def warp(self) -> Warp:
        """The scale of time on which the prior is stationary: linear, log or automatic."""
        ...

    def hypers(self) -> Mapping[str, Hyper]:
        """Return the distributions of the hyperparameters, by name."""
        ...

    def factor(self, times: Floats, hyper: Mapping[str, Any], algebra: Algebra = NUMPY) -> Any:
        """Return a square root (times, columns) of the prior covariance over times in [0, 1]."""
        ...

    def chain(self, times: Floats, hyper: Mapping[str, float]) -> MarkovChain | None:
        """Return the prior as a Markov chain, or None if it has no such form."""
        ...
