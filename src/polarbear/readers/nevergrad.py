"""Reader of Nevergrad benchmark tables: CSV with a row per finished run at one budget."""

from collections import Counter
from zlib import crc32

import numpy as np

from polarbear.data.columns import Columns
from polarbear.data.names import natural_sort_key
from polarbear.data.run import Direction
from polarbear.data.runs import Runs
from polarbear.data.table import MappingTable
from polarbear.readers.source import Source, resolve_direction
from polarbear.readers.tables import read_csv_columns, require_columns

_REQUIRED_COLUMNS = ("optimizer_name", "budget", "loss", "elapsed_budget", "elapsed_time")
_OTHER_COLUMNS = {*_REQUIRED_COLUMNS, "", "error", "seed", "pseudotime", "num_objectives"}


def read_nevergrad(
    source: Source, *, direction: Direction | None = None, clock: str = "evaluations"
) -> Runs:
    """Read experiment tables of Nevergrad, always minimised, with time in evaluations.

    A row is a separate run with its own budget, not a point of a longer run. The runs of an
    optimiser at growing budgets are joined to one trajectory, k-th repetition with k-th
    repetition, so the best so far is over the budgets up to a time. A failed run has no value.
    """
    columns = read_csv_columns(source)
    require_columns(columns, *_REQUIRED_COLUMNS)
    cells = columns.table
    rows = range(len(cells["loss"]))
    instances = _name_instances(cells, len(rows))
    seen: Counter[tuple[str, str, str]] = Counter()
    repetitions = [0] * len(rows)
    seeds = cells.get("seed", [""] * len(rows))
    # Without seeds, rows are ordered by a hash: an order by loss would pair best with best, and
    # the result must not depend on the order of the rows.
    hashes = [crc32("\0".join(cell).encode()) for cell in zip(*cells.values(), strict=True)]
    for row in sorted(rows, key=lambda row: (natural_sort_key(seeds[row]), hashes[row])):
        key = (cells["optimizer_name"][row], instances[row], cells["budget"][row])
        repetitions[row] = seen[key]
        seen[key] += 1
    failed = [bool(error) for error in cells.get("error", [""] * len(rows))]
    losses = [
        np.inf if (wrong and not loss) or loss.lower() == "nan" else loss
        for loss, wrong in zip(cells["loss"], failed, strict=True)
    ]
    table = {
        "algorithm": cells["optimizer_name"],
        "instance": instances,
        "repetition": repetitions,
        "time": cells["budget"],
        "value": losses,
    }
    long = MappingTable(table, columns.describe_row)
    direction = resolve_direction(direction, "minimize")
    return Runs.from_table(
        long, Columns(until="last"), direction=direction, clock=clock, surely_runs=True
    )


def _name_instances(cells: dict[str, list[str]], rows: int) -> list[str]:
    """Name the problem of each row: its function, and the descriptors that vary."""
    descriptors = [
        n for n in cells if n not in _OTHER_COLUMNS and not n.startswith(("info/", "Unnamed:"))
    ]
    blank = [""] * rows
    functions = [
        name or kind or "problem"
        for name, kind in zip(
            cells.get("name", blank), cells.get("function_class", blank), strict=True
        )
    ]
    variants: dict[str, dict[str, set[str]]] = {}
    for row, function in enumerate(functions):
        values = variants.setdefault(function, {n: set() for n in descriptors})
        for name in descriptors:
            values[name].add(cells[name][row])
    varying = {
        function: [n for n in descriptors if n == "dimension" or len(values[n]) > 1]
        for function, values in variants.items()
    }
    return [
        ", ".join([function, *(f"{n}={cells[n][row]}" for n in varying[function])])
        for row, function in enumerate(functions)
    ]
