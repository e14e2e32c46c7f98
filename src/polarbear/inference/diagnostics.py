"""``Diagnostics``: whether the numerics of a posterior can be trusted."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
        Events during the fit that are no reason for concern.
    """

    measured: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether the diagnostics report no problem."""
        return not self.problems

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {value:.3g}" for name, value in self.measured.items())
        verdict = "trust it" if self.trusted else f"do not trust it: {'; '.join(self.problems)}"
        parts = [verdict, *([f"({figures})"] if figures else []), *self.notes]
        return " ".join(parts)
