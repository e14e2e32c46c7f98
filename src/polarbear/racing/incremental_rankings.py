"""Rank the runs of a race incrementally, rather than all of them after every round.

Only instances with new or withdrawn runs are ranked again. An algorithm that leaves is removed from
the existing rankings. For one that comes back, the instances on which it has run are ranked again.

After a resume earlier runs stay in the store. Those of an instance are loaded when the instance is
ranked again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from polarbear.racing.jobs import RunId, key_of
from polarbear.racing.ledger import Ledger
from polarbear.racing.pool import Pool

LoadRuns = Callable[[Collection[str]], Iterable[Run]]
"""A function that returns the runs on some instances that were stored before a resume."""

MAX_LOADED_INSTANCES = 256
"""The number of instances whose stored runs are loaded at a time."""

_ARRAYS = ("times", "position", "algorithm", "offset", "instance", "weight", "status")


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
        self._new: dict[int, list[RunId]] = {}  # not ranked, by the first round in which they count
        # Encoded, because a run is needed again only if there are new runs on its instance.
        self._runs_on: dict[str, list[EncodedRun]] = {}  # by instance
        self._ranked: Rankings | None = None
        self._names: frozenset[str] = frozenset()
        self._stale: set[str] = set()  # instances with withdrawn runs, to be ranked again
        self.load: LoadRuns = lambda _: ()  # the runs that were added as `in_store`
        self._stored: set[str] = set()  # instances with runs that are not loaded

    def add(self, key: RunId, run: Run | None, round_: int) -> None:
        """Add a run that decisions use from a round on; None is loaded from the store if needed."""
        self._new.setdefault(round_, []).append(key)
        if run is None:
            self._stored.add(key.instance)
        else:
            self._runs_on.setdefault(key.instance, []).append(self._encode(run))

    def withdraw(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Rank the instances of pairs (algorithm, instance) again, whose runs were withdrawn."""
        self._stale.update(instance for _, instance in pairs)

    def rankings(
        self, round_: int, names: Collection[str], ledger: Ledger, pool: Pool
    ) -> Rankings | None:
        """Return the rankings of some algorithms up to a round; None if they have no runs.

        The ledger says which runs count, and the pool in which order the instances are, which does
        not depend on when they were ranked.
        """
        new = [key for k in sorted(self._new) if k <= round_ for key in self._new.pop(k)]
        later = {key for keys in self._new.values() for key in keys}
        wanted = frozenset(names)
        touched = {key.instance for key in new} | self._stale
        touched |= pool.find_observed(wanted - self._names)
        touched |= self._find_mixed(pool.find_observed(self._names - wanted))
        self._load_stored(touched)
        self._stale = set()
        rankings = self._unchanged(wanted, touched)
        runs = [
            decode_run(run, arrays=True)
            for instance in touched
            for run in self._join_runs(instance, later, ledger)
            if run.algorithm in wanted
        ]
        if runs:
            table = Runs.from_records(runs, direction=self._direction, clock=self._clock)
            weights = {n: w for n, w in self._weights.items() if n in table.instances}
            fresh = rank(table, self._times, weights=weights, **self._ranking)
            rankings = _order(fresh if rankings is None else rankings.join(fresh), pool.used)
        self._ranked, self._names = rankings, wanted
        return rankings

    def _join_runs(
        self, instance: str, later: Collection[RunId], ledger: Ledger
    ) -> Iterable[EncodedRun]:
        """Return the runs on an instance that count, each joined with its extensions."""
        joined: dict[RunId, EncodedRun] = {}
        # An extension has a later repetition than its run.
        for run in sorted(self._runs_on.get(instance, ()), key=key_of):
            counted = None if key_of(run) in later else ledger.renumber(run)
            if counted is not None:
                key = key_of(counted)
                joined[key] = join(joined[key], counted) if key in joined else counted
        return joined.values()

    def _load_stored(self, touched: set[str]) -> None:
        """Load the stored runs on some instances."""
        missing = sorted(touched & self._stored)
        for low in range(0, len(missing), MAX_LOADED_INSTANCES):
            for run in self.load(missing[low : low + MAX_LOADED_INSTANCES]):
                self._runs_on.setdefault(run.instance, []).append(self._encode(run))
        self._stored.difference_update(missing)

    def to_plain(self, place: Mapping[str, int]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the rankings as plain values for JSON and arrays, without the runs themselves.

        ``place``: the number of each instance.
        """
        ranked = self._ranked
        plain = {
            "options": self._describe_options(),
            "names": sorted(self._names),
            "stale": sorted(self._stale),
            "new": list(self._new.items()),
            "ranked": None if ranked is None else (ranked.algorithms, ranked.clock, ranked.ties),
        }
        if ranked is None:
            return plain, {}
        arrays = {name: getattr(ranked, name) for name in _ARRAYS}
        return plain, arrays | {"places": np.array([place[name] for name in ranked.instances])}

    def restore(
        self,
        plain: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        order: Sequence[str],
    ) -> None:
        """Restore what :meth:`to_plain` returned; ``order`` are the names of the instances."""
        if plain["options"] != self._describe_options():
            raise ValueError("the rankings have other options")
        self._names, self._stale = frozenset(plain["names"]), set(plain["stale"])
        if plain["ranked"] is not None:
            algorithms, clock, ties = plain["ranked"]
            places: list[int] = arrays["places"].tolist()
            names, instances = tuple(algorithms), tuple(order[k] for k in places)
            parts: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
            self._ranked = Rankings(names, instances, clock=clock, ties=ties, **parts)
        self._stored = set(order)
        self._new = {round_: [RunId(*key) for key in keys] for round_, keys in plain["new"]}

    def _describe_options(self) -> str:
        """Return all that the rankings depend on besides the runs, as text."""
        times = self._times.tolist()
        return repr((times, self._direction, self._clock, self._weights, self._ranking))

    def _find_mixed(self, observed: set[str]) -> set[str]:
        """Return the instances to rank again without some algorithms that were observed there.

        Elsewhere their ranks drop out. But who is tied within a tolerance depends on who is best,
        and which repetitions are compared on all who made some.
        """
        ranked = self._ranked
        if ranked is None or not observed or self._ranking.keys() - {"ties"}:
            return observed
        names, n = ranked.instances, np.bincount(ranked.instance, minlength=len(ranked.instances))
        return observed & {names[k] for k in np.flatnonzero(n > 1)}

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

    def _encode(self, run: Run) -> EncodedRun:
        """Return a run with its values at the times of the race only, to save memory."""
        time, cost = np.asarray(run.time), self._sign * np.asarray(run.value)
        best = np.minimum.accumulate(cost[np.argsort(time, kind="stable")])
        n_before = np.searchsorted(np.sort(time), self._times, side="right")
        at = np.flatnonzero(np.diff(n_before, prepend=0))
        if run.status == Status.CUT:
            at = at[self._times[at] <= run.until]
        values = self._sign * best[n_before[at] - 1]
        # A run that finished keeps its last value, also at the next time of the race.
        until = max(run.until, float(self._times[at[-1]])) if len(at) else run.until
        return encode_run(run._replace(time=self._times[at], value=values, until=until))


def _order(rankings: Rankings, position: Mapping[str, int]) -> Rankings:
    """Return the rankings with their instances sorted by the given positions."""
    order = np.array([position[name] for name in rankings.instances])
    return rankings if np.all(np.diff(order) > 0) else rankings.take(np.argsort(order))
