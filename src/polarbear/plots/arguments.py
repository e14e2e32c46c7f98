"""What figures are made from: a posterior, or a race with what it knows."""

import numpy as np
from numpy.typing import NDArray

from polarbear.data.runs import Runs
from polarbear.errors import DataError
from polarbear.inference.posterior import Posterior
from polarbear.plots.colours import Cast
from polarbear.racing.events import Event
from polarbear.racing.race import Race
from polarbear.racing.raced import Raced
from polarbear.racing.state import runs_in

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

Racing = Race | Raced
"""A race, or what :func:`polarbear.race` and :func:`polarbear.replay` return."""

Source = Posterior | Racing


class ReadOnce(Raced):
    """A race whose events are read from its store once, whatever is asked of it."""

    def __init__(self, source: Raced) -> None:
        self.race, self._events = source.race, source.events
        self._runs: Runs | None = None

    @property
    def events(self) -> list[Event]:
        """Everything that happened, in order."""
        return self._events

    @property
    def runs(self) -> Runs:
        """All runs in the events."""
        if self._runs is None:
            self._runs = runs_in(self._events, self.race.state)
        return self._runs


def race_of(source: Racing) -> Race:
    """The race itself."""
    if isinstance(source, Race):
        return source
    if isinstance(source, Raced):
        return source.race
    raise DataError(
        f"a figure of a race takes a race, not {type(source).__name__}: pass a Race, or what "
        "race(...) or replay(...) returned"
    )


def posterior_of(source: Source) -> Posterior | None:
    """The posterior; none of a race that has not decided anything."""
    if isinstance(source, Posterior):
        return source
    if isinstance(source, Race | Raced):
        return source.posterior
    raise DataError(
        f"a figure of ratings takes a posterior or a race, not {type(source).__name__}"
        + (": make one with fit(...)" if isinstance(source, Runs) else "")
    )


def cast_of(source: Source, alpha: float = 0.99) -> Cast:
    """Everybody: of a race also those who are out."""
    if isinstance(source, Posterior):
        return Cast.of(source.algorithms, source.pareto(alpha))
    race = race_of(source)
    return Cast.of([*race.pareto, *race.eliminated, *race.removed], race.pareto)


def times_of(source: Source) -> tuple[Floats, str]:
    """The times that one asks about, and what they count."""
    if isinstance(source, Posterior):
        return source.times, source.clock
    state = race_of(source).state
    return np.array(state.times), state.clock
