"""A course for races: algorithms with known utilities, runs made in advance, and what a race cost.

A run is looked up when it is asked for, so that a race costs what deciding costs and nothing else.
"""

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from racing.truths import count_missed, replacing_by_utilities

import polarbear as pb
from polarbear.racing.events import Decided
from polarbear.racing.jobs import Job
from polarbear.racing.questions.paper_pareto_set import OverTime
from polarbear.racing.race import Race
from polarbear.simulation import draw_noisy_utilities, find_members

Floats = NDArray[np.float64]


class Course(NamedTuple):
    """Utilities (T, n), and values (T, instances, n) of runs, of which the largest is best."""

    times: Floats
    truth: Floats
    values: Floats

    @property
    def algorithms(self) -> list[str]:
        return [f"a{k}" for k in range(self.truth.shape[1])]

    def answer(self, job: Job) -> pb.Run:
        seen = int(np.searchsorted(self.times, job.horizon, side="right"))
        run = self.values[:seen, int(job.instance), int(job.algorithm[1:])]
        return job.run(self.times[:seen], run)


def grid(n_times: int) -> Floats:
    """Evenly spaced; from 0.02, for from a factor of 100 on priors would take logarithms."""
    return np.linspace(0.02, 1.0, n_times)


def course(
    truth: Floats, instances: int, rng: np.random.Generator, persistence: float = 0.0
) -> Course:
    """Make runs with these utilities; the noise of a run lasts for ``persistence``."""
    times = grid(len(truth))
    noisy = draw_noisy_utilities(truth, instances, rng, times, persistence=persistence)
    # A common trend makes every time an improvement, and changes no ranking.
    trend = (np.ptp(noisy) + 1) * np.arange(len(truth))
    return Course(times, truth, noisy + trend[:, None, None])


class Method(NamedTuple):
    """The question of a race, and its budget."""

    question: pb.Question
    budget: pb.Budget = pb.Budget()

    def change(self, changes: Mapping[str, Any]) -> Self:
        """Return the method with other fields of the question or the budget."""
        limits = {field.name for field in fields(pb.Budget)} & changes.keys()
        asked = {name: value for name, value in changes.items() if name not in limits}
        budget = replace(self.budget, **{name: changes[name] for name in limits})
        return self._replace(question=replace(self.question, **asked), budget=budget)


def methods_of(
    certainty: float, prior: Any = None, over_time: OverTime = "temporal"
) -> dict[str, Method]:
    """Return ours, ours at single times without margin, and a configuration of the paper."""
    questions = {
        "default": pb.ParetoSet(certainty=certainty),
        "strict": pb.StrictParetoSet(certainty=certainty),
        "paper": pb.PaperParetoSet(over_time, certainty=certainty, fit={"prior": prior}),
    }
    return {name: Method(question) for name, question in questions.items()}


def drive(on: Course, method: Method, seed: int, *, endless: bool = False) -> tuple[Race, float]:
    """Race to the end, which is known unless it is ``endless``; return the race and CPU seconds."""
    begin, n = time.process_time(), on.values.shape[1]
    race = pb.Race(
        on.algorithms,
        on.times,
        direction="maximize",
        instances=None if endless else [str(k) for k in range(n)],
        question=method.question,
        budget=method.budget,
        seed=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rounds that decide nothing are counted instead
        while jobs := race.ask():
            if max(int(job.instance) for job in jobs) >= n:
                break
            for job in jobs:
                race.tell(on.answer(job))
    return race, time.process_time() - begin


def raced(on: Course, method: Method, seed: int, *, endless: bool = False) -> dict[str, Any]:
    """Race to the end, and judge it by the truth."""
    race, seconds = drive(on, method, seed, endless=endless)
    member = dict(zip(on.algorithms, find_members(on.truth).tolist(), strict=True))
    replacing = replacing_by_utilities(on.truth, on.times)
    return {
        "members": sum(member.values()),
        "lost": sum(member[name] for name in race.eliminated),
        "eliminated": len(race.eliminated),
        "missed": count_missed(race, replacing, on.algorithms),
        "resolved": race.ended == "resolved",
        "instances": len(race.runs.instances),
        "runs": race.spent.runs,
        "time": race.spent.time,
        "rounds": race.rounds,
        "silent": sum(isinstance(e, Decided) and bool(e.decision.problems) for e in race.events),
        "seconds": seconds,
    }


def labelled(arm: str, more: Mapping[str, Any]) -> str:
    """The name of an arm, with the changes that were said on the command line."""
    said = [f"{name}={value}" for name, value in more.items()]
    return "; ".join([arm, *said])


def arms(
    named: Mapping[str, Any], races: int | Sequence[int], more: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, int]]:
    """Arms by their full names, and how many races each has."""
    names = [labelled(arm, more) for arm in named]
    wanted = [races] * len(names) if isinstance(races, int) else races
    measures = dict(zip(names, named.values(), strict=True))
    return measures, dict(zip(names, wanted, strict=True))
