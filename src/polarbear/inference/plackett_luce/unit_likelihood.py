"""The Plackett-Luce likelihood at one time if utilities differ between units of instances.

A unit is an instance, or all instances of a class, on which the algorithms have the same utilities.
Value, gradient and curvature are those of each unit.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from polarbear.data.rankings import Rankings
from polarbear.inference.plackett_luce.ordered_rankings import (
    Floats,
    Ints,
    SortedRankings,
    bounded_slices,
    iterate_sorted_rankings,
    suffix_sums,
)
from polarbear.inference.plackett_luce.tie_integrals import LargeTiedGroups
from polarbear.inference.plackett_luce.unordered_ties import TiedGroups, collect_tied_groups

_NODES_OF_TIES = 50
"""About as many nodes as the integral of a large tied group has."""


@dataclass(frozen=True)
class UnitLikelihood:
    """The log-likelihood of the rankings at one time, for utilities (units, algorithms)."""

    n_units: int
    n: int
    parts: tuple["_Part", ...]
    groups: tuple[TiedGroups | LargeTiedGroups, ...]  # their ``time`` is the unit

    @property
    def n_cells(self) -> int:
        """The number of array elements that the curvature at one point needs."""
        tied = sum(len(g.time) * (_NODES_OF_TIES * self.n + self.n**2) for g in self.groups)
        return tied + self.n**2 * sum(len(part.unit) for part in self.parts)

    def repeat(self, times: int) -> "UnitLikelihood":
        """Return the likelihood of the same rankings at several points: its units are repeated."""
        if times == 1:
            return self
        n_units = times * self.n_units

        def tile(unit: Ints) -> Ints:
            return (unit + self.n_units * np.arange(times)[:, None]).ravel()

        def copy(values: Any) -> Any:
            return np.tile(values, (times,) + (1,) * (values.ndim - 1))

        parts = tuple(_Part(tile(p.unit), copy(p.algorithm), copy(p.weight)) for p in self.parts)
        groups = tuple(
            replace(
                g,
                n_times=n_units,
                time=tile(g.time),
                member=copy(g.member),
                behind=copy(g.behind),
                weight=copy(g.weight),
                comparison=copy(g.comparison),
            )
            for g in self.groups
        )
        return UnitLikelihood(n_units, self.n, parts, groups)

    def value(self, mu: Floats) -> float:
        """Return the log-likelihood at utilities (units, algorithms)."""
        value = sum(part.value(mu) for part in self.parts)
        for some in self.groups:
            value += float(some.value(np.exp(mu)[:, :, None]).sum())
        return float(value)

    def gradient(self, mu: Floats) -> Floats:
        """Return the gradient (units, n) alone."""
        gradient = np.zeros(mu.shape)
        for part in self.parts:
            part.add_gradient(mu, gradient)
        for some in self.groups:
            gradient += some.gradient(np.exp(mu)[:, :, None])[:, :, 0]
        return gradient

    def derivatives(self, mu: Floats) -> tuple[Floats, Floats]:
        """Return gradient (units, n) and minus the Hessian (units, n, n) of each unit."""
        gradient, curvature = np.zeros(mu.shape), np.zeros((*mu.shape, self.n))
        for part in self.parts:
            part.add_derivatives(mu, gradient, curvature)
        for some in self.groups:
            slope, minus_hessian = some.sum_derivatives(np.exp(mu))
            gradient += slope
            curvature += minus_hessian
        return gradient, curvature


@dataclass(frozen=True)
class _Part:
    """Rankings of equal length at one time, best first."""

    unit: Ints  # (R,)
    algorithm: Ints  # (R, length); n where it is unknown
    weight: Floats  # (R, length): of the choice at each place; 0 where it is tied or unknown

    def value(self, mu: Floats) -> float:
        own = self._utilities(mu)
        total = suffix_sums(np.exp(own))[:, :-1]
        log_total = np.log(np.where(self.weight > 0, total, 1.0))
        return float(np.sum(self.weight * (np.where(self.weight > 0, own, 0.0) - log_total)))

    def add_gradient(self, mu: Floats, gradient: Floats) -> None:
        """Add the gradient of each unit's rankings."""
        theta = np.exp(self._utilities(mu))
        total = np.maximum(suffix_sums(theta)[:, :-1], 1e-150)
        slope = self.weight - theta * np.cumsum(self.weight / total, axis=1)
        n = mu.shape[1] + 1
        cell = (self.unit[:, None] * n + self.algorithm).ravel()
        by_cell = np.bincount(cell, slope.ravel(), minlength=len(mu) * n)
        gradient += by_cell.reshape(len(mu), n)[:, :-1]

    def add_derivatives(self, mu: Floats, gradient: Floats, curvature: Floats) -> None:
        """Add the gradient and minus the Hessian of each unit's rankings."""
        n = mu.shape[1]
        for rows in bounded_slices(len(self.unit), n * n):
            part = _Part(self.unit[rows], self.algorithm[rows], self.weight[rows])
            units, own_unit = np.unique(part.unit, return_inverse=True)
            theta = np.exp(part._utilities(mu))
            total = np.maximum(suffix_sums(theta)[:, :-1], 1e-150)
            # Sums over the choice sets that contain the algorithm at each place.
            chosen = theta * np.cumsum(part.weight / total, axis=1)
            rate = np.cumsum(part.weight / total**2, axis=1)
            size = len(theta)
            by_algorithm = np.zeros((3, size, n + 1))
            for row, values in zip(by_algorithm, (part.weight - chosen, chosen, rate), strict=True):
                np.put_along_axis(row, part.algorithm, values, axis=1)
            slope, expected, both = by_algorithm[:, :, :-1]
            present = np.zeros((size, n + 1))
            np.put_along_axis(present, part.algorithm, theta, axis=1)
            scaled = present[:, :-1]
            # The sets with two algorithms are those of the earlier one, which has the lower rate.
            minus = np.minimum(both[:, :, None], both[:, None, :])
            minus *= -scaled[:, :, None]
            minus *= scaled[:, None, :]
            minus[:, np.arange(n), np.arange(n)] += expected
            if len(units) == size:
                gradient[part.unit] += slope
                curvature[part.unit] += minus
            else:
                cell = (own_unit.ravel(), np.arange(size))
                add = csr_array((np.ones(size), cell), shape=(len(units), size))
                gradient[units] += add @ slope
                curvature[units] += (add @ minus.reshape(size, -1)).reshape(-1, n, n)

    def _utilities(self, mu: Floats) -> Floats:
        """Return the utility at each place (R, length); very low where it is unknown."""
        padded = np.concatenate([mu, np.full((len(mu), 1), -700.0)], axis=1)
        return padded[self.unit[:, None], self.algorithm]


def build_unit_likelihoods(rankings: Rankings, unit: Ints) -> list[UnitLikelihood]:
    """Return the likelihood at each time; ``unit`` (comparisons,) is the unit of each."""
    n, n_units = len(rankings.algorithms), int(unit.max(initial=-1)) + 1
    parts: list[list[_Part]] = [[] for _ in rankings.times]
    for some in iterate_sorted_rankings(rankings):
        for t, at_time in enumerate(parts):
            at_time.append(_make_part(some, t, unit, n))
    groups = collect_tied_groups(rankings, merge=False)
    likelihoods = []
    for t, at_time in enumerate(parts):
        tied = []
        for some in groups:
            here = some.take(np.flatnonzero(some.time == t))
            if len(here.time):
                tied.append(replace(here, n_times=n_units, time=unit[here.comparison]))
        likelihoods.append(UnitLikelihood(n_units, n, tuple(at_time), tuple(tied)))
    return likelihoods


def _make_part(some: SortedRankings, t: int, unit: Ints, n: int) -> _Part:
    rows = slice(*np.searchsorted(some.time, [t, t + 1]))
    weight = np.where(some.group_size[rows] == 1, some.weight[rows, None], 0.0)
    algorithm = np.where(some.known[rows], some.algorithm[rows], n)
    return _Part(unit[some.comparison[rows]], algorithm, weight)
