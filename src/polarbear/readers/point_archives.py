"""``read_archives``: points of runs with several objectives, from tables, COCO, IOH and pymoo."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from os import PathLike
from typing import Any

import numpy as np

from polarbear.data.archives import Archives
from polarbear.data.run import Directions, Run
from polarbear.errors import DataError
from polarbear.readers.coco import read_coco_points
from polarbear.readers.ioh import read_ioh_points
from polarbear.readers.source import open_source
from polarbear.readers.tables import open_parquet_files, read_csv


def read_archives(
    source: object,
    *,
    objectives: Sequence[str] | None = None,
    direction: Directions = "minimize",
    clock: str | None = None,
    **columns: Any,
) -> Archives:
    """Read the points of runs with several objectives.

    Parameters
    ----------
    source
        A path of COCO archives (bbob-biobj, ``.adat``), of IOHprofiler folders with several
        objectives, or of one CSV or Parquet table; a data frame; or results of pymoo with
        ``save_history=True``, as a mapping from (algorithm, instance, repetition) to a result.
    objectives
        The columns of the objectives, for tables.
    direction
        One direction for all objectives, or one for each.
    columns
        For tables, the names of columns as in :meth:`Archives.from_frame`.

    Examples
    --------
    >>> table = {"algorithm": ["a", "b"], "instance": ["i", "i"], "time": [1, 1], "f": [1, 2],
    ...          "g": [3, 2]}
    >>> print(read_archives(table, objectives=("f", "g")))
    2 runs: 2 algorithms on 1 instance, 2 points with the objectives f, g
    """
    if isinstance(source, Mapping) and all(isinstance(key, tuple) for key in source):
        records = [(run, _name_objectives(run)) for run in _read_pymoo(source)]
        return _join(records, direction, clock or "evaluations")
    if not isinstance(source, str | PathLike):
        names = _require_objectives(objectives)
        more = {"clock": clock or "time", **columns}
        return Archives.from_frame(source, objectives=names, direction=direction, **more)
    with closing(open_source(source)) as files:
        if files.ending(".adat"):
            return _join(list(read_coco_points(files)), direction, clock or "evaluations")
        if any("IOHprofiler" in name for name in files.ending(".json")):
            return _join(list(read_ioh_points(files)), direction, clock or "evaluations")
        names = _require_objectives(objectives)
        more = {"direction": direction, "clock": clock or "time", **columns}
        if files.ending(".parquet", ".pq"):
            _, table, _ = next(iter(open_parquet_files(files)))
        else:
            table = read_csv(files).columns
        return Archives.from_columns(table, objectives=names, **more)


def _read_pymoo(results: Mapping[Any, Any]) -> Iterator[Run]:
    """Yield a run for each result of pymoo: the population after each of its generations."""
    for (algorithm, instance, *repetition), result in results.items():
        if not getattr(result, "history", None):
            raise DataError(f"{algorithm} on {instance}: run pymoo with save_history=True")
        times, points = list[float](), list[Any]()
        for entry in result.history:
            costs = np.atleast_2d(entry.pop.get("F"))
            times += [float(entry.evaluator.n_eval)] * len(costs)
            points += costs.tolist()
        number = int(repetition[0]) if repetition else 0
        yield Run(str(algorithm), str(instance), times, points, max(times), number)


def _name_objectives(run: Run) -> tuple[str, ...]:
    return tuple(f"f{k + 1}" for k in range(np.shape(run.value)[1]))


def _join(
    records: Sequence[tuple[Run, tuple[str, ...]]],
    direction: Directions,
    clock: str,
) -> Archives:
    if not records:
        raise DataError("the source holds no runs with several objectives")
    names = records[0][1]
    if any(own != names for _, own in records):
        raise DataError("the runs have different objectives: read those with the same ones")
    runs = [run for run, _ in records]
    return Archives.from_records(runs, objectives=names, direction=direction, clock=clock)


def _require_objectives(objectives: Sequence[str] | None) -> Sequence[str]:
    if objectives is None:
        raise DataError("a table needs the columns of its objectives: objectives=('f1', 'f2')")
    return objectives
