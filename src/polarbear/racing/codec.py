"""Records as plain values for JSON, and back: one codec, from the types of their fields.

A dataclass is a dictionary, a named tuple a list. A record that is stored in another way has the
methods ``to_plain`` and ``from_plain``. What is read is checked against the types: a file may be
broken or hostile, and nothing in it is imported or run.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from math import isfinite
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from polarbear.data.run import Run, run_from_plain, run_to_plain
from polarbear.racing.questions.question import Question
from polarbear.racing.questions.stored import question_from_plain, question_to_plain

_SCALARS: Mapping[Any, Any] = {bool: bool, int: int, float: int | float, str: str}
_WRITERS: Mapping[type, Callable[[Any], Any]] = {Run: run_to_plain, Question: question_to_plain}
_READERS: Mapping[type, Callable[[Any], Any]] = {Run: run_from_plain, Question: question_from_plain}


def to_plain(value: Any, *, named: bool = False) -> Any:
    """Return a value as dictionaries, lists, numbers and text; an infinite number as text.

    With ``named``, named tuples are dictionaries too, for readers that do not know their fields.

    >>> from polarbear.racing.ledger import Spent
    >>> to_plain({"a": Spent(2, float("inf"))}), to_plain(Spent(2, 1.0), named=True)
    ({'a': [2, 'inf']}, {'runs': 2, 'time': 1.0})
    """
    if hasattr(value, "to_plain"):
        return value.to_plain()
    for kind, write in _WRITERS.items():
        if isinstance(value, kind):
            return to_plain(write(value), named=named)
    if named and hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {str(key): to_plain(part, named=named) for key, part in value.items()}
        return [[to_plain(key), to_plain(part, named=named)] for key, part in value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [to_plain(part, named=named) for part in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def from_plain(kind: Any, plain: Any) -> Any:
    """Return a value of a type from what :func:`to_plain` made of it; raise an error if it is none.

    >>> from polarbear.racing.ledger import Spent
    >>> from_plain(dict[str, Spent], {"a": [2, "inf"]})
    {'a': Spent(runs=2, time=inf)}
    """
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin in _SCALARS:
        if origin is float and plain in ("inf", "-inf", "nan"):
            return float(plain)
        is_bool = isinstance(plain, bool) and origin is not bool
        if not isinstance(plain, _SCALARS[origin]) or is_bool:
            raise TypeError(f"expected {origin.__name__}, got {plain!r:.80}")
        return float(plain) if origin is float else plain
    if origin in _READERS:
        return _READERS[origin](plain)
    if hasattr(origin, "from_plain"):
        return origin.from_plain(plain)
    if origin is Any or (kind is None and plain is None):
        return plain
    if origin is Literal:
        if plain not in parts:
            raise ValueError(f"expected one of {parts}, got {plain!r:.80}")
        return plain
    if origin in (Union, UnionType):
        some = [part for part in parts if part is not type(None)]
        if len(some) > 1:  # the record itself checks which of them it is
            return plain
        return None if plain is None else from_plain(some[0], plain)
    if isinstance(origin, type) and issubclass(origin, Enum):
        return origin(plain)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, value = parts if parts[1:] else (*parts, int)
        pairs = plain.items() if isinstance(plain, dict) else plain
        made = {from_plain(key, a): from_plain(value, b) for a, b in pairs}
        return Counter(made) if origin is Counter else made
    return _from_parts(origin, parts, plain)


def _from_parts(origin: Any, parts: tuple[Any, ...], plain: Any) -> Any:
    """Return a collection, a tuple or a record from the plain values of its parts."""
    if isinstance(plain, dict):
        types = _types_of(origin)
        return origin(**{name: from_plain(types[name], part) for name, part in plain.items()})
    if not isinstance(plain, list | tuple):
        raise TypeError(f"expected a list, got {plain!r:.80}")
    if origin in (list, set, frozenset) or parts[1:] == (...,):
        kind = get_origin(parts[0]) or parts[0]
        return origin(map(getattr(kind, "from_plain", partial(from_plain, parts[0])), plain))
    if origin is tuple:
        return tuple(from_plain(part, each) for part, each in zip(parts, plain, strict=True))
    types = _types_of(origin)
    if len(plain) > len(types):
        raise TypeError(f"expected at most {len(types)} values, got {plain!r:.80}")
    return origin(*map(from_plain, types.values(), plain))


@cache
def _types_of(record: type) -> dict[str, Any]:
    """Return the types of the fields of a record by name."""
    types = get_type_hints(record)
    names = [one.name for one in fields(record)] if is_dataclass(record) else record._fields
    return {name: types[name] for name in names}
