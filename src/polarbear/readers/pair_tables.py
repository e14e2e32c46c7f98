"""Reader of pair tables, such as battles of models: two names in a row, and which of them won.

Such a row is an order of two without a time. It becomes ``Rankings`` at one time, not ``Runs``.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_list
from polarbear.data.names import Codes, NumberedNames, merge_names
from polarbear.data.rankings import Rankings
from polarbear.data.run import Direction
from polarbear.data.runs import Runs
from polarbear.data.table import Labels, Table, to_table
from polarbear.errors import DataError
from polarbear.readers.source import Refused, Source, open_source
from polarbear.readers.tables import open_parquet_files, read_csv_columns

Ints = NDArray[np.integer]

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
    >>> rankings = pb.readers.read_pairs(battles)
    >>> rankings.algorithms, rankings.win_rate("x", "y")
    (('x', 'y', 'z'), array([1.]))
    """
    columns = (first, second, winner)
    try:
        if not isinstance(source, str | PathLike):
            return join_rows([_read_pairs(to_table(source), columns, instance)])
        with closing(open_source(source)) as files:
            tables = read_tables(files)
            return join_rows([_read_pairs(table, columns, instance) for table in tables])
    except Refused as why:
        raise DataError(f"{why}; name the columns with first=, second= and winner=") from None


def refuse_pairs(source: Source, *, direction: Direction | None = None) -> Runs:  # noqa: ARG001
    """Raise an error for a table of pairs, which has no runs, with the call that reads it."""
    for table in read_tables(source):
        if {"time", "value"} <= set(table.names):
            raise Refused("it has columns 'time' and 'value'")
        names = _find_columns(table.names, None, None, "winner")
        raise DataError(
            f"{source.label} is a table of pairs ({', '.join(names)}), which has no times and "
            f"values: read it with pb.readers.read_pairs({source.label!r})"
        )
    raise Refused("no table")


def read_tables(source: Source) -> list[Table]:
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


class TableRows(NamedTuple):
    """The comparisons of a table, one after the other; names are codes of its own algorithms."""

    names: Sequence[str]
    algorithm: Ints  # (entries,)
    position: Ints  # (entries,)
    sizes: Ints  # (rows,)
    instances: Labels | None  # None if every row is an instance


def join_rows(parts: Sequence[TableRows]) -> Rankings:
    """Return the rankings of all rows of tables, sorted by instance."""
    sizes = np.concatenate([part.sizes for part in parts])
    if not len(sizes):
        raise DataError("the table has no rows: expected one for each comparison")
    names, codes = merge_names((part.names, part.algorithm) for part in parts)
    algorithm = np.concatenate(codes)
    position = np.concatenate([part.position for part in parts])
    instances, code = number_instances(
        [part.instances for part in parts], [len(part.sizes) for part in parts]
    )
    weight = 1 / np.bincount(code)[code]
    if np.any(np.diff(code) < 0):  # comparisons of one instance are neighbours
        rows, starts = np.argsort(code, kind="stable"), np.cumsum(sizes) - sizes
        code, weight, sizes = code[rows], weight[rows], sizes[rows]
        shift = starts[rows] - (np.cumsum(sizes) - sizes)
        order = np.repeat(shift, sizes) + np.arange(len(algorithm))
        algorithm, position = algorithm[order], position[order]
    return Rankings(
        algorithms=tuple(names),
        instances=instances,
        times=np.array([1.0]),
        position=position.astype(np.int8 if int(sizes.max()) < 128 else np.int16)[None],
        algorithm=algorithm,
        offset=np.concatenate([[0], np.cumsum(sizes)]),
        instance=code,
        weight=weight,
        clock="comparison",
    )


def _read_pairs(
    table: Table, named: tuple[str | None, str | None, str], instance: str | None
) -> TableRows:
    """Read the rows of a table; raise an error for a row without two names and a winner."""
    columns = _find_columns(table.names, *named)
    a, b, won = (table.read_labels(name) for name in columns)
    names, codes = merge_names((one.names, one.codes) for one in (a, b))
    code_of = {name: code for code, name in enumerate(names)}
    algorithm = np.stack(codes, axis=1)
    same = algorithm[:, 0] == algorithm[:, 1]
    if same.any():
        row = int(np.argmax(same))
        raise DataError(
            f"{table.describe_row(row)}: {names[algorithm[row, 0]]!r} is compared with itself; "
            "remove the row"
        )
    position = _find_positions(won, algorithm, code_of, columns)
    unclear = position[:, 0] < 0
    if unclear.any():
        row = int(np.argmax(unclear))
        x, y = (names[code] for code in algorithm[row])
        raise DataError(
            f"{table.describe_row(row)}: the winner is {won.names[won.codes[row]][:40]!r}, "
            f"expected {x!r}, {y!r}, {columns[0]!r}, {columns[1]!r} or 'tie'"
        )
    task = instance or ("instance" if "instance" in table.names else None)
    if task is not None and task not in table.names:
        raise Refused(f"no column {task!r} among {format_list(table.names)}")
    return TableRows(
        names=names,
        algorithm=algorithm.ravel(),
        position=position.ravel(),
        sizes=np.full(len(algorithm), 2),
        instances=None if task is None else table.read_labels(task),
    )


def _find_positions(
    won: Labels, algorithm: Ints, code_of: Mapping[str, int], columns: tuple[str, str, str]
) -> NDArray[np.int8]:
    """Return both positions in each row: 0 and 1, 0 twice for a tie, or -1 if it is not clear.

    A winner is one of the two names, else one of their columns, else ``a`` or ``b``, else a tie.
    """
    side = {"a": 0, "b": 1, columns[0]: 0, columns[1]: 1}
    places = {0: (0, 1), 1: (1, 0), None: (-1, -1)}
    by_label = [
        places[side.get(name)] if name in side or not name.lower().startswith(_TIES) else (0, 0)
        for name in won.names
    ]
    position = np.array(by_label, dtype=np.int8).reshape(-1, 2)[won.codes]
    code = np.array([code_of.get(name, -1) for name in won.names], dtype=np.int32)
    if np.any(code >= 0):
        row = np.flatnonzero(code[won.codes] >= 0)
        is_winner = algorithm[row] == code[won.codes[row], None]
        named = is_winner.any(axis=1)
        position[row[named]] = ~is_winner[named]
    return position


def number_instances(labels: Sequence[Labels | None], sizes: Sequence[int]) -> tuple[Any, Codes]:
    """Return the names of all instances in natural order, and the code of each row.

    ``labels`` are the instances of each table, None if every row is one; ``sizes`` its rows.
    """
    if all(one is None for one in labels):  # in natural order as they are
        n_rows = sum(sizes)
        return NumberedNames("row", n_rows), np.arange(n_rows, dtype=np.int32)
    starts = np.cumsum([0, *sizes]).tolist()
    named = [
        Labels(
            np.arange(size, dtype=np.int32), [f"row {row}" for row in range(start, start + size)]
        )
        if one is None
        else one
        for one, start, size in zip(labels, starts, sizes, strict=False)
    ]
    instances, codes = merge_names((one.names, one.codes) for one in named)
    return tuple(instances), np.concatenate(codes)
