"""Notices what cannot be meant: rounds in which everybody fails, solvers that never report."""

from collections import Counter
from collections.abc import Mapping

from polarbear.data.names import listing, shown
from polarbear.errors import SolverError

SILENT = 4
"""So many runs that end without a value, and nothing else, are said to be odd."""


class Vigil:
    """What the runs of a round came to, of all who were in it.

    >>> vigil = Vigil()
    >>> for name in ("a", "b"):
    ...     vigil.take(name, found=False, failed=True)
    >>> vigil.round_over({"a": "no such module", "b": "no such module"})
    Traceback (most recent call last):
    polarbear.errors.SolverError: every run of this round failed before it found anything...
    """

    def __init__(self) -> None:
        self._failed: set[str] = set()  # in this round
        self._others = False  # whether anything else happened in it
        self._quiet: Counter[str] = Counter()  # runs without a value, ever
        self._heard: set[str] = set()  # whoever has found something, or was spoken of

    def take(self, algorithm: str, *, found: bool, failed: bool) -> None:
        """A run came in."""
        if found:
            self._heard.add(algorithm)
        if found or not failed:
            self._others = True
        else:
            self._failed.add(algorithm)
        self._quiet[algorithm] += not (found or failed)

    @property
    def all_failed(self) -> bool:
        """Whether runs of this round came in, and all of them failed before they found anything."""
        return bool(self._failed) and not self._others

    def round_over(self, why: Mapping[str, str]) -> list[str]:
        """Raise if there is nothing to compare; else what is odd, each thing once."""
        failed, others = self._failed, self._others
        self._failed, self._others = set(), False
        if len(failed) > 1 and not others:
            raise SolverError(
                "every run of this round failed before it found anything, so there is nothing to "
                f"compare ({_reasons(failed, why)}); polarbear.check with the same arguments runs "
                "each solver once for a moment. None of these runs is kept: the same call makes "
                "them again. Instances on which every solver fails can be left out, by polarbear "
                "forget STORE --instance NAME"
            )
        odd = [
            name for name, runs in self._quiet.items() if runs >= SILENT and name not in self._heard
        ]
        self._heard.update(odd)
        return [
            f"{shown(name)} has found nothing in {self._quiet[name]} runs: does it yield, report, "
            "or call what job.track returns?"
            for name in odd
        ]


def _reasons(failed: set[str], why: Mapping[str, str]) -> str:
    """Why they failed; once, if it is the same for all."""
    said = {name: why.get(name, "no reason known") for name in sorted(failed)}
    if len(set(said.values())) == 1:
        return f"{listing(list(said))}: {next(iter(said.values()))}"
    return "; ".join(f"{shown(name)}: {reason}" for name, reason in list(said.items())[:4])
