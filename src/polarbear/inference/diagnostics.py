"""``Diagnostics``: whether a posterior can be trusted, and why not."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Diagnostics:
    """Whether to trust a posterior: what was measured, and what is wrong, in words.

    Attributes
    ----------
    measured
        Figures by name, such as "k-hat" or "R-hat".
    problems
        What speaks against the posterior; empty if nothing does.
    notes
        What happened on the way and is no reason for concern.
    """

    measured: Mapping[str, float] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether nothing speaks against the posterior."""
        return not self.problems

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {value:.3g}" for name, value in self.measured.items())
        verdict = "trust it" if self.trusted else f"do not trust it: {'; '.join(self.problems)}"
        said = [verdict, *([f"({figures})"] if figures else []), *self.notes]
        return " ".join(said)
