"""Modular CMA-ES (modcma, C++) as solvers of a race, configured as the paper says (appendix B).

An instance is a function of points in the box [-5, 5]^d with an attribute ``dimension``. The
search is in the unit cube, with an initial step of 0.2: in [-5, 5]^d the correction COTN of modcma
multiplies an offset in units of the domain by a step size that is not, most points then lie outside
the box, and restarts follow each other within a few hundred evaluations.

modcma is loaded here, once, and not by every run: runs are forked from a process that has it.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from modcma import c_maes
from numpy.typing import NDArray

LOWER, UPPER = -5.0, 5.0
SIGMA = 0.2
BASELINE: Mapping[str, Any] = {
    "active": True,
    "repelling_restart": True,
    "threshold_convergence": False,
    "bound_correction": "COTN",
    "restart_strategy": "IPOP",
    "center_placement": "UNIFORM",
}
KINDS = {
    "bound_correction": "CorrectionMethod",
    "restart_strategy": "RestartStrategy",
    "center_placement": "CenterPlacement",
    "ssa": "StepSizeAdaptation",
    "matrix_adaptation": "MatrixAdaptationType",
    "mirrored": "Mirror",
    "weights": "RecombinationWeights",
}
"""Which options of modcma have names, and where these are."""

AT_ONCE = 100
"""Points of a random search that are evaluated together."""


def cma_es(**options: Any) -> Callable[[Any], None]:
    """A solver: modular CMA-ES with these options on top of the paper's baseline."""
    return partial(_cma_es, options={**BASELINE, **options})


def random_search(job: Any, at_once: int = AT_ONCE) -> None:
    """Points anywhere in the box."""
    f = job.track(job.instance)
    shape = (at_once, f.dimension) if at_once > 1 else f.dimension
    while True:
        f(job.rng.uniform(LOWER, UPPER, shape))


def modules(options: Mapping[str, Any]) -> Any:
    """The options as modcma takes them."""
    found = c_maes.Modules()
    for name, value in options.items():
        if name in KINDS:
            value = getattr(getattr(c_maes.options, KINDS[name]), value)
        setattr(found, name, value)
    return found


def reseed(seed: int) -> None:
    """Seed modcma's generator, which is one for the whole process.

    A normal number that was drawn in a pair and not used yet would outlive the seed.
    """
    chance = c_maes.utils
    chance.set_seed(0)
    first = chance.random_normal()
    chance.random_normal()
    chance.set_seed(0)
    if first == chance.random_normal():
        chance.random_normal()
    chance.set_seed(seed)


def _cma_es(job: Any, options: Mapping[str, Any]) -> None:
    tracked = job.track(job.instance)
    d = tracked.dimension

    def f(u: NDArray[np.float64]) -> float:
        return tracked(LOWER + (UPPER - LOWER) * np.asarray(u).ravel())

    reseed(job.seed)
    settings = c_maes.Settings(
        d,
        modules(options),
        sigma0=SIGMA,
        budget=2**60,  # the race ends the run, exactly
        x0=job.rng.random(d),
        lb=np.zeros(d),
        ub=np.ones(d),
    )
    search = c_maes.ModularCMAES(settings)
    while True:
        if search.p.criteria.any():
            search.p.start(f)
            search.p.adaptation.m = job.rng.random(d)  # UNIFORM would draw half of it outside
        search.step(f)
