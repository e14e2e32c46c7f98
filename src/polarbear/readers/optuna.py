"""Reader of Optuna: SQLite storages, journal files, storage URLs and ``Study`` objects.

A study is a run, and each of its trials that ended is an evaluation. Optuna itself loads the
studies of files and URLs. Files are copied first, so that nothing is written to them.
"""

import re
import sqlite3
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from polarbear._text import format_list
from polarbear.data.run import Direction
from polarbear.errors import DataError, MissingDependency, require
from polarbear.readers.source import Refused, Source, prefix_errors
from polarbear.readers.sqlite_files import SIGNATURE, list_tables, open_database, read_start
from polarbear.readers.trials import (
    Experiment,
    Trial,
    TrialOptions,
    make_trial_reader,
    measure_trials,
    to_value,
    warn_of_left_out,
)

OBJECTIVE = "objective"
"""The name of the value that a study optimises, beside the user attributes of its trials."""

_URL = re.compile(r"[a-z][a-z0-9+]*://")
_JOURNAL_START = re.compile(rb'\s*\{[^\n]{0,200}"op_code"\s*:')
_ENDED_STATES = ("COMPLETE", "PRUNED", "FAIL")
_DIRECTIONS: dict[str, Direction] = {"MINIMIZE": "minimize", "MAXIMIZE": "maximize"}


class _Study(NamedTuple):
    """A study of Optuna, loaded: its trials are Optuna's own."""

    name: str
    place: str
    directions: Sequence[Direction | None]
    attributes: dict[str, Any]
    trials: Sequence[Any]


def load_optuna(source: Source, options: TrialOptions) -> list[Experiment]:
    """Load studies of Optuna from SQLite storages and journal files; a study is a run.

    "evaluations" counts the trials that ended; "seconds" counts from the first trial's start.
    Labels are the names of studies. Attributes are user attributes of studies. Values are the
    objective, or a user attribute of trials.
    """
    studies: Sequence[_Study] = source.memo.get("studies") or _load_files(source)
    options.check()
    several = [study.name for study in studies if len(study.directions) != 1]
    if len(several) == len(studies):
        raise DataError(
            f"{source.label}: every study has several objectives ({format_list(several, 4)}), "
            "but runs are compared by one value; pass a study with a single objective"
        )
    single = [study for study in studies if len(study.directions) == 1]
    warn_of_left_out("study", several, "since they have several objectives", source.label)
    if options.direction is not None:  # others may lack the attributes that are asked for
        single = [one for one in single if one.directions[0] in (None, options.direction)]
    experiments = list[Experiment]()
    for study in single:
        with prefix_errors(study.place):
            experiments.append(_make_experiment(study, options))
    return experiments


read_optuna = make_trial_reader(load_optuna, value=OBJECTIVE)


def wrap_studies(studies: Sequence[Any]) -> Source:
    """Return a source for ``read_optuna`` that has these studies, and no files."""
    source = Source("the studies", {}, {})
    source.memo["studies"] = [
        one if isinstance(one, _Study) else _copy(one, one.trials) for one in studies
    ]
    return source


def find_studies(source: object) -> list[Any] | None:
    """Return the studies in a source: an ``optuna.Study``, a list, or those of a storage URL.

    ``None`` if the source is something else. Nothing is imported to tell, so objects count that
    have trials, directions and the name of a study.

    >>> find_studies("results.csv") is None
    True
    """
    if isinstance(source, str):
        is_url = _URL.match(source) and not source.startswith("sqlite")
        return _load_url(source) if is_url else None
    several = source if isinstance(source, list | tuple) else [source]
    return list(several) if several and all(map(_is_study, several)) else None


def find_sqlite_path(source: object) -> str | None:
    """Return the path in an SQLAlchemy URL of SQLite; ``None`` for any other URL.

    >>> find_sqlite_path("sqlite:///studies.db"), find_sqlite_path("studies.db")
    ('studies.db', None)
    """
    match = (
        re.fullmatch(r"sqlite(\+\w+)?:///([^?]+)(\?.*)?", source)
        if isinstance(source, str)
        else None
    )
    return None if match is None else match[2]


def _make_experiment(study: _Study, options: TrialOptions) -> Experiment:
    wanted = str(options.value)
    _check_attributes(study, [wanted, *([options.chosen_by] if options.chosen_by else [])])
    trials = list[Trial]()
    for trial in study.trials:
        where = f"study {study.name!r}, trial {trial.number}"
        state, start, end = trial.state.name, trial.datetime_start, trial.datetime_complete
        if state not in _ENDED_STATES:
            continue
        if end is None:
            raise DataError(f"{where}: has ended ({state}), but the time of its end is not stored")
        counts = state == "COMPLETE" or (options.partial and state == "PRUNED")
        value = _get_value(trial, wanted, where) if counts else None
        choice = None
        if counts and options.chosen_by is not None:
            choice = _get_value(trial, options.chosen_by, where)
        trials.append(
            Trial(
                trial=trial.number,
                start=None if start is None else _to_seconds(start),
                end=_to_seconds(end),
                value=value,
                choice=choice,
            )
        )
    reports, until = measure_trials(trials, options.clock)
    return Experiment(
        label=study.name,
        place=study.place,
        reports=reports,
        until=until,
        direction=study.directions[0],
        attributes={"study": study.name, **study.attributes},
    )


def _check_attributes(study: _Study, wanted: Sequence[str]) -> None:
    """Raise ``DataError`` if no trial of a study has the requested user attribute."""
    complete = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    stored = {str(name) for trial in complete for name in trial.user_attrs}
    for name in wanted:
        if complete and name != OBJECTIVE and name not in stored:
            known = [OBJECTIVE, *sorted(stored)]
            raise DataError(
                f"study {study.name!r}: no trial has a user attribute {name!r}; "
                f"there are {format_list(known, 8)}"
            )


def _get_value(trial: Any, name: str, where: str) -> float | None:
    if name != OBJECTIVE:
        return to_value(trial.user_attrs.get(name), f"{where}, {name!r}")
    return to_value(trial.values[0] if trial.values else None, where)


def _to_seconds(time: datetime) -> float:
    # Optuna has local times without a zone. Only differences count, so any zone will do.
    return time.replace(tzinfo=UTC).timestamp()


def _is_study(source: object) -> bool:
    return all(hasattr(source, name) for name in ("trials", "directions", "study_name"))


# Loading


def _copy(study: Any, trials: Sequence[Any], place: str = "") -> _Study:
    """Return what is used of an ``optuna.Study``."""
    return _Study(
        name=str(study.study_name),
        place=place or f"study {study.study_name!r}",
        directions=[_DIRECTIONS.get(direction.name) for direction in study.directions],
        attributes=dict(getattr(study, "user_attrs", {})),
        trials=trials,
    )


def _load_files(source: Source) -> list[_Study]:
    studies = list[_Study]()
    for file in source.ending(".db", ".sqlite", ".sqlite3", ".journal", ".log", ".jsonl"):
        start = read_start(source, file, 256)
        if start.startswith(SIGNATURE):
            studies += _load_database(source, file)
        elif _JOURNAL_START.match(start):
            studies += _load_journal(source, file)
    if not studies:
        raise Refused("no file is a SQLite storage or a journal of Optuna with a study")
    return studies


def _load_database(source: Source, file: str) -> list[_Study]:
    """Load the studies of an SQLite database; none if another program wrote the database."""
    with TemporaryDirectory() as folder, open_database(source, file) as connection:
        if not {"studies", "trials", "version_info"} <= list_tables(connection).keys():
            source.used.discard(file)
            return []
        copy = Path(folder) / "copy.db"
        with closing(sqlite3.connect(copy)) as other:
            connection.backup(other)
        return _load_storage(file, lambda optuna: _open_url(optuna, f"sqlite:///{copy}"))


def _load_journal(source: Source, file: str) -> list[_Study]:
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.journal"
        copy.write_bytes(source.content(file))

        def open_journal(optuna: Any) -> Any:
            backend = require("optuna.storages.journal", extra="optuna").JournalFileBackend
            return optuna.storages.JournalStorage(backend(str(copy)))

        return _load_storage(file, open_journal)


def _load_url(url: str) -> list[_Study]:
    """Load all studies of a storage URL, without writing to the database."""
    loaded = _load_storage(_hide_password(url), lambda optuna: _open_url(optuna, url), url)
    if not loaded:
        raise DataError(f"{_hide_password(url)}: holds no studies; check the URL")
    return loaded


def _open_url(optuna: Any, url: str) -> Any:
    if url.startswith("redis"):
        return optuna.storages.get_storage(url)
    # Without a pool, connections are closed as soon as they are not used.
    pool = {"poolclass": require("sqlalchemy.pool").NullPool}
    return optuna.storages.RDBStorage(url, pool, skip_table_creation=True)


def _load_storage(place: str, open_storage: Callable[[Any], Any], url: str = "") -> list[_Study]:
    """Load all studies of a storage with Optuna itself."""
    try:
        optuna = require("optuna", extra="optuna")
    except MissingDependency as error:
        raise MissingDependency(f"{place}: Optuna is needed to read it: {error}") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Optuna, about functions that are new
        try:
            storage = open_storage(optuna)
            # Without samplers and copies, which load_study would make for each study.
            studies = [
                _copy(one, storage.get_all_trials(one._study_id, deepcopy=False), place)
                for one in storage.get_all_studies()
            ]
            storage.remove_session()
        except Exception as error:  # of Optuna, SQLAlchemy or a driver
            cause = error.__cause__ or error
            why = str(cause).strip().split("\n", 1)[0].replace(url or place, place)
            reason = f"{type(cause).__name__}: {why}"
            raise DataError(f"{place}: Optuna cannot read it: {reason}") from None
    return studies


def _hide_password(url: str) -> str:
    parts = urlsplit(url)
    return url if parts.password is None else url.replace(f":{parts.password}@", ":***@")
