"""Instances as the units of evidence: a run that is looked at more often does not tell more.

The likelihood multiplies over times as if every time had runs of its own. In truth the same runs
are compared at all times, so the scores of an instance go together over time, and the sum of their
products over instances says how far (Godambe's sandwich, for composite likelihoods). Where times
are independent in the model its posterior at each time is right, and the draws of different times
are made to go together as the scores do. Where a prior ties times together, draws are spread by the
scores of instances, not by the curvature, which counts every time as new.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import UNKNOWN, Rankings
from polarbear.errors import FitError
from polarbear.inference.laplace.conditional import Conditional
from polarbear.inference.laplace.skew import per_block
from polarbear.inference.plackett_luce.likelihood import Choices
from polarbear.inference.plackett_luce.ranking_likelihood import Orders
from polarbear.priors.base import helmert

Floats = NDArray[np.float64]

MOST_INSTANCES = 1000
"""The number of instances, drawn at random, from which the correlation of scores is estimated."""

DOUBT = 4.0
"""Weight of the prior on the correlation of scores, in instances: few instances say little."""


class Spread(NamedTuple):
    """How to draw the noise of a component."""

    width: int
    noise: Callable[[Floats], Floats]  # standard normal (D, width) -> (D, blocks, size)


def instance_scores(rankings: Rankings, mu: Floats, rng: np.random.Generator) -> Floats:
    """Scores of instances at utilities (T, n), centred: shape (instances, T, n).

    The sum of their products estimates the covariance of the score of all the data.
    """
    compared = np.unique(rankings.instance)
    total = len(compared)
    if total > MOST_INSTANCES:
        compared = np.sort(rng.choice(compared, MOST_INSTANCES, replace=False))
        rankings, compared = rankings.take(compared), np.arange(MOST_INSTANCES)
    code = np.searchsorted(compared, rankings.instance)
    found = Orders.of(rankings).scores(mu, code, len(compared))
    found -= found.mean(axis=0)
    return found * np.sqrt(total / max(1, len(compared) - 1))


def doubt_at_times(rankings: Rankings) -> Floats:
    """How much at each time (T,) is not to be learnt from so few instances: from 0 to 1.

    Counted are instances of which at least two algorithms are known at a time.
    """
    known = np.add.reduceat(rankings.position != UNKNOWN, rankings.offset[:-1], axis=1)
    speaks = (known >= 2) & (rankings.weight > 0)
    number = [len(np.unique(rankings.instance[row])) for row in speaks]
    return DOUBT / (DOUBT + np.maximum(0, np.array(number) - 1))


def together(one: Conditional, scores: Floats, doubt: Floats) -> Spread:
    """Noise of blocks that are times, standard normal at each, going together as the scores do.

    What scores do not explain goes together over time as they do on average over all directions,
    and what they leave open altogether is luck that stays. ``doubt`` (T,) as of few instances.
    """
    n_times, q = one.shape
    pulled = one.pull(scores)  # (P, T, q)
    size, direction = np.linalg.eigh(np.einsum("pti,ptj->tij", pulled, pulled))
    size = np.maximum(size, 0.0)
    explained = (1 - doubt[:, None]) * np.minimum(size, 1.0)
    shrink = np.sqrt(explained / np.maximum(size, 1e-300))
    rows = _fewer(per_block(pulled, _symmetric(direction, shrink)).reshape(len(pulled), -1))
    turn = _turns(one)
    over_time = _persistence(per_block(pulled, turn), doubt)
    rest = turn.swapaxes(1, 2) @ _symmetric(direction, np.sqrt(1 - explained))

    def noise(normal: Floats) -> Floats:
        known = (normal[:, : len(rows)] @ rows).reshape(-1, n_times, q)
        left = normal[:, len(rows) :].reshape(len(normal), -1, q)
        return known + per_block(over_time @ left, rest)

    return Spread(len(rows) + over_time.shape[1] * q, noise)


def sandwich(one: Conditional, data: Choices, scores: Floats, doubt: Floats) -> Spread:
    """Noise of a prior that ties times together, as wide as the scores of instances make it.

    In doubt (T,), for there are few instances, the width is that of runs whose order never changes.
    """
    unseen = one.unseen
    if unseen is None:
        raise FitError("a sandwich is for priors that tie times together")
    n = one.mean.shape[1]
    basis = helmert(n)
    size, direction = np.linalg.eigh(basis.T @ data.curvature(one.mean) @ basis)
    constant = _symmetric(direction, np.sqrt(np.maximum(size, 0.0))).swapaxes(0, 1) @ basis.T
    sure, unsure = np.sqrt(1 - doubt)[:, None], np.sqrt(doubt)[:, None]
    whole = np.concatenate([sure * scores, unsure * constant])
    rows = _fewer(one.pull(whole)[:, 0])

    def noise(normal: Floats) -> Floats:
        seen = (normal[:, : len(rows)] @ rows)[:, None]
        return seen + unseen(normal[:, None, len(rows) :])

    return Spread(len(rows) + one.shape[1], noise)


def _symmetric(direction: Floats, size: Floats) -> Floats:
    """Symmetric matrices (T, q, q) from their eigenvectors and eigenvalues."""
    return (direction * size[:, None, :]) @ direction.swapaxes(1, 2)


def _fewer(rows: Floats) -> Floats:
    """Rows of the same sum of products, no more of them than columns."""
    if len(rows) <= rows.shape[1]:
        return rows
    return np.asarray(np.linalg.qr(rows, mode="r"))


def _turns(one: Conditional) -> Floats:
    """Rotations (T, q, q) from the noise at each time to coordinates that all times share.

    Those in which noise becomes utilities by a symmetric matrix: nothing is turned on the way.
    """
    n_times, q = one.shape
    unit = np.repeat(np.eye(q)[:, None, :], n_times, axis=1)
    away = (one.place(unit) - one.mean) @ helmert(one.mean.shape[1])
    left, _, right = np.linalg.svd(away.swapaxes(0, 1))
    return left @ right


def _persistence(scores: Floats, doubt: Floats) -> Floats:
    """A root (T, r) of the correlation over time of scores (P, T, q), over all directions.

    Scores are in units of the noise: where they are too small to make it, as after unanimous
    rankings or with a single instance, the rest is luck that stays.
    """
    flat = scores.swapaxes(0, 1).reshape(scores.shape[1], -1)
    flat = flat * np.sqrt((1 - doubt) / scores.shape[2])[:, None]
    size = np.sum(flat**2, axis=1)
    flat = flat / np.sqrt(np.maximum(size, 1.0))[:, None]
    left = np.sqrt(np.maximum(1 - size, 0.0))
    correlation = flat @ flat.T + left[:, None] * left
    size, direction = np.linalg.eigh(correlation)
    kept = size > 1e-6 * size[-1]
    root = direction[:, kept] * np.sqrt(size[kept])
    return root / np.linalg.norm(root, axis=1, keepdims=True)
