"""The reference engine: the No-U-Turn sampler on the PyMC model."""

from typing import Any, Literal

import numpy as np

from polarbear.data.rankings import Rankings
from polarbear.errors import require
from polarbear.inference.posterior import Posterior
from polarbear.inference.reference.chains import from_chains, judge
from polarbear.inference.reference.pymc_model import drawn, pymc_model
from polarbear.priors.prior import Prior


def nuts(
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
    """Sample with NUTS and judge the chains by R-hat, effective sample size and divergences.

    Parameters
    ----------
    rankings, prior, seed
        What to fit.
    sampler
        Whose NUTS: nutpie comes with the extra ``[pymc]``, NumPyro and BlackJAX with ``[jax]``.
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
        model=pymc_model(rankings, prior),
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
    found = drawn(trace, prior)
    diagnostics = judge(found, int(np.sum(trace["sample_stats"]["diverging"])))
    return from_chains(rankings, prior, found, diagnostics, f"nuts ({sampler})")
