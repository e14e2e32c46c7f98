"""``Raced``: what one asks of a race that was run, whoever ran it."""

from polarbear.data.runs import Runs
from polarbear.inference.algorithm_status import AlgorithmStatus
from polarbear.inference.posterior import Posterior
from polarbear.racing.events import Eliminated, Event, Outlook
from polarbear.racing.race import Race
from polarbear.racing.standing import as_card
from polarbear.racing.state import Spent


class Raced:
    """Passes on what a race has found."""

    race: Race

    @property
    def pareto(self) -> tuple[str, ...]:
        """All algorithms but those that are dominated."""
        return self.race.pareto

    @property
    def eliminated(self) -> dict[str, Eliminated]:
        """Who was eliminated, by whom and how surely, in order."""
        return self.race.eliminated

    @property
    def posterior(self) -> Posterior | None:
        """What the last decision rests on: ratings of those who were racing, without who is out.

        All of them are rated by ``polarbear.fit(found.runs, times=found.times)``.
        """
        return self.race.posterior

    @property
    def resolved(self) -> bool:
        """Whether the relation of every pair is known."""
        return self.race.resolved

    @property
    def ended(self) -> str | None:
        """Why it ended."""
        return self.race.ended

    @property
    def outlook(self) -> Outlook | None:
        """How much would be left to do."""
        return self.race.outlook

    @property
    def rounds(self) -> int:
        """How often the race has decided."""
        return self.race.rounds

    @property
    def events(self) -> list[Event]:
        """Everything that happened, in order; to be read, not changed."""
        return self.race.events

    @property
    def runs(self) -> Runs:
        """The runs that were made, each as long as it was, also of those who are out.

        To rate or rank them ask at :attr:`times`: by default the times of the runs would be taken,
        and earlier ones are none of the race's.
        """
        return self.race.runs

    @property
    def times(self) -> tuple[float, ...]:
        """The times at which the race asks who is ahead."""
        return self.race.state.times

    @property
    def n_runs(self) -> int:
        """The number of runs made; one that was extended or made again counts each time."""
        return self.race.n_runs

    @property
    def spent(self) -> Spent:
        """How many runs were asked for, and how long they took together."""
        return self.race.spent

    def _repr_html_(self) -> str:
        return as_card(str(self), self.race.statuses())

    def verdict(self, algorithm: str) -> AlgorithmStatus:
        """Return the status of an algorithm: member, equivalent, dominated, undecided, removed."""
        return self.race.verdict(algorithm)

    def statuses(self) -> list[AlgorithmStatus]:
        """Return the status of every algorithm: candidates, then eliminated, then removed ones."""
        return self.race.statuses()
