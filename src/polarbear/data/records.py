"""Records of single runs as arrays of all of them."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from polarbear._text import format_count
from polarbear.data.columns import Labels
from polarbear.data.names import Codes, to_name
from polarbear.data.run import STATUSES, Run


def columns_of_records(records: list[Run]) -> tuple[Any, ...]:
    """Records as arrays, checked all at once; ``ValueError`` if something is wrong with one."""
    times = [np.asarray(record.time, dtype=np.float64).ravel() for record in records]
    values = [np.asarray(record.value, dtype=np.float64).ravel() for record in records]
    lengths = np.array([len(time) for time in times], dtype=np.int64)
    until = np.array([record.until for record in records], dtype=np.float64).reshape(len(records))
    repetition = [record.repetition for record in records]
    run = np.repeat(np.arange(len(records)), lengths)
    time, value = (np.concatenate([np.empty(0), *parts]) for parts in (times, values))
    sound = (
        np.array_equal(lengths, [len(own) for own in values])
        and np.isfinite(time).all()
        and np.all(time >= 0)
        and not np.isnan(value).any()
        and np.isfinite(until).all()
        and np.all(until >= 0)
        and np.all(time <= until[run])
        and all(isinstance(number, Integral) for number in repetition)
        and all(to_name(record.algorithm) and to_name(record.instance) for record in records)
    )
    if not sound:
        raise ValueError
    return (
        labels_of(record.algorithm for record in records),
        labels_of(record.instance for record in records),
        np.array(repetition, dtype=np.int64),
        until,
        np.array([STATUSES.index(record.status) for record in records], dtype=np.int8),
        run,
        time,
        value,
    )


def labels_of(names: Iterable[str]) -> Labels:
    """Names as codes, by the order in which they come."""
    place: dict[str, int] = {}
    codes = [place.setdefault(to_name(name), len(place)) for name in names]
    return Labels(np.array(codes, dtype=np.int32), list(place))


def incomplete(
    algorithms: Sequence[str], algorithm: Codes, instance: Codes, n_instances: int
) -> list[str]:
    """Which algorithms have not run on all instances, or less often than others, in words.

    >>> incomplete(["a", "b"], np.array([0, 0, 1]), np.array([0, 1, 0]), 2)
    ['b ran on 1 of 2 instances']
    """
    pairs = np.unique(algorithm.astype(np.int64) * n_instances + instance)
    ran_on = np.bincount(pairs // max(n_instances, 1), minlength=len(algorithms)).tolist()
    runs = np.bincount(algorithm, minlength=len(algorithms)).tolist()
    most, several = max(runs, default=0), format_count(n_instances, "instance")
    return [
        f"{name} ran on {k:,} of {several}"
        if k < n_instances
        else f"{name} has {r:,} of {most:,} runs"
        for name, k, r in zip(algorithms, ran_on, runs, strict=True)
        if k < n_instances or r < most
    ]
