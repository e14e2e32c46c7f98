"""Reader of MiniZinc's JSON stream, which is the same for all of its solvers.

A stream is written by ``minizinc --json-stream --output-time --output-mode json
--output-objective --intermediate --statistics``. It has a JSON object in each line.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from polarbear.data.run import Direction, Run, Status
from polarbear.data.runs import Runs
from polarbear.errors import DataError
from polarbear.readers.naming import RunName, RunNaming, StatedName
from polarbear.readers.source import (
    Refused,
    Source,
    choose_direction,
    parse_number,
    parse_time,
    prefix_errors,
)

MINIZINC_OPTIONS = (
    "--json-stream --output-time --output-mode json --output-objective --intermediate --statistics"
)
"""The options with which MiniZinc writes all that a run needs."""

_MESSAGE = re.compile(r'\{\s*"type"\s*:.*')
_STATUSES = {
    "OPTIMAL_SOLUTION": Status.FINISHED,
    "ALL_SOLUTIONS": Status.FINISHED,
    "UNSATISFIABLE": Status.FINISHED,
    "UNSAT_OR_UNBOUNDED": Status.FINISHED,
    "UNBOUNDED": Status.FINISHED,
    "SATISFIED": Status.CUT,
    "UNKNOWN": Status.CUT,
    "ERROR": Status.CRASHED,
}


def read_minizinc(
    source: Source,
    *,
    direction: Direction | None = None,
    value: str = "_objective",
    names: str | None = None,
    until: float | None = None,
    clock: str = "seconds",
) -> Runs:
    """Read JSON streams of MiniZinc, one run each; times include the flattening of the model.

    Parameters
    ----------
    direction
        Needed for streams without statistics; it selects from streams of both directions.
    value
        The variable that is the value, if it is not the objective.
    names
        The meaning of the parts of a path, as for logs.
    until
        Until when each run was observed; by default until the last time in its stream.
    """
    files = source.ending(".jsonl", ".ndjson", ".json", ".out", ".log", ".txt", ".stdout")
    naming = RunNaming(source, files, names) if files else None
    streams: list[_Stream] = []
    for file in naming.files if naming else []:
        lines = source.lines(file)
        if not any(_MESSAGE.match(line) for line in lines):
            source.leave(file)
            continue
        with prefix_errors(file):
            streams.append(_parse_stream(_Stream(file, value, until), lines))
    if not naming or not streams:
        raise Refused("no file has lines of a MiniZinc JSON stream")
    named = naming.name_runs([(stream.file, StatedName(solver="MiniZinc")) for stream in streams])
    unknown = "the streams do not tell the direction (minizinc --statistics makes them)"
    direction = choose_direction(streams, direction, source.label, "streams", unknown)
    chosen = [
        (stream, name)
        for stream, name in zip(streams, named, strict=True)
        if stream.direction in (None, direction)
    ]
    bounds = [stream.make_run(name, stream.bounds) for stream, name in chosen]
    return Runs.from_records(
        [stream.make_run(name, stream.solutions) for stream, name in chosen],
        direction=direction,
        clock=clock,
        bounds=bounds if any(stream.bounds for stream, _ in chosen) else None,
    )


class _Point(NamedTuple):
    time: float
    value: float


@dataclass
class _Stream:
    """What a JSON stream of MiniZinc tells: solutions, bounds, status and last time."""

    file: str
    variable: str
    asked_until: float | None
    solutions: list[_Point] = field(default_factory=list)
    bounds: list[_Point] = field(default_factory=list)
    status: Status = Status.CUT
    direction: Direction | None = None
    last: float = 0.0  # seconds

    def make_run(self, name: RunName, points: list[_Point]) -> Run:
        """Return the trajectory of solutions, or of bounds, as a run."""
        return Run(
            **name._asdict(),
            time=[point.time for point in points],
            value=[point.value for point in points],
            until=self.last if self.asked_until is None else self.asked_until,
            status=self.status,
        )


def _parse_stream(stream: _Stream, lines: list[str]) -> _Stream:
    flat = solve = 0.0
    is_satisfaction = has_status = is_optimal = False
    pending: float | None = None  # a bound is known at the latest at the next time
    for where, message in _parse_messages(lines):
        kind = message["type"]
        if "time" in message:
            time = parse_time(str(message["time"]), where) / 1000
            stream.last = max(stream.last, time)
            if pending is not None:
                stream.bounds.append(_Point(time, pending))
                pending = None
        if kind == "statistics":
            statistics = _get_object(message, "statistics", where)
            flat = _get_number(statistics, "flatTime", where) or flat
            solve = _get_number(statistics, "solveTime", where) or solve
            bound = _get_number(statistics, "objectiveBound", where)
            pending = pending if bound is None else bound
            method = statistics.get("method")
            is_satisfaction = is_satisfaction or method == "satisfy"
            if method in ("minimize", "maximize"):
                stream.direction = cast(Direction, method)
        elif kind == "solution":
            if is_satisfaction:
                raise DataError(
                    f"{where}: a solution without an objective value; add an objective to the model"
                )
            stream.solutions.append(_parse_solution(stream.variable, message, where))
        elif kind == "status":
            name = str(message.get("status"))
            if name not in _STATUSES:
                raise DataError(
                    f"{where}: expected a status such as 'OPTIMAL_SOLUTION', got {name[:40]!r}"
                )
            stream.status, has_status = _STATUSES[name], True
            is_optimal = name == "OPTIMAL_SOLUTION"
        elif kind == "error" or (kind == "exit" and message.get("code") and not has_status):
            stream.status = Status.CRASHED
    if not has_status:  # a time limit ends the stream without a status
        stream.last = max(stream.last, flat + solve)
    if is_optimal and stream.solutions:
        pending = stream.solutions[-1].value
    if pending is not None:
        stream.bounds.append(_Point(stream.last, pending))
    return stream


def _parse_messages(lines: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """Return the place and content of each JSON message; an incomplete last line is ignored."""
    numbered = [(i, line) for i, line in enumerate(lines, start=1) if line.startswith("{")]
    messages: list[tuple[str, dict[str, Any]]] = []
    for i, line in numbered:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            if i == numbered[-1][0] and not line.rstrip().endswith("}"):
                break
            raise DataError(f"line {i}: not a JSON object") from None
        if not isinstance(message.get("type"), str):
            raise DataError(
                f"line {i}: the JSON object has no 'type', which every message of MiniZinc has; "
                f"run minizinc {MINIZINC_OPTIONS}"
            )
        messages.append((f"line {i}", message))
    return messages


def _parse_solution(variable: str, message: dict[str, Any], where: str) -> _Point:
    output = _get_object(message, "output", where)
    values, text = output.get("json"), output.get("dzn")
    value = _get_number(values, variable, where) if isinstance(values, dict) else None
    if value is None and isinstance(text, str):
        match = re.search(rf"\b{re.escape(variable)} = ([^;\s]+);", text)
        value = parse_number(match[1], where) if match else None
    if value is None or "time" not in message:
        what = "no time" if value is not None else f"no {variable!r}"
        raise DataError(
            f"{where}: {what} in a solution; run minizinc {MINIZINC_OPTIONS}"
            + ("" if value is not None else ", or pass value='...', the name of a variable")
        )
    return _Point(parse_time(str(message["time"]), where) / 1000, value)


def _get_object(message: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    part = message.get(key)
    if not isinstance(part, dict):
        raise DataError(f"{where}: the message lacks {key!r}; run minizinc {MINIZINC_OPTIONS}")
    return part


def _get_number(values: dict[str, Any], key: str, where: str) -> float | None:
    """Return a number of a JSON object by its key; ``None`` if the key is missing."""
    number = values.get(key)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int | float | str):
        raise DataError(f"{where}: {key!r} is {str(number)[:40]}, expected a number")
    return parse_number(str(number), where)
