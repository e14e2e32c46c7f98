"""Counting claims against the truth, pools as populations, and the odds of a pair."""

import numpy as np
import pytest

import polarbear as pb
from polarbear.calibration import odds
from polarbear.calibration.population import (
    Truth,
    count_wins,
    find_contested_pairs,
    fit_utilities,
    select_algorithms,
    to_dense_positions,
)
from polarbear.calibration.tally import Tally, estimate_ratio, tally_claims
from polarbear.cli.main import main
from polarbear.data.rankings import select_times
from polarbear.simulation import rank_costs, simulate_rankings, simulate_runs

TRUTH = np.array([[0.0, 0.5, -0.5, 0.2], [0.6, 0.0, 0.1, -0.4]])


def ragged():
    """Rankings with repetitions, missing algorithms, ties, and times at which some are unknown."""
    runs = simulate_runs(TRUTH, 30, 1, rounding=0.8, cut=0.3)
    again = simulate_runs(TRUTH, 12, 2, cut=0.3)
    records = [*runs, *(run._replace(repetition=1) for run in again if run.algorithm != "a2")]
    return pb.rank(pb.Runs.from_records(records, direction="minimize"), [0.0, 1.0])


def test_a_sample_of_all_instances_is_the_pool():
    pool = ragged()
    assert pool.take(np.arange(30)) == pool


def test_an_instance_that_is_drawn_twice_counts_as_two():
    pool = ragged()
    chosen = np.array([3, 3, 29, 0, 3])
    drawn = pool.take(chosen)
    assert len(drawn.instances) == len(set(drawn.instances)) == 5
    total = np.bincount(drawn.instance, drawn.weight)
    assert total == pytest.approx(np.bincount(pool.instance, pool.weight)[chosen])
    for new, old in enumerate(chosen):
        for time in pool.times:
            mine = drawn.order(drawn.instances[new], time)
            assert mine == pool.order(pool.instances[old], time)


def test_rankings_among_some_are_those_of_their_runs_alone():
    runs = simulate_runs(TRUTH, 20, 3, rounding=0.8, cut=0.3)
    some = select_algorithms(pb.rank(runs, [0.0, 1.0]), [0, 2])
    alone = pb.rank(runs.filter(algorithms=["a1", "a3"]), [0.0, 1.0])
    assert np.array_equal(to_dense_positions(some), to_dense_positions(alone))
    assert some.algorithms == alone.algorithms


def test_wins_are_those_of_win_rate():
    pool = pb.rank(simulate_runs(TRUTH, 20, 3, rounding=0.8, cut=0.3), [0.0, 1.0])
    won = count_wins(pool)
    both = won + won.swapaxes(1, 2)
    for a, first in enumerate(pool.algorithms):
        for b, second in enumerate(pool.algorithms):
            if a != b:
                assert won[:, a, b] / both[:, a, b] == pytest.approx(pool.win_rate(first, second))


def test_odds_are_known_where_both_have_won():
    pool = rank_costs(np.array([[[1.0, 2.0, 3.0]] * 5 + [[2.0, 1.0, 3.0]] * 5]))
    assert find_contested_pairs(pool)[0].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_the_nearest_model_of_draws_of_a_model_is_that_model():
    found = fit_utilities(simulate_rankings(TRUTH, 20_000, 4))
    # The standard error of a log-ratio is about 2 / sqrt(instances) here.
    assert found - found[:, :1] == pytest.approx(TRUTH - TRUTH[:, :1], abs=4 * 2 / np.sqrt(20_000))


def test_unequal_spread_moves_the_nearest_model_away_from_win_rates():
    pool = simulate_rankings(np.array([[0.0, 0.5, 1.0]]), 20_000, 5, spread=[0, 0, 8])
    found = fit_utilities(pool)[0]
    model = 1 / (1 + np.exp(found[2] - found[0]))
    # Beyond four standard errors of the rate.
    assert abs(model - pool.win_rate("a1", "a3")[0]) > 4 * 0.5 / np.sqrt(20_000)


def posterior_of(draws):
    draws = np.asarray(draws, dtype=np.float32)
    names = tuple(f"a{k + 1}" for k in range(draws.shape[2]))
    weight = np.full((len(draws), 1), 1 / len(draws), dtype=np.float32)
    return pb.Posterior(names, np.arange(float(draws.shape[1])), draws, weight)


def test_claims_are_counted_as_one_would_by_hand():
    # The first is ahead in 97 of 100 draws at the first time, in 40 at the second.
    gap = np.stack([np.where(np.arange(100) < 97, 1.0, -1.0), np.where(np.arange(100) < 40, 1, -1)])
    noise = np.linspace(-0.1, 0.1, 100)
    draws = np.stack([gap.T + noise[:, None], np.zeros((100, 2))], axis=2)
    tally = tally_claims(posterior_of(draws), Truth(np.array([[1.0, 0.0], [0.5, 0.0]])))
    assert tally.coverage.value == 1.0
    assert tally.claims(0.95, 0.99) == (0.95, 0.99, pytest.approx(0.97), tally.claims(0.95).true)
    assert tally.claims(0.95, 0.99).true.value == 1.0
    assert tally.wrong(0.6, 0.7).value == 1.0  # the second was said to be ahead with 0.6
    assert [one.true.cases for one in tally.curve()] == [0, 1, 0, 0, 0, 1, 0]
    joint = tally.claims(0.2, 0.5, "everywhere")
    assert (joint.claimed, joint.true.value, joint.true.cases) == (pytest.approx(0.4), 1.0, 1.0)
    outside = tally_claims(posterior_of(draws), Truth(np.array([[3.0, 0.0], [-3.0, 0.0]])))
    assert outside.coverage.value == 0.0
    asked = np.zeros((2, 2, 2), dtype=bool)
    assert tally_claims(posterior_of(draws), Truth(np.zeros((2, 2)), asked)).coverage.cases == 0


def test_a_claim_about_two_that_are_even_is_half_right():
    draws = np.zeros((100, 1, 2))
    draws[:, 0, 0] = np.where(np.arange(100) < 97, 1.0, -1.0)
    assert tally_claims(posterior_of(draws), Truth(np.zeros((1, 2)))).wrong(0.95).value == 0.5


def test_the_error_of_a_share_is_that_between_replicates():
    rng = np.random.default_rng(6)
    # All 50 claims of a data set are right or wrong together.
    shares = []
    for _ in range(400):
        right = rng.random(40) < 0.9
        shares.append(estimate_ratio(50.0 * right, np.full(40, 50.0)))
    spread = np.std([share.value for share in shares])
    said = np.sqrt(np.mean([share.error**2 for share in shares]))
    assert said == pytest.approx(spread, rel=0.15)
    assert estimate_ratio(np.zeros(2), np.zeros(2)).cases == 0


def test_tallies_add_up():
    parts = [
        tally_claims(pb.fit(simulate_rankings(TRUTH, 20, seed)), Truth(TRUTH)) for seed in range(3)
    ]
    whole = Tally.concat(parts)
    assert len(whole) == 3
    assert whole.coverage.cases == sum(part.coverage.cases for part in parts)


@pytest.mark.long
def test_the_error_of_a_change_is_what_new_data_show():
    truth = np.array([[0.0, 0.4, 0.8]])

    def gap(seed):
        pool = simulate_rankings(truth, 200, seed)
        (account,) = (one for one in odds._leave_each_out(pool) if one.without == "a3")
        return account.other[0, 0] - account.model[0, 0], np.sqrt((account.influence**2).sum())

    found = np.array([gap(seed) for seed in range(200)])
    assert found[:, 1].mean() == pytest.approx(found[:, 0].std(), rel=0.2)
    assert abs(found[:, 0].mean()) < 4 * found[:, 0].std() / np.sqrt(200) + 0.002


@pytest.mark.slow
@pytest.mark.parametrize("check", [odds.check_irrelevant_alternatives, odds.check_win_rates])
def test_where_the_assumption_holds_it_is_hardly_ever_said_not_to(check):
    truth = np.repeat(np.array([[0.0, 0.4, 0.8, -0.4]]), 5, axis=0)
    pools = (simulate_rankings(truth, 100, seed, persistence=0.5) for seed in range(40))
    alarms = sum(check(pool).p_value < 0.01 for pool in pools)
    assert alarms <= 4  # binomial(40, 0.01) exceeds this once in ten thousand


@pytest.mark.parametrize("check", [odds.check_irrelevant_alternatives, odds.check_win_rates])
def test_specialists_are_found_out(check):
    truth = np.repeat(np.array([[0.0, 0.4, 0.8, -0.4]]), 5, axis=0)
    pool = simulate_rankings(truth, 200, 7, persistence=0.5, spread=[0, 0, 6, 0])
    found = check(pool)
    assert found.p_value < 0.01
    assert found.worst
    worst = found.worst[0]
    assert abs(worst.other - worst.model) > 2 * worst.error
    assert found.mean <= found.largest
    # The account by counting is the plain win rate.
    if check is odds.check_win_rates:
        at = np.argmin(np.abs(pool.times - worst.time))
        assert worst.other == pytest.approx(pool.win_rate(worst.a, worst.b)[at])


def test_nothing_is_checked_with_two_algorithms_or_few_instances():
    assert odds.check_irrelevant_alternatives(simulate_rankings(np.zeros((2, 2)), 50)).cases == 0
    assert odds.check_win_rates(simulate_rankings(np.zeros((2, 3)), 20)).cases == 0


@pytest.mark.slow
def test_certainty_that_counts_every_time_as_new_evidence_is_found_out():
    truth = np.repeat(np.array([[0.0, 0.2, 0.4]]), 20, axis=0)
    runs = simulate_runs(truth, 60, 8, persistence=np.inf)
    times = np.linspace(0, 1, 20)
    sure = pb.calibrate(
        runs,
        times=times,
        prior=pb.priors.RandomWalk(),
        replicates=20,
        draws=1000,
        evidence="rankings",
    )
    assert sure.verdict == "overconfident"
    assert "surer than it may be" in str(sure)
    plain = pb.calibrate(runs, times=times, replicates=20, draws=1000)
    assert plain.verdict == "calibrated"
    assert plain.assumption_holds
    assert plain.tally.coverage.value > sure.tally.coverage.value + 0.1


def test_what_is_said_of_specialists_names_them():
    truth = np.repeat(np.array([[0.0, 0.4, 0.8]]), 4, axis=0)
    pool = simulate_rankings(truth, 200, 9, persistence=0.5, spread=[0, 0, 6])
    found = pb.calibrate(pool, replicates=5, draws=500)
    assert found.assumption_holds is False
    assert "change when a third is left out" in " ".join(str(found).split())
    assert found.thirds.worst[0].without in str(found)


def test_a_misfit_of_the_model_is_the_headline():
    """It stood in the last lines, under a verdict that took certainty at its word."""
    truth = np.repeat(np.array([[0.0, 0.4, 0.8]]), 4, axis=0)
    pool = simulate_rankings(truth, 200, 9, persistence=0.5, spread=[0, 0, 6])
    found = pb.calibrate(pool, "HierarchicalDirichlet", replicates=15, draws=500)
    misfit = found.misfit
    assert abs(misfit.model - misfit.other) > 0.05
    assert found.verdict == "calibrated"
    assert not found.counted
    headline = " ".join(str(found).split("  data ")[0].split())
    assert headline.startswith("verdict calibrated for the fitted model, but the model misfits")
    assert f"{misfit.model:.2f} by the model, {misfit.other:.2f} by counting" in headline
    assert "taken at its word" not in str(found)


def test_counted_ratings_are_compared_with_first_places():
    """They were compared with a model, which held in 40 % of intervals of the example."""
    runs = pb.example()
    found = pb.calibrate(runs, times=pb.grid.from_runs(runs, 5), replicates=12)
    assert found.counted
    assert found.verdict == "calibrated"
    assert 0.91 < found.tally.coverage.value < 0.99
    said = " ".join(str(found).split())
    assert "the truth is how often each comes first in all of yours" in said
    assert "calibrated: on data like these certainty can be taken at its word data" in said


def test_without_a_misfit_certainty_is_taken_at_its_word():
    found = pb.calibrate(simulate_rankings(TRUTH, 60, 3), replicates=12, draws=500)
    assert found.misfit is None
    assert str(found).splitlines()[0].startswith("  verdict     calibrated: on data like these")
    assert "expected if calibrated" in str(found)


def test_the_same_seed_gives_the_same_answer():
    pool = simulate_rankings(TRUTH, 20, 10)
    first, second = (pb.calibrate(pool, replicates=3, draws=500) for _ in range(2))
    assert str(first) == str(second)
    assert first.tally == second.tally


def test_two_algorithms_have_no_third():
    found = pb.calibrate(simulate_rankings(np.zeros((2, 2)), 40, 11), replicates=3, draws=500)
    assert found.assumption_holds is None
    assert "no third algorithm" in str(found)


@pytest.mark.parametrize(
    ("size", "options", "words"),
    [
        (9, {}, "at least 10 instances, got 9"),
        (20, {"replicates": 1}, "replicates=1"),
        (20, {"instances": 2.5}, "instances=2.5"),
    ],
)
def test_too_little_is_refused(size, options, words):
    with pytest.raises(pb.DataError, match=words):
        pb.calibrate(simulate_rankings(TRUTH, size), **options)


def test_the_command_judges_a_file(tmp_path, capsys):
    runs = simulate_runs(np.repeat(TRUTH, 3, axis=0), 40, 12, persistence=0.5)
    lines = ["algorithm,instance,time,value"]
    for run in runs:
        pairs = zip(run.time, run.value, strict=True)
        lines += [f"{run.algorithm},{run.instance},{t},{v!r}" for t, v in pairs]
    path = tmp_path / "results.csv"
    path.write_text("\n".join(lines).replace("np.float64", "").replace("(", "").replace(")", ""))
    command = ["calibration", str(path), "--direction", "minimize", "--replicates", "3"]
    assert main([*command, "--times", "4", "--clock", "seconds"]) == 0
    said = capsys.readouterr().out
    assert "4 algorithms, 40 instances" in said
    assert "95 % intervals of log-odds held the truth" in said
    assert "verdict" in said


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    assert main(["calibration", str(tmp_path / "nothing.csv"), "--direction", "minimize"]) == 1
    assert capsys.readouterr().err.startswith("polarbear: ")
    path = tmp_path / "few.csv"
    path.write_text("algorithm,instance,time,value\na,1,1,1\nb,1,1,2\n")
    assert main(["calibration", str(path), "--direction", "minimize"]) == 1
    assert "at least 10 instances, got 1" in capsys.readouterr().err
    assert main(["calibration", str(path)]) == 1
    assert "minimize" in capsys.readouterr().err


def test_some_times_of_rankings():
    pool = ragged()
    assert select_times(pool, [1]).order("i1", 1.0) == pool.order("i1", 1.0)
