"""What a race about the Pareto set has shown of its pairs, whom that drops, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from polarbear.inference.replacing import LIKELY_Z, PairEvidence
from polarbear.racing.decisions import Forecast, Shares

if TYPE_CHECKING:
    from polarbear.inference.dominance import Bools, Floats


@dataclass(frozen=True, eq=False)
class Shown:
    """What is shown of each pair of algorithms (row, column) in each of C classes of instances."""

    evidence: tuple[PairEvidence, ...]
    log_k: Floats  # (n, n): the logarithms of the e-values that a proof needs
    level: float  # the logarithm of the e-value that a tie needs
    no_worse: tuple[Bools, ...]  # (S, n, n) each: row is not worse by more than the margin
    better: tuple[Bools, ...]  # (n, n) each: row is better on average
    worse: tuple[Bools, ...]  # (n, n) each: row is worse by more than the margin on some stretch

    @classmethod
    def of(
        cls,
        evidence: tuple[PairEvidence, ...],
        log_k: Floats,
        certainty: float,
        shares: Shares,
        n_used: int | None,
    ) -> Self:
        """Return what the evidence of all classes shows.

        ``log_k`` (n, n): the logarithms of the e-values that each proof needs if all of the error
        is for these. A test is for pairs that ran on all ``n_used`` instances: who stopped before
        did so because of the data.
        """
        needed = log_k - np.log(max(shares.on_the_way, 1e-300))
        no_worse, better, worse = [], [], []
        for one in evidence:
            on_stretches, on_average = one.proves(needed)
            level = None
            if shares.now:
                level = shares.now * np.exp(-log_k)
                tested, tested_on_average = one.passes(level)
                if n_used is not None:
                    tested &= one.instances >= n_used
                    tested_on_average &= one.on_all_times >= n_used
                    level = np.where((one.instances >= n_used).all(axis=0), level, 0.0)
                on_stretches, on_average = on_stretches | tested, on_average | tested_on_average
            worse.append(one.shows_worse(needed, level))
            no_worse.append(on_stretches)
            better.append(on_average)
        return cls(
            evidence=evidence,
            log_k=needed,
            level=float(-np.log1p(-certainty)),
            no_worse=tuple(no_worse),
            better=tuple(better),
            worse=tuple(worse),
        )

    @cached_property
    def replaces(self) -> Bools:
        """(C, n, n): row replaces column in a class."""
        parts = zip(self.no_worse, self.better, strict=True)
        return np.stack([one.all(axis=0) & better for one, better in parts])

    @cached_property
    def stands_in(self) -> Bools:
        """(C, n, n): row is nowhere worse than column in a class, so it may take over."""
        return np.stack([one.all(axis=0) for one in self.no_worse])

    @cached_property
    def tied(self) -> Bools:
        """(C, n, n): neither is worse by more than the margin on any stretch of a class."""
        within = np.stack([(one.no_worse >= self.level).all(axis=0) for one in self.evidence])
        return within & within.swapaxes(1, 2) & ~np.eye(within.shape[1], dtype=bool)

    @cached_property
    def settled(self) -> Bools:
        """(n, n): in every class one replaces the other, they are tied, or likely cross."""
        ahead = np.stack([one.is_ahead_somewhere() for one in self.evidence])
        replaces = self.replaces
        known = self.tied | replaces | replaces.swapaxes(1, 2) | (ahead & ahead.swapaxes(1, 2))
        in_every_class: Bools = np.all(known, axis=0)
        return in_every_class

    @cached_property
    def proof(self) -> Floats:
        """(n, n): how far the proof is that row replaces column, in every class; 1 is enough."""
        weakest = [np.minimum(one.no_worse.min(axis=0), one.better) for one in self.evidence]
        share = np.maximum(np.min(weakest, axis=0) / self.log_k, 0.0)
        return np.where(self.replaces.all(axis=0), np.maximum(share, 1.0), np.minimum(share, 0.99))


def drop_replaceable(shown: Shown, racing: Bools, replaced_by: Mapping[int, int]) -> dict[int, int]:
    """Return the dropped algorithms with who replaces each, among those that stay.

    One after the other is dropped, by rivals that are racing still; first those that drop nobody,
    as in a chain. ``replaced_by``: of algorithms that were dropped before. If the one that replaced
    an algorithm leaves, another one takes over that is nowhere worse; if there is none, the
    algorithm is not dropped, or comes back.

    >>> from types import SimpleNamespace
    >>> chain = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> shown = SimpleNamespace(replaces=chain[None], stands_in=chain[None], proof=chain * 1.0)
    >>> drop_replaceable(shown, np.ones(3, dtype=bool), {})
    {1: 0, 2: 0}
    """
    replaces, stands_in, proof = shown.replaces, shown.stands_in, shown.proof
    stays = racing.copy()
    while True:
        by_live = replaces & stays[:, None]
        droppable = stays & by_live.any(axis=1).all(axis=0)
        if not droppable.any():
            break
        needed = by_live[:, :, droppable].any(axis=(0, 2))
        last = droppable & ~needed if (droppable & ~needed).any() else droppable
        surest = np.where(by_live.any(axis=0), proof, -1.0).max(axis=0)
        stays[np.argmax(np.where(last, surest, -2.0))] = False
    heirs: dict[int, int] = {}
    gone = [k for k in range(len(racing)) if (racing[k] and not stays[k]) or k in replaced_by]
    for k in sorted(gone, key=lambda k: -float(proof[stays, k].max(initial=0.0))):
        before = replaced_by.get(k, -1)
        able = (stands_in & stays[:, None])[:, :, k]  # (C, n)
        if before >= 0 and stays[before]:  # what was proven once needs no proof again
            heirs[k] = before
        elif able.any(axis=1).all():
            strength = np.where(able.any(axis=0), proof[:, k] + replaces[:, :, k].any(axis=0), -1.0)
            heirs[k] = int(np.argmax(strength))
        else:
            stays[k] = True
    return heirs


def forecast_pairs(
    shown: Shown, pairs: list[tuple[int, int]], n: int
) -> tuple[Forecast | None, list[float]]:
    """Return the forecast of a race, and how many more instances each open pair takes.

    A mean payoff of t standard errors after P instances has t sqrt(Q / P) after Q. It is shown when
    that is about sqrt(2 (ln K + 1)), so after Q = P 2 (ln K + 1) / t^2 instances. t itself has a
    standard error of 1, which gives the interval.
    """
    if not pairs:
        return None, []
    quantiles = []
    for shift in (1.28, 0.0, -1.28):
        routes = [_instances_needed(shown, one, shift) for one in range(len(shown.evidence))]
        replace, settle = (np.max([route[k] for route in routes], axis=0) for k in (0, 1))
        leaves = replace.min(axis=0)  # when some rival replaces the algorithm of a column
        needed = [min(settle[i, j], leaves[i], leaves[j]) for i, j in pairs]
        longest = np.zeros(n)
        for (i, j), more in zip(pairs, needed, strict=True):
            longest[[i, j]] = np.maximum(longest[[i, j]], more)
        quantiles.append((max(needed), float(longest.sum()), needed))
    low, middle, high = quantiles
    return (
        Forecast((low[0], middle[0], high[0]), (low[1], middle[1], high[1])),
        [float(more) for more in middle[2]],
    )


def _instances_needed(shown: Shown, c: int, shift: float) -> tuple[Floats, Floats]:
    """Return how many more instances (n, n) take the proof that row replaces column, and the pair.

    ``shift``: what is added to each statistic.
    """
    one = shown.evidence[c]

    def more(t: Floats, n: Floats, z: Floats | float) -> Floats:
        total = np.where(t + shift > 0, n * (z / np.maximum(t + shift, 1e-9)) ** 2, np.inf)
        return np.maximum(total - n, 0.0)

    z = np.sqrt(2 * (shown.log_k + 1))
    no_worse = np.where(shown.no_worse[c], 0.0, more(one.t_no_worse, one.instances, z))
    better = np.where(shown.better[c], 0.0, more(one.t_better, one.on_all_times, z))
    replace = np.maximum(no_worse.max(axis=0), better)
    np.fill_diagonal(replace, np.inf)
    tie = more(one.t_no_worse, one.instances, np.sqrt(2 * (shown.level + 1))).max(axis=0)
    ahead = more(one.lead, one.instances, LIKELY_Z).min(axis=0)
    settle = np.minimum(np.maximum(tie, tie.T), np.maximum(ahead, ahead.T))
    return replace, np.minimum(settle, np.minimum(replace, replace.T))
