"""The engine in Stan: its density against ours, its draws against the fast engine.

Compiling the models takes minutes, so the tests that need them are slow, and need httpstan and g++.
All other tests have a program in the place of Stan's.
"""

import json
import os
import shutil
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, log_softmax

from polarbear import Run, Runs, rank
from polarbear.errors import DataError, FitError, MissingDependency
from polarbear.inference.laplace.engine import fit_laplace
from polarbear.inference.plackett_luce.subset_likelihood import SubsetLikelihood
from polarbear.inference.reference.stan import sampler as engine
from polarbear.inference.reference.stan.compiler import cache_folder, compile_program
from polarbear.inference.reference.stan.sampler import fit_stan, stan_log_density
from polarbear.priors.base import helmert_basis, scale_times
from polarbear.priors.bspline import BSpline
from polarbear.priors.dirichlet import Dirichlet, HierarchicalDirichlet
from polarbear.priors.gp import GP, HSGP, SparseGP
from polarbear.priors.hyper import Exponential, InverseGamma, LogNormal
from polarbear.priors.random_walk import RandomWalk
from polarbear.simulation import simulate_rankings

AVAILABLE = find_spec("httpstan") is not None and shutil.which(os.environ.get("CXX") or "g++")
NEEDS_STAN = pytest.mark.skipif(not AVAILABLE, reason="needs httpstan and g++")


def easy(n=4, n_times=3, instances=60):
    mu = np.linspace(0, 1, n) * np.linspace(1, -0.5, n_times)[:, None]
    return simulate_rankings(mu, instances, np.random.default_rng(0))


def difficult():
    """Ties, and runs that are not known everywhere."""
    rng = np.random.default_rng(1)
    recorded = [
        Run(f"a{k}", f"i{i}", [1, 2, 3], np.sort(rng.integers(0, 3, 3))[::-1], rng.choice([3, 5]))
        for k in range(5)
        for i in range(9)
        if rng.random() < 0.9
    ]
    return rank(Runs.from_records(recorded, direction="minimize"), [1, 2, 2.5, 3, 4.5])


def expected_density(rankings, prior, point):
    """The same in numpy: the posterior's density of the logarithms and coordinates in a point."""
    n, n_times = len(rankings.algorithms), len(rankings.times)
    if isinstance(prior, Dirichlet):
        hypers = {}
    elif isinstance(prior, HierarchicalDirichlet):
        hypers = {"kappa": prior.kappa}
    else:
        hypers = prior.hypers()
    logs, rest = point[: len(hypers)], point[len(hypers) :].reshape(n - 1, n_times).T
    value = sum(h.log_density(u) for h, u in zip(hypers.values(), logs, strict=True))
    hyper = dict(zip(hypers, np.exp(logs), strict=True))
    if isinstance(prior, Dirichlet | HierarchicalDirichlet):
        alpha = hyper["kappa"] / n if hyper else prior.alpha
        mu = rest @ helmert_basis(n).T
        normaliser = gammaln(n * alpha) - n * gammaln(alpha) + 0.5 * np.log(n)
        value += alpha * log_softmax(mu, axis=1).sum() + n_times * normaliser
    else:
        factor = prior.factor(scale_times(rankings.times, prior.warp), hyper)
        mu = factor @ rest @ helmert_basis(n).T
        value += -0.5 * np.sum(rest**2) - 0.5 * rest.size * np.log(2 * np.pi)
    return value + SubsetLikelihood.from_rankings(rankings).value(mu).sum()


@pytest.mark.long
@NEEDS_STAN
@pytest.mark.parametrize("rankings", [easy(), easy(2, 1), difficult()], ids=["", "pair", "ties"])
@pytest.mark.parametrize(
    "prior",
    [
        Dirichlet(),
        Dirichlet(0.3),
        HierarchicalDirichlet(),
        HierarchicalDirichlet(Exponential(2.0)),
        GP(),
        GP("matern52", warp="log"),
        GP("squared-exponential"),
        GP(scale=Exponential(0.5), length=LogNormal(-1.0, 0.3)),
        GP(scale=InverseGamma(3.0, 1.0)),
    ],
    ids=repr,
)
def test_the_density_is_ours(rankings, prior):
    if rankings.times[0] <= 0 and getattr(prior, "warp", "") == "log":
        pytest.skip("no logarithm of 0")
    size = len(rankings.times) * (len(rankings.algorithms) - 1)
    size += {Dirichlet: 0, HierarchicalDirichlet: 1, GP: 2}[type(prior)]
    points = np.random.default_rng(3).normal(size=(5, size))
    expected = [expected_density(rankings, prior, point) for point in points]
    assert_allclose(stan_log_density(rankings, prior, points), expected, rtol=0, atol=1e-8)


@pytest.mark.long
@NEEDS_STAN
@pytest.mark.parametrize("prior", [Dirichlet(), HierarchicalDirichlet(), GP()], ids=repr)
def test_nuts_agrees_with_the_fast_engine(prior):
    rankings = easy()
    found = fit_stan(rankings, prior, seed=1, draws=1000)
    assert_allclose(
        found.prob_better(),
        fit_laplace(rankings, prior, evidence="rankings").prob_better(),
        atol=0.03,
    )
    assert found.diagnostics.trusted, found.diagnostics
    assert found.draws.shape == (4000, 3, 4)
    assert found.draws.dtype == np.float32
    assert (found.method, found.chains, found.prior) == ("stan-nuts", 4, repr(prior))
    assert set(found.hyper) == set(fit_laplace(rankings, prior, evidence="rankings").hyper)
    assert all(values.shape == (4000,) for values in found.hyper.values())


@pytest.mark.long
@NEEDS_STAN
@pytest.mark.parametrize("algorithm", ["pathfinder", "laplace"])
@pytest.mark.parametrize("prior", [Dirichlet(), HierarchicalDirichlet()], ids=repr)
def test_approximations_are_near_on_easy_data(prior, algorithm):
    rankings = easy()
    found = fit_stan(rankings, prior, seed=1, algorithm=algorithm)
    assert_allclose(
        found.prob_better(),
        fit_laplace(rankings, prior, evidence="rankings").prob_better(),
        atol=0.05,
    )
    assert found.draws.shape == (2000, 3, 4)
    assert (found.method, found.chains) == (f"stan-{algorithm}", 1)
    assert set(found.diagnostics.measured) == {"k-hat"}
    assert found.diagnostics.trusted, found.diagnostics


@pytest.mark.long
@NEEDS_STAN
@pytest.mark.parametrize("algorithm", ["pathfinder", "laplace"])
def test_approximations_of_a_process_are_not_trusted(algorithm):
    """White coefficients hang on the hyperparameters if data are many, and no Gaussian follows."""
    found = fit_stan(easy(), GP(), seed=1, algorithm=algorithm)
    assert found.diagnostics.measured["k-hat"] > 0.7
    assert any("try algorithm='nuts'" in problem for problem in found.diagnostics.problems)


@pytest.mark.long
@NEEDS_STAN
@pytest.mark.parametrize("algorithm", ["nuts", "pathfinder", "laplace"])
def test_the_same_seed_gives_the_same_draws(algorithm):
    def draws(seed):
        options = {"chains": 2, "tune": 100, "draws": 50, "algorithm": algorithm}
        return fit_stan(easy(), Dirichlet(), seed=seed, **options).draws

    assert np.array_equal(draws(5), draws(5))
    assert not np.array_equal(draws(5), draws(6))


@pytest.mark.long
@NEEDS_STAN
def test_a_time_at_which_nobody_was_compared_has_the_prior():
    recorded = [Run(name, "i", [1], [k], 1) for k, name in enumerate("abc")]
    rankings = rank(Runs.from_records(recorded, direction="minimize"), [0.5])
    assert_allclose(fit_stan(rankings, Dirichlet(), draws=1000).prob_better(), 0.5, atol=0.03)


@pytest.mark.parametrize("prior", [RandomWalk(), BSpline(), SparseGP(), HSGP()], ids=repr)
def test_other_priors_are_refused(prior):
    with pytest.raises(FitError, match="only for Dirichlet, HierarchicalDirichlet and GP"):
        fit_stan(easy(), prior)


def test_many_algorithms_are_refused():
    with pytest.raises(DataError, match="takes 2 to 12 algorithms, got 13"):
        fit_stan(easy(n=13), Dirichlet())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "advi"}, "expected one of 'nuts', 'pathfinder', 'laplace'"),
        ({"chains": 0}, "chains=0: expected at least 1"),
        ({"tune": -1}, "tune=-1: expected at least 0"),
        ({"draws": 2}, "draws=2: expected at least 8"),
    ],
)
def test_settings_are_checked(options, message):
    with pytest.raises(DataError, match=message):
        fit_stan(easy(), Dirichlet(), **options)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "httpstan", None)
    with pytest.raises(MissingDependency, match=r"pip install 'polarbear-race\[stan\]'"):
        fit_stan(easy(), Dirichlet())


@pytest.fixture
def without_stan(monkeypatch, tmp_path):
    """A package without content in the place of httpstan, and an empty cache."""
    fake = SimpleNamespace(__file__=str(tmp_path / "httpstan" / "__init__.py"), __version__="0")
    monkeypatch.setitem(sys.modules, "httpstan", fake)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("without_stan")
def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(MissingDependency, match="'no-such-compiler' is not installed.*CXX"):
        compile_program("dirichlet")


@pytest.mark.usefixtures("without_stan")
@pytest.mark.skipif(shutil.which("false") is None, reason="needs a command that fails")
def test_a_compiler_that_fails_leaves_nothing_behind(monkeypatch):
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(FitError, match="false could not compile the driver .code 1."):
        compile_program("dirichlet")
    assert list(cache_folder().iterdir()) == []


def in_place_of_stan(monkeypatch, tmp_path, body):
    """A Python program that is run as Stan's would be."""
    path = tmp_path / "program"
    start = f"#!{sys.executable}\nimport sys\nalgorithm, data, folder = sys.argv[1:4]\n"
    path.write_text(start + body)
    path.chmod(0o700)
    monkeypatch.setattr(engine, "compile_program", lambda _: path)


@pytest.mark.skipif(os.name != "posix", reason="needs a script that can be run")
def test_what_the_program_writes_is_read(monkeypatch, tmp_path):
    pytest.importorskip("arviz")
    kept = tmp_path / "data.json"
    body = f"""
import shutil
shutil.copy(data, {str(kept)!r})
names = [f"mu.{{t}}.{{k}}" for k in (1, 2) for t in (1, 2, 3)]  # column by column
for chain in (1, 2):
    with open(f"{{folder}}/chain{{chain}}.csv", "w") as out:
        print("lp__", "divergent__", "kappa", *names, sep=",", file=out)
        for draw in range(20):
            print(-1, int(draw == 3), chain + draw % 7, *range(6), sep=",", file=out)
out_of_range = "Informational Message: The current Metropolis proposal\\nException: inf\\n"
print("look\\n" + out_of_range * 2 + "look", file=sys.stderr)
"""
    in_place_of_stan(monkeypatch, tmp_path, body)
    found = fit_stan(easy(n=2), HierarchicalDirichlet(), chains=2, draws=20)
    assert_allclose(found.draws, np.broadcast_to([[0, 3], [1, 4], [2, 5]], (40, 3, 2)))
    assert_allclose(found.weight, np.full((40, 1), 1 / 40))
    assert_allclose(found.hyper["kappa"][[0, 1, 20]], [1, 2, 2])
    assert "2 divergent transitions, should be none" in found.diagnostics.problems
    assert found.diagnostics.notes == (
        "numbers out of range made Stan reject 2 steps",
        "look",
    )
    data = json.loads(kept.read_text())
    assert (data["T"], data["n"], data["S"]) == (3, 2, 1)
    assert (data["kappa_family"], data["kappa_parameter"]) == (3, [0.1, 0.0])


@pytest.mark.skipif(os.name != "posix", reason="needs a script that can be run")
def test_approximations_of_independent_times_are_made_one_by_one(monkeypatch, tmp_path):
    body = """
import json
first = json.load(open(data))["wins"][0][0]
with open(f"{folder}/chain1.csv", "w") as out:
    print("log_p__,log_q__,mu.1.1,mu.1.2", file=out)
    for draw in range(200):
        print(draw % 2, draw % 2, first, "nan" if first < 0 else -first, sep=",", file=out)
"""
    in_place_of_stan(monkeypatch, tmp_path, body)
    rankings = easy(n=2)
    found = fit_stan(rankings, Dirichlet(), algorithm="laplace", draws=200)
    assert_allclose(found.draws[0, :, 0], SubsetLikelihood.from_rankings(rankings).wins[:, 0])
    assert found.diagnostics.trusted


@pytest.mark.skipif(os.name != "posix", reason="needs a script that can be run")
def test_a_path_that_failed_does_not_count(monkeypatch, tmp_path):
    body = """
rows = "lp_approx__,lp__,mu.1.1,mu.1.2\\n" + "".join(f"0,{k / 200},0,0\\n" for k in range(200))
for name, text in [("chain1", rows), ("path1", rows), ("path2", ""), ("path3", "lp__\\n")]:
    open(f"{folder}/{name}.csv", "w").write(text)
"""
    in_place_of_stan(monkeypatch, tmp_path, body)
    found = fit_stan(easy(2, 1), Dirichlet(), algorithm="pathfinder", draws=200)
    assert found.diagnostics.trusted
    assert len(found.draws) == 200


@pytest.mark.skipif(os.name != "posix", reason="needs a script that can be run")
def test_weights_that_are_no_numbers_are_a_problem(monkeypatch, tmp_path):
    body = """
rows = "lp_approx__,lp__,mu.1.1,mu.1.2\\n" + "".join(f"0,{k / 200},0,0\\n" for k in range(200))
for name, text in [("chain1", rows), ("path1", rows), ("path2", rows.replace("\\n0,", "\\nnan,"))]:
    open(f"{folder}/{name}.csv", "w").write(text)
"""
    in_place_of_stan(monkeypatch, tmp_path, body)
    found = fit_stan(easy(2, 1), Dirichlet(), algorithm="pathfinder", draws=200)
    assert "200 draws have a weight that is no number" in str(found.diagnostics)


@pytest.mark.skipif(os.name != "posix", reason="needs a script that can be run")
def test_failures_of_the_program_are_reported(monkeypatch, tmp_path):
    in_place_of_stan(monkeypatch, tmp_path, "sys.exit('no initial value')")
    with pytest.raises(FitError, match="nuts failed with code 1 and said: no initial value"):
        fit_stan(easy(), Dirichlet())
    body = """
with open(f"{folder}/chain1.csv", "w") as out:
    print("log_p__,log_q__,mu.1.1,mu.1.2\\n0,0,nan,nan", file=out)
"""
    in_place_of_stan(monkeypatch, tmp_path, body)
    with pytest.raises(FitError, match="draws that are not numbers.*try algorithm='nuts'"):
        fit_stan(easy(n=2), Dirichlet(), algorithm="laplace")
