"""What is each worth to me? Values under a preference, as distributions."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polarbear.data.frozen import Frozen
from polarbear.inference.posterior import Posterior
from polarbear.plots.arguments import Floats, Source, cast_of, posterior_of
from polarbear.plots.canvas import (
    TINY,
    UNDECIDED,
    Axes,
    Columns,
    axes,
    dots,
    fitting,
    ink,
    note,
    nothing,
    row_height,
)
from polarbear.plots.colours import Cast
from polarbear.selection.preferences import Linear, Preference, resolved, valued
from polarbear.selection.ratings import thinned

POINTS = 256
"""The number of values at which a density is given."""

RIDGES = 12
"""The most algorithms of which densities are drawn; of more, only means and intervals."""

MOST_DRAWS = 2000
"""The number of draws that a density is made from."""


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
    linear
        Whether values are mean ratings.
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
    linear: bool


def values_data(
    source: Source,
    preference: Preference | Callable[[Floats], ArrayLike] | None = None,
    *,
    level: float = 0.95,
    alpha: float = 0.99,
) -> Values:
    """How the values of algorithms are distributed under a preference, as in ``select``.

    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(3), 50))
    >>> values_data(posterior, pb.preferences.final()).algorithms[0]
    'a3'
    """
    wanted = resolved(preference)
    linear = isinstance(wanted, Linear)
    posterior, cast = posterior_of(source), cast_of(source, alpha)
    if posterior is None:
        none, empty = np.zeros(0), np.zeros((0, POINTS))
        grid = np.linspace(0.0, 1.0, POINTS)
        return Values(cast, (), grid, empty, none, none, none, none, level, wanted.says, linear)
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
        linear,
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


def values(
    source: Source | Values,
    preference: Preference | Callable[[Floats], ArrayLike] | None = None,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    alpha: float = 0.99,
    columns: Columns = 1,
) -> Axes:
    """Draw what each algorithm is worth under a preference: a row each, the best on top.

    The parameters are those of :func:`values_data`; ``ax`` and ``columns`` say where to draw.

    >>> import polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 60))
    >>> values(posterior).get_xlabel()
    'Mean rating: every unit of time counts the same'
    """
    data = source
    if not isinstance(data, Values):
        data = values_data(data, preference, level=level, alpha=alpha)
    if not data.algorithms:
        return nothing(axes(ax, columns), UNDECIDED)
    n = len(data.algorithms)
    ax = axes(ax, columns, row_height(n, columns, 0.26 if n <= RIDGES else 0.13))
    if n <= RIDGES:
        _ridges(ax, data)
    dots(ax, data.algorithms, data.mean, data.lower, data.upper, data.cast)
    if n <= RIDGES:
        ax.set_ylim(n - 0.6, -1.0)
    ax.set_xlabel(f"{'Mean rating' if data.linear else 'Value'}: {data.preference}")
    _chances(ax, data)
    what = "density, " if n <= RIDGES else ""
    note(ax, f"{what}mark: mean, bar: {data.level:.0%} credible")
    return ax


def _ridges(ax: Axes, data: Values) -> None:
    """The densities, each above its row."""
    styles = data.cast.styles()
    for row, name in enumerate(data.algorithms):
        colour, height = styles[name].colour, data.density[row] / data.density[row].max()
        ridge = row - 0.8 * np.where(height > 0.01, height, np.nan)
        ax.fill_between(data.grid, row, ridge, color=colour, alpha=0.25, linewidth=0)
        ax.plot(data.grid, ridge, color=colour, linewidth=0.8)


def _chances(ax: Axes, data: Values) -> None:
    """How likely each is the best, at the right."""
    styles, size = data.cast.styles(), fitting(ax, len(data.algorithms))
    place = {"transform": ax.get_yaxis_transform(), "ha": "right", "fontsize": size}
    for row, name in enumerate(data.algorithms):
        chance = data.best[row]
        said = f"{chance:.2f}" if chance >= 0.005 else ("<.01" if chance > 0 else "0")
        ax.text(1.09, row, said, va="center", color=ink(styles[name]), **place)
    heading = {"transform": ax.transAxes, "ha": "right", "va": "bottom", "fontsize": TINY}
    ax.text(1.09, 1.02, "P(best)", **heading)
