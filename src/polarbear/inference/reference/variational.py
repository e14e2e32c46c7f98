"""Approximations of the PyMC ecosystem: Pathfinder, its Laplace, and ADVI.

They are here to compare with. Each is certified by the Pareto k-hat of its own density: the paper
found, and k-hat says, that some of them cannot be trusted with some of the models.
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
from polarbear.inference.reference.chains import from_chains
from polarbear.inference.reference.pymc_model import drawn, pymc_model
from polarbear.priors.prior import Prior

Floats = NDArray[np.float64]

FAR = 0.25
"""Draws without weights are refused beyond this total variation from the posterior."""

CERTIFY = 1000
"""The number of draws that certify an approximation."""


def pathfinder(
    rankings: Rankings,
    prior: Prior,
    *,
    seed: int = 0,
    draws: int = 2000,
    paths: int = 4,
    **options: Any,
) -> Posterior:
    """Multi-path Pathfinder of pymc-extras, with ``options`` as there."""
    extras = require("pymc_extras", extra="pymc")
    options = {"concurrent": None, **options}  # no processes behind the user's back
    trace = extras.fit_pathfinder(
        model=pymc_model(rankings, prior),
        num_paths=paths,
        num_draws=draws,
        random_seed=seed,
        progressbar=False,
        display_summary=False,
        **options,
    )
    k = float(np.max(trace["sample_stats"]["pareto_k"]))
    return from_chains(rankings, prior, drawn(trace, prior), _certified({"k-hat": k}), "pathfinder")


def pymc_laplace(
    rankings: Rankings, prior: Prior, *, seed: int = 0, draws: int = 2000, **options: Any
) -> Posterior:
    """The Laplace approximation of pymc-extras, around the joint mode with the hyperparameters."""
    extras = require("pymc_extras", extra="pymc")
    model = pymc_model(rankings, prior)
    trace = extras.fit_laplace(
        model=model, draws=draws, random_seed=seed, progressbar=False, **options
    )
    names = [variable.name for variable in model.value_vars]
    mean, covariance = trace["fit"]["mean_vector"], trace["fit"]["covariance_matrix"]
    measured = _distance(model, names, np.asarray(mean), np.asarray(covariance), seed)
    return from_chains(rankings, prior, drawn(trace, prior), _certified(measured), "pymc-laplace")


def advi(
    rankings: Rankings,
    prior: Prior,
    *,
    seed: int = 0,
    draws: int = 2000,
    steps: int = 30_000,
    family: Literal["mean-field", "full-rank"] = "mean-field",
    **options: Any,
) -> Posterior:
    """Automatic differentiation variational inference of PyMC, judged by its ELBO and k-hat."""
    pm = require("pymc", extra="pymc")
    model = pymc_model(rankings, prior)
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
    measured = _distance(model, names, approximation.mean.eval(), covariance, seed)
    measured |= {"ELBO": float(late.mean()), "ELBO rise": rise}
    problems = []
    if rise > max(1.0, 3 * error):
        problems.append(f"the ELBO still rises (by {rise:.1f}): more steps")
    trace = approximation.sample(draws, random_seed=seed)
    return from_chains(
        rankings, prior, drawn(trace, prior), _certified(measured, problems), f"advi ({family})"
    )


def _certified(measured: dict[str, float], problems: Sequence[str] = ()) -> Diagnostics:
    found = list(problems)
    if not measured["k-hat"] <= MAX_K_HAT:
        found.append(
            f"the approximation is too far from the posterior (k-hat {measured['k-hat']:.2f}, "
            f"should be below {MAX_K_HAT}): use method='laplace' or 'nuts'"
        )
    elif measured.get("total variation", 0.0) > FAR:
        found.append(
            f"probabilities may be off by up to {measured['total variation']:.2f}: use "
            "method='laplace' or 'nuts'"
        )
    return Diagnostics(measured, tuple(found))


def _distance(
    model: Any, names: Sequence[str], mean: Floats, covariance: Floats, seed: int
) -> dict[str, float]:
    """How far a Gaussian in the model's unconstrained coordinates is from the posterior.

    k-hat says whether weights would do; these draws have none, so the total variation between the
    two counts as well: no probability is off by more.
    """
    log_density = model.compile_logp()
    point = model.initial_point()
    shapes = [np.shape(point[name]) for name in names]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    noise = np.random.default_rng(seed).standard_normal((CERTIFY, len(mean)))
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
    variation = 0.5 * np.abs(weight - 1 / CERTIFY).sum()
    return {"k-hat": float(k), "total variation": float(variation)}
