"""Names of algorithms and instances: their conversion, order, validation and lookup."""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain, compress, pairwise, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_list
from polarbear.errors import DataError

Codes = NDArray[np.int32]

_DIGITS = re.compile(r"([0-9]+)")


def to_name(value: object) -> str:
    """Convert a cell to a name: 3 and 3.0 both give "3", a missing cell gives "".

    >>> to_name(3.0), to_name("CMA-ES"), to_name(7), to_name(None), to_name(float("nan"))
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


@lru_cache(maxsize=4096)  # a race compares the names of its algorithms at every look
def natural_sort_key(name: str) -> tuple[object, ...]:
    """Return a sort key that compares digits as numbers, and is unique for each name.

    >>> sorted(["f10", "f9", "f09"], key=natural_sort_key)
    ['f09', 'f9', 'f10']
    """
    parts: list[object] = []
    for i, part in enumerate(_DIGITS.split(name)):
        # Compared as (length, digits): int() refuses numbers of thousands of digits.
        number = part.lstrip("0")
        parts.append((len(number), number) if i % 2 else part)
    return tuple(parts), name


def to_names(values: Collection[object]) -> list[str]:
    """Convert cells to names.

    >>> to_names(["a", 3.0])
    ['a', '3']
    """
    return list(values) if set(map(type, values)) == {str} else [*map(to_name, values)]  # type: ignore[arg-type]


def sort_names(names: Iterable[str]) -> list[str]:
    """Return distinct names in natural order, in a small part of the time of one key for each.

    Most names end with a number, and few texts are in front of it. Names with the same text in
    front are sorted by length, then by character, if their numbers do not begin with zeros.

    >>> sort_names(["f10", "f9", "f09", "g"])
    ['f09', 'f9', 'f10', 'g']
    """
    by_start: dict[str, list[str]] = {}
    for name in names:
        by_start.setdefault(name.rstrip("0123456789"), []).append(name)
    starts = {_DIGITS.sub(_encode_number, start): start for start in by_start}
    ordered = sorted(starts)
    apart = len(starts) == len(by_start) and not any("\0" in s or _MARK in s for s in by_start)
    if not apart or any(b.startswith(a + _MARK) for a, b in pairwise(ordered)):
        return sorted(chain.from_iterable(by_start.values()), key=natural_sort_key)
    for start, own in by_start.items():
        own.sort()
        if len(set(map(len, own))) > 1:
            begins = start + "0"
            has_zeros = any(name.startswith(begins) and name != begins for name in own)
            own.sort(key=natural_sort_key if has_zeros else len)
    return [*chain.from_iterable(by_start[starts[one]] for one in ordered)]


_MARK = "\x01"
"""A character that is in no name, and sorts before those that are."""


def _encode_number(match: re.Match[str]) -> str:
    """Return a number as text that sorts as the number does, before other text."""
    number = match[0].lstrip("0")
    return f"{_MARK}{chr(len(number) + 2)}{number}"


def renumber_names(
    codes: NDArray[np.integer], names: Sequence[str]
) -> tuple[Codes, tuple[str, ...]]:
    """Sort the names in use and renumber their codes, so that equal data have equal codes.

    >>> codes, names = renumber_names(np.array([0, 1, 2, 0]), ["b", "a10", "a9"])
    >>> codes.tolist(), names
    ([2, 1, 0, 2], ('a9', 'a10', 'b'))
    """
    used = np.zeros(len(names), dtype=bool)
    used[codes] = True
    ordered = tuple(sort_names(set(names if used.all() else compress(names, used))))
    try:
        "".join(ordered).encode()
    except UnicodeEncodeError:
        for name in ordered:
            check_name(name)
    place = dict(zip(ordered, range(len(ordered)), strict=True))
    new = np.fromiter(map(place.get, names, repeat(-1)), np.int32, len(names))
    return new[codes], ordered


def merge_names(
    tables: Iterable[tuple[Sequence[str], NDArray[np.integer]]],
) -> tuple[list[str], list[Codes]]:
    """Return the names of several tables in natural order, and each table's codes of these names.

    A table has names, and codes that are indices of its own names.

    >>> merge_names([(["b"], np.array([0, 0])), (["a", "b"], np.array([1, 0]))])
    (['a', 'b'], [array([1, 1], dtype=int32), array([1, 0], dtype=int32)])
    """
    tables = list(tables)
    merged = sort_names({name for names, _ in tables for name in names})
    code_of = {name: code for code, name in enumerate(merged)}
    return merged, [
        np.array([code_of[name] for name in names], dtype=np.int32)[codes]
        for names, codes in tables
    ]


def check_name(name: str) -> str:
    """Return the name; raise ``DataError`` if it is not valid Unicode."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"character {error.start} of the name {name!r} is not valid Unicode; change the name"
        ) from None
    return name


def find_indices(wanted: object, names: Sequence[str], what: str) -> NDArray[np.intp]:
    """Return the indices of ``wanted`` names in ``names``; raise ``DataError`` for others.

    >>> find_indices(["CSA"], ["CSA", "XNES"], "algorithm").tolist()
    [0]
    >>> find_indices(["XNEZ"], ["CSA", "XNES"], "algorithm")
    Traceback (most recent call last):
    polarbear.errors.DataError: no algorithm named 'XNEZ'; did you mean 'XNES'?
    """
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        wanted = [wanted]
    place = {name: i for i, name in enumerate(names)}
    indices: list[int] = []
    for name in map(to_name, wanted):
        if name not in place:
            raise DataError(f"no {what} named {name!r}; {suggest_name(name, names)}")
        indices.append(place[name])
    return np.array(indices, dtype=np.intp)


def suggest_name(name: str, names: Sequence[str]) -> str:
    """Return a suggestion for an unknown name: the most similar known one, or a list of all.

    >>> suggest_name("csa", ["CSA", "XNES"])
    "did you mean 'CSA'?"
    """
    same = [other for other in names if other.lower() == name.lower()]
    close = same or get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {format_list(names)}"


def check_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """Convert a list to names; raise ``DataError`` if one of them is empty or invalid."""
    if isinstance(names, str):
        raise DataError(f"{what}={names!r}: expected a list of names")
    checked = tuple(check_name(to_name(name)) for name in names)
    if "" in checked:
        raise DataError(
            f"{what}: the name at position {checked.index('')} is empty; give it a name"
        )
    return checked


class NumberedNames(Sequence[str]):
    """The names "row 0", "row 1" and so on, made when they are asked for, equal to their tuple.

    >>> names = NumberedNames("row", 10_000_000)
    >>> names[7], names[-1], len(names)
    ('row 7', 'row 9999999', 10000000)
    >>> NumberedNames("row", 2) == ("row 0", "row 1")
    True
    """

    def __init__(self, prefix: str, size: int) -> None:
        self._prefix, self._numbers = prefix, range(size)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(f"{self._prefix} {k}" for k in self._numbers[index])
        return f"{self._prefix} {self._numbers[index]}"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, NumberedNames):
            return (self._prefix, self._numbers) == (other._prefix, other._numbers)
        return tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __add__(self, other: Any) -> tuple[str, ...]:
        return (*self, *other)

    def __radd__(self, other: Any) -> tuple[str, ...]:
        return (*other, *self)
