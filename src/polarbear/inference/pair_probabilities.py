"""P(one is ahead of another): in closed form, corrected by what draws know better."""

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


@dataclass(frozen=True, eq=False)
class Mixture(FrozenRecord):
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

    def exceeds(self, row: Ints, column: Ints, margins: Sequence[float] = (0.0,)) -> Floats:
        """P(the utility of row is above that of column by a margin): (margins, T, pairs)."""
        draws, n_times, _ = self.draws.shape
        step = max(1, 2_000_000 // max(1, draws))
        found = np.empty((len(margins), n_times, len(row)))
        some = [slice(k, k + step) for k in range(0, len(row), step)]
        rooms = {size: _Room(size, draws) for size in {len(row[part]) for part in some}}
        with one_thread():
            for t, (at, bent) in enumerate(self._by_time()):
                for part in some:
                    pairs = row[part], column[part]
                    room = rooms[len(pairs[0])]
                    found[:, t, part] = self._at(t, at, bent, *pairs, margins, room)
        return found

    def _by_time(self) -> Iterator[tuple[Singles, Singles | None]]:
        """Draws at each time (n, D), and by how much they were bent."""
        if self.mixture is None or self.mixture.bent.size == 1:
            return zip(iterate_times(self.draws), repeat(None), strict=False)
        return zip(iterate_times(self.draws), iterate_times(self.mixture.bent), strict=True)

    def _at(
        self,
        t: int,
        at: Singles,
        bent: Singles | None,
        row: Ints,
        column: Ints,
        margins: Sequence[float],
        room: "_Room",
    ) -> list[Floats]:
        lead = _leads(at, row, column, room.lead)
        weight = normalised_weights(self.weight, t)
        if self.mixture is None or not self.mixture.holds[t]:
            return [_counted(lead > margin, weight) for margin in margins]
        mean, cov = self.mixture.mean[:, t], self.mixture.covariance[:, t]
        spread = cov[:, row, row] + cov[:, column, column] - 2 * cov[:, row, column]
        spread = np.sqrt(np.maximum(spread, 1e-300))
        twin = lead
        if bent is not None:
            twin = _leads(at - bent, row, column, room.twin)
        found = []
        for margin in margins:
            exact = self.mixture.weight @ ndtr((mean[:, row] - mean[:, column] - margin) / spread)
            # Draws cannot tell less than half of one in so many from never.
            least = 0.5 * np.minimum(np.minimum(exact, 1 - exact), 1 / at.shape[1])
            one = room.above(lead, margin, room.one)
            other = one if twin is lead else room.above(twin, margin, room.other)
            corrected = exact + _correction(weight, one, other, exact)
            found.append(np.clip(corrected, least, 1 - least))
        return found


def _counted(above: NDArray[np.bool_], weight: Floats) -> Floats:
    if np.ptp(weight) == 0:
        return np.count_nonzero(above, axis=1) / len(weight)
    return np.clip(above @ weight, 0.0, 1.0)


class _Room:
    """Arrays that are used again at each time: to get new ones takes longer than to fill them."""

    def __init__(self, pairs: int, draws: int) -> None:
        arrays = [np.empty((pairs, draws), dtype=np.float32) for _ in range(4)]
        self.lead, self.twin, self.one, self.other = arrays
        self.flag = np.empty((pairs, draws), dtype=bool)

    def above(self, lead: Singles, margin: float, out: Singles) -> Singles:
        """Ones where a lead is above a margin, and noughts."""
        np.greater(lead, margin, out=self.flag)
        np.copyto(out, self.flag)
        return out


def _leads(at: Singles, row: Ints, column: Ints, out: Singles) -> Singles:
    for k, (a, b) in enumerate(zip(row.tolist(), column.tolist(), strict=True)):
        np.subtract(at[a], at[b], out=out[k])
    return out


def _correction(weight: Floats, ahead: Singles, twin: Singles, exact: Floats) -> Floats:
    """What weighted draws (pairs, D) add to the exact shares (pairs,) of their Gaussian twins.

    A control variate: how far the twins are off their exact share is taken off the draws, as far as
    the two go together. Then shrunk by its own noise, for in many dimensions a correction can be
    noisier than what it corrects.
    """
    draws = len(weight)
    # Single precision: rounding is far below the noise of draws, and it takes half the time.
    single = np.stack([weight, weight**2, np.full(draws, 1 / draws)], axis=1).astype(np.float32)
    counted, squares = (ahead @ single[:, :2]).T.astype(np.float64)
    weighted_twins, twins = (twin @ single[:, ::2]).T.astype(np.float64)
    both = (np.multiply(ahead, twin, out=ahead) @ single[:, 0]).astype(np.float64)
    # Sums over draws of off^2, off * twin_off and twin_off^2, multiplied out, where off is
    # draws * weight * (ahead - counted) and twin_off is twin - twins: ones and noughts are cheap.
    off = draws**2 * (squares * (1 - 2 * counted) + counted**2 * np.sum(weight**2))
    together = draws * (both - counted * weighted_twins)
    twin_off = draws * twins * (1 - twins)
    share = np.clip(together / np.maximum(twin_off, 1e-300), 0.0, 1.0)
    change = counted - exact - share * (twins - exact)
    noise = np.maximum(off - 2 * share * together + share**2 * twin_off, 0.0) / draws**2
    return change * np.maximum(0.0, 1.0 - noise / np.maximum(change**2, 1e-300))
