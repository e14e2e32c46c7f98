"""``gate``: test that a new version of a solver is not worse than the old one on any stretch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from polarbear._text import (
    align_columns,
    escape_text,
    format_count,
    format_duration,
    format_list,
    format_time,
)
from polarbear.coordinator.resume import ChangedSetupError
from polarbear.coordinator.run_race import SolverRace, race
from polarbear.data.run import Direction
from polarbear.data.runs import Runs
from polarbear.errors import DataError, SolverError, StoreError
from polarbear.inference.dominance import Floats
from polarbear.inference.e_values import Shares, confidence_sequence, count_by_instance
from polarbear.inference.replacing import PairTables
from polarbear.inference.verdicts import Verdict
from polarbear.racing.budget import Budget
from polarbear.racing.codec import to_plain
from polarbear.racing.ledger import Spent
from polarbear.racing.questions.no_worse import (
    BASELINE_REMOVED,
    POWER,
    NoWorse,
    estimate_win_probability,
    find_decisive_instances,
    find_provable,
    find_proven_margin,
)
from polarbear.racing.status import RunCounts
from polarbear.running.solvers.job import Clock
from polarbear.running.solvers.setup import Limits, Solver

OLD, NEW = "old", "new"

Answer = Literal["pass", "fail", "undecided"]

ANSWERS: Mapping[str, Answer] = {"passed": "pass", "failed": "fail", "undecided": "undecided"}
ADVICE = "Is the last budget long enough for a first value, and does the pattern match its line?"
NO_RUNS = RunCounts({}, {}, {}, {})


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
class Gate:
    """The result of :func:`gate`: whether the new version of a solver is no worse than the old.

    Attributes
    ----------
    verdict
        The verdict about the new version: "passed", "failed" or "undecided"; with the margin, the
        certainty, the clock, and few instances without which it would be undecided.
    times
        The comparison at each time.
    instances, spent
        The cost: instances, and the number and the time of all runs.
    ended
        Why no more runs were made.
    runs
        The runs of each version, "old" and "new": made and failed, and why.
    proven_margin
        The smallest margin by which the new version is shown to be worse nowhere; None if none is.
    provable
        Of so many instances, the share of wins from which on the new version passes with
        probability 0.8, and that up to which it fails; None if nothing was compared.

    Examples
    --------
    >>> undecided = Verdict("new", "undecided", margin=0.1, certainty=0.95)
    >>> gate = Gate(undecided, (), 12, Spent(24, 2.5), "deadline", NO_RUNS, 0.27, (12, 0.83, 0.11))
    >>> print(gate.guarantee)
    The question is not settled (deadline): more instances are needed.
    >>> print(gate.describe_proof())
    Shown with certainty 0.95: nowhere worse by more than 0.27. 12 instances can show a pass from
    83 % wins on, and a fail up to 11 % (with probability 0.8).
    """

    verdict: Verdict
    times: tuple[AtTime, ...]
    instances: int
    spent: Spent
    ended: str
    runs: RunCounts = NO_RUNS
    proven_margin: float | None = None
    provable: tuple[int, float | None, float | None] | None = None

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
        return ("pass", "fail", "undecided").index(self.answer)

    @property
    def guarantee(self) -> str:
        """One sentence on what the answer means, with its error probability."""
        if self.answer == "undecided":
            more = "" if self.ended == BASELINE_REMOVED else ": more instances are needed"
            return f"The question is not settled ({self.ended}){more}."
        worse = f"worse by more than {self.verdict.margin:g} on"
        claim = f"{worse} some stretch" if self.answer == "fail" else f"not {worse} any stretch"
        error = f"{1 - (self.verdict.certainty or 0.0):.6g}"
        return (
            f"The new version is {claim} of time; this is wrong with probability at most {error}."
        )

    def describe_proof(self) -> str:
        """Return what was shown, and what so many instances can show; "" if it failed."""
        if self.provable is None or self.answer == "fail":
            return ""
        shown = "nothing of how much worse it may be"
        if self.proven_margin is not None:
            shown = f"nowhere worse by more than {self.proven_margin:g}"
        text = f"Shown with certainty {self.verdict.certainty:g}: {shown}."
        if self.answer == "pass":
            return text
        n, passing, failing = self.provable
        passes = "no pass" if passing is None else f"a pass from {100 * passing:.0f} % wins on"
        fails = "no fail" if failing is None else f"a fail up to {100 * failing:.0f} %"
        sure = f"with probability {POWER:g}"
        return f"{text} {format_count(n, 'instance')} can show {passes}, and {fails} ({sure})."

    def _describe_failures(self, version: str) -> str:
        """Return a sentence on the failed runs, with reasons quoted for Markdown; "" if none."""
        if not self.runs.failed.get(version):
            return ""
        why = escape_text(" ".join(self.runs.why.get(version, "").split())).replace("`", "'")
        made = format_count(self.runs.made.get(version, 0), "run")
        return f"{self.runs.failed[version]:,} of {made} of the {version} version failed: `{why}`"

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
            self.describe_proof(),
            *map(self._describe_failures, (OLD, NEW)),
            self._describe_robustness(),
            self._describe_missing_values(),
        ]
        return [*filter(None, sentences)]

    def __str__(self) -> str:
        lines = [self._cost(), *self._list_remarks(), *align_columns(self._list_rows()).split("\n")]
        return "\n  ".join([f"{self.answer}: {self.guarantee}", *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return all fields of the result as a dictionary of numbers and text, for JSON.

        >>> verdict = Verdict("new", "passed", margin=0.1, certainty=0.95)
        >>> Gate(verdict, (), 9, Spent(18, 1.0), "resolved").to_dict()["answer"]
        'pass'
        """
        more = {"guarantee": self.guarantee, "remarks": self._list_remarks()}
        return {"answer": self.answer, **to_plain(self, named=True), **more}

    def markdown(self) -> str:
        """Return a summary of the result in Markdown, for the page of a pull request.

        >>> verdict = Verdict("new", "passed", margin=0.1, certainty=0.95)
        >>> print(Gate(verdict, (), 9, Spent(18, 1.0), "resolved").markdown()[:32])
        ### No regression gate: **pass**
        """
        rows = [f"| {' | '.join(row)} |" for row in self._list_rows()]
        rows.insert(1, "|---|---|---|---|---|")
        text = f"### No regression gate: **{self.answer}**\n\n{self.guarantee}\n\n{self._cost()}.\n"
        text += "".join(f"\n{remark}\n" for remark in self._list_remarks())
        return text + ("\n" + "\n".join(rows) + "\n" if self.times else "")

    def _cost(self) -> str:
        return (
            f"{format_count(self.instances, 'instance')}, "
            f"{format_count(self.spent.runs, 'run')}, "
            f"{format_duration(self.spent.time, self.verdict.clock)}"
        )

    def _list_rows(self) -> list[list[str]]:
        """Return the head and the rows of a table with the comparison at each time."""
        rows = [["time", "new wins", "ties", "old wins", "P(new wins) (bounds)"]]
        for one in self.times:
            counts = (f"{number:g}" for number in (one.wins, one.ties, one.losses))
            chance = f"{one.estimate:.2f} ({one.low:.2f} to {one.high:.2f})"
            rows.append([format_time(one.time, self.verdict.clock), *counts, chance])
        return rows


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
    """Test whether a new version of a solver is not worse than the old one on any stretch of time.

    Both run on instance after instance. The new version passes when it is shown that on no stretch
    (a tenth of the time axis) it is worse by more than the margin: loses more than 60 % of the
    duels that are decided, and more often than it wins by more than 10 % of the instances. It fails
    when it is shown to be worse by more than that on some stretch. A wrong pass and a wrong fail
    have probability at most 1 - certainty each, however often the data are tested; if the number of
    instances is known, a part of it is kept for a test when all of them are used. By default the
    margin is 0.1 and the certainty 0.95; ``NoWorse("old", margin=..., certainty=...)`` is another
    question. The budget caps the cost; the answer may then be "undecided". If no run of
    the old version reports a value, nothing is compared: there is no answer but an error. The other
    parameters are those of :func:`polarbear.race`. With a ``store`` the same call resumes.

    Returns
    -------
    Gate
        The answer ("pass", "fail" or "undecided"), and what it rests on.

    Raises
    ------
    SolverError
        If a solver is none, or every run of a round fails.
    DataError
        If another argument is invalid.
    StoreError
        If the store cannot be used.

    Examples
    --------
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
        raise DataError(f"expected NoWorse({OLD!r}, ...)", question=question)
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
    proven, provable = None, None
    if {*runs.algorithms} >= {OLD, NEW}:
        rankings = result.state.setup.model.rank(runs, grid)
        outcomes = count_by_instance(rankings, NEW, OLD)
        wins, ties, losses = outcomes.sum(axis=2)
        low, high = confidence_sequence(wins, losses, question.certainty)
        tables = PairTables.of(rankings, NEW, OLD, question.width)
        view = result.state.view()
        shares, n_all = view.find_shares(), view.n_used + view.n_unused
        estimate = estimate_win_probability(
            outcomes,
            tables,
            question,
            result.budget,
            most=int(n_all) if isfinite(n_all) else None,
            decided=verdict.kind in ("passed", "failed"),
        )
        without_value = _count_ties_without_value(runs, grid)
        columns = (grid, wins, ties, losses, low, high, estimate, without_value)
        rows = tuple(
            AtTime(*map(float, row))
            for row in zip(*(column.tolist() for column in columns), strict=True)
        )
        verdict = verdict._replace(decisive=find_decisive_instances(question, tables, shares))
        proven = find_proven_margin(question, tables, shares)
        n, at_end = len(runs.instances), shares
        if isfinite(n_all) and shares.on_the_way < 1:
            n, at_end = int(n_all), Shares.at_end_of(int(n_all))
        provable = n, *find_provable(question, n, at_end)
    return Gate(
        verdict._replace(clock=runs.clock, margin=question.margin, certainty=question.certainty),
        rows,
        len(runs.instances),
        result.spent,
        ended=result.ended or "",
        runs=result.status.runs,
        proven_margin=proven,
        provable=provable,
    )


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
