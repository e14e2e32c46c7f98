"""``RunColumns``: many runs as arrays, made of ``Run`` records."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear._text import format_count
from polarbear.data.names import Codes, to_name
from polarbear.data.run import STATUSES, Run, are_valid_trajectories
from polarbear.data.table import Labels


class RunColumns(NamedTuple):
    """Runs as arrays with one element per run, and their times and values in further arrays."""

    algorithm: Labels  # (R,)
    instance: Labels  # (R,)
    repetition: NDArray[np.int64]  # (R,)
    until: NDArray[np.float64]  # (R,)
    status: NDArray[np.int8]  # (R,): the index of each run's status in STATUSES
    run_of_row: NDArray[np.integer]  # (rows,): the run that a row belongs to
    time: NDArray[np.float64]  # (rows,)
    value: NDArray[np.float64]  # (rows,)


def to_run_columns(records: Sequence[Run]) -> RunColumns:
    """Convert run records to arrays; ``ValueError`` or ``TypeError`` if one is invalid.

    All records are checked at once, which is many times faster than one by one. The error does
    not say which record is invalid: the caller finds it with ``check_run``.
    """
    times = [_to_vector(record.time) for record in records]
    values = [_to_vector(record.value) for record in records]
    n_rows = np.array([len(time) for time in times], dtype=np.int64)
    if not np.array_equal(n_rows, [len(value) for value in values]):
        raise ValueError("a run must have as many times as values")
    if not all(isinstance(record.repetition, Integral) for record in records):
        raise ValueError("the repetition of a run must be a whole number")
    until = np.array([record.until for record in records], dtype=np.float64)
    columns = RunColumns(
        algorithm=encode_names(record.algorithm for record in records),
        instance=encode_names(record.instance for record in records),
        repetition=np.array([record.repetition for record in records], dtype=np.int64),
        until=until.reshape(len(records)),
        status=np.array([STATUSES.index(record.status) for record in records], dtype=np.int8),
        run_of_row=np.repeat(np.arange(len(records)), n_rows),
        time=np.concatenate([np.empty(0), *times]),
        value=np.concatenate([np.empty(0), *values]),
    )
    if "" in columns.algorithm.names or "" in columns.instance.names:
        raise ValueError("a run must have the name of an algorithm and of an instance")
    if not are_valid_trajectories(columns.time, columns.value, columns.until, columns.run_of_row):
        raise ValueError(
            "a run has a time that is negative or after its end, or a value that is not a number"
        )
    return columns


def _to_vector(numbers: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(numbers, dtype=np.float64).ravel()


def encode_names(names: Iterable[str]) -> Labels:
    """Encode names as whole numbers, in the order in which names first occur."""
    code_of: dict[str, int] = {}
    codes = [code_of.setdefault(to_name(name), len(code_of)) for name in names]
    return Labels(np.array(codes, dtype=np.int32), list(code_of))


def describe_incomplete(
    algorithms: Sequence[str], algorithm: Codes, instance: Codes, n_instances: int
) -> list[str]:
    """List algorithms that lack instances or have fewer runs than others, with numbers.

    >>> describe_incomplete(["a", "b"], np.array([0, 0, 1]), np.array([0, 1, 0]), 2)
    ['b ran on 1 of 2 instances']
    """
    pairs = np.unique(algorithm.astype(np.int64) * n_instances + instance)
    ran_on = np.bincount(pairs // max(n_instances, 1), minlength=len(algorithms)).tolist()
    n_runs = np.bincount(algorithm, minlength=len(algorithms)).tolist()
    max_runs = max(n_runs, default=0)
    descriptions = []
    for name, covered, n in zip(algorithms, ran_on, n_runs, strict=True):
        if covered < n_instances:
            total = format_count(n_instances, "instance")
            descriptions.append(f"{name} ran on {covered:,} of {total}")
        elif n < max_runs:
            descriptions.append(f"{name} has {n:,} of {max_runs:,} runs")
    return descriptions
