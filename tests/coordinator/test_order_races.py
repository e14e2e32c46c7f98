"""Races of solvers that report several objectives."""

import pytest

import polarbear as pb


def make_solver(shift):
    def solve(job):
        for time in (1, 2, 4):
            x = job.rng.uniform()
            point = x + shift / time, 1 - x + shift / time
            job.report(values=point, bounds=[(0, 3), (0, 3)], time=time)

    return solve


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_a_solver_whose_points_are_dominated_is_eliminated(shift):
    solvers = {"near": make_solver(0.0), "far": make_solver(shift)}
    result = pb.race(
        solvers,
        range(200),
        times=[1, 4],
        direction="minimize",
        clock="reported",
        question=pb.ParetoSet(certainty=0.95),
        budget=pb.Budget(runs=64),
    )
    assert ("far" in result.pareto) == (shift == 0.0)
    assert "near" in result.pareto
