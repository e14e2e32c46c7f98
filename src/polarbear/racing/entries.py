"""``Entries``: when algorithms joined a race, which decides how much evidence a claim needs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from polarbear.inference.dominance import Floats
from polarbear.inference.e_values import multiplicity


@dataclass
class Entries:
    """When each algorithm joined the race, and which rivals it met then.

    ``numbers``: 0 before the first decision, then 1, 2, ... ``met``: the rivals of a late entrant.
    """

    numbers: dict[str, list[int]] = field(default_factory=dict)
    met: dict[str, frozenset[str]] = field(default_factory=dict)
    latest: int = 0

    def add(self, algorithm: str, racing: Collection[str], *, is_late: bool) -> None:
        """Record that an algorithm joins those that are racing, or returns."""
        numbers = self.numbers.setdefault(algorithm, [])
        if is_late and not numbers:
            self.met[algorithm] = frozenset(racing) - {algorithm}
        self.latest += is_late
        numbers.append(self.latest)

    def log_thresholds(
        self, names: Sequence[str], certainty: float, *, whole_race: bool = False
    ) -> Floats:
        """Return log e-values at which row eliminates column, for all pairs of algorithms.

        K = m / (1 - certainty), where m is the multiplicity of the test (weighted Bonferroni).
        Over all rivals that an algorithm ever meets, the reciprocals of m sum to at most 1; with
        ``whole_race`` they also do so over all algorithms.
        """
        initial = frozenset(name for name, numbers in self.numbers.items() if numbers[0] == 0)

        def factor(rival: str, algorithm: str) -> float:
            first = self.numbers[algorithm][0]
            met = self.met[algorithm] if first else initial - {algorithm}
            # Each later entry has a number of its own, so no two rivals have the same one.
            later = 0
            if rival not in met and rival != algorithm:
                # A rival that has left before meets the algorithm only if it returns.
                numbers = [number for number in self.numbers[rival] if number > first]
                later = min(numbers, default=self.latest + 1) - first
            among = multiplicity(len(initial), first) if whole_race else 1.0
            return multiplicity(len(met), later) * among

        factors = [[factor(rival, algorithm) for algorithm in names] for rival in names]
        return np.log(np.array(factors)) - np.log1p(-certainty)
