"""benchopt's results: Parquet or CSV, a row per solver, dataset, repetition and stopping value."""

import numpy as np

from polarbear.data.columns import Columns, MappingColumns
from polarbear.data.long_table import ColumnNaming
from polarbear.data.run import Direction, Status, sign_of
from polarbear.data.runs import Runs
from polarbear.readers.source import Source, naming
from polarbear.readers.tables import csv_columns, need, parquet_columns

_NEEDED = ("solver_name", "objective_name", "idx_rep", "stop_val", "time")


def read_benchopt(
    source: Source,
    *,
    direction: Direction = "minimize",
    clock: str = "seconds",
    value: str = "objective_value",
) -> Runs:
    """Results of benchopt; ``value`` says which of its ``objective_*`` columns to compare.

    Times are seconds of the solver alone. benchopt times most solvers by running them anew for
    every stopping value, so best-so-far is over all runs that took no longer. A solver that runs
    once has finished; of the others the file does not say why they stopped, so they count as cut.
    """
    parts: list[Runs] = []
    if not any(name.lower().endswith((".parquet", ".pq")) for name in source.files):
        parts.append(_runs(csv_columns(source), direction, clock, value))
    else:
        for name, columns, _ in parquet_columns(source):
            with naming(name):
                parts.append(_runs(columns, direction, clock, value))
    return Runs.concat(parts)


def _runs(columns: Columns, direction: Direction, clock: str, value: str) -> Runs:
    dataset = "dataset_name" if "dataset_name" in columns.names else "data_name"
    need(columns, *_NEEDED, dataset, value)
    solvers = columns.labels("solver_name").texts()
    strategies = [""] * len(solvers)
    if "sampling_strategy" in columns.names:
        strategies = [s.lower() for s in columns.labels("sampling_strategy").texts()]
    # A solver that diverged has nan: no value, rather than one that cannot be ranked.
    values, worst = columns.numbers(value), np.inf * sign_of(direction)
    table = {
        "algorithm": solvers,
        "instance": [
            f"{data} | {objective}"
            for data, objective in zip(
                columns.labels(dataset).texts(),
                columns.labels("objective_name").texts(),
                strict=True,
            )
        ],
        "repetition": columns.labels("idx_rep").texts(),
        "time": columns.numbers("time"),
        "value": np.where(np.isnan(values), worst, values),
        "status": [str(Status.FINISHED if s == "run_once" else Status.CUT) for s in strategies],
    }
    long = MappingColumns(table, columns.where)
    return Runs.from_columns(
        long, ColumnNaming(until="last"), direction=direction, clock=clock, surely_runs=True
    )
