"""The posterior with a Dirichlet prior at each time: its modes by Newton, all times at once.

In log-utilities a Dirichlet prior is data: alpha first places for each algorithm from all of them.
The log-posterior is concave and the times do not know of each other.
"""

from collections.abc import Callable
from math import lgamma, log

import numpy as np
from numpy.typing import NDArray

from polarbear.engines.conditional import DECREMENT, MOST_STEPS, Conditional
from polarbear.engines.skew import MOST_SKEWED, find
from polarbear.errors import FitError
from polarbear.likelihood.choices import Choices
from polarbear.priors.base import helmert

Floats = NDArray[np.float64]


def independent(
    data: Choices, alpha: float, n_times: int, n: int, start: Floats | None = None
) -> Conditional:
    """Laplace at each time, with the prior Dirichlet(alpha, ..., alpha).

    ``start`` (T, n) are utilities to start from, those of an earlier fit for instance.
    """
    basis = helmert(n)
    # Density of the coordinates: theta = softmax(mu) has the Jacobian sqrt(n) prod theta.
    normaliser = lgamma(n * alpha) - n * lgamma(alpha) + 0.5 * log(n)

    def value(mu: Floats) -> Floats:
        return data.value(mu) + alpha * _log_softmax(mu).sum(axis=-1) + normaliser

    def curvature(mu: Floats) -> Floats:
        theta = np.exp(_log_softmax(mu))
        prior = -theta[:, :, None] * theta[:, None, :]
        prior[:, range(n), range(n)] += theta
        return basis.T @ (data.curvature(mu) + n * alpha * prior) @ basis

    def gradient(mu: Floats) -> Floats:
        return (data.gradient(mu) + alpha * (1 - n * np.exp(_log_softmax(mu)))) @ basis

    mu = np.zeros((n_times, n)) if start is None else start - start.mean(axis=1, keepdims=True)
    at = value(mu)
    for _ in range(MOST_STEPS):
        uphill = gradient(mu)
        step = np.linalg.solve(curvature(mu), uphill[..., None])[..., 0]
        decrement = np.sum(uphill * step, axis=1)
        if np.all(decrement < DECREMENT):
            break
        before = at
        mu, at = _damped(value, mu, at, step @ basis.T, decrement)
        if np.all(at <= before) and np.all(decrement < 1e-4):
            break  # rounding: nothing left to gain
    else:
        raise FitError(f"Newton did not converge in {MOST_STEPS} steps")
    lower = np.linalg.cholesky(curvature(mu))
    inverse = np.linalg.inv(lower)
    log_det = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    evidence = at + 0.5 * (n - 1) * log(2 * np.pi) - 0.5 * log_det
    away = inverse @ basis.T

    def each(rows: Floats, matrices: NDArray[np.floating]) -> Floats:
        return (rows.swapaxes(0, 1) @ matrices).swapaxes(0, 1)

    def place(noise: Floats) -> tuple[Floats, Floats]:
        there = mu + each(noise, away)
        return there, value(there) - at + 0.5 * np.sum(noise**2, axis=-1)

    def slope(noise: Floats) -> Floats:
        return each(gradient(mu + each(noise, away)), np.swapaxes(inverse, 1, 2))

    def third_along(direction: Floats) -> Floats:
        # The slope along a line, on both sides of the mode, where it is 0.
        line, h = direction @ away, 0.3
        ends = np.stack([mu[:, None] + h * line, mu[:, None] - h * line])
        slopes = [
            np.sum((gradient(end) @ basis.T) * part, axis=-1)
            for both in ends
            for end, part in zip(both.swapaxes(0, 1), line.swapaxes(0, 1), strict=True)
        ]
        up, down = np.array(slopes).reshape(2, -1, n_times)
        return ((up + down) / h**2).T

    # Where one always beats the next, their gap has a long tail; with many, look at the ends.
    order = np.argsort(mu, axis=1)
    sorted_away = np.take_along_axis(away, order[:, None, :], axis=2)
    gaps = np.diff(sorted_away, axis=2).swapaxes(1, 2)
    if n - 1 > MOST_SKEWED:
        gaps = gaps[:, np.r_[: MOST_SKEWED // 2, -(MOST_SKEWED // 2) : 0]]
    return Conditional(
        float(evidence.sum()),
        mu,
        lambda: away.swapaxes(1, 2) @ away,
        (n_times, n - 1),
        place,
        slope,
        mu,
        float(decrement.max(initial=0.0)),
        find(third_along, gaps, away),
    )


def _damped(
    value: Callable[[Floats], Floats], mu: Floats, at: Floats, step: Floats, decrement: Floats
) -> tuple[Floats, Floats]:
    """Take each time's step, halved until it gains what a part of it promises."""
    size = np.ones(len(mu))
    while True:
        there = value(mu + size[:, None] * step)
        short = ~(there >= at + 1e-4 * size * decrement) & (decrement >= DECREMENT)
        if not short.any() or size[short].max() < 1e-8:
            better = there >= at
            return np.where(better[:, None], mu + size[:, None] * step, mu), np.maximum(there, at)
        size[short] /= 2


def _log_softmax(mu: Floats) -> Floats:
    mu = mu - mu.max(axis=-1, keepdims=True)
    return mu - np.log(np.exp(mu).sum(axis=-1, keepdims=True))
