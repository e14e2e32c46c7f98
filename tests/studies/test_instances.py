"""The studies of instances like mine count what they say."""

import numpy as np
import pytest
from instances.budgets import SELECTORS
from instances.budgets import summarise as summarise_budgets
from instances.races import find_members
from instances.races import summarise as summarise_races
from instances.run import ask, summarise
from instances.truths import make_classes, make_features


@pytest.mark.filterwarnings("ignore::polarbear.errors.DataWarning")
def test_questions_about_classes_are_counted():
    truth = make_classes(0.7, 1)
    counts = ask(truth, 1)
    assert counts["a class in the data"][0] == 6 * 6  # classes, pairs of four algorithms
    assert counts["a new class"][0] == 6
    for number, covered, claimed, right in counts.values():
        assert right <= claimed <= number
        assert covered >= 0.6 * number
    row = summarise([{"counts": counts}, {"counts": counts}], "a new class")
    assert row[0] == "2"


def test_held_out_instances_have_their_own_truth():
    truth = make_features("step", 1.0, 1)
    places, mu = truth.places["a new instance"], truth.utilities["a new instance"]
    high = np.array([place["f0"] > 0 for place in places])
    assert (
        len(np.unique(mu[high].round(9), axis=0)) == len(np.unique(mu[~high].round(9), axis=0)) == 1
    )


def test_the_table_of_budgets_has_the_paired_difference():
    row = {
        "held_out": 2,
        "budgets": [10.0],
        "regret": dict(zip(SELECTORS, ([4.0], [1.0], [3.0]), strict=True)),
        "gain_squared": [2.0],
        "gain_mean_squared": 2.0,
        "seconds": dict.fromkeys(SELECTORS, 1.0),
    }
    lines = summarise_budgets([row])
    assert lines[0] == ["10", "2.000", "0.500", "1.500", "+1.000 (0.000)"]


def test_a_member_of_one_class_at_one_time_counts_as_an_error():
    mu = np.zeros((2, 3, 3))  # classes, times, algorithms
    mu[:, :, 1:] = -1.0
    assert find_members(mu) == [0]
    mu[1, 2, 1] = 0.0
    assert find_members(mu) == [0, 1]
    rows = [{"members": ["a1", "a2"], "out": out, "runs": 8} for out in (["a2", "a3"], ["a3"])]
    assert summarise_races(rows) == ["2", "0.500 (0.354)", "0.2500", "0.50", "8"]
