r"""Large tied groups without an order, by integrals whose nodes are shared by groups.

For a tied group G ahead of R, with the rates theta = exp(utilities) and Theta the sum of theta over
R, the probability that all of G precede all of R is (see ``unordered_ties``)

    P = integral over x of exp f(x),
    f(x) = log Theta + x - Theta s + sum_{i in G} log(1 - exp(-theta_i s)),

with s = e^x. f is concave, so the trapezoidal rule needs few nodes, around its maximum only. Nodes
are the same for all groups at a time. Then log(1 - e^(-theta_i s)) is computed once for each
algorithm and node, and the sums over members of all groups are a product of matrices. For results
of two levels (solved or not), a group has about fifteen nodes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.inference.plackett_luce.ordered_rankings import Floats, Ints, bounded_slices

_GROUPS_AT_ONCE, _DRAWS_AT_ONCE = 24, 256
"""Chunk sizes whose terms of the integral fit into the processor's cache."""

_PEAK_STEPS, _STEPS_LEFT = 4, (1.0, 2.5, 4.5)
"""Bisections to the maximum of f, and distances to its left where the slope is computed."""

_USUAL_STEP = 0.3
"""A step of nodes that suits many groups; others have this step times a power of sqrt(2)."""

_NEGLIGIBLE_SHARE = 1e-11
"""Nodes with a smaller share of an integral are left out of its Hessian."""

_MAX_BEND = 0.42
"""The largest r (z + r - 1) for r = z / (e^z - 1)."""


class _Precision(NamedTuple):
    """The nodes of an integral: where they end, and their distance."""

    drop: float  # nodes end where the integrand is exp(-drop) of its maximum
    step: float  # the step is at most step / sqrt(narrow - f'' at the maximum)
    narrow: float


_PRECISION = {4: _Precision(13.0, 1.28, 2.5), 8: _Precision(27.0, 0.82, 5.4)}
"""By the size of a number in bytes: relative errors of 1e-5 and 1e-12."""


class _Peaks(NamedTuple):
    """Where the integrand of each group is large, and the step of its nodes, all in x (K,)."""

    left: Floats
    right: Floats
    step: Floats


@dataclass(frozen=True)
class LargeTiedGroups:
    """Tied groups of any size, each ranked ahead of at least one other algorithm.

    In shapes there are K groups, T times, n algorithms, D draws and J nodes.
    """

    n_times: int
    time: Ints  # (K,)
    member: Floats  # (K, n): 1 for the algorithms of each group, else 0
    behind: Floats  # (K, n): 1 for the algorithms ranked behind the group, else 0
    weight: Floats  # (K,)
    comparison: Ints  # (K,): index of the comparison in the rankings; -1 for several

    @property
    def n_terms(self) -> int:
        """The cost of all log-probabilities, in units of the cost of a logarithm."""
        return 100 * len(self.time)

    @property
    def sizes(self) -> Floats:
        """The number of algorithms in each group (K,)."""
        return self.member.sum(axis=1)

    @property
    def cells_per_draw(self) -> int:
        """Cells for each draw with which parts of draws have a bounded size."""
        return self.n_times * self.member.shape[1]

    @property
    def membership(self) -> Floats:
        """A matrix (K, n) that is 1 for the algorithms of each group."""
        return self.member

    def take(self, rows: slice | Ints) -> "LargeTiedGroups":
        """Return the tied groups in these rows."""
        return LargeTiedGroups(
            n_times=self.n_times,
            time=self.time[rows],
            member=self.member[rows],
            behind=self.behind[rows],
            weight=self.weight[rows],
            comparison=self.comparison[rows],
        )

    def value(self, theta: Floats) -> Floats:
        """Return the weighted sums of log-probabilities (T, D) for exp(utilities) (T, n, D)."""
        value = np.zeros((self.n_times, theta.shape[2]))
        if theta.shape[2] == 1:
            for point in self.evaluate(theta[:, :, 0]):
                weighted = self.weight[point.rows] * point.value
                value[:, 0] += np.bincount(self.time[point.rows], weighted, self.n_times)
            return value
        for part in self._iterate_terms(theta):
            total = part.term.sum(axis=0)
            total *= part.rest
            log_total = np.log(total, out=total)
            log_total += part.top
            weight = self.weight[part.rows]
            value[part.time, part.draws] += weight.astype(theta.dtype) @ log_total
            value[part.time, part.draws] += weight.sum() * np.log(part.step)
        return value

    def gradient(self, theta: Floats) -> Floats:
        """Return the gradient of ``value`` with respect to utilities (T, n, D)."""
        gradient = np.zeros(theta.shape)
        if theta.shape[2] == 1:
            for rows, slope in self.iterate_slopes(theta[:, :, 0]):
                np.add.at(gradient[:, :, 0], self.time[rows], self.weight[rows, None] * slope)
            return gradient
        for part in self._iterate_terms(theta):
            share = part.term
            share *= (self.weight[part.rows, None] / share.sum(axis=0)).astype(share.dtype)
            own = theta[part.time, :, part.draws]
            member = self.member[part.rows[:, None], part.used].T.astype(theta.dtype)
            z = np.minimum(part.nodes[:, None, None] * own[part.used], 80.0)
            slope = np.matmul(member, share)
            slope *= z
            slope /= np.expm1(z, out=z)
            mean = np.einsum("j,jkd->kd", part.nodes, share)
            away = (self.weight[part.rows, None] / part.rest - mean).astype(theta.dtype)
            slope_behind = self.behind[part.rows].T.astype(theta.dtype) @ away
            slope_behind *= own
            slope_behind[part.used] += slope.sum(axis=0)
            gradient[part.time, :, part.draws] += slope_behind
        return gradient

    def evaluate(self, theta: Floats) -> Iterator["_AtPoint"]:
        """Yield the integrals at one point, exp(utilities) (T, n), in parts of some times."""
        peaks = self._find_peaks(theta)
        left, right = np.full(self.n_times, np.inf), np.full(self.n_times, -np.inf)
        step = np.full(self.n_times, np.inf)
        np.minimum.at(left, self.time, peaks.left)
        np.maximum.at(right, self.time, peaks.right)
        np.minimum.at(step, self.time, peaks.step)
        used = np.flatnonzero(step < np.inf)
        n_nodes = int(np.ceil((right - left)[used] / step[used]).max(initial=0)) + 1
        cells = n_nodes * (theta.shape[1] + int(np.bincount(self.time).max()))
        for some in bounded_slices(len(used), cells):
            times = used[some]
            x = left[times, None] + step[times, None] * np.arange(n_nodes)
            yield self._evaluate_times(theta, times, np.exp(x), step[times])

    def _evaluate_times(
        self, theta: Floats, times: Ints, nodes: Floats, step: Floats
    ) -> "_AtPoint":
        z = np.clip(theta[times][:, :, None] * nodes[:, None], 1e-290, 700.0)
        table = np.log(-np.expm1(-z))
        groups = [self._rows_of_times[t] for t in times]
        rows, place = np.concatenate(groups), np.repeat(np.arange(len(times)), [*map(len, groups)])
        rest = np.sum(self.behind[rows] * theta[self.time[rows]], axis=1)
        log_term = np.concatenate(
            [self.member[own] @ one for own, one in zip(groups, table, strict=True)]
        )
        log_term += (np.log(nodes) + np.log(step)[:, None])[place]
        log_term -= rest[:, None] * nodes[place]
        top = log_term.max(axis=1, keepdims=True)
        share = np.exp(log_term - top)
        total = share.sum(axis=1, keepdims=True)
        share /= total
        value = np.log(total[:, 0]) + top[:, 0] + np.log(rest)
        return _AtPoint(
            groups=self,
            theta=theta,
            times=times,
            rows=rows,
            place=place,
            nodes=nodes,
            z=z,
            share=share,
            rest=rest,
            value=value,
        )

    def sum_derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the weighted gradients (T, n) and minus Hessians (T, n, n) at exp(utilities)."""
        n = theta.shape[1]
        gradient, curvature = np.zeros(theta.shape), np.zeros((*theta.shape, n))
        for point in self.evaluate(theta):
            slope = point.slopes()
            np.add.at(gradient, self.time[point.rows], self.weight[point.rows, None] * slope)
            point.add_curvature(slope, curvature)
        return gradient, curvature

    def iterate_slopes(self, theta: Floats) -> Iterator[tuple[Ints, Floats]]:
        """Yield rows of groups and the gradients (rows, n) of their log-probabilities."""
        for point in self.evaluate(theta):
            yield point.rows, point.slopes()

    @cached_property
    def _rows_of_times(self) -> list[Ints]:
        order = np.argsort(self.time, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.time, minlength=self.n_times))[:-1])

    @cached_property
    def _members(self) -> tuple[Ints, Ints, Ints]:
        """The group and the algorithm of each member, and the first member of each group."""
        group, algorithm = np.nonzero(self.member)
        return group, algorithm, np.searchsorted(group, np.arange(len(self.time)))

    def _find_peaks(self, theta: Floats, itemsize: int = 8) -> _Peaks:
        """Return where the integrands are large at exp(utilities) (T, n).

        With m = Theta s at the maximum, 1 <= m <= 1 + size, since f' = 1 + sum of r - Theta s for
        r = z / (e^z - 1) <= 1 and z = theta s. At a distance u to the right of the maximum, f falls
        by at least m (e^u - 1 - u), to the left by m (e^-u - 1 + u). Where f' is known further to
        the left, f falls at least as steeply from there. A member bends f by r (z + r - 1), which
        is at most ``_MAX_BEND``, at z near 2.
        """
        precision = _PRECISION[itemsize]
        group, algorithm, first = self._members
        rest = np.einsum("kn,kn->k", self.behind, theta[self.time])
        rates = theta[self.time[group], algorithm] / rest[group]

        def find_slopes(x: Floats) -> tuple[Floats, Floats, Floats]:
            m = np.exp(x)
            z = np.clip(rates * m[group], 1e-290, 700.0)
            r = z / np.expm1(z)
            return 1 + np.add.reduceat(r, first) - m, z, r

        lower, upper = np.zeros(len(rest)), np.log1p(self.sizes)
        for _ in range(_PEAK_STEPS):
            middle = 0.5 * (lower + upper)
            is_left = find_slopes(middle)[0] > 0
            lower, upper = np.where(is_left, middle, lower), np.where(is_left, upper, middle)
        _, z, r = find_slopes(upper)
        bend = np.where(z > 2, _MAX_BEND, r * (z + r - 1))
        narrow = np.exp(upper) + np.add.reduceat(bend, first)
        quotient = precision.drop / np.exp(lower)
        root, log_rest = np.sqrt(2 * quotient), np.log(rest)
        # Both are bounds; steps of Newton's method on a convex function keep them so.
        width, right = quotient + root, np.log1p(quotient + root)
        for _ in range(2):
            width -= (np.expm1(-width) + width - quotient) / -np.expm1(-width)
            right -= (np.expm1(right) - right - quotient) / np.expm1(right)
        last, fall, slope = 0.0, np.zeros(len(rest)), np.zeros(len(rest))
        for away in _STEPS_LEFT:
            fall, last = fall + slope * (away - last), away
            slope = np.maximum(find_slopes(lower - away)[0], 1e-3)
            width = np.minimum(width, away + np.maximum(precision.drop - fall, 0.0) / slope)
        return _Peaks(
            lower - width - log_rest,
            upper + right - log_rest,
            precision.step / np.sqrt(narrow + precision.narrow),
        )

    def _iterate_terms(self, theta: Floats) -> Iterator["_Terms"]:
        """Yield the terms of the integrals for exp(utilities) (T, n, D), in parts.

        The arrays of a part are overwritten by the next one.
        """
        centre = np.exp(np.log(theta).mean(axis=2, dtype=np.float64))
        peaks = self._find_peaks(centre, theta.dtype.itemsize)
        level = np.ceil(-2 * np.log2(peaks.step / _USUAL_STEP)).astype(np.int64)
        is_rare = np.bincount(self.time, minlength=self.n_times) <= 2 * _GROUPS_AT_ONCE
        finest = np.full(self.n_times, level.min())
        np.maximum.at(finest, self.time, level)
        level = np.where(is_rare[self.time], finest[self.time], level)
        order = np.lexsort([peaks.left + peaks.right, level, self.time])
        is_new = (np.diff(level[order]) != 0) | (np.diff(self.time[order]) != 0)
        parts = np.split(order, np.flatnonzero(is_new) + 1)
        tables = _NodeTables(theta.dtype)
        for start in range(0, theta.shape[2], _DRAWS_AT_ONCE):
            draws = slice(start, min(start + _DRAWS_AT_ONCE, theta.shape[2]))
            for part in parts:
                t, step = int(self.time[part[0]]), _USUAL_STEP * float(2.0 ** (-level[part[0]] / 2))
                own = np.ascontiguousarray(theta[t, :, draws])
                used = np.flatnonzero(self.member[part].any(axis=0))
                ends = np.stack([peaks.left[part], peaks.right[part]]) / step
                first, last = np.floor(ends[0]).astype(int), np.ceil(ends[1]).astype(int) + 1
                tables.fill(own[used], step, first.min(), last.max())
                for k in range(0, len(part), _GROUPS_AT_ONCE):
                    some = slice(k, k + _GROUPS_AT_ONCE)
                    rows = part[some]
                    member = np.ones((len(rows), len(used) + 1), dtype=theta.dtype)
                    member[:, :-1] = self.member[rows[:, None], used]
                    rest = self.behind[rows].astype(theta.dtype) @ own
                    nodes, term, top = tables.evaluate(
                        member, rest, first[some].min(), last[some].max()
                    )
                    yield _Terms(
                        time=t,
                        rows=rows,
                        draws=draws,
                        used=used,
                        nodes=nodes,
                        term=term,
                        top=top,
                        rest=rest,
                        step=step,
                    )


class _Terms(NamedTuple):
    """The terms of the integrals of some groups at a time, for some draws."""

    time: int
    rows: Ints  # (K,)
    draws: slice
    used: Ints  # the algorithms that are members of groups with these nodes
    nodes: NDArray[Any]  # (J,)
    term: NDArray[Any]  # (J, K, D): exp(f - top)
    top: NDArray[Any]  # (K, D): the maximum of f over nodes
    rest: NDArray[Any]  # (K, D)
    step: float


class _NodeTables:
    """log(1 - exp(-theta s)) at the nodes s = exp(j step), for theta (n, D), with x as last row.

    Arrays are made once and used for all parts, since memory that is new costs more than the sums.
    """

    def __init__(self, dtype: Any) -> None:
        self._drop, self._tiny = _PRECISION[dtype.itemsize].drop, np.finfo(dtype).tiny
        self._arrays = [np.empty(0, dtype=dtype) for _ in range(3)]

    def _make(self, which: int, *shape: int) -> NDArray[Any]:
        size = int(np.prod(shape))
        if len(self._arrays[which]) < size:
            self._arrays[which] = np.empty(size + size // 4, dtype=self._arrays[which].dtype)
        return self._arrays[which][:size].reshape(shape)

    def fill(self, theta: NDArray[Any], step: float, first: int, last: int) -> None:
        """Compute the tables (J, n + 1, D) at the nodes from ``first`` to before ``last``."""
        n, draws = theta.shape
        self._theta, self._step, self._first = theta, step, first
        self._nodes = np.exp(step * np.arange(first, last)).astype(theta.dtype)
        self._table = self._make(0, last - first, n + 1, draws)
        z = self._table[:, :-1]
        np.multiply(-self._nodes[:, None, None], theta, out=z)
        np.expm1(z, out=z)
        np.negative(z, out=z)
        np.maximum(z, self._tiny, out=z)
        np.log(z, out=z)
        self._table[:, -1] = np.log(self._nodes)[:, None]

    def evaluate(
        self, member: NDArray[Any], rest: NDArray[Any], start: int, stop: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return nodes, terms and their maximum, with more nodes where the ends are not small."""
        while True:
            if start < self._first or stop > self._first + len(self._nodes):
                last = max(stop, self._first + len(self._nodes))
                self.fill(self._theta, self._step, min(start, self._first), last)
            own = slice(start - self._first, stop - self._first)
            nodes, draws = self._nodes[own], rest.shape[1]
            log_term = self._make(1, len(nodes), len(rest), draws)
            np.matmul(member, self._table[own], out=log_term)
            scaled = self._make(2, *log_term.shape)
            log_term -= np.multiply(nodes[:, None, None], rest, out=scaled)
            top = log_term.max(axis=0)
            few_left, few_right = (np.max(log_term[end] - top) > -self._drop for end in (0, -1))
            if not few_left and not few_right:
                break
            start, stop = start - 4 * int(few_left), stop + 4 * int(few_right)
        log_term -= top
        np.exp(log_term, out=log_term)
        return nodes, log_term, top


class _AtPoint(NamedTuple):
    """The integrals of groups at one point: shares of nodes, and log-probabilities."""

    groups: LargeTiedGroups
    theta: Floats  # (T, n): of all times
    times: Ints  # (U,): the times of these groups
    rows: Ints  # (K,): the groups, time by time
    place: Ints  # (K,): index of each group's time in ``times``
    nodes: Floats  # (U, J)
    z: Floats  # (U, n, J): theta times node
    share: Floats  # (K, J): of each node in the integral
    rest: Floats  # (K,): the sum of theta behind the group
    value: Floats  # (K,): log-probability

    def slopes(self) -> Floats:
        """Return the gradient of each group's log-probability (K, n)."""
        groups, rows = self.groups, self.rows
        slope = groups.member[rows] * self._mean_by_time(self.z / np.expm1(self.z))
        mean = np.sum(self.share * self.nodes[self.place], axis=1)
        own = groups.behind[rows] * self.theta[groups.time[rows]]
        return slope + own * (1 / self.rest - mean)[:, None]

    def add_curvature(self, slope: Floats, curvature: Floats) -> None:
        """Add minus the weighted Hessians to those of the times (T, n, n).

        The Hessian of log P is that of log Theta, plus the mean of the Hessian of f over nodes,
        plus the covariance of the gradient of f over nodes. Only the products of two members'
        gradients need a sum over nodes.
        """
        groups, n = self.groups, self.theta.shape[1]
        r, diagonal = self.z / np.expm1(self.z), np.arange(self.theta.shape[1])
        member, weight = groups.member[self.rows], groups.weight[self.rows]
        behind = groups.behind[self.rows] * self.theta[groups.time[self.rows]]
        nodes = self.nodes[self.place]
        mean_node, mean_square = (np.einsum("kj,kj->k", self.share, nodes**p) for p in (1, 2))
        bend = member * self._mean_by_time(r * (1 - self.z - r))
        bend += behind * (1 / self.rest - mean_node)[:, None]
        mean = slope - behind / self.rest[:, None]  # of the gradient of f
        moved = member * self._mean_by_time(r, self.share * nodes)
        for k, (t, own) in enumerate(zip(self.times.tolist(), self._slices(), strict=True)):
            own_weight = weight[own, None]
            total = np.zeros((n, n))
            for some in bounded_slices(own.stop - own.start, 16 * n):
                group, node = np.nonzero(self.share[own][some] > _NEGLIGIBLE_SHARE)
                group += own.start + some.start
                each = member[group]
                each *= r[k].T[node]
                each *= np.sqrt(weight[group] * self.share[group, node])[:, None]
                total += each.T @ each
            cross = (own_weight * moved[own]).T @ behind[own]
            total -= cross + cross.T
            square = own_weight * (mean_square[own] - self.rest[own] ** -2.0)[:, None]
            total += (square * behind[own]).T @ behind[own]
            total -= (own_weight * mean[own]).T @ mean[own]
            total[diagonal, diagonal] += weight[own] @ bend[own]
            curvature[t] -= total

    def _mean_by_time(self, values: Floats, share: Floats | None = None) -> Floats:
        """Return the mean over nodes (K, n) of values (U, n, J) at the time of each group."""
        share = self.share if share is None else share
        parts = zip(self._slices(), values, strict=True)
        return np.concatenate([share[own] @ one.T for own, one in parts])

    def _slices(self) -> list[slice]:
        """Return the slices of the groups of each time."""
        ends = np.searchsorted(self.place, np.arange(len(self.times) + 1)).tolist()
        return [slice(*pair) for pair in pairwise(ends)]
