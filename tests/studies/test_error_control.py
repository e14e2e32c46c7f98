"""The study of error control: its races are those of the package, and the stated error holds."""

import numpy as np
import pytest
from error_control.run import CERTAINTY, count_errors, find_shown, list_settings, tally_costs

import polarbear as pb
from polarbear.inference.e_values import Shares

SETTINGS = {one.name: one for one in list_settings()}


def test_its_evidence_is_that_of_an_assessment():
    rng = np.random.default_rng(0)
    costs = rng.normal(size=(20, 60, 5, 3)) + np.array([0.0, 0.5, 1.5])
    shown = find_shown(tally_costs(costs), 60, Shares(0.0, 1.0), (0, 0, 0))
    replaced = shown.replaces[0].reshape(5, 3, 3).any(axis=1)
    for k in range(5):
        verdicts = pb.assess(pb.simulation.rank_costs(costs[:, :, k]))
        assert [one.kind == "dominated" for one in verdicts] == replaced[k].tolist()


@pytest.mark.parametrize("n", [8, 24])
@pytest.mark.parametrize(
    "name", ["two equal", "ahead by the margin at 3 of 20 times", "two equal, 50% ties"]
)
def test_an_algorithm_that_would_be_missed_is_seldom_dropped(name, n):
    races = 400
    wrong = count_errors(SETTINGS[name], races, n, np.inf, seed=1)
    assert wrong <= 1 - CERTAINTY + 2 * np.sqrt(0.05 * 0.95 / races)
