"""``Tally``: counts of the claims of posteriors, and of how many were true."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polarbear.calibration.population import Truth
from polarbear.data.frozen import FrozenRecord
from polarbear.inference.counted import LEAST_SHARE
from polarbear.inference.posterior import Posterior

Floats = NDArray[np.float64]

INTERVAL_PROBABILITY = 0.95
"""The probability of the credible intervals whose coverage is counted."""

AHEAD_EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Edges of the bins of max(p, 1 - p), where p = P(A is better than B at a time)."""

EVERYWHERE_EDGES = (0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 1.0)
"""Edges of the bins of P(A is better than B at all times)."""


class Estimate(NamedTuple):
    """A share of cases, with its standard error between replicates, and the number of cases."""

    value: float
    error: float
    cases: float

    def __str__(self) -> str:
        if not self.cases:
            return "-"
        return f"{self.value:.3f}±{self.error:.3f}" if self.error >= 0 else f"{self.value:.3f}"


class ClaimBin(NamedTuple):
    """Claims with a probability in one bin: the mean probability, and the share that was true."""

    low: float
    high: float
    claimed: float
    true: Estimate


@dataclass(frozen=True, eq=False)
class Tally(FrozenRecord):
    """Counts of claims of several posteriors, and of how many of the claims are true.

    The claims of one posterior about many pairs and times are dependent, so standard errors are
    computed between posteriors.

    Attributes
    ----------
    intervals
        Shape (R, 3): the number of intervals of log-ratios that held the truth, the number of
        intervals, and the sum of the standard deviations of the log-ratios.
    ahead, everywhere
        Shape (R, bins, 3): for each bin of ``AHEAD_EDGES`` and ``EVERYWHERE_EDGES`` the number of
        claims, the sum of their probabilities, and the number of true ones.
    trusted
        Shape (R,): whether the diagnostics of the posterior found no problem.
    """

    intervals: Floats
    ahead: Floats
    everywhere: Floats
    trusted: NDArray[np.bool_]

    @classmethod
    def concat(cls, parts: Iterable["Tally"]) -> Self:
        """Join several tallies into one, with the posteriors of all of them."""
        parts = list(parts)
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def __len__(self) -> int:
        return len(self.trusted)

    @property
    def coverage(self) -> Estimate:
        """The share of 95 % credible intervals of log-ratios that contain the true value."""
        return estimate_ratio(self.intervals[:, 0], self.intervals[:, 1])

    @property
    def width(self) -> float:
        """The mean posterior standard deviation of a log-ratio of two ratings."""
        return float(self.intervals[:, 2].sum() / max(1.0, self.intervals[:, 1].sum()))

    def curve(self, kind: str = "ahead") -> list[ClaimBin]:
        """Return the reliability curve of claims: "ahead" at one time, or "everywhere"."""
        counts, edges = (
            (self.ahead, AHEAD_EDGES) if kind == "ahead" else (self.everywhere, EVERYWHERE_EDGES)
        )
        return [self._bin(counts, edges, k, k + 1) for k in range(len(edges) - 1)]

    def claims(self, low: float, high: float = 1.0, kind: str = "ahead") -> ClaimBin:
        """Return the claims with probabilities between ``low`` and ``high``, as one bin."""
        counts, edges = (
            (self.ahead, AHEAD_EDGES) if kind == "ahead" else (self.everywhere, EVERYWHERE_EDGES)
        )
        return self._bin(counts, edges, edges.index(low), edges.index(high))

    def wrong(self, low: float, high: float = 1.0, kind: str = "ahead") -> Estimate:
        """Return the share of false claims among those with probabilities between two bounds."""
        true = self.claims(low, high, kind).true
        return true._replace(value=1 - true.value)

    @staticmethod
    def _bin(counts: Floats, edges: Sequence[float], first: int, last: int) -> ClaimBin:
        n_claims, claimed, true = counts[:, first:last].sum(axis=1).T
        mean = float(claimed.sum() / n_claims.sum()) if n_claims.sum() else np.nan
        return ClaimBin(edges[first], edges[last], mean, estimate_ratio(true, n_claims))


def tally_claims(posterior: Posterior, truth: Truth) -> Tally:
    """Count how many claims of a posterior are true.

    Coverage is that of the pairs whose odds are known well enough. Claims that one algorithm is
    better than another are counted for all pairs.

    >>> import polarbear as pb
    >>> truth = Truth(np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> tally = tally_claims(pb.fit(pb.simulation.simulate_rankings(truth.utilities, 100)), truth)
    >>> tally.coverage.cases, tally.claims(0.99).true.value
    (2.0, 1.0)
    """
    utilities, asked = truth
    row, column = np.triu_indices(utilities.shape[1], 1)
    draws = posterior.utilities
    gap = utilities[:, row] - utilities[:, column]
    known = np.ones(gap.shape, dtype=bool) if asked is None else asked[:, row, column]
    spread, below = np.zeros(gap.shape), np.zeros(gap.shape)
    for k, (a, b) in enumerate(zip(row, column, strict=True)):
        drawn = draws[:, :, a] - draws[:, :, b]
        below[:, k] = (drawn < gap[:, k]).mean(axis=0)
        spread[:, k] = drawn.std(axis=0)
    held = (below >= 0.5 - INTERVAL_PROBABILITY / 2) & (below <= 0.5 + INTERVAL_PROBABILITY / 2)
    ahead = posterior.prob_better()
    claimed = ahead[:, row, column]
    likelier, its_gap = np.maximum(claimed, 1 - claimed), np.where(claimed >= 0.5, gap, -gap)
    return Tally(
        np.array([[(held & known).sum(), known.sum(), spread[known].sum()]]),
        _count_by_bin(likelier, _is_first_ahead(its_gap), AHEAD_EDGES)[None],
        _count_everywhere(posterior, ahead, utilities)[None],
        np.array([posterior.diagnostics.trusted]),
    )


def _count_everywhere(posterior: Posterior, ahead: Floats, truth: Floats) -> Floats:
    names = posterior.algorithms
    # P(better at all times) is at most P(better at the worst time): skip pairs below all bins.
    likely = ahead.min(axis=0) >= EVERYWHERE_EDGES[0]
    np.fill_diagonal(likely, False)
    # Of two that never came first at a time, the truth is not known.
    never = truth <= np.log(LEAST_SHARE)
    pairs = [(a, b) for a, b in np.argwhere(likely) if not np.any(never[:, a] & never[:, b])]
    claimed = [posterior.prob_dominates(names[a], names[b]) for a, b in pairs]
    true = [float(np.all(truth[:, a] > truth[:, b])) for a, b in pairs]
    return _count_by_bin(np.array(claimed), np.array(true), EVERYWHERE_EDGES)


def _is_first_ahead(gap: Floats) -> Floats:
    """Return 1 for positive gaps (the first is better), 0 for negative ones, 0.5 for zero."""
    return 0.5 * (np.sign(gap) + 1)


def _count_by_bin(claimed: Floats, true: Floats, edges: Sequence[float]) -> Floats:
    """Return per bin (bins, 3) the number of claims, the sum of probabilities, the true claims."""
    claimed, true = claimed.ravel(), true.ravel()
    inside = claimed >= edges[0]
    claimed, true = claimed[inside], true[inside]
    place = np.searchsorted(np.array(edges[1:-1]), claimed, side="right")
    parts = [np.bincount(place, w, len(edges) - 1) for w in (np.ones(len(place)), claimed, true)]
    return np.stack(parts, axis=1).astype(np.float64)


def estimate_ratio(part: Floats, whole: Floats) -> Estimate:
    """Estimate sum(part) / sum(whole), with its standard error between replicates.

    >>> estimate_ratio(np.array([1.0, 2.0, 3.0]), np.array([4.0, 4.0, 4.0]))
    Estimate(value=0.5, error=0.14433756729740643, cases=12.0)
    """
    cases, replicates = float(whole.sum()), int((whole > 0).sum())
    if not cases:
        return Estimate(np.nan, np.nan, 0.0)
    value = float(part.sum() / cases)
    if replicates < 2:
        return Estimate(value, np.nan, cases)
    off = float(np.sum((part - value * whole) ** 2)) * replicates / (replicates - 1)
    return Estimate(value, float(np.sqrt(off)) / cases, cases)
