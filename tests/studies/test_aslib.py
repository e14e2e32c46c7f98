"""The study of ASlib scenarios, on a small made one."""

import warnings

import numpy as np
import pytest
from aslib import run, tables
from aslib.scenario import read_folds, read_scenario, write_small_scenario
from aslib.scoring import HeldOut, calibration_error, chance_error, log_likelihood
from tools.records import Records

import polarbear as pb


@pytest.fixture
def scenario(tmp_path):
    write_small_scenario(tmp_path / "made")
    return read_scenario(tmp_path / "made", 18, 1500)


def test_rankings_are_by_runtime_among_the_solved(scenario):
    assert scenario.solved.instances == scenario.rankings.instances
    assert scenario.solved.algorithms == scenario.rankings.algorithms
    assert scenario.cutoffs.tolist() == [10, 30, 100]
    assert np.bincount(scenario.fold).tolist() == [0, 30, 30, 30]
    for instance, runtime in zip(scenario.rankings.instances, scenario.runtime, strict=True):
        for cutoff in scenario.cutoffs:
            (order,) = scenario.rankings.order(instance, cutoff)
            solved = run.solved_order(runtime, cutoff, np.random.default_rng(0))
            names = [(scenario.rankings.algorithms[k],) for k in solved]
            assert order[: len(names)] == names
            assert len(order) - len(names) <= 1  # those not solved are tied behind
            ahead = set(scenario.solved.order(instance, cutoff)[0][0])
            assert not names or ahead == {name for (name,) in names}  # those solved are tied ahead
    par10 = scenario.par10()
    assert par10[0].max() == 100
    assert par10[2].max() == 1000


def test_scenarios_that_do_not_fit_are_left_out(tmp_path):
    write_small_scenario(tmp_path / "made")
    assert read_scenario(tmp_path / "made", 2, 1500) == "has 3 algorithms, more than 2"
    assert read_scenario(tmp_path / "made", 18, 10) == "has 90 instances, more than 10"
    (tmp_path / "made" / "cv.arff").unlink()
    assert read_scenario(tmp_path / "made", 18, 1500) == "has no cv.arff"
    path = tmp_path / "cv.arff"
    path.write_text("@DATA\n% a comment\n'a,b',1,3\nc,1,2\nc,2,1\n")
    assert read_folds(path) == {"a,b": 3, "c": 2}


def test_log_likelihood_of_an_order():
    ratings = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    both = [0.3 * 0.5 / 0.7, 0.2 * 0.2 / 0.8]
    assert log_likelihood(ratings, np.array([1, 0])) == pytest.approx(np.log(np.mean(both)))
    assert log_likelihood(ratings, np.array([1, 0, 2])) == pytest.approx(np.log(np.mean(both)))
    assert log_likelihood(ratings, np.array([1])) == pytest.approx(np.log(0.25))


def test_calibrated_predictions_have_a_small_error():
    rng = np.random.default_rng(0)
    good, bad = HeldOut(3), HeldOut(3)
    for rating in rng.dirichlet([1, 1, 1], size=700):
        order = rng.choice(3, 2, replace=False, p=rating)
        good.add(rating[None], order)
        bad.add(rating[None] ** 3 / np.sum(rating**3), order)
    for event in ("first", "beats"):
        assert calibration_error([getattr(good, event)]) < 0.03
        assert calibration_error([getattr(bad, event)]) > 0.05
    assert 0.2 < calibration_error([good.first]) / chance_error(good.first) < 2
    assert good.log_first > bad.log_first


def test_features_beat_the_single_best_and_the_study_resumes(scenario, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "HAS_FORESTS", False)
    records = Records(tmp_path / "folds.jsonl", run.KEY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.errors.DataWarning)
        run.evaluate([scenario], records, 1)
    assert [(row["share"], row["fold"]) for row in records.rows] == [(0.1, 1), (0.3, 1), (1.0, 1)]
    assert tables.closed_gap(records.rows, "features") > 0.3
    assert tables.closed_gap(records.rows, "solved, features") > 0.3
    assert tables.error(records.rows, "solved, features", "beats") < 0.2
    assert tables.closed_gap(records.rows, "single best") == 0
    assert tables.nats(records.rows, "features", "log_first") > 0.1
    again = Records(tmp_path / "folds.jsonl", run.KEY)
    monkeypatch.setattr(run, "evaluate_fold", None)  # nothing is left to do
    run.evaluate([scenario], again, 1)
    assert "no forests" in tables.write(again.rows, tmp_path)
