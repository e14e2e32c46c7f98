"""Simulated instances whose true utilities are known, by class or by features."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from tools.records import seeded

import polarbear as pb
from polarbear.simulation import rank_costs

N, CLASSES, CLASS_INSTANCES = 4, 6, 60
FEATURES, INSTANCES, HELD_OUT = 3, 150, 10


class Truth(NamedTuple):
    """Data, and questions to the posterior whose true answer is known."""

    rankings: pb.Rankings
    arguments: dict[str, Any]  # of ``pb.fit``
    places: dict[str, list[object]]  # what ``on`` is asked, by kind of question
    utilities: dict[str, np.ndarray]  # (places, N): the truth there


def make_classes(strength: float, seed: int) -> Truth:
    """Draw classes of 3 to 17 of 60 instances; ``strength`` is the sd of utilities between them."""
    rng = seeded("classes", strength, seed)
    overall = np.log(rng.dirichlet(np.ones(N)))
    mu = overall + strength * rng.normal(size=(CLASSES + 1, N))
    share = np.arange(1, CLASSES + 1) / np.arange(1, CLASSES + 1).sum()
    own = np.repeat(np.arange(CLASSES), np.round(share * CLASS_INSTANCES).astype(int))
    rankings = rank_costs(-(mu[own] + rng.gumbel(size=(len(own), N)))[None])
    families = {"instance": rankings.instances, "family": [f"c{k}" for k in own]}
    known: list[object] = [f"c{k}" for k in range(CLASSES)]
    return Truth(
        rankings.with_instance_data(families),
        {"classes": "family"},
        {"a class in the data": known, "a new class": ["another"]},
        {"a class in the data": mu[:-1], "a new class": mu[-1:]},
    )


def make_features(surface: str, strength: float, seed: int) -> Truth:
    """Draw instances with three features, and utilities that are a function of them."""
    rng = seeded(surface, strength, seed)
    x = rng.normal(size=(INSTANCES + HELD_OUT, FEATURES))
    overall = np.log(rng.dirichlet(np.ones(N)))
    mu = overall + strength * SURFACES[surface](x, rng)
    noisy = mu[:INSTANCES] + rng.gumbel(size=(INSTANCES, N))
    rankings = rank_costs(-noisy[None])
    columns = {f"f{k}": column for k, column in enumerate(x.T)}
    table = {name: column[:INSTANCES] for name, column in columns.items()}
    kind = "a new instance"
    return Truth(
        rankings,
        {"features": {"instance": rankings.instances, **table}},
        {kind: [{f"f{k}": value for k, value in enumerate(row)} for row in x[INSTANCES:]]},
        {kind: mu[INSTANCES:]},
    )


def draw_smooth(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw from a Gaussian process of unit variance: squared exponential, and a linear trend."""
    waves = rng.normal(size=(FEATURES, 200)) / np.sqrt(FEATURES)
    cosines = np.cos(x @ waves + rng.uniform(0, 2 * np.pi, 200)) / 10
    smooth = cosines @ rng.normal(size=(200, N))
    trend = x @ rng.normal(size=(FEATURES, N)) / np.sqrt(FEATURES)
    return np.sqrt(2 / 3) * smooth + np.sqrt(1 / 3) * trend


def draw_rough(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a Gaussian process that changes twice as fast as the smooth one."""
    waves = 2 * rng.normal(size=(FEATURES, 200)) / np.sqrt(FEATURES)
    return np.cos(x @ waves + rng.uniform(0, 2 * np.pi, 200)) @ rng.normal(size=(200, N)) / 10


def draw_step(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw two kinds of instances, which a threshold of the first feature tells apart."""
    return np.where(x[:, :1] > 0, 1.0, -1.0) * rng.normal(size=N)


def draw_nothing(x: np.ndarray, _: np.random.Generator) -> np.ndarray:
    """Return 0: features say nothing."""
    return np.zeros((len(x), N))


SURFACES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "smooth": draw_smooth,
    "rough": draw_rough,
    "step": draw_step,
    "nothing": draw_nothing,
}
