"""``replay``: a race over runs that are there already, to see what racing would have saved."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from polarbear._text import format_count, format_duration, format_list, format_time
from polarbear.data import grid
from polarbear.data.run import Run, Status
from polarbear.data.runs import Runs, check_runs
from polarbear.errors import DataError
from polarbear.racing.jobs import Job
from polarbear.racing.model import FitOptions
from polarbear.racing.race import Race
from polarbear.racing.rules import Rules
from polarbear.racing.state import Spent

Map = Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]]


class Replay(Race):
    """A race over recorded runs at its end, and what it would have cost to run everything.

    :func:`replay` makes one. It answers like any :class:`Race`.

    Attributes
    ----------
    full
        What every algorithm costs, run once on every instance until the last time.
    """

    full: Spent

    @property
    def saved(self) -> float:
        """The share of the time of a full evaluation that the race did without."""
        return 1 - self.spent.time / self.full.time if self.full.time else 0.0

    @property
    def used(self) -> int:
        """How many recorded runs the race has used, each once, however often it was extended."""
        return int(np.count_nonzero(self.runs.until > 0))

    def __str__(self) -> str:
        runs, chosen = self.runs, self.chosen
        answer = (
            f"  pareto      {format_list(self.pareto)}\n"
            f"  eliminated  {format_list(list(self.eliminated))}\n"
        )
        if chosen:  # for a known budget: no algorithm is eliminated
            answer = f"  chosen      {format_list(chosen)}\n"
        return (
            f"replay, {self.ended} after {format_count(self.rounds, 'round')} on "
            f"{format_count(len(runs.instances), 'instance')}\n{answer}"
            f"  used        {self.used:,} of {format_count(self.full.runs, 'recorded run')}, "
            f"{format_time(self.spent.time, runs.clock, 7)} of "
            f"{format_duration(self.full.time, runs.clock)}\n"
            f"  saved       {round(100 * self.saved)} % of the time"
        )

    __repr__ = __str__


def replay(
    runs: Runs,
    rules: Rules | None = None,
    *,
    times: ArrayLike | None = None,
    seed: int = 0,
    fit: FitOptions = None,
) -> Replay:
    """Race over recorded runs: what would have been asked for is looked up.

    Parameters
    ----------
    runs
        What was recorded. Of several repetitions on an instance one is drawn. Where an algorithm
        was not run on an instance, nothing is known of it there.
    rules
        How sure to be, how much to spend.
    times
        The times at which one asks who is ahead; by default :func:`polarbear.grid.from_runs`
        chooses them.
    seed
        In which order instances are drawn. Several seeds show how much depends on it.
    fit
        Options of ``polarbear.fit``, or a function, as in :class:`Race`.

    Examples
    --------
    >>> import numpy as np
    >>> import polarbear as pb
    >>> utilities = np.array([[2.0, 0.0, -2.0]] * 3)
    >>> runs = pb.simulation.simulate_runs(utilities, 100, persistence=np.inf)
    >>> found = pb.replay(runs)
    >>> found.pareto, found.ended
    (('a1',), 'resolved')
    >>> found.saved > 0.5
    True
    """
    check_runs(runs, "replay")
    at = grid.from_runs(runs) if times is None else grid.check_times(times)
    place: dict[tuple[str, str], list[int]] = {}
    for k, codes in enumerate(zip(runs.algorithm.tolist(), runs.instance.tolist(), strict=True)):
        place.setdefault((runs.algorithms[codes[0]], runs.instances[codes[1]]), []).append(k)
    race = Replay(
        runs.algorithms,
        at,
        direction=runs.direction,
        instances=runs.instances,
        rules=rules,
        seed=seed,
        clock=runs.clock,
        fit=fit,
    )
    while jobs := race.ask():
        for job in jobs:
            race.tell(_answer(job, runs, place.get((job.algorithm, job.instance), [])))
    # Of several repetitions any one could have been drawn, so they cost what they do on average.
    cost = [sum(min(float(runs.until[k]), at[-1]) for k in ks) / len(ks) for ks in place.values()]
    race.full = Spent(len(place), float(sum(cost)))
    return race


class Outcome(NamedTuple):
    """How one of many replays went."""

    seed: int
    pareto: tuple[str, ...]
    ended: str | None
    rounds: int
    instances: int
    spent: Spent
    saved: float


@dataclass(frozen=True, repr=False)
class Replays:
    """How races over recorded runs go, if instances are drawn in other orders."""

    outcomes: tuple[Outcome, ...]
    full: Spent

    @property
    def saved(self) -> tuple[float, float, float]:
        """The share of the time of a full evaluation that was saved: quartiles, median between."""
        low, mid, high = np.quantile([one.saved for one in self.outcomes], [0.25, 0.5, 0.75])
        return float(low), float(mid), float(high)

    @property
    def pareto(self) -> dict[tuple[str, ...], int]:
        """How often each set of algorithms was what remained, most often first."""
        return dict(Counter(one.pareto for one in self.outcomes).most_common())

    def __str__(self) -> str:
        low, mid, high = (100 * share for share in self.saved)
        done = sum(one.ended == "resolved" for one in self.outcomes)
        sets = [f"  pareto      {number} x {format_list(s)}" for s, number in self.pareto.items()]
        return "\n".join(
            [
                f"{format_count(len(self.outcomes), 'replay')}, {done} resolved",
                f"  saved       {mid:.0f} % of the time (half of them {low:.0f} to {high:.0f} %)",
                *sets,
            ]
        )

    __repr__ = __str__


def replay_many(
    runs: Runs,
    rules: Rules | None = None,
    *,
    times: ArrayLike | None = None,
    seeds: Iterable[int] = range(20),
    fit: FitOptions = None,
    map: Map = map,  # noqa: A002
) -> Replays:
    """:func:`replay` with many seeds: how much depends on the order of instances?

    ``map`` is what calls a function for each seed. The one of an executor runs them in parallel:
    ``replay_many(runs, map=ProcessPoolExecutor().map)``.

    >>> import numpy as np
    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 100)
    >>> found = pb.replay_many(runs, seeds=range(3))
    >>> len(found.outcomes), list(found.pareto)
    (3, [('a1',)])
    """
    once = partial(_outcome, runs, rules, times, fit)
    found = list(map(once, list(seeds)))
    if not found:
        raise DataError("there are no seeds")
    return Replays(tuple(outcome for outcome, _ in found), found[0][1])


def _outcome(
    runs: Runs, rules: Rules | None, times: ArrayLike | None, fit: FitOptions, seed: int
) -> tuple[Outcome, Spent]:
    found = replay(runs, rules, times=times, seed=seed, fit=fit)
    instances = len(found.runs.instances)
    outcome = Outcome(
        seed, found.pareto, found.ended, found.rounds, instances, found.spent, found.saved
    )
    return outcome, found.full


def _answer(job: Job, runs: Runs, recorded: list[int]) -> Run:
    """What would have been seen of a run until its horizon."""
    if not recorded:
        return job.run([], [], until=0.0)
    run = runs[recorded[job.seed % len(recorded)]]
    longer = run.until > job.horizon
    time, value = np.asarray(run.time), np.asarray(run.value)
    seen = time <= job.horizon
    return job.run(
        time[seen],
        value[seen],
        until=min(run.until, job.horizon),
        status=Status.CUT if longer else run.status,
    )
