"""MA-BBOB instances of ioh, evaluated faster: only the components that have a weight.

``ioh.problem.ManyAffine`` evaluates all 24 functions of BBOB at each point, and on average less
than four of them have a weight. The value is the same (a test compares them).
"""

import ioh
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class ManyAffine:
    """An instance: a function of a point, or of rows of points, in [-5, 5]^d."""

    def __init__(self, instance: int, dimension: int) -> None:
        whole = ioh.problem.ManyAffine(instance, dimension)
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
        if not np.isfinite(x).all():  # a search that has gone astray
            return np.inf
        total = 0.0
        is_point = np.ndim(x) == 1  # a single point: numpy's functions of arrays take longer
        for part, shift, best, scale, weight in self._parts:
            value = part(x + shift)
            if is_point:
                value = min(max(value - best, 1e-12), 1e20)
            else:
                value = np.clip(np.asarray(value) - best, 1e-12, 1e20)
            total = total + (np.log10(value) + 8) / scale * weight
        found = 10 ** (10 * total - 8)
        return float(found) if is_point else found
