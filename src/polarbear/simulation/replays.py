"""``replay_many``: replays of recorded runs with many seeds, to show the effect of their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from polarbear._text import format_count, format_list
from polarbear.data.runs import Runs
from polarbear.errors import DataError
from polarbear.racing.budget import Budget
from polarbear.racing.ledger import Spent
from polarbear.racing.questions.question import Question
from polarbear.racing.replay import replay

Map = Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]]


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
