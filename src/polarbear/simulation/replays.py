"""``replay``: a race over recorded runs, which shows how much time racing would have saved.

``replay_many`` does it with many seeds, to show the effect of the order of instances.
"""

from __future__ import annotations

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
from polarbear.data.runs import Runs, check_best_so_far, check_runs
from polarbear.errors import DataError
from polarbear.racing.budget import Budget
from polarbear.racing.jobs import Job
from polarbear.racing.ledger import Spent
from polarbear.racing.questions.question import Question
from polarbear.racing.race import Race

Map = Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]]


class Replay(Race):
    """A finished race over recorded runs, with the cost of evaluating all algorithms in full.

    :func:`replay` makes one. It has all that a :class:`Race` has.

    Attributes
    ----------
    full
        The cost of running every algorithm once on every instance until the last time.
    """

    full: Spent
    _continues = True  # the recorded run is read on, which costs what is added

    @property
    def saved(self) -> float:
        """The share of the time of a full evaluation that the race saved.

        A run that is extended costs its final length. A race that makes its runs repeats such a
        run from its start, and pays for both.
        """
        return 1 - self.spent.time / self.full.time if self.full.time else 0.0

    @property
    def used(self) -> int:
        """The number of recorded runs that the race used; a run and its extensions count once."""
        return int(np.count_nonzero((self.runs.until > 0) | ~self.runs.cut))

    def __str__(self) -> str:
        runs = self.runs
        return (
            f"replay: {super().__str__()}\n"
            f"  used        {self.used:,} of {format_count(self.full.runs, 'recorded run')}, "
            f"{format_time(self.spent.time, runs.clock, 7)} of "
            f"{format_duration(self.full.time, runs.clock)}\n"
            f"  saved       {round(100 * self.saved)} % of the time"
        )

    __repr__ = __str__


def replay(
    runs: Runs,
    question: Question | None = None,
    *,
    budget: Budget | None = None,
    times: ArrayLike | None = None,
    seed: int = 0,
) -> Replay:
    """Race over recorded runs: each requested run is looked up instead of made.

    Parameters
    ----------
    runs
        The recorded runs. Of several repetitions on an instance one is drawn. A run that is not
        recorded has no values.
    question
        What the race is to find out: by default :class:`ParetoSet`.
    budget
        The limits of runs and time.
    times
        The times at which the algorithms are compared; by default
        :func:`polarbear.grid.from_runs` chooses them.
    seed
        Determines the order of the instances. Several seeds show its effect.

    Returns
    -------
    Replay
        A race at its end, with what it saved.

    Raises
    ------
    DataError
        If ``runs`` are not runs, or times do not increase.

    Examples
    --------
    >>> import numpy as np
    >>> import polarbear as pb
    >>> utilities = np.array([[2.0, 0.0, -2.0]] * 3)
    >>> runs = pb.simulation.simulate_runs(utilities, 100, persistence=np.inf)
    >>> race = pb.replay(runs)
    >>> race.pareto, race.ended
    (('a1',), 'resolved')
    >>> race.saved > 0.5
    True
    """
    check_runs(runs, "replay")
    check_best_so_far(runs, "replay")
    if len(runs.algorithms) < 2:
        raise DataError(f"need at least 2 algorithms to compare, got {len(runs.algorithms)}")
    at = grid.from_runs(runs) if times is None else grid.check_times(times)
    recorded: dict[tuple[str, str], list[int]] = {}
    for k, codes in enumerate(zip(runs.algorithm.tolist(), runs.instance.tolist(), strict=True)):
        recorded.setdefault((runs.algorithms[codes[0]], runs.instances[codes[1]]), []).append(k)
    race = Replay(
        runs.algorithms,
        at,
        direction=runs.direction,
        instances=runs.instances,
        question=question,
        budget=budget,
        seed=seed,
        clock=runs.clock,
    )
    while jobs := race.ask():
        for job in jobs:
            race.tell(_look_up_run(job, runs, recorded.get((job.algorithm, job.instance), [])))
    # Any of several repetitions could have been drawn, so their average cost is charged.
    cost = [
        sum(min(float(runs.until[k]), at[-1]) for k in ks) / len(ks) for ks in recorded.values()
    ]
    race.full = Spent(len(recorded), float(sum(cost)))
    return race


def _look_up_run(job: Job, runs: Runs, recorded: list[int]) -> Run:
    """Return the recorded run of a job, cut at the job's end; an empty run if none is recorded.

    ``recorded`` are the indices of the repetitions, of which the seed of the job chooses one.
    """
    if not recorded:
        return job.run([], [], until=0.0)
    run = runs[recorded[job.seed % len(recorded)]]
    is_cut = run.until > job.horizon
    time, value = np.asarray(run.time), np.asarray(run.value)
    observed = time <= job.horizon
    return job.run(
        time[observed],
        value[observed],
        until=min(run.until, job.horizon),
        status=Status.CUT if is_cut else run.status,
    )


class Outcome(NamedTuple):
    """The result of one of the replays that :func:`replay_many` runs."""

    seed: int
    pareto: tuple[str, ...]
    ended: str | None
    rounds: int
    instances: int
    spent: Spent
    saved: float


@dataclass(frozen=True, repr=False)
class Replays:
    """The results of several replays, which draw the instances in different orders."""

    outcomes: tuple[Outcome, ...]
    full: Spent

    @property
    def saved(self) -> tuple[float, float, float]:
        """The saved share of a full evaluation's time: lower quartile, median, upper quartile."""
        low, mid, high = np.quantile([one.saved for one in self.outcomes], [0.25, 0.5, 0.75])
        return float(low), float(mid), float(high)

    @property
    def pareto(self) -> dict[tuple[str, ...], int]:
        """The number of replays that ended with each Pareto set, most frequent first."""
        return dict(Counter(one.pareto for one in self.outcomes).most_common())

    def __str__(self) -> str:
        low, mid, high = (100 * share for share in self.saved)
        n_resolved = sum(one.ended == "resolved" for one in self.outcomes)
        sets = [f"  pareto      {number} x {format_list(s)}" for s, number in self.pareto.items()]
        return "\n".join(
            [
                f"{format_count(len(self.outcomes), 'replay')}, {n_resolved} resolved",
                f"  saved       {mid:.0f} % of the time (half of them {low:.0f} to {high:.0f} %)",
                *sets,
            ]
        )

    __repr__ = __str__


def replay_many(
    runs: Runs,
    question: Question | None = None,
    *,
    budget: Budget | None = None,
    times: ArrayLike | None = None,
    seeds: Iterable[int] = range(20),
    map: Map = map,  # noqa: A002
) -> Replays:
    """Replay with many seeds, to show the effect of the order of instances.

    ``map`` calls a function for each seed. That of an executor runs the replays in parallel:
    ``replay_many(runs, map=ProcessPoolExecutor().map)``.

    >>> import numpy as np
    >>> import polarbear as pb
    >>> runs = pb.simulation.simulate_runs(np.array([[2.0, 0.0, -2.0]] * 3), 100)
    >>> replays = pb.simulation.replay_many(runs, seeds=range(3))
    >>> len(replays.outcomes), list(replays.pareto)
    (3, [('a1',)])
    """
    replay_once = partial(_replay_once, runs, question, budget, times)
    results = list(map(replay_once, list(seeds)))
    if not results:
        raise DataError("seeds is empty: pass at least one seed")
    return Replays(tuple(outcome for outcome, _ in results), results[0][1])


def _replay_once(
    runs: Runs,
    question: Question | None,
    budget: Budget | None,
    times: ArrayLike | None,
    seed: int,
) -> tuple[Outcome, Spent]:
    """Return the result of one replay, and the cost of running all algorithms in full."""
    race = replay(runs, question, budget=budget, times=times, seed=seed)
    n_instances = len(race.runs.instances)
    outcome = Outcome(
        seed=seed,
        pareto=race.pareto,
        ended=race.ended,
        rounds=race.rounds,
        instances=n_instances,
        spent=race.spent,
        saved=race.saved,
    )
    return outcome, race.full
