"""Choices ranking by ranking, for many algorithms."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.inference.plackett_luce.ordered_rankings import (
    PRECISE_ENOUGH,
    Floats,
    Ints,
    Subsets,
    centred,
    exponentials,
    slices,
    sorted_parts,
    subsets,
    tails,
)

_DRAWS, _RANKINGS = 512, 128
"""The number worked on at a time: they stay in the processor's cache."""


@dataclass(frozen=True)
class Orders:
    """Choices ranking by ranking: cost linear in the length of the rankings.

    Rankings of one length lie together in a ``_Block``; ``wins`` as in :class:`SetTable`, except
    that the last of a ranking is counted as chosen from itself alone.
    """

    n_times: int
    n: int
    wins: Floats
    blocks: tuple["_Block", ...]

    @classmethod
    def of(cls, rankings: Rankings) -> "Orders":
        """Sort the rankings, of any number of algorithms."""
        n, n_times = len(rankings.algorithms), len(rankings.times)
        wins = np.zeros(n_times * n)
        blocks = []
        for part in sorted_parts(rankings):
            times = np.arange(n_times)[:, None, None]
            item = np.where(part.known, times * n + part.algorithm, n_times * n)
            weight = np.where(part.known, part.weight[None, :, None], 0.0)
            wins += np.bincount(item.ravel(), weight.ravel(), minlength=len(wins) + 1)[:-1]
            length = part.known.shape[-1]
            flat = (-1, length)
            block = _block(
                item.reshape(flat),
                part.known.reshape(flat),
                part.opens.reshape(flat),
                part.size.reshape(flat),
                np.tile(part.weight, n_times),
                np.tile(part.comparison, n_times),
            )
            blocks.append(block)
        return cls(n_times, n, wins.reshape(n_times, n), tuple(blocks))

    @property
    def terms(self) -> int:
        """How many logarithms the likelihood has."""
        tied = sum(len(t.row) * len(t.subsets.weight) for block in self.blocks for t in block.ties)
        return tied + sum(block.item.size for block in self.blocks)

    def single(self) -> "Orders":
        """The same in single precision, if that is enough for the value; for many draws."""
        if self.wins.sum(axis=1).max(initial=0.0) > PRECISE_ENOUGH:
            return self
        wins: Any = self.wins.astype(np.float32)
        return replace(self, wins=wins)

    def value(self, mu: Floats) -> Floats:
        """Log-likelihood at each time, for mu of shape (T, n) or (draws, T, n)."""
        if mu.ndim > 2:
            parts = range(0, len(mu), _DRAWS)
            return np.concatenate([self._values(mu[k : k + _DRAWS]) for k in parts])
        return self._value(mu)

    def gradient(self, mu: Floats) -> Floats:
        """Its gradient: of the shape of mu."""
        if mu.ndim > 2:
            return np.concatenate([self._gradient(mu[some]) for some in self._some(len(mu))])
        return self._gradient(mu)

    def curvature(self, mu: Floats) -> Floats:
        """Minus its Hessian: shape (T, n, n)."""
        mu = centred(mu)
        both = np.zeros((self.n_times, self.n, self.n))
        for block in self.blocks:
            theta, tail = self._tails(mu, block)
            # Rates grow from place to place, so the sets that two are in are those of the earlier.
            rate = np.where(block.known, block.rates(theta, tail, 2), 0.0)
            if 2 * rate.shape[1] > self.n:
                self._add_dense(both, block, rate)
            else:
                self._add_sparse(both, block, rate)
            for ties in block.ties:
                self._add_tied(both, block, ties, theta, tail)
        theta = np.exp(mu)
        curvature = -both * theta[:, :, None] * theta[:, None, :]
        curvature[:, range(self.n), range(self.n)] += self._pull(mu)
        return curvature

    def scores(self, mu: Floats, instance: Ints, instances: int) -> Floats:
        """The gradient of each instance by itself, for mu (T, n): shape (instances, T, n).

        ``instance`` says which one each comparison is of.
        """
        mu, width = centred(mu), self.n_times * self.n + 1
        flat = np.zeros(instances * width)
        for block in self.blocks:
            theta, tail = self._tails(mu, block)
            won = np.where(block.known, block.weight[:, None], 0.0)
            left = won - theta * block.rates(theta, tail, 1)
            cell = instance[block.comparison].astype(np.int64)[:, None] * width + block.item
            flat += np.bincount(cell.ravel(), left.ravel(), len(flat))
        return flat.reshape(instances, width)[:, :-1].reshape(instances, self.n_times, self.n)

    def _some(self, draws: int) -> Iterator[slice]:
        return slices(draws, 4 * self.terms)

    def _value(self, mu: Floats) -> Floats:
        mu = centred(mu)
        value = np.sum(self.wins * mu, axis=-1)
        for block in self.blocks:
            theta, tail = self._tails(mu, block)
            total = np.log(np.where(block.strict > 0, tail[..., :-1], 1.0))
            lost = np.einsum("rl,...rl->...r", block.strict, total)
            for ties in block.ties:
                mine = ties.weight * (np.log(ties.totals(theta, tail)) @ ties.subsets.weight)
                np.add.at(lost, (..., ties.row), mine)  # pyright: ignore[reportArgumentType]
            value -= lost.reshape(*mu.shape[:-1], -1).sum(axis=-1)
        return value

    def _values(self, mu: Floats) -> Floats:
        """The same for many draws, with those of one algorithm side by side: (draws, T)."""
        mu, theta = exponentials(mu)
        nobody = np.zeros((1, len(mu)), dtype=theta.dtype)
        theta = np.concatenate([theta.reshape(-1, len(mu)), nobody])
        lost = np.zeros((self.n_times, len(mu)))
        factors = _factors(theta[:-1], self.n)
        for block in self.blocks:
            each = len(block.item) // self.n_times
            for t in range(self.n_times):
                for k in range(t * each, (t + 1) * each, _RANKINGS):
                    lost[t] += block.lost(theta, k, min(k + _RANKINGS, (t + 1) * each), factors)
        return np.einsum("tn,dtn->dt", self.wins, mu, dtype=np.float64) - lost.T

    def _gradient(self, mu: Floats) -> Floats:
        return self.wins - self._pull(centred(mu))

    def _add_dense(self, both: Floats, block: "_Block", rate: Floats) -> None:
        """Add the smaller rate of each pair, for rankings of most algorithms."""
        placed = np.zeros((len(rate), self.n + 1))  # the last column is for nobody
        np.put_along_axis(placed, np.where(block.known, block.item % self.n, self.n), rate, axis=1)
        for t, rows in enumerate(placed[:, :-1].reshape(self.n_times, -1, self.n)):
            for some in slices(len(rows), self.n**2):
                both[t] += np.minimum(rows[some, :, None], rows[some, None, :]).sum(axis=0)

    def _add_sparse(self, both: Floats, block: "_Block", rate: Floats) -> None:
        """Add the smaller rate of each pair, for rankings of few of many algorithms."""
        flat = both.reshape(-1)
        for some in slices(len(rate), rate.shape[1] ** 2):
            smaller = np.minimum(rate[some, :, None], rate[some, None, :])
            self._scatter(flat, block.item[some], smaller)

    def _add_tied(
        self, both: Floats, block: "_Block", ties: "_Ties", theta: Floats, tail: Floats
    ) -> None:
        """Two of one tied group share fewer sets than either is in: correct for that."""
        member, flat = ties.subsets.member, both.reshape(-1)
        for some in slices(len(ties.row), member.size):
            part = _Ties(ties.row[some], ties.place[some], ties.weight[some], ties.subsets)
            each = part.shares(theta, tail, 2)
            own, together = each @ member, (each[:, None, :] * member.T) @ member
            excess = together - np.minimum(own[:, :, None], own[:, None, :])
            self._scatter(flat, block.item[part.row[:, None], part.columns], excess)

    def _scatter(self, flat: Floats, item: Ints, pairs: Floats) -> None:
        """Add a value for each pair of items; whoever is not known has the value 0."""
        cell = np.minimum(item, self.n_times * self.n - 1)[:, :, None] * self.n
        cell = cell + (item % self.n)[:, None, :]
        flat += np.bincount(cell.ravel(), pairs.ravel(), minlength=len(flat))

    def _pull(self, mu: Floats) -> Floats:
        """For each algorithm the expected number of times it is chosen."""
        width, draws = self.n_times * self.n + 1, mu[..., 0, 0].size
        pull = np.zeros(draws * width)
        for block in self.blocks:
            theta, tail = self._tails(mu, block)
            item = np.arange(draws)[:, None] * width + block.item.ravel()
            pull += np.bincount(
                item.ravel(), (theta * block.rates(theta, tail, 1)).ravel(), len(pull)
            )
        return pull.reshape(draws, width)[:, :-1].reshape(mu.shape)

    def _tails(self, mu: Floats, block: "_Block") -> tuple[Floats, Floats]:
        """Of each ranking: exp(mu) from place to place, and the sums from each place on."""
        theta = np.zeros((*mu.shape[:-2], self.n_times * self.n + 1))
        theta[..., :-1] = np.exp(mu).reshape(*mu.shape[:-2], -1)
        theta = theta[..., block.item]
        return theta, tails(theta)


class _Ties(NamedTuple):
    """All tied groups of one size in a block."""

    row: Ints
    place: Ints
    weight: Floats
    subsets: Subsets

    @property
    def columns(self) -> Ints:
        return self.place[:, None] + np.arange(self.subsets.member.shape[1])

    def totals(self, theta: Floats, tail: Floats) -> Floats:
        """The total of each subset together with those behind the group."""
        size = self.subsets.member.shape[1]
        mine = theta[..., self.row[:, None], self.columns]
        return mine @ self.subsets.member.T + tail[..., self.row, self.place + size][..., None]

    def among(self, start: int, stop: int) -> "_Ties":
        """Those of a range of rankings, counted from its start."""
        some = slice(*np.searchsorted(self.row, [start, stop]))
        return _Ties(self.row[some] - start, self.place[some], self.weight[some], self.subsets)

    def lost(self, theta: Floats, item: Ints, behind: Floats) -> Floats:
        """What a choice from each subset costs, for each draw; ``behind`` (groups, draws)."""
        found = np.zeros(theta.shape[1])
        member, share = (part.astype(theta.dtype) for part in self.subsets)
        for some in slices(len(self.row), member.shape[0] * theta.shape[1]):
            mine = theta[item[self.row[some, None], self.columns[some]]]
            total = member @ mine + behind[some, None]
            found += self.weight[some] @ (share @ np.log(total, out=total))
        return found

    def shares(self, theta: Floats, tail: Floats, power: int) -> Floats:
        """For each group and subset, weight / total ** power."""
        return self.weight[:, None] * self.subsets.weight / self.totals(theta, tail) ** power


class _Block(NamedTuple):
    """Rankings of one length, best first."""

    item: Ints  # (rankings, length): time * n + algorithm, or one beyond all for nobody
    known: NDArray[np.bool_]
    strict: Floats  # the weight of the choice at a place, 0 where it is tied or unknown
    ties: tuple[_Ties, ...]
    weight: Floats  # (rankings,)
    comparison: Ints  # (rankings,): which of all the comparisons each is of

    def lost(self, theta: Floats, start: int, stop: int, factors: int) -> Floats:
        """What the choices in a range of rankings cost, for each draw: theta is (items, draws).

        The logarithm of a product is taken once for so many ``factors``, not of each.
        """
        item, strict = self.item[start:stop], self.strict[start:stop] > 0
        chosen = np.count_nonzero(strict, axis=0)
        weight = self.weight[start:stop].astype(theta.dtype)
        tail = np.zeros((len(item), theta.shape[1]), dtype=theta.dtype)
        product = np.ones_like(tail)
        tied = [some for ties in self.ties if len((some := ties.among(start, stop)).row)]
        behind = [tail[ties.row] for ties in tied]
        found = np.zeros(theta.shape[1])
        for place in range(item.shape[1] - 1, -1, -1):
            for ties, rest in zip(tied, behind, strict=True):
                ends = ties.place + ties.subsets.member.shape[1] == place + 1
                rest[ends] = tail[ties.row[ends]]
            tail += theta[item[:, place]]
            if chosen[place] == len(strict):
                product *= tail
            elif chosen[place]:
                product[strict[:, place]] *= tail[strict[:, place]]
            if place % factors == 0:
                found += weight @ np.log(product)
                product[:] = 1.0
        for ties, rest in zip(tied, behind, strict=True):
            found += ties.lost(theta, item, rest)
        return found

    def rates(self, theta: Floats, tail: Floats, power: int) -> Floats:
        """For each place, the sum over the sets it is in of weight / total ** power."""
        rate = np.zeros(theta.shape)
        np.divide(self.strict, tail[..., :-1] ** power, out=rate, where=self.strict > 0)
        inside = []
        for ties in self.ties:
            each = ties.shares(theta, tail, power)
            size = ties.subsets.member.shape[1]
            # Those behind the group are in all of its sets.
            rate[..., ties.row, ties.place + size - 1] = each.sum(axis=-1)
            inside.append(each @ ties.subsets.member)
        summed = np.cumsum(rate, axis=-1)
        before = np.concatenate([np.zeros((*rate.shape[:-1], 1)), summed], axis=-1)
        for ties, mine in zip(self.ties, inside, strict=True):
            base = before[..., ties.row, ties.place][..., None]
            summed[..., ties.row[:, None], ties.columns] = base + mine
        return summed


def _factors(theta: Floats, n: int) -> int:
    """How many sums of up to n of these can be multiplied without leaving their precision."""
    room = 0.9 * np.log(float(np.finfo(theta.dtype).max))
    widest = max(np.log(n * float(theta.max())), -np.log(float(theta.min())), 1.0)
    return max(1, int(room / widest))


def _block(
    item: Ints,
    known: NDArray[np.bool_],
    opens: NDArray[np.bool_],
    size: Ints,
    weight: Floats,
    comparison: Ints,
) -> _Block:
    strict = np.where(opens & (size == 1), weight[:, None], 0.0)
    ties = []
    for k in np.unique(size[size > 1]):
        row, place = np.nonzero(size == k)
        ties.append(_Ties(row, place, weight[row], subsets(int(k))))
    return _Block(item, known, strict, tuple(ties), weight, comparison)
