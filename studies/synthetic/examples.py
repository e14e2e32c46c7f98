"""The races: the examples of studies/racing, with what happened in every round."""

import warnings
from typing import Any, NamedTuple

from racing import synthetic as examples
from racing.cells import seeded
from racing.course import Floats, course, methods_of
from tools.races import course as told

from polarbear.racing.race import Race
from polarbear.simulation import find_members

EXAMPLES = tuple(examples.EXAMPLES)
METHODS = examples.METHODS
CERTAINTY = {"default": 0.95, "strict": 0.95, "paper": 0.99}
"""That of the paper, and the default of the package."""

PAPER = {name: example.paper for name, example in examples.EXAMPLES.items()}
"""Instances that the paper's race took."""


class Raced(NamedTuple):
    """A race, a summary of its rounds, and the true log-utilities over time."""

    race: Race
    rounds: list[dict[str, Any]]
    truth: dict[str, Floats]
    members: tuple[str, ...]


def raced(name: str, method: str, *, number: int = 0, instances: int = examples.INSTANCES) -> Raced:
    """Race an example by a method; the truth and the runs are the same for all methods."""
    truth = examples.truth_of(name, number)
    on = course(truth, instances, seeded("runs", name, number))
    chosen = methods_of(CERTAINTY[method], examples.EXAMPLES[name].prior)[method]
    names = dict(zip(on.algorithms, "ABCDEFGHIJ", strict=False))
    race = Race(
        names.values(),
        on.times,
        direction="maximize",
        instances=[str(k) for k in range(instances)],
        question=chosen.question,
        seed=number,
    )
    back = {letter: own for own, letter in names.items()}
    with warnings.catch_warnings(action="ignore"):  # a round that decides nothing is seen as such
        while jobs := race.ask():
            for job in jobs:
                run = on.answer(job._replace(algorithm=back[job.algorithm]))
                race.tell(job.run(run.time, run.value))
    letters = list(names.values())
    member = tuple(who for who, is_one in zip(letters, find_members(truth), strict=True) if is_one)
    return Raced(race, told(race.events), dict(zip(letters, truth.T, strict=True)), member)
