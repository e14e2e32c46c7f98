"""``Budget``: what a race may spend, and how many instances a round has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, time
from numbers import Integral, Real
from typing import TYPE_CHECKING

from polarbear.errors import DataError
from polarbear.racing.deadlines import EARLIEST, Deadline, parse_deadline

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Budget:
    """What a race may spend: runs, time, a deadline, failures; and the size of its rounds.

    Attributes
    ----------
    runs, time
        The largest number of requested runs, and their largest total time, by the clock of the
        runs.
    deadline
        No run is started from then on. :func:`polarbear.race` takes a duration from the start of
        the call ("8h", "90m", "1h 30m"), the next such time of day ("18:30"), a date and time
        ("2030-01-31T18:30"), or a Unix time. Runs that still go on then are stopped and ignored. A
        Race has no clock, so it compares a number with the now of ``ask(now)``.
    retries
        How often a failed run (crashed, killed or out of memory) is requested again, with another
        seed. If the last attempt fails too, it counts with the values it had reached. An extension
        that is requested again keeps its seed.
    failures
        An algorithm with more failed runs than this is removed.
    batch
        The smallest and the largest number of instances of a round.
    overlap
        The number of rounds that may be requested beyond an incomplete one, so that workers are
        not idle until the slowest run ends. Decisions do not depend on the order of arrival.

    Examples
    --------
    >>> Budget(runs=2000, deadline="8h").batch
    (8, 64)
    >>> Budget(runs=-1)
    Traceback (most recent call last):
    polarbear.errors.DataError: runs=-1: expected a number of runs, or None
    """

    runs: int | None = None
    time: float | None = None
    deadline: Deadline | None = None
    retries: int = 0
    failures: int | None = None
    batch: tuple[int, int] = (8, 64)
    overlap: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.batch, list):  # as files have it
            object.__setattr__(self, "batch", tuple(self.batch))
        expected = {
            "runs": (is_whole_number(self.runs, None), "a number of runs, or None"),
            "time": (
                self.time is None or (is_between(self.time) and self.time >= 0),
                "a time, or None",
            ),
            "deadline": (self.deadline is None or _is_deadline(self.deadline), "a time, or None"),
            "retries": (is_whole_number(self.retries), "a number of runs"),
            "failures": (is_whole_number(self.failures, None), "a number of runs, or None"),
            "batch": (_is_batch(self.batch), "two whole numbers, such as (8, 64)"),
            "overlap": (is_whole_number(self.overlap), "a number of rounds"),
        }
        check_fields(self, expected)

    def resolve_deadline(self, now: float) -> Budget:
        """Return this budget with the deadline as a Unix time; ``now`` is the present Unix time.

        >>> Budget(deadline="8h").resolve_deadline(now=1.8e9).deadline
        1800028800.0
        """
        if self.deadline is None:
            return self
        return replace(self, deadline=parse_deadline(self.deadline, now))

    def next_batch(self, batch: int, resolved: int, pairs: int) -> int:
        """Return the next batch size: doubled if a round decided no pair, halved if many pairs.

        >>> Budget().next_batch(16, resolved=0, pairs=10), Budget().next_batch(16, 3, 10)
        (32, 8)
        """
        smallest, largest = self.batch
        if resolved <= 0:
            batch *= 2
        elif 5 * resolved > pairs:
            batch //= 2
        return min(max(batch, smallest), largest)

    def batch_after(self, instances: float) -> int:
        """Return the largest batch allowed after some instances: an eighth of them, within limits.

        It is for decisions by e-values, which may be made at any time without more error.

        >>> Budget().batch_after(10), Budget().batch_after(200), Budget().batch_after(1e6)
        (8, 25, 64)
        """
        smallest, largest = self.batch
        return min(max(int(instances / 8), smallest), largest)


def check_fields(record: object, expected: Mapping[str, tuple[bool, str]]) -> None:
    """Raise ``DataError`` for the first field of a record that is not what is expected."""
    for name, (is_valid, description) in expected.items():
        if not is_valid:
            raise DataError(f"expected {description}", **{name: getattr(record, name)})


def is_margin(value: object) -> bool:
    """Return whether a value can be a margin around a probability of one half."""
    return value == 0 or is_between(value, 0, 0.5)


def check_width(value: object) -> tuple[bool, str]:
    """Return whether a value can be the width of a stretch of time, and what is expected."""
    fits = value == 0 or is_between(value, 0, 1)
    return fits, "a share of the time axis, at least 0 and below 1"


def is_between(value: object, above: float = -float("inf"), below: float = float("inf")) -> bool:
    """Return whether a value is a number between two others, without them."""
    return isinstance(value, Real) and above < float(value) < below


def is_whole_number(value: object, *others: object) -> bool:
    """Return whether a value is a whole number of at least 0, or one of the others."""
    return value in others or (
        isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0
    )


def _is_deadline(value: object) -> bool:
    if isinstance(value, str):
        parse_deadline(value, EARLIEST)
    return isinstance(value, str | datetime | time) or is_between(value)


def _is_batch(value: object) -> bool:
    pair = value if isinstance(value, tuple) else ()
    return len(pair) == 2 and all(map(is_whole_number, pair)) and 1 <= pair[0] <= pair[1]
