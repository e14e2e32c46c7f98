"""Ranks of a board, and which of them are separated."""

import json

import numpy as np
import pytest

import polarbear as pb
from polarbear.cli.main import main


def make_board(shares=(0.8, 0.5, 0.5), tasks=300, seed=1):
    """Return runs of models that solve a task with a probability, at a random cost."""
    rng = np.random.default_rng(seed)
    runs = []
    for k in range(tasks):
        for name, share in zip("xyz", shares, strict=True):
            solved = rng.random() < share
            time, value = ([rng.uniform(0.1, 1.0)], [1.0]) if solved else ([], [])
            runs.append(pb.Run(name, f"t{k}", time, value, 1.0, status=pb.Status.FINISHED))
    return pb.Runs.from_records(runs, direction="maximize", clock="dollars")


def test_ranks_are_those_by_solved_tasks_and_a_close_pair_is_not_separated():
    runs = make_board()
    board = pb.selection.audit(runs)
    solved = np.isfinite(runs.at([1.0])[:, 0])
    share = [solved[runs.algorithm == k].mean() for k in range(3)]
    assert board.algorithms == tuple(np.array(list("xyz"))[np.argsort(np.negative(share))])
    best = runs.algorithms.index(board.algorithms[0])
    others = [(1 + share[best] - share[k]) / 2 for k in range(3) if k != best]
    assert board.score[0] == pytest.approx(np.mean(others))
    assert board.ahead[0] > 0.99
    assert board.ahead[1] < 0.95
    assert board.groups == [("x",), tuple(board.algorithms[1:])]
    assert str(board).startswith("At 1 dollar: 1 of 2 ranks are separated")


def test_equal_algorithms_are_as_seldom_separated_as_stated():
    separated = [
        pb.selection.audit(make_board((0.5, 0.5, 0.5), 60, seed), certainty=0.9).ahead[0] >= 0.9
        for seed in range(60)
    ]
    # Of three equal ones, the first is ahead of the second by chance: twice a tenth at the most.
    assert np.mean(separated) <= 0.25


def test_the_command_says_it_at_the_last_budget_and_over_all(tmp_path, capsys):
    rng = np.random.default_rng(1)
    lines = ["model,task,solved,cost"]
    for k in range(40):
        lines += [f"{m},t{k},{int(rng.random() < p)},{c}" for m, p, c in
                  (("small", 0.5, 0.1), ("large", 0.9, 0.8), ("same", 0.5, 0.12))]  # fmt: skip
    (tmp_path / "board.csv").write_text("\n".join(lines))
    assert main(["analyse", str(tmp_path / "board.csv"), "--ranks", "--json"]) == 0
    last, over_all = json.loads(capsys.readouterr().out)["ranks"]
    assert last["algorithms"][0] == "large"
    assert len(last["groups"]) == 2
    assert over_all["algorithms"][0] != "large"  # it solves nothing for half of all budgets


def test_what_is_asked_is_checked():
    with pytest.raises(pb.DataError, match=r"above 0\.5"):
        pb.selection.audit(make_board(), certainty=0.5)
