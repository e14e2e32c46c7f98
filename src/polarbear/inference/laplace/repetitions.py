r"""How much the repetitions of an instance tell, where they share the weight of one ranking.

With weight 1 / K each, K comparisons of an instance count as one ranking. That is right if they
agree, and too cautious if chance orders each of them anew. The truth lies between and differs by
direction: with s_pk the score of comparison k of instance p and w its weight,

    M = sum_p s_p s_p',  s_p = sum_k w_pk s_pk              the variance of the total score
    V = sum_p w_p sum_k w_pk s_pk s_pk',  w_p = sum_k w_pk  if all comparisons of p agreed

at each time. Then E = V^-1/2 M V^-1/2 has eigenvalues from 0 to 1, and is the identity without
repetitions. The curvature of the likelihood at the mode is changed from H to H^1/2 E^-1 H^1/2 by a
linear map of the utilities around the mode of the posterior (the curvature adjustment of Ribatet,
Cooley and Davison 2012). Under a flat prior the mode stays; under others it moves a little from the
prior towards the data. Priors that correlate times need none of this: their sandwich covariance has
the variance of the total score.

E is estimated from few instances, so it is shrunk twice: to a multiple of the identity (the oracle
approximating shrinkage of Chen, Wiesel, Eldar and Hero 2010), and to the identity.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.inference.laplace.cluster_robust import limit_instances, shrinkage_at_times
from polarbear.inference.laplace.skew import multiply_blocks
from polarbear.inference.plackett_luce.likelihood import Likelihood, compute_instance_gradients
from polarbear.priors.base import helmert_basis

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AdjustedLikelihood:
    """A likelihood whose utilities are moved away from the mode by a matrix at each time."""

    likelihood: Likelihood
    mode: Floats  # (times, algorithms)
    matrix: Floats  # (times, algorithms, algorithms): utilities as rows times this
    score_matrix: Floats  # the same for scores of instances, so that they have the new curvature

    @property
    def n_terms(self) -> int:
        """The number of logarithms in one evaluation, a measure of its cost."""
        return self.likelihood.n_terms

    def to_single_precision(self) -> "AdjustedLikelihood":
        """Return a single-precision copy if it is accurate enough, else the likelihood itself."""
        fast = self.likelihood.to_single_precision()
        return self if fast is self.likelihood else replace(self, likelihood=fast)

    def value(self, mu: Floats) -> Floats:
        """Return the log-likelihood at each time, for utilities ([draws,] times, algorithms)."""
        return self.likelihood.value(self._move(mu))

    def gradient(self, mu: Floats) -> Floats:
        """Return the gradient of the log-likelihood with respect to utilities, in their shape."""
        slope = self.likelihood.gradient(self._move(mu))
        return _multiply(slope, self.matrix.swapaxes(1, 2))

    def curvature(self, mu: Floats) -> Floats:
        """Return minus the Hessian of the log-likelihood (times, algorithms, algorithms)."""
        inner = self.likelihood.curvature(self._move(mu))
        return self.matrix @ inner @ self.matrix.swapaxes(1, 2)

    def scale_scores(self, scores: Floats) -> Floats:
        """Return scores of instances (instances, times, algorithms) with the new curvature."""
        return multiply_blocks(scores, self.score_matrix)

    def _move(self, mu: Floats) -> Any:
        mode, matrix = (array.astype(mu.dtype, copy=False) for array in (self.mode, self.matrix))
        return mode + _multiply(mu - mode, matrix)


def _multiply(rows: Floats, matrices: Floats) -> Floats:
    """Multiply the rows ([draws,] times, n) of each time by its matrix (times, n, n)."""
    if rows.ndim == 2:
        return np.einsum("ti,tij->tj", rows, matrices)
    return multiply_blocks(rows, matrices.astype(rows.dtype, copy=False))


def has_repetitions(rankings: Rankings) -> bool:
    """Return whether several comparisons of an instance share its weight."""
    return bool(np.bincount(rankings.instance[rankings.weight > 0]).max(initial=0) > 1)


def adjust_for_repetitions(
    rankings: Rankings, likelihood: Likelihood, mode: Floats
) -> AdjustedLikelihood:
    """Return the likelihood with the curvature that repetitions of instances justify."""
    rng = np.random.default_rng(0)  # which instances are used, if there are very many
    n = mode.shape[1]
    basis = helmert_basis(n)
    root, inverse = _roots(basis.T @ likelihood.curvature(mode) @ basis)
    share, axis = np.linalg.eigh(estimate_efficiency(rankings, mode, basis @ inverse, rng))
    constant = np.full((n, n), 1 / n)  # the same utility added to all algorithms stays

    def conjugate(power: float) -> Floats:
        """Return H^1/2 E^power H^-1/2, in utilities."""
        middle = (axis * (share**power)[:, None]) @ axis.swapaxes(1, 2)
        return basis @ (root @ middle @ inverse) @ basis.T + constant

    return AdjustedLikelihood(likelihood, mode, conjugate(-0.5), conjugate(-1.0).swapaxes(1, 2))


def estimate_efficiency(
    rankings: Rankings, mode: Floats, whiten: Floats, rng: np.random.Generator
) -> Floats:
    """Return E at each time (times, q, q), in coordinates in which the curvature is the identity.

    ``whiten`` (times, algorithms, q) takes scores to these coordinates.
    """
    shrinkage = shrinkage_at_times(rankings)
    mean_count = len(rankings.instance) / len(np.unique(rankings.instance))
    rankings = limit_instances(rankings, int(mode.size * np.ceil(mean_count)), rng)
    instance, weight = rankings.instance, rankings.weight
    used = weight > 0
    scores = compute_instance_gradients(
        rankings, mode, np.arange(len(instance)), len(instance)
    )  # of comparisons, with their weights
    z = multiply_blocks(scores, whiten)  # (comparisons, T, q)
    total = np.bincount(instance, weight)
    count = np.bincount(instance[used], minlength=len(total))
    by_instance = np.zeros((len(total), *z.shape[1:]))
    np.add.at(by_instance, instance, z)
    m = max(2, int(np.count_nonzero(total)))
    between = np.einsum("ptq,ptr->tqr", by_instance, by_instance) * (m / (m - 1))
    factor = np.where(used, total[instance] / np.where(used, weight, 1.0), 0.0)
    single = np.einsum("c,ctq,ctr->tqr", factor, z, z)
    _, inverse = _roots(single)
    ratio = _shrink_to_sphere(inverse @ between @ inverse, m - 1)
    q = ratio.shape[-1]
    ratio = (1 - shrinkage)[:, None, None] * ratio + shrinkage[:, None, None] * np.eye(q)
    value, direction = np.linalg.eigh(ratio)
    value = np.clip(value, 1 / count.max(), 1.0)
    return (direction * value[:, None]) @ direction.swapaxes(1, 2)


def _shrink_to_sphere(matrix: Floats, n_samples: int) -> Floats:
    """Return covariances (T, q, q) shrunk to multiples of the identity (OAS)."""
    q = matrix.shape[-1]
    trace = np.trace(matrix, axis1=1, axis2=2)
    squared = np.sum(matrix**2, axis=(1, 2))
    spread = (n_samples + 1 - 2 / q) * (squared - trace**2 / q)
    weight = np.clip(((1 - 2 / q) * squared + trace**2) / np.maximum(spread, 1e-300), 0.0, 1.0)
    sphere = (trace / q)[:, None, None] * np.eye(q)
    return (1 - weight)[:, None, None] * matrix + weight[:, None, None] * sphere


def _roots(matrices: Floats) -> tuple[Floats, Floats]:
    """Return the symmetric square root of each matrix, and its inverse."""
    value, direction = np.linalg.eigh(matrices)
    value = np.sqrt(np.maximum(value, 1e-9 * value[:, -1:] + 1e-300))
    back = direction.swapaxes(1, 2)
    return (direction * value[:, None]) @ back, (direction / value[:, None]) @ back
