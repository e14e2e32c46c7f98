"""What is each worth to me? Values under a preference, as distributions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polarbear.data.frozen import Frozen
from polarbear.plots.colours import Cast
from polarbear.plots.sources import Floats, Source, cast_of, posterior_of
from polarbear.posterior import Posterior
from polarbear.selection.preferences import Linear, Preference, resolved, valued
from polarbear.selection.ratings import thinned

POINTS = 256
"""At so many values a density is given."""

MOST_DRAWS = 2000
"""A density is made from so many draws."""


@dataclass(frozen=True, eq=False)
class Values(Frozen):
    """How values of algorithms are distributed, best first.

    Attributes
    ----------
    cast
        Everybody.
    algorithms
        Who is rated, the highest expected value first.
    grid, density
        Shape (G,) and (n, G): how likely each value is.
    mean, lower, upper
        Shape (n,): the expected value, and the central interval.
    best
        Shape (n,): the probability that nobody is worth more.
    level
        Of the interval.
    preference
        In words.
    """

    cast: Cast
    algorithms: tuple[str, ...]
    grid: Floats
    density: Floats
    mean: Floats
    lower: Floats
    upper: Floats
    best: Floats
    level: float
    preference: str


def values_data(
    source: Source,
    preference: Preference | Callable[[Floats], ArrayLike] | None = None,
    *,
    level: float = 0.95,
    alpha: float = 0.99,
) -> Values:
    """How the values of algorithms are distributed under a preference, as in ``select``.

    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.testing.simulate_rankings(np.eye(3), 50))
    >>> values_data(posterior, pb.preferences.final()).algorithms[0]
    'a3'
    """
    wanted = resolved(preference)
    posterior, cast = posterior_of(source), cast_of(source, alpha)
    if posterior is None:
        none, empty = np.zeros(0), np.zeros((0, POINTS))
        grid = np.linspace(0.0, 1.0, POINTS)
        return Values(cast, (), grid, empty, none, none, none, none, level, wanted.says)
    drawn = _drawn(posterior, wanted)
    order = np.argsort(-drawn.mean(axis=0), kind="stable")
    drawn = drawn[:, order]
    lower, upper = np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    best = (drawn == drawn.max(axis=1, keepdims=True)).mean(axis=0)
    return Values(
        cast,
        tuple(posterior.algorithms[k] for k in order),
        *_densities(thinned(drawn, MOST_DRAWS)),
        drawn.mean(axis=0),
        lower,
        upper,
        best,
        level,
        wanted.says,
    )


def _drawn(posterior: Posterior, preference: Preference) -> Floats:
    """Draws of the values: (D, n)."""
    ratings = posterior.ratings.astype(np.float64)
    if isinstance(preference, Linear):
        weights = preference.weights(posterior.times, posterior.clock)
        return np.einsum("t,dtn->dn", weights, ratings)
    return valued(preference.function, np.moveaxis(ratings, 1, -1))


def _densities(drawn: Floats) -> tuple[Floats, Floats]:
    """A grid, and a smooth density on it for each column of draws (Gaussian kernels)."""
    low, high = drawn.min(), drawn.max()
    room = 0.08 * (high - low) or 0.05
    grid = np.linspace(low - room, high + room, POINTS)
    # Silverman's rule; a value that is hardly in doubt still gets a peak that can be seen.
    quarters = np.quantile(drawn, [0.25, 0.75], axis=0)
    spread = np.minimum(drawn.std(axis=0), np.ptp(quarters, axis=0) / 1.34)
    width = np.maximum(0.9 * spread * len(drawn) ** -0.2, 0.4 * (grid[1] - grid[0]))
    found = np.empty((drawn.shape[1], POINTS))
    for k, (column, one) in enumerate(zip(drawn.T, width, strict=True)):
        kernel = np.exp(-0.5 * ((grid[:, None] - column[None, :]) / one) ** 2)
        found[k] = kernel.mean(axis=1) / (one * np.sqrt(2 * np.pi))
    return grid, found
