"""The pairs (instance, algorithm) that have runs, and the comparisons that each run is in."""

from typing import NamedTuple

import numpy as np

from polarbear.data.names import Codes
from polarbear.data.runs import Runs
from polarbear.data.trajectories import Ints


class RunPairs(NamedTuple):
    """All pairs (instance, algorithm) that have runs; runs are sorted by pair."""

    of_run: Ints  # (R,): the pair of each run
    first_run: Ints  # (P,)
    n_runs: Ints  # (P,)
    instance: Codes  # (P,)


def find_pairs(runs: Runs) -> RunPairs:
    """Return the pairs (instance, algorithm) that have runs, with first run and number of runs."""
    is_first = np.ones(len(runs), dtype=bool)
    is_first[1:] = (np.diff(runs.instance) != 0) | (np.diff(runs.algorithm) != 0)
    first_run = np.flatnonzero(is_first)
    n_runs = np.diff(np.append(first_run, len(runs)))
    return RunPairs(np.cumsum(is_first) - 1, first_run, n_runs, runs.instance[first_run])


def assign_slots(runs: Runs, pairs: RunPairs) -> tuple[Ints, Ints]:
    """Return the comparison of its instance that each run is in, and the comparisons per instance.

    The slot is the run's repetition number, as counted within the instance. Where hardly any two
    algorithms share a number, as with seeds, it is the place of the run among those of its pair.
    """
    number, n_numbers = _number_repetitions(runs)
    place = np.arange(len(runs)) - pairs.first_run[pairs.of_run]
    n_places = np.zeros(len(runs.instances), dtype=np.int64)
    np.maximum.at(n_places, pairs.instance, pairs.n_runs)
    n_runs = np.bincount(runs.instance, minlength=len(runs.instances))
    by_number = (n_numbers < n_runs) & (n_numbers <= 2 * n_places)
    slot = np.where(by_number[runs.instance], number, place)
    return slot, np.where(by_number, n_numbers, n_places)


def _number_repetitions(runs: Runs) -> tuple[Ints, Ints]:
    """Number the distinct repetitions of each instance; return the numbers and their counts."""
    order = np.lexsort((runs.repetition, runs.instance))
    instance, repetition = runs.instance[order], runs.repetition[order]
    is_new = np.ones(len(runs), dtype=bool)
    is_new[1:] = (instance[1:] != instance[:-1]) | (repetition[1:] != repetition[:-1])
    n_numbers = np.bincount(instance[is_new], minlength=len(runs.instances))
    first = np.cumsum(n_numbers) - n_numbers
    number = np.empty(len(runs), dtype=np.int64)
    number[order] = np.cumsum(is_new) - 1 - first[instance]
    return number, n_numbers
