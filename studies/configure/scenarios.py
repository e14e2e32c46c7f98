"""Two scenarios for configurators: small stochastic searches with three parameters each."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

BUDGET = 200
"""The number of evaluations of a run."""


class Parameter(NamedTuple):
    """A number that is configured, between two bounds."""

    name: str
    low: float
    high: float
    log: bool = False
    integer: bool = False


def walk(options: dict[str, float], rng: np.random.Generator, seed: int) -> Iterator[float]:
    """A walk whose steps shrink after failures, on an ellipsoid in three dimensions."""
    place = np.random.default_rng(seed)
    centre, scale = place.uniform(-3, 3, 3), place.uniform(0.5, 3, 3)
    x, step, value = rng.uniform(-5, 5, 3), options["step"], math.inf
    for _ in range(BUDGET):
        far = rng.random() < options["far"]
        trial = x + (5 if far else step) * rng.normal(size=3)
        new = float((scale * (trial - centre) ** 2).sum())
        if new < value:
            x, value = trial, new
        else:
            step *= options["shrink"]
        yield value


def anneal(options: dict[str, float], rng: np.random.Generator, seed: int) -> Iterator[float]:
    """Simulated annealing that divides 40 numbers into two parts with nearly equal sums."""
    numbers = np.random.default_rng(seed).uniform(1, 100, 40)
    signs = rng.choice([-1.0, 1.0], 40)
    total, heat, best = float(signs @ numbers), options["heat"], math.inf
    for _ in range(BUDGET):
        flipped = np.unique(rng.integers(0, 40, int(options["flips"])))
        trial = total - 2 * float(signs[flipped] @ numbers[flipped])
        worse = abs(trial) - abs(total)
        if worse <= 0 or rng.random() < math.exp(-worse / heat):
            signs[flipped] *= -1
            total = trial
        heat = max(heat * options["cooling"], 1e-9)
        best = min(best, abs(total))
        yield best


class Scenario(NamedTuple):
    """What is configured, and the configuration that is known at the start."""

    search: Any
    parameters: tuple[Parameter, ...]
    default: dict[str, float]


SCENARIOS = {
    "walk": Scenario(
        walk,
        (
            Parameter("step", 0.01, 10, log=True),
            Parameter("shrink", 0.8, 1),
            Parameter("far", 0, 0.5),
        ),
        {"step": 1.0, "shrink": 1.0, "far": 0.1},
    ),
    "anneal": Scenario(
        anneal,
        (
            Parameter("heat", 0.01, 1000, log=True),
            Parameter("cooling", 0.8, 1),
            Parameter("flips", 1, 8, integer=True),
        ),
        {"heat": 100.0, "cooling": 0.99, "flips": 4},
    ),
}


def run(scenario: str, options: dict[str, float], instance: int, seed: int) -> float:
    """The final value of a run, which is minimised."""
    rng = np.random.default_rng([seed, instance])
    *_, value = SCENARIOS[scenario].search(options, rng, instance)
    return value
