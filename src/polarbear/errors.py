"""Exceptions and warnings of the package, and the import of optional packages."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple, Union

__all__ = [
    "Argument",
    "DataError",
    "DataWarning",
    "FitError",
    "FitWarning",
    "MissingDependency",
    "PolarBearError",
    "SolverError",
    "StoreError",
]


class Argument(NamedTuple):
    """A parameter and a value in a message: Python writes ``name=value``, a command an option.

    ``call`` is the Python text around it, if the parameter is one of another function.

    >>> print(Argument("direction", "minimize"))
    direction='minimize'
    """

    name: str
    value: Any
    call: str = "{}"

    def __str__(self) -> str:
        value = float(self.value) if isinstance(self.value, float) else self.value  # also of numpy
        return self.call.format(f"{self.name}={value!r}")


Text = Union[str, Argument, "ReadCall", Exception, Iterable["Text"]]
"""A message, or a part of one; parameters in it are not words, so that each reader can write them
in its own way."""


class ReadCall(NamedTuple):
    """A call of ``read`` with the given arguments and those that are missing."""

    source: str
    given: tuple[Argument, ...]
    missing: tuple[Argument, ...]

    def __str__(self) -> str:
        changed = {one.name for one in self.missing}
        kept = [one for one in self.given if one.name not in changed]
        return f"pb.read({', '.join(map(str, [self.source, *kept, *self.missing]))})"


def join_texts(separator: str, texts: Iterable[Text]) -> tuple[Text, ...]:
    """Join texts that may have parameters in them.

    >>> render_text(join_texts(" or ", [Argument("until", "last"), "a column"]))
    "until='last' or a column"
    """
    parts = [part for text in texts for part in (separator, text)]
    return tuple(parts[1:])


def render_text(text: Text, write: Callable[[Argument | ReadCall], str] = str) -> str:
    """Return a text, with its parameters written by ``write``."""
    return "".join(part if isinstance(part, str) else write(part) for part in _flatten(text))


def _flatten(text: Text) -> Iterator[str | Argument | ReadCall]:
    if isinstance(text, str | Argument | ReadCall):
        yield text
    elif isinstance(text, Message):
        yield from _flatten(text.args)
    elif isinstance(text, Exception):
        yield str(text)
    else:
        for part in text:
            yield from _flatten(part)


class Message:
    """An exception or a warning whose parts are joined to a message."""

    args: tuple[Any, ...]

    def __str__(self) -> str:
        return render_text(self.args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class PolarBearError(Message, Exception):
    """The base class of all exceptions that this package raises.

    Parameters
    ----------
    message
        The parts of the message, of which some may be an :class:`Argument`.
    given
        The parameters that are wrong, with the values that were given; the message begins with
        them.

    Examples
    --------
    >>> import polarbear as pb
    >>> try:
    ...     pb.read("nowhere.csv", direction="minimize")
    ... except pb.errors.PolarBearError as error:
    ...     print(type(error).__name__)
    DataError
    >>> error = pb.DataError("expected less than 1", certainty=2)
    >>> print(error)
    certainty=2: expected less than 1
    >>> error.parameter, error.value
    ('certainty', 2)
    """

    def __init__(self, *message: Text, **given: object) -> None:
        begin = [join_texts(", ", [Argument(*one) for one in given.items()]), ": "] if given else []
        super().__init__(*begin, *message)
        wrapped = [(one.parameter, one.value) for one in message if isinstance(one, PolarBearError)]
        self.parameter, self.value = next(iter([*given.items(), *wrapped]), (None, None))

    @property
    def advice(self) -> tuple[Argument, ...]:
        """The arguments that the message advises to pass."""
        named = [part for part in _flatten(self.args) if isinstance(part, Argument)]
        return tuple(one for one in named if one[:2] != (self.parameter, self.value))


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


class FitWarning(Message, UserWarning):
    """The diagnostics of a posterior found a problem; the message says which and what to try.

    >>> import warnings
    >>> warnings.simplefilter("error", FitWarning)    # raise it as an exception instead
    """


class DataWarning(Message, UserWarning):
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


def warn(*message: Text, category: type[FitWarning | DataWarning] = DataWarning) -> None:
    """Issue a warning that points at the first line outside of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "polarbear":
        frame, level = frame.f_back, level + 1
    warnings.warn(category(*message), stacklevel=level)


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
