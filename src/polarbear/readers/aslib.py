"""Reader of ASlib scenarios: ``description.txt`` with ``algorithm_runs.arff``, and features.

The format is that of Bischl et al., "ASlib: a benchmark library for algorithm selection",
Artificial Intelligence 237 (2016).
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, nan
from statistics import fmean

from polarbear._text import format_list
from polarbear.data.run import SAY_DIRECTION, Direction, Run, Status, sign_of
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
    split_packing,
)

RUNS_FILE = "algorithm_runs.arff"
FEATURES_FILE = "feature_values.arff"
DESCRIPTION_FILE = "description.txt"

MAX_LINE_CHARACTERS = 100_000
"""Longer lines are refused."""

_STATUSES = {
    "ok": Status.FINISHED,
    "timeout": Status.CUT,
    "memout": Status.OUT_OF_MEMORY,
    "crash": Status.CRASHED,
    "other": Status.CRASHED,
    "not_applicable": Status.CRASHED,
}
_ENTRY = re.compile(r"(\w+)\s*:(.*)")
_ITEM = re.compile(r"\s*-\s+(.*)")
# Possessive repetitions (*+) keep the time linear in the length of a line.
_CELL = re.compile(r"""\s*+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^,'"]*+))\s*+(?:,|$)""")
_ATTRIBUTE = re.compile(r"""@attribute\s+(?:'([^']+)'|"([^"]+)"|(\S+))\s.*""", re.IGNORECASE)
_COLUMNS = ("instance_id", "repetition", "algorithm", "runstatus")
_UNKNOWN = "?"
_NOT_STATED = (_UNKNOWN, "", "null", "NA")


@dataclass(frozen=True)
class _Scenario:
    """The settings of an ASlib scenario: measure, column of the runtime, direction and cutoff."""

    name: str
    measure: str
    time: str | None  # the column of the runtime
    direction: Direction
    cutoff: float  # seconds; infinite if it is not stated


def read_aslib(
    source: Source,
    *,
    direction: Direction | None = None,
    clock: str = "seconds",
    names: str | None = None,
    value: str | None = None,
) -> Runs:
    """Read scenarios of ASlib, in which a run is one number: a runtime, or a solution quality.

    A solved run has the value 0 from its runtime on, and none before. A timeout is observed until
    the cut-off time; a run that is out of memory or crashed never has a value. The quality of a
    solution counts from the runtime of its run, or from the cut-off time if there is no runtime.
    Features of the instances (``feature_values.arff``) become their ``instance_data``.

    Parameters
    ----------
    value
        The performance measure to read; by default the first of the scenario.
    direction
        Selects scenarios, where a source has both kinds.
    """
    if direction is not None:
        sign_of(direction)
    files = [name for name in source.ending(".arff") if _has_base_name(name, RUNS_FILE)]
    if not files:
        raise Refused(f"no file {RUNS_FILE}")
    naming = RunNaming(source, files, names)
    scenarios = {file: _read_description(source, file, value) for file in naming.files}
    directions: set[Direction] = {scenario.direction for scenario in scenarios.values()}
    if direction is None and len(directions) > 1:
        raise DataError(
            f"{source.label} holds scenarios that minimise and scenarios that maximise; pass ",
            SAY_DIRECTION,
            " to read one kind",
        )
    direction = direction or directions.pop()
    records, features, tables = list[Run](), list[dict[str, str]](), list[str]()
    for file, scenario in scenarios.items():
        if scenario.direction != direction:
            continue
        prefix = f"{scenario.name}: " if len(scenarios) > 1 else ""
        renamed: dict[str, str] = {}
        for run in _read_runs(source, file, scenario):
            stated = RunName(run.algorithm, prefix + run.instance, run.repetition)
            name = naming.rename_run(file, stated)
            renamed[run.instance] = name.instance
            records.append(run._replace(**name._asdict()))
        table = source.find(posixpath.join(posixpath.dirname(file), FEATURES_FILE))
        if table is not None:
            tables.append(table)
            rows = _read_table(source, table, ("instance_id",), ("instance_id", "repetition"))
            features += [
                {**cells, "instance_id": renamed[cells["instance_id"]]}
                for _, cells in rows
                if cells["instance_id"] in renamed
            ]
    if not records:
        raise DataError(
            f"{source.label} holds no runs that {direction}: check direction= and the files"
        )
    for name in source.ending(".arff"):
        if name not in (*files, *tables):
            source.skip(name)  # features or folds of a scenario
    runs = Runs.from_records(records, direction=direction, clock=clock)
    return runs.with_instance_data(_tabulate_features(features)) if features else runs


def _tabulate_features(rows: list[dict[str, str]]) -> dict[str, list[str] | list[float]]:
    """Return a table with a row for each instance: the mean of each number over repetitions."""
    rows_of: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        rows_of.setdefault(row["instance_id"], []).append(row)
    table: dict[str, list[str] | list[float]] = {"instance": list(rows_of)}
    names = dict.fromkeys(name for row in rows for name in row)
    for name in [name for name in names if name not in ("instance_id", "repetition")]:
        cells = [
            [row[name] for row in own if row.get(name, _UNKNOWN) not in _NOT_STATED]
            for own in rows_of.values()
        ]
        try:
            table[name] = [fmean(map(float, own)) if own else nan for own in cells]
        except ValueError:
            table[name] = [own[0] if own else "" for own in cells]
    return table


def _has_base_name(name: str, base: str) -> bool:
    return split_packing(name)[0].rsplit("/", 1)[-1].lower() == base


def _read_description(source: Source, file: str, measure: str | None) -> _Scenario:
    """Read the description of the ASlib scenario to which a file of runs belongs."""
    description = source.find(posixpath.join(posixpath.dirname(file), DESCRIPTION_FILE))
    if description is None:
        raise RefusedIncomplete(
            f"{file} has no {DESCRIPTION_FILE} beside it: read the whole folder of the scenario"
        )
    with prefix_errors(description):
        entries = _parse_description(source.lines(description))
        measures = _get_list(entries, "performance_measures")
        kinds = [kind.lower() for kind in _get_list(entries, "performance_type")]
        maximised = [text.lower() for text in _get_list(entries, "maximize")]
        if not len(measures) == len(kinds) == len(maximised):
            raise DataError(
                "'performance_measures', 'performance_type' and 'maximize' have "
                f"{len(measures)}, {len(kinds)} and {len(maximised)} entries; "
                "expected equally many"
            )
        chosen = measure or measures[0]
        if chosen not in measures:
            raise DataError(f"no measure {chosen!r}; there are {format_list(measures)}")
        at = measures.index(chosen)
        is_runtime = kinds[at] == "runtime"
        runtimes = [name for name, kind in zip(measures, kinds, strict=True) if kind == "runtime"]
        cutoff = entries.get("algorithm_cutoff_time", [_UNKNOWN])[0]
        return _Scenario(
            name=entries.get("scenario_id", [""])[0] or posixpath.dirname(file),
            measure=chosen.lower(),
            time=chosen.lower() if is_runtime else (runtimes[0].lower() if runtimes else None),
            direction="maximize" if maximised[at] == "true" and not is_runtime else "minimize",
            cutoff=inf if cutoff in _NOT_STATED else parse_time(cutoff, "'algorithm_cutoff_time'"),
        )


def _parse_description(lines: list[str]) -> dict[str, list[str]]:
    """Parse a description in YAML whose values are words or lists of words."""
    entries: dict[str, list[str]] = {}
    key = ""
    for line in lines:
        if match := _ENTRY.fullmatch(line):
            key, rest = match[1], match[2].strip()
            texts = rest.strip("[]").split(",") if rest.startswith("[") else [rest]
            entries[key] = [text.strip().strip("'\"") for text in texts if text.strip()]
        elif (match := _ITEM.fullmatch(line)) and key:
            entries[key].append(match[1].strip().strip("'\""))
    return entries


def _get_list(entries: dict[str, list[str]], key: str) -> list[str]:
    if not entries.get(key):
        raise DataError(f"no entry {key!r}, which every scenario of ASlib has")
    return entries[key]


def _read_runs(source: Source, file: str, scenario: _Scenario) -> Iterator[Run]:
    """Read the runs of a file in ARFF, one per row."""
    for where, cells in _read_table(source, file, (*_COLUMNS, scenario.measure)):
        yield _make_run(cells, scenario, where)


def _read_table(
    source: Source, file: str, needed: Sequence[str], lower: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place of each row of an ARFF table, and its cells by column.

    The names of the columns ``lower``, by default of all, are converted to lower case.
    """
    columns: list[str] = []
    in_data = False
    for i, line in enumerate(source.lines(file), start=1):
        where = f"{file}, line {i}"
        if not line.strip() or line.startswith("%"):
            continue
        if len(line) > MAX_LINE_CHARACTERS:
            raise DataError(f"{where}: longer than {MAX_LINE_CHARACTERS:,} characters")
        if in_data:
            cells = _split_row(line)
            if len(cells) != len(columns):
                raise DataError(
                    f"{where}: has {len(cells)} cells, expected {len(columns)}, one per attribute"
                )
            yield where, dict(zip(columns, cells, strict=True))
        elif match := _ATTRIBUTE.fullmatch(line.strip()):
            name = "".join(filter(None, match.groups()))
            columns.append(name.lower() if name.lower() in lower or not lower else name)
        elif line.strip().lower() == "@data":
            in_data = True
            for name in needed:
                if name not in columns:
                    raise DataError(
                        f"{where}: the column {name!r} is missing; there are {format_list(columns)}"
                    )
    if not in_data:
        raise DataError(f"{file}: no line '@DATA', which must come before the rows of the table")


def _split_row(line: str) -> list[str]:
    """Split a row at its commas; cells may be in single or double quotes."""
    if "'" not in line and '"' not in line:
        return [cell.strip() for cell in line.split(",")]
    cells, at = list[str](), 0
    while at <= len(line):
        match = _CELL.match(line, at)
        if match is None:
            return []
        cells.append(next((text for text in match.groups() if text is not None), "").strip())
        at = match.end() if match[0].endswith(",") else len(line) + 1
    return cells


def _make_run(cells: dict[str, str], scenario: _Scenario, where: str) -> Run:
    """Make a run from a row of a table; the run has at most one time and value."""
    status = _STATUSES.get(cells["runstatus"].lower())
    if status is None:
        raise DataError(
            f"{where}: runstatus {cells['runstatus'][:40]!r} is not one of {', '.join(_STATUSES)}"
        )
    repetition = cells["repetition"]
    if not re.fullmatch(r"[0-9]{1,18}(\.0*)?", repetition):
        raise DataError(f"{where}: repetition {repetition[:40]!r} is not a whole number")
    runtime = cells.get(scenario.time or "", _UNKNOWN)
    has_runtime = runtime not in _NOT_STATED
    time = parse_time(runtime, where) if has_runtime else scenario.cutoff
    is_late = time > scenario.cutoff
    time = min(time, scenario.cutoff)
    if time == inf:
        time = 0.0
    value = cells[scenario.measure]
    has_value = status is Status.FINISHED and value not in _NOT_STATED and not is_late
    if scenario.measure == scenario.time:
        value = "0"
        status = Status.CUT if is_late and status is Status.FINISHED else status
    elif status is Status.FINISHED and time == scenario.cutoff:
        status = Status.CUT  # it may have had better values to come
    if status is Status.FINISHED and not has_value:
        status = Status.CRASHED
    return Run(
        algorithm=cells["algorithm"],
        instance=cells["instance_id"],
        time=[time] if has_value else [],
        value=[parse_number(value, where)] if has_value else [],
        until=time,
        repetition=int(repetition.split(".")[0]),
        status=status,
    )
