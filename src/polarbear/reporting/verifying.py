"""``verify_decisions``: make the decisions of a recorded race again, from its runs, and compare.

The events of a race are of two kinds. Runs, algorithms, instances and the question are given.
Decisions and requests follow from them, so they can be made again and compared with the recorded
ones.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from polarbear._text import format_count, format_list
from polarbear.errors import FitWarning
from polarbear.racing.decisions import Decision
from polarbear.racing.events import Asked, Decided, Ended, Event, Removed, explain_misfit
from polarbear.racing.race import Race

MAX_PROBABILITY_DIFFERENCE = 0.02
"""Posterior probabilities may differ by this much with other versions or on another processor."""


@dataclass(frozen=True)
class Comparison:
    """A recorded decision or request, beside the one that is computed again from the runs.

    Attributes
    ----------
    number
        The number of the recorded event, from 1.
    recorded, replayed
        The event in the record, None after its end; and the one made again, None if the race makes
        none there.
    """

    number: int
    recorded: Event | None
    replayed: Event | None

    @property
    def is_identical(self) -> bool:
        """Whether the recorded and the computed event are the same in every digit."""
        return self.recorded == self.replayed

    @property
    def is_same(self) -> bool:
        """Whether both events have equal content, up to small differences of probabilities."""
        if isinstance(self.recorded, Decided) and isinstance(self.replayed, Decided):
            claims = [_get_claims(one.decision) for one in (self.recorded, self.replayed)]
            return claims[0] == claims[1] and (self.difference <= MAX_PROBABILITY_DIFFERENCE)
        return self.is_identical

    @property
    def difference(self) -> float:
        """The largest difference between the posterior probabilities of the two decisions."""
        if not (isinstance(self.recorded, Decided) and isinstance(self.replayed, Decided)):
            return 0.0
        both = [_get_numbers(one.decision) for one in (self.recorded, self.replayed)]
        pairs = zip(*both, strict=False)
        return max((abs(a - b) for a, b in pairs), default=0.0)

    def __str__(self) -> str:
        both = self.recorded, self.replayed
        recorded, replayed = map(_describe, both)
        if recorded == replayed:
            recorded, replayed = (_describe(one, probabilities=True) for one in both)
        if recorded == replayed:
            recorded, replayed = f"{self.recorded}"[:400], f"{self.replayed}"[:400]
        return f"event {self.number:,}: recorded is {recorded}; the runs give {replayed}"


class _ReplayedRace(Race):
    """A race that takes some events as given, and computes decisions and requests itself."""

    def take(self, event: Event) -> None:
        with explain_misfit(event):
            self._posterior = None
            self._record(event)

    def derive(self) -> list[Event]:
        """Make the decisions and requests that follow from the present state."""
        start = len(self._events)
        # A deadline is a fact of the clock, so its end is taken from the record.
        self.ask(-inf if self.budget.deadline is not None else None)
        return self._events[start:]


def verify_decisions(events: Sequence[Event]) -> Iterator[Comparison]:
    """Yield each recorded decision and request beside the one computed again from the runs.

    After a difference the race continues as recorded.

    >>> import numpy as np, polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 40)
    >>> compared = list(verify_decisions(pb.replay(runs).events))
    >>> all(one.is_identical for one in compared)
    True
    """
    race = _ReplayedRace.from_events(events[:1])
    k = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        while k < len(events):
            if not _is_derived(events[k], race):
                race.take(events[k])
                k += 1
                continue
            derived = race.derive()
            for comparison in _compare(events, derived, race, k):
                yield comparison
                k += comparison.recorded is not None
                if not comparison.is_identical:
                    race = _ReplayedRace.from_events(events[:k])
                    break


def _compare(
    events: Sequence[Event], derived: Sequence[Event], race: Race, start: int
) -> Iterator[Comparison]:
    """Yield each recorded event from index ``start`` on beside the event computed again."""
    if not derived:
        yield Comparison(start + 1, events[start], None)
    for k, replayed in enumerate(derived, start):
        if k == len(events):  # the record ends here, as that of a race that was interrupted
            return
        if not _is_derived(events[k], race):
            yield Comparison(k + 1, None, replayed)
            return
        yield Comparison(k + 1, events[k], replayed)


def _is_derived(event: Event, race: Race) -> bool:
    """Return whether a race computes this event itself, rather than being given it."""
    if isinstance(event, Removed):  # by its own rule, or by a person
        return race.budget.failures is not None and event.why.endswith(" failed")
    return isinstance(event, Asked | Decided) or (
        isinstance(event, Ended) and event.why != "deadline"
    )


def _get_claims(decision: Decision) -> Decision:
    """Return a decision without its probabilities and forecasts."""
    return replace(
        decision,
        open=tuple(one._replace(need=inf) for one in decision.open),
        verdicts=tuple(one._replace(probability=None) for one in decision.verdicts),
        forecast=None,
    )


def _get_numbers(decision: Decision) -> list[float]:
    """Return the posterior probabilities of a decision."""
    numbers = [one.probability for one in decision.verdicts]
    return [-1.0 if number is None else number for number in numbers]


def _describe(event: Event | None, *, probabilities: bool = False) -> str:
    """Return a decision or request in words, its verdicts with probabilities if asked for."""
    if event is None:
        return "no decision"
    if isinstance(event, Asked):
        names = format_list(sorted({job.algorithm for job in event.jobs}))
        runs = format_count(len(event.jobs), "run")
        return f"a request of round {event.round + 1} for {runs} of {names}"
    if isinstance(event, Decided):
        decision = event.decision
        said = decision.verdicts if probabilities else _get_claims(decision).verdicts
        verdicts = [f"{one.algorithm} {one.brief()}" for one in said]
        pairs = format_count(len(decision.open), "open pair")
        return f"round {event.round + 1} with {pairs} ({format_list(verdicts, 12)})"
    if isinstance(event, Removed):
        return f"the removal of {event.algorithm} ({event.why})"
    return f"the end ({event.why})" if isinstance(event, Ended) else f"{event}"[:200]
