"""Studies as Optuna stores them: in SQLite, in journals, in other databases, and as objects."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from polarbear.data.run import Direction
from polarbear.errors import DataError, MissingDependency, require
from polarbear.readers.source import Source, prefix_errors
from polarbear.readers.sqlite_files import find_missing_columns, list_tables, open_database
from polarbear.readers.trials import get_member, parse_json

SCHEMA_VERSION = 12
"""The version of SQLite storages that is read, which Optuna has written since 1.3."""

_COLUMNS = {
    "studies": ["study_id", "study_name"],
    "study_directions": ["study_id", "direction", "objective"],
    "study_user_attributes": ["study_id", "key", "value_json"],
    "trials": ["trial_id", "number", "study_id", "state", "datetime_start", "datetime_complete"],
    "trial_user_attributes": ["trial_id", "key", "value_json"],
    "trial_values": ["trial_id", "objective", "value", "value_type"],
}
_STATES = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")
ENDED_STATES = ("COMPLETE", "PRUNED", "FAIL")
_DIRECTIONS: tuple[Direction | None, ...] = (None, "minimize", "maximize")
_INFINITIES = {"INF_POS": float("inf"), "INF_NEG": float("-inf")}
JOURNAL_START = re.compile(rb'\s*\{[^\n]{0,200}"op_code"\s*:')


@dataclass
class StoredTrial:
    """A trial of a study: its state, times and values, and the user attributes."""

    number: int
    state: str
    start: float | None = None
    end: float | None = None
    values: Sequence[Any] = ()
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass
class StoredStudy:
    """A study of Optuna and its trials, from a database, a journal file or a ``Study`` object."""

    name: str
    place: str
    directions: Sequence[Direction | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    trials: list[StoredTrial] = field(default_factory=list)


# SQLite


def load_database(source: Source, file: str) -> list[StoredStudy]:
    """Load the studies of an SQLite database; none if another program wrote the database."""
    with open_database(source, file) as connection, prefix_errors(file):
        tables = list_tables(connection)
        if not {"studies", "trials"} <= tables.keys():
            source.used.discard(file)
            return []
        _check_version(connection, tables)
        directions: dict[Any, list[Direction | None]] = {}
        for study, name in connection.execute(
            "SELECT study_id, direction FROM study_directions ORDER BY study_id, objective"
        ):
            directions.setdefault(study, []).append(_parse_direction(str(name).lower()))
        studies = {
            study: StoredStudy(str(name), file, directions.get(study, []))
            for study, name in connection.execute(
                "SELECT study_id, study_name FROM studies ORDER BY study_id"
            )
        }
        for study, key, text in connection.execute(
            "SELECT study_id, key, value_json FROM study_user_attributes"
        ):
            if study in studies:
                where = f"study {studies[study].name!r}, attribute {key!r}"
                studies[study].attributes[str(key)] = parse_json(str(text), where)
        trials = dict[Any, StoredTrial]()
        for row in connection.execute(
            "SELECT t.trial_id, t.study_id, t.number, t.state, t.datetime_start, "
            "t.datetime_complete, v.value, v.value_type FROM trials t LEFT JOIN trial_values v "
            "ON v.trial_id = t.trial_id AND v.objective = 0 ORDER BY t.study_id, t.number"
        ):
            if row[1] in studies:
                trials[row[0]] = _parse_row(row[2:], f"trial_id {row[0]}")
                studies[row[1]].trials.append(trials[row[0]])
        for trial, key, text in connection.execute(
            "SELECT trial_id, key, value_json FROM trial_user_attributes"
        ):
            if trial in trials:
                where = f"trial_id {trial}, attribute {key!r}"
                trials[trial].attributes[str(key)] = parse_json(str(text), where)
        return list(studies.values())


def _check_version(connection: Any, tables: Mapping[str, set[str]]) -> None:
    """Raise ``DataError`` if this reader does not know the schema version of a storage."""
    version = None
    if "schema_version" in tables.get("version_info", set()):
        row = connection.execute("SELECT schema_version FROM version_info").fetchone()
        version = row[0] if row else None
    if version != SCHEMA_VERSION:
        raise DataError(
            f"a storage of Optuna with schema version {version}, but this PolarBear reads version "
            f"{SCHEMA_VERSION}: pass the studies, as loaded by optuna.load_study"
        )
    if missing := find_missing_columns(tables, _COLUMNS):
        raise DataError(
            f"a storage of Optuna before 3.0, without {missing[0]}: copy the file, and run "
            "`optuna storage upgrade --storage sqlite:///COPY` on the copy"
        )


def _parse_row(row: Sequence[Any], where: str) -> StoredTrial:
    """Make a trial from a database row: number, state, start, end, value and type of value."""
    number, state, start, end, value, kind = row
    if not isinstance(number, int):
        raise DataError(f"{where}: the trial number {number!r} is not a whole number")
    if state not in _STATES:
        raise DataError(f"{where}: unknown state {state!r} of trial {number}")
    # SQLite has local times without a zone. Only differences count, so any zone will do.
    start, end = (None if t is None else _parse_time(t, where, zone=UTC) for t in (start, end))
    return StoredTrial(
        number=number, state=state, start=start, end=end, values=[_INFINITIES.get(kind, value)]
    )


def _parse_time(text: Any, where: str, zone: Any = None) -> float:
    try:
        time = datetime.fromisoformat(text)
        return (time.replace(tzinfo=zone) if zone else time).timestamp()
    except (TypeError, ValueError, OverflowError, OSError):
        raise DataError(f"{where}: {str(text)[:40]!r} is not a date and time") from None


def _parse_direction(name: str) -> Direction | None:
    return next((direction for direction in _DIRECTIONS if direction == name), None)


# Journals


def replay_journal(lines: Sequence[str], file: str) -> list[StoredStudy]:
    """Replay the operations in a journal file, as Optuna does when it opens one."""
    journal = _Journal(file)
    operations: dict[int, Callable[[dict[str, Any], str], None]] = {
        0: journal.create_study,
        1: journal.delete_study,
        2: journal.set_study_attribute,
        4: journal.create_trial,
        6: journal.end_trial,
        8: journal.set_trial_attribute,
    }
    last = max((i for i, line in enumerate(lines, start=1) if line.strip()), default=0)
    for i, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"line {i}"
        try:
            operation = parse_json(line, where)
        except DataError:
            if i == last:  # a writer that was killed leaves half a line
                break
            raise
        code = get_member(operation, "op_code", where)
        if not isinstance(code, int) or not 0 <= code <= 10:
            raise DataError(f"{where}: the operation {code!r} is not known")
        if code in operations:
            operations[code](operation, where)
    return [study for study in journal.studies.values() if study is not None]


class _Journal:
    """The studies and trials of a journal file, after the operations replayed so far."""

    def __init__(self, file: str):
        self.file = file
        self.studies: dict[int, StoredStudy | None] = {}
        self.names: set[str] = set()
        self.trials: list[StoredTrial] = []

    def create_study(self, operation: dict[str, Any], where: str) -> None:
        name = str(get_member(operation, "study_name", where))
        if name in self.names:
            return
        codes = get_member(operation, "directions", where)
        if not isinstance(codes, list) or not all(code in (0, 1, 2) for code in codes):
            raise DataError(
                f"{where}: directions={codes!r}: expected a list of 1 (minimize) and 2 (maximize)"
            )
        directions = [_DIRECTIONS[code] for code in codes]
        self.names.add(name)
        self.studies[len(self.studies)] = StoredStudy(name, self.file, directions)

    def delete_study(self, operation: dict[str, Any], where: str) -> None:
        if study := self._get_study(operation, where):
            self.names.remove(study.name)
            self.studies[operation["study_id"]] = None  # its number is not used again

    def set_study_attribute(self, operation: dict[str, Any], where: str) -> None:
        if study := self._get_study(operation, where):
            study.attributes |= _get_attributes(operation, "user_attr", where)

    def create_trial(self, operation: dict[str, Any], where: str) -> None:
        study = self._get_study(operation, where)
        if study is None:
            return
        trial = StoredTrial(
            len(study.trials),
            _parse_state(operation.get("state", 0), where),
            values=_get_values(operation, where),
            attributes=_get_attributes(operation, "user_attrs", where, {}),
        )
        _set_times(trial, operation, where)
        study.trials.append(trial)
        self.trials.append(trial)

    def end_trial(self, operation: dict[str, Any], where: str) -> None:
        """Apply a journal entry that sets the state of a trial, and perhaps values and times."""
        trial = self._get_open_trial(operation, where)
        if trial is None:
            return
        state = _parse_state(get_member(operation, "state", where), where)
        if state == trial.state == "RUNNING":  # another process was first
            return
        trial.state = state
        trial.values = _get_values(operation, where) or trial.values
        _set_times(trial, operation, where)

    def set_trial_attribute(self, operation: dict[str, Any], where: str) -> None:
        if trial := self._get_open_trial(operation, where):
            trial.attributes |= _get_attributes(operation, "user_attr", where)

    def _get_study(self, operation: dict[str, Any], where: str) -> StoredStudy | None:
        number = get_member(operation, "study_id", where)
        return self.studies.get(number) if isinstance(number, int) else None

    def _get_open_trial(self, operation: dict[str, Any], where: str) -> StoredTrial | None:
        number = get_member(operation, "trial_id", where)
        if not isinstance(number, int) or not 0 <= number < len(self.trials):
            return None
        trial = self.trials[number]
        return None if trial.state in ENDED_STATES else trial


def _get_attributes(
    operation: dict[str, Any], key: str, where: str, default: Any = None
) -> dict[str, Any]:
    attributes = operation.get(key, default)
    if not isinstance(attributes, dict):
        raise DataError(f"{where}: expected an object with {key!r}")
    return dict(attributes)


def _get_values(operation: dict[str, Any], where: str) -> list[Any]:
    values = operation.get("values")
    if values is None:
        values = [] if operation.get("value") is None else [operation["value"]]
    if not isinstance(values, list):
        raise DataError(f"{where}: expected a list of values, got {str(values)[:40]!r}")
    return values


def _parse_state(code: Any, where: str) -> str:
    if not isinstance(code, int) or not 0 <= code < len(_STATES):
        raise DataError(f"{where}: the state {str(code)[:40]!r} is not known")
    return _STATES[code]


def _set_times(trial: StoredTrial, operation: dict[str, Any], where: str) -> None:
    if operation.get("datetime_start") is not None:
        trial.start = _parse_time(operation["datetime_start"], where)
    if operation.get("datetime_complete") is not None:
        trial.end = _parse_time(operation["datetime_complete"], where)


# Objects and URLs


def copy_study(study: Any) -> StoredStudy:
    """Copy names, directions, attributes and trials from an ``optuna.Study`` object."""
    place = f"study {study.study_name!r}"
    stored = StoredStudy(
        str(study.study_name),
        place,
        [_parse_direction(str(direction.name).lower()) for direction in study.directions],
        dict(getattr(study, "user_attrs", {})),
    )
    for trial in study.trials:
        start, end = (
            None if time is None else _parse_time(time.isoformat(), place, zone=UTC)
            for time in (trial.datetime_start, trial.datetime_complete)
        )
        stored.trials.append(
            StoredTrial(
                number=trial.number,
                state=str(trial.state.name),
                start=start,
                end=end,
                values=list(trial.values or ()),
                attributes=dict(trial.user_attrs),
            )
        )
    return stored


def load_studies(url: str) -> list[StoredStudy]:
    """Load all studies of a storage URL with Optuna itself, without writing to the database."""
    shown = _hide_password(url)
    try:
        optuna = require("optuna")
    except MissingDependency as error:
        raise MissingDependency(
            f"{shown}: to read this database, the package optuna is needed: {error}"
        ) from None
    try:
        if url.startswith("redis"):
            storage = optuna.storages.get_storage(url)
        else:
            # Without a pool, connections are closed as soon as they are not used.
            pool = {"poolclass": require("sqlalchemy.pool").NullPool}
            storage = optuna.storages.RDBStorage(url, pool, skip_table_creation=True)
        loaded = [
            copy_study(optuna.load_study(study_name=name, storage=storage))
            for name in optuna.get_all_study_names(storage)
        ]
        storage.remove_session()
    except Exception as error:  # of Optuna, SQLAlchemy or a driver
        cause = error.__cause__ or error
        why = str(cause).strip().split("\n", 1)[0].replace(url, shown)
        raise DataError(f"{shown}: Optuna cannot read it: {type(cause).__name__}: {why}") from None
    if not loaded:
        raise DataError(f"{shown}: holds no studies; check the URL")
    return loaded


def _hide_password(url: str) -> str:
    parts = urlsplit(url)
    return url if parts.password is None else url.replace(f":{parts.password}@", ":***@")
