"""What a race about the Pareto set has shown of its pairs, whom that drops, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Self

import numpy as np

from polarbear.inference.e_values import Shares
from polarbear.inference.replacing import LIKELY_Z, PairEvidence
from polarbear.racing.forecast import Routes, count_more, count_more_bets

if TYPE_CHECKING:
    from polarbear.inference.dominance import Bools, Floats


@dataclass(frozen=True, eq=False)
class Shown:
    """What is shown of each pair of algorithms (row, column) in each of C classes of instances."""

    evidence: PairEvidence  # its arrays have an axis of classes before the others
    log_k: Floats  # (n, n): the logarithms of the e-values that a proof needs
    log_k_ahead: Floats  # (n, n): those that a race of more instances needs
    level: float  # the logarithm of the e-value that a tie needs
    no_worse: Bools  # (C, S, n, n): row is not worse by more than the margin on a stretch
    better: Bools  # (C, n, n): row is better on average
    worse: Bools  # (C, n, n): row is worse by more than the margin on some stretch

    @classmethod
    def of(
        cls,
        classes: Sequence[PairEvidence],
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
        evidence = PairEvidence(*map(np.stack, zip(*classes, strict=True)))
        needed = log_k - np.log(max(shares.on_the_way, 1e-300))
        no_worse, better = evidence.no_worse >= needed, evidence.better >= needed
        level: Floats | float = -1.0  # no test is made
        if shares.now:
            level, least = shares.now * np.exp(-log_k), n_used or 0
            no_worse |= (evidence.p_no_worse <= level) & (evidence.instances >= least)
            better |= (evidence.p_better <= level) & (evidence.on_all_times >= least)
            level = np.where((evidence.instances >= least).all(axis=1), level, 0.0)
        return cls(
            evidence=evidence,
            log_k=needed,
            log_k_ahead=needed if shares.on_the_way else log_k,
            level=float(-np.log1p(-certainty)),
            no_worse=no_worse,
            better=better,
            worse=evidence.shows_worse(needed, level),
        )

    @cached_property
    def replaces(self) -> Bools:
        """(C, n, n): row replaces column in a class."""
        return self.stands_in & self.better

    @cached_property
    def stands_in(self) -> Bools:
        """(C, n, n): row is nowhere worse than column in a class, so it may take over."""
        nowhere_worse: Bools = np.all(self.no_worse, axis=1)
        return nowhere_worse

    @cached_property
    def tied(self) -> Bools:
        """(C, n, n): neither is worse by more than the margin on any stretch of a class."""
        within: Bools = np.all(self.evidence.no_worse >= self.level, axis=1)
        return within & within.swapaxes(1, 2) & ~np.eye(within.shape[1], dtype=bool)

    @cached_property
    def settled(self) -> Bools:
        """(n, n): in every class one replaces the other, they are tied, or likely cross."""
        ahead, replaces = self.evidence.is_ahead_somewhere(), self.replaces
        known = self.tied | replaces | replaces.swapaxes(1, 2) | (ahead & ahead.swapaxes(1, 2))
        in_every_class: Bools = np.all(known, axis=0)
        return in_every_class

    @cached_property
    def proof(self) -> Floats:
        """(n, n): how far the proof is that row replaces column, in every class; 1 is enough."""
        weakest = np.minimum(self.evidence.no_worse.min(axis=1), self.evidence.better).min(axis=0)
        share = np.maximum(weakest / self.log_k, 0.0)
        return np.where(self.replaces.all(axis=0), np.maximum(share, 1.0), np.minimum(share, 0.99))

    def find_routes(self, shift: float) -> Routes:
        """Return how many more instances each pair takes, in the class that takes the most.

        ``shift`` is added to the standard errors t of each mean.
        """
        one, k = self.evidence, self.log_k_ahead
        no_worse = count_more_bets(one.no_worse, one.t_no_worse, one.instances, k, shift)
        better = count_more_bets(one.better, one.t_better, one.on_all_times, k, shift)
        replace = np.maximum(
            np.where(self.no_worse, 0.0, no_worse).max(axis=1), np.where(self.better, 0.0, better)
        )
        replace[:, np.eye(len(k), dtype=bool)] = np.inf
        enough = np.array(self.level)
        tie = count_more_bets(one.no_worse, one.t_no_worse, one.instances, enough, shift)
        tie = tie.max(axis=1)
        ahead = count_more(one.lead + shift, one.instances, LIKELY_Z).min(axis=1)
        settle = np.minimum.reduce(
            [
                np.maximum(tie, tie.swapaxes(1, 2)),
                np.maximum(ahead, ahead.swapaxes(1, 2)),
                replace,
                replace.swapaxes(1, 2),
            ]
        )
        return Routes(replace.max(axis=0), settle.max(axis=0))


def mark_times(stretches: Sequence[slice], known: Bools) -> int:
    """Return the times of the stretches of which something is not known, as bits of a number.

    >>> bin(mark_times([slice(0, 2), slice(1, 3), slice(3, 5)], np.array([True, False, True])))
    '0b110'
    """
    open_ = (one for one, is_known in zip(stretches, known.tolist(), strict=True) if not is_known)
    return reduce(or_, ((1 << one.stop) - (1 << one.start) for one in open_), 0)


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
