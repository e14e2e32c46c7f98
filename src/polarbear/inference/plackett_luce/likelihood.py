"""The interface of the Plackett-Luce likelihood, and the choice of its representation."""

from typing import Protocol, Self

from polarbear.data.rankings import Rankings
from polarbear.inference.plackett_luce.ordered_rankings import Floats
from polarbear.inference.plackett_luce.ranking_likelihood import RankingLikelihood
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood

MAX_SUBSET_ALGORITHMS = 12
"""The most algorithms for which choices are counted by subset: at most 2^12 subsets."""


class Likelihood(Protocol):
    """The log-likelihood of rankings of n algorithms at T times."""

    def to_single_precision(self) -> Self:
        """Return a single-precision copy if it is accurate enough, else the likelihood itself."""
        ...

    @property
    def n_terms(self) -> int:
        """The number of logarithms in one evaluation, a measure of its cost."""
        ...

    def value(self, mu: Floats) -> Floats:
        """Return the log-likelihood at each time, for utilities (T, n) or (draws, T, n)."""
        ...

    def gradient(self, mu: Floats) -> Floats:
        """Return the gradient of the log-likelihood, in the shape of mu."""
        ...

    def curvature(self, mu: Floats) -> Floats:
        """Return minus the Hessian (T, n, n): positive semidefinite, with null vector 1."""
        ...


def build_likelihood(rankings: Rankings) -> SubsetLikelihood | RankingLikelihood:
    """Return the likelihood of rankings, counted by subset for few algorithms."""
    if len(rankings.algorithms) <= MAX_SUBSET_ALGORITHMS:
        return SubsetLikelihood.from_rankings(rankings)
    return RankingLikelihood.from_rankings(rankings)
