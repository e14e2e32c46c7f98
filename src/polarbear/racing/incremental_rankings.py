"""Rank the runs of a race incrementally, rather than all of them after every round.

Only instances with new or withdrawn runs are ranked again. An algorithm that leaves is removed from
the existing rankings. For one that comes back, the instances on which it has run are ranked again.
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


class IncrementalRankings:
    """The runs of a race, with values at its times only, and their rankings."""

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
        self._new: dict[int, list[Run]] = {}  # by the first round in which they count
        # Encoded, because a run is needed again only if there are new runs on its instance.
        self._runs_on: dict[str, list[EncodedRun]] = {}  # by instance
        self._instances_of: dict[str, set[str]] = {}  # by algorithm, with a run of it
        self._ranked: Rankings | None = None
        self._names: frozenset[str] = frozenset()
        self._stale: set[str] = set()  # instances with withdrawn runs, to be ranked again

    def add(self, run: Run, round_: int) -> None:
        """Add a run that decisions use from the given round on."""
        self._new.setdefault(round_, []).append(self._reduce(run))

    def withdraw(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Drop all runs so far of some pairs (algorithm, instance)."""
        withdrawn = set(pairs)
        for round_, runs in self._new.items():
            self._new[round_] = [
                run for run in runs if (run.algorithm, run.instance) not in withdrawn
            ]
        for algorithm, instance in withdrawn:
            runs = self._runs_on.get(instance, [])
            self._runs_on[instance] = [run for run in runs if run.algorithm != algorithm]
            self._instances_of.get(algorithm, set()).discard(instance)
            self._stale.add(instance)

    def rankings(
        self,
        round_: int,
        names: Collection[str],
        effective_run: Callable[[Run], Run | None],
        position: Mapping[str, int],
    ) -> Rankings | None:
        """Return the rankings of some algorithms up to a round; None if they have no runs.

        ``effective_run``: returns a run in the form in which it counts, or None if it does not.
        ``position``: the order of instances, which must not depend on when they were ranked.
        """
        touched = self._receive(round_, effective_run) | self._stale
        self._stale = set()
        wanted = frozenset(names)
        for name in wanted - self._names:
            touched |= self._instances_of.get(name, set())
        rankings = self._unchanged(wanted, touched)
        runs = [
            decode_run(run, arrays=True)
            for instance in touched
            for run in self._runs_on[instance]
            if run.algorithm in wanted
        ]
        if runs:
            table = Runs.from_records(runs, direction=self._direction, clock=self._clock)
            weights = {n: w for n, w in self._weights.items() if n in table.instances}
            fresh = rank(table, self._times, weights=weights, **self._ranking)
            rankings = _order(fresh if rankings is None else rankings.join(fresh), position)
        self._ranked, self._names = rankings, wanted
        return rankings

    def _receive(self, round_: int, effective_run: Callable[[Run], Run | None]) -> set[str]:
        """Include the runs that decisions use up to a round, and return their instances."""
        touched: set[str] = set()
        for counted_from in sorted(k for k in self._new if k <= round_):
            for added in self._new.pop(counted_from):
                run = effective_run(added)
                if run is not None:
                    _insert(self._runs_on.setdefault(run.instance, []), encode_run(run))
                    self._instances_of.setdefault(run.algorithm, set()).add(run.instance)
                    touched.add(run.instance)
        return touched

    def _unchanged(self, wanted: frozenset[str], touched: set[str]) -> Rankings | None:
        """Return the earlier rankings of some algorithms, on instances without new runs."""
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

    def _reduce(self, run: Run) -> Run:
        """Return a run with its values at the times of the race only, to save memory."""
        time, cost = np.asarray(run.time), self._sign * np.asarray(run.value)
        best = np.minimum.accumulate(cost[np.argsort(time, kind="stable")])
        n_before = np.searchsorted(np.sort(time), self._times, side="right")
        at = np.flatnonzero(np.diff(n_before, prepend=0))
        if run.status == Status.CUT:
            at = at[self._times[at] <= run.until]
        # A run that finished keeps its last value, also at the next time of the race.
        until = max(run.until, float(self._times[at[-1]])) if len(at) else run.until
        return run._replace(
            time=self._times[at], value=self._sign * best[n_before[at] - 1], until=until
        )


def _insert(others: list[EncodedRun], run: EncodedRun) -> None:
    """Add a run to those of the same algorithm and instance; join extended runs."""
    for k, one in enumerate(others):
        if (one.algorithm, one.repetition) == (run.algorithm, run.repetition):
            others[k] = join(one, run)
            return
    others.append(run)


def _order(rankings: Rankings, position: Mapping[str, int]) -> Rankings:
    """Return the rankings with their instances sorted by the given positions."""
    order = np.array([position[name] for name in rankings.instances])
    return rankings if np.all(np.diff(order) > 0) else rankings.take(np.argsort(order))
