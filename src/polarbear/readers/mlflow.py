"""Reader of MLflow: ``mlflow.db`` (SQLite) and folders ``mlruns``; a run of MLflow is a run."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polarbear._text import format_list
from polarbear.data.run import NO_DIRECTION, Direction, Status
from polarbear.errors import Argument, DataError, Text, join_texts, warn
from polarbear.readers.source import (
    Refused,
    RefusedIncomplete,
    Source,
    parse_number,
    prefix_errors,
)
from polarbear.readers.sqlite_files import (
    SIGNATURE,
    find_missing_columns,
    list_tables,
    open_database,
    read_start,
)
from polarbear.readers.trials import (
    Experiment,
    Report,
    TrialOptions,
    make_trial_reader,
    to_number,
    to_seconds,
    to_value,
    warn_of_left_out,
)

_COLUMNS = {
    "experiments": ["experiment_id", "name"],
    "runs": ["run_uuid", "name", "status", "start_time", "end_time", "lifecycle_stage",
             "experiment_id"],
    "metrics": ["key", "value", "timestamp", "run_uuid", "step", "is_nan"],
    "params": ["key", "value", "run_uuid"],
    "tags": ["key", "value", "run_uuid"],
}  # fmt: skip
_STATUSES = {
    "RUNNING": Status.CUT, "1": Status.CUT,
    "SCHEDULED": Status.CUT, "2": Status.CUT,
    "FINISHED": Status.FINISHED, "3": Status.FINISHED,
    "FAILED": Status.CRASHED, "4": Status.CRASHED,
    "KILLED": Status.KILLED, "5": Status.KILLED,
}  # fmt: skip
"""The status of runs, by its name in databases and its number in files."""

_CLOCKS = ("steps", "seconds")
_SYSTEM_METRICS = "system/"
_LARGEST = 1.7976931348623157e308
"""The number that databases of MLflow hold for infinity."""

_YAML_LINE = re.compile(r"(\w+): *(.*)")
_PART = re.compile(r"(metrics|params|tags)/(.+)")


@dataclass
class _LoggedValue:
    """A value of a metric, the step that was logged with it, and its time in seconds."""

    step: float
    second: float
    value: float | None


@dataclass
class _LoggedRun:
    """A run of MLflow: its name, status, times and attributes, and all values of its metrics."""

    place: str
    name: str
    status: Status
    start: float
    end: float | None
    attributes: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, list[_LoggedValue]] = field(default_factory=dict)


def load_mlflow(source: Source, options: TrialOptions) -> list[Experiment]:
    """Load runs of MLflow from ``mlflow.db`` and from folders ``mlruns``.

    Time is "steps" that were logged with values, or "seconds" since the start of each run. Labels
    are the names of runs. Attributes are parameters, tags and "experiment": by default the
    parameters algorithm, instance (else the experiment) and seed. Values are metrics, which have to
    be named if runs have several. The direction is needed, since MLflow does not store it.
    """
    runs = _load_databases(source) + _load_folders(source)
    if not runs:
        raise Refused("no database and no folder of MLflow with a run")
    options.check(_CLOCKS)
    metric = _choose_metric(runs, options.value, options.direction)
    experiments = _make_experiments(runs, metric, options.chosen_by, options.clock, source.label)
    name = options.algorithm
    named = [one for one in experiments if name in one.attributes]
    if options.names is not None or not named:
        return experiments
    lacking = [one.label for one in experiments if name not in one.attributes]
    warn_of_left_out("run", lacking, f"without {name!r}", source.label)
    return named


read_mlflow = make_trial_reader(load_mlflow, has_partial=False, clock=_CLOCKS[0])


def _choose_metric(
    runs: Sequence[_LoggedRun], value: str | None, direction: Direction | None
) -> str:
    """Return the metric to compare: the requested one, or the only one there is."""
    stored = sorted({name for run in runs for name in run.metrics})
    own = [name for name in stored if not name.startswith(_SYSTEM_METRICS)]
    if not own:
        raise DataError(
            f"{runs[0].place}: no metric was logged for these runs; log the value to compare, "
            "with mlflow.log_metric"
        )
    gaps, arguments = list[Text](), {"value": value or own[0]}
    if value is None and len(own) > 1:
        several = f"the runs have several metrics, {format_list(own, 8)}: pass "
        gaps.append((several, Argument("value", own[0])))
    if direction is None:
        gaps.append(NO_DIRECTION)
        arguments["direction"] = "minimize"
    if value is not None and value not in stored:
        raise DataError(
            f"{runs[0].place}: no run has a metric {value!r}; there are {format_list(own, 8)}"
        )
    if gaps:
        raise RefusedIncomplete(join_texts("; ", gaps), arguments)
    return value or own[0]


def _make_experiments(
    runs: Sequence[_LoggedRun], metric: str, chosen_by: str | None, clock: str, label: str
) -> list[Experiment]:
    experiments, without = list[Experiment](), list[str]()
    for run in sorted(runs, key=lambda run: run.start):
        if metric not in run.metrics and run.status in (Status.CUT, Status.FINISHED):
            without.append(run.name)
            continue
        experiments.append(_make_experiment(run, metric, chosen_by, clock))
    warn_of_left_out("run", without, f"without the metric {metric!r}", label)
    return experiments


def _make_experiment(run: _LoggedRun, metric: str, chosen_by: str | None, clock: str) -> Experiment:
    history = run.metrics.get(metric, [])
    choices = {one.step: one.value for one in run.metrics.get(chosen_by or "", [])}
    if chosen_by is not None and history and not choices.keys() & {one.step for one in history}:
        where = " at the steps of the value" if choices else ""
        raise DataError(
            f"{run.place}: the run {run.name!r} has no metric {chosen_by!r}{where}, which "
            "chosen_by= names"
        )
    if clock == "steps" and len(history) > 1 and len({one.step for one in history}) == 1:
        warn(
            f"the run {run.name!r} has {len(history)} values at one step: pass ",
            Argument("clock", "seconds"),
        )
    reports = list[Report]()
    for one in history:
        time = one.step if clock == "steps" else max(one.second - run.start, 0.0)
        reports.append(Report(run.name, time, one.value, choices.get(one.step)))
    reports.sort(key=lambda report: report.time)
    until = max((report.time for report in reports), default=0.0)
    if clock == "seconds" and run.end is not None:
        until = max(until, run.end - run.start)
    return Experiment(
        run.name, run.place, reports, until, status=run.status, attributes=run.attributes
    )


# Databases


def _load_databases(source: Source) -> list[_LoggedRun]:
    runs = list[_LoggedRun]()
    for file in source.ending(".db", ".sqlite", ".sqlite3"):
        if not read_start(source, file, len(SIGNATURE)).startswith(SIGNATURE):
            continue
        with open_database(source, file) as connection, prefix_errors(file):
            tables = list_tables(connection)
            if not {"experiments", "runs", "metrics"} <= tables.keys():
                source.used.discard(file)
                continue
            if missing := find_missing_columns(tables, _COLUMNS):
                raise DataError(
                    f"this MLflow database has no {missing[0]}, so an older version wrote it: copy "
                    "the file, run `mlflow db upgrade sqlite:///COPY`, and read the copy"
                )
            runs += _load_database(connection, file)
    return runs


def _load_database(connection: Any, file: str) -> list[_LoggedRun]:
    runs = dict[Any, _LoggedRun]()
    for key, name, status, start, end, experiment in connection.execute(
        "SELECT r.run_uuid, r.name, r.status, r.start_time, r.end_time, e.name FROM runs r "
        "JOIN experiments e ON e.experiment_id = r.experiment_id "
        "WHERE r.lifecycle_stage = 'active' ORDER BY r.start_time, r.run_uuid"
    ):
        runs[key] = _LoggedRun(
            place=file,
            name=str(name or key),
            status=_parse_status(status, f"run {key}"),
            start=to_seconds(start, f"run {key}, start") / 1e3,
            end=None if end is None else to_seconds(end, f"run {key}, end") / 1e3,
            attributes={"experiment": str(experiment), "instance": str(experiment)},
        )
    for table in ("tags", "params"):  # a parameter counts before a tag of the same name
        for run, key, text in connection.execute(f"SELECT run_uuid, key, value FROM {table}"):  # noqa: S608
            if run in runs and text is not None:
                runs[run].attributes[str(key)] = str(text)
    for run, key, value, timestamp, step, is_nan in connection.execute(
        "SELECT run_uuid, key, value, timestamp, step, is_nan FROM metrics"
    ):
        if run in runs:
            where = f"metric {key!r} of run {run}"
            number = None if is_nan else to_value(value, where)
            if number is not None and abs(number) == _LARGEST:
                number *= 2.0  # infinity
            logged = _LoggedValue(
                to_number(step, where), to_seconds(timestamp, where) / 1e3, number
            )
            runs[run].metrics.setdefault(str(key), []).append(logged)
    return list(runs.values())


def _parse_status(status: Any, where: str) -> Status:
    if str(status) not in _STATUSES:
        raise DataError(f"{where}: the status {str(status)[:40]!r} is not known")
    return _STATUSES[str(status)]


# Folders


def _load_folders(source: Source) -> list[_LoggedRun]:
    """Load runs from MLflow's folders, one each, with ``meta.yaml``, metrics, params and tags."""
    about = {
        file.rpartition("/")[0]: _parse_yaml(source.lines(file))
        for file in source.files
        if file.rsplit("/", 1)[-1] == "meta.yaml"
    }
    runs = dict[str, _LoggedRun]()
    if not any("artifact_uri" in meta for meta in about.values()):  # of another program
        source.used.difference_update(name for name in source.files if name.endswith("meta.yaml"))
        return []
    for folder, meta in about.items():
        if not {"run_id", "run_uuid"}.isdisjoint(meta) and meta.get("lifecycle_stage") == "active":
            experiment = about.get(folder.rpartition("/")[0], {}).get("name", "")
            with prefix_errors(f"{folder}/meta.yaml".removeprefix("/")):
                runs[folder] = _make_logged_run(folder, meta, experiment)
    for file, folder, kind, name in _list_parts(source.files, runs):
        run = runs[folder]
        if kind == "metrics":
            run.metrics[name] = _parse_metric(source.lines(file), file)
        elif kind == "params" or name not in run.attributes:
            run.attributes[name] = source.text(file).strip("\n")
    return list(runs.values())


def _make_logged_run(folder: str, meta: Mapping[str, str], experiment: str) -> _LoggedRun:
    place = f"{folder}/meta.yaml".removeprefix("/")
    experiment = experiment or meta.get("experiment_id", "")
    end = meta.get("end_time", "null")
    return _LoggedRun(
        place=place,
        name=meta.get("run_name") or folder.rsplit("/", 1)[-1],
        status=_parse_status(meta.get("status"), "meta.yaml"),
        start=parse_number(meta.get("start_time", ""), "start_time") / 1e3,
        end=None if end in ("null", "") else parse_number(end, "end_time") / 1e3,
        attributes={"experiment": experiment, "instance": experiment},
    )


def _list_parts(
    files: Iterable[str], folders: Mapping[str, Any]
) -> Iterable[tuple[str, str, str, str]]:
    """Yield the files that belong to runs, each with the run's folder, its kind and its name.

    >>> list(_list_parts(["0/a/metrics/val/loss", "0/meta.yaml"], {"0/a": None}))
    [('0/a/metrics/val/loss', '0/a', 'metrics', 'val/loss')]
    """
    for file in files:
        parts = file.split("/")
        for depth in range(len(parts) - 1):
            folder = "/".join(parts[:depth])
            match = _PART.fullmatch("/".join(parts[depth:])) if folder in folders else None
            if match:
                yield file, folder, match[1], match[2]
                break


def _parse_yaml(lines: Iterable[str]) -> dict[str, str]:
    """Parse the top-level keys with plain values of a YAML file that MLflow wrote.

    >>> _parse_yaml(["name: 'wine'", "tags: []", "  deeper: 1"])
    {'name': 'wine', 'tags': '[]'}
    """
    matches = (_YAML_LINE.fullmatch(line.rstrip()) for line in lines)
    return {match[1]: match[2].strip("'\"") for match in matches if match}


def _parse_metric(lines: Iterable[str], file: str) -> list[_LoggedValue]:
    """Parse the lines of a metric file: milliseconds, value and, in most files, a step."""
    values = list[_LoggedValue]()
    for i, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where, cells = f"{file}, line {i}", line.split()
        if not 2 <= len(cells) <= 5:
            raise DataError(f"{where}: expected a time, a value and a step, got {line[:40]!r}")
        number = None if cells[1].lower() == "nan" else parse_number(cells[1], where)
        step = parse_number(cells[2], where) if len(cells) > 2 else 0.0
        values.append(_LoggedValue(step, parse_number(cells[0], where) / 1e3, number))
    return values
