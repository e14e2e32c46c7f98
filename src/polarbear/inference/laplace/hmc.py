"""Hamiltonian Monte Carlo (Neal 2011) for many short chains, in nearly normal coordinates.

The Gaussian approximation provides the starting points and the scales, so that each of many chains
needs only a few moves.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PATH_LENGTH = 1.5
"""The length of a trajectory in standard deviations: about a quarter of an orbit."""


class Target(NamedTuple):
    """A density over variables (draws, blocks, size) in which blocks are independent."""

    log_density: Callable[[Floats], Floats]  # (D, B)
    gradient: Callable[[Floats], Floats]  # (D, B, size)


class Sweep(NamedTuple):
    """The state of all HMC chains after one proposal each, and the mean acceptance probability."""

    noise: Floats
    acceptance: float
    path: float  # the length of each accepted trajectory


def hmc_sweep(
    target: Target,
    noise: Floats,
    step: float,
    rng: np.random.Generator,
    momentum: Floats | None = None,
) -> Sweep:
    """Move every chain by one HMC proposal, accepted or rejected for each block separately.

    Coupled blocks pass a correlated ``momentum``; they then share the uniform variate of the
    Metropolis test.
    """
    uniform = rng.random((len(noise), 1 if momentum is not None else noise.shape[1]))
    if momentum is None:
        momentum = rng.standard_normal(noise.shape)
    before = target.log_density(noise) - 0.5 * np.sum(momentum**2, axis=-1)
    step = step * rng.uniform(0.8, 1.2)  # a random length, so that no trajectory is periodic
    proposal = noise
    # Leapfrog steps: half a step of the momentum at both ends.
    momentum = momentum + 0.5 * step * target.gradient(proposal)
    for k in range(n_steps := max(1, round(PATH_LENGTH / step))):
        proposal = proposal + step * momentum
        kick = (1.0 if k < n_steps - 1 else 0.5) * step
        momentum = momentum + kick * target.gradient(proposal)
    after = target.log_density(proposal) - 0.5 * np.sum(momentum**2, axis=-1)
    probability = np.exp(np.minimum(after - before, 0.0))
    accepted = uniform < probability  # a diverged trajectory has nan, which is rejected
    noise = np.where(accepted[..., None], proposal, noise)
    return Sweep(noise, float(np.nan_to_num(probability).mean()), n_steps * step)


def adjust_step(step: float, acceptance: float, low: float = 0.7, high: float = 0.9) -> float:
    """Return a step size that moves the acceptance rate into the range from low to high."""
    if acceptance < low:
        return 0.75 * step
    return min(1.15 * step, 1.0) if acceptance > high else step
