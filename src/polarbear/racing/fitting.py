"""Fit the posterior of a round: coarsely first, with all draws if an elimination is possible."""

import warnings
from dataclasses import replace

import numpy as np

from polarbear.data.rankings import Rankings
from polarbear.data.run import Run
from polarbear.errors import DataWarning, FitWarning
from polarbear.inference.fit import fit as default_fit
from polarbear.inference.posterior import Posterior
from polarbear.racing.jobs import derive_seed, key_of
from polarbear.racing.model import Fit, Model
from polarbear.racing.questions.paper_pareto_set import PaperParetoSet
from polarbear.racing.state import State

SCREENING_DRAWS = 1000
"""The number of posterior draws of a screening fit; a full fit has six to ten times as many."""

MIN_SCREENING_CELLS = 2000
"""The number of pairs times points of time from which a screening fit saves time, per look."""


def fit_posterior(fit: Fit, rankings: Rankings | None, seed: int, round_: int) -> Posterior | None:
    """Fit the posterior of a round; None if fewer than two algorithms have rankings."""
    return _fit_without_warnings(fit, rankings, derive_seed(seed, ["fit", round_]))


def screening_fit(fit: Fit, rankings: Rankings | None, state: State) -> Posterior | None:
    """Return a coarse posterior if the decision would be the same with a full one, else None.

    If any algorithm would be eliminated at the certainty minus four Monte Carlo standard errors,
    a fit with all draws has to decide. With p = certainty and D draws, the standard error is
    sqrt(p (1 - p) / D). For a choice few draws are enough. The last decision of a race, which may
    end it by the regret, uses all draws.
    """
    question = state.setup.question
    decides = isinstance(question, PaperParetoSet)
    if question.posterior_for == "decision" and not decides:
        return None  # a question of the user's own decides with all draws
    if rankings is None or not (fit is default_fit if decides else _has_default_model(fit)):
        return None
    n = len(rankings.algorithms)
    if decides and n * (n - 1) // 2 * len(rankings.times) < MIN_SCREENING_CELLS:
        return None
    seed = derive_seed(state.setup.seed, ["fit", state.progress.n_decisions])
    posterior = _fit_without_warnings(_fit_few_draws, rankings, seed)
    if posterior is None or not posterior.diagnostics.trusted:
        return None
    if not decides:
        return posterior
    certainty = question.certainty
    slack = 4 * np.sqrt(certainty * (1 - certainty) / SCREENING_DRAWS) + 1 / SCREENING_DRAWS
    return None if question.may_eliminate(state.view(), posterior, float(slack)) else posterior


def _has_default_model(fit: Fit) -> bool:
    """Whether a fit is that of the default model, with any number of draws."""
    model = Model.of(fit)
    return replace(model, options=()) == Model() and dict(model.options).keys() <= {"draws"}


def _fit_few_draws(rankings: Rankings, /, *, seed: int) -> Posterior:
    """Fit a posterior with ``SCREENING_DRAWS`` draws."""
    return default_fit(rankings, seed=seed, draws=SCREENING_DRAWS)


def _fit_without_warnings(fit: Fit, rankings: Rankings | None, seed: int) -> Posterior | None:
    """Fit without warnings, as the race itself causes gaps in the data and checks diagnostics."""
    if rankings is None or len(rankings.algorithms) < 2:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", FitWarning)
        return fit(rankings, seed=seed)


def renumber_run(state: State, run: Run) -> Run | None:
    """Return a run with the repetition number that rankings use; None if another run replaces it.

    An extension has the number of the run that it extends. A requested run has number 0, even
    if it replaces a failed one.
    """
    key = key_of(run)
    if key in state.ledger.superseded:
        return None
    original = key._replace(repetition=state.ledger.extends.get(key, key.repetition))
    requested = original in state.ledger.ever_requested
    return run._replace(repetition=0 if requested else original.repetition)
