"""The Laplace approximation where the posterior precision is banded: cost is linear in times.

``fit_markov`` works with the states of a Markov prior, ``fit_local`` with basis coefficients of
local support, such as those of splines.
"""

from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve_banded, cholesky_banded
from scipy.sparse import csr_array

from polarbear.inference.laplace.conditional import (
    ConditionalGaussian,
    Mode,
    NewtonStep,
    damped_newton,
    likelihood_remainder,
)
from polarbear.inference.plackett_luce.likelihood import Likelihood
from polarbear.priors.base import MarkovChain, helmert_basis

Floats = NDArray[np.float64]

MIN_WIDTH_RATIO = 4
"""A factor counts as local if it has at least this many times more columns than a row spans."""

MIN_BLOCK_SIZE = 32
"""Products of smaller blocks are no faster."""


def fit_markov(
    likelihood: Likelihood, prior: MarkovChain, n: int, start: Floats | None
) -> "BandedGaussian":
    """Fit the Laplace approximation to the states of a prior that is a Markov chain over time.

    ``start`` is a mode for other hyperparameters, with or without derivatives.
    """
    coordinates = _MarkovStates(prior, n)
    begin = np.zeros((coordinates.n_times, coordinates.state_size))
    if start is not None:
        start = start.reshape(coordinates.n_times, -1)[:, : coordinates.state_size]
        begin[:, : start.shape[1]] = start
    return _fit_banded(likelihood, coordinates, n, begin.ravel())


def fit_local(
    likelihood: Likelihood, factor: Floats, n: int, start: Floats | None
) -> "BandedGaussian | None":
    """Fit the Laplace approximation if each coefficient affects few times; else return None.

    None if the rows of the factor (T, K) span too many columns. ``start`` (T, n - 1) is a mode for
    other hyperparameters.
    """
    width = _max_row_span(factor)
    if width * MIN_WIDTH_RATIO > factor.shape[1]:
        return None
    coordinates = _LocalCoefficients(factor, width, n)
    begin = np.zeros(coordinates.prior_precision.shape[1])
    if start is not None:
        # Least squares, with a small ridge for coefficients that no time observes.
        identity = np.repeat(np.eye(n - 1)[None], len(factor), axis=0)
        gram = coordinates.pull_back_curvature(identity)
        gram[0] += 1e-8 * gram[0].max()
        root = cholesky_banded(gram, lower=True, check_finite=False)
        right = coordinates.pull_back(start.reshape(len(factor), -1))
        begin = cho_solve_banded((root, True), right)
    return _fit_banded(likelihood, coordinates, n, begin)


def _fit_banded(
    likelihood: Likelihood, coordinates: "_Coordinates", n: int, begin: Floats
) -> "BandedGaussian":
    """Find the posterior mode from a starting vector, and return the Gaussian around it."""
    posterior = _BandedPosterior(likelihood, coordinates, n)
    mode = damped_newton(begin[None], posterior.value, posterior.step)
    return BandedGaussian(posterior, mode)


class _Coordinates(Protocol):
    """A vector x with a banded Gaussian prior, and the linear map from x to utilities.

    Utilities (T, n) are those with coordinates (T, n - 1) in the Helmert basis.
    """

    prior_precision: Floats  # lower band
    prior_log_det: float  # of that precision

    def values(self, x: Floats) -> Floats:
        """Map coordinates x to n - 1 orthonormal contrasts of the utilities of n algorithms."""
        ...

    def pull_back(self, gradient: Floats) -> Floats:
        """Map gradients with respect to contrasts of utilities to gradients with respect to x."""
        ...

    def pull_back_curvature(self, curvature: Floats) -> Floats:
        """Map curvatures in contrasts of utilities to curvature in x, as a lower band."""
        ...

    def covariance(self, lower: Floats) -> Floats:
        """Return covariances of utilities at each time, given the Cholesky factor for x."""
        ...

    def warm_start(self, x: Floats) -> Floats:
        """Return a mode in the form from which a fit with other hyperparameters can start."""
        ...


class _BandedPosterior:
    """The log-posterior of a vector x with a banded Gaussian prior."""

    def __init__(self, likelihood: Likelihood, coordinates: _Coordinates, n: int) -> None:
        self.likelihood, self.coordinates = likelihood, coordinates
        self.basis = helmert_basis(n)
        self.prior_precision = coordinates.prior_precision
        # Most diagonals of the prior's band may be empty.
        self._diagonals = np.flatnonzero(np.abs(self.prior_precision).max(axis=1))

    def utilities(self, x: Floats) -> Floats:
        return self.coordinates.values(x) @ self.basis.T

    def value(self, x: Floats) -> Floats:
        """Return the log-posterior of a vector x (1, size) as an array (1,)."""
        prior = x[0] @ _multiply_symmetric_band(self.prior_precision, self._diagonals, x[0])
        return np.array([self.likelihood.value(self.utilities(x[0])).sum() - 0.5 * prior])

    def gradient(self, x: Floats) -> Floats:
        gradient = self.pull_back(self.likelihood.gradient(self.utilities(x)))
        return gradient - _multiply_symmetric_band(self.prior_precision, self._diagonals, x)

    def pull_back(self, gradient: Floats) -> Floats:
        """Map gradients with respect to utilities to gradients with respect to x."""
        return self.coordinates.pull_back(gradient @ self.basis)

    def precision_root(self, x: Floats) -> Floats:
        """Return the Cholesky factor L of the posterior precision, as a lower band."""
        curvature = self.basis.T @ self.likelihood.curvature(self.utilities(x)) @ self.basis
        precision = self.prior_precision + self.coordinates.pull_back_curvature(curvature)
        return cholesky_banded(precision, lower=True, check_finite=False)

    def step(self, x: Floats) -> NewtonStep:
        """Return the Newton step for a vector x (1, size)."""
        gradient, root = self.gradient(x[0]), self.precision_root(x[0])
        direction = cho_solve_banded((root, True), gradient, check_finite=False)[None]
        utility_range = np.ptp(self.utilities(direction), axis=-1).max(axis=-1)
        return NewtonStep(direction, direction @ gradient, utility_range)


class BandedGaussian(ConditionalGaussian):
    """The Gaussian around the posterior mode of a vector with a banded precision matrix."""

    def __init__(self, posterior: _BandedPosterior, mode: Mode) -> None:
        coordinates = posterior.coordinates
        self._posterior, self._mode = posterior, mode.state[0]
        self._lower = posterior.precision_root(self._mode)
        log_root_det = np.log(self._lower[0]).sum()
        self.log_evidence = float(mode.value[0]) + 0.5 * coordinates.prior_log_det - log_root_det
        self.mean = posterior.utilities(self._mode)
        self.shape = (1, len(self._mode))
        self.warm_start = coordinates.warm_start(self._mode)
        self.decrement = mode.decrement

    @cached_property
    def _solver(self) -> "_BlockTriangular":
        return _BlockTriangular(self._lower)

    @cached_property
    def _prior_root(self) -> Floats:
        return cholesky_banded(self._posterior.prior_precision, lower=True)

    @cached_property
    def _remainder(self) -> Callable[[Floats], Floats]:
        return likelihood_remainder(self._posterior.likelihood, self.mean)

    def _compute_covariance(self) -> Floats:
        basis = self._posterior.basis
        return basis @ self._posterior.coordinates.covariance(self._lower) @ basis.T

    def _from_noise(self, noise: Floats) -> Floats:
        """Map standard normal variables (draws, 1, size) to parameter vectors x (draws, size)."""
        return self._mode + self._solver.solve(noise[:, 0])

    def to_utilities(self, noise: Floats) -> Floats:
        """Map standard normal variables (draws, 1, size) to utilities, one set for each draw."""
        return self._posterior.utilities(self._from_noise(noise))

    def log_ratio(self, noise: Floats, utilities: Floats) -> Floats:  # noqa: ARG002
        """Return log(posterior / approximation) of each draw, up to a constant (draws, 1)."""
        return self._remainder(utilities).sum(axis=-1, keepdims=True)

    def gradient(self, noise: Floats) -> Floats:
        """Return the gradient of the log-posterior with respect to the standardised variables."""
        gradient = self._posterior.gradient(self._from_noise(noise))
        return self._solver.solve_transposed(gradient)[:, None]

    def gradient_to_noise(self, gradient: Floats) -> Floats:
        """Convert gradients with respect to utilities to those for standardised variables."""
        return self._solver.solve_transposed(self._posterior.pull_back(gradient))[:, None]

    def prior_to_noise(self, normal: Floats) -> Floats:
        """Map standard normal variables to the prior's part of noise with sandwich covariance."""
        scaled = _multiply_lower_band(self._prior_root, normal[:, 0])
        return self._solver.solve_transposed(scaled)[:, None]


class _MarkovStates:
    """The states of a Markov prior, ordered by time: a value, then its time derivatives."""

    def __init__(self, prior: MarkovChain, n: int) -> None:
        self.q = n - 1
        self.n_times = len(prior.transition) + 1
        self.state_size = len(prior.initial_covariance) * self.q
        self.prior_precision = _markov_precision(prior, self.q)
        log_det = np.linalg.slogdet(prior.initial_covariance)[1]
        log_det += np.linalg.slogdet(prior.noise_covariance)[1].sum()
        self.prior_log_det = -self.q * float(log_det)

    def values(self, x: Floats) -> Floats:
        return x.reshape(*x.shape[:-1], self.n_times, self.state_size)[..., : self.q]

    def pull_back(self, gradient: Floats) -> Floats:
        whole = np.zeros((*gradient.shape[:-1], self.state_size))
        whole[..., : self.q] = gradient
        return whole.reshape(*gradient.shape[:-2], -1)

    def pull_back_curvature(self, curvature: Floats) -> Floats:
        band = np.zeros_like(self.prior_precision)
        for i in range(self.q):
            for j in range(i + 1):
                band[i - j, j :: self.state_size] = curvature[:, i, j]
        return band

    def covariance(self, lower: Floats) -> Floats:
        return _marginal_covariances(lower, self.state_size)[:, : self.q, : self.q]

    def warm_start(self, x: Floats) -> Floats:
        return x


class _LocalCoefficients:
    """Whitened coefficients of a prior whose factor (times, coefficients) is sparse in each row."""

    def __init__(self, factor: Floats, width: int, n: int) -> None:
        (n_times, k), q = factor.shape, n - 1
        self.shape, self.n_times = (k, q), n_times
        self.prior_precision = np.zeros((width * q, k * q))
        self.prior_precision[0] = 1.0
        self.prior_log_det = 0.0
        self.factor = csr_array(factor)
        self.transposed = csr_array(factor.T)
        # Products of the entries of a row that are m columns apart, for m = 0, 1, ....
        products = np.zeros((width, k, n_times))
        for m in range(width):
            products[m, : k - m] = (factor[:, m:] * factor[:, : k - m]).T
        self.products = csr_array(products.reshape(width * k, n_times))
        m, column, i, j = np.ogrid[:width, :k, :q, :q]
        row = np.broadcast_to(m * q + i - j, (width, k, q, q))
        self.in_band = row >= 0
        cell = row * (k * q) + column * q + j
        self.band_cell = cell[self.in_band]

    def values(self, x: Floats) -> Floats:
        values = _multiply_sparse(self.factor, x.reshape(-1, *self.shape))
        return values.reshape(*x.shape[:-1], *values.shape[1:])

    def pull_back(self, gradient: Floats) -> Floats:
        whole = _multiply_sparse(self.transposed, gradient.reshape(-1, *gradient.shape[-2:]))
        return whole.reshape(*gradient.shape[:-2], -1)

    def pull_back_curvature(self, curvature: Floats) -> Floats:
        blocks = self.products @ curvature.reshape(self.n_times, -1)
        band = np.zeros_like(self.prior_precision)
        band.ravel()[self.band_cell] = blocks.reshape(self.in_band.shape)[self.in_band]
        return band

    def covariance(self, lower: Floats) -> Floats:
        q = self.shape[1]
        onto = np.kron(self.factor.toarray(), np.eye(q))
        half = _BlockTriangular(lower).solve_transposed(onto).reshape(self.n_times, q, -1)
        return half @ half.swapaxes(1, 2)

    def warm_start(self, x: Floats) -> Floats:
        return self.values(x)


def _max_row_span(factor: Floats) -> int:
    """Return the largest number of columns from the first to the last nonzero entry of a row."""
    nonzero = factor != 0
    end = factor.shape[1] - nonzero[:, ::-1].argmax(axis=1)
    return int((end - nonzero.argmax(axis=1)).max())


def _multiply_sparse(matrix: csr_array, x: Floats) -> Floats:
    """Multiply a sparse matrix (i, j) by each matrix of a stack (draws, j, q)."""
    draws, _, q = x.shape
    rows = x.transpose(1, 0, 2).reshape(x.shape[1], -1)
    return (matrix @ rows).reshape(-1, draws, q).transpose(1, 0, 2)


def _markov_precision(prior: MarkovChain, q: int) -> Floats:
    """Return the lower band of the precision of q independent Markov chains, ordered by time.

    With transitions A_t and noise covariances N_t the precision is block tridiagonal: the diagonal
    block at t is N_t^-1 + A_{t+1}' N_{t+1}^-1 A_{t+1}, and the block below is -N_{t+1}^-1 A_{t+1}.
    """
    n_times, s = len(prior.transition) + 1, len(prior.initial_covariance)
    noise_precision = _invert_covariances(prior.noise_covariance)
    diagonal = np.zeros((n_times, s, s))
    diagonal[0] += np.linalg.inv(prior.initial_covariance)
    diagonal[1:] += noise_precision
    diagonal[:-1] += np.swapaxes(prior.transition, 1, 2) @ noise_precision @ prior.transition
    below = -noise_precision @ prior.transition
    block = s * q
    band = np.zeros((2 * block if n_times > 1 else block, n_times * block))
    for i, j, k in product(range(s), range(s), range(q)):
        row, column = i * q + k, j * q + k
        if row >= column:
            band[row - column, column::block] = diagonal[:, i, j]
        if n_times > 1:
            band[block + row - column, column : (n_times - 1) * block : block] = below[:, i, j]
    return band


def _invert_covariances(covariance: Floats) -> Floats:
    """Invert covariances (..., s, s), scaled to correlations for numerical stability."""
    sd = np.sqrt(np.diagonal(covariance, axis1=-2, axis2=-1))
    scale = sd[..., :, None] * sd[..., None, :]
    return np.linalg.inv(covariance / scale) / scale


def _multiply_symmetric_band(band: Floats, diagonals: NDArray[np.intp], x: Floats) -> Floats:
    """Multiply a symmetric matrix, given by diagonals of its lower band, by vectors (..., size)."""
    result = band[0] * x
    for k in diagonals[1:]:
        values = band[k, :-k]
        result[..., k:] += values * x[..., :-k]
        result[..., :-k] += values * x[..., k:]
    return result


def _multiply_lower_band(lower: Floats, x: Floats) -> Floats:
    """Multiply a lower banded matrix by vectors (..., size)."""
    result = lower[0] * x
    for k in range(1, min(lower.shape)):
        result[..., k:] += lower[k, :-k] * x[..., :-k]
    return result


class _BlockTriangular:
    """A lower banded matrix L in dense blocks, to solve for many right-hand sides fast."""

    def __init__(self, lower: Floats) -> None:
        self.size = lower.shape[1]
        diagonal, self.below = _split_into_blocks(lower, max(MIN_BLOCK_SIZE, len(lower)))
        self.inverse = np.linalg.inv(diagonal)

    def solve(self, right: Floats) -> Floats:
        """Solve x L = right for each row of ``right`` (rows, size)."""
        x, block = right.copy(), self.inverse.shape[1]
        for k in reversed(range(len(self.inverse))):
            here, after = slice(k * block, (k + 1) * block), slice((k + 1) * block, None)
            if k + 1 < len(self.inverse):
                following = x[:, after][:, :block]
                x[:, here] -= following @ self.below[k, : following.shape[1]]
            width = x[:, here].shape[1]
            x[:, here] = x[:, here] @ self.inverse[k, :width, :width]
        return x

    def solve_transposed(self, right: Floats) -> Floats:
        """Solve x L' = right for each row of ``right`` (rows, size)."""
        x, block = right.copy(), self.inverse.shape[1]
        for k in range(len(self.inverse)):
            here = slice(k * block, (k + 1) * block)
            width = x[:, here].shape[1]
            if k:
                x[:, here] -= x[:, (k - 1) * block : k * block] @ self.below[k - 1, :width].T
            x[:, here] = x[:, here] @ self.inverse[k, :width, :width].T
        return x


def _split_into_blocks(lower: Floats, block: int) -> tuple[Floats, Floats]:
    """Return the diagonal blocks of a lower banded matrix, and the block below each of them.

    Blocks are at least as large as the band, so there are no others. The last one is filled up
    with the identity.
    """
    width, size = lower.shape
    n_blocks = -(-size // block)
    padded = np.zeros((width, n_blocks * block))
    padded[:, :size] = lower
    padded[0, size:] = 1.0
    both = np.zeros((n_blocks, 2 * block, block))
    for column in range(block):
        reach = min(width, 2 * block - column)
        both[:, column : column + reach, column] = padded[:reach, column::block].T
    return both[:, :block], both[:, block:]


def _marginal_covariances(lower: Floats, block: int) -> Floats:
    """Return the diagonal blocks of the inverse of a block tridiagonal matrix L L'.

    With diagonal blocks D_t and blocks B_t below them in L, the backward recursion is
    S_t = D_t^-T (I + B_t' S_{t+1} B_t) D_t^-1 (Takahashi's equations, Rue and Martino 2007).
    """
    diagonal, below = _split_into_blocks(lower, block)
    inverse = np.linalg.inv(diagonal)
    pull = below @ inverse
    covariance = np.swapaxes(inverse, 1, 2) @ inverse
    for t in range(len(covariance) - 2, -1, -1):
        covariance[t] += pull[t].T @ covariance[t + 1] @ pull[t]
    return covariance
