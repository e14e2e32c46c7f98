"""The data on which the fast engine is compared with long NUTS."""

import numpy as np

from polarbear.data.rankings import Rankings
from polarbear.simulation import simulate_rankings


def _curves(n: int, times: int, seed: int) -> np.ndarray:
    """Utilities that move smoothly and cross."""
    phase = np.random.default_rng(seed).uniform(0, 2 * np.pi, n)
    return np.sin(3 * np.linspace(0, 1, times)[:, None] + phase)


def middle() -> Rankings:
    """Five algorithms, 30 instances, 20 times."""
    return simulate_rankings(_curves(5, 20, 1), 30, np.random.default_rng(2))


def sweep() -> Rankings:
    """Five algorithms, 8 instances, 20 times; the first always wins."""
    mu = _curves(5, 20, 3)
    mu[:, 0] = 100.0
    return simulate_rankings(mu, 8, np.random.default_rng(4))


def large() -> Rankings:
    """Ten algorithms, 100 instances, 50 times."""
    return simulate_rankings(_curves(10, 50, 5), 100, np.random.default_rng(6))


SCENARIOS = {"middle": middle, "sweep": sweep, "large": large}
