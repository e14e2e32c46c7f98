"""The model of rankings: the likelihood, and the Laplace fit that suits the prior."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.inference.laplace.banded import fit_local, fit_markov
from polarbear.inference.laplace.conditional import (
    MAX_DENSE_ALGORITHMS,
    ConditionalGaussian,
    approximate_utilities,
)
from polarbear.inference.laplace.dense import fit_dense
from polarbear.inference.laplace.independent import fit_independent
from polarbear.inference.laplace.repetitions import adjust_for_repetitions, has_repetitions
from polarbear.inference.plackett_luce.likelihood import Likelihood, build_likelihood
from polarbear.inference.posterior import Posterior
from polarbear.priors.base import helmert_basis, scale_times
from polarbear.priors.dirichlet import IndependentPrior
from polarbear.priors.hyper import Hyper
from polarbear.priors.prior import Prior

Floats = NDArray[np.float64]
FitConditional = Callable[[Mapping[str, float], ConditionalGaussian | None], ConditionalGaussian]


class RankingModel(NamedTuple):
    """The likelihood, the hyperparameters, and the fit of utilities given the hyperparameters."""

    hypers: Mapping[str, Hyper]
    fit: FitConditional  # (hyperparameters, an earlier fit to start from) -> fit
    likelihood: Likelihood

    @property
    def n_terms(self) -> int:
        """The number of terms of the likelihood, which is the cost of one draw."""
        return self.likelihood.n_terms


def build_model(
    rankings: Rankings, prior: Prior, start: Posterior | None, *, adjusted: bool
) -> RankingModel:
    """Return the model of rankings, with the kind of Laplace fit that suits the prior.

    If ``adjusted``, repetitions of an instance count as much as they tell, for independent priors.
    """
    likelihood: Likelihood = build_likelihood(rankings)
    n_times, n = len(rankings.times), len(rankings.algorithms)
    utilities = np.zeros((n_times, n)) if start is None else _mean_utilities(start, rankings)
    if isinstance(prior, IndependentPrior):
        utilities = approximate_utilities(rankings) if start is None else utilities
        if adjusted and n <= MAX_DENSE_ALGORITHMS and has_repetitions(rankings):
            middle = {name: hyper.quantile(0.5) for name, hyper in prior.hypers().items()}
            alpha = prior.concentration(middle, n)
            utilities = fit_independent(likelihood, alpha, n_times, n, utilities).mean
            likelihood = adjust_for_repetitions(rankings, likelihood, utilities)

        def fit_times(
            hyper: Mapping[str, float], warm: ConditionalGaussian | None
        ) -> ConditionalGaussian:
            begin = utilities if warm is None else warm.mean
            return fit_independent(likelihood, prior.concentration(hyper, n), n_times, n, begin)

        return RankingModel(prior.hypers(), fit_times, likelihood)

    times = scale_times(rankings.times, prior.warp)
    coordinates = utilities @ helmert_basis(n)

    def fit_gaussian(
        hyper: Mapping[str, float], warm: ConditionalGaussian | None
    ) -> ConditionalGaussian:
        chain, begin = prior.chain(times, hyper), coordinates if warm is None else warm.warm_start
        if chain is not None:
            try:
                return fit_markov(likelihood, chain, n, begin)
            except np.linalg.LinAlgError:
                pass  # times too close for this length scale: rounding dominates the chain
        factor = prior.factor(times, hyper)
        local = fit_local(likelihood, factor, n, begin)
        return local or fit_dense(likelihood, factor, n, begin)

    return RankingModel(prior.hypers(), fit_gaussian, likelihood)


def _mean_utilities(start: Posterior, rankings: Rankings) -> Floats:
    """Return an earlier posterior's mean utilities, for the algorithms and times of rankings."""
    mean = start.utilities.mean(axis=0, dtype=np.float64)
    row = np.minimum(np.searchsorted(start.times, rankings.times), len(start.times) - 1)
    column = {name: k for k, name in enumerate(start.algorithms)}
    utilities = np.zeros((len(rankings.times), len(rankings.algorithms)))
    for k, name in enumerate(rankings.algorithms):
        if name in column:
            utilities[:, k] = mean[row, column[name]]
    return utilities - utilities.mean(axis=1, keepdims=True)
