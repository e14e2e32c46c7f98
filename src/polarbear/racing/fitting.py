"""How a race makes a posterior: at a glance first, and with all draws where one may be decided."""

import warnings

import numpy as np

from polarbear.data.rankings import Rankings
from polarbear.errors import DataWarning, FitWarning
from polarbear.inference.fit import fit as default_fit
from polarbear.inference.posterior import Posterior
from polarbear.racing.deciding import may_eliminate
from polarbear.racing.jobs import derive_seed
from polarbear.racing.model import Fit
from polarbear.racing.state import State

GLANCE = 1500
"""So many draws say who cannot be eliminated yet; a fit makes four to ten times as many."""

WORTH = 2000
"""A glance is worth it where there are so many pairs of algorithms times points of time."""


def fitted(fit: Fit, rankings: Rankings | None, seed: int, round_: int) -> Posterior | None:
    """The posterior of a round; none if there are no two algorithms to compare."""
    return _quietly(fit, rankings, derive_seed(seed, ["fit", round_]))


def glanced(fit: Fit, rankings: Rankings | None, state: State) -> Posterior | None:
    """The posterior of a round by few draws, if it is good enough to see that nobody is out.

    Whoever could be eliminated, were one content with less certainty than draws so few can tell
    from what is asked for, deserves more draws. P(ahead) at a time is hardly less precise.
    """
    if fit is not default_fit or rankings is None:
        return None
    n, certainty = len(rankings.algorithms), state.rules.certainty
    if n * (n - 1) // 2 * len(rankings.times) < WORTH:
        return None
    seed = derive_seed(state.seed, ["fit", state.round])
    found = _quietly(_at_a_glance, rankings, seed)
    if found is None or not found.diagnostics.trusted:
        return None
    if state.rules.error_control != "per_look":  # e-values decide, the posterior plans
        return found
    slack = 4 * np.sqrt(certainty * (1 - certainty) / GLANCE) + 1 / GLANCE
    return None if may_eliminate(state, found, certainty - slack) else found


def _at_a_glance(rankings: Rankings, /, *, seed: int) -> Posterior:
    return default_fit(rankings, seed=seed, draws=GLANCE)


def _quietly(fit: Fit, rankings: Rankings | None, seed: int) -> Posterior | None:
    if rankings is None or len(rankings.algorithms) < 2:
        return None
    with warnings.catch_warnings():
        # Gaps are of the race's making, and what cannot be trusted decides nothing.
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", FitWarning)
        return fit(rankings, seed=seed)
