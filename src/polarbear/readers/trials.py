"""``Experiment``: a run of an optimiser that evaluates configurations, and ``Runs`` of many.

Optuna, SMAC, Syne Tune, CARP-S and MLflow store trials with values. For each of them a function
loads an ``Experiment`` of each study, and ``make_trial_reader`` makes a reader of it, which names
experiments and makes trajectories of their values.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from polarbear._text import format_count, format_list
from polarbear.data.missing_columns import REPETITION_COLUMNS
from polarbear.data.names import to_name
from polarbear.data.run import NO_DIRECTION, Direction, Run, Status, sign_of
from polarbear.data.runs import Runs
from polarbear.errors import Argument, DataError, Text, warn
from polarbear.readers.naming import RunName
from polarbear.readers.paths import PathPattern, propose_pattern
from polarbear.readers.source import RefusedIncomplete, Source, choose_direction, prefix_errors

CURVES = ("best", "last", "chosen", "final")
CLOCKS = ("evaluations", "seconds")


class Report(NamedTuple):
    """A value that a trial reported, its time, and the value by which configurations are chosen."""

    trial: object
    time: float
    value: float | None
    choice: float | None = None


class Trial(NamedTuple):
    """A trial that ended: its start and end in seconds, and its value if it has one."""

    trial: object
    start: float | None
    end: float
    value: float | None
    choice: float | None = None


@dataclass(frozen=True)
class Experiment:
    """One run of an optimiser: the values reported, and what identifies the run.

    ``label`` is the text that ``names=`` describes, such as the name of a study. ``attributes``
    are what else is stored about it, by name. ``place`` names it in messages.
    """

    label: str
    place: str
    reports: Sequence[Report]
    until: float
    direction: Direction | None = None
    status: Status = Status.CUT
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TrialOptions:
    """What the caller of :func:`polarbear.read` says about trials.

    Attributes
    ----------
    direction
        Selects from experiments of both directions; needed where none is stored.
    clock
        What time counts; the first of ``clocks`` by default.
    names
        The meaning of the labels of experiments: ``"{algorithm}-{instance}-{repetition}"``.
    algorithm, instance, repetition
        Names of attributes that name the run.
    value, chosen_by
        The value that is compared, and the one by which a configuration is chosen.
    curve
        "best": every report counts. "last": the last report of each trial counts. "chosen": the
        run has the value of the report with the best ``chosen_by`` (or value) so far. "final": only
        the report with the best choice counts, at the end of the experiment.
    partial
        Whether values of pruned trials and of lower budgets count.
    """

    direction: Direction | None = None
    clock: str = CLOCKS[0]
    names: str | None = None
    algorithm: str = "algorithm"
    instance: str | Sequence[str] = "instance"
    repetition: str | None = None
    value: str | None = None
    chosen_by: str | None = None
    curve: str = "best"
    partial: bool = False

    def check(self, clocks: Sequence[str] = CLOCKS) -> None:
        """Raise ``DataError`` for an unknown clock or curve, or a curve that chooses by nothing.

        >>> TrialOptions(chosen_by="val_loss").check()
        Traceback (most recent call last):
        polarbear.errors.DataError: chosen_by='val_loss', curve='best': only a curve ...
        """
        if self.clock not in clocks:
            raise DataError(f"expected {' or '.join(map(repr, clocks))}", clock=self.clock)
        if self.curve not in CURVES:
            raise DataError(f"expected one of {', '.join(CURVES)}", curve=self.curve)
        if self.chosen_by is not None and self.curve not in ("chosen", "final"):
            raise DataError(
                "only a curve that is 'chosen' (the value of what is chosen so far, which may get "
                "worse) or 'final' (that of the final choice, at the end of a run) chooses by it",
                chosen_by=self.chosen_by,
                curve=self.curve,
            )


def make_trial_reader(
    load: Callable[[Source, TrialOptions], Sequence[Experiment]],
    *,
    has_partial: bool = True,
    **defaults: Any,
) -> Callable[..., Runs]:
    """Make the reader of a format from the function that loads its experiments.

    ``defaults`` are those of ``TrialOptions`` that the format has. The signature of the reader has
    the options that it takes.
    """
    default = TrialOptions(**defaults)

    def read(source: Source, **options: Any) -> Runs:
        own = replace(default, **options)
        return make_runs(load(source, own), own, source)

    read.__doc__ = load.__doc__
    taken = [one.name for one in fields(default) if has_partial or one.name != "partial"]
    keyword = [Parameter(k, Parameter.KEYWORD_ONLY, default=getattr(default, k)) for k in taken]
    first = Parameter("source", Parameter.POSITIONAL_ONLY)
    read.__signature__ = Signature([first, *keyword])
    return read


def measure_trials(trials: Iterable[Trial], clock: str) -> tuple[list[Report], float]:
    """Return one report for each ended trial, in order of ends, and the time of the last end.

    By the clock "evaluations" the n-th trial that ends is at time n; by "seconds" the time counts
    from the start of the first trial.

    >>> trials = [Trial(0, 100.0, 107.5, 3.0), Trial(1, 100.0, 102.0, None)]
    >>> measure_trials(trials, "seconds")[0]
    [Report(trial=1, time=2.0, value=None, choice=None), \
Report(trial=0, time=7.5, value=3.0, choice=None)]
    >>> [report.time for report in measure_trials(trials, "evaluations")[0]]
    [1.0, 2.0]
    """
    ended = sorted(trials, key=lambda trial: trial.end)
    start = min((trial.start for trial in ended if trial.start is not None), default=0.0)
    reports = list[Report]()
    for number, trial in enumerate(ended, start=1):
        time = float(number) if clock == "evaluations" else trial.end - start
        if time < 0:
            raise DataError(
                f"trial {trial.trial} ended before the first trial started, so times are wrong: "
                "pass ",
                Argument("clock", "evaluations"),
            )
        reports.append(Report(trial.trial, time, trial.value, trial.choice))
    return reports, max((report.time for report in reports), default=0.0)


def make_runs(experiments: Sequence[Experiment], options: TrialOptions, source: Source) -> Runs:
    """Make ``Runs`` from experiments: name them, choose a direction, and take their values.

    ``source`` is where they come from, for messages.
    """
    direction, curve = options.direction, options.curve
    if direction is not None:
        sign_of(direction)
    if direction is None and not any(one.direction for one in experiments):
        raise RefusedIncomplete(NO_DIRECTION, {"direction": "minimize"})
    chosen = choose_direction(experiments, direction, source.label, "experiments")
    selected = [one for one in experiments if one.direction in (None, chosen)]
    records = list[Run]()
    for one, name in name_experiments(selected, options):
        time, value = trace_values(one, curve, chosen)
        records.append(
            Run(**name._asdict(), time=time, value=value, until=one.until, status=one.status)
        )
    with prefix_errors(source.label):
        best = curve != "chosen"
        return Runs.from_records(records, direction=chosen, clock=options.clock, best_so_far=best)


def trace_values(
    experiment: Experiment, curve: str, direction: Direction
) -> tuple[list[float], list[float]]:
    """Return the times and values to use: all, the last of each trial, or those of the choice.

    >>> reports = [Report("a", 1, 5.0), Report("b", 2, 2.0), Report("a", 3, 4.0)]
    >>> experiment = Experiment("x", "x", reports, until=9)
    >>> [trace_values(experiment, curve, "minimize") for curve in CURVES]
    [([1, 2, 3], [5.0, 2.0, 4.0]), ([2, 3], [2.0, 4.0]), ([1, 2], [5.0, 2.0]), ([9], [2.0])]
    """
    counting = [report for report in experiment.reports if report.value is not None]
    if curve == "last":
        last = {report.trial: report for report in counting}
        counting = [report for report in counting if last[report.trial] is report]
    if curve in ("chosen", "final"):
        sign = sign_of(direction)
        choices = [report for report in counting if report.choice is not None]
        if not choices:  # nothing else is stored that could choose
            choices = [report._replace(choice=report.value) for report in counting]
        best, counting = math.inf, []
        for report in choices:
            if sign * float(report.choice or 0.0) < best:
                best = sign * float(report.choice or 0.0)
                counting.append(report)
        if curve == "final":
            counting = [report._replace(time=experiment.until) for report in counting[-1:]]
    return [report.time for report in counting], [float(r.value or 0.0) for r in counting]


# Names


def name_experiments(
    experiments: Sequence[Experiment], naming: TrialOptions
) -> list[tuple[Experiment, RunName]]:
    """Return each experiment that can be named, with its algorithm, instance and repetition.

    ``names=`` gives the fields of a label; a label that does not fit is left out with a warning.
    Without it, attributes named algorithm and instance count, and then a label of the form
    ``algorithm__instance__seed``. Without a repetition, experiments of the same algorithm and
    instance are numbered in their order.

    >>> experiments = [Experiment(label, "file", [], 0.0) for label in ("CMA__f1", "DE__f1__3")]
    >>> [name for _, name in name_experiments(experiments, TrialOptions())]
    [RunName(algorithm='CMA', instance='f1', repetition=0), \
RunName(algorithm='DE', instance='f1', repetition=3)]
    """
    labels = [one.label for one in experiments]
    pattern = None if naming.names is None else PathPattern(naming.names)
    named, left_out = list[tuple[Experiment, RunName]](), list[str]()
    seen: Counter[tuple[str, str]] = Counter()
    for one in experiments:
        with prefix_errors(one.place):
            fields = split_label(one.label) if pattern is None else pattern.fields(*[one.label] * 2)
            if fields is None:
                left_out.append(one.label)
                continue
            known = {**one.attributes, **fields} if pattern else {**fields, **one.attributes}
            columns = [naming.instance] if isinstance(naming.instance, str) else naming.instance
            missing = [name for name in (naming.algorithm, *columns) if not _is_text(known, name)]
            if missing:
                raise RefusedIncomplete(*_describe_missing(one, missing, labels, naming))
            texts = {name: to_name(known[name]) for name in (naming.algorithm, *columns)}
            algorithm, instance = texts[naming.algorithm], texts[columns[0]]
            if len(columns) > 1:
                instance = ", ".join(f"{name}={texts[name]}" for name in columns)
            number = _find_repetition(fields, known, naming)
            if number is None:
                number = seen[algorithm, instance]
                seen[algorithm, instance] += 1
        named.append((one, RunName(algorithm, instance, number)))
    if not named:
        raise RefusedIncomplete(
            ("nothing fits ", Argument("names", naming.names), f": the first is {labels[0][:80]!r}")
        )
    if left_out:
        warn(
            f"{len(left_out):,} of {len(labels):,} experiments do not fit ",
            Argument("names", naming.names),
            f" and were left out: {format_list(left_out, 4)}",
        )
    return named


def split_label(label: str) -> dict[str, str]:
    """Split a label ``algorithm__instance__seed`` into its parts; {} if it has another form.

    >>> split_label("tpe__sphere__3"), split_label("tpe-sphere-3")
    ({'algorithm': 'tpe', 'instance': 'sphere', 'repetition': '3'}, {})
    """
    parts = label.split("__")
    if len(parts) == 2 and all(parts):
        return {"algorithm": parts[0], "instance": parts[1]}
    if len(parts) == 3 and all(parts) and re.fullmatch("[0-9]{1,18}", parts[2]):
        return {"algorithm": parts[0], "instance": parts[1], "repetition": parts[2]}
    return {}


def _is_text(known: Mapping[str, Any], name: str) -> bool:
    return isinstance(known.get(name), str | int | float) and to_name(known[name]) != ""


def _find_repetition(
    fields: Mapping[str, str], known: Mapping[str, Any], naming: TrialOptions
) -> int | None:
    """Return the repetition number in the label, else in the attributes; None if there is none."""
    candidates = (naming.repetition,) if naming.repetition else REPETITION_COLUMNS
    name = next((name for where in (fields, known) for name in candidates if name in where), None)
    if name is None:
        if naming.repetition:
            raise DataError(f"has no attribute {naming.repetition!r}, which repetition= names")
        return None
    text = to_name(known[name]) if isinstance(known[name], str | int | float) else ""
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise DataError(f"the {name} {str(known[name])[:40]!r} is not a whole number")
    return int(text)


def _describe_missing(
    one: Experiment, missing: Sequence[str], labels: Sequence[str], naming: TrialOptions
) -> tuple[Text, dict[str, Any]]:
    """Describe an experiment without a known name, and propose arguments that give one."""
    stored = [
        str(name)
        for name, value in one.attributes.items()
        if isinstance(value, str | int) and not str(name).startswith("mlflow.")
    ]
    attributes = f" (stored are {format_list(stored, 8)})" if stored else ""
    proposed = _propose_names(labels)
    example = proposed.get("names", "{algorithm}__{instance}__{repetition}")
    advice: Text = ("pass ", Argument("names", example), ", or another pattern of such names")
    if naming.names is not None:
        advice, proposed = (f"add {' and '.join(missing)} to ", Argument("names", naming.names)), {}
    why: Text = (
        f"{one.place}: {one.label[:80]!r} does not tell {' and '.join(missing)}; ",
        advice,
        "; or say what is stored, such as ",
        Argument("algorithm", "..."),
        attributes,
    )
    return why, proposed


def _propose_names(labels: Sequence[str]) -> dict[str, str]:
    """Propose ``names=`` from the experiment labels that have the most frequent separators."""
    separators = [re.sub(r"[^-_./]", "", label) for label in labels]
    (most_frequent, _), *_ = Counter(separators).most_common(1)
    alike = [name for name, own in zip(labels, separators, strict=True) if own == most_frequent]
    pattern = propose_pattern(alike, ["algorithm", "instance"])
    return {} if pattern is None else {"names": pattern}


def warn_of_left_out(what: str, labels: Sequence[str], why: str, label: str) -> None:
    """Warn that experiments are left out, with the names of some."""
    if labels:
        warn(
            f"{label}: {format_count(len(labels), what)} left out, {why}: {format_list(labels, 4)}"
        )


def leave_out_several_objectives(places: Sequence[str], n_runs: int, label: str) -> None:
    """Warn that runs with several objectives are left out; raise ``DataError`` if all are."""
    if len(places) == n_runs:
        raise DataError(
            f"{places[0]}: has several objectives, and runs are compared by one value; "
            "read only runs with one objective"
        )
    warn_of_left_out("run", places, "since they have several objectives", label)


# Stored values


def parse_json(text: str, where: str) -> Any:
    """Parse JSON in which Infinity and NaN may occur; raise ``DataError`` with the place.

    >>> parse_json("[1, Infinity]", "line 3")
    [1, inf]
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f", line {error.lineno}" if "\n" in text else ""
        raise DataError(f"{where}{line}: not valid JSON: {error.msg}") from None
    except (RecursionError, ValueError):  # a whole number of thousands of digits
        raise DataError(
            f"{where}: not valid JSON: nested too deeply, or a number is too long"
        ) from None


def get_member(record: Any, key: str, where: str) -> Any:
    """Return the value of a JSON object's key; raise ``DataError`` if the key is missing."""
    if not isinstance(record, dict) or key not in record:
        raise DataError(f"{where}: expected an object with {key!r}")
    return record[key]


def to_number(value: Any, where: str) -> float:
    """Return a stored number as a float, which may be infinite or nan.

    >>> to_number(3, "line 1")
    3.0
    """
    try:
        if not isinstance(value, bool) and isinstance(value, int | float):
            return float(value)
    except OverflowError:
        pass
    raise DataError(f"{where}: {str(value)[:40]!r} is not a number")


def to_value(value: Any, where: str) -> float | None:
    """Return a stored value as a float; ``None`` if it is missing or nan."""
    number = math.nan if value is None else to_number(value, where)
    return None if math.isnan(number) else number


def to_seconds(value: Any, where: str) -> float:
    """Return a stored time in seconds, which must be finite."""
    number = to_number(value, where)
    if not math.isfinite(number):
        raise DataError(f"{where}: the time is {number}, expected a finite number")
    return number
