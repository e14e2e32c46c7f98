"""What can go wrong, in words a user can act on, and how optional packages are loaded."""

import sys
import warnings
from importlib import import_module
from typing import Any


class PolarBearError(Exception):
    """Everything this package raises on purpose.

    >>> import polarbear as pb
    >>> try:
    ...     pb.read("nowhere.csv", direction="minimize")
    ... except pb.PolarBearError as error:
    ...     print(type(error).__name__)
    DataError
    """


class DataError(PolarBearError, ValueError):
    """The data cannot be what it claims to be; the message names the place.

    >>> import polarbear as pb
    >>> pb.read({"algorithm": ["a"], "instance": ["x"], "time": [1], "value": [float("nan")]},
    ...         direction="minimize")
    Traceback (most recent call last):
    polarbear.errors.DataError: column 'value', row 0: nan ...
    """


class FitError(PolarBearError, RuntimeError):
    """No posterior that can be trusted; the message says what failed and what to try.

    >>> import polarbear as pb
    >>> issubclass(pb.FitError, RuntimeError)
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
    """A solver, or what runs it, is not what it should be; the message says what to change.

    >>> import polarbear as pb
    >>> pb.race({"a": 7}, ["x"], [1], direction="minimize")
    Traceback (most recent call last):
    polarbear.errors.SolverError: ...
    """


class MissingDependency(PolarBearError, ImportError):  # noqa: N818 (it is not the user's error)
    """An optional package is needed; the message gives the install command.

    >>> require("a_package_that_nobody_has", extra="plots")
    Traceback (most recent call last):
    polarbear.errors.MissingDependency: ...pip install 'polarbear-race[plots]'...
    """


class FitWarning(UserWarning):
    """The posterior is not to be trusted; the message says why and what to try.

    >>> import warnings
    >>> warnings.simplefilter("error", FitWarning)    # rather stop than go on with such a one
    """


class DataWarning(UserWarning):
    """The data leave something open that changes the answer; the message says what was assumed.

    >>> import polarbear as pb
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     _ = pb.read({"algorithm": ["a", "b"], "instance": ["x", "x"], "time": [1, 9],
    ...                  "value": [3, 2]}, direction="minimize")
    >>> [warning.category.__name__ for warning in said]    # until when was "a" watched?
    ['DataWarning']
    """


def warn(message: str, category: type[Warning] = DataWarning) -> None:
    """Warn at the line of whoever called the package, however deep this is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "polarbear":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def require(module: str, *, extra: str | None = None) -> Any:
    """Import an optional ``module``, or say how to install it.

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
        # A broken package inside the optional one is not a missing one: let that error through.
        if error.name is None or error.name.split(".")[0] != package:
            raise
        install = f"'polarbear-race[{extra}]'" if extra else package
        raise MissingDependency(f"{package!r} is not installed: pip install {install}") from None
