"""The pairs (instance, algorithm) that have runs, and the comparisons that each run is in."""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

import numpy as np

from polarbear.data.names import Codes
from polarbear.data.run import Run
from polarbear.data.trajectories import Ints


class RunPairs(NamedTuple):
    """All pairs (instance, algorithm) that have runs; runs are sorted by pair."""

    of_run: Ints  # (R,): the pair of each run
    first_run: Ints  # (P,)
    n_runs: Ints  # (P,)
    instance: Codes  # (P,)


def find_pairs(instance: Codes, algorithm: Codes) -> RunPairs:
    """Return the pairs (instance, algorithm) of sorted runs, with first run and number of runs."""
    is_first = np.ones(len(instance), dtype=bool)
    is_first[1:] = (np.diff(instance) != 0) | (np.diff(algorithm) != 0)
    first_run = np.flatnonzero(is_first)
    n_runs = np.diff(np.append(first_run, len(instance)))
    return RunPairs(np.cumsum(is_first) - 1, first_run, n_runs, instance[first_run])


def assign_slots(pairs: RunPairs, repetition: Ints) -> tuple[Ints, Ints]:
    """Return the comparison of its instance that each run is in, and the comparisons per instance.

    The slot is the run's repetition number, as counted within the instance. Where hardly any two
    algorithms share a number, as with seeds, it is the place of the run among those of its pair.
    """
    instance = pairs.instance[pairs.of_run]
    number, n_numbers = _number_repetitions(instance, repetition)
    place = np.arange(len(instance)) - pairs.first_run[pairs.of_run]
    n_places = np.zeros_like(n_numbers)
    np.maximum.at(n_places, pairs.instance, pairs.n_runs)
    n_runs = np.bincount(instance)
    by_number = (n_numbers < n_runs) & (n_numbers <= 2 * n_places)
    slot = np.where(by_number[instance], number, place)
    return slot, np.where(by_number, n_numbers, n_places)


def find_comparisons(runs: Iterable[Run]) -> Iterator[tuple[int, dict[str, Run]]]:
    """Yield the runs of each comparison by algorithm, with the repetition of a run to join them.

    That is their own number, or one that no run has if theirs differ, as with seeds.
    """
    runs = sorted(runs, key=lambda run: (run.instance, run.algorithm, run.repetition))
    columns = zip(*((run.instance, run.algorithm) for run in runs), strict=True)
    instance, algorithm = (
        np.unique(one, return_inverse=True)[1].astype(np.int32) for one in columns
    )
    repetition = np.array([run.repetition for run in runs])
    slot, _ = assign_slots(find_pairs(instance, algorithm), repetition)
    found: dict[tuple[str, int], dict[str, Run]] = {}
    for run, place in zip(runs, slot.tolist(), strict=True):
        found.setdefault((run.instance, place), {})[run.algorithm] = run
    used = {run.repetition for run in runs}
    unused = (number for number in count() if number not in used)
    for compared in found.values():
        numbers = {run.repetition for run in compared.values()}
        yield numbers.pop() if len(numbers) == 1 else next(unused), compared


def _number_repetitions(instance: Codes, repetition: Ints) -> tuple[Ints, Ints]:
    """Number the distinct repetitions of each instance; return the numbers and their counts."""
    order = np.lexsort((repetition, instance))
    instance, repetition = instance[order], repetition[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (instance[1:] != instance[:-1]) | (repetition[1:] != repetition[:-1])
    n_numbers = np.bincount(instance[is_new])
    first = np.cumsum(n_numbers) - n_numbers
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(is_new) - 1 - first[instance]
    return number, n_numbers
