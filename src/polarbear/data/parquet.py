"""Parquet files through pyarrow: ``ParquetTable`` reads them, ``write_parquet`` writes them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.data.names import to_name
from polarbear.data.table import Labels, check_labels, to_floats
from polarbear.errors import DataError, require

_METADATA_KEY, _FORMAT_VERSION = "polarbear", 1


class ParquetTable:
    """The columns of a Parquet file; each call reads one column from the file.

    One column at a time keeps the peak memory near the size of the result, and names are read
    as the file's own dictionary codes instead of one string per row.
    """

    def __init__(self, source: Any):
        self._arrow = require("pyarrow", extra="parquet")
        self._parquet = require("pyarrow.parquet", extra="parquet")
        self._source = source
        self.describe_row = "row {}".format
        with self._reading():
            file = self._parquet.ParquetFile(source)
            schema = self._schema = file.schema_arrow
            self.n_rows = file.metadata.num_rows
            self.names: Sequence[str] = schema.names
            self.metadata = _parse_metadata((schema.metadata or {}).get(_METADATA_KEY.encode()))
        self._original: dict[str, str] = {}
        self._constant: dict[str, str] = {}

    def amend_columns(self, renamed: Mapping[str, str], constant: Mapping[str, str]) -> None:
        """Rename columns, and add columns that hold one constant name in all rows."""
        self._original = {new: old for old, new in renamed.items()}
        self._constant = dict(constant)
        self.names = [*(renamed.get(name, name) for name in self._schema.names), *constant]

    def read_labels(self, name: str, *, may_be_empty: bool = False) -> Labels:
        if name in self._constant:
            return Labels(np.zeros(self.n_rows, dtype=np.int32), [self._constant[name]])
        code_of: dict[str, int] = {}
        codes: list[NDArray[np.int32]] = []
        with self._reading():
            for chunk in self._read(name, as_dictionary=True).chunks:
                if not self._arrow.types.is_dictionary(chunk.type):
                    chunk = chunk.dictionary_encode()
                names = [to_name(value) for value in chunk.dictionary.to_pylist()]
                if chunk.null_count:
                    names.append("")
                new = np.array([code_of.setdefault(n, len(code_of)) for n in names], dtype=np.int32)
                index = chunk.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
                if len(index) and not 0 <= index.min() <= index.max() < len(new):
                    raise DataError(
                        f"column {name!r} refers to names that the file does not hold: write it "
                        "again"
                    )
                codes.append(new[index])
        labels = Labels(np.concatenate(codes) if codes else np.empty(0, np.int32), list(code_of))
        return labels if may_be_empty else check_labels(labels, name, self.describe_row)

    def read_numbers(self, name: str) -> NDArray[np.float64]:
        with self._reading():
            column = self._read(name)
            types, kind = self._arrow.types, column.type
            if types.is_decimal(kind):
                column, kind = column.cast(self._arrow.float64()), self._arrow.float64()
            if not (types.is_integer(kind) or types.is_floating(kind)):
                raise DataError(f"column {name!r} holds {kind}, expected numbers")
            numbers = np.empty(len(column))
            start = 0
            for chunk in column.chunks:
                part = chunk.to_numpy(zero_copy_only=False)
                numbers[start : start + len(chunk)] = to_floats(part, name)
                start += len(chunk)
        return numbers

    def format_cell(self, name: str, row: int) -> str:  # noqa: ARG002
        return "nan"  # messages only ever show cells that are not numbers

    def _read(self, name: str, *, as_dictionary: bool = False) -> Any:
        nested = self._arrow.types.is_nested
        name = self._original.get(name, name)
        if self._schema.names.count(name) > 1 or nested(self._schema.field(name).type):
            raise DataError(
                f"column {name!r} is not a single column of numbers or texts: flatten or rename it"
            )
        wanted = [name] if as_dictionary else None
        file = self._parquet.ParquetFile(self._source, read_dictionary=wanted)
        column = file.read(columns=[name]).column(name)
        if len(column) != self.n_rows:
            raise DataError(
                f"the file is damaged: column {name!r} has {len(column)} of {self.n_rows} rows"
            )
        return column

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise ``DataError`` in place of the exceptions of pyarrow on damaged files."""
        try:
            yield
        except FileNotFoundError:
            raise DataError(f"{self._source}: there is no such file") from None
        except (
            self._arrow.ArrowException,
            KeyError,
            MemoryError,
            OSError,
            OverflowError,
            UnicodeError,
        ) as error:
            raise DataError(f"damaged Parquet file, which cannot be read: {error}") from None


def write_parquet(target: Any, columns: Mapping[str, Any], about: Mapping[str, Any]) -> None:
    """Write columns to a Parquet file, with ``about`` as its metadata."""
    arrow = require("pyarrow", extra="parquet")
    parquet = require("pyarrow.parquet", extra="parquet")
    arrays = {
        name: arrow.DictionaryArray.from_arrays(arrow.array(column.codes), list(column.names))
        if isinstance(column, Labels)
        else arrow.array(column)
        for name, column in columns.items()
    }
    stamp = json.dumps({"version": _FORMAT_VERSION, **about})
    parquet.write_table(arrow.table(arrays).replace_schema_metadata({_METADATA_KEY: stamp}), target)


def _parse_metadata(stamp: bytes | None) -> dict[str, Any]:
    """Parse the metadata that ``write_parquet`` stores; ``{}`` if the file has none."""
    try:
        metadata = json.loads(stamp or b"{}")
    except (ValueError, RecursionError):  # another program may have written anything here
        return {}
    if not isinstance(metadata, dict):
        return {}
    version = metadata.get("version", _FORMAT_VERSION)
    if version != _FORMAT_VERSION:
        raise DataError(
            f"the file has version {version} of its format, but this package reads version "
            f"{_FORMAT_VERSION}: "
            "install a newer PolarBear"
        )
    return metadata
