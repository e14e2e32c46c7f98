"""Races with classes of instances: eliminated is what is dominated in every class."""

import numpy as np
import pytest

import polarbear as pb
from polarbear.racing.questions.stored import question_from_plain, question_to_plain
from racers import fitted

N, SHARE = 240, 0.25
KINDS = {f"i{k + 1}": "x" if k < SHARE * N else "y" for k in range(N)}
SKILL = {"x": (3.0, 0.0, 1.5), "y": (0.0, 3.0, 1.5)}
"""In each class another algorithm is the best, and a3 is never."""


def record_runs(skill=SKILL, seed=0):
    rng = np.random.default_rng(seed)
    records = [
        pb.Run(f"a{a + 1}", name, [1.0], [value], 1.0)
        for name, kind in KINDS.items()
        for a, value in enumerate(rng.gumbel(size=3) + skill[kind])
    ]
    return pb.Runs.from_records(records, direction="maximize")


QUESTION = pb.ParetoSet(classes=KINDS)
BUDGET = pb.Budget(batch=(8, 32))


def test_only_what_is_dominated_in_every_class_is_eliminated():
    runs = record_runs()
    overall = pb.replay(runs, fitted(pb.ParetoSet()), budget=BUDGET, times=[1.0])
    assert "a1" not in overall.pareto
    by_class = pb.replay(runs, fitted(QUESTION), budget=BUDGET, times=[1.0])
    assert set(by_class.pareto) == {"a1", "a2"}
    assert by_class.eliminated["a3"].rival in ("a1", "a2")
    some = {name: kind for name, kind in KINDS.items() if kind == "y"}
    asked = pb.replay(runs, fitted(pb.ParetoSet(classes=some)), budget=BUDGET, times=[1.0])
    assert set(asked.pareto) == {"a2"}


def test_a_member_of_one_class_is_seldom_eliminated():
    wrong = 0
    skill = {"x": (0.0, 0.0, -1.0), "y": (-2.0, 2.0, -3.0)}  # in x, a1 and a2 are equally good
    for seed in range(6):
        runs = record_runs(skill, seed)
        result = pb.replay(runs, fitted(QUESTION), budget=BUDGET, times=[1.0], seed=seed)
        wrong += "a1" in result.eliminated
        assert "a3" in result.eliminated
    assert wrong <= 1  # at most 1 in 20 is expected


def test_statuses_in_each_class():
    statuses = pb.assess_classes(record_runs(), KINDS, times=[1.0])
    found = {name: [one.kind for one in own] for name, own in statuses.items()}
    assert found == {
        "x": ["member", "dominated", "dominated"],
        "y": ["dominated", "member", "dominated"],
    }


def test_a_question_with_classes():
    assert question_from_plain(question_to_plain(QUESTION)) == QUESTION
    bound = "An algorithm that you would miss in some class is wrongly dropped"
    assert QUESTION.guarantee.startswith(bound)
    with pytest.raises(pb.DataError, match="expected a mapping from instances to classes"):
        pb.ParetoSet(classes={"i1": 3})
