"""``FrozenRecord``: the base class of records whose fields are arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class FrozenRecord:
    """A frozen dataclass that makes its arrays read-only and compares them by content."""

    def __post_init__(self) -> None:
        for value in self._values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(map(_is_equal, self._values(), other._values()))

    __hash__ = None  # type: ignore[assignment]

    def _values(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]


def _is_equal(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, np.ndarray):
        has_nan = mine.dtype.kind == np.asarray(theirs).dtype.kind == "f"
        return np.array_equal(mine, theirs, equal_nan=has_nan)
    if isinstance(mine, Mapping):
        return mine.keys() == theirs.keys() and all(_is_equal(mine[k], theirs[k]) for k in mine)
    return mine == theirs
