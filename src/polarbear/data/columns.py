"""Columns of a table, wherever they come from: a mapping, a data frame, a file.

A ``Columns`` gives the names of its columns and reads one column at a time, as
names (codes into a list of texts), as numbers, or as whole numbers. Whoever builds
``Runs`` from a table sees nothing else of frames and files.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polarbear.data.names import Codes, text
from polarbear.errors import DataError


class Labels(NamedTuple):
    """A column of names: ``names[codes[i]]`` is the name in row i."""

    codes: Codes
    names: Sequence[str]

    def texts(self) -> list[str]:
        """The names, row by row."""
        return np.array(self.names, dtype=object)[self.codes].tolist()


class Columns(Protocol):
    """One column at a time; an empty cell raises ``DataError`` with its place."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        ...

    @property
    def where(self) -> Callable[[int], str]:
        """What messages call a row: its number, or its line in a file."""
        ...

    def labels(self, name: str) -> Labels:
        """A column as names."""
        ...

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column as numbers; nan where a number is missing."""
        ...


def columns_of(table: Any) -> Columns:
    """Columns of a mapping of sequences, or of any data frame that narwhals knows.

    >>> columns_of({"algorithm": ["a", "b"], "time": [1, 2]}).numbers("time")
    array([1., 2.])
    """
    if isinstance(table, Mapping):
        return MappingColumns(table)
    import narwhals

    try:
        frame = narwhals.from_native(table)
    except TypeError:
        raise DataError(
            f"cannot read a table from {type(table).__name__}; expected a data frame "
            "(pandas, polars, pyarrow, ...) or a mapping of column names to values"
        ) from None
    return FrameColumns(frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame)


class MappingColumns:
    """Columns of a mapping from names to sequences of equal length; cells may be text."""

    def __init__(
        self, table: Mapping[str, Iterable[Any]], where: Callable[[int], str] = "row {}".format
    ):
        self.table = {name: list_of(values) for name, values in table.items()}
        lengths = {name: len(values) for name, values in self.table.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"columns differ in length: {lengths}")
        self.names = list(self.table)
        self.where = where

    def labels(self, name: str) -> Labels:
        place: dict[str, int] = {}
        codes = np.empty(len(self.table[name]), dtype=np.int32)
        for row, value in enumerate(self.table[name]):
            if value is None or value == "" or value != value:
                raise missing(name, self.where(row))
            codes[row] = place.setdefault(text(value), len(place))
        return Labels(codes, list(place))

    def numbers(self, name: str) -> NDArray[np.float64]:
        try:
            return np.asarray(self.table[name], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise self._not_a_number(name) from None

    def _not_a_number(self, name: str) -> DataError:
        for row, value in enumerate(self.table[name]):
            try:
                float(value)
            except (TypeError, ValueError, OverflowError):
                if value == "":
                    return missing(name, self.where(row))
                return DataError(f"column {name!r}, {self.where(row)}: {value!r} is not a number")
        return DataError(f"column {name!r} does not hold numbers")


class FrameColumns:
    """Columns of any eager data frame, through narwhals."""

    def __init__(self, frame: Any):
        self._frame = frame
        self.names: Sequence[str] = frame.columns
        self.where = "row {}".format

    def labels(self, name: str) -> Labels:
        import narwhals as nw

        column = self._frame.get_column(name)
        empty = column.is_null()
        if empty.any():
            raise missing(name, self.where(int(np.flatnonzero(empty.to_numpy())[0])))
        if column.dtype == nw.Object:
            return MappingColumns({name: column.to_list()}).labels(name)
        if column.dtype in (nw.Categorical, nw.Enum):
            column = column.cast(nw.String)
        distinct = column.unique().to_list()
        number = list(range(len(distinct)))
        codes = column.replace_strict(distinct, number, return_dtype=nw.Int32)
        return Labels(codes.to_numpy(), [text(value) for value in distinct])

    def numbers(self, name: str) -> NDArray[np.float64]:
        import narwhals as nw

        column = self._frame.get_column(name)
        if not column.dtype.is_numeric():
            if len(column) == 0:
                return np.empty(0)
            raise DataError(f"column {name!r} holds {column.dtype}, expected numbers")
        return np.asarray(column.cast(nw.Float64).to_numpy(), dtype=np.float64)


def list_of(values: Iterable[Any]) -> Any:
    """A sequence of plain Python or numpy values."""
    if isinstance(values, np.ndarray):
        return values.tolist() if values.dtype.kind in "OUS" else values
    return values if isinstance(values, Sequence) else list(values)


def missing(column: str, where: str) -> DataError:
    """The error for an empty cell."""
    return DataError(f"column {column!r}, {where}: the cell is empty; fill it or drop the row")
