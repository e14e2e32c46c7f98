"""Rankings and a prior as a PyMC model: the only file that speaks PyMC's language.

The model has the log-utilities ``mu`` (time, algorithm) and whatever they are made of: for the
Dirichlet priors the coordinates ``eta`` of centred log-utilities, in which the posterior is
log-concave and nearly Gaussian (approximations on the simplex itself are not to be trusted); for
the Gaussian ones the whitened coefficients ``z`` and the hyperparameters.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarbear.data.rankings import Rankings
from polarbear.errors import require
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood
from polarbear.priors.base import GaussianPrior, helmert_basis, scale_times
from polarbear.priors.dirichlet import IndependentPrior
from polarbear.priors.hyper import Exponential, Hyper, InverseGamma, LogNormal
from polarbear.priors.prior import Prior


def pymc_model(rankings: Rankings, prior: Prior) -> Any:
    """Build the model; ``pymc_model(...).to_graphviz()`` or ``pm.sample(model=...)`` as usual.

    >>> import pytest
    >>> _ = pytest.importorskip("pymc")
    >>> from polarbear.priors import Dirichlet
    >>> from polarbear.simulation import simulate_rankings
    >>> rankings = simulate_rankings(np.zeros((3, 2)), 4, np.random.default_rng(0))
    >>> sorted(v.name for v in pymc_model(rankings, Dirichlet()).free_RVs)
    ['eta']
    """
    pm, pt = require("pymc", extra="pymc"), require("pytensor.tensor", extra="pymc")
    n, n_times = len(rankings.algorithms), len(rankings.times)
    basis = helmert_basis(n)
    data = build_likelihood(rankings)
    coords = {"time": rankings.times, "algorithm": list(rankings.algorithms)}
    with pm.Model(coords=coords) as model:
        hyper = {name: _hyper(pm, name, h) for name, h in prior.hypers().items()}
        if isinstance(prior, IndependentPrior):
            alpha = pt.as_tensor_variable(prior.concentration(hyper, n))
            eta = pm.Flat("eta", shape=(n_times, n - 1))
            mu = pm.Deterministic("mu", eta @ basis.T, dims=("time", "algorithm"))
            log_theta = mu - pt.logsumexp(mu, axis=-1, keepdims=True)
            normaliser = pt.gammaln(n * alpha) - n * pt.gammaln(alpha) + 0.5 * np.log(n)
            pm.Potential("prior", alpha * log_theta.sum() + n_times * normaliser)
        else:
            times = scale_times(rankings.times, prior.warp)
            factor = prior.factor(times, hyper, _Pytensor(pt))
            width = _width(prior, times)
            z = pm.Normal("z", shape=(width, n - 1))
            mu = pm.Deterministic("mu", factor @ z @ basis.T, dims=("time", "algorithm"))
        log_likelihood = (
            _table(pt, data, mu) if isinstance(data, SubsetLikelihood) else _orders(pt, data, mu)
        )
        pm.Potential("rankings", log_likelihood)
    return model


def drawn(trace: Any, prior: Prior) -> dict[str, NDArray[np.float64]]:
    """Utilities ``mu`` and hyperparameters of a trace of the model: (chains, draws, ...)."""
    return {name: np.asarray(trace["posterior"][name]) for name in ["mu", *prior.hypers()]}


class _Pytensor:
    """What a prior needs beside arithmetic, in symbols."""

    def __init__(self, pt: Any) -> None:
        self._pt = pt
        self._linalg = require("pytensor.tensor.slinalg", extra="pymc")

    def exp(self, x: Any) -> Any:
        return self._pt.exp(x)

    def cholesky(self, a: Any) -> Any:
        return self._linalg.cholesky(a)

    def solve_lower(self, a: Any, b: Any) -> Any:
        return self._linalg.solve_triangular(a, b, lower=True)


def _hyper(pm: Any, name: str, prior: Hyper) -> Any:
    """A hyperparameter with PyMC's own distribution."""
    # Plain Python numbers would be taken as single precision where that holds them exactly, and
    # their logarithms too.
    exact = np.float64
    match prior:
        case LogNormal(mean, sd):
            return pm.LogNormal(name, exact(mean), exact(sd))
        case InverseGamma(shape, scale):
            return pm.InverseGamma(name, exact(shape), exact(scale))
        case Exponential(rate):
            return pm.Exponential(name, exact(rate))


def _width(prior: GaussianPrior, times: Any) -> int:
    """How many coefficients a prior has: as many whatever its hyperparameters."""
    return prior.factor(times, {name: h.quantile(0.5) for name, h in prior.hypers().items()}).shape[
        1
    ]


def _table(pt: Any, data: Any, mu: Any) -> Any:
    """The log-likelihood from counted sets."""
    top = mu.max(axis=-1, keepdims=True)
    total = pt.log(pt.exp(mu - top) @ data.member.T) + top
    return (data.wins * mu).sum() - (data.count * total).sum()


def _orders(pt: Any, data: Any, mu: Any) -> Any:
    """The log-likelihood ranking by ranking, with sums from the back."""
    mu = mu - mu.max(axis=-1, keepdims=True)
    value = (data.wins * mu).sum()
    rate = pt.concatenate([pt.exp(mu).flatten(), np.zeros(1)])
    for block in data.blocks:
        theta = rate[block.item]
        tail = pt.concatenate(
            [pt.cumsum(theta[:, ::-1], axis=1)[:, ::-1], np.zeros((len(block.item), 1))], axis=1
        )
        row, place = np.nonzero(block.untied_weight)
        value -= (block.untied_weight[row, place] * pt.log(tail[row, place])).sum()
        for ties in block.ties:
            members = ties.subsets.member
            mine = theta[ties.row[:, None], ties.columns]
            total = mine @ members.T + tail[ties.row, ties.place + members.shape[1]][:, None]
            value -= (ties.weight[:, None] * ties.subsets.weight * pt.log(total)).sum()
    return value
