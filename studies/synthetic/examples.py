"""The races: the examples of studies/racing, with what was believed after every round."""

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(1, str(Path(__file__).parents[1] / "racing"))

import synthetic as examples  # of studies/racing, which takes its modules from beside it
from cells import seeded

import polarbear as pb
from course import Floats, believing, course, members
from polarbear.racing.core import Fit, Race
from polarbear.racing.events import Decided

EXAMPLES = tuple(examples.EXAMPLES)
BELIEVED = ("paper", "corrected", "default")
PAPER = {name: example.paper for name, example in examples.EXAMPLES.items()}
"""Instances that the paper's race took."""


class Round(NamedTuple):
    """A look: what was believed, and what came of it."""

    number: int
    instances: int
    posterior: pb.Posterior
    eliminated: tuple[str, ...]
    settled: tuple[str, ...]


class Raced(NamedTuple):
    """A race with its truth: log-utilities (T, n)."""

    race: Race
    truth: Floats
    members: tuple[str, ...]
    rounds: list[Round]

    def key_rounds(self, most: int) -> list[Round]:
        """Those in which something happened; the first and the last of them, and others between."""
        happened = [one for one in self.rounds if one.eliminated or one.settled] or self.rounds
        at = np.unique(np.linspace(0, len(happened) - 1, min(most, len(happened))).astype(int))
        return [happened[k] for k in at]


class _Remembering:
    """A fit that keeps its posteriors."""

    def __init__(self, fit: Fit) -> None:
        self.fit, self.made = fit, list[pb.Posterior]()

    def __call__(self, data: pb.Rankings, /, *, seed: int) -> pb.Posterior:
        self.made.append(self.fit(data, seed=seed))
        return self.made[-1]


def raced(name: str, believed: str, *, number: int = 0, instances: int = 1500) -> Raced:
    """One race of a kind: the same truth and the same runs, whatever is believed."""
    truth = examples.truth_of(name, number)
    on = course(truth, instances, seeded("runs", name, number))
    prior = examples.EXAMPLES[name].prior
    fits: dict[str, Any] = {
        "paper": believing(prior, evidence="rankings"),
        "corrected": believing(prior),
        "default": believing(),
    }
    fit = _Remembering(fits[believed])
    names = dict(zip(on.algorithms, "ABCDEFGHIJ", strict=False))
    race = Race(
        names.values(),
        on.times,
        direction="maximize",
        instances=[str(k) for k in range(instances)],
        rules=pb.Rules(**examples.RULES),
        seed=number,
        fit=fit,
    )
    back = {letter: own for own, letter in names.items()}
    with warnings.catch_warnings(action="ignore"):  # a round that decides nothing is seen as such
        while jobs := race.ask():
            for job in jobs:
                run = on.answer(job._replace(algorithm=back[job.algorithm]))
                race.tell(job.run(run.time, run.value))
    member = zip(names.values(), members(truth), strict=True)
    return Raced(race, truth, tuple(k for k, m in member if m), _rounds(race, fit.made))


def _rounds(race: Race, made: list[pb.Posterior]) -> list[Round]:
    decided = [event for event in race.events if isinstance(event, Decided)]
    found, before = [], set[str]()
    for number, (event, posterior) in enumerate(zip(decided, made, strict=False), start=1):
        out = tuple(one.algorithm for one in event.eliminated)
        unsettled = {name for pair in event.open for name in pair[:2]}
        settled = tuple(
            name for name in posterior.algorithms if name not in {*out, *unsettled, *before}
        )
        before |= {*settled}
        found.append(Round(number, posterior.instances, posterior, out, settled))
    return found
