"""The posterior with a Dirichlet prior at each time: its modes by Newton, all times at once.

In log-utilities a Dirichlet prior is data: alpha first places for each algorithm from all of them.
The log-posterior is concave and the times do not know of each other.
"""

from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.errors import FitError
from polarbear.inference.laplace.conditional import Conditional, Mode, Step, damped_newton
from polarbear.inference.laplace.skew import MOST_SKEWED, find, per_block
from polarbear.inference.plackett_luce.likelihood import Choices
from polarbear.priors.base import helmert

Floats = NDArray[np.float64]


def independent(
    data: Choices, alpha: float, n_times: int, n: int, start: Floats | None = None
) -> Conditional:
    """Laplace at each time, with the prior Dirichlet(alpha, ..., alpha).

    ``start`` (T, n) are utilities to start from, those of an earlier fit for instance.
    """
    density = _Density(data, alpha, n)
    try:
        mode = _mode(density, np.zeros((n_times, n)) if start is None else start)
    except (FitError, np.linalg.LinAlgError):
        if start is None:
            raise
        mode = _mode(density, np.zeros((n_times, n)))
    mu, at = mode.state, mode.value
    lower = np.linalg.cholesky(density.curvature(mu))
    inverse = np.linalg.inv(lower)
    log_det = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    evidence = at + 0.5 * (n - 1) * log(2 * np.pi) - 0.5 * log_det
    away = inverse @ density.basis.T

    turned = np.swapaxes(inverse, 1, 2)

    def place(noise: Floats) -> Floats:
        return mu + per_block(noise, away)

    light = _Density(data.single(), alpha, n)
    number = np.float64 if light.data is data else np.float32
    near: Any = mu[None].astype(number)
    top = light.value(near)[0]  # rounded as the values it is taken off

    def ratio(noise: Floats, utilities: Any) -> Floats:
        gained = light.value(utilities.astype(number)) - top
        return gained + 0.5 * np.einsum("...i,...i->...", noise, noise)

    def slope(noise: Floats) -> Floats:
        return per_block(density.gradient(place(noise)), turned)

    def pull(slope: Floats) -> Floats:
        return per_block(slope @ density.basis, turned)

    def third_along(direction: Floats) -> Floats:
        return density.third(mu, direction @ away)

    return Conditional(
        float(evidence.sum()),
        mu,
        lambda: away.swapaxes(1, 2) @ away,
        (n_times, n - 1),
        place,
        ratio,
        slope,
        pull,
        mu,
        mode.decrement,
        skew=find(third_along, _gaps(mu, away), away),
    )


class _Density:
    """The log-posterior of utilities at each time."""

    def __init__(self, data: Choices, alpha: float, n: int) -> None:
        self.data, self.alpha, self.n, self.basis = data, alpha, n, helmert(n)
        # Density of the coordinates: theta = softmax(mu) has the Jacobian sqrt(n) prod theta.
        self.normaliser = lgamma(n * alpha) - n * lgamma(alpha) + 0.5 * log(n)

    def value(self, mu: Floats) -> Floats:
        ones = np.ones(self.n, dtype=mu.dtype)  # products are faster than sums of a few
        prior = self.alpha * (mu @ ones - self.n * _log_sum_exp(mu, ones)) + self.normaliser
        return self.data.value(mu) + prior

    def gradient(self, mu: Floats) -> Floats:
        """By the coordinates."""
        prior = self.alpha * (1 - self.n * np.exp(_log_softmax(mu)))
        return (self.data.gradient(mu) + prior) @ self.basis

    def curvature(self, mu: Floats) -> Floats:
        """By the coordinates."""
        theta = np.exp(_log_softmax(mu))
        prior = -theta[:, :, None] * theta[:, None, :]
        prior[:, range(self.n), range(self.n)] += theta
        whole = self.data.curvature(mu) + self.n * self.alpha * prior
        return self.basis.T @ whole @ self.basis

    def third(self, mode: Floats, line: Floats) -> Floats:
        """Third derivatives (T, c) along lines (T, c, n) through the mode.

        From the slope on both sides of the mode, where it is 0.
        """
        h, lines = 0.3, line.swapaxes(0, 1)
        ends = np.concatenate([mode + h * lines, mode - h * lines])
        slope = self.gradient(ends) @ self.basis.T
        up, down = np.sum(slope * np.concatenate([lines, lines]), axis=-1).reshape(2, -1, len(mode))
        return ((up + down) / h**2).T


def _mode(density: _Density, start: Floats) -> Mode:
    """The mode at each time."""

    def step(mu: Floats) -> Step:
        uphill = density.gradient(mu)
        along = np.linalg.solve(density.curvature(mu), uphill[..., None])[..., 0]
        direction = along @ density.basis.T
        return Step(direction, np.sum(uphill * along, axis=1), np.ptp(direction, axis=1))

    return damped_newton(start - start.mean(axis=1, keepdims=True), density.value, step)


def _gaps(mode: Floats, away: Floats) -> Floats:
    """Directions of the gaps between neighbours in the order of the mode: (T, gaps, n - 1).

    Where one always beats the next, their gap has a long tail. With many, look at the ends.
    """
    order = np.argsort(mode, axis=1)
    gaps = np.diff(np.take_along_axis(away, order[:, None, :], axis=2), axis=2).swapaxes(1, 2)
    if gaps.shape[1] > MOST_SKEWED:
        half = MOST_SKEWED // 2
        gaps = np.concatenate([gaps[:, :half], gaps[:, -half:]], axis=1)
    return gaps


def _log_sum_exp(mu: Floats, ones: Floats) -> Floats:
    top = mu.max(axis=-1) if np.abs(mu).max(initial=0.0) > 80 else 0.0  # else nothing overflows
    return np.log(np.exp(mu - np.expand_dims(top, -1)) @ ones) + top


def _log_softmax(mu: Floats) -> Floats:
    mu = mu - mu.max(axis=-1, keepdims=True)
    return mu - np.log(np.exp(mu).sum(axis=-1, keepdims=True))
