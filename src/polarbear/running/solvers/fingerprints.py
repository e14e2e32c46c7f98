"""``fingerprint``: a short hash that tells whether two calls mean the same thing by a name.

Files are known by their content, plain values and arrays by theirs, functions by their code, the
values they enclose and what they use of their own module. What cannot be told cheaply (objects of
other languages, open files) has no fingerprint, and is not compared.
"""

import functools
import hashlib
import os
import sys
import types
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

MAX_PARTS = 20_000
"""Parts of a value beyond which it is not looked at any further."""

_CODE = f"{sys.implementation.cache_tag}:"  # bytecode differs between versions of Python
_FILE = "file:"
_ABOUT_CLASSES = ("__module__", "__doc__", "__qualname__", "__firstlineno__")


def fingerprint(value: Any) -> str:
    """Hash what a value is; "" where that cannot be told cheaply.

    >>> fingerprint([1, "a"]) == fingerprint([1, "a"]), fingerprint(1) == fingerprint(2)
    (True, False)
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    >>> fingerprint(iter([]))
    ''
    """
    reader = _Reader()
    try:
        reader.feed(value)
    except _Unknown:
        return ""
    return reader.hexdigest()


def file_fingerprint(path: str | os.PathLike[str]) -> str:
    """Hash the content of a file; "" if there is no such file.

    >>> file_fingerprint("/no/such/file")
    ''
    """
    try:
        if not Path(path).is_file():  # a pipe would wait for ever
            return ""
        with Path(path).open("rb") as file:
            return _FILE + hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except (OSError, ValueError):
        return ""


def is_file_content(hashed: str) -> bool:
    """Whether a fingerprint is the content of a file."""
    return hashed.startswith(_FILE)


def is_changed(before: str, now: str) -> bool:
    """Whether two fingerprints certainly differ.

    Those of code can only be compared if the same version of Python made them.

    >>> is_changed("a", "b"), is_changed("", "b"), is_changed("cpython-311:a", "cpython-312:b")
    (True, False, False)
    """
    kinds = [hashed.rpartition(":")[0] for hashed in (before, now)]
    other_python = kinds[0] != kinds[1] and all(kind not in ("", _FILE[:-1]) for kind in kinds)
    return bool(before and now) and before != now and not other_python


class _Unknown(Exception):  # noqa: N818 (it is no error)
    """What a value is cannot be told."""


class _Reader:
    """Takes a value apart and hashes the parts."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._parts = 0
        self._seen: dict[int, int] = {}  # objects that may contain themselves, and their number
        self._kept: list[Any] = []  # so that no id is used twice
        self._has_code = False

    def hexdigest(self) -> str:
        return (_CODE if self._has_code else "") + self._hash.hexdigest()[:32]

    def feed(self, value: Any) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise _Unknown
        if value is None or isinstance(value, bool | str | bytes | complex | range | Enum):
            self._put(type(value).__name__, repr(value))
        elif isinstance(value, int | np.integer):
            self._put("int", str(int(value)))
        elif isinstance(value, float | np.floating):
            self._put("float", float(value).hex())
        elif isinstance(value, os.PathLike):
            self._put("path", os.fspath(value))
        elif isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise _Unknown
            self._put("array", f"{value.dtype.str} {value.shape}")
            self._hash.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, types.ModuleType):
            self._put("module", value.__name__)
        elif self._is_new(value):
            self._feed_parts(value)

    def _feed_parts(self, value: Any) -> None:
        """What consists of other values."""
        match value:
            case list() | tuple():
                self._put(type(value).__name__, str(len(value)))
                for part in value:
                    self.feed(part)
            case Mapping():
                self._put("mapping", str(len(value)))
                for key in sorted(value, key=repr):
                    self.feed(key)
                    self.feed(value[key])
            case set() | frozenset():
                self._put("set", str(len(value)))
                for part in sorted(value, key=repr):
                    self.feed(part)
            case functools.partial():
                self._put("partial", "")
                self.feed((value.func, value.args, value.keywords))
            case types.MethodType():
                self.feed((value.__func__, value.__self__))
            case types.FunctionType():
                self._feed_function(value)
            case types.BuiltinFunctionType() if isinstance(value.__self__, types.ModuleType):
                self._put("builtin", f"{value.__module__}.{value.__qualname__}")
            case type():
                self._feed_class(value)
            case _:
                self._feed_object(value)

    def _feed_function(self, function: types.FunctionType) -> None:
        self._put("function", function.__qualname__)
        self.feed((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            try:
                self.feed(cell.cell_contents)
            except ValueError:
                self._put("empty", "")
        names = self._feed_code(function.__code__, function.__doc__)
        for name in sorted(names & function.__globals__.keys()):
            used = function.__globals__[name]
            own = getattr(used, "__module__", None) == function.__module__
            code = own and isinstance(used, types.FunctionType | type)
            if code or isinstance(used, bool | int | float | str):
                self._put("global", name)
                self.feed(used)

    def _feed_code(self, code: types.CodeType, text: str | None) -> set[str]:
        """Hash bytecode and constants; the names it uses."""
        self._has_code = True
        self._put("code", code.co_name)
        self._hash.update(code.co_code)
        names = set(code.co_names)
        self._put("names", repr((code.co_names, code.co_varnames, code.co_freevars)))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                names |= self._feed_code(constant, None)
            elif text is None or constant != text:  # what is documented does not change a solver
                self.feed(constant)
        return names

    def _feed_class(self, kind: type) -> None:
        self._put("class", f"{kind.__module__}.{kind.__qualname__}")
        if kind.__module__.partition(".")[0] in ("builtins", "polarbear"):
            return
        for name, part in sorted(vars(kind).items()):
            part = part.__func__ if isinstance(part, staticmethod | classmethod) else part
            part = part.fget if isinstance(part, property) else part
            plain = isinstance(part, types.FunctionType | bool | int | float | str)
            if plain and name not in _ABOUT_CLASSES:
                self._put("attribute", name)
                self.feed(part)
        for base in kind.__bases__:
            if base.__module__ == kind.__module__:
                self.feed(base)

    def _feed_object(self, value: Any) -> None:
        own = getattr(value, "__dict__", None)
        if not isinstance(own, dict) or type(value).__module__ == "builtins":
            raise _Unknown
        self.feed(type(value))
        self.feed(own)

    def _is_new(self, value: Any) -> bool:
        """Whether this object was not fed yet; one that was is named by its number."""
        if id(value) in self._seen:
            self._put("seen", str(self._seen[id(value)]))
            return False
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        return True

    def _put(self, kind: str, content: str) -> None:
        data = content.encode(errors="surrogatepass")
        self._hash.update(f"{kind} {len(data)}:".encode() + data)
