"""Parser of the ``.info`` index files of COCO and of IOHprofiler before 0.3.3.

A block is a line of ``key = value`` pairs, comment lines that start with ``%``, and a line with a
data file and its runs: ``data_f1/f1_DIM2.dat, 1:195|1.9e-07, 2:180|3.9e-13`` (instance, number of
evaluations, final value). For several objectives the line also has the function:
``function = 1, dim = 2, f01_d02_hyp.dat, 1:40|6.5e+01``, and the file is in the stated folder.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from polarbear.errors import DataError

_PAIR = re.compile(r"\b(\w++)\s*+=\s*(?:'([^']*)'|\"([^\"]*)\"|([^,]*))")
_FUNCTION = re.compile(r"\s*function\s*=\s*(\d+)\s*,\s*dim\s*=\s*(\d+)\s*,\s*")
_RUN = re.compile(r"(-?[0-9]{1,18})(?::([0-9]{1,18})(?:\|.*)?)?")


MAX_LINE_CHARACTERS = 1_000_000


class ListedRun(NamedTuple):
    """A run in a COCO index: its instance, and its number of evaluations if stated."""

    instance: str
    evaluations: float | None


class Block(NamedTuple):
    """A data file as a COCO index lists it: its name, its attributes and its runs."""

    about: dict[str, str]
    file: str
    runs: list[ListedRun]
    line: int

    def need(self, key: str) -> str:
        """Return an attribute of a data file from the index; raise ``DataError`` if missing."""
        if key not in self.about:
            raise DataError(
                f"line {self.line}: this data file has no attribute {key!r}; add it to the nearest "
                "line of attributes above"
            )
        return self.about[key]


def parse_blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Yield the data files that a COCO index lists, each with its attributes and runs."""
    about: dict[str, str] = {}
    for i, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("%"):
            continue
        if len(line) > MAX_LINE_CHARACTERS:
            raise DataError(f"line {i}: longer than {MAX_LINE_CHARACTERS:,} characters")
        if function := _FUNCTION.match(line):
            about |= {"funcId": function[1], "DIM": function[2]}
            line = f"{about.get('folder', '.')}/{line[function.end() :]}"
        elif re.match(r"\s*\w+\s*=", line):
            about = {key: "".join(values).strip() for key, *values in _PAIR.findall(line)}
            continue
        file, runs = "", []
        for token in map(str.strip, line.split(",")):
            run = _RUN.fullmatch(token)
            if run and file:
                runs.append(ListedRun(run[1], float(run[2]) if run[2] else None))
            elif run or not token:
                raise DataError(f"line {i}: expected the name of a data file, got {token[:40]!r}")
            else:
                if file:
                    yield Block({**about}, file, runs, i)
                file, runs = token, []
        yield Block({**about}, file, runs, i)
