"""What studies keep of a race for its figures, and say of it."""

from dataclasses import fields

import numpy as np
import pytest
from tools.races import course
from tools.story import key_rounds, load, save, tell
from tools.summaries import compared, in_words

import polarbear as pb

TIMES = np.array([1.0, 2.0])
TRUTH = np.array([[2.0, 0.0, -2.0], [1.5, 0.5, -2.0]])


@pytest.fixture(scope="module")
def raced():
    runs = pb.simulation.simulate_runs(TRUTH, 60, persistence=np.inf, times=TIMES)
    return pb.replay(runs, pb.ParetoSet(certainty=0.95), times=TIMES)


def same(one, two):
    """Whether two records hold the same, to single precision."""
    assert type(one) is type(two)
    for field in fields(one):
        mine, other = getattr(one, field.name), getattr(two, field.name)
        if isinstance(mine, np.ndarray):
            np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-30)
        else:
            assert mine == other


def test_a_story_is_the_same_from_its_file(raced, tmp_path):
    truth = dict(zip(raced.runs.algorithms, TRUTH.T, strict=True))
    told = tell(raced, course(raced.events), truth=truth)
    save(told, tmp_path / "results" / "story.npz")
    again = load(tmp_path / "results" / "story.npz")
    assert list(told.rounds) == list(again.rounds)
    for said, one in told.rounds.items():
        same(one, again.rounds[said])
        assert one.truth.shape == one.mean.shape
    for scale in ("linear", "log"):
        same(told.values[scale], again.values[scale])
    same(told.evolution, again.evolution)
    same(told.allocation, again.allocation)


def test_the_last_panel_is_what_the_race_ended_with(raced):
    told = tell(raced, course(raced.events))
    *_, last = told.rounds.values()
    np.testing.assert_allclose(last.mean, raced.posterior.mean())
    assert last.truth is None
    assert told.evolution.cast == last.cast == told.allocation.cast


def rounds(*happened):
    return [
        {"round": k, "instances": 8 * k, "eliminated": [[name, "a", 1.0] for name in out]}
        | {"settled": settled}
        for k, (out, settled) in enumerate(happened, start=1)
    ]


def test_key_rounds_are_those_in_which_something_happened_and_the_last():
    course = rounds((["d", "e"], []), ([], []), ([], ["b"]), (["c"], ["b"]), ([], []))
    assert key_rounds(course) == {
        1: "round 1, 8 instances: d, e out",
        3: "round 3, 24 instances: b settled",
        4: "round 4, 32 instances: c out",
        5: "round 5, 40 instances: the last",
    }
    assert list(key_rounds(course, most=2)) == [1, 5]
    assert key_rounds([]) == {}


def test_a_race_in_the_words_of_the_paper():
    facts = {
        "pareto": ["a", "b"],
        "rounds": rounds((["d", "e"], []), ([], ["a"]), (["c"], ["a", "b"])),
        "ended": "resolved",
        "times": [10, 60, 100],
        "reached": {"a": [90, 50, 40]},
        "chosen": {"linear": ["a"], "log": ["b"]},
    }
    words = in_words(facts)
    assert words == {
        "pareto": "a, b",
        "eliminated": "d, e in 1 (8 instances), c in 3 (24 instances)",
        "rounds": "3; 24",
        "settled": "a in 2, b in 3",
        "beyond half": "a 50",
        "chosen": "a; on a logarithmic scale b",
    }
    text = compared({"pareto": ("Pareto set", "a")}, "the paper", {"ours": words})
    assert text.splitlines()[-1] == "| Pareto set | a | a, b |"
    unfinished = in_words({**facts, "rounds": [], "ended": "deadline", "chosen": {}})
    assert unfinished["rounds"] == "0; 0 (ended: deadline)"
    assert unfinished["settled"] == unfinished["eliminated"] == "none"


@pytest.mark.slow
def test_pictures_are_drawn_from_what_is_kept(raced, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    from tools.figures import draw_kept

    save(tell(raced, course(raced.events)), tmp_path / "story.npz")
    drawn = draw_kept(tmp_path, tmp_path / "figures" / "race")
    assert [path.name for path in drawn] == ["race-rounds.png", "race-course.png", "race-end.png"]
    assert all(path.stat().st_size < 150_000 for path in drawn)
    assert draw_kept(tmp_path / "figures", tmp_path / "race") == []
