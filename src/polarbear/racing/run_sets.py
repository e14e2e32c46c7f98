"""Sets of runs and of pairs (algorithm, instance), with one bit for most members.

A race of a million runs knows of each run whether it was requested and whether it arrived. As
tuples in two sets that takes 200 MB, as bits less than a tenth.
"""

from collections.abc import Iterable, Iterator, MutableSet
from typing import Any, Self

from polarbear.racing.jobs import RunId


class PairSet(MutableSet[tuple[str, str]]):
    """A set of pairs (algorithm, instance): a number for each instance, a bit per algorithm.

    >>> pairs = PairSet([("CSA", "f1"), ("RS", "f1"), ("RS", "f2")])
    >>> ("RS", "f2") in pairs, len(pairs), pairs == {("RS", "f1"), ("RS", "f2"), ("CSA", "f1")}
    (True, 3, True)
    """

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._bit: dict[str, int] = {}  # of each algorithm
        self._bits: dict[str, int] = {}  # of the algorithms on each instance
        for pair in pairs:
            self.add(pair)

    def __contains__(self, pair: object) -> bool:
        algorithm, instance = pair  # type: ignore[misc]
        return bool(self._bits.get(instance, 0) & self._bit.get(algorithm, 0))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for instance, bits in self._bits.items():
            for algorithm, bit in self._bit.items():
                if bits & bit:
                    yield algorithm, instance

    def __len__(self) -> int:
        return sum(map(int.bit_count, self._bits.values()))

    def add(self, value: tuple[str, str]) -> None:
        """Add a pair (algorithm, instance)."""
        algorithm, instance = value
        bit = self._bit.get(algorithm) or self._bit.setdefault(algorithm, 1 << len(self._bit))
        self._bits[instance] = self._bits.get(instance, 0) | bit

    def discard(self, value: tuple[str, str]) -> None:
        """Remove a pair (algorithm, instance) if it is a member."""
        if value in self:
            algorithm, instance = value
            self._bits[instance] ^= self._bit[algorithm]

    def instances_of(self, algorithm: str) -> set[str]:
        """Return the instances that are in a pair with an algorithm."""
        bit = self._bit.get(algorithm, 0)
        return {instance for instance, bits in self._bits.items() if bits & bit}

    def to_plain(self) -> list[Any]:
        """Return the set as lists of text, for JSON."""
        return [list(self._bit), list(self._bits), [f"{bits:x}" for bits in self._bits.values()]]

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        """Return the set from the lists that :meth:`to_plain` returned."""
        algorithms, instances, bits = plain
        pairs = cls()
        pairs._bit = {str(name): 1 << k for k, name in enumerate(algorithms)}
        pairs._bits = dict(zip(map(str, instances), (int(text, 16) for text in bits), strict=True))
        if any(map((1 << len(pairs._bit)).__le__, pairs._bits.values())):
            raise ValueError("a pair has an algorithm without a name")
        return pairs


class RunIdSet(MutableSet[RunId]):
    """A set of run ids; repetition 0 of each algorithm and instance takes one bit.

    >>> runs = RunIdSet([RunId("CSA", "f1", 0), RunId("CSA", "f1", 3)])
    >>> RunId("CSA", "f1", 3) in runs, RunId("CSA", "f1", 1) in runs, len(runs)
    (True, False, 2)
    """

    def __init__(self, keys: Iterable[RunId] = ()) -> None:
        self._first = PairSet()
        self._others: set[RunId] = set()
        for key in keys:
            self.add(key)

    def __contains__(self, key: object) -> bool:
        algorithm, instance, repetition = key  # type: ignore[misc]
        return key in self._others if repetition else (algorithm, instance) in self._first

    def __iter__(self) -> Iterator[RunId]:
        for algorithm, instance in self._first:
            yield RunId(algorithm, instance, 0)
        yield from self._others

    def __len__(self) -> int:
        return len(self._first) + len(self._others)

    def add(self, value: RunId) -> None:
        """Add the id of a run."""
        if value.repetition:
            self._others.add(value)
        else:
            self._first.add((value.algorithm, value.instance))

    def discard(self, value: RunId) -> None:
        """Remove the id of a run if it is a member."""
        if value.repetition:
            self._others.discard(value)
        else:
            self._first.discard((value.algorithm, value.instance))

    def to_plain(self) -> list[Any]:
        """Return the set as lists of text and numbers, for JSON."""
        return [self._first.to_plain(), sorted(map(list, self._others))]

    @classmethod
    def from_plain(cls, plain: Any) -> Self:
        """Return the set from the lists that :meth:`to_plain` returned."""
        first, others = plain
        keys = cls(
            RunId(str(algorithm), str(instance), int(k)) for algorithm, instance, k in others
        )
        keys._first = PairSet.from_plain(first)
        return keys
