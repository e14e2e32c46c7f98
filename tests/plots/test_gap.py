"""Figures of values and bounds."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polarbear import DataError, Run, Runs, plots, read
from polarbear.errors import DataWarning

FILES = Path(__file__).parents[1] / "readers" / "files"


def make_runs() -> Runs:
    records = [
        Run("A", "x", [1, 4], [20.0, 10.0], 9),
        Run("A", "y", [1], [-8.0], 9),
        Run("B", "x", [2], [0.0], 6),
    ]
    bounds = [
        records[0]._replace(time=[2, 5], value=[5.0, 10.0]),
        records[1]._replace(time=[0, 3], value=[-16.0, -10.0]),
        records[2]._replace(time=[3], value=[0.0]),
    ]
    return Runs.from_records(records, direction="minimize", bounds=bounds).read_as("cut")


def test_gaps():
    data = plots.gaps_data(make_runs(), times=[0, 1, 2, 4, 5, 8])
    x, y = [1, 1, 0.75, 0.5, 0, 0], [1, 0.5, 0.5, 0.2, 0.2, 0.2]
    assert_allclose(data.mean[:, 0], np.mean([x, y], axis=0))
    assert_allclose(data.median[:, 0], np.median([x, y], axis=0))
    assert_array_equal(data.mean[:, 1], [1, 1, 1, 0, 0, np.nan])  # cut at 6
    assert_array_equal(data.n_runs, [[2, 1]] * 5 + [[2, 0]])


def test_a_value_and_a_bound_of_different_signs_are_a_gap_of_one():
    run = Run("A", "x", [1], [3.0], 9)
    bound = run._replace(value=[-1.0])
    runs = Runs.from_records([run], direction="minimize", bounds=[bound])
    assert plots.gaps_data(runs, times=[1]).mean == 1


def test_values_and_bounds_of_an_instance():
    data = plots.bounds_data(make_runs(), "x", times=[0, 2, 5, 8])
    assert_array_equal(data.value[:, 0], [np.nan, 20, 10, 10])
    assert_array_equal(data.bound[:, 0], [np.nan, 5, 10, 10])
    assert_array_equal(data.value[:, 1], [np.nan, 0, 0, np.nan])


def test_figures_of_real_logs():
    pytest.importorskip("matplotlib")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        runs = Runs.concat(  # the head of a log names what the pattern leaves out
            read(FILES / solver / "default__cover400__1.log.gz", names="(?P<configuration>default)")
            for solver in ("copt", "xpress")
        )
    ax = plots.gaps(runs)
    assert len(ax.lines) == 2 * len(runs.algorithms)
    assert ax.get_ylim() == (0, 1)
    instance = runs.instances[0]
    assert plots.bounds(runs, instance).get_ylabel() == f"Value and bound on {instance}"


def test_runs_without_bounds_are_refused():
    runs = Runs.from_records([Run("A", "x", [1], [3.0], 9)], direction="minimize")
    for draw in (plots.gaps, plots.bounds):
        with pytest.raises(DataError, match="these runs have no bounds"):
            draw(runs)
    with pytest.raises(DataError, match="there are 2 instances: pass the name of one"):
        plots.bounds(make_runs())
    with pytest.raises(DataError, match="instance 'z'|'z'"):
        plots.bounds(make_runs(), "z")


class TestRunsWithBounds:
    def test_bounds_go_along(self):
        runs = make_runs()
        part = runs.filter(algorithms=["A"], instances=["y"])
        assert part.bounds.value.tolist() == [-16, -10]
        assert Runs.concat([runs.filter(algorithms=[name]) for name in "AB"]) == runs

    def test_runs_with_and_without_bounds_are_joined(self):
        runs = make_runs()
        other = Runs.from_records([Run("C", "x", [1], [3.0], 9)], direction="minimize")
        joined = Runs.concat([other, runs])
        assert joined.bounds.algorithms == ("A", "B", "C")
        assert len(joined.bounds[2].value) == 0
        assert joined.filter(algorithms=["A", "B"]) == runs

    def test_bounds_of_other_runs_are_refused(self):
        run = Run("A", "x", [1], [3.0], 9)
        with pytest.raises(DataError, match="one record for each run, with the same names"):
            Runs.from_records([run], direction="minimize", bounds=[run._replace(repetition=1)])
