"""Simulation of rankings and runs of algorithms with known utilities.

A run of algorithm i has at each time a noisy utility, U_i(t) = mu_i(t) + Gumbel noise, and runs
are ranked by it. For any autocorrelation of the noise over time, the rankings at each single time
follow exactly a Plackett-Luce model with log-utilities mu(t).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from polarbear.data.positions import compute_positions
from polarbear.data.rankings import Rankings, Ties
from polarbear.data.run import Run, Status
from polarbear.data.runs import Runs
from polarbear.errors import DataError
from polarbear.priors.base import scale_times

Floats = NDArray[np.float64]


def rank_costs(
    costs: Floats,
    *,
    algorithms: Sequence[str] | None = None,
    times: Floats | None = None,
    weight: Floats | None = None,
    ties: Ties = "unordered",
) -> Rankings:
    """Rank costs (times, instances, algorithms); the smallest is best, and nan is unknown.

    >>> rank_costs(np.array([[[1.0, 2.0, 2.0]]])).order("i1", 0.0)
    [[('a1',), ('a2', 'a3')]]
    """
    n_times, instances, n = np.shape(costs)
    return Rankings(
        algorithms=tuple(f"a{k + 1}" for k in range(n))
        if algorithms is None
        else tuple(algorithms),
        instances=tuple(f"i{k + 1}" for k in range(instances)),
        times=np.linspace(0.0, 1.0, n_times) if times is None else times,
        position=compute_positions(np.asarray(costs, dtype=np.float64)).reshape(n_times, -1),
        algorithm=np.tile(np.arange(n, dtype=np.int32), instances),
        offset=np.arange(instances + 1, dtype=np.int64) * n,
        instance=np.arange(instances, dtype=np.int32),
        weight=np.ones(instances) if weight is None else weight,
        ties=ties,
    )


def draw_persistent_noise(
    times: Floats, size: tuple[int, ...], persistence: float, seed: int | np.random.Generator = 0
) -> Floats:
    """Draw Gumbel noise that is autocorrelated over time (times, ...).

    At each time the noise is exactly Gumbel. Two times have a Gaussian copula with correlation
    ``exp(-gap / persistence)``. The range of the times is 1 (or that of their logarithms if they
    span a factor of 100, as for priors). Persistence 0 is independent noise at each time, which
    the paper's likelihood assumes; infinity is one draw for all times.

    >>> noise = draw_persistent_noise(np.array([0.0, 1.0]), (1000,), np.inf)
    >>> bool(np.all(noise[0] == noise[1]))
    True
    """
    if not persistence >= 0:
        raise DataError("expected a number from 0 to inf", persistence=persistence)
    rng = np.random.default_rng(seed)
    if persistence == 0:
        return rng.gumbel(size=(len(times), *size))
    gap = np.diff(scale_times(np.asarray(times, dtype=np.float64)))
    normal = rng.standard_normal((len(times), *size))
    for t, correlation in enumerate(np.exp(-gap / persistence), start=1):
        normal[t] = correlation * normal[t - 1] + np.sqrt(1 - correlation**2) * normal[t]
    # The Gumbel quantile of Phi(z), through logarithms so that no tail is cut.
    return -np.log(-log_ndtr(normal))


def draw_noisy_utilities(
    utilities: Floats,
    instances: int,
    seed: int | np.random.Generator = 0,
    times: Floats | None = None,
    *,
    persistence: float = 0.0,
    spread: ArrayLike = 0.0,
    rounding: float = 0.0,
) -> Floats:
    """Draw the noisy utility of each run (times, instances, algorithms); the largest is best.

    The parameters are those of :func:`simulate_rankings`.

    >>> draw_noisy_utilities(np.zeros((3, 2)), instances=4).shape
    (3, 4, 2)
    """
    rng = np.random.default_rng(seed)
    n_times, n = utilities.shape[0], utilities.shape[-1]
    times = np.linspace(0.0, 1.0, n_times) if times is None else times
    per_instance = utilities if utilities.ndim == 3 else utilities[:, None, :]
    noisy = per_instance + draw_persistent_noise(times, (instances, n), persistence, rng)
    if np.any(np.asarray(spread) != 0):
        noisy = noisy + np.asarray(spread) * rng.standard_normal((instances, n))
    return noisy if rounding == 0 else rounding * np.round(noisy / rounding)


def simulate_rankings(
    utilities: Floats,
    instances: int,
    seed: int | np.random.Generator = 0,
    times: Floats | None = None,
    *,
    persistence: float = 0.0,
    spread: ArrayLike = 0.0,
    rounding: float = 0.0,
) -> Rankings:
    """Draw rankings from a Plackett-Luce model, given log-utilities (times, algorithms).

    Parameters
    ----------
    utilities
        The truth: shape (T, n), or (T, instances, n) where it differs between instances.
    instances, seed
        The number of rankings at each time; the same seed gives the same rankings.
    times
        The grid, by default evenly from 0 to 1.
    persistence
        The correlation length of the noise of a run, in units of the range of times: 0 is
        independent noise at each time, as the paper's likelihood assumes, and inf is one draw per
        run. The distribution at each single time does not depend on it.
    spread
        The standard deviation of the effect of an instance on the utility of an algorithm, equal
        at all times: one number, or one for each algorithm ("specialists" depend on the instance
        more than others). The rankings then deviate from a Plackett-Luce model, and the truth is
        the nearest one: :func:`polarbear.calibration.fit_utilities` of many such rankings.
    rounding
        Noisy utilities are rounded to multiples of it, which makes ties. With ties the truth is
        the nearest model as well.

    Examples
    --------
    >>> truth = np.array([[0.0, 1.0, 2.0]])
    >>> rankings = simulate_rankings(truth, 1000)
    >>> abs(rankings.win_rate("a3", "a1")[0] - 1 / (1 + np.exp(-2))) < 0.03
    np.True_
    """
    # The order of utilities with Gumbel noise is a draw from the Plackett-Luce model.
    noisy = draw_noisy_utilities(
        utilities,
        instances,
        seed,
        times,
        persistence=persistence,
        spread=spread,
        rounding=rounding,
    )
    return rank_costs(-noisy, times=times)


def simulate_runs(
    utilities: Floats,
    instances: int,
    seed: int | np.random.Generator = 0,
    times: Floats | None = None,
    *,
    persistence: float = 0.0,
    spread: ArrayLike = 0.0,
    rounding: float = 0.0,
    crashed: float = 0.0,
    cut: float = 0.0,
) -> Runs:
    """Simulate runs, to be minimised, whose rankings are those of :func:`simulate_rankings`.

    Ranked at ``times``, the runs give the rankings that the same seed and parameters give there.
    A best-so-far value never gets worse, while noisy utilities go up and down. Only the order at
    each time matters, so a trend common to all runs is added, steep enough that every run
    improves from each time to the next.

    Parameters
    ----------
    utilities, instances, seed, times, persistence, spread, rounding
        As in :func:`simulate_rankings`.
    crashed
        The share of runs that crash, each after a random number of the times, or before the
        first. By the trend they fall behind all other runs. No Plackett-Luce model holds then.
    cut
        The share of runs that are censored after a random one of the times. Censoring does not
        depend on the values, so the truth does not change.

    Examples
    --------
    >>> import polarbear as pb
    >>> runs = simulate_runs(np.zeros((3, 2)), 4, persistence=np.inf, crashed=0.2)
    >>> print(runs)
    8 runs: 2 algorithms on 4 instances, minimize
      algorithms  a1, a2
      time        0 to 1, ... improvements
      ended       ...
    """
    if not (crashed >= 0 and cut >= 0 and crashed + cut <= 1):
        raise DataError(
            f"crashed={crashed!r}, cut={cut!r}: expected shares of the runs, with a sum of at "
            "most 1"
        )
    rng = np.random.default_rng(seed)
    n_times = len(utilities)
    times = np.linspace(0.0, 1.0, n_times) if times is None else np.asarray(times, dtype=float)
    noisy = draw_noisy_utilities(
        utilities, instances, rng, times, persistence=persistence, spread=spread
    )
    # The trend has whole steps where values are rounded, so that ties stay exact.
    step = rounding if rounding > 0 else 1.0
    level = np.round(noisy / step) if rounding > 0 else noisy
    rise = level[:-1].max(axis=(1, 2)) - level[1:].min(axis=(1, 2)) + 1
    trend = np.concatenate([[0.0], np.cumsum(np.ceil(rise))])
    value = -step * (level + trend[:, None, None])
    uniform = rng.random((instances, value.shape[2]))
    records = []
    for (instance, algorithm), u in np.ndenumerate(uniform):
        n_seen, status = n_times, Status.CUT
        if u < crashed:
            n_seen, status = int(rng.integers(n_times)), Status.CRASHED
        elif u < crashed + cut:
            n_seen = int(rng.integers(1, n_times + 1))
        until = float(times[n_seen - 1]) if n_seen else 0.0
        records.append(
            Run(
                algorithm=f"a{algorithm + 1}",
                instance=f"i{instance + 1}",
                time=times[:n_seen],
                value=value[:n_seen, instance, algorithm],
                until=until,
                status=status,
            )
        )
    return Runs.from_records(records, direction="minimize")
