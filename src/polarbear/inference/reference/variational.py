"""Approximations of the PyMC ecosystem, for comparison: Pathfinder, Laplace and ADVI.

Each is diagnosed by the Pareto k-hat of its own density. Some of them are unreliable for some of
the models, as the paper found.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.errors import require
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.posterior import Posterior
from polarbear.inference.psis import MAX_K_HAT, smooth_weights
from polarbear.inference.reference.chains import posterior_from_chains
from polarbear.inference.reference.pymc_model import build_pymc_model, extract_draws
from polarbear.priors.prior import Prior

Floats = NDArray[np.float64]

MAX_TOTAL_VARIATION = 0.25
"""The largest total variation distance from the posterior at which draws are trusted."""

DIAGNOSTIC_DRAWS = 1000
"""The number of draws for the diagnostics of an approximation."""


def fit_pathfinder(
    rankings: Rankings,
    prior: Prior,
    *,
    seed: int = 0,
    draws: int = 2000,
    paths: int = 4,
    **options: Any,
) -> Posterior:
    """Fit by multi-path Pathfinder of pymc-extras; ``options`` are passed to it."""
    extras = require("pymc_extras", extra="pymc")
    options = {"concurrent": None, **options}  # start no processes unless the user asks for them
    trace = extras.fit_pathfinder(
        model=build_pymc_model(rankings, prior),
        num_paths=paths,
        num_draws=draws,
        random_seed=seed,
        progressbar=False,
        display_summary=False,
        **options,
    )
    k = float(np.max(trace["sample_stats"]["pareto_k"]))
    draws_by_chain = extract_draws(trace, prior)
    return posterior_from_chains(
        rankings, prior, draws_by_chain, _diagnose({"k-hat": k}), "pathfinder"
    )


def fit_pymc_laplace(
    rankings: Rankings, prior: Prior, *, seed: int = 0, draws: int = 2000, **options: Any
) -> Posterior:
    """Fit by the Laplace approximation of pymc-extras, at the joint mode of all parameters."""
    extras = require("pymc_extras", extra="pymc")
    model = build_pymc_model(rankings, prior)
    trace = extras.fit_laplace(
        model=model, draws=draws, random_seed=seed, progressbar=False, **options
    )
    names = [variable.name for variable in model.value_vars]
    mean, covariance = trace["fit"]["mean_vector"], trace["fit"]["covariance_matrix"]
    measured = _measure_distance(model, names, np.asarray(mean), np.asarray(covariance), seed)
    draws_by_chain = extract_draws(trace, prior)
    return posterior_from_chains(
        rankings, prior, draws_by_chain, _diagnose(measured), "pymc-laplace"
    )


def fit_advi(
    rankings: Rankings,
    prior: Prior,
    *,
    seed: int = 0,
    draws: int = 2000,
    steps: int = 30_000,
    family: Literal["mean-field", "full-rank"] = "mean-field",
    **options: Any,
) -> Posterior:
    """Fit by automatic differentiation variational inference of PyMC, diagnosed by k-hat."""
    pm = require("pymc", extra="pymc")
    model = build_pymc_model(rankings, prior)
    method = {"mean-field": "advi", "full-rank": "fullrank_advi"}[family]
    approximation = pm.fit(
        steps, method=method, model=model, random_seed=seed, progressbar=False, **options
    )
    elbo = -np.asarray(approximation.hist)
    late, before = elbo[-len(elbo) // 10 :], elbo[-len(elbo) // 5 : -len(elbo) // 10]
    rise = float(late.mean() - before.mean())
    error = float(np.sqrt((late.var() + before.var()) / len(late)))
    covariance = approximation.cov.eval()
    group = approximation.groups[0]
    names = list(group.ordering)
    measured = _measure_distance(model, names, approximation.mean.eval(), covariance, seed)
    measured |= {"ELBO": float(late.mean()), "ELBO rise": rise}
    problems = []
    if rise > max(1.0, 3 * error):
        problems.append(f"the ELBO still rises (by {rise:.1f}): more steps")
    trace = approximation.sample(draws, random_seed=seed)
    draws_by_chain = extract_draws(trace, prior)
    return posterior_from_chains(
        rankings, prior, draws_by_chain, _diagnose(measured, problems), f"advi ({family})"
    )


def _diagnose(measured: dict[str, float], earlier: Sequence[str] = ()) -> Diagnostics:
    """Return diagnostics: the problems given, and those that k-hat or total variation show."""
    problems = list(earlier)
    if not measured["k-hat"] <= MAX_K_HAT:
        problems.append(
            f"the approximation is too far from the posterior (k-hat {measured['k-hat']:.2f}, "
            f"should be below {MAX_K_HAT}): use method='laplace' or 'nuts'"
        )
    elif measured.get("total variation", 0.0) > MAX_TOTAL_VARIATION:
        problems.append(
            f"probabilities may be off by up to {measured['total variation']:.2f}: use "
            "method='laplace' or 'nuts'"
        )
    return Diagnostics(measured, tuple(problems))


def _measure_distance(
    model: Any, names: Sequence[str], mean: Floats, covariance: Floats, seed: int
) -> dict[str, float]:
    """Estimate the total variation distance between a Gaussian approximation and the posterior.

    k-hat diagnoses importance weights, but these draws have none. The total variation distance
    bounds the error of every probability.
    """
    log_density = model.compile_logp()
    point = model.initial_point()
    shapes = [np.shape(point[name]) for name in names]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    noise = np.random.default_rng(seed).standard_normal((DIAGNOSTIC_DRAWS, len(mean)))
    root = np.linalg.cholesky(covariance + 1e-12 * np.trace(covariance) * np.eye(len(mean)))
    ratio = []
    for row in noise:
        parts = np.split(mean + root @ row, ends)
        values = {
            name: part.reshape(shape)
            for name, part, shape in zip(names, parts, shapes, strict=True)
        }
        ratio.append(float(log_density(values)) + 0.5 * row @ row)
    weight, (k,) = smooth_weights(np.array(ratio)[:, None])
    variation = 0.5 * np.abs(weight - 1 / DIAGNOSTIC_DRAWS).sum()
    return {"k-hat": float(k), "total variation": float(variation)}
