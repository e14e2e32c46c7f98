"""What ``prior=`` may be."""

from polarbear.priors.base import Gaussian
from polarbear.priors.dirichlet import Independent

Prior = Independent | Gaussian
