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

from polarbear.errors import FitError
from polarbear.inference.laplace.skew import Skew, per_block
from polarbear.inference.plackett_luce.likelihood import Choices

Floats = NDArray[np.float64]

DECREMENT = 1e-10
"""A block is at its mode when a further Newton step would gain less than half of this."""

MAX_DECREMENT = 1e-4
"""Decrements up to this are close enough to the mode where rounding allows no better."""

RELATIVE_ROUNDING = 1e-13
"""Differences of log-densities below this, relative to their size, are rounding errors."""

MAX_STEPS = 100


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


class Step(NamedTuple):
    """A Newton step for each of B blocks."""

    direction: Floats  # (B, size)
    decrement: Floats  # (B,): g' H^-1 g, twice the gain of the quadratic model
    reach: Floats  # (B,): the largest range over algorithms of the change in utilities


class Mode(NamedTuple):
    """The maximum of a log-density over independent blocks."""

    state: Floats  # (B, size)
    value: Floats  # (B,)
    decrement: float  # the largest of all blocks


def damped_newton(
    state: Floats, value: Callable[[Floats], Floats], step: Callable[[Floats], Step]
) -> Mode:
    """Maximise the log-posterior of each block of ``state`` (B, size) by damped Newton steps.

    Blocks are independent: each has its own step size and stops by itself. A full step is taken
    where it gains a quarter of the decrement. A difference within ``RELATIVE_ROUNDING`` counts as a
    gain, so that rounding cannot stall the steps. Otherwise the step size is log(1 + r) / r, with r
    the range of the change in utilities. It always gains: along a line the third derivative of a
    Plackett-Luce log-likelihood is at most r times its curvature, so the slope after a share s of
    the step is at least decrement * (1 - (exp(r s) - 1) / r), which is positive up to that size
    (generalised self-concordance, Sun and Tran-Dinh 2019). A Gaussian prior has no third
    derivative, and a Dirichlet prior is a Plackett-Luce likelihood.
    """
    at = value(state)
    before, stopped = np.full(len(at), np.inf), np.zeros(len(at), dtype=bool)
    for _ in range(MAX_STEPS):
        direction, decrement, reach = step(state)
        if not np.all(decrement > -DECREMENT):
            raise np.linalg.LinAlgError("the curvature is not positive definite")
        # Near the mode a step squares the error. One that does not even halve it is rounding.
        stopped |= (decrement < MAX_DECREMENT) & ~(decrement < 0.5 * before)
        stopped |= decrement < DECREMENT
        before = decrement
        if stopped.all():
            break
        full = value(state + direction)
        enough = full >= at + 0.25 * decrement - RELATIVE_ROUNDING * (1 + np.abs(at))
        size = np.where(enough, 1.0, np.log1p(reach) / np.maximum(reach, 1e-300))
        state = np.where(stopped[:, None], state, state + size[:, None] * direction)
        at = np.where(stopped, at, full) if (enough | stopped).all() else value(state)
    largest = float(before.max(initial=0.0))
    if not largest <= MAX_DECREMENT:
        raise FitError(
            f"Newton's method did not converge in {MAX_STEPS} steps (decrement {largest:.2g})"
        )
    return Mode(state, at, largest)


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
