"""GP-BBOB: mixtures of BBOB functions whose weights depend on where one is (paper, appendix C).

f(x) = sum_i w_i(x) f_i(x) + y0. Of the 24 functions only the k(x) with the largest logits z(x) have
a weight; logits and k(x) come from Gaussian processes, drawn as random Fourier features.

Left open by the paper, and decided here: coordinates are those of the box [-5, 5]^d, so that the
length scales of the priors are in its units. F_K is continuous, and its quantile is rounded to a
whole number, which gives 4.4 functions on average (3.9 at amplitude 1; MA-BBOB has 3.7). Logits
share frequencies, and are independent given these. Base functions keep their own offsets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ioh
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import lognorm

Floats = NDArray[np.float64]

N = 24
DIMENSION = (240.0, 30.0)
"""Mean and standard deviation, in the paper."""

K_PRIOR = lognorm(s=0.5, scale=np.exp(1.1))
K_RANGE = (2.0, 24.0)
K_UP_TO = K_PRIOR.cdf(np.arange(2, 24) + 0.5) - K_PRIOR.cdf(2.0)
K_UP_TO /= K_PRIOR.cdf(24.0) - K_PRIOR.cdf(2.0)
"""The probability of at most 2, 3, ... 23 functions."""

LIMIT = 5.0


@dataclass(frozen=True)
class Field:
    """Draws of Gaussian processes with an RBF kernel: a function of a point, one value per row.

    ``frequency`` (m, d) has the scale 1 / length, ``phase`` is uniform, ``weight`` (rows, m) normal
    with the amplitude: over all draws the covariance is amplitude^2 exp(-|x - y|^2 / 2 length^2).
    """

    frequency: Floats
    phase: Floats
    weight: Floats

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        dimension: int,
        *,
        rows: int,
        features: int,
        length: float,
        amplitude: float,
    ) -> "Field":
        """One draw."""
        return cls(
            rng.standard_normal((features, dimension)) / length,
            rng.uniform(0, 2 * np.pi, features),
            amplitude * np.sqrt(2 / features) * rng.standard_normal((rows, features)),
        )

    def __call__(self, x: Floats) -> Floats:
        """Its values at a point."""
        return self.weight @ np.cos(self.frequency @ x + self.phase)


@dataclass(frozen=True)
class GPBBOB:
    """An instance: a function of a point in [-5, 5]^d."""

    functions: tuple[Callable[[Floats], float], ...]
    dimension: int
    logits: Field
    sparsity: Field
    temperature: float
    offset: float

    def __call__(self, x: Floats) -> float:
        """The value; only functions with a weight are evaluated. Outside of the box it is inf."""
        if not np.all(np.abs(x) <= LIMIT):  # nan, from a search that has gone astray, is no point
            return np.inf
        chosen, weight = self.weights(x)
        parts = sum(w * self.functions[i](x) for i, w in zip(chosen, weight, strict=True))
        return float(parts + self.offset)

    def weights(self, x: Floats) -> tuple[list[int], list[float]]:
        """Which functions have a weight at a point, and how much: softmax of the largest logits."""
        z = self.logits(x)
        k = self.active(x)
        chosen = np.argpartition(z, N - k)[N - k :]
        odds = np.exp((z[chosen] - z[chosen].max()) / self.temperature)
        return chosen.tolist(), (odds / odds.sum()).tolist()

    def active(self, x: Floats) -> int:
        """How many functions have a weight at a point."""
        return int(k_quantile(float(ndtr(self.sparsity(x)[0]))))


def k_quantile(u: float | Floats) -> NDArray[np.int64]:
    """How many functions are active where the field is at its u-quantile (paper, table of priors).

    >>> k_quantile(np.array([0.0, 0.5, 1.0])).tolist()
    [2, 3, 24]
    """
    return 2 + np.searchsorted(K_UP_TO, u)


def draw(
    rng: np.random.Generator, dimension: tuple[float, float] = DIMENSION, most: int = 320
) -> GPBBOB:
    """An instance by chance, with the paper's priors; ``dimension``: mean, standard deviation."""
    d = int(truncated(lambda: rng.normal(*dimension), 2, most))
    instances = rng.integers(1, 1000, N)
    offset = 1000 * rng.standard_cauchy()
    temperature = rng.lognormal(-0.5, 0.5)
    logits = Field.draw(
        rng,
        d,
        rows=N,
        features=int(rng.integers(32, 129)),
        length=rng.lognormal(2.0, 1.0),
        amplitude=rng.lognormal(0.0, 0.7),
    )
    sparsity = Field.draw(
        rng,
        d,
        rows=1,
        features=int(rng.integers(16, 65)),
        length=rng.lognormal(0.0, 1.0),
        amplitude=rng.lognormal(0.0, 0.7),
    )
    functions: tuple[Any, ...] = tuple(
        ioh.get_problem(k + 1, int(instance), d, ioh.ProblemClass.SBOX)
        for k, instance in enumerate(instances)
    )
    return GPBBOB(functions, d, logits, sparsity, temperature, offset)


def truncated(sample: Callable[[], float], low: float, high: float) -> float:
    """A draw within limits: drawn again, not clipped."""
    while True:
        found = sample()
        if low <= found <= high:
            return found
