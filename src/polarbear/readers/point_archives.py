"""``read_archives``: points of runs with several objectives, from tables, COCO, IOH and pymoo."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from os import PathLike
from typing import Any

import numpy as np

from polarbear.data.archives import Archives
from polarbear.data.run import Direction, Directions, Run
from polarbear.errors import DataError
from polarbear.readers.coco import read_coco_points
from polarbear.readers.ioh import read_ioh_points
from polarbear.readers.source import open_source
from polarbear.readers.tables import open_parquet_files, read_csv


def read_archives(
    source: object,
    *,
    objectives: Sequence[str] | None = None,
    direction: Directions | None = None,
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
        Infeasible points of pymoo are left out.
    objectives
        The columns of the objectives, for tables.
    direction
        One direction for all objectives, or one for each. By default what logs of IOHprofiler
        state, and else "minimize".
    columns
        For tables, fields of :class:`polarbear.readers.Columns`.

    Examples
    --------
    >>> table = {"algorithm": ["a", "b"], "instance": ["i", "i"], "time": [1, 1], "f": [1, 2],
    ...          "g": [3, 2]}
    >>> print(read_archives(table, objectives=("f", "g")))
    2 runs: 2 algorithms on 1 instance, 2 points with the objectives f, g
    """
    if isinstance(source, Mapping) and all(isinstance(key, tuple) for key in source):
        return _join([*_read_pymoo(source)], direction, clock or "evaluations")
    if not isinstance(source, str | PathLike):
        names = _require_objectives(objectives)
        more = {"clock": clock or "time", **columns}
        return Archives.from_frame(
            source, objectives=names, direction=direction or "minimize", **more
        )
    with closing(open_source(source)) as files:
        if files.ending(".adat"):
            return _join([*read_coco_points(files)], direction, clock or "evaluations")
        if any("IOHprofiler" in name for name in files.ending(".json")):
            listed = [*read_ioh_points(files)]
            stated: set[Direction] = {own for _, _, own in listed}
            if direction is None and len(stated) > 1:
                raise DataError("some logs minimise and others maximise: state direction=")
            direction = direction or (stated.pop() if stated else None)
            records = [(run, names) for run, names, _ in listed]
            return _join(records, direction, clock or "evaluations")
        if files.ending(".info"):
            raise DataError(
                f"{files.label} holds no points (.adat), but perhaps an indicator: use pb.read"
            )
        names = _require_objectives(objectives)
        more = {"direction": direction or "minimize", "clock": clock or "time", **columns}
        if files.ending(".parquet", ".pq"):
            (_, table, _), *others = open_parquet_files(files)
            if others:
                raise DataError(f"{files.label} holds several Parquet files: join them into one")
        else:
            table = read_csv(files).columns
        return Archives.from_frame(table, objectives=names, **more)


def _read_pymoo(results: Mapping[Any, Any]) -> Iterator[tuple[Run, tuple[str, ...]]]:
    """Yield a run for each result of pymoo: the feasible points that its history holds.

    A generation has the population and the offspring, which are in the order of their evaluation.
    MOEA/D keeps only the last of its offspring, so a point that it replaces within a generation is
    unknown.
    """
    for (algorithm, instance, *repetition), result in results.items():
        if not getattr(result, "history", None):
            raise DataError(f"{algorithm} on {instance}: run pymoo with save_history=True")
        times, points, before = list[float](), list[list[float]](), 0
        for entry in result.history:
            n_evaluations = int(entry.evaluator.n_eval)
            offspring = [*np.atleast_1d(entry.off)] if entry.off is not None else []
            is_complete = len(offspring) == n_evaluations - before
            for k, solution in enumerate([*offspring, *entry.pop]):
                if solution.FEAS.all():
                    in_order = is_complete and k < len(offspring)
                    times.append(float(before + k + 1 if in_order else n_evaluations))
                    points.append(solution.F.tolist())
            before = n_evaluations
        number = int(repetition[0]) if repetition else 0
        names = tuple(f"f{k + 1}" for k in range(len(result.history[0].pop[0].F)))
        yield (
            Run(
                algorithm=str(algorithm),
                instance=str(instance),
                time=times,
                value=points,
                until=float(before),
                repetition=number,
            ),
            names,
        )


def _join(
    records: Sequence[tuple[Run, tuple[str, ...]]],
    direction: Directions | None,
    clock: str,
) -> Archives:
    if not records:
        raise DataError("the source holds no runs with several objectives")
    names = records[0][1]
    if any(own != names for _, own in records):
        raise DataError("the runs have different objectives: read those with the same ones")
    runs = [run for run, _ in records]
    return Archives.from_records(
        runs, objectives=names, direction=direction or "minimize", clock=clock
    )


def _require_objectives(objectives: Sequence[str] | None) -> Sequence[str]:
    if objectives is None:
        raise DataError("a table needs the columns of its objectives: objectives=('f1', 'f2')")
    return objectives
