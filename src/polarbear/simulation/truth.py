"""True utilities for simulations, drawn from the priors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from polarbear.priors.base import helmert_basis, scale_times
from polarbear.priors.by_name import BY_NAME
from polarbear.priors.dirichlet import IndependentPrior
from polarbear.priors.gp import GP
from polarbear.priors.hyper import InverseGamma
from polarbear.priors.prior import Prior

Floats = NDArray[np.float64]

PRIORS: Mapping[str, Prior] = {name: kind() for name, kind in BY_NAME.items()}
"""The seven priors of the paper, with their default parameters."""

PAPER_PRIOR = GP(length=InverseGamma(5.0, 3.0))
"""The prior from which the paper draws the truth of its synthetic examples (paper, 5.1)."""


def draw_truth(
    prior: Prior, times: Floats, n: int, seed: int | np.random.Generator = 0
) -> tuple[Floats, dict[str, float]]:
    """Draw log-utilities (times, algorithms) and hyperparameters from a prior.

    >>> utilities, hyper = draw_truth(PAPER_PRIOR, np.linspace(0, 1, 30), 5)
    >>> utilities.shape, sorted(hyper), bool(np.allclose(utilities.sum(axis=1), 0))
    ((30, 5), ['length', 'scale'], True)
    """
    rng = np.random.default_rng(seed)
    hyper = {name: h.quantile(rng.random()) for name, h in prior.hypers().items()}
    if isinstance(prior, IndependentPrior):
        alpha = prior.concentration(hyper, n)
        # The logarithm of a Gamma(alpha) variable, exact also where the variable underflows to 0.
        raw = np.log(rng.gamma(alpha + 1, size=(len(times), n)))
        raw += np.log(rng.random((len(times), n))) / alpha
        return raw - raw.mean(axis=1, keepdims=True), hyper
    factor = prior.factor(scale_times(times, prior.warp), hyper)
    return factor @ rng.standard_normal((factor.shape[1], n - 1)) @ helmert_basis(n).T, hyper
