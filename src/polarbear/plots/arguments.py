"""Get the posterior, the algorithms and the times of a figure from a posterior or a race."""

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_range
from polarbear.data.colours import Cast
from polarbear.data.runs import Runs
from polarbear.errors import DataError
from polarbear.inference.posterior import Posterior
from polarbear.racing.race import Race

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


PosteriorSource = Posterior | Race


def check_race(source: object) -> Race:
    """Return a race to draw; raise an error if it is none."""
    if isinstance(source, Race):
        return source
    raise DataError(
        f"expected a race to draw, got {type(source).__name__}: pass a Race, or what race(...) or "
        "replay(...) returned"
    )


def get_posterior(source: PosteriorSource) -> Posterior | None:
    """Return the posterior to draw; None for a race that has no decision yet."""
    if isinstance(source, Posterior):
        return source
    if isinstance(source, Race):
        return source.posterior
    raise DataError(
        f"expected a posterior or a race to draw, got {type(source).__name__}"
        + (": make one with fit(...)" if isinstance(source, Runs) else "")
    )


def get_cast(source: PosteriorSource, certainty: float = 0.95) -> Cast:
    """Return all algorithms, also eliminated and removed ones, and which are in the Pareto set."""
    if isinstance(source, Posterior):
        return Cast.of(source.algorithms, source.pareto(certainty))
    race = check_race(source)
    names = [verdict.algorithm for verdict in race.verdicts()]
    return Cast.of(names, race.pareto)


def get_times(source: PosteriorSource) -> tuple[Floats, str]:
    """Return the times of a posterior or a race, and the name of their clock."""
    if isinstance(source, Posterior):
        return source.times, source.clock
    setup = check_race(source).state.setup
    return np.array(setup.times), setup.clock


def find_nearest_time(times: Floats, time: float, clock: str) -> int:
    """Return the index of the element of ``times`` that is nearest to ``time``."""
    if not times[0] <= time <= times[-1]:
        raise DataError(
            f"expected a time in the posterior's range, {format_range(times[0], times[-1], clock)}",
            time=time,
        )
    return int(np.argmin(np.abs(times - time)))
