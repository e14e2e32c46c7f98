"""The reference engine: the No-U-Turn sampler on the PyMC model."""

from typing import Any, Literal

import numpy as np

from polarbear.data.rankings import Rankings
from polarbear.errors import require
from polarbear.inference.posterior import Posterior
from polarbear.inference.reference.chains import diagnose_chains, posterior_from_chains
from polarbear.inference.reference.pymc_model import build_pymc_model, extract_draws
from polarbear.priors.prior import Prior


def fit_nuts(
    rankings: Rankings,
    prior: Prior,
    *,
    seed: int = 0,
    sampler: Literal["nutpie", "numpyro", "blackjax", "pymc"] = "nutpie",
    chains: int = 4,
    tune: int = 1000,
    draws: int = 2000,
    target_accept: float = 0.9,
    cores: int | None = None,
    **sampler_options: Any,
) -> Posterior:
    """Fit by the No-U-Turn sampler, with R-hat, effective sample size and divergences.

    Parameters
    ----------
    rankings, prior, seed
        The data, the prior and the seed.
    sampler
        The implementation of NUTS: nutpie comes with the extra ``[pymc]``, NumPyro and BlackJAX
        with ``[jax]``.
    chains, tune, draws, target_accept, cores
        As in ``pymc.sample``; ``draws`` per chain.
    sampler_options
        Passed on to the sampler (``nuts_sampler_kwargs`` of PyMC).
    """
    pm = require("pymc", extra="pymc")
    if sampler != "pymc":
        require(sampler, extra="pymc" if sampler == "nutpie" else "jax")
    if sampler in ("numpyro", "blackjax"):
        sampler_options = {"chain_method": "vectorized", **sampler_options}
    trace = pm.sample(
        model=build_pymc_model(rankings, prior),
        draws=draws,
        tune=tune,
        chains=chains,
        cores=cores,
        random_seed=seed,
        target_accept=target_accept,
        nuts_sampler=sampler,
        nuts_sampler_kwargs=sampler_options,
        progressbar=False,
        quiet=True,
        compute_convergence_checks=False,
    )
    draws_by_chain = extract_draws(trace, prior)
    diagnostics = diagnose_chains(draws_by_chain, int(np.sum(trace["sample_stats"]["diverging"])))
    return posterior_from_chains(rankings, prior, draws_by_chain, diagnostics, f"nuts ({sampler})")
