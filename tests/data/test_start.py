"""Where a grid starts and stops, and what is said if nothing is told apart at its start."""

import warnings

import numpy as np
import pytest

from polarbear import DataError, DataWarning, Run, Runs, fit, grid


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
