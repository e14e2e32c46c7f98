"""Reader of Syne Tune: ``metadata.json`` with ``results.csv.zip`` beside it, one run each."""

import csv
import io
import zipfile
from typing import Any

from polarbear._text import format_list
from polarbear.data.run import Direction
from polarbear.errors import Argument, DataError
from polarbear.readers.source import (
    Refused,
    Source,
    parse_time,
    prefix_errors,
    wrap_archive_errors,
)
from polarbear.readers.trials import (
    Experiment,
    Report,
    TrialOptions,
    get_member,
    make_trial_reader,
    parse_json,
    warn_of_left_out,
)

_TIME, _TRIAL = "st_tuner_time", "trial_id"
_DIRECTIONS: dict[str, Direction] = {"min": "minimize", "max": "maximize"}


def load_syne_tune(source: Source, options: TrialOptions) -> list[Experiment]:
    """Load experiments of Syne Tune; a folder with ``metadata.json`` is a run.

    Time is "seconds" of the tuner, or "evaluations", which counts the reports of all trials.
    Labels are the names of the experiments' folders. Attributes are those in ``metadata.json``: by
    default algorithm (else scheduler_name), benchmark (else entrypoint) and seed. Values are
    columns of the results; by default the metric of the experiment.
    """
    experiments, several = list[Experiment](), list[str]()
    for file in source.files:
        if file.rsplit("/", 1)[-1] != "metadata.json":
            continue
        with prefix_errors(file):
            about = parse_json(source.text(file), "metadata")
            if not isinstance(about, dict) or "st_tuner_creation_timestamp" not in about:
                source.used.discard(file)
                continue
            options.check()
            metrics = get_member(about, "metric_names", "metadata")
            if not isinstance(metrics, list) or not metrics:
                raise DataError("expected a list of names as 'metric_names'")
            if len(metrics) > 1 and options.value is None:
                several.append(file)
                continue
            columns = str(options.value or metrics[0]), options.chosen_by
            experiments.append(_load_experiment(source, file, about, columns, options.clock))
    if several and not experiments:
        raise DataError(
            f"{several[0]}: has several metrics, and runs are compared by one: pass ",
            Argument("value", "..."),
        )
    if not experiments:
        raise Refused("no metadata.json of Syne Tune")
    warn_of_left_out("experiment", several, "since they have several metrics", source.label)
    experiments.sort(key=lambda one: str(one.attributes["st_tuner_creation_timestamp"]))
    return experiments


read_syne_tune = make_trial_reader(load_syne_tune, has_partial=False, clock="seconds")


def _load_experiment(
    source: Source,
    file: str,
    about: dict[str, Any],
    columns: tuple[str, str | None],
    clock: str,
) -> Experiment:
    reports = list[Report]()
    results, rows = _load_rows(source, file)
    for number, row in enumerate(rows, start=1):
        where = f"{results}, row {number}"
        for name in (_TIME, _TRIAL, *filter(None, columns)):
            if row.get(name) is None:
                known = format_list([key for key in row if key], 8)
                raise DataError(f"{where}: the column {name!r} is missing; there are {known}")
        time = parse_time(row[_TIME], where)
        value, choice = (None if n is None else _parse_value(row[n], where) for n in columns)
        counted = float(number) if clock == "evaluations" else time
        reports.append(Report(row[_TRIAL], counted, value, choice))
    mode = about.get("metric_mode", "min")
    mode = mode[0] if isinstance(mode, list) and mode else mode
    if mode not in ("min", "max"):
        raise DataError(f"metric_mode {str(mode)[:40]!r}: expected 'min' or 'max'")
    attributes = {key: text for key, text in about.items() if isinstance(text, str | int | float)}
    defaults = {"algorithm": about.get("scheduler_name"), "instance": about.get("entrypoint")}
    if "benchmark" in attributes:
        defaults["instance"] = attributes["benchmark"]
    return Experiment(
        label=file.split("/")[-2] if "/" in file else source.root.rsplit("/", 1)[-1],
        place=file,
        reports=reports,
        until=max((report.time for report in reports), default=0.0),
        direction=_DIRECTIONS[mode],
        attributes={**defaults, **attributes},
    )


def _load_rows(source: Source, file: str) -> tuple[str, list[dict[str, str]]]:
    """Return the name and the rows of the results file beside a ``metadata.json``."""
    packed = file.replace("metadata.json", "results.csv.zip")
    if source.find(packed) is None:
        results = source.beside(file, "results.csv")
        text = source.text(results)
    else:
        results = packed
        with wrap_archive_errors(packed), zipfile.ZipFile(io.BytesIO(source.content(packed))) as z:
            member = z.getinfo("results.csv")
            source.count_unpacked(packed, member.file_size)
            text = z.read(member).decode()
    try:
        return results, list(csv.DictReader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise DataError(f"{results}: {error}") from None


def _parse_value(text: str, where: str) -> float | None:
    """Parse a table cell as a number; ``None`` if it is empty or nan."""
    try:
        number = float(text or "nan")
    except ValueError:
        raise DataError(f"{where}: {text[:40]!r} is not a number") from None
    return None if number != number else number
