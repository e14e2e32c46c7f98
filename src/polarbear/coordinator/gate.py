"""``gate``: test that a new version of a solver is no worse than the old one at every time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from polarbear._text import escape_text, format_count, format_duration, format_list, format_time
from polarbear.coordinator.resume import ChangedSetupError
from polarbear.coordinator.run_race import SolverRace, race
from polarbear.data.rankings import rank
from polarbear.data.run import Direction
from polarbear.data.runs import Runs
from polarbear.errors import DataError, SolverError, StoreError
from polarbear.inference.decisive import find_decisive_instances
from polarbear.inference.dominance import Floats
from polarbear.inference.e_values import confidence_sequence, count_by_instance
from polarbear.inference.verdicts import Verdict
from polarbear.racing.budget import Budget
from polarbear.racing.codec import to_plain
from polarbear.racing.ledger import Spent
from polarbear.racing.questions.no_worse import (
    BASELINE_REMOVED,
    NoWorse,
    estimate_win_probability,
)
from polarbear.racing.state import State
from polarbear.running.solvers.job import Clock
from polarbear.running.solvers.setup import Limits, Solver

OLD, NEW = "old", "new"

Answer = Literal["pass", "fail", "undecided"]

ANSWERS: Mapping[str, Answer] = {"passed": "pass", "failed": "fail", "undecided": "undecided"}
ADVICE = "Is the last budget long enough for a first value, and does the pattern match its line?"
EXIT_CODES: Mapping[Answer, int] = {"pass": 0, "fail": 1, "undecided": 2}


@dataclass(frozen=True)
class AtTime:
    """The comparison of the new version of a solver with the old one at one time.

    ``low`` and ``high`` bound the probability that the new version wins, given that the two differ.
    They form a confidence sequence: they hold at all numbers of instances at once. ``estimate`` is
    an estimate of it that allows for the stopping rule, and is too large about as often as too
    small. The plain share of wins is not: a gate stops when the share is extreme.
    ``ties_without_value`` are the ties in which neither version had reported a value.
    """

    time: float
    wins: float
    ties: float
    losses: float
    low: float
    high: float
    estimate: float
    ties_without_value: float = 0.0


@dataclass(frozen=True)
class FailedRuns:
    """The number of failed runs of a version, of all its runs, and the most frequent reason.

    A run without a value counts as failed if its version has never reported one.

    >>> FailedRuns(2, 16, "no `licence`").describe("new")
    "2 of 16 runs of the new version failed; most frequent reason: `no 'licence'`"
    """

    failed: int
    runs: int
    why: str

    def describe(self, version: str) -> str:
        """Return a line on the failed runs, with the reason quoted for Markdown; "" if none."""
        if not self.failed:
            return ""
        why = escape_text(" ".join(self.why.split())).replace("`", "'")
        failed = f"{self.failed:,} of {format_count(self.runs, 'run')} of the {version} version"
        return f"{failed} failed; most frequent reason: `{why}`"


@dataclass(frozen=True)
class Gate:
    """The result of :func:`gate`: whether the new version of a solver is no worse than the old.

    Attributes
    ----------
    verdict
        The verdict about the new version: "passed", "failed" or "undecided"; with the tolerance,
        the certainty, the clock, and the fewest instances without which it would be undecided.
    times
        The comparison at each time.
    instances, spent
        The cost: instances, and the number and the time of all runs.
    ended
        Why no more runs were made.
    failures
        The failed runs of each version, "old" and "new".

    Examples
    --------
    >>> undecided = Verdict("new", "undecided", margin=0.05, certainty=0.95)
    >>> print(Gate(undecided, (), 4, Spent(8, 2.5), "deadline").guarantee)
    The question is not settled (deadline): more instances are needed.
    """

    verdict: Verdict
    times: tuple[AtTime, ...]
    instances: int
    spent: Spent
    ended: str
    failures: Mapping[str, FailedRuns] = field(default_factory=dict)

    @property
    def answer(self) -> Answer:
        """The answer of the gate: "pass", "fail" or "undecided"."""
        return ANSWERS.get(self.verdict.kind, "undecided")

    @property
    def exit_code(self) -> int:
        """The exit code of the gate: 0 for pass, 1 for fail, 2 for undecided.

        >>> Gate(Verdict("new", "failed"), (), 0, Spent(), "resolved").exit_code
        1
        """
        return EXIT_CODES[self.answer]

    @property
    def guarantee(self) -> str:
        """One sentence on what the answer means, with its error probability."""
        if self.answer == "undecided":
            more = "" if self.ended == BASELINE_REMOVED else ": more instances are needed"
            return f"The question is not settled ({self.ended}){more}."
        behind = f"behind by more than {self.verdict.margin:g} at"
        claim = f"{behind} some time" if self.answer == "fail" else f"not {behind} any time"
        error = f"{1 - (self.verdict.certainty or 0.0):.6g}"
        return f"The new version is {claim}; this is wrong with probability at most {error}."

    def _describe_robustness(self) -> str:
        """Return a sentence on the instances that the answer depends on; "" if undecided."""
        decisive = self.verdict.decisive
        if not decisive:
            return ""
        names, without = format_list(decisive), format_count(len(decisive), "instance")
        return f"Without {without} the answer would be undecided: {names}."

    def _describe_missing_values(self) -> str:
        """Return a sentence on the times at which most ties are without any value; "" if none."""
        parts = [
            f"at time {format_time(one.time, self.verdict.clock)} in {one.ties_without_value:g} of "
            f"{one.ties:g}"
            for one in self.times
            if 2 * one.ties_without_value > one.ties
        ]
        said = "In most ties, neither version had reported a value"
        return f"{said}: {', '.join(parts)}." if parts else ""

    def _list_remarks(self) -> list[str]:
        """Return the sentences that follow the cost in the text and in the summary."""
        sentences = [
            *(one.describe(name) for name, one in self.failures.items()),
            self._describe_robustness(),
            self._describe_missing_values(),
        ]
        return [*filter(None, sentences)]

    def __str__(self) -> str:
        lines = [f"{self.answer}: {self.guarantee}", f"  {self._cost()}"]
        lines += [f"  {remark}" for remark in self._list_remarks()]
        return "\n".join([*lines, self._table()])

    def to_dict(self) -> dict[str, Any]:
        """Return all fields of the result as a dictionary of numbers and text, for JSON.

        >>> verdict = Verdict("new", "passed", margin=0.05, certainty=0.95)
        >>> Gate(verdict, (), 9, Spent(18, 1.0), "resolved").to_dict()["answer"]
        'pass'
        """
        more = {"guarantee": self.guarantee, "remarks": self._list_remarks()}
        return {"answer": self.answer, **to_plain(self, named=True), **more}

    def markdown(self) -> str:
        """Return a summary of the result in Markdown, for the page of a pull request.

        >>> verdict = Verdict("new", "passed", margin=0.05, certainty=0.95)
        >>> print(Gate(verdict, (), 9, Spent(18, 1.0), "resolved").markdown()[:32])
        ### No regression gate: **pass**
        """
        rows = [
            f"| {format_time(one.time, self.verdict.clock)} | {one.wins:g} | {one.ties:g} | "
            f"{one.losses:g} | {one.estimate:.2f} ({one.low:.2f} to {one.high:.2f}) |"
            for one in self.times
        ]
        head = (
            "| time | new wins | ties | old wins | P(new wins) (bounds) |\n|---|---|---|---|---|\n"
        )
        text = f"### No regression gate: **{self.answer}**\n\n{self.guarantee}\n\n{self._cost()}.\n"
        text += "".join(f"\n{remark}\n" for remark in self._list_remarks())
        return text + (f"\n{head}" + "\n".join(rows) + "\n" if rows else "")

    def _cost(self) -> str:
        return (
            f"{format_count(self.instances, 'instance')}, "
            f"{format_count(self.spent.runs, 'run')}, "
            f"{format_duration(self.spent.time, self.verdict.clock)}"
        )

    def _table(self) -> str:
        lines = [f"  {'time':>12}  {'new wins':>8}  {'ties':>6}  {'old wins':>8}  P(new wins)"]
        lines += [
            f"  {format_time(one.time, self.verdict.clock):>12}  {one.wins:>8g}  {one.ties:>6g}  "
            f"{one.losses:>8g}  {one.estimate:.2f} ({one.low:.2f} to {one.high:.2f})"
            for one in self.times
        ]
        return "\n".join(lines)


def gate(
    old: Solver,
    new: Solver,
    instances: Any,
    times: ArrayLike,
    *,
    direction: Direction,
    question: NoWorse | None = None,
    budget: Budget | None = None,
    store: str | PathLike[str] | None = None,
    executor: Any = None,
    clock: Clock | None = None,
    limits: Limits | None = None,
    seed: int = 0,
) -> Gate:
    """Test whether a new version of a solver is no worse than the old one, at every time.

    Both run on instance after instance. The new version passes when it is shown not to be behind
    by more than epsilon at each of the times, and fails when it is shown to be behind by more than
    that at some time: in the mean score of an instance (win 1, tie 1/2, loss 0). A wrong pass and a
    wrong fail have probability at most 1 - certainty each, however often the data are tested. By
    default epsilon is 0.05 and the certainty 0.95; ``NoWorse("old", epsilon=..., certainty=...)``
    is another question. The budget caps the cost; the answer may then be "undecided". If no run of
    the old version reports a value, nothing is compared: there is no answer but an error. The other
    parameters are those of :func:`polarbear.race`. With a ``store`` the same call resumes.

    >>> def old(job):
    ...     yield 1, job.rng.random()
    >>> def broken(job):
    ...     yield 1, job.rng.random() + 1
    >>> result = gate(old, broken, range(400), [1], direction="minimize", executor=1)
    >>> result.answer, result.exit_code
    ('fail', 1)
    """
    return race_versions(
        {OLD: old, NEW: new},
        instances,
        times,
        direction=direction,
        question=NoWorse(OLD) if question is None else question,
        budget=budget,
        store=store,
        executor=executor,
        clock=clock,
        limits=limits,
        seed=seed,
    )


def race_versions(
    versions: Mapping[str, Solver],
    instances: Any,
    times: ArrayLike,
    *,
    question: NoWorse,
    **options: Any,
) -> Gate:
    """Race the versions "old" and "new" with options of :func:`race`, and return the answer."""
    if not isinstance(question, NoWorse) or question.baseline != OLD:
        raise DataError(f"question={question!r}: expected NoWorse({OLD!r}, ...)")
    try:
        result = race(versions, instances, times, question=question, **options)
    except ChangedSetupError as error:
        raise StoreError(
            f"{error.difference}. Runs of different versions must not be mixed: pass the original "
            "versions and instances, or name a new store"
        ) from None
    with result:
        return _get_answer(result, question)


def _get_answer(result: SolverRace, question: NoWorse) -> Gate:
    """Return the gate's answer from the race of solver "new" against the baseline "old"."""
    runs = result.runs
    grid = np.array(result.times)
    silent = [name for name in (OLD, NEW) if not _has_value(runs, name, grid[-1])]
    if len(runs) and OLD in silent:
        version = "either" if NEW in silent else "the old"
        raise SolverError(_explain_missing_values(version, result.failures, grid[-1], runs.clock))
    verdict = result.verdict(NEW)
    rows: tuple[AtTime, ...] = ()
    if {*runs.algorithms} >= {OLD, NEW}:
        rankings = rank(runs, grid)
        outcomes = count_by_instance(rankings, NEW, OLD)
        wins, ties, losses = outcomes.sum(axis=2)
        low, high = confidence_sequence(wins, losses, question.certainty)
        decided = verdict.kind in ("passed", "failed")
        estimate = estimate_win_probability(outcomes, question, result.budget, decided=decided)
        without_value = _count_ties_without_value(runs, grid)
        columns = (grid, wins, ties, losses, low, high, estimate, without_value)
        rows = tuple(
            AtTime(*map(float, row))
            for row in zip(*(column.tolist() for column in columns), strict=True)
        )
        log_k, epsilon = -np.log1p(-question.certainty), question.epsilon
        decisive: tuple[str, ...] = ()
        if verdict.kind == "passed":
            decisive = find_decisive_instances(rankings, NEW, OLD, "at par", log_k, epsilon)
        elif verdict.kind == "failed":
            claim = "better somewhere"
            decisive = find_decisive_instances(rankings, OLD, NEW, claim, log_k, epsilon)
        verdict = verdict._replace(decisive=decisive)
    return Gate(
        verdict._replace(clock=runs.clock, margin=question.epsilon, certainty=question.certainty),
        rows,
        len(runs.instances),
        result.spent,
        ended=result.ended or "",
        failures=_count_failures(result.state),
    )


def _count_failures(state: State) -> dict[str, FailedRuns]:
    """Return the number of failed runs of each version, with the most frequent reason."""
    failures: dict[str, FailedRuns] = {}
    for name in (OLD, NEW):
        numbers = {one.why: one.runs.total() for one in state.ledger.reasons.get(name, {}).values()}
        why = max(numbers, key=numbers.__getitem__, default="")
        failures[name] = FailedRuns(sum(numbers.values()), state.ledger.n_runs[name], why)
    return failures


def _count_ties_without_value(runs: Runs, grid: Floats) -> Floats:
    """Return the number of instances on which no version has a value, at each time (T,)."""
    empty = np.zeros((2, len(runs.instances), len(grid)), dtype=bool)
    lacks_value = runs.at(grid) == runs.worst
    for k, name in enumerate((OLD, NEW)):
        chosen = runs.algorithm == runs.algorithms.index(name)
        empty[k, runs.instance[chosen]] = lacks_value[chosen]
    return empty.all(axis=0).sum(axis=0).astype(np.float64)


def _has_value(runs: Runs, algorithm: str, last: float) -> bool:
    """Return whether any run of a version reported a value up to a time."""
    code = runs.algorithms.index(algorithm) if algorithm in runs.algorithms else -1
    own = np.repeat(runs.algorithm, np.diff(runs.offset)) == code
    return bool((runs.time[own] <= last).any())


def _explain_missing_values(
    version: str, failures: Mapping[str, str], last: float, clock: str
) -> str:
    """Return the message of the error that no run of a version reported a value."""
    reasons = "; ".join(f"{name}: {why}" for name, why in failures.items())
    return (
        f"there is nothing to compare: no run of {version} version reported a value up to "
        f"{format_duration(last, clock)}. {f'Reasons: {reasons}' if reasons else ADVICE}"
    )
