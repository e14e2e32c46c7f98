"""Messages about columns that a table lacks, with guesses of their names.

A *role* is what a column is for: algorithm, instance, repetition, time or value.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from polarbear._text import format_count, format_list
from polarbear.data.run import NO_DIRECTION
from polarbear.data.table import Table
from polarbear.errors import Argument, DataError, ReadCall, Text, join_texts

COMMON_COLUMN_NAMES = {
    "algorithm": (
        "solver",
        "optimizer",
        "optimiser",
        "method",
        "algo",
        "alg",
        "optimizer_name",
        "model",
        "agent",
    ),
    "instance": (
        "problem",
        "function",
        "dataset",
        "task",
        "benchmark",
        "fid",
        "inst",
        "instance_id",
        "task_id",
    ),
    "time": (
        "evals",
        "evaluations",
        "budget",
        "nfe",
        "fe",
        "fes",
        "fevals",
        "seconds",
        "runtime",
        "elapsed",
    ),
    "value": ("fbest", "best", "cost", "loss", "objective", "fitness", "fx", "y", "score", "gap"),
    "repetition": ("seed", "run", "rep"),
}
"""Common names of columns, by role."""

MAX_GUESSED_COLUMNS = 500
"""Guesses look at this number of columns at most, since a table may have a million."""

REPETITION_COLUMNS = ("repetition", "seed")
"""Columns that are taken for the repetition without being named."""

TIME_COLUMN = re.compile(
    r"(?:t|time)?[ _=]?((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.IGNORECASE
)
"""Names of the columns of a wide table: 100, t=100 or time_100."""


def describe_missing_columns(table: Table, roles: Iterable[tuple[str, str]]) -> Text:
    """Return which columns a table lacks, and the arguments that name them; "" if none is missing.

    >>> from polarbear.data.table import to_table
    >>> table = to_table({"solver": ["a"], "evals": [1], "x": [2]})
    >>> roles = [("algorithm", "algorithm"), ("time", "time"), ("value", "value")]
    >>> from polarbear.errors import render_text
    >>> print(render_text(describe_missing_columns(table, roles)))
    no columns 'algorithm', 'time', 'value' among solver, evals, x; say which they are with ...
    """
    roles = list(roles)
    present = set(table.names)
    missing = [(role, name) for role, name in roles if name not in present]
    if not missing:
        return ""
    names = [str(name) for name in table.names]
    missing_names = ", ".join(repr(name) for _, name in missing)
    layout = describe_wide_layout(table, [role for role, _ in missing])
    if layout:
        return f"no column {missing_names} among {format_list(names)}: {layout}"
    advice = [Argument(role, name) for role, name in suggest_columns(table, roles).items()]
    many = len(missing) > 1
    why = f"no column{'s' if many else ''} {missing_names} among {format_list(names)}; say which "
    return (why, "they are" if many else "one it is", " with ", join_texts(", ", advice))


def suggest_columns(table: Table, roles: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Suggest arguments that name the missing columns; "..." where there is no guess.

    >>> from polarbear.data.table import to_table
    >>> table = to_table({"solver": ["a"], "evals": [1], "x": [2]})
    >>> suggest_columns(table, [("algorithm", "algorithm"), ("time", "time"), ("value", "value")])
    {'algorithm': 'solver', 'time': 'evals', 'value': '...'}
    """
    taken = {name for _, name in roles}
    free = [str(name) for name in table.names if name not in taken]
    missing = [(role, name) for role, name in roles if name not in set(table.names)]
    guesses = guess_columns(missing, free)
    arguments = {role: guesses.get(role, "...") for role, _ in missing}
    repetition = guess_repetition_column(name for name in free if name not in guesses.values())
    if repetition not in (None, *REPETITION_COLUMNS) and "repetition" not in dict(roles):
        arguments["repetition"] = str(repetition)
    return arguments


def describe_gaps(
    direction: str | None, missing: str, n_incomplete: int
) -> tuple[list[Text], dict[str, str]]:
    """Return messages on a missing direction or missing cells, and arguments that repair both.

    >>> describe_gaps(None, "error", 2)[1]
    {'direction': 'minimize', 'missing': 'drop'}
    """
    gaps, arguments = list[Text](), dict[str, str]()
    if direction is None:
        gaps.append(NO_DIRECTION)
        arguments["direction"] = "minimize"
    if n_incomplete and missing == "error":
        rows = format_count(n_incomplete, "row")
        drop = Argument("missing", "drop")
        gaps.append((f"{rows} without a time or a value: leave out such rows with ", drop))
        arguments["missing"] = "drop"
    return gaps, arguments


def count_incomplete(table: Table, roles: Sequence[tuple[str, str]]) -> int:
    """Count the rows without a time or a value, in the given or guessed columns.

    Runs of a table with a column of statuses may lack values, so its rows are not counted.
    """
    if "status" in table.names:
        return 0
    numeric = [(role, name) for role, name in roles if role in ("time", "value")]
    incomplete = np.zeros(0, dtype=bool)
    for name in guess_columns(numeric, [str(name) for name in table.names]).values():
        if _is_numeric(table, name):
            empty = np.isnan(table.read_numbers(name))
            incomplete = empty | incomplete if len(incomplete) else empty
    return int(incomplete.sum())


def suggest_call(source: str, given: Mapping[str, Any], missing: Mapping[str, Any]) -> Text:
    """Return a corrected call of ``read``, if several arguments must be added to it; else "".

    >>> from polarbear.errors import render_text
    >>> print(render_text(suggest_call("'a.csv'", {}, {"time": "fe", "direction": "minimize"})))
    <BLANKLINE>
    All of it at once:
      pb.read('a.csv', time='fe', direction='minimize')
    """
    if len(missing) < 2 or {"direction", "missing"}.isdisjoint(missing):
        return ""
    kept = [Argument(*one) for one in given.items() if one[1] is not None]
    added = [Argument(*one) for one in missing.items()]
    return ("\nAll of it at once:\n  ", ReadCall(source, tuple(kept), tuple(added)))


def guess_repetition_column(names: Iterable[str]) -> str | None:
    """Guess by name which column numbers the repetitions; ``None`` if no name suggests it.

    >>> guess_repetition_column(["Solver", "Seed"])
    'Seed'
    """
    name_of = {name.lower(): name for name in names}
    common = ("repetition", *COMMON_COLUMN_NAMES["repetition"])
    return next((name_of[name] for name in common if name in name_of), None)


def guess_columns(roles: Sequence[tuple[str, str]], names: Sequence[str]) -> dict[str, str]:
    """Guess the column of each role by a common name, a similar name, or a word in the name.

    >>> guess_columns([("time", "time"), ("value", "value")], ["fe", "best_cost"])
    {'time': 'fe', 'value': 'best_cost'}
    """
    free = {name.lower(): name for name in names[:MAX_GUESSED_COLUMNS]}
    guesses: dict[str, str] = {}
    for role, name in roles:
        common = (name.lower(), role, *COMMON_COLUMN_NAMES.get(role, ()))
        known = next((other for other in common if other in free), None)
        if known is not None:
            guesses[role] = free.pop(known)
    for role, name in roles:
        close = [] if role in guesses else get_close_matches(name.lower(), list(free), n=1)
        if close:
            guesses[role] = free.pop(close[0])
    for role, _ in roles:
        common = {role, *COMMON_COLUMN_NAMES.get(role, ())}
        within = [] if role in guesses else [n for n in free if common & {*re.split(r"[\W_]+", n)}]
        if within:
            guesses[role] = free.pop(within[0])
    return guesses


def describe_wide_layout(table: Table, missing: Sequence[str]) -> str:
    """Return how to reshape a table with one column per algorithm or time; "" if it is long."""
    if "value" not in missing:
        return ""
    names = [str(name) for name in table.names]
    known = guess_columns([(role, role) for role in COMMON_COLUMN_NAMES], names)
    rest = [name for name in names if name not in known.values()]
    timed = [name for name in rest if TIME_COLUMN.fullmatch(name)]
    if "value" in known or len(rest) < 2:
        return ""
    if timed == rest and "time" not in known:
        role = "time"
    elif not timed and {"instance", "time"} <= known.keys() and "algorithm" not in known:
        role = "algorithm"
    else:
        return ""
    if not all(_is_numeric(table, name) for name in rest[:MAX_GUESSED_COLUMNS]):
        return ""
    kept = [name for name in names if name in known.values()]
    melt = f'frame.melt({kept}, var_name="{role}", value_name="value")'.replace("'", '"')
    return (
        f"there seems to be a column per {role} ({format_list(rest, 4)}); make rows of them first, "
        f"with pandas: frame = {melt}"
    )


def _is_numeric(table: Table, name: str) -> bool:
    try:
        table.read_numbers(name)
    except DataError:
        return False
    return True
