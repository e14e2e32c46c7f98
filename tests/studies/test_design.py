"""Proposals of the design loop, and the fixed evaluator that it is compared with."""

import numpy as np
import pytest
from design.space import SPACE, by_chance, by_optuna


def test_chance_proposes_by_number():
    one, two = by_chance(3, []), by_chance(4, [])
    assert one == by_chance(3, [({}, 1.0)])
    assert one != two
    assert {name: value in SPACE[name] for name, value in one.items()} == dict.fromkeys(SPACE, True)


def test_optuna_proposes_by_what_it_was_told():
    pytest.importorskip("optuna")
    told = [(by_chance(k, []), k / 20) for k in range(20)]
    assert by_optuna(20, told) == by_optuna(20, told)
    other = [(options, 1 - value) for options, value in told]
    assert by_optuna(20, told) != by_optuna(20, other)
    assert by_optuna(0, []).keys() == SPACE.keys()


def test_the_fixed_evaluator_sees_how_the_runs_of_the_race_go_on():
    pytest.importorskip("ioh")
    pytest.importorskip("modcma")
    from mabbob.problem import ManyAffine
    from tools.fixed import run as complete_run
    from tools.modular import cma_es

    import polarbear as pb

    times = np.array([50.0, 100.0, 200.0])
    found = pb.race(
        {"a": cma_es(ssa="CSA"), "b": cma_es(ssa="MSR")},
        pb.Instances(("1", "2"), lambda name: ManyAffine(int(name), 2)),
        times,
        direction="minimize",
        clock="evaluations",
        executor=1,
    )
    for run, values in zip(found.runs, found.runs.at(times), strict=True):
        solver = cma_es(ssa="CSA" if run.algorithm == "a" else "MSR")
        build = lambda name: ManyAffine(int(name), 2)  # noqa: E731
        ours = complete_run(run.algorithm, solver, build, times, run.instance)
        seen = times <= run.until
        np.testing.assert_array_equal(ours[seen], values[seen])
