"""A judge uses the tolerances and weights of its question everywhere, and knows every copy."""

import json

import pytest

import polarbear as pb
from polarbear.design import Judge


def make_solver(text):
    given = json.loads(text)

    def solver(job):
        if "random" in given:
            yield 1, float(job.rng.normal())
        else:
            for evaluations in (1, 3):
                yield evaluations, given["value"] + int(str(job.instance)) % 5

    return solver


def judge_in(folder, reference, **question):
    return Judge(
        folder,
        make_solver,
        list(range(60)),
        [3],
        reference=json.dumps(reference),
        direction="minimize",
        budget=pb.Budget(runs=16),
        executor=1,
        question=pb.ParetoSet(**question),
    )


@pytest.mark.parametrize("fit", [{"rel_tol": 0.01}, {"weights": {str(k): 2.0 for k in range(30)}}])
def test_tolerances_and_weights_are_used(tmp_path, fit):
    """Once, win rates knew no tolerance, and weights of instances without runs were an error."""
    judge = judge_in(tmp_path, {"value": 1.0}, fit=fit)
    found = judge(json.dumps({"value": 0.999}))
    assert found.win_rates == ((0.5,) if "rel_tol" in fit else (1.0,))


def test_every_further_copy_is_recognised(tmp_path):
    """Once, a copy of a copy was compared no more, and paid for in full."""
    judge = judge_in(tmp_path, {"random": True})
    found = [judge(json.dumps({"value": -9, "copy": k})) for k in range(4)]
    assert [one.copy_of is not None for one in found] == [False, True, True, True]
    assert len({one.copy_of for one in found[1:]}) == 1
