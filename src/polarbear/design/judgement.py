"""``Judgement``: the verdict of a race about a candidate, as a record, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, Self

from polarbear._text import (
    escape_text,
    format_count,
    format_duration,
    format_list,
    format_share,
    format_time,
    format_unit,
)
from polarbear.inference.verdicts import Kind, Verdict
from polarbear.racing.codec import from_plain, to_plain

Detail = Literal["short", "long"]

REJECTED: frozenset[Kind] = frozenset({"dominated", "removed", "failed", "not chosen"})
"""The verdicts about candidates that are not accepted."""

AHEAD, BEHIND = 0.55, 0.45
"""Win rates from which on a text calls a candidate ahead of, or behind, an algorithm."""

MAX_TRACEBACK_LINES = 12
"""The number of lines of a traceback in a long text."""

MAX_CODE_CHARACTERS = 6_000
"""The length up to which the code of the dominating algorithm is part of a long text."""


class Rival(NamedTuple):
    """The algorithm that a verdict names: its label, content, and how often one was ahead of it."""

    label: str = ""
    win_rates: tuple[float | None, ...] = ()
    candidate: Any = None


class Cost(NamedTuple):
    """What a candidate has cost: runs, their total time and instances, and the limit of runs."""

    runs: int = 0
    time: float = 0.0
    instances: int = 0
    max_runs: int | None = None


class Failures(NamedTuple):
    """The failed runs of a candidate: their number, the most frequent reason, and a traceback.

    ``instances``: those on which runs failed. No text has them unless asked for.
    """

    number: int = 0
    why: str = ""
    traceback: str = ""
    instances: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """The verdict about a candidate, returned by :class:`polarbear.design.Judge`.

    Attributes
    ----------
    verdict
        The verdict of the race: "member", "equivalent", "dominated", "undecided" or "removed" (too
        many runs failed, or none had a value); for other questions "passed", "failed", "chosen" or
        "not chosen". "baseline" is the reference itself.
    fitness
        The probability of being ahead of the reference, from the mean log-odds over all times; 0
        if it was removed. It does not change when others join.
    times, win_rates
        The times of the race, and the share of instances on which it was ahead of the reference
        at each, ties half; None where this is unknown.
    prob_ahead
        The probability of being ahead of the reference at each time, by the model.
    label
        The description that the candidate came with.
    rival
        The algorithm that dominates it or that it is equivalent to; None if there is none.
    copy_of
        The candidate with the same runs, if it has been recognised as a copy; else None. A copy is
        accepted if the other one is: it is "equivalent", or has the verdict of the other one if
        that is rejected, or if the question is about a baseline or a choice.
    cost, failures
        What it has cost, and its failed runs.

    Examples
    --------
    >>> verdict = Verdict("c1", "dominated", 0.99, rival="reference", clock="evaluations")
    >>> judgement = Judgement(verdict, 0.2, times=(10.0, 100.0), win_rates=(0.75, 0.1),
    ...     prob_ahead=(0.7, 0.12), rival=Rival(), cost=Cost(16, 1600.0, 16))
    >>> print(judgement)
    Dominated by reference (99 %). Fitness 0.200 (0.5 is the reference). Against the
    reference ahead at 10, behind at 100 evaluations. 16 runs, 1,600 evaluations.
    >>> judgement.is_accepted, judgement.to_dict()["win_rates"]
    (False, [0.75, 0.1])
    >>> Judgement.from_dict(judgement.to_dict()) == judgement
    True
    >>> print(judgement.describe("long").splitlines()[2])
    Instances won against the reference (ties half): 75 % at 10, 10 % at 100 evaluations.
    """

    verdict: Verdict
    fitness: float
    times: tuple[float, ...] = ()
    win_rates: tuple[float | None, ...] = ()
    prob_ahead: tuple[float, ...] = ()
    label: str = ""
    rival: Rival | None = None
    copy_of: str | None = None
    cost: Cost = field(default_factory=Cost)
    failures: Failures = field(default_factory=Failures)

    @property
    def name(self) -> str:
        """The name of the candidate in the race."""
        return self.verdict.algorithm

    @property
    def is_accepted(self) -> bool:
        """Whether the candidate is neither removed nor shown to be worse."""
        return self.verdict.kind not in REJECTED

    def __str__(self) -> str:
        return self.describe()

    def describe(self, detail: Detail = "short", *, show_instances: bool = False) -> str:
        """Return the judgement as text for a designer: a paragraph, or a line per fact if "long".

        No instance is named, so that a designer cannot overfit to it, unless ``show_instances``.
        """
        if detail == "short":
            parts = [self._describe_status(), self._describe_fitness(), self._describe_places()]
            why = self.failures.why
            parts += [why and f"failure: {why}", self._describe_cost()]
            text = " ".join(f"{part[0].upper()}{part[1:]}." for part in parts if part)
        else:
            text = "\n".join(self._list_lines())
        if show_instances and self.failures.instances:
            space = " " if detail == "short" else "\n"
            text += f"{space}Failed on {format_list(self.failures.instances)}."
        return text

    def to_dict(self, *, show_instances: bool = False) -> dict[str, Any]:
        """Return all fields as values for JSON; names of instances only on request."""
        shown = self
        if not show_instances:
            verdict = self.verdict._replace(decisive=())
            failures = self.failures._replace(instances=())
            shown = replace(self, verdict=verdict, failures=failures)
        return to_plain(shown, named=True)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the judgement from what :meth:`to_dict` returned."""
        names = {one.name for one in fields(cls)}
        return from_plain(cls, {name: plain[name] for name in plain if name in names})

    def _list_lines(self) -> list[str]:
        lines = [
            f"Verdict: {self._describe_status()}.",
            f"Fitness: {self._describe_fitness()[8:]}.",
        ]
        clock, rival = self.verdict.clock, self.rival
        rates = _list_rates(self.times, self.win_rates, clock)
        if rates and self.verdict.kind != "baseline":
            lines.append(f"Instances won against the reference (ties half): {rates}.")
        rates = _list_rates(self.times, rival.win_rates, clock) if rival else ""
        if rates and self._rival_name != "reference":
            lines.append(f"Instances won against {self._name_rival()}: {rates}.")
        number, why, traceback, _ = self.failures
        if why:
            lines.append(f"{format_count(number, 'run')} failed. Reason: {why}")
        lines += traceback.splitlines()[-MAX_TRACEBACK_LINES:]
        lines.append(f"Cost: {self._describe_cost()}.")
        code = rival.candidate if rival and self.copy_of is None else None
        is_dominated = self.verdict.kind == "dominated" and self._rival_name != "reference"
        if isinstance(code, str) and is_dominated:
            shown = code[:MAX_CODE_CHARACTERS]
            lines += [f"The algorithm that dominates it, {self._name_rival()}:", shown]
        return lines

    @property
    def _rival_name(self) -> str:
        return self.copy_of or self.verdict.rival or ""

    def _name_rival(self) -> str:
        label = f" ({escape_text(self.rival.label)})" if self.rival and self.rival.label else ""
        return f"{escape_text(self._rival_name)}{label}"

    def _describe_status(self) -> str:
        kind = self.verdict.kind
        if kind == "baseline":
            return "the reference, against which others are measured"
        if self.copy_of is not None:
            both = f'; the verdict about both is "{kind}"' if kind != "equivalent" else ""
            return f"equivalent to {self._name_rival()}: all runs of the two are the same{both}"
        if kind == "removed":
            return "removed, because too many of its runs failed or none reported a value"
        sure = ""
        if self.verdict.probability is not None:
            of_what = "" if kind == "dominated" else " that it is a member"
            sure = f" ({format_share(self.verdict.probability)}{of_what})"
        if kind == "dominated":
            return f"dominated by {self._name_rival()}{sure}"
        if kind == "equivalent":
            return f"at par with {self._name_rival()}, certain to be ahead at no time{sure}"
        words = {"member": "a member of the Pareto set", "undecided": "undecided"}
        return f"{words.get(kind, kind)}{sure}"

    def _describe_fitness(self) -> str:
        return f"fitness {self.fitness:.3f} (0.5 is the reference)"

    def _describe_places(self) -> str:
        """Return in words at which times the candidate is ahead of the reference or behind it."""
        if self.verdict.kind == "baseline":
            return ""
        clock = self.verdict.clock
        known = [(t, r) for t, r in zip(self.times, self.win_rates, strict=True) if r is not None]
        ahead = [time for time, rate in known if rate >= AHEAD]
        behind = [time for time, rate in known if rate <= BEHIND]
        parts = [
            f"{word} at {_list_times(times, clock)}"
            for word, times in (("ahead", ahead), ("behind", behind))
            if times
        ]
        if not known:
            return ""
        unit = format_unit(clock)
        where = ", ".join(parts) or "neither ahead nor behind at any time"
        return f"Against the reference {where}{f' {unit}' if unit and parts else ''}"

    def _describe_cost(self) -> str:
        runs, time, _, most = self.cost
        limit = f" of at most {most:,}" if most is not None else ""
        return f"{format_count(runs, 'run')}{limit}, {format_duration(time, self.verdict.clock)}"


def _list_rates(times: Sequence[float], rates: Sequence[float | None], clock: str) -> str:
    """Return win rates and their times as text; "" if no win rate is given."""
    known = [(time, rate) for time, rate in zip(times, rates, strict=False) if rate is not None]
    text = ", ".join(f"{rate:.0%} at {format_time(time, clock)}" for time, rate in known)
    text = text.replace("%", " %")
    unit = format_unit(clock)
    return f"{text} {unit}" if text and unit else text


def _list_times(times: Sequence[float], clock: str) -> str:
    return ", ".join(format_time(time, clock) for time in times)
