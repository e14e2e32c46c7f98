"""Gaussian random walk prior over time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.priors.base import NUMPY, Algebra, MarkovChain, Warp
from polarbear.priors.hyper import Hyper, LogNormal, check_positive

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RandomWalk:
    """A prior under which utilities are a random walk with variance ``scale**2`` per unit time.

    ``start`` is the standard deviation at the first time.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[0.0, 1.0]] * 5), 30)
    >>> pb.fit(rankings, prior=RandomWalk(start=2.0)).prob_better("a2", "a1")[0] > 0.5
    np.True_
    """

    scale: Hyper = field(default=LogNormal(0.0, 1.0))
    start: float = 1.0
    warp: Warp = "auto"

    def __post_init__(self) -> None:
        check_positive(start=self.start)

    def hypers(self) -> Mapping[str, Hyper]:
        """Return the distribution of ``scale``, the standard deviation of a step over unit time."""
        return {"scale": self.scale}

    def factor(self, times: Floats, hyper: Mapping[str, Any], algebra: Algebra = NUMPY) -> Any:  # noqa: ARG002
        """Return the cumulated steps as a lower triangular square root of the covariance."""
        first = np.eye(1, len(times))[0] * self.start
        step = np.sqrt(np.diff(times, prepend=times[0]))
        return np.tri(len(times)) * (first + hyper["scale"] * step)

    def chain(self, times: Floats, hyper: Mapping[str, float]) -> MarkovChain:
        """Return the random walk as a Markov chain of its values."""
        noise = hyper["scale"] ** 2 * np.diff(times)[:, None, None]
        return MarkovChain(np.array([[self.start**2]]), np.ones_like(noise), noise)
