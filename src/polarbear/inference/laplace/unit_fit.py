"""The Laplace approximation at one time if utilities depend on the class or features of instances.

With Q the Helmert basis and phi_u the basis functions of unit u, its utilities are

    mu_u = Q B [1, phi_u] + beta z_u

The columns of B but the first are N(0, tau^2), which shrinks units to the overall utilities Q B_0.
Those have the prior Dirichlet(alpha), which acts as data at phi = 0. z are scores of the algorithms
by another method, if there are any, and beta ~ N(0, 9) is their slope. Given tau the log-posterior
is concave. Its curvature is sum_u (Q' C_u Q) kron [1, phi_u][1, phi_u]' plus the prior precision,
with C_u the curvature of unit u: one matrix product for all pairs of coordinates.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import softmax

from polarbear.errors import FitError
from polarbear.inference.plackett_luce.unit_likelihood import UnitLikelihood
from polarbear.priors.base import helmert_basis

Floats = NDArray[np.float64]

SLOPE_SD = 3.0
"""The prior standard deviation of the slope of scores, which have a standard deviation of 1."""

MAX_DECREMENT = 1e-2
"""The last Newton step starts from a decrement below this; it squares the error."""

MAX_DOUBLE_PRODUCTS = 1_000_000
"""Beyond this number, products of basis functions are summed in single precision, which is faster
and changes the curvature by a relative 1e-6."""

MAX_NEWTON_STEPS, MAX_CHEAP_STEPS = 100, 6

MAX_CURVATURES, MIN_POINTS, MAX_POINTS = 1_000_000, 8, 32
"""The most entries of curvatures over which expectations are taken, and bounds on the number of
points; where the data allow fewer points, the Gaussian stays that of Laplace."""

VARIATIONAL_STEPS = 3


class Design:
    """Basis functions of units [1, phi] (U, c), and products of all pairs of them."""

    def __init__(self, phi: Floats) -> None:
        self.functions = np.concatenate([np.ones((len(phi), 1)), phi], axis=1)

    @property
    def n_columns(self) -> int:
        """The number of basis functions, with the constant."""
        return self.functions.shape[1]

    @cached_property
    def products(self) -> NDArray[Any]:
        """The products of pairs of basis functions (units, pairs); single precision if many."""
        first, second = np.triu_indices(self.n_columns)
        products = self.functions[:, first] * self.functions[:, second]
        return products.astype(np.float32) if products.size > MAX_DOUBLE_PRODUCTS else products

    @cached_property
    def constant(self) -> "Design":
        """The design of the overall utilities alone, which is that of tau = 0."""
        return Design(np.zeros((len(self.functions), 0)))


@dataclass(frozen=True)
class UnitModel:
    """The log-posterior at one time of the coefficients B (n - 1, c), and of beta after them."""

    likelihood: UnitLikelihood
    design: Design
    tau: float  # 0 for the overall utilities alone
    alpha: float
    scores: Floats | None = None  # (units, n), each row centred

    @property
    def n(self) -> int:
        """The number of algorithms."""
        return self.likelihood.n

    @property
    def size(self) -> int:
        """The number of parameters."""
        return (self.n - 1) * self.design.n_columns + (self.scores is not None)

    def split(self, state: Floats) -> tuple[Floats, float]:
        """Return the coefficients (n - 1, c) and the slope of the scores."""
        size = (self.n - 1) * self.design.n_columns
        slope = 0.0 if self.scores is None else float(state[-1])
        return state[:size].reshape(self.n - 1, -1), slope

    def utilities(self, state: Floats) -> Floats:
        """Return the utilities of each unit (units, n)."""
        coefficients, slope = self.split(state)
        mu = self.design.functions @ (helmert_basis(self.n) @ coefficients).T
        return mu if self.scores is None else mu + slope * self.scores

    def value(self, state: Floats) -> float:
        """Return the log-posterior, with all constants of the prior."""
        coefficients, slope = self.split(state)
        overall, n, alpha = helmert_basis(self.n) @ coefficients[:, 0], self.n, self.alpha
        value = self.likelihood.value(self.utilities(state))
        value -= n * alpha * float(np.logaddexp.reduce(overall))  # utilities sum to 0
        value += lgamma(n * alpha) - n * lgamma(alpha) + 0.5 * log(n)
        if self.tau:
            rest = coefficients[:, 1:] / self.tau
            value -= 0.5 * float(np.sum(rest**2)) + rest.size * log(self.tau * (2 * np.pi) ** 0.5)
        if self.scores is not None:
            value -= 0.5 * (slope / SLOPE_SD) ** 2 + log(SLOPE_SD * (2 * np.pi) ** 0.5)
        return value

    def gradient(self, state: Floats) -> Floats:
        """Return the gradient (size,) of the log-posterior."""
        basis, size = helmert_basis(self.n), (self.n - 1) * self.design.n_columns
        coefficients, slope = self.split(state)
        slopes, gradient = self.likelihood.gradient(self.utilities(state)), np.zeros(self.size)
        by_coefficient = (slopes @ basis).T @ self.design.functions
        theta = softmax(basis @ coefficients[:, 0])
        by_coefficient[:, 0] -= self.n * self.alpha * (theta @ basis)
        if self.tau:
            by_coefficient[:, 1:] -= coefficients[:, 1:] / self.tau**2
        if self.scores is not None:
            gradient[-1] = np.sum(slopes * self.scores) - slope / SLOPE_SD**2
        gradient[:size] = by_coefficient.ravel()
        return gradient

    def derivatives(self, states: Floats) -> tuple[Floats, Floats]:
        """Return the gradient (size,) and minus the Hessian (size, size) of the log-posterior.

        They are those at one state (size,), or their means over several (S, size).
        """
        basis, c = helmert_basis(self.n), self.design.n_columns
        states = np.atleast_2d(states)
        coefficients, slope = self.split(states.mean(axis=0))
        mu = np.concatenate([self.utilities(state) for state in states])
        slopes, curvatures = (
            part if len(states) == 1 else part.reshape(len(states), -1, *part.shape[1:]).mean(0)
            for part in self.likelihood.repeat(len(states)).derivatives(mu)
        )
        gradient, hessian = np.zeros(self.size), np.zeros((self.size, self.size))
        size = (self.n - 1) * c
        by_coefficient = (slopes @ basis).T @ self.design.functions
        by_pair = curvatures @ basis  # C_u Q
        hessian[:size, :size] = self._sum_products(basis.T @ by_pair)
        if self.scores is not None:
            gradient[-1] = np.sum(slopes * self.scores) - slope / SLOPE_SD**2
            across = np.einsum("un,uni->ui", self.scores, by_pair)  # z' C_u Q
            hessian[-1, :size] = (across.T @ self.design.functions).ravel()
            hessian[:size, -1] = hessian[-1, :size]
            own = np.einsum("ui,uij,uj->", self.scores, curvatures, self.scores)
            hessian[-1, -1] = own + SLOPE_SD**-2
        first = np.arange(0, size, c)
        theta = softmax(states[:, first] @ basis.T, axis=1)
        by_coefficient[:, 0] -= self.n * self.alpha * (theta.mean(axis=0) @ basis)
        spread = np.diag(theta.mean(axis=0)) - theta.T @ theta / len(theta)
        dirichlet = self.n * self.alpha * basis.T @ spread @ basis
        hessian[first[:, None], first] += dirichlet
        if self.tau:
            by_coefficient[:, 1:] -= coefficients[:, 1:] / self.tau**2
            rest = np.setdiff1d(np.arange(size), first)
            hessian[rest, rest] += self.tau**-2
        gradient[:size] = by_coefficient.ravel()
        return gradient, hessian

    def _sum_products(self, curvature: Floats) -> Floats:
        """Return sum_u C_u kron [1, phi_u][1, phi_u]' for matrices C_u (units, m, m)."""
        m, c = curvature.shape[1], self.design.n_columns
        first, second = np.triu_indices(m)
        products = self.design.products
        sums = curvature[:, first, second].astype(products.dtype).T @ products
        row, column = _pair_index(m), _pair_index(c)
        return sums[row[:, None, :, None], column[None, :, None, :]].reshape(m * c, m * c)


def _pair_index(m: int) -> NDArray[np.intp]:
    """Return a matrix (m, m) with the place of each pair in ``np.triu_indices(m)``."""
    index = np.zeros((m, m), dtype=np.intp)
    first, second = np.triu_indices(m)
    index[first, second] = index[second, first] = np.arange(len(first))
    return index


@dataclass(frozen=True)
class UnitFit:
    """The mode of a model, the Cholesky factor of the curvature there, and its evidence."""

    model: UnitModel
    mode: Floats
    lower: Floats
    log_evidence: float
    hessian: Floats

    def predict(self, tau: float) -> "UnitFit":
        """Estimate the fit at another tau > 0 by one Newton step, in single precision."""
        model = replace(self.model, tau=tau)
        coefficients, _ = self.model.split(self.mode)
        c, size = self.model.design.n_columns, coefficients.size
        change = tau**-2 - self.model.tau**-2
        gradient = np.zeros(model.size)
        gradient[:size].reshape(-1, c)[:, 1:] = -change * coefficients[:, 1:]
        hessian = self.hessian.copy()
        rest = np.flatnonzero(np.arange(size) % c)
        hessian[rest, rest] += change
        lower = cholesky(hessian.astype(np.float32), lower=True, check_finite=False)
        step = cho_solve((lower, True), gradient, check_finite=False)
        value = model.value(self.mode) + 0.5 * float(gradient @ step)
        return UnitFit(
            model=model,
            mode=self.mode + step,
            lower=lower,
            log_evidence=value + _gaussian_integral(lower),
            hessian=hessian,
        )

    def draw(self, noise: NDArray[Any], slope_noise: NDArray[Any]) -> tuple[Floats, Floats]:
        """Map standard normal noise (D, n - 1, c) and (D,) to coefficients and slopes of draws."""
        c = self.model.design.n_columns
        flat = noise[:, :, :c].reshape(len(noise), -1)
        if self.model.scores is not None:
            flat = np.concatenate([flat, slope_noise[:, None]], axis=1)
        lower = self.lower.astype(flat.dtype)  # single precision suffices for draws
        away = solve_triangular(lower, flat.T, lower=True, trans=1, check_finite=False)
        states = self.mode + away.T
        slopes = states[:, -1] if self.model.scores is not None else np.zeros(len(noise))
        size = (self.model.n - 1) * c
        return states[:, :size].reshape(len(noise), -1, c), slopes


def fit_units(model: UnitModel, start: UnitFit | None = None) -> UnitFit:
    """Find the mode by Newton steps, from the fit of another tau or time.

    The first steps use the curvature of ``start``, which costs little; they end where they do not
    quarter the decrement. Then a full step is taken where it gains a quarter of the decrement.
    Otherwise its size is log(1 + r) / r, which always gains, with r the largest range of the change
    in utilities (see :func:`polarbear.inference.laplace.conditional.damped_newton`).
    """
    state = np.zeros(model.size) if start is None else _approach(model, start)
    value = model.value(state)
    for _ in range(MAX_NEWTON_STEPS):
        gradient, hessian = model.derivatives(state)
        lower = cholesky(hessian, lower=True, check_finite=False)
        direction = cho_solve((lower, True), gradient, check_finite=False)
        decrement = float(gradient @ direction)
        full = model.value(state + direction)
        if decrement < MAX_DECREMENT:
            evidence = full + _gaussian_integral(lower)
            return UnitFit(
                model=model,
                mode=state + direction,
                lower=lower,
                log_evidence=evidence,
                hessian=hessian,
            )
        size = 1.0
        if not full >= value + 0.25 * decrement:
            reach = float(np.ptp(model.utilities(direction), axis=1).max(initial=0.0))
            size = np.log1p(reach) / max(reach, 1e-300)
            full = model.value(state + size * direction)
        state, value = state + size * direction, full
    raise FitError(
        f"Newton's method did not converge in {MAX_NEWTON_STEPS} steps; leave out features, or "
        "report these data"
    )


def _approach(model: UnitModel, start: UnitFit) -> Floats:
    """Take steps with the gradient here and the curvature of another fit, while they gain."""
    state, value, last = start.mode, model.value(start.mode), np.inf
    for _ in range(MAX_CHEAP_STEPS):
        gradient = model.gradient(state)
        direction = cho_solve((start.lower, True), gradient, check_finite=False)
        decrement = float(gradient @ direction)
        moved = model.value(state + direction)
        if moved < value + 0.25 * decrement:
            break
        state, value = state + direction, moved
        if decrement < MAX_DECREMENT or decrement > 0.25 * last:
            break
        last = decrement
    return state


def improve_gaussian(fit: UnitFit, seed: int = 0) -> UnitFit:
    """Replace Laplace's Gaussian by the one closest to the posterior (variational inference).

    Posteriors of classes with few instances are skewed: at the mode the curvature is too high. The
    Gaussian of least Kullback-Leibler divergence has an expected gradient of 0, and a precision
    equal to the expected curvature (Opper and Archambeau 2009, eq. 7). The expectations are means
    over antithetic points. Where the data are too many for that, the fit is returned as it is.
    """
    n_points = MAX_CURVATURES // max(1, fit.model.likelihood.n_cells)
    half = min(n_points, MAX_POINTS) // 2
    if 2 * half < MIN_POINTS:
        return fit
    noise = np.random.default_rng(seed).standard_normal((fit.model.size, half))
    noise = np.concatenate([noise, -noise], axis=1)
    mean, lower, hessian = fit.mode, fit.lower, fit.hessian
    for _ in range(VARIATIONAL_STEPS):
        away = solve_triangular(lower, noise, lower=True, trans=1, check_finite=False)
        gradient, hessian = fit.model.derivatives(mean + away.T)
        lower = cholesky(hessian, lower=True, check_finite=False)
        mean = mean + cho_solve((lower, True), gradient, check_finite=False)
    return replace(fit, mode=mean, lower=lower, hessian=hessian)


def _gaussian_integral(lower: Floats) -> float:
    """Return the log of the integral of exp(-x' L L' x / 2), for the Cholesky factor L."""
    return float(0.5 * len(lower) * log(2 * np.pi) - np.log(np.diag(lower)).sum())
