"""Ratings by class and by features: derivatives, a slow twin, and simulated truth."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, logsumexp

import polarbear as pb
from polarbear.cli.main import main
from polarbear.data.instance_basis import FeatureBasis
from polarbear.inference.laplace.by_instance import TAUS, tau_masses
from polarbear.inference.laplace.unit_fit import (
    Design,
    UnitModel,
    fit_units,
    improve_gaussian,
)
from polarbear.inference.plackett_luce.likelihood import build_likelihood
from polarbear.inference.plackett_luce.unit_likelihood import build_unit_likelihoods
from polarbear.priors.base import helmert_basis
from polarbear.simulation import rank_costs


def rank_with_ties(rng, n_times=2, instances=9, n=5):
    costs = rng.integers(0, 4, (n_times, instances, n)).astype(float)
    costs[rng.random(costs.shape) < 0.2] = np.nan
    return rank_costs(costs)


def simulate(mu, seed):
    """Rank algorithms with utilities (instances, algorithms) once."""
    noise = np.random.default_rng(seed).gumbel(size=mu.shape)
    return rank_costs(-(mu + noise)[None])


def with_classes(rankings, names):
    return rankings.with_instance_data({"instance": rankings.instances, "family": names})


def cover(posterior, mu, level=0.95):
    """Return whether intervals of differences of utilities contain those of mu (n,)."""
    first, second = np.triu_indices(len(mu), 1)
    drawn = posterior.utilities[:, 0].astype(float)
    low, high = np.quantile(
        drawn[:, first] - drawn[:, second], [0.5 - level / 2, 0.5 + level / 2], 0
    )
    return (low <= mu[first] - mu[second]) & (mu[first] - mu[second] <= high)


class TestLikelihood:
    def test_equal_utilities_give_the_plain_likelihood(self):
        rng = np.random.default_rng(1)
        rankings, unit = rank_with_ties(rng), np.arange(9) % 4
        mu = rng.normal(size=(2, 5))
        plain = build_likelihood(rankings)
        for t, units in enumerate(build_unit_likelihoods(rankings, unit)):
            same = np.tile(mu[t], (4, 1))
            gradient, curvature = units.derivatives(same)
            np.testing.assert_allclose(units.value(same), plain.value(mu)[t], rtol=1e-9)
            np.testing.assert_allclose(gradient.sum(axis=0), plain.gradient(mu)[t], atol=1e-7)
            np.testing.assert_allclose(curvature.sum(axis=0), plain.curvature(mu)[t], atol=1e-7)

    @pytest.mark.parametrize("tau", [0.0, 0.7])
    @pytest.mark.parametrize("has_scores", [False, True])
    def test_derivatives_by_finite_differences(self, tau, has_scores):
        rng = np.random.default_rng(2)
        rankings = rank_with_ties(rng)
        likelihood = build_unit_likelihoods(rankings, np.arange(9))[1]
        design = Design(rng.normal(size=(9, 2)))
        scores = rng.normal(size=(9, 5)) if has_scores else None
        model = UnitModel(likelihood, design if tau else design.constant, tau, 1.0, scores)
        state, h = rng.normal(size=model.size), 1e-5
        gradient, hessian = model.derivatives(state)
        np.testing.assert_allclose(model.gradient(state), gradient, atol=1e-8)
        others = rng.normal(size=(3, model.size))
        means = [
            np.mean(part, axis=0) for part in zip(*map(model.derivatives, others), strict=True)
        ]
        for together, mean in zip(model.derivatives(others), means, strict=True):
            np.testing.assert_allclose(together, mean, atol=1e-8)
        for k, unit in enumerate(np.eye(model.size)):
            ends = state + h * unit, state - h * unit
            slope = (model.value(ends[0]) - model.value(ends[1])) / (2 * h)
            np.testing.assert_allclose(gradient[k], slope, atol=1e-6)
            change = model.derivatives(ends[0])[0] - model.derivatives(ends[1])[0]
            np.testing.assert_allclose(hessian[k], -change / (2 * h), atol=1e-5)

    def test_the_estimate_of_another_tau(self):
        rng = np.random.default_rng(3)
        mu = rng.normal(size=(60, 3))
        likelihood = build_unit_likelihoods(simulate(mu, 3), np.arange(60))[0]
        design = Design(rng.normal(size=(60, 4)))
        fits = [fit_units(UnitModel(likelihood, design, tau, 1.0)) for tau in (0.5, 1.0)]
        assert abs(fits[0].predict(1.0).log_evidence - fits[1].log_evidence) < 0.3
        again = fit_units(fits[1].model, fits[0])
        np.testing.assert_allclose(again.mode, fits[1].mode, atol=1e-3)


def integrate(rankings, names):
    """Return P(a1 ahead in each class) of two algorithms, by sums over a grid of parameters."""
    axis = np.linspace(-7, 7, 71)
    overall, first, second = np.stack(np.meshgrid(axis, axis, axis)).reshape(3, -1)
    log_weights, ahead = [], []
    wins = rankings.position[0].reshape(-1, 2)[:, 0] == 0
    for tau, mass in zip(TAUS, tau_masses(), strict=True):
        # mu_1 - mu_2 is sqrt(2) times the coordinate in the Helmert basis.
        gaps = [np.sqrt(2) * (overall + tau * coordinate) for coordinate in (first, second)]
        log_p = -0.5 * (first**2 + second**2)  # standardised: tau multiplies
        log_p += log_softmax(np.stack([overall, -overall]) * np.sqrt(0.5), axis=0).sum(axis=0)
        for gap, name in zip(gaps, ("x", "y"), strict=True):
            won = wins[np.array(names) == name]
            log_p -= won.sum() * np.logaddexp(0, -gap) + (~won).sum() * np.logaddexp(0, gap)
        total = logsumexp(log_p)
        log_weights.append(total + np.log(mass))
        ahead.append([np.exp(logsumexp(log_p[gap > 0]) - total) for gap in gaps])
    weight = np.exp(np.array(log_weights) - max(log_weights))
    return weight / weight.sum() @ np.array(ahead)


def test_direct_integration_agrees():
    mu = np.repeat([[0.8, 0.0], [-0.3, 0.0]], [12, 6], axis=0)
    names = ["x"] * 12 + ["y"] * 6
    rankings = simulate(mu, 5)
    posterior = pb.fit(with_classes(rankings, names), classes="family", draws=4000)
    drawn = [posterior.on(name).prob_better("a1", "a2")[0] for name in ("x", "y")]
    np.testing.assert_allclose(drawn, integrate(rankings, names), atol=0.03)


def test_the_gaussian_has_the_moments_of_a_skewed_posterior():
    rankings = simulate(np.tile([9.0, 0.0], (4, 1)), 0)  # a1 always wins, in the only class
    likelihood = build_unit_likelihoods(rankings, np.zeros(4, dtype=int))[0]
    fit = fit_units(UnitModel(likelihood, Design(np.ones((1, 1))), 2.0, 1.0))
    axis = np.linspace(-12, 20, 401)
    states = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    gap = np.sqrt(2) * states.sum(axis=1)
    overall = np.sqrt(2) * states[:, 0]
    log_p = -(states[:, 1] ** 2) / 8 - 4 * np.logaddexp(0, -gap)
    log_p -= np.logaddexp(0, -overall) + np.logaddexp(0, overall)
    weight = np.exp(log_p - logsumexp(log_p))
    mean = weight @ gap
    sd = np.sqrt(weight @ (gap - mean) ** 2)
    errors = []
    for gaussian in (fit, improve_gaussian(fit)):
        spread = np.linalg.solve(gaussian.lower, np.sqrt(2) * np.ones(2))
        errors.append([np.sqrt(2) * gaussian.mode.sum() - mean, np.sqrt(np.sum(spread**2)) - sd])
    assert np.all(np.abs(errors[1]) < 0.2 * sd)
    assert abs(errors[1][0]) < 0.5 * abs(errors[0][0])  # Laplace's mean is far off


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_nuts_agrees():
    pytest.importorskip("nutpie")
    pm = pytest.importorskip("pymc")
    sizes = [4, 9, 20]
    mu = np.array([[1.5, 0.0, -0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.0]])
    unit = np.repeat(np.arange(3), sizes)
    rankings = simulate(mu[unit], 3)
    order = np.argsort(rankings.position[0].reshape(-1, 3), axis=1)
    basis = helmert_basis(3)
    with pm.Model():
        overall = pm.Flat("overall", shape=2)
        shared = pm.math.dot(basis, overall)
        pm.Potential("dirichlet", -3 * pm.math.logsumexp(shared))
        tau = pm.HalfCauchy("tau", 1.0)
        own = pm.Normal("own", 0.0, 1.0, shape=(3, 2))
        utilities = pm.Deterministic("u", shared + pm.math.dot(tau * own, basis.T))
        placed = utilities[unit[:, None], order]
        rest = pm.math.logsumexp(placed[:, 1:], axis=1, keepdims=False)
        every = pm.math.logsumexp(placed, axis=1, keepdims=False)
        pm.Potential("data", (placed[:, 0] - every + placed[:, 1] - rest).sum())
        trace = pm.sample(
            2000,
            chains=2,
            cores=1,
            random_seed=1,
            target_accept=0.95,
            nuts_sampler="nutpie",
            progressbar=False,
        )
    drawn = trace.posterior["u"].values.reshape(-1, 3, 3)
    posterior = pb.fit(with_classes(rankings, [f"c{k}" for k in unit]), classes="family")
    for k in range(3):
        ours = posterior.on(f"c{k}").utilities[:, 0].astype(float)
        for a, b in ((0, 1), (0, 2), (1, 2)):
            gap, exact = ours[:, a] - ours[:, b], drawn[:, k, a] - drawn[:, k, b]
            assert abs(np.mean(gap > 0) - np.mean(exact > 0)) < 0.03
            assert abs(gap.mean() - exact.mean()) < 0.15 * exact.std()
            assert abs(gap.std() / exact.std() - 1) < 0.15


class TestClasses:
    def test_classes_differ_and_a_new_one_is_uncertain(self):
        mu = np.repeat([[1.5, 0, 0], [0, 1.5, 0]], 40, axis=0)
        rankings = with_classes(simulate(mu, 1), ["easy"] * 40 + ["hard"] * 40)
        posterior = pb.fit(rankings, classes="family")
        assert posterior.on("easy").prob_better("a1", "a2")[0] > 0.99
        assert posterior.on(family="hard").prob_better("a2", "a1")[0] > 0.99
        with pytest.warns(pb.errors.DataWarning, match="no instance of class 'odd'"):
            new = posterior.on("odd")
        width = np.ptp(new.interval("a1"), axis=0) / np.ptp(posterior.on("easy").interval("a1"), 0)
        assert width[0] > 1.5
        assert 35 < posterior.on("easy").instances <= 45
        mixed = posterior.population({"easy": 0.5, "hard": 0.5}).mean()[0]
        parts = [posterior.on(name).mean()[0] for name in ("easy", "hard")]
        np.testing.assert_allclose(mixed, np.mean(parts, axis=0), atol=0.01)
        assert "a1 is" in str(posterior.on("easy").verdict())

    def test_wins_on_a_mix_are_those_of_its_classes(self, tmp_path):
        mu = np.repeat([[4.0, 0.0, 8.0], [0.0, 1.5, -8.0]], [120, 80], axis=0)
        rankings = with_classes(simulate(mu, 7), ["x"] * 120 + ["y"] * 80)
        posterior = pb.fit(rankings, classes="family")
        parts = [posterior.on(name).win_probability("a1", "a2")[0] for name in "xy"]
        population = posterior.population()
        assert population.mean("a1") < population.mean("a2")  # a3 comes first where a1 beats a2
        for mix, share in ((population, 0.6), (posterior.population({"x": 1, "y": 3}), 0.25)):
            expected = share * parts[0] + (1 - share) * parts[1]
            chance, (low, high) = mix.win_probability("a1", "a2")
            np.testing.assert_allclose(chance, expected, atol=0.005)
            np.testing.assert_allclose(mix.win_probability("a2", "a1")[0], 1 - chance, atol=1e-6)
            assert low < chance < high
            near = abs(float(expected[0]) - 0.5)
            assert mix.prob_equivalent("a1", "a2", near + 0.1)[0] > 0.9
            assert mix.prob_equivalent("a2", "a1", max(0.0, near - 0.1))[0] < 0.1
        population.save(tmp_path / "mix.pb.zip")
        assert pb.Posterior.load(tmp_path / "mix.pb.zip") == population

    def test_every_use_warns_of_a_class_not_in_the_data(self, tmp_path, capsys):
        rankings = with_classes(simulate(np.zeros((20, 2)), 1), list("ab") * 10)
        posterior = pb.fit(rankings, classes="family")
        path, new = tmp_path / "selector.npz", {"family": ["a", "odd"]}
        pb.selection.InstanceRatings.of(posterior).save(path)
        for use in (
            lambda: posterior.population({"a": 1, "odd": 1}),
            lambda: posterior.predict(new),
            lambda: pb.selection.value_of_selection(posterior, columns=new),
            lambda: pb.selection.InstanceRatings.load(path).on("odd"),
        ):
            with pytest.warns(
                pb.errors.DataWarning, match="no instance of class 'odd' in the data"
            ):
                use()
        assert main(["select", str(path), "--final", "--features", "family=odd"]) == 0
        assert "no instance of class 'odd'" in capsys.readouterr().err
        with pytest.warns(pb.errors.DataWarning, match="no instance of class 'unknown'"):
            posterior.on(family=None)

    def test_a_small_class_is_pulled_to_the_others(self):
        mu = np.repeat([[1.0, 0.0]], 63, axis=0)
        rankings = simulate(mu, 2)
        wins = rankings.position[0].reshape(-1, 2)[:, 0] == 0
        few = np.flatnonzero(~wins)[:3]  # a class on which a1 always lost
        names = np.array(["large"] * 63)
        names[few] = "small"
        posterior = pb.fit(with_classes(rankings, names.tolist()), classes="family")
        small = posterior.on("small").mean("a1")[0]
        assert 0.1 < small < posterior.on("large").mean("a1")[0]

    def test_the_verdict_of_a_class_is_that_of_its_posterior(self):
        mu = np.repeat([[3.0, 2.6, -2.0], [-2.0, 3.0, 3.0]], [30, 300], axis=0)
        rankings = with_classes(simulate(mu, 5), ["easy"] * 30 + ["hard"] * 300)
        posterior = pb.fit(rankings, classes="family")
        for name, said in zip(("easy", "hard"), posterior.verdict().splitlines(), strict=False):
            for status in posterior.on(name).verdicts():
                kind = {"member": "worth running", "equivalent": "tied with"}
                parts = said.split(": ")[1].split("; ")[:-1]
                mine = [part for part in parts if status.algorithm in part]
                assert len(mine) == (status.kind != "dominated")
                assert all(kind.get(status.kind, status.kind) in part for part in mine)
        assert "a1, a2 are undecided; the best" in posterior.verdict()

    def test_one_class_differs_from_no_other(self):
        posterior = pb.fit(
            with_classes(simulate(np.zeros((20, 2)), 1), ["a"] * 20), classes="family"
        )
        assert posterior.verdict().startswith("a (20 instances): ")
        assert "differ" not in posterior.verdict()

    def test_wrong_classes_do_no_harm(self):
        mu = np.array([0.9, 0.3, 0.0, -0.6])
        rating = np.exp(mu) / np.exp(mu).sum()
        change = []
        for seed in range(4):
            rankings = simulate(np.tile(mu, (120, 1)), seed)
            names = [f"c{k % 6}" for k in range(120)]
            posterior = pb.fit(with_classes(rankings, names), classes="family")
            plain = rating @ np.log(pb.fit(rankings).mean()[0])
            by_class = [rating @ np.log(posterior.on(f"c{k}").mean()[0]) for k in range(6)]
            change.append(np.mean(by_class) / plain - 1)
        assert np.mean(change) < 0.01  # log scores are negative: a larger ratio is worse

    @pytest.mark.slow
    def test_coverage(self):
        rng, covered = np.random.default_rng(0), []
        for seed in range(40):
            sizes = [4, 8, 16, 24]
            tau = np.exp(rng.normal(-0.5, 0.5))
            mu = rng.normal(size=3) + tau * rng.normal(size=(4, 3))
            names = np.repeat(["c0", "c1", "c2", "c3"], sizes).tolist()
            rankings = with_classes(simulate(np.repeat(mu, sizes, axis=0), seed), names)
            posterior = pb.fit(rankings, classes="family", seed=seed, draws=1000)
            covered += [cover(posterior.on(f"c{k}"), mu[k]) for k in range(4)]
        assert 0.92 <= np.mean(covered) <= 0.98


def make_features(mu_of, seed, n_instances=150, n_features=2):
    x = np.random.default_rng(seed).normal(size=(n_instances, n_features))
    rankings = simulate(mu_of(x), seed)
    table = {"instance": rankings.instances, **{f"f{k}": column for k, column in enumerate(x.T)}}
    return rankings, table


class TestFeatures:
    def test_ratings_follow_a_feature(self):
        rankings, table = make_features(lambda x: np.stack([2 * x[:, 0], 0 * x[:, 0]], 1), 1)
        posterior = pb.fit(rankings, features=pd.DataFrame(table))
        high, low = posterior.on({"f0": 1.5, "f1": 0}), posterior.on({"f0": -1.5, "f1": 0})
        assert high.prob_better("a1", "a2")[0] > 0.98
        assert low.prob_better("a2", "a1")[0] > 0.98
        assert 3 < high.instances < 150
        predicted = posterior.predict(pd.DataFrame({"f0": [1.5, -1.5], "f1": [0, 0]}))
        assert predicted.best == [["a1"], ["a2"]]
        np.testing.assert_allclose(predicted.prob_first[0], high.mean(), atol=0.02)

    def test_without_signal_the_overall_posterior_remains(self):
        mu = np.array([1.0, 0.3, 0.0])
        rankings, table = make_features(lambda x: np.tile(mu, (len(x), 1)), 2, n_instances=300)
        posterior, plain = pb.fit(rankings, features=table), pb.fit(rankings)
        for x in (-1.0, 1.0):
            on = posterior.on({"f0": x, "f1": x})
            np.testing.assert_allclose(on.mean(), plain.mean(), atol=0.02)
            np.testing.assert_allclose(on.interval(), plain.interval(), atol=0.03)

    @pytest.mark.slow
    def test_coverage(self):
        covered = []
        for seed in range(8):
            rng = np.random.default_rng(seed)
            angle, weight, phase = (
                rng.normal(size=(2, 40)),
                rng.normal(size=(40, 3)),
                rng.random(40),
            )

            def truth(x, angle=angle, weight=weight, phase=phase):
                return np.cos(x @ angle / np.sqrt(2) + 7 * phase) @ weight / np.sqrt(20)

            rankings, table = make_features(truth, seed)
            posterior = pb.fit(rankings, features=table, draws=1000)
            covered += [
                cover(posterior.on({"f0": x[0], "f1": x[1]}), truth(x[None])[0])
                for x in rng.normal(size=(15, 2)).clip(-2, 2)
            ]
        assert 0.92 <= np.mean(covered) <= 0.98

    def test_missing_features_and_their_range(self):
        rankings, table = make_features(lambda x: x, 3)
        table["f1"] = np.where(np.arange(150) % 3, table["f1"], np.nan)
        posterior = pb.fit(rankings, features=table)
        assert posterior.on({"f0": 0.5}).algorithms == ("a1", "a2")
        with pytest.warns(pb.errors.DataWarning, match=r"outside of the range seen.*f0 \(-.* to "):
            posterior.on({"f0": 50.0, "f1": 0.0})
        with pytest.raises(pb.DataError, match="no class or feature named 'f3'"):
            posterior.on({"f3": 1.0})

    def test_features_that_are_not_given_are_named(self, tmp_path, capsys):
        rankings, table = make_features(lambda x: x[:, :2], 3, n_instances=220, n_features=4)
        rows = np.arange(220)
        table["f1"] = np.where(rows == 7, np.nan, table["f1"])  # too seldom to learn what it means
        table["f2"] = np.where(rows % 3, table["f2"], np.nan)  # missing together
        table["f3"] = np.where(rows % 3, table["f3"], np.nan)
        posterior = pb.fit(rankings, features=table)  # filterwarnings: nothing is warned of
        posterior.average_ratings({"f0": 0.0})
        posterior.importance()
        path = tmp_path / "selector.npz"
        pb.selection.InstanceRatings.of(posterior).save(path)
        selector = pb.selection.InstanceRatings.load(path)
        for on in (posterior.on, selector.on):
            on({"f0": 0.0, "f1": 0.0})  # f2 and f3 are missing as in the data
            with pytest.warns(pb.errors.DataWarning, match=r"answer is that for their median: f1$"):
                on({"f0": 0.0})
            with pytest.warns(pb.errors.DataWarning, match=r"their median: f0, f3$"):
                on({"f0": np.nan, "f1": 0.0, "f2": 0.0})
        with pytest.warns(pb.errors.DataWarning, match=r"their median: f1$"):
            posterior.predict({"f0": [0.0, 0.1], "f1": [0.0, np.nan]})
        with pytest.warns(pb.errors.DataWarning, match=r"their median: f0$"):
            posterior.average_ratings({"f0": np.nan})
        assert main(["select", str(path), "--final", "--features", "f0=0"]) == 0
        assert "their median: f1" in capsys.readouterr().err

    def test_a_forest_takes_the_median_of_a_feature_that_is_not_given(self):
        linear = pytest.importorskip("sklearn.linear_model").LinearRegression()
        rankings, table = make_features(lambda x: x, 3, n_instances=60)
        table |= {"constant": np.ones(60), "gap": np.where(np.arange(60) % 3, 1.0, np.nan)}
        scores = pb.cross_fit(rankings, table, regressor=linear)
        given = {"f0": [0.3], "f1": [float(np.median(table["f1"]))], "constant": [1.0]}
        expected = scores.predict(given)
        np.testing.assert_allclose(scores.predict({**given, "f1": [np.nan]}), expected)
        with pytest.warns(pb.errors.DataWarning, match=r"their median: f1$"):
            np.testing.assert_allclose(scores.predict({"f0": [0.3]}), expected)

    def test_the_residual_is_what_the_basis_leaves(self):
        x = np.random.default_rng(4).normal(size=(400, 5))
        located = FeatureBasis.build(x, list("abcde"), 0.3).locate_values(x)
        assert located.phi.shape == (400, 60)
        assert np.all(located.residual >= 0)
        assert 0.1 < located.residual.mean() < 1

    @pytest.mark.slow
    def test_scores_of_another_method(self):
        mu = np.random.default_rng(5).normal(size=(200, 3))
        rankings = simulate(2 * mu, 5)
        table = {"instance": rankings.instances, **{f"a{k + 1}": mu[:, k] for k in range(3)}}
        posterior = pb.fit(rankings, scores=table)
        on = posterior.on(scores={"a1": 1.0, "a2": 0.0, "a3": 0.0})
        assert on.mean("a1")[0] > 0.7
        forest = pytest.importorskip("sklearn.ensemble")
        features = {"instance": rankings.instances, "f": mu[:, 0] - mu[:, 1]}
        small = forest.RandomForestRegressor(10, min_samples_leaf=5, random_state=0)
        scores = pb.cross_fit(rankings, features, regressor=small)
        posterior = pb.fit(rankings, features=features, scores=scores)
        assert posterior.predict({"f": [2.0, -2.0]}).best == [["a1"], ["a2"]]


class TestScores:
    def make(self):
        """Return rankings by scores (60, 2) and a class that both differ, and a table of scores."""
        mu = np.random.default_rng(0).normal(size=(60, 2))
        mu[:30, 0] += 2
        rankings = with_classes(simulate(2 * mu, 1), ["u"] * 30 + ["v"] * 30)
        return rankings, {"instance": rankings.instances, "a1": mu[:, 0], "a2": mu[:, 1]}

    def test_a_mix_of_classes_has_the_scores_of_its_instances(self):
        rankings, table = self.make()
        posterior = pb.fit(rankings, classes="family", scores=table)
        every, mixed = posterior.population(), posterior.population({"u": 0.5, "v": 0.5})
        np.testing.assert_array_equal(every.utilities, mixed.utilities)
        parts = posterior.by_class()
        assert parts["u"].mean("a1")[0] > parts["v"].mean("a1")[0] + 0.2
        shared = posterior.population({"u": 1, "v": 3}).mean()
        expected = 0.25 * parts["u"].mean() + 0.75 * parts["v"].mean()
        np.testing.assert_allclose(shared, expected, atol=1e-4)
        assert posterior.verdict().startswith("u (30 instances): a1 ")
        with pytest.raises(pb.DataError, match="'odd' in the data, so its scores are not known"):
            posterior.population({"u": 1, "odd": 1})

    def test_scores_alone_have_no_classes(self):
        rankings, table = self.make()
        posterior = pb.fit(rankings, scores=table)
        assert posterior.verdict().startswith("All 60 instances: a1 ")
        assert "class" not in posterior.verdict() + str(posterior)
        assert "Dirichlet() by scores" in str(posterior.population())
        with pytest.raises(pb.DataError, match="has no classes"):
            posterior.population({"u": 1})
        with pytest.raises(pb.DataError, match=r"on\('u'\): there are no classes, give scores="):
            posterior.on("u")

    def test_features_of_the_forest_may_be_given(self):
        linear = pytest.importorskip("sklearn.linear_model").LinearRegression()
        rankings, table = self.make()
        feature = {"instance": rankings.instances, "f": table["a1"] - table["a2"]}
        scores = pb.cross_fit(rankings, feature, regressor=linear)
        for options, where in (({}, {}), ({"classes": "family"}, {"family": "u"})):
            posterior = pb.fit(rankings, scores=scores, **options)
            with pytest.raises(pb.DataError, match="the scores need f: give these features"):
                posterior.on(where)
            good, bad = (posterior.on({**where, "f": f}).mean("a1")[0] for f in (2.0, -2.0))
            assert good > 0.8 > 0.6 > bad
            columns = {name: [value] * 2 for name, value in where.items()} | {"f": [2.0, -2.0]}
            predicted = posterior.predict(columns).prob_first[:, 0, 0]
            np.testing.assert_allclose(predicted, [good, bad], atol=0.02)
            assert "a1 " in posterior.verdict()
        with pytest.raises(pb.DataError, match="no class is given: expected family"):
            posterior.on({"f": 2.0})


class TestSelection:
    def test_a_deployed_file_answers_as_the_posterior(self, tmp_path, capsys):
        rankings, table = make_features(lambda x: np.stack([2 * x[:, 0], 0 * x[:, 0]], 1), 1)
        posterior = pb.fit(rankings, features=table)
        path = tmp_path / "selector.npz"
        pb.selection.InstanceRatings.of(posterior, draws=400).save(path)
        selector = pb.selection.InstanceRatings.load(path)
        for x in (-1.5, 0.0, 1.5):
            where = {"f0": x, "f1": 0.3}
            mean = selector.on(where).ratings.mean(axis=0)
            np.testing.assert_allclose(mean, posterior.on(where).mean(), atol=0.02)
        assert pb.select(selector.on({"f0": -1.5, "f1": 0.3})).algorithms == ("a2",)
        arguments = ["select", str(path), "--final", "--features", "f0=1.5", "--features", "f1=0"]
        assert main(arguments) == 0
        assert "run a1" in capsys.readouterr().out
        assert path.stat().st_size < 200_000
        value = pb.selection.value_of_selection(posterior)
        assert value.is_worth_it
        assert 0.1 < value.gain < 0.4
        assert "is worth it: the probability to come first is 0." in str(value)

    def test_classes_are_deployed_and_damaged_files_refused(self, tmp_path):
        rankings = with_classes(simulate(np.zeros((20, 2)), 1), list("ab") * 10)
        posterior = pb.fit(rankings, classes="family")
        path = tmp_path / "selector.npz"
        pb.selection.InstanceRatings.of(posterior).save(path)
        assert pb.selection.InstanceRatings.load(path).on("a").algorithms == ("a1", "a2")
        assert not pb.selection.value_of_selection(posterior).is_worth_it
        data = path.read_bytes()
        for broken in (data[:200], data.replace(b"coefficients", b"coefficiants"), b"x"):
            path.write_bytes(broken)
            with pytest.raises(pb.DataError, match=r"selector.npz is "):
                pb.selection.InstanceRatings.load(path)


def test_groups_that_share_no_instance_are_not_trusted():
    costs = np.full((1, 60, 4), np.nan)
    costs[0, :30, :2] = costs[0, 30:, 2:] = [0, 1]
    rankings = rank_costs(costs)
    table = {"instance": rankings.instances, "family": ["x", "y"] * 30, "f": np.arange(60.0)}
    rankings = replace(rankings.with_instance_data(table), order_by="hypervolume")
    for options, where in (({"classes": "family"}, "x"), ({"features": ["f"]}, {"f": 3.0})):
        with pytest.warns(
            pb.errors.FitWarning, match="do not trust this posterior: no instance has runs"
        ):
            posterior = pb.fit(rankings, **options)
        for one in (posterior, posterior.on(where), posterior.population()):
            assert not one.diagnostics.trusted
            assert "do not trust it: no instance has runs from two of these groups" in str(one)
            assert str(one.verdict()).endswith("Runs are ordered by hypervolume.")


def test_refused_arguments():
    rankings = with_classes(simulate(np.zeros((6, 2)), 0), list("ababab"))
    for arguments, says in [
        ({"classes": "kind"}, "no attribute 'kind'"),
        ({"classes": "family", "features": "all"}, "classes or features, not both"),
        ({"features": ["family"]}, "features must be numbers, got family"),
        ({"features": []}, r"features=\[\]: expected at least one name"),
        ({"features": "all"}, r"features='all': .*, only texts \(family\), for classes=\. Pass a"),
        ({"classes": "family", "method": "nuts"}, "need method='laplace'"),
        ({"classes": "family", "start": None}, "has no option 'start'"),
    ]:
        with pytest.raises(pb.DataError, match=says):
            pb.fit(rankings, **arguments)
    with pytest.raises(pb.DataError, match="ties='unordered'"):
        pb.fit(replace(rankings, ties="averaged"), classes="family")
    says = (
        r"features='all': the instances have no attribute that is a number\. Pass a table with a "
        r"column 'instance' .*runs\.with_instance_data\(table\)"
    )
    with pytest.raises(pb.DataError, match=says):
        pb.fit(simulate(np.zeros((6, 2)), 0), features="all")


def test_texts_and_messages():
    rankings, table = make_features(lambda x: np.stack([4 * x[:, 0], 0 * x[:, 0]], 1), 1)
    posterior = pb.fit(rankings, features=table)
    selector = pb.selection.InstanceRatings.of(posterior)
    predicted = posterior.predict({"f0": [1.5, -1.5, -1], "f1": [0, 0, 0]})
    assert repr(predicted) == (
        "probabilities of 2 algorithms to come first on 3 instances at 1 time\n"
        "  Most likely the first at the end: a2 on 67 %, a1 on 33 % of the instances."
    )
    assert "trust it; Gaussian approximation, not" in str(posterior.on({"f0": 0, "f1": 0}))
    for on in (posterior.on, selector.on):
        with pytest.raises(pb.DataError, match="f0='big': expected a number"):
            on({"f0": "big", "f1": 0})
    with pytest.raises(pb.DataError, match=r"posterior.on\(\.\.\.\), .*posterior.population\(\)"):
        pb.select(posterior)
    with pytest.raises(pb.DataError, match=r"select\(posterior.on\(\.\.\.\), \.\.\.\)$"):
        pb.select(selector)


def test_features_that_never_vary_say_nothing(tmp_path):
    rankings = simulate(np.linspace([1.0, -1.0], [-1.0, 1.0], 30), 0)
    size = {"instance": rankings.instances, "size": np.arange(30.0)}
    expected = pb.fit(rankings, features=size).on(size=3)
    posterior = pb.fit(rankings, features={**size, "constant": np.ones(30)})
    assert posterior.basis.names == ("size",)
    for where in ({"size": 3}, {"size": 3, "constant": 1.0}):
        np.testing.assert_array_equal(posterior.on(where).utilities, expected.utilities)
    with pytest.warns(pb.errors.DataWarning, match=r"constant \(always 1\)"):
        posterior.on({"size": 3, "constant": 2.0})
    pb.selection.InstanceRatings.of(posterior).save(tmp_path / "selector.npz")
    selector = pb.selection.InstanceRatings.load(tmp_path / "selector.npz")
    assert selector.on({"size": 3, "constant": 1.0}).algorithms == ("a1", "a2")


def test_draws_of_times_belong_together():
    mu = np.repeat([[1.0, 0, 0], [0, 0.5, 0]], 30, axis=0)
    noise = np.random.default_rng(1).gumbel(size=mu.shape)
    rankings = with_classes(rank_costs(np.tile(-(mu + noise), (6, 1, 1))), ["x"] * 30 + ["y"] * 30)
    posterior = pb.fit(rankings, classes="family")
    on = posterior.on("x")
    assert abs(on.prob_dominates("a1", "a2") - on.prob_better("a1", "a2").min()) < 0.05


@pytest.mark.long
def test_coverage_at_size():
    covered, rng = [], np.random.default_rng(0)
    for seed, n_classes in product(range(100), (3, 8)):
        sizes = rng.integers(3, 40, n_classes)
        mu = rng.normal(size=4) + np.exp(rng.normal(-0.5, 0.7)) * rng.normal(size=(n_classes, 4))
        names = np.repeat([f"c{k}" for k in range(n_classes)], sizes).tolist()
        rankings = with_classes(simulate(np.repeat(mu, sizes, axis=0), seed), names)
        posterior = pb.fit(rankings, classes="family", seed=seed)
        covered += [cover(posterior.on(f"c{k}"), mu[k]).mean() for k in range(n_classes)]
    assert 0.92 <= np.mean(covered) <= 0.98
