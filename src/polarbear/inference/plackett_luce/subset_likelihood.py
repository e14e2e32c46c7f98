"""Choices added up by set, for few algorithms."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polarbear.data.rankings import Rankings
from polarbear.inference.plackett_luce.ordered_rankings import (
    PRECISE_ENOUGH,
    Floats,
    Ints,
    centred,
    exponentials,
    slices,
    sorted_parts,
    subsets,
    tails,
)


@dataclass(frozen=True)
class SetTable:
    """Choices added up by set: cost independent of the number of rankings.

    ``member`` (S, n) says which algorithms are in which set, ``count`` (T, S) how often a set was
    chosen from, ``wins`` (T, n) who was chosen how often from a set of at least two.
    """

    member: Floats
    count: Floats
    wins: Floats

    @classmethod
    def of(cls, rankings: Rankings) -> "SetTable":
        """Add up the choices in rankings of few algorithms."""
        n, n_times = len(rankings.algorithms), len(rankings.times)
        count, wins = np.zeros(n_times << n), np.zeros(n_times * n)
        for part in sorted_parts(rankings):
            bit = np.where(part.known, 1 << part.algorithm, 0)
            tail = tails(bit)  # the set of all from a place on
            t, row, place = np.nonzero(part.opens)
            weight, size = part.weight[row], part.size[t, row, place]
            rest = tail[t, row, place + size]
            group = tail[t, row, place] - rest
            _count_sets(count, n, t, rest, group, size, weight)
            t, row, place = np.nonzero(part.known)
            winner = t * n + part.algorithm[t, row, place]
            wins += np.bincount(winner, part.weight[row], minlength=len(wins))
        count, wins = count.reshape(n_times, 1 << n), wins.reshape(n_times, n)
        single = 1 << np.arange(n)
        wins -= count[:, single]  # to be chosen from oneself alone says nothing
        count[:, single] = 0.0
        used = np.flatnonzero(count.any(axis=0))
        member = (used[:, None] >> np.arange(n) & 1).astype(np.float64)
        return cls(member, count[:, used], wins)

    @property
    def terms(self) -> int:
        """How many logarithms the likelihood has."""
        return self.count.size

    def single(self) -> "SetTable":
        """The same in single precision, if that is enough for the value; for many draws."""
        if self.wins.sum(axis=1).max(initial=0.0) > PRECISE_ENOUGH:
            return self
        parts: list[Any] = [
            part.astype(np.float32) for part in (self.member, self.count, self.wins)
        ]
        return SetTable(*parts)

    def value(self, mu: Floats) -> Floats:
        """Log-likelihood at each time, for mu of shape (T, n) or (draws, T, n)."""
        if mu.ndim > 2:
            return self._chunked(self._values, mu)
        return self._value(mu)

    def gradient(self, mu: Floats) -> Floats:
        """Its gradient: of the shape of mu."""
        if mu.ndim > 2:
            return self._chunked(self._gradient, mu)
        return self._gradient(mu)

    def curvature(self, mu: Floats) -> Floats:
        """Minus its Hessian: shape (T, n, n)."""
        mu, total = self._totals(mu)
        theta, n = np.exp(mu), mu.shape[-1]
        pairs = (self.member[:, :, None] * self.member[:, None, :]).reshape(-1, n * n)
        both = (self.count / total**2 @ pairs).reshape(-1, n, n)
        curvature = -both * theta[:, :, None] * theta[:, None, :]
        curvature[:, range(n), range(n)] += theta * (self.count / total @ self.member)
        return curvature

    def _value(self, mu: Floats) -> Floats:
        mu, total = self._totals(mu)
        chosen = np.sum(self.wins * mu, axis=-1)
        return chosen - np.einsum("ts,...ts->...t", self.count, np.log(total, out=total))

    def _values(self, mu: Floats) -> Floats:
        """The same for many draws, with an array for each set: (draws, T)."""
        n = mu.shape[-1]
        mu, theta = exponentials(mu)
        each = theta.swapaxes(0, 1).reshape(n, -1)  # all times and draws in one row: long loops
        total = np.empty((1 << n, each.shape[1]), dtype=theta.dtype)
        total[0] = 0.0
        for k in range(n):  # the sets with k are those without it, and theta[k] more
            np.add(total[: 1 << k], each[k], out=total[1 << k : 2 << k])
        count, used = self.count, (self.member @ (1 << np.arange(n))).astype(np.intp)
        if 2 * len(used) > len(total):  # a few logarithms in vain cost less than a copy
            total[0] = 1.0
            count = np.zeros((len(count), len(total)), dtype=count.dtype)
            count[:, used] = self.count
        else:
            total = total[used]
        logs = np.log(total, out=total).reshape(-1, len(theta), len(mu))
        lost = (count[:, None, :] @ logs.transpose(1, 0, 2))[:, 0].T
        return np.einsum("tn,dtn->dt", self.wins, mu) - lost

    def _gradient(self, mu: Floats) -> Floats:
        mu, total = self._totals(mu)
        return self.wins - np.exp(mu) * (np.divide(self.count, total, out=total) @ self.member)

    def _chunked(self, function: Callable[[Floats], Floats], mu: Floats) -> Floats:
        """Some draws at a time: bounds memory, and stays in the processor's cache."""
        parts = slices(len(mu), 4 * self.count.size)
        return np.concatenate([function(mu[some]) for some in parts])

    def _totals(self, mu: Floats) -> tuple[Floats, Floats]:
        mu = centred(mu)
        # One flat product: a stack of small ones would be several times slower.
        flat = np.exp(mu).reshape(-1, mu.shape[-1]) @ self.member.T
        return mu, flat.reshape(*mu.shape[:-1], -1)


def _count_sets(
    count: Floats, n: int, time: Ints, rest: Ints, group: Ints, size: Ints, weight: Floats
) -> None:
    """Add to ``count``, by time and set, the sets from which tied groups were chosen."""
    alone = size == 1
    cell = (time[alone] << n) + rest[alone] + group[alone]
    count += np.bincount(cell, weight[alone], minlength=len(count))
    key = ((time[~alone] << n) + rest[~alone] << n) + group[~alone]
    key, same = np.unique(key, return_inverse=True)
    tied = np.bincount(same, weight[~alone], minlength=len(key))
    cell, group = key >> n, key & (1 << n) - 1
    bits = group[:, None] >> np.arange(n) & 1
    for members in np.unique(bits.sum(axis=1)):
        mine = bits.sum(axis=1) == members
        _, algorithm = np.nonzero(bits[mine])
        chosen = subsets(int(members))
        masks = (1 << algorithm.reshape(-1, members)) @ chosen.member.T.astype(np.int64)
        cells = cell[mine][:, None] + masks
        weights = tied[mine][:, None] * chosen.weight
        count += np.bincount(cells.ravel(), weights.ravel(), minlength=len(count))
