"""The posterior given hyperparameters: its mode by Newton and the Gaussian around it.

Given hyperparameters the log-posterior is concave, so damped Newton finds its mode. What differs is
the algebra: ``dense.py`` serves any Gaussian prior, ``banded.py`` those whose precision is a band,
``independent.py`` times that do not know of each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.engines.skew import Skew, per_block
from polarbear.errors import FitError
from polarbear.likelihood.choices import Choices

Floats = NDArray[np.float64]

DECREMENT = 1e-10
"""Newton stops when a further step would gain less than half of this."""

MOST_STEPS = 100


@dataclass(frozen=True)
class Conditional:
    """A Gaussian approximation of the posterior of utilities, given hyperparameters.

    It is standard normal in coordinates called noise, of shape (draws, blocks, size). Blocks do
    not know of each other: the times of an independent prior, or a single block for all.
    """

    evidence: float  # log of the integral, by Laplace
    mean: Floats  # (T, n)
    find_covariance: Callable[[], Floats]  # (T, n, n), at each time; not all are needed
    shape: tuple[int, int]  # blocks, size
    place: Callable[[Floats], Floats]  # noise -> utilities (D, T, n)
    ratio: Callable[[Floats, Floats], Floats]  # noise, utilities -> log-ratio to it (D, B)
    slope: Callable[[Floats], Floats]  # noise -> gradient of the log-posterior: (D, B, size)
    pull: Callable[[Floats], Floats]  # gradients by utilities (D, T, n) -> by noise (D, B, size)
    state: Floats  # the mode, for the same method to start from
    decrement: float
    unseen: Callable[[Floats], Floats] | None = None  # noise -> the prior's share of it
    skew: Skew | None = None  # directions in which to draw from something else than a Gaussian

    @cached_property
    def covariance(self) -> Floats:
        """The covariance of the utilities at each time: (T, n, n)."""
        return self.find_covariance()

    def draw(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """Utilities drawn from the approximation, and the log-ratios of posterior to it."""
        noise = rng.standard_normal((size, *self.shape))
        utilities = self.place(noise)
        return utilities, self.ratio(noise, utilities)


class _Newton(NamedTuple):
    state: Floats
    value: float
    decrement: float


def climb(
    state: Floats,
    value: Callable[[Floats], float],
    step: Callable[[Floats], tuple[Floats, float]],
) -> _Newton:
    """Damped Newton on a concave function; ``step`` gives the Newton step and its decrement."""
    at, decrement = value(state), np.inf
    for _ in range(MOST_STEPS):
        direction, decrement = step(state)
        if decrement < DECREMENT:
            return _Newton(state, at, decrement)
        size = 1.0
        while True:
            there = value(state + size * direction)
            if there >= at + 1e-4 * size * decrement:
                break
            size /= 2
            if size < 1e-8:  # rounding: nothing left to gain
                return _Newton(state, at, decrement)
        state, at = state + size * direction, there
    raise FitError(f"Newton did not converge in {MOST_STEPS} steps (decrement {decrement:.2g})")


def remainder(data: Choices, mode: Floats) -> Callable[[Floats], Floats]:
    """What a second-order expansion around the mode (T, n) leaves of the log-likelihood.

    The prior is Gaussian and the approximation matches it and the likelihood to second order, so
    this is the log-ratio of posterior to approximation: utilities (D, T, n) -> (D, T).
    """
    light = data.single()
    number = np.float64 if light is data else np.float32
    near: Any = mode[None].astype(number)
    top = light.value(near)[0]
    slope, half_bend = data.gradient(mode), 0.5 * data.curvature(mode)
    slope, half_bend = slope.astype(number), half_bend.astype(number)

    def beyond(mu: Any) -> Floats:
        mu = mu.astype(number, copy=False)
        away = mu - near
        bent = per_block(away, half_bend) - slope
        left = light.value(mu) - top + np.einsum("dtn,dtn->dt", bent, away)
        return left.astype(np.float64)

    return beyond
