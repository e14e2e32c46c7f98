"""``RunIdSet``: a set of runs with one bit for most of them.

A race of a million runs knows of each run whether it was requested and whether it arrived. As
tuples in two sets that takes 200 MB, as bits less than a tenth.
"""

from collections.abc import Iterable, Iterator, MutableSet
from typing import Any, Self

from polarbear.racing.jobs import RunId


class RunIdSet(MutableSet[RunId]):
    """A set of run ids; repetition 0 of each algorithm and instance takes one bit.

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
