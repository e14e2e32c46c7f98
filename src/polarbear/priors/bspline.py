"""B-spline prior over time with independent Gaussian coefficients."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.priors.base import NUMPY, Algebra, MarkovChain, Warp
from polarbear.priors.hyper import Hyper, LogNormal

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BSpline:
    """A prior under which utilities are splines over time, with knots at quantiles of the times.

    ``number`` is the number of basis functions: by default half the number of times, and at least
    ``degree + 1``.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[0.0, 1.0]] * 5), 30)
    >>> pb.fit(rankings, prior=BSpline()).prob_better("a2", "a1")[0] > 0.5
    np.True_
    """

    number: int | None = None
    degree: int = 3
    scale: Hyper = field(default=LogNormal(0.0, 0.5))
    warp: Warp = "auto"

    def hypers(self) -> Mapping[str, Hyper]:
        """Return the distribution of ``scale``, the standard deviation of the coefficients."""
        return {"scale": self.scale}

    def factor(self, times: Floats, hyper: Mapping[str, Any], algebra: Algebra = NUMPY) -> Any:  # noqa: ARG002
        """Return the spline basis functions at each time, multiplied by the scale."""
        # Here, because it takes a fifth of a second, and most races do without.
        from scipy import interpolate

        degree = min(self.degree, len(times) - 1)
        number = max(self.number or len(times) // 2, degree + 1)
        if len(times) == 1:
            return hyper["scale"] * np.ones((1, 1))
        inner = np.quantile(times, np.linspace(0, 1, number - degree + 1))
        knots = np.concatenate([np.repeat(inner[0], degree), inner, np.repeat(inner[-1], degree)])
        return hyper["scale"] * interpolate.BSpline.design_matrix(times, knots, degree).toarray()

    def chain(self, times: Floats, hyper: Mapping[str, float]) -> MarkovChain | None:  # noqa: ARG002
        """Return None, because splines are not a Markov chain."""
        return None
