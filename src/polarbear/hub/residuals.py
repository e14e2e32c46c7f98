"""``measure_residuals``: do the runs of a worker agree with those of others?

On the wall clock a run cannot be repeated exactly, so a slow or noisy machine is found by what its
runs say: each run is compared with what the posterior expects of its algorithm.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from polarbear.data.positions import UNKNOWN
from polarbear.data.rankings import Rankings
from polarbear.inference.posterior import Posterior

MIN_RUNS = 20
"""Workers with fewer runs are not judged."""

MAX_DEVIATION = 5.0
"""The number of standard errors from which on a worker is called deviating. By chance that happens
to about 1 in a million workers."""


class Residual(NamedTuple):
    """How the runs of a worker differ from what the posterior expects.

    ``mean`` is the mean of (share of opponents beaten - share lost to) minus its expectation, from
    -2 to 2: negative if its runs are worse than expected. ``shift`` and ``noise`` are the
    deviations of the mean and of the variance from those of all runs, in standard errors.
    """

    worker: str
    n_runs: int
    mean: float
    shift: float
    noise: float

    @property
    def is_deviating(self) -> bool:
        """Whether the worker should make no timed runs: it is biased, or too noisy."""
        is_judged = self.n_runs >= MIN_RUNS
        return is_judged and (abs(self.shift) > MAX_DEVIATION or self.noise > MAX_DEVIATION)


def measure_residuals(
    rankings: Rankings, posterior: Posterior, worker_of: Mapping[tuple[str, str], str]
) -> list[Residual]:
    """Return the residual of each worker, the most deviating first.

    Parameters
    ----------
    rankings
        The positions of all runs.
    posterior
        The ratings at the times of the rankings.
    worker_of
        The worker of each run, by algorithm and instance.

    Examples
    --------
    >>> import polarbear as pb
    >>> from polarbear.data.rankings import rank
    >>> frame = {"algorithm": ["a", "b"] * 30, "instance": [k // 2 for k in range(60)],
    ...          "time": [1] * 60, "value": [(-1) ** (k % 3) for k in range(60)]}
    >>> runs = pb.Runs.from_frame(frame, direction="minimize")
    >>> worker_of = {(name, str(k)): f"w{k % 2}" for k in range(30) for name in "ab"}
    >>> [one.n_runs for one in measure_residuals(rank(runs), pb.fit(runs), worker_of)]
    [30, 30]
    """
    by_worker: defaultdict[str, list[float]] = defaultdict(list)
    for (algorithm, instance), value in _compare_runs(rankings, posterior):
        if worker := worker_of.get((algorithm, instance)):
            by_worker[worker].append(value)
    values = np.array([value for own in by_worker.values() for value in own])
    variance = max(float(np.mean(values**2)) if len(values) else 0.0, 1e-12)
    kurtosis = float(np.mean(values**4)) / variance**2 if len(values) else 3.0
    residuals: list[Residual] = []
    for worker, own in by_worker.items():
        n, mean = len(own), float(np.mean(own))
        shift = mean * np.sqrt(n / variance)
        noise = (np.mean(np.square(own)) / variance - 1) * np.sqrt(n / max(kurtosis - 1, 1e-12))
        residuals.append(Residual(worker, n, mean, float(shift), float(noise)))
    return sorted(residuals, key=lambda one: -max(abs(one.shift), one.noise))


def _compare_runs(rankings: Rankings, posterior: Posterior) -> list[tuple[tuple[str, str], float]]:
    """Return the residual of each run: the mean over times of what it beat minus the expectation.

    What it beat is the share of opponents behind it, minus the share ahead of it.
    """
    names = posterior.algorithms
    expected = np.zeros((len(names), len(names), len(rankings.times)))
    for i, a in enumerate(names):
        for j, b in enumerate(names[:i]):
            expected[i, j] = 2 * posterior.win_probability(a, b)[0] - 1
            expected[j, i] = -expected[i, j]
    code = {name: k for k, name in enumerate(names)}
    residuals: list[tuple[tuple[str, str], float]] = []
    for c, instance in enumerate(rankings.instance):
        part = slice(rankings.offset[c], rankings.offset[c + 1])
        position = rankings.position[:, part].astype(int)  # (times, entries)
        is_known = position != UNKNOWN
        rows = [rankings.algorithms[k] for k in rankings.algorithm[part]]
        codes = np.array([code.get(name, -1) for name in rows])
        is_known &= codes >= 0
        score = np.sign(position[:, None, :] - position[:, :, None])  # (times, entries, opponents)
        both = is_known[:, :, None] & is_known[:, None, :] & ~np.eye(len(rows), dtype=bool)
        differences = np.where(both, score - expected[codes[:, None], codes].transpose(2, 0, 1), 0)
        n_compared = both.sum(axis=(0, 2))
        for k in np.flatnonzero(n_compared):
            key = (rows[k], rankings.instances[instance])
            residuals.append((key, float(differences[:, k].sum() / n_compared[k])))
    return residuals
