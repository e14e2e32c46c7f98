"""What posteriors claimed, counted against what was true."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from polarbear.data.frozen import FrozenRecord
from polarbear.inference.posterior import Posterior

Floats = NDArray[np.float64]

INTERVAL_PROBABILITY = 0.95
"""Of the intervals that are checked."""

AHEAD_EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Bins of P(A ahead of B at a time), of whichever of the two is more likely ahead."""

EVERYWHERE_EDGES = (0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 1.0)
"""Bins of P(A ahead of B at all times)."""


class Estimate(NamedTuple):
    """A share, its standard error between replicates, and of how many cases it is."""

    value: float
    error: float
    cases: float

    def __str__(self) -> str:
        if not self.cases:
            return "-"
        return f"{self.value:.3f}±{self.error:.3f}" if self.error >= 0 else f"{self.value:.3f}"


class ClaimBin(NamedTuple):
    """Claims of about one size: what they claimed in the mean, and how often they were true."""

    low: float
    high: float
    claimed: float
    true: Estimate


@dataclass(frozen=True, eq=False)
class Tally(FrozenRecord):
    """Claims of R posteriors, each from data of its own, counted against the truth.

    What one posterior claims of many pairs and times stands or falls together, so errors are those
    between posteriors.

    Attributes
    ----------
    intervals
        Shape (R, 3): intervals of log-ratios that held the truth, intervals in all, and the sum of
        their standard deviations.
    ahead, everywhere
        Shape (R, bins, 3): claims in each bin of ``AHEAD`` and ``EVERYWHERE``, the sum of the
        probabilities claimed, and how many were true.
    trusted
        Shape (R,): whether the posterior trusted itself.
    """

    intervals: Floats
    ahead: Floats
    everywhere: Floats
    trusted: NDArray[np.bool_]

    @classmethod
    def stacked(cls, parts: Iterable["Tally"]) -> Self:
        """All replicates of several."""
        parts = list(parts)
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def __len__(self) -> int:
        return len(self.trusted)

    @property
    def coverage(self) -> Estimate:
        """How often a 95 % interval of a log-ratio held the truth."""
        return estimate_ratio(self.intervals[:, 0], self.intervals[:, 1])

    @property
    def width(self) -> float:
        """The mean standard deviation of a log-ratio: being right by being vague shows here."""
        return float(self.intervals[:, 2].sum() / max(1.0, self.intervals[:, 1].sum()))

    def curve(self, kind: str = "ahead") -> list[ClaimBin]:
        """Claimed against true, bin by bin, for claims "ahead" at a time or "everywhere"."""
        counts, edges = (
            (self.ahead, AHEAD_EDGES) if kind == "ahead" else (self.everywhere, EVERYWHERE_EDGES)
        )
        return [self._bin(counts, edges, k, k + 1) for k in range(len(edges) - 1)]

    def claims(self, low: float, high: float = 1.0, kind: str = "ahead") -> ClaimBin:
        """Claims with a probability from ``low`` to ``high``, which must be edges of bins."""
        counts, edges = (
            (self.ahead, AHEAD_EDGES) if kind == "ahead" else (self.everywhere, EVERYWHERE_EDGES)
        )
        return self._bin(counts, edges, edges.index(low), edges.index(high))

    def wrong(self, low: float, high: float = 1.0, kind: str = "ahead") -> Estimate:
        """The share of these claims that was wrong."""
        true = self.claims(low, high, kind).true
        return true._replace(value=1 - true.value)

    @staticmethod
    def _bin(counts: Floats, edges: Sequence[float], first: int, last: int) -> ClaimBin:
        asked, claimed, true = counts[:, first:last].sum(axis=1).T
        mean = float(claimed.sum() / asked.sum()) if asked.sum() else np.nan
        return ClaimBin(edges[first], edges[last], mean, estimate_ratio(true, asked))


def tally_claims(
    posterior: Posterior, truth: Floats, asked: NDArray[np.bool_] | None = None
) -> Tally:
    """Count what a posterior claims against true log-utilities (T, n).

    ``asked`` (T, n, n) says whose odds are known well enough to ask whether an interval holds them;
    who is ahead is asked of all.

    >>> import polarbear as pb
    >>> truth = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> tally = tally_claims(pb.fit(pb.simulation.simulate_rankings(truth, 100)), truth)
    >>> tally.coverage.cases, tally.claims(0.99).true.value
    (2.0, 1.0)
    """
    n = truth.shape[1]
    row, column = np.triu_indices(n, 1)
    draws = posterior.utilities
    gap = truth[:, row] - truth[:, column]
    known = np.ones(gap.shape, dtype=bool) if asked is None else asked[:, row, column]
    spread, below = np.zeros(gap.shape), np.zeros(gap.shape)
    for k, (a, b) in enumerate(zip(row, column, strict=True)):
        drawn = draws[:, :, a] - draws[:, :, b]
        below[:, k] = (drawn < gap[:, k]).mean(axis=0)
        spread[:, k] = drawn.std(axis=0)
    held = (below >= 0.5 - INTERVAL_PROBABILITY / 2) & (below <= 0.5 + INTERVAL_PROBABILITY / 2)
    ahead = posterior.better_matrix()
    claimed = ahead[:, row, column]
    surer, right = np.maximum(claimed, 1 - claimed), np.where(claimed >= 0.5, gap, -gap)
    return Tally(
        np.array([[(held & known).sum(), known.sum(), spread[known].sum()]]),
        _count_by_bin(surer, _is_first_ahead(right), AHEAD_EDGES)[None],
        _count_everywhere(posterior, ahead, truth)[None],
        np.array([posterior.diagnostics.trusted]),
    )


def _count_everywhere(posterior: Posterior, ahead: Floats, truth: Floats) -> Floats:
    names = posterior.algorithms
    # To be ahead everywhere is never more likely than to be ahead at the worst time.
    likely = ahead.min(axis=0) >= EVERYWHERE_EDGES[0]
    np.fill_diagonal(likely, False)
    pairs = np.argwhere(likely)
    claimed = [posterior.better_everywhere(names[a], names[b]) for a, b in pairs]
    true = [float(np.all(truth[:, a] > truth[:, b])) for a, b in pairs]
    return _count_by_bin(np.array(claimed), np.array(true), EVERYWHERE_EDGES)


def _is_first_ahead(gap: Floats) -> Floats:
    """Whether the first is ahead; of two that are even, a claim is as right as wrong."""
    return 0.5 * (np.sign(gap) + 1)


def _count_by_bin(claimed: Floats, true: Floats, edges: Sequence[float]) -> Floats:
    """Counts (bins, 3): claims, the sum of what they claimed, how many were true."""
    claimed, true = claimed.ravel(), true.ravel()
    inside = claimed >= edges[0]
    claimed, true = claimed[inside], true[inside]
    place = np.searchsorted(np.array(edges[1:-1]), claimed, side="right")
    parts = [np.bincount(place, w, len(edges) - 1) for w in (np.ones(len(place)), claimed, true)]
    return np.stack(parts, axis=1).astype(np.float64)


def estimate_ratio(part: Floats, whole: Floats) -> Estimate:
    """The share of the sum over replicates, with its standard error between replicates.

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
