"""What was measured, one line of JSON each: a study that was stopped goes on where it was."""

import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np


class Records:
    """Rows in a file, told apart by some of their fields.

    A line is written at once and as a whole. One that a crash has cut short is dropped when the
    file is read, and measured again.
    """

    def __init__(self, path: Path, key: Iterable[str]) -> None:
        self.path, self.key = path, tuple(key)
        self.rows: list[dict[str, Any]] = []
        if path.exists():
            lines = path.read_text().splitlines(keepends=True)
            self.rows = [json.loads(line) for line in lines if line.endswith("}\n")]
            if len(self.rows) < len(lines):
                path.write_text("".join(_line(row) for row in self.rows))

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return any(tuple(row[name] for name in self.key) == key for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(_line(row))
        self.rows.append(row)


def seeded(*names: object) -> np.random.Generator:
    """A generator for a piece of data, by its name: it does not depend on what ran before."""
    return np.random.default_rng([zlib.crc32(repr(name).encode()) for name in names])


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row) + "\n"
