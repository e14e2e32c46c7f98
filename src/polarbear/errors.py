"""Exceptions and warnings of the package, and the import of optional packages."""

import sys
import warnings
from importlib import import_module
from typing import Any

__all__ = [
    "DataError",
    "DataWarning",
    "FitError",
    "FitWarning",
    "MissingDependency",
    "PolarBearError",
    "SolverError",
    "StoreError",
]


class PolarBearError(Exception):
    """The base class of all exceptions that this package raises.

    >>> import polarbear as pb
    >>> try:
    ...     pb.read("nowhere.csv", direction="minimize")
    ... except pb.errors.PolarBearError as error:
    ...     print(type(error).__name__)
    DataError
    """


class DataError(PolarBearError, ValueError):
    """Data or an argument is invalid; the message says where, and what was expected.

    >>> import polarbear as pb
    >>> pb.read({"algorithm": ["a"], "instance": ["x"], "time": [1], "value": [float("nan")]},
    ...         direction="minimize")
    Traceback (most recent call last):
    polarbear.errors.DataError: column 'value', row 0: nan ...
    """


class FitError(PolarBearError, RuntimeError):
    """A fit failed; the message says why and what to try.

    >>> import polarbear as pb
    >>> issubclass(pb.errors.FitError, RuntimeError)
    True
    """


class StoreError(PolarBearError, RuntimeError):
    """A store cannot be opened, read or written; the message says why and what to do.

    >>> import polarbear as pb
    >>> pb.open_store("nowhere.db", read_only=True)
    Traceback (most recent call last):
    polarbear.errors.StoreError: ...nowhere.db...
    """


class SolverError(PolarBearError, RuntimeError):
    """A solver, or where it runs, is invalid; the message says what to change.

    >>> import polarbear as pb
    >>> pb.race({"a": 7}, ["x"], [1], direction="minimize")
    Traceback (most recent call last):
    polarbear.errors.SolverError: ...
    """


class MissingDependency(PolarBearError, ImportError):  # noqa: N818 (it is not the user's error)
    """An optional package is not installed; the message gives the install command.

    >>> require("a_package_that_does_not_exist", extra="plots")
    Traceback (most recent call last):
    polarbear.errors.MissingDependency: ...pip install 'polarbear-race[plots]'...
    """


class FitWarning(UserWarning):
    """The diagnostics of a posterior found a problem; the message says which and what to try.

    >>> import warnings
    >>> warnings.simplefilter("error", FitWarning)    # raise it as an exception instead
    """


class DataWarning(UserWarning):
    """The data are ambiguous in a way that changes the result; the message says what was assumed.

    >>> import polarbear as pb
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = pb.read({"algorithm": ["a", "b"], "instance": ["x", "x"], "time": [1, 9],
    ...                  "value": [3, 2]}, direction="minimize")
    >>> [warning.category.__name__ for warning in caught]    # until when was "a" observed?
    ['DataWarning']
    """


def warn(message: str, category: type[Warning] = DataWarning) -> None:
    """Issue a warning that points at the first line outside of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "polarbear":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def require(module: str, *, extra: str | None = None) -> Any:
    """Import an optional module, or raise ``MissingDependency`` with the install command.

    >>> require("json").__name__
    'json'
    >>> require("no_such_package", extra="parquet")
    Traceback (most recent call last):
    polarbear.errors.MissingDependency: 'no_such_package' is not installed: pip install ...
    """
    package = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # If another module is missing, the optional package is broken rather than not installed.
        if error.name is None or error.name.split(".")[0] != package:
            raise
        install = f"'polarbear-race[{extra}]'" if extra else package
        raise MissingDependency(f"{package!r} is not installed: pip install {install}") from None
