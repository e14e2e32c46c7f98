r"""The Plackett-Luce likelihood of partial orders: the sum over all orders that agree with them.

Under Plackett-Luce, algorithms finish at independent exponential times with rates theta. The
probability of a partial order is that of these inequalities between times, so it

* is a product over the connected components of the order,
* is a product of choices, each of v from v and all behind it, if no algorithm has two direct
  predecessors (a forest); these are added to ``SubsetLikelihood``,
* is a sum over linear extensions otherwise, computed over down-sets S (algorithms that are placed),
  with R the rest of the component and f(empty) = 1:

      f(S + i) += f(S) theta_i / theta(R) for all i whose predecessors are in S; log P = log f(all)

The gradient needs b, the same sums backwards: d log P / d mu_j = 1 - theta_j sum over S without j
of f(S) b(S) / (f(all) theta(R)). log P is concave in mu, as the probability that mu plus Gumbel
noise lies in a convex cone (Prekopa 1973). That two algorithms are not ordered must not depend on
which of them is better: then the sum is the likelihood of what was observed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polarbear.data.rankings import Rankings
from polarbear.inference.plackett_luce.ordered_rankings import (
    Floats,
    Ints,
    bounded_slices,
    subtract_maximum,
)
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood

MAX_COMPONENT = 16
"""The most algorithms of a component that is no forest: at most 2^16 down-sets."""

CURVATURE_STEP = 1e-4
"""The step of the central differences of the gradient that give the curvature."""

TINY = 1e-300


class ChoiceFactor(NamedTuple):
    """An algorithm chosen from a set of algorithms, given as a bit mask."""

    algorithm: int
    among: int


@dataclass(frozen=True)
class Component:
    """A connected part of a partial order that is no forest, with its down-sets and steps.

    ``member`` (n,) are algorithms. Down-sets are numbered by size; ``rest`` (sets, members) is 1
    for members outside of a set. ``layers`` has for each size the steps (from, member, to), sorted
    by the set that they lead to, and the first step of each such set.
    """

    member: Ints
    rest: Floats
    layers: tuple[tuple[Ints, Ints, Ints, Ints], ...]

    def forward(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return f of each down-set (..., sets), and the sum of theta over the rest of each."""
        total = np.maximum(theta @ self.rest.T, TINY)
        f = np.zeros(total.shape)
        f[..., 0] = 1.0
        for start, node, to, first in self.layers:
            gain = f[..., start] / total[..., start] * theta[..., node]
            f[..., to[first]] = np.add.reduceat(gain, first, axis=-1)
        return f, total

    def value(self, mu: Floats) -> Floats:
        """Return log P (...) for utilities (..., algorithms)."""
        f, _ = self.forward(np.exp(subtract_maximum(mu[..., self.member])))
        return np.log(np.maximum(f[..., -1], TINY))

    def gradient(self, mu: Floats) -> Floats:
        """Return the gradient of log P by the utilities of the members (..., members)."""
        theta = np.exp(subtract_maximum(mu[..., self.member]))
        f, total = self.forward(theta)
        b = np.zeros_like(f)
        b[..., -1] = 1.0
        for start, node, to, _ in reversed(self.layers):
            order = np.argsort(start, kind="stable")
            start, node, to = start[order], node[order], to[order]
            first = np.flatnonzero(np.diff(start, prepend=-1))
            gain = b[..., to] * theta[..., node] / total[..., start]
            b[..., start[first]] = np.add.reduceat(gain, first, axis=-1)
        visits = f * b / (np.maximum(f[..., -1:], TINY) * total)
        visits[..., -1] = 0.0
        return 1.0 - theta * (visits @ self.rest)


def split_order(
    ahead: Ints,
) -> tuple[list[ChoiceFactor], list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """Split a partial order into choices of its forests, and other components.

    ``ahead`` (algorithms,) is the bit mask of all algorithms ahead of each. A component is its
    algorithms and the bit masks, by place in the component, of those ahead of each.

    >>> split_order(np.array([0, 1, 1]))          # 0 is ahead of 1 and 2, which are not ordered
    ([ChoiceFactor(algorithm=0, among=7)], [])
    >>> split_order(np.array([0, 0, 3]))          # 0 and 1 are ahead of 2
    ([], [((0, 1, 2), (0, 0, 3))])
    """
    n = len(ahead)
    masks = [int(mask) for mask in ahead]
    behind = [sum(1 << j for j in range(n) if masks[j] >> i & 1) for i in range(n)]
    choices: list[ChoiceFactor] = []
    components: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    left = {i for i in range(n) if masks[i] or behind[i]}
    while left:
        part, new = set[int](), {min(left)}
        while new:
            part |= new
            near = 0
            for i in new:
                near |= masks[i] | behind[i]
            new = {j for j in range(n) if near >> j & 1} - part
        left -= part
        members = tuple(sorted(part))
        # In a forest, any two algorithms ahead of the same one are ordered.
        is_forest = all(
            masks[j] >> i & 1 or masks[i] >> j & 1
            for k in members
            for i in members
            for j in members
            if i < j and masks[k] >> i & 1 and masks[k] >> j & 1
        )
        if is_forest:
            choices += [ChoiceFactor(i, behind[i] | 1 << i) for i in members if behind[i]]
        else:
            place = {i: k for k, i in enumerate(members)}
            own = (sum(1 << place[j] for j in members if masks[i] >> j & 1) for i in members)
            components.append((members, tuple(own)))
    return choices, components


def build_component(members: tuple[int, ...], ahead: tuple[int, ...]) -> Component:
    """Enumerate the down-sets of a component and the steps between them."""
    k = len(members)
    if k > MAX_COMPONENT:
        raise ValueError(f"a component of {k} algorithms is too large")
    layers: list[list[tuple[int, int, int]]] = []
    sets, current = [0], {0: 0}
    for _ in range(k):
        steps, following = list[tuple[int, int, int]](), dict[int, int]()
        for mask, number in current.items():
            for i in range(k):
                if not mask >> i & 1 and ahead[i] & ~mask == 0:
                    new = mask | 1 << i
                    if new not in following:
                        following[new] = len(sets)
                        sets.append(new)
                    steps.append((number, i, following[new]))
        layers.append(sorted(steps, key=lambda step: step[2]))
        current = following
    rest = (~np.array(sets)[:, None] >> np.arange(k) & 1).astype(np.float64)
    arrays = []
    for steps in layers:
        start, node, to = np.array(steps, dtype=np.intp).T
        arrays.append((start, node, to, np.flatnonzero(np.diff(to, prepend=-1))))
    return Component(np.array(members), rest, tuple(arrays))


@dataclass(frozen=True)
class PartialOrderLikelihood:
    """The likelihood of partial orders: choices of forests, and other components by weight.

    ``weights`` (components, times) is the weight of each component at each time.
    """

    forests: SubsetLikelihood
    components: tuple[Component, ...]
    weights: Floats

    @classmethod
    def from_rankings(cls, rankings: Rankings) -> "PartialOrderLikelihood":
        """Build the likelihood of ``PartialRankings``; equal components are added up."""
        n, n_times = len(rankings.algorithms), len(rankings.times)
        choices: dict[int, Floats] = {}
        wins = np.zeros((n_times, n))
        weights: dict[tuple[tuple[int, ...], tuple[int, ...]], Floats] = {}
        for t, masks, weight, _ in iterate_orders(rankings):
            chosen, components = split_order(masks)
            total = float(weight.sum())
            for algorithm, among in chosen:
                choices.setdefault(among, np.zeros(n_times))[t] += total
                wins[t, algorithm] += total
            for component in components:
                weights.setdefault(component, np.zeros(n_times))[t] += total
        used = np.array(sorted(choices), dtype=np.int64)
        member = (used[:, None] >> np.arange(n) & 1).astype(np.float64)
        count = np.array([choices[mask] for mask in used.tolist()]).reshape(-1, n_times).T
        built = tuple(build_component(*component) for component in weights)
        table = np.array([*weights.values()]).reshape(len(built), n_times)
        return cls(SubsetLikelihood(member, count, wins), built, table)

    @property
    def n_terms(self) -> int:
        """The cost of one evaluation, in units of the cost of one logarithm."""
        used = np.count_nonzero(self.weights, axis=1)
        return self.forests.n_terms + int(
            sum(k * len(one.rest) for k, one in zip(used, self.components, strict=True))
        )

    def to_single_precision(self) -> "PartialOrderLikelihood":
        """Return the likelihood itself: sums over orders need double precision."""
        return self

    def value(self, mu: Floats) -> Floats:
        """Return the log-likelihood at each time, for utilities ([draws,] times, algorithms)."""
        value = np.asarray(self.forests.value(mu), dtype=np.float64)
        for times, weight, part, rows in self._iterate(mu):
            value[(*rows, times)] += weight * part.value(mu[rows][..., times, :])
        return value

    def gradient(self, mu: Floats) -> Floats:
        """Return the gradient of the log-likelihood with respect to utilities, in their shape."""
        gradient = np.asarray(self.forests.gradient(mu), dtype=np.float64)
        for times, weight, part, rows in self._iterate(mu):
            slope = weight[:, None] * part.gradient(mu[rows][..., times, :])
            view = gradient[rows]
            view[..., times[:, None], part.member] += slope
        return gradient

    def curvature(self, mu: Floats) -> Floats:
        """Return minus the Hessian of the log-likelihood (times, algorithms, algorithms)."""
        curvature = self.forests.curvature(mu)
        for times, weight, part, _ in self._iterate(mu):
            steps = np.zeros((len(part.member), 1, mu.shape[-1]))
            steps[np.arange(len(part.member)), 0, part.member] = CURVATURE_STEP
            up, down = (part.gradient(mu[times] + sign * steps) for sign in (1, -1))
            hessian = np.moveaxis((up - down) / (2 * CURVATURE_STEP), 0, 1)
            hessian = (hessian + hessian.transpose(0, 2, 1)) / 2
            cells = (times[:, None, None], part.member[:, None], part.member[None, :])
            np.subtract.at(curvature, cells, weight[:, None, None] * hessian)
        return curvature

    def _iterate(self, mu: Floats) -> Iterator[tuple[Ints, Floats, Component, tuple[slice, ...]]]:
        """Yield each component with its times and weights there, and slices of the draws."""
        for part, row in zip(self.components, self.weights, strict=True):
            times = np.flatnonzero(row)
            if mu.ndim == 2:
                yield times, row[times], part, ()
                continue
            for rows in bounded_slices(len(mu), 4 * len(times) * len(part.rest)):
                yield times, row[times], part, (rows,)


def iterate_orders(rankings: Rankings) -> Iterator[tuple[int, Ints, Floats, Ints]]:
    """Yield the distinct partial orders at each time, with weights and numbers of comparisons.

    An order is the bit mask of those ahead of each algorithm (algorithms,).
    """
    n, n_comparisons = len(rankings.algorithms), len(rankings.instance)
    comparison = np.repeat(np.arange(n_comparisons), np.diff(rankings.offset))
    for t, row in enumerate(rankings.position):
        masks = np.zeros((n_comparisons, n), dtype=np.int64)
        masks[comparison, rankings.algorithm] = np.maximum(row, 0)
        orders, which = np.unique(masks, axis=0, return_inverse=True)
        for number, order in enumerate(orders):
            mine = np.flatnonzero(which.ravel() == number)
            yield t, order, rankings.weight[mine], mine


def compute_order_gradients(
    rankings: Rankings, mu: Floats, instance: Ints, n_instances: int
) -> Floats:
    """Return each instance's gradient of the log-likelihood (instances, times, algorithms)."""
    n = mu.shape[-1]
    gradients = np.zeros((n_instances, *mu.shape))
    for t, masks, weight, comparisons in iterate_orders(rankings):
        slope, theta = np.zeros(n), np.exp(subtract_maximum(mu[t]))
        choices, components = split_order(masks)
        for algorithm, among in choices:
            inside = (among >> np.arange(n) & 1).astype(bool)
            slope[algorithm] += 1.0
            slope[inside] -= theta[inside] / theta[inside].sum()
        for component in components:
            part = build_component(*component)
            slope[part.member] += part.gradient(mu[t])
        np.add.at(gradients[:, t], instance[comparisons], weight[:, None] * slope)
    return gradients
