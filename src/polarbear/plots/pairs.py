"""Who beats whom? All pairs, at a time or over all times."""

from dataclasses import dataclass

import numpy as np

from polarbear.data.frozen import Frozen
from polarbear.data.names import span
from polarbear.errors import DataError
from polarbear.plots.colours import Cast
from polarbear.plots.sources import Bools, Floats, Source, cast_of, posterior_of, times_of
from polarbear.posterior import check_alpha


@dataclass(frozen=True, eq=False)
class Pairs(Frozen):
    """Probabilities of pairs: rows against columns, those who win most first.

    Attributes
    ----------
    cast
        Everybody.
    algorithms
        Of rows and columns.
    ahead
        Shape (n, n): P(row ahead of column), at the time or at all times; nan on the diagonal.
    certain
        Shape (n, n): whether that is certain.
    crosses
        Shape (n, n): over all times, whether the two certainly change places; at a time nobody
        does.
    time
        The time that was asked about, or None for all times.
    clock
        What it counts.
    alpha
        How sure one has to be.
    """

    cast: Cast
    algorithms: tuple[str, ...]
    ahead: Floats
    certain: Bools
    crosses: Bools
    time: float | None
    clock: str
    alpha: float


def pairs_data(source: Source, time: float | None = None, *, alpha: float = 0.99) -> Pairs:
    """Who is ahead of whom, at the time of the grid nearest to ``time``, or at all times.

    >>> import polarbear as pb
    >>> truth = np.array([[0.0, 3.0], [3.0, 0.0]])
    >>> posterior = pb.fit(pb.testing.simulate_rankings(truth, 50))
    >>> pairs_data(posterior, 0.0).algorithms, bool(pairs_data(posterior).crosses[0, 1])
    (('a2', 'a1'), True)
    """
    check_alpha(alpha)
    posterior, cast = posterior_of(source), cast_of(source, alpha)
    times, clock = times_of(source)
    if posterior is None:
        nothing, no = np.zeros((0, 0)), np.zeros((0, 0), dtype=bool)
        return Pairs(cast, (), nothing, no, no, time, clock, alpha)
    by_time = posterior.better_matrix()
    ahead, often = posterior.better_everywhere_matrix(), by_time.mean(axis=0)
    leads = np.any(by_time >= alpha, axis=0)
    crosses = leads & leads.T
    if time is not None:
        place = _nearest(times, time, clock)
        time, ahead = float(times[place]), by_time[place]
        often, crosses = ahead, np.zeros_like(crosses)
    order = np.argsort(-often.mean(axis=1), kind="stable")
    both = np.ix_(order, order)
    ahead = ahead[both].copy()
    np.fill_diagonal(ahead, np.nan)
    return Pairs(
        cast,
        tuple(posterior.algorithms[k] for k in order),
        ahead,
        ahead >= alpha,
        crosses[both] & ~np.eye(len(order), dtype=bool),
        time,
        clock,
        alpha,
    )


def _nearest(times: Floats, time: float, clock: str) -> int:
    if not times[0] <= time <= times[-1]:
        raise DataError(
            f"the time {time:,g} lies outside of what is known, {span(times[0], times[-1], clock)}"
        )
    return int(np.argmin(np.abs(times - time)))
