r"""``load``: read a race from a TOML file, with its solvers, instances, question and limits.

::

    times = { from = 1, to = 300, n = 30 }      # or a list
    direction = "minimize"
    clock = "wall"
    store = "race.db"
    seed = 1

    [solvers.maxsat]
    command = ["./maxsat", "--seed={seed}", "{instance}"]
    pattern = '^o (?P<value>\d+)'

    [solvers.own]
    python = "project.search:solve"

    [instances]
    files = "instances/*.wcnf"                  # or names = ["a", "b"], or python = "module:name"

    [question]                                  # what to find out; by default the Pareto set
    certainty = 0.95                            # or kind = "Choice", preference = { at = 60 }

    [budget]
    deadline = "8h"                             # from now on; or "18:30", or a date and time

    [limits]
    memory = 4_000_000_000

    [fit]
    prior = "GP"                                # or { name = "GP", kernel = "matern52" }
    evidence = "rankings"

Paths are relative to the file: programs are started in its folder, and instances are named relative
to it, independent of the current folder. Python modules are imported; nothing else is executed.
"""

import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from polarbear.data import grid
from polarbear.data.names import suggest_name
from polarbear.errors import Argument, DataError, ReadCall, SolverError, render_text
from polarbear.racing.budget import Budget
from polarbear.racing.questions.question import Question
from polarbear.racing.questions.stored import BY_NAME, question_from_plain
from polarbear.running.solvers.commands import Command
from polarbear.running.solvers.exceptions import describe_exception
from polarbear.running.solvers.instances import Instances
from polarbear.running.solvers.setup import Limits, Setup

MAX_FILE_BYTES = 1_000_000
"""Larger files are refused before they are parsed: some take hours."""

_TOP_KEYS = (
    "times",
    "direction",
    "clock",
    "store",
    "seed",
    "solvers",
    "instances",
    "question",
    "budget",
    "limits",
    "fit",
)
_REQUIRED_KEYS = {
    "times": "the times at which algorithms are compared, as in times = [1, 10, 100]",
    "direction": 'direction = "minimize" or direction = "maximize"',
    "solvers": "a table for each, as in [solvers.mine]",
    "instances": 'what to run on, as in [instances] with files = "*.cnf"',
}
_INSTANCE_KEYS = ("files", "names", "python")
_COMMAND_KEYS = (
    "command",
    "pattern",
    "clock",
    "ok_exit_codes",
    "include_stderr",
    "use_pty",
    "ended",
)
_QUESTION_FIELDS = [field.name for one in BY_NAME.values() for field in fields(one)]
_QUESTION_KEYS = tuple(
    key
    for key in dict.fromkeys(["kind", *_QUESTION_FIELDS])
    if key != "fit"  # a table of its own
)
_BUDGET_KEYS = tuple(field.name for field in fields(Budget))
_LIMIT_KEYS = tuple(field.name for field in fields(Limits))
_PLACES = {
    "at the top of the file, before the first [table]": _TOP_KEYS,
    "under [question]": _QUESTION_KEYS,
    "under [budget]": _BUDGET_KEYS,
    "under [limits]": _LIMIT_KEYS,
    "under [fit]": ("prior", "method", "evidence", "abs_tol", "rel_tol", "ties", "weights"),
    "under [instances]": ("files", "names"),
    "under [solvers.NAME]": _COMMAND_KEYS,
}
"""Where each key of a race file belongs, for the message about a key in another table."""


@dataclass(frozen=True)
class Configuration:
    """The content of a race file: solvers, instances, question, budget, store and seed."""

    setup: Setup
    question: Question
    budget: Budget
    store: str | None
    seed: int


def load(path: str | Path) -> Configuration:
    """Read a race from a TOML file; error messages name the table and the key."""
    path = Path(path)
    try:
        return _make_configuration(_parse(_read(path)), path.parent)
    except (SolverError, DataError) as error:
        raise DataError(f"{path}: {error}") from None


@contextmanager
def _locate_errors(*path: str) -> Iterator[None]:
    """Add the table to errors that are raised inside ``with``."""
    try:
        yield
    except (SolverError, TypeError, ValueError) as error:
        table = f"[{'.'.join(path)}] " if path else ""
        raise DataError(table, render_text(error, _write_key)) from None


def _write_key(part: Argument | ReadCall) -> str:
    return f"{part.name} = {part.value!r}" if isinstance(part, Argument) else str(part)


def _read(path: Path) -> str:
    """Read the text of a race file; raise an error for texts that the parser cannot take."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror}") from None
    if content.startswith(b"SQLite format"):
        raise DataError("this is the store of a race: pass the TOML file of the race instead")
    if len(content) > MAX_FILE_BYTES:
        raise DataError(
            f"the file has more than {MAX_FILE_BYTES:,} bytes: pass the TOML file of a race"
        )
    # One name of very many parts takes the parser very long, however small the file is.
    if any(line.partition(b"=")[0].count(b".") > 100 for line in content.splitlines()):
        raise DataError("a key of the file has more than 100 parts between dots: shorten it")
    try:
        return content.decode()
    except ValueError as error:
        raise DataError(f"the file is not text: {error}") from None


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise DataError("the file is not TOML: its brackets are nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"the file is not TOML: {error}") from None


def _make_configuration(plain: dict[str, Any], folder: Path) -> Configuration:
    """Make the configuration that a parsed race file describes; ``folder`` holds the file."""
    _check_keys(plain, _TOP_KEYS)
    for name, advice in _REQUIRED_KEYS.items():
        if name not in plain:
            raise DataError(f"the key {name} is missing: {advice}")
    asked, spent = _get_table(plain, "question"), _get_table(plain, "budget")
    limits_table = _get_table(plain, "limits")
    _check_keys(asked, _QUESTION_KEYS, "question")
    _check_keys(spent, _BUDGET_KEYS, "budget")
    _check_keys(limits_table, _LIMIT_KEYS, "limits")
    with _locate_errors("question"):
        question = question_from_plain(asked)
    with _locate_errors("budget"):
        budget = Budget(**spent).resolve_deadline(time.time())
    with _locate_errors("limits"):
        limits = Limits(**limits_table)
    fit = _get_table(plain, "fit")
    with _locate_errors("fit"):
        question = replace(question, fit=fit)
        _ = question.model  # it checks the options
    if isinstance(plain["times"], dict):
        _check_keys(plain["times"], ("from", "to", "n", "spacing"), "times")
    with _locate_errors("times"):
        times = grid.check_times(_make_times(plain["times"]))
    solvers = {
        name: _make_solver(_get_table(plain["solvers"], name, "solvers"), name, folder)
        for name in _get_table(plain, "solvers")
    }
    instances = _make_instances(_get_table(plain, "instances"), folder)
    with _locate_errors():
        setup = Setup.of(
            solvers,
            instances,
            times=times,
            direction=plain["direction"],
            clock=plain.get("clock"),
            limits=limits,
        )
    return Configuration(
        setup=setup,
        question=question,
        budget=budget,
        store=_get_store(plain, folder),
        seed=_get_seed(plain),
    )


def _get_store(plain: Mapping[str, Any], folder: Path) -> str | None:
    """Return the URL of the store, or its path relative to the folder of the race file."""
    store = plain.get("store")
    if store is not None and not isinstance(store, str):
        raise DataError(f"store = {store!r}: expected the path of a file, or the URL of a database")
    return store if store is None or "://" in store else str(folder / store)


def _get_seed(plain: Mapping[str, Any]) -> int:
    seed = plain.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise DataError(f"seed = {seed!r}: expected a whole number")
    return seed


def _make_solver(table: Mapping[str, Any], name: str, folder: Path) -> Any:
    """Make a solver from its table: a command, or a Python function to import."""
    path = ("solvers", name)
    if ("command" in table) == ("python" in table):
        raise DataError(
            f'[solvers.{name}] needs either command = [...] or python = "module:function"'
        )
    if "python" in table:
        _check_keys(table, ("python",), *path)
        return _import_object(table["python"], folder)
    _check_keys(table, _COMMAND_KEYS, *path)
    if "pattern" not in table:
        raise DataError(f"[solvers.{name}] needs a pattern that finds values in the output")
    options: dict[str, Any] = {k: v for k, v in table.items() if k != "command"}
    with _locate_errors(*path):
        if "ok_exit_codes" in options:
            options["ok_exit_codes"] = tuple(options["ok_exit_codes"])
        return Command(table["command"], **options, folder=str(folder.absolute()))


def _make_instances(table: Mapping[str, Any], folder: Path) -> Any:
    """Make instances from the files or names in a table, or import the object it names."""
    _check_keys(table, _INSTANCE_KEYS, "instances")
    if len(table) != 1:
        raise DataError("[instances] needs one of files, names and python")
    if "python" in table:
        return _import_object(table["python"], folder)
    with _locate_errors("instances"):
        if "names" in table:
            return Instances.of(_check_texts(table["names"], "names"))
        files = table["files"]
        if not isinstance(files, str):
            files = _check_texts(files, "files")
        return Instances.from_files(files, folder)


def _make_times(times: Any) -> Any:
    """Make times from a table such as {from = 1, to = 100}; a list is returned unchanged."""
    if not isinstance(times, dict):
        return times
    spacing = times.get("spacing", "log")
    if spacing not in ("log", "linear") or not {"from", "to"} <= set(times):
        raise DataError(
            f"times = {times!r}: expected a table such as "
            '{from = 1, to = 100, n = 30, spacing = "log"}, or a list'
        )
    make_grid = grid.log if spacing == "log" else grid.linear
    return make_grid(times["from"], times["to"], times.get("n", 50))


def _import_object(name: Any, folder: Path) -> Any:
    """Import an object given as "module:name", also from the folder of the race file."""
    module, colon, attribute = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not (module and colon and attribute):
        raise DataError(f'python = {name!r}: expected "module:name"')
    file_folder = str(folder.resolve())
    if file_folder not in sys.path:
        sys.path.insert(0, file_folder)
    try:
        imported: Any = import_module(module)
    except Exception as error:
        why = _explain_missing_module(error, module, folder) or describe_exception(error)
        raise DataError(f"python = {name!r}: {why}") from None
    for part in attribute.split("."):
        if not hasattr(imported, part):
            why = f"{module} has no {attribute!r}"
            raise DataError(f"python = {name!r}: {why}")
        imported = getattr(imported, part)
    return imported


def _explain_missing_module(error: Exception, module: str, folder: Path) -> str:
    """Return a message if the module itself is missing; "" if an import inside it failed."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if not name or not f"{module}.".startswith(f"{name}."):
        return ""
    return f"there is no module {name!r}, neither beside the file, in {folder}, nor installed"


def _get_table(plain: Mapping[str, Any], name: str, *parents: str) -> Mapping[str, Any]:
    """Return a table by name, empty if it is absent; raise an error for other types."""
    table = plain.get(name, {}) if isinstance(plain, dict) else None
    if not isinstance(table, dict):
        header = ".".join((*parents, name))
        raise DataError(f"{header} = {table!r}: expected a table [{header}]")
    return table


def _check_texts(texts: Any, name: str) -> list[str]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{name} = {texts!r}: expected a list of texts")
    return texts


def _check_keys(table: Mapping[str, Any], allowed: Iterable[str], *path: str) -> None:
    """Raise an error for an unknown key, with the table it belongs to, or else a similar key."""
    for name in table:
        if name not in allowed:
            header = f"[{'.'.join(path)}] " if path else ""
            places = [place for place, keys in _PLACES.items() if name in keys]
            advice = (
                f"it belongs {' or '.join(places)}" if places else suggest_name(name, list(allowed))
            )
            raise DataError(f"{header}unknown key {name!r}; {advice}")
