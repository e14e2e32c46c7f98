"""Reader of DEBUG logs of Timefold Solver.

A score such as ``0hard/-3717soft`` has levels, of which the first that differs decides. If only
the last level of feasible solutions differs, it is the value, and a run has no value until its
first feasible solution. ``levels=True`` compares by all levels instead.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from polarbear.data.run import Direction, Run
from polarbear.data.runs import Runs
from polarbear.errors import DataError, warn
from polarbear.readers.naming import RunNaming, StatedName
from polarbear.readers.source import (
    Refused,
    Source,
    parse_number,
    parse_time,
    prefix_errors,
    resolve_direction,
)

MAX_LINE_CHARACTERS = 2_000
"""Only this many characters of a line are searched; the score stands at the start."""

_START = re.compile(r"Solving started: time spent \((\d+)\), best score \(")
_SCORE = re.compile(
    r"(?:step \(\d+\), time spent \((\d+)\), score \([^()]*\), +new best score"
    r"|(?:phase \(\d+\)|Solving) ended: time spent \((\d+)\), best score) \(([^()]*)\)"
)
_TIME = re.compile(r"time spent \((\d+)\)")
_SEED = re.compile(r"random \([^()]* with seed (\d{1,18})\)")
_LEVEL = re.compile(r"([-+]?[\d.]+(?:E[-+]?\d+)?)(init|hard|medium|soft|)")


def read_timefold(
    source: Source,
    *,
    direction: Direction | None = None,
    names: str | None = None,
    until: float | None = None,
    clock: str = "seconds",
    levels: bool = False,
) -> Runs:
    """Read DEBUG logs of Timefold, one run each; the value is the last level of the score.

    Parameters
    ----------
    names
        The meaning of the parts of a path, as for logs. The seed is the repetition, if the
        pattern has none.
    until
        Until when each run was observed; by default until the last time in its log.
    levels
        Whether all levels of the scores count, in their order, also those of infeasible solutions.
    """
    files = source.ending(".log", ".out", ".txt", ".stdout")
    naming = RunNaming(source, files, names) if files else None
    logs: list[_TimefoldLog] = []
    for file in naming.files if naming else []:
        lines = [line[:MAX_LINE_CHARACTERS] for line in source.lines(file)]
        if any(_START.search(line) for line in lines):
            with prefix_errors(file):
                logs.append(_parse_lines(_TimefoldLog(file), lines, all_levels=levels))
        else:
            source.leave(file)
    if not naming or not logs:
        raise Refused("no file is a log of Timefold")
    stated = [
        (log.file, StatedName(repetition=log.seed if names else None, solver="Timefold"))
        for log in logs
    ]
    never = [log.file for log in logs if log.was_infeasible and not log.values]
    if never:
        warn(f"{never[0]}: no feasible solution, so the run has no value ({len(never)} such logs)")
    named, upper = naming.name_runs(stated), dict[str, list[float]]()
    for log, name in zip(logs, named, strict=True):
        if log.upper is not None and upper.setdefault(name.instance, log.upper) != log.upper:
            raise DataError(
                f"{log.file}: more than the last level of the scores differs from other runs on "
                f"{name.instance}, but runs are compared by the last level: pass levels=True to "
                "compare by all"
            )
    records = [
        Run(
            **name._asdict(),
            time=log.times,
            value=log.values,
            until=log.last if until is None else until,
        )
        for log, name in zip(logs, named, strict=True)
    ]
    known = resolve_direction(direction, "maximize")
    names_of = _find_levels(logs) if levels else []
    if len(names_of) > 1:
        return Runs.from_records(records, direction=known, clock=clock, levels=names_of)
    return Runs.from_records(records, direction=known, clock=clock)


def _find_levels(logs: Sequence["_TimefoldLog"]) -> list[str]:
    """Return the levels of the scores; fill in the initialisation, which only some scores have."""
    named = [tuple(name for name in log.levels if name != "init") for log in logs if log.levels]
    other = next((own for own in named if own != named[0]), None)
    if other is not None:
        raise DataError(f"the scores have different levels: {named[0]} and {other}")
    return ["init", *named[0]] if named else []


@dataclass
class _TimefoldLog:
    """What a Timefold log tells: times in seconds, and last levels of feasible best scores."""

    file: str
    times: list[float] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    levels: tuple[str, ...] = ()
    last: float = 0.0
    seed: int | None = None
    was_infeasible: bool = False
    upper: list[float] | None = None  # all levels but the last


def _parse_lines(log: _TimefoldLog, lines: list[str], *, all_levels: bool) -> _TimefoldLog:
    n_starts = 0
    for i, line in enumerate(lines, start=1):
        where = f"line {i}"
        n_starts += _START.search(line) is not None
        if match := _SEED.search(line):
            log.seed = int(match[1])
        if match := _TIME.search(line):
            log.last = max(log.last, parse_time(match[1], where) / 1000)
        if not (match := _SCORE.search(line)):
            continue
        score = _parse_score(match[3], where)
        if all_levels:
            score = {"init": 0.0, **score}
            log.levels = tuple(score)
            log.times.append(parse_time(match[1] or match[2], where) / 1000)
            log.values.append(tuple(score.values()))
            continue
        if min(score.get("init", 0.0), score.get("hard", 0.0)) < 0:
            log.was_infeasible = True
            continue
        *above, value = score.values()
        if log.upper not in (None, above):
            raise DataError(
                f"{where}: score {match[3]}: more than the last level of the scores differs, but "
                "runs are compared by the last level: pass levels=True to compare by all"
            )
        log.upper = above
        log.times.append(parse_time(match[1] or match[2], where) / 1000)
        log.values.append(value)
    if n_starts > 1:
        raise DataError(f"holds {n_starts} solves; write each to a log of its own")
    return log


def _parse_score(text: str, where: str) -> dict[str, float]:
    """Return the levels of a score by name, the most important first.

    >>> _parse_score("0hard/-3717soft", "line 1")
    {'hard': 0.0, 'soft': -3717.0}
    """
    score: dict[str, float] = {}
    for part in text.split("/"):
        match = _LEVEL.fullmatch(part)
        if match is None or match[2] in score:
            raise DataError(
                f"{where}: {text[:40]!r} is not a score with levels hard, medium and soft"
            )
        score[match[2]] = parse_number(match[1], where)
    return score
