"""Simulated data with known truth, for tests, benchmarks and studies."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings, positions_of
from polarbear.priors.any import Prior
from polarbear.priors.bspline import BSpline
from polarbear.priors.dirichlet import Dirichlet, HierarchicalDirichlet
from polarbear.priors.gp import GP, HSGP, SparseGP
from polarbear.priors.random_walk import RandomWalk

Floats = NDArray[np.float64]

PRIORS: Mapping[str, Prior] = {
    "Dirichlet": Dirichlet(),
    "HierarchicalDirichlet": HierarchicalDirichlet(),
    "BSpline": BSpline(),
    "RandomWalk": RandomWalk(),
    "SparseGP": SparseGP(),
    "HSGP": HSGP(),
    "GP": GP(),
}
"""The seven models of the paper, as they come."""


def rankings_of(
    costs: Floats,
    *,
    algorithms: Sequence[str] | None = None,
    times: Floats | None = None,
    weight: Floats | None = None,
) -> Rankings:
    """Rankings of costs (T, instances, n), of which the smallest is best and nan is not known.

    >>> rankings_of(np.array([[[1.0, 2.0, 2.0]]])).order("i1", 0.0)
    [[('a1',), ('a2', 'a3')]]
    """
    n_times, instances, n = np.shape(costs)
    return Rankings(
        tuple(f"a{k + 1}" for k in range(n)) if algorithms is None else tuple(algorithms),
        tuple(f"i{k + 1}" for k in range(instances)),
        np.linspace(0.0, 1.0, n_times) if times is None else times,
        positions_of(np.asarray(costs, dtype=np.float64)).reshape(n_times, -1),
        np.tile(np.arange(n, dtype=np.int32), instances),
        np.arange(instances + 1, dtype=np.int64) * n,
        np.arange(instances, dtype=np.int32),
        np.ones(instances) if weight is None else weight,
    )


def simulate_rankings(
    utilities: Floats,
    instances: int,
    seed: int | np.random.Generator = 0,
    times: Floats | None = None,
) -> Rankings:
    """Complete rankings drawn from a Plackett-Luce model with log-utilities (T, n).

    Each instance and time is an independent draw, as the paper's likelihood assumes. Utilities may
    also have the shape (T, instances, n).

    >>> truth = np.array([[0.0, 1.0, 2.0]])
    >>> rankings = simulate_rankings(truth, 1000)
    >>> abs(rankings.win_rate("a3", "a1")[0] - 1 / (1 + np.exp(-2))) < 0.03
    np.True_
    """
    rng = np.random.default_rng(seed)
    n_times, n = utilities.shape[0], utilities.shape[-1]
    per_instance = utilities if utilities.ndim == 3 else utilities[:, None, :]
    # With Gumbel noise the order of the utilities is a draw of Plackett and Luce.
    noisy = per_instance + rng.gumbel(size=(n_times, instances, n))
    return rankings_of(-noisy, times=times)
