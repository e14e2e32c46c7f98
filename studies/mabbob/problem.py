"""MA-BBOB instances of ioh, evaluated faster: only the components that have a weight.

``ioh.problem.ManyAffine`` evaluates all 24 functions of BBOB at each point, and on average less
than four of them have a weight. The value is the same (a test compares them).
"""

from math import inf, isfinite, log10
from typing import Any

import ioh
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class ManyAffine:
    """An instance: a function of a point, or of rows of points, in [-5, 5]^d."""

    def __init__(self, instance: int, dimension: int) -> None:
        problems: Any = ioh.problem  # whose stubs lack some classes
        whole = problems.ManyAffine(instance, dimension)
        self.dimension = dimension
        self._parts = []
        given = zip(whole.weights, whole.instances, whole.scale_factors, strict=True)
        for k, (weight, number, scale) in enumerate(given, start=1):
            if weight > 0:
                part = ioh.get_problem(k, number, dimension, ioh.ProblemClass.BBOB)
                shift = np.asarray(part.optimum.x) - np.asarray(whole.optimum.x)
                self._parts.append((part, shift, part.optimum.y, scale, weight))

    def __call__(self, x: Floats) -> float | Floats:
        """The value, of which 0 is the best there can be."""
        if np.ndim(x) == 1:
            return self._evaluate_point(x)
        if not np.isfinite(x).all():  # a search that has gone astray
            return np.inf
        total = 0.0
        for part, shift, best, scale, weight in self._parts:
            value = np.clip(np.asarray(part(x + shift)) - best, 1e-12, 1e20)
            total = total + (np.log10(value) + 8) / scale * weight
        return 10 ** (10 * total - 8)

    def _evaluate_point(self, x: Floats) -> float:
        """The value of a single point, without numpy's functions of arrays, which take longer."""
        if not isfinite(x.dot(x)):  # a search that has gone astray
            return inf
        total = 0.0
        for part, shift, best, scale, weight in self._parts:
            value = min(max(part(x + shift) - best, 1e-12), 1e20)
            total += (log10(value) + 8) / scale * weight
        return 10 ** (10 * total - 8)


def build(name: str, dimension: int) -> ManyAffine:
    """The instance of a number, given as a name."""
    return ManyAffine(int(name), dimension)
