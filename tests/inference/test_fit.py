"""``fit``: what it takes, what it refuses, and what it says of extreme data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import polarbear as pb
from polarbear.inference.fit import connected_groups
from polarbear.simulation import PRIORS, rank_costs

APPROXIMATE = ("SparseGP", "HSGP")
"""Priors that approximate others, which nightly tests take too."""

NOISE = {False: 0.02, True: 0.045}
"""Of probabilities, by whether they are shares of 2,000 draws: four standard errors."""

each_prior = pytest.mark.parametrize(
    "prior",
    [
        pytest.param(prior, id=name, marks=pytest.mark.long if name in APPROXIMATE else ())
        for name, prior in PRIORS.items()
    ],
)


def noisy(instances, n, n_times=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n_times, instances, n))


# What it takes


def frame():
    return {
        "algorithm": ["a", "b"] * 10,
        "instance": np.repeat(np.arange(10), 2).tolist(),
        "time": [1.0] * 20,
        "value": [0.0, 1.0] * 7 + [1.0, 0.0] * 3,
    }


def test_runs_and_rankings_give_the_same_posterior():
    runs = pb.Runs.from_frame(frame(), direction="minimize")
    posterior = pb.fit(runs)
    assert posterior == pb.fit(pb.rank(runs))
    assert posterior.prob_better("a", "b")[0] > 0.8


def test_options_of_other_functions_are_answered_with_those():
    runs = pb.Runs.from_frame(frame(), direction="minimize")
    with pytest.raises(pb.DataError, match=r"no algorithm=: .*fit\(read\(data, algorithm='solver'"):
        pb.fit(runs, algorithm="solver")
    with pytest.raises(pb.DataError, match=r"no rel_tol=: .*fit\(rank\(runs, rel_tol=\.\.\.\)\)"):
        pb.fit(runs, rel_tol=0.1)
    with pytest.raises(pb.DataError, match="rankings have times already"):
        pb.fit(pb.rank(runs), times=[1])


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        (pb.rank, "Runs.from_frame"),
        (pb.fit, "Runs.from_frame"),
        (pb.replay, "Runs.from_frame"),
        (pb.select, r"select\(fit\(data\)"),
    ],
)
def test_what_does_not_take_a_frame_says_what_to_do(verb, said):
    with pytest.raises(pb.DataError, match=said):
        verb({"algorithm": ["a"]})


def test_times_are_those_asked_for():
    runs = pb.Runs.from_frame({**frame(), "until": [9.0] * 20}, direction="minimize")
    assert_allclose(pb.fit(runs, times=[1, 2, 3]).times, [1, 2, 3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.fit("results/"), r"fit\(read\('results/'\)\)"),
        (lambda: pb.fit(rank_costs(noisy(3, 2)), times=[1]), "leave out times="),
        (
            lambda: pb.fit(rank_costs(noisy(3, 2)), method="magic"),
            "method='magic': expected one of",
        ),
        (
            lambda: pb.fit(rank_costs(noisy(3, 2)), drows=3),
            "no option 'drows'; did you mean 'draws'",
        ),
        (
            lambda: pb.fit(rank_costs(noisy(3, 2)), prir="GP"),
            r"fit has no option 'prir'; did you mean 'prior'\? It takes prior, .*draws",
        ),
        (
            lambda: pb.calibrate(rank_costs(noisy(9, 2)), repeats=3),
            r"calibrate has no option 'repeats'; did you mean 'replicates'\? It takes .*prior",
        ),
        (lambda: pb.fit(rank_costs(noisy(3, 2)), zzz=3), "has no option 'zzz'. It takes prior"),
        (lambda: pb.fit(rank_costs(noisy(3, 1))), "at least 2 algorithms"),
        (
            lambda: pb.fit(rank_costs(noisy(3, 2)), prior=pb.priors.GP(scale=1.0)),
            "scale=1.0 in GP",
        ),
        (lambda: pb.fit(rank_costs(noisy(3, 2)), prior="GPs"), "did you mean 'GP'"),
        (lambda: pb.fit(rank_costs(noisy(3, 2)), prior=3), "a prior such as"),
        (lambda: pb.fit(rank_costs(noisy(3, 2)), prior=pb.priors.GP), r"GP\(\)"),
        (lambda: pb.fit(rank_costs(noisy(3, 2)), draws=0), "draws=0"),
    ],
)
def test_what_cannot_be_is_said_plainly(call, message):
    with pytest.raises(pb.DataError, match=message):
        call()


def test_a_posterior_that_is_not_to_be_trusted_is_announced(monkeypatch):
    monkeypatch.setattr("polarbear.inference.laplace.hypergrid.MAX_POINTS", 3)
    with pytest.warns(pb.errors.FitWarning, match="do not trust this posterior"):
        pb.fit(rank_costs(noisy(4, 3)), prior=pb.priors.GP())


# Extreme data: what the answer must be


@pytest.mark.slow
@each_prior
def test_who_wins_everything_is_ahead_and_more_surely_so_with_more_data(prior):
    found = []
    for instances in (2, 8, 200):
        costs = noisy(instances, 4)
        costs[..., 0] = -10.0
        posterior = pb.fit(rank_costs(costs), prior=prior)
        assert np.isfinite(posterior.utilities).all()
        found.append(min(posterior.prob_better("a1", b).mean() for b in ("a2", "a3", "a4")))
    assert found[0] > 0.6
    assert found[1] > 0.95
    assert found[2] > 0.999
    assert found[0] < found[1] < found[2] + 1e-3


@each_prior
def test_who_are_always_tied_are_even(prior):
    posterior = pb.fit(rank_costs(np.zeros((6, 9, 4))), prior=prior)
    assert_allclose(posterior.prob_better(), 0.5, atol=NOISE[posterior.mixture is None])
    assert_allclose(posterior.mean(), 0.25, atol=0.02)  # as wide as the prior: ties say nothing


@each_prior
def test_a_single_instance_says_a_little(prior):
    costs = np.tile([[[1.0, 2.0, 3.0]]], (1, 1, 1))
    posterior = pb.fit(rank_costs(costs), prior=prior)
    assert 0.5 < posterior.prob_better("a1", "a2")[0] < 0.95
    assert posterior.prob_better("a1", "a3")[0] > posterior.prob_better("a1", "a2")[0]


@pytest.mark.slow
@each_prior
def test_an_algorithm_without_a_run_is_as_the_prior_has_it(prior):
    costs = noisy(30, 3)
    costs[..., 2] = np.nan
    with pytest.warns(pb.errors.FitWarning, match=r"rests on the prior alone: a3 \| a1, a2"):
        posterior = pb.fit(rank_costs(costs), prior=prior)
    assert not posterior.diagnostics.trusted
    for other in ("a1", "a2"):
        assert_allclose(posterior.prob_better("a3", other), 0.5, atol=0.15)
    spread = posterior.utilities.std(axis=0)
    assert np.all(spread[:, 2] > spread[:, :2].max(axis=1))


@pytest.mark.slow
@each_prior
def test_groups_that_never_met_are_compared_by_the_prior_alone(prior):
    costs = np.full((4, 24, 4), np.nan)
    costs[:, :12, :2], costs[:, 12:, 2:] = noisy(12, 2, 4), noisy(12, 2, 4)
    with pytest.warns(pb.errors.FitWarning, match=r"prior alone: a3, a4 \| a1, a2"):
        posterior = pb.fit(rank_costs(costs), prior=prior)
    assert not posterior.diagnostics.trusted
    # The two groups saw the very same: neither can be said to be ahead.
    for a, b in (("a1", "a3"), ("a2", "a4")):
        assert_allclose(posterior.prob_better(a, b), 0.5, atol=0.03)


@each_prior
def test_an_algorithm_entered_twice_is_even_with_itself(prior):
    costs = noisy(15, 3, seed=4)
    costs = np.concatenate([costs, costs[..., :1]], axis=-1)
    posterior = pb.fit(rank_costs(costs), prior=prior)
    noise = NOISE[posterior.mixture is None]
    assert_allclose(posterior.prob_better("a1", "a4"), 0.5, atol=noise)
    both = [posterior.prob_better(name, "a2") for name in ("a1", "a4")]
    assert_allclose(*both, atol=noise)


@each_prior
def test_times_at_which_nothing_is_known_are_no_obstacle(prior):
    costs = noisy(10, 3)
    costs[2] = np.nan
    with pytest.warns(
        pb.errors.DataWarning, match="nothing is known of any algorithm at 1 time, 0.4"
    ):
        posterior = pb.fit(rank_costs(costs), prior=prior)
    assert np.isfinite(posterior.mean()).all()


@each_prior
def test_no_data_at_all_leave_the_prior(prior):
    with pytest.warns(pb.errors.FitWarning, match="the prior alone"):
        posterior = pb.fit(rank_costs(np.full((2, 3, 3), np.nan)), prior=prior)
    assert not posterior.diagnostics.trusted
    assert_allclose(posterior.prob_better(), 0.5, atol=0.03)


def test_rankings_without_weight_compare_nothing():
    rankings = rank_costs(noisy(5, 2), weight=np.zeros(5))
    with pytest.warns(pb.errors.FitWarning, match="no two algorithms are compared"):
        assert not pb.fit(rankings).diagnostics.trusted


def test_algorithms_that_met_through_others_are_compared():
    costs = np.full((2, 12, 4), np.nan)
    for k in range(3):
        costs[:, 4 * k : 4 * k + 4, k : k + 2] = noisy(4, 2, 2)
    rankings = rank_costs(costs)
    assert connected_groups(rankings) == [("a1", "a2", "a3", "a4")]
    assert pb.fit(rankings).diagnostics.trusted


def test_many_algorithms_and_few_instances_are_trusted_or_moved():
    posterior = pb.fit(pb.simulation.simulate_rankings(np.zeros((2, 30)), 4))
    assert posterior.diagnostics.trusted
    assert abs(posterior.prob_better().mean() - 0.5) < 1e-6


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (
            [50.0, 90.0],
            "no two algorithms are compared at any time asked for, 50 to 90: the prior alone",
        ),
        ([0.1, 0.5], "no run has a value yet at any time asked for, 0.1 to 0.5: the prior alone"),
    ],
)
def test_times_that_are_none_of_the_data_are_named(times, message):
    runs = pb.Runs.from_records(
        [pb.Run(name, str(k), [1, 5], [k, 0.0], until=9) for name in "ab" for k in range(4)],
        direction="minimize",
    )
    with pytest.warns((pb.errors.DataWarning, pb.errors.FitWarning)) as said:
        pb.fit(runs, times=times)
    assert [message in str(one.message) for one in said] == [True]


def test_an_algorithm_that_nobody_watched_late_is_named():
    costs = noisy(6, 3)
    costs[4:, :, 1] = np.nan
    with pytest.warns(pb.errors.DataWarning, match="nothing is known of a2 at 2 times, 0.8 to 1"):
        pb.fit(rank_costs(costs))
    with pytest.raises(pb.DataError, match="fit takes Runs, not int: read it first"):
        pb.fit(3)


def test_times_that_rest_on_few_instances_are_named_with_the_remedy():
    costs = noisy(10, 3)
    costs[5, 2:] = np.nan
    said = r"at 1 time \(1\) the verdict rests on 2 instances, elsewhere on up to 10: "
    said += r".*times=pb\.grid\.from_runs\(runs, stop=0\.8\)"
    with pytest.warns(pb.errors.DataWarning, match=said):
        pb.fit(rank_costs(costs))
    costs = noisy(10, 3)
    costs[5, 3:] = np.nan
    pb.fit(rank_costs(costs))


@pytest.mark.parametrize(
    ("name", "argument"),
    [("since", "start"), ("start", "start"), ("until", "stop"), ("stop", "stop")],
)
def test_a_range_of_times_is_pointed_to_the_grid(name, argument):
    runs = pb.example()
    with pytest.raises(pb.DataError, match=rf"times=pb.grid.from_runs\(runs, {argument}=500\)"):
        pb.fit(runs, **{name: 500})
