"""Reader of tables with a ranking in each row: names from the best to the worst.

Such a row has no time. It becomes a comparison of ``Rankings`` at one time.
"""

import re
from contextlib import closing
from itertools import chain
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from polarbear._text import format_list
from polarbear.data.names import merge_names
from polarbear.data.rankings import Rankings
from polarbear.data.table import Table, to_table
from polarbear.errors import DataError
from polarbear.readers.pair_tables import TableRows, join_rows, read_tables
from polarbear.readers.source import open_source

Ints = NDArray[np.integer]

_PLACE = re.compile(r"rank[ _]?([0-9]+)")


def read_rankings(
    source: object, *, ranking: str | None = None, instance: str | None = None
) -> Rankings:
    """Read a table with one ranking per row, best first, as rankings at a single time.

    An algorithm that a row does not name is not compared in that row.

    Parameters
    ----------
    source
        A path (CSV or Parquet; a file, folder or archive), a data frame, or a list of lists of
        names. A table has the columns ``rank_1``, ``rank_2`` and so on, of which the last ones may
        be empty, or a column of texts.
    ranking
        The column of texts such as ``a > b = c``, in which ``b`` and ``c`` are tied. By default
        ``ranking`` if there is such a column.
    instance
        The column of the task on which algorithms were ranked. Rows of one instance share its
        weight. By default ``instance`` if there is such a column, and else every row is an
        instance.

    Examples
    --------
    >>> import polarbear as pb
    >>> rankings = pb.readers.read_rankings({"ranking": ["x > y = z", "y > x"]})
    >>> rankings.algorithms, rankings.order("row 0", 1)
    (('x', 'y', 'z'), [[('x',), ('y', 'z')]])
    >>> pb.readers.read_rankings([["x", "y", "z"], ["y", "x"]]).win_rate("x", "y")
    array([0.5])
    """
    if isinstance(source, list | tuple):
        length = max((len(row) for row in source), default=0)
        source = {
            f"rank_{place + 1}": [row[place] if place < len(row) else None for row in source]
            for place in range(length)
        }
    if not isinstance(source, str | PathLike):
        return join_rows([_read_rows(to_table(source), ranking, instance)])
    with closing(open_source(source)) as files:
        return join_rows([_read_rows(table, ranking, instance) for table in read_tables(files)])


def _read_rows(table: Table, ranking: str | None, instance: str | None) -> TableRows:
    """Read the rows of a table; raise an error for a row that names an algorithm twice."""
    text = ranking or ("ranking" if "ranking" in table.names else None)
    task = instance or ("instance" if "instance" in table.names else None)
    for name in (text, task):
        if name is not None and name not in table.names:
            raise DataError(f"no column {name!r} among {format_list(table.names)}")
    read = _read_places(table) if text is None else _read_texts(table, text)
    row = np.repeat(np.arange(len(read.sizes)), read.sizes)
    names, (algorithm,) = merge_names([(read.names, read.algorithm)])
    key = row * len(names) + algorithm
    order = np.argsort(key)  # algorithms of a comparison are in order
    key, position = key[order], read.position[order]
    read = read._replace(names=names, algorithm=algorithm[order], position=position)
    if (repeated := np.flatnonzero(key[1:] == key[:-1])).size:
        row, code = divmod(int(key[repeated[0]]), len(read.names))
        raise DataError(
            f"{table.describe_row(row)}: {read.names[code]!r} is ranked twice; keep one place"
        )
    return read if task is None else read._replace(instances=table.read_labels(task))


def _read_places(table: Table) -> TableRows:
    """Read the columns ``rank_1``, ``rank_2`` and so on."""
    matches = [(int(match[1]), name) for name in table.names if (match := _PLACE.fullmatch(name))]
    columns = [name for _, name in sorted(matches)]
    if not columns:
        raise DataError(
            f"no columns rank_1, rank_2, ... and no column 'ranking' among "
            f"{format_list(table.names)}; name a column of texts with ranking="
        )
    labels = [table.read_labels(name, may_be_empty=True) for name in columns]
    names = list(dict.fromkeys(name for one in labels for name in one.names if name))
    code_of = {name: code for code, name in enumerate(names)}
    codes = [
        np.array([code_of.get(name, -1) for name in one.names], dtype=np.int32)[one.codes]
        for one in labels
    ]
    place = np.stack(codes, axis=1)
    is_ranked = place >= 0
    gaps = np.argwhere(is_ranked[:, 1:] & ~is_ranked[:, :-1])
    if len(gaps):
        row, column = gaps[0].tolist()
        raise DataError(
            f"{table.describe_row(row)}: {columns[column]!r} is empty and {columns[column + 1]!r} "
            "is not; move the names to the first places"
        )
    position = np.broadcast_to(np.arange(len(columns)), place.shape)
    return TableRows(
        names=names,
        algorithm=place[is_ranked],
        position=position[is_ranked],
        sizes=is_ranked.sum(axis=1),
        instances=None,
    )


def _read_texts(table: Table, column: str) -> TableRows:
    """Read a column of texts such as ``a > b = c``; equal texts are parsed once."""
    labels = table.read_labels(column)
    groups = [[_split(part, "=") for part in _split(text, ">")] for text in labels.names]
    names = list(dict.fromkeys(name for text in groups for group in text for name in group))
    if "" in names:
        code = next(k for k, text in enumerate(groups) if any("" in group for group in text))
        where = table.describe_row(int(np.argmax(labels.codes == code)))
        raise DataError(f"{where}: {labels.names[code]!r} lacks a name; write it as 'a > b = c'")
    code_of = {name: code for code, name in enumerate(names)}
    algorithm = [[code_of[name] for group in text for name in group] for text in groups]
    position = [
        np.repeat(np.cumsum(sizes) - sizes, sizes)
        for sizes in (np.array(list(map(len, text))) for text in groups)
    ]
    sizes = np.array(list(map(len, algorithm)), dtype=np.int64)
    starts, own = np.cumsum(sizes) - sizes, sizes[labels.codes]
    offset = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
    entry = np.repeat(starts[labels.codes], own) + offset
    code, place = (
        np.fromiter(chain.from_iterable(parts), np.int32)[entry] for parts in (algorithm, position)
    )
    return TableRows(names=names, algorithm=code, position=place, sizes=own, instances=None)


def _split(text: str, separator: str) -> list[str]:
    """Split a text, and remove spaces around its parts."""
    return [part.strip() for part in text.split(separator)]
