"""Columns that a table lacks: what to say, so that the next try succeeds."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from polarbear._text import format_count, format_list
from polarbear.data.columns import Columns
from polarbear.data.run import NO_DIRECTION
from polarbear.errors import DataError

USUAL = {
    "algorithm": ("solver", "optimizer", "optimiser", "method", "algo", "alg", "optimizer_name"),
    "instance": ("problem", "function", "dataset", "task", "benchmark", "fid", "inst"),
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
"""What columns are called elsewhere, by the part they play."""

MAX_GUESSED = 500
"""The most columns among which guesses are made: a table may have a million."""

REPETITION_COLUMNS = ("repetition", "seed")
"""Columns that tell repetitions apart without being named."""

NAMED_LIKE_A_TIME = re.compile(
    r"(?:t|time)?[ _=]?((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.IGNORECASE
)
"""Columns of a wide table: 100, t=100 or time_100."""


def lacking(columns: Columns, parts: Iterable[tuple[str, str]]) -> str:
    """What to say of the parts, with the names of their columns, that a table lacks; "" if none.

    >>> from polarbear.data.columns import columns_of
    >>> table = columns_of({"solver": ["a"], "evals": [1], "x": [2]})
    >>> print(lacking(table, [("algorithm", "algorithm"), ("time", "time"), ("value", "value")]))
    no columns 'algorithm', 'time', 'value' among solver, evals, x; say which they are with ...
    """
    parts = list(parts)
    present = set(columns.names)
    gone = [(part, name) for part, name in parts if name not in present]
    if not gone:
        return ""
    names = [str(name) for name in columns.names]
    said = ", ".join(repr(name) for _, name in gone)
    layout = _layout(columns, [part for part, _ in gone])
    if layout:
        return f"no column {said} among {format_list(names)}: {layout}"
    advice = [f"{part}={name!r}" for part, name in name_columns(columns, parts).items()]
    several = len(gone) > 1
    return (
        f"no column{'s' if several else ''} {said} among {format_list(names)}; say which "
        f"{'they are' if several else 'one it is'} with {', '.join(advice)}"
    )


def name_columns(columns: Columns, parts: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The arguments that name the columns a table lacks: guesses, and "..." where there is none.

    >>> from polarbear.data.columns import columns_of
    >>> table = columns_of({"solver": ["a"], "evals": [1], "x": [2]})
    >>> name_columns(table, [("algorithm", "algorithm"), ("time", "time"), ("value", "value")])
    {'algorithm': 'solver', 'time': 'evals', 'value': '...'}
    """
    taken = {name for _, name in parts}
    free = [str(name) for name in columns.names if name not in taken]
    gone = [(part, name) for part, name in parts if name not in set(columns.names)]
    guesses = meant(gone, free)
    arguments = {part: guesses.get(part, "...") for part, _ in gone}
    again = repetition_like(name for name in free if name not in guesses.values())
    if again not in (None, *REPETITION_COLUMNS) and "repetition" not in dict(parts):
        arguments["repetition"] = str(again)
    return arguments


def list_gaps(
    direction: str | None, missing: str, n_incomplete: int
) -> tuple[list[str], dict[str, str]]:
    """What a table lacks beside columns, in words, and the arguments that make up for it.

    >>> list_gaps(None, "error", 2)[1]
    {'direction': 'minimize', 'missing': 'drop'}
    """
    why, arguments = list[str](), dict[str, str]()
    if direction is None:
        why.append(NO_DIRECTION)
        arguments["direction"] = "minimize"
    if n_incomplete and missing == "error":
        rows = format_count(n_incomplete, "row")
        why.append(f"{rows} without a time or a value: leave out such rows with missing='drop'")
        arguments["missing"] = "drop"
    return why, arguments


def count_incomplete(columns: Columns, parts: Sequence[tuple[str, str]]) -> int:
    """The number of rows without a time or a value, by the columns that are named or guessed.

    Runs of a table with a column of statuses may lack values, so none of their rows counts.
    """
    if "status" in columns.names:
        return 0
    timed = [(part, name) for part, name in parts if part in ("time", "value")]
    incomplete = np.zeros(0, dtype=bool)
    for name in meant(timed, [str(name) for name in columns.names]).values():
        if _numeric(columns, name):
            empty = np.isnan(columns.numbers(name))
            incomplete = empty | incomplete if len(incomplete) else empty
    return int(incomplete.sum())


def spell_call(
    function: str, data: str, given: Mapping[str, Any], lacking: Mapping[str, Any]
) -> str:
    """The call that makes up for gaps of several kinds, in lines of its own; "" if of one kind.

    >>> print(spell_call("pb.read", "'a.csv'", {}, {"time": "fe", "direction": "minimize"}))
    <BLANKLINE>
    All of it at once:
      pb.read('a.csv', time='fe', direction='minimize')
    """
    if len(lacking) < 2 or {"direction", "missing"}.isdisjoint(lacking):
        return ""
    arguments = {**given, **lacking}.items()
    spelled = [f"{name}={value!r}" for name, value in arguments if value is not None]
    return f"\nAll of it at once:\n  {function}({', '.join([data, *spelled])})"


def repetition_like(names: Iterable[str]) -> str | None:
    """The column that probably tells repetitions apart; None if none is named like one.

    >>> repetition_like(["Solver", "Seed"])
    'Seed'
    """
    called = {name.lower(): name for name in names}
    usual = ("repetition", *USUAL["repetition"])
    return next((called[name] for name in usual if name in called), None)


def meant(parts: Sequence[tuple[str, str]], names: Sequence[str]) -> dict[str, str]:
    """The columns that may play parts: by usual names, by names nearly the same, by words in names.

    >>> meant([("time", "time"), ("value", "value")], ["fe", "best_cost"])
    {'time': 'fe', 'value': 'best_cost'}
    """
    free = {name.lower(): name for name in names[:MAX_GUESSED]}
    found: dict[str, str] = {}
    for part, name in parts:
        usual = (name.lower(), part, *USUAL.get(part, ()))
        known = next((other for other in usual if other in free), None)
        if known is not None:
            found[part] = free.pop(known)
    for part, name in parts:
        close = [] if part in found else get_close_matches(name.lower(), list(free), n=1)
        if close:
            found[part] = free.pop(close[0])
    for part, _ in parts:
        usual = {part, *USUAL.get(part, ())}
        within = [] if part in found else [n for n in free if usual & {*re.split(r"[\W_]+", n)}]
        if within:
            found[part] = free.pop(within[0])
    return found


def _layout(columns: Columns, gone: Sequence[str]) -> str:
    """What to do with a table that has a column per algorithm or per time, if it looks like one."""
    if "value" not in gone:
        return ""
    names = [str(name) for name in columns.names]
    known = meant([(part, part) for part in USUAL], names)
    rest = [name for name in names if name not in known.values()]
    timed = [name for name in rest if NAMED_LIKE_A_TIME.fullmatch(name)]
    if "value" in known or len(rest) < 2:
        return ""
    if timed == rest and "time" not in known:
        part = "time"
    elif not timed and {"instance", "time"} <= known.keys() and "algorithm" not in known:
        part = "algorithm"
    else:
        return ""
    if not all(_numeric(columns, name) for name in rest[:MAX_GUESSED]):
        return ""
    kept = [name for name in names if name in known.values()]
    melt = f'frame.melt({kept}, var_name="{part}", value_name="value")'.replace("'", '"')
    return (
        f"there seems to be a column per {part} ({format_list(rest, 4)}); make rows of them first, "
        f"with pandas: frame = {melt}"
    )


def _numeric(columns: Columns, name: str) -> bool:
    try:
        columns.numbers(name)
    except DataError:
        return False
    return True
