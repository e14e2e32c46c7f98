"""``Columns``: which columns of a table hold what, and how its rows are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Literal, TypedDict

from polarbear.errors import DataError


@dataclass(frozen=True)
class Columns:
    """The columns of a table with a row for each observation of a run.

    Functions that read tables take its fields as options, as does the command line.

    Attributes
    ----------
    algorithm, time
        The name of this column.
    instance
        The column of the instance. Several columns can make one: ``("function", "dimension")``.
    value
        The column of the value. Several are levels, of which the first that differs decides:
        ``("hard", "soft")``.
    repetition
        The column of the repetition (a column "repetition" or "seed", if there is one).
    status
        The column that says how runs ended (a column "status", if there is one).
    until
        Until when runs were observed: a column, a time for all, "last" (until the last row of the
        run) or "instance" (until the last row of any run on the instance). By default a column
        "until" if there is one. Else "last" if some rows improve nothing and "instance" if all do,
        with a warning where this makes a difference.
    missing
        Rows without a time or a value: refuse the table (error, the default) or leave them out
        (drop). A run without any other row stays, and a failed run may lack its value.
    violation
        The column of violations of constraints, 0 where all hold. Feasible solutions rank by value,
        before all infeasible ones, which rank by violation.
    chosen_by
        The column by which a run chooses its solution, such as a validation error. At each time the
        run has the value of the row with the best choice so far.
    best_so_far
        Whether a run has the best of its values so far. Else it has its latest value, as is right
        for returns of learning agents and for noisy values.

    Examples
    --------
    >>> Columns(time="evals", instance=("function", "dimension")).list_identity_columns()
    [('algorithm', 'algorithm'), ('instance', 'function'), ('instance', 'dimension')]
    """

    algorithm: str = "algorithm"
    instance: str | Sequence[str] = "instance"
    repetition: str | None = None
    time: str = "time"
    value: str | Sequence[str] = "value"
    until: str | float | None = None
    status: str | None = None
    missing: Literal["error", "drop"] = "error"
    violation: str | None = None
    chosen_by: str | None = None
    best_so_far: bool = True

    def __post_init__(self) -> None:
        # Columns of pandas may be named by numbers; tables know all columns by text.
        for role in ("algorithm", "repetition", "time", "status", "violation", "chosen_by"):
            if isinstance(name := getattr(self, role), Integral):
                object.__setattr__(self, role, str(name))

    def list_instance_columns(self) -> list[str]:
        """List the columns that together form the name of an instance."""
        return _list_names(self.instance, "instance")

    def list_value_columns(self) -> list[str]:
        """List the columns with values, the most important first."""
        return _list_names(self.value, "value")

    def list_number_columns(self) -> list[tuple[str, str]]:
        """List the columns of times and values, as pairs (role, column name)."""
        others = [("violation", self.violation), ("chosen_by", self.chosen_by)]
        values = [("value", name) for name in self.list_value_columns()]
        return [("time", self.time), *values, *((role, name) for role, name in others if name)]

    def list_identity_columns(self) -> list[tuple[str, str]]:
        """List the columns that identify the run of a row, as pairs (role, column name)."""
        roles = [("algorithm", self.algorithm)]
        roles += [("instance", name) for name in self.list_instance_columns()]
        return roles + ([("repetition", self.repetition)] if self.repetition else [])


class ColumnOptions(TypedDict, total=False):
    """The fields of ``Columns``, for editors and type checkers where they are options."""

    algorithm: str
    instance: str | Sequence[str]
    repetition: str | None
    time: str
    value: str | Sequence[str]
    until: str | float | None
    status: str | None
    missing: Literal["error", "drop"]
    violation: str | None
    chosen_by: str | None
    best_so_far: bool


def _list_names(names: str | Sequence[str], role: str) -> list[str]:
    listed = [*map(str, names)] if isinstance(names, list | tuple) else [str(names)]
    if not listed:
        raise DataError("expected the name of at least one column", **{role: ()})
    return listed
