"""Probabilities that one algorithm is ahead of another, in closed form corrected by draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from polarbear.data.frozen import FrozenRecord
from polarbear.inference.draws import iterate_times, normalised_weights
from polarbear.inference.threads import one_thread

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.intp]

MAX_CELLS = 2_000_000
"""The most pairs times draws compared at once, which bounds memory."""


@dataclass(frozen=True, eq=False)
class Mixture(FrozenRecord):
    """The Gaussian mixture from which the draws were made, in closed form at each time.

    Attributes
    ----------
    weight
        Shape (G,): the share of draws from each.
    mean, covariance
        Shapes (G, T, n) and (G, T, n, n), of the log-utilities.
    holds
        Shape (T,): whether the draws at a time are those of the Gaussians, not moved by HMC.
    bent
        Shape (D, T, n), or (1, 1, 1) for none: the change of the draws by the skew transformation,
        where the posterior is skewed.
    """

    weight: Floats
    mean: Floats
    covariance: Floats
    holds: NDArray[np.bool_]
    bent: Singles


@dataclass(frozen=True)
class PairProbabilities:
    """Computes pair probabilities from weighted draws, and from their Gaussian mixture if known."""

    draws: Singles
    weight: Singles
    mixture: Mixture | None

    def prob_exceeds(self, row: Ints, column: Ints, margins: Sequence[float] = (0.0,)) -> Floats:
        """Return P(utility of row > utility of column + margin) (margins, times, pairs)."""
        draws, n_times, _ = self.draws.shape
        probability = np.empty((len(margins), n_times, len(row)))
        if self.mixture is not None and self._is_gaussian(self.mixture):
            step = max(1, MAX_CELLS // max(1, len(row) * len(self.mixture.weight)))
            for t in range(0, n_times, step):
                some = slice(t, t + step)
                probability[:, some] = self._prob_of_mixture(
                    self.mixture, some, row, column, margins
                )
            least = 0.5 * np.minimum(np.minimum(probability, 1 - probability), 1 / draws)
            return np.clip(probability, least, 1 - least)
        step = max(1, MAX_CELLS // max(1, draws))
        chunks = [slice(k, k + step) for k in range(0, len(row), step)]
        buffers = {size: _Buffers(size, draws) for size in {len(row[chunk]) for chunk in chunks}}
        previous = None
        with one_thread():
            for t, (at_time, skew_shift) in enumerate(self._iterate_times()):
                if previous is not None and np.array_equal(at_time, previous):
                    probability[:, t] = probability[:, t - 1]  # rankings have not changed
                    continue
                previous = at_time
                for chunk in chunks:
                    pairs = row[chunk], column[chunk]
                    buffer = buffers[len(pairs[0])]
                    probability[:, t, chunk] = self._prob_at_time(
                        t, at_time, skew_shift, *pairs, margins, buffer
                    )
        return probability

    def _is_gaussian(self, mixture: Mixture) -> bool:
        """Return whether draws of equal weight follow the mixture, so that they correct nothing."""
        return np.ptp(self.weight) == 0 and mixture.bent.size == 1 and bool(mixture.holds.all())

    @staticmethod
    def _prob_of_mixture(
        mixture: Mixture, t: int | slice, row: Ints, column: Ints, margins: Sequence[float]
    ) -> list[Floats]:
        """Return for each margin the probability of each pair by the mixture, at some times."""
        mean, cov = mixture.mean[:, t], mixture.covariance[:, t]
        variance = cov[..., row, row] + cov[..., column, column] - 2 * cov[..., row, column]
        sd = np.sqrt(np.maximum(variance, 1e-300))
        lead = mean[..., row] - mean[..., column]
        return [np.einsum("g,g...->...", mixture.weight, ndtr((lead - m) / sd)) for m in margins]

    def _iterate_times(self) -> Iterator[tuple[Singles, Singles | None]]:
        """Yield at each time the draws (algorithms, draws), and their shifts due to skewness."""
        if self.mixture is None or self.mixture.bent.size == 1:
            return zip(iterate_times(self.draws), repeat(None), strict=False)
        return zip(iterate_times(self.draws), iterate_times(self.mixture.bent), strict=True)

    def _prob_at_time(
        self,
        t: int,
        at_time: Singles,
        skew_shift: Singles | None,
        row: Ints,
        column: Ints,
        margins: Sequence[float],
        buffer: "_Buffers",
    ) -> list[Floats]:
        """Return for each margin the probabilities that a pair's lead exceeds it, at one time."""
        lead = _fill_leads(at_time, row, column, buffer.lead)
        weight = normalised_weights(self.weight, t)
        if self.mixture is None or not self.mixture.holds[t]:
            return [_weighted_share(lead > margin, weight) for margin in margins]
        gaussian_lead = lead
        if skew_shift is not None:
            gaussian_lead = _fill_leads(at_time - skew_shift, row, column, buffer.gaussian_lead)
        probabilities = []
        closed_form = self._prob_of_mixture(self.mixture, t, row, column, margins)
        for margin, exact in zip(margins, closed_form, strict=True):
            # D draws cannot resolve probabilities below half of 1 / D.
            least = 0.5 * np.minimum(np.minimum(exact, 1 - exact), 1 / at_time.shape[1])
            above = buffer.indicate_above(lead, margin, buffer.above)
            gaussian_above = above
            if gaussian_lead is not lead:
                gaussian_above = buffer.indicate_above(gaussian_lead, margin, buffer.gaussian_above)
            corrected = exact + _control_variate_correction(weight, above, gaussian_above, exact)
            probabilities.append(np.clip(corrected, least, 1 - least))
        return probabilities


def _weighted_share(above: NDArray[np.bool_], weight: Floats) -> Floats:
    """Return for each pair the weighted share of draws in which ``above`` is true."""
    if np.ptp(weight) == 0:
        return np.count_nonzero(above, axis=1) / len(weight)
    return np.clip(above @ weight, 0.0, 1.0)


class _Buffers:
    """Arrays reused at each time, because allocating them takes longer than filling them."""

    def __init__(self, pairs: int, draws: int) -> None:
        arrays = [np.empty((pairs, draws), dtype=np.float32) for _ in range(4)]
        self.lead, self.gaussian_lead, self.above, self.gaussian_above = arrays
        self.flag = np.empty((pairs, draws), dtype=bool)

    def indicate_above(self, lead: Singles, margin: float, out: Singles) -> Singles:
        """Fill ``out`` with 1 where a lead exceeds the margin, else with 0."""
        np.greater(lead, margin, out=self.flag)
        np.copyto(out, self.flag)
        return out


def _fill_leads(at_time: Singles, row: Ints, column: Ints, out: Singles) -> Singles:
    """Fill ``out`` (pairs, draws) with the utility of row minus that of column, in each draw."""
    for k, (a, b) in enumerate(zip(row.tolist(), column.tolist(), strict=True)):
        np.subtract(at_time[a], at_time[b], out=out[k])
    return out


def _control_variate_correction(
    weight: Floats, ahead: Singles, gaussian: Singles, exact: Floats
) -> Floats:
    """Return the error of the Gaussian probability of each pair, estimated by control variates.

    ``ahead`` and ``gaussian`` (pairs, D) are 1 where a draw, or its Gaussian counterpart, is ahead.
    With weighted share a of the draws, plain share g of the counterparts and exact probability p,
    the control variate estimate of the difference is a - p - beta (g - p), with the regression
    coefficient beta within [0, 1]. It is shrunk by its own variance, as in many dimensions a
    correction can be noisier than the error it corrects.
    """
    draws = len(weight)
    # Single precision: rounding is far below the noise of draws, and it takes half the time.
    columns = np.stack([weight, weight**2, np.full(draws, 1 / draws)], axis=1).astype(np.float32)
    share, squares = (ahead @ columns[:, :2]).T.astype(np.float64)
    weighted_gaussian, gaussian_share = (gaussian @ columns[:, ::2]).T.astype(np.float64)
    both = (np.multiply(ahead, gaussian, out=ahead) @ columns[:, 0]).astype(np.float64)
    # Sums of squares and products over draws of u = draws * weight * (ahead - share) and
    # v = gaussian - gaussian_share, expanded, because products with 0 and 1 are cheap.
    sum_uu = draws**2 * (squares * (1 - 2 * share) + share**2 * np.sum(weight**2))
    sum_uv = draws * (both - share * weighted_gaussian)
    sum_vv = draws * gaussian_share * (1 - gaussian_share)
    beta = np.clip(sum_uv / np.maximum(sum_vv, 1e-300), 0.0, 1.0)
    change = share - exact - beta * (gaussian_share - exact)
    variance = np.maximum(sum_uu - 2 * beta * sum_uv + beta**2 * sum_vv, 0.0) / draws**2
    return change * np.maximum(0.0, 1.0 - variance / np.maximum(change**2, 1e-300))
