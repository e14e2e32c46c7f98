"""Reader of SMAC3: ``runhistory.json`` with ``scenario.json`` beside it, one run each."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from polarbear.errors import DataError
from polarbear.readers.source import Refused, Source, prefix_errors, resolve_direction
from polarbear.readers.trials import (
    Experiment,
    Trial,
    TrialOptions,
    get_member,
    leave_out_several_objectives,
    make_trial_reader,
    measure_trials,
    parse_json,
    split_label,
    to_seconds,
    to_value,
)

COST = "cost"
"""The name of the value that SMAC minimises, beside what trials store as additional_info."""

_RUNNING, _SUCCESS = 0, 1
_LIST_FIELDS = (
    "config_id", "instance", "seed", "budget", "cost", "time", "status", "starttime", "endtime",
    "additional_info",
)  # fmt: skip
"""The fields of a trial in SMAC 2.0, which stores lists."""


class _SmacTrial(NamedTuple):
    """A trial in a run history of SMAC3."""

    number: int
    instance: Any
    budget: float | None
    cost: Any
    status: int
    start: float
    end: float
    information: dict[str, Any]


def load_smac(source: Source, options: TrialOptions) -> list[Experiment]:
    """Load run histories of SMAC3 2.x; a folder with ``runhistory.json`` is a run.

    "evaluations" counts the trials that ended; "seconds" counts from the first trial's start.
    Scenarios are named ``algorithm__instance``; else the algorithm is the facade, and the name the
    instance. Attributes are "facade", "name", "seed", and other texts of ``scenario.json``. Values
    are the cost, or a number that trials store as ``additional_info``.
    """
    files = [file for file in source.files if file.rsplit("/", 1)[-1] == "runhistory.json"]
    if not files:
        raise Refused("no file is named runhistory.json")
    options.check()
    resolve_direction(options.direction, "minimize")
    experiments, several = list[Experiment](), list[str]()
    for file in files:
        with prefix_errors(file):
            scenario = _load_scenario(source, file)
            trials = _load_trials(source, file)
            if any(isinstance(trial.cost, list) for trial in trials):
                several.append(file)
                continue
            if len({str(trial.instance) for trial in trials}) > 1:
                raise DataError(
                    "its trials are on several instances, whose costs cannot be compared; "
                    "let SMAC run on one instance, or read the costs of a validation"
                )
            ended = _select_trials(trials, options)
            reports, until = measure_trials(ended, options.clock)
            name = str(get_member(scenario, "name", "scenario.json"))
            experiments.append(
                Experiment(
                    label=name,
                    place=file,
                    reports=reports,
                    until=until,
                    direction="minimize",
                    attributes=scenario,
                )
            )
    leave_out_several_objectives(several, len(files), source.label)
    return experiments


read_smac = make_trial_reader(load_smac, value=COST)


def _load_scenario(source: Source, file: str) -> dict[str, Any]:
    """Return the values of a SMAC scenario that may name a run, and the name of its facade."""
    other = source.beside(file, "scenario.json")
    scenario = parse_json(source.text(other), "scenario.json")
    name = str(get_member(scenario, "name", "scenario.json"))
    facade = get_member(get_member(scenario, "_meta", "scenario.json"), "facade", "scenario.json")
    plain = {key: text for key, text in scenario.items() if isinstance(text, str | int)}
    plain["facade"] = str(get_member(facade, "name", "scenario.json"))
    default = split_label(name) or {"algorithm": plain["facade"], "instance": name}
    return {**plain, **default}


def _load_trials(source: Source, file: str) -> list[_SmacTrial]:
    rows = get_member(parse_json(source.text(file), "the run history"), "data", "the run history")
    if not isinstance(rows, list):
        raise DataError("expected a list of trials as 'data'")
    return [_parse_trial(row, i) for i, row in enumerate(rows, start=1)]


def _parse_trial(row: Any, number: int) -> _SmacTrial:
    where = f"trial {number}"
    if isinstance(row, list):
        if len(row) != len(_LIST_FIELDS):
            raise DataError(
                f"{where}: the list has {len(row)} elements, expected {len(_LIST_FIELDS)}"
            )
        row = dict(zip(_LIST_FIELDS, row, strict=True))
    status = get_member(row, "status", where)
    if not isinstance(status, int):
        raise DataError(f"{where}: the status {str(status)[:40]!r} is not a whole number")
    cost = get_member(row, "cost", where)
    if not isinstance(cost, list):
        cost = to_value(cost, where)
    information = row.get("additional_info")
    return _SmacTrial(
        number=number,
        instance=row.get("instance"),
        budget=to_value(row.get("budget"), f"{where}, budget"),
        cost=cost,
        status=status,
        start=to_seconds(get_member(row, "starttime", where), where),
        end=to_seconds(get_member(row, "endtime", where), where),
        information=information if isinstance(information, dict) else {},
    )


def _select_trials(trials: Sequence[_SmacTrial], options: TrialOptions) -> list[Trial]:
    """Return the ended trials; only ``partial`` keeps the values of trials at lower budgets."""
    highest = max((trial.budget for trial in trials if trial.budget is not None), default=None)
    selected = list[Trial]()
    for trial in trials:
        if trial.status == _RUNNING:
            continue
        counts = trial.status == _SUCCESS and (options.partial or trial.budget == highest)
        shown = _get_value(trial, options.value) if counts else None
        choice = _get_value(trial, options.chosen_by) if counts else None
        selected.append(
            Trial(trial=trial.number, start=trial.start, end=trial.end, value=shown, choice=choice)
        )
    return selected


def _get_value(trial: _SmacTrial, name: str | None) -> float | None:
    if name is None:
        return None
    if name == COST:
        return trial.cost
    if name not in trial.information:
        raise DataError(f"trial {trial.number}: additional_info has no value {name!r}")
    return to_value(trial.information[name], f"trial {trial.number}, {name!r}")
