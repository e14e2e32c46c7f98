"""Reader of IOHprofiler folders: ``IOHprofiler_*.json`` (or ``.info``) with ``.dat`` files."""

import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from polarbear._text import format_count, format_list
from polarbear.data.run import SAY_DIRECTION, Direction, Run, Status, sign_of
from polarbear.data.runs import Runs
from polarbear.errors import DataError, DataWarning
from polarbear.readers.info import parse_blocks
from polarbear.readers.naming import RunName, RunNaming
from polarbear.readers.source import Refused, Source, parse_number, parse_time, prefix_errors

_CELL = re.compile(r'"[^"]*"|\S+')
EXPORT_KEY = "polarbear"
"""The member of a run in an index that keeps what the format has no place for."""

_OBJECTIVE = re.compile(r"(?:F|f|obj|raw_y_?)(?:[2-9]|[1-9]\d)")  # the first one is raw_y
_FIRST_OBJECTIVE = re.compile(r"(?:F|f|obj|raw_y_?)1")  # if it is logged once more
_TIME_COLUMNS = ("evaluations", "function evaluation")
# Prefer the best so far where it is logged: old logs shift and scale the current value.
_VALUE_COLUMNS = ("raw_y_best", "raw_y", "best-so-far f(x)")


class _ListedRun(NamedTuple):
    """A run in an IOHprofiler index: its names, direction, evaluations and best value."""

    algorithm: str
    instance: str
    direction: Direction
    evaluations: float = 0.0
    best: tuple[float, float] | None = None  # when it was found, and its exact value
    repetition: int = 0
    status: Status | None = None  # if PolarBear wrote the index


def read_ioh(
    source: Source,
    *,
    direction: Direction | None = None,
    clock: str = "evaluations",
    names: str | None = None,
) -> Runs:
    """Read logs of IOHprofiler: the best raw value over evaluations.

    The logs store their direction; ``direction`` selects runs from a folder that has both.
    """
    if direction is not None:
        sign_of(direction)
    listed = dict[str, list[_ListedRun]]()
    indices = [n for n in source.ending(".json", ".info") if "IOHprofiler" in n.rsplit("/", 1)[-1]]
    if not indices:
        raise Refused("no IOHprofiler_*.json or IOHprofiler_*.info file")
    naming = RunNaming(source, indices, names)
    for index in naming.files:
        with prefix_errors(index):
            index_runs = _list_json_runs if ".json" in index.lower() else _list_info_runs
            for file, run in index_runs(source, index):
                stated = RunName(run.algorithm, run.instance, run.repetition)
                name = naming.rename_run(index, stated)
                listed.setdefault(file, []).append(run._replace(**name._asdict()))
    directions: set[Direction] = {run.direction for runs in listed.values() for run in runs}
    if direction is None and len(directions) > 1:
        raise DataError(
            f"{source.label} holds runs that minimise and runs that maximise; pass ",
            SAY_DIRECTION,
            " to read one kind",
        )
    direction = direction or (directions.pop() if directions else "minimize")
    records: list[Run] = []
    seen: Counter[RunName] = Counter()
    for file, runs in listed.items():
        for run, (time, value) in _pair_with_tables(source, file, runs):
            if run.direction != direction:
                continue
            if run.best is not None:
                # The table has ten decimals and may lack a row for the best; the index has it.
                worse = np.maximum if direction == "minimize" else np.minimum
                time = [*time, run.best[0]]
                value = worse([*value, run.best[1]], run.best[1])
            until = run.evaluations
            if run.status is None:
                until = max(until, max(time, default=0.0))
            else:  # a row without a value only marks the first evaluation
                has_value = np.isfinite(value)
                time, value = np.asarray(time)[has_value], np.asarray(value)[has_value]
            name = RunName(run.algorithm, run.instance, run.repetition)
            own = name._replace(repetition=run.repetition + seen[name])._asdict()
            status = run.status or Status.UNSTATED
            records.append(Run(**own, time=time, value=value, until=until, status=status))
            seen[name] += 1
    if not records:
        raise DataError(
            f"{source.label} holds no runs that {direction}: check direction= and the files"
        )
    return Runs.from_records(records, direction=direction, clock=clock)


def read_ioh_points(source: Source) -> Iterator[tuple[Run, tuple[str, ...], Direction]]:
    """Yield the runs of IOHprofiler logs with several objectives, whose values are points.

    The objectives are the columns raw_y, F2 and so on. The stated direction holds for all of them.
    """
    indices = [n for n in source.ending(".json") if "IOHprofiler" in n.rsplit("/", 1)[-1]]
    seen: Counter[tuple[str, str]] = Counter()
    n_partial = 0
    for index in indices:
        with prefix_errors(index):
            for file, runs in _group_by_file(_list_json_runs(source, index)).items():
                tables = list(_iterate_point_tables(source, file))
                if len(tables) != len(runs):
                    raise DataError(f"{file} holds {len(tables)} runs, not {len(runs)}")
                for run, (names, time, points) in zip(runs, tables, strict=True):
                    until = max(run.evaluations, max(time, default=0.0))
                    first = sign_of(run.direction) * np.array([point[0] for point in points])
                    improves = np.diff(first)[:-1] < 0  # the last row is that of the end
                    n_partial += 3 <= len(time) < until and bool(improves.all())
                    key = run.algorithm, run.instance
                    made = Run(*key, time, points, until=until, repetition=seen[key])
                    yield made, names, run.direction
                    seen[key] += 1
    if n_partial:
        warnings.warn(
            f"{source.label}: {format_count(n_partial, 'run')} logged only points that improve the "
            "first objective; log all with triggers=[ioh.logger.trigger.ALWAYS]",
            DataWarning,
            stacklevel=3,
        )


def _group_by_file(listed: Iterator[tuple[str, _ListedRun]]) -> dict[str, list[_ListedRun]]:
    files: dict[str, list[_ListedRun]] = {}
    for file, run in listed:
        files.setdefault(file, []).append(run)
    return files


def _iterate_point_tables(
    source: Source, file: str
) -> Iterator[tuple[tuple[str, ...], list[float], list[list[float]]]]:
    """Yield the names of the objectives, the times and the points of each run in a data file."""
    table: tuple[tuple[str, ...], list[float], list[list[float]]] | None = None
    at_time, at_points = 0, list[int]()
    for i, line in enumerate(source.lines(file), start=1):
        where = f"{file}, line {i}"
        if '"' in line or line[:1].isalpha():
            if table is not None:
                yield table
            header = [cell.strip('"') for cell in _CELL.findall(line)]
            at_time = _find_column(header, _TIME_COLUMNS, where)
            first = [name for name in header if _FIRST_OBJECTIVE.fullmatch(name)][:1] or ["raw_y"]
            at_points = [_find_column(header, first, where)]
            at_points += [k for k, name in enumerate(header) if _OBJECTIVE.fullmatch(name)]
            table = tuple(header[k] for k in at_points), [], []
        elif line.strip():
            cells = line.split()
            if table is None or len(cells) <= max(at_time, *at_points):
                raise DataError(f"{where}: expected column names, then rows of as many numbers")
            table[1].append(parse_time(cells[at_time], where))
            table[2].append([parse_number(cells[k], where) for k in at_points])
    if table is not None:
        yield table


def _list_json_runs(source: Source, index: str) -> Iterator[tuple[str, _ListedRun]]:
    try:
        about = json.loads("\n".join(source.lines(index)))
    except json.JSONDecodeError as error:
        raise DataError(f"line {error.lineno}: not valid JSON: {error.msg}") from None
    except RecursionError:
        raise DataError("line 1: not valid JSON: nested too deeply") from None
    algorithm = _get_member(_get_member(about, "algorithm", dict), "name", str)
    function = (
        f"f{_get_member(about, 'function_id', int)} {_get_member(about, 'function_name', str)}"
    )
    direction = "maximize" if _get_member(about, "maximization", bool) else "minimize"
    for scenario in _get_member(about, "scenarios", list):
        problem = f"{function} d{_get_member(scenario, 'dimension', int)}"
        file = source.beside(index, _get_member(scenario, "path", str))
        for run in _get_member(scenario, "runs", list):
            instance = f"{problem} i{_get_member(run, 'instance', int)}"
            evaluations = parse_time(str(_get_member(run, "evals", int)), "'evals'")
            best = _get_member(run, "best", dict)
            best_time = parse_time(str(_get_member(best, "evals", int)), "'evals'")
            value = parse_number(str(_get_member(best, "y", int, float)), "'y'")
            listed = _ListedRun(
                algorithm=algorithm,
                instance=instance,
                direction=direction,
                evaluations=evaluations,
                best=(best_time, value),
            )
            yield file, _restore_exported(listed, run[EXPORT_KEY]) if EXPORT_KEY in run else listed


def _restore_exported(listed: _ListedRun, exported: Any) -> _ListedRun:
    """Return a run with the name and status that ``polarbear.write`` added to the index."""
    status = _get_member(exported, "status", str)
    if status not in {*Status}:
        raise DataError(f"status {status[:40]!r} is not one of {', '.join(Status)}")
    return listed._replace(
        instance=_get_member(exported, "instance", str),
        repetition=_get_member(exported, "repetition", int),
        status=Status(status),
    )


def _get_member(of: Any, key: str, *kinds: type) -> Any:
    """Return the value of a key of a JSON object; raise ``DataError`` if it has another type."""
    member = of.get(key) if isinstance(of, dict) else None
    if not isinstance(member, kinds) or (isinstance(member, bool) and bool not in kinds):
        raise DataError(f"expected {key!r} to be {kinds[-1].__name__}, got {str(member)[:40]!r}")
    return member


def _list_info_runs(source: Source, index: str) -> Iterator[tuple[str, _ListedRun]]:
    for block in parse_blocks(source.lines(index)):
        function = f"f{block.need('funcId')} {block.about.get('funcName', '')}".strip()
        direction = "maximize" if block.about.get("maximization", "F") == "T" else "minimize"
        file = source.beside(index, block.file)
        for run in block.runs:
            # The index gives the time of the best and its rescaled value, which are not used.
            problem = f"{function} d{block.need('DIM')} i{run.instance}"
            yield file, _ListedRun(block.need("algId"), problem, direction)


_Block = tuple[list[float], list[float]]


def _pair_with_tables(
    source: Source, file: str, runs: list[_ListedRun]
) -> Iterator[tuple[_ListedRun, _Block]]:
    tables = _read_tables(source, file)
    if len(tables) != len(runs):
        raise DataError(
            f"{file} holds {len(tables)} runs, its index lists {len(runs)}: "
            "perhaps the logger was not closed, or did not log the first evaluation"
        )
    yield from zip(runs, tables, strict=True)


def _read_tables(source: Source, file: str) -> list[_Block]:
    """Read the times and values of each run in a data file; a header line begins each run."""
    tables: list[_Block] = []
    at_time = at_value = 0
    for i, line in enumerate(source.lines(file), start=1):
        where = f"{file}, line {i}"
        if '"' in line or line[:1].isalpha():
            header = [cell.strip('"') for cell in _CELL.findall(line)]
            if objectives := [name for name in header if _OBJECTIVE.fullmatch(name)]:
                raise DataError(
                    f"{where}: several objectives (raw_y, {format_list(objectives)}); read "
                    "them with pb.readers.read_archives"
                )
            at_time, at_value = (
                _find_column(header, names, where) for names in (_TIME_COLUMNS, _VALUE_COLUMNS)
            )
            tables.append(([], []))
        elif line.strip():
            cells = line.split()
            if not tables or len(cells) <= max(at_time, at_value):
                raise DataError(
                    f"{where}: expected a line of column names, then rows of as many numbers"
                )
            tables[-1][0].append(parse_time(cells[at_time], where))
            tables[-1][1].append(parse_number(cells[at_value], where))
    return tables


def _find_column(header: list[str], names: Sequence[str], where: str) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    raise DataError(f"{where}: the column {' or '.join(map(repr, names))} is missing")
