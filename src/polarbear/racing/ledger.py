"""``Ledger``: the runs of a race and their cost; ``Limit`` and ``TrialRuns`` of an algorithm."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from polarbear.data.run import FAILED, EncodedRun, Run
from polarbear.racing.events import Hosted
from polarbear.racing.extended_runs import effective_runs
from polarbear.racing.failures import Reasons, withdraw_failures
from polarbear.racing.jobs import RunId, key_of


class Spent(NamedTuple):
    """A number of runs and their total time."""

    runs: int = 0
    time: float = 0.0

    def plus(self, time: float, runs: int = 1) -> "Spent":
        """Return the sum after further runs of a total time."""
        return Spent(self.runs + runs, self.time + time)

    @classmethod
    def total(cls, parts: Mapping[str, "Spent"]) -> "Spent":
        """Return the sum of what was spent on each algorithm."""
        runs, times = zip(*parts.values(), strict=True) if parts else ((), ())
        return cls(sum(runs), sum(times, 0.0))


_NOTHING = Spent()


class Limit(NamedTuple):
    """The most that the runs of one algorithm may cost; None where it has no limit of its own."""

    max_runs: int | None = None
    max_time: float | None = None

    def allows(self, spent: Spent) -> bool:
        """Return whether a number of runs and their time are within the limit."""
        runs_allowed = self.max_runs is None or spent.runs <= self.max_runs
        # Ten runs of .1 take 1 in all, though their sum is rounded.
        return runs_allowed and (self.max_time is None or spent.time <= self.max_time * (1 + 1e-9))


class TrialRuns(NamedTuple):
    """The number of runs that a newcomer has made, and whether one had a value and did not fail.

    A broken program may take until its time limit in every run. So a newcomer first makes one run
    alone. If that is successful, the rest of its first batch follows; if not, as many runs as are
    needed to remove it.

    >>> trials = TrialRuns(), TrialRuns(1, passed=True), TrialRuns(1)
    >>> [trial.choose_batch(8, 3) for trial in trials]
    [1, 7, 3]
    """

    n_runs: int = 0
    passed: bool = False

    def choose_batch(self, first_batch: int, max_failures: int | None) -> int:
        """Return how many runs to make in the next round."""
        if not self.n_runs:
            return 1
        n_runs = first_batch
        if not self.passed and max_failures is not None:
            n_runs = min(n_runs, max_failures + 1)
        return max(n_runs - self.n_runs, 1)


class RunIdSet(MutableSet[RunId]):
    """A set of run ids; repetition 0 of each algorithm and instance takes one bit.

    A race of a million runs knows of each run whether it was requested and whether it arrived. As
    tuples in two sets that takes 200 MB, as bits less than a tenth.

    >>> runs = RunIdSet([RunId("CSA", "f1", 0), RunId("CSA", "f1", 3)])
    >>> RunId("CSA", "f1", 3) in runs, RunId("CSA", "f1", 1) in runs, len(runs)
    (True, False, 2)
    """

    def __init__(self, keys: Iterable[RunId] = ()) -> None:
        self._bit: dict[str, int] = {}  # of each algorithm
        self._bits: dict[str, int] = {}  # of the algorithms on each instance
        self._others: set[RunId] = set()
        for key in keys:
            self.add(key)

    def __contains__(self, key: object) -> bool:
        algorithm, instance, repetition = key  # type: ignore[misc]
        if repetition:
            return key in self._others
        return bool(self._bits.get(instance, 0) & self._bit.get(algorithm, 0))

    def __iter__(self) -> Iterator[RunId]:
        for instance, bits in self._bits.items():
            for algorithm, bit in self._bit.items():
                if bits & bit:
                    yield RunId(algorithm, instance, 0)
        yield from self._others

    def __len__(self) -> int:
        return sum(map(int.bit_count, self._bits.values())) + len(self._others)

    def add(self, value: RunId) -> None:
        """Add the id of a run."""
        algorithm, instance, repetition = value
        if repetition:
            self._others.add(value)
        else:
            bit = self._bit.get(algorithm) or self._bit.setdefault(algorithm, 1 << len(self._bit))
            self._bits[instance] = self._bits.get(instance, 0) | bit

    def discard(self, value: RunId) -> None:
        """Remove the id of a run if it is a member."""
        if value.repetition:
            self._others.discard(value)
        elif value in self:
            self._bits[value.instance] ^= self._bit[value.algorithm]

    def to_plain(self) -> list[Any]:
        """Return the set as lists of text and numbers, for JSON."""
        bits = [f"{bits:x}" for bits in self._bits.values()]
        return [list(self._bit), list(self._bits), bits, sorted(map(list, self._others))]

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        """Return the set from the lists that :meth:`to_plain` returned."""
        algorithms, instances, bits, others = plain
        keys = cls(map(RunId.from_plain, others))
        keys._bit = {str(name): 1 << k for k, name in enumerate(algorithms)}
        keys._bits = dict(zip(map(str, instances), (int(text, 16) for text in bits), strict=True))
        if any(map((1 << len(keys._bit)).__le__, keys._bits.values())):
            raise ValueError("a run has an algorithm without a name")
        return keys


@dataclass
class Ledger:
    """All runs of a race by their ids, and the time that they cost.

    A requested run is charged up to its horizon, and after its round for the time that it took. An
    extension is charged from its start, or for what it adds in a replay. The first run with a given
    id counts; later ones with the same id are ignored.
    """

    arrived: RunIdSet = field(default_factory=RunIdSet)  # including withdrawn runs
    n_runs: Counter[str] = field(default_factory=Counter)  # by algorithm, without withdrawn runs
    failed: RunIdSet = field(default_factory=RunIdSet)  # by their status, or with a reason
    reasons: Reasons = field(default_factory=dict)  # why runs failed, by algorithm
    spent_by: dict[str, Spent] = field(default_factory=dict)  # requested runs that arrived
    requested_by: dict[str, Spent] = field(default_factory=dict)  # on which limits are set
    ever_requested: RunIdSet = field(default_factory=RunIdSet)  # including cancelled runs
    extends: dict[RunId, int] = field(default_factory=dict)  # the repetition that a run extends
    superseded: RunIdSet = field(default_factory=RunIdSet)  # retried after a failure, or cancelled
    withdrawn: RunIdSet = field(default_factory=RunIdSet)  # arrived, and excluded from then on
    workers: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)  # details: number

    def request(self, key: RunId, cost: float) -> None:
        """Charge a requested run."""
        self.ever_requested.add(key)
        spent = self.requested_by.get(key.algorithm, _NOTHING)
        self.requested_by[key.algorithm] = spent.plus(cost)

    def correct(self, algorithm: str, time: float) -> None:
        """Charge a run for how much longer than planned it took."""
        self.requested_by[algorithm] = self.requested_by[algorithm].plus(time, runs=0)

    @property
    def requested(self) -> Spent:
        """All requested runs, on which limits are set."""
        return Spent.total(self.requested_by)

    @property
    def spent(self) -> Spent:
        """The requested runs that arrived."""
        return Spent.total(self.spent_by)

    def receive(self, run: Run, charged_from: float) -> None:
        """Add a run that has arrived, unless one with its id has."""
        key = key_of(run)
        if key in self.arrived:
            return
        self.arrived.add(key)
        self.n_runs[key.algorithm] += 1
        if key in self.ever_requested:
            spent = self.spent_by.get(key.algorithm, _NOTHING)
            self.spent_by[key.algorithm] = spent.plus(run.until - charged_from)
        if run.status in FAILED:
            self.failed.add(key)

    def counted(self, runs: Iterable[Run]) -> Iterator[Run]:
        """Yield each run that decisions use, once: a run and its extensions are one run."""
        counted = (run for run in runs if key_of(run) not in self.superseded)
        return effective_runs(counted, self.extends)

    def renumber(self, run: EncodedRun) -> EncodedRun | None:
        """Return a run with the repetition number that rankings use; None if it does not count.

        An extension has the number of the run that it extends. A requested run has number 0, even
        if it replaces a failed one.
        """
        key = key_of(run)
        if key in self.superseded:
            return None
        original = key._replace(repetition=self.extends.get(key, key.repetition))
        return run._replace(
            repetition=0 if original in self.ever_requested else original.repetition
        )

    def attribute(self, runs: Iterable[RunId], worker: tuple[tuple[str, str], ...]) -> Hosted:
        """Return the event that records which worker process made these runs.

        The first event of a worker also holds its details.

        >>> ledger = Ledger(workers={(("host", "node-7"),): 1})
        >>> [ledger.attribute([], (("host", f"node-{k}"),)).worker for k in (7, 8)]
        [1, 2]
        """
        number = self.workers.get(worker)
        if number is not None:
            return Hosted(number, tuple(runs))
        return Hosted(len(self.workers) + 1, tuple(runs), dict(worker))

    def withdraw(self, pairs: set[tuple[str, str]]) -> None:
        """Exclude the runs so far of pairs (algorithm, instance)."""
        excluded = {key for key in self.arrived if key[:2] in pairs}
        self.n_runs -= Counter(key.algorithm for key in excluded - self.withdrawn)
        self.withdrawn |= excluded
        self.failed -= excluded
        self.superseded |= excluded
        withdraw_failures(self.reasons, pairs)
