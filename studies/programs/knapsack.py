"""Knapsacks with several limits, by chance, as files in the LP format: small, and hard to solve."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def draw(
    rng: np.random.Generator, items: int = 200, limits: int = 8
) -> tuple[Floats, Floats, Floats]:
    """Profits (items), weights (limits, items), capacities (limits); profits go with weights."""
    weight = rng.integers(1, 1000, (limits, items)).astype(float)
    profit = np.rint(weight.mean(axis=0) + 500 * rng.random(items))
    return profit, weight, np.floor(0.5 * weight.sum(axis=1))


def write(path: Path, profit: Floats, weight: Floats, capacity: Floats) -> None:
    """The negative profit is minimised."""
    lines = ["min", " obj: " + _sum(-profit), "st"]
    pairs = zip(weight, capacity, strict=True)
    lines += [f" c{k}: {_sum(row)} <= {limit:.0f}" for k, (row, limit) in enumerate(pairs)]
    lines += ["bin", *(f" x{k}" for k in range(len(profit))), "end"]
    part = path.with_suffix(".part")
    part.write_text("\n".join(lines) + "\n")
    part.replace(path)


def read(path: Path) -> tuple[Floats, Floats, Floats]:
    """Back from a file that :func:`write` has written."""
    rows = [line.split(":", 1)[1] for line in path.read_text().splitlines() if ":" in line]
    objective, *limits = rows
    weight = np.array([_numbers(row.split("<=")[0]) for row in limits])
    return -_numbers(objective), weight, np.array([float(row.split("<=")[1]) for row in limits])


def _sum(row: Floats) -> str:
    return " ".join(f"{value:+.0f} x{k}" for k, value in enumerate(row))


def _numbers(text: str) -> Floats:
    return np.array([float(word) for word in text.split()[::2]])
