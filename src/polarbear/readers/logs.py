"""Reader of solver logs, which matches progress line by line with regular expressions.

``log_formats.py`` lists the solvers whose logs are known. Other logs are read with a pattern of
the user that has the groups ``time`` and ``value``.
"""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from re import Pattern
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_list
from polarbear.data.run import Direction, Run, Status, opposite_of
from polarbear.data.runs import Runs
from polarbear.errors import Argument, DataError, warn
from polarbear.readers.log_formats import LogFormat
from polarbear.readers.naming import RunName, RunNaming, StatedName
from polarbear.readers.source import (
    Refused,
    RefusedIncomplete,
    Source,
    choose_direction,
    parse_number,
    parse_time,
    prefix_errors,
)

MAX_LINE_CHARACTERS = 2_000
"""Longer lines are skipped: they hold no incumbent, and patterns may be slow on them."""

INFINITE_BOUND = 1e20
"""Solvers print numbers from this size on in place of infinity."""

MIN_BURST_VALUES = 10
"""From this number of values on, stamps that are all nearly the same are suspicious."""

MIN_DIGITS = 5
"""A number with fewer digits is no rounded one: solvers that round print at least so many."""

_UNIT_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MAX_RUN_SECONDS = 1e8
_MODEL_FILE = re.compile(r"(?:.*/)?([^/]+?)(?:\.(?:mps|lp|rew|cip|opb))?(?:\.gz|\.bz2)?")
_STAMP = re.compile(r"(?:[0-9.]+/)?((?:[0-9]+:[0-9]+:)?[0-9]+\.[0-9]+)(?:[ \t]|$)")
_NO_VALUE_TEXTS = {"--", "-", "", "not found yet"}

Floats = NDArray[np.float64]


def read_logs(
    formats: Sequence[LogFormat],
    source: Source,
    *,
    direction: Direction | None = None,
    pattern: str | None = None,
    names: str | None = None,
    until: float | None = None,
    clock: str = "seconds",
) -> Runs:
    r"""Read solver logs in one of ``formats``, or with the user's pattern; each solve is a run.

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
        ``algorithm__instance.log``, with ``__7`` behind the instance for repetition 7. What it
        leaves out is taken from the head of the log: the solver, the model file and the seed.
    until
        Until when each run was observed; by default until the last time in its log.
    """
    files = source.ending(".log", ".out", ".txt", ".stdout")
    if not files:
        raise Refused("no file ends in .log, .out, .txt or .stdout")
    own = _make_log_format(pattern) if pattern is not None else None
    naming = RunNaming(source, files, names)
    solves: list[_Solve] = []
    for file, log, lines, stamps in _recognise_files(source, naming.files, formats, own):
        with prefix_errors(file):
            solves += _parse_file(_Solve(file, log, stamps, until), lines)
    if own and not any(solve.values for solve in solves):
        raise DataError(
            f"{source.label}: the pattern '{pattern}' matches no line of any log; correct it"
        )
    if not solves:
        raise Refused("no file is a log of a known solver")
    stated = [(solve.file, solve.state_name(use_head=names is not None)) for solve in solves]
    named = list(zip(solves, naming.name_runs(stated), strict=True))
    _warn_of_imprecise_times(solves)
    direction = choose_direction(solves, direction, source.label, "logs", "the logs do not tell")
    chosen = [(solve, name) for solve, name in named if solve.direction in (None, direction)]
    bounds = [solve.make_bound(name, direction) for solve, name in chosen]
    return Runs.from_records(
        [solve.make_run(name, direction) for solve, name in chosen],
        direction=direction,
        clock=clock,
        bounds=bounds if any(np.size(bound.time) for bound in bounds) else None,
    )


# Recognise


class _RecognisedLog(NamedTuple):
    """A log file, its format and its lines; ``stamps`` has their time stamps by line number."""

    file: str
    log: LogFormat
    lines: list[str]
    stamps: Mapping[int, str]


def _recognise_files(
    source: Source, files: Sequence[str], formats: Sequence[LogFormat], own: LogFormat | None
) -> list[_RecognisedLog]:
    """Return the files that are logs of a known solver; raise an error if a file is not."""
    # A .txt beside other files may be something else; a .log is always a log.
    notes = [] if len(files) == 1 or own else [file for file in files if ".txt" in file.lower()]
    recognised: list[_RecognisedLog] = []
    for file in files:
        lines = [line.rstrip() for line in source.lines(file)]
        log, stamps = own or _recognise_format(lines, formats), dict[int, str]()
        if log is None or log.stamped:  # of a solver that prints times, stamps are extra
            timed = [solver for solver in formats if not solver.stamped and not own]
            bare, split = _split_stamps(lines)
            if split and (solver := _recognise_format(bare, timed)):
                log, lines, stamps = solver, bare, split
        if log is not None:
            lines += _read_watched_end(source, file)
            recognised.append(_RecognisedLog(file, log, lines, stamps))
        elif file in notes:
            source.skip(file)
        else:
            known = ", ".join(log.solver or log.name for log in formats)
            raise RefusedIncomplete(
                (
                    f"{file} is not a log of {known}; give a ",
                    Argument("pattern", "..."),
                    " for others",
                )
            )
    return recognised


def _make_log_format(pattern: str) -> LogFormat:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise DataError(f"pattern '{pattern}': {error}") from None
    if not {"time", "value"} <= set(compiled.groupindex):
        raise DataError(f"pattern '{pattern}' needs the groups (?P<time>...) and (?P<value>...)")
    return LogFormat("log", "a pattern of your own", None, (compiled,), stamped=True)


def _recognise_format(lines: list[str], formats: Sequence[LogFormat]) -> LogFormat | None:
    for log in formats:
        if log.recognise and any(_match_line(log.recognise, line) for line in lines):
            return log
    return None


def _split_stamps(lines: list[str]) -> tuple[list[str], dict[int, str]]:
    """Split off the time stamps that ts or runsolver put before lines; return lines and stamps."""
    bare, stamps = list[str](), dict[int, str]()
    for i, line in enumerate(lines, start=1):
        match = _STAMP.match(line)
        if match:
            stamps[i] = match[1]
        bare.append(line[match.end() :] if match else line)
    return bare, stamps


def _read_watched_end(source: Source, file: str) -> list[str]:
    """Return the lines that runsolver wrote beside a log: the program's time and how it ended."""
    name = source.find(re.sub(r"\.\w+(\.gz)?$", ".var", file))
    return [] if name is None else [line.rstrip() for line in source.lines(name)]


def _match_line(
    pattern: Pattern[str] | None, line: str, *, whole: bool = True
) -> re.Match[str] | None:
    if pattern is None or len(line) > MAX_LINE_CHARACTERS:
        return None
    return pattern.fullmatch(line) if whole else pattern.search(line)


# Parse


class _ProgressLine(NamedTuple):
    """A time in a log, with the value and bounds at that time; nan for numbers the line lacks."""

    time: float
    is_whole: bool  # whether the time is in whole seconds, rounded down
    value: float
    lower: float
    upper: float


@dataclass
class _Solve:
    """What a log tells about one call of a solver: progress, end, best value and status."""

    file: str
    log: LogFormat
    stamps: Mapping[int, str]  # times that a filter wrote, by line number
    asked_until: float | None = None
    progress: list[_ProgressLine] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)  # exact times
    best: float | None = None
    best_bound: float | None = None
    status: Status = Status.CUT
    direction: Direction | None = None
    is_optimal: bool = False
    is_wall_clock: bool = False
    head: dict[str, str] = field(default_factory=dict)  # the model, its file, the seed
    uses_seed: bool = False  # whether its seed tells it from other solves of the file

    @property
    def values(self) -> list[_ProgressLine]:
        """The progress lines of the log that have a value."""
        return [line for line in self.progress if line.value == line.value]

    @property
    def zero(self) -> float:
        """The time stamp at which the run starts: 0, or the first one if they are Unix times."""
        first = min([line.time for line in self.progress] + self.ends, default=0.0)
        return first if first > _MAX_RUN_SECONDS else 0.0

    @property
    def last(self) -> float:
        """The latest time in the log; a time in whole seconds is rounded up."""
        late = not self.ends
        times = [line.time + (late and line.is_whole) for line in self.progress]
        return max([*times, *self.ends], default=self.zero) - self.zero

    @property
    def until(self) -> float:
        """The time until which the run was observed."""
        return self.last if self.asked_until is None else self.asked_until

    def trajectory(self, lines: Sequence[_ProgressLine], column: str) -> tuple[Floats, Floats]:
        """Return times since the start, and a column's values; whole seconds are rounded up."""
        time = np.array([line.time for line in lines], dtype=np.float64) - self.zero
        late = np.array([line.is_whole for line in lines], dtype=bool)
        end = np.maximum(np.minimum(time + 1.0, self.until), time)
        value = np.array([getattr(line, column) for line in lines], dtype=np.float64)
        return np.where(late, end, time), value

    def state_name(self, *, use_head: bool) -> StatedName:
        """Return the names that the log states; include those in its head if ``use_head``."""
        seed = self.head.get("seed")
        repetition = int(seed) if seed and (use_head or self.uses_seed) else None
        file = _MODEL_FILE.fullmatch(self.head.get("instance", "")) if use_head else None
        return StatedName(None, file and file[1], repetition, self.log.solver)

    def make_run(self, name: RunName, direction: Direction) -> Run:
        """Return the run, with the exact best value in place of the rounded value."""
        time, value = self.trajectory(self.values, "value")
        time, value = _use_exact(time, value, self.best, direction, self.last)
        named = name._asdict()
        return Run(**named, time=time, value=value, until=self.until, status=self.status)

    def make_bound(self, name: RunName, direction: Direction) -> Run:
        """Return the bound over time as a run of the opposite direction."""
        side = "lower" if direction == "minimize" else "upper"
        lines = [line for line in self.progress if abs(getattr(line, side)) < INFINITE_BOUND]
        time, bound = self.trajectory(lines, side)
        run, last = self.make_run(name, direction), self.best_bound
        value = np.asarray(run.value)
        if last is None and self.is_optimal and len(value):
            last = float(value[-1])
        if last is not None and abs(last) >= INFINITE_BOUND:
            last = None
        time, bound = _use_exact(time, bound, last, opposite_of(direction), self.last)
        return run._replace(time=time, value=bound)


def _use_exact(
    time: Floats, value: Floats, exact: float | None, direction: Direction, end: float
) -> tuple[Floats, Floats]:
    """Replace rounded best values by the exact one; add it at the end if no value is near it."""
    if exact is None:
        return time, value
    worse, better = (np.maximum, np.min) if direction == "minimize" else (np.minimum, np.max)
    value = worse(value, exact)
    if len(value) and np.isclose(better(value), exact, rtol=1e-6, atol=0.0):
        return time, np.where(value == better(value), exact, value)  # rows repeat the best value
    return np.append(time, end), np.append(value, exact)


def _parse_file(empty: _Solve, lines: list[str]) -> list[_Solve]:
    """Parse all solves of a log file; several solves must be of the same model."""
    solves = [
        _parse_solve(_Solve(empty.file, empty.log, empty.stamps, empty.asked_until), part, first)
        for first, part in _split_solves(empty.log, lines)
    ]
    if len(solves) == 1:
        return solves
    if empty.stamps or len({solve.head.get("model") for solve in solves}) > 1:
        what = "stamped lines" if empty.stamps else "different models"
        raise DataError(f"holds {len(solves)} solves of {what}; write each to a log of its own")
    seeds = [solve.head.get("seed", "") for solve in solves]
    by_seed = all(seeds) and len(set(seeds)) == len(solves)
    for solve in solves:
        solve.uses_seed = by_seed
    warn(
        f"{empty.file} holds {len(solves)} solves of one model: they are repetitions, numbered "
        f"{'by their seeds' if by_seed else 'in their order'}"
    )
    return solves


def _split_solves(log: LogFormat, lines: list[str]) -> list[tuple[int, list[str]]]:
    """Split the lines of a log into solves, each with the number of its first line.

    A part without the line of a model is only a head, or a tail: it joins its neighbour.
    """
    starts = [i for i, line in enumerate(lines) if _match_line(log.start, line)]
    models = [i for i, line in enumerate(lines) if _match_line(log.model, line)]
    edges = [0]  # where solves start, and then where the last one ends
    for start, stop in pairwise(sorted({0, *starts, len(lines)})):
        has_model = bisect_left(models, stop) > bisect_left(models, start)
        if has_model and stop < len(lines):
            edges.append(stop)
    if len(edges) > 1 and bisect_left(models, edges[-1]) == len(models):
        edges.pop()
    return [(a + 1, lines[a:b]) for a, b in pairwise([*edges, len(lines)])]


def _parse_solve(solve: _Solve, lines: list[str], first: int) -> _Solve:
    """Parse the lines of one solve, whose first line has the number ``first`` in the file."""
    log, has_solution, n_reports = solve.log, True, 0
    told: Direction | None = None
    for i, line in enumerate(lines, start=first):
        where = f"line {i}"
        if i in solve.stamps:
            solve.ends.append(_parse_seconds({"time": solve.stamps[i]}, where))
        if not line:
            continue
        _parse_progress(solve, line, i)
        for pattern in log.until if not solve.stamps else ():
            if match := _match_line(pattern, line):
                _parse_end(solve, match.groupdict(), where)
        if match := _match_line(log.best, line):
            solve.best = parse_number(match["value"], where)
            n_reports += 1
        if match := _match_line(log.best_bound, line):
            solve.best_bound = parse_number(match["value"], where)
        for pattern, direction in log.directions.items():
            if _match_line(pattern, line):
                if told and told != direction:
                    raise DataError(
                        f"{where}: the direction changes; write each solve to a log of its own"
                    )
                told = direction
        has_solution = has_solution and not _match_line(log.no_solution, line)
        solve.is_wall_clock = solve.is_wall_clock or bool(_match_line(log.wall_clock, line))
        if _match_line(log.optimal, line):
            solve.is_optimal, solve.status = True, Status.FINISHED
        solve.status = next(
            (s for pattern, s in log.endings.items() if _match_line(pattern, line)), solve.status
        )
        for name in ("seed", "instance", "model"):
            if match := _match_line(getattr(log, name), line):
                solve.head[name] = match[match.lastindex or 0]
        if _match_line(log.no_objective, line):
            raise DataError(
                f"{where}: a solution without an objective value; add an objective to the model"
            )
    if n_reports > 1:
        raise DataError(f"holds {n_reports} solves; write each to a log of its own")
    if not has_solution:
        solve.best = solve.best_bound = None
    solve.direction = told or solve.direction
    if log.negates:
        _restore_signs(solve)
    return solve


def _parse_progress(solve: _Solve, line: str, number: int) -> None:
    log, where = solve.log, f"line {number}"
    for pattern in log.progress:
        match = _match_line(pattern, line, whole=log.recognise is not None)
        if not match:
            continue
        groups = match.groupdict()
        if number in solve.stamps:
            groups |= {"time": solve.stamps[number], "unit": "s"}
        time = _parse_seconds(groups, where)
        is_whole = log.whole_seconds and "." not in (groups["time"] or "")
        text = (groups.get("value") or "").rstrip("*")
        value = np.nan if text in _NO_VALUE_TEXTS else parse_number(text, where)
        is_own = log.recognise is None  # a pattern of the user, who means what is printed
        if solve.progress and not is_own and _is_rounded(value, text, solve.progress[-1].value):
            value = solve.progress[-1].value
        if solve.progress:
            start, last = solve.progress[0].time, max(one.time for one in solve.progress[-9:])
            if time < last - max(1.0, 0.1 * (last - start)):
                raise DataError(
                    f"{where}: the time goes back from {last:g} to {time:g} seconds; write each "
                    "solve to a log of its own"
                )
        bound = groups.get("bound")
        lower = _parse_bound(groups.get("lower") or bound)
        upper = _parse_bound(groups.get("upper") or bound)
        solve.progress.append(
            _ProgressLine(time=time, is_whole=is_whole, value=value, lower=lower, upper=upper)
        )
        solve.direction = solve.direction or _infer_direction(value, lower, upper)


def _parse_end(solve: _Solve, groups: dict[str, str | None], where: str) -> None:
    """Record the exact total time in a line, by the clock of the solve's progress lines."""
    if solve.is_wall_clock and groups.get("wall"):
        groups = {"time": groups["wall"]}
    if groups.get("time") is not None:
        solve.ends.append(_parse_seconds(groups, where))


def _parse_seconds(groups: Mapping[str, str | None], where: str) -> float:
    """Return the time that a line states, in seconds."""
    text, unit = groups["time"], groups.get("unit") or "s"
    if text is None:
        raise DataError(
            f"{where}: no time before the value; add a time stamp to each line as it is written, "
            "for instance with: solver ... | ts -s '%.s'"
        )
    if unit not in _UNIT_SECONDS:
        raise DataError(f"{where}: the unit {unit!r} is not one of {', '.join(_UNIT_SECONDS)}")
    seconds = 0.0
    for part in text.split(":"):
        seconds = 60.0 * seconds + parse_time(part, where)
    return parse_time(repr(seconds * _UNIT_SECONDS[unit]), where)


def _parse_bound(text: str | None) -> float:
    """Parse a bound; nan for a text without a number, such as a dash."""
    try:
        return float(text or "nan")
    except ValueError:
        return np.nan


def _is_rounded(value: float, text: str, previous: float) -> bool:
    """Whether a number is the previous one, printed with fewer digits, which are five or more.

    >>> _is_rounded(1234.5679, "1234.5679", 1234.567891), _is_rounded(998.0, "998", 999.0)
    (True, False)
    >>> _is_rounded(0.0, "0", 0.4)
    False
    """
    digits, _, exponent = text.lower().partition("e")
    if len(re.sub(r"\D", "", digits).lstrip("0")) < MIN_DIGITS:
        return False
    try:
        unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    except (ValueError, OverflowError):
        return False
    return abs(value - previous) <= 0.5 * unit


def _infer_direction(value: float, lower: float, upper: float) -> Direction | None:
    """Infer the direction from a solution's value and bounds; None if they do not tell."""
    margin = 1e-6 * max(1.0, abs(value))
    if not abs(value) < np.inf:
        return None
    if upper < value - margin:
        return "minimize"
    return "maximize" if lower > value + margin else None


def _restore_signs(solve: _Solve) -> None:
    """Negate the progress of a maximised solve, for solvers that print negated values."""
    last = solve.values[-1].value if solve.values else np.nan
    best = solve.best
    if best and last == last:
        solve.direction = "maximize" if abs(best + last) < abs(best - last) else "minimize"
    elif solve.direction != "maximize":
        solve.direction = "minimize"
    if solve.direction == "maximize":
        solve.progress = [
            line._replace(value=-line.value, lower=-line.upper, upper=-line.lower)
            for line in solve.progress
        ]


# Warn


def _warn_of_imprecise_times(solves: Sequence[_Solve]) -> None:
    """Warn of times in whole seconds, of CPU times, and of late time stamps."""
    whole = [s for s in solves if any(line.is_whole for line in s.values)]
    if whole:
        warn(
            f"{_list_files(whole)}: {whole[0].log.solver} prints whole seconds, rounded down. A "
            "value counts from the end of its second, which is up to 1 s late, and of several "
            "values in one second only the best is kept. Stamped lines are exact: "
            "solver ... | ts -s '%.s'"
        )
    cpu = [
        s
        for s in solves
        if s.log.wall_clock and s.progress and not s.is_wall_clock and not s.stamps
    ]
    if cpu:
        warn(
            f"{_list_files(cpu)}: the times are CPU seconds; to compare with wall-clock times run "
            f"{cpu[0].log.solver} with -timeMode elapsed"
        )
    held = [s for s in solves if (s.log.stamped or s.stamps) and _is_one_burst(s)]
    if held:
        warn(
            f"{_list_files(held)}: all lines were stamped at nearly the same time, at the end; a "
            "program before ts held them back. Stamp first and filter later, and start the solver "
            "with stdbuf -oL"
        )


def _is_one_burst(solve: _Solve) -> bool:
    """Whether a log's lines seem written all at once at its end, by their time stamps."""
    if len(solve.values) < MIN_BURST_VALUES:
        return False
    zero, stamps = solve.zero, [*(line.time for line in solve.progress), *solve.ends]
    first, last = min(stamps) - zero, max(stamps) - zero
    return last > 0.1 and first > 0.95 * last


def _list_files(solves: Sequence[_Solve]) -> str:
    return format_list(list(dict.fromkeys(solve.file for solve in solves)), 3)
