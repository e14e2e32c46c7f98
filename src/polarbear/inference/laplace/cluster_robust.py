r"""Cluster-robust uncertainty: instances, not rankings at single times, are the units of evidence.

The likelihood multiplies over times as if every time had runs of its own. In fact the same runs are
compared at all times, so the scores (gradients of the log-likelihood) of an instance are correlated
over time. With s_p the score of instance p at all times, the covariance of the total score is
estimated by J = sum_p s_p s_p', clustered by instance. The sandwich P^-1 (J + Q) P^-1 is the
covariance of the estimate, with posterior precision P and prior precision Q (Godambe 1960; Liang
and Zeger 1986; for composite likelihoods Varin, Reid and Firth 2011).

- Where the prior treats times as independent, the posterior at each time is right. A Gaussian
  copula over times then carries the autocorrelation of the scores (:func:`copula_noise`).
- Where the prior connects times, draws have the covariance of the sandwich
  (:func:`sandwich_noise`).

Both work in the coordinates called noise, L' (x - mode) with P = L L'.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.laplace.conditional import MAX_DENSE_ALGORITHMS, ConditionalGaussian
from polarbear.inference.laplace.skew import multiply_blocks
from polarbear.inference.plackett_luce.likelihood import Likelihood, compute_instance_gradients
from polarbear.priors.base import helmert_basis

Floats = NDArray[np.float64]

MAX_SCORE_INSTANCES = 1000
"""The most instances, drawn at random, from which the covariance of scores is estimated."""

MIN_SCORE_INSTANCES, MAX_SCORE_CELLS = 200, 10_000_000
"""With many times and algorithms fewer instances: this many cells, but at least these."""

PRIOR_INSTANCES = 4.0
"""Weight, in instances, of the prior assumption that orders do not change over time."""


class NoiseTransform(NamedTuple):
    """A linear map that makes independent standard normal variables correlated over time."""

    n_inputs: int
    transform: Callable[[NDArray[Any]], NDArray[Any]]  # (D, n_inputs) -> (D, blocks, size)


def compute_instance_scores(
    rankings: Rankings,
    mu: Floats,
    rng: np.random.Generator,
    max_instances: int | None = None,
) -> Floats:
    """Return each instance's centred gradient of the log-likelihood (instances, times, algorithms).

    They are scaled so that the sum of their outer products estimates the covariance of the total
    score, also if only a random part of the instances is used.
    """
    n_total = len(np.unique(rankings.instance))
    rankings = limit_instances(rankings, mu.size, rng, max_instances)
    instances = np.unique(rankings.instance)
    code = np.searchsorted(instances, rankings.instance)
    scores = compute_instance_gradients(rankings, mu, code, len(instances))
    scores -= scores.mean(axis=0)
    return scores * np.sqrt(n_total / max(1, len(instances) - 1))


def limit_instances(
    rankings: Rankings, n_cells: int, rng: np.random.Generator, max_instances: int | None = None
) -> Rankings:
    """Return rankings of a random part of the instances, if scores have ``n_cells`` for each."""
    instances = np.unique(rankings.instance)
    most = min(MAX_SCORE_INSTANCES, max(MIN_SCORE_INSTANCES, MAX_SCORE_CELLS // n_cells))
    most = most if max_instances is None else max_instances
    if len(instances) <= most:
        return rankings
    return rankings.take(np.sort(rng.choice(instances, most, replace=False)))


def shrinkage_at_times(rankings: Rankings) -> Floats:
    """Return at each time the weight of shrinkage towards "rankings never change over time".

    The assumption is that orders do not change over time. With m instances that compare at least
    two algorithms at a time, its weight is c / (c + m - 1), where c is ``PRIOR_INSTANCES``.
    """
    n_known = np.add.reduceat(rankings.position != UNKNOWN, rankings.offset[:-1], axis=1)
    compares = (n_known >= 2) & (rankings.weight > 0)
    m = [len(np.unique(rankings.instance[row])) for row in compares]
    return PRIOR_INSTANCES / (PRIOR_INSTANCES + np.maximum(0, np.array(m) - 1))


def copula_noise(
    approximation: ConditionalGaussian, scores: Floats, shrinkage: Floats
) -> NoiseTransform:
    """Return a Gaussian copula that gives independent times the autocorrelation of the scores.

    The noise stays standard normal at each time. Let z_pt = L_t^-1 A' s_pt be the score in noise
    coordinates, and lambda, v the eigenvalues and eigenvectors of sum_p z_pt z_pt'. The scores
    explain the share e = (1 - shrinkage) min(lambda, 1) of the variance along v. The noise is

        x_t = E_t^1/2 G_t^-1/2 sum_p z_pt epsilon_p + (I - E_t)^1/2 (R w)_t

    with E_t and G_t the matrices of e and lambda, and epsilon, w standard normal. The second term
    is what scores do not explain. It has the autocorrelation R R' of the scores averaged over all
    directions. The Cholesky factors L_t have the same order of algorithms, so directions of
    neighbouring times are nearly the same; to rotate them to common ones changed no probability
    (studies/accuracy/ablation.md).
    """
    n_times, q = approximation.shape
    z = approximation.gradient_to_noise(scores)  # (P, T, q)
    if q >= MAX_DENSE_ALGORITHMS and len(z) < q:
        return _copula_of_few(z, autocorrelation_root(approximation, scores, shrinkage), shrinkage)
    by_time = z.swapaxes(0, 1)
    eigenvalue, direction = np.linalg.eigh(by_time.swapaxes(1, 2) @ by_time)
    eigenvalue = np.maximum(eigenvalue, 0.0)
    explained = (1 - shrinkage[:, None]) * np.minimum(eigenvalue, 1.0)
    scale = np.sqrt(explained / np.maximum(eigenvalue, 1e-300))
    rows = _compress_rows(multiply_blocks(z, _from_eigen(direction, scale)).reshape(len(z), -1))
    over_time = autocorrelation_root(approximation, scores, shrinkage)
    unexplained = _from_eigen(direction, np.sqrt(1 - explained))
    n_rows, rank = len(rows), over_time.shape[1]
    doubles = (rows, over_time, unexplained)
    singles = tuple(matrix.astype(np.float32) for matrix in doubles)

    def transform(normal: NDArray[Any]) -> NDArray[Any]:
        rows, over_time, unexplained = singles if normal.dtype == np.float32 else doubles
        # Directions before draws, for one large product instead of many small ones.
        w = (
            over_time
            @ normal[:, n_rows:].reshape(len(normal), rank, q).swapaxes(0, 1).reshape(rank, -1)
        ).reshape(n_times, len(normal), q)
        explained = (normal[:, :n_rows] @ rows).reshape(-1, n_times, q)
        explained += (w @ unexplained).swapaxes(0, 1)
        return explained

    return NoiseTransform(n_rows + rank * q, transform)


def _copula_of_few(z: Floats, over_time: Floats, shrinkage: Floats) -> NoiseTransform:
    """Return the copula of :func:`copula_noise` for fewer scores z (P, T, q) than directions q.

    The scores of a time span P directions V: z = U s V'. The noise x_t has the explained part
    U e^1/2 V' epsilon, and (I - E)^1/2 = I + V ((1 - e)^1/2 - 1) V' without a q x q matrix.
    """
    n_scores, n_times, q = z.shape
    rank = over_time.shape[1]
    rows = np.empty((n_scores, n_times, q), dtype=np.float32)
    direction = np.empty((n_times, n_scores, q), dtype=np.float32)
    less = np.empty((n_times, 1, n_scores), dtype=np.float32)
    for t in range(n_times):
        eigenvalue, left = np.linalg.eigh(z[:, t] @ z[:, t].T)
        eigenvalue = np.maximum(eigenvalue, 1e-12 * eigenvalue[-1] + 1e-300)
        explained = (1 - shrinkage[t]) * np.minimum(eigenvalue, 1.0)
        direction[t] = (left / np.sqrt(eigenvalue)).T @ z[:, t]
        rows[:, t] = (left * np.sqrt(explained)) @ direction[t]
        less[t] = np.sqrt(1 - explained) - 1
    flat, single_over_time = rows.reshape(n_scores, -1), over_time.astype(np.float32)

    def transform(normal: NDArray[Any]) -> NDArray[Any]:
        single = normal.astype(np.float32, copy=False)
        w = single[:, n_scores:].reshape(len(single), rank, q).swapaxes(0, 1).reshape(rank, -1)
        x = (single_over_time @ w).reshape(n_times, len(single), q)
        x += ((x @ direction.swapaxes(1, 2)) * less) @ direction
        explained = (single[:, :n_scores] @ flat).reshape(-1, n_times, q)
        explained += x.swapaxes(0, 1)
        return explained

    return NoiseTransform(n_scores + rank * q, transform)


def sandwich_noise(
    approximation: ConditionalGaussian, likelihood: Likelihood, scores: Floats, shrinkage: Floats
) -> NoiseTransform:
    """Return the map that gives draws a sandwich covariance, for priors that correlate times.

    J is shrunk, with the weights ``shrinkage`` (T,), towards the covariance of scores of runs whose
    order never changes: H_s^1/2 H_t^1/2 between times s and t, with H the curvature at each time.
    """
    basis = helmert_basis(approximation.mean.shape[1])
    curvature = basis.T @ likelihood.curvature(approximation.mean) @ basis
    eigenvalue, direction = np.linalg.eigh(curvature)
    root = _from_eigen(direction, np.sqrt(np.maximum(eigenvalue, 0.0)))
    constant_scores = root.swapaxes(0, 1) @ basis.T
    observed, assumed = np.sqrt(1 - shrinkage)[:, None], np.sqrt(shrinkage)[:, None]
    shrunk = np.concatenate([observed * scores, assumed * constant_scores])
    rows = _compress_rows(approximation.gradient_to_noise(shrunk)[:, 0])

    def transform(normal: Floats) -> Floats:
        from_data = (normal[:, : len(rows)] @ rows)[:, None]
        return from_data + approximation.prior_to_noise(normal[:, None, len(rows) :])

    return NoiseTransform(len(rows) + approximation.shape[1], transform)


def _from_eigen(direction: Floats, eigenvalue: Floats) -> Floats:
    """Return one symmetric matrix for each time from its eigenvectors and eigenvalues."""
    return (direction * eigenvalue[:, None, :]) @ direction.swapaxes(1, 2)


def _compress_rows(rows: Floats) -> Floats:
    """Return a matrix with the same X' X and at most as many rows as columns."""
    if len(rows) <= rows.shape[1]:
        return rows
    return np.asarray(np.linalg.qr(rows, mode="r"))


def autocorrelation_root(
    approximation: ConditionalGaussian, scores: Floats, shrinkage: Floats
) -> Floats:
    """Return a matrix R such that R R' is the correlation of scores between times (times, times).

    Scores are compared as noise z. With
    f_t = sqrt((1 - shrinkage_t) / q) z_t as one vector over instances and directions, the
    correlation of times s and t is f_s' f_t + l_s l_t, l_t = sqrt(1 - f_t' f_t). The second term
    stands for the variance that scores do not explain, as after unanimous rankings or with a single
    instance. It is taken as constant over time. Vectors longer than 1 are scaled to 1.
    """
    z = approximation.gradient_to_noise(scores)
    flat = z.swapaxes(0, 1).reshape(z.shape[1], -1)
    flat = flat * np.sqrt((1 - shrinkage) / z.shape[2])[:, None]
    squared_norm = np.sum(flat**2, axis=1)
    flat = flat / np.sqrt(np.maximum(squared_norm, 1.0))[:, None]
    constant = np.sqrt(np.maximum(1 - squared_norm, 0.0))
    correlation = flat @ flat.T + constant[:, None] * constant
    eigenvalue, direction = np.linalg.eigh(correlation)
    kept = eigenvalue > 1e-6 * eigenvalue[-1]
    root = direction[:, kept] * np.sqrt(eigenvalue[kept])
    return root / np.linalg.norm(root, axis=1, keepdims=True)
