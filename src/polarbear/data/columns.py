"""Columns of a table, wherever they come from: a mapping, a data frame, a file.

A ``Columns`` gives the names of its columns and reads one column at a time, as
names (codes into a list of texts) or as numbers. Whoever builds ``Runs`` from a
table sees nothing else of frames and files.
"""

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polarbear.data.names import Codes, to_name
from polarbear.errors import DataError, warn

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,400}\s*")

LARGEST_EXACT = 1 << 53
"""Whole numbers beyond this are not all floats."""


class Labels(NamedTuple):
    """A column of names: ``names[codes[i]]`` is the name in row i."""

    codes: Codes
    names: Sequence[str]

    def texts(self) -> list[str]:
        """The names, row by row."""
        return np.array(self.names, dtype=object)[self.codes].tolist()


class Columns(Protocol):
    """One column at a time."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        ...

    @property
    def where(self) -> Callable[[int], str]:
        """What messages call a row: its number, or its line in a file."""
        ...

    def labels(self, name: str) -> Labels:
        """A column as names; a missing one raises ``DataError`` with its place."""
        ...

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column as numbers; nan where a number is missing."""
        ...

    def cell(self, name: str, row: int) -> str:
        """A cell as text, for messages."""
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
    except narwhals.exceptions.DuplicateError:
        raise DataError("two columns of the table have the same name") from None
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
        named = texts_of(table)
        self.table = {name: list_of(table[key]) for name, key in named.items()}
        lengths = {name: len(values) for name, values in self.table.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"columns differ in length: {lengths}")
        self.names = list(self.table)
        self.where = where

    def labels(self, name: str) -> Labels:
        values = self.table[name]
        try:
            place = {value: code for code, value in enumerate(dict.fromkeys(values))}
        except TypeError:
            raise DataError(f"column {name!r} does not hold names: {values[0]!r}") from None
        codes = np.fromiter(map(place.__getitem__, values), np.int32, len(values))
        return checked(Labels(codes, [to_name(value) for value in place]), name, self.where)

    def numbers(self, name: str) -> NDArray[np.float64]:
        values = self.table[name]
        if isinstance(values, np.ndarray):
            return floats(values, name)
        try:
            return _parse(values, name)
        except (TypeError, ValueError, OverflowError):
            pass
        try:
            return _parse([np.nan if is_missing(value) else value for value in values], name)
        except (TypeError, ValueError, OverflowError):
            raise self._not_a_number(name) from None

    def _not_a_number(self, name: str) -> DataError:
        odd = [
            row
            for row, value in enumerate(self.table[name])
            if not is_missing(value) and not _is_number(value)
        ]
        if not odd:
            return DataError(f"column {name!r} does not hold numbers")
        value, where = self.table[name][odd[0]], self.where(odd[0])
        others = and_more(len(odd))
        return DataError(f"column {name!r}, {where}: {value!r} is not a number{others}")

    def cell(self, name: str, row: int) -> str:
        value = self.table[name][row]
        return value if isinstance(value, str) else to_name(value) or "nan"


class FrameColumns:
    """Columns of any eager data frame, through narwhals."""

    def __init__(self, frame: Any):
        self._frame, self._key = frame, texts_of(frame.columns)
        self.names: Sequence[str] = list(self._key)
        self.where = "row {}".format

    def labels(self, name: str) -> Labels:
        import narwhals as nw

        column = self._frame.get_column(self._key[name])
        if column.dtype == nw.Object or not len(column):
            return MappingColumns({name: column.to_list()}).labels(name)
        if column.dtype in (nw.Categorical, nw.Enum):
            column = column.cast(nw.String)
        empty = column.is_null()
        if empty.any():
            gone = empty.to_numpy()
            raise missing(name, self.where(int(np.argmax(gone))), int(np.sum(gone)))
        distinct = column.unique().to_list()
        number = list(range(len(distinct)))
        codes = column.replace_strict(distinct, number, return_dtype=nw.Int32)
        names = [to_name(value) for value in distinct]
        return checked(Labels(codes.to_numpy(), names), name, self.where)

    def numbers(self, name: str) -> NDArray[np.float64]:
        import narwhals as nw

        column = self._frame.get_column(self._key[name])
        if column.dtype in (nw.String, nw.Object) or not len(column):
            return MappingColumns({name: column.to_list()}).numbers(name)
        if not column.dtype.is_numeric():
            raise DataError(f"column {name!r} holds {column.dtype}, expected numbers")
        if column.dtype.is_integer():
            _warn_of_rounding(column.abs().max(), name)
        return np.array(column.cast(nw.Float64).to_numpy(), dtype=np.float64)

    def cell(self, name: str, row: int) -> str:
        return to_name(self._frame.get_column(name)[row]) or "nan"


def texts_of(names: Iterable[Any]) -> dict[str, Any]:
    """Map the text of each column's name to the name itself, which pandas allows to be a number.

    >>> texts_of(["algorithm", 10])
    {'algorithm': 'algorithm', '10': 10}
    """
    names = list(names)
    named = {str(name): name for name in names}
    if len(named) < len(names):
        raise DataError("two columns of the table have the same name")
    return named


def list_of(values: Any) -> Any:
    """A column of values, as a sequence or a one-dimensional numpy array of numbers."""
    if isinstance(values, Labels):
        return values.texts()
    if isinstance(values, list | tuple | range):
        return values
    if isinstance(values, Mapping | set | frozenset | str | bytes) or np.ndim(values) != 1:
        raise DataError(f"expected a column of values, found {str(values)[:40]!r}")
    if isinstance(values, np.ma.MaskedArray):
        return values.tolist()  # masked values become None
    array = np.asarray(values)
    if array.dtype.kind in "mM":
        array = array.astype(str)  # a date may be a name, but is no number
    return array if array.dtype.kind in "biuf" else array.tolist()


def write_csv(target: Any, columns: Mapping[str, Any]) -> None:
    """Write columns of numbers and names as CSV, to a path or an open text file."""
    if not hasattr(target, "write"):
        with open(target, "w", newline="", encoding="utf-8") as file:  # noqa: PTH123
            return write_csv(file, columns)
    parts = columns.values()
    cells = [part.texts() if isinstance(part, Labels) else part.tolist() for part in parts]
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*cells, strict=True))
    return None


MISSING_TEXTS = frozenset(["", "nan", "na", "n/a", "<na>", "null", "none"])
"""What a cell without a number holds, in lower case."""


def is_missing(value: Any) -> bool:
    """Whether a cell says that there is no number in it.

    >>> is_missing(""), is_missing("NA"), is_missing(None), is_missing("x"), is_missing(0)
    (True, True, True, False, False)
    """
    return to_name(value).strip().lower() in MISSING_TEXTS


def _parse(values: Sequence[Any], name: str) -> NDArray[np.float64]:
    """Cells as floats; ``ValueError`` if one is no number."""
    if "_" in "".join(value for value in values if isinstance(value, str)):
        raise ValueError  # Python reads 1_0 as ten
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError
    return floats(array, name, values)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return "_" not in str(value)  # Python reads 1_0 as ten


def is_whole(value: object) -> bool:
    """Whether a cell is a whole number, as such or as text."""
    if isinstance(value, str):
        return _WHOLE.fullmatch(value) is not None
    return isinstance(value, Integral)


def floats(
    array: NDArray[Any], name: str, source: Sequence[Any] | None = None
) -> NDArray[np.float64]:
    """An array of numbers as floats of its own, with a warning where that loses digits."""
    if array.dtype.kind in "iu" and len(array):
        _warn_of_rounding(max(abs(int(array.min())), abs(int(array.max()))), name)
    elif source is not None and len(array) and np.any(np.abs(array) >= LARGEST_EXACT):
        whole = (abs(int(value)) for value in source if is_whole(value))
        _warn_of_rounding(max(whole, default=0), name)
    return np.array(array, dtype=np.float64)


def _warn_of_rounding(largest: int | None, name: str) -> None:
    if largest is not None and largest > LARGEST_EXACT:
        warn(
            f"column {name!r} has whole numbers beyond 2^53, which are rounded and may tie: "
            "divide them or subtract a constant"
        )


def checked(labels: Labels, column: str, where: Callable[[int], str]) -> Labels:
    """Refuse a column of names in which one is missing."""
    empty = [code for code, name in enumerate(labels.names) if name == ""]
    if empty and (rows := np.flatnonzero(np.isin(labels.codes, empty))).size:
        raise missing(column, where(int(rows[0])), rows.size)
    return labels


def missing(column: str, where: str, number: int = 1) -> DataError:
    """The error for an empty cell, the first of some."""
    said = f"column {column!r}, {where}: the cell is empty; fill it or drop the row"
    return DataError(f"{said}{and_more(number)}")


def and_more(number: int) -> str:
    """How many cells of a column there are beside the one that is named.

    >>> and_more(1), and_more(38)
    ('', ' (and 37 more cells of it)')
    """
    return "" if number < 2 else f" (and {number - 1:,} more cells of it)"
