"""Priors over the ratings of algorithms as functions of time.

Each prior is written once and serves every engine. ``Dirichlet`` and ``HierarchicalDirichlet``
treat times as independent. Under the others log-utilities change smoothly over time and are
Gaussian, given one or two hyperparameters.
"""

from polarbear.priors.bspline import BSpline
from polarbear.priors.dirichlet import Dirichlet, HierarchicalDirichlet
from polarbear.priors.gp import GP, HSGP, SparseGP
from polarbear.priors.hyper import Exponential, InverseGamma, LogNormal
from polarbear.priors.random_walk import RandomWalk

__all__ = [
    "GP",
    "HSGP",
    "BSpline",
    "Dirichlet",
    "Exponential",
    "HierarchicalDirichlet",
    "InverseGamma",
    "LogNormal",
    "RandomWalk",
    "SparseGP",
]
