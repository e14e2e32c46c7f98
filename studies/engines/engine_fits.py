"""Simulated rankings, the engines that are compared, and what one fit yields and costs.

The folder ``benchmarks`` must be on the path: its helpers separate the time to compile from the
time to compute.
"""

import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pymc  # noqa: F401, so that its import is not measured
import pymc_extras  # noqa: F401
import samplers
from measuring import cpu

import polarbear as pb
from polarbear.inference.laplace.engine import fit_laplace
from polarbear.inference.reference import variational
from polarbear.simulation import PAPER_PRIOR, PRIORS, draw_truth, simulate_rankings

DRAWS = 2000
"""Draws of each approximation, and of each chain of NUTS in the paper."""

Fitted = tuple[float | None, float, pb.Posterior]
"""CPU seconds to compile (None: part of the next), to compute, and the posterior."""


def simulate(n: int, instances: int, times: int, seed: int) -> pb.Rankings:
    """Return rankings whose truth is drawn as for the synthetic examples of the paper."""
    rng = np.random.default_rng([seed, n, times])
    truth, _ = draw_truth(PAPER_PRIOR, np.linspace(0.0, 1.0, times), n, rng)
    return simulate_rankings(truth, instances, rng)


def fit_own(rankings: pb.Rankings, prior: Any) -> Fitted:
    """Fit by the package's engine; the time is the median of three fits."""
    spent = []
    for _ in range(3):
        before = cpu()
        posterior = fit_laplace(rankings, prior, evidence="rankings")
        spent.append(cpu() - before)
    return 0.0, statistics.median(spent), posterior


def fit_chains(rankings: pb.Rankings, prior: Any, tune: int = 1000, draws: int = DRAWS) -> Fitted:
    """Fit by NUTS (nutpie) with four chains, by default of the paper's length."""
    return samplers.by_difference("nutpie", rankings, prior, tune, draws)


def fit_whole(function: Callable[..., pb.Posterior], **options: Any) -> Callable[..., Fitted]:
    """Return an engine whose time to compile is not separated."""

    def fit(rankings: pb.Rankings, prior: Any) -> Fitted:
        before = cpu()
        posterior = function(rankings, prior, seed=1, draws=DRAWS, **options)
        return None, cpu() - before, posterior

    return fit


def advi(family: str, steps: int, **options: Any) -> Callable[..., Fitted]:
    return fit_whole(variational.fit_advi, family=family, steps=steps, **options)


ENGINES: dict[str, Callable[..., Fitted]] = {
    "NUTS": fit_chains,
    "NUTS, short": partial(fit_chains, tune=100, draws=100),
    "PolarBear": fit_own,
    "Pathfinder": partial(samplers.find_paths, draws=DRAWS),
    "PyMC Laplace": fit_whole(variational.fit_pymc_laplace),
    "ADVI mean-field": advi("mean-field", 30_000),
    "ADVI full-rank": advi("full-rank", 30_000),
    "ADVI mean-field, 100,000 steps": advi("mean-field", 100_000),
    "ADVI full-rank, 100,000 steps": advi("full-rank", 100_000),
    "ADVI mean-field, 10 samples a step": advi("mean-field", 30_000, obj_n_mc=10),
    "ADVI full-rank, 10 samples a step": advi("full-rank", 30_000, obj_n_mc=10),
}


def measure(
    engine: str, prior: str, n: int, instances: int, times: int, seed: int, only: int | None
) -> dict[str, Any]:
    """Return the CPU seconds of a fit, its diagnostics, moments and probabilities.

    With ``only``, the rankings of one time are used.
    """
    rankings = simulate(n, instances, times, seed)
    if only is not None:
        at = slice(only, only + 1)
        rankings = replace(rankings, times=rankings.times[at], position=rankings.position[at])
    try:
        compiling, computing, posterior = ENGINES[engine](rankings, PRIORS[prior])
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        return {"failed": f"{type(error).__name__}: {error}"[:200]}
    ratings = posterior.ratings.astype(np.float64)
    halves = np.array_split(ratings, 2)  # of NUTS: two chains each
    return {
        "compiling": compiling,
        "computing": computing,
        "diagnostics": dict(posterior.diagnostics.measured),
        "mean": _round(ratings.mean(axis=0)),
        "sd": _round(ratings.std(axis=0)),
        "half_difference": _round(0.5 * (halves[0].mean(axis=0) - halves[1].mean(axis=0))),
        "ahead": _round(np.array(samplers.ahead(posterior))),
        "dominates": _round(posterior.prob_dominates()),
    }


def _round(values: np.ndarray) -> list[Any]:
    return np.round(values, 6).tolist()
