"""``Diagnostics``: whether the numerics of a posterior can be trusted."""

from collections.abc import Mapping
from dataclasses import dataclass, field

ORDERED_BY = "Runs are ordered by"
"""The start of the note that says what runs are ordered by."""

TIMES_BEGIN = "The times begin"
"""The start of the note that says that the first values are not compared."""

DUELS_CONTRADICT = "The duels contradict the model of rankings"
FIRSTS_CONTRADICT = "First places contradict the model of rankings"
FILLED_IN = "A model of rankings fills in the first places of missing runs"
"""The starts of the notes on what differs from the model, or needs it."""


@dataclass(frozen=True)
class Diagnostics:
    """The diagnostics of a posterior: measured figures, problems and notes.

    Attributes
    ----------
    measured
        Figures by name, such as "k-hat" or "R-hat".
    problems
        Reasons not to trust the posterior; empty if there are none.
    notes
        Events during the fit that are no reason for concern, what runs are ordered by, if it is
        not their best value so far, and where the times begin, if that is after the first values.
    """

    measured: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether the diagnostics report no problem."""
        return not self.problems

    @property
    def order_notes(self) -> tuple[str, ...]:
        """The notes on what runs are ordered by, which belong to every conclusion."""
        return tuple(note for note in self.notes if note.startswith(ORDERED_BY))

    @property
    def contradictions(self) -> tuple[str, ...]:
        """The notes on what contradicts the model, which a verdict begins with."""
        starts = (DUELS_CONTRADICT, FIRSTS_CONTRADICT)
        return tuple(note for note in self.notes if note.startswith(starts))

    @property
    def verdict_notes(self) -> tuple[str, ...]:
        """The notes that a verdict ends with: on the order of runs, the first time, and gaps."""
        starts = (ORDERED_BY, TIMES_BEGIN, FILLED_IN)
        return tuple(one for one in self.notes if one.startswith(starts))

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {value:.3g}" for name, value in self.measured.items())
        verdict = "trust it" if self.trusted else f"do not trust it: {'; '.join(self.problems)}"
        return "; ".join([f"{verdict} ({figures})" if figures else verdict, *self.notes])
