"""``RaceStatus``: the status of a race, with one rendering to text and one to JSON.

Races, results, replays, stores, the terminal, the command line and the report all show this record.
A store writes it with each decision, so that reading it takes one row.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np

from polarbear._text import (
    escape_lines,
    escape_text,
    format_count,
    format_duration,
    format_list,
    round_time,
)
from polarbear.data.names import natural_sort_key
from polarbear.inference.posterior import Posterior
from polarbear.inference.ribbon import Ribbon
from polarbear.inference.ribbon_pictures import render_ribbon_svg
from polarbear.inference.verdicts import Verdict, describe_shortage
from polarbear.racing.codec import from_plain, to_plain
from polarbear.racing.decisions import MAX_FORECAST, Forecast
from polarbear.racing.events import NO_INSTANCES, Started
from polarbear.racing.failures import describe_failures
from polarbear.racing.ledger import Spent
from polarbear.racing.state import State

MAX_CLAIMS = 8
"""The largest number of algorithms of which the same is known that have a line each."""


class Counts(NamedTuple):
    """How far a race is.

    Attributes
    ----------
    rounds, open_pairs
        The number of decisions, and of pairs whose relation is not known at all times.
    instances, unused
        The number of used instances, and of unused ones; None if instances are numbered without
        end.
    withdrawn
        The number of withdrawn runs, which stay recorded but do not count.
    since_decision
        The number of runs that arrived for later rounds than the last one decided.
    """

    rounds: int
    open_pairs: int
    instances: int
    unused: int | None
    withdrawn: int
    since_decision: int


Best = tuple[tuple[tuple[str, float], ...], ...]
"""At each time, the algorithms that are most likely the best with their probabilities."""


class Answer(NamedTuple):
    """What to run now.

    Attributes
    ----------
    chosen
        With a question about a choice, the algorithms that are chosen at this stage.
    best
        At each time the candidates that are most likely the best, at most three, each with this
        probability; empty as long as no posterior was made.
    """

    chosen: tuple[str, ...] = ()
    best: Best = ()


class RunCounts(NamedTuple):
    """The runs of each algorithm: made, wanted (requested, not arrived) and failed, and why."""

    made: Mapping[str, int]
    wanted: Mapping[str, int]
    failed: Mapping[str, int]
    why: Mapping[str, str]


@dataclass(frozen=True)
class RaceStatus:
    """The status of a race: the verdict about each algorithm, what was spent, and the forecast.

    Attributes
    ----------
    setup
        The times, direction, clock and model of the race, and its present question and budget.
    verdicts
        The verdict about every algorithm: candidates, then eliminated, then removed ones.
    answer
        What to run now.
    resolved
        Whether the relation of every pair is known, as far as the question asks for it.
    counts, runs
        How far the race is, and the number of runs by algorithm.
    spent, requested
        The number and the total time of the runs made, and of all runs that were requested.
    forecast
        The forecast of the last decision; None if it has none.
    ended
        Why the race requests no further runs; None while it does.
    news
        The changes since the previous status, as sentences.

    Examples
    --------
    >>> from polarbear import Race
    >>> race = Race(["a", "b"], [1, 2], direction="minimize")
    >>> race.status.pareto, race.status.n_runs
    (('a', 'b'), 0)
    >>> print(race.status.verdicts[0])
    a is undecided: not settled with b
    >>> race.status.describe_spent(), race.status.describe_forecast()
    ('0 runs, 0', '')
    >>> race.status.describe_round(), race.status.describe_run()
    ('round 0: 0 runs, racing a, b', '')
    >>> race.status.with_best(race.posterior).ribbon is None  # as long as nothing is decided
    True
    >>> print(race.status)
    race of 2 algorithms after 0 rounds, 1 pair open
      racing      a, b
      error       an algorithm that you would miss is wrongly dropped with probability at most 0.05
      spent       0 runs, 0
    """

    setup: Started
    verdicts: tuple[Verdict, ...]
    answer: Answer
    resolved: bool
    counts: Counts
    runs: RunCounts
    spent: Spent
    requested: Spent
    forecast: Forecast | None
    ended: str | None = None
    news: tuple[str, ...] = ()

    @classmethod
    def of(cls, state: State) -> Self:
        """Return the status of a race from its state."""
        members, ledger, progress = state.members, state.ledger, state.progress
        pending = (run for round_ in progress.pending.values() for run in round_.values())
        return cls(
            setup=state.setup,
            verdicts=tuple(list_verdicts(state)),
            answer=Answer(tuple(k for k in members.present() if k in members.chosen)),
            resolved=state.resolved,
            counts=Counts(
                rounds=progress.n_rounds,
                open_pairs=len(state.pairs.open),
                instances=state.pool.n_observed,
                unused=state.left,
                withdrawn=len(ledger.withdrawn),
                since_decision=sum(run.status is not None for run in pending),
            ),
            runs=RunCounts(
                made={name: number for name, number in ledger.n_runs.items() if number},
                wanted=dict(Counter(key.algorithm for key in progress.wanted)),
                failed=dict(Counter(key.algorithm for key in ledger.failed)),
                why=describe_failures(ledger.reasons, ledger.n_runs, members.eliminated),
            ),
            spent=ledger.spent,
            requested=ledger.requested,
            forecast=state.pairs.forecast,
            ended=progress.ended,
        )

    def with_best(self, posterior: Posterior | None) -> Self:
        """Return the status with the candidates that are most likely the best at each time."""
        if posterior is None or not self.is_about_set or not posterior.diagnostics.trusted:
            return self
        names = [name for name in posterior.algorithms if name in self.pareto]
        at = [posterior.algorithms.index(name) for name in names]
        leader = posterior.utilities[..., at].argmax(axis=-1) if names else np.zeros((1, 1))
        best = np.stack([(leader == k).mean(axis=0) for k in range(len(names))], axis=-1)
        ribbon = Ribbon.of(names, posterior.times, posterior.clock, best)
        pairs = zip(ribbon.top.tolist(), ribbon.probability.round(4).tolist(), strict=True)
        rows = (tuple(zip((names[k] for k in top), sure, strict=True)) for top, sure in pairs)
        return replace(self, answer=self.answer._replace(best=tuple(rows)))

    @property
    def ribbon(self) -> Ribbon | None:
        """What to run if you stop here; None as long as nothing is known."""
        names = [*dict.fromkeys(name for row in self.answer.best for name, _ in row)]
        if not names:
            return None
        best = np.zeros((len(self.answer.best), len(names)))
        for t, row in enumerate(self.answer.best):
            for name, sure in row:
                best[t, names.index(name)] = sure
        ribbon = Ribbon.of(names, np.array(self.setup.times), self.setup.clock, best)
        return replace(ribbon, others=tuple(one.algorithm for one in self.verdicts))

    @property
    def chosen(self) -> tuple[str, ...]:
        """With a question about a choice, the algorithms that are chosen at this stage."""
        return self.answer.chosen

    @property
    def n_pairs(self) -> int:
        """The number of pairs that the question is about, settled or not."""
        names, n_times = [one.algorithm for one in self.verdicts], len(self.setup.times)
        return max(len(self.setup.question.undecided(names, n_times)), self.counts.open_pairs)

    @property
    def pareto(self) -> tuple[str, ...]:
        """The candidates: algorithms that are neither dominated nor removed."""
        return tuple(one.algorithm for one in self.verdicts if one.is_candidate)

    @property
    def eliminated(self) -> tuple[str, ...]:
        """The dominated algorithms, in the order in which they were eliminated."""
        return tuple(one.algorithm for one in self.verdicts if one.kind == "dominated")

    @property
    def removed(self) -> tuple[str, ...]:
        """The algorithms that were removed from the race."""
        return tuple(one.algorithm for one in self.verdicts if one.kind == "removed")

    @property
    def is_about_set(self) -> bool:
        """Whether the question is about the Pareto set, and not about a choice or a baseline."""
        of_set = {"member", "equivalent", "dominated", "undecided", "removed"}
        is_set = self.setup.question.alone == "member"
        return is_set and not self.chosen and of_set.issuperset(one.kind for one in self.verdicts)

    @property
    def n_runs(self) -> int:
        """The number of runs made, where each extension and each repetition counts."""
        return sum(self.runs.made.values())

    @property
    def n_wanted(self) -> int:
        """The number of requested runs that have not arrived yet."""
        return sum(self.runs.wanted.values())

    # Text

    def __str__(self) -> str:
        n, n_racing = len(self.verdicts), len(self.pareto)
        verb = "remain" if self.ended else "still race"
        remaining = "" if n == n_racing else f"{n_racing:,} of {n:,} {verb}, "
        pairs = format_count(self.counts.open_pairs, "pair")
        rounds = format_count(self.counts.rounds, "round")
        progress = "resolved" if self.resolved else f"{remaining}{pairs} open"
        head = f"race of {format_count(n, 'algorithm')} after {rounds}, {progress}"
        return "\n".join([head, *(f"  {label:<11} {fact}" for label, fact in self._list_facts())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render_race(str(self), self.ribbon)

    def describe_run(self) -> str:
        """Return what to run now, in words; "" if nothing is known."""
        ribbon = self.ribbon
        if self.chosen or not self.is_about_set:
            return format_list(self.chosen) if self.chosen else ""
        if len(self.pareto) == 1 and len(self.verdicts) > 1:
            return f"{escape_text(self.pareto[0])}, for any budget"
        return "" if ribbon is None else ribbon.describe()

    def _list_facts(self) -> Iterator[tuple[str, str]]:
        """Yield facts about the race as a whole, as pairs of label and text."""
        if self.counts.rounds:
            yield from self._list_claims()
        else:
            yield "racing", format_list(self.pareto)
        yield "error", self.setup.question.describe()
        yield "spent", self.describe_spent()
        if self.counts.withdrawn:
            number = format_count(self.counts.withdrawn, "run")
            yield "withdrawn", f"{number}, which are not counted"
        if self.describe_forecast():
            yield "to settle", self.describe_forecast()
        if self.ended:
            advice = "; with more of them the race goes on" if self.ended == NO_INSTANCES else ""
            yield "ended", f"{escape_text(self.ended)}{advice}"
        reasons = self.runs.why
        for name in dict.fromkeys([*self.runs.failed, *reasons]):
            number = format_count(self.runs.failed.get(name, 0), "run")
            why = f": {escape_lines(reasons[name])}" if name in reasons else ""
            yield "failed", f"{number} of {escape_text(name)}{why}"
        if self.describe_run():
            yield "run", self.describe_run()
        elif self.ended and not self.counts.rounds:
            yield "run", "not known before the first round is complete"

    def _list_claims(self) -> Iterator[tuple[str, str]]:
        """Yield what is known of each algorithm: what is proven first, then what is likely."""
        groups: dict[str, list[Verdict]] = {"proven": [], "settled": [], "likely": [], "open": []}
        for one in self.verdicts:
            groups.setdefault(_grade(one), []).append(one)
        for label, verdicts in groups.items():
            shown = verdicts if len(verdicts) <= MAX_CLAIMS else verdicts[: MAX_CLAIMS - 1]
            for k, one in enumerate(shown):
                if one.unsettled:  # that no instance is left is said once, of the race
                    one = one._replace(unsettled=one.unsettled._replace(left=None))
                yield "" if k else label, str(one)
            if rest := [one.algorithm for one in verdicts[len(shown) :]]:
                yield "", f"and {len(rest):,} more: {format_list(rest)}"

    def describe_spent(self) -> str:
        """Return as text the runs made, the runs requested if more, and the time spent."""
        is_more = self.spent.runs < self.requested.runs
        requested = f" of {self.requested.runs:,} requested" if is_more else ""
        time = format_duration(self.spent.time, self.setup.clock)
        return f"{format_count(self.spent.runs, 'run')}{requested}, {time}"

    def describe_round(self) -> str:
        """Return the last decision as a line: the runs made, who races, and what is to go."""
        forecast = self.describe_forecast()
        return (
            f"round {self.counts.rounds}: {self.spent.runs:,} runs, racing "
            f"{format_list(self.pareto)}{f'; {forecast}' if forecast else ''}"
        )

    def describe_forecast(self) -> str:
        """Return the forecast as text, and whether the instances suffice; "" without a forecast."""
        if not self.counts.open_pairs or self.forecast is None:
            return ""
        needed, runs = max(1.0, self.forecast.instances[1]), self.forecast.runs[1]
        shortage = describe_shortage(needed, self.counts.unused)
        if not runs < MAX_FORECAST:
            return f"{self.forecast}{shortage}"
        clock = self.setup.clock
        time = round_time(max(1.0, runs) * self.setup.times[-1], clock, 2)
        return f"{self.forecast}, at most {format_duration(time, clock)}{shortage}"

    # JSON

    def to_dict(self) -> dict[str, Any]:
        """Return the status as a dictionary for JSON.

        >>> from polarbear import Race
        >>> status = Race(["a", "b"], [1, 2], direction="minimize").status
        >>> RaceStatus.from_dict(status.to_dict()) == status
        True
        """
        derived = ("pareto", "eliminated", "removed", "chosen", "n_pairs", "n_runs", "n_wanted")
        return {**to_plain(self, named=True), **{name: getattr(self, name) for name in derived}}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the status from what :meth:`to_dict` returned."""
        names = [one.name for one in fields(cls)]
        return from_plain(cls, {name: plain[name] for name in names})


def _grade(verdict: Verdict) -> str:
    """Return how well a verdict is known: proven, settled by a posterior, likely or open."""
    if verdict.kind == "removed":
        return "removed"
    if verdict.kind == "member" and verdict.margin is not None:
        return "likely"  # to keep an algorithm, likelihood is enough
    if verdict.kind != "undecided":
        return "settled" if verdict.margin is None else "proven"
    sure = verdict.probability
    return "open" if sure is None or verdict.margin is None or 0.2 <= sure <= 0.8 else "likely"


def render_race(text: str, ribbon: Ribbon | None) -> str:
    """Return the HTML with which a notebook displays a race: its ribbon above a text."""
    picture = "" if ribbon is None else render_ribbon_svg(ribbon)
    return f'<div>{picture}<pre style="white-space: pre-wrap">{html.escape(text)}</pre></div>'


def list_verdicts(state: State) -> list[Verdict]:
    """Return the verdict about every algorithm: candidates, then eliminated, then removed ones."""
    members, present, clock = state.members, state.members.present(), state.setup.clock
    rivals = state.pairs.rivals(present)
    removed = sorted(members.removed, key=natural_sort_key)
    return [
        *(_complete(state, name, rivals.get(name, {})) for name in present),
        *(one._replace(clock=clock) for one in members.eliminated.values()),
        *(Verdict(name, "removed", why=members.removed[name], clock=clock) for name in removed),
    ]


def _complete(state: State, name: str, rivals: Mapping[str, int]) -> Verdict:
    """Return the verdict of the last decision about a candidate, with what is not settled.

    ``rivals`` are those of its open pairs, with the open times as bits.
    """
    question, clock = state.setup.question, state.setup.clock
    verdict = state.members.verdicts.get(name)
    if verdict is None:
        is_alone = not rivals and len(state.members.racing) == 1
        verdict = Verdict(name, question.alone if is_alone else "undecided", clock=clock)
    else:
        required = None if question.posterior_for == "decision" else question.certainty
        verdict = verdict._replace(clock=clock, certainty=required)
    if state.obstacle is not None:
        return verdict._replace(why=state.obstacle)
    if rivals and state.has_reached_limit(name):
        verdict = verdict._replace(why="its limit is reached")
    unsettled = state.pairs.find_unsettled(name, rivals, state.setup.times, state.left)
    return verdict._replace(unsettled=unsettled) if rivals else verdict
