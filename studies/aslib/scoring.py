"""What predictions on held-out instances are worth: log scores and calibration."""

from collections.abc import Iterable
from typing import Any

import numpy as np

BINS = 10


class HeldOut:
    """Add up scores of predictions at one cut-off.

    ``order`` of an instance: the algorithms that solved it, the fastest first. Instances that no
    algorithm solved say nothing. Equal runtimes are ordered at random, alike for all models.
    """

    def __init__(self, n_algorithms: int) -> None:
        self.n = n_algorithms
        self.log_first = 0.0
        self.log_ranking = 0.0
        self.first = np.zeros((3, BINS))  # number, sum of probabilities, sum of outcomes
        self.beats = np.zeros((3, BINS))

    def add(self, ratings: np.ndarray, order: np.ndarray) -> None:
        """Add an instance, for which ``ratings`` (draws, n) were predicted."""
        if not len(order):
            return
        prob_first = ratings.mean(axis=0)
        self.log_first += float(np.log(prob_first[order[0]]))
        self.log_ranking += log_likelihood(ratings, order)
        count(self.first, prob_first, np.arange(self.n) == order[0])
        place = np.full(self.n, self.n)
        place[order] = np.arange(len(order))
        count_pairs(self.beats, ratings, place)

    def to_row(self) -> dict[str, Any]:
        return {
            "log_first": round(self.log_first, 4),
            "log_ranking": round(self.log_ranking, 4),
            "first": self.first.round(5).tolist(),
            "beats": self.beats.round(5).tolist(),
        }


class SolvedPairs:
    """Add up the calibration of P(beats) at one cut-off, of pairs of which one did not solve."""

    def __init__(self, n_algorithms: int) -> None:
        self.n = n_algorithms
        self.beats = np.zeros((3, BINS))

    def add(self, ratings: np.ndarray, order: np.ndarray) -> None:
        """Add an instance: ``order`` has the algorithms that solved it, in any order."""
        place = np.ones(self.n)
        place[order] = 0
        count_pairs(self.beats, ratings, place)

    def to_row(self) -> dict[str, Any]:
        return {"beats": self.beats.round(5).tolist()}


def log_likelihood(ratings: np.ndarray, order: np.ndarray) -> float:
    """Return the log of the mean Plackett-Luce probability (draws, n) of an order.

    Algorithms that are not in the order come after those that are, in any order.
    """
    left = ratings.astype(np.float64).sum(axis=1)
    log_prob = np.zeros(len(ratings))
    for winner in order[: ratings.shape[1] - 1]:
        own = ratings[:, winner].astype(np.float64)
        log_prob += np.log(np.maximum(own, 1e-300)) - np.log(np.maximum(left, 1e-300))
        left = np.maximum(left - own, 1e-12 * own)
    top = log_prob.max()
    return float(top + np.log(np.mean(np.exp(log_prob - top))))


def count(bins: np.ndarray, prob: np.ndarray, outcome: np.ndarray) -> None:
    """Add probabilities and whether they came true to bins of equal width."""
    own = np.minimum((prob * BINS).astype(int), BINS - 1)
    for row, values in zip(bins, (np.ones(len(prob)), prob, outcome), strict=True):
        row += np.bincount(own, values, BINS)


def count_pairs(bins: np.ndarray, ratings: np.ndarray, place: np.ndarray) -> None:
    """Add P(beats) under ratings (draws, n) of all pairs whose places differ, and who did."""
    a, b = np.triu_indices(len(place), 1)
    a, b = a[place[a] != place[b]], b[place[a] != place[b]]
    prob = (ratings[:, a] / (ratings[:, a] + ratings[:, b])).mean(axis=0)
    count(bins, prob, place[a] < place[b])


def calibration_error(bins: Iterable[np.ndarray]) -> float:
    """Return the expected calibration error: the mean |mean probability - share that came true|.

    >>> calibration_error([np.array([[10.0, 0.0], [1.0, 0.0], [2.0, 0.0]])])
    0.1
    """
    number, prob, outcome = np.sum(list(bins), axis=0)
    return float(np.abs(prob - outcome).sum() / number.sum())


def chance_error(bins: np.ndarray) -> float:
    """Return about what :func:`calibration_error` is by chance, if the probabilities are true.

    Outcomes count as independent; those of one instance are not, so it is more for pairs.

    >>> round(chance_error(np.array([[100.0], [50.0], [50.0]])), 2)
    0.04
    """
    number, prob = bins[0], bins[1]
    mean = prob / np.maximum(number, 1)
    return float(np.sqrt(2 / np.pi * number * mean * (1 - mean)).sum() / number.sum())
