"""The models that are judged: every prior, with instances as evidence and with rankings."""

import warnings
from typing import Any

from cells import Model

import polarbear as pb
from polarbear.testing import PRIORS

EVIDENCE = {"instances": "corrected", "rankings": "as in the paper"}
"""Instances are the units of evidence (the default), or every ranking at every time is one."""


def models(*priors: str) -> list[Model]:
    """The models of these priors, by default of all."""
    return [Model(prior, kind) for prior in priors or PRIORS for kind in EVIDENCE]


def fit(rankings: pb.Rankings, model: Model, **options: Any) -> pb.Posterior:
    """Fit a model; that a posterior is not to be trusted is counted, not said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prior, evidence = PRIORS[model.prior], model.evidence
        return pb.fit(rankings, prior=prior, evidence=evidence, **options)


def lost(posterior: pb.Posterior, alpha: tuple[float, ...]) -> list[list[bool]]:
    """Whether anybody is eliminated, pointwise and jointly, at each alpha (paper, 4.2)."""
    names = posterior.algorithms
    return [[posterior.pareto(a, mode) != names for a in alpha] for mode in ("pointwise", "joint")]
