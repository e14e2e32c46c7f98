"""Attributes of instances: a column of texts (classes) or numbers (features) for each attribute.

A text "" and a number ``nan`` mean that the attribute of an instance is not known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_count, format_list
from polarbear.data.frozen import FrozenRecord
from polarbear.data.names import suggest_name, to_name
from polarbear.data.table import Table, is_missing, to_table
from polarbear.errors import DataError, warn

InstanceData = Mapping[str, NDArray[Any]]
"""Attributes by name: float64 or text, of shape (instances,)."""


@dataclass(frozen=True, eq=False)
class WithInstanceData(FrozenRecord):
    """A base of records that have instances and a field ``instance_data``."""

    def with_instance_data(self, table: object, *, instance: str = "instance") -> Self:
        """Return a copy with attributes of its instances, such as classes and features.

        Parameters
        ----------
        table
            A data frame of any library, or a mapping of column names to values, with a row for each
            instance. Columns of numbers are features, others are classes. Empty cells are missing.
            Rows of other instances do not count.
        instance
            The column with the names of the instances.

        Examples
        --------
        >>> import polarbear as pb
        >>> runs = pb.example("cma-variants").filter(instances=["1", "2"])
        >>> runs = runs.with_instance_data(
        ...     {"instance": [1, 2], "family": ["easy", "hard"], "size": [10, None]})
        >>> runs.instance_data["size"]
        array([10., nan])
        """
        mine: Any = self
        data = join_table(to_table(table), instance, mine.instances)
        return replace(mine, instance_data={**mine.instance_data, **data})


def join_table(columns: Table, key: str, instances: Sequence[str]) -> InstanceData:
    """Return the columns of a table for these instances; warn of instances without a row."""
    if key not in columns.names:
        raise DataError(
            f"the table has no column {key!r} with names of instances: pass instance=, one of "
            f"{format_list(columns.names)}"
        )
    names = columns.read_labels(key).to_list()
    row_of = {name: row for row, name in enumerate(names)}
    if len(row_of) < len(names):
        twice = next(name for row, name in enumerate(names) if row_of[name] != row)
        raise DataError(f"instance {twice!r} has two rows in the table: keep one row for each")
    row = np.array([row_of.get(name, -1) for name in instances], dtype=np.intp)
    lacking = [name for name, r in zip(instances, row, strict=True) if r < 0]
    if len(lacking) == len(instances):
        raise DataError(
            f"no instance has a row in the table: instances are {format_list(instances, 3)}, "
            f"the column {key!r} has {format_list(names, 3)}"
        )
    if lacking:
        warn(
            f"{format_count(len(lacking), 'instance')} of {len(instances):,} have no row in the "
            f"table, so their attributes are missing: {format_list(lacking, 3)}"
        )
    data: dict[str, NDArray[Any]] = {}
    for name in columns.names:
        if name != key:
            values = _read_column(columns, name, len(names))
            empty = "" if values.dtype.kind == "U" else np.nan
            data[name] = np.append(values, empty)[row]
    return data


def _read_column(columns: Table, name: str, n_rows: int) -> NDArray[Any]:
    """Read a column as numbers if all of its cells are numbers or empty, else as texts."""
    try:
        return columns.read_numbers(name)
    except DataError:
        cells = [columns.format_cell(name, row) for row in range(n_rows)]
        return np.array(["" if is_missing(cell) else cell for cell in cells], dtype=np.str_)


def take_instances(data: InstanceData, rows: Any) -> InstanceData:
    """Return the attributes of the instances with these indices."""
    return {name: values[rows] for name, values in data.items()}


def join_parts(
    parts: Sequence[tuple[Sequence[Any], InstanceData]], instances: Sequence[Any]
) -> InstanceData:
    """Return the attributes of ``instances`` (names or numbers) from parts that hold some of them.

    >>> parts = [(["x"], {"size": np.array([1.0])}), (["y"], {})]
    >>> join_parts(parts, ["x", "y"])
    {'size': array([ 1., nan])}
    """
    row_of = {name: row for row, name in enumerate(instances)}
    data: dict[str, NDArray[Any]] = {}
    for name in dict.fromkeys(name for _, own in parts for name in own):
        columns = [(names, own[name]) for names, own in parts if name in own]
        is_text = any(values.dtype.kind == "U" for _, values in columns)
        cells: list[Any] = ["" if is_text else np.nan] * len(instances)
        for names, values in columns:
            for one, value in zip(names, values.tolist(), strict=True):
                if one not in row_of:
                    continue
                cell = to_name(value) if is_text else value
                old = cells[row_of[one]]
                if to_name(cell) and to_name(old) and cell != old:
                    raise DataError(
                        f"instance {one!r} has two values of {name!r}: {old!r} and {cell!r}"
                    )
                cells[row_of[one]] = cell if to_name(cell) else old
        data[name] = np.array(cells, dtype=np.str_ if is_text else np.float64)
    return data


def find_attribute(data: InstanceData, name: str) -> NDArray[Any]:
    """Return an attribute by name; raise ``DataError`` if the instances do not have it."""
    if name in data:
        return data[name]
    how = "add them with runs.with_instance_data(table) before ranking"
    if data:
        how = suggest_name(name, list(data))
    raise DataError(f"the instances have no attribute {name!r}: {how}")


def to_json(instances: Sequence[str], data: InstanceData) -> dict[str, list[Any]]:
    """Return the table as lists for a JSON file, in which a missing number is null."""
    columns = {
        name: [None if value != value else value for value in values.tolist()]
        for name, values in data.items()
    }
    return {"instance": list(instances), **columns}


def describe_instance_data(data: InstanceData) -> str:
    """Return the names of classes and features, and the share of features that is missing.

    >>> describe_instance_data({"family": np.array(["a"]), "size": np.array([np.nan])})
    '1 class (family), 1 feature (100 % missing)'
    """
    texts = [name for name, values in data.items() if values.dtype.kind == "U"]
    numbers = [values for values in data.values() if values.dtype.kind != "U"]
    parts = []
    if texts:
        one = "class" if len(texts) == 1 else "classes"
        parts.append(f"{len(texts)} {one} ({format_list(texts, 3)})")
    if numbers:
        missing = float(np.mean(np.isnan(numbers)))
        rest = f" ({max(1, round(100 * missing))} % missing)" if missing else ""
        parts.append(f"{format_count(len(numbers), 'feature')}{rest}")
    return ", ".join(parts)
