"""A course for races: algorithms with known utilities, runs made in advance, and what a race cost.

A run is looked up when it is asked for, so that a race costs what deciding costs and nothing else.
"""

import time
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache, partial
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import polarbear as pb
from polarbear.racing.events import Decided
from polarbear.racing.jobs import Job
from polarbear.racing.race import Fit, Race
from polarbear.simulation import draw_noisy_utilities

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
    """Runs with these utilities; whoever was lucky stays so for a time (``persistence``)."""
    times = grid(len(truth))
    noisy = draw_noisy_utilities(truth, instances, rng, times, persistence=persistence)
    # A common trend makes every time an improvement, and changes no ranking.
    trend = (np.ptp(noisy) + 1) * np.arange(len(truth))
    return Course(times, truth, noisy + trend[:, None, None])


def members(truth: Floats) -> NDArray[np.bool_]:
    """Who belongs to the anytime Pareto set: nobody is ahead of them at all times."""
    return ~(truth[:, :, None] > truth[:, None, :]).all(axis=0).any(axis=0)


def wins(truth: Floats) -> Floats:
    """The probability (T, n, n) that the row is ahead of the column on an instance."""
    return 1 / (1 + np.exp(truth[:, None, :] - truth[:, :, None]))


class Clocked:
    """A fit that counts the seconds of CPU it takes."""

    def __init__(self, fit: Fit) -> None:
        self.fit, self.seconds = fit, 0.0

    def __call__(self, data: pb.Rankings, /, *, seed: int) -> pb.Posterior:
        begin = time.process_time()
        try:
            return self.fit(data, seed=seed)
        finally:
            self.seconds += time.process_time() - begin


class Remembering:
    """A fit that gives the posterior it gave before for the same data and seed.

    Races on the same runs begin with the same rounds, whatever their rules are.
    """

    MOST = 32
    """So many posteriors are kept."""

    def __init__(self, fit: Fit) -> None:
        self.fit, self.known = fit, OrderedDict[bytes, pb.Posterior]()

    def __call__(self, data: pb.Rankings, /, *, seed: int) -> pb.Posterior:
        key = _digest(data, seed)
        if key not in self.known:
            self.known[key] = self.fit(data, seed=seed)
        self.known.move_to_end(key)
        if len(self.known) > self.MOST:
            self.known.popitem(last=False)
        return self.known[key]


def _digest(data: pb.Rankings, seed: int) -> bytes:
    found = blake2b(repr((data.algorithms, data.instances, data.times.tolist(), seed)).encode())
    for part in (data.position, data.algorithm, data.offset, data.instance, data.weight):
        found.update(np.ascontiguousarray(part).tobytes())
    return found.digest()


@cache
def remembered(evidence: str, draws: int) -> Remembering:
    """The default prior with so many draws; one memory for all arms of a process."""
    return Remembering(believing(evidence=evidence, draws=draws))


def believing(prior: Any = None, **options: Any) -> Fit:
    """A way to fit: the default one, or with another prior, evidence, number of draws."""
    return partial(pb.fit, prior=prior, **options)


def rules_of(base: Mapping[str, Any], more: Mapping[str, Any]) -> pb.Rules:
    """Rules of an arm, with what was said on the command line on top."""
    return pb.Rules.from_plain({**base, **more})


def drive(on: Course, rules: pb.Rules, fit: Fit, seed: int) -> tuple[Race, float, float]:
    """Race to the end; the race, seconds of CPU of all fits, and of all the rest."""
    clocked = Clocked(fit)
    begin = time.process_time()
    names = [str(k) for k in range(on.values.shape[1])]
    race = pb.Race(
        on.algorithms,
        on.times,
        direction="maximize",
        instances=names,
        rules=rules,
        seed=seed,
        fit=clocked,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rounds that decide nothing are counted instead
        while jobs := race.ask():
            for job in jobs:
                race.tell(on.answer(job))
    return race, clocked.seconds, time.process_time() - begin - clocked.seconds


def raced(on: Course, rules: pb.Rules, fit: Fit, seed: int) -> dict[str, Any]:
    """Race to the end, and judge it by the truth."""
    race, fitting, rest = drive(on, rules, fit, seed)
    member = dict(zip(on.algorithms, members(on.truth).tolist(), strict=True))
    return {
        "members": sum(member.values()),
        "lost": sum(member[name] for name in race.eliminated),
        "eliminated": len(race.eliminated),
        "resolved": race.ended == "resolved",
        "instances": len(race.runs.instances),
        "runs": race.spent.runs,
        "time": race.spent.time,
        "rounds": race.rounds,
        "silent": sum(isinstance(e, Decided) and bool(e.problems) for e in race.events),
        "fit": fitting,
        "rest": rest,
    }


def labelled(arm: str, more: Mapping[str, Any]) -> str:
    """The name of an arm, with the rules that were said on the command line."""
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
