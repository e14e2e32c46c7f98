"""Where a grid starts and stops, and what is said if nothing is told apart at its start."""

import warnings

import numpy as np
import pytest

from polarbear import DataError, Run, Runs, fit, grid, rank
from polarbear.errors import DataWarning
from polarbear.papers import describe_methods


def runs_that_start_alike(n_instances=40, late=(3.0, 2.0, 1.0)):
    """Three algorithms whose first values are chance, and whose later ones are not."""
    rng = np.random.default_rng(0)
    return Runs.from_records(
        [
            Run(name, f"f{k}", [1, 10, 100], [rng.random() + 100, rng.random() + 50, end], 100)
            for k in range(n_instances)
            for name, end in zip("abc", late, strict=True)
        ],
        direction="minimize",
        clock="evaluations",
    )


def test_a_grid_between_two_times():
    runs = runs_that_start_alike()
    assert grid.from_runs(runs).tolist() == [1, 10, 100]
    assert grid.from_runs(runs, start=5).tolist() == [10, 100]
    assert grid.from_runs(runs, start=5, stop=10).tolist() == [10]
    assert grid.from_runs(runs, 3, start=4, stop=64).tolist() == [4, 34, 64]
    assert grid.from_runs(runs, start=20, stop=30)[[0, -1]].tolist() == [20, 30]  # none recorded
    for options, why in [
        ({"start": 200}, "start=200: expected a time from 0 to 100"),
        ({"stop": 200}, "stop=200: expected a time from 0 to 100"),
        ({"start": 50, "stop": 20}, "stop=20 is too early: start=50"),
        ({"stop": 0.5}, "stop=0.5 is too early: the first values are at 1"),
    ]:
        with pytest.raises(DataError, match=why):
            grid.from_runs(runs, **options)


def test_a_start_where_nothing_is_told_apart_is_said_with_what_helps():
    runs = runs_that_start_alike()
    with pytest.warns(DataWarning) as said:
        fit(runs, draws=200)
    (warning,) = said
    assert "2 of 3, 1 to 10 evaluations" in str(warning.message)
    assert "times=pb.grid.from_runs(runs, start=100)" in str(warning.message)


def test_nothing_is_said_where_nothing_helps():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(runs_that_start_alike(late=(1.0, 1.0, 1.0)), draws=200)  # never told apart
        runs = runs_that_start_alike()
        fit(runs, times=[1, 10, 100], draws=200)  # not an automatic grid
        fit(runs, times=grid.from_runs(runs, start=100), draws=200)


def optimise(rng, speed, first=1.0, n=2000):
    """Return the improvements of an optimiser whose proposals become better with its speed."""
    value = rng.exponential(size=n) * (1 + np.arange(n) / 5) ** -speed
    value[0] *= first
    best = np.minimum.accumulate(value)
    (improved,) = np.nonzero(np.diff(best, prepend=np.inf) < 0)
    return improved + 1.0, best[improved]


def six_optimisers(n_functions=24):
    """Six optimisers from 1 to 2,000 evaluations; one has a good first point."""
    rng = np.random.default_rng(0)
    speeds = {"CMA": 3.0, "DE": 0.8, "ES": 1.0, "NelderMead": 0.5, "PSO": 0.7, "random": 0.0}
    return Runs.from_records(
        [
            Run(name, f"f{k}", *optimise(rng, speed, 0.1 if name == "NelderMead" else 1), 2000)
            for k in range(1, n_functions + 1)
            for name, speed in speeds.items()
        ],
        direction="minimize",
        clock="evaluations",
    )


def test_first_luck_makes_no_member():
    runs = six_optimisers()
    assert fit(runs, draws=2000).pareto(0.95) == ("CMA",)
    early = fit(runs, times=grid.from_runs(runs, start=1), draws=2000)
    assert len(early.pareto(0.95, margin=0, width=0)) == 6
    assert len(early.pareto(0.95)) < 6  # a tenth of the axis is more than the first luck


def test_a_start_after_the_first_values_is_said_once():
    runs = six_optimisers()
    note = (
        "The times begin at 20 evaluations, because the first observations are mostly luck. To "
        "begin at 1 evaluation, pass times=pb.grid.from_runs(runs, start=1), or --from 1."
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rankings, posterior = rank(runs), fit(runs, draws=200)
    assert str(rankings).endswith(note)
    assert (
        str(posterior.verdict()).count(note)
        == str(fit(rankings, draws=200).verdict()).count(note)
        == 1
    )
    assert note not in describe_methods(posterior)
    chosen = rank(runs, grid.from_runs(runs, start=20))
    assert "begin" not in str(chosen) + str(fit(chosen, draws=200).verdict())
    assert "begin" not in str(rank(runs_that_start_alike()))
