"""``check``: run each solver once for a few seconds, and report problems before a race starts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from polarbear._text import (
    escape_lines,
    escape_text,
    format_count,
    format_duration,
    format_range,
)
from polarbear.data.run import Direction, Status
from polarbear.racing.budget import Budget
from polarbear.racing.jobs import RunId, job
from polarbear.racing.questions.pareto_set import check_question
from polarbear.racing.questions.question import Question
from polarbear.racing.race import check_budget
from polarbear.running.backends.interface import start_backend
from polarbear.running.solvers.job import Clock
from polarbear.running.solvers.setup import Limits, Setup, Solver
from polarbear.running.workers.outcomes import NO_VALUE_ADVICE, LostRun, RunOutcome

START_SECONDS = 1.0
"""Seconds that a run may take to start, in addition to the time for which it is observed."""


class CheckReport(NamedTuple):
    """The result of ``check``: the setup of a race, with one short run of each solver."""

    setup: Setup
    outcomes: dict[str, RunOutcome | LostRun]

    @property
    def problems(self) -> dict[str, str]:
        """The problems found, by solver; empty if all solvers work."""
        problems = {name: _describe_problem(outcome) for name, outcome in self.outcomes.items()}
        return {name: problem for name, problem in problems.items() if problem}

    def __str__(self) -> str:
        setup, problems = self.setup, self.problems
        names = setup.instances.names
        number = "instances without end" if names is None else format_count(len(names), "instance")
        times = (
            f"{format_count(len(setup.times), 'time')} {'at' if len(setup.times) == 1 else 'from'} "
            f"{format_range(setup.times[0], setup.times[-1], setup.clock)}"
        )
        lines = [
            f"{format_count(len(setup.solvers), 'solver')} on {number}, {setup.direction}",
            f"  clock  {setup.clock}, {times}",
        ]
        horizon = min(outcome.job.horizon for outcome in self.outcomes.values())
        if horizon < setup.times[-1]:
            lines[-1] += f"; watched here for {format_duration(horizon, setup.clock)}"
        labels = {name: escape_text(name) for name in self.outcomes}
        width = max(map(len, labels.values()))
        for name, outcome in self.outcomes.items():
            lines.append(f"  {labels[name]:<{width}}  {_describe_outcome(outcome, setup.clock)}")
            if name in problems:
                lines.append(f"  {'':<{width}}  -> {escape_lines(problems[name])}")
        return "\n".join(lines)

    __repr__ = __str__


class OfRace(TypedDict, total=False):
    """The arguments of a race that concern what it decides and keeps."""

    question: Question | None
    budget: Budget | None
    store: Any
    progress: Any


def check(
    solvers: Mapping[str, Solver] | Iterable[Solver],
    instances: Any,
    times: ArrayLike,
    *,
    direction: Direction,
    executor: Any = None,
    clock: Clock | None = None,
    limits: Limits | None = None,
    seed: int = 0,
    seconds: float = 2.0,
    **of_race: Unpack[OfRace],
) -> CheckReport:
    """Run each solver once for a few seconds, and report problems before a race starts.

    Takes all arguments of :func:`polarbear.race`, so that one call can replace the other.

    Parameters
    ----------
    seconds
        How long each solver may take. By the wall or CPU clock it is observed for this long.
    of_race
        The other arguments of a race. They are checked, but nothing is decided or stored.

    Returns
    -------
    CheckReport
        What each solver did, and the problems of each.

    Raises
    ------
    SolverError
        If there is no solver, or one is not a function or a :class:`Command`.
    DataError
        If another argument is invalid.

    Examples
    --------
    >>> def walk(job):
    ...     yield 1, job.rng.random()
    >>> def lost(job):
    ...     job.report("x")
    >>> report = check([walk, lost], ["a"], times=[10, 100], direction="minimize")
    >>> print(report)
    2 solvers on 1 instance, minimize
      clock  evaluations, 2 times from 10 to 100 evaluations
      walk  finished at 1 evaluation, 1 improvement, ...
      lost  crashed at 0 evaluations, 0 improvements, ...
            -> SolverError: 'x' is not a value: expected a number ...
    >>> list(report.problems)
    ['lost']
    """
    for name in of_race.keys() - OfRace.__annotations__.keys():
        raise TypeError(f"check() got an unexpected keyword argument {name!r}")
    check_question(of_race.get("question"))
    check_budget(of_race.get("budget")).resolve_deadline(time.time())
    setup = Setup.of(
        solvers, instances, times=times, direction=direction, clock=clock, limits=limits
    )
    return check_setup(setup, seconds=seconds, seed=seed, executor=executor)


def check_setup(
    setup: Setup, *, seconds: float = 2.0, seed: int = 0, executor: Any = None
) -> CheckReport:
    """Run each solver of a setup once for a few seconds; see :func:`check`."""
    horizon, wall_seconds = setup.times[-1], seconds
    if setup.clock in ("wall", "cpu"):
        horizon, wall_seconds = min(horizon, seconds), seconds + START_SECONDS
    wall_seconds = min(setup.limits.wall_seconds, wall_seconds)
    setup = replace(setup, limits=replace(setup.limits, wall_seconds=wall_seconds))
    instance = "1" if setup.instances.names is None else setup.instances.names[0]
    jobs = [job(seed, RunId(name, instance, 0), horizon) for name in setup.solvers]
    outcomes: dict[str, RunOutcome | LostRun] = {}
    with closing(start_backend(setup, executor)) as backend:
        backend.submit(jobs)
        while len(outcomes) < len(jobs):
            outcomes |= {outcome.job.algorithm: outcome for outcome in backend.outcomes()}
    return CheckReport(setup, {name: outcomes[name] for name in setup.solvers})


def _describe_outcome(outcome: RunOutcome | LostRun, clock: str) -> str:
    if isinstance(outcome, LostRun):
        return "was lost"
    run = outcome.run
    return (
        f"{run.status.value} at "
        f"{format_duration(run.until, clock)}, "
        f"{format_count(np.size(run.time), 'improvement')}, {outcome.seconds:.2g} s"
    )


def _describe_problem(outcome: RunOutcome | LostRun) -> str:
    """Return why a run failed or reported no value; "" if it is in order."""
    if isinstance(outcome, LostRun) or outcome.run.status in (Status.CRASHED, Status.KILLED):
        return outcome.why
    if outcome.run.status == Status.OUT_OF_MEMORY:
        return outcome.why
    if not np.size(outcome.run.time):
        return f"it reported no value: {outcome.why or NO_VALUE_ADVICE}"
    return ""
