"""Rankings to measure with: smooth curves of utilities, and a few of many algorithms."""

import numpy as np

from polarbear.data.positions import compute_positions
from polarbear.data.rankings import Rankings
from polarbear.simulation import simulate_rankings


def rankings(n: int, instances: int, times: int) -> Rankings:
    """All algorithms on all instances; who leads changes over time."""
    phase = np.random.default_rng(1).uniform(0, 2 * np.pi, n)
    utilities = np.sin(3 * np.linspace(0, 1, times)[:, None] + phase)
    return simulate_rankings(utilities, instances, 2)


def some_of_many(n: int, each: int, instances: int) -> Rankings:
    """Rankings of a few of many algorithms, at one time."""
    rng = np.random.default_rng(3)
    strength = rng.normal(size=n)
    who = np.stack([rng.choice(n, each, replace=False) for _ in range(instances)])
    costs = -(strength[who] + rng.gumbel(size=who.shape))
    return Rankings(
        tuple(f"a{k}" for k in range(n)),
        tuple(f"i{k}" for k in range(instances)),
        np.zeros(1),
        compute_positions(costs).reshape(1, -1),
        who.ravel().astype(np.int32),
        np.arange(instances + 1, dtype=np.int64) * each,
        np.arange(instances, dtype=np.int32),
        np.ones(instances),
    )


def meetings(n: int, each: int, instances: int, times: int) -> Rankings:
    """Rankings of a few of many algorithms at several times; what an instance favours persists."""
    rng = np.random.default_rng(3)
    strength = rng.normal(size=n) + 0.7 * np.linspace(-1, 1, times)[:, None] * rng.normal(size=n)
    who = rng.permuted(np.tile(np.arange(n, dtype=np.int32), (instances, 1)), axis=1)[:, :each]
    who = np.sort(who, axis=1)
    luck = 0.8 * rng.gumbel(size=who.shape) + 0.6 * rng.gumbel(size=(times, *who.shape))
    return Rankings(
        tuple(f"a{k}" for k in range(n)),
        tuple(f"i{k}" for k in range(instances)),
        np.arange(1.0, times + 1),
        compute_positions(-(strength[:, who] + luck)).reshape(times, -1),
        who.ravel(),
        np.arange(instances + 1, dtype=np.int64) * each,
        np.arange(instances, dtype=np.int32),
        np.ones(instances),
    )


def orders(found: Rankings, time: int = 0) -> list[list[int]]:
    """Each comparison at a time as a list, best first."""
    ends = zip(found.offset[:-1], found.offset[1:], strict=True)
    return [found.algorithm[a:b][found.position[time, a:b].argsort()].tolist() for a, b in ends]
