"""Values that are more than one number: violations of constraints, and levels of a score.

Both are reduced to one number that has the same order, so that all else works as for one value:

* a **violation** of constraints ranks behind every objective value. ``encode_violations`` maps it
  to numbers beyond ``LIMIT``, which no objective reaches, so it needs no other data to decode;
* **levels**, such as hard, medium and soft scores, of which the first that differs decides. Their
  number is the place of the tuple in a table of all tuples, best first (``Levels``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import format_count, format_list
from polarbear.data.frozen import FrozenRecord
from polarbear.data.instance_data import WithInstanceData
from polarbear.data.run import Direction, Directions, Run, opposite_of, sign_of
from polarbear.errors import DataError

Floats = NDArray[np.float64]

LIMIT, END = 2.0**1000, 2.0**1016
"""Costs from the first to the second are violations of constraints."""

_LIMIT_BITS = np.float64(LIMIT).view(np.int64)
_DROPPED_BITS = 7
"""The bits of a violation that are dropped: violations that agree in 13 digits tie."""


def encode_violations(cost: ArrayLike, violation: ArrayLike) -> Floats:
    """Return costs in which every violation is behind all costs without one.

    A violation is a number of at least 0; 0 means that all constraints hold.

    >>> costs = encode_violations([5.0, 3.0, np.inf], [0.0, 2.0, 0.0])
    >>> costs[0], costs[0] < costs[1] < costs[2], decode_violations(costs)
    (np.float64(5.0), np.True_, array([0., 2., 0.]))
    """
    cost, violation = np.broadcast_arrays(
        np.asarray(cost, dtype=np.float64), np.asarray(violation, dtype=np.float64)
    )
    if np.isnan(violation).any() or (violation < 0).any():
        raise DataError("violation: expected numbers of at least 0, where 0 means feasible")
    if ((np.abs(cost) >= LIMIT) & np.isfinite(cost)).any():
        raise DataError(f"with a violation, objective values must be below {LIMIT:.3g}")
    bits = np.ascontiguousarray(violation).view(np.int64) >> _DROPPED_BITS
    return np.where(violation > 0, (bits + _LIMIT_BITS).view(np.float64), cost)


def decode_violations(cost: ArrayLike) -> Floats:
    """Return the violation of each cost, 0 where it is an objective value.

    >>> decode_violations(encode_violations([1.0, 1.0], [0.0, 0.5]))
    array([0. , 0.5])
    """
    cost = np.ascontiguousarray(cost, dtype=np.float64)
    bits = (cost.view(np.int64) - _LIMIT_BITS) << _DROPPED_BITS
    return np.where(is_violation(cost), bits.view(np.float64), 0.0)


def is_violation(cost: Floats) -> NDArray[np.bool_]:
    """Return whether each cost is a violation of constraints."""
    return (cost >= LIMIT) & (cost < END)


@dataclass(frozen=True, eq=False)
class Levels(FrozenRecord):
    """The levels of values, the most important first, and a table of all tuples, best first.

    Attributes
    ----------
    names, directions
        The name of each level, and whether small or large values are good.
    table
        Shape (tuples, levels). The value of a run is a row number of this table.
    """

    names: tuple[str, ...]
    directions: tuple[Direction, ...]
    table: Floats

    @property
    def worst(self) -> list[float]:
        """The tuple that means "no value yet": the worst infinity of each level."""
        return [sign_of(direction) * np.inf for direction in self.directions]

    def opposite(self) -> Levels:
        """Return the same levels in opposite directions, as for bounds, without any tuple."""
        directions = tuple(map(opposite_of, self.directions))
        return replace(self, directions=directions, table=self.table[:0])

    def __str__(self) -> str:
        return ", then ".join(
            f"{direction} {name}"
            for name, direction in zip(self.names, self.directions, strict=True)
        )


def encode_levels(
    names: Sequence[str], directions: Directions, values: Floats
) -> tuple[Floats, Levels]:
    """Return the place of each tuple among all (rows,), and the levels; 0 is the best.

    ``values`` has shape (rows, levels). A tuple with nan has the place nan. One whose first level
    is the worst infinity is no value, and has an infinite place.

    >>> encode_levels(["hard", "soft"], "maximize", np.array([[-1, 9], [0, 3], [0, 5]]))[0]
    array([2., 1., 0.])
    """
    own: Any = (directions,) * len(names) if isinstance(directions, str) else tuple(directions)
    if len(own) != len(names):
        raise DataError(
            f"{len(names)} levels of values ({format_list(list(names))}) need a direction each, "
            f"or one for all; got {own!r}"
        )
    signs = np.array([sign_of(direction) for direction in own])
    cost = signs * np.asarray(values, dtype=np.float64).reshape(-1, len(names))
    known = ~(np.isnan(cost).any(axis=1) | (cost[:, 0] == np.inf))
    places = np.where(np.isnan(cost).any(axis=1), np.nan, np.inf)
    table, inverse = np.unique(cost[known], axis=0, return_inverse=True)
    places[known] = inverse.ravel()
    return places, Levels(tuple(names), own, signs * table)


def encode_records(
    records: Sequence[Run], names: Sequence[str], directions: Directions
) -> tuple[list[Run], Levels]:
    """Return records whose values, tuples with these levels, are places, and the levels.

    >>> run = Run("a", "x", [1], [(0, 5)], 9)
    >>> (coded,), levels = encode_records([run], ["hard", "soft"], "maximize")
    >>> coded.value, levels.table.tolist()
    (array([0.]), [[0.0, 5.0]])
    """
    if not records:
        raise DataError(f"values with the levels {format_list(names)}: expected at least one run")
    rows: list[Floats] = []
    for one in records:
        value = np.asarray(one.value, dtype=np.float64)
        if value.shape not in ((0,), (np.size(one.time), len(names))):
            raise DataError(
                f"{one.name()}: expected a tuple with the levels {format_list(names)} for each of "
                f"{format_count(np.size(one.time), 'time')}, got values of shape {value.shape}"
            )
        rows.append(value.reshape(-1, len(names)))
    places, levels = encode_levels(names, directions, np.concatenate(rows))
    parts = np.split(places, np.cumsum([len(part) for part in rows])[:-1])
    return [one._replace(value=part) for one, part in zip(records, parts, strict=True)], levels


def join_levels(parts: Sequence[tuple[Levels, Floats]]) -> tuple[list[Floats], Levels]:
    """Return the places of several parts in one common table, and the levels with this table."""
    first = parts[0][0]
    if any((one.names, one.directions) != (first.names, first.directions) for one, _ in parts):
        raise DataError("cannot concatenate runs whose values have different levels")
    tables = [one.table for one, _ in parts]
    places, levels = encode_levels(first.names, first.directions, np.concatenate(tables))
    starts = np.cumsum([0, *map(len, tables)])
    codes = [
        places[start + value.astype(np.int64)]
        for start, (_, value) in zip(starts, parts, strict=False)
    ]
    return codes, levels


@dataclass(frozen=True, eq=False)
class WithLevels(WithInstanceData):
    """A base of ``Runs``: what it can be asked about violations and levels of its values."""

    @property
    def violation(self) -> Floats:
        """The violation of constraints at each improvement, 0 where a solution is feasible.

        >>> import polarbear as pb
        >>> runs = pb.Runs.from_frame(
        ...     {"algorithm": ["a", "a"], "instance": ["i", "i"], "time": [1, 2],
        ...      "value": [1.0, 7.0], "broken": [3.0, 0.0]}, direction="minimize",
        ...     violation="broken")
        >>> runs.violation, runs.feasible().at([1, 2])
        (array([3., 0.]), array([[inf,  7.]]))
        """
        mine: Any = self
        return decode_violations(mine.cost)

    @property
    def order_by(self) -> str:
        """What runs are ordered by, if it is not their best value so far, in words."""
        mine: Any = self
        if mine.stated_order:
            return mine.stated_order
        if mine.levels is not None:
            return f"levels: {mine.levels}"
        if not mine.best_so_far:
            return "the latest value of each run, which may be worse than earlier ones"
        return "feasibility, then value" if is_violation(mine.cost).any() else ""

    def feasible(self) -> Self:
        """Return the same runs without values at which a constraint is violated.

        Use it to show or average objective values; rank the runs themselves.

        >>> import polarbear as pb
        >>> run = {"algorithm": ["a"], "instance": [1], "time": [1], "value": [2.0], "broken": [3]}
        >>> runs = pb.Runs.from_frame(run, direction="minimize", violation="broken")
        >>> len(runs.time), len(runs.feasible().time)
        (1, 0)
        """
        mine: Any = self
        kept = ~is_violation(mine.cost)
        if not mine.best_so_far:  # an earlier value counts no more
            return replace(mine, value=np.where(kept, mine.value, mine.worst))
        return mine._keep_rows(kept)

    def level(self, name: str) -> Self:
        """Return the same runs with the values of one level, which may get worse over time.

        >>> import polarbear as pb
        >>> runs = pb.Runs.from_frame(
        ...     {"algorithm": ["a", "a"], "instance": ["i", "i"], "time": [1, 2],
        ...      "hard": [-1, 0], "soft": [5, 3]}, value=("hard", "soft"), direction="maximize")
        >>> print(runs)
        1 run: 1 algorithm on 1 instance, maximize hard, then maximize soft
          algorithms  a
          time        1 to 2, 2 improvements
          ended       1 cut
        >>> runs.level("soft").at([1, 2])
        array([[5., 3.]])
        """
        mine: Any = self
        levels: Levels | None = mine.levels
        if levels is None or name not in levels.names:
            known = "they have one value" if levels is None else format_list(levels.names)
            raise DataError(f"the runs have no level {name!r}: {known}")
        column = levels.names.index(name)
        return replace(
            mine,
            value=levels.table[mine.value.astype(np.int64), column],
            direction=levels.directions[column],
            best_so_far=False,
            levels=None,
            bounds=None if mine.bounds is None else mine.bounds.level(name),
        )


RunsT = TypeVar("RunsT", bound=WithLevels)


def check_one_value(runs: Any, what: str) -> None:
    """Raise ``DataError`` if values have levels, where ``what`` needs numbers of one unit."""
    if runs.levels is not None:
        names = format_list(runs.levels.names)
        raise DataError(
            f"{what} needs one value, and these runs have the levels {names}: pass "
            f"runs.level({runs.levels.names[-1]!r})"
        )


def keep_one_value(runs: RunsT, what: str) -> RunsT:
    """Return the runs with feasible values only; raise ``DataError`` if values have levels."""
    check_one_value(runs, what)
    return runs.feasible()
