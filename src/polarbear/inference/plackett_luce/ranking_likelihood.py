"""The Plackett-Luce likelihood evaluated ranking by ranking, for many algorithms.

A place in a ranking is a choice from the algorithms at this place and behind it. The suffix sums of
exp(mu) along a ranking are therefore the normalisers of all of its choices.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, starmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from polarbear.data.rankings import Rankings
from polarbear.inference.plackett_luce.ordered_rankings import (
    MAX_SINGLE_PRECISION_CHOICES,
    Floats,
    Ints,
    SortedRankings,
    TieSubsets,
    bounded_slices,
    exponentiate_utilities,
    find_equal_rows,
    iterate_sorted_rankings,
    subtract_maximum,
    suffix_sums,
    sum_over_pairs,
    tie_subsets,
)

_DRAWS_AT_ONCE, _RANKINGS_AT_ONCE, _CELLS_AT_ONCE = 512, 128, 1 << 17
"""Chunk sizes that fit into the processor's cache."""

_MIN_DRAWS_TOGETHER = 8
"""Draws from which gradients are computed with draws contiguous in memory."""


@dataclass(frozen=True)
class RankingLikelihood:
    """The likelihood evaluated ranking by ranking: its cost is linear in the rankings' length.

    Rankings of one length share a ``_Block``. ``wins`` (T, n) is the weight of choices of each
    algorithm from sets of at least two.
    """

    n_times: int
    n: int
    wins: Floats
    blocks: tuple["_Block", ...]

    @classmethod
    def from_rankings(cls, rankings: Rankings, *, merge: bool = False) -> "RankingLikelihood":
        """Build the likelihood: sort the rankings best first, and group them by length.

        With ``merge``, rankings that choose from the same sets are evaluated once. The instances
        of choices are then not known.
        """
        n, n_times = len(rankings.algorithms), len(rankings.times)
        averaged = rankings.ties == "averaged"
        wins = np.zeros(n_times * n)
        blocks = []
        for part in iterate_sorted_rankings(rankings, merge=merge):
            item = np.where(part.known, part.time[:, None] * n + part.algorithm, n_times * n)
            # The choice of an untied last place is from a single algorithm: its probability is 1.
            n_known = part.known.sum(axis=1, keepdims=True)
            is_last = (part.group_size == 1) & (np.arange(item.shape[1]) == n_known - 1)
            is_choice = (part.is_ordered if averaged else part.group_size == 1) & ~is_last
            weight = np.where(is_choice, part.weight[:, None], 0.0)
            wins += np.bincount(item.ravel(), weight.ravel(), minlength=len(wins) + 1)[:-1]
            is_untied = (part.group_size == 1) & ~is_last
            block = _build_block(part, item, is_untied, averaged=averaged)
            blocks.append(_merge_rows(block) if merge and not block.ties else block)
        return cls(n_times, n, wins.reshape(n_times, n), tuple(blocks))

    @property
    def n_terms(self) -> int:
        """The number of logarithms in one evaluation, a measure of its cost."""
        tied = sum(len(t.row) * len(t.subsets.weight) for block in self.blocks for t in block.ties)
        return tied + sum(block.item.size for block in self.blocks)

    def to_single_precision(self) -> "RankingLikelihood":
        """Return a single-precision copy if it is accurate enough, else the likelihood itself."""
        if self.wins.sum(axis=1).max(initial=0.0) > MAX_SINGLE_PRECISION_CHOICES:
            return self
        wins: Any = self.wins.astype(np.float32)
        return replace(self, wins=wins)

    def value(self, mu: Floats) -> Floats:
        """Return the log-likelihood at each time, for utilities ([draws,] times, algorithms)."""
        if mu.ndim > 2:
            starts = range(0, len(mu), _DRAWS_AT_ONCE)
            return np.concatenate(
                [self._value_of_draws(mu[k : k + _DRAWS_AT_ONCE]) for k in starts]
            )
        return self._value(mu)

    def gradient(self, mu: Floats) -> Floats:
        """Return the gradient of the log-likelihood with respect to utilities, in their shape."""
        if mu.ndim == 2:
            return self._gradient(mu)
        if len(mu) >= _MIN_DRAWS_TOGETHER and not any(block.ties for block in self.blocks):
            starts = range(0, len(mu), _DRAWS_AT_ONCE)
            return np.concatenate(
                [self._gradient_of_draws(mu[k : k + _DRAWS_AT_ONCE]) for k in starts]
            )
        chunks = bounded_slices(len(mu), 4 * self.n_terms)
        return np.concatenate([self._gradient(mu[rows]) for rows in chunks])

    def curvature(self, mu: Floats) -> Floats:
        """Return minus the Hessian of the log-likelihood (times, algorithms, algorithms).

        Its entry for i != j is -theta_i theta_j times the sum of weight / total^2 over the sets
        that contain both. These sums are the ``both`` below.
        """
        mu = subtract_maximum(mu)
        both = np.zeros((self.n_times, self.n, self.n))
        for block in self.blocks:
            theta, suffix = self._suffix_sums(mu, block)
            # An algorithm is in all sets of the places before it, so the rates increase along a
            # ranking, and the sets that contain two algorithms are those of the earlier one.
            rate = np.where(block.known, block.cumulative_rates(theta, suffix, 2), 0.0)
            add_pairs = (
                self._add_pairs_dense if 2 * rate.shape[1] > self.n else self._add_pairs_sparse
            )
            for t, rows in block.iterate_times(self.n_times):
                add_pairs(both[t], block.item[rows], block.known[rows], rate[rows])
            for ties in block.ties:
                self._correct_tied_pairs(both, block, ties, theta, suffix)
        theta = np.exp(mu)
        both *= -theta[:, :, None]
        both *= theta[:, None, :]
        both[:, range(self.n), range(self.n)] += self._expected_wins(mu)
        return both

    def instance_gradients(self, mu: Floats, instance: Ints, n_instances: int) -> Floats:
        """Return each instance's gradient of the log-likelihood (instances, times, algorithms).

        ``instance`` holds the number of the instance of each comparison.
        """
        mu, width = subtract_maximum(mu), self.n_times * self.n + 1
        flat = np.zeros(n_instances * width)
        for block in self.blocks:
            theta, suffix = self._suffix_sums(mu, block)
            won = block.untied_weight.copy() if block.ties else block.untied_weight
            for ties in block.ties:
                won[ties.row[:, None], ties.columns] = ties.weight[:, None]
            residual = won - theta * block.cumulative_rates(theta, suffix, 1)
            cell = instance[block.comparison].astype(np.int64)[:, None] * width + block.item
            flat += np.bincount(cell.ravel(), residual.ravel(), len(flat))
        by_instance = flat.reshape(n_instances, width)[:, :-1]
        return by_instance.reshape(n_instances, self.n_times, self.n)

    def _value(self, mu: Floats) -> Floats:
        mu = subtract_maximum(mu)
        value = np.sum(self.wins * mu, axis=-1)
        for block in self.blocks:
            theta, suffix = self._suffix_sums(mu, block)
            log_total = np.log(np.where(block.untied_weight > 0, suffix[..., :-1], 1.0))
            normaliser = np.einsum("rl,...rl->...r", block.untied_weight, log_total)
            for ties in block.ties:
                mine = ties.weight * (np.log(ties.totals(theta, suffix)) @ ties.subsets.weight)
                np.add.at(normaliser, (..., ties.row), mine)  # pyright: ignore[reportArgumentType]
            value -= np.bincount(block.time, normaliser, minlength=self.n_times)
        return value

    def _value_of_draws(self, mu: Floats) -> Floats:
        """Return the log-likelihood (draws, times) of draws that are contiguous in memory."""
        mu, theta = exponentiate_utilities(mu)
        unknown = np.zeros((1, len(mu)), dtype=theta.dtype)
        theta = np.concatenate([theta.reshape(-1, len(mu)), unknown])
        normaliser = np.zeros((self.n_times, len(mu)))
        n_factors = _max_factors(theta[:-1], self.n)
        for block in self.blocks:
            for t, at_time in block.iterate_times(self.n_times):
                for start in range(at_time.start, at_time.stop, _RANKINGS_AT_ONCE):
                    stop = min(start + _RANKINGS_AT_ONCE, at_time.stop)
                    rows = block.slice_rankings(start, stop)
                    normaliser[t] += rows.log_normaliser(theta, n_factors)
        return np.einsum("tn,dtn->dt", self.wins, mu, dtype=np.float64) - normaliser.T

    def _gradient_of_draws(self, mu: Floats) -> Floats:
        """Return the gradient for draws that are contiguous in memory, without tied groups."""
        n, draws = self.n, len(mu)
        _, theta = exponentiate_utilities(mu)  # (times, algorithms, draws)
        expected = np.zeros_like(theta)
        for block in self.blocks:
            step = max(1, _CELLS_AT_ONCE // (block.item.shape[1] * draws))
            for t, at_time in block.iterate_times(self.n_times):
                own = np.concatenate([theta[t], np.zeros((1, draws), dtype=theta.dtype)])
                for start in range(at_time.start, at_time.stop, step):
                    rows = block.slice_rankings(start, min(start + step, at_time.stop))
                    expected[t] += rows.expected_choices(own, t * n)[:-1]
        return self.wins - expected.transpose(2, 0, 1)

    def _gradient(self, mu: Floats) -> Floats:
        return self.wins - self._expected_wins(subtract_maximum(mu))

    def _add_pairs_dense(
        self, both: Floats, item: Ints, known: NDArray[np.bool_], rate: Floats
    ) -> None:
        """Add for each pair of algorithms the sum over choice sets with both, by matrices."""
        by_algorithm = np.zeros((len(rate), self.n + 1))  # the last column is for unknown ones
        np.put_along_axis(by_algorithm, np.where(known, item % self.n, self.n), rate, axis=1)
        for some in bounded_slices(len(rate), self.n**2):
            rows = by_algorithm[some, :-1]
            both += np.minimum(rows[:, :, None], rows[:, None, :]).sum(axis=0)

    def _add_pairs_sparse(
        self, both: Floats, item: Ints, known: NDArray[np.bool_], rate: Floats
    ) -> None:
        """Add for each pair of algorithms the sum over choice sets with both, pair by pair."""
        length, algorithm = rate.shape[1], item % self.n
        pairs = np.zeros(self.n**2)
        for some in bounded_slices(len(rate), length * (length - 1) // 2):
            rows, rates, is_known = algorithm[some], rate[some], known[some]
            # Rates do not fall along a ranking; unknown algorithms, whose rate is 0, are last.
            cells = [
                (rows[:, k : k + 1] * self.n + rows[:, k + 1 :]).ravel() for k in range(length - 1)
            ]
            smaller = [
                (rates[:, k : k + 1] * is_known[:, k + 1 :]).ravel() for k in range(length - 1)
            ]
            cell, value = np.concatenate(cells), np.concatenate(smaller)
            pairs += np.bincount(cell, value, minlength=len(pairs))
        square = pairs.reshape(self.n, self.n)
        both += square + square.T
        diagonal = np.bincount(algorithm.ravel(), rate.ravel(), minlength=self.n)
        both[range(self.n), range(self.n)] += diagonal

    def _correct_tied_pairs(
        self, both: Floats, block: "_Block", ties: "_Ties", theta: Floats, suffix: Floats
    ) -> None:
        """Correct the pair sums ``both`` for pairs of algorithms that are tied with each other."""
        member, flat = ties.subsets.member, both.reshape(-1)
        for some in bounded_slices(len(ties.row), member.size):
            part = _Ties(ties.row[some], ties.place[some], ties.weight[some], ties.subsets)
            rate = part.inverse_totals(theta, suffix, 2)
            own, shared = rate @ member, sum_over_pairs(rate, ties.subsets)
            excess = shared - np.minimum(own[:, :, None], own[:, None, :])
            self._scatter_pairs(flat, block.item[part.row[:, None], part.columns], excess)

    def _scatter_pairs(self, flat: Floats, item: Ints, pairs: Floats) -> None:
        """Add values of pairs of ranked algorithms to the flat matrices of all times."""
        cell = np.minimum(item, self.n_times * self.n - 1)[:, :, None] * self.n
        cell = cell + (item % self.n)[:, None, :]
        flat += np.bincount(cell.ravel(), pairs.ravel(), minlength=len(flat))

    def _expected_wins(self, mu: Floats) -> Floats:
        """Return the expected number of times that each algorithm is chosen, at each time."""
        width, draws = self.n_times * self.n + 1, mu[..., 0, 0].size
        expected = np.zeros(draws * width)
        for block in self.blocks:
            theta, suffix = self._suffix_sums(mu, block)
            probability = theta * block.cumulative_rates(theta, suffix, 1)
            item = np.arange(draws)[:, None] * width + block.item.ravel()
            expected += np.bincount(item.ravel(), probability.ravel(), len(expected))
        return expected.reshape(draws, width)[:, :-1].reshape(mu.shape)

    def _suffix_sums(self, mu: Floats, block: "_Block") -> tuple[Floats, Floats]:
        """Return exp(utility) at each place of rankings, and the sum from each place to the end."""
        theta = np.zeros((*mu.shape[:-2], self.n_times * self.n + 1))
        theta[..., :-1] = np.exp(mu).reshape(*mu.shape[:-2], -1)
        theta = theta[..., block.item]
        return theta, suffix_sums(theta)


class _Ties(NamedTuple):
    """All tied groups of one size, within rankings of equal length."""

    row: Ints  # the ranking of each group, increasing
    place: Ints  # its first place in the ranking
    weight: Floats
    subsets: TieSubsets

    @property
    def columns(self) -> Ints:
        """The places in the ranking of each tied group's members (groups, size)."""
        return self.place[:, None] + np.arange(self.size)

    @property
    def size(self) -> int:
        """The number of algorithms in each tied group."""
        return self.subsets.member.shape[1]

    def totals(self, theta: Floats, suffix: Floats) -> Floats:
        """Return the sum of exp(utility) over each subset and all algorithms behind its group."""
        mine = theta[..., self.row[:, None], self.columns]
        behind = suffix[..., self.row, self.place + self.size][..., None]
        return mine @ self.subsets.member.T + behind

    def slice_rankings(self, start: int, stop: int) -> "_Ties":
        """Return the tied groups of a range of rankings, with rows counted from its start."""
        some = slice(*np.searchsorted(self.row, [start, stop]))
        return _Ties(self.row[some] - start, self.place[some], self.weight[some], self.subsets)

    def log_normaliser(self, theta: Floats, item: Ints, behind: Floats) -> Floats:
        """Return for each draw the weighted sum of log(total) over subsets; see :meth:`totals`.

        ``theta`` is (items, draws). ``behind`` (groups, draws) is the sum behind each group.
        """
        log_normaliser = np.zeros(theta.shape[1])
        member, share = (array.astype(theta.dtype) for array in self.subsets)
        for some in bounded_slices(len(self.row), member.shape[0] * theta.shape[1]):
            mine = theta[item[self.row[some, None], self.columns[some]]]
            total = member @ mine + behind[some, None]
            log_normaliser += self.weight[some] @ (share @ np.log(total, out=total))
        return log_normaliser

    def inverse_totals(self, theta: Floats, suffix: Floats, power: int) -> Floats:
        """Return weight / total^power for each subset of a tied group; see :meth:`totals`."""
        return self.weight[:, None] * self.subsets.weight / self.totals(theta, suffix) ** power


class _Block(NamedTuple):
    """Rankings of equal length, sorted best first, time by time."""

    time: Ints  # (rankings,): increasing
    item: Ints  # (rankings, length): time * n + algorithm, or T * n for unknown ones
    known: NDArray[np.bool_]
    untied_weight: Floats  # weight of the choice at a place, 0 where it is tied or unknown
    ties: tuple[_Ties, ...]
    weight: Floats  # (rankings,)
    comparison: Ints  # (rankings,): index of the comparison in the rankings

    def iterate_times(self, n_times: int) -> Iterator[tuple[int, slice]]:
        """Yield each time that has rankings, with the slice of its rankings."""
        start = np.searchsorted(self.time, np.arange(n_times + 1)).tolist()
        for t, rows in enumerate(starmap(slice, pairwise(start))):
            if rows.stop > rows.start:
                yield t, rows

    def slice_rankings(self, start: int, stop: int) -> "_Block":
        """Return the same record for a range of these rankings."""
        rows = slice(start, stop)
        ties = [some for ties in self.ties if len((some := ties.slice_rankings(start, stop)).row)]
        return _Block(
            time=self.time[rows],
            item=self.item[rows],
            known=self.known[rows],
            untied_weight=self.untied_weight[rows],
            ties=tuple(ties),
            weight=self.weight[rows],
            comparison=self.comparison[rows],
        )

    def log_normaliser(self, theta: Floats, n_factors: int) -> Floats:
        """Return for each draw the weighted sum over choice sets of log(sum of exp(utility)).

        ``theta`` is (items, draws). Totals are multiplied over ``n_factors`` places before the
        logarithm is taken, because a product costs far less than a logarithm.
        """
        untied = self.untied_weight > 0
        n_untied = np.count_nonzero(untied, axis=0)
        weight = self.weight.astype(theta.dtype)
        total = np.zeros((len(self.item), theta.shape[1]), dtype=theta.dtype)
        product, mine = np.ones_like(total), np.empty_like(total)
        behind = [total[ties.row] for ties in self.ties]
        log_normaliser = np.zeros(theta.shape[1])
        # From the last place to the first, ``total`` is the sum over this place and those behind.
        for place in range(self.item.shape[1] - 1, -1, -1):
            for ties, rest in zip(self.ties, behind, strict=True):
                ends_here = ties.place + ties.size == place + 1
                rest[ends_here] = total[ties.row[ends_here]]
            np.take(theta, self.item[:, place], axis=0, out=mine, mode="clip")
            total += mine
            if n_untied[place] == len(untied):
                product *= total
            elif n_untied[place]:
                product[untied[:, place]] *= total[untied[:, place]]
            if place % n_factors == 0:
                log_normaliser += weight @ np.log(product)
                product[:] = 1.0
        for ties, rest in zip(self.ties, behind, strict=True):
            log_normaliser += ties.log_normaliser(theta, self.item, rest)
        return log_normaliser

    def expected_choices(self, theta: Floats, offset: int) -> Floats:
        """Return the expected number of choices of each algorithm in each draw, without ties.

        ``theta`` (algorithms + 1, draws) has a last row of zeros for unknown algorithms. ``offset``
        is the item of the first algorithm at the time of these rankings.
        """
        item = np.minimum(self.item.T - offset, len(theta) - 1)  # (length, rankings)
        weight = self.untied_weight.T.astype(theta.dtype)[:, :, None]
        own = theta[item]
        rate = own.copy()
        for place in range(len(item) - 2, -1, -1):  # sums over a place and all behind it
            rate[place] += rate[place + 1]
        is_choice = weight > 0
        np.divide(weight, rate, out=rate, where=is_choice)
        rate *= is_choice
        for place in range(1, len(item)):
            rate[place] += rate[place - 1]
        rate *= own
        # A matrix with one entry in each column adds up the places of each algorithm.
        size = item.size
        ones = np.ones(size, dtype=np.float32)
        places = csc_array((ones, item.ravel(), np.arange(size + 1)), shape=(len(theta), size))
        return places @ rate.reshape(size, -1)

    def cumulative_rates(self, theta: Floats, suffix: Floats, power: int) -> Floats:
        """Return at each place the sum of weight / total^power over choice sets with that place."""
        rate = np.zeros(theta.shape)
        has_choice = self.untied_weight > 0
        np.divide(self.untied_weight, suffix[..., :-1] ** power, out=rate, where=has_choice)
        within_groups = []
        for ties in self.ties:
            inverse = ties.inverse_totals(theta, suffix, power)
            # The algorithms behind a group are in all of its sets.
            rate[..., ties.row, ties.place + ties.size - 1] = inverse.sum(axis=-1)
            within_groups.append(inverse @ ties.subsets.member)
        cumulative = np.cumsum(rate, axis=-1)
        before = np.concatenate([np.zeros((*rate.shape[:-1], 1)), cumulative], axis=-1)
        for ties, within in zip(self.ties, within_groups, strict=True):
            base = before[..., ties.row, ties.place][..., None]
            cumulative[..., ties.row[:, None], ties.columns] = base + within
        return cumulative


def _max_factors(theta: Floats, n: int) -> int:
    """Return how many sums of up to n exponentials can be multiplied without over- or underflow."""
    log_limit = 0.9 * np.log(float(np.finfo(theta.dtype).max))
    log_factor = max(np.log(n * float(theta.max())), -np.log(float(theta.min())), 1.0)
    return max(1, int(log_limit / log_factor))


def _build_block(
    part: SortedRankings, item: Ints, is_untied: NDArray[np.bool_], *, averaged: bool
) -> _Block:
    """Return the record of sorted rankings, with tied groups by size if orders are averaged."""
    untied_weight = np.where(is_untied, part.weight[:, None], 0.0)
    ties = []
    for size in np.unique(part.group_size[part.group_size > 1]) if averaged else ():
        row, place = np.nonzero(part.group_size == size)
        ties.append(_Ties(row, place, part.weight[row], tie_subsets(int(size))))
    return _Block(
        time=part.time,
        item=item,
        known=part.known,
        untied_weight=untied_weight,
        ties=tuple(ties),
        weight=part.weight,
        comparison=part.comparison,
    )


def _merge_rows(block: _Block) -> _Block:
    """Merge rankings without tied groups that choose from the same sets; leave out empty ones.

    The order of the last two places does not matter: there is one choice from both.
    """
    item, kept = block.item.copy(), (block.untied_weight > 0).any(axis=1)
    sortable = block.known[:, -1] & (block.untied_weight[:, -2] > 0)
    item[sortable, -2:] = np.sort(item[sortable, -2:], axis=1)
    code = 2 * item[kept] + (block.untied_weight[kept] > 0)
    first, same = find_equal_rows(block.time[kept], code - 2 * item.min(initial=0))
    row = np.flatnonzero(kept)[first]
    weight = np.bincount(same, block.weight[kept], minlength=len(row)).astype(np.float64)
    untied = np.where(block.untied_weight[row] > 0, weight[:, None], 0.0)
    return _Block(
        time=block.time[row],
        item=item[row],
        known=block.known[row],
        untied_weight=untied,
        ties=(),
        weight=weight,
        comparison=block.comparison[row],
    )
