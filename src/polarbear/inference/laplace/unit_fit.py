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

MAX_NEWTON_STEPS = 100


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

    def derivatives(self, state: Floats) -> tuple[Floats, Floats]:
        """Return the gradient (size,) and minus the Hessian (size, size) of the log-posterior."""
        basis, c = helmert_basis(self.n), self.design.n_columns
        coefficients, slope = self.split(state)
        slopes, curvatures = self.likelihood.derivatives(self.utilities(state))
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
        theta = np.exp(basis @ coefficients[:, 0])
        theta /= theta.sum()
        by_coefficient[:, 0] -= self.n * self.alpha * (theta @ basis)
        dirichlet = (
            self.n * self.alpha * basis.T @ (np.diag(theta) - np.outer(theta, theta)) @ basis
        )
        first = np.arange(0, size, c)
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

    def estimate_evidence(self, tau: float) -> float:
        """Estimate the log-evidence of another tau > 0 by one Newton step from this mode."""
        model = replace(self.model, tau=tau)
        coefficients, _ = self.model.split(self.mode)
        c, size = self.model.design.n_columns, coefficients.size
        change = tau**-2 - self.model.tau**-2
        gradient = np.zeros(model.size)
        gradient[:size].reshape(-1, c)[:, 1:] = -change * coefficients[:, 1:]
        hessian = self.hessian.copy()
        rest = np.flatnonzero(np.arange(size) % c)
        hessian[rest, rest] += change
        lower = cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)
        half = solve_triangular(lower, gradient, lower=True, check_finite=False)
        value = model.value(self.mode) + 0.5 * float(half @ half)
        return value + _gaussian_integral(lower)

    def draw(self, noise: Floats, slope_noise: Floats) -> tuple[Floats, Floats]:
        """Map standard normal noise (D, n - 1, c) and (D,) to coefficients and slopes of draws."""
        c = self.model.design.n_columns
        flat = noise[:, :, :c].reshape(len(noise), -1)
        if self.model.scores is not None:
            flat = np.concatenate([flat, slope_noise[:, None]], axis=1)
        away = solve_triangular(self.lower, flat.T, lower=True, trans=1, check_finite=False)
        states = self.mode + away.T
        slopes = states[:, -1] if self.model.scores is not None else np.zeros(len(noise))
        size = (self.model.n - 1) * c
        return states[:, :size].reshape(len(noise), -1, c), slopes


def fit_units(model: UnitModel, start: Floats | None = None) -> UnitFit:
    """Find the mode by Newton steps, from the parameters ``start`` of another tau or time.

    A full step is taken where it gains a quarter of the decrement. Otherwise its size is
    log(1 + r) / r, which always gains, with r the largest range of the change in utilities (see
    :func:`polarbear.inference.laplace.conditional.damped_newton`).
    """
    state = np.zeros(model.size) if start is None else start
    value = model.value(state)
    for _ in range(MAX_NEWTON_STEPS):
        gradient, hessian = model.derivatives(state)
        lower = cholesky(hessian, lower=True, check_finite=False)
        direction = cho_solve((lower, True), gradient, check_finite=False)
        decrement = float(gradient @ direction)
        full = model.value(state + direction)
        if decrement < MAX_DECREMENT:
            evidence = full + _gaussian_integral(lower)
            return UnitFit(model, state + direction, lower, evidence, hessian)
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


def _gaussian_integral(lower: Floats) -> float:
    """Return the log of the integral of exp(-x' L L' x / 2), for the Cholesky factor L."""
    return float(0.5 * len(lower) * log(2 * np.pi) - np.log(np.diag(lower)).sum())
