"""``Table``: one interface to the columns of mappings, data frames and files.

A ``Table`` lists the names of its columns and reads one column at a time, as
labels (codes into a list of names) or as numbers. The code that builds ``Runs``
from a table depends on this interface only.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from numbers import Integral
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from polarbear.data.names import Codes, to_name, to_names
from polarbear.errors import DataError, require, warn

_WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,400}\s*")

BACKENDS = ("pandas", "polars", "pyarrow")
"""The libraries of data frames that tables are converted to."""

MAX_EXACT_INTEGER = 1 << 53
"""Beyond this integer (2^53) floats cannot represent every integer."""


class Labels(NamedTuple):
    """A column of names as whole-number codes: ``names[codes[i]]`` is the name in row i."""

    codes: Codes
    names: Sequence[str]

    def to_list(self) -> list[str]:
        """Return the names of all rows as a list."""
        return np.array(self.names, dtype=object)[self.codes].tolist()


class Table(Protocol):
    """The interface of a table that is read one column at a time."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the columns."""
        ...

    @property
    def describe_row(self) -> Callable[[int], str]:
        """A function that names a row in messages, given its index, such as "row 3"."""
        ...

    def read_labels(self, name: str, *, may_be_empty: bool = False) -> Labels:
        """Read a column of names; raise ``DataError`` with the row of a cell that is empty.

        With ``may_be_empty``, an empty cell has the name "".
        """
        ...

    def read_numbers(self, name: str) -> NDArray[np.float64]:
        """Read a column of numbers; empty cells become nan."""
        ...

    def format_cell(self, name: str, row: int) -> str:
        """Return the content of a cell as text for messages."""
        ...


def to_table(table: Any) -> Table:
    """Wrap a mapping of sequences, or any data frame that narwhals supports, as ``Table``.

    A table is returned as it is.

    >>> to_table({"algorithm": ["a", "b"], "time": [1, 2]}).read_numbers("time")
    array([1., 2.])
    """
    if isinstance(table, Mapping):
        return MappingTable(table)
    if hasattr(table, "read_labels"):
        return table
    import narwhals

    try:
        frame = narwhals.from_native(table)
    except narwhals.exceptions.DuplicateError:
        raise DataError("two columns of the table have the same name: rename one") from None
    except TypeError:
        raise DataError(
            f"cannot read a table from {type(table).__name__}; expected a data frame "
            "(pandas, polars, pyarrow, ...) or a mapping of column names to values"
        ) from None
    return FrameTable(frame.collect() if isinstance(frame, narwhals.LazyFrame) else frame)


class MappingTable:
    """The columns of a mapping from names to sequences of equal length; cells may be text."""

    def __init__(
        self,
        table: Mapping[str, Iterable[Any]],
        describe_row: Callable[[int], str] = "row {}".format,
    ):
        keys = map_column_names(table)
        self.table = {name: to_sequence(table[key]) for name, key in keys.items()}
        lengths = {name: len(values) for name, values in self.table.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"columns must have the same length, got {lengths}")
        self.names = list(self.table)
        self.describe_row = describe_row

    def read_labels(self, name: str, *, may_be_empty: bool = False) -> Labels:
        values = self.table[name]
        code_of: defaultdict[Any, int] = defaultdict(count().__next__)  # numbers new names
        try:
            codes = np.fromiter(map(code_of.__getitem__, values), np.int32, len(values))
        except TypeError:
            raise DataError(
                f"column {name!r} must hold names (texts or numbers), got {values[0]!r}"
            ) from None
        labels = Labels(codes, to_names(code_of))
        return labels if may_be_empty else check_labels(labels, name, self.describe_row)

    def read_numbers(self, name: str) -> NDArray[np.float64]:
        values = self.table[name]
        if isinstance(values, np.ndarray):
            return to_floats(values, name)
        try:
            return _parse_numbers(values, name)
        except (TypeError, ValueError, OverflowError):
            pass
        try:
            return _parse_numbers(
                [np.nan if is_missing(value) else value for value in values], name
            )
        except (TypeError, ValueError, OverflowError):
            raise self._not_a_number_error(name) from None

    def _not_a_number_error(self, name: str) -> DataError:
        bad_rows = [
            row
            for row, value in enumerate(self.table[name])
            if not is_missing(value) and not _is_number(value)
        ]
        if not bad_rows:
            return DataError(f"column {name!r} does not hold numbers")
        value, where = self.table[name][bad_rows[0]], self.describe_row(bad_rows[0])
        others = format_other_cells(len(bad_rows))
        return DataError(f"column {name!r}, {where}: {value!r} is not a number{others}")

    def format_cell(self, name: str, row: int) -> str:
        value = self.table[name][row]
        return value if isinstance(value, str) else to_name(value) or "nan"


class FrameTable:
    """The columns of any eager data frame, read through narwhals."""

    def __init__(self, frame: Any):
        self._frame, self._key = frame, map_column_names(frame.columns)
        self.names: Sequence[str] = list(self._key)
        self.describe_row = "row {}".format

    def read_labels(self, name: str, *, may_be_empty: bool = False) -> Labels:
        import narwhals as nw

        column = self._frame.get_column(self._key[name])
        is_text = column.dtype in (nw.String, nw.Categorical, nw.Enum)
        if column.dtype == nw.Object or not len(column) or (may_be_empty and not is_text):
            return MappingTable({name: column.to_list()}).read_labels(
                name, may_be_empty=may_be_empty
            )
        if column.dtype in (nw.Categorical, nw.Enum):
            column = column.cast(nw.String)
        if may_be_empty:
            column = column.fill_null("")
        elif column.is_null().any():
            empty = column.is_null().to_numpy()
            first = self.describe_row(int(np.argmax(empty)))
            raise empty_cell_error(name, first, int(np.sum(empty)))
        distinct = column.unique().to_list()
        codes = column.replace_strict(distinct, list(range(len(distinct))), return_dtype=nw.Int32)
        labels = Labels(codes.to_numpy(), to_names(distinct))
        return labels if may_be_empty else check_labels(labels, name, self.describe_row)

    def read_numbers(self, name: str) -> NDArray[np.float64]:
        import narwhals as nw

        column = self._frame.get_column(self._key[name])
        if column.dtype in (nw.String, nw.Object) or not len(column):
            return MappingTable({name: column.to_list()}).read_numbers(name)
        if not column.dtype.is_numeric():
            raise DataError(f"column {name!r} holds {column.dtype}, expected numbers")
        if column.dtype.is_integer():
            _warn_if_rounded(column.abs().max(), name)
        return np.array(column.cast(nw.Float64).to_numpy(), dtype=np.float64)

    def format_cell(self, name: str, row: int) -> str:
        return to_name(self._frame.get_column(self._key[name])[row]) or "nan"


def map_column_names(names: Iterable[Any]) -> dict[str, Any]:
    """Map the text of each column name to the original name, which may be a number in pandas.

    >>> map_column_names(["algorithm", 10])
    {'algorithm': 'algorithm', '10': 10}
    """
    names = list(names)
    name_of_text = {str(name): name for name in names}
    if len(name_of_text) < len(names):
        raise DataError("two columns of the table have the same name: rename one")
    return name_of_text


def to_sequence(values: Any) -> Any:
    """Convert a column of values to a sequence, or to a numpy array (rows,) if it is numeric."""
    if isinstance(values, Labels):
        return values.to_list()
    if isinstance(values, list | tuple | range):
        return values
    if isinstance(values, Mapping | set | frozenset | str | bytes) or np.ndim(values) != 1:
        raise DataError(f"expected a column of values, got {str(values)[:40]!r}")
    if isinstance(values, np.ma.MaskedArray):
        return values.tolist()  # masked values become None
    array = np.asarray(values)
    if array.dtype.kind in "mM":
        array = array.astype(str)  # a date can be a name, not a number
    return array if array.dtype.kind in "biuf" else array.tolist()


def make_frame(columns: Mapping[str, Any], backend: Any = "pandas") -> Any:
    """Return columns of numbers, texts or labels as a data frame of one of ``BACKENDS``."""
    import narwhals

    if backend not in BACKENDS:
        raise DataError(f"expected one of {', '.join(BACKENDS)}", backend=backend)
    require(backend)
    cells = {k: v.to_list() if isinstance(v, Labels) else v for k, v in columns.items()}
    return narwhals.from_dict(cells, backend=backend).to_native()


def write_csv(target: Any, columns: Mapping[str, Any]) -> None:
    """Write columns of numbers or labels as CSV, to a path or to an open text file."""
    if not hasattr(target, "write"):
        with open(target, "w", newline="", encoding="utf-8") as file:  # noqa: PTH123
            return write_csv(file, columns)
    parts = columns.values()
    cells = [part.to_list() if isinstance(part, Labels) else part.tolist() for part in parts]
    # Python before 3.11.9 and 3.12.3 quotes no carriage return, which begins a row for readers.
    has_return = any("\r" in name for v in parts if isinstance(v, Labels) for name in v.names)
    quoting = csv.QUOTE_NONNUMERIC if has_return else csv.QUOTE_MINIMAL
    writer = csv.writer(target, lineterminator="\n", quoting=quoting)
    writer.writerow(columns)
    writer.writerows(zip(*cells, strict=True))
    return None


MISSING_TEXTS = frozenset(["", "nan", "na", "n/a", "<na>", "null", "none"])
"""Texts, in lower case, that mean that a cell is empty."""


def is_missing(value: Any) -> bool:
    """Return whether a cell is empty, or holds a text for "missing" such as "NA".

    >>> is_missing(""), is_missing("NA"), is_missing(None), is_missing("x"), is_missing(0)
    (True, True, True, False, False)
    """
    return to_name(value).strip().lower() in MISSING_TEXTS


def _parse_numbers(values: Sequence[Any], name: str) -> NDArray[np.float64]:
    """Convert cells to floats; raise ``ValueError`` if one is not a number."""
    if "_" in "".join(value for value in values if isinstance(value, str)):
        raise ValueError  # Python reads 1_0 as ten
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError
    return to_floats(array, name, values)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return "_" not in str(value)  # Python reads 1_0 as ten


def is_whole_number(value: object) -> bool:
    """Return whether a cell holds a whole number, as a number or as text."""
    if isinstance(value, str):
        return _WHOLE_NUMBER.fullmatch(value) is not None
    return isinstance(value, Integral)


def to_floats(
    array: NDArray[Any], name: str, source: Sequence[Any] | None = None
) -> NDArray[np.float64]:
    """Copy an array of numbers to floats, and warn if large integers are rounded."""
    if array.dtype.kind in "iu" and len(array):
        _warn_if_rounded(max(abs(int(array.min())), abs(int(array.max()))), name)
    elif source is not None and len(array) and np.any(np.abs(array) >= MAX_EXACT_INTEGER):
        integers = (abs(int(value)) for value in source if is_whole_number(value))
        _warn_if_rounded(max(integers, default=0), name)
    return np.array(array, dtype=np.float64)


def _warn_if_rounded(largest: int | None, name: str) -> None:
    if largest is not None and largest > MAX_EXACT_INTEGER:
        warn(
            f"column {name!r} has whole numbers beyond 2^53, which are rounded and may tie: "
            "divide them or subtract a constant"
        )


def check_labels(labels: Labels, column: str, describe_row: Callable[[int], str]) -> Labels:
    """Return the labels, or raise ``DataError`` if a cell of the column is empty."""
    empty = [code for code, name in enumerate(labels.names) if name == ""]
    if empty and (rows := np.flatnonzero(np.isin(labels.codes, empty))).size:
        raise empty_cell_error(column, describe_row(int(rows[0])), rows.size)
    return labels


def empty_cell_error(column: str, where: str, n_cells: int = 1) -> DataError:
    """Make the error for ``n_cells`` empty cells of a column, the first of them at ``where``."""
    problem = f"column {column!r}, {where}: the cell is empty; fill it or drop the row"
    return DataError(f"{problem}{format_other_cells(n_cells)}")


def format_other_cells(n_cells: int) -> str:
    """Return a note on how many further cells have the same problem; "" if there are none.

    >>> format_other_cells(1), format_other_cells(38)
    ('', ' (and 37 more cells of it)')
    """
    return "" if n_cells < 2 else f" (and {n_cells - 1:,} more cells of it)"
