"""Figure of the posterior distributions of the algorithms' values under a preference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polarbear.data.colours import Cast
from polarbear.data.frozen import FrozenRecord
from polarbear.inference.posterior import Posterior
from polarbear.plots.arguments import Floats, PosteriorSource, get_cast, get_posterior, get_times
from polarbear.plots.canvas import (
    NO_DECISION_MESSAGE,
    NOTE_FONT_POINTS,
    Axes,
    OneOrTwo,
    add_note,
    choose_font_size,
    compute_height,
    draw_intervals,
    get_text_colour,
    prepare_axes,
    show_message,
)
from polarbear.selection.preferences import Linear, Preference, evaluate_curves, to_preference
from polarbear.selection.ratings import thin_draws

DENSITY_POINTS = 256
"""The number of points at which a density is evaluated."""

MAX_DENSITIES = 12
"""Densities are drawn up to this number of algorithms; with more, only means and intervals."""

MAX_DENSITY_DRAWS = 2000
"""The most posterior draws from which a density is estimated."""


@dataclass(frozen=True, eq=False)
class Values(FrozenRecord):
    """The posterior distributions of the algorithms' values under a preference, best first.

    Attributes
    ----------
    cast
        All algorithms.
    algorithms
        The algorithms with values, the highest expected value first.
    grid, density
        Shape (G,) and (n, G): values, and the posterior density of each algorithm there.
    mean, lower, upper
        Shape (n,): the expected value, and the central interval.
    best
        Shape (n,): the probability that no other algorithm has a higher value.
    level
        The probability of the interval.
    preference
        The preference in words.
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
    source: PosteriorSource,
    preference: Preference | Callable[[Floats], ArrayLike] | None = None,
    *,
    level: float = 0.95,
    certainty: float = 0.95,
) -> Values:
    """Compute the posterior distributions of values under a preference, as ``select`` does.

    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(np.eye(3), 50))
    >>> values_data(posterior, pb.preferences.final()).algorithms[0]
    'a3'
    """
    checked_preference = to_preference(preference, get_times(source)[0])
    linear = isinstance(checked_preference, Linear)
    posterior, cast = get_posterior(source), get_cast(source, certainty)
    if posterior is None:
        none, empty = np.zeros(0), np.zeros((0, DENSITY_POINTS))
        grid = np.linspace(0.0, 1.0, DENSITY_POINTS)
        return Values(
            cast=cast,
            algorithms=(),
            grid=grid,
            density=empty,
            mean=none,
            lower=none,
            upper=none,
            best=none,
            level=level,
            preference=checked_preference.says,
            linear=linear,
        )
    value_draws = _compute_value_draws(posterior, checked_preference)
    order = np.argsort(-value_draws.mean(axis=0), kind="stable")
    value_draws = value_draws[:, order]
    lower, upper = np.quantile(value_draws, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    best = (value_draws == value_draws.max(axis=1, keepdims=True)).mean(axis=0)
    return Values(
        cast,
        tuple(posterior.algorithms[k] for k in order),
        *_estimate_densities(thin_draws(value_draws, MAX_DENSITY_DRAWS)),
        mean=value_draws.mean(axis=0),
        lower=lower,
        upper=upper,
        best=best,
        level=level,
        preference=checked_preference.says,
        linear=linear,
    )


def _compute_value_draws(posterior: Posterior, preference: Preference) -> Floats:
    """Return the value of each algorithm in each posterior draw (draws, algorithms)."""
    ratings = posterior.ratings.astype(np.float64)
    if isinstance(preference, Linear):
        weights = preference.weights(posterior.times, posterior.clock)
        return np.einsum("t,dtn->dn", weights, ratings)
    return evaluate_curves(preference.function, np.moveaxis(ratings, 1, -1))


def _estimate_densities(value_draws: Floats) -> tuple[Floats, Floats]:
    """Estimate the density of each column of draws by Gaussian kernels; return grid and density."""
    low, high = value_draws.min(), value_draws.max()
    room = 0.08 * (high - low) or 0.05
    grid = np.linspace(low - room, high + room, DENSITY_POINTS)
    # Silverman's rule, with a minimum so that the peak of a nearly certain value is visible.
    quarters = np.quantile(value_draws, [0.25, 0.75], axis=0)
    spread = np.minimum(value_draws.std(axis=0), np.ptp(quarters, axis=0) / 1.34)
    bandwidths = np.maximum(0.9 * spread * len(value_draws) ** -0.2, 0.4 * (grid[1] - grid[0]))
    density = np.empty((value_draws.shape[1], DENSITY_POINTS))
    for k, (column, bandwidth) in enumerate(zip(value_draws.T, bandwidths, strict=True)):
        kernel = np.exp(-0.5 * ((grid[:, None] - column[None, :]) / bandwidth) ** 2)
        density[k] = kernel.mean(axis=1) / (bandwidth * np.sqrt(2 * np.pi))
    return grid, density


def values(
    source: PosteriorSource | Values,
    preference: Preference | Callable[[Floats], ArrayLike] | None = None,
    ax: Axes | None = None,
    *,
    level: float = 0.95,
    certainty: float = 0.95,
    columns: OneOrTwo = 1,
) -> Axes:
    """Draw the value of each algorithm under a preference, one row each, the best on top.

    The parameters are those of :func:`values_data`; ``ax`` and ``columns`` are those of
    :func:`ratings`.

    >>> import polarbear as pb
    >>> truth = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    >>> posterior = pb.fit(pb.simulation.simulate_rankings(truth, 60))
    >>> values(posterior).get_xlabel()
    'Mean rating: every unit of time counts the same'
    """
    data = source
    if not isinstance(data, Values):
        data = values_data(data, preference, level=level, certainty=certainty)
    if not data.algorithms:
        return show_message(prepare_axes(ax, columns), NO_DECISION_MESSAGE)
    n = len(data.algorithms)
    ax = prepare_axes(ax, columns, compute_height(n, columns, 0.26 if n <= MAX_DENSITIES else 0.13))
    if n <= MAX_DENSITIES:
        _draw_densities(ax, data)
    draw_intervals(ax, data.algorithms, data.mean, data.lower, data.upper, data.cast)
    if n <= MAX_DENSITIES:
        ax.set_ylim(n - 0.6, -1.0)
    ax.set_xlabel(f"{'Mean rating' if data.linear else 'Value'}: {data.preference}")
    _write_best_probabilities(ax, data)
    what = "density, " if n <= MAX_DENSITIES else ""
    add_note(ax, f"{what}mark: mean, bar: {data.level:.0%} credible interval")
    return ax


def _draw_densities(ax: Axes, data: Values) -> None:
    """Draw the posterior density of each algorithm's value as a filled curve, one in each row."""
    styles = data.cast.styles()
    for row, name in enumerate(data.algorithms):
        colour, height = styles[name].colour, data.density[row] / data.density[row].max()
        ridge = row - 0.8 * np.where(height > 0.01, height, np.nan)
        ax.fill_between(data.grid, row, ridge, color=colour, alpha=0.25, linewidth=0)
        ax.plot(data.grid, ridge, color=colour, linewidth=0.8)


def _write_best_probabilities(ax: Axes, data: Values) -> None:
    """Write at the right of each row the probability that its algorithm is the best."""
    styles, size = data.cast.styles(), choose_font_size(ax, len(data.algorithms))
    place = {"transform": ax.get_yaxis_transform(), "ha": "right", "fontsize": size}
    for row, name in enumerate(data.algorithms):
        prob_best = data.best[row]
        text = f"{prob_best:.2f}" if prob_best >= 0.005 else ("<.01" if prob_best > 0 else "0")
        ax.text(1.09, row, text, va="center", color=get_text_colour(styles[name]), **place)
    heading = {
        "transform": ax.transAxes,
        "ha": "right",
        "va": "bottom",
        "fontsize": NOTE_FONT_POINTS,
    }
    ax.text(1.09, 1.02, "P(best)", **heading)
