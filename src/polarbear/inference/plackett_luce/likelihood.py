"""What the likelihood is made of, in the representation that suits the number of algorithms."""

from typing import Protocol, Self

from polarbear.data.rankings import Rankings
from polarbear.inference.plackett_luce.ordered_rankings import Floats
from polarbear.inference.plackett_luce.ranking_likelihood import Orders
from polarbear.inference.plackett_luce.subset_likelihood import SetTable

MOST_FOR_TABLE = 12
"""The most algorithms whose sets are added up in a table, of at most 2^12 sets."""


class Choices(Protocol):
    """Rankings at T times of n algorithms, as the likelihood needs them."""

    def single(self) -> Self:
        """The same in single precision where that is enough: for the value of many draws."""
        ...

    @property
    def terms(self) -> int:
        """How many logarithms the likelihood has: what an evaluation costs."""
        ...

    def value(self, mu: Floats) -> Floats:
        """Log-likelihood at each time, for mu of shape (T, n) or (draws, T, n)."""
        ...

    def gradient(self, mu: Floats) -> Floats:
        """Its gradient: of the shape of mu."""
        ...

    def curvature(self, mu: Floats) -> Floats:
        """Minus its Hessian: shape (T, n, n), positive semidefinite, with null vector 1."""
        ...


def choices(rankings: Rankings) -> SetTable | Orders:
    """The representation that suits the number of algorithms."""
    if len(rankings.algorithms) <= MOST_FOR_TABLE:
        return SetTable.of(rankings)
    return Orders.of(rankings)
