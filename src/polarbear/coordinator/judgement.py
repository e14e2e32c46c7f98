"""``Judgement``: the verdict of a race about a candidate, as a record, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

from polarbear._text import (
    escape_text,
    format_count,
    format_duration,
    format_list,
    format_time,
    format_unit,
)
from polarbear.inference.verdicts import Kind, format_probability

Detail = Literal["short", "long"]

REJECTED: frozenset[Kind] = frozenset({"dominated", "removed", "failed", "not chosen"})
"""The statuses of candidates that are not accepted."""

AHEAD, BEHIND = 0.55, 0.45
"""Win rates from which on a text calls a candidate ahead of, or behind, an algorithm."""

MAX_TRACEBACK_LINES = 12
"""The number of lines of a traceback in a long text."""

MAX_CODE_CHARACTERS = 6_000
"""The length up to which the code of the dominating algorithm is part of a long text."""


@dataclass(frozen=True)
class Judgement:
    """The verdict about a candidate, returned by :class:`polarbear.Judge`.

    Attributes
    ----------
    name, label
        The name of the candidate in the race, and the description that it came with.
    status
        "member", "equivalent", "dominated", "undecided" or "removed" (too many runs failed, or none
        had a value), as in :class:`Verdict`; for other questions "passed", "failed",
        "chosen" or "not chosen". "baseline" is the reference itself.
    probability
        The probability that it belongs to the Pareto set; None if the question gives none.
    fitness
        The probability of being ahead of the reference, from the mean log-odds over all times; 0
        if it was removed. It does not change when others join.
    times, win_rates
        The times of the race, and the share of instances on which it was ahead of the reference
        at each, ties half; None where this is unknown.
    prob_ahead
        The probability of being ahead of the reference at each time, by the model.
    rival, rival_label, rival_win_rates, rival_candidate
        The algorithm that dominates it or that it is equivalent to, how often the candidate was
        ahead of it, and its content.
    class_win_rates
        The win rates against the reference by class of instances, over all times.
    copy_of
        The candidate with the same runs, if it has been recognised as a copy; else None. A copy is
        accepted if the other one is: it is "equivalent", or has the status of the other one if
        that is rejected, or if the question is about a baseline or a choice.
    runs, time, instances, max_runs
        Its cost: number and total time of its runs, number of instances, and the limit of runs.
    n_failed, failure, traceback
        The number of failed runs, the most frequent reason, and the last lines of a traceback.
    failed_on
        The instances on which runs failed. No text has them unless asked for.

    Examples
    --------
    >>> judgement = Judgement("c1", "dominated", 0.01, 0.2, times=(10.0, 100.0),
    ...     win_rates=(0.75, 0.1), prob_ahead=(0.7, 0.12), rival="reference", runs=16, time=1600.0,
    ...     instances=16, clock="evaluations")
    >>> print(judgement)
    Dominated by reference (P in set 0.010). Fitness 0.200 (0.5 is the reference). Against the
    reference ahead at 10, behind at 100 evaluations. 16 runs, 1,600 evaluations.
    >>> judgement.is_accepted, judgement.to_dict()["win_rates"]
    (False, [0.75, 0.1])
    >>> Judgement.from_dict(judgement.to_dict()) == judgement
    True
    >>> print(judgement.describe("long").splitlines()[2])
    Instances won against the reference (ties half): 75 % at 10, 10 % at 100 evaluations.
    """

    name: str
    status: Kind
    probability: float | None
    fitness: float
    times: tuple[float, ...] = ()
    win_rates: tuple[float | None, ...] = ()
    prob_ahead: tuple[float, ...] = ()
    clock: str = "time"
    label: str = ""
    rival: str | None = None
    rival_label: str = ""
    rival_win_rates: tuple[float | None, ...] = ()
    rival_candidate: Any = None
    class_win_rates: tuple[tuple[str, float], ...] = ()
    copy_of: str | None = None
    runs: int = 0
    time: float = 0.0
    instances: int = 0
    max_runs: int | None = None
    n_failed: int = 0
    failure: str = ""
    traceback: str = ""
    failed_on: tuple[str, ...] = ()

    @property
    def is_accepted(self) -> bool:
        """Whether the candidate is neither removed nor shown to be worse."""
        return self.status not in REJECTED

    def __str__(self) -> str:
        return self.describe()

    def describe(self, detail: Detail = "short", *, show_instances: bool = False) -> str:
        """Return the judgement as text for a designer: a paragraph, or a line per fact if "long".

        No instance is named, so that a designer cannot overfit to it, unless ``show_instances``.
        """
        if detail == "short":
            parts = [self._describe_status(), self._describe_fitness(), self._describe_places()]
            parts += [self.failure and f"failure: {self.failure}", self._describe_cost()]
            text = " ".join(f"{part[0].upper()}{part[1:]}." for part in parts if part)
        else:
            text = "\n".join(self._list_lines())
        if show_instances and self.failed_on:
            text += (
                f"{' ' if detail == 'short' else chr(10)}Failed on {format_list(self.failed_on)}."
            )
        return text

    def to_dict(self, *, show_instances: bool = False) -> dict[str, Any]:
        """Return all fields as values for JSON; names of instances only on request."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if not show_instances:
            values["failed_on"] = ()
        return {name: _to_plain(value) for name, value in values.items()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the judgement from what :meth:`to_dict` returned."""
        names = {field.name for field in fields(cls)}
        values = {name: value for name, value in plain.items() if name in names}
        for name in ("times", "win_rates", "prob_ahead", "rival_win_rates", "failed_on"):
            values[name] = tuple(values[name])
        values["class_win_rates"] = tuple(map(tuple, values["class_win_rates"]))
        return cls(**values)

    def _list_lines(self) -> list[str]:
        lines = [f"Status: {self._describe_status()}.", f"Fitness: {self._describe_fitness()[8:]}."]
        rates = _list_rates(self.times, self.win_rates, self.clock)
        if rates and self.status != "baseline":
            lines.append(f"Instances won against the reference (ties half): {rates}.")
        rates = _list_rates(self.times, self.rival_win_rates, self.clock)
        if rates and self.rival != "reference":
            lines.append(f"Instances won against {self._name_rival()}: {rates}.")
        if self.class_win_rates:
            classes = ", ".join(f"{name} {rate:.0%}" for name, rate in self.class_win_rates)
            lines.append(f"Instances won against the reference by class: {classes}.")
        if self.failure:
            lines.append(f"{format_count(self.n_failed, 'run')} failed. Reason: {self.failure}")
        if self.traceback:
            lines += self.traceback.splitlines()[-MAX_TRACEBACK_LINES:]
        lines.append(f"Cost: {self._describe_cost()}.")
        code = self.rival_candidate if self.copy_of is None else None
        if isinstance(code, str) and self.status == "dominated" and self.rival != "reference":
            shown = code[:MAX_CODE_CHARACTERS]
            lines += [f"The algorithm that dominates it, {self._name_rival()}:", shown]
        return lines

    def _name_rival(self) -> str:
        label = f" ({escape_text(self.rival_label)})" if self.rival_label else ""
        return f"{escape_text(self.rival or '')}{label}"

    def _describe_status(self) -> str:
        if self.status == "baseline":
            return "the reference, against which others are measured"
        if self.copy_of is not None:
            both = f'; the status of both is "{self.status}"' if self.status != "equivalent" else ""
            return f"equivalent to {self._name_rival()}: all runs of the two are the same{both}"
        if self.status == "removed":
            return "removed, because too many of its runs failed or none reported a value"
        belongs = ""
        if self.probability is not None:
            belongs = f" ({format_probability(self.probability).replace('P', 'P in set', 1)})"
            belongs = belongs.replace(" = ", " ")
        if self.status == "dominated":
            return f"dominated by {self._name_rival()}{belongs}"
        if self.status == "equivalent":
            return f"at par with {self._name_rival()}, certain to be ahead at no time{belongs}"
        words = {"member": "a member of the Pareto set", "undecided": "undecided"}
        return f"{words.get(self.status, self.status)}{belongs}"

    def _describe_fitness(self) -> str:
        return f"fitness {self.fitness:.3f} (0.5 is the reference)"

    def _describe_places(self) -> str:
        """Return in words at which times the candidate is ahead of the reference or behind it."""
        if self.status == "baseline":
            return ""
        known = [(t, r) for t, r in zip(self.times, self.win_rates, strict=True) if r is not None]
        ahead = [time for time, rate in known if rate >= AHEAD]
        behind = [time for time, rate in known if rate <= BEHIND]
        parts = [
            f"{word} at {_list_times(times, self.clock)}"
            for word, times in (("ahead", ahead), ("behind", behind))
            if times
        ]
        if not known:
            return ""
        unit = format_unit(self.clock)
        where = ", ".join(parts) or "neither ahead nor behind at any time"
        return f"Against the reference {where}{f' {unit}' if unit and parts else ''}"

    def _describe_cost(self) -> str:
        limit = f" of at most {self.max_runs:,}" if self.max_runs is not None else ""
        return f"{format_count(self.runs, 'run')}{limit}, {format_duration(self.time, self.clock)}"


def _list_rates(times: Sequence[float], rates: Sequence[float | None], clock: str) -> str:
    """Return win rates and their times as text; "" if no win rate is given."""
    known = [(time, rate) for time, rate in zip(times, rates, strict=False) if rate is not None]
    text = ", ".join(f"{rate:.0%} at {format_time(time, clock)}" for time, rate in known)
    text = text.replace("%", " %")
    unit = format_unit(clock)
    return f"{text} {unit}" if text and unit else text


def _list_times(times: Sequence[float], clock: str) -> str:
    return ", ".join(format_time(time, clock) for time in times)


def _to_plain(value: Any) -> Any:
    return [_to_plain(part) for part in value] if isinstance(value, tuple | list) else value
