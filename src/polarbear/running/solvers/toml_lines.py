"""``find_line``: find the line of a key in a TOML file, for error messages.

Python's TOML parser keeps no line numbers, but its error about a duplicate key has one. So the key
is inserted a second time before the place where it may be, and the line is read from the error.
"""

import re
import tomllib
from collections.abc import Sequence
from typing import Any

ERROR_LINE = re.compile(r"at line (\d+)")
"""Finds the line number in an error message of the TOML parser."""


def find_line(text: str, path: Sequence[str]) -> int | None:
    r"""Return the line number of a key or, if the key is missing, of the innermost table around it.

    >>> text = 'n = 1\n[budget]\ncertainty = 0.9\nbatch = [\n  8, 64]\n[solvers."a b"]\npython = 2'
    >>> find_line(text, ["budget", "certainty"]), find_line(text, ["budget", "batch"])
    (3, 4)
    >>> find_line(text, ["solvers", "a b", "python"]), find_line(text, ["solvers", "a b"])
    (7, 6)
    >>> find_line(text + '\n[solvers.budget]\ncertainty = 2', ["solvers", "budget", "certainty"])
    9
    >>> find_line(text, ["budget", "none"]), find_line(text, ["none"])
    (2, None)
    """
    lines = text.splitlines()
    innermost, after = None, 0
    for depth, name in enumerate(path):
        attempts = [(0, path[: depth + 1])]  # as a dotted key, or the header of a table
        if _is_inside_table(lines, after, path[:depth]):
            attempts.insert(0, (after, path[depth : depth + 1]))
        for start, parts in attempts:
            conflict = _find_conflict(lines, start, f"{_join_key(parts)} = 0")
            if conflict > start:
                innermost = after = _find_statement_start(lines, conflict, name)
                break
    return innermost


def _is_inside_table(lines: list[str], after: int, table: Sequence[str]) -> bool:
    """Return whether a key inserted after a line would belong to the given table."""
    marker = "polarbear marker"
    try:
        inside: Any = tomllib.loads("\n".join([*lines[:after], f'"{marker}" = 0']))
    except tomllib.TOMLDecodeError:
        return False
    for name in table:
        inside = inside.get(name) if isinstance(inside, dict) else None
    return isinstance(inside, dict) and marker in inside


def _find_conflict(lines: list[str], after: int, statement: str) -> int:
    """Return the line of the parser's error if a text is inserted into TOML lines; 0 if none."""
    try:
        tomllib.loads("\n".join([*lines[:after], statement, *lines[after:]]))
    except tomllib.TOMLDecodeError as error:
        match = ERROR_LINE.search(str(error))
        return int(match[1]) - 1 if match else len(lines)
    return 0


def _find_statement_start(lines: list[str], last: int, name: str) -> int:
    """Return the first line of the TOML key or table header that ends in line ``last``."""
    for k in range(last, 0, -1):
        head = lines[k - 1].lstrip().removeprefix("[")
        if name in head.partition("=")[0]:
            return k
    return last


def _join_key(parts: Sequence[str]) -> str:
    """Join the parts of a key to a quoted, dotted TOML key."""
    quoted = (part.replace("\\", "\\\\").replace('"', '\\"') for part in parts)
    return ".".join(f'"{part}"' for part in quoted)
