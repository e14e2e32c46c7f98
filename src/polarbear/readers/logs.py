"""Reader of solver logs, which matches incumbents line by line with regular expressions.

A log is one run. ``LOG_FORMATS`` lists the solvers whose logs are known. Other logs are read with
a pattern of the user that has the groups ``time`` and ``value``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from re import Pattern
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.missing_columns import REPETITION_COLUMNS
from polarbear.data.run import Direction, Run, Status
from polarbear.data.runs import Runs
from polarbear.errors import DataError, warn
from polarbear.readers.paths import parse_paths, propose_pattern
from polarbear.readers.source import (
    Refused,
    RefusedIncomplete,
    Source,
    parse_number,
    parse_time,
    prefix_errors,
)

MAX_LINE_CHARACTERS = 2_000
"""Longer lines are skipped: they hold no incumbent, and patterns may be slow on them."""

_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MAX_RUN_SECONDS = 1e8
_MARKED_REPETITION = re.compile(
    r"(s|seed|r|run|rep|repetition|trial)[-_=]?\{repetition\}", re.IGNORECASE
)
_NO_VALUE_TEXTS = {"--", "-", ""}
_TIME_STAMP = r"(?:(?:[0-9.]+/)?(?P<time>(?:[0-9]+:[0-9]+:)?[0-9]+(?:\.[0-9]+)?)[ \t]+)?"


@dataclass(frozen=True)
class LogFormat:
    """The format of a solver's logs: regular expressions that are matched with single lines.

    ``incumbent`` patterns have a group ``value`` and mostly ``time``, perhaps ``unit`` (s, m, h,
    d) and ``bound``, from which the direction is inferred. ``ending`` maps a pattern to a status,
    ``until`` has a group ``time``, and ``best`` a group ``value`` with more digits.
    """

    name: str
    recognise: Pattern[str] | None
    incumbent: tuple[Pattern[str], ...]
    ending: dict[Pattern[str], Status] = field(default_factory=dict)
    until: Pattern[str] | None = None
    best: Pattern[str] | None = None
    direction: Direction | None = None
    solver: str | None = None  # the algorithm, where the path does not name one


LOG_FORMATS = (
    LogFormat(
        "HiGHS",
        recognise=re.compile(r"Running HiGHS .*"),
        incumbent=(
            re.compile(
                r" .\s+\d+[km]?\s+\d+[km]?\s+\d+[km]?\s+[\d.]+%\s+(?P<bound>\S+)\s+(?P<value>\S+)"
                r"\s+\S+(?:\s+\S+){4}\s+(?P<time>[\d.]+)s"
            ),
        ),
        ending={
            re.compile(r"  Status\s+(?:Optimal|Infeasible|Unbounded).*"): Status.FINISHED,
            re.compile(r"  Status\s+.*[Mm]emory.*"): Status.OUT_OF_MEMORY,
        },
        until=re.compile(r"  Timing\s+(?P<time>[\d.]+)(?: \(total\))?"),
        best=re.compile(r"  Primal bound\s+(?P<value>(?!-?inf)\S+)"),
        solver="HiGHS",
    ),
    LogFormat(
        "SCIP",
        recognise=re.compile(r"SCIP (?:version|Status) .*| time \| node .*primalbound.*"),
        incumbent=(
            re.compile(
                r".?\s*(?P<time>[\d.]+)(?P<unit>[smhd])\|(?:[^|]*\|)*?\s*(?P<bound>[^|\s]+)\s*"
                r"\|\s*(?P<value>--|[-+]?\d\.\d+e[-+]\d+)\s*\|\s*(?:Inf|Large|[\d.]+%|-+)\s*"
                r"(?:\|[^|]*)?"
            ),
            re.compile(
                r"feasible solution found by .* after (?P<time>[\d.]+) seconds, "
                r"objective value (?P<value>\S+)"
            ),
        ),
        ending={
            re.compile(r"SCIP Status\s*: problem is solved .*"): Status.FINISHED,
            re.compile(r"SCIP Status\s*: .*\[memory limit.*"): Status.OUT_OF_MEMORY,
        },
        until=re.compile(r"Solving Time \(sec\)\s*: (?P<time>[\d.]+)"),
        best=re.compile(r"Primal Bound\s*: (?P<value>\S+) \((?!0 |objective limit).*"),
        solver="SCIP",
    ),
    LogFormat(
        "o-lines",
        recognise=re.compile(
            _TIME_STAMP + r"(?:o [-+]?[0-9]+|s (?:OPTIMUM|SAT|UNSAT|UNKNOWN).*)\s*"
        ),
        incumbent=(re.compile(_TIME_STAMP + r"o (?P<value>[-+]?[0-9]+)\s*"),),
        ending={
            re.compile(_TIME_STAMP + r"s (?:OPTIMUM FOUND|UNSATISFIABLE)\s*"): Status.FINISHED,
        },
        until=re.compile(_TIME_STAMP + r"\S.*"),
        direction="minimize",
    ),
)


def read_logs(
    source: Source,
    *,
    direction: Direction | None = None,
    pattern: str | None = None,
    names: str | None = None,
    until: float | None = None,
    clock: str = "seconds",
) -> Runs:
    r"""Read logs of solvers, one run each (HiGHS, SCIP, ``o`` lines of MaxSAT and PB solvers).

    Parameters
    ----------
    direction
        Needed where the logs do not tell; it selects from logs of both directions.
    pattern
        A regular expression with groups ``time`` and ``value`` for the lines of any other log,
        for instance ``r"(?P<time>[\d.]+)s: best (?P<value>\S+)"``.
    names
        The meaning of the parts of a path: ``"{algorithm}/{instance}_s{repetition}.log"``, or a
        regular expression with these groups. By default ``algorithm/instance.log`` or
        ``algorithm__instance.log``, with ``__7`` behind the instance for repetition 7. Without an
        algorithm in the path, it is HiGHS or SCIP.
    until
        Until when each run was observed; by default until the last time in its log.
    """
    files = source.ending(".log", ".out", ".txt", ".stdout")
    if not files:
        raise Refused("no file ends in .log, .out, .txt or .stdout")
    own = _make_log_format(pattern) if pattern is not None else None
    fields_of = None if names is None else parse_paths(source, files, names)
    files = files if fields_of is None else list(fields_of)
    # A .txt beside other files may be something else; a .log is always a log.
    notes = [] if len(files) == 1 or own else [file for file in files if ".txt" in file.lower()]
    read: list[tuple[_ParsedLog, tuple[str, str, int]]] = []
    for file in files:
        lines = [line.rstrip() for line in source.lines(file)]
        log = own or _recognise_format(lines)
        if log is None and file in notes:
            continue
        if log is None:
            known = ", ".join(log.name for log in LOG_FORMATS)
            raise RefusedIncomplete(
                f"{file} is not a log of {known}; give a pattern=... for others"
            )
        with prefix_errors(file):
            fields = fields_of[file] if fields_of is not None else None
            read.append((_parse_log(log, lines, until), _name_run(file, fields, log.solver)))
    if own and not any(len(one.value) for one, _ in read):
        raise DataError(f"{source.label}: the pattern '{pattern}' matches no line of any log")
    if not read:
        raise Refused("no file is a log of a known solver")
    if names is None:
        _warn_if_repetitions_missed(files, [name for _, name in read])
    directions: set[Direction] = {one.direction for one, _ in read if one.direction}
    if direction is None and len(directions) != 1:
        why = "some logs minimise and some maximise" if directions else "the logs do not tell"
        raise DataError(f"{source.label}: {why}; pass direction='minimize' or 'maximize'")
    direction = direction or directions.pop()
    records = [
        Run(name[0], name[1], *one.trajectory(direction), one.until, name[2], one.status)
        for one, name in read
        if one.direction in (None, direction)
    ]
    if not records:
        raise DataError(f"{source.label}: holds no logs that {direction}")
    return Runs.from_records(records, direction=direction, clock=clock)


def _make_log_format(pattern: str) -> LogFormat:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise DataError(f"pattern '{pattern}': {error}") from None
    if not {"time", "value"} <= set(compiled.groupindex):
        raise DataError(f"pattern '{pattern}' needs the groups (?P<time>...) and (?P<value>...)")
    return LogFormat("log", None, (compiled,))


def _recognise_format(lines: list[str]) -> LogFormat | None:
    for log in LOG_FORMATS:
        if log.recognise and any(_match_line(log.recognise, line) for line in lines):
            return log
    return None


def _name_run(
    file: str, fields: Mapping[str, str] | None, solver: str | None
) -> tuple[str, str, int]:
    """Return the algorithm, instance and repetition of a log, by its path."""
    if fields is not None:
        parts = [fields.get("algorithm", solver or ""), fields.get("instance", "")]
        if number := next((fields[n] for n in REPETITION_COLUMNS if n in fields), None):
            parts.append(number)
        if not all(parts):
            raise DataError("names= gives no algorithm and instance: it needs both as fields")
    else:
        *folders, name = file.split("/")
        parts = re.sub(r"\.(log|out|txt|stdout)(\.gz)?$", "", name, flags=re.IGNORECASE).split("__")
        if len(parts) == 1 or (len(parts) == 2 and parts[1].isdecimal()):
            algorithm = folders[-1] if folders else solver
            parts = [algorithm or "", *parts]
        if len(parts) > 3 or not all(parts):
            raise DataError(
                "the name does not tell algorithm and instance: call it algorithm/instance.log or "
                "algorithm__instance.log, or pass names='{algorithm}_{instance}.log'"
            )
    repetition = parts[2] if len(parts) > 2 else "0"
    if not re.fullmatch(r"[0-9]{1,18}", repetition):
        raise DataError(f"repetition {repetition!r} in the path is not a whole number")
    return parts[0], parts[1], int(repetition)


def _warn_if_repetitions_missed(
    files: Sequence[str], named: Sequence[tuple[str, str, int]]
) -> None:
    """Warn if paths seem to have repetition numbers that were taken as parts of instances."""
    pattern = propose_pattern(files, ["algorithm", "instance"]) or ""
    if _MARKED_REPETITION.search(pattern) and not any(repetition for _, _, repetition in named):
        warn(
            f"{files[0]} was taken as instance {named[0][1]!r}; if the files are repetitions on "
            f"instances, pass names={pattern!r}"
        )


class _ParsedLog(NamedTuple):
    """The content of a log."""

    time: NDArray[np.float64]
    value: NDArray[np.float64]
    last: float  # the latest time in the log
    until: float
    best: float | None
    status: Status
    direction: Direction | None

    def trajectory(self, direction: Direction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return times and values, with the exact best value in place of the rounded one."""
        if self.best is None:
            return self.time, self.value
        worse = np.maximum if direction == "minimize" else np.minimum
        value = worse(self.value, self.best)
        if len(value) and np.isclose(value[-1], self.best, rtol=1e-6, atol=0.0):
            value[-1] = self.best  # the last solution of the table is the best one
            return self.time, value
        return np.append(self.time, self.last), np.append(value, self.best)


def _parse_log(log: LogFormat, lines: list[str], until: float | None) -> _ParsedLog:
    incumbents: list[tuple[float, float]] = []
    stamps: list[float] = []
    best, status, direction = None, Status.CUT, log.direction
    for i, line in enumerate(lines, start=1):
        where = f"line {i}"
        for pattern in log.incumbent:
            if match := _match_line(pattern, line, whole=log.recognise is not None):
                time, value, bound = _parse_incumbent(match.groupdict(), where)
                stamps.append(time)
                if value is not None:
                    incumbents.append((time, value))
                    direction = direction or _infer_direction(value, bound)
        if log.until and (match := _match_line(log.until, line)) and match["time"] is not None:
            stamps.append(_parse_seconds(match["time"], "s", where))
        if log.best and (match := _match_line(log.best, line)):
            best = parse_number(match["value"], where)
        status = next(
            (s for pattern, s in log.ending.items() if _match_line(pattern, line)), status
        )
    # Stamps count from the start of the run, or from 1970: then the first stamp is the start.
    first = min(stamps, default=0.0)
    zero = first if first > _MAX_RUN_SECONDS else 0.0
    time, value = np.array(incumbents, dtype=np.float64).reshape(-1, 2).T
    last = max(stamps, default=0.0) - zero
    end = last if until is None else until
    return _ParsedLog(time - zero, value, last, end, best, status, direction)


def _parse_incumbent(
    groups: dict[str, str | None], where: str
) -> tuple[float, float | None, str | None]:
    """Parse the time, the value (``None`` for none yet) and the bound of a line."""
    if groups["time"] is None:
        raise DataError(
            f"{where}: no time before the value; let the lines be stamped as they come, "
            "for instance with: solver ... | ts -s '%.s'"
        )
    unit = groups.get("unit") or "s"
    if unit not in _UNIT_SECONDS:
        raise DataError(f"{where}: the unit {unit!r} is not one of {', '.join(_UNIT_SECONDS)}")
    time = _parse_seconds(groups["time"], unit, where)
    text = (groups["value"] or "").rstrip("*")
    value = None if text in _NO_VALUE_TEXTS else parse_number(text, where)
    return time, value, groups.get("bound")


def _match_line(pattern: Pattern[str], line: str, *, whole: bool = True) -> re.Match[str] | None:
    if len(line) > MAX_LINE_CHARACTERS:
        return None
    return pattern.fullmatch(line) if whole else pattern.search(line)


def _parse_seconds(text: str, unit: str, where: str) -> float:
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60.0 * seconds + parse_time(part, where)
    return parse_time(repr(seconds * _UNIT_SECONDS[unit]), where)


def _infer_direction(value: float, bound: str | None) -> Direction | None:
    """Infer the direction from a solution and a bound that it has not reached."""
    try:
        limit = float(bound or "nan")
    except ValueError:
        return None
    if not abs(limit - value) > 1e-6 * max(1.0, abs(value)):
        return None
    return "minimize" if limit < value else "maximize"
