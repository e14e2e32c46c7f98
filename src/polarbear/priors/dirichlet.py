"""Priors that treat times as independent: Dirichlet on the ratings at each time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polarbear.priors.hyper import Exponential, Hyper, check_positive


@dataclass(frozen=True)
class Dirichlet:
    """Ratings at each time are Dirichlet(alpha, ..., alpha), independently (paper, 3.2.1).

    In log-utilities the density is proportional to the product of theta_i ** alpha: it acts as
    ``alpha`` first places of each algorithm. ``alpha=1`` is uniform over all ratings.

    >>> Dirichlet(alpha=0.5).concentration({}, n=3)
    0.5
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_positive(alpha=self.alpha)

    def hypers(self) -> Mapping[str, Hyper]:
        """Return no distributions: this prior has no hyperparameters."""
        return {}

    def concentration(self, hyper: Mapping[str, Any], n: int) -> Any:  # noqa: ARG002
        """Return the Dirichlet parameter of each of n algorithms."""
        return self.alpha


@dataclass(frozen=True)
class HierarchicalDirichlet:
    """Ratings at each time are Dirichlet(kappa / n, ...), with one kappa shared over time.

    >>> HierarchicalDirichlet().concentration({"kappa": 6.0}, n=3)
    2.0
    """

    kappa: Hyper = field(default=Exponential(0.1))

    def hypers(self) -> Mapping[str, Hyper]:
        """Return the distribution of ``kappa``, the prior's weight in first places."""
        return {"kappa": self.kappa}

    def concentration(self, hyper: Mapping[str, Any], n: int) -> Any:
        """Return the Dirichlet parameter of each of n algorithms."""
        return hyper["kappa"] / n


IndependentPrior = Dirichlet | HierarchicalDirichlet
