"""``Prior``: the union of all types of priors."""

from polarbear.priors.base import GaussianPrior
from polarbear.priors.dirichlet import IndependentPrior

Prior = IndependentPrior | GaussianPrior
