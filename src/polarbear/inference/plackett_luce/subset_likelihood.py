"""The Plackett-Luce likelihood with choices counted by subset, for few algorithms."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polarbear.data.rankings import Rankings
from polarbear.inference.plackett_luce.ordered_rankings import (
    MAX_SINGLE_PRECISION_CHOICES,
    Floats,
    Ints,
    bounded_slices,
    exponentiate_utilities,
    iterate_sorted_rankings,
    subtract_maximum,
    suffix_sums,
    tie_subsets,
)


@dataclass(frozen=True)
class SubsetLikelihood:
    """The likelihood of rankings as choices from subsets of algorithms, counted by subset.

    ``member`` (S, n) is 1 where an algorithm belongs to a subset. ``count`` (T, S) is the weight of
    choices from each subset, ``wins`` (T, n) that of choices of each algorithm, both from subsets
    of at least two algorithms.
    """

    member: Floats
    count: Floats
    wins: Floats

    @classmethod
    def from_rankings(cls, rankings: Rankings) -> "SubsetLikelihood":
        """Build the likelihood: count how often rankings choose from each subset of algorithms.

        Choices within tied groups count only if ``rankings.ties`` is "averaged".
        """
        n, n_times = len(rankings.algorithms), len(rankings.times)
        count, wins = np.zeros(n_times << n), np.zeros(n_times * n)
        for part in iterate_sorted_rankings(rankings, merge=True):
            bit = np.where(part.known, 1 << part.algorithm.astype(np.int64), 0)
            suffix = suffix_sums(bit)  # the set of all algorithms from a place on, as a bit mask
            counts = part.group_size > 0 if rankings.ties == "averaged" else part.group_size == 1
            row, place = np.nonzero(counts)
            weight, size = part.weight[row], part.group_size[row, place]
            behind = suffix[row, place + size]
            group = suffix[row, place] - behind
            _add_group_choices(count, n, part.time[row], behind, group, size, weight)
            row, place = np.nonzero(part.is_ordered if rankings.ties == "averaged" else counts)
            winner = part.time[row] * n + part.algorithm[row, place]
            wins += np.bincount(winner, part.weight[row], minlength=len(wins))
        count, wins = count.reshape(n_times, 1 << n), wins.reshape(n_times, n)
        singleton = 1 << np.arange(n)
        wins -= count[:, singleton]  # a choice from a single algorithm has probability 1
        count[:, singleton] = 0.0
        used = np.flatnonzero(count.any(axis=0))
        member = (used[:, None] >> np.arange(n) & 1).astype(np.float64)
        return cls(member, count[:, used], wins)

    @property
    def n_terms(self) -> int:
        """The number of logarithms in one evaluation, a measure of its cost."""
        return self.count.size

    def to_single_precision(self) -> "SubsetLikelihood":
        """Return a single-precision copy if it is accurate enough, else the likelihood itself."""
        if self.wins.sum(axis=1).max(initial=0.0) > MAX_SINGLE_PRECISION_CHOICES:
            return self
        arrays: list[Any] = [
            array.astype(np.float32) for array in (self.member, self.count, self.wins)
        ]
        return SubsetLikelihood(*arrays)

    def value(self, mu: Floats) -> Floats:
        """Return the log-likelihood at each time, for utilities ([draws,] times, algorithms)."""
        if mu.ndim > 2:
            return self._in_chunks(self._value_of_draws, mu)
        return self._value(mu)

    def gradient(self, mu: Floats) -> Floats:
        """Return the gradient of the log-likelihood with respect to utilities, in their shape."""
        if mu.ndim > 2:
            return self._in_chunks(self._gradient, mu)
        return self._gradient(mu)

    def curvature(self, mu: Floats) -> Floats:
        """Return minus the Hessian of the log-likelihood (times, algorithms, algorithms)."""
        mu, total = self._subset_totals(mu)
        theta, n = np.exp(mu), mu.shape[-1]
        pairs = (self.member[:, :, None] * self.member[:, None, :]).reshape(-1, n * n)
        both = (self.count / total**2 @ pairs).reshape(-1, n, n)
        curvature = -both * theta[:, :, None] * theta[:, None, :]
        curvature[:, range(n), range(n)] += theta * (self.count / total @ self.member)
        return curvature

    def _value(self, mu: Floats) -> Floats:
        mu, total = self._subset_totals(mu)
        chosen = np.sum(self.wins * mu, axis=-1)
        return chosen - np.einsum("ts,...ts->...t", self.count, np.log(total, out=total))

    def _value_of_draws(self, mu: Floats) -> Floats:
        """Return the log-likelihood (draws, times) of many draws, subset by subset."""
        n = mu.shape[-1]
        mu, theta = exponentiate_utilities(mu)
        theta_rows = theta.swapaxes(0, 1).reshape(n, -1)  # times and draws in one row: long loops
        total = np.empty((1 << n, theta_rows.shape[1]), dtype=theta.dtype)
        total[0] = 0.0
        for k in range(n):  # a subset with algorithm k is one without it plus theta[k]
            np.add(total[: 1 << k], theta_rows[k], out=total[1 << k : 2 << k])
        count, used = self.count, (self.member @ (1 << np.arange(n))).astype(np.intp)
        if 2 * len(used) > len(total):  # superfluous logarithms cost less than a copy
            total[0] = 1.0
            count = np.zeros((len(count), len(total)), dtype=count.dtype)
            count[:, used] = self.count
        else:
            total = total[used]
        logs = np.log(total, out=total).reshape(-1, len(theta), len(mu))
        log_normaliser = (count[:, None, :] @ logs.transpose(1, 0, 2))[:, 0].T
        return np.einsum("tn,dtn->dt", self.wins, mu) - log_normaliser

    def _gradient(self, mu: Floats) -> Floats:
        mu, total = self._subset_totals(mu)
        return self.wins - np.exp(mu) * (np.divide(self.count, total, out=total) @ self.member)

    def _in_chunks(self, function: Callable[[Floats], Floats], mu: Floats) -> Floats:
        """Apply a function to draws in chunks, to bound memory and to use the processor's cache."""
        chunks = bounded_slices(len(mu), 4 * self.count.size)
        return np.concatenate([function(mu[rows]) for rows in chunks])

    def _subset_totals(self, mu: Floats) -> tuple[Floats, Floats]:
        """Return shifted utilities, and the sum of exp(utility) over each subset of algorithms."""
        mu = subtract_maximum(mu)
        # One flat product: a stack of small ones would be several times slower.
        flat = np.exp(mu).reshape(-1, mu.shape[-1]) @ self.member.T
        return mu, flat.reshape(*mu.shape[:-1], -1)


def _add_group_choices(
    count: Floats, n: int, time: Ints, behind: Ints, group: Ints, size: Ints, weight: Floats
) -> None:
    """Add to ``count`` the choices that tied groups make, by time and subset of algorithms.

    ``group`` and ``behind`` are bit masks of a group and of the algorithms ranked behind it.
    """
    untied = size == 1
    cell = (time[untied] << n) + behind[untied] + group[untied]
    count += np.bincount(cell, weight[untied], minlength=len(count))
    # Equal tied groups are summed before they are split into subsets.
    key = ((time[~untied] << n) + behind[~untied] << n) + group[~untied]
    key, same = np.unique(key, return_inverse=True)
    tied_weight = np.bincount(same, weight[~untied], minlength=len(key))
    cell, group = key >> n, key & (1 << n) - 1
    bits = group[:, None] >> np.arange(n) & 1
    for members in np.unique(bits.sum(axis=1)):
        mine = bits.sum(axis=1) == members
        _, algorithm = np.nonzero(bits[mine])
        subsets = tie_subsets(int(members))
        masks = (1 << algorithm.reshape(-1, members)) @ subsets.member.T.astype(np.int64)
        cells = cell[mine][:, None] + masks
        weights = tied_weight[mine][:, None] * subsets.weight
        count += np.bincount(cells.ravel(), weights.ravel(), minlength=len(count))
