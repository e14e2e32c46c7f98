"""Fit the posterior of a round."""

import warnings

from polarbear.data.rankings import Rankings
from polarbear.errors import DataWarning, FitWarning
from polarbear.inference.posterior import Posterior
from polarbear.racing.jobs import derive_seed
from polarbear.racing.model import Fit


def fit_posterior(fit: Fit, rankings: Rankings | None, seed: int, round_: int) -> Posterior | None:
    """Fit the posterior of a round; None if fewer than two algorithms have rankings.

    There are no warnings, as the race itself causes gaps in the data and checks diagnostics.
    """
    if rankings is None or len(rankings.algorithms) < 2:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", FitWarning)
        return fit(rankings, seed=derive_seed(seed, ["fit", round_]))
