"""Integrate over one or two hyperparameters on a small grid that finds its own place.

Coordinates are logarithms. The grid is laid around the mode along the axes of the curvature there,
in steps of about one standard deviation, and grows until its edge carries almost no mass.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]
Found = TypeVar("Found")

STEP = 1.0
"""The step of the grid in standard deviations."""

DROP = 6.0
"""A point whose log-density lies so much below the best has its neighbours left out."""

MOST_POINTS = 400


class Grid(NamedTuple, Generic[Found]):
    """Points with normalised weights, and what was found at each."""

    point: Floats
    weight: Floats
    found: list[Found]
    edge: float  # the largest share of the mass that may lie beyond the grid
    cell: Floats  # (dimension, dimension): the steps from point to point, as columns
    rim: NDArray[np.bool_]  # which points have a neighbour that was left out


def integrate(
    log_density: Callable[[Floats, Found | None], tuple[float, Found]], start: Sequence[float]
) -> Grid[Found]:
    """Explore a log-density whose evaluation also finds something, warm from another point."""
    dimension = len(start)
    cache: dict[tuple[float, ...], tuple[float, Found]] = {}
    best: list[Found] = []

    def value(u: Floats) -> float:
        key = tuple(np.round(u, 12))
        if key not in cache:
            cache[key] = log_density(u, best[0] if best else None)
            best[:] = [cache[key][1]]
        return cache[key][0]

    begin = np.array(start, dtype=np.float64)
    simplex = np.vstack([begin, begin + 0.7 * np.eye(dimension)])
    options = {"xatol": 0.1, "fatol": 0.1, "maxfev": 120, "initial_simplex": simplex}
    mode = minimize(lambda u: -value(u), begin, method="Nelder-Mead", options=options).x
    axes = _axes(value, mode)
    top = value(mode)
    seen: dict[tuple[int, ...], float] = {}
    waiting = [(0,) * dimension]
    steps = [step for step in product((-1, 0, 1), repeat=dimension) if sum(map(abs, step)) == 1]
    cut = False
    while waiting:
        node = waiting.pop(0)
        if node in seen:
            continue
        if len(seen) >= MOST_POINTS:
            cut = True
            break
        seen[node] = value(mode + STEP * axes @ np.array(node))
        if seen[node] > top - DROP:
            waiting += [tuple(np.add(node, step).tolist()) for step in steps]
    nodes = list(seen)
    density = np.array([seen[node] for node in nodes])
    keep = density > density.max() - DROP - 3.0
    weight = np.exp(density - density.max()) * keep
    weight /= weight.sum()
    points = np.array([mode + STEP * axes @ np.array(node) for node in nodes])
    kept = np.flatnonzero(keep)
    found = [cache[tuple(np.round(points[i], 12))][1] for i in kept]
    edge = 1.0 if cut else float(weight[density <= top - DROP].sum())
    inside = {nodes[i] for i in kept}
    rim = [any(tuple(np.add(nodes[i], step)) not in inside for step in steps) for i in kept]
    return Grid(points[kept], weight[kept], found, edge, STEP * axes, np.array(rim))


def _axes(value: Callable[[Floats], float], mode: Floats) -> Floats:
    """Directions and standard deviations from the curvature at the mode, kept within reason."""
    dimension, h = len(mode), 0.15
    eye = h * np.eye(dimension)
    top = value(mode)
    curvature = np.empty((dimension, dimension))
    for i in range(dimension):
        curvature[i, i] = -(value(mode + eye[i]) - 2 * top + value(mode - eye[i])) / h**2
        for j in range(i):
            mixed = value(mode + eye[i] + eye[j]) - value(mode + eye[i] - eye[j])
            mixed -= value(mode - eye[i] + eye[j]) - value(mode - eye[i] - eye[j])
            curvature[i, j] = curvature[j, i] = -mixed / (4 * h**2)
    scale, direction = np.linalg.eigh(curvature)
    return direction / np.sqrt(np.clip(scale, 0.5, 400.0))
