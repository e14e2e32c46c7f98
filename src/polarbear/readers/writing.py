"""``write``: runs as files of other tools, so that they can be analysed there as well.

Parquet holds everything, and CSV all but attributes of instances. IOHprofiler and COCO count
evaluations, so times must be whole numbers from 1; COCO has no place for names of instances,
statuses and numbers of repetitions.
"""

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from polarbear._text import escape_text
from polarbear.data.run import Run
from polarbear.data.runs import Runs, check_runs
from polarbear.errors import DataError
from polarbear.readers.ioh import EXPORT_KEY

Key = TypeVar("Key", bound=Hashable)

WriteFormat = Literal["csv", "parquet", "ioh", "coco"]

_SUFFIXES: Mapping[str, WriteFormat] = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_PROBLEM = re.compile(
    r"(?P<before>[\w-]+ )?f(?P<function>[0-9]{1,4})(?P<name> .+)? d(?P<dimension>[0-9]{1,4})"
    r" i(?P<instance>[0-9]{1,4})"
)
_COCO_HEADER = (
    "% f evaluations | g evaluations | best noise-free fitness - Fopt (0.0e+00) + sum g_i+ | "
    "measured fitness | best measured fitness or single-digit g-values | x1 | x2..."
)


class _Problem(NamedTuple):
    """The function, dimension and instance number that IOHprofiler and COCO use as a name."""

    function: int
    name: str
    dimension: int
    instance: int
    suite: str


def write(
    runs: Runs,
    path: str | PathLike[str],
    *,
    format: WriteFormat | None = None,  # noqa: A002
) -> None:
    """Write runs to a file (CSV, Parquet) or to a new folder (IOHprofiler, COCO).

    Parameters
    ----------
    path
        A file, or for "ioh" and "coco" a folder that is empty or does not exist.
    format
        "csv", "parquet", "ioh" or "coco"; by default by the ending of ``path``.

    Notes
    -----
    ``read`` returns equal runs of all but COCO's files. CSV does not store direction and clock, and
    only Parquet stores attributes of instances.
    Instances named as in these formats ("f1 Sphere d5 i3") keep function, dimension and instance;
    others are numbered. For COCO, ``instances.json`` then has their names.

    Raises
    ------
    DataError
        If the ending of the file is not known, the folder is not empty, or the format cannot hold
        the runs.

    Examples
    --------
    >>> import polarbear as pb, tempfile
    >>> runs = pb.example("cma-variants")
    >>> folder = tempfile.mkdtemp()
    >>> pb.write(runs, folder, format="ioh")
    >>> pb.read(folder) == runs
    True
    """
    check_runs(runs, "write")
    path = Path(path)
    if format is None:
        if path.suffix.lower() not in _SUFFIXES:
            raise DataError(
                f"{path}: expected a name that ends in .csv, .parquet or .pq, or the format ioh or "
                "coco, which are folders"
            )
        format = _SUFFIXES[path.suffix.lower()]  # noqa: A001
    if format not in _WRITERS:
        raise DataError(f"expected one of {', '.join(_WRITERS)}", format=format)
    if not len(runs):
        raise DataError("there are no runs to write: pass Runs that are not empty")
    if runs.order_by and format in ("ioh", "coco"):
        raise DataError(f"{format} has no place for runs ordered by {runs.order_by}")
    try:
        _WRITERS[format](runs, path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None


def _write_ioh(runs: Runs, folder: Path) -> None:
    """Write a folder for each algorithm, and in it an index and data files for each function."""
    problems = _identify_problems(runs.instances)
    for place, algorithm, own in _group_by_algorithm(runs, folder, "IOHprofiler"):
        taken: set[str] = set()
        for (function, name), group in _group(own, lambda run: problems[run.instance][:2]):
            title = f"f{function}_{_to_file_name(name)}"
            title += f"_{len(taken)}" if title in taken else ""
            taken.add(title)
            scenarios = []
            for dimension, part in _group(group, lambda run: problems[run.instance].dimension):
                data = f"data_{title}/IOHprofiler_f{function}_DIM{dimension}.dat"
                lines = [line for run in part for line in _format_ioh_run(run, runs.worst)]
                _write_lines(place / data, lines)
                listed = [_list_ioh_run(run, problems[run.instance], runs.worst) for run in part]
                scenarios.append({"dimension": dimension, "path": data, "runs": listed})
            index = {
                "version": "0.3.22",
                "suite": problems[group[0].instance].suite or "unknown_suite",
                "function_id": function,
                "function_name": name,
                "maximization": runs.direction == "maximize",
                "algorithm": {"name": algorithm, "info": ""},
                "attributes": ["evaluations", "raw_y"],
                "scenarios": scenarios,
            }
            _write_lines(place / f"IOHprofiler_{title}.json", [json.dumps(index, indent=1)])


def _format_ioh_run(run: Run, worst: float) -> Iterator[str]:
    yield "evaluations raw_y"
    times = np.asarray(run.time)
    if not len(times) or times[0] > 1:
        yield f"1 {worst!r}"  # iohinspector counts runs by rows at the first evaluation
    for time, value in _list_rows(run):
        yield f"{time} {value!r}"


def _list_ioh_run(run: Run, problem: _Problem, worst: float) -> dict[str, object]:
    """Return a run's record for the index, with a part that only PolarBear reads."""
    time, value = np.asarray(run.time), np.asarray(run.value)
    has_value = len(time) > 0
    return {
        "instance": problem.instance,
        "evals": int(run.until),
        "best": {
            "evals": int(time[-1]) if has_value else 0,
            "y": float(value[-1]) if has_value else worst,
            "x": [],
        },
        EXPORT_KEY: {
            "instance": run.instance,
            "repetition": run.repetition,
            "status": str(run.status),
        },
    }


def _write_coco(runs: Runs, folder: Path) -> None:
    """Write a folder for each algorithm, and in it an index and data files for each function."""
    if runs.direction != "minimize":
        raise DataError(
            "COCO always minimises, and these runs maximise; write another format, such as "
            "format='ioh'"
        )
    problems = _identify_problems(runs.instances)
    identities = {(p.suite, p.function, p.dimension, p.instance) for p in problems.values()}
    if len(identities) < len(problems):
        problems = _number_problems(runs.instances)
    for place, algorithm, own in _group_by_algorithm(runs, folder, "COCO"):
        for (suite, function), group in _group(
            own, lambda run: (problems[run.instance].suite, problems[run.instance].function)
        ):
            stem = f"{_to_file_name(suite)}_f{function}" if suite else f"f{function}"
            index: list[str] = []
            for dimension, part in _group(group, lambda run: problems[run.instance].dimension):
                data = f"data_{stem}/{stem}_DIM{dimension}"
                lines = [line for run in part for line in _format_coco_run(run)]
                _write_lines(place / f"{data}.dat", lines)
                _write_lines(place / f"{data}.tdat", lines)
                index += _format_coco_index(algorithm, f"{data}.dat", part, problems)
            _write_lines(place / f"{stem}.info", index)
    names = {
        instance: " ".join(filter(None, [p.suite, f"f{p.function} d{p.dimension} i{p.instance}"]))
        for instance, p in problems.items()
    }
    if any(name != instance for instance, name in names.items()):
        by_problem = {problem: instance for instance, problem in names.items()}
        _write_lines(folder / "instances.json", [json.dumps(by_problem, indent=1)])


def _format_coco_index(
    algorithm: str, data: str, runs: Sequence[Run], problems: Mapping[str, _Problem]
) -> Iterator[str]:
    """Yield the lines of a COCO index for the runs of one data file."""
    problem = problems[runs[0].instance]
    quoted = escape_text(algorithm).replace("'", "`")
    about = {
        "funcId": problem.function,
        "DIM": problem.dimension,
        "Precision": "1.000e-08",
        "algId": f"'{quoted}'",
        "coco_version": "'2.8.2'",
        "logger": f"'{problem.suite or 'bbob'}'",
        "data_format": "'bbob-new2'",
    }
    if problem.suite:
        about = {"suite": f"'{problem.suite}'", **about}
    yield ", ".join(f"{key} = {value}" for key, value in about.items())
    yield "% written by PolarBear"
    listed = [
        f"{problems[run.instance].instance}:{int(run.until)}|{_get_best(run):.1e}" for run in runs
    ]
    yield ", ".join([data, *listed])


def _get_best(run: Run) -> float:
    return float(np.min(run.value, initial=np.inf))


def _format_coco_run(run: Run) -> Iterator[str]:
    yield _COCO_HEADER
    for time, value in _list_rows(run):
        yield f"{time} 0 {value:+.16e} {value:+.16e} {value:+.16e}"


def _list_rows(run: Run) -> Iterator[tuple[int, float]]:
    """Yield (evaluations, best value so far) at each improvement and at the end of the run."""
    times, values = np.asarray(run.time).astype(int).tolist(), np.asarray(run.value).tolist()
    yield from zip(times, values, strict=True)
    if times and int(run.until) > times[-1]:
        yield int(run.until), values[-1]


def _identify_problems(instances: Sequence[str]) -> dict[str, _Problem]:
    """Find function, dimension and instance number in instance names, as far as stated there."""
    matches = {name: _PROBLEM.fullmatch(name) for name in instances}
    known = {name: match for name, match in matches.items() if match}
    first = max((int(match["function"]) for match in known.values()), default=0) + 1
    problems = _number_problems([name for name in instances if name not in known], first)
    for name, match in known.items():
        suite = (match["before"] or "").strip()
        function = int(match["function"])
        label = (match["name"] or "").strip() or suite or f"f{function}"
        problems[name] = _Problem(
            function=function,
            name=label,
            dimension=int(match["dimension"]),
            instance=int(match["instance"]),
            suite=suite,
        )
    return problems


def _number_problems(instances: Sequence[str], first: int = 1) -> dict[str, _Problem]:
    return {
        name: _Problem(function=first + k, name=name, dimension=1, instance=1, suite="")
        for k, name in enumerate(instances)
    }


def _group_by_algorithm(
    runs: Runs, folder: Path, tool: str
) -> Iterator[tuple[Path, str, list[Run]]]:
    """Yield the folder, the name and the runs of each algorithm."""
    for what, times in (("time", runs.time), ("until", runs.until)):
        wrong = times[(times % 1 != 0) | (times < (what == "time"))]
        if len(wrong):
            raise DataError(
                f"{what} {wrong[0]:g}: {tool} counts evaluations, which are whole numbers from 1; "
                "write CSV or Parquet"
            )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(f"{folder} exists and is not an empty folder: name a new one")
    folder.mkdir(parents=True, exist_ok=True)
    for number, (algorithm, own) in enumerate(_group(runs, lambda run: run.algorithm), start=1):
        yield folder / f"{number}_{_to_file_name(algorithm)}", algorithm, own


def _group(runs: Iterable[Run], key: Callable[[Run], Key]) -> list[tuple[Key, list[Run]]]:
    """Group runs by a key; groups are in the order of their first runs."""
    groups: dict[Key, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return list(groups.items())


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, ""]), "utf-8")


def _to_file_name(text: str) -> str:
    """Replace characters in a name that are unsuitable for a file name."""
    return re.sub(r"[^\w.-]+", "_", text)[:60].strip("._") or "unnamed"


_WRITERS: Mapping[str, Callable[[Runs, Path], None]] = {
    "csv": lambda runs, path: runs.to_csv(path),
    "parquet": lambda runs, path: runs.to_parquet(path),
    "ioh": _write_ioh,
    "coco": _write_coco,
}
