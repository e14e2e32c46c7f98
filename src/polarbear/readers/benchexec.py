"""Reader of results of BenchExec: ``*.results.*.xml``, packed or not.

Files are parsed event by event with expat. No DTD is loaded and no entity is expanded, since a
file may be of unknown origin.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from math import inf
from typing import Literal
from xml.parsers import expat

from polarbear.data.run import NO_DIRECTION, Direction, Run, Status
from polarbear.data.runs import Runs
from polarbear.errors import DataError
from polarbear.readers.naming import RunName, RunNaming
from polarbear.readers.source import (
    Refused,
    RefusedIncomplete,
    Source,
    parse_number,
    parse_time,
    prefix_errors,
    resolve_direction,
)

_CLOCKS = {"cputime": "cpu", "walltime": "wall"}
_CRASHES = (
    "error", "exception", "killed", "segmentation fault", "aborted", "assertion", "floating point",
)  # fmt: skip
_NUMBER = re.compile(r"([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*[A-Za-z%]*")


@dataclass
class _ExecutedRun:
    """A run in a result file: its XML attributes, its columns, and its line number."""

    about: dict[str, str]
    line: int
    columns: dict[str, str] = field(default_factory=dict)


@dataclass
class _ResultFile:
    """A result file of BenchExec: the attributes of its root element, and its runs."""

    about: dict[str, str]
    runs: list[_ExecutedRun] = field(default_factory=list)

    def name_algorithm(self) -> str:
        """Return the tool's name and its run definition, without the name of the task set."""
        definition, block = self.about.get("name", ""), self.about.get("block", "")
        if block and (definition == block or definition.endswith(f".{block}")):
            definition = definition.removesuffix(block).removesuffix(".")
        return f"{self.about.get('tool', '')} {definition}".strip()


def read_benchexec(
    source: Source,
    *,
    direction: Direction | None = None,
    clock: str | None = None,
    names: str | None = None,
    time: Literal["cputime", "walltime"] = "cputime",
    value: str | None = None,
) -> Runs:
    """Read results of BenchExec; each run has at most one value, at its end.

    A solved task has the value 0 from the end of its run on; with ``value``, the number in that
    column counts instead. Solved is what BenchExec calls correct, or without an expected verdict
    a status of true, false or done. A timeout is cut at the time limit, where its value counts.
    The algorithm is the tool with its run definition; several files of it are repetitions.

    Parameters
    ----------
    time
        The column of the times, in seconds: "cputime" or "walltime".
    value
        The column of the values, such as the objective. It needs ``direction``.
    """
    parsed = {name: _parse_file(source, name) for name in source.ending(".xml")}
    files = {name: file for name, file in parsed.items() if isinstance(file, _ResultFile)}
    if not files:
        raise Refused("no .xml file with results of BenchExec")
    for file in parsed.values():
        if isinstance(file, DataError):
            raise file
    if time not in _CLOCKS:
        raise DataError("expected 'cputime' or 'walltime'", time=time)
    if value is None:
        direction = resolve_direction(direction, "minimize")
    elif direction is None:
        raise RefusedIncomplete(NO_DIRECTION, {"direction": "minimize"})
    naming = RunNaming(source, list(files), names)
    algorithms = _name_algorithms(files)
    records: list[Run] = []
    seen: Counter[RunName] = Counter()
    for file in naming.files:
        with prefix_errors(file):
            for run in files[file].runs:
                name = RunName(algorithms[file], _name_task(run))
                named = naming.rename_run(file, name)
                own = named._replace(repetition=named.repetition + seen[named])._asdict()
                seen[named] += 1
                times, values, until, status = _read_step(run, files[file].about, time, value)
                records.append(Run(**own, time=times, value=values, until=until, status=status))
    for name in source.ending(".table.csv"):
        source.skip(name)  # a table, whose content is in the XML files
    if not records:
        raise DataError(f"{source.label}: the results of BenchExec list no runs; name other files")
    return Runs.from_records(records, direction=direction, clock=clock or _CLOCKS[time])


def _parse_file(source: Source, name: str) -> _ResultFile | DataError | None:
    """Parse an XML file; ``None`` if its root element is not a result of BenchExec.

    A file that ends before its root element is answered with the error, because it may be another
    program's.
    """
    parser = expat.ParserCreate()
    path: list[str] = []
    results: list[_ResultFile] = []

    def start(tag: str, about: dict[str, str]) -> None:
        path.append(tag)
        if path == ["result"] and "tool" in about:
            results.append(_ResultFile(about))
        elif not results:
            raise _OtherXmlError
        elif path == ["result", "run"]:
            results[0].runs.append(_ExecutedRun(about, parser.CurrentLineNumber))
        elif path == ["result", "run", "column"]:
            results[0].runs[-1].columns[about.get("title", "")] = about.get("value", "")

    def refuse_entity(*_: object) -> None:
        raise DataError(
            f"{name}: line {parser.CurrentLineNumber}: declares an entity, which results of "
            "BenchExec do not have; remove the declaration"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: path.pop()
    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(source.content(name), True)
    except _OtherXmlError:
        source.skip(name)
        return None
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        problem = DataError(f"{name}: line {error.lineno}: not valid XML: {reason}")
        if results:
            raise problem from None
        return problem
    except (LookupError, ValueError) as error:  # the encoding that the file declares
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name}: line 1: {error}; convert the file to UTF-8") from None
    return results[0]


class _OtherXmlError(Exception):
    """Raised for an XML file that is not a result of BenchExec."""


def _name_algorithms(files: dict[str, _ResultFile]) -> dict[str, str]:
    """Name the algorithm of each file by its tool; add the version if a tool has several."""
    versions: dict[str, set[str]] = {}
    for file in files.values():
        versions.setdefault(file.name_algorithm(), set()).add(file.about.get("version", ""))
    names: dict[str, str] = {}
    for name, file in files.items():
        algorithm = file.name_algorithm()
        version = file.about.get("version", "") if len(versions[algorithm]) > 1 else ""
        names[name] = f"{algorithm} {version}".strip() or "unnamed tool"
    return names


def _name_task(run: _ExecutedRun) -> str:
    """Name a run's task by its path without leading "../", and by the properties to check."""
    task = re.sub(r"^(?:\.\./)+", "", run.about.get("name", ""))
    if not task:
        raise DataError(f"line {run.line}: the element <run> has no attribute 'name'")
    properties = run.about.get("properties", "")
    return f"{task} ({properties})" if properties else task


def _read_step(
    run: _ExecutedRun, about: dict[str, str], time_column: str, value_column: str | None
) -> tuple[list[float], list[float], float, Status]:
    """Return a run's times and values (at most one each), its end and its status."""
    where = f"line {run.line}"
    status = run.columns.get("status", "").lower()
    end = _parse_quantity(run.columns.get(time_column, ""), where, time_column)
    if end is None:
        return [], [], 0.0, Status.CRASHED
    is_timeout = status.startswith("timeout")
    if is_timeout and time_column == "cputime":
        limit = _parse_quantity(about.get("timelimit", ""), "line 1", "timelimit")
        end = min(end, inf if limit is None else limit)
    if is_timeout:
        ended = Status.CUT
    elif status.startswith("out of") and "memory" in status:
        ended = Status.OUT_OF_MEMORY
    elif status.startswith(_CRASHES):
        ended = Status.CRASHED
    else:
        ended = Status.FINISHED
    value = None
    if value_column is not None:
        text = run.columns.get(value_column, "")
        match = _NUMBER.fullmatch(text.strip())
        value = parse_number(match[1], f"{where}, column {value_column!r}") if match else None
    elif ended is Status.FINISHED and _is_solved(run, status):
        value = 0.0
    if value is None:
        return [], [], end, ended
    return [end], [value], end, ended


def _is_solved(run: _ExecutedRun, status: str) -> bool:
    category = run.columns.get("category", "missing").lower()
    if category != "missing":
        return category.startswith("correct")
    return status.startswith(("true", "false", "done"))


def _parse_quantity(text: str, where: str, what: str) -> float | None:
    """Parse a number of seconds, perhaps with a unit; return ``None`` for an empty text."""
    if not text.strip():
        return None
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise DataError(f"{where}: {what} {text[:40]!r} is not a number of seconds")
    return parse_time(match[1], f"{where}, {what}")
