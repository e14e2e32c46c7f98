"""Priors against their definitions: kernels, chains, bases and hyperpriors."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

import polarbear as pb
from polarbear import simulation
from polarbear.cli.main import make_parser
from polarbear.errors import DataError
from polarbear.priors.base import helmert_basis, scale_times
from polarbear.priors.bspline import BSpline
from polarbear.priors.by_name import BY_NAME, make_prior
from polarbear.priors.dirichlet import Dirichlet
from polarbear.priors.gp import GP, HSGP, SparseGP
from polarbear.priors.hyper import Exponential, InverseGamma, LogNormal
from polarbear.priors.kernels import kernel_covariance, spectral_density
from polarbear.priors.random_walk import RandomWalk
from polarbear.racing.model import Model

ROOT = Path(__file__).parents[1]

TIMES = np.sort(np.r_[0.0, np.random.default_rng(4).random(9), 1.0])
KERNELS = ("matern32", "matern52", "squared-exponential")
HYPER = {"scale": 1.3, "length": 0.4}


def matern_by_bessel(nu, times, scale, length):
    """The paper's equation 12, written down as it stands."""
    distance = np.abs(times[:, None] - times[None, :]) / length
    x = np.sqrt(2 * nu) * np.maximum(distance, 1e-12)
    return scale**2 * 2 ** (1 - nu) / special.gamma(nu) * x**nu * special.kv(nu, x)


@pytest.mark.parametrize("n", [2, 5, 12])
def test_the_helmert_basis_is_orthonormal_and_sums_to_zero(n):
    basis = helmert_basis(n)
    assert_allclose(basis.T @ basis, np.eye(n - 1), atol=1e-12)
    assert_allclose(basis.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("hyper", "reference"),
    [
        (LogNormal(0.3, 0.5), stats.lognorm(0.5, scale=np.exp(0.3))),
        (InverseGamma(5.0, 2.0), stats.invgamma(5.0, scale=2.0)),
        (Exponential(0.1), stats.expon(scale=10.0)),
    ],
)
def test_hyperpriors_are_the_named_distributions(hyper, reference):
    for x in (0.1, 1.0, 4.0):
        assert_allclose(hyper.log_density(np.log(x)), reference.logpdf(x) + np.log(x))
    for p in (0.05, 0.5, 0.95):
        assert_allclose(hyper.quantile(p), reference.ppf(p))


@pytest.mark.parametrize(("kernel", "nu"), [("matern32", 1.5), ("matern52", 2.5)])
def test_matern_kernels_agree_with_their_general_formula(kernel, nu):
    ours = kernel_covariance(kernel, TIMES, TIMES, 1.3, 0.4)
    assert_allclose(ours, matern_by_bessel(nu, TIMES, 1.3, 0.4), rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_spectral_densities_are_those_of_the_kernels(kernel):
    for lag in (0.0, 0.3):
        back, _ = integrate.quad(
            lambda w, lag=lag: (
                spectral_density(kernel, np.array(w), 1.3, 0.4) * np.cos(w * lag) / np.pi
            ),
            0,
            400,
            limit=400,
        )
        expected = kernel_covariance(kernel, np.array([0.0]), np.array([lag]), 1.3, 0.4)[0, 0]
        assert_allclose(back, expected, rtol=1e-3)


def chain_covariance(chain):
    """Covariance of the first entry of the states, step by step."""
    n_times = len(chain.transition) + 1
    at = [chain.initial_covariance]
    for move, noise in zip(chain.transition, chain.noise_covariance, strict=True):
        at.append(move @ at[-1] @ move.T + noise)
    found = np.empty((n_times, n_times))
    for i in range(n_times):
        across = at[i]
        found[i, i] = across[0, 0]
        for j in range(i + 1, n_times):
            across = across @ chain.transition[j - 1].T
            found[i, j] = found[j, i] = across[0, 0]
    return found


@pytest.mark.parametrize("prior", [GP("matern32"), GP("matern52"), RandomWalk()])
def test_a_prior_and_its_chain_have_the_same_covariance(prior):
    factor = prior.factor(TIMES, HYPER)
    assert_allclose(chain_covariance(prior.chain(TIMES, HYPER)), factor @ factor.T, atol=1e-8)


def test_the_squared_exponential_is_no_chain():
    assert GP("squared-exponential").chain(TIMES, HYPER) is None


@pytest.mark.parametrize("kernel", KERNELS)
def test_approximate_processes_are_near_the_exact_one(kernel):
    exact = kernel_covariance(kernel, TIMES, TIMES, **HYPER)
    for prior, error in [(GP(kernel), 1e-8), (HSGP(kernel), 0.02), (SparseGP(kernel), 0.08)]:
        factor = prior.factor(TIMES, HYPER)
        assert_allclose(factor @ factor.T, exact, atol=error)


def test_the_hilbert_basis_is_as_fine_as_the_rules_ask_for():
    boundary, number = HSGP().basis()
    prior = HSGP()
    short, long = prior.length.quantile(0.05), prior.length.quantile(0.95)
    assert boundary >= 4.5 * long / 0.5
    assert number >= 3.42 * boundary * 0.5 / short
    assert HSGP(number=20, boundary=1.5).factor(TIMES, HYPER).shape == (len(TIMES), 20)


def test_a_random_walk_has_the_variance_of_its_steps():
    factor = RandomWalk(start=2.0).factor(TIMES, HYPER)
    assert_allclose(np.diag(factor @ factor.T), 4.0 + 1.3**2 * TIMES)


def test_splines_sum_to_one_and_have_half_as_many_functions_as_times():
    factor = BSpline().factor(np.linspace(0, 1, 20), HYPER)
    assert factor.shape == (20, 10)
    assert_allclose(factor.sum(axis=1), 1.3)
    for n_times in (1, 2, 3, 5):
        times = np.linspace(0, 1, n_times) if n_times > 1 else np.zeros(1)
        assert np.isfinite(BSpline().factor(times, HYPER)).all()


@pytest.mark.parametrize("prior", [GP(), SparseGP(), HSGP(), RandomWalk(), BSpline()])
def test_a_single_time_is_enough(prior):
    assert prior.factor(np.zeros(1), HYPER).shape[0] == 1


def test_all_lists_of_priors_have_the_same_names():
    schema = json.loads((ROOT / "docs" / "reference" / "race.schema.json").read_text())
    listed = schema["properties"]["fit"]["properties"]["prior"]["oneOf"][0]["enum"]
    assert list(simulation.PRIORS) == list(BY_NAME) == listed
    page = (ROOT / "docs" / "how-to" / "choose-a-prior.md").read_text()
    assert all(f"`{name}()`" in page for name in listed)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_prior_has_the_same_name_everywhere(name):
    rankings = simulation.simulate_rankings(np.array([[1.0, 0.5, 0.0]] * 4), 40)
    for spelling in (name, name.lower(), name.upper()):
        assert make_prior(spelling) == BY_NAME[name]()
        assert Model.of({"prior": spelling}).prior == BY_NAME[name]()
        given = make_parser().parse_args(["analyse", "--example", "--prior", spelling])
        assert make_prior(given.prior) == BY_NAME[name]()
    assert pb.fit(rankings, prior=name.lower(), draws=500).prior == repr(BY_NAME[name]())


def test_time_is_seen_on_a_unit_axis_and_on_a_log_scale_over_decades():
    assert_allclose(scale_times(np.array([2.0, 3.0, 6.0])), [0, 0.25, 1])
    assert_allclose(scale_times(np.array([1.0, 10.0, 100.0])), [0, 0.5, 1])
    assert_allclose(scale_times(np.array([1.0, 10.0, 100.0]), "linear"), [0, 9 / 99, 1])
    assert_allclose(scale_times(np.array([7.0])), [0])
    with pytest.raises(DataError, match="needs times above 0"):
        scale_times(np.array([0.0, 1.0]), "log")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Dirichlet(0.0), "alpha=0.0: expected a positive"),
        (lambda: Dirichlet(np.nan), "alpha=nan"),
        (lambda: LogNormal(0.0, -1.0), "sd=-1.0"),
        (lambda: InverseGamma(5.0, 0.0), "scale=0.0"),
        (lambda: Exponential(np.inf), "rate=inf"),
        (lambda: GP("rbf"), "kernel='rbf': expected one of matern32"),
        (lambda: SparseGP(inducing=0), "inducing=0"),
        (lambda: RandomWalk(start=0.0), "start=0.0"),
        (lambda: scale_times(TIMES, "cubic"), "warp='cubic'"),
    ],
)
def test_priors_that_cannot_be_are_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()


@pytest.mark.parametrize("prior", [GP(), SparseGP(), HSGP()])
def test_the_default_hyperpriors_are_those_of_inference_in_the_paper(prior):
    """Section 5.1: inference expects shorter lengths than the simulated truth has."""
    assert (prior.kernel, prior.scale) == ("matern32", LogNormal(0.0, 0.5))
    assert prior.length == InverseGamma(5.0, 2.0)
    assert GP(length=InverseGamma(5.0, 3.0)) == simulation.PAPER_PRIOR
