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
from polarbear.racing.run_sets import PairSet

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
        self._new: dict[int, list[Run]] = {}  # by the first round in which they count
        # Encoded, because a run is needed again only if there are new runs on its instance.
        self._runs_on: dict[str, list[EncodedRun]] = {}  # by instance
        self._pairs = PairSet()  # algorithm, instance: those with a run
        self._ranked: Rankings | None = None
        self._names: frozenset[str] = frozenset()
        self._stale: set[str] = set()  # instances with withdrawn runs, to be ranked again
        self._load: LoadRuns = _load_nothing
        self._stored: set[str] = set()  # instances with counted runs that are not loaded
        self._new_stored: dict[int, list[RunId]] = {}  # as `_new`, of runs that are not loaded

    def add(self, run: Run, round_: int) -> None:
        """Add a run that decisions use from the given round on."""
        self._new.setdefault(round_, []).append(self._reduce(run))

    def use_store(self, load: LoadRuns) -> None:
        """Set the function that loads runs which were added by :meth:`add_stored`."""
        self._load = load

    def add_stored(self, run: Run, round_: int) -> None:
        """Add a run that decisions use from a round on, and which is loaded when it is needed."""
        self._new_stored.setdefault(round_, []).append(key_of(run))

    def withdraw(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Drop all runs so far of some pairs (algorithm, instance)."""
        withdrawn = set(pairs)
        for round_, runs in self._new.items():
            self._new[round_] = [
                run for run in runs if (run.algorithm, run.instance) not in withdrawn
            ]
        for round_, keys in self._new_stored.items():
            self._new_stored[round_] = [key for key in keys if key[:2] not in withdrawn]
        for algorithm, instance in withdrawn:
            runs = self._runs_on.get(instance, [])
            self._runs_on[instance] = [run for run in runs if run.algorithm != algorithm]
            self._pairs.discard((algorithm, instance))
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
        rounds = sorted(k for k in self._new if k <= round_)
        arrived = (effective_run(run) for k in rounds for run in self._new[k])
        counted = [run for run in arrived if run is not None]
        wanted = frozenset(names)
        touched = {run.instance for run in counted} | self._stale
        touched = touched.union(*map(self._pairs.instances_of, wanted - self._names))
        touched |= self._insert_stored(touched, round_, effective_run)
        self._insert(counted)
        self._stale = set()
        for k in rounds:
            del self._new[k]
        rankings = self._unchanged(wanted, touched)
        runs = [
            decode_run(run, arrays=True)
            for instance in touched
            for run in self._runs_on.get(instance, ())
            if run.algorithm in wanted
        ]
        if runs:
            table = Runs.from_records(runs, direction=self._direction, clock=self._clock)
            weights = {n: w for n, w in self._weights.items() if n in table.instances}
            fresh = rank(table, self._times, weights=weights, **self._ranking)
            rankings = _order(fresh if rankings is None else rankings.join(fresh), position)
        self._ranked, self._names = rankings, wanted
        return rankings

    def to_plain(self, place: Mapping[str, int]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the rankings as plain values for JSON and arrays, without the runs themselves.

        ``place``: the number of each instance.
        """
        ranked = self._ranked
        plain = {
            "options": self._describe_options(),
            "names": sorted(self._names),
            "stale": sorted(self._stale),
            "pairs": self._pairs.to_plain(),
            "new": [(round_, [key_of(run) for run in runs]) for round_, runs in self._new.items()],
            "new_stored": list(self._new_stored.items()),
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
        self._pairs = PairSet.from_plain(plain["pairs"])
        if plain["ranked"] is not None:
            algorithms, clock, ties = plain["ranked"]
            places: list[int] = arrays["places"].tolist()
            names, instances = tuple(algorithms), tuple(order[k] for k in places)
            parts: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
            self._ranked = Rankings(names, instances, clock=clock, ties=ties, **parts)
        self._stored = set(order)
        for round_, keys in [*plain["new_stored"], *plain["new"]]:
            self._new_stored.setdefault(round_, []).extend(RunId(*key) for key in keys)

    def _describe_options(self) -> str:
        """Return all that the rankings depend on besides the runs, as text."""
        times = self._times.tolist()
        return repr((times, self._direction, self._clock, self._weights, self._ranking))

    def _insert(self, runs: Iterable[Run]) -> None:
        """Include runs in the following rankings; an extension is joined with its run."""
        for run in runs:
            _insert(self._runs_on.setdefault(run.instance, []), encode_run(run))
            self._pairs.add((run.algorithm, run.instance))

    def _insert_stored(
        self, touched: set[str], round_: int, effective_run: Callable[[Run], Run | None]
    ) -> set[str]:
        """Load the counted runs on some instances, and those that count from now on.

        Returns the instances of the latter.
        """
        new = {key for k, keys in self._new_stored.items() if k <= round_ for key in keys}
        later = {key for k, keys in self._new_stored.items() if k > round_ for key in keys}
        instances = {key.instance for key in new}
        missing = sorted((touched | instances) & self._stored | instances)
        for low in range(0, len(missing), MAX_LOADED_INSTANCES):
            some = missing[low : low + MAX_LOADED_INSTANCES]
            runs = [
                run
                for run in self._load(some)
                if (key := key_of(run)) in new
                or (key.instance in self._stored and key not in later)
            ]
            runs.sort(key=key_of)  # an extension has a later repetition than its run
            reduced = (effective_run(self._reduce(run)) for run in runs)
            self._insert(run for run in reduced if run is not None)
        self._stored.difference_update(missing)
        for k in [k for k in self._new_stored if k <= round_]:
            del self._new_stored[k]
        return instances

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


def _load_nothing(_: Collection[str]) -> Iterable[Run]:
    return ()


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
