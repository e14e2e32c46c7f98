"""Reader of benchopt results: a row per solver, dataset, repetition and stopping value."""

import numpy as np

from polarbear.data.columns import Columns
from polarbear.data.run import Direction, Status, sign_of
from polarbear.data.runs import Runs
from polarbear.data.table import MappingTable, Table
from polarbear.readers.source import Source, prefix_errors
from polarbear.readers.tables import open_parquet_files, read_csv_columns, require_columns

_REQUIRED_COLUMNS = ("solver_name", "objective_name", "idx_rep", "stop_val", "time")


def read_benchopt(
    source: Source,
    *,
    direction: Direction = "minimize",
    clock: str = "seconds",
    value: str = "objective_value",
) -> Runs:
    """Read results of benchopt; ``value`` is the ``objective_*`` column to compare.

    Times are seconds of the solver alone. benchopt runs most solvers anew for every stopping
    value, so the best so far is over all runs that took no longer. A solver that runs once has
    finished; the files do not say why others stopped.
    """
    parts: list[Runs] = []
    if not any(name.lower().endswith((".parquet", ".pq")) for name in source.files):
        parts.append(_read_columns(read_csv_columns(source), direction, clock, value))
    else:
        for name, columns, _ in open_parquet_files(source):
            with prefix_errors(name):
                parts.append(_read_columns(columns, direction, clock, value))
    return Runs.concat(parts)


def _read_columns(columns: Table, direction: Direction, clock: str, value: str) -> Runs:
    dataset = "dataset_name" if "dataset_name" in columns.names else "data_name"
    require_columns(columns, *_REQUIRED_COLUMNS, dataset, value)
    solvers = columns.read_labels("solver_name").to_list()
    strategies = [""] * len(solvers)
    if "sampling_strategy" in columns.names:
        strategies = [s.lower() for s in columns.read_labels("sampling_strategy").to_list()]
    # A solver that diverged has nan, which counts as no value.
    values, worst = columns.read_numbers(value), np.inf * sign_of(direction)
    table = {
        "algorithm": solvers,
        "instance": [
            f"{data} | {objective}"
            for data, objective in zip(
                columns.read_labels(dataset).to_list(),
                columns.read_labels("objective_name").to_list(),
                strict=True,
            )
        ],
        "repetition": columns.read_labels("idx_rep").to_list(),
        "time": columns.read_numbers("time"),
        "value": np.where(np.isnan(values), worst, values),
        "status": [
            str(Status.FINISHED if s == "run_once" else Status.UNSTATED) for s in strategies
        ],
    }
    long = MappingTable(table, columns.describe_row)
    return Runs.from_table(
        long, Columns(until="last"), direction=direction, clock=clock, surely_runs=True
    )
