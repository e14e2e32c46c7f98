"""Rankings and a prior as a PyMC model.

The model has the log-utilities ``mu`` (time, algorithm) as a function of other variables. Dirichlet
priors have the coordinates ``eta`` of centred log-utilities, in which the posterior is log-concave
and nearly Gaussian; on the simplex itself approximations are unreliable. Gaussian priors have the
whitened coefficients ``z`` and the hyperparameters.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.errors import require
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood
from polarbear.inference.plackett_luce.tie_integrals import LargeTiedGroups
from polarbear.inference.plackett_luce.unordered_ties import TiedGroups, UnorderedLikelihood
from polarbear.priors.base import GaussianPrior, helmert_basis, scale_times
from polarbear.priors.dirichlet import IndependentPrior
from polarbear.priors.hyper import Exponential, Hyper, InverseGamma, LogNormal
from polarbear.priors.prior import Prior

_LOG_NODES = np.arange(-21.0, 5.5, 0.2)
"""The nodes log(s) of the integral for tied groups; see ``unordered_ties``."""


def build_pymc_model(rankings: Rankings, prior: Prior) -> Any:
    """Build the PyMC model of rankings under a prior, for instance to sample it yourself.

    >>> import pytest
    >>> _ = pytest.importorskip("pymc")
    >>> from polarbear.priors import Dirichlet
    >>> from polarbear.simulation import simulate_rankings
    >>> rankings = simulate_rankings(np.zeros((3, 2)), 4, np.random.default_rng(0))
    >>> sorted(v.name for v in build_pymc_model(rankings, Dirichlet()).free_RVs)
    ['eta']
    """
    pm, pt = require("pymc", extra="pymc"), require("pytensor.tensor", extra="pymc")
    n, n_times = len(rankings.algorithms), len(rankings.times)
    basis = helmert_basis(n)
    likelihood = build_likelihood(rankings)
    coords = {"time": rankings.times, "algorithm": list(rankings.algorithms)}
    with pm.Model(coords=coords) as model:
        hyper = {name: _build_hyperparameter(pm, name, h) for name, h in prior.hypers().items()}
        if isinstance(prior, IndependentPrior):
            alpha = pt.as_tensor_variable(prior.concentration(hyper, n))
            eta = pm.Flat("eta", shape=(n_times, n - 1))
            mu = pm.Deterministic("mu", eta @ basis.T, dims=("time", "algorithm"))
            log_theta = mu - pt.logsumexp(mu, axis=-1, keepdims=True)
            normaliser = pt.gammaln(n * alpha) - n * pt.gammaln(alpha) + 0.5 * np.log(n)
            pm.Potential("prior", alpha * log_theta.sum() + n_times * normaliser)
        else:
            times = scale_times(rankings.times, prior.warp)
            factor = prior.factor(times, hyper, _PytensorAlgebra(pt))
            z = pm.Normal("z", shape=(_count_coefficients(prior, times), n - 1))
            mu = pm.Deterministic("mu", factor @ z @ basis.T, dims=("time", "algorithm"))
        pm.Potential("rankings", _log_likelihood(pt, likelihood, mu))
    return model


def extract_draws(trace: Any, prior: Prior) -> dict[str, NDArray[np.float64]]:
    """Return the draws of utilities and hyperparameters from a PyMC trace."""
    return {name: np.asarray(trace["posterior"][name]) for name in ["mu", *prior.hypers()]}


class _PytensorAlgebra:
    """The operations that a prior needs, on symbolic tensors of PyTensor."""

    def __init__(self, pt: Any) -> None:
        self._pt = pt
        self._linalg = require("pytensor.tensor.slinalg", extra="pymc")

    def exp(self, x: Any) -> Any:
        return self._pt.exp(x)

    def cholesky(self, a: Any) -> Any:
        return self._linalg.cholesky(a)

    def solve_lower(self, a: Any, b: Any) -> Any:
        return self._linalg.solve_triangular(a, b, lower=True)


def _build_hyperparameter(pm: Any, name: str, prior: Hyper) -> Any:
    """Return a hyperparameter as a random variable of PyMC."""
    # PyMC would store plain Python numbers, and their logarithms, in single precision.
    exact = np.float64
    match prior:
        case LogNormal(mean, sd):
            return pm.LogNormal(name, exact(mean), exact(sd))
        case InverseGamma(shape, scale):
            return pm.InverseGamma(name, exact(shape), exact(scale))
        case Exponential(rate):
            return pm.Exponential(name, exact(rate))


def _count_coefficients(prior: GaussianPrior, times: Any) -> int:
    """Return the number of coefficients of a prior, which does not depend on hyperparameters."""
    medians = {name: hyper.quantile(0.5) for name, hyper in prior.hypers().items()}
    return prior.factor(times, medians).shape[1]


def _log_likelihood(pt: Any, likelihood: Any, mu: Any) -> Any:
    """Return the log-likelihood as a PyTensor expression, however rankings are represented."""
    if isinstance(likelihood, SubsetLikelihood):
        return _subset_log_likelihood(pt, likelihood, mu)
    if isinstance(likelihood, UnorderedLikelihood):
        tied = sum(_tied_log_likelihood(pt, groups, mu) for groups in likelihood.groups)
        return _log_likelihood(pt, likelihood.untied, mu) + tied
    return _ranking_log_likelihood(pt, likelihood, mu)


def _tied_log_likelihood(pt: Any, groups: TiedGroups | LargeTiedGroups, mu: Any) -> Any:
    """Return the log-probability that tied groups precede algorithms behind them, symbolically."""
    own = pt.exp(mu - mu.max(axis=-1, keepdims=True))[groups.time]
    rates = own / (own * groups.behind).sum(axis=1, keepdims=True)
    nodes, member = np.exp(_LOG_NODES), groups.membership[:, :, None]
    log_term = (member * pt.log(-pt.expm1(-rates[:, :, None] * nodes))).sum(axis=1)
    log_term += _LOG_NODES - nodes + np.log(0.2)
    return (groups.weight * pt.logsumexp(log_term, axis=1)).sum()


def _subset_log_likelihood(pt: Any, likelihood: Any, mu: Any) -> Any:
    """Return the log-likelihood as a PyTensor expression, with choices counted by subset."""
    top = mu.max(axis=-1, keepdims=True)
    total = pt.log(pt.exp(mu - top) @ likelihood.member.T) + top
    return (likelihood.wins * mu).sum() - (likelihood.count * total).sum()


def _ranking_log_likelihood(pt: Any, likelihood: Any, mu: Any) -> Any:
    """Return the log-likelihood as a PyTensor expression, ranking by ranking with suffix sums."""
    mu = mu - mu.max(axis=-1, keepdims=True)
    value = (likelihood.wins * mu).sum()
    rate = pt.concatenate([pt.exp(mu).flatten(), np.zeros(1)])
    for block in likelihood.blocks:
        theta = rate[block.item]
        suffix = pt.concatenate(
            [pt.cumsum(theta[:, ::-1], axis=1)[:, ::-1], np.zeros((len(block.item), 1))], axis=1
        )
        row, place = np.nonzero(block.untied_weight)
        value -= (block.untied_weight[row, place] * pt.log(suffix[row, place])).sum()
        for ties in block.ties:
            members = ties.subsets.member
            mine = theta[ties.row[:, None], ties.columns]
            total = mine @ members.T + suffix[ties.row, ties.place + ties.size][:, None]
            value -= (ties.weight[:, None] * ties.subsets.weight * pt.log(total)).sum()
    return value
