"""Parquet through pyarrow: columns read one at a time, and the long table of runs written."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.data.columns import Labels, checked, floats
from polarbear.data.names import to_name
from polarbear.errors import DataError, require

_STAMP, _VERSION = "polarbear", 1


class ParquetColumns:
    """Columns of a Parquet file, each read from the file when asked for and not kept.

    One column at a time keeps the peak near the size of the result, and texts are read
    as the file's own dictionary codes instead of one string per row.
    """

    def __init__(self, source: Any):
        self._arrow = require("pyarrow", extra="parquet")
        self._parquet = require("pyarrow.parquet", extra="parquet")
        self._source = source
        self.where = "row {}".format
        with self._reading():
            file = self._parquet.ParquetFile(source)
            schema = self._schema = file.schema_arrow
            self._rows = file.metadata.num_rows
            self.names: Sequence[str] = schema.names
            self.about = _about((schema.metadata or {}).get(_STAMP.encode()))
        self._original: dict[str, str] = {}
        self._constant: dict[str, str] = {}

    def amend(self, renamed: Mapping[str, str], constant: Mapping[str, str]) -> None:
        """Call columns by other names, and add columns with one name for all rows."""
        self._original = {new: old for old, new in renamed.items()}
        self._constant = dict(constant)
        self.names = [*(renamed.get(name, name) for name in self._schema.names), *constant]

    def labels(self, name: str) -> Labels:
        if name in self._constant:
            return Labels(np.zeros(self._rows, dtype=np.int32), [self._constant[name]])
        place: dict[str, int] = {}
        codes: list[NDArray[np.int32]] = []
        with self._reading():
            for chunk in self._read(name, as_dictionary=True).chunks:
                if not self._arrow.types.is_dictionary(chunk.type):
                    chunk = chunk.dictionary_encode()
                own = [to_name(value) for value in chunk.dictionary.to_pylist()]
                if chunk.null_count:
                    own.append("")
                new = np.array([place.setdefault(v, len(place)) for v in own], dtype=np.int32)
                index = chunk.indices.fill_null(len(own) - 1).to_numpy(zero_copy_only=False)
                if len(index) and not 0 <= index.min() <= index.max() < len(new):
                    raise DataError(f"column {name!r} refers to names that are not in the file")
                codes.append(new[index])
        labels = Labels(np.concatenate(codes) if codes else np.empty(0, np.int32), list(place))
        return checked(labels, name, self.where)

    def numbers(self, name: str) -> NDArray[np.float64]:
        with self._reading():
            column = self._read(name)
            types, kind = self._arrow.types, column.type
            if types.is_decimal(kind):
                column, kind = column.cast(self._arrow.float64()), self._arrow.float64()
            if not (types.is_integer(kind) or types.is_floating(kind)):
                raise DataError(f"column {name!r} holds {kind}, expected numbers")
            numbers = np.empty(len(column))
            at = 0
            for chunk in column.chunks:
                own = chunk.to_numpy(zero_copy_only=False)
                numbers[at : at + len(chunk)] = floats(own, name)
                at += len(chunk)
        return numbers

    def cell(self, name: str, row: int) -> str:  # noqa: ARG002
        return "nan"  # the only number that messages are about

    def _read(self, name: str, *, as_dictionary: bool = False) -> Any:
        nested = self._arrow.types.is_nested
        name = self._original.get(name, name)
        if self._schema.names.count(name) > 1 or nested(self._schema.field(name).type):
            raise DataError(f"column {name!r} is not a single column of plain values")
        wanted = [name] if as_dictionary else None
        file = self._parquet.ParquetFile(self._source, read_dictionary=wanted)
        column = file.read(columns=[name]).column(name)
        if len(column) != self._rows:
            raise DataError(f"column {name!r} has {len(column)} of {self._rows} rows")
        return column

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what pyarrow raises on damaged files into one error."""
        try:
            yield
        except FileNotFoundError:
            raise DataError(f"{self._source}: no such file") from None
        except (
            self._arrow.ArrowException,
            KeyError,
            MemoryError,
            OSError,
            OverflowError,
            UnicodeError,
        ) as error:
            raise DataError(f"damaged Parquet file: {error}") from None


def write(target: Any, columns: Mapping[str, Any], about: Mapping[str, str]) -> None:
    """Write columns, and what is to be said about all of them."""
    arrow = require("pyarrow", extra="parquet")
    parquet = require("pyarrow.parquet", extra="parquet")
    arrays = {
        name: arrow.DictionaryArray.from_arrays(arrow.array(column.codes), list(column.names))
        if isinstance(column, Labels)
        else arrow.array(column)
        for name, column in columns.items()
    }
    stamp = json.dumps({"version": _VERSION, **about})
    parquet.write_table(arrow.table(arrays).replace_schema_metadata({_STAMP: stamp}), target)


def _about(stamp: bytes | None) -> dict[str, Any]:
    """What a file of ours says about itself; files are data, so anything may stand there."""
    try:
        about = json.loads(stamp or b"{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(about, dict):
        return {}
    version = about.get("version", _VERSION)
    if version != _VERSION:
        raise DataError(
            f"the file has version {version} of this format, this package reads {_VERSION}"
        )
    return about
