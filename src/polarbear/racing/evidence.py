"""What a race knows so far, as rankings: kept up to date, not made again after every round.

Ranked again are only instances with something new on them. Who leaves is taken out of the rankings
that are there, and who comes back is put in again where it has run.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import numpy as np

from polarbear.data.rankings import Rankings, rank
from polarbear.data.run import (
    Direction,
    EncodedRun,
    Run,
    Status,
    decode_run,
    encode_run,
    sign_of,
)
from polarbear.data.runs import Runs
from polarbear.racing.extended_runs import join


class Evidence:
    """Runs as far as a race asks about them, and their rankings at its times."""

    def __init__(
        self,
        times: Iterable[float],
        direction: Direction,
        clock: str,
        ranking: Mapping[str, Any] | None = None,
    ) -> None:
        self._ranking = dict(ranking or {})  # options of rank
        self._weights: Mapping[str, float] = self._ranking.pop("weights", {})
        self._times = np.asarray(tuple(times))
        self._sign = sign_of(direction)
        self._direction: Direction = direction
        self._clock = clock
        self._new: dict[int, list[Run]] = {}  # by the round from which on they count
        # By instance. A run is decoded when others run on its instance: most never are.
        self._on: dict[str, list[EncodedRun]] = {}
        self._by: dict[str, set[str]] = {}  # on which instances an algorithm has run
        self._ranked: Rankings | None = None
        self._names: frozenset[str] = frozenset()
        self._stale: set[str] = set()  # instances to be ranked again: runs there were withdrawn

    def add(self, run: Run, round_: int) -> None:
        """Take a run that counts from a round on."""
        self._new.setdefault(round_, []).append(self._reduced(run))

    def withdraw(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Drop all runs so far of these pairs (algorithm, instance)."""
        gone = set(pairs)
        for round_, runs in self._new.items():
            self._new[round_] = [run for run in runs if (run.algorithm, run.instance) not in gone]
        for algorithm, instance in gone:
            known = self._on.get(instance, [])
            self._on[instance] = [run for run in known if run.algorithm != algorithm]
            self._by.get(algorithm, set()).discard(instance)
            self._stale.add(instance)

    def rankings(
        self,
        round_: int,
        names: Collection[str],
        counts: Callable[[Run], Run | None],
        place: Mapping[str, int],
    ) -> Rankings | None:
        """Rankings of these algorithms, of what counts up to a round; none if there is nothing.

        ``counts``: the run as it counts, or nothing if it does not. ``place``: the order of the
        instances, so that it does not matter when they were ranked.
        """
        touched = self._receive(round_, counts) | self._stale
        self._stale = set()
        wanted = frozenset(names)
        for name in wanted - self._names:
            touched |= self._by.get(name, set())
        kept = self._kept(wanted, touched)
        runs = [
            decode_run(run, arrays=True)
            for instance in touched
            for run in self._on[instance]
            if run.algorithm in wanted
        ]
        if runs:
            made = Runs.from_records(runs, direction=self._direction, clock=self._clock)
            weights = {n: w for n, w in self._weights.items() if n in made.instances}
            fresh = rank(made, self._times, weights=weights, **self._ranking)
            kept = _placed(fresh if kept is None else kept.join(fresh), place)
        self._ranked, self._names = kept, wanted
        return kept

    def _receive(self, round_: int, counts: Callable[[Run], Run | None]) -> set[str]:
        """Take in what counts by now: the instances with something new on them."""
        touched: set[str] = set()
        for known in sorted(k for k in self._new if k <= round_):
            for told in self._new.pop(known):
                run = counts(told)
                if run is not None:
                    _put(self._on.setdefault(run.instance, []), encode_run(run))
                    self._by.setdefault(run.algorithm, set()).add(run.instance)
                    touched.add(run.instance)
        return touched

    def _kept(self, wanted: frozenset[str], touched: set[str]) -> Rankings | None:
        """The rankings that are there and still hold."""
        ranked = self._ranked
        if ranked is None:
            return None
        present = [name for name in ranked.algorithms if name in wanted]
        if not present:
            return None
        if len(present) < len(ranked.algorithms):
            ranked = ranked.among(present)
        if not touched.isdisjoint(ranked.instances):
            stay = [k for k, name in enumerate(ranked.instances) if name not in touched]
            ranked = ranked.take(stay) if stay else None
        return ranked

    def _reduced(self, run: Run) -> Run:
        """A run as seen at the times of the race: a long trajectory takes no room."""
        time, cost = np.asarray(run.time), self._sign * np.asarray(run.value)
        best = np.minimum.accumulate(cost[np.argsort(time, kind="stable")])
        seen = np.searchsorted(np.sort(time), self._times, side="right")
        at = np.flatnonzero(np.diff(seen, prepend=0))
        if run.status == Status.CUT:
            at = at[self._times[at] <= run.until]
        # What ended by itself stands where it stood: at the next time of the race as well.
        until = max(run.until, float(self._times[at[-1]])) if len(at) else run.until
        return run._replace(
            time=self._times[at], value=self._sign * best[seen[at] - 1], until=until
        )


def _put(others: list[EncodedRun], run: EncodedRun) -> None:
    """Add a run; an extension and the run that it extends become one."""
    for k, one in enumerate(others):
        if (one.algorithm, one.repetition) == (run.algorithm, run.repetition):
            others[k] = join(one, run)
            return
    others.append(run)


def _placed(rankings: Rankings, place: Mapping[str, int]) -> Rankings:
    order = np.array([place[name] for name in rankings.instances])
    return rankings if np.all(np.diff(order) > 0) else rankings.take(np.argsort(order))
