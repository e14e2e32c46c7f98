"""``select``: preferences, risk, portfolios, and the small file that answers elsewhere."""

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_arrays
from numpy.testing import assert_allclose

import polarbear as pb
import reference
from polarbear.selection import portfolios
from waiting import THRICE

GRID = np.array([1.0, 2.0, 5.0, 10.0, 100.0])


def rated(n=5, times=GRID, draws=60, seed=0, spread=0.4):
    """Ratings of algorithms that are good early, late, or in between."""
    rng = np.random.default_rng(seed)
    rise = np.linspace(-1, 1, len(times))[:, None] * rng.normal(0, 1, n)
    noise = rng.normal(size=(draws, 1, n)) + 0.3 * rng.normal(size=(draws, len(times), n))
    rating = np.exp(rng.normal(0, 0.4, n) + rise + spread * noise)
    rating /= rating.sum(axis=-1, keepdims=True)
    names = tuple(f"a{k}" for k in range(n))
    return pb.selection.Ratings(
        names, np.asarray(times, float), rating.astype(np.float32), "seconds"
    )


def certain(curves, times=None):
    """Ratings (n, T) that are known."""
    curves = np.asarray(curves, dtype=np.float32)
    times = np.arange(1.0, curves.shape[1] + 1) if times is None else times
    return pb.selection.Ratings(
        tuple(f"a{k}" for k in range(len(curves))), times, curves.T[None].copy()
    )


class Uniform:
    """A distribution as scipy.stats has them."""

    def __init__(self, start, stop):
        self.start, self.stop = start, stop

    def cdf(self, t):
        return np.clip((t - self.start) / (self.stop - self.start), 0, 1)


def test_sure_judges_the_choice_and_does_not_change_it():
    ratings = rated(n=3, draws=400)
    plain = pb.select(ratings)
    best = plain.choice.best
    assert plain.met is None
    for sure, met in ((best, True), (best - 1e-9, True), (best + 1e-9, False)):
        judged = pb.select(ratings, sure=sure)
        assert judged.choices == plain.choices
        assert judged.met is met
    for wrong in (0, 1, -0.5, 95, float("nan")):
        with pytest.raises(pb.DataError, match="expected a probability between 0 and 1"):
            pb.select(ratings, sure=wrong)


# Preferences


def integral(curve, start, stop, weight=np.ones_like, log=False, times=GRID, pieces=200_000):
    """The mean of a curve of straight lines, slowly."""
    place = np.log if log else np.asarray
    edges = np.linspace(place(start), place(stop), pieces + 1)
    at = (edges[1:] + edges[:-1]) / 2
    weights = weight(np.exp(at) if log else at)
    return np.sum(weights * np.interp(at, place(times), curve)) / weights.sum()


@pytest.mark.parametrize(
    ("preference", "want", "tolerance"),
    [
        (pb.preferences.between(), lambda c: integral(c, 1, 100), 1e-6),
        (pb.preferences.between(3, 50), lambda c: integral(c, 3, 50), 1e-6),
        (pb.preferences.between(stop=7), lambda c: integral(c, 1, 7), 1e-6),
        (pb.preferences.between(3, scale="log"), lambda c: integral(c, 3, 100, log=True), 1e-6),
        (pb.preferences.between(3, 3), lambda c: np.interp(3, GRID, c), 1e-9),
        (pb.preferences.at(7.5), lambda c: np.interp(7.5, GRID, c), 1e-9),
        (pb.preferences.final(), lambda c: c[-1], 1e-9),
        (
            pb.preferences.weighted(lambda t: np.exp(-t / 5)),
            lambda c: integral(c, 1, 100, lambda t: np.exp(-t / 5)),
            3e-3,
        ),
        (
            pb.preferences.weighted(lambda t: t < 20, scale="log"),
            lambda c: integral(c, 1, 100, lambda t: t < 20, log=True),
            3e-3,
        ),
        (pb.preferences.distribution(Uniform(3, 50)), lambda c: integral(c, 3, 50), 3e-3),
        (
            pb.preferences.distribution([1, 7.5, 100], [1, 2, 1]),
            lambda c: np.interp([1, 7.5, 7.5, 100], GRID, c).mean(),
            1e-9,
        ),
    ],
)
def test_linear_preferences_are_means_of_ratings(preference, want, tolerance):
    weights = preference.weights(GRID, "seconds")
    assert_allclose(weights.sum(), 1.0)
    assert np.all(weights >= 0)
    for curve in np.random.default_rng(1).uniform(size=(5, len(GRID))):
        assert_allclose(weights @ curve, want(curve), atol=tolerance)


def test_a_log_range_in_a_grid_that_starts_at_zero():
    weights = pb.preferences.between(1, 4, scale="log").weights(np.array([0.0, 1, 2, 4]), "time")
    assert_allclose(weights, [0, 0.25, 0.5, 0.25])
    weights = pb.preferences.between(0.5, 2, scale="log").weights(np.array([0.0, 1, 2]), "time")
    assert_allclose(weights, [0.25, 0.5, 0.25])


@pytest.mark.parametrize(
    "preference",
    [
        None,
        lambda t: t,
        pb.preferences.final(),
        pb.preferences.between(5, 5, scale="log"),
        pb.preferences.distribution([5.0]),
        pb.preferences.increasing(lambda curves: curves.min(axis=-1)),
    ],
)
def test_one_time_is_enough(preference):
    assert pb.select(certain([[0.3], [0.7]], np.array([5.0])), preference).algorithms == ("a1",)


def test_a_function_of_time_gives_weights_and_nothing_means_any_time():
    ratings = rated()
    said = pb.select(ratings, lambda t: (t >= 2) & (t <= 10))
    meant = pb.select(ratings, pb.preferences.between(2, 10))
    assert said.algorithms == meant.algorithms
    assert_allclose(said.choice.score, meant.choice.score, atol=1e-9)
    assert pb.select(ratings) == pb.select(ratings, pb.preferences.between(scale="log"))


def test_any_budget_is_weighted_on_the_scale_of_the_axis():
    """On a log axis, linear weights would let the last tenth of the picture decide."""
    truth = np.stack([np.linspace(2, -1, 9), np.linspace(-1, 0.5, 9)], axis=1)
    for times, scale in ((np.geomspace(1, 1e4, 9), "log"), (np.linspace(0, 9, 9), "linear")):
        rated = pb.fit(pb.simulation.simulate_rankings(truth, 60, times=times))
        meant = pb.select(rated, pb.preferences.between(scale=scale))
        assert pb.select(rated) == meant
        assert pb.plots.values_data(rated).mean[0] == pytest.approx(meant.choice.expected)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        ({"preference": (2, 5)}, r"such as preferences.between\(2, 5\)"),
        ({"preference": 5}, r"such as preferences.at\(5\)"),
        ({"preference": Uniform(1, 2)}, "such as preferences.distribution"),
        ({"preference": "late"}, "preference='late': expected a function of time"),
        ({"preference": lambda curves: curves.min()}, r"preferences.increasing\(function\)"),
        ({"preference": lambda t: -t}, "gave -1.00781 at 1.00781: weights must be finite and not"),
        ({"preference": lambda t: t > 200}, "0 everywhere in 1 to 100 seconds"),
        ({"preference": pb.preferences.at(101)}, "time 101 lies outside .* 1 to 100 seconds"),
        ({"preference": pb.preferences.between(200, 300)}, "range 200 to 300 seconds lies outside"),
        ({"preference": pb.preferences.distribution([200.0])}, "every stopping time lies outside"),
        ({"preference": pb.preferences.increasing(lambda c: c.sum())}, r"gave shape \(\) for curv"),
        ({"preference": pb.preferences.increasing(lambda c: -c[..., 0])}, "falls from .* when all"),
        (
            {"preference": pb.preferences.increasing(lambda c: np.full(c.shape[:-1], np.nan))},
            "gave nan for a rating curve",
        ),
        ({"risk": 5}, "risk=5: expected the level of a quantile between 0 and 1"),
        ({"risk": "low"}, "risk='low': expected 'expected', 'best'"),
        ({"size": 0}, "size=0: expected the number of parallel runs"),
        ({"size": 2.0}, "size=2.0: expected the number of parallel runs"),
        ({"size": 6, "repeats": False}, "6 algorithms, got 5: pass repeats=True"),
        ({"among": ["a0", "A1"]}, "no algorithm named 'A1'; did you mean 'a1'"),
        ({"among": []}, "among is empty"),
    ],
)
def test_what_makes_no_sense_is_refused(ask, message):
    with pytest.raises(pb.DataError, match=message):
        pb.select(rated(), **ask)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pb.preferences.between(5, 2), "range is empty; swap its ends"),
        (lambda: pb.preferences.between(5, np.inf), "for an open end pass None"),
        (lambda: pb.preferences.between(scale="sqrt"), "expected 'linear' or 'log'"),
        (lambda: pb.preferences.weighted([1, 2]), r"preferences.distribution\(times, weights\)"),
        (lambda: pb.preferences.increasing(3), "expected a function from rating curves to values"),
        (lambda: pb.preferences.distribution([]), "at least one time"),
        (
            lambda: pb.preferences.distribution([1, np.nan]),
            "stopping time at position 1 is not finite",
        ),
        (lambda: pb.preferences.distribution([1, 2], [1]), "two lists of the same length"),
        (lambda: pb.preferences.distribution([1, 2], [0, 0]), "not all 0"),
        (
            lambda: pb.preferences.distribution(Uniform(1, 2), [1]),
            "leave it out with a distribution",
        ),
    ],
)
def test_preferences_that_make_no_sense_are_refused(make, message):
    with pytest.raises(pb.DataError, match=message):
        make()


def test_log_time_has_no_zero():
    with pytest.raises(pb.DataError, match=r"start later, as in preferences.between\(1, 2, scale"):
        pb.select(certain(np.eye(3), np.arange(3.0)), pb.preferences.between(scale="log"))


def test_a_choice_that_another_one_equals_says_so():
    close = str(pb.select(certain([[0.5, 0.5], [0.5, 0.5]])))
    assert close.startswith("run a0: best by expected value, but a1 is as likely the best\n")
    assert "as likely" not in str(pb.select(certain([[0.6, 0.6], [0.4, 0.4]])))


def test_what_lies_outside_of_the_grid_is_said():
    with pytest.warns(
        pb.errors.DataWarning, match="range 50 to 200 seconds is only known from 50 to 100"
    ):
        pb.select(rated(), pb.preferences.between(50, 200))
    with pytest.warns(pb.errors.DataWarning, match="-90 to 1 seconds is only known from 1 sec"):
        pb.select(rated(), pb.preferences.between(-90, rated().times[0]))
    pb.select(rated(), pb.preferences.between(50, 100.4))  # less than a hundredth of it
    with pytest.warns(pb.errors.DataWarning, match="50% of the stopping times lie outside"):
        pb.select(rated(), pb.preferences.distribution([50, 200]))
    with pytest.warns(pb.errors.DataWarning, match="50% of the stopping times lie outside"):
        pb.select(rated(), pb.preferences.distribution(Uniform(50, 150)))


# Criteria, against brute force

WEIGHTS = pb.preferences.between(2, 10).weights(GRID, "time")
PREFERENCES = {
    "linear": (pb.preferences.between(2, 10), lambda curve: float(WEIGHTS @ curve)),
    "worst": (pb.preferences.increasing(lambda c: c.min(axis=-1)), lambda c: float(c.min())),
    "capped": (
        pb.preferences.increasing(lambda c: np.minimum(c, 0.7).mean(axis=-1)),
        lambda c: float(np.minimum(c, 0.7).mean()),
    ),
    "log": (
        pb.preferences.increasing(lambda c: np.log(c).mean(axis=-1)),
        lambda c: float(np.log(c).mean()),
    ),
}


@pytest.mark.parametrize("repeats", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("risk", ["expected", "best", 0.05, 0.5])
@pytest.mark.parametrize("name", PREFERENCES)
def test_every_criterion_agrees_with_brute_force(name, risk, size, repeats):
    preference, slow = PREFERENCES[name]
    ratings = rated(n=4, draws=40, seed=size)
    found = pb.select(ratings, preference, risk=risk, size=size, repeats=repeats)
    truth = reference.selected(ratings.ratings.astype(float), slow, risk, size, repeats)
    assert found.exact
    assert_allclose(found.choice.score, max(score for score, *_ in truth.values()), atol=1e-7)
    for choice in found.choices:
        members = tuple(ratings.algorithms.index(name) for name in choice.algorithms)
        figures = (choice.score, choice.expected, choice.best, choice.regret)
        assert_allclose(figures, truth[members], atol=1e-7)
    scores = [choice.score for choice in found.choices]
    assert scores == sorted(scores, reverse=True)
    if size == 1:
        assert len(found.choices) == 4
        assert_allclose(sum(choice.best for choice in found.choices), 1.0)


def test_among_restricts_the_choice_and_not_the_ratings():
    ratings = rated()
    first = pb.select(ratings)
    rest = [name for name in ratings.algorithms if name != first.algorithms[0]]
    second = pb.select(ratings, among=rest)
    assert second.choice.expected == first.choices[1].expected
    assert_allclose(sum(choice.best for choice in second.choices), 1.0)
    assert pb.select(ratings, among=[*rest, *rest]) == second


def test_the_careful_take_what_is_sure():
    sure, bold = np.full((200, 1), 0.4), np.linspace(0.1, 0.8, 200)[:, None]
    draws = np.stack([sure, bold], axis=-1).astype(np.float32)
    ratings = pb.selection.Ratings(("sure", "bold"), np.ones(1), draws)
    assert pb.select(ratings, risk="expected").algorithms == ("bold",)
    assert pb.select(ratings, risk="best").algorithms == ("bold",)
    assert pb.select(ratings, risk=0.05).algorithms == ("sure",)


# The paper's proposition

CURVES = st_arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    elements=st.integers(1, 6).map(lambda k: k / 8),
)


@pytest.mark.slow
@given(CURVES, st.data())
def test_optimal_under_some_preference_if_and_only_if_in_the_pareto_set(curves, data):
    """Section 4, proposition 1; values in eighths, which are exact, so that ties occur."""
    ratings = certain(curves)
    positive = st.lists(st.floats(0.1, 1), min_size=curves.shape[1], max_size=curves.shape[1])
    weights, offset = np.array(data.draw(positive)), np.array(data.draw(positive))
    some = [
        pb.preferences.final(),
        pb.preferences.at(data.draw(st.sampled_from(ratings.times.tolist()))),
        pb.preferences.between(),
        pb.preferences.distribution(ratings.times, weights),
        pb.preferences.increasing(lambda c: (c - offset).min(axis=-1)),
        pb.preferences.increasing(lambda c: (c * weights).max(axis=-1)),
    ]
    for k, own in enumerate(curves):
        name = f"a{k}"
        if reference.anytime_dominated(curves, k):
            for preference in some:
                assert name not in optimal(ratings, preference)
        else:
            witness = pb.preferences.increasing(lambda c, own=own: (c - own).min(axis=-1))
            assert name in optimal(ratings, witness)


def optimal(ratings, preference):
    choices = pb.select(ratings, preference).choices
    return {c.algorithms[0] for c in choices if c.score >= choices[0].score - 1e-12}


# Portfolios


def test_a_linear_preference_wants_the_best_one_again_and_again():
    ratings = rated()
    for risk in ("expected", "best"):
        alone = pb.select(ratings, risk=risk)
        four = pb.select(ratings, risk=risk, size=4, repeats=True)
        assert four.algorithms == alone.algorithms * 4
        assert_allclose(four.choice.expected, 4 * alone.choice.expected)
        assert_allclose(four.choice.regret, 4 * alone.choice.regret)
        assert_allclose(four.choice.best, alone.choice.best)


def test_to_be_good_at_all_times_takes_more_than_one():
    ratings = certain([[0.8, 0.1], [0.1, 0.8], [0.1, 0.1]])
    worst = pb.preferences.increasing(lambda curves: curves.min(axis=-1))
    assert pb.select(ratings, worst, size=2, repeats=True).algorithms == ("a0", "a1")


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("repeats", [True, False])
@pytest.mark.parametrize("risk", ["expected", "best", 0.05])
@pytest.mark.parametrize("name", PREFERENCES)
def test_search_finds_what_trying_all_does_and_its_limit_holds(
    name, risk, repeats, size, monkeypatch
):
    ratings = rated(n=7, draws=100, seed=3)
    ask = {"preference": PREFERENCES[name][0], "risk": risk, "size": size, "repeats": repeats}
    truth = pb.select(ratings, **ask)
    monkeypatch.setattr(portfolios, "MAX_ENUMERATED", 0)
    found = pb.select(ratings, **ask)
    assert truth.exact
    assert found.limit >= truth.choice.score - 1e-12
    assert found.exact or not (name == "linear" and isinstance(risk, str))
    if risk != "best":
        assert_allclose(found.choice.score, truth.choice.score, atol=1e-9)
    assert found.algorithms == truth.algorithms
    assert found.choice.regret <= truth.choice.regret + 1e-12
    assert found.choice.best >= truth.choice.best - 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", PREFERENCES)
@pytest.mark.parametrize("risk", ["expected", "best", 0.05])
def test_eight_of_thirty_take_less_than_a_second(name, risk):
    """Or, on a slower machine, than what 15 million small steps of Python take there."""
    ratings = rated(n=30, times=np.geomspace(1, 100, 30), draws=4000)

    def in_time():
        start = time.process_time()
        found = pb.select(ratings, PREFERENCES[name][0], risk=risk, size=8, repeats=True)
        middle = time.process_time()
        sum(k * k for k in range(150_000))
        assert len(found.algorithms) == 8
        assert found.gap >= 0
        return middle - start < max(1.0, 100 * (time.process_time() - middle))

    assert any(in_time() for _ in range(THRICE))


def test_what_portfolios_assume_is_asked_for():
    with pytest.warns(
        pb.errors.DataWarning, match="holds if the best result .* repeats=False"
    ) as said:
        found = pb.select(rated(), size=2)
    assert said[0].filename == __file__
    assert found == pb.select(rated(), size=2, repeats=True)


# The answer


def test_it_prints_a_table():
    found = pb.select(rated(n=9), pb.preferences.between(2, 10), risk=0.05)
    lines = str(found).splitlines()
    assert lines[0] == f"run {found.algorithms[0]}: best by 0.05 quantile"
    assert lines[1] == "  preference: from 2 to 10, in seconds"
    assert lines[2].split() == ["0.05", "quantile", "expected", "P(best)", "regret"]
    assert lines[3].split()[:2] == [found.algorithms[0], f"{found.choice.score:.3f}"]
    assert lines[-1] == "  and 3 more"
    assert len({len(line) for line in lines[2:-1]}) == 1
    many = pb.select(rated(), size=3, repeats=True)
    assert f"run 3 x {many.algorithms[0]}: best by expected value" in str(many)
    assert "independent" in str(many)


def test_what_a_search_could_have_missed_is_printed(monkeypatch):
    monkeypatch.setattr(portfolios, "MAX_ENUMERATED", 0)
    found = pb.select(rated(), risk=0.05, size=3, repeats=True)
    assert not found.exact
    assert f"no portfolio is above {found.limit:.3g}" in str(found)


def test_the_table_is_for_data_frames():
    table = pb.select(rated(), size=2, repeats=False).columns()
    assert list(table) == ["choice", "score", "expected", "best", "regret"]
    assert {len(column) for column in table.values()} == {len(table["choice"])}
    assert " + " in table["choice"][0]


def test_anything_with_four_attributes_will_do():
    class Mine:
        algorithms, clock, times = ("x", "y"), "time", np.array([1.0, 2.0])
        ratings = np.array([[[0.4, 0.6], [0.3, 0.7]]], dtype=np.float32)

    assert pb.select(Mine()).algorithms == ("y",)
    Mine.times = np.array([1.0])
    with pytest.raises(pb.DataError, match="are not draws of 2 algorithms at 1 times"):
        pb.select(Mine())


# The file


@pytest.mark.parametrize("name", PREFERENCES)
@pytest.mark.parametrize("size", [1, 2])
def test_the_file_gives_the_same_answers(name, size, tmp_path):
    ratings = rated(draws=1500, spread=0.1)
    path = tmp_path / "ratings.json"
    small = pb.selection.Ratings.of(ratings)
    small.save(path)
    again = pb.selection.Ratings.load(path)
    assert again == small
    for risk in ("expected", 0.05):
        ask = {"preference": PREFERENCES[name][0], "risk": risk, "size": size, "repeats": True}
        here, there = pb.select(ratings, **ask), pb.select(again, **ask)
        assert there == pb.select(small, **ask)
        assert there.algorithms == here.algorithms
        # Two thirds of the draws: a quantile of them is off by less than a tenth of the spread.
        assert_allclose(there.choice.score, here.choice.score, rtol=0.02)


def test_without_thinning_only_rounding_is_lost(tmp_path):
    ratings = rated(draws=300)
    pb.selection.Ratings.of(ratings, draws=300).save(tmp_path / "r.json")
    again = pb.selection.Ratings.load(tmp_path / "r.json")
    assert_allclose(again.ratings, ratings.ratings, rtol=2.0**-11, atol=2.0**-24)
    assert_allclose(
        [c.score for c in pb.select(again, risk=0.05).choices],
        [c.score for c in pb.select(ratings, risk=0.05).choices],
        rtol=2.0**-10,
    )


def test_the_file_is_small_and_plain(tmp_path):
    path = tmp_path / "ratings.json"
    pb.selection.Ratings.of(rated(n=10, times=np.geomspace(1, 100, 30), draws=4000)).save(path)
    assert path.stat().st_size < 820_000
    content = json.loads(path.read_text())
    assert content["algorithms"] == [f"a{k}" for k in range(10)]
    assert content["clock"] == "seconds"
    some = tmp_path / "some.json"
    pb.selection.Ratings.of(rated(n=10), among=["a7", "a2"]).save(some)
    assert pb.selection.Ratings.load(some).algorithms == ("a7", "a2")


def test_any_name_survives(tmp_path):
    ratings = pb.selection.Ratings(
        ("../ü\n", "🐻 \ud7ff"), np.ones(1), np.full((1, 1, 2), 0.5, np.float32)
    )
    ratings.save(tmp_path / "odd.json")
    assert pb.selection.Ratings.load(tmp_path / "odd.json") == ratings


def test_deployment_takes_numpy_alone(tmp_path):
    pb.selection.Ratings.of(rated()).save(tmp_path / "ratings.json")
    code = f"""
import sys
for name in ("scipy", "narwhals", "threadpoolctl"):
    sys.modules[name] = None
import polarbear as pb
ratings = pb.selection.Ratings.load({str(tmp_path / "ratings.json")!r})
print(*pb.select(ratings, lambda t: t > 20, risk=0.05).algorithms)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == [*pb.select(rated(), lambda t: t > 20, risk=0.05).algorithms]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.update(kind="cake"), "does not hold 'polarbear ratings'"),
        (lambda content: content.update(version=99), "newer PolarBear"),
        (lambda content: content.pop("times"), "damaged: its entry 'times' is missing"),
        (lambda content: content["ratings"].update(shape=[61, 2, 2]), "damaged"),
        (lambda content: content["ratings"].update(base64="no base64!"), "damaged"),
        (lambda content: content.update(ratings=3), "damaged"),
        (lambda content: content.update(times=5), "damaged"),
        (lambda content: content["ratings"].update(base64="/////" * 2 + "//"), "damaged"),
        (lambda content: content.update(times=[2, 1]), "must be finite and increase"),
        (lambda content: content.update(times=[float("nan"), 1]), "must be finite and increase"),
        (lambda content: content.update(times=[[1], [2]]), "must be finite and increase"),
        (lambda content: content.update(times=[]), "the ratings have the shape"),
        (lambda content: content["ratings"].update(shape=[3]), "cannot reshape"),
        (lambda content: content["ratings"].update(base64="", shape=[0, 2, 3]), "some are missing"),
        (lambda content: content.update(algorithms=[]), "list of different names"),
        (lambda content: content.update(algorithms="abc"), "list of different names"),
        (lambda content: content.update(algorithms=["a"] * 3), "list of different names"),
    ],
)
def test_damaged_and_foreign_files_are_refused(change, message, tmp_path):
    path = tmp_path / "ratings.json"
    pb.selection.Ratings.of(rated()).save(path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(pb.DataError, match=message):
        pb.selection.Ratings.load(path)


def test_what_is_no_file_of_ratings_is_refused(tmp_path):
    path = tmp_path / "text"
    for text in ("hello", "[]", "\x00", "[" * 200_000):
        path.write_text(text)
        with pytest.raises(pb.DataError, match="not JSON|does not hold"):
            pb.selection.Ratings.load(path)


def test_draws_must_be_some():
    with pytest.raises(pb.DataError, match="draws=0: expected at least 1"):
        pb.selection.Ratings.of(rated(), draws=0)


def test_whoever_may_have_meant_hours_is_asked():
    times = np.array([1800.0, 3600.0, 7200.0])
    with pytest.raises(pb.DataError, match="did you mean hours[?] These are 3,600 to 7,200 sec"):
        pb.preferences.between(1, 2).weights(times, "wall")
    with pytest.raises(pb.DataError, match="did you mean minutes[?] These are 2,700 seconds"):
        pb.preferences.at(45).weights(times, "seconds")
    with pytest.raises(pb.DataError, match="1,800 to 7,200 seconds$"):
        pb.preferences.at(9000).weights(times, "seconds")
    with pytest.raises(pb.DataError, match="1,800 to 7,200 evaluations$"):
        pb.preferences.between(1, 2).weights(times, "evaluations")


@pytest.mark.parametrize("make", [pb.preferences.at, pb.preferences.between])
def test_times_with_a_unit_are_told_what_an_hour_is(make):
    with pytest.raises(pb.DataError, match=r"\('1h'\): times are numbers .* an hour is 3600"):
        make("1h")


def test_weights_near_the_largest_float_do_not_overflow():
    """Their sum was infinite, and every weight 0 or not a number."""
    times = np.array([1.0, 2.0, 3.0])
    large = pb.preferences.distribution([1.0, 3.0], [1e308, 1e308]).weights(times, "time")
    assert_allclose(large, [0.5, 0.0, 0.5])
    tiny = pb.preferences.distribution([1.0, 3.0], [5e-324, 5e-324]).weights(times, "time")
    assert_allclose(tiny, [0.5, 0.0, 0.5])
    assert_allclose(
        pb.preferences.weighted(lambda t: np.full(t.shape, 1e308)).weights(100 * times, "time"),
        pb.preferences.weighted(np.ones_like).weights(100 * times, "time"),
    )


def test_a_notebook_shows_a_table():
    posterior = pb.fit(pb.simulation.simulate_rankings(np.array([[2.0, 0.0, 1.0]]), 20))
    selection = pb.select(posterior, sure=0.99)
    shown = selection._repr_html_()
    assert shown.count("<tr>") == 4
    assert "sure: " in shown
    assert "P(best)" in shown


def test_the_median_of_two_repetitions_lies_between_them():
    one, other = pb.Run("a", "i", [1], [1.0], 9), pb.Run("a", "i", [1], [9.0], 9, repetition=1)
    runs = pb.Runs.from_records([one, other, pb.Run("b", "i", [1], [4.0], 9)], direction="minimize")
    assert pb.selection.losses(runs, [5.0]).values.ravel().tolist() == [1.0, 0.0]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_ratio_without_a_value_is_infinite(direction):
    late = pb.Run("b", "i", [3], [4.0], 9)
    runs = pb.Runs.from_records([pb.Run("a", "i", [1], [1.0], 9), late], direction=direction)
    ratio = pb.selection.losses(runs, [2.0], measure="ratio").values.ravel()
    assert ratio.tolist() == [1.0, np.inf]


def test_an_audit_counts_each_instance_once_and_pairs_repetitions_by_their_order():
    def board(seeds, first=1):
        records = [
            pb.Run(name, f"i{k}", [1, 2], [9.0, value], 10, repetition=seed + 100 * (name == "b"))
            for k in range(10)
            for name, value in (("a", 1.0 + (k > 0)), ("b", 2.0 - (k > 0)))
            for seed in range(seeds, seeds + (first if k == 0 else 1))
        ]
        return pb.selection.audit(pb.Runs.from_records(records, direction="minimize"), 10.0)

    for one in (board(0), board(7), board(0, first=20)):
        assert one.algorithms == ("b", "a")
        np.testing.assert_allclose(one.score, [0.9, 0.1])
