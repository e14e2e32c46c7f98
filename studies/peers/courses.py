"""What all methods race on: values of all algorithms on all instances at all times, and the truth.

Two kinds of simulated races whose truth is known, and the two recorded pools of MA-BBOB, whose
truth is the Plackett-Luce model nearest to all of the pool.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from racing.truths import find_replacing, replacing_by_utilities
from tools.records import seeded

import polarbear as pb
from polarbear.calibration.population import fit_utilities
from polarbear.simulation import PAPER_PRIOR, draw_noisy_utilities, draw_truth, rank_costs

Floats = NDArray[np.float64]

POOLS = Path(__file__).parents[1] / "calibration" / "pools"
TIMES = np.linspace(0.05, 1.0, 20)
PERSISTENCE = 0.5
"""Whoever is lucky stays so for about half of a run, as real runs do."""


class Course(NamedTuple):
    """Values (T, instances, n), of which the smallest is best, and true log-utilities (T, n).

    ``replaces`` (n, n): whether row truly replaces column, within the margin of the default rule.
    """

    algorithms: tuple[str, ...]
    times: Floats
    values: Floats
    truth: Floats
    replaces: NDArray[np.bool_]

    @property
    def members(self) -> frozenset[str]:
        """The true anytime Pareto set."""
        return find_members(self.algorithms, self.truth)

    def missed(self, kept: frozenset[str]) -> list[str]:
        """Those left out although nobody that is kept replaces them."""
        stays = [a in kept for a in self.algorithms]
        left_out = [k for k, stay in enumerate(stays) if not stay]
        return [self.algorithms[k] for k in left_out if not self.replaces[stays, k].any()]

    def regret(self, kept: frozenset[str]) -> float:
        """By how much the best of those kept loses to the best of all, at the worst time.

        What it wins against it, short of one half.
        """
        chosen = [a in kept for a in self.algorithms]
        gap = self.truth.max(axis=1) - self.truth[:, chosen].max(axis=1)
        return float(0.5 - 1 / (1 + np.exp(gap.max())))

    def full(self) -> float:
        """What it costs to run all algorithms on all instances to the end."""
        return float(self.times[-1] * self.values.shape[1] * len(self.algorithms))

    def runs(self) -> pb.Runs:
        """The same as runs; a common trend makes every time an improvement and moves no ranking."""
        trend = (np.ptp(self.values) + 1) * np.arange(len(self.times))
        value = self.values - trend[:, None, None]
        records = [
            pb.Run(name, f"i{k}", self.times, value[:, k, a], float(self.times[-1]))
            for k in range(value.shape[1])
            for a, name in enumerate(self.algorithms)
        ]
        return pb.Runs.from_records(records, direction="minimize")


def find_members(algorithms: tuple[str, ...], truth: Floats) -> frozenset[str]:
    """Those that nobody beats at every time, by their true log-utilities (T, n)."""
    ahead = np.all(truth[:, :, None] > truth[:, None, :], axis=0)
    beaten = np.any(ahead, axis=0)
    return frozenset(a for a, out in zip(algorithms, beaten, strict=True) if not out)


def handover(number: int, instances: int) -> Course:
    """One is ahead early, one late, one in between is never the best and never dominated.

    Three more are dominated: one by little at every time, two clearly.
    """
    rng = seeded("handover", number)
    t = TIMES[:, None]
    swing = rng.uniform(1.0, 1.6)
    sprinter, stayer = swing * (0.5 - t), swing * (t - 0.5)
    between = 0.1 - 0.35 * swing * np.abs(t - 0.5) - 0.2
    shadow = between - rng.uniform(0.3, 0.6)
    rest = np.minimum(sprinter, stayer) - rng.uniform(0.5, 1.5, 2)
    truth = np.hstack([sprinter, stayer, between, shadow, rest])
    names = ("sprinter", "stayer", "between", "shadow", "weak", "weaker")
    return _simulated(names, truth, instances, seeded("handover runs", number))


def drawn(number: int, instances: int) -> Course:
    """Eight algorithms as the paper draws its truths, of which at least three are members."""
    rng = seeded("drawn", number)
    names = tuple("ABCDEFGH")
    while True:
        truth, _ = draw_truth(PAPER_PRIOR, TIMES, len(names), rng)
        if len(find_members(names, truth)) >= 3:
            return _simulated(names, truth, instances, rng)


def _simulated(
    names: tuple[str, ...], truth: Floats, instances: int, rng: np.random.Generator
) -> Course:
    noisy = draw_noisy_utilities(truth, instances, rng, TIMES, persistence=PERSISTENCE)
    return Course(names, TIMES, -noisy, truth, replacing_by_utilities(truth, TIMES))


@cache
def pool(name: str, instances: int | None = None) -> Course:
    """A recorded pool at every other of its 60 times; values are positions among the seven."""
    with np.load(POOLS / f"{name}.npz", allow_pickle=False) as file:
        position = file["position"][1::2, :instances].astype(np.float64)
        algorithms, times = tuple(file["algorithms"].tolist()), file["times"][1::2].astype(float)
    rankings = rank_costs(position, algorithms=algorithms, times=times)
    truth = fit_utilities(rankings)
    at = [rankings.algorithms.index(name) for name in algorithms]
    wins = (position[..., :, None] < position[..., None, :]).mean(axis=1)
    replaces = find_replacing(wins, wins.swapaxes(1, 2), times)
    return Course(algorithms, times, position, truth[:, at], replaces)
