"""What priors share: the Helmert basis, the time axis they see, and what a Gaussian prior is."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from polarbear.errors import DataError
from polarbear.priors.hyper import Hyper

Floats = NDArray[np.float64]
Warp = Literal["auto", "linear", "log"]


def helmert(n: int) -> Floats:
    """Orthonormal basis (n, n - 1) of the vectors that sum to zero (paper, appendix A).

    >>> helmert(2).round(3)
    array([[ 0.707],
           [-0.707]])
    """
    k = np.arange(1, n)
    row = np.arange(1, n + 1)[:, None]
    above, on = np.sqrt(1 / (k * (k + 1))), -np.sqrt(k / (k + 1))
    return np.where(row <= k, above, np.where(row == k + 1, on, 0.0))


def unit_times(times: Floats, warp: Warp = "auto") -> Floats:
    """Times on [0, 1], as a stationary prior sees them; "log" before that if asked for.

    "auto" takes the logarithm of times that span a factor of 100 or more: nothing that changes at
    one rate over raw time can follow a race over decades.

    >>> unit_times(np.array([10.0, 100.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    if warp not in ("auto", "linear", "log"):
        raise DataError(f"warp={warp!r}: expected 'auto', 'linear' or 'log'")
    if warp == "auto":
        warp = "log" if times[0] > 0 and times[-1] >= 100 * times[0] else "linear"
    if warp == "log":
        if times[0] <= 0:
            raise DataError("a logarithmic time axis needs times above 0; use warp='linear'")
        times = np.log(times)
    span = times[-1] - times[0]
    return (times - times[0]) / span if span > 0 else np.zeros(len(times))


class Algebra(Protocol):
    """The few operations beside arithmetic that a prior needs, in numpy or in another language.

    Arguments and results are arrays, or whatever stands for arrays there: a prior is written once,
    and a modelling language that brings these three can differentiate it.
    """

    def exp(self, x: Any) -> Any:
        """Elementwise exponential."""
        ...

    def cholesky(self, a: Any) -> Any:
        """The lower Cholesky factor."""
        ...

    def solve_lower(self, a: Any, b: Any) -> Any:
        """Solve a x = b for a lower triangular a."""
        ...


class Numpy:
    """Plain arrays."""

    def exp(self, x: Any) -> Any:
        """Elementwise exponential."""
        return np.exp(x)

    def cholesky(self, a: Any) -> Any:
        """The lower Cholesky factor."""
        return cholesky(a, lower=True)

    def solve_lower(self, a: Any, b: Any) -> Any:
        """Solve a x = b for a lower triangular a."""
        return solve_triangular(a, b, lower=True)


NUMPY = Numpy()


class Chain(NamedTuple):
    """A Gaussian process in time as a Markov chain of small states, the first entry of which it is.

    ``start`` (s, s) is the covariance of the first state, ``move`` (T - 1, s, s) takes a state to
    the next, and ``noise`` (T - 1, s, s) is the covariance of what is added.
    """

    start: Floats
    move: Floats
    noise: Floats


class Gaussian(Protocol):
    """A prior under which log-utilities are Gaussian, given hyperparameters.

    With z standard normal of shape (K, n - 1), the utilities at T times are
    ``mu = factor(times, hyper) @ z @ helmert(n).T``.
    """

    @property
    def warp(self) -> Warp:
        """How time is seen."""
        ...

    def hypers(self) -> Mapping[str, Hyper]:
        """The hyperparameters and their distributions."""
        ...

    def factor(self, times: Floats, hyper: Mapping[str, Any], algebra: Algebra = NUMPY) -> Any:
        """A square root (T, K) of the covariance over times, which lie on [0, 1]."""
        ...

    def chain(self, times: Floats, hyper: Mapping[str, float]) -> Chain | None:
        """The same prior as a Markov chain, if it is one."""
        ...
