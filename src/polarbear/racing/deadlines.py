"""Deadlines of a race: a duration, a time of day, a date and time, or a Unix time."""

import re
from contextlib import suppress
from datetime import datetime, time, timedelta
from math import isfinite
from numbers import Real

from polarbear.errors import Argument, DataError

Deadline = float | str | datetime | time

SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
"""Seconds per unit of a duration."""

_WORDS = {"sec": "s", "second": "s", "min": "m", "minute": "m", "hr": "h", "hour": "h", "day": "d"}

EARLIEST = 1e9
"""The earliest accepted Unix time (2001); a smaller number was meant as a duration."""

_UNIT = "|".join([*(f"{word}s?" for word in _WORDS), *SECONDS])
_PART = rf"(\d+(?:\.\d+)?|\.\d+)\s*({_UNIT})(?![a-z])"
_DURATION = re.compile(rf"(?:{_PART}\s*)+")
_EXPECTED = (
    'expected a duration ("8h", "90 min", "1h 30m"), a time of day ("18:30"), a date and time '
    '("2030-01-31T18:30"), or a Unix time (time.time() + 28800)'
)


def parse_duration(text: str) -> float | None:
    """Convert a duration such as "4 min" to seconds; None if the text is not a duration.

    >>> parse_duration("200ms"), parse_duration("4 min"), parse_duration("1h 30m")
    (0.2, 240.0, 5400.0)
    """
    if not _DURATION.fullmatch(text.strip()):
        return None
    parts: list[tuple[str, str]] = re.findall(_PART, text)
    return sum(float(n) * SECONDS[_WORDS.get(unit.removesuffix("s"), unit)] for n, unit in parts)


def parse_deadline(deadline: Deadline, now: float) -> float:
    """Convert a deadline to a Unix time; ``now`` is the present Unix time.

    A duration counts from ``now``. A time of day is its next occurrence. Without a time zone,
    local time is meant.

    >>> parse_deadline("8h", now=1.8e9) - 1.8e9, parse_deadline("1h 30m", now=1.8e9) - 1.8e9
    (28800.0, 5400.0)
    >>> parse_deadline("2027-01-15T08:00:10Z", now=0.0)
    1800000010.0
    >>> parse_deadline(28800, now=1.8e9)
    Traceback (most recent call last):
    polarbear.errors.DataError: deadline=28800 is a moment in 1970: for a duration write "28800s"...
    """
    if isinstance(deadline, str):
        return _parse_text(deadline.strip(), now)
    if isinstance(deadline, datetime):
        return deadline.timestamp()
    if isinstance(deadline, time):
        return _find_next_occurrence(deadline, now)
    if isinstance(deadline, bool) or not isinstance(deadline, Real) or not isfinite(deadline):
        raise DataError(_EXPECTED, deadline=deadline)
    if deadline < EARLIEST:
        raise DataError(
            Argument("deadline", deadline),
            f' is a moment in 1970: for a duration write "{deadline:g}s", else add time.time()',
        )
    return float(deadline)


def _parse_text(text: str, now: float) -> float:
    duration = parse_duration(text)
    if duration is not None:
        return now + duration
    try:
        if ":" in text[:3]:
            return _find_next_occurrence(time.fromisoformat(text), now)
        with suppress(ValueError, OverflowError):
            return datetime.fromisoformat(text).timestamp()
        number = float(text)
    except (ValueError, OverflowError):
        raise DataError(_EXPECTED, deadline=text) from None
    return parse_deadline(number, now)


def _find_next_occurrence(clock: time, now: float) -> float:
    """Return the Unix time of the next occurrence of a time of day."""
    present = datetime.fromtimestamp(now, clock.tzinfo)
    moment = datetime.combine(present.date(), clock)
    if moment <= present:
        moment += timedelta(days=1)
    return moment.timestamp()
