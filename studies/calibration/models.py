"""The models that are judged: every prior, with instances as evidence and with rankings."""

import warnings
from inspect import signature
from typing import Any

from cells import Model

import polarbear as pb
from polarbear.testing import PRIORS

EVIDENCE = {"instances": "corrected", "rankings": "as in the paper"}
"""Instances are the units of evidence (the default), or every ranking at every time is one."""

CORRECTED = "evidence" in signature(pb.fit).parameters

SLOW = ("SparseGP", "HSGP", "GP")


def models(*priors: str) -> list[Model]:
    """The models of these priors, by default of all."""
    kinds = list(EVIDENCE) if CORRECTED else ["rankings"]
    return [Model(prior, kind) for prior in priors or PRIORS for kind in kinds]


def fit(rankings: pb.Rankings, model: Model, **options: Any) -> pb.Posterior:
    """Fit a model; that a posterior is not to be trusted is counted, not said."""
    if CORRECTED:
        options["evidence"] = model.evidence
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pb.fit(rankings, prior=PRIORS[model.prior], **options)


def eliminated(posterior: pb.Posterior, alpha: tuple[float, ...]) -> dict[str, list[list[str]]]:
    """Who is eliminated at each alpha: "pointwise" and "joint" (paper, 4.2).

    Pointwise: somebody is ahead with at least alpha at each single time; jointly: at all times at
    once. The same somebody in either case.
    """
    names, ahead = posterior.algorithms, posterior.better_matrix()
    worst = ahead.min(axis=0)
    joint = {}
    for a, b in zip(*(worst >= min(alpha)).nonzero(), strict=True):
        # Never more likely than at the worst time; counting draws may say so by chance.
        joint[a, b] = min(posterior.better_everywhere(names[a], names[b]), worst[a, b])
    pairs = {
        "pointwise": {pair: worst[pair] for pair in joint},
        "joint": joint,
    }
    return {
        mode: [sorted({names[b] for (_, b), p in found.items() if p >= a}) for a in alpha]
        for mode, found in pairs.items()
    }
