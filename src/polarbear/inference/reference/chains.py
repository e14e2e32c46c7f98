"""Posteriors from Markov chains, diagnosed with the convergence limits of the PolarBear paper."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.errors import require
from polarbear.inference.diagnostics import Diagnostics
from polarbear.inference.posterior import Posterior
from polarbear.priors.prior import Prior

Floats = NDArray[np.float64]

MAX_RHAT, MIN_ESS = 1.01, 400
"""Chains have converged below this R-hat, and suffice above this effective sample size."""


def diagnose_chains(by_chain: Mapping[str, Floats], divergences: int) -> Diagnostics:
    """Return diagnostics of Markov chains: R-hat, effective sample size and divergences."""
    arviz, xarray = require("arviz", extra="arviz"), require("xarray", extra="arviz")
    data = xarray.Dataset(
        {
            name: (("chain", "draw", *(f"{name}_{k}" for k in range(values.ndim - 2))), values)
            for name, values in by_chain.items()
        }
    )
    with np.errstate(
        invalid="ignore", divide="ignore"
    ):  # constant chains give nan, which fails the limits
        rhat = float(np.max([np.max(v) for v in arviz.rhat(data).values()]))
        ess = float(np.min([np.min(v) for v in arviz.ess(data).values()]))
        tail = float(np.min([np.min(v) for v in arviz.ess(data, method="tail").values()]))
    measured = {"R-hat": rhat, "ESS": ess, "tail ESS": tail, "divergences": float(divergences)}
    problems = []
    if not rhat < MAX_RHAT:
        problems.append(f"the chains disagree (R-hat {rhat:.3f}, should be below {MAX_RHAT})")
    if not min(ess, tail) > MIN_ESS:
        problems.append(
            f"too few effective draws ({min(ess, tail):.0f}, should be above {MIN_ESS})"
        )
    if divergences:
        problems.append(f"{divergences} divergent transitions, should be none")
    return Diagnostics(measured, tuple(problems))


def posterior_from_chains(
    rankings: Rankings,
    prior: Prior,
    by_chain: Mapping[str, Floats],
    diagnostics: Diagnostics,
    method: str,
) -> Posterior:
    """Return the posterior that consists of the draws of Markov chains."""
    utilities = by_chain["mu"]
    draws = utilities.reshape(-1, *utilities.shape[2:]).astype(np.float32)
    return Posterior(
        algorithms=rankings.algorithms,
        times=rankings.times,
        draws=draws,
        weight=np.full((len(draws), 1), 1 / len(draws), dtype=np.float32),
        mixture=None,
        hyper={name: np.ravel(values) for name, values in by_chain.items() if name != "mu"},
        diagnostics=diagnostics,
        prior=repr(prior),
        method=method,
        clock=rankings.clock,
        chains=len(utilities),
        instances=len(np.unique(rankings.instance[rankings.weight > 0])),
    )
