"""Priors that treat times as independent: Dirichlet on the ratings at each time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from polarbear.priors.hyper import Exponential, Hyper, check_positive


@dataclass(frozen=True)
class Dirichlet:
    """A prior under which ratings at each time are independent Dirichlet(alpha, ..., alpha).

    See section 3.2.1 of the paper. In log-utilities the density is proportional to the product of
    theta_i ** alpha: it acts as ``alpha`` first places of each algorithm. ``alpha=1`` is uniform
    over all ratings.

    >>> Dirichlet(alpha=0.5).concentration({}, n=3)
    0.5
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_positive(alpha=self.alpha)

    def hypers(self) -> Mapping[str, Hyper]:
        """Return an empty mapping, because this prior has no hyperparameters."""
        return {}

    def concentration(self, hyper: Mapping[str, Any], n: int) -> Any:  # noqa: ARG002
        """Return the Dirichlet parameter of each of n algorithms."""
        return self.alpha


@dataclass(frozen=True)
class HierarchicalDirichlet:
    """A prior under which ratings at each time are Dirichlet, with an unknown concentration.

    With n algorithms they are Dirichlet(kappa / n, ...), with one ``kappa`` shared over time.

    >>> HierarchicalDirichlet().concentration({"kappa": 6.0}, n=3)
    2.0
    """

    kappa: Hyper = field(default=Exponential(0.1))

    def hypers(self) -> Mapping[str, Hyper]:
        """Return the distribution of ``kappa``, the total concentration of the Dirichlet."""
        return {"kappa": self.kappa}

    def concentration(self, hyper: Mapping[str, Any], n: int) -> Any:
        """Return the Dirichlet parameter of each of n algorithms."""
        return hyper["kappa"] / n


IndependentPrior = Dirichlet | HierarchicalDirichlet
