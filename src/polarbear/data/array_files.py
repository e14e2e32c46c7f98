"""Files of named arrays, and arrays in JSON: one way for posteriors, ratings, selectors and pages.

A file is a zip of ``.npy`` arrays and a JSON header, which ``numpy.load`` opens too. Nothing in a
file is executed or unpickled, so files from untrusted sources are safe to read.
"""

import base64
import fnmatch
import json
import shutil
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from polarbear.data.unpacking import check_zip
from polarbear.errors import DataError

HEADER_NAME = "header.json"

MALFORMED_FILE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    KeyError,
    ValueError,
    EOFError,
    OverflowError,
    TypeError,
    IndexError,
    SyntaxError,
    RuntimeError,  # encrypted archives, JSON nested too deeply, unknown compressions
    MemoryError,
)
"""The exceptions of zipfile, json and numpy for forged or damaged files."""

PACKED_TYPES = {"f4": "<f4", "f2": "<f2", "u2": "<u2", "u1": "u1"}
"""The types of numbers in JSON, by their names there."""


def write_arrays(path: Any, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays to a file; an old file is replaced only when the new one is complete."""
    partial = f"{path}.partial"
    pack_arrays(partial, json.dumps(header, indent=1, ensure_ascii=False), arrays)
    shutil.move(partial, path)


def pack_arrays(
    file: str | BinaryIO,
    header: str,
    arrays: Mapping[str, NDArray[Any]],
    compression: int = zipfile.ZIP_DEFLATED,
) -> None:
    """Write a header in JSON and named arrays to a file or a buffer."""
    with zipfile.ZipFile(file, "w", compression, compresslevel=1) as archive:
        archive.writestr(HEADER_NAME, header)
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                npy.write_array(entry, np.ascontiguousarray(values), allow_pickle=False)


def read_arrays(
    path: Any, kind: str, version: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read header and arrays; DataError if the file is damaged, of another kind or too new."""
    try:
        with zipfile.ZipFile(path) as file:
            check_zip(file)
            header = json.loads(file.read(HEADER_NAME))
            arrays = {}
            for name in fnmatch.filter(file.namelist(), "*.npy"):
                with file.open(name) as entry:
                    arrays[name.removesuffix(".npy")] = npy.read_array(entry, allow_pickle=False)
    except DataError as error:
        raise DataError(f"{path}: ", error) from None
    except MALFORMED_FILE_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise DataError(f"{path} is damaged, or was not saved by PolarBear: {reason}") from None
    return check_header(path, header, kind, version), arrays


def check_header(path: object, header: Any, kind: str, version: int) -> dict[str, Any]:
    """Return the header of a file; DataError if it is of another kind, damaged or too new."""
    if not isinstance(header, dict) or header.get("kind") != kind:
        raise DataError(f"{path} does not hold {kind!r}: pass a file that PolarBear saved as one")
    if not isinstance(header.get("version"), int):
        raise DataError(
            f"{path} is damaged: the number of its format is {header.get('version')!r}; "
            "write the file again"
        )
    if header["version"] > version:
        raise DataError(
            f"{path} was written by a newer PolarBear (format {header['version']}, this one reads "
            f"up to {version}): upgrade to read it"
        )
    return header


def pack_array(values: NDArray[Any], kind: str = "f4") -> dict[str, Any]:
    """Pack an array for JSON: its shape, and its little-endian numbers in base64.

    >>> pack_array(np.array([[1.0, 2.0]]))
    {'shape': [1, 2], 'kind': 'f4', 'base64': 'AACAPwAAAEA='}
    """
    plain = np.ascontiguousarray(values, dtype=PACKED_TYPES[kind])
    text = base64.b64encode(plain.tobytes()).decode("ascii")
    return {"shape": list(plain.shape), "kind": kind, "base64": text}


def unpack_array(packed: Mapping[str, Any]) -> NDArray[Any]:
    """Return the array that :func:`pack_array` packed; ValueError or KeyError if it is damaged.

    >>> unpack_array(pack_array(np.array([[1.0, 2.0]])))
    array([[1., 2.]], dtype=float32)
    """
    content = base64.b64decode(packed["base64"], validate=True)
    shape = [int(size) for size in packed["shape"]]
    return np.frombuffer(content, dtype=PACKED_TYPES[packed["kind"]]).reshape(shape)
