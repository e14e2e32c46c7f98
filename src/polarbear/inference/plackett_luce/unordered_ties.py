r"""The likelihood of tied groups whose order is not known.

If k algorithms tie, each of their k! orders is possible, and the likelihood of the ranking is the
sum over them. For a tied group G with the algorithms R ranked behind it, the sum is the probability
that all of G precede all of R. With a_i = theta_i / sum of theta over R it is

    P = integral over s > 0 of exp(-s) prod_{i in G} (1 - exp(-a_i s)) ds,

since algorithms in the order of independent exponential times with the rates theta are ranked as by
Plackett and Luce. It is 1 if R is empty: a last group says nothing about the order within it. P is
log-concave in the utilities (Prekopa), as is every probability of an order.

DeLong, Guirguis and So (1994) use the integral for ties in Cox's partial likelihood. It is computed
in ``tie_integrals``, and for groups of at most ``MAX_RECURSION_SIZE`` by the recursion
h(U) = sum_{i in U} a_i h(U - i) / (1 + sum of a over U) over the subsets U of G.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from polarbear.data.rankings import Rankings
from polarbear.inference.plackett_luce.ordered_rankings import (
    MAX_SINGLE_PRECISION_CHOICES,
    Floats,
    Ints,
    bounded_slices,
    exponentiate_utilities,
    find_equal_rows,
    iterate_sorted_rankings,
    subtract_maximum,
)
from polarbear.inference.plackett_luce.ranking_likelihood import RankingLikelihood
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood
from polarbear.inference.plackett_luce.tie_integrals import LargeTiedGroups

MAX_RECURSION_SIZE = 4
"""The largest groups whose probability is computed by recursion over their subsets."""

MAX_LEVEL_COLUMNS = 2000
"""Up to this many groups times draws, all subsets of a size are computed at once."""

_COMPLEX_STEP = 1e-100


@dataclass(frozen=True)
class TiedGroups:
    """Tied groups of equal size, each ranked ahead of at least one other algorithm.

    In shapes there are K groups, T times, n algorithms and D draws. ``theta`` is exp(utilities)
    (T, n, D), and ``mu`` is utilities (T, n).
    """

    n_times: int
    time: Ints  # (K,)
    member: Ints  # (K, size): the algorithms of each group
    behind: Floats  # (K, n): 1 for the algorithms ranked behind the group, else 0
    weight: Floats  # (K,)
    comparison: Ints  # (K,): index of the comparison in the rankings; -1 for several

    def value(self, theta: Floats) -> Floats:
        """Return for each draw and time the weighted sum of the groups' log-probabilities."""
        rates, _ = self._rates(theta)
        return self._weight_at_times @ log_precede(rates)

    def gradient(self, theta: Floats) -> Floats:
        """Return the gradient of ``value`` with respect to utilities (T, n, D)."""
        rates, rest = self._rates(theta)
        slopes = _slopes_by_recursion(rates, rates / np.minimum(rates, 1.0))  # (size, K, D)
        slopes *= self.weight[:, None]
        gradient = self._is_behind.T @ (-slopes.sum(axis=0) / rest)
        gradient *= theta.reshape(gradient.shape)
        gradient += self._is_member @ slopes.reshape(-1, slopes.shape[-1])
        return gradient.reshape(theta.shape)

    def _rates(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return exp(utility) of members divided by the sum behind their group, and the sums."""
        rows = theta.reshape(-1, theta.shape[-1])
        rest = self._is_behind @ rows
        return rows[self._items] / rest, rest

    @cached_property
    def _items(self) -> Ints:
        """The row indices of the groups' members in exp(utilities) (times * algorithms, draws)."""
        return self.time * self.behind.shape[1] + self.member.T

    @cached_property
    def _is_member(self) -> csr_array:
        """A 0/1 matrix whose product with values of members (size * K) sums by algorithm."""
        item = self._items.ravel()
        shape = (self.n_times * self.behind.shape[1], len(item))
        return csr_array(
            (np.ones(len(item), dtype=np.float32), (item, np.arange(len(item)))), shape
        )

    @cached_property
    def _is_behind(self) -> csr_array:
        """A 0/1 matrix whose product with exp(utilities) sums over algorithms behind each group."""
        n_groups, n = self.behind.shape
        row, column = np.nonzero(self.behind)
        ones = np.ones(len(row), dtype=np.float32)  # products keep the precision of utilities
        ends = np.append(0, np.cumsum(np.bincount(row, minlength=n_groups)))
        parts = (ones, self.time[row] * n + column, ends)
        return csr_array(parts, shape=(n_groups, self.n_times * n))

    @cached_property
    def _weight_at_times(self) -> csr_array:
        """The matrix (times, groups) that maps group values to their weighted sums at each time."""
        order = np.argsort(self.time, kind="stable")
        ends = np.append(0, np.cumsum(np.bincount(self.time, minlength=self.n_times)))
        parts = (self.weight[order], order, ends)
        return csr_array(parts, shape=(self.n_times, len(order)))

    def sum_derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the weighted gradients (T, n) and minus Hessians (T, n, n) at exp(utilities)."""
        n = theta.shape[1]
        gradient, curvature = np.zeros(theta.shape), np.zeros((*theta.shape, n))
        for rows in bounded_slices(len(self.time), n**2):
            part = self.take(rows)
            slope, minus_hessian = part._derivatives(theta)
            gradient += part._weight_at_times @ slope
            curvature.reshape(-1, n * n)[:] += part._weight_at_times @ minus_hessian.reshape(
                -1, n * n
            )
        return gradient, curvature

    def iterate_slopes(self, theta: Floats) -> Iterable[tuple[Ints, Floats]]:
        """Yield rows of groups and the gradients (rows, n) of their log-probabilities."""
        for rows in bounded_slices(len(self.time), theta.shape[1] ** 2):
            slope, _ = self.take(rows)._derivatives(theta)
            yield np.arange(rows.start, rows.stop), slope

    def _derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and minus the Hessian of each group's log-probability."""
        theta = theta[self.time]
        rest = np.sum(theta * self.behind, axis=1, keepdims=True)
        rates = np.take_along_axis(theta, self.member, axis=1) / rest
        slope, hessian = _differentiate(rates)
        share = theta * self.behind / rest
        # log a_i = mu_i - log sum over R of theta, so its derivative is e_i - share.
        jacobian = np.zeros((*self.member.shape, theta.shape[1]))
        np.put_along_axis(jacobian, self.member[:, :, None], 1.0, axis=2)
        jacobian -= share[:, None, :]
        gradient = np.einsum("ki,kin->kn", slope, jacobian)
        curvature = -(jacobian.swapaxes(1, 2) @ hessian @ jacobian)
        total = slope.sum(axis=1)[:, None, None]
        diagonal = np.arange(theta.shape[1])
        curvature[:, diagonal, diagonal] += total[:, 0] * share
        curvature -= total * share[:, :, None] * share[:, None, :]
        return gradient, curvature

    @property
    def n_terms(self) -> int:
        """The cost of all log-probabilities, in units of the cost of a logarithm."""
        return len(self.time) << self.member.shape[1]

    @property
    def membership(self) -> Floats:
        """A matrix (K, n) that is 1 for the algorithms of each group."""
        membership = np.zeros(self.behind.shape)
        np.put_along_axis(membership, self.member, 1.0, axis=1)
        return membership

    @property
    def sizes(self) -> int:
        """The number of algorithms in each group."""
        return self.member.shape[1]

    @property
    def cells_per_draw(self) -> int:
        """Cells for each draw with which parts of draws stay in the cache."""
        return 16 * self.member.size

    def take(self, rows: slice | Ints) -> "TiedGroups":
        """Return the tied groups in these rows."""
        return TiedGroups(
            n_times=self.n_times,
            time=self.time[rows],
            member=self.member[rows],
            behind=self.behind[rows],
            weight=self.weight[rows],
            comparison=self.comparison[rows],
        )


def log_precede(rates: Floats) -> Floats:
    """Return the log-probability that all members of a small group precede all behind it.

    ``rates`` are the rates theta of the group, divided by the sum of theta over the rest.

    >>> float(np.exp(log_precede(np.array([1.0]))).round(6))
    0.5
    """
    below_one = np.minimum(rates, 1.0)  # its product could underflow, so it is taken out
    scaled, _ = _subset_probabilities(rates, rates / below_one)
    return np.log(below_one).sum(axis=0) + np.log(scaled[-1])


def _subset_probabilities(rates: Floats, factor: Floats) -> tuple[Floats, Floats]:
    """Return the scaled h(U) and 1 + sum of a over U, for all subsets U as bits of their index.

    Few columns are computed for all subsets of a size at once, many subset by subset, so that they
    stay in the processor's cache.
    """
    size, shape = len(rates), rates.shape[1:]
    levels = _subset_levels(size)
    total = (levels.is_member @ rates.reshape(size, -1)).reshape(-1, *shape)
    total += 1
    probability = np.empty_like(total)
    probability[0] = 1
    if rates[0].size <= MAX_LEVEL_COLUMNS:
        for subset, member, without, _ in levels.by_size:
            ways = (factor[member] * probability[without]).sum(axis=1)
            probability[subset] = ways / total[subset]
        return probability, total
    for subset in range(1, 1 << size):
        ways = sum(factor[i] * probability[subset ^ 1 << i] for i in _members(subset))
        np.divide(ways, total[subset], out=probability[subset])
    return probability, total


class _Level(NamedTuple):
    """All subsets of a group that have the same size."""

    subset: Ints  # (C,): as bits
    member: Ints  # (C, m): the members of each
    without: Ints  # (C, m): the subset without each of its members
    other: Ints  # (C, size - m): the members of the group that are not in it


class _Levels(NamedTuple):
    """The subsets of a group by their size."""

    is_member: NDArray[np.float32]  # (2 ** size, size): products keep the other precision
    by_size: tuple[_Level, ...]  # from 1 to the whole group


@cache
def _subset_levels(size: int) -> _Levels:
    """Return the subsets of a group of a given size.

    >>> [level.subset.tolist() for level in _subset_levels(3).by_size]
    [[1, 2, 4], [3, 5, 6], [7]]
    """
    bits = np.arange(1 << size)[:, None] >> np.arange(size) & 1
    levels = []
    for m in range(1, size + 1):
        subset = np.flatnonzero(bits.sum(axis=1) == m)
        member, other = (np.nonzero(bits[subset] == bit)[1] for bit in (1, 0))
        member = member.reshape(len(subset), m)
        without = subset[:, None] ^ 1 << member
        levels.append(_Level(subset, member, without, other.reshape(len(subset), size - m)))
    return _Levels(bits.astype(np.float32), tuple(levels))


@cache
def _members(subset: int) -> tuple[int, ...]:
    """Return the places of the bits that are set.

    >>> _members(0b101)
    (0, 2)
    """
    return tuple(i for i in range(subset.bit_length()) if subset >> i & 1)


def _differentiate(rates: Floats) -> tuple[Floats, Floats]:
    """Return gradient and Hessian of ``log_precede`` with respect to log(rates), for each group.

    The Hessian is the derivative of the gradient by complex steps (Squire and Trapp 1998): the
    imaginary part of f(x + i h) is h f'(x), exact for a tiny h.
    """
    size = rates.shape[1]
    shifted: Any = rates.T[..., None] * (1 + 1j * _COMPLEX_STEP * np.eye(size)[:, None])
    slopes = _slopes_by_recursion(shifted, shifted / np.minimum(rates.T, 1.0)[..., None])
    return slopes[..., 0].real.T, slopes.imag.transpose(1, 0, 2) / _COMPLEX_STEP


def _slopes_by_recursion(rates: Floats, factor: Floats) -> Floats:
    """Return the gradient of ``log_precede`` by the recursion over subsets in reverse order.

    ``share`` is the derivative of log P by h(U), divided by 1 + sum of a over U. The derivative of
    h(U) by log(a_i), with other subsets held fixed, is
    (factor_i h(U - i) - a_i h(U)) / (1 + sum of a over U).
    """
    probability, total = _subset_probabilities(rates, factor)
    size, shape, levels = len(rates), rates.shape[1:], _subset_levels(len(rates))
    share = np.empty_like(total)
    share[-1] = 1 / (probability[-1] * total[-1])
    for subset, _, _, other in levels.by_size[-2::-1]:
        own = (share[subset[:, None] | 1 << other] * factor[other]).sum(axis=1)
        share[subset] = own / total[subset]
    both = share[1:] * probability[1:]
    slopes = (levels.is_member[1:].T @ both.reshape(len(both), -1)).reshape(rates.shape)
    slopes *= -rates
    for i in range(size):
        # Index 1 of the second axis: the subsets with i; index 0: the same without it.
        with_i, without_i = (array.reshape(-1, 2, 1 << i, *shape) for array in (share, probability))
        slopes[i] += factor[i] * (with_i[:, 1] * without_i[:, 0]).sum(axis=(0, 1))
    return slopes


@dataclass(frozen=True)
class UnorderedLikelihood:
    """The likelihood of rankings with ties: a part for untied places, and one for tied groups."""

    untied: SubsetLikelihood | RankingLikelihood
    groups: tuple[TiedGroups | LargeTiedGroups, ...]
    dtype: type[np.floating] = np.float64  # of values of draws
    latest: list[Floats] = field(default_factory=list, repr=False, compare=False)
    # Where the curvature was computed last, and the gradient of the tied groups there.

    @property
    def n_terms(self) -> int:
        """The cost of one evaluation, in units of the cost of one logarithm."""
        return self.untied.n_terms + sum(groups.n_terms for groups in self.groups)

    def to_single_precision(self) -> "UnorderedLikelihood":
        """Return a copy whose parts are in single precision where it is accurate enough."""
        untied = self.untied.to_single_precision()
        n_tied = sum(np.bincount(g.time, g.sizes * g.weight).max() for g in self.groups)
        is_accurate = untied is not self.untied and n_tied <= MAX_SINGLE_PRECISION_CHOICES
        dtype = np.float32 if is_accurate else np.float64
        return UnorderedLikelihood(untied, self.groups, dtype)

    def value(self, mu: Floats) -> Floats:
        """Return the log-likelihood at each time, for utilities ([draws,] times, algorithms)."""
        value = np.asarray(self.untied.value(mu), dtype=np.float64)
        for groups in self.groups:
            for rows, theta in self._iterate_draws(groups, mu):
                value.reshape(-1, mu.shape[-2])[rows] += groups.value(theta).T
        return value

    def gradient(self, mu: Floats) -> Floats:
        """Return the gradient of the log-likelihood with respect to utilities, in their shape."""
        gradient = np.asarray(self.untied.gradient(mu), dtype=np.float64)
        if self.latest and np.array_equal(self.latest[0], mu):
            return gradient + self.latest[1]
        for groups in self.groups:
            for rows, theta in self._iterate_draws(groups, mu):
                slope = groups.gradient(theta).transpose(2, 0, 1)
                gradient.reshape(-1, *mu.shape[-2:])[rows] += slope
        return gradient

    def _iterate_draws(
        self, groups: "TiedGroups | LargeTiedGroups", mu: Floats
    ) -> Iterable[tuple[slice, Floats]]:
        """Yield exp(utilities) (times, algorithms, draws) in parts of a bounded size."""
        draws = mu.reshape(-1, *mu.shape[-2:])
        for rows in bounded_slices(len(draws), groups.cells_per_draw):
            yield rows, exponentiate_utilities(draws[rows].astype(self.dtype))[1]

    def curvature(self, mu: Floats) -> Floats:
        """Return minus the Hessian of the log-likelihood (times, algorithms, algorithms)."""
        curvature, gradient = self.untied.curvature(mu), np.zeros(mu.shape)
        theta = np.exp(subtract_maximum(mu))
        for groups in self.groups:
            slope, minus_hessian = groups.sum_derivatives(theta)
            gradient += slope
            curvature += minus_hessian
        self.latest[:] = mu.copy(), gradient
        return curvature


def add_instance_gradients(
    gradients: Floats,
    groups: Iterable[TiedGroups | LargeTiedGroups],
    mu: Floats,
    instance: Ints,
) -> None:
    """Add the gradients of tied groups to the gradients (instances, times, algorithms)."""
    theta = np.exp(subtract_maximum(mu))
    for some in groups:
        for rows, slope in some.iterate_slopes(theta):
            own = (instance[some.comparison[rows]], some.time[rows])
            np.add.at(gradients, own, some.weight[rows, None] * slope)


def collect_tied_groups(
    rankings: Rankings, *, merge: bool
) -> tuple[TiedGroups | LargeTiedGroups, ...]:
    """Return the tied groups that are ranked ahead of other algorithms.

    There is one record for each small size, and one for all large groups. With ``merge``, equal
    groups with equal algorithms behind them are counted once by their weight.
    """
    n, n_times = len(rankings.algorithms), len(rankings.times)
    parts: dict[int, list[tuple[Ints | Floats, ...]]] = {}
    for part in iterate_sorted_rankings(rankings, merge=merge):
        known_places, length = part.known.sum(axis=-1), part.algorithm.shape[-1]
        for k in np.unique(part.group_size[part.group_size > 1]).tolist():
            row, place = np.nonzero(part.group_size == k)
            has_rest = place + k < known_places[row]
            row, place = row[has_rest], place[has_rest]
            if not len(row):
                continue
            order = part.algorithm[row]  # (K, length), best first
            is_behind = (np.arange(length) >= place[:, None] + k) & part.known[row]
            behind = np.zeros((len(row), n))
            np.put_along_axis(behind, order, is_behind.astype(np.float64), axis=1)
            member = np.take_along_axis(order, place[:, None] + np.arange(k), axis=1)
            if k <= MAX_RECURSION_SIZE:
                member = np.sort(member, axis=1)
            else:
                is_member = np.zeros((len(row), n))
                np.put_along_axis(is_member, member, 1.0, axis=1)
                member = is_member
            weight, comparison = part.weight[row], part.comparison[row]
            kind = k if k <= MAX_RECURSION_SIZE else MAX_RECURSION_SIZE + 1
            of_kind = parts.setdefault(kind, [])
            of_kind.append((part.time[row], member, behind, weight, comparison))
    groups = (
        (TiedGroups if k <= MAX_RECURSION_SIZE else LargeTiedGroups)(
            n_times, *map(np.concatenate, zip(*some, strict=True))
        )
        for k, some in sorted(parts.items())
    )
    return tuple(_merge_equal(g) if merge else g for g in groups)


def _merge_equal(groups: TiedGroups | LargeTiedGroups) -> TiedGroups | LargeTiedGroups:
    """Merge groups with equal time, members and algorithms behind them, and add their weights."""
    code = np.concatenate([groups.member, groups.behind], axis=1).astype(np.int64)
    first, same = find_equal_rows(groups.time, code)
    weight = np.bincount(same, groups.weight, minlength=len(first)).astype(np.float64)
    merged = groups.take(first)
    return replace(merged, weight=weight, comparison=np.full(len(first), -1))
