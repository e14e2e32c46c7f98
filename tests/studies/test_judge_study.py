"""The study of the judge: its fast form of the rule decides like the judge itself."""

import numpy as np
import pytest
from judge.errors import AGAINST_REFERENCE, judge_alone, judge_by_rule, judge_in_one_race, tabulate
from judge.prior import OLD, OURS, judge_winner
from judge.prior import tabulate as tabulate_priors


@pytest.mark.slow
def test_the_rule_decides_like_the_judge():
    effects = np.array([-2.0, 2.0])
    by_rule, n_runs = judge_by_rule(effects)
    by_judge, n_judged = judge_alone(effects)
    assert [each[:2] for each in by_rule] == [each[:2] for each in by_judge]
    assert [each.rejected for each in by_rule] == [True, False]
    assert n_runs == n_judged


@pytest.mark.slow
def test_evaluators_decide_the_same():
    effects = np.array([-2.0, 2.0, -1.5])
    one, four = (judge_in_one_race(effects, n, AGAINST_REFERENCE)[0] for n in (1, 4))
    assert [each.rejected for each in one] == [each.rejected for each in four]
    assert [each.rejected for each in one] == [True, False, True]


def test_a_row_becomes_a_line():
    shares = ("better rejected", "better below", "worse accepted", "worse above")
    row = {"rule": "r", "n": 2, "runs": 9, "rejected": "01", **dict.fromkeys(shares, 0.25)}
    assert "| r | 2 | 25.0 % | 25.0 % | 25.0 % | 25.0 % | 4.5 |" in tabulate([row])


@pytest.mark.slow
def test_the_prior_keeps_the_fitness_of_a_winner():
    few, many = judge_winner(0), judge_winner(10)
    assert few[OURS] == pytest.approx(many[OURS], abs=0.01)
    assert few[OLD] > many[OLD] + 0.1
    assert f"| {OURS} |" in tabulate_priors(2, 4)
