"""How much is lost, beside a choice, a verdict and a report."""

import json

import numpy as np
import pytest

import polarbear as pb
from polarbear.cli.main import main

EXAMPLE = ["--example", "cma-variants", "--times", "5"]


def test_select_adds_the_losses_of_its_choice_and_of_all_others(capsys):
    words = ["select", *EXAMPLE, "--between", "3000", "10000", "--losses", "gap"]
    assert main([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    ranked = [choice["algorithms"][0] for choice in answer["choices"]]
    losses = answer["losses"]
    runs = pb.example("cma-variants")
    wanted = pb.selection.losses(runs, sorted({*losses["time"]}), measure="gap", among=ranked)
    assert ranked[0] == answer["algorithms"][0]
    assert set(ranked) == set(runs.algorithms)
    assert losses == wanted.columns()
    assert all(3000 <= time <= 10_000 for time in losses["time"])
    assert main(words) == 0
    assert str(wanted) in capsys.readouterr().out


def test_losses_of_a_choice_among_some(capsys):
    words = ["select", *EXAMPLE, "--losses", "gap", "--among", "RS", "--among", "XNES", "--json"]
    for size in ("1", "2"):
        assert main([*words, "--size", size, "--no-repeats"]) == 0
        shown = json.loads(capsys.readouterr().out)["losses"]["algorithm"]
        assert sorted(shown) == ["RS"] * 3 + ["XNES"] * 3


def test_losses_at_a_time_between_those_of_the_grid(capsys):
    assert main(["select", *EXAMPLE, "--at", "555", "--losses", "ratio", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["losses"]["time"] == [555.0] * 7


def test_a_report_and_a_verdict_have_them_on_demand(tmp_path, capsys):
    target = tmp_path / "r.html"
    words = ["analyse", *EXAMPLE, "--losses", "difference", "--report", str(target)]
    assert main(words) == 0
    assert "loss against the best value of each instance: difference" in capsys.readouterr().out
    page = target.read_text("utf-8")
    assert '"title": "loss against the best value of each instance: difference"' in page
    assert main(["analyse", *EXAMPLE]) == 0
    assert "loss against" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [(["--targets"], "leave out --targets"), ([], "needs runs, and")],
)
def test_where_losses_cannot_be_counted(more, message, tmp_path, capsys):
    source = EXAMPLE[:2]
    if not more:
        path = tmp_path / "p.pb"
        pb.fit(pb.simulation.simulate_rankings(np.array([[1.0, 0.0]]), 20)).save(path)
        source = [str(path)]
    assert main(["analyse", *source, *more, "--losses", "gap"]) != 0
    assert message in capsys.readouterr().err
