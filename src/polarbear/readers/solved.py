"""Reader of runs that solved their instance or not, at a cost: tables, and SWE-bench leaderboards.

A run that solved its instance has the value 1 from its cost on. One that did not is finished
without a value. The cost takes the place of time, in dollars, tokens, turns, seconds or any unit.
"""

import json
from collections.abc import Iterator, Mapping
from posixpath import basename, dirname
from typing import Any

from polarbear._text import escape_text, format_list
from polarbear.data.columns import Columns
from polarbear.data.long_table import find_repetition_column
from polarbear.data.missing_columns import guess_columns
from polarbear.data.run import Direction
from polarbear.data.runs import Runs
from polarbear.data.table import MappingTable
from polarbear.errors import Argument, DataError, warn
from polarbear.readers.source import Refused, Source, resolve_direction, split_packing
from polarbear.readers.tables import read_csv, refuse_merged_rows

SOLVED_COLUMNS = ("solved", "resolved", "passed", "success", "correct", "pass", "is_correct")
"""Usual names of the column that says whether a run solved its instance."""

COST_COLUMNS = {
    "dollars": ("dollars", "cost", "usd", "cost_usd", "instance_cost", "total_cost", "price"),
    "tokens": ("tokens", "total_tokens", "n_tokens"),
    "seconds": ("seconds", "runtime", "duration", "time", "wall_time", "elapsed"),
    "turns": ("turns", "n_turns"),
    "calls": ("calls", "api_calls", "instance_calls"),
    "steps": ("steps", "n_steps"),
}
"""Usual names of columns of cost, by their unit; the first unit that a table has is read."""

_SOLVED = {
    **dict.fromkeys(("1", "1.0", "true", "yes", "pass", "passed", "solved", "resolved"), True),
    **dict.fromkeys(("0", "0.0", "false", "no", "fail", "failed", "unsolved", "none", ""), False),
}
_DETAILS = "per_instance_details"


def read_solved(
    source: Source,
    *,
    direction: Direction | None = None,
    clock: str | None = None,
    algorithm: str | None = None,
    instance: str | None = None,
    repetition: str | None = None,
    time: str | None = None,
    value: str | None = None,
) -> Runs:
    """Read a table with a row per run: its model, task, solved or not, and cost.

    Also read the leaderboards.json of SWE-bench. Columns that are not named are guessed, and a
    warning says how they were read: ``value`` is the column of solved or not, ``time`` that of the
    cost, and ``clock`` the unit of the cost.
    """
    given = {"algorithm": algorithm, "instance": instance, "time": time, "value": value}
    given = {role: name for role, name in given.items() if name is not None}
    if not source.forced and value is not None and str(value).lower() not in SOLVED_COLUMNS:
        raise Refused(f"the column {value!r} is not named like {format_list(SOLVED_COLUMNS, 3)}")
    is_board = bool(_list_json(source))
    table = _read_boards(source) if is_board else read_csv(source).columns
    columns, unit = _find_columns(table, given)
    solved = _read_solved(table, columns["value"], is_named="value" in given)
    direction = resolve_direction(direction, "maximize")
    cells = {
        "time": [str(cell).strip().removeprefix("$") for cell in table.table[columns["time"]]],
        "value": ["1" if one else "" for one in solved],
        "status": ["finished"] * len(solved),
        **{role: table.table[columns[role]] for role in ("algorithm", "instance")},
    }
    counter = repetition or find_repetition_column(table, Columns())
    if counter is not None:
        cells["repetition"] = table.table[counter]
    long, naming = MappingTable(cells, table.describe_row), Columns(until="last")
    refuse_merged_rows(long, naming)
    runs = Runs.from_table(long, naming, direction=direction, clock=clock or unit)
    if not is_board and (len(given) < 4 or clock is None):
        _say_how(source.label, columns, clock or unit)
    return runs


def _find_columns(table: MappingTable, given: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the column of each role, and the unit of the cost; refuse other tables."""
    names = [str(name) for name in table.names]
    for role, name in given.items():
        if name not in names:
            raise Refused(f"no column {name!r} for {role} among {format_list(names)}")
    lower = {name.lower(): name for name in names}
    columns, unit = dict(given), given.get("time", "").lower()
    if "value" not in columns:
        if "value" in lower:
            raise Refused("it has a column 'value'")
        found = [lower[name] for name in SOLVED_COLUMNS if name in lower]
        if not found:
            raise Refused(f"no column is named like {format_list(SOLVED_COLUMNS, 3)}")
        columns["value"] = found[0]
    for one, common in COST_COLUMNS.items():
        found = [lower[name] for name in common if name in lower]
        if "time" not in columns and found:
            columns["time"] = found[0]
        if columns.get("time", "").lower() in common:
            unit = one
            break
    if "time" not in columns:
        raise Refused(
            f"no column of cost among {format_list(names)}: name it with ",
            Argument("time", "..."),
            ", and its unit with ",
            Argument("clock", "..."),
        )
    roles = [(role, role) for role in ("algorithm", "instance") if role not in columns]
    columns |= guess_columns(roles, [name for name in names if name not in columns.values()])
    for role, _ in roles:
        if role not in columns:
            raise Refused(
                f"no column of the {role}s among {format_list(names)}; name it with ",
                Argument(role, "..."),
            )
    return columns, unit


def _read_solved(table: MappingTable, name: str, *, is_named: bool) -> list[bool]:
    """Return whether each run solved its instance."""
    cells = [str(cell).strip().lower() for cell in table.table[name]]
    for row, cell in enumerate(cells):
        if cell not in _SOLVED:
            why = f"column {name!r}, {table.describe_row(row)}: {cell!r} is not solved or not"
            hint = "write 1 or 0, true or false"
            raise DataError(f"{why}; {hint}") if is_named else Refused(f"{why} ({hint})")
    return [_SOLVED[cell] for cell in cells]


def _say_how(label: str, columns: Mapping[str, str], unit: str) -> None:
    named = {role: escape_text(name) for role, name in columns.items()}
    warn(
        f"{label}: read {named['algorithm']!r} as the algorithm, {named['instance']!r} as the "
        f"instance, {named['value']!r} as solved or not, and {named['time']!r} as the cost in "
        f"{escape_text(unit)}. To read it otherwise, name the columns with algorithm=, instance=, "
        "value= and time=, and the unit with clock="
    )


def _read_boards(source: Source) -> MappingTable:
    """Return the runs of all leaderboards with results of single instances, as a table."""
    runs: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    for where, model, details in _iterate_results(source):
        for task, own in details.items():
            board, other = runs.setdefault((model, str(task)), (where, own))
            if other != own:
                raise DataError(
                    f"{model} on {task} differs between {board} and {where}: keep one of both"
                )
    if not runs:
        raise Refused(f"no JSON file has results with {_DETAILS}")
    costs = [
        c for c in ("cost", "api_calls") if all(own.get(c) is not None for _, own in runs.values())
    ]
    if not costs:
        raise DataError(f"{source.label}: not all results have a cost or api_calls")
    table: dict[str, list[str]] = {"model": [], "task": [], "resolved": []} | {c: [] for c in costs}
    for (model, task), (_, own) in runs.items():
        row = (model, task, own.get("resolved"), *(own[c] for c in costs))
        for column, cell in zip(table.values(), row, strict=True):
            column.append(str(cell))
    keys = list(runs)
    return MappingTable(table, lambda row: " on ".join(keys[row]))


def _list_json(source: Source) -> list[str]:
    return [name for name in source.files if split_packing(name)[0].lower().endswith(".json")]


def _iterate_results(source: Source) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield where results are, the name of the model, and its details by instance."""
    for name in _list_json(source):
        stem = basename(split_packing(name)[0])
        try:
            content = json.loads(source.text(name))
        except ValueError as error:
            if stem not in (f"{_DETAILS}.json", "leaderboards.json"):
                continue  # a file of another program
            if isinstance(error, json.JSONDecodeError):
                why = f"{name}: line {error.lineno}: not valid JSON: {error.msg}"
                raise DataError(why) from None
            raise
        if stem == f"{_DETAILS}.json" and isinstance(content, dict):
            yield name, basename(dirname(name)) or source.label, content
            continue
        boards = content.get("leaderboards") if isinstance(content, dict) else content
        for board in boards if isinstance(boards, list) else ():
            results = board.get("results") if isinstance(board, dict) else None
            for result in results if isinstance(results, list) else ():
                if isinstance(result, dict) and isinstance(result.get(_DETAILS), dict):
                    where = f"the board {board.get('name')!r} of {name}"
                    yield where, str(result.get("name")), result[_DETAILS]
