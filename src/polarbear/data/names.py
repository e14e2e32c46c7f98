"""Names of algorithms and instances: any text, numbered in one canonical order."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from math import floor, isfinite
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from polarbear.errors import DataError

Codes = NDArray[np.int32]

_DIGITS = re.compile(r"([0-9]+)")


def text(value: object) -> str:
    """A name as text: whole numbers have no point, so 3 and 3.0 are one name; "" if it is missing.

    >>> text(3.0), text("CMA-ES"), text(7), text(None), text(float("nan"))
    ('3', 'CMA-ES', '7', '', '')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if value is None or type(value).__name__ == "NAType":
        return ""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return str(value)
    if np.isnan(number):
        return ""
    return str(int(value)) if number.is_integer() else str(value)  # type: ignore[call-overload]


def natural(name: str) -> tuple[object, ...]:
    """Sort key that counts digits as numbers and still tells any two names apart.

    >>> sorted(["f10", "f9", "f09"], key=natural)
    ['f09', 'f9', 'f10']
    """
    parts: list[object] = []
    for i, part in enumerate(_DIGITS.split(name)):
        # Compared as (length, digits): int() refuses numbers of thousands of digits.
        number = part.lstrip("0")
        parts.append((len(number), number) if i % 2 else part)
    return tuple(parts), name


def canonical(codes: NDArray[np.integer], names: Sequence[str]) -> tuple[Codes, tuple[str, ...]]:
    """Renumber so that names are distinct, in use and in natural order, however they came.

    >>> codes, names = canonical(np.array([0, 1, 2, 0]), ["b", "a10", "a9"])
    >>> codes.tolist(), names
    ([2, 1, 0, 2], ('a9', 'a10', 'b'))
    """
    used = np.zeros(len(names), dtype=bool)
    used[codes] = True
    ordered = tuple(sorted({names[i] for i in np.flatnonzero(used).tolist()}, key=natural))
    for name in ordered:
        check(name)
    place = {name: i for i, name in enumerate(ordered)}
    new = np.array([place.get(name, -1) for name in names], dtype=np.int32)
    return new[codes], ordered


def check(name: str) -> str:
    """Any text that can be written to a file is a name; half a character (a surrogate) is not."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"name {name!r}: character {error.start} is not valid Unicode") from None
    return name


def indices(wanted: object, names: Sequence[str], what: str) -> NDArray[np.intp]:
    """Where the ``wanted`` names stand in ``names``; a stranger is an error with a guess.

    >>> indices(["CSA"], ["CSA", "XNES"], "algorithm").tolist()
    [0]
    >>> indices(["XNEZ"], ["CSA", "XNES"], "algorithm")
    Traceback (most recent call last):
    polarbear.errors.DataError: no algorithm named 'XNEZ'; did you mean 'XNES'?
    """
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        wanted = [wanted]
    place = {name: i for i, name in enumerate(names)}
    found: list[int] = []
    for name in map(text, wanted):
        if name not in place:
            raise DataError(f"no {what} named {name!r}; {guess(name, names)}")
        found.append(place[name])
    return np.array(found, dtype=np.intp)


def guess(name: str, names: Sequence[str]) -> str:
    """What somebody may have meant who wrote ``name``.

    >>> guess("csa", ["CSA", "XNES"])
    "did you mean 'CSA'?"
    """
    same = [other for other in names if other.lower() == name.lower()]
    close = same or get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {listing(names)}"


def shown(name: str) -> str:
    r"""Escape what a terminal would obey: control characters, line ends, changes of direction.

    Every name that is printed passes through here.

    >>> print(shown("a\n\x1b[2J"))
    a\n\x1b[2J
    """
    plain = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
    return "".join(plain)


def shown_lines(text: object) -> str:
    r"""Escape the same in a text, whose line ends stay.

    >>> print(shown_lines("what a program said:\n\x1b[2Jx"))
    what a program said:
    \x1b[2Jx
    """
    return "\n".join(map(shown, str(text).split("\n")))


def listing(names: Sequence[str], most: int = 8) -> str:
    """A list of names short enough for one line.

    >>> listing(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    if not names:
        return "none"
    first = ", ".join(shown(str(name)) for name in names[:most])
    return first if len(names) <= most else f"{first} and {len(names) - most:,} more"


def count(number: int, noun: str) -> str:
    """A number of things, in words.

    >>> count(1, "run"), count(2500, "run")
    ('1 run', '2,500 runs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def unit_of(clock: str, otherwise: str = "") -> str:
    """What a clock counts, for people; ``otherwise`` where that says nothing that is not known.

    >>> unit_of("evaluations"), unit_of("wall"), unit_of("time")
    ('evaluations', 'seconds', '')
    """
    units = {"time": otherwise, "reported": otherwise, "wall": "seconds", "cpu": "CPU seconds"}
    return units[clock] if clock in units else shown(clock)


COUNTED = ("evaluations", "evals", "calls", "iterations", "generations", "steps", "epochs", "nodes")
"""Clocks that count whole things."""


def digits(clock: str) -> Literal["whole", "seconds", "all"]:
    """How exactly a time of a clock is said.

    Of what is counted, whole numbers, rounded down: after 30.9 evaluations one knows what was found
    in 30. Of seconds, whole ones from 100 on and three digits below. Else all digits.

    >>> digits("evaluations"), digits("cpu"), digits("time")
    ('whole', 'seconds', 'all')
    """
    unit = unit_of(clock)
    if unit in COUNTED:
        return "whole"
    return "seconds" if unit.split(" ")[-1] in ("seconds", "s") else "all"


def moment(time: float, clock: str, most: int = 6) -> str:
    """A time without its unit, with the digits that say something, ``most`` at most.

    >>> moment(30.889, "evaluations"), moment(3404.01, "wall"), moment(2.5188, "seconds")
    ('30', '3,404', '2.52')
    """
    exactly = digits(clock) if isfinite(time) else "all"
    if exactly == "whole":
        return f"{floor(time * (1 + 1e-9)):,}"  # 9,999.9999999 is a grid's 10,000
    if exactly == "seconds":
        return f"{time:,.0f}" if abs(time) >= 100 else f"{time:,.3g}"
    return f"{time:,.{most}g}"


def amount(time: float, clock: str) -> str:
    """How much time.

    >>> amount(1_234_567, "evaluations"), amount(2.5, "wall"), amount(7, "time")
    ('1,234,567 evaluations', '2.5 seconds', '7')
    """
    return _with_unit(moment(time, clock, 7), clock)


def span(start: float, stop: float, clock: str) -> str:
    """A range of time, in words.

    >>> span(100, 20_000, "evaluations"), span(1, 2, "time"), span(5, 5, "wall")
    ('100 to 20,000 evaluations', '1 to 2', '5 seconds')
    >>> span(1, 1, "evaluations")
    '1 evaluation'
    """
    first, last = moment(start, clock), moment(stop, clock)
    said = first if first == last else f"{first} to {last}"
    return _with_unit(said, clock)


def _with_unit(said: str, clock: str) -> str:
    unit = unit_of(clock)
    if said == "1" and (unit in COUNTED or unit.endswith("seconds")):
        unit = unit[:-1]
    return f"{said} {unit}".rstrip()


def names_of(names: Iterable[str], what: str) -> tuple[str, ...]:
    """A list of names, none of which is empty."""
    if isinstance(names, str):
        raise DataError(f"{what}={names!r}: expected a list of names")
    found = tuple(check(text(name)) for name in names)
    if "" in found:
        raise DataError(f"{what}: a name is missing")
    return found
