"""The models that are judged: every prior, with instances as evidence and with rankings."""

import warnings
from typing import Any, cast

import numpy as np
from calibration.cells import Model

import polarbear as pb
from polarbear.simulation import PRIORS

EVIDENCE = {"instances": "corrected", "rankings": "as in the paper"}
"""Instances are the units of evidence (the default), or every ranking at every time is one."""


MODEL = pb.priors.Dirichlet(1 + 1e-9)
"""The default, but for what it counts: the model alone."""


def models(*priors: str) -> list[Model]:
    """The models of these priors, by default of all."""
    return [Model(prior, kind) for prior in priors or PRIORS for kind in EVIDENCE]


def fit(rankings: pb.Rankings, model: Model, **options: Any) -> pb.Posterior:
    """Fit a model; that a posterior is not to be trusted is counted, not said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prior = MODEL if model.prior == "Dirichlet" else PRIORS[model.prior]
        return pb.fit(rankings, prior=prior, evidence=cast(Any, model.evidence), **options)


def strongest(posterior: pb.Posterior) -> list[float]:
    """How sure the surest elimination is, pointwise and jointly (paper, 4.2)."""
    n = len(posterior.algorithms)
    other = ~np.eye(n, dtype=bool)
    names = posterior.algorithms
    pairs = zip(*np.nonzero(other), strict=True)
    joint = max(posterior.prob_dominates(names[a], names[b]) for a, b in pairs)
    return [float(posterior.prob_better().min(axis=0)[other].max()), joint]
