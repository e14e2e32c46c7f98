"""``fingerprint``: a short hash of a solver or an instance, to recognise it when a race resumes.

Hashed are the content of files, plain values and arrays, and for functions their code, the values
in their closure and what they use of their own module. Objects that cannot be hashed cheaply (of
other languages, open files) have no fingerprint and are not compared.
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
"""A value with more parts than this has no fingerprint."""

_CODE_PREFIX = f"{sys.implementation.cache_tag}:"  # bytecode differs between versions of Python
_FILE_PREFIX = "file:"
_PLAIN = (bool, str, bytes, bytearray, complex, range, Enum, types.EllipsisType)
MAX_ARRAY_BYTES = 1_000_000
"""A larger array of a module is taken for data, which files or instances hold."""

# Globals of a module that are compared, and parts of a class.
_SETTINGS = (bool, int, float, str, list, tuple, dict, set, frozenset, functools.partial)
_PARTS = (types.FunctionType, bool, int, float, str, list, tuple, dict, set)
_IGNORED_ATTRIBUTES = ("__module__", "__doc__", "__qualname__", "__firstlineno__")


def fingerprint(value: Any) -> str:
    """Return a hash of a value's content; "" if it cannot be hashed cheaply.

    >>> fingerprint([1, "a"]) == fingerprint([1, "a"]), fingerprint(1) == fingerprint(2)
    (True, False)
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    >>> fingerprint(iter([]))
    ''
    """
    hasher = _Hasher()
    try:
        hasher.feed(value)
    except _Unhashable:
        return ""
    return hasher.hexdigest()


def file_fingerprint(path: str | os.PathLike[str]) -> str:
    """Return a hash of a file's content; "" if there is no such file.

    >>> file_fingerprint("/no/such/file")
    ''
    """
    try:
        if not Path(path).is_file():  # reading a pipe would wait for ever
            return ""
        with Path(path).open("rb") as file:
            return _FILE_PREFIX + hashlib.file_digest(file, "sha256").hexdigest()[:32]
    except (OSError, ValueError):
        return ""


def is_file_content(hashed: str) -> bool:
    """Return whether a fingerprint is the hash of a file's content."""
    return hashed.startswith(_FILE_PREFIX)


def is_changed(before: str, now: str) -> bool:
    """Return whether two fingerprints certainly belong to different values.

    Fingerprints of code can only be compared if the same version of Python made them.

    >>> is_changed("a", "b"), is_changed("", "b"), is_changed("cpython-311:a", "cpython-312:b")
    (True, False, False)
    """
    kinds = [hashed.rpartition(":")[0] for hashed in (before, now)]
    other_python = kinds[0] != kinds[1] and all(
        kind not in ("", _FILE_PREFIX[:-1]) for kind in kinds
    )
    return bool(before and now) and before != now and not other_python


class _Unhashable(Exception):  # noqa: N818 (it is no error)
    """Raised for values that cannot be hashed cheaply."""


class _Hasher:
    """Hashes a value by feeding its parts to SHA-256, one after another."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._n_parts = 0
        self._seen: dict[int, int] = {}  # ids of objects that may contain themselves: number
        self._references: list[Any] = []  # keeps these objects alive, so that no id is used twice
        self._has_code = False

    def hexdigest(self) -> str:
        return (_CODE_PREFIX if self._has_code else "") + self._hash.hexdigest()[:32]

    def feed(self, value: Any) -> None:
        self._n_parts += 1
        if self._n_parts > MAX_PARTS:
            raise _Unhashable
        if value is None or isinstance(value, _PLAIN):
            self._update(type(value).__name__, repr(value))
        elif isinstance(value, int | np.integer):
            self._update("int", str(int(value)))
        elif isinstance(value, float | np.floating):
            self._update("float", float(value).hex())
        elif isinstance(value, os.PathLike):
            self._update("path", os.fspath(value))
        elif isinstance(value, np.ndarray | np.generic):
            if value.dtype.hasobject:
                raise _Unhashable
            self._update("array", f"{value.dtype.str} {value.shape}")
            self._hash.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, types.ModuleType):
            self._update("module", value.__name__)
        elif self._is_new(value):
            self._feed_parts(value)

    def _feed_parts(self, value: Any) -> None:
        """Feed the hash with each part of a value that consists of other values."""
        match value:
            case list() | tuple():
                self._update(type(value).__name__, str(len(value)))
                for part in value:
                    self.feed(part)
            case Mapping():
                self._update("mapping", str(len(value)))
                for key in sorted(value, key=repr):
                    self.feed(key)
                    self.feed(value[key])
            case set() | frozenset():
                self._update("set", str(len(value)))
                for part in sorted(value, key=repr):
                    self.feed(part)
            case functools.partial():
                self._update("partial", "")
                self.feed((value.func, value.args, value.keywords))
            case types.MethodType():
                self.feed((value.__func__, value.__self__))
            case types.FunctionType():
                self._feed_function(value)
            case types.BuiltinFunctionType() if isinstance(value.__self__, types.ModuleType):
                self._update("builtin", f"{value.__module__}.{value.__qualname__}")
            case type():
                self._feed_class(value)
            case _:
                self._feed_object(value)

    def _feed_function(self, function: types.FunctionType) -> None:
        self._update("function", function.__qualname__)
        self.feed((function.__defaults__, function.__kwdefaults__))
        for cell in function.__closure__ or ():
            try:
                self.feed(cell.cell_contents)
            except ValueError:
                self._update("empty", "")
        names = self._feed_code(function.__code__, function.__doc__)
        for name in sorted(names & function.__globals__.keys()):
            used = function.__globals__[name]
            if isinstance(used, functools._lru_cache_wrapper):
                used = used.__wrapped__
            is_setting = isinstance(used, _SETTINGS) or (
                isinstance(used, np.ndarray) and used.nbytes <= MAX_ARRAY_BYTES
            )
            if not is_setting and type(used).__module__ == function.__module__:
                used = type(used)  # what an object holds may be another in each process
            is_own = getattr(used, "__module__", None) == function.__module__
            if is_setting or (is_own and isinstance(used, types.FunctionType | type)):
                self._feed_optional("global", name, used)

    def _feed_optional(self, kind: str, name: str, value: Any) -> None:
        """Feed the hash with a named part; if it cannot be hashed, it alone does not count."""
        before = self._hash.copy(), self._n_parts
        try:
            self._update(kind, name)
            self.feed(value)
        except _Unhashable:
            self._hash, self._n_parts = before

    def _feed_code(self, code: types.CodeType, docstring: str | None) -> set[str]:
        """Feed the hash with bytecode and constants; return the names that the code uses."""
        self._has_code = True
        self._update("code", code.co_name)
        self._hash.update(code.co_code)
        names = set(code.co_names)
        self._update("names", repr((code.co_names, code.co_varnames, code.co_freevars)))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                names |= self._feed_code(constant, None)
            elif docstring is None or constant != docstring:
                self.feed(constant)
        return names

    def _feed_class(self, kind: type) -> None:
        # Stores have the modules of this package by their names before they moved.
        module = kind.__module__.replace("polarbear.running.solvers.", "polarbear.running.")
        self._update("class", f"{module}.{kind.__qualname__}")
        if kind.__module__.partition(".")[0] in ("builtins", "polarbear"):
            return
        for name, part in sorted(vars(kind).items()):
            part = part.__func__ if isinstance(part, staticmethod | classmethod) else part
            part = part.fget if isinstance(part, property) else part
            if isinstance(part, _PARTS) and name not in _IGNORED_ATTRIBUTES:
                self._feed_optional("attribute", name, part)
        for base in kind.__bases__:
            if base.__module__ == kind.__module__:
                self.feed(base)

    def _feed_object(self, value: Any) -> None:
        slots = [vars(kind).get("__slots__") for kind in type(value).__mro__]
        if type(value).__module__ == "builtins" or not (hasattr(value, "__dict__") or any(slots)):
            raise _Unhashable
        attributes = dict(vars(value)) if hasattr(value, "__dict__") else {}
        for names in filter(None, slots):
            for name in [names] if isinstance(names, str) else names:
                if not name.startswith("__") and hasattr(value, name):
                    attributes[name] = getattr(value, name)
        self.feed(type(value))
        self.feed(attributes)

    def _is_new(self, value: Any) -> bool:
        """Return whether an object was not hashed before; if it was, hash its number instead."""
        if id(value) in self._seen:
            self._update("seen", str(self._seen[id(value)]))
            return False
        self._seen[id(value)] = len(self._seen)
        self._references.append(value)
        return True

    def _update(self, kind: str, content: str) -> None:
        data = content.encode(errors="surrogatepass")
        self._hash.update(f"{kind} {len(data)}:".encode() + data)
