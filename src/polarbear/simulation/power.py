"""``plan``: which differences a race can prove, before it starts.

Duels of two algorithms are simulated, of which one wins with the same probability at every time,
and decided by the rule of the race. How much the times of a run tell is not known before, so there
are two cases: luck that lasts a whole run, so that each instance is won or lost as a whole, and
luck that is new at each time. Real runs lie between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from polarbear._text import (
    align_columns,
    format_count,
    format_duration,
    format_share,
    format_share_range,
)
from polarbear.data.grid import check_times
from polarbear.errors import DataError
from polarbear.inference.e_values import Shares, multiplicity
from polarbear.inference.replacing import Duels, DuelTally, PairEvidence, find_stretches, weigh
from polarbear.racing.budget import Budget
from polarbear.racing.questions.pareto_set import ParetoSet, check_question
from polarbear.racing.questions.question import Question
from polarbear.racing.questions.replacements import Shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from polarbear.inference.dominance import Floats

POWER = 0.8
"""A difference can be proven if a race does so with this probability."""

LOST_SHARES = (0.6, 0.7, 0.8, 0.9)
"""The shares of duels that a rival loses, for which the probability of its drop is shown."""

TYPICAL = 0.7
"""The share of lost duels for which the number of instances is given."""

MAX_INSTANCES = 4000
"""Where the search for a number of instances ends."""

MAX_TESTS, MAX_SIMULATED = 5_000, 1_000_000
"""The most (stretch, race) and (time, instance, race) of a simulation, with at least 100 races.

A search, which simulates often, makes a third of the tests.
"""


class Power(NamedTuple):
    """What a race can prove if luck lasts a whole run, or if it is new at each time.

    Attributes
    ----------
    dropped
        The probability that a rival is dropped, by the share of its duels that it loses with
        another algorithm, at every time; empty if instances come without end.
    smallest
        The smallest share with which it is dropped with probability 0.8; None if none is enough.
    needed
        How many instances drop a rival that loses 70 % with probability 0.8; None if more than
        4,000.
    """

    dropped: dict[float, float]
    smallest: float | None
    needed: int | None


@dataclass(frozen=True)
class RacePlan:
    """What a race can prove, and what it costs, as :func:`plan` returns it.

    Attributes
    ----------
    algorithms, instances
        Their numbers; None if instances come without end.
    used
        The number of instances that the budget allows for all algorithms.
    times, clock, question
        Those of the race; no times if they were not given.
    luck_lasts, luck_is_new
        What can be proven if luck lasts a whole run, and if it is new at each time.
    """

    algorithms: int
    instances: int | None
    used: int | None
    times: tuple[float, ...]
    clock: str
    question: ParetoSet
    luck_lasts: Power
    luck_is_new: Power

    def __str__(self) -> str:
        number = "instances without end"
        if self.instances is not None:
            number = format_count(self.instances, "instance")
        facts = [
            ("error", self.question.describe()),
            *self._list_powers(),
            ("cost", self._describe_cost()),
        ]
        lines = [f"  {label:<11} {fact}" for label, fact in facts]
        head = f"plan of a race of {format_count(self.algorithms, 'algorithm')} on {number}"
        return "\n".join([head, *lines])

    __repr__ = __str__

    def _list_powers(self) -> list[tuple[str, str]]:
        """Return a table of how often a rival is dropped, and in words what can be proven."""
        cases = self.luck_lasts, self.luck_is_new
        n = sorted(one.needed or inf for one in cases)
        first, last = (f"{k:,}" if k < inf else f"more than {MAX_INSTANCES:,}" for k in n)
        number = first if first == last else f"{first} to {last}"
        needed = f"{number} instances to drop a rival that loses 70 % in 80 % of races"
        if not self.used:
            return [("needed", needed)]
        if self.used < n[0]:
            needed += "; with fewer, `select` chooses by what is likely"
        lasts, is_new = ([format_share(one) for one in case.dropped.values()] for case in cases)
        rows = [
            ["a rival that loses", *map(format_share, LOST_SHARES), "of its duels"],
            ["is dropped in", *lasts, "of races, if luck lasts a whole run"],
            ["", *is_new, "of races, if luck is new at each time"],
        ]
        chances = sorted(one.dropped[TYPICAL] for one in cases)
        shares = sorted(one.smallest or 2.0 for one in cases)
        who = f"one that loses {format_share_range(shares[0], min(shares[1], 1.0))}"
        said = (
            f"with {format_count(self.used, 'instance')} a rival that loses 70 % is dropped in "
            f"{format_share_range(*chances)} of races; in 80 %, {who if shares[0] <= 1 else 'none'}"
        )
        table = zip(("power", "", ""), align_columns(rows).split("\n"), strict=True)
        return [*table, ("so", said), ("needed", needed)]

    def _describe_cost(self) -> str:
        """Return the number of runs and their time, and whether the budget is for fewer."""
        if self.used is None:
            return f"{format_count(self.algorithms, 'run')} on each instance, fewer after a drop"
        n_runs = self.algorithms * self.used
        text = f"at most {format_count(n_runs, 'run')}"
        if self.times:
            text += f", {format_duration(n_runs * self.times[-1], self.clock)} in all"
        if self.used != self.instances:
            text += f"; the budget is for {format_count(self.used, 'instance')}"
            text += f" of {self.instances:,}, before the test at the end" if self.instances else ""
        return text


def plan(
    instances: int | Collection[str] | None,
    algorithms: int | Collection[str],
    times: ArrayLike | None = None,
    *,
    question: Question | None = None,
    budget: Budget | None = None,
    clock: str = "time",
) -> RacePlan:
    """Return which differences a race can prove, before it makes a run.

    Parameters
    ----------
    instances
        Their number, or their names; None if they come without end.
    algorithms
        Their number, or their names.
    times
        The times at which the algorithms are compared; by default 20 on a log axis.
    question
        What the race is to find out: :class:`ParetoSet`, the default, or one of its kind.
    budget
        The limits of runs and time.
    clock
        The unit of time.

    Returns
    -------
    RacePlan
        What can be proven, with luck that lasts for a run and with luck that does not.

    Raises
    ------
    DataError
        If an argument is invalid.

    Examples
    --------
    >>> import polarbear as pb
    >>> few, many = pb.plan(12, algorithms=3), pb.plan(200, algorithms=3)
    >>> few.luck_lasts.dropped[0.7] < 0.2 < 0.95 < many.luck_lasts.dropped[0.7]
    True
    >>> 12 < few.luck_lasts.needed < 200
    True
    """
    asked = check_question(question)
    if not isinstance(asked, ParetoSet):
        raise DataError(
            "a plan is about ParetoSet; for another question, replay recorded or simulated runs",
            question=asked,
        )
    n = None if instances is None else _count(instances, "instances", 1)
    n_algorithms = _count(algorithms, "algorithms", 2)
    budget = budget or Budget()
    if times is None and budget.time is not None:
        raise DataError(
            f"{budget.time:g} {clock} are for how many runs? Pass times=", budget=budget
        )
    at = np.geomspace(1, 1000, 20) if times is None else check_times(times)
    used = _limit(n, budget, n_algorithms, float(at[-1]))
    classes = dict(asked.classes or ())
    names = list(classes) if isinstance(instances, int | None) else [*instances]
    race = _SimulatedRace(
        question=asked,
        n_algorithms=n_algorithms,
        times=at,
        parts=[*Counter(classes[one] for one in names if one in classes).values()] or [1],
        has_end=n is not None and not classes,
    )
    stopped = race if used == n else race._replace(listed=n)
    cases = [_find_power(race, stopped, used, lasts=lasts) for lasts in (True, False)]
    return RacePlan(
        algorithms=n_algorithms,
        instances=n,
        used=used,
        times=() if times is None else tuple(at.tolist()),
        clock=clock,
        question=asked,
        luck_lasts=cases[0],
        luck_is_new=cases[1],
    )


class _SimulatedRace(NamedTuple):
    """A race of which two algorithms are simulated."""

    question: ParetoSet
    n_algorithms: int
    times: Floats
    parts: list[int]  # in what proportion instances belong to classes
    has_end: bool  # whether all instances are used at some time, as is known before
    listed: int | None = None  # how many there are, if the race stops before it has used all

    def prob_dropped(
        self, n: int, share: float, *, lasts: bool, tests: int = MAX_TESTS // 3
    ) -> float:
        """Return the probability that a rival that loses a share of its duels is dropped."""
        # If luck lasts, all times of an instance have the same outcome, so one time is enough.
        stretches = find_stretches(self.times[:1] if lasts else self.times, self.question.width)
        n_times = stretches[-1].stop
        affordable = min(tests // len(stretches), MAX_SIMULATED // (n * n_times))
        n_races = int(np.clip(affordable, 100, 2000))
        rng, races = np.random.default_rng(0), np.arange(n_races)
        row = np.zeros_like(races)
        evidence: list[PairEvidence] = []
        for part in self.parts:
            size = max(1, round(n * part / sum(self.parts)))
            place = np.ones((n_times, size, n_races + 1), np.int8)  # the last one is the rival's
            place[:, :, :-1] = 2 * (rng.random((n_times, size, n_races)) >= share)
            duels = Duels.of(races, row + n_races, place, stretches, np.ones(size))
            evidence.append(PairEvidence.empty(len(stretches), (2, n_races)))
            both = (row, races), (row + 1, races)
            weigh(evidence[-1], both, DuelTally.of(duels, stretches), self.question.margin)
        certainty, n_rivals = self.question.certainty, self.n_algorithms - 1
        among = multiplicity(self.n_algorithms) if self.question.errors == "whole_race" else 1.0
        log_k = np.full((2, n_races), np.log(multiplicity(n_rivals) * among / (1 - certainty)))
        shares = Shares.at_end_of(self.listed or n) if self.has_end else Shares()
        shares = shares._replace(now=0.0) if self.listed else shares  # the test is made at the end
        shown = Shown.of(evidence, log_k, certainty, shares, None)
        return float(np.all(shown.replaces[:, 0], axis=0).mean())


def _find_power(
    race: _SimulatedRace, stopped: _SimulatedRace, used: int | None, *, lasts: bool
) -> Power:
    """Return what a race can prove that stops after some instances, and with how many more."""
    drop = partial(race.prob_dropped, share=TYPICAL, lasts=lasts)
    needed = _find_least(lambda n: drop(n) >= POWER, 8, MAX_INSTANCES)
    if not used:
        return Power({}, None, needed)
    drop = partial(stopped.prob_dropped, used, lasts=lasts)
    smallest = _find_least(lambda percent: drop(share=percent / 100) >= POWER, 50, 100)
    dropped = {share: drop(share=share, tests=MAX_TESTS) for share in LOST_SHARES}
    return Power(dropped, smallest and smallest / 100, needed)


def _find_least(holds: Callable[[int], bool], low: int, most: int) -> int | None:
    """Return the least number for which something holds, to 1 %; None if it is above ``most``."""
    high = low
    while high < most and not holds(high):
        low, high = high, min(2 * high, most)
    if high == most and not holds(most):
        return None
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _count(given: int | Collection[str], what: str, least: int) -> int:
    """Return a number that is given as such, or by names."""
    number = given if isinstance(given, int) else len(given)
    if number < least:
        raise DataError(f"{what}={number}: expected at least {least}")
    return number


def _limit(n: int | None, budget: Budget, n_algorithms: int, last: float) -> int | None:
    """Return on how many of ``n`` instances a budget lets all algorithms run to the last time."""
    limits = [] if n is None else [n]
    limits += [] if budget.runs is None else [budget.runs // n_algorithms]
    limits += [] if budget.time is None else [int(budget.time / (n_algorithms * last) + 1e-9)]
    return min(limits, default=None)
