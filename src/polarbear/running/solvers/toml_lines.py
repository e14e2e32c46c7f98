"""``line_of``: where a TOML file says something.

Python's parser of TOML does not keep lines, but names the line where something is said twice. So
what is looked for is said once more before the place where it may be, and the parser complains.
"""

import re
import tomllib
from collections.abc import Sequence
from typing import Any

LINE = re.compile(r"at line (\d+)")
"""How the parser of TOML says where it stopped."""


def line_of(text: str, path: Sequence[str]) -> int | None:
    r"""The line of a key, or of the innermost table around it that has a line of its own.

    >>> text = 'seed = 1\n[rules]\nalpha = 0.9\nbatch = [\n  8, 64]\n[solvers."a b"]\npython = 2'
    >>> line_of(text, ["rules", "alpha"]), line_of(text, ["rules", "batch"])
    (3, 4)
    >>> line_of(text, ["solvers", "a b", "python"]), line_of(text, ["solvers", "a b"])
    (7, 6)
    >>> line_of(text + '\n[solvers.rules]\nalpha = 2', ["solvers", "rules", "alpha"])
    9
    >>> line_of(text, ["rules", "none"]), line_of(text, ["none"])
    (2, None)
    """
    lines = text.splitlines()
    best, after = None, 0
    for depth, name in enumerate(path):
        ways = [(0, path[: depth + 1])]  # as a name of several parts, or the head of a table
        if _at(lines, after, path[:depth]):
            ways.insert(0, (after, path[depth : depth + 1]))
        for start, parts in ways:
            found = _clash(lines, start, f"{_dotted(parts)} = 0")
            if found > start:
                best = after = _begin(lines, found, name)
                break
    return best


def _at(lines: list[str], after: int, table: Sequence[str]) -> bool:
    """Whether what follows a line belongs to this table itself."""
    mark = "what nobody would write"
    try:
        inside: Any = tomllib.loads("\n".join([*lines[:after], f'"{mark}" = 0']))
    except tomllib.TOMLDecodeError:
        return False
    for name in table:
        inside = inside.get(name) if isinstance(inside, dict) else None
    return isinstance(inside, dict) and mark in inside


def _clash(lines: list[str], after: int, more: str) -> int:
    """The line at which the parser complains if something is said after a line; 0 if nowhere."""
    try:
        tomllib.loads("\n".join([*lines[:after], more, *lines[after:]]))
    except tomllib.TOMLDecodeError as error:
        found = LINE.search(str(error))
        return int(found[1]) - 1 if found else len(lines)
    return 0


def _begin(lines: list[str], last: int, name: str) -> int:
    """Where a statement begins that ends in this line: the parser complains at its end."""
    for k in range(last, 0, -1):
        head = lines[k - 1].lstrip().removeprefix("[")
        if name in head.partition("=")[0]:
            return k
    return last


def _dotted(parts: Sequence[str]) -> str:
    quoted = (part.replace("\\", "\\\\").replace('"', '\\"') for part in parts)
    return ".".join(f'"{part}"' for part in quoted)
