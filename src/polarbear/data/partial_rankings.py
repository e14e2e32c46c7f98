"""``PartialRankings``: partial orders of runs, in which some pairs are not ordered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from polarbear.data.names import find_indices
from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class PartialRankings(Rankings):
    """Rankings in which some pairs of runs are not ordered; made by :meth:`Archives.dominance`.

    ``position`` is a set of algorithms: bit k is set if algorithm k is ahead of the entry in its
    comparison; -1 means not known. :func:`fit` sums the likelihood over all orders that agree.
    """

    MAX_ALGORITHMS: ClassVar[int] = 62

    def ahead(self) -> NDArray[np.bool_]:
        """Return whether algorithm a is ahead of b (times, comparisons, a, b).

        >>> import polarbear as pb
        >>> archives = pb.readers.Archives.from_frame(
        ...     {"algorithm": ["a", "b"], "instance": [1, 1], "time": [1, 1], "f": [1, 2],
        ...      "g": [1, 3]}, objectives=("f", "g"), direction="minimize")
        >>> archives.dominance([1]).ahead()[0, 0].tolist()
        [[False, True], [False, False]]
        """
        n = len(self.algorithms)
        comparison = np.repeat(np.arange(len(self.instance)), np.diff(self.offset))
        sets = np.where(self.position == UNKNOWN, 0, self.position).astype(np.int64)
        bits = (sets[:, :, None] >> np.arange(n) & 1).astype(bool)  # (times, entries, ahead)
        result = np.zeros((len(self.times), len(self.instance), n, n), dtype=bool)
        result[:, comparison, :, self.algorithm] = bits.transpose(1, 0, 2)
        return result

    def share_ordered(self) -> NDArray[np.float64]:
        """Return the share of pairs of runs that are ordered at each time."""
        sizes = np.diff(self.offset)
        pairs = float((sizes * (sizes - 1) // 2).sum())
        return self.ahead().sum(axis=(1, 2, 3)) / max(pairs, 1.0)

    def order(self, instance: str, time: float) -> list[list[tuple[str, ...]]]:
        """Return an instance's algorithms in layers, best first, for each of its comparisons.

        An algorithm is in the layer after the last one that has an algorithm ahead of it.
        Algorithms of different layers need not be ordered.
        """
        (wanted,) = find_indices([instance], self.instances, "instance")
        at = self._find_time(time)
        ahead = self.ahead()[at]
        rankings: list[list[tuple[str, ...]]] = []
        for c in np.flatnonzero(self.instance == wanted):
            own = slice(self.offset[c], self.offset[c + 1])
            rest = self.algorithm[own][self.position[at, own] != UNKNOWN].tolist()
            layers: list[tuple[str, ...]] = []
            while rest:
                layer = [b for b in rest if not ahead[c][rest, b].any()]
                layers.append(tuple(self.algorithms[b] for b in layer))
                rest = [b for b in rest if b not in layer]
            rankings.append(layers)
        return rankings

    def win_rate(self, a: str, b: str) -> NDArray[np.float64]:
        """Return the share of comparisons in which ``a`` is ahead; half of those without order.

        ``nan`` at times at which no comparison has both.
        """
        first, second = find_indices([a, b], self.algorithms, "algorithm")
        ahead, known = self.ahead(), self.position != UNKNOWN
        won, lost = ahead[:, :, first, second], ahead[:, :, second, first]
        starts = self.offset[:-1]
        has = [
            np.add.reduceat(known & (self.algorithm == k), starts, axis=1) for k in (first, second)
        ]
        weight = self.weight * (has[0] & has[1])
        with np.errstate(invalid="ignore"):
            return (weight * (0.5 + 0.5 * (won.astype(float) - lost))).sum(1) / weight.sum(1)

    def among(self, algorithms: Collection[str]) -> NoReturn:
        """Raise ``DataError``: filter the archives instead."""
        raise DataError(f"filter the archives before dominance() to compare {list(algorithms)}")
