"""The PyMC engines: the same density as the fast engine, and the same answers."""

from math import lgamma, log

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

import polarbear as pb
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.inference.reference.chains import diagnose_chains
from polarbear.priors.base import helmert_basis, scale_times
from polarbear.simulation import rank_costs

pytest.importorskip("pymc")
pytestmark = pytest.mark.filterwarnings("ignore")

DIRICHLET = [pb.priors.Dirichlet(0.7), pb.priors.HierarchicalDirichlet()]
GAUSSIAN = [
    pb.priors.GP(),
    pb.priors.GP("matern52"),
    pb.priors.GP("squared-exponential"),
    pb.priors.SparseGP(inducing=4),
    pb.priors.HSGP(),
    pb.priors.RandomWalk(),
    pb.priors.BSpline(),
]


def hard_rankings(n, n_times=5, instances=9):
    """With ties, algorithms that are not known, and weights."""
    rng = np.random.default_rng(n)
    costs = rng.integers(0, 4, size=(n_times, instances, n)).astype(float)
    costs[rng.random(costs.shape) < 0.2] = np.nan
    weight, times = rng.uniform(0.5, 2, instances), np.geomspace(1, 1000, n_times)
    return rank_costs(costs, times=times, weight=weight)


def log_posterior(rankings, prior, point):
    """By the parts the fast engine is made of, in the coordinates of the PyMC model."""
    n, data = len(rankings.algorithms), build_likelihood(rankings)
    if "eta" in point:
        mu = point["eta"] @ helmert_basis(n).T
        total, alpha = 0.0, getattr(prior, "alpha", None)
        if alpha is None:
            alpha = np.exp(point["kappa_log__"]) / n
            total = prior.kappa.log_density(point["kappa_log__"])
        log_theta = mu - logsumexp(mu, axis=1, keepdims=True)
        normaliser = lgamma(n * alpha) - n * lgamma(alpha) + 0.5 * log(n)
        return total + data.value(mu).sum() + alpha * log_theta.sum() + len(mu) * normaliser
    u = {name: float(point[f"{name}_log__"]) for name in prior.hypers()}
    factor = prior.factor(
        scale_times(rankings.times, prior.warp), {name: np.exp(x) for name, x in u.items()}
    )
    z = point["z"]
    total = sum(h.log_density(u[name]) for name, h in prior.hypers().items())
    total -= 0.5 * np.sum(z**2) + 0.5 * z.size * log(2 * np.pi)
    return total + data.value(factor @ z @ helmert_basis(n).T).sum()


@pytest.mark.parametrize("n", [4, 14])
@pytest.mark.parametrize("prior", DIRICHLET + GAUSSIAN, ids=repr)
def test_both_have_the_same_density(prior, n):
    from polarbear.inference.reference.pymc_model import build_pymc_model

    rankings = hard_rankings(n)
    model = build_pymc_model(rankings, prior)
    theirs = model.compile_logp(mode="FAST_COMPILE")
    rng = np.random.default_rng(1)
    for _ in range(5):
        point = {
            name: np.asarray(start) + 0.7 * rng.normal(size=np.shape(start))
            for name, start in model.initial_point().items()
        }
        assert_allclose(theirs(point), log_posterior(rankings, prior, point), atol=1e-8, rtol=0)


@pytest.fixture(scope="module")
def rankings():
    mu = np.stack([np.linspace(1, -1, 4), np.linspace(-1, 1, 4), np.zeros(4)], axis=1)
    return pb.simulation.simulate_rankings(mu, 25, seed=3)


@pytest.fixture(scope="module")
def fast(rankings):
    return pb.fit(rankings, prior=pb.priors.RandomWalk(), evidence="rankings")


@pytest.fixture
def interpreted():
    """PyTensor without its C compiler, which takes longer than a small model."""
    import pytensor

    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.fixture(scope="module")
def small():
    return pb.simulation.simulate_rankings(np.array([[0.5, 0.0]]), 12, seed=3)


@pytest.mark.slow
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("method", "options"),
    [
        pytest.param(
            "nuts",
            {"sampler": "pymc", "chains": 2, "tune": 300, "draws": 500, "cores": 1},
            marks=pytest.mark.long,
        ),
        ("pymc-laplace", {}),
    ],
)
def test_engines_agree_on_a_small_problem(small, method, options):
    approximate = pb.fit(small, method=method, seed=2, **options)
    expected = pb.fit(small, evidence="rankings")
    assert approximate.draws.shape[1:] == (1, 2)
    assert_allclose(approximate.prob_better(), expected.prob_better(), atol=0.05)
    assert_allclose(approximate.mean(), expected.mean(), atol=0.05)


@pytest.mark.long
@pytest.mark.parametrize("sampler", ["nutpie", "numpyro", "blackjax", "pymc"])
def test_every_sampler_agrees_with_the_fast_engine(rankings, fast, sampler):
    if sampler != "pymc":
        pytest.importorskip(sampler)
    found = pb.fit(
        rankings, prior=pb.priors.RandomWalk(), method="nuts", sampler=sampler, cores=1, seed=2
    )
    assert found.diagnostics.trusted
    assert found.diagnostics.measured["ESS"] > 400
    assert found.chains == 4
    assert found.draws.shape == (8000, 4, 3)
    assert_allclose(found.prob_better(), fast.prob_better(), atol=0.03)
    assert_allclose(found.hyper["scale"].mean(), fast.hyper["scale"].mean(), rtol=0.15)


@pytest.mark.long
def test_pathfinder_agrees_where_its_own_certificate_holds(rankings):
    found = pb.fit(rankings, method="pathfinder", seed=1)
    assert found.diagnostics.trusted
    assert_allclose(
        found.prob_better(),
        pb.fit(rankings, evidence="rankings").prob_better(),
        atol=0.05,
    )


@pytest.mark.long
def test_laplace_of_pymc_agrees_for_the_dirichlet_model(rankings):
    found = pb.fit(rankings, method="pymc-laplace", seed=1)
    assert found.diagnostics.trusted
    assert_allclose(
        found.prob_better(),
        pb.fit(rankings, evidence="rankings").prob_better(),
        atol=0.05,
    )


@pytest.mark.long
def test_laplace_of_pymc_is_not_trusted_with_hyperparameters(rankings):
    """The joint mode of coefficients and scale is far from their mass, and k-hat says so."""
    with pytest.warns(pb.errors.FitWarning, match="too far from the posterior"):
        pb.fit(rankings, prior=pb.priors.RandomWalk(), method="pymc-laplace", seed=1)


@pytest.mark.long
@pytest.mark.parametrize("family", ["mean-field", "full-rank"])
def test_advi_reports_its_elbo(rankings, family):
    found = pb.fit(rankings, method="advi", family=family, steps=20_000, seed=1)
    assert np.isfinite(found.diagnostics.measured["ELBO"])
    assert_allclose(
        found.prob_better(),
        pb.fit(rankings, evidence="rankings").prob_better(),
        atol=0.1,
    )


@pytest.mark.long
@pytest.mark.usefixtures("interpreted")
def test_advi_that_has_not_converged_is_not_trusted(rankings):
    with pytest.warns(pb.errors.FitWarning, match="ELBO still rises"):
        pb.fit(rankings, method="advi", steps=3000, seed=1)


def test_chains_are_judged_by_the_limits_of_the_paper():
    rng = np.random.default_rng(0)
    good = rng.normal(size=(4, 1000, 3))
    assert diagnose_chains({"mu": good}, 0).trusted
    assert not diagnose_chains({"mu": good}, 1).trusted
    apart = good + np.arange(4)[:, None, None]
    assert any("disagree" in problem for problem in diagnose_chains({"mu": apart}, 0).problems)
    slow = np.cumsum(good, axis=1)
    assert any("effective" in problem for problem in diagnose_chains({"mu": slow}, 0).problems)
    assert not diagnose_chains({"mu": np.ones((4, 1000, 1))}, 0).trusted
