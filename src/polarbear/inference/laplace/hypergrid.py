"""Numerical integration over one or two hyperparameters on an adaptive grid.

Coordinates are logarithms. The grid lies around the mode along the principal axes of the curvature
there, in steps of one standard deviation. It grows until its boundary carries almost no mass (as
the grid of INLA: Rue, Martino and Chopin 2009, sec. 3.1).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Fit = TypeVar("Fit")
Node = tuple[int, ...]

STEP_SD = 1.0
"""The step of the grid in standard deviations."""

MAX_LOG_DROP = 6.0
"""The grid does not grow beyond points whose log-density is this much below the mode."""

MAX_POINTS = 400

KERNEL_WIDTH = 0.45
"""The standard deviation of the kernel around grid points of hyperparameters, in grid steps."""


class HyperGrid(NamedTuple, Generic[Fit]):
    """Grid points of hyperparameters with normalised weights, and the fit at each point."""

    point: Floats
    weight: Floats
    fits: list[Fit]
    boundary_mass: float  # an upper bound on the share of the mass beyond the grid
    steps: Floats  # (dimension, dimension): the steps from point to point, as columns
    is_boundary: NDArray[np.bool_]  # (G,): whether a neighbour of the point is left out


def build_hypergrid(
    log_density: Callable[[Floats, Fit | None], tuple[float, Fit]], start: Sequence[float]
) -> HyperGrid[Fit]:
    """Build a grid of hyperparameters; ``log_density`` returns a point's log-density and its fit.

    ``log_density`` takes a point and an earlier fit, from which it may start.
    """
    dimension = len(start)
    cache: dict[tuple[float, ...], tuple[float, Fit]] = {}
    latest: list[Fit] = []

    def evaluate(u: Floats) -> float:
        key = _cache_key(u)
        if key not in cache:
            cache[key] = log_density(u, latest[0] if latest else None)
            latest[:] = [cache[key][1]]
        return cache[key][0]

    mode = _find_mode(evaluate, np.array(start, dtype=np.float64))
    steps = STEP_SD * _principal_axes(evaluate, mode)

    def locate(node: Node) -> Floats:
        return mode + steps @ np.array(node)

    moves = [move for move in product((-1, 0, 1), repeat=dimension) if sum(map(abs, move)) == 1]
    top = evaluate(mode)
    nodes, densities, is_complete = _grow(lambda node: evaluate(locate(node)), top, moves)
    density = np.array(densities)
    kept = np.flatnonzero(density > density.max() - MAX_LOG_DROP - 3.0)
    weight = np.zeros(len(nodes))
    weight[kept] = np.exp(density[kept] - density.max())
    weight /= weight.sum()
    outer = density <= top - MAX_LOG_DROP
    points = np.array([locate(node) for node in nodes])
    inside = {nodes[i] for i in kept}
    is_boundary = [any(_neighbour(nodes[i], move) not in inside for move in moves) for i in kept]
    return HyperGrid(
        point=points[kept],
        weight=weight[kept],
        fits=[cache[_cache_key(points[i])][1] for i in kept],
        boundary_mass=float(weight[outer].sum()) if is_complete else 1.0,
        steps=steps,
        is_boundary=np.array(is_boundary),
    )


def _cache_key(u: Floats) -> tuple[float, ...]:
    """Return the coordinates of a point, rounded to 12 digits, as a dictionary key."""
    return tuple(np.round(u, 12))


def _neighbour(node: Node, move: Node) -> Node:
    """Return the sum of a grid node and a move, both given as whole-number coordinates."""
    return tuple(np.add(node, move).tolist())


def _find_mode(evaluate: Callable[[Floats], float], start: Floats) -> Floats:
    """Return the point of the largest log-density, within about 0.1, by the Nelder-Mead method."""
    from scipy.optimize import minimize  # here, because whoever makes runs fits nothing

    simplex = np.vstack([start, start + 0.7 * np.eye(len(start))])
    options = {"xatol": 0.1, "fatol": 0.1, "maxfev": 120, "initial_simplex": simplex}
    return minimize(lambda u: -evaluate(u), start, method="Nelder-Mead", options=options).x


def _grow(
    evaluate: Callable[[Node], float], top: float, moves: Sequence[Node]
) -> tuple[list[Node], list[float], bool]:
    """Explore a grid from its centre; return nodes, log-densities, and whether it is complete.

    The neighbours of a node are visited if its log-density is close to ``top``, that of the mode.
    """
    visited: dict[Node, float] = {}
    queue: list[Node] = [(0,) * len(moves[0])]
    while queue:
        node = queue.pop(0)
        if node in visited:
            continue
        if len(visited) >= MAX_POINTS:
            return list(visited), list(visited.values()), False
        visited[node] = evaluate(node)
        if visited[node] > top - MAX_LOG_DROP:
            queue += [_neighbour(node, move) for move in moves]
    return list(visited), list(visited.values()), True


def _principal_axes(evaluate: Callable[[Floats], float], mode: Floats) -> Floats:
    """Return principal axes of a density at its mode as columns, each one standard deviation long.

    The curvature comes from finite differences. Standard deviations are limited to 0.05 to 1.4.
    """
    dimension, h = len(mode), 0.15
    eye = h * np.eye(dimension)
    top = evaluate(mode)
    curvature = np.empty((dimension, dimension))
    for i in range(dimension):
        curvature[i, i] = -(evaluate(mode + eye[i]) - 2 * top + evaluate(mode - eye[i])) / h**2
        for j in range(i):
            mixed = evaluate(mode + eye[i] + eye[j]) - evaluate(mode + eye[i] - eye[j])
            mixed -= evaluate(mode - eye[i] + eye[j]) - evaluate(mode - eye[i] - eye[j])
            curvature[i, j] = curvature[j, i] = -mixed / (4 * h**2)
    eigenvalue, direction = np.linalg.eigh(curvature)
    return direction / np.sqrt(np.clip(eigenvalue, 0.5, 400.0))


def draw_hyperparameters(
    hyper: Mapping[str, Floats],
    grid_steps: Floats,
    component: NDArray[np.intp],
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """Draw hyperparameters by a smoothed bootstrap over the grid points of the draws.

    A Gaussian kernel is added, and the points are shrunk towards their mean so that the variance
    stays the same (Silverman and Young 1987).
    """
    if not hyper:
        return {}
    point = np.log(np.stack(list(hyper.values()), axis=1))[component]
    mean = point.mean(axis=0)
    steps = np.linalg.solve(grid_steps, (point - mean).T).T
    variance = np.maximum(steps.var(axis=0), 1e-12)
    shrink = np.sqrt(np.maximum(1 - KERNEL_WIDTH**2 / variance, 0.0))
    steps = shrink * steps + KERNEL_WIDTH * rng.standard_normal(steps.shape)
    values = np.exp(mean + steps @ grid_steps.T)
    return dict(zip(hyper, values.T, strict=True))
