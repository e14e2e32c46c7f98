"""The races: the examples of studies/racing, with what happened in every round."""

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(1, str(Path(__file__).parents[1] / "racing"))

import synthetic as examples  # of studies/racing, which takes its modules from beside it
from cells import seeded
from tools.races import course as told

import polarbear as pb
from course import Floats, believing, course, members
from polarbear.racing.race import Race

EXAMPLES = tuple(examples.EXAMPLES)
BELIEVED = ("paper", "corrected", "default")
PAPER = {name: example.paper for name, example in examples.EXAMPLES.items()}
"""Instances that the paper's race took."""


class Raced(NamedTuple):
    """A race, its rounds in small, and the log-utilities of everybody over time, the truth."""

    race: Race
    rounds: list[dict[str, Any]]
    truth: dict[str, Floats]
    members: tuple[str, ...]


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
    names = dict(zip(on.algorithms, "ABCDEFGHIJ", strict=False))
    race = Race(
        names.values(),
        on.times,
        direction="maximize",
        instances=[str(k) for k in range(instances)],
        rules=pb.Rules(**examples.RULES),
        seed=number,
        fit=fits[believed],
    )
    back = {letter: own for own, letter in names.items()}
    with warnings.catch_warnings(action="ignore"):  # a round that decides nothing is seen as such
        while jobs := race.ask():
            for job in jobs:
                run = on.answer(job._replace(algorithm=back[job.algorithm]))
                race.tell(job.run(run.time, run.value))
    letters = list(names.values())
    member = tuple(who for who, is_one in zip(letters, members(truth), strict=True) if is_one)
    return Raced(race, told(race.events), dict(zip(letters, truth.T, strict=True)), member)
