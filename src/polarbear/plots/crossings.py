"""When does the lead of two change hands? The crossing map of a pair."""

from dataclasses import dataclass

import numpy as np

from polarbear.data.frozen import Frozen
from polarbear.data.rankings import Rankings
from polarbear.errors import DataError
from polarbear.plots.colours import Cast
from polarbear.plots.sources import Floats, Source, cast_of, posterior_of
from polarbear.verdict import Crossing


@dataclass(frozen=True, eq=False)
class CrossingMap(Frozen):
    """Two algorithms over time.

    Attributes
    ----------
    cast
        Everybody.
    first, second
        The two.
    times, clock
        The grid.
    ahead
        Shape (T,): P(the rating of the first is above that of the second).
    alike
        Shape (T,): P(practically the same).
    chance, lower, upper
        Shape (T,): how likely the first is to beat the second on a new instance, with an interval.
    counted
        Shape (T,): how often it did on the instances that were seen, if rankings were given.
    both
        Shape (T, T): P(first ahead at the time of the row, second ahead at that of the column).
    crossings
        Where the lead certainly changes hands.
    everywhere, everywhere_reversed
        P(first ahead at all times), and P(second ahead at all times).
    alpha, epsilon, level
        How sure one has to be, what is practically the same, and the level of the interval.
    """

    cast: Cast
    first: str
    second: str
    times: Floats
    clock: str
    ahead: Floats
    alike: Floats
    chance: Floats
    lower: Floats
    upper: Floats
    counted: Floats | None
    both: Floats
    crossings: tuple[Crossing, ...]
    everywhere: float
    everywhere_reversed: float
    alpha: float
    epsilon: float
    level: float


def crossings_data(
    source: Source,
    first: str,
    second: str,
    *,
    alpha: float = 0.99,
    epsilon: float = 0.05,
    level: float = 0.95,
    rankings: Rankings | None = None,
) -> CrossingMap:
    """Who of two is ahead when, how surely, and where that changes.

    ``rankings``: how often the first was ahead in these is counted as well.

    >>> import polarbear as pb
    >>> truth = np.array([[0.0, 3.0], [0.0, 0.0], [3.0, 0.0]])
    >>> posterior = pb.fit(pb.testing.simulate_rankings(truth, 50))
    >>> [crossing.then for crossing in crossings_data(posterior, "a1", "a2").crossings]
    ['a1']
    """
    posterior = posterior_of(source)
    if posterior is None:
        raise DataError("this race has not decided anything: there is no pair to look at yet")
    ahead = posterior.better(first, second)
    one, two = (posterior.algorithms.index(name) for name in (first, second))
    lead = posterior.utilities[..., one] > posterior.utilities[..., two]
    won = lead.astype(np.float64)
    chance, (lower, upper) = posterior.win_probability(first, second, level)
    return CrossingMap(
        cast_of(source, alpha),
        first,
        second,
        posterior.times,
        posterior.clock,
        ahead,
        posterior.equivalent(first, second, epsilon),
        chance,
        lower,
        upper,
        None if rankings is None else rankings.win_rate(first, second),
        np.outer(ahead, 1 - ahead) if posterior.independent else won.T @ (1 - won) / len(won),
        tuple(posterior.crossings(first, second, alpha)),
        posterior.better_everywhere(first, second),
        posterior.better_everywhere(second, first),
        alpha,
        epsilon,
        level,
    )
