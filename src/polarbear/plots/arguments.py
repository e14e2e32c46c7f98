"""Get the posterior, the algorithms and the times of a figure from a posterior or a race."""

from typing import TYPE_CHECKING, TypeGuard, Union

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_range
from polarbear.data.runs import Runs
from polarbear.errors import DataError
from polarbear.inference.posterior import Posterior
from polarbear.plots.colours import Cast
from polarbear.racing.events import Event
from polarbear.racing.notes import collect_runs
from polarbear.racing.race import Race

if TYPE_CHECKING:
    from polarbear.coordinator.run_race import Result

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class ReadOnce:
    """A race whose events are read from its store only once."""

    def __init__(self, source: "Result") -> None:
        self.race, self._events = source.race, source.events
        self._runs: Runs | None = None

    @property
    def events(self) -> list[Event]:
        """All events of the race, in order."""
        return self._events

    @property
    def runs(self) -> Runs:
        """All runs in the events of the race."""
        if self._runs is None:
            self._runs = collect_runs(self._events, self.race.state)
        return self._runs


RaceSource = Union[Race, ReadOnce, "Result"]
"""A race, or what :func:`polarbear.race` and :func:`polarbear.replay` return."""

PosteriorSource = Union[Posterior, Race, ReadOnce, "Result"]


def is_race(source: object) -> TypeGuard[RaceSource]:
    """Return whether an object is a race, or holds one, as the result of ``race`` does."""
    return isinstance(getattr(source, "race", source), Race)


def get_race(source: RaceSource) -> Race:
    """Return the race that an argument is or holds."""
    race = getattr(source, "race", source)
    if isinstance(race, Race):
        return race
    raise DataError(
        f"expected a race to draw, got {type(source).__name__}: pass a Race, or the "
        "result of race(...) or replay(...)"
    )


def get_posterior(source: PosteriorSource) -> Posterior | None:
    """Return the posterior to draw; None for a race that has no decision yet."""
    if isinstance(source, Posterior):
        return source
    if is_race(source):
        return get_race(source).posterior
    raise DataError(
        f"expected a posterior or a race to draw, got {type(source).__name__}"
        + (": make one with fit(...)" if isinstance(source, Runs) else "")
    )


def get_cast(source: PosteriorSource, certainty: float = 0.99) -> Cast:
    """Return all algorithms, also eliminated and removed ones, and which are in the Pareto set."""
    if isinstance(source, Posterior):
        return Cast.of(source.algorithms, source.pareto(certainty))
    race = get_race(source)
    names = [*race.pareto, *race.eliminated, *race.removed]
    return Cast.of(names, race.pareto)


def get_times(source: PosteriorSource) -> tuple[Floats, str]:
    """Return the times of a posterior or a race, and the name of their clock."""
    if isinstance(source, Posterior):
        return source.times, source.clock
    state = get_race(source).state
    return np.array(state.times), state.clock


def find_nearest_time(times: Floats, time: float, clock: str) -> int:
    """Return the index of the element of ``times`` that is nearest to ``time``."""
    if not times[0] <= time <= times[-1]:
        raise DataError(
            f"time={time:,g}: expected a time in the posterior's range, "
            f"{format_range(times[0], times[-1], clock)}"
        )
    return int(np.argmin(np.abs(times - time)))
