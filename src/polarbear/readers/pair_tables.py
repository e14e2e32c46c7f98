"""Reader of pair tables, such as battles of models: two names in a row, and which of them won.

Such a row is an order of two without a time. It becomes ``Rankings`` at one time, not ``Runs``.
"""

from collections.abc import Sequence
from contextlib import closing
from os import PathLike

import numpy as np

from polarbear._text import format_list
from polarbear.data.columns import Columns, to_columns
from polarbear.data.names import natural_sort_key
from polarbear.data.rankings import Rankings
from polarbear.data.run import Direction
from polarbear.data.runs import Runs
from polarbear.errors import DataError
from polarbear.readers.source import Refused, Source, open_source
from polarbear.readers.tables import open_parquet_files, read_csv_columns

_TIES = ("tie", "draw", "equal", "both")
_PREFERRED_STEMS = ("algorithm", "model", "player", "system")


def read_pairs(
    source: object,
    *,
    first: str | None = None,
    second: str | None = None,
    winner: str = "winner",
    instance: str | None = None,
) -> Rankings:
    """Read a table of pairwise comparisons as rankings of two algorithms at a single time.

    Parameters
    ----------
    source
        A path (CSV or Parquet; a file, folder or archive), or a data frame.
    first, second
        The columns of the two names; by default two columns such as ``model_a`` and ``model_b``.
    winner
        The column of the winner: its name, its column or ``a`` or ``b``; or a tie (``tie``,
        ``draw``, ``equal`` or ``both``, perhaps with more words).
    instance
        The column of the task on which two were compared. Rows of one instance share its weight.
        By default ``instance`` if there is such a column, and else every row is an instance.

    Examples
    --------
    >>> import polarbear as pb
    >>> battles = {"model_a": ["x", "y", "x"], "model_b": ["y", "z", "z"],
    ...            "winner": ["model_a", "tie", "model_a"]}
    >>> rankings = pb.read_pairs(battles)
    >>> rankings.algorithms, rankings.win_rate("x", "y")
    (('x', 'y', 'z'), array([1.]))
    """
    try:
        if not isinstance(source, str | PathLike):
            return _rank_pairs([to_columns(source)], first, second, winner, instance)
        with closing(open_source(source)) as files:
            return _rank_pairs(_read_tables(files), first, second, winner, instance)
    except Refused as why:
        raise DataError(f"{why}; name the columns with first=, second= and winner=") from None


def refuse_pairs(source: Source, *, direction: Direction | None = None) -> Runs:  # noqa: ARG001
    """Raise an error for a table of pairs, which has no runs, with the call that reads it."""
    for table in _read_tables(source):
        if {"time", "value"} <= set(table.names):
            raise Refused("it has columns 'time' and 'value'")
        names = _find_columns(table.names, None, None, "winner")
        raise DataError(
            f"{source.label} is a table of pairs ({', '.join(names)}), which has no times and "
            f"values: read it with pb.read_pairs({source.label!r})"
        )
    raise Refused("no table")


def _read_tables(source: Source) -> list[Columns]:
    """Return all CSV files of a source as one table, and each Parquet file as a table."""
    if source.ending(".parquet", ".pq"):
        return [table for _, table, _ in open_parquet_files(source)]
    return [read_csv_columns(source)]


def _find_columns(
    names: Sequence[str], first: str | None, second: str | None, winner: str
) -> tuple[str, str, str]:
    """Return the columns of both names and the winner; raise ``Refused`` if one is missing."""
    if first is None or second is None:
        stems = [name[:-2] for name in names if name.endswith("_a") and f"{name[:-2]}_b" in names]
        stems.sort(key=lambda stem: stem not in _PREFERRED_STEMS)
        if not stems:
            raise Refused(f"no columns such as model_a and model_b among {format_list(names)}")
        first, second = first or f"{stems[0]}_a", second or f"{stems[0]}_b"
    for name in (first, second, winner):
        if name not in names:
            raise Refused(f"no column {name!r} among {format_list(names)}")
    return first, second, winner


def _rank_pairs(
    tables: Sequence[Columns],
    first: str | None,
    second: str | None,
    winner: str,
    instance: str | None,
) -> Rankings:
    pairs: list[tuple[str, str]] = []
    positions: list[tuple[int, int]] = []
    instances: list[str] = []
    for table in tables:
        columns = _find_columns(table.names, first, second, winner)
        a, b, won = (table.read_labels(name).to_list() for name in columns)
        for row, cells in enumerate(zip(a, b, won, strict=True)):
            if cells[0] == cells[1]:
                raise DataError(
                    f"{table.describe_row(row)}: {cells[0]!r} is compared with itself; "
                    "remove the row"
                )
            positions.append(_find_positions(cells, columns, table.describe_row(row)))
        pairs += zip(a, b, strict=True)
        task = instance or ("instance" if "instance" in table.names else None)
        if task is not None and task not in table.names:
            raise Refused(f"no column {task!r} among {format_list(table.names)}")
        start = len(instances)
        instances += (
            [f"row {row}" for row in range(start, start + len(a))]
            if task is None
            else table.read_labels(task).to_list()
        )
    if not pairs:
        raise DataError("the table of pairs has no rows: expected one for each comparison")
    algorithm_names = sorted({name for pair in pairs for name in pair}, key=natural_sort_key)
    instance_names = sorted(set(instances), key=natural_sort_key)
    code_of = {name: code for code, name in enumerate(algorithm_names)}
    instance_of = {name: code for code, name in enumerate(instance_names)}
    instance_codes = np.array([instance_of[name] for name in instances], dtype=np.int32)
    order = np.argsort(instance_codes, kind="stable")  # comparisons of one instance are neighbours
    algorithms = np.array([[code_of[name] for name in pair] for pair in pairs], dtype=np.int32)
    instance_codes = instance_codes[order]
    return Rankings(
        tuple(algorithm_names),
        tuple(instance_names),
        np.array([1.0]),
        np.array(positions, dtype=np.int8)[order].reshape(1, -1),
        algorithms[order].ravel(),
        np.arange(0, 2 * len(pairs) + 1, 2, dtype=np.int64),
        instance_codes,
        1.0 / np.bincount(instance_codes)[instance_codes],
        "comparison",
    )


def _find_positions(
    cells: tuple[str, str, str], columns: tuple[str, str, str], where: str
) -> tuple[int, int]:
    """Return the rank of each of two names in a row: (0, 1), (1, 0), or (0, 0) for a tie."""
    *names, won = cells
    for texts in (names, columns[:2], ("a", "b")):
        if won in texts:
            return (0, 1) if won == texts[0] else (1, 0)
    if won.lower().startswith(_TIES):
        return 0, 0
    raise DataError(
        f"{where}: the winner is {won[:40]!r}, expected {names[0]!r}, {names[1]!r}, "
        f"{columns[0]!r}, {columns[1]!r} or 'tie'"
    )
