"""A race of solvers costs at most three times the evaluations of the paper's rule."""

import numpy as np
import pytest

import polarbear as pb

TIMES = np.unique(np.geomspace(10, 300, 20).round())


def sphere(rng):
    centre = rng.uniform(-3, 3, 3)
    return lambda x: float(((x - centre) ** 2).sum())


def random_search(job):
    f = job.track(job.instance)
    while True:
        f(job.rng.uniform(-5, 5, 3))


def search(width, shrink):
    """A solver that steps from its best point, with steps that become smaller."""

    def solver(job):
        f, x, step = job.track(job.instance), job.rng.uniform(-5, 5, 3), width
        best = f(x)
        while True:
            trial = x + step * job.rng.normal(size=3)
            value = f(trial)
            x, best, step = (trial, value, step) if value < best else (x, best, step * shrink)

    return solver


@pytest.mark.long
def test_four_solvers_of_spheres_cost_little_more_than_by_the_rule_of_the_paper():
    solvers = {
        "random": random_search,
        "shrinking": search(0.3, 0.97),
        "slow": search(0.3, 0.995),
        "wide": search(2.0, 0.97),
    }
    spent = {}
    for question in (pb.ParetoSet(), pb.PaperParetoSet()):
        races = [
            pb.race(solvers, sphere, TIMES, direction="minimize", question=question, seed=seed,
                    executor=1)
            for seed in range(3)
        ]  # fmt: skip
        assert {race.ended for race in races} == {"resolved"}
        assert all({"shrinking", "wide"} <= {*race.pareto} for race in races)
        spent[type(question)] = sum(race.spent.time for race in races)
    assert spent[pb.ParetoSet] <= 3 * spent[pb.PaperParetoSet]
