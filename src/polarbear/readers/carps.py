"""Reader of CARP-S: trees of ``trial_logs.jsonl``, and the Parquet file of gathered logs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from polarbear.data.parquet import ParquetTable
from polarbear.errors import DataError
from polarbear.readers.source import Refused, Source, prefix_errors, resolve_direction
from polarbear.readers.tables import open_parquet_files
from polarbear.readers.trials import (
    Experiment,
    Report,
    TrialOptions,
    get_member,
    leave_out_several_objectives,
    make_trial_reader,
    parse_json,
    to_number,
    to_seconds,
    to_value,
)

COST = "cost"
"""The name of the value that is minimised, beside what trials store as additional_info."""

_SUCCESS = 1
_FULL_BUDGET = 1.0
_GATHERED_COLUMNS = (
    "optimizer_id", "task_id", "seed", "n_trials", "trial_value__cost", "trial_value__status",
    "trial_value__starttime", "trial_value__endtime",
)  # fmt: skip
_CONFIGURED = re.compile(r"^(optimizer_id|benchmark_id|seed|  name): *['\"]?([^'\"\n]+?)['\"]? *$")


class _CarpsTrial(NamedTuple):
    """A trial, as one line of a ``trial_logs.jsonl`` describes it."""

    trials_so_far: float  # in which a lower budget is a part of a trial
    start: float
    end: float
    cost: Any
    choice: float | None
    counts: bool


def load_carps(source: Source, options: TrialOptions) -> list[Experiment]:
    """Load results of CARP-S: a ``trial_logs.jsonl`` for each run, or gathered logs in Parquet.

    "evaluations" is ``n_trials``, in which a lower budget is a part of a trial; "seconds" counts
    from the first trial's start. Labels are the paths of runs' folders. By default
    ``.hydra/config.yaml`` names optimizer_id, task_id, benchmark_id and seed; else the path does,
    as ``runs/optimizer/benchmark/task/seed``. Values are the cost, or a number that trials store
    as ``additional_info``.
    """
    files = [file for file in source.files if file.rsplit("/", 1)[-1] == "trial_logs.jsonl"]
    columns, partial = (str(options.value), options.chosen_by), options.partial
    loaded = list[tuple[str, str, dict[str, Any], list[_CarpsTrial]]]()
    for file in files:
        with prefix_errors(file):
            folder = source.path(file).rsplit("/", 1)[0]
            trials = _load_log(source.lines(file), columns, partial)
            loaded.append((folder, file, _find_names(source, file), trials))
    if not files:
        loaded = _load_gathered(source, columns, partial)
    options.check()
    resolve_direction(options.direction, "minimize")
    several = [
        place for _, place, _, trials in loaded if any(isinstance(t.cost, list) for t in trials)
    ]
    leave_out_several_objectives(several, len(loaded), source.label)
    return [
        _make_experiment(label, place, attributes, trials, options.clock)
        for label, place, attributes, trials in loaded
        if place not in several
    ]


read_carps = make_trial_reader(load_carps, value=COST)


def _make_experiment(
    label: str, place: str, attributes: Mapping[str, Any], trials: Sequence[_CarpsTrial], clock: str
) -> Experiment:
    start = min((trial.start for trial in trials), default=0.0)
    reports = list[Report]()
    for number, trial in enumerate(trials):
        time = trial.trials_so_far if clock == "evaluations" else trial.end - start
        if not 0 <= time < float("inf"):
            raise DataError(
                f"{place}: trial {number + 1} has the time {time}, expected a finite number >= 0"
            )
        reports.append(Report(number, time, trial.cost if trial.counts else None, trial.choice))
    until = max((report.time for report in reports), default=0.0)
    return Experiment(
        label=label,
        place=place,
        reports=reports,
        until=until,
        direction="minimize",
        attributes=attributes,
    )


def _load_log(
    lines: Iterable[str], columns: tuple[str, str | None], partial: bool
) -> list[_CarpsTrial]:
    trials = list[_CarpsTrial]()
    for i, line in enumerate(lines, start=1):
        where = f"line {i}"
        if not line.strip():
            continue
        row = parse_json(line, where)
        result = get_member(row, "trial_value", where)
        budget = get_member(get_member(row, "trial_info", where), "normalized_budget", where)
        values = [_get_value(result, name, where) for name in columns]
        trials.append(
            _CarpsTrial(
                trials_so_far=to_number(get_member(row, "n_trials", where), where),
                start=to_seconds(get_member(result, "starttime", where), where),
                end=to_seconds(get_member(result, "endtime", where), where),
                cost=values[0],
                choice=values[1],
                counts=get_member(result, "status", where) == _SUCCESS
                and (partial or budget is None or budget == _FULL_BUDGET),
            )
        )
    return trials


def _get_value(result: Any, name: str | None, where: str) -> Any:
    """Return a trial's cost, perhaps a list, or the named value of its ``additional_info``."""
    if name is None:
        return None
    if name != COST:
        stored = get_member(get_member(result, "additional_info", where), name, where)
        return to_value(stored, f"{where}, {name!r}")
    cost = get_member(result, COST, where)
    return cost if isinstance(cost, list) else to_value(cost, where)


def _find_names(source: Source, file: str) -> dict[str, Any]:
    """Return the names that identify a run, from the settings beside its log, else its path."""
    folder = file.rpartition("/")[0]
    config = source.find(f"{folder}/.hydra/config.yaml" if folder else ".hydra/config.yaml")
    known = dict[str, Any]()
    if config is not None:
        for line in source.lines(config):
            if match := _CONFIGURED.match(line):
                known.setdefault(match[1].strip(), match[2])
        known["task_id"] = known.pop("name", "")
    else:
        parts = source.path(file).split("/")[:-1]
        if "runs" in parts:
            parts = parts[len(parts) - parts[::-1].index("runs") :]
        elif folder.count("/") >= 3:
            parts = folder.split("/")
        if len(parts) >= 4:
            known = {"optimizer_id": parts[0], "benchmark_id": parts[1], "seed": parts[-1]}
            known["task_id"] = "/".join(parts[2:-1])
    defaults = {"algorithm": known.get("optimizer_id"), "instance": known.get("task_id")}
    return {**{name: text for name, text in defaults.items() if text}, **known}


# Gathered logs


def _load_gathered(
    source: Source, columns: tuple[str, str | None], partial: bool
) -> list[tuple[str, str, dict[str, Any], list[_CarpsTrial]]]:
    loaded = list[tuple[str, str, dict[str, Any], list[_CarpsTrial]]]()
    for file, table, _ in open_parquet_files(source):
        with prefix_errors(file):
            if any(name not in table.names for name in _GATHERED_COLUMNS):
                raise Refused("no trial_logs.jsonl, and the Parquet file is not of CARP-S")
            for names, trials in _read_table(table, columns, partial).items():
                optimizer, task, seed = names
                attributes = {"algorithm": optimizer, "instance": task, "seed": seed}
                attributes |= {"optimizer_id": optimizer, "task_id": task}
                label = f"{optimizer}/{task}/{seed}"
                loaded.append((label, f"{file}, {label}", attributes, trials))
    return loaded


def _read_table(
    table: ParquetTable, columns: tuple[str, str | None], partial: bool
) -> dict[tuple[str, str, str], list[_CarpsTrial]]:
    if columns != (COST, None):
        raise DataError(
            "gathered logs hold no value but the cost: to compare another value, read the folder "
            "of runs"
        )
    names = [table.read_labels(name).to_list() for name in _GATHERED_COLUMNS[:3]]
    counts, costs, statuses, starts, ends = (
        table.read_numbers(name).tolist() for name in _GATHERED_COLUMNS[3:]
    )
    budgets = [""] * len(counts)
    if "trial_info__normalized_budget" in table.names:
        budgets = table.read_labels("trial_info__normalized_budget").to_list()
    trials: dict[tuple[str, str, str], list[_CarpsTrial]] = {}
    for row, name in enumerate(zip(*names, strict=True)):
        is_full = partial or budgets[row] in ("", "None", "nan", "1", "1.0")
        trials.setdefault(name, []).append(
            _CarpsTrial(
                trials_so_far=counts[row],
                start=to_seconds(starts[row], f"row {row}"),
                end=to_seconds(ends[row], f"row {row}"),
                cost=to_value(costs[row], f"row {row}"),
                choice=None,
                counts=statuses[row] == _SUCCESS and is_full,
            )
        )
    return trials
