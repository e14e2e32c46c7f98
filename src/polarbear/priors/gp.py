"""Gaussian process priors: exact, with inducing points, and in a Hilbert-space basis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.errors import DataError
from polarbear.priors.base import NUMPY, Algebra, MarkovChain, Warp
from polarbear.priors.hyper import Hyper, InverseGamma, LogNormal, check_positive
from polarbear.priors.kernels import (
    BASIS_RULES,
    KernelName,
    kernel_covariance,
    matern_chain,
    spectral_density,
)

Floats = NDArray[np.float64]

MAX_BASIS_FUNCTIONS = 1000


@dataclass(frozen=True)
class _StationaryProcess:
    """A stationary process with amplitude ``scale`` and ``length`` scale, for times in [0, 1].

    The defaults are those of inference in the paper (5.1).
    """

    kernel: KernelName = "matern32"
    scale: Hyper = field(default=LogNormal(0.0, 0.5))
    length: Hyper = field(default=InverseGamma(5.0, 2.0))
    warp: Warp = "auto"

    def __post_init__(self) -> None:
        if self.kernel not in BASIS_RULES:
            raise DataError(f"expected one of {', '.join(BASIS_RULES)}", kernel=self.kernel)

    def hypers(self) -> Mapping[str, Hyper]:
        """Return the distributions of the amplitude ``scale`` and the ``length`` scale."""
        return {"scale": self.scale, "length": self.length}

    def chain(self, times: Floats, hyper: Mapping[str, float]) -> MarkovChain | None:  # noqa: ARG002
        """Return None, because only the exact process can be a Markov chain."""
        return None

    def _covariance(
        self, times: Floats, others: Floats, hyper: Mapping[str, Any], algebra: Algebra
    ) -> Any:
        return kernel_covariance(
            self.kernel, times, others, hyper["scale"], hyper["length"], algebra
        )

    def _covariance_root(self, times: Floats, hyper: Mapping[str, Any], algebra: Algebra) -> Any:
        # The squared exponential is singular up to rounding, so a share of its variance is added.
        jitter = 1e-10 * hyper["scale"] ** 2 * np.eye(len(times))
        return algebra.cholesky(self._covariance(times, times, hyper, algebra) + jitter)


@dataclass(frozen=True)
class GP(_StationaryProcess):
    """A prior under which utilities are an exact Gaussian process over time.

    See section 3.2.2 of the paper.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[0.0, 1.0]] * 5), 30)
    >>> pb.fit(rankings, prior=GP(kernel="matern52")).prob_better("a2", "a1")[0] > 0.5
    np.True_
    """

    def factor(self, times: Floats, hyper: Mapping[str, Any], algebra: Algebra = NUMPY) -> Any:
        """Return the Cholesky factor of the covariance between all times."""
        return self._covariance_root(times, hyper, algebra)

    def chain(self, times: Floats, hyper: Mapping[str, float]) -> MarkovChain | None:
        """Return the process as a Markov chain if its kernel is Matern, else None."""
        return matern_chain(self.kernel, times, hyper["scale"], hyper["length"])


@dataclass(frozen=True)
class SparseGP(_StationaryProcess):
    """A Gaussian process prior approximated by ``inducing`` points at quantiles of the times.

    It is the deterministic training conditional (DTC) approximation.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[0.0, 1.0]] * 5), 30)
    >>> pb.fit(rankings, prior=SparseGP()).prob_better("a2", "a1")[0] > 0.5
    np.True_
    """

    inducing: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(inducing=self.inducing)

    def factor(self, times: Floats, hyper: Mapping[str, Any], algebra: Algebra = NUMPY) -> Any:
        """Return a square root of the covariance over times, through the inducing points.

        It is K_tu L^-T with L L' = K_uu, for times t and inducing points u.
        """
        points = np.quantile(times, np.linspace(0, 1, min(self.inducing, len(times))))
        root = self._covariance_root(points, hyper, algebra)
        return algebra.solve_lower(root, self._covariance(points, times, hyper, algebra)).T


@dataclass(frozen=True)
class HSGP(_StationaryProcess):
    """A Gaussian process prior approximated by Hilbert-space basis functions.

    By default the boundary factor and the number of basis functions follow the rules of
    Riutort-Mayol et al. (2022), for the central 90 % of length scales.

    >>> import polarbear as pb
    >>> rankings = pb.simulation.simulate_rankings(np.array([[0.0, 1.0]] * 5), 30)
    >>> pb.fit(rankings, prior=HSGP()).prob_better("a2", "a1")[0] > 0.5
    np.True_
    """

    number: int | None = None
    boundary: float | None = None

    def factor(self, times: Floats, hyper: Mapping[str, Any], algebra: Algebra = NUMPY) -> Any:
        """Return the basis functions at each time, scaled by the root of the spectral density."""
        half, centred = 0.5, times - 0.5
        boundary, number = self.basis()
        limit = boundary * half
        frequency = np.arange(1.0, number + 1) * (np.pi / (2 * limit))
        basis = np.sin(frequency * (centred[:, None] + limit)) / np.sqrt(limit)
        density = spectral_density(self.kernel, frequency, hyper["scale"], hyper["length"], algebra)
        return basis * density**0.5

    def basis(self) -> tuple[float, int]:
        """Return the boundary factor and the number of basis functions of the approximation."""
        rule, half = BASIS_RULES[self.kernel], 0.5
        short, long = self.length.quantile(0.05), self.length.quantile(0.95)
        boundary = self.boundary or max(1.2, rule.boundary * long / half)
        number = self.number or int(np.ceil(rule.number * boundary * half / short))
        if boundary < 1 or number > MAX_BASIS_FUNCTIONS:
            raise DataError(
                f"length scales from {short:.2g} to {long:.2g} need {number:,} basis functions "
                f"(at most {MAX_BASIS_FUNCTIONS} are allowed) and a boundary factor of "
                f"{boundary:.3g} (at least 1): choose a narrower distribution of the length scale, "
                "or another prior"
            )
        return boundary, number
