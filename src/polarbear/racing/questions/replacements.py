"""What a race about the Pareto set has shown of its pairs, whom that drops, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from polarbear.inference.replacing import LIKELY_Z, PairEvidence
from polarbear.racing.decisions import Shares
from polarbear.racing.forecast import Routes, count_more

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

    def find_routes(self, shift: float) -> Routes:
        """Return how many more instances each pair takes, in the class that takes the most.

        A bet on a mean of t standard errors has reached K when t is about sqrt(2 (ln K + 1)).
        ``shift`` is added to each t.
        """
        routes = [self._find_routes_in(one, shift) for one in range(len(self.evidence))]
        return Routes(*np.max(routes, axis=0))

    def _find_routes_in(self, c: int, shift: float) -> Routes:
        """Return how many more instances each pair takes in a class."""
        one, z = self.evidence[c], np.sqrt(2 * (self.log_k + 1))
        no_worse = count_more(one.t_no_worse + shift, one.instances, z)
        better = count_more(one.t_better + shift, one.on_all_times, z)
        replace = np.maximum(
            np.where(self.no_worse[c], 0.0, no_worse).max(axis=0),
            np.where(self.better[c], 0.0, better),
        )
        np.fill_diagonal(replace, np.inf)
        enough = np.sqrt(2 * (self.level + 1))
        tie = count_more(one.t_no_worse + shift, one.instances, enough).max(axis=0)
        ahead = count_more(one.lead + shift, one.instances, LIKELY_Z).min(axis=0)
        settle = np.minimum(np.maximum(tie, tie.T), np.maximum(ahead, ahead.T))
        return Routes(replace, np.minimum(settle, np.minimum(replace, replace.T)))


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
