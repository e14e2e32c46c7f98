"""``Members``: which algorithms take part in a race, and what is known of each."""

from collections import Counter
from dataclasses import dataclass, field

from polarbear.data.names import natural_sort_key
from polarbear.inference.verdicts import Verdict
from polarbear.racing.decisions import Decision
from polarbear.racing.ledger import Limit, TrialRuns
from polarbear.racing.questions.question import Entries


@dataclass
class Members:
    """An algorithm is either racing, eliminated or removed."""

    racing: set[str] = field(default_factory=set)
    eliminated: dict[str, Verdict] = field(default_factory=dict)  # in order
    removed: dict[str, str] = field(default_factory=dict)  # algorithm: reason
    failed_out: set[str] = field(default_factory=set)  # removed after too many failed runs
    verdicts: dict[str, Verdict] = field(default_factory=dict)  # of the last decision
    chosen: tuple[str, ...] = ()  # at the last decision, by a question about a choice
    entries: Entries = field(default_factory=Entries)
    limits: dict[str, Limit] = field(default_factory=dict)
    on_trial: dict[str, TrialRuns] = field(default_factory=dict)  # newcomers in their first batch
    failures: Counter[str] = field(default_factory=Counter)  # failed runs of decided rounds

    def present(self) -> tuple[str, ...]:
        """Return the racing algorithms in their canonical order."""
        return tuple(sorted(self.racing, key=natural_sort_key))

    def enter(self, algorithm: str, *, is_late: bool) -> bool:
        """Let an algorithm take part in the race; return whether it comes back."""
        came_back = algorithm in self.eliminated or algorithm in self.removed
        self.eliminated.pop(algorithm, None)
        self.removed.pop(algorithm, None)
        self.failed_out.discard(algorithm)
        self.racing.add(algorithm)
        self.entries.add(algorithm, self.racing, is_late=is_late)
        return came_back

    def leave(self, algorithm: str) -> None:
        """End an algorithm's part in the race."""
        self.racing.discard(algorithm)
        self.on_trial.pop(algorithm, None)

    def count_run(self, algorithm: str, first_batch: int, *, failed: bool, success: bool) -> None:
        """Count a run of a decided round: for the limit of failures, and for a trial."""
        self.failures[algorithm] += failed
        trial = self.on_trial.pop(algorithm, None)
        if trial is not None and trial.n_runs + 1 < first_batch:
            self.on_trial[algorithm] = trial.after(success)

    def find_orphans(self, decision: Decision) -> list[str]:
        """Return the eliminated algorithms whose rival leaves by a decision."""
        leaving = {one.algorithm for one in decision.eliminated}
        return [name for name, one in self.eliminated.items() if one.rival in leaving]

    def decide(self, decision: Decision) -> None:
        """Take the verdicts of a decision; the eliminated ones have left."""
        self.eliminated |= {one.algorithm: one for one in decision.eliminated}
        self.chosen = decision.chosen
        if decision.verdicts or not decision.problems:
            self.verdicts = {one.algorithm: one for one in decision.verdicts}
