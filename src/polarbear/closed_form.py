"""P(one is ahead of another): in closed form, corrected by what draws know better."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from polarbear.data.frozen import Frozen

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Mixture(Frozen):
    """Gaussians of which the draws were made, in closed form at each time.

    Attributes
    ----------
    weight
        Shape (G,): the share of draws from each.
    mean, covariance
        Shapes (G, T, n) and (G, T, n, n), of the log-utilities.
    holds
        Shape (T,): whether the draws at a time still go with those of the Gaussians.
    bent
        Shape (D, T, n), or (1, 1, 1) for not at all: by how much the draws were moved away from
        those of the Gaussians, where the posterior is skewed.
    """

    weight: Floats
    mean: Floats
    covariance: Floats
    holds: NDArray[np.bool_]
    bent: Singles


@dataclass(frozen=True)
class Weighted:
    """Draws (D, T, n) of utilities, their weights (D, T) or (D, 1), and Gaussians, if any."""

    draws: Singles
    weight: Singles
    mixture: Mixture | None

    def exceeds(self, row: Ints, column: Ints, margin: float = 0.0) -> Floats:
        """P(the utility of row is above that of column by a margin), for pairs: (T, pairs)."""
        n_times = self.draws.shape[1]
        step = max(1, 2_000_000 // max(1, len(self.draws)))
        found = np.empty((n_times, len(row)))
        for k in range(0, len(row), step):
            some = slice(k, k + step)
            for t in range(n_times):
                found[t, some] = self._at(t, row[some], column[some], margin)
        return found

    def _at(self, t: int, row: Ints, column: Ints, margin: float) -> Floats:
        at = np.ascontiguousarray(self.draws[:, t].T)  # draws of an algorithm side by side
        ahead = at[row] - at[column] > margin
        weight = self.weight[:, t if self.weight.shape[1] > 1 else 0].astype(np.float64)
        weight /= weight.sum()
        if self.mixture is None or not self.mixture.holds[t]:
            return ahead.mean(axis=1) if np.ptp(weight) == 0 else ahead @ weight
        mean, cov = self.mixture.mean[:, t], self.mixture.covariance[:, t]
        spread = cov[:, row, row] + cov[:, column, column] - 2 * cov[:, row, column]
        score = (mean[:, row] - mean[:, column] - margin) / np.sqrt(np.maximum(spread, 1e-300))
        twin = ahead
        if self.mixture.bent.size > 1:
            at -= self.mixture.bent[:, t].T
            twin = at[row] - at[column] > margin
        exact = self.mixture.weight @ ndtr(score)
        # Draws cannot tell less than half of one in so many from never.
        least = 0.5 * np.minimum(np.minimum(exact, 1 - exact), 1 / at.shape[1])
        corrected = exact + _correction(weight, ahead, twin, exact)
        return np.clip(corrected, least, 1 - least)


def _correction(
    weight: Floats, ahead: NDArray[np.bool_], twin: NDArray[np.bool_], exact: Floats
) -> Floats:
    """What weighted draws (pairs, D) add to the exact shares (pairs,) of their Gaussian twins.

    A control variate: how far the twins are off their exact share is taken off the draws, as far as
    the two go together. Then shrunk by its own noise, for in many dimensions a correction can be
    noisier than what it corrects.
    """
    draws = len(weight)
    each = np.full(draws, 1 / draws)
    counted, squares = (ahead.astype(np.float64) @ np.stack([weight, weight**2], axis=1)).T
    twins, weighted_twins = (twin.astype(np.float64) @ np.stack([each, weight], axis=1)).T
    both = (ahead & twin).astype(np.float64) @ weight
    # Sums over draws of off^2, off * twin_off and twin_off^2, multiplied out, where off is
    # draws * weight * (ahead - counted) and twin_off is twin - twins: ones and noughts are cheap.
    off = draws**2 * (squares * (1 - 2 * counted) + counted**2 * np.sum(weight**2))
    together = draws * (both - counted * weighted_twins)
    twin_off = draws * twins * (1 - twins)
    share = np.clip(together / np.maximum(twin_off, 1e-300), 0.0, 1.0)
    change = counted - exact - share * (twins - exact)
    noise = np.maximum(off - 2 * share * together + share**2 * twin_off, 0.0) / draws**2
    return change * np.maximum(0.0, 1.0 - noise / np.maximum(change**2, 1e-300))
