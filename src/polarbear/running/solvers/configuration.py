r"""A race as a TOML file: what to run, for those who would rather not write Python.

::

    times = { from = 1, to = 300, n = 30 }      # or a list
    direction = "minimize"
    clock = "wall"
    store = "race.db"
    seed = 1

    [solvers.kissat]
    command = ["kissat", "--seed={seed}", "{instance}"]
    pattern = '^o (?P<value>\S+)'

    [solvers.own]
    python = "project.search:solve"

    [instances]
    files = "instances/*.cnf"                   # or names = ["a", "b"], or python = "module:name"

    [rules]
    alpha = 0.95
    deadline = "8h"                             # from now on; or "18:30", or a date and time

    [limits]
    memory = 4_000_000_000

    [fit]
    prior = "GP"                                # or { name = "GP", kernel = "matern52" }
    evidence = "rankings"

Paths are relative to the file: programs are started in its folder, and instances are named relative
to it, whatever folder the race is called from. Python is imported, and nothing else is run.
"""

import re
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from polarbear.data import grid
from polarbear.data.names import suggest_name
from polarbear.errors import DataError, SolverError
from polarbear.racing.model import Model
from polarbear.racing.rules import PAPER_FIT, Rules
from polarbear.running.solvers.commands import Command
from polarbear.running.solvers.exceptions import describe_exception
from polarbear.running.solvers.instances import Instances
from polarbear.running.solvers.setup import Limits, Setup
from polarbear.running.solvers.toml_lines import LINE, line_of

LARGEST = 1_000_000
"""Bytes of a file beyond which it is refused before it is parsed: some parse for hours."""

_TOP = (
    "times",
    "direction",
    "clock",
    "store",
    "seed",
    "solvers",
    "instances",
    "rules",
    "limits",
    "fit",
)
_MISSING = {
    "times": "the times at which one asks who is ahead, as in times = [1, 10, 100]",
    "direction": 'direction = "minimize" or direction = "maximize"',
    "solvers": "a table for each, as in [solvers.mine]",
    "instances": 'what to run on, as in [instances] with files = "*.cnf"',
}
_WORD, _PARAMETER = re.compile(r"\w+"), re.compile(r"^(\w+)=")
_COMMAND = ("command", "pattern", "clock", "exits", "errors", "terminal")


@dataclass(frozen=True)
class Configuration:
    """What a file says: setup of the runs, rules and model of the race, and where it is stored."""

    setup: Setup
    rules: Rules
    store: str | None
    seed: int
    fit: Mapping[str, Any]


class _Misplaced(SolverError):  # noqa: N818 (it says what is the case)
    """Something is wrong in a file, about this key or in this line."""

    def __init__(self, message: str, *place: str, line: int | None = None) -> None:
        super().__init__(message)
        self.place, self.line = place, line


def load(path: str | Path) -> Configuration:
    """Read a file; an error names what is wrong, and the line."""
    path = Path(path)
    text = ""
    try:
        text = _read(path)
        return _configuration(_parsed(text), path.parent)
    except _Misplaced as error:
        line = error.line or line_of(text, error.place)
        raise SolverError(f"{path}{f', line {line}' if line else ''}: {error}") from None
    except (SolverError, DataError) as error:
        raise SolverError(f"{path}: {error}") from None


@contextmanager
def _about(*place: str, keys: Mapping[str, Any]) -> Iterator[None]:
    """What goes wrong inside is about this place, and the key that the message begins with."""
    try:
        yield
    except _Misplaced:
        raise
    except (SolverError, TypeError, ValueError) as error:
        said = str(error).removeprefix("limits: ")
        word = _WORD.match(said)
        named = [key for key in keys if word and key == word[0]]
        named += [key for key, value in keys.items() if said.startswith(repr(value))]
        where = f"[{'.'.join(place)}] " if place else ""
        raise _Misplaced(where + _PARAMETER.sub(r"\1 = ", said), *place, *named[:1]) from None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise SolverError(f"cannot be read: {error.strerror}") from None
    if content.startswith(b"SQLite format"):
        raise SolverError("is the store of a race: what is meant is the TOML file that names it")
    if len(content) > LARGEST:
        raise SolverError(f"has more than {LARGEST:,} bytes, which no race needs")
    # One name of very many parts takes the parser very long, however small the file is.
    if any(line.partition(b"=")[0].count(b".") > 100 for line in content.splitlines()):
        raise SolverError("a name has more than 100 parts")
    try:
        return content.decode()
    except ValueError as error:
        raise SolverError(f"is not text: {error}") from None


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise SolverError("is not TOML: brackets in brackets without end") from None
    except tomllib.TOMLDecodeError as error:
        line = LINE.search(str(error))
        raise _Misplaced(f"is not TOML: {error}", line=int(line[1]) if line else None) from None


def _configuration(plain: dict[str, Any], folder: Path) -> Configuration:
    _known(plain, _TOP)
    for name in ("times", "direction", "solvers", "instances"):
        if name not in plain:
            raise SolverError(f"{name} is missing: {_MISSING[name]}")
    rules, limits = _table(plain, "rules"), _table(plain, "limits")
    _known(rules, ["preset", *(field.name for field in fields(Rules))], "rules")
    _known(limits, [field.name for field in fields(Limits)], "limits")
    with _about("rules", keys=rules):
        if not isinstance(rules.get("batch", []), list):
            raise SolverError(f"batch={rules['batch']!r}: expected two numbers, as in [8, 64]")
        by = Rules.from_plain(rules).resolve_deadline(time.time())
    with _about("limits", keys=limits):
        most = Limits(**limits)
    fit = _table(plain, "fit")
    if rules.get("preset") == "paper":
        fit = {**PAPER_FIT, **fit}
    with _about("fit", keys=fit):
        Model.of(fit)
    with _about("times", keys={}):
        times = grid.check_times(_times(plain["times"]))
    solvers = {
        name: _solver(_table(plain["solvers"], name, "solvers"), name, folder)
        for name in _table(plain, "solvers")
    }
    instances = _instances(_table(plain, "instances"), folder)
    with _about(keys=plain):
        setup = Setup.of(
            solvers,
            instances,
            times=times,
            direction=plain["direction"],
            clock=plain.get("clock"),
            limits=most,
        )
    return Configuration(setup, by, _store(plain, folder), _seed(plain), fit)


def _store(plain: Mapping[str, Any], folder: Path) -> str | None:
    store = plain.get("store")
    if store is not None and not isinstance(store, str):
        raise _Misplaced(f"store = {store!r}: expected a path or an address", "store")
    return store if store is None or "://" in store else str(folder / store)


def _seed(plain: Mapping[str, Any]) -> int:
    seed = plain.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise _Misplaced(f"seed = {seed!r}: expected a whole number", "seed")
    return seed


def _solver(table: Mapping[str, Any], name: str, folder: Path) -> Any:
    place = ("solvers", name)
    if ("command" in table) == ("python" in table):
        raise _Misplaced(
            f'[solvers.{name}] needs either command = [...] or python = "module:function"', *place
        )
    if "python" in table:
        _known(table, ("python",), *place)
        return _imported(table["python"], folder, *place)
    _known(table, _COMMAND, *place)
    if "pattern" not in table:
        raise _Misplaced(
            f"[solvers.{name}] needs a pattern that finds values in the output", *place
        )
    options: dict[str, Any] = {k: v for k, v in table.items() if k != "command"}
    with _about(*place, keys=table):
        if "exits" in options:
            options["exits"] = tuple(options["exits"])
        return Command(table["command"], **options, folder=str(folder.absolute()))


def _instances(table: Mapping[str, Any], folder: Path) -> Any:
    _known(table, ("files", "names", "python"), "instances")
    if len(table) != 1:
        raise _Misplaced("[instances] needs one of files, names and python", "instances")
    if "python" in table:
        return _imported(table["python"], folder, "instances")
    with _about("instances", keys=table):
        if "names" in table:
            return Instances.of(_texts(table["names"], "names"))
        files = table["files"]
        if not isinstance(files, str):
            files = _texts(files, "files")
        return Instances.from_files(files, folder)


def _times(times: Any) -> Any:
    if not isinstance(times, dict):
        return times
    _known(times, ("from", "to", "n", "spacing"), "times")
    spacing = times.get("spacing", "log")
    if spacing not in ("log", "linear") or not {"from", "to"} <= set(times):
        raise SolverError('times = {from = 1, to = 100, n = 30, spacing = "log" or "linear"}')
    made = grid.log if spacing == "log" else grid.linear
    return made(times["from"], times["to"], times.get("n", 50))


def _imported(name: Any, folder: Path, *place: str) -> Any:
    """What "module:name" names; modules beside the file are found."""
    module, colon, attribute = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not (module and colon and attribute):
        raise _Misplaced(f'python = {name!r}: expected "module:name"', *place, "python")
    beside = str(folder.resolve())
    if beside not in sys.path:
        sys.path.insert(0, beside)
    try:
        found: Any = import_module(module)
    except Exception as error:
        why = _absent(error, module, folder) or describe_exception(error)
        raise _Misplaced(f"python = {name!r}: {why}", *place, "python") from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            why = f"{module} has no {attribute!r}"
            raise _Misplaced(f"python = {name!r}: {why}", *place, "python")
        found = getattr(found, part)
    return found


def _absent(error: Exception, module: str, folder: Path) -> str:
    """That the module is not where modules are looked for; "" if it is another one that lacks."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if not name or not f"{module}.".startswith(f"{name}."):
        return ""
    return f"there is no module {name!r}, neither beside the file, in {folder}, nor installed"


def _table(plain: Mapping[str, Any], name: str, *before: str) -> Mapping[str, Any]:
    found = plain.get(name, {}) if isinstance(plain, dict) else None
    if not isinstance(found, dict):
        head = ".".join((*before, name))
        raise _Misplaced(f"{head} = {found!r}: expected a table [{head}]", *before, name)
    return found


def _texts(found: Any, name: str) -> list[str]:
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise SolverError(f"{name} = {found!r}: expected a list of texts")
    return found


def _known(table: Mapping[str, Any], names: Iterable[str], *place: str) -> None:
    for name in table:
        if name not in names:
            where = f"[{'.'.join(place)}] " if place else ""
            raise _Misplaced(
                f"{where}there is no {name!r}; {suggest_name(name, list(names))}", *place, name
            )
