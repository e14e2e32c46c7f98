"""``Progress``: where a race stands while it runs, in what one shows of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from polarbear.inference.algorithm_status import AlgorithmStatus
from polarbear.racing.events import Outlook
from polarbear.racing.rules import Rules
from polarbear.racing.standing import statuses_of
from polarbear.racing.state import Spent, State


@dataclass(frozen=True)
class Progress:
    """Where a race stands.

    Attributes
    ----------
    statuses
        The status of every algorithm: candidates, then eliminated, then removed ones.
    runs, wanted
        Of each algorithm, how many runs were made, and how many were asked for and are not in yet.
    rounds, open
        How often the race has decided; how many pairs are not settled.
    spent, rules, clock
        What the runs asked for have cost, the limits to it, and what time counts.
    outlook, since
        How much was left at the last decision, if that can be told; how many runs came in since.
    instances
        How many instances are left to be drawn; None if there is no end of them.
    news
        What has happened since the last time, in words.
    ended
        Why the race ended, if it has.
    """

    statuses: tuple[AlgorithmStatus, ...]
    runs: Mapping[str, int]
    wanted: Mapping[str, int]
    rounds: int
    open: int
    spent: Spent
    rules: Rules
    clock: str
    outlook: Outlook | None
    since: int
    instances: int | None
    news: tuple[str, ...] = ()
    ended: str | None = None

    @classmethod
    def of(
        cls,
        state: State,
        runs: Mapping[str, int],
        news: tuple[str, ...] = (),
        ended: str | None = None,
    ) -> Self:
        """Of a race in this state; to count its runs takes longer, so that is up to the caller."""
        return cls(
            tuple(statuses_of(state)),
            dict(runs),
            Counter(key.algorithm for key in state.wanted),
            state.round,
            len(state.open),
            state.spent,
            state.rules,
            state.clock,
            state.outlook,
            sum(t.status is not None for out in state.out.values() for t in out.values()),
            state.left,
            news,
            ended,
        )

    @property
    def pareto(self) -> tuple[str, ...]:
        """The candidates: algorithms that are neither dominated nor removed."""
        return tuple(one.algorithm for one in self.statuses if one.is_candidate)
