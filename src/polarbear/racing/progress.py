"""``Progress``: the runs that are wanted, the rounds that are under way, and how a race ended."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from polarbear.data.run import FAILED, Status
from polarbear.racing.events import Identified
from polarbear.racing.jobs import Job, RunId


class PendingRun(NamedTuple):
    """A requested run whose round is undecided, with its result once it has arrived.

    ``before`` is the time until which the algorithm had been observed on the instance when this
    run was requested. ``until`` and ``status`` are None until the run arrives.
    """

    horizon: float
    before: float = 0.0
    until: float | None = None
    status: Status | None = None
    has_value: bool = False

    @property
    def failed(self) -> bool:
        """Whether the run has arrived, and failed."""
        return self.status in FAILED


class DecisionInput(NamedTuple):
    """The runs that a decision uses: those of some algorithms, up to and including a round."""

    round: int
    algorithms: tuple[str, ...]


@dataclass
class Progress:
    """*Wanted* runs are those that were requested and have not arrived.

    A round is decided when all of its runs have arrived, from the runs requested up to that round.
    """

    wanted: dict[RunId, Job] = field(default_factory=dict)
    # The runs of each round that is not decided yet.
    pending: dict[int, dict[RunId, PendingRun]] = field(default_factory=dict)
    n_asked: int = 0  # rounds that were requested
    n_rounds: int = 0  # rounds that were decided
    has_news: bool = False  # something changed that no decision has used yet
    decision_input: DecisionInput | None = None  # of the last decision
    ended: str | None = None  # why the race requests no further runs
    identity: Identified = field(default_factory=Identified)  # fingerprints behind the names

    @property
    def current(self) -> int:
        """The number of the round that is decided next."""
        return min(self.pending, default=self.n_asked)

    @property
    def complete(self) -> bool:
        """Whether all runs of the current round have arrived."""
        return not any(key in self.wanted for key in self.pending.get(self.current, ()))

    def run_ids(self) -> Iterator[RunId]:
        """Yield the ids of all runs of undecided rounds."""
        return (key for runs in self.pending.values() for key in runs)

    def round_of(self, key: RunId) -> int:
        """Return the first undecided round that has a run; else the one that is decided next."""
        for number, runs in self.pending.items():
            if key in runs:
                return number
        return self.current
