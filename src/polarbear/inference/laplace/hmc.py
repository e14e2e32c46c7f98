"""Hamiltonian Monte Carlo for many short chains at once, in coordinates that are nearly normal.

The approximation has already done the work that long chains do otherwise: it says where to start
and how to scale. What is left is to move each of many draws a few times.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PATH = 1.5
"""How far a chain travels in one sweep, in standard deviations: about a quarter of an orbit."""


class Target(NamedTuple):
    """A density over noise (draws, blocks, size), whose blocks do not know of each other."""

    log_density: Callable[[Floats], Floats]  # (D, B)
    slope: Callable[[Floats], Floats]  # (D, B, size)


class Moved(NamedTuple):
    """Where the chains are now, and how often a move was accepted."""

    noise: Floats
    acceptance: float
    path: float  # how far each chain travelled, if it was not refused


def sweep(
    target: Target,
    noise: Floats,
    step: float,
    rng: np.random.Generator,
    momentum: Floats | None = None,
) -> Moved:
    """One move of every chain; each block is accepted or refused by itself.

    Blocks that are to go together have a ``momentum`` that does, and share their luck.
    """
    lucky = rng.random((len(noise), 1 if momentum is not None else noise.shape[1]))
    if momentum is None:
        momentum = rng.standard_normal(noise.shape)
    before = target.log_density(noise) - 0.5 * np.sum(momentum**2, axis=-1)
    step = step * rng.uniform(0.8, 1.2)  # so that no chain returns to where it was, in step
    there = noise
    momentum = momentum + 0.5 * step * target.slope(there)
    for k in range(number := max(1, round(PATH / step))):
        there = there + step * momentum
        momentum = momentum + (1.0 if k < number - 1 else 0.5) * step * target.slope(there)
    after = target.log_density(there) - 0.5 * np.sum(momentum**2, axis=-1)
    chance = np.exp(np.minimum(after - before, 0.0))
    accepted = lucky < chance  # a chain that went astray has the chance nan: no
    noise = np.where(accepted[..., None], there, noise)
    return Moved(noise, float(np.nan_to_num(chance).mean()), number * step)


def tuned(step: float, acceptance: float, low: float = 0.7, high: float = 0.9) -> float:
    """A better step, for the acceptance to come to lie between two limits."""
    if acceptance < low:
        return 0.75 * step
    return min(1.15 * step, 1.0) if acceptance > high else step
