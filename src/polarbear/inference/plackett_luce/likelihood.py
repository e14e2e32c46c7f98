"""The interface of the Plackett-Luce likelihood, and the choice of its representation."""

from typing import Protocol, Self

from polarbear.data.rankings import Rankings
from polarbear.inference.plackett_luce.ordered_rankings import Floats, Ints
from polarbear.inference.plackett_luce.partial_orders import (
    PartialOrderLikelihood,
    compute_order_gradients,
)
from polarbear.inference.plackett_luce.ranking_likelihood import RankingLikelihood
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood
from polarbear.inference.plackett_luce.unordered_ties import (
    UnorderedLikelihood,
    add_instance_gradients,
    collect_tied_groups,
)

MAX_SUBSET_ALGORITHMS = 12
"""The most algorithms for which choices are counted by subset: at most 2^12 subsets."""


class Likelihood(Protocol):
    """The log-likelihood of rankings of algorithms at several times."""

    def to_single_precision(self) -> Self:
        """Return a single-precision copy if it is accurate enough, else the likelihood itself."""
        ...

    @property
    def n_terms(self) -> int:
        """The number of logarithms in one evaluation, a measure of its cost."""
        ...

    def value(self, mu: Floats) -> Floats:
        """Return the log-likelihood at each time, for utilities ([draws,] times, algorithms)."""
        ...

    def gradient(self, mu: Floats) -> Floats:
        """Return the gradient of the log-likelihood with respect to utilities, in their shape."""
        ...

    def curvature(self, mu: Floats) -> Floats:
        """Return minus the Hessian of the log-likelihood (times, algorithms, algorithms)."""
        ...


def build_likelihood(
    rankings: Rankings,
) -> SubsetLikelihood | RankingLikelihood | UnorderedLikelihood | PartialOrderLikelihood:
    """Return the likelihood of rankings; for few algorithms, the one that counts by subset."""
    if rankings.ties == "partial":
        return PartialOrderLikelihood.from_rankings(rankings)
    if len(rankings.algorithms) <= MAX_SUBSET_ALGORITHMS:
        untied = SubsetLikelihood.from_rankings(rankings)
    else:
        untied = RankingLikelihood.from_rankings(rankings, merge=True)
    groups = () if rankings.ties == "averaged" else collect_tied_groups(rankings, merge=True)
    return UnorderedLikelihood(untied, groups) if groups else untied


def compute_instance_gradients(
    rankings: Rankings, mu: Floats, instance: Ints, n_instances: int
) -> Floats:
    """Return each instance's gradient of the log-likelihood (instances, times, algorithms).

    ``instance`` holds the number of the instance of each comparison.
    """
    if rankings.ties == "partial":
        return compute_order_gradients(rankings, mu, instance, n_instances)
    untied = RankingLikelihood.from_rankings(rankings)
    gradients = untied.instance_gradients(mu, instance, n_instances)
    if rankings.ties == "unordered":
        groups = collect_tied_groups(rankings, merge=False)
        add_instance_gradients(gradients, groups, mu, instance)
    return gradients
