"""Cells of the study: many races of one kind, kept in one small file each.

An *arm* is a way to race (what is believed, what is asked). All arms of a cell see the same
truths and the same runs. A file holds for each arm the races that were run so far, so a study that
was stopped goes on where it was, and more races or arms add to what is there.
"""

import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAVE_EVERY = 60.0
"""Seconds of work that may be lost."""

Columns = dict[str, NDArray]
Measure = Callable[[int], Mapping[str, Any]]


@dataclass(frozen=True)
class Cell:
    """One kind of race: each arm measures race after race, by their numbers."""

    part: str
    name: str
    arms: Mapping[str, Measure]
    races: Mapping[str, int]

    def only(self, text: str) -> "Cell":
        """The same with those arms that have a text in their names."""
        return replace(self, races={arm: n for arm, n in self.races.items() if text in arm})

    def path(self, folder: Path) -> Path:
        return folder / "results" / f"{self.part}-{self.name}.npz"


def seeded(*names: object) -> np.random.Generator:
    """A generator for a piece of data, by its name: it does not depend on what ran before."""
    return np.random.default_rng([zlib.crc32(repr(name).encode()) for name in names])


def load(path: Path) -> dict[str, Columns]:
    """What was measured so far: columns by name for each arm, races first."""
    found: dict[str, Columns] = {}
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            for key in file.files:
                arm, name = key.split("|")
                found.setdefault(arm, {})[name] = file[key]
    return found


def save(path: Path, found: Mapping[str, Columns]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    flat: dict[str, Any] = {
        f"{arm}|{name}": a for arm, one in found.items() for name, a in one.items()
    }
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez_compressed(file, **flat)
    part.replace(path)  # a file is whole or not there


def run(cell: Cell, folder: Path, most: float = np.inf) -> str:
    """Run the races that are missing of a cell, until those of an arm took ``most`` CPU seconds."""
    path = cell.path(folder)
    found = load(path)
    begin = saved = time.monotonic()
    done = 0
    for arm, number in _missing(cell, found):
        if arm in found and _cpu_seconds(found[arm]) > most:
            continue
        row = {name: _short(value)[None] for name, value in cell.arms[arm](number).items()}
        before = found.get(arm)
        found[arm] = (
            row if before is None else {k: np.concatenate([before[k], row[k]]) for k in row}
        )
        done += 1
        if time.monotonic() - saved > SAVE_EVERY:
            save(path, found)
            saved = time.monotonic()
    if done:
        save(path, found)
    return f"{cell.part} {cell.name}: {done} new in {time.monotonic() - begin:.0f} s"


def _missing(cell: Cell, found: Mapping[str, Columns]) -> Iterator[tuple[str, int]]:
    have = {arm: len(next(iter(one.values()))) for arm, one in found.items()}
    # Race by race: what arms have in common need not be fitted twice (course.Remembering).
    for number in range(max(cell.races.values(), default=0)):
        for arm, wanted in cell.races.items():
            if have.get(arm, 0) <= number < wanted:
                yield arm, number


def _cpu_seconds(races: Columns) -> float:
    return float(races["seconds"].sum()) if "seconds" in races else 0.0


def _short(value: Any) -> NDArray:
    """As few bytes as it takes: single precision, and small whole numbers."""
    found = np.asarray(value)
    return found.astype(np.float32 if found.dtype.kind == "f" else np.int32)
