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

    [limits]
    memory = 4_000_000_000

Paths are relative to the file. Python is imported, and nothing else is run.
"""

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from polarbear.data import grid
from polarbear.data.names import guess
from polarbear.errors import DataError, SolverError
from polarbear.racing.rules import Rules
from polarbear.running.child import described
from polarbear.running.commands import Command
from polarbear.running.instances import Instances
from polarbear.running.setup import Limits, Setup

LARGEST = 1_000_000
"""Bytes of a file beyond which it is refused before it is parsed: some parse for hours."""

_TOP = ("times", "direction", "clock", "store", "seed", "solvers", "instances", "rules", "limits")
_COMMAND = ("command", "pattern", "clock", "exits", "errors", "terminal")


@dataclass(frozen=True)
class Configuration:
    """What a file says: the setup of the runs, the rules of the race, and where it is stored."""

    setup: Setup
    rules: Rules
    store: str | None
    seed: int


def load(path: str | Path) -> Configuration:
    """Read a file; an error names what is wrong and where."""
    path = Path(path)
    try:
        return _configuration(_parsed(path), path.parent)
    except (SolverError, DataError) as error:
        raise SolverError(f"{path}: {error}") from None


def _parsed(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise SolverError(f"cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise SolverError(f"has more than {LARGEST:,} bytes, which no race needs")
    # One name of very many parts takes the parser very long, however small the file is.
    if any(line.partition(b"=")[0].count(b".") > 100 for line in content.splitlines()):
        raise SolverError("a name has more than 100 parts")
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise SolverError(f"is not TOML: {error}") from None


def _configuration(plain: dict[str, Any], folder: Path) -> Configuration:
    _known(plain, _TOP, "")
    for name in ("times", "direction", "solvers", "instances"):
        if name not in plain:
            raise SolverError(f"{name} is missing")
    rules = _table(plain, "rules")
    limits = _table(plain, "limits")
    _known(rules, [field.name for field in fields(Rules)], "[rules] ")
    _known(limits, [field.name for field in fields(Limits)], "[limits] ")
    solvers = {
        name: _solver(_table(plain["solvers"], name, "solvers."), name, folder)
        for name in _table(plain, "solvers")
    }
    setup = Setup.of(
        solvers,
        _instances(_table(plain, "instances"), folder),
        times=_times(plain["times"]),
        direction=plain["direction"],
        clock=plain.get("clock"),
        limits=Limits(**limits),
    )
    store = plain.get("store")
    if store is not None and not isinstance(store, str):
        raise SolverError(f"store = {store!r}: expected a path or an address")
    seed = plain.get("seed", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise SolverError(f"seed = {seed!r}: expected a whole number")
    if store is not None and "://" not in store:
        store = str(folder / store)
    return Configuration(setup, Rules.from_plain(rules), store, seed)


def _solver(table: Mapping[str, Any], name: str, folder: Path) -> Any:
    where = f"[solvers.{name}] "
    if ("command" in table) == ("python" in table):
        raise SolverError(f'{where}needs either command = [...] or python = "module:function"')
    if "python" in table:
        _known(table, ("python",), where)
        return _imported(table["python"], where, folder)
    _known(table, _COMMAND, where)
    if "pattern" not in table:
        raise SolverError(f"{where}needs a pattern that finds values in the output")
    try:
        options: dict[str, Any] = {k: v for k, v in table.items() if k != "command"}
        if "exits" in options:
            options["exits"] = tuple(options["exits"])
        return Command(table["command"], **options)
    except (SolverError, TypeError) as error:
        raise SolverError(f"{where}{error}") from None


def _instances(table: Mapping[str, Any], folder: Path) -> Any:
    _known(table, ("files", "names", "python"), "[instances] ")
    if len(table) != 1:
        raise SolverError("[instances] needs one of files, names and python")
    if "python" in table:
        return _imported(table["python"], "[instances] ", folder)
    if "names" in table:
        return Instances.of(_texts(table["names"], "[instances] names"))
    pattern = table["files"]
    if isinstance(pattern, list):
        return Instances.of([str(folder / name) for name in _texts(pattern, "[instances] files")])
    try:
        found = sorted(str(path) for path in folder.glob(pattern) if path.is_file())
    except (ValueError, NotImplementedError, TypeError) as error:
        raise SolverError(f"[instances] files = {pattern!r}: {error}") from None
    if not found:
        raise SolverError(f"[instances] files = {pattern!r}: there is no such file in {folder}")
    return Instances.of(found)


def _times(times: Any) -> Any:
    if not isinstance(times, dict):
        return times
    _known(times, ("from", "to", "n", "spacing"), "times ")
    spacing = times.get("spacing", "log")
    if spacing not in ("log", "linear") or not {"from", "to"} <= set(times):
        raise SolverError('times = {from = 1, to = 100, n = 30, spacing = "log" or "linear"}')
    made = grid.log if spacing == "log" else grid.linear
    return made(times["from"], times["to"], times.get("n", 50))


def _imported(name: Any, where: str, folder: Path) -> Any:
    """What "module:name" names; modules beside the file are found."""
    module, colon, attribute = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not (module and colon and attribute):
        raise SolverError(f'{where}python = {name!r}: expected "module:name"')
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise SolverError(f"{where}python = {name!r}: {described(error)}") from None
    return found


def _table(plain: Mapping[str, Any], name: str, before: str = "") -> Mapping[str, Any]:
    found = plain.get(name, {}) if isinstance(plain, dict) else None
    if not isinstance(found, dict):
        raise SolverError(f"{before}{name} = {found!r}: expected a table [{before}{name}]")
    return found


def _texts(found: Any, where: str) -> list[str]:
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise SolverError(f"{where} = {found!r}: expected a list of texts")
    return found


def _known(table: Mapping[str, Any], names: Any, where: str) -> None:
    for name in table:
        if name not in names:
            raise SolverError(f"{where}there is no {name!r}; {guess(name, list(names))}")
