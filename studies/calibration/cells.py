"""Cells of the study: what is measured on one kind of data, kept in one small file each.

A file holds for each model the replicates that were measured so far, so a run that was stopped goes
on where it was, and more replicates or models add to what is there.
"""

import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SAVE_EVERY = 60.0
"""Seconds of work that may be lost."""

Arrays = dict[str, NDArray]


class Model(NamedTuple):
    """A prior by its name in ``polarbear.simulation.PRIORS``, and what counts as evidence."""

    prior: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.prior}, {self.evidence}"


@dataclass(frozen=True)
class Cell:
    """One kind of data: ``measure(model, replicate)`` makes data, fits, and says what it saw."""

    part: str
    name: str
    measure: Callable[[Model, int], Mapping[str, NDArray]]
    replicates: Mapping[Model, int]

    def only(self, priors: Collection[str]) -> "Cell":
        """The same with some priors only."""
        some = {m: number for m, number in self.replicates.items() if m.prior in priors}
        return replace(self, replicates=some)

    def path(self, folder: Path) -> Path:
        return folder / "results" / f"{self.part}-{self.name}.npz"


def seeded(*names: object) -> np.random.Generator:
    """A generator for a piece of data, by its name: it does not depend on what ran before."""
    return np.random.default_rng([zlib.crc32(repr(name).encode()) for name in names])


def load(path: Path) -> dict[Model, Arrays]:
    """What was measured so far: arrays by name for each model, replicates first."""
    found: dict[Model, Arrays] = {}
    if path.exists():
        with np.load(path, allow_pickle=False) as file:
            for key in file.files:
                prior, evidence, name = key.split("|")
                found.setdefault(Model(prior, evidence), {})[name] = file[key]
    return found


def save(path: Path, found: Mapping[Model, Arrays]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    flat: dict[str, Any] = {
        "|".join((*model, name)): a for model, one in found.items() for name, a in one.items()
    }
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez_compressed(file, **flat)
    part.replace(path)  # a file is whole or not there


def run(cell: Cell, folder: Path) -> str:
    """Measure what is missing of a cell."""
    path = cell.path(folder)
    found = load(path)
    begin = saved = time.monotonic()
    done = 0
    for model, replicate in _missing(cell, found):
        one = {name: np.asarray(a)[None] for name, a in cell.measure(model, replicate).items()}
        before = found.get(model)
        found[model] = (
            one if before is None else {k: np.concatenate([before[k], one[k]]) for k in one}
        )
        done += 1
        if time.monotonic() - saved > SAVE_EVERY:
            save(path, found)
            saved = time.monotonic()
    if done:
        save(path, found)
    return f"{cell.part} {cell.name}: {done} new in {time.monotonic() - begin:.0f} s"


def _missing(cell: Cell, found: Mapping[Model, Arrays]) -> Iterator[tuple[Model, int]]:
    for model, wanted in cell.replicates.items():
        have = len(next(iter(found[model].values()))) if model in found else 0
        for replicate in range(have, wanted):
            yield model, replicate
