"""How good is each, when? Ratings over time with credible bands."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from polarbear.data.frozen import Frozen
from polarbear.errors import DataError
from polarbear.plots.colours import Cast
from polarbear.plots.sources import Floats, Source, cast_of, posterior_of, times_of


@dataclass(frozen=True, eq=False)
class RatingCurves(Frozen):
    """Ratings of algorithms over time.

    Attributes
    ----------
    cast
        Everybody, also those who are not rated any more.
    algorithms, times, clock
        Who is rated, and when. Nobody, if a race has not decided anything.
    mean, lower, upper
        Shape (T, n): the mean rating and the central interval.
    level
        Of the interval.
    truth
        Shape (T, n): the true ratings, if they are known.
    """

    cast: Cast
    algorithms: tuple[str, ...]
    times: Floats
    clock: str
    mean: Floats
    lower: Floats
    upper: Floats
    level: float
    truth: Floats | None = None


def ratings_data(
    source: Source,
    *,
    level: float = 0.95,
    truth: ArrayLike | None = None,
    alpha: float = 0.99,
) -> RatingCurves:
    """Mean ratings and their intervals.

    Parameters
    ----------
    source
        A posterior or a race.
    level
        Of the intervals.
    truth
        True log-utilities, shape (T, n), of simulated data: they become ratings.
    alpha
        How sure one has to be that somebody does not belong to the Pareto set, of a posterior.

    Examples
    --------
    >>> import polarbear as pb
    >>> posterior = pb.fit(pb.testing.simulate_rankings(np.eye(3), 20))
    >>> found = ratings_data(posterior)
    >>> found.mean.shape, bool(np.all(found.lower <= found.upper))
    ((3, 3), True)
    """
    posterior, cast = posterior_of(source), cast_of(source, alpha)
    times, clock = times_of(source)
    if posterior is None:
        nothing = np.zeros((len(times), 0))
        return RatingCurves(cast, (), times, clock, nothing, nothing, nothing, level)
    lower, upper = posterior.interval(level=level)
    mean = posterior.mean()
    return RatingCurves(
        cast,
        posterior.algorithms,
        times,
        clock,
        mean,
        lower,
        upper,
        level,
        None if truth is None else _ratings(truth, mean.shape),
    )


def _ratings(utilities: ArrayLike, shape: tuple[int, ...]) -> Floats:
    mu = np.asarray(utilities, dtype=np.float64)
    if mu.shape != shape:
        raise DataError(
            f"truth has shape {mu.shape}: expected log-utilities of shape {shape}, a row for each "
            "time and a column for each algorithm that is rated"
        )
    rating = np.exp(mu - mu.max(axis=1, keepdims=True))
    return rating / rating.sum(axis=1, keepdims=True)
